// SPDX-License-Identifier: Apache-2.0
// The steps of a recurrent layer in one precision. In each step a work item computes the gates of
// some units for some rows: their product with the state, from weights packed once, and then the
// cell, while the products are in registers. Backward an item computes the derivative by some
// units' states, from the step after, and then the derivatives of their gates. Included once per
// precision, after vec_f32.h or vec_f64.h, with RNN(name) and the functions SIGMOID(x, n) and
// TANH(x, n).

struct RNN(run) {
	struct layer l;
	const struct yoke_op *op;
	REAL *w; // packed weights
	// states before and after a step [B,H], c in place; backward: derivatives carried to the
	// step before
	REAL *h[2], *c;
	REAL *dp[2];              // backward: [B,G H] of the step after, and of this step
	int64_t t, before, after; // this step, the one before it in time, and the one after
	int now;                  // h[now], dp[now] are written, the others read
	bool product;             // backward: there is a step after this one
	bool cells;               // backward: there is a step, not only the derivative by h0
};

// ---- elements of views ----

static inline __attribute__((always_inline)) V RNN(get)(const REAL *p, int64_t stride, int64_t n)
{
	V x = { 0 };
	if (n >= VL && stride == 1)
		memcpy(&x, p, sizeof x);
	else
		for (int64_t i = 0; i < n && i < VL; i++)
			x[i] = p[i * stride];
	return x;
}

static inline __attribute__((always_inline)) void RNN(put)(REAL *p, int64_t stride, int64_t n, V x)
{
	if (n >= VL && stride == 1)
		memcpy(p, &x, sizeof x);
	else
		for (int64_t i = 0; i < n && i < VL; i++)
			p[i * stride] = x[i];
}

// Units u .. of row b in step t of a view [T,B,..], or zeros if it is absent
static inline __attribute__((always_inline)) V RNN(read)(const struct yoke_view *v, int64_t t,
							 int64_t b, int64_t u, int64_t n)
{
	if (v->kind == YOKE_VIEW_NONE)
		return (V){ 0 };
	return RNN(get)((const REAL *)yk_ptr(v) + t * v->strides[0] + b * v->strides[1] +
				u * v->strides[2],
			v->strides[2], n);
}

static inline __attribute__((always_inline)) void RNN(write)(const struct yoke_view *v, int64_t t,
							     int64_t b, int64_t u, int64_t n, V x)
{
	if (v->kind != YOKE_VIEW_NONE)
		RNN(put)
	((REAL *)yk_ptr(v) + t * v->strides[0] + b * v->strides[1] + u * v->strides[2],
	 v->strides[2], n, x);
}

// [B,H] of a view, or zeros, to dense memory, and back
static void RNN(state_in)(REAL *to, const struct yoke_view *v, const struct layer *l)
{
	for (int64_t b = 0; b < l->rows; b++)
		for (int64_t u = 0; u < l->units; u++)
			to[b * l->units + u] =
				v->kind == YOKE_VIEW_NONE ?
					0 :
					((const REAL *)yk_ptr(
						v))[b * v->strides[0] + u * v->strides[1]];
}

static void RNN(state_out)(const struct yoke_view *v, const REAL *from, const struct layer *l)
{
	for (int64_t b = 0; b < l->rows && v->kind != YOKE_VIEW_NONE; b++)
		for (int64_t u = 0; u < l->units; u++)
			((REAL *)yk_ptr(v))[b * v->strides[0] + u * v->strides[1]] =
				from[b * l->units + u];
}

// ---- products ----

// sum[i] = a[i] [k] times w [k][nv], for `rows` rows
static inline __attribute__((always_inline)) void RNN(product)(V (*restrict sum)[4],
							       const REAL *const *a,
							       const V *restrict w, int64_t k,
							       const int rows, const int nv)
{
	V s[MAX_ROWS][4];
	for (int i = 0; i < rows; i++)
		for (int j = 0; j < nv; j++)
			s[i][j] = (V){ 0 };
	for (int64_t q = 0; q < k; q++, w += nv)
		for (int i = 0; i < rows; i++) {
			const V x = SPLAT(a[i][q]);
			for (int j = 0; j < nv; j++)
				s[i][j] = FMA(x, w[j], s[i][j]);
		}
	for (int i = 0; i < rows; i++)
		for (int j = 0; j < nv; j++)
			sum[i][j] = s[i][j];
}

