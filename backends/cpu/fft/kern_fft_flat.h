// SPDX-License-Identifier: Apache-2.0
// A single long Fourier transform, made of short ones along columns and rows, which take the lanes
// (Bailey 1990); then plans and entry points. Included after kern_fft_lanes.h.

// ---- one transform at a time ----

// A phase of a single transform; items are blocks of VL columns or rows.
struct FFT(phase) {
	const struct FFT(flat) * p;
	struct FFT(side) in, out;
	REAL *work; // [a][b] complex
	REAL scale, si;
	bool swap_in, swap_out;
	atomic_bool *no_memory;
};

// exp(-2 pi i k l / m) of VL adjacent l
static inline __attribute__((always_inline)) void FFT(twist)(const struct FFT(flat) * p, int64_t k,
							     int64_t l, V *re, V *im)
{
	const int64_t wide = padded(p->b.n, VL);
	const V *x = (const V *)(p->near + 2 * (k % p->fine) * wide + l),
		*y = (const V *)(p->far + 2 * (k / p->fine) * wide + l);
	const V xr = x[0], xi = *(const V *)((const REAL *)x + wide), yr = y[0],
		yi = *(const V *)((const REAL *)y + wide);
	*re = FMA(xr, yr, -(xi * yi));
	*im = FMA(xr, yi, xi * yr);
}

// Columns: a elements, b apart
static void FFT(columns)(void *arg, int64_t index)
{
	struct FFT(phase) *f = arg;
	const struct FFT(flat) *p = f->p;
	const int64_t a = p->a.n, b = p->b.n, l0 = index * VL, size = FFT(buffer)(&p->a);
	const int lanes = (int)(b - l0 < VL ? b - l0 : VL);
	const struct FFT(side) in = { f->in.base, b * f->in.es, f->in.ps },
			       to = { f->work, 2 * b, 1 };
	int64_t from[VL], row[VL];
	V *x = FFT(buffers)(&p->a, f->no_memory);
	if (!x)
		return;
	for (int l = 0; l < VL; l++) {
		from[l] = (l0 + l) * f->in.es;
		row[l] = 2 * (l0 + l);
	}
	FFT(load)(x, a, &in, from, lanes, f->scale, f->scale, f->swap_in);
	V *z = FFT(lanes_run)(&p->a, x, x + 2 * size);
	for (int64_t k = 1; k < a; k++) {
		V wr, wi;
		FFT(twist)(p, k, l0, &wr, &wi);
		const V re = FMA(RE(z, k), wr, -(IM(z, k) * wi));
		IM(z, k) = FMA(RE(z, k), wi, IM(z, k) * wr);
		RE(z, k) = re;
	}
	FFT(store)(z, a, &to, row, lanes, 1, false);
}

// Rows: b elements; the result's elements are a apart
static void FFT(rows)(void *arg, int64_t index)
{
	struct FFT(phase) *f = arg;
	const struct FFT(flat) *p = f->p;
	const int64_t a = p->a.n, b = p->b.n, l0 = index * VL, size = FFT(buffer)(&p->b);
	const int lanes = (int)(a - l0 < VL ? a - l0 : VL);
	const struct FFT(side) in = { f->work, 2, 1 },
			       out = { f->out.base, a * f->out.es, f->out.ps };
	int64_t from[VL], to[VL];
	V *x = FFT(buffers)(&p->b, f->no_memory);
	if (!x)
		return;
	for (int l = 0; l < VL; l++) {
		from[l] = 2 * b * (l0 + l);
		to[l] = (l0 + l) * f->out.es;
	}
	FFT(load)(x, b, &in, from, lanes, 1, 1, false);
	V *z = FFT(lanes_run)(&p->b, x, x + 2 * size);
	FFT(store)(z, b, &out, to, lanes, f->si, f->swap_out);
}

// Short transforms are not worth waking the team.
static void FFT(each)(int64_t n, void (*fn)(void *, int64_t), struct FFT(phase) * f)
{
	if (f->p->m >= ALONE)
		yk_team_run(n, fn, f);
	else
		for (int64_t i = 0; i < n; i++)
			fn(f, i);
}

static void FFT(steps)(struct FFT(phase) * f)
{
	FFT(each)((f->p->b.n + VL - 1) / VL, FFT(columns), f);
	FFT(each)((f->p->a.n + VL - 1) / VL, FFT(rows), f);
}

// Element-wise loops around a single transform.
struct FFT(around) {
	const struct FFT(plan) * plan;
	const struct attrs *f;
	struct FFT(side) in, out;
	REAL *z; // dense pairs
	const REAL *w;
	int64_t n, count;
	bool swap_in, swap_out;
	REAL scale, si;
};

