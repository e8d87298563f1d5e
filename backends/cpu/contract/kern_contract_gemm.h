// SPDX-License-Identifier: Apache-2.0
// Work items of a contraction, for one element type T. The scheme is that of Goto and van de Geijn
// 2008 (ACM TOMS 34:3) with a and b exchanged to suit row-major results: a panel of a stays in L1,
// panels of b stream from L2. kern_contract_blocking.h chooses the mode and the sizes. Included
// last by kern_contract_f32.c and similar files.

#include "kern_contract_blocking.h"

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
	int64_t rows = yk_ceil_div(g->m, blocking->mb), a, b, c;
	struct work p;

	p.i = item % rows * blocking->mb;
	item /= rows;
	p.j = item % job->n_items * blocking->nb;
	p.batch = item / job->n_items;
	p.m = yk_min(g->m - p.i, blocking->mb);
	p.n = yk_min(g->n - p.j, blocking->nb);
	yk_gemm_batch(g, p.batch, &a, &b, &c);
	p.a = at(g, g->a, p.i, g->am, a, 1);
	p.b = at(g, g->b, p.j, g->bn, b, 1);
	p.c = p.i * g->cm + p.j * g->cn + c;
	return p;
}

// The block of an item of a SHARED product; j counts from the block of b being processed.
static struct work shared_work_of(const struct job *job, int64_t item)
{
	const struct yk_gemm *g = job->g;
	const struct yk_blocking *blocking = &g->blocking;
	const int64_t rows = yk_ceil_div(g->m, blocking->mb);
	const int64_t i = item % rows * blocking->mb, j = item / rows * blocking->nb;

	return (struct work){ .i = i,
			      .j = j,
			      .m = yk_min(blocking->mb, g->m - i),
			      .n = yk_min(blocking->nb, job->ns - j),
			      .a = at(g, job->a, i, g->am, 0, 0),
			      .c = job->c + i * g->cm + (job->j0 + j) * g->cn };
}

// Packs columns j .. j + n - 1 of b, rows l0 .. l0 + k - 1; `from` is the first row. Fills only
// rows l .. l + rows - 1 of the panels, or all of them for windows.
static void pack_b_at(P *to, const struct yk_gemm *g, const char *from, int64_t j, int64_t n,
		      int64_t l0, int64_t k, int64_t l, int64_t rows)
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
	// ROWS: long enough that the map's work per row does not matter
	enum { ROWS = 256, CELLS = (16 << 10) / sizeof(T) };
	T turned[CELLS];

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
	for (int64_t i = 0; i < m; i += ROWS) {
		const int h = (int)yk_min(ROWS, m - i), cols = CELLS / h;
		for (int64_t j = 0; j < n; j += cols) {
			const int w = (int)yk_min(cols, n - j);
			pack_transposed((P *)turned, h, (const char *)(sums + i * ld + j),
					ld * (int64_t)sizeof(T), h, w);
			ISA(yk_epilogue_run)
			(g->map, r->map, turned, h, c + i * g->cm + j * g->cn, w, h);
		}
	}
}