static void RNN(products)(V (*sum)[4], const REAL *const *a, const V *w, int64_t k, int rows,
			  int nv)
{
#define ROWS(n) \
	case n: \
		if (nv == 4) \
			RNN(product)(sum, a, w, k, n, 4); \
		else \
			RNN(product)(sum, a, w, k, n, 3); \
		break
	switch (rows) {
		ROWS(1);
		ROWS(2);
		ROWS(3);
#if VF == 16
		ROWS(4);
		ROWS(5);
		ROWS(6);
#endif
	}
#undef ROWS
}

// ---- forward ----

// w [G H,H] -> for each item's units [k][gate][span][VL], zero past the last unit
static void RNN(pack)(void *arg, int64_t item)
{
	struct RNN(run) *r = arg;
	const struct layer *l = &r->l;
	const struct yoke_view *w = &r->op->in[1];
	const REAL *from = yk_ptr(w);
	REAL *to = r->w + item * l->units * l->nv * VL;
	for (int64_t k = 0; k < l->units; k++)
		for (int g = 0; g < l->gates; g++)
			for (int64_t i = 0; i < l->span * VL; i++, to++) {
				const int64_t u = item * l->span * VL + i;
				*to = u < l->units ? from[(g * l->units + u) * w->strides[0] +
							  k * w->strides[1]] :
						     0;
			}
}

// Units u .. of row b: `sum` holds the products of their gates, `step` apart
static inline __attribute__((always_inline)) void RNN(cell)(const struct RNN(run) * r, int64_t b,
							    int64_t u, const V *sum, int step)
{
	const struct layer *l = &r->l;
	const struct yoke_op *op = r->op;
	const struct yoke_view *x = &op->in[0], *bias = &op->in[2], *gates = &op->out[3],
			       *more = &op->out[4];
	const int64_t n = l->units - u, at = b * l->units + u, t = r->t;
	const V before = RNN(get)(r->h[!r->now] + at, 1, n);
	REAL *to = r->h[r->now] + at;
	V g[4], p[4], h, c, extra = { 0 };
	if (l->lengths && t >= length_of(l, b)) {
		for (int k = 0; k < l->gates; k++)
			RNN(write)(gates, t, b, k * l->units + u, n, (V){ 0 });
		RNN(write)(more, t, b, u, n, (V){ 0 });
		RNN(write)(&op->out[0], t, b, u, n, (V){ 0 });
		RNN(put)(to, 1, n, before);
		return;
	}
	for (int k = 0; k < l->gates; k++) {
		p[k] = sum[k * step];
		if (bias->kind != YOKE_VIEW_NONE)
			p[k] += RNN(get)((const REAL *)yk_ptr(bias) +
						 (k * l->units + u) * bias->strides[0],
					 bias->strides[0], n);
		g[k] = RNN(read)(x, t, b, k * l->units + u, n);
		if (l->cell != GRU || k < 2)
			g[k] += p[k];
	}
	if (l->cell == LSTM) {
		V s[3] = { g[0], g[1], g[3] };
		SIGMOID(s, 3);
		TANH(&g[2], 1);
		g[0] = s[0];
		g[1] = s[1];
		g[3] = s[2];
		c = FMA(g[1], RNN(get)(r->c + at, 1, n), g[0] * g[2]);
		RNN(put)(r->c + at, 1, n, c);
		extra = c;
		TANH(&c, 1);
		h = g[3] * c;
	} else if (l->cell == GRU) {
		SIGMOID(g, 2);
		g[2] = FMA(g[0], p[2], g[2]);
		TANH(&g[2], 1);
		extra = p[2];
		h = FMA(g[1], before - g[2], g[2]);
	} else {
		if (l->cell == TANH_CELL)
			TANH(g, 1);
		else
			for (int i = 0; i < VL; i++)
				g[0][i] = g[0][i] < 0 ? 0 : g[0][i];
		h = g[0];
	}
	for (int k = 0; k < l->gates; k++)
		RNN(write)(gates, t, b, k * l->units + u, n, g[k]);
	RNN(write)(more, t, b, u, n, extra);
	RNN(write)(&op->out[0], t, b, u, n, h);
	RNN(put)(to, 1, n, h);
}

static void RNN(step)(void *arg, int64_t item)
{
	const struct RNN(run) *r = arg;
	const struct layer *l = &r->l;
	const int64_t block = item % l->blocks, first = item / l->blocks * ROWS_OF_ITEM;
	const int64_t end = first + ROWS_OF_ITEM < l->rows ? first + ROWS_OF_ITEM : l->rows;
	const V *w = (const V *)(r->w + block * l->units * l->nv * VL);
	for (int64_t b = first; b < end;) {
		const int rows = (int)next_rows(end - b);
		const REAL *a[MAX_ROWS];
		V sum[MAX_ROWS][4];
		for (int i = 0; i < rows; i++)
			a[i] = r->h[!r->now] + (b + i) * l->units;
		RNN(products)(sum, a, w, l->units, rows, l->nv);
		for (int i = 0; i < rows; i++, b++)
			for (int s = 0; s < l->span; s++) {
				const int64_t u = (block * l->span + s) * VL;
				if (u < l->units)
					RNN(cell)(r, b, u, sum[i] + s, l->span);
			}
	}
}