// z [count] = in [n] w scale, then zeros; in may be z itself
static void FFT(chirp_in)(void *arg, int64_t index)
{
	struct FFT(around) *s = arg;
	const int64_t k1 = (index + 1) * CHUNK < s->count ? (index + 1) * CHUNK : s->count;
	for (int64_t k = index * CHUNK; k < k1; k++) {
		REAL x[2] = { 0, 0 };
		if (k < s->n) {
			x[s->swap_in] = s->in.base[k * s->in.es];
			x[!s->swap_in] =
				s->in.ps == NO_IM ? 0 : s->in.base[k * s->in.es + s->in.ps];
		}
		const REAL *w = s->w + 2 * (k < s->n ? k : 0);
		s->z[2 * k] = (x[0] * w[0] - x[1] * w[1]) * s->scale;
		s->z[2 * k + 1] = (x[0] * w[1] + x[1] * w[0]) * s->scale;
	}
}

// out [n] = z w scale, whose re and im are exchanged
static void FFT(chirp_out)(void *arg, int64_t index)
{
	struct FFT(around) *s = arg;
	const int64_t k1 = (index + 1) * CHUNK < s->n ? (index + 1) * CHUNK : s->n;
	for (int64_t k = index * CHUNK; k < k1; k++) {
		const REAL re = s->z[2 * k + 1], im = s->z[2 * k], *w = s->w + 2 * k;
		const REAL y[2] = { (re * w[0] - im * w[1]) * s->scale,
				    (re * w[1] + im * w[0]) * s->scale };
		s->out.base[k * s->out.es] = y[s->swap_out];
		if (s->out.ps != NO_IM)
			s->out.base[k * s->out.es + s->out.ps] = y[!s->swap_out] * s->si;
	}
}

// A single complex transform between two sides; work: [2 m] complex
static void FFT(single)(const struct FFT(flat) * p, struct FFT(phase) * f, REAL *work)
{
	f->p = p;
	f->work = work;
	if (!p->chirp) {
		FFT(steps)(f);
		return;
	}
	REAL *z = work + 2 * p->m;
	struct FFT(around) s = { .in = f->in,
				 .out = f->out,
				 .z = z,
				 .w = p->chirp,
				 .n = p->n,
				 .count = p->m,
				 .swap_in = f->swap_in,
				 .swap_out = f->swap_out,
				 .scale = f->scale,
				 .si = f->si };
	struct FFT(phase)
		inner = { p, { z, 2, 1 }, { z, 2, 1 }, work, 1, 1, false, false, f->no_memory };
	yk_team_run(chunks_of(s.count), FFT(chirp_in), &s);
	FFT(steps)(&inner);
	struct FFT(around) t = {
		.in = { z, 2, 1 }, .z = z, .w = p->spectrum, .n = p->m, .count = p->m, .scale = 1
	};
	yk_team_run(chunks_of(t.count), FFT(chirp_in), &t);
	inner.swap_in = true;
	FFT(steps)(&inner);
	s.scale = 1 / (REAL)p->m;
	yk_team_run(chunks_of(s.n), FFT(chirp_out), &s);
}

// out [h + 1] of z [h], as `split`; odd n: of z [n]
static void FFT(split_flat)(void *arg, int64_t index)
{
	struct FFT(around) *s = arg;
	const int64_t n = s->f->n, h = n / 2,
		      k1 = (index + 1) * CHUNK < h + 1 ? (index + 1) * CHUNK : h + 1;
	const REAL *z = s->z, *turn = s->plan->turn;
	for (int64_t k = index * CHUNK; k < k1; k++) {
		const REAL weight = k && 2 * k != n ? (REAL)s->f->weight : 1;
		REAL re = z[2 * k], im = z[2 * k + 1];
		if (!(n & 1)) {
			const int64_t a = k == h ? 0 : k, o = k ? h - k : 0;
			const REAL ar = z[2 * a] + z[2 * o], ai = z[2 * a + 1] - z[2 * o + 1];
			const REAL br = z[2 * a + 1] + z[2 * o + 1], bi = z[2 * o] - z[2 * a];
			re = (ar + br * turn[2 * k] - bi * turn[2 * k + 1]) / 2;
			im = (ai + br * turn[2 * k + 1] + bi * turn[2 * k]) / 2;
		}
		s->out.base[k * s->out.es] = re * weight;
		s->out.base[k * s->out.es + s->out.ps] = im * weight * s->si;
	}
}

