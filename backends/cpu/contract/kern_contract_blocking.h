// SPDX-License-Identifier: Apache-2.0
// How a contraction is divided into work items and panels, for one element type T. All sizes follow
// from the shape, never from the number of threads; no sum over k is divided among threads. LOCAL,
// SHARED, COPYING, OWN_COLUMNS and WINDOWS_IN_PLACE sum an element in the same order, because
// their panels depend on k alone; so does STRIPS_IN_PLACE if its strips are as long as panels.
// DOTS_IN_PLACE has a different order.
// Included by kern_contract_gemm.h. KC is the length of a panel. Packed panels consist of elements
// P, DEPTH(k) of them along k: T itself, or pairs of bf16 (PAIRS).

#if !defined PAIRS || defined PAIR_DOTS
#define IN_PLACE // few rows of a times b in place
#endif

enum mode {
	DOTS_IN_PLACE,   // few rows of a, dense columns of b: nothing is packed
	STRIPS_IN_PLACE, // few rows of a, dense rows of b: nothing is packed
	WINDOWS_IN_PLACE, // few rows of a, windows: each work item packs a
	LOCAL,           // each work item packs what it uses
	SHARED,          // the team packs b, then each work item packs its rows of a
	// the team packs a; a work item packs b panel by panel, during the panel's first product if
	// rows of b are contiguous
	COPYING,
	// BANDS: a work item packs its columns of b, kc rows at a time, and prefetches the next
	// ones meanwhile; the team packs a if its rows cannot be read in place
	OWN_COLUMNS
};

enum {
	MANY = 32,               // work items that suffice for load balance
	L2_COLS = 256 / NR * NR, // columns of packed b that stay in L2
#ifdef BANDS
	SMALL = 1 << 19,         // min products per work item
	BAND_ROWS = 8 * MR,      // max rows of a work item
	BAND_COLS = 8 * NR,      // max columns of a work item
	BAND_B = 512 << 10,      // elements of packed b that stay in L2
	// OWN_COLUMNS: max rows of a, min columns of a work item (narrower ones load a too often),
	// min work items
	OWN_ROWS = 768,
	OWN_COLS = 2 * NR,
	OWN_ITEMS = MANY / 2,
#else
	SMALL = 1 << 17,         // min products per work item
#endif
	STAYS = 64 << 10,        // bytes of unpacked b that stay in cache
	OUTSIDE = 1 << 20,       // bytes of a that exceed L2
	RESIDENT = 256 << 10,            // bytes of unpacked b that stay in L2 beside a and c
	BEYOND = 4 << 20,        // bytes of b that exceed all caches
	LONG_RUN = 2 << 10,      // bytes of a row of b that memory streams fast
	FEW_ROWS = MR < 6 ? 4 * MR : 24, // max rows of a for which b is read in place
	COPY_ROWS = 384,                 // COPYING: rows of a whose panels stay in L2
	COPY_COLS = 4 * NR,              // COPYING: max columns of a work item
	WINDOW_ROWS = 16, // max rows of a for which windows are read in place
	TURN_ROWS = 1024, // max rows of a for which each work item transposes its panels of b
	COPY_FEW = 512,   // max rows of a for which packing b is a notable cost
	// bytes of packed a that every panel of b can read again; 0: measured with AVX-512 only
	NEAR_A = NR * sizeof(T) < 128 ? 0 : 4 << 20,
	COPY_A = 16 << 20,             // max bytes of packed a
	SHARE = (6 << 20) / sizeof(P), // elements of b packed at a time
};

// The smallest multiple of `unit` that divides n into no more blocks than `part` does.
static int64_t even(int64_t n, int64_t part, int64_t unit)
{
	return yk_ceil_div(yk_ceil_div(n, yk_ceil_div(n, part)), unit) * unit;
}

// m n k as a double, which cannot overflow.
static double products(int64_t m, int64_t n, int64_t k)
{
	return (double)m * (double)n * (double)k;
}

#ifdef IN_PLACE
static double bytes_of_b(const struct yk_gemm *g)
{
	return products(1, g->n, g->k) * (double)g->esize;
}
#endif

static int64_t items(const struct yk_gemm *g, const struct yk_blocking *c)
{
	return yk_ceil_div(g->m, c->mb) * yk_ceil_div(g->n, c->nb);
}

static bool worth_dividing(const struct yk_gemm *g, const struct yk_blocking *c)
{
	return products(c->mb, c->nb, g->k) >= 2. * SMALL;
}

static void halve(const struct yk_gemm *g, struct yk_blocking *c, bool rows)
{
	if (rows)
		c->mb = even(g->m, c->mb > 2 * MR ? c->mb / 2 : MR, MR);
	else
		c->nb = even(g->n, c->nb > 2 * NR ? c->nb / 2 : NR, NR);
}

