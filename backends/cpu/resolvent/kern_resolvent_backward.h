// SPDX-License-Identifier: Apache-2.0
// The adjoint in lanes of REAL; included by kern_resolvent_lanes.h.
//
// 1/L and 1/R are recomputed, from both ends at once. Then D = -G^2 g~ for each element, where g~
// is the conjugate of its cotangent. Then the cotangent of L is propagated downwards (D plus k/L^2
// times the next one), and that of R upwards.

struct NAME(adjoint) {
	struct NAME(planes) f;
	REAL *lr, *li, *rr, *ri; // 1/L, 1/R
	REAL *dr, *di;           // the cotangent of G, then D
	// results: gradients of a and of k (the bond before element t), at t; they reuse the memory
	// of lr and the others below
	REAL *da, *dk;
};

enum { NAME(ADJOINT) = 10 }; // planes

// Computes 1/L and 1/R of all elements.
static inline __attribute__((always_inline)) void NAME(inverses)(const struct NAME(adjoint) * p,
								 int64_t n, bool left,
								 const int groups, const bool wild,
								 REAL tiny)
{
	const int wide = groups * W;
	CX l[2], r[2];
	rv im[2];

	for (int q = 0; q < groups; q++) {
		l[q] = NAME(of)(p->f.before[0], p->f.before[1], q * W);
		r[q] = NAME(of)(p->f.after[0], p->f.after[1], q * W);
		im[q] = -NAME(get)(p->f.y + q * W);
	}
	const struct NAME(planes) *f = &p->f;
#define STEP(q, at, bond, from, u, v) \
	const rv kv##u = NAME(get)(f->k + (bond) * wide + q * W); \
	const CX v = { NAME(fma)(-kv##u, from[q].re, NAME(get)(f->a + (at) * wide + q * W)), \
		       NAME(fma)(-kv##u, from[q].im, im[q]) };
	for (int64_t t = 0; t < n; t++)
		for (int q = 0; q < groups; q++) {
			const int64_t s = n - 1 - t;
			STEP(q, t, t, l, ul, vl)
			l[q] = NAME(inverse)(vl.re, vl.im, wild, tiny);
			NAME(to)(p->lr, p->li, t * wide + q * W, l[q]);
			if (left)
				continue;
			STEP(q, s, s + 1, r, ur, vr)
			r[q] = NAME(inverse)(vr.re, vr.im, wild, tiny);
			NAME(to)(p->rr, p->ri, s * wide + q * W, r[q]);
		}
#undef STEP
}

// G at one element, for a group of lanes.
static inline __attribute__((always_inline)) CX NAME(diagonal)(const struct NAME(adjoint) * p,
							       int64_t n, int64_t t, bool left,
							       const int wide, const int q,
							       const bool wild, REAL tiny)
{
	if (left)
		return NAME(of)(p->lr, p->li, t * wide + q * W);
	const CX l = t ? NAME(of)(p->lr, p->li, (t - 1) * wide + q * W) :
			 NAME(of)(p->f.before[0], p->f.before[1], q * W);
	const CX r = t + 1 < n ? NAME(of)(p->rr, p->ri, (t + 1) * wide + q * W) :
				 NAME(of)(p->f.after[0], p->f.after[1], q * W);
	const rv k0 = NAME(get)(p->f.k + t * wide + q * W),
		 k1 = NAME(get)(p->f.k + (t + 1) * wide + q * W);
	const rv re =
		NAME(fma)(-k1, r.re, NAME(fma)(-k0, l.re, NAME(get)(p->f.a + t * wide + q * W)));
	const rv im = NAME(fma)(-k1, r.im, NAME(fma)(-k0, l.im, -NAME(get)(p->f.y + q * W)));
	return NAME(inverse)(re, im, wild, tiny);
}

static inline __attribute__((always_inline)) void NAME(seeds)(const struct NAME(adjoint) * p,
							      int64_t n, bool left,
							      const int groups, const bool wild,
							      REAL tiny)
{
	const int wide = groups * W;
	for (int64_t t = 0; t < n; t++)
		for (int q = 0; q < groups; q++) {
			const int64_t at = t * wide + q * W;
			const CX g = NAME(diagonal)(p, n, t, left, wide, q, wild, tiny);
			const CX cot = NAME(of)(p->dr, p->di, at), f = NAME(product)(g, g);
			// -F times the conjugate of the cotangent
			NAME(to)
			(p->dr, p->di, at,
			 (CX){ -NAME(fma)(f.re, cot.re, f.im * cot.im),
			       NAME(fma)(f.re, cot.im, -(f.im * cot.re)) });
		}
}

// Propagates a cotangent by one element: c f + d, where f = k x^2. m, unless NULL, accumulates the
// factors.
static inline __attribute__((always_inline)) void NAME(carry)(CX *c, CX *m, CX x, rv k, CX d)
{
	CX f = NAME(product)(x, x);
	f = (CX){ k * f.re, k * f.im };
	if (m)
		*m = NAME(product)(*m, f);
	*c = (CX){ NAME(fma)(c->re, f.re, NAME(fma)(-c->im, f.im, d.re)),
		   NAME(fma)(c->re, f.im, NAME(fma)(c->im, f.re, d.im)) };
}

// Propagates both cotangents; computes da and the sums for z. With `links`, computes only the
// values leaving a chunk as a function of those entering.
static inline __attribute__((always_inline)) void NAME(ways)(const struct NAME(adjoint) * p,
							     int64_t n, bool left, const int groups,
							     CX enter[2][2], rv sums[2][2],
							     CX leave[2][2][2], const bool links)
{
	const int wide = groups * W;
	CX c[2], m[2];

	for (int q = 0; q < groups; q++) {
		c[q] = enter[0][q];
		m[q] = (CX){ NAME(splat)(1), { 0 } };
		sums[0][q] = sums[1][q] = (rv){ 0 };
	}
	for (int64_t t = n; t-- > 0;)
		for (int q = 0; q < groups; q++) {
			const int64_t at = t * wide + q * W;
			const CX l = NAME(of)(p->lr, p->li, at), d = NAME(of)(p->dr, p->di, at);
			const rv k = NAME(get)(p->f.k + at + wide);
			NAME(carry)(&c[q], links ? &m[q] : NULL, l, k, d);
			if (links)
				continue;
			const CX in = t ? NAME(of)(p->lr, p->li, at - wide) :
					  NAME(of)(p->f.before[0], p->f.before[1], q * W);
			const rv im = left ? c[q].im : c[q].im - d.im;
			sums[0][q] += left ? c[q].re : c[q].re - d.re;
			sums[1][q] += im;
			NAME(put)(p->da + at, left ? c[q].re : c[q].re - d.re);
			NAME(put)(p->dk + at, NAME(fma)(c[q].im, in.im, -(c[q].re * in.re)));
		}
	for (int q = 0; q < groups; q++) {
		leave[0][q][0] = c[q];
		leave[0][q][1] = m[q];
		c[q] = enter[1][q];
		m[q] = (CX){ NAME(splat)(1), { 0 } };
	}
	for (int64_t t = 0; t < n && !left; t++)
		for (int q = 0; q < groups; q++) {
			const int64_t at = t * wide + q * W;
			const CX r = NAME(of)(p->rr, p->ri, at), d = NAME(of)(p->dr, p->di, at),
				 was = c[q];
			const rv k = NAME(get)(p->f.k + at);
			NAME(carry)(&c[q], links ? &m[q] : NULL, r, k, d);
			if (links)
				continue;
			sums[0][q] += c[q].re;
			sums[1][q] += c[q].im;
			NAME(put)(p->da + at, NAME(get)(p->da + at) + c[q].re);
			NAME(put)
			(p->dk + at,
			 NAME(get)(p->dk + at) + NAME(fma)(was.im, r.im, -(was.re * r.re)));
		}
	for (int q = 0; q < groups; q++) {
		leave[1][q][0] = c[q];
		leave[1][q][1] = m[q];
	}
}

// Surrogates replace the gradient of a; see yoke-plugin.h.
static void NAME(surrogate)(const struct NAME(adjoint) * p, const struct chain_job *j, int wide,
			    bool wild, REAL tiny)
{
	const rv beta = NAME(splat)((REAL)j->blend), one = NAME(splat)(1), max = NAME(splat)(1000);
	for (int64_t t = 0; t < j->length; t++)
		for (int q = 0; q < wide / W; q++) {
			const int64_t at = t * wide + q * W;
			const CX g = NAME(diagonal)(p, j->length, t, j->side, wide, q, wild, tiny);
			const CX cot = NAME(of)(p->dr, p->di, at);
			CX f = NAME(product)(g, g);
			const rv cross = f.im * cot.im,
				 diag = f.re * cot.re + (j->gradient == STEP5 ? -cross : cross);
			rv modulus = NAME(fma)(f.re, f.re, f.im * f.im);
			for (int l = 0; l < W; l++)
				modulus[l] = (REAL)sqrt((double)modulus[l]);
			const rv min = NAME(splat)((REAL)1e-3),
				 scale = NAME(pick)(modulus < min, min / (modulus + (REAL)1e-9),
						    one);
			f = (CX){ NAME(fma)(f.re, scale, NAME(splat)((REAL)1e-6)), f.im * scale };
			const rv inverse = (cot.re * f.re + cot.im * f.im) /
					   NAME(fma)(f.re, f.re, f.im * f.im);
			rv da = j->gradient == DIAG    ? diag :
				j->gradient == INVERSE ? inverse :
							 (one - beta) * diag + beta * inverse;
			da = NAME(pick)(da - da == (rv){ 0 }, -da, (rv){ 0 });
			da = NAME(pick)(da > max, max, NAME(pick)(da < -max, -max, da));
			NAME(put)(p->da + at, da);
		}
}

// Stores n elements (at most W) of a row from `from` on, times those of `factor` if it is present.
static void NAME(store_real)(const struct chain_view *v, const struct chain_view *factor,
			     int64_t row, int64_t from, int64_t n, REAL *line)
{
	char *at = row_of(v, row) + from * v->along * v->size;
	if (factor->base) {
		REAL times[W];
		NAME(line)(factor, row_of(factor, row), from, n, INT64_MAX, 0, times);
		for (int64_t i = 0; i < n; i++)
			line[i] *= times[i];
	}
	if (yk_reg(v->dtype) == IS_DTYPE) {
		v->store(at, line, v->along, n);
		return;
	}
	for (int64_t i = 0; i < n; i++, at += v->along * v->size) {
		const double wide_one = (double)line[i];
		const float narrow = (float)line[i];
		if (v->dtype == yoke_f64)
			memcpy(at, &wide_one, sizeof wide_one);
		else
			v->store(at, &narrow, 1, 1);
	}
}

// Stores a plane of elements of lanes; with `ahead` 1, of the bonds before the elements (a row's
// first element has none).
static void NAME(store_plane)(const struct chain_pack *p, const struct chain_view *v,
			      const struct chain_view *factor, int ahead, const REAL *plane,
			      const bool *skip)
{
	const int wide = p->count > W ? PACK : W;
	const bool plain = v->dtype == IS_DTYPE && v->along == 1 && !factor->base;
	for (int64_t t = 0; t < p->job->length && v->base; t += W)
		for (int q = 0; q < wide / W; q++) {
			rv x[W];
#pragma GCC unroll 16
			for (int i = 0; i < W; i++)
				x[i] = NAME(get)(plane +
						 (t + i < p->job->length ? t + i : t) * wide +
						 q * W);
			NAME(turn)(x);
			for (int l = 0; l < W && q * W + l < p->count; l++) {
				const struct chain_lane *lane = &p->lane[q * W + l];
				const int64_t from = lane->first + t - ahead,
					      left = lane->length - t, n = left < W ? left : W;
				const int none = from < 0;
				REAL line[W];
				if (n <= none || (skip && skip[q * W + l]))
					continue;
				if (plain && n == W && !none) {
					NAME(put)
					((REAL *)(void *)row_of(v, lane->row) + from, x[l]);
					continue;
				}
				NAME(put)(line, x[l]);
				NAME(store_real)
				(v, factor, lane->row, from + none, n - none, line + none);
			}
		}
}

static void NAME(store_backward)(const struct chain_pack *p, const struct NAME(adjoint) * b,
				 const bool *skip)
{
	const struct chain_job *j = p->job;
	const struct chain_view none = { .base = NULL };
	NAME(store_plane)(p, &j->out[0], &none, 0, b->da, skip);
	NAME(store_plane)(p, &j->out[1], &j->c, 1, b->dk, skip);
	NAME(store_plane)(p, &j->out[2], &j->b, 1, b->dk, skip);
}

// Computes the cotangents entering chunks from only w elements next to them. Contributions from
// farther away carry the product of the k/L^2 between; where that is below the rounding of 1,
// neglecting them is within the rounding of the row's largest cotangent. 1/L or 1/R at the far end
// is known from a disc over the w elements after it. Sets `failed` for lanes where these conditions
// do not hold.
static void NAME(near)(const struct chain_pack *p, int64_t w, bool *failed)
{
	struct chain_job *j = p->job;
	const int64_t each = (w + 1) * PACK;
	const int groups = p->count > W ? 2 : 1;
	struct NAME(adjoint) b;
	REAL z[2 * PACK], *m = yk_team_scratch((size_t)each * 8 * sizeof *m);
	if (!m) {
		atomic_store(&j->no_memory, true);
		return;
	}
	b = (struct NAME(adjoint)){ .f = { .a = m, .k = m + each, .x = z, .y = z + PACK },
				    .lr = m + 2 * each,
				    .li = m + 3 * each,
				    .rr = m + 4 * each,
				    .ri = m + 5 * each,
				    .dr = m + 6 * each,
				    .di = m + 7 * each };
	NAME(stage_z)(p, b.f.x, b.f.y);
	for (int end = 0; end < (j->side ? 1 : 2); end++) { // 0: after the chunk, 1: before it
		const int64_t shift = end ? -w : j->length;
		REAL(*far)
		[PACK] = end ? b.f.before : b.f.after,
      (*beside)[PACK] = end ? b.f.after : b.f.before;
		CX enter[2][2], leave[2][2][2];
		rv sums[2][2];
		bool odd[PACK] = { false };
		memset(enter, 0, sizeof enter);
		for (int l = 0; l < PACK; l++) {
			const int64_t lane = p->lane[l < p->count ? l : 0].index,
				      next = end ? lane - 1 : lane + 1;
			const bool there = end ? lane % j->chunks > 0 : next % j->chunks > 0;
			for (int i = 0; i < 2; i++)
				beside[i][l] = !there ? 0 :
							(REAL)(end ? j->entry[next].after[i] :
								     j->entry[next].before[i]);
		}
		if (j->side) {
			memset(far, 0, sizeof b.f.after);
		} else {
			NAME(stage)(p, b.f.a, &j->a, end ? shift - w : shift + w, w, j->n, false);
			NAME(stage_bonds)(p, b.f.k, end ? shift - w : shift + w + 1, w);
			NAME(disc_of)(p, b.f.a, b.f.k, w, !end, b.f.x, b.f.y, far, failed);
		}
		NAME(stage_chain)(p, b.f.a, b.f.k, shift, w, b.f.x, b.f.y, odd);
		NAME(stage_pairs)(p, b.dr, b.di, &j->g, shift, w);
		NAME(inverses)(&b, w, j->side, groups, false, 0);
		NAME(seeds)(&b, w, j->side, groups, false, 0);
		NAME(ways)(&b, w, j->side, groups, enter, sums, leave, true);
		for (int l = 0; l < p->count; l++) {
			const CX c = leave[end][l / W][0], factor = leave[end][l / W][1];
			const double re = (double)c.re[l % W], im = (double)c.im[l % W];
			struct chain_entry *e = &j->entry[p->lane[l].index];
			double *to = end ? e->from_left : e->from_right;
			to[0] = re;
			to[1] = im;
			failed[l] |= odd[l] || !isfinite(re) || !isfinite(im) ||
				     !(hypot((double)factor.re[l % W], (double)factor.im[l % W]) <=
				       CLOSE);
		}
	}
}

static void NAME(back)(const struct chain_pack *p, bool first, bool *odd)
{
	struct chain_job *j = p->job;
	const int64_t n = j->length, each = (n + 1) * PACK;
	const int wide = p->count > W ? PACK : W, groups = wide / W;
	const REAL tiny = TINY;
	struct NAME(adjoint) b;
	REAL z[2 * PACK], *m = NAME(memory)(p, NAME(ADJOINT));
	CX enter[2][2], leave[2][2][2];
	rv sums[2][2];
	if (!m)
		return;
	const bool wild = !NAME(prepare)(p, &b.f, m, z, odd) && !IS_F32;
	b.dr = m + 2 * each;
	b.di = m + 3 * each;
	b.lr = m + 4 * each;
	b.li = m + 5 * each;
	b.rr = m + 6 * each;
	b.ri = m + 7 * each;
	b.da = m + 8 * each;
	b.dk = m + 9 * each;
	NAME(stage_pairs)(p, b.dr, b.di, &j->g, 0, n);
	if (groups == 2 && wild)
		NAME(inverses)(&b, n, j->side, 2, true, tiny);
	else if (groups == 2)
		NAME(inverses)(&b, n, j->side, 2, false, tiny);
	else
		NAME(inverses)(&b, n, j->side, 1, wild, tiny);
	if (j->gradient != EXACT) {
		NAME(surrogate)(&b, j, wide, wild, tiny);
		memset(b.dk, 0, (size_t)(n * wide) * sizeof *b.dk);
		NAME(store_backward)(p, &b, odd);
		return;
	}
	if (groups == 2 && !wild)
		NAME(seeds)(&b, n, j->side, 2, false, tiny);
	else
		NAME(seeds)(&b, n, j->side, groups, wild, tiny);
	for (int q = 0; q < groups; q++)
		for (int l = 0; l < W; l++) {
			const int64_t lane = p->lane[q * W + l < p->count ? q * W + l : 0].index;
			const struct chain_entry *e = j->entry && !first ? &j->entry[lane] : NULL;
			enter[0][q].re[l] = e ? (REAL)e->from_right[0] : 0;
			enter[0][q].im[l] = e ? (REAL)e->from_right[1] : 0;
			enter[1][q].re[l] = e ? (REAL)e->from_left[0] : 0;
			enter[1][q].im[l] = e ? (REAL)e->from_left[1] : 0;
		}
	if (first)
		NAME(ways)(&b, n, j->side, groups, enter, sums, leave, true);
	else if (groups == 2)
		NAME(ways)(&b, n, j->side, 2, enter, sums, leave, false);
	else
		NAME(ways)(&b, n, j->side, 1, enter, sums, leave, false);
	for (int l = 0; l < p->count; l++) {
		const int q = l / W, i = l % W;
		struct chain_link *to = &j->link[p->lane[l].index];
		if (odd && odd[l])
			continue;
		for (int k = 0; k < 4 && first; k++) {
			to->of[k][0] = (double)leave[k / 2][q][k % 2].re[i];
			to->of[k][1] = (double)leave[k / 2][q][k % 2].im[i];
		}
		if (!first) { // gradient of z
			to->of[0][0] = (double)sums[0][q][i];
			to->of[0][1] = (double)sums[1][q][i];
		}
	}
	if (!first)
		NAME(store_backward)(p, &b, odd);
}