// z of in [h + 1], as `join`; odd n: in's elements, then zeros, exchanged
static void FFT(join_flat)(void *arg, int64_t index)
{
	struct FFT(around) *s = arg;
	const int64_t n = s->f->n, h = n / 2,
		      k1 = (index + 1) * CHUNK < s->count ? (index + 1) * CHUNK : s->count;
	const REAL *turn = s->plan->turn, *in = s->in.base, f = (REAL)s->f->weight * s->scale;
	REAL *z = s->z;
	for (int64_t k = index * CHUNK; k < k1; k++) {
		const REAL *a = in + k * s->in.es;
		if (n & 1) {
			const bool inside = k <= h;
			z[2 * k + 1] = inside ? a[0] * (k ? f : s->scale) : 0;
			z[2 * k] = inside && k ? a[s->in.ps] * f * s->si : 0;
			continue;
		}
		const REAL *o = in + (h - k) * s->in.es;
		const REAL xi = k ? a[s->in.ps] * s->si : 0, yi = k ? o[s->in.ps] * s->si : 0,
			   c = k ? f / 2 : s->scale;
		const REAL ar = a[0] + o[0], ai = xi - yi, br = a[0] - o[0], bi = xi + yi;
		z[2 * k + 1] = (ar + br * turn[2 * k + 1] - bi * turn[2 * k]) * c;
		z[2 * k] = (ai + br * turn[2 * k] + bi * turn[2 * k + 1]) * c;
	}
}

static void FFT(one)(struct FFT(job) * j, REAL *work, int64_t from, int64_t to)
{
	const struct attrs *f = &j->f;
	const struct FFT(plan) *p = j->plan;
	const REAL scale = (REAL)f->scale;
	const int64_t n = f->n, h = n / 2;
	const bool even = !(n & 1);
	REAL *z = work + 4 * p->flat.m; // [n or n/2] complex
	struct FFT(side) in = j->in, out = j->out;
	in.base += from;
	out.base += to;
	struct FFT(phase) ph = { .in = in,
				 .out = out,
				 .scale = scale,
				 .si = 1,
				 .swap_in = f->inverse,
				 .swap_out = f->inverse,
				 .no_memory = &j->no_memory };
	struct FFT(around) s = { .plan = p, .f = f, .in = in, .out = out, .z = z, .scale = scale };
	if (f->kind == REAL_TO_HALF) {
		if (even)
			ph.in = (struct FFT(side)){ in.base, 2 * in.es, in.es };
		ph.out = (struct FFT(side)){ z, 2, 1 };
		ph.swap_in = ph.swap_out = false;
		s.si = f->inverse ? -1 : 1;
	} else if (f->kind == HALF_TO_REAL) {
		s.count = even ? h : n;
		s.si = f->inverse ? 1 : -1;
		yk_team_run(chunks_of(s.count), FFT(join_flat), &s);
		ph.in = (struct FFT(side)){ z, 2, 1 };
		if (even)
			ph.out = (struct FFT(side)){ out.base, 2 * out.es, out.es };
		ph.scale = 1;
		ph.swap_in = false;
		ph.swap_out = true;
	}
	FFT(single)(&p->flat, &ph, work);
	if (f->kind == REAL_TO_HALF)
		yk_team_run(chunks_of(h + 1), FFT(split_flat), &s);
}

// ---- plans ----

static void FFT(flat_plan)(struct table *t, struct FFT(flat) * p, int64_t n)
{
	const int64_t m = flat_length(n), a = balanced(m), b = m / a, wide = padded(b, VL);
	p->n = n;
	p->m = m;
	FFT(lanes_smooth)(t, &p->a, a);
	FFT(lanes_smooth)(t, &p->b, b);
	for (p->fine = 1; p->fine * p->fine < a;)
		p->fine *= 2;
	p->coarse = (a + p->fine - 1) / p->fine;
	REAL *near = FFT(take)(t, 2 * p->fine * wide), *far = FFT(take)(t, 2 * p->coarse * wide);
	p->near = near;
	p->far = far;
	for (int64_t k = 0; near && k < p->fine + p->coarse; k++)
		for (int64_t l = 0; l < wide; l++) {
			REAL *to = k < p->fine ? near + 2 * k * wide :
						 far + 2 * (k - p->fine) * wide,
			     w[2];
			FFT(turn)
			(w, (k < p->fine ? k : (k - p->fine) * p->fine) * (l < b ? l : 0) % m, m);
			to[l] = w[0];
			to[wide + l] = w[1];
		}
	if (m == n)
		return;
	p->chirp = FFT(chirps)(t, n);
	REAL *h = FFT(take)(t, 2 * m);
	p->spectrum = h;
	if (!h)
		return;
	REAL *work = aligned_alloc(64, (size_t)padded(2 * m * (int64_t)sizeof *work, 64));
	if (!work) {
		t->failed = true;
		return;
	}
	memset(h, 0, (size_t)(2 * m) * sizeof *h);
	for (int64_t k = 0; k < n; k++) {
		const int64_t o = k ? m - k : 0;
		h[2 * k] = h[2 * o] = p->chirp[2 * k];
		h[2 * k + 1] = h[2 * o + 1] = -p->chirp[2 * k + 1];
	}
	atomic_bool failed;
	atomic_init(&failed, false);
	FFT(steps)
	(&(struct FFT(phase)){ p, { h, 2, 1 }, { h, 2, 1 }, work, 1, 1, false, false, &failed });
	t->failed |= atomic_load(&failed);
	free(work);
}

