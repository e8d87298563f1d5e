// SPDX-License-Identifier: Apache-2.0 Blocking of a contraction and the work of one work item, for
// one element type T. The scheme is that of Goto and van de Geijn 2008 (ACM TOMS 34:3) with a and b
// exchanged to suit row-major results: a panel of a stays in L1, panels of b stream from L2. All
// block sizes follow from the shape; no sum over k is divided among threads. LOCAL, SHARED and
// COPYING sum an element in the same order, because their panels depend on k alone; so does
// STRIPS_IN_PLACE if its strips are as long as panels. DOTS_IN_PLACE has a different order.
// Included last by kern_contract_f32.c and similar files. KC is the length of a panel. Packed
// panels consist of elements P, DEPTH(k) of them along k: T itself, or pairs of bf16 (PAIRS).

#if !defined PAIRS || defined PAIR_DOTS
#define IN_PLACE // few rows of a times b in place
#endif

enum mode {
	DOTS_IN_PLACE,   // few rows of a, dense columns of b: nothing is packed
	STRIPS_IN_PLACE, // few rows of a, dense rows of b: nothing is packed
	LOCAL,           // each work item packs what it uses
	SHARED,          // the team packs b, then each work item packs its rows of a
	// the team packs a; a work item packs b panel by panel, during the panel's first product if
	// rows of b are contiguous
	COPYING
};

enum {
	L2_COLS = 256 / NR * NR, // columns of packed b that stay in L2
	SMALL = 1 << 17,         // min products per work item
	MANY = 32,               // work items that suffice for load balance
	STAYS = 64 << 10,        // bytes of unpacked b that stay in cache
	OUTSIDE = 1 << 20,       // bytes of a that exceed L2
	RESIDENT = 256 << 10,            // bytes of unpacked b that stay in L2 beside a and c
	BEYOND = 4 << 20,        // bytes of b that exceed all caches
	LONG_RUN = 2 << 10,      // bytes of a row of b that memory streams fast
	FEW_ROWS = MR < 6 ? 4 * MR : 24, // max rows of a for which b is read in place
	COPY_ROWS = 384,                 // COPYING: rows of a whose panels stay in L2
	COPY_COLS = 4 * NR,              // COPYING: max columns of a work item
	TURN_ROWS = 1024, // max rows of a for which each work item transposes its panels of b
	COPY_FEW = 512,   // max rows of a for which packing b is a notable cost
	// bytes of packed a that every panel of b can read again; 0: measured with AVX-512 only
	NEAR_A = NR * sizeof(T) < 128 ? 0 : 4 << 20,
	COPY_A = 16 << 20,             // max bytes of packed a
	SHARE = (6 << 20) / sizeof(P), // elements of b packed at a time
};