static int RNN(forward)(const struct yoke_op *op, const struct layer *l)
{
	struct RNN(run) r = { .l = *l, .op = op, .w = yk_ptr(&op->workspace) };
	const int64_t state = l->rows * l->units;
	r.h[0] = r.w + padded(l->blocks * l->units * l->nv * VL);
	r.h[1] = r.h[0] + state;
	r.c = r.h[1] + state;
	RNN(state_in)(r.h[1], &op->in[3], l);
	RNN(state_in)(r.c, &op->in[4], l);
	each(l, l->blocks, RNN(pack), &r);
	for (int64_t s = 0; s < l->steps; s++) {
		r.t = l->reverse ? l->steps - 1 - s : s;
		r.now = (int)(s & 1);
		each(l, l->blocks * ((l->rows + ROWS_OF_ITEM - 1) / ROWS_OF_ITEM), RNN(step), &r);
	}
	RNN(state_out)(&op->out[1], r.h[(l->steps + 1) & 1], l);
	RNN(state_out)(&op->out[2], r.c, l);
	return 0;
}

// ---- backward ----

enum { RNN(wide) = 4 * VL }; // units of an item

// w [G H,H] -> for each item's units [k < G H][wide]
static void RNN(pack_backward)(void *arg, int64_t item)
{
	struct RNN(run) *r = arg;
	const struct layer *l = &r->l;
	const struct yoke_view *w = &r->op->in[0];
	const REAL *from = yk_ptr(w);
	const int64_t size = l->gates * l->units, u0 = item * RNN(wide);
	REAL *to = r->w + item * size * RNN(wide);
	for (int64_t k = 0; k < size; k++, to += RNN(wide))
		for (int64_t i = 0; i < RNN(wide); i++)
			to[i] = u0 + i < l->units ?
					from[k * w->strides[0] + (u0 + i) * w->strides[1]] :
					0;
}

// Units u .. of row b: sum, the derivative by their states through the product of the step after
static inline __attribute__((always_inline)) void RNN(cell_backward)(const struct RNN(run) * r,
								     int64_t b, int64_t u, V sum)
{
	const struct layer *l = &r->l;
	const struct yoke_op *op = r->op;
	const struct yoke_view *h0 = &op->in[1], *c0 = &op->in[2], *y = &op->in[4],
			       *gates = &op->in[5], *more = &op->in[6];
	const int64_t n = l->units - u, at = b * l->units + u, t = r->t;
	REAL *carried = r->h[0] + at, *dp = r->dp[r->now] + b * l->gates * l->units + u;
	V dh = RNN(get)(carried, 1, n) + sum, g[4], dx[4], p[4], keep = { 0 };
	const bool taken = r->cells && !(l->lengths && t >= length_of(l, b));
	if (!taken) {
		for (int k = 0; k < l->gates && r->cells; k++) {
			RNN(put)(dp + k * l->units, 1, n, (V){ 0 });
			RNN(write)(&op->out[0], t, b, k * l->units + u, n, (V){ 0 });
			RNN(write)(&op->out[1], t, b, k * l->units + u, n, (V){ 0 });
		}
		RNN(put)(carried, 1, n, dh);
		return;
	}
	const bool begins = l->reverse ? t + 1 >= length_of(l, b) : !t;
	dh += RNN(read)(&op->in[7], t, b, u, n);
	for (int k = 0; k < l->gates; k++)
		g[k] = RNN(read)(gates, t, b, k * l->units + u, n);
	if (l->cell == LSTM) {
		REAL *dc_at = r->c + at;
		V c = RNN(read)(more, t, b, u, n), before = { 0 };
		if (!begins)
			before = RNN(read)(more, r->before, b, u, n);
		else if (c0->kind != YOKE_VIEW_NONE)
			before = RNN(get)((const REAL *)yk_ptr(c0) + b * c0->strides[0] +
						  u * c0->strides[1],
					  c0->strides[1], n);
		TANH(&c, 1);
		const V dc = FMA(dh * g[3], 1 - c * c, RNN(get)(dc_at, 1, n));
		dx[0] = dc * g[2] * g[0] * (1 - g[0]);
		dx[1] = dc * before * g[1] * (1 - g[1]);
		dx[2] = dc * g[0] * (1 - g[2] * g[2]);
		dx[3] = dh * c * g[3] * (1 - g[3]);
		RNN(put)(dc_at, 1, n, dc * g[1]);
	} else if (l->cell == GRU) {
		V before = { 0 };
		if (!begins)
			before = RNN(read)(y, r->before, b, u, n);
		else if (h0->kind != YOKE_VIEW_NONE)
			before = RNN(get)((const REAL *)yk_ptr(h0) + b * h0->strides[0] +
						  u * h0->strides[1],
					  h0->strides[1], n);
		dx[2] = dh * (1 - g[1]) * (1 - g[2] * g[2]);
		dx[1] = dh * (before - g[2]) * g[1] * (1 - g[1]);
		dx[0] = dx[2] * RNN(read)(more, t, b, u, n) * g[0] * (1 - g[0]);
		keep = dh * g[1];
	} else if (l->cell == TANH_CELL) {
		dx[0] = dh * (1 - g[0] * g[0]);
	} else {
		for (int i = 0; i < VL; i++)
			dx[0][i] = g[0][i] > 0 ? dh[i] : 0;
	}
	for (int k = 0; k < l->gates; k++) {
		p[k] = l->cell == GRU && k == 2 ? dx[k] * g[0] : dx[k];
		RNN(put)(dp + k * l->units, 1, n, p[k]);
		RNN(write)(&op->out[0], t, b, k * l->units + u, n, dx[k]);
		RNN(write)(&op->out[1], t, b, k * l->units + u, n, p[k]);
	}
	RNN(put)(carried, 1, n, keep);
}