static void FFT(plan_at)(struct FFT(plan) * p, const struct attrs *f, int64_t count)
{
	const int64_t n = length_of(f);
	p->is_flat = flat_is_better(n, count, VL);
	if (p->is_flat)
		FFT(flat_plan)(&p->table, &p->flat, n);
	else if (is_smooth(n))
		FFT(lanes_smooth)(&p->table, &p->lanes, n);
	else
		FFT(lanes_chirp)(&p->table, &p->lanes, n);
	if (f->kind == COMPLEX || f->n & 1)
		return;
	REAL *w = FFT(take)(&p->table, 2 * (n + 1));
	p->turn = w;
	for (int64_t k = 0; k <= n && w; k++)
		FFT(turn)(w + 2 * k, k, f->n);
}

static void *FFT(prepare)(const struct attrs *f, int64_t count)
{
	struct FFT(plan) size = { .table = { NULL, 0, false } };
	FFT(plan_at)(&size, f, count);
	const size_t head = (sizeof size + 63) & ~(size_t)63,
		     bytes = head + (size_t)size.table.used;
	struct FFT(plan) *p = aligned_alloc(64, bytes);
	if (!p)
		return NULL;
	*p = (struct FFT(plan)){ .table = { (char *)p + head, 0, false } };
	FFT(plan_at)(p, f, count);
	if (p->table.failed) {
		free(p);
		return NULL;
	}
	return p;
}

static uint64_t FFT(work)(const struct attrs *f, int64_t count) // bytes
{
	const int64_t n = length_of(f);
	if (!flat_is_better(n, count, VL))
		return 0;
	return (uint64_t)(2 * (2 * flat_length(n) + n)) * sizeof(REAL);
}

static int FFT(run)(const struct yoke_op *op, const struct attrs *f, const struct FFT(plan) * p)
{
	const struct yoke_view *x = &op->in[0], *y = &op->out[0];
	const int px = f->kind != REAL_TO_HALF, py = f->kind != HALF_TO_REAL;
	struct FFT(job) j = { .plan = p, .f = *f };
	j.in = (struct FFT(side)){ yk_ptr(x), x->strides[x->rank - 1 - px],
				   px ? x->strides[x->rank - 1] : NO_IM };
	j.out = (struct FFT(side)){ yk_ptr(y), y->strides[y->rank - 1 - py],
				    py ? y->strides[y->rank - 1] : NO_IM };
	rows_of(&j.rows, x, y, x->rank - 1 - px);
	atomic_init(&j.no_memory, false);
	if (!j.rows.count)
		return 0;
	if (p->is_flat) {
		int64_t at[YOKE_MAX_RANK], from, to;
		rows_at(&j.rows, 0, at);
		for (int64_t i = 0; i < j.rows.count; i++) {
			rows_next(&j.rows, at, &from, &to);
			FFT(one)(&j, yk_ptr(&op->workspace), from, to);
		}
	} else {
		j.blocks = (j.rows.count + VL - 1) / VL;
		j.each = 1 + ALONE / (FFT(buffer)(&p->lanes) * VL);
		yk_team_run((j.blocks + j.each - 1) / j.each, FFT(item), &j);
	}
	return atomic_load(&j.no_memory) ? YOKE_ENOMEM : 0;
}

#undef FOUR
#undef MAX_FACTORS
#undef RE
#undef IM
#undef LOAD_PAIR
#undef STORE_PAIR
#undef PASS
#undef EACH
#undef END
#undef RUN