static int64_t ceil_div(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

static int64_t min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

// The smallest multiple of `unit` that divides n into no more blocks than `part` does.
static int64_t even(int64_t n, int64_t part, int64_t unit)
{
	return ceil_div(ceil_div(n, ceil_div(n, part)), unit) * unit;
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
	return ceil_div(g->m, c->mb) * ceil_div(g->n, c->nb);
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
// small enough to be read again for each panel of b. An epilogue needs blocks of several panels: with
// narrow ones it would access its operands in short runs.
static bool prefers_copying(const struct yk_gemm *g)
{
	const double a = products(g->m, 1, g->k) * sizeof(P);

	if (!native(g) || g->n < NR)
		return false;
	if (dense_across(g) && g->m <= COPY_FEW && g->k >= 2 * KC && a <= COPY_A)
		return true;
	if (g->map && !dense_across(g) && g->n < MANY / 2 * COPY_COLS)
		return false;
	return g->m > FEW_ROWS && a <= NEAR_A && (dense_across(g) || g->m <= TURN_ROWS) &&
	       products(g->m, g->n, g->k) >= 8. * SMALL;
}

// The windows that each thread packs stay in its L2 cache. Requires enough columns for all
// threads. If the windows are those of CONV_W, a is as long as they are, and should stay in a cache.
static bool prefers_windows(const struct yk_gemm *g)
{
	const bool along = g->win->along;

	return g->m > MR && g->n >= (along ? 4 : MANY / 2) * NR && products(g->m, 1, g->k) * sizeof(P) <= (along ? COPY_A / 2 : COPY_A);
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
	int64_t rows = ceil_div(g->m, ceil_div(g->m, MR));

	return strip_of((int)rows, native(g) ? PLAIN : g->dtype)->cols;
#endif
}

#ifndef PAIRS
static void block_dots(const struct yk_gemm *g, struct yk_blocking *c)
{
	int64_t cols = 4 * g->m; // each work item packs a

	if (cols < g->n / MANY)
		cols = g->n / MANY;
	if (cols < ceil_div(SMALL / 2, g->m * g->k))
		cols = ceil_div(SMALL / 2, g->m * g->k);
	c->mb = g->m;
	c->nb = even(g->n, cols, DOT_COLS);
}
#endif

static void block_in_place(const struct yk_gemm *g, struct yk_blocking *c)
{
	int64_t unit, cols = ceil_div(2 * SMALL, g->m * g->k);

	c->mb = g->m;
	if (g->bn == 1 && bytes_of_b(g) > BEYOND)
		unit = LONG_RUN / (int64_t)g->esize;
	else
		unit = strip_cols(g);
	if (g->m > FEW_ROWS && bytes_of_b(g) <= RESIDENT) {
		c->mb = even(g->m, min(g->m, ceil_div(SMALL, g->k * g->n)), MR);
		cols = g->n;
	}
	c->nb = min(ceil_div(cols, unit), ceil_div(g->n, unit)) * unit;
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

// True if a's rows are contiguous and no longer than a panel, so that a need not be packed.
static bool reads_rows_in_place(const struct yk_gemm *g, const struct yk_blocking *blocking)
{
#ifdef PAIRS
	(void)g, (void)blocking;
	return false;
#else
	return native(g) && g->ak == 1 && g->am == g->k && g->k <= blocking->kc;
#endif
}

static void block_shared(const struct yk_gemm *g, struct yk_blocking *c)
{
	int64_t panels;

	c->mb = even(g->m, 8 * MR, MR);
	c->nb = even(g->n, 2 * L2_COLS, NR);
	while (items(g, c) < MANY && c->mb > 4 * MR && worth_dividing(g, c))
		halve(g, c, true);
	while (items(g, c) < MANY / 2 && c->nb > L2_COLS / 2 && worth_dividing(g, c))
		halve(g, c, false);
	while (items(g, c) < MANY / 2 && c->mb > MR && worth_dividing(g, c))
		halve(g, c, true);
	// All of k if the result cannot hold partial sums, otherwise what fits.
	if (sums_in_c(g)) {
		c->ns = min(g->n, 8 * 2 * L2_COLS);
		panels = SHARE / (ceil_div(c->ns, NR) * NR * DEPTH(c->kc));
		c->ks = min(g->k, (panels > 1 ? panels : 1) * c->kc);
	} else {
		c->ks = g->k;
		panels = SHARE / ((double)DEPTH(g->k) * (double)c->nb);
		c->ns = min(g->n, (panels > 1 ? panels : 1) * c->nb);
	}
	c->ns = ceil_div(c->ns, c->nb) * c->nb;
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

#ifndef PAIRS
static void block_copying(const struct yk_gemm *g, struct yk_blocking *c)
{
	c->mb = dense_across(g) ? even(g->m, COPY_ROWS, MR) : g->m;
	c->nb = min(COPY_COLS, ceil_div(g->n, NR) * NR);
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
	return ceil_div(c->ns, NR) * NR * DEPTH(c->ks);
}

static int64_t packed_a(const struct yk_gemm *g, const struct yk_blocking *c)
{
	return c->share_a ? ceil_div(g->m, MR) * MR * DEPTH(c->ks) : 0;
}

#ifdef PAIR_DOTS
static void block_dots(const struct yk_gemm *g, struct yk_blocking *c);
#endif

static struct yk_blocking blocking(const struct yk_gemm *g)
{
	struct yk_blocking c = { .kc = even(g->k, KC, K_UNIT) };

#ifndef PAIRS
	if (g->bk == 1 && !g->by_row &&
	    (native(g) ? prefers_dots(g) : g->m <= HALF_ROWS)) {
		c.mode = DOTS_IN_PLACE;
		block_dots(g, &c);
	} else if (g->bn == 1 && prefers_strips(g)) {
		c.mode = STRIPS_IN_PLACE;
		block_in_place(g, &c);
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
	} else {
		c.mode = SHARED;
		block_shared(g, &c);
	}
	return c;
}

// ---- work items ----

struct job {
	const struct yk_gemm *g;
	int64_t n_items;       // work items along n
	int64_t j0, k0, ns, ks; // SHARED: the block of b being processed
	const char *a, *b;      // SHARED: matrices of the current batch entry
	int64_t c;              // SHARED: first element of the result in this batch entry
	atomic_bool failed;     // out of memory
};

static const char *at(const struct yk_gemm *g, const char *p, int64_t i, int64_t is,
		      int64_t j, int64_t js)
{
	return p + (i * is + j * js) * (int64_t)g->esize;
}

struct scratch {
	T *at;     // the requested elements
	void *map; // scratch of the epilogue, initialized
};

// False: out of memory.
static bool take_scratch(struct job *job, int64_t elements, struct scratch *r)
{
	const struct yk_gemm *g = job->g;
	size_t bytes = ((size_t)elements * sizeof(T) + 64) & ~(size_t)63; // > 0
	char *p = yk_team_scratch(bytes + (g->map ? ISA(yk_epilogue_memory)(g->map) : 0));

	if (!p) {
		job->failed = true;
		return false;
	}
	r->at = (T *)p;
	r->map = p + bytes;
	if (g->map)
		ISA(yk_epilogue_begin)(g->map, r->map);
	return true;
}

struct work { // operands and result of a work item
	int64_t batch, i, j, m, n;
	const char *a, *b;
	int64_t c; // first element of the result
};

static T *sums_at(const struct yk_gemm *g, int64_t c)
{
	return (T *)g->c + c;
}

static struct work work_of(const struct job *job, int64_t item)
{
	const struct yk_gemm *g = job->g;
	const struct yk_blocking *blocking = &g->blocking;
	int64_t rows = ceil_div(g->m, blocking->mb), a, b, c;
	struct work p;

	p.i = item % rows * blocking->mb;
	item /= rows;
	p.j = item % job->n_items * blocking->nb;
	p.batch = item / job->n_items;
	p.m = min(g->m - p.i, blocking->mb);
	p.n = min(g->n - p.j, blocking->nb);
	yk_gemm_batch(g, p.batch, &a, &b, &c);
	p.a = at(g, g->a, p.i, g->am, a, 1);
	p.b = at(g, g->b, p.j, g->bn, b, 1);
	p.c = p.i * g->cm + p.j * g->cn + c;
	return p;
}

// Packs columns j .. j + n - 1 of b, rows l0 .. l0 + k - 1; `from` is the first row. Fills only
// rows l .. l + rows - 1 of the panels, or all of them for windows.
static void pack_b_at(P *to, const struct yk_gemm *g, const char *from, int64_t j, int64_t n, int64_t l0, int64_t k,
			 int64_t l, int64_t rows)
{
#ifndef PAIRS
	if (g->win) {
		pack_windows(to, g, from, j, n, l0, k);
		return;
	}
#endif
	(void)j, (void)l0;
	pack_b(to, g, from, n, k, l, rows);
}

// Stores finished sums (m,n), rows ld apart; the first is element c of the result, in column j0.
static void finish(const struct yk_gemm *g, struct scratch *r, T *sums, int64_t ld,
		   int64_t c, int64_t j0, int64_t m, int64_t n)
{
	enum { SQUARE = 32 };
	T turned[SQUARE * SQUARE];

#ifndef PAIRS
	if (g->win && !g->win->along) {
		put_windows(g, sums, ld, c, j0, m, n);
		return;
	}
#endif
	(void)j0;
	if (!g->map) {
		put_sums(g, sums, ld, g->c + c * (int64_t)g->csize, m, n);
		return;
	}
	if (g->cn == 1) {
		ISA(yk_epilogue_run)(g->map, r->map, sums, ld, c, m, n);
		return;
	}
	// The sums are the transpose of the result, see orient.
	for (int64_t j = 0; j < n; j += SQUARE)
		for (int64_t i = 0; i < m; i += SQUARE) {
			int64_t w = min(SQUARE, n - j), h = min(SQUARE, m - i);
			for (int64_t q = 0; q < w; q++)
				for (int64_t k = 0; k < h; k++)
					turned[q * h + k] = sums[(i + k) * ld + j + q];
			ISA(yk_epilogue_run)
			(g->map, r->map, turned, h, c + i * g->cm + j * g->cn, w, h);
		}
}

#ifndef PAIRS
// The same for dense columns at the positions in win->a_at; fills only rows l .. end - 1 of the
// panels.
static void pack_scattered(T *to, const struct yk_gemm *g, const T *a, int64_t m, int64_t l0, int64_t k, int64_t l, int64_t end)
{
	for (int64_t i = 0; i < m; i += MR) {
		const int wide = (int)min(MR, m - i);
		T *panel = to + i * k;
		for (int64_t q = l; q < end; q++) {
			const T *from = a + i + g->win->a_at[l0 + q];
			if (wide == MR)
				memcpy(panel + q * MR, from, MR * sizeof(T));
			else
				memcpy(panel + q * MR, from, (size_t)wide * sizeof(T));
		}
	}
}
#endif

// Packs m rows of a from `a` on, columns l0 .. l0 + k - 1; fills only rows l .. l + rows - 1 of the
// panels.
static void pack_a_at(P *to, const struct yk_gemm *g, const char *a, int64_t m, int64_t l0, int64_t k, int64_t l,
		      int64_t rows)
{
#ifndef PAIRS
	const int64_t end = l + rows, run = g->win ? g->win->a_run : 0;
	if (g->win && g->win->a_at) {
		pack_scattered(to, g, (const T *)a, m, l0, k, l, end);
		return;
	}
	for (int64_t n; run && l < end; l += n) { // one contiguous run at a time
		const int64_t x = (l0 + l) % run, first = (l0 + l) / run * g->win->a_image + x;
		n = min(run - x, end - l);
		pack_a(to, g, at(g, a, 0, 0, first - l, 1), m, k, l, n);
	}
	if (run)
		return;
#endif
	pack_a(to, g, at(g, a, 0, 0, l0, g->ak), m, k, l, rows);
}

#ifdef IN_PLACE
// Rows of b per step: the next group of rows of a finds in L2 the rows of b that this group read,
// while the same amount of a large b is prefetched. With by_row, the length of a panel, so that
// sums equal those of packed panels.
static int64_t strip_depth(const struct yk_gemm *g, int64_t cols)
{
	if (g->by_row)
		return g->blocking.kc;
	int64_t bytes = bytes_of_b(g) > BEYOND ? STAYS : 4 * STAYS;
	int64_t rows = bytes / (int64_t)g->esize / cols;

	return min(g->k, rows < 16 ? 16 : rows / K_UNIT * K_UNIT);
}
#endif

#ifndef PAIRS
// Rows of a as T: in place, or copied to `to`.
static const T *rows_of_a(const struct yk_gemm *g, const char *a, T *to, int64_t *am)
{
	const int size = bytes_of(g->dtype);

	if (native(g) && g->ak == 1) {
		*am = g->am;
		return (const T *)a;
	}
	for (int64_t i = 0; i < g->m; i++)
		for (int64_t l = 0; l < g->k; l++)
			to[i * g->k + l] =
				load_one(g->dtype, a + (i * g->am + l * g->ak) * size);
	*am = g->k;
	return to;
}

// Rows of a per group of inner products, and elements of a packed row.
static int64_t dot_rows(const struct yk_gemm *g)
{
	return ceil_div(g->m, ceil_div(g->m, DOT_ROWS));
}

static int64_t packed_row(const struct yk_gemm *g)
{
	return ceil_div(g->k, VL) * VL;
}

// Rows of a in the layout of dots, so that they are one stream: [k / VL][rows][VL].
static void pack_rows(T *to, const struct yk_gemm *g, const char *a, int64_t rows)
{
	const int size = bytes_of(g->dtype);

	for (int64_t l = 0; l < g->k; l += VL)
		for (int64_t i = 0; i < rows; i++, to += VL) {
			const char *from = a + (i * g->am + l * g->ak) * size;
			const int64_t n = min(VL, g->k - l);
			if (g->ak == 1 && n == VL)
				*(vec_u *)to = load_as(g->dtype, from);
			else
				for (int64_t q = 0; q < n; q++)
					to[q] = load_one(g->dtype, from + q * g->ak * size);
		}
}

// c (m, n), strides cm and cn, = a, packed, times columns of b.
static void dots_wide(const struct yk_gemm *g, int64_t n, const T *a, const char *b, T *c,
		      int64_t cm, int64_t cn)
{
	const int64_t step = dot_rows(g);
	T sums[DOT_ROWS * DOT_COLS];

	for (int64_t j = 0, cols; j < n; j += cols) {
		const char *from = b + j * g->bn * (int64_t)g->esize;
		cols = g->m > 1 && n - j >= DOT_COLS ? DOT_COLS : 1;
		for (int64_t i = 0; i < g->m; i += step) {
			const int64_t rows = min(step, g->m - i);
			dot_of((int)rows, cols > 1, g->dtype)(g->k, a + i * packed_row(g), from,
							      g->bn, sums);
			for (int64_t q = 0; q < rows; q++)
				for (int64_t w = 0; w < cols; w++)
					c[(i + q) * cm + (j + w) * cn] = sums[q * cols + w];
		}
	}
}

static void dots_item(void *arg, int64_t item)
{
	struct job *job = arg;
	const struct yk_gemm *g = job->g;
	struct work p = work_of(job, item);
	const bool direct = sums_fit(g), in_place = g->m == 1 && native(g) && g->ak == 1;
	const int64_t copied = in_place ? 0 : g->m * packed_row(g), step = dot_rows(g);
	struct scratch r;
	const T *a;
	T *c;

	if (!take_scratch(job, copied + (direct ? 0 : g->m * p.n), &r))
		return;
	a = in_place ? (const T *)p.a : r.at;
	c = direct ? sums_at(g, p.c) : r.at + copied;
	for (int64_t i = 0; i < g->m && !in_place; i += step)
		pack_rows(r.at + i * packed_row(g), g, at(g, p.a, i, g->am, 0, 0),
			  min(step, g->m - i));
	dots_wide(g, p.n, a, p.b, c, direct ? g->cm : p.n, direct ? g->cn : 1);
	if (!direct)
		finish(g, &r, c, p.n, p.c, p.j, g->m, p.n);
}

static void strips_item(void *arg, int64_t item)
{
	struct job *job = arg;
	const struct yk_gemm *g = job->g;
	struct work p = work_of(job, item);
	bool direct = sums_in_c(g);
	int64_t step = ceil_div(p.m, ceil_div(p.m, MR)), ldc = direct ? g->cm : p.n;
	int64_t am = g->am, ak = g->ak, depth = strip_depth(g, p.n);
	int64_t tail = depth * VL, copied = native(g) ? 0 : p.m * g->k;
	struct scratch r;
	const T *a;
	T *c;

	if (!take_scratch(job, tail + copied + (direct ? 0 : p.m * p.n), &r))
		return;
	c = direct ? sums_at(g, p.c) : r.at + tail + copied;
	a = (const T *)p.a;
	if (copied) {
		a = rows_of_a(g, p.a, r.at + tail, &am);
		ak = 1;
	}
	for (int64_t l = 0; l < g->k; l += depth) {
		int64_t k = min(depth, g->k - l), ahead = l + depth < g->k ? depth : 0;
		for (int64_t i = 0; i < p.m; i += step)
			multiply_strip((int)min(step, p.m - i), p.n, k,
				       a + i * am + l * ak, am, ak, g->dtype,
				       at(g, p.b, l, g->bk, 0, 0), g->bk, c + i * ldc,
				       ldc, l > 0, ahead, r.at);
	}
	if (!direct)
		finish(g, &r, c, ldc, p.c, p.j, p.m, p.n);
}
#endif

#ifdef PAIR_DOTS
#include "kern_contract_dots.h"
#include "kern_contract_join.h"
#endif

static void local_item(void *arg, int64_t item)
{
	struct job *job = arg;
	const struct yk_gemm *g = job->g;
	const struct yk_blocking *blocking = &g->blocking;
	struct work p = work_of(job, item);
	bool direct = sums_in_c(g);
	int64_t a_size = blocking->mb * DEPTH(blocking->kc), b_size = blocking->nb * DEPTH(blocking->kc);
	struct scratch r;
	P *a, *b;
	T *c;

	if (!take_scratch(job, a_size + b_size + (direct ? 0 : p.m * p.n), &r))
		return;
	a = (P *)r.at;
	b = a + a_size;
	c = direct ? sums_at(g, p.c) : r.at + a_size + b_size;
	for (int64_t l = 0; l < g->k; l += blocking->kc) {
		int64_t k = min(blocking->kc, g->k - l);
		pack_b_at(b, g, at(g, p.b, l, g->bk, 0, 0), p.j, p.n, l, k, 0, k);
		pack_a_at(a, g, p.a, p.m, l, k, 0, k);
		multiply_panels(a, b, c, direct ? g->cm : p.n, p.m, p.n, k, l > 0);
	}
	if (!direct)
		finish(g, &r, c, p.n, p.c, p.j, p.m, p.n);
}

// Address in packed a of row i in the panel of kc columns that starts at l; k is the panel's depth.
static P *shared_a(const struct job *job, int64_t l, int64_t i, int64_t k)
{
	const struct yk_gemm *g = job->g;
	P *a = (P *)g->workspace + packed_b(&job->g->blocking);

	return a + DEPTH(l) * ceil_div(g->m, MR) * MR + i * DEPTH(k);
}

// The layout of packed b: for each block of kc rows, its panels; likewise packed a. A matrix that
// is dense across is read a few rows at a time for all panels, others a few panels at a time.
enum { SHARE_ROWS = 64, GROUP_A = 4 * MR }; // the first is a multiple of PACK_ROWS

static bool by_rows(int64_t across, int64_t along)
{
	return across == 1 && along != 1;
}

static int64_t items_of_b(const struct job *job)
{
	const struct yk_gemm *g = job->g;

	return !job->ns		     ? 0 :
	       by_rows(g->bn, g->bk) ? ceil_div(job->g->blocking.kc, SHARE_ROWS) :
				       ceil_div(job->ns, NR);
}

static int64_t items_of_a(const struct job *job)
{
	const struct yk_gemm *g = job->g;

	return !job->g->blocking.share_a     ? 0 :
	       by_rows(g->am, g->ak) ? ceil_div(job->g->blocking.kc, SHARE_ROWS) :
				       ceil_div(g->m, GROUP_A);
}

static void pack_item(void *arg, int64_t item)
{
	struct job *job = arg;
	const struct yk_gemm *g = job->g;
	int64_t panels = ceil_div(job->ns, NR), of_b = items_of_b(job);
	int64_t all = of_b + items_of_a(job);
	int64_t l = item / all * job->g->blocking.kc, q = item % all;
	int64_t k = min(job->g->blocking.kc, job->ks - l), row = 0, rows = k, first = 0, many;
	bool b = q < of_b;

	if (!b)
		q -= of_b;
	many = b ? job->ns : g->m;
	if (b ? by_rows(g->bn, g->bk) : by_rows(g->am, g->ak)) {
		row = q * SHARE_ROWS;
		rows = min(SHARE_ROWS, k - row);
		if (rows <= 0)
			return;
	} else {
		first = q * (b ? NR : GROUP_A);
		many = min(b ? NR : GROUP_A, many - first);
	}
	if (b)
		pack_b_at((P *)g->workspace + DEPTH(l) * panels * NR + first * DEPTH(k), g,
			     at(g, job->b, job->k0 + l, g->bk, job->j0 + first, g->bn), job->j0 + first, many,
			     job->k0 + l, k, row, rows);
	else
		pack_a_at(shared_a(job, l, first, k), g, at(g, job->a, first, g->am, 0, 0), many, job->k0 + l, k, row,
			  rows);
}

#ifndef PAIRS
static void rows_in_place(const struct job *job, const char *a, T *c, int64_t ldc, int64_t j,
		       int64_t m, int64_t n)
{
	const int64_t k = job->g->k;
	const T *b = (const T *)job->g->workspace + j * k;

	for (int64_t q = 0; q < n; q += L2_COLS)
		multiply_with(tiles_of_rows, (const T *)a, b + q * k, c + q, ldc, m,
			      min(L2_COLS, n - q), k, false);
}
#endif

static void shared_item(void *arg, int64_t item)
{
	struct job *job = arg;
	const struct yk_gemm *g = job->g;
	const struct yk_blocking *blocking = &g->blocking;
	bool direct = sums_in_c(g);
	int64_t rows = ceil_div(g->m, blocking->mb), width = ceil_div(job->ns, NR) * NR;
	int64_t i = item % rows * blocking->mb, j = item / rows * blocking->nb;
	int64_t m = min(blocking->mb, g->m - i), n = min(blocking->nb, job->ns - j);
	int64_t to = job->c + i * g->cm + (job->j0 + j) * g->cn, ldc = direct ? g->cm : n;
	bool in_place = reads_rows_in_place(g, blocking);
	int64_t a_size = blocking->share_a || in_place ? 0 : blocking->mb * DEPTH(blocking->kc);
	struct scratch r;
	P *a;
	T *c;

	if (!take_scratch(job, a_size + (direct ? 0 : m * n), &r))
		return;
	a = (P *)r.at;
	c = direct ? sums_at(g, to) : r.at + a_size;
#ifndef PAIRS
	if (in_place)
		rows_in_place(job, at(g, job->a, i, g->am, 0, 0), c, ldc, j, m, n);
#endif
	for (int64_t l = 0; l < job->ks && !in_place; l += blocking->kc) {
		int64_t k = min(blocking->kc, job->ks - l);
		const P *b = (const P *)g->workspace + DEPTH(l) * width + j * DEPTH(k);
		if (blocking->share_a)
			a = shared_a(job, l, i, k);
		else
			pack_a_at(a, g, at(g, job->a, i, g->am, 0, 0), m, job->k0 + l, k, 0, k);
		for (int64_t q = 0; q < n; q += L2_COLS)
			multiply_panels(a, b + q * DEPTH(k), c + q, ldc, m,
					min(L2_COLS, n - q), k, job->k0 + l > 0);
	}
	if (!direct)
		finish(g, &r, c, ldc, to, job->j0 + j, m, n);
}

static void run_shared(struct job *job)
{
	const struct yk_gemm *g = job->g;
	const struct yk_blocking *blocking = &g->blocking;

	for (int64_t batch = 0; batch < g->batches; batch++) {
		int64_t a, b, c;
		yk_gemm_batch(g, batch, &a, &b, &c);
		job->a = at(g, g->a, a, 1, 0, 0);
		job->b = at(g, g->b, b, 1, 0, 0);
		job->c = c;
		for (job->j0 = 0; job->j0 < g->n; job->j0 += blocking->ns) {
			job->ns = min(blocking->ns, g->n - job->j0);
			for (job->k0 = 0; job->k0 < g->k; job->k0 += blocking->ks) {
				job->ks = min(blocking->ks, g->k - job->k0);
				yk_team_run(ceil_div(job->ks, blocking->kc) *
						    (items_of_b(job) + items_of_a(job)),
					    pack_item, job);
				yk_team_run(ceil_div(g->m, blocking->mb) *
						    ceil_div(job->ns, blocking->nb),
					    shared_item, job);
			}
		}
	}
}

#ifndef PAIRS
static void copying_item(void *arg, int64_t item)
{
	struct job *job = arg;
	const struct yk_gemm *g = job->g;
	const struct yk_blocking *blocking = &g->blocking;
	const struct work p = work_of(job, item);
	// consecutive items use the same rows of a, or the same windows
	const int64_t i0 = g->win ? p.i : item / job->n_items * blocking->mb;
	const int64_t j0 = g->win ? p.j : item % job->n_items * blocking->nb;
	const int64_t m = min(g->m - i0, blocking->mb), n = min(g->n - j0, blocking->nb);
	const int64_t to = i0 * g->cm + j0 * g->cn;
	const bool direct = sums_in_c(g), packed = blocking->share_a;
	int64_t ldc = direct ? g->cm : n, b_size = NR * blocking->kc;
	struct scratch r;
	T *b, *c;

	if (!take_scratch(job, b_size + (direct ? 0 : m * n), &r))
		return;
	b = r.at;
	c = direct ? sums_at(g, to) : r.at + b_size;
	for (int64_t l = 0; l < g->k; l += blocking->kc) {
		int64_t k = min(blocking->kc, g->k - l);
		const T *a =
			packed ? shared_a(job, l, i0, k) : (const T *)at(g, g->a, i0, g->am, 0, 0);
		for (int64_t j = 0; j < n; j += NR) {
			int64_t cols = min(NR, n - j), i = 0;
			const char *from = at(g, g->b, l, g->bk, j0 + j, g->bn);
			if (g->win) {
				pack_windows(b, g, g->b, j0 + j, cols, l, k);
			} else if (dense_across(g) && cols == NR) {
				i = min(MR, m);
				tiles_copying[i - 1][!packed](k, a, from, g->bk, c + j, ldc, l > 0,
							      b);
			} else {
				pack_b(b, g, from, cols, k, 0, k);
			}
			multiply_with(packed ? tiles : tiles_of_rows, a + i * k, b, c + i * ldc + j,
				      ldc, m - i, cols, k, l > 0);
		}
	}
	if (!direct)
		finish(g, &r, c, ldc, to, j0, m, n);
}

static void run_copying(struct job *job)
{
	const struct yk_gemm *g = job->g;

	job->a = g->a;
	job->ks = g->k;
	yk_team_run(ceil_div(g->k, g->blocking.kc) * items_of_a(job), pack_item, job);
	yk_team_run(items(g, &g->blocking), copying_item, job);
}
#endif

// ---- entry points ----

static uint64_t workspace_of(const struct yk_gemm *g)
{
	const struct yk_blocking *c = &g->blocking;

	return c->mode < SHARED ? 0 : (uint64_t)(packed_b(c) + packed_a(g, c)) * sizeof(P);
}

uint64_t ENTRY_CUT(struct yk_gemm *g)
{
	g->blocking = blocking(g);
	return workspace_of(g);
}

int ENTRY_RUN(const struct yk_gemm *g)
{
	static void (*const run[])(void *, int64_t) = {
#ifdef IN_PLACE
		[DOTS_IN_PLACE] = dots_item,
		[STRIPS_IN_PLACE] = strips_item,
#endif
		[LOCAL] = local_item,
	};
	struct job job = { .g = g, .n_items = ceil_div(g->n, g->blocking.nb) };

	if (g->blocking.mode < SHARED)
		yk_team_run(g->batches * items(g, &g->blocking), run[g->blocking.mode], &job);
	else if (!g->workspace && workspace_of(g))
		return yk_cpu_fail(YOKE_EINVAL, "contract: no workspace given");
#ifndef PAIRS
	else if (g->blocking.mode == COPYING)
		run_copying(&job);
#endif
	else
		run_shared(&job);
	if (job.failed)
		return yk_cpu_fail(YOKE_ENOMEM, "contract: no memory for packed panels");
	return 0;
}