#ifndef PAIRS
static bool native(const struct yk_gemm *g)
{
	return g->esize == sizeof(T);
}
#endif

// True if sums have the result's type and layout.
static bool sums_fit(const struct yk_gemm *g)
{
	return g->csize == sizeof(T) && !g->mapped && !(g->win && !g->win->along);
}

// True if work items accumulate in c, because c has rows of T; otherwise in scratch.
static bool sums_in_c(const struct yk_gemm *g)
{
	return sums_fit(g) && g->cn == 1;
}

#ifndef PAIRS
// True if rows of b are contiguous, so that tiles can read b in place.
static bool dense_across(const struct yk_gemm *g)
{
	return !g->win && g->bn == 1 && g->bk != 1;
}

// b is large relative to the work (few rows, a long sum; requires contiguous rows of b), or a is
// small enough to be read again for each panel of b. An epilogue needs blocks of several panels:
// with narrow ones it would access its operands in short runs.
static bool prefers_copying(const struct yk_gemm *g)
{
	const double a = products(g->m, 1, g->k) * sizeof(P);

	if (!native(g) || g->n < NR)
		return false;
	if (dense_across(g) && g->m <= COPY_FEW && g->k >= 2 * KC && a <= COPY_A)
		return true;
	if (g->mapped && !dense_across(g) && g->n < MANY / 2 * COPY_COLS)
		return false;
	return g->m > FEW_ROWS && a <= NEAR_A && (dense_across(g) || g->m <= TURN_ROWS) &&
	       products(g->m, g->n, g->k) >= 8. * SMALL;
}

// The windows that each thread packs stay in its L2 cache. Requires enough columns for all
// threads. If the windows are those of CONV_W, a is as long as they are, and should stay in a
// cache.
static bool prefers_windows(const struct yk_gemm *g)
{
	const bool along = g->win->along;

	return g->m > MR && g->n >= (along ? 4 : MANY / 2) * NR &&
	       products(g->m, 1, g->k) * sizeof(P) <= (along ? COPY_A / 2 : COPY_A);
}

// b is small, read at most twice, or expensive to load but kept in a cache for each tile of rows.
static bool prefers_strips(const struct yk_gemm *g)
{
	if (!native(g))
		return g->m <= HALF_ROWS;
	return g->cn == 1 &&
	       (g->m <= 2 * MR || bytes_of_b(g) <= RESIDENT ||
		(g->m <= FEW_ROWS && (bytes_of_b(g) > BEYOND || !prefers_copying(g))));
}
#endif

#ifdef IN_PLACE
// With more rows, packing b costs less in proportion; the limit depends on whether b is in a cache.
static bool prefers_dots(const struct yk_gemm *g)
{
	return g->m <= (bytes_of_b(g) > BEYOND ? DOT_FAR : DOT_MAX);
}

// Columns of a tile in a strip.
static int64_t strip_cols(const struct yk_gemm *g)
{
#ifdef PAIRS
	(void)g;
	return 2 * NR;
#else
	int64_t rows = yk_ceil_div(g->m, yk_ceil_div(g->m, MR));

	return strip_of((int)rows, native(g) ? PLAIN : g->dtype)->cols;
#endif
}

#ifndef PAIRS
static void block_dots(const struct yk_gemm *g, struct yk_blocking *c)
{
	int64_t cols = 4 * g->m; // each work item packs a

	if (cols < g->n / MANY)
		cols = g->n / MANY;
	if (cols < yk_ceil_div(SMALL / 2, g->m * g->k))
		cols = yk_ceil_div(SMALL / 2, g->m * g->k);
	c->mb = g->m;
	c->nb = even(g->n, cols, DOT_COLS);
}
#endif

static void block_in_place(const struct yk_gemm *g, struct yk_blocking *c)
{
	int64_t unit, cols = yk_ceil_div(2 * SMALL, g->m * g->k);

	c->mb = g->m;
#ifndef PAIRS
	if (g->batches >= 2 * MANY && products(g->m, g->n, g->k) <= 16. * SMALL &&
	    products(g->m, g->n, 1) * sizeof(T) <= RESIDENT && bytes_of_b(g) <= RESIDENT) {
		c->nb = g->n;
		c->entries = yk_ceil_div(g->batches, MANY);
		return;
	}
#endif
	if (g->bn == 1 && bytes_of_b(g) > BEYOND)
		unit = LONG_RUN / (int64_t)g->esize;
	else
		unit = strip_cols(g);
	if (g->m > FEW_ROWS && bytes_of_b(g) <= RESIDENT) {
		c->mb = yk_max(yk_ceil_div(SMALL, g->k * g->n), g->m / (2 * MANY));
		c->mb = even(g->m, yk_min(g->m, c->mb), MR);
		cols = g->n;
	}
	c->nb = yk_min(yk_ceil_div(cols, unit), yk_ceil_div(g->n, unit)) * unit;
}
#endif

