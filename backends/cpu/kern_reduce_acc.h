// SPDX-License-Identifier: Apache-2.0
// The accumulators of one computation dtype: include with T (elements and lanes), W
// (double or int64_t), V (the member of yk_acc), ADD and MUL (wrapping where T is an
// integer), IS_NAN, LEAST and MOST (beyond all values), and PART (the member of
// yk_columns).

enum { LANES = 64, DEPTH = 16 };

YK_INLINE T least(T a, T b)
{
	return ((a < b) | IS_NAN(a)) ? a : b;
}
YK_INLINE T most(T a, T b)
{
	return ((a > b) | IS_NAN(a)) ? a : b;
}
YK_INLINE T add(T a, T b)
{
	return ADD(T, a, b);
}
YK_INLINE T mul(T a, T b)
{
	return MUL(T, a, b);
}

static void identity(int kind, struct yk_acc *a)
{
	*a = (struct yk_acc){ .at = -1 };
	a->V = kind == YOKE_REDUCE_PROD ? 1 :
	       kind == YOKE_REDUCE_MAX  ? LEAST :
	       kind == YOKE_REDUCE_MIN  ? MOST :
					  0;
}

static bool better(int kind, W a, W b)
{
	if (IS_NAN(b))
		return false;
	return IS_NAN(a) || (kind == YOKE_REDUCE_ARGMAX ? a > b : a < b);
}

static void join(int kind, struct yk_acc *a, const struct yk_acc *b)
{
	W x = a->V, y = b->V;
	switch (kind) {
	case YOKE_REDUCE_SUM: a->V = ADD(W, x, y); break;
	case YOKE_REDUCE_PROD: a->V = MUL(W, x, y); break;
	case YOKE_REDUCE_MAX: a->V = y > x || IS_NAN(y) ? y : x; break;
	case YOKE_REDUCE_MIN: a->V = y < x || IS_NAN(y) ? y : x; break;
	default:
		if (b->at >= 0 && (a->at < 0 || better(kind, y, x)))
			*a = *b;
	}
}

// Lanes side by side, then folded in halves.
YK_INLINE T fold(const T *x, int64_t n, T start, T (*f)(T, T))
{
	T lane[LANES];
	if (n < 16) {
		T y = start;
		for (int64_t i = 0; i < n; i++)
			y = f(y, x[i]);
		return y;
	}
	for (int i = 0; i < LANES; i++)
		lane[i] = start;
	for (; n >= LANES; n -= LANES, x += LANES)
		for (int i = 0; i < LANES; i++)
			lane[i] = f(lane[i], x[i]);
	for (int i = 0; i < (int)n; i++)
		lane[i] = f(lane[i], x[i]);
	for (int w = LANES / 2; w; w /= 2)
		for (int i = 0; i < w; i++)
			lane[i] = f(lane[i], lane[i + w]);
	return lane[0];
}

static T fold_sum(const T *x, int64_t n)
{
	return fold(x, n, 0, add);
}
static T fold_prod(const T *x, int64_t n)
{
	return fold(x, n, 1, mul);
}
static T fold_max(const T *x, int64_t n)
{
	return fold(x, n, x[0], most);
}
static T fold_min(const T *x, int64_t n)
{
	return fold(x, n, x[0], least);
}

static void run(int kind, struct yk_acc *a, const void *from, int64_t n, int64_t at)
{
	const T *x = from;
	struct yk_acc b = { .at = -1 };
	T y;

	if (n <= 0)
		return;
	switch (kind) {
	case YOKE_REDUCE_SUM: b.V = fold_sum(x, n); break;
	case YOKE_REDUCE_PROD: b.V = fold_prod(x, n); break;
	case YOKE_REDUCE_MAX: b.V = fold_max(x, n); break;
	case YOKE_REDUCE_MIN: b.V = fold_min(x, n); break;
	default:
		y = kind == YOKE_REDUCE_ARGMAX ? fold_max(x, n) : fold_min(x, n);
		b.V = y;
		if (a->at >= 0 && !better(kind, b.V, a->V))
			return;
		for (b.at = 0; !(x[b.at] == y || IS_NAN(x[b.at]));)
			b.at++;
		b.at += at;
	}
	join(kind, a, &b);
}

static void flush(int kind, struct yk_columns *c)
{
	const T *part = c->part.PART;
	if (!c->depth || kind == YOKE_REDUCE_ARGMAX || kind == YOKE_REDUCE_ARGMIN)
		return;
	if (kind == YOKE_REDUCE_SUM)
		for (int64_t i = 0; i < c->cols; i++)
			c->total[i].V = ADD(W, c->total[i].V, (W)part[i]);
	for (int64_t i = 0; i < c->cols && kind != YOKE_REDUCE_SUM; i++) {
		struct yk_acc b = { .at = -1 };
		b.V = part[i];
		join(kind, &c->total[i], &b);
	}
	c->depth = 0;
}

YK_INLINE void each_column(T *part, const T *x, int64_t n, T (*f)(T, T))
{
	YK_SIMD
	for (int64_t i = 0; i < n; i++)
		part[i] = f(part[i], x[i]);
}

static void row_arg(int kind, struct yk_columns *c, const T *x, int64_t at)
{
	for (int64_t i = 0; i < c->cols; i++)
		if (c->total[i].at < 0 || better(kind, x[i], c->total[i].V)) {
			c->total[i].V = x[i];
			c->total[i].at = at;
		}
}

static void rows(int kind, struct yk_columns *c, const void *from, int64_t count,
		 int64_t at)
{
	T *part = c->part.PART;
	const T *x = from;
	const int64_t n = c->cols;

	for (int64_t r = 0; r < count; r++, x += n) {
		if (kind == YOKE_REDUCE_ARGMAX || kind == YOKE_REDUCE_ARGMIN) {
			row_arg(kind, c, x, at + r);
			continue;
		}
		if (c->depth == 0)
			memcpy(part, x, (size_t)n * sizeof *x);
		else if (kind == YOKE_REDUCE_SUM)
			each_column(part, x, n, add);
		else if (kind == YOKE_REDUCE_PROD)
			each_column(part, x, n, mul);
		else if (kind == YOKE_REDUCE_MAX)
			each_column(part, x, n, most);
		else
			each_column(part, x, n, least);
		if (++c->depth == DEPTH)
			flush(kind, c);
	}
}

#define REDUCER \
	{ \
		identity, join, run, rows, flush \
	}