static void RNN(step_backward)(void *arg, int64_t item)
{
	const struct RNN(run) *r = arg;
	const struct layer *l = &r->l;
	const int64_t size = l->gates * l->units, blocks = (l->units + RNN(wide) - 1) / RNN(wide),
		      block = item % blocks;
	const int64_t first = item / blocks * ROWS_OF_ITEM,
		      end = first + ROWS_OF_ITEM < l->rows ? first + ROWS_OF_ITEM : l->rows;
	const V *w = (const V *)(r->w + block * size * RNN(wide));
	for (int64_t b = first; b < end;) {
		const int rows = (int)next_rows(end - b);
		const REAL *a[MAX_ROWS];
		V sum[MAX_ROWS][4];
		for (int i = 0; i < rows; i++)
			a[i] = r->dp[!r->now] + (b + i) * size;
		if (r->product)
			RNN(products)(sum, a, w, size, rows, 4);
		else
			memset(sum, 0, sizeof sum);
		for (int i = 0; i < rows; i++, b++)
			for (int s = 0; s < 4; s++) {
				const int64_t u = block * RNN(wide) + s * VL;
				if (u < l->units)
					RNN(cell_backward)(r, b, u, sum[i][s]);
			}
	}
}

static int RNN(backward)(const struct yoke_op *op, const struct layer *l)
{
	struct RNN(run) r = { .l = *l, .op = op, .w = yk_ptr(&op->workspace) };
	const int64_t blocks = (l->units + RNN(wide) - 1) / RNN(wide), state = l->rows * l->units;
	r.h[0] = r.w + padded(blocks * l->gates * l->units * RNN(wide));
	r.c = r.h[0] + state;
	r.dp[0] = r.c + state;
	r.dp[1] = r.dp[0] + state * l->gates;
	RNN(state_in)(r.h[0], &op->in[8], l);
	RNN(state_in)(r.c, &op->in[9], l);
	each(l, blocks, RNN(pack_backward), &r);
	for (int64_t s = 0; s <= l->steps; s++) {
		r.t = l->reverse ? s : l->steps - 1 - s;
		r.before = l->reverse ? r.t + 1 : r.t - 1;
		r.now = (int)(s & 1);
		r.product = s > 0;
		r.cells = s < l->steps;
		each(l, blocks * ((l->rows + ROWS_OF_ITEM - 1) / ROWS_OF_ITEM), RNN(step_backward),
		     &r);
	}
	RNN(state_out)(&op->out[2], r.h[0], l);
	RNN(state_out)(&op->out[3], r.c, l);
	return 0;
}

static uint64_t RNN(work)(const struct layer *l, bool back) // bytes
{
	const int64_t state = l->rows * l->units, size = l->gates * l->units;
	if (back)
		return (uint64_t)(padded((l->units + RNN(wide) - 1) / RNN(wide) * size *
					 RNN(wide)) +
				  state * (2 + 2 * l->gates)) *
		       sizeof(REAL);
	return (uint64_t)(padded(l->blocks * l->units * l->nv * VL) + 3 * state) * sizeof(REAL);
}