static void block_local(const struct yk_gemm *g, struct yk_blocking *c)
{
	int64_t m_min = 4 * MR, n_min = 2 * NR;

	c->mb = even(g->m, 16 * MR, MR);
	c->nb = even(g->n, L2_COLS, NR);
	while (g->batches * items(g, c) < MANY && worth_dividing(g, c) &&
	       (c->nb > n_min || c->mb > m_min))
		halve(g, c, c->nb <= n_min || (c->mb > c->nb && c->mb > m_min));
}

// True if a need not be packed, because its rows are contiguous and no longer than a panel, or
// consist of whole cache lines.
static bool reads_rows_in_place(const struct yk_gemm *g, const struct yk_blocking *blocking)
{
#ifdef BANDS
	(void)blocking;
	return g->ak == 1 && g->am % K_UNIT == 0;
#elif defined PAIRS
	(void)g, (void)blocking;
	return false;
#else
	return native(g) && g->ak == 1 && g->am == g->k && g->k <= blocking->kc;
#endif
}

#ifdef BANDS
// How much of k is processed at a time so that a work item's block of packed b stays in L2; a
// multiple of kc.
static int64_t band_depth(const struct yk_gemm *g, const struct yk_blocking *c)
{
	const int64_t depth = BAND_B / c->nb / c->kc * c->kc;
	return c->mb <= MR ? g->k : depth < c->kc ? c->kc : depth;
}

// True if a has so few rows that storing all of packed b would cost much of the product, and is not
// so large that loading it again for each work item would cost more.
static bool prefers_own_columns(const struct yk_gemm *g, const struct yk_blocking *c)
{
	return g->batches == 1 && g->m <= OWN_ROWS && g->n >= 2 * g->m &&
	       g->n >= OWN_ITEMS * OWN_COLS && g->k >= KC / 2 &&
	       (reads_rows_in_place(g, c) || products(g->m, 1, g->k) * sizeof(P) <= 2. * COPY_A);
}

static void block_own_columns(const struct yk_gemm *g, struct yk_blocking *c)
{
	c->mb = yk_ceil_div(g->m, MR) * MR;
	c->nb = yk_min(BAND_COLS, g->n / OWN_ITEMS / NR * NR);
	c->ns = 0;
	c->ks = g->k;
	c->share_a = !reads_rows_in_place(g, c);
}

static void block_bands(const struct yk_gemm *g, struct yk_blocking *c)
{
	c->mb = even(g->m, BAND_ROWS, MR);
	c->nb = even(g->n, BAND_COLS, NR);
	while (items(g, c) < MANY && worth_dividing(g, c) && (c->mb > 2 * MR || c->nb > 2 * NR))
		halve(g, c, c->mb > 2 * MR && c->mb >= c->nb);
	// all of k if the result cannot hold partial sums, otherwise what fits
	c->ns = sums_in_c(g) ? yk_min(g->n, 16 * c->nb) : g->n;
	c->ks = g->k;
	if (sums_in_c(g))
		c->ks = yk_min(g->k,
			       yk_ceil_div(SHARE, yk_ceil_div(c->ns, NR) * NR * DEPTH(c->kc)) *
				       c->kc);
	else
		c->ns = yk_min(g->n, yk_ceil_div(SHARE, DEPTH(g->k)));
	c->ns = yk_ceil_div(c->ns, c->nb) * c->nb;
	c->share_a = !reads_rows_in_place(g, c) && g->n > c->nb &&
		     products(g->m, 1, c->ks) * sizeof(P) <= 2. * COPY_A;
}
#endif

