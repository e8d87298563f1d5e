// SPDX-License-Identifier: Apache-2.0
// Work items of products by tiles. An item computes its block of c in bands of MR rows: the sums of
// a band are finished while a near cache has them, and its rows of a are read in place where a is
// contiguous along k. The item's block of packed b stays in L2 from band to band. If k is too long
// for that, the item takes a part of k at a time and keeps the sums of all its bands.
// Included by kern_contract_gemm.h for a level that defines BANDS, multiply_band, packed_band,
// band_in_place, begin_tiles and end_tiles.

struct bands {
	const struct job *job;
	struct work p; // the block of c; p.a: the matrix from the block's first row on
	struct scratch r;
	P *panel;   // scratch for MR rows of a, kc columns deep
	T *sums;    // of the current band, or of all, unless they are in c
	int64_t ld; // of sums
	bool all;   // sums holds all bands
	int64_t ahead; // rows of b, up to this one, to prefetch during the current part; 0: none
};

// Elements of scratch for a panel of a and the sums; deep: how much of k is processed at a time.
static int64_t band_scratch(struct bands *s, int64_t deep, int64_t k)
{
	const struct yk_gemm *g = s->job->g;
	const bool direct = sums_in_c(g);
	int64_t rows = MR;

	s->all = k > deep;
	if (s->all)
		rows *= yk_ceil_div(s->p.m, MR);
	s->ld = direct ? g->cm : yk_ceil_div(s->p.n, NR) * NR;
	return MR * DEPTH(g->blocking.kc) + (direct ? 0 : rows * s->ld);
}

static bool band_begin(struct bands *s, struct job *job, int64_t elements)
{
	if (!take_scratch(job, elements, &s->r))
		return false;
	s->panel = (P *)s->r.at;
	s->sums = s->r.at + MR * DEPTH(job->g->blocking.kc);
	begin_tiles();
	return true;
}

// Rows i .. i + m - 1 of the block, k columns of a: columns l .. of the current ks ones.
static struct band band_at(const struct bands *s, int64_t i, int64_t m, int64_t l, int64_t k)
{
	const struct yk_gemm *g = s->job->g;
	const int64_t l0 = s->job->k0 + l;

	if (g->blocking.share_a)
		return packed_band(shared_a(s->job, l, s->p.i + i, k));
	if (m == MR && k % K_UNIT == 0 && reads_rows_in_place(g, &g->blocking))
		return band_in_place(at(g, s->p.a, i, g->am, l0, 1), g->am);
	pack_a_at(s->panel, g, at(g, s->p.a, i, g->am, 0, 0), m, l0, k, 0, k);
	return packed_band(s->panel);
}

// Prefetches part i of `parts` of rows l .. end - 1 of the block's columns of b, in memory.
static void prefetch_part(const struct bands *s, int64_t l, int64_t end, int64_t i, int64_t parts)
{
	const struct yk_gemm *g = s->job->g;
	const bool rows = by_rows(g->bn, g->bk);
	const int64_t runs = rows ? end - l : s->p.n, step = rows ? g->bk : g->bn;
	const int64_t bytes = (rows ? s->p.n : end - l) * (int64_t)g->esize;

	for (int64_t r = runs * i / parts; r < runs * (i + 1) / parts; r++)
		yk_prefetch_lines(at(g, s->p.b, l, g->bk, r, step), bytes);
}

// Adds the products of columns l .. end - 1 of a. Their rows of b: blocks of kc rows, `width`
// columns wide, of which the item's start at column j.
static void run_bands(struct bands *s, const P *b, int64_t width, int64_t j, int64_t l, int64_t end,
		      bool last)
{
	const struct yk_gemm *g = s->job->g;
	const struct work *p = &s->p;
	const int64_t kc = g->blocking.kc;
	const bool direct = sums_in_c(g);
	const bool together = s->all && g->cn != 1;

	for (int64_t i = 0; i < p->m; i += MR) {
		const int64_t rows = yk_min(MR, p->m - i), to = p->c + i * g->cm;
		if (s->ahead > end)
			prefetch_part(s, end, s->ahead, i / MR, yk_ceil_div(p->m, MR));
		if (last && g->map && g->cn == 1)
			ISA(yk_epilogue_prefetch)(g->map, to, rows, p->n);
		T *c = direct ? sums_at(g, to) : s->sums + (s->all ? i * s->ld : 0);
		for (int64_t q = l; q < end; q += kc) {
			const int64_t k = yk_min(kc, end - q);
			const struct band a = band_at(s, i, rows, q, k);
			multiply_band(&a, b + DEPTH(q - l) * width + j * DEPTH(k), c, s->ld,
				      direct ? rows : MR, direct ? p->n : s->ld, k,
				      s->job->k0 + q > 0);
		}
		if (last && !direct && !together)
			finish(g, &s->r, c, s->ld, to, s->job->j0 + p->j, rows, p->n);
	}
	if (last && together) // so that a row of the result has the length of all bands
		finish(g, &s->r, s->sums, s->ld, p->c, s->job->j0 + p->j, p->m, p->n);
}

// Packs b itself: kc rows at a time if there is no second band to read them again, or if it
// prefetches the next ones (OWN_COLUMNS).
static void local_item(void *arg, int64_t item)
{
	struct job *job = arg;
	const struct yk_gemm *g = job->g;
	struct bands s = { .job = job, .p = work_of(job, item) };
	const int64_t kc = g->blocking.kc, width = yk_ceil_div(s.p.n, NR) * NR;
	const bool own_columns = g->blocking.mode == OWN_COLUMNS;
	const int64_t deep =
		yk_min(g->k, s.p.m <= MR || own_columns ? kc : band_depth(g, &g->blocking));
	const int64_t own = band_scratch(&s, s.p.m <= MR ? g->k : deep, g->k);

	if (!band_begin(&s, job, own + width * DEPTH(deep)))
		return;
	P *b = (P *)s.r.at + own;
	for (int64_t l = 0; l < g->k; l += deep) {
		const int64_t end = yk_min(g->k, l + deep);
		for (int64_t q = l; q < end; q += kc) {
			const int64_t k = yk_min(kc, end - q);
			pack_b(b + DEPTH(q - l) * width, g, at(g, s.p.b, q, g->bk, 0, 0), s.p.n, k,
			       0, k);
		}
		s.ahead = own_columns ? yk_min(g->k, end + deep) : 0;
		run_bands(&s, b, width, 0, l, end, end == g->k);
	}
	end_tiles();
}

static void shared_item(void *arg, int64_t item)
{
	struct job *job = arg;
	const struct yk_gemm *g = job->g;
	const int64_t width = yk_ceil_div(job->ns, NR) * NR, deep = band_depth(g, &g->blocking);
	struct bands s = { .job = job, .p = shared_work_of(job, item) };

	if (!band_begin(&s, job, band_scratch(&s, deep, job->ks)))
		return;
	for (int64_t l = 0; l < job->ks; l += deep) {
		const int64_t end = yk_min(job->ks, l + deep);
		run_bands(&s, (const P *)g->workspace + DEPTH(l) * width, width, s.p.j, l, end,
			  end == job->ks);
	}
	end_tiles();
}