#ifndef PAIRS
// The same for dense columns at the positions in win->a_at; fills only rows l .. end - 1 of the
// panels.
static void pack_scattered(T *to, const struct yk_gemm *g, const T *a, int64_t m, int64_t l0,
			   int64_t k, int64_t l, int64_t end)
{
	for (int64_t i = 0; i < m; i += MR) {
		const int wide = (int)yk_min(MR, m - i);
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
static void pack_a_at(P *to, const struct yk_gemm *g, const char *a, int64_t m, int64_t l0,
		      int64_t k, int64_t l, int64_t rows)
{
#ifndef PAIRS
	const int64_t end = l + rows, run = g->win ? g->win->a_run : 0;
	if (g->win && g->win->a_at) {
		pack_scattered(to, g, (const T *)a, m, l0, k, l, end);
		return;
	}
	for (int64_t n; run && l < end; l += n) { // one contiguous run at a time
		const int64_t x = (l0 + l) % run, first = (l0 + l) / run * g->win->a_image + x;
		n = yk_min(run - x, end - l);
		pack_a(to, g, at(g, a, 0, 0, first - l, 1), m, k, l, n);
	}
	if (run)
		return;
#endif
	pack_a(to, g, at(g, a, 0, 0, l0, g->ak), m, k, l, rows);
}

#include "kern_contract_unpacked.h"
#ifndef PAIRS
#include "kern_contract_windows_in_place.h"
#endif
#ifdef PAIR_DOTS
#include "kern_contract_dots.h"
#include "kern_contract_join.h"
#endif

// Address in packed a of row i in the panel of kc columns that starts at l; k is the panel's depth.
static P *shared_a(const struct job *job, int64_t l, int64_t i, int64_t k)
{
	const struct yk_gemm *g = job->g;
	P *a = (P *)g->workspace + packed_b(&job->g->blocking);

	return a + DEPTH(l) * yk_ceil_div(g->m, MR) * MR + i * DEPTH(k);
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
	       by_rows(g->bn, g->bk) ? yk_ceil_div(job->g->blocking.kc, SHARE_ROWS) :
				       yk_ceil_div(job->ns, NR);
}

static int64_t items_of_a(const struct job *job)
{
	const struct yk_gemm *g = job->g;

	return !job->g->blocking.share_a || (job->j0 && job->ks == g->k) ? 0 :
	       by_rows(g->am, g->ak) ? yk_ceil_div(job->g->blocking.kc, SHARE_ROWS) :
				       yk_ceil_div(g->m, GROUP_A);
}

static void pack_item(void *arg, int64_t item)
{
	struct job *job = arg;
	const struct yk_gemm *g = job->g;
	int64_t panels = yk_ceil_div(job->ns, NR), of_b = items_of_b(job);
	int64_t all = of_b + items_of_a(job);
	int64_t l = item / all * job->g->blocking.kc, q = item % all;
	int64_t k = yk_min(job->g->blocking.kc, job->ks - l), row = 0, rows = k, first = 0, many;
	bool b = q < of_b;

	if (!b)
		q -= of_b;
	many = b ? job->ns : g->m;
	if (b ? by_rows(g->bn, g->bk) : by_rows(g->am, g->ak)) {
		row = q * SHARE_ROWS;
		rows = yk_min(SHARE_ROWS, k - row);
		if (rows <= 0)
			return;
	} else {
		first = q * (b ? NR : GROUP_A);
		many = yk_min(b ? NR : GROUP_A, many - first);
	}
	if (b)
		pack_b_at((P *)g->workspace + DEPTH(l) * panels * NR + first * DEPTH(k), g,
			  at(g, job->b, job->k0 + l, g->bk, job->j0 + first, g->bn),
			  job->j0 + first, many, job->k0 + l, k, row, rows);
	else
		pack_a_at(shared_a(job, l, first, k), g, at(g, job->a, first, g->am, 0, 0), many,
			  job->k0 + l, k, row, rows);
}

#ifdef BANDS
#include "kern_contract_bands.h"
#else
static void local_item(void *arg, int64_t item)
{
	struct job *job = arg;
	const struct yk_gemm *g = job->g;
	const struct yk_blocking *blocking = &g->blocking;
	struct work p = work_of(job, item);
	bool direct = sums_in_c(g);
	int64_t a_size = blocking->mb * DEPTH(blocking->kc),
		b_size = blocking->nb * DEPTH(blocking->kc);
	struct scratch r;
	P *a, *b;
	T *c;

	if (!take_scratch(job, a_size + b_size + (direct ? 0 : p.m * p.n), &r))
		return;
	a = (P *)r.at;
	b = a + a_size;
	c = direct ? sums_at(g, p.c) : r.at + a_size + b_size;
	for (int64_t l = 0; l < g->k; l += blocking->kc) {
		int64_t k = yk_min(blocking->kc, g->k - l);
		pack_b_at(b, g, at(g, p.b, l, g->bk, 0, 0), p.j, p.n, l, k, 0, k);
		pack_a_at(a, g, p.a, p.m, l, k, 0, k);
		multiply_panels(a, b, c, direct ? g->cm : p.n, p.m, p.n, k, l > 0);
	}
	if (!direct)
		finish(g, &r, c, p.n, p.c, p.j, p.m, p.n);
}

#ifndef PAIRS
static void rows_in_place(const struct job *job, const char *a, T *c, int64_t ldc, int64_t j,
		       int64_t m, int64_t n)
{
	const int64_t k = job->g->k;
	const T *b = (const T *)job->g->workspace + j * k;

	for (int64_t q = 0; q < n; q += L2_COLS)
		multiply_with(&tiles_of_rows, (const T *)a, b + q * k, c + q, ldc, m,
			      yk_min(L2_COLS, n - q), k, false, true);
}
#endif

static void shared_item(void *arg, int64_t item)
{
	struct job *job = arg;
	const struct yk_gemm *g = job->g;
	const struct yk_blocking *blocking = &g->blocking;
	const struct work p = shared_work_of(job, item);
	const bool direct = sums_in_c(g), in_place = reads_rows_in_place(g, blocking);
	const int64_t width = yk_ceil_div(job->ns, NR) * NR, ldc = direct ? g->cm : p.n;
	const int64_t a_size =
		blocking->share_a || in_place ? 0 : blocking->mb * DEPTH(blocking->kc);
	struct scratch r;
	P *a;
	T *c;

	if (!take_scratch(job, a_size + (direct ? 0 : p.m * p.n), &r))
		return;
	a = (P *)r.at;
	c = direct ? sums_at(g, p.c) : r.at + a_size;
#ifndef PAIRS
	if (in_place)
		rows_in_place(job, p.a, c, ldc, p.j, p.m, p.n);
#endif
	for (int64_t l = 0; l < job->ks && !in_place; l += blocking->kc) {
		int64_t k = yk_min(blocking->kc, job->ks - l);
		const P *b = (const P *)g->workspace + DEPTH(l) * width + p.j * DEPTH(k);
		if (blocking->share_a)
			a = shared_a(job, l, p.i, k);
		else
			pack_a_at(a, g, p.a, p.m, job->k0 + l, k, 0, k);
		for (int64_t q = 0; q < p.n; q += L2_COLS)
			multiply_panels(a, b + q * DEPTH(k), c + q, ldc, p.m,
					yk_min(L2_COLS, p.n - q), k, job->k0 + l > 0);
	}
	if (!direct)
		finish(g, &r, c, ldc, p.c, job->j0 + p.j, p.m, p.n);
}
#endif

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
			job->ns = yk_min(blocking->ns, g->n - job->j0);
			for (job->k0 = 0; job->k0 < g->k; job->k0 += blocking->ks) {
				job->ks = yk_min(blocking->ks, g->k - job->k0);
				yk_team_run(yk_ceil_div(job->ks, blocking->kc) *
						    (items_of_b(job) + items_of_a(job)),
					    pack_item, job);
				yk_team_run(yk_ceil_div(g->m, blocking->mb) *
						    yk_ceil_div(job->ns, blocking->nb),
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
	const int64_t m = yk_min(g->m - i0, blocking->mb), n = yk_min(g->n - j0, blocking->nb);
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
		int64_t k = yk_min(blocking->kc, g->k - l);
		const T *a =
			packed ? shared_a(job, l, i0, k) : (const T *)at(g, g->a, i0, g->am, 0, 0);
		for (int64_t j = 0; j < n; j += NR) {
			int64_t cols = yk_min(NR, n - j), i = 0;
			const char *from = at(g, g->b, l, g->bk, j0 + j, g->bn);
			if (g->win) {
				pack_windows(b, g, g->b, j0 + j, cols, l, k);
			} else if (dense_across(g) && cols == NR) {
				i = yk_min(MR, m);
				tiles_copying[i - 1][!packed](k, a, from, g->bk, c + j, ldc, l > 0,
							      b);
			} else {
				pack_b(b, g, from, cols, k, 0, k);
			}
			multiply_with(packed ? &packed_tiles : &tiles_of_rows, a + i * k, b,
				      c + i * ldc + j, ldc, m - i, cols, k, l > 0, false);
		}
	}
	if (!direct)
		finish(g, &r, c, ldc, to, j0, m, n);
}
#endif

#if !defined PAIRS || defined BANDS
// COPYING and OWN_COLUMNS: the team packs a at most, `item` packs what it uses of b.
static void run_packing_b(struct job *job, void (*item)(void *, int64_t))
{
	const struct yk_gemm *g = job->g;

	job->a = g->a;
	job->ks = g->k;
	yk_team_run(yk_ceil_div(g->k, g->blocking.kc) * items_of_a(job), pack_item, job);
	yk_team_run(items(g, &g->blocking), item, job);
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

// Items of a batch entry, in modes before SHARED.
static int64_t item_count(const struct yk_gemm *g)
{
#ifndef PAIRS
	if (g->blocking.mode == WINDOWS_IN_PLACE)
		return window_items(g);
#endif
	return items(g, &g->blocking);
}

int ENTRY_RUN(const struct yk_gemm *g)
{
	static void (*const run[])(void *, int64_t) = {
#ifdef IN_PLACE
		[DOTS_IN_PLACE] = dots_item,
		[STRIPS_IN_PLACE] = strips_item,
#endif
#ifndef PAIRS
		[WINDOWS_IN_PLACE] = windows_item,
#endif
		[LOCAL] = local_item,
	};
	struct job job = { .g = g, .n_items = yk_ceil_div(g->n, g->blocking.nb) };

	if (g->blocking.mode < SHARED)
		yk_team_run(yk_ceil_div(g->batches * item_count(g), g->blocking.entries),
			    run[g->blocking.mode], &job);
	else if (!g->workspace && workspace_of(g))
		return yk_cpu_fail(YOKE_EINVAL, "contract: no workspace given");
#ifndef PAIRS
	else if (g->blocking.mode == COPYING)
		run_packing_b(&job, copying_item);
#endif
#ifdef BANDS
	else if (g->blocking.mode == OWN_COLUMNS)
		run_packing_b(&job, local_item);
#endif
	else
		run_shared(&job);
	if (job.failed)
		return yk_cpu_fail(YOKE_ENOMEM, "contract: no memory for packed panels");
	return 0;
}