#ifndef BANDS
static void block_shared(const struct yk_gemm *g, struct yk_blocking *c)
{
	int64_t panels;

	c->mb = even(g->m, 8 * MR, MR);
	c->nb = even(g->n, 3 * L2_COLS, NR);
	while (items(g, c) < MANY && c->mb > 4 * MR && worth_dividing(g, c))
		halve(g, c, true);
	while (items(g, c) < MANY / 2 && c->nb > L2_COLS / 2 && worth_dividing(g, c))
		halve(g, c, false);
	while (items(g, c) < MANY / 2 && c->mb > MR && worth_dividing(g, c))
		halve(g, c, true);
	// All of k if the result cannot hold partial sums, otherwise what fits.
	if (sums_in_c(g)) {
		c->ns = yk_min(g->n, 8 * 2 * L2_COLS);
		panels = SHARE / (yk_ceil_div(c->ns, NR) * NR * DEPTH(c->kc));
		c->ks = yk_min(g->k, (panels > 1 ? panels : 1) * c->kc);
	} else {
		c->ks = g->k;
		panels = SHARE / ((double)DEPTH(g->k) * (double)c->nb);
		c->ns = yk_min(g->n, (panels > 1 ? panels : 1) * c->nb);
	}
	c->ns = yk_ceil_div(c->ns, c->nb) * c->nb;
	// Where rows of a are strided across cache lines, work items with few rows would each load
	// most lines again, as would several work items with the same rows.
	c->share_a = g->am == 1 && g->ak != 1 &&
		     (g->win || c->mb < 4 * MR ||
		      (g->n > c->nb && products(g->m, 1, g->k) * (double)g->esize > OUTSIDE));
#ifdef PAIRS
	// packing costs more in proportion than with f32
	c->share_a |= g->n > c->nb && products(g->m, 1, g->k) * (double)g->esize <= BEYOND;
#else
	// several work items with the same rows would pack them again
	c->share_a |= !g->win && g->n > c->nb && !reads_rows_in_place(g, c) &&
		      products(g->m, 1, c->ks) * sizeof(P) <= COPY_A;
#endif
}
#endif

#ifndef PAIRS
static void block_copying(const struct yk_gemm *g, struct yk_blocking *c)
{
	c->mb = dense_across(g) ? even(g->m, COPY_ROWS, MR) : g->m;
	c->nb = yk_min(COPY_COLS, yk_ceil_div(g->n, NR) * NR);
	c->ns = 0;
	c->ks = g->k;
	c->share_a = g->win || !reads_rows_in_place(g, c);
	if (dense_across(g)) {
		while (items(g, c) < MANY && (c->nb > NR || c->mb > 8 * MR))
			halve(g, c, c->nb <= NR || (c->mb > 16 * MR && c->nb <= 2 * NR));
		return;
	}
	// few columns: each thread gets a block of a
	while (g->win && !g->win->along && items(g, c) < MANY / 2 && c->mb > 16 * MR)
		halve(g, c, true);
	while (items(g, c) < MANY / 2 && c->nb > NR)
		halve(g, c, false);
	while (items(g, c) < MANY / 4 && c->mb > 4 * MR)
		halve(g, c, true);
}
#endif

// Elements of packed b; packed a follows it.
static int64_t packed_b(const struct yk_blocking *c)
{
	return yk_ceil_div(c->ns, NR) * NR * DEPTH(c->ks);
}

static int64_t packed_a(const struct yk_gemm *g, const struct yk_blocking *c)
{
	return c->share_a ? yk_ceil_div(g->m, MR) * MR * DEPTH(c->ks) : 0;
}

#ifdef PAIR_DOTS
static void block_dots(const struct yk_gemm *g, struct yk_blocking *c);
#endif
#ifndef PAIRS
static bool prefers_windows_in_place(const struct yk_gemm *g);
#endif

static struct yk_blocking blocking(const struct yk_gemm *g)
{
	struct yk_blocking c = { .kc = even(g->k, KC, K_UNIT), .entries = 1 };

#ifndef PAIRS
	if (g->bk == 1 && !g->by_row &&
	    (native(g) ? prefers_dots(g) : g->m <= HALF_ROWS)) {
		c.mode = DOTS_IN_PLACE;
		block_dots(g, &c);
	} else if (g->bn == 1 && prefers_strips(g)) {
		c.mode = STRIPS_IN_PLACE;
		block_in_place(g, &c);
	} else if (g->win && prefers_windows_in_place(g)) {
		c.mode = WINDOWS_IN_PLACE;
		c.mb = g->m;
		c.nb = g->n; // which grid_of divides
	} else if (g->batches == 1 && (g->win ? prefers_windows(g) : prefers_copying(g))) {
		c.mode = COPYING;
		block_copying(g, &c);
	} else
#elif defined PAIR_DOTS
	if (g->bk == 1 && !g->by_row && prefers_dots(g)) {
		c.mode = DOTS_IN_PLACE;
		block_dots(g, &c);
	} else if (g->bn == 1 && g->m <= 3 * MR) {
		c.mode = STRIPS_IN_PLACE;
		block_in_place(g, &c);
	} else
#endif
		if (g->batches >= 8 || g->m <= 4 * MR ||
		    products(g->m, g->n, g->k) < 8. * SMALL) {
		c.mode = LOCAL;
		block_local(g, &c);
#ifdef BANDS
	} else if (prefers_own_columns(g, &c)) {
		c.mode = OWN_COLUMNS;
		block_own_columns(g, &c);
#endif
	} else {
		c.mode = SHARED;
#ifdef BANDS
		block_bands(g, &c);
#else
		block_shared(g, &c);
#endif
	}
	return c;
}
