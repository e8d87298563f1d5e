// SPDX-License-Identifier: Apache-2.0
// The accumulators of one computation dtype. The including file defines T (elements and lanes), W
// (double or int64_t), V (the member of yk_acc), ADD and MUL (wrapping for integers), IS_NAN, V_ADD
// and V_MUL (on vectors), LOWEST and HIGHEST (beyond all values), PART and TOTAL (members of
// yk_columns); and V_MIN and V_MAX on vectors, which propagate NaN, or V_NAN and MASK (the integer
// of T's size) to build them from.

enum { LANES = 64, DEPTH = 16, VECTOR = VF * 4 / sizeof(T), VECTORS = LANES / VECTOR };

typedef T vt __attribute__((vector_size(VF * 4)));
typedef uint64_t vu __attribute__((vector_size(VF * 4)));

YK_INLINE vt load(const T *x)
{
	vt v;
	memcpy(&v, x, sizeof v);
	return v;
}

#ifdef V_MAX
YK_INLINE vt part_min(vt a, vt b)
{
	return V_MIN(a, b);
}
YK_INLINE vt part_max(vt a, vt b)
{
	return V_MAX(a, b);
}
#else
typedef MASK vm __attribute__((vector_size(VF * 4)));

YK_INLINE vt choose(vm mask, vt a, vt b)
{
	return (vt)((mask & (vm)a) | (~mask & (vm)b));
}
YK_INLINE vt part_min(vt a, vt b)
{
	return choose((vm)(a < b) | V_NAN(a), a, b);
}
YK_INLINE vt part_max(vt a, vt b)
{
	return choose((vm)(a > b) | V_NAN(a), a, b);
}
#endif
YK_INLINE vt v_add(vt a, vt b)
{
	return V_ADD(a, b);
}
YK_INLINE vt v_mul(vt a, vt b)
{
	return V_MUL(a, b);
}

YK_INLINE T min(T a, T b)
{
	return ((a < b) | IS_NAN(a)) ? a : b;
}
YK_INLINE T max(T a, T b)
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
	       kind == YOKE_REDUCE_MAX  ? LOWEST :
	       kind == YOKE_REDUCE_MIN  ? HIGHEST :
					  0;
}

static bool better(int kind, W a, W b)
{
	if (IS_NAN(b))
		return false;
	return IS_NAN(a) || (kind == YOKE_REDUCE_ARGMAX ? a > b : a < b);
}

static void join(int kind, struct yk_acc *restrict a, const struct yk_acc *restrict b, int64_t n)
{
	switch (kind) {
	case YOKE_REDUCE_SUM:
		for (int64_t i = 0; i < n; i++)
			a[i].V = ADD(W, a[i].V, b[i].V);
		break;
	case YOKE_REDUCE_PROD:
		for (int64_t i = 0; i < n; i++)
			a[i].V = MUL(W, a[i].V, b[i].V);
		break;
	case YOKE_REDUCE_MAX:
		for (int64_t i = 0; i < n; i++)
			a[i].V = b[i].V > a[i].V || IS_NAN(b[i].V) ? b[i].V : a[i].V;
		break;
	case YOKE_REDUCE_MIN:
		for (int64_t i = 0; i < n; i++)
			a[i].V = b[i].V < a[i].V || IS_NAN(b[i].V) ? b[i].V : a[i].V;
		break;
	default:
		for (int64_t i = 0; i < n; i++)
			if (b[i].at >= 0 && (a[i].at < 0 || better(kind, b[i].V, a[i].V)))
				a[i] = b[i];
	}
}

// Accumulates in lanes, then folds them in halves. Reads whole vectors in memory order, which suits
// the hardware prefetcher.
YK_INLINE T fold(const T *x, int64_t n, T start, T (*f)(T, T), vt (*g)(vt, vt))
{
	vt v[VECTORS];
	T lane[LANES];
	if (n < 16) {
		T y = start;
		for (int64_t i = 0; i < n; i++)
			y = f(y, x[i]);
		return y;
	}
	for (int k = 0; k < VECTORS; k++)
		v[k] = (vt){ 0 } + start;
	for (; n >= LANES; n -= LANES, x += LANES)
		for (int k = 0; k < VECTORS; k++)
			v[k] = g(v[k], load(x + k * VECTOR));
	memcpy(lane, v, sizeof lane);
	for (int i = 0; i < (int)n; i++)
		lane[i] = f(lane[i], x[i]);
	for (int w = LANES / 2; w; w /= 2)
		for (int i = 0; i < w; i++)
			lane[i] = f(lane[i], lane[i + w]);
	return lane[0];
}

static T fold_sum(const T *x, int64_t n)
{
	return fold(x, n, 0, add, v_add);
}
static T fold_prod(const T *x, int64_t n)
{
	return fold(x, n, 1, mul, v_mul);
}
static T fold_max(const T *x, int64_t n)
{
	return fold(x, n, x[0], max, part_max);
}
static T fold_min(const T *x, int64_t n)
{
	return fold(x, n, x[0], min, part_min);
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
	join(kind, a, &b, 1);
}

static void clear(int kind, struct yk_columns *c)
{
	struct yk_acc a;
	identity(kind, &a);
	for (int64_t i = 0; i < c->cols; i++)
		c->total.TOTAL[i] = a.V, c->at[i] = a.at;
	c->depth = 0;
}

static void totals(const struct yk_columns *c, struct yk_acc *a)
{
	for (int64_t i = 0; i < c->cols; i++)
		a[i].V = c->total.TOTAL[i], a[i].at = c->at[i];
}

static void flush(int kind, struct yk_columns *c)
{
	const T *restrict part = c->part.PART;
	W *restrict sum = c->total.TOTAL;
	if (!c->depth || kind == YOKE_REDUCE_ARGMAX || kind == YOKE_REDUCE_ARGMIN)
		return;
	for (int64_t i = 0; i < c->cols && kind == YOKE_REDUCE_SUM; i++)
		sum[i] = ADD(W, sum[i], (W)part[i]);
	for (int64_t i = 0; i < c->cols && kind == YOKE_REDUCE_PROD; i++)
		sum[i] = MUL(W, sum[i], (W)part[i]);
	for (int64_t i = 0; i < c->cols && kind == YOKE_REDUCE_MAX; i++)
		sum[i] = (((W)part[i] > sum[i]) | IS_NAN(part[i])) ? (W)part[i] : sum[i];
	for (int64_t i = 0; i < c->cols && kind == YOKE_REDUCE_MIN; i++)
		sum[i] = (((W)part[i] < sum[i]) | IS_NAN(part[i])) ? (W)part[i] : sum[i];
	c->depth = 0;
}

enum { TOGETHER = 4 }; // rows added in one pass over part

// part[i] = f(... f(part[i], x[i]), x[i + stride] ...) for `rows` rows; fresh: starts from x[i]
// instead of part[i].
YK_INLINE void some_rows(T *part, const T *x, int64_t n, int64_t stride, int rows,
			 bool fresh, T (*f)(T, T), vt (*g)(vt, vt))
{
	int64_t i = 0;
	for (; i + VECTOR <= n; i += VECTOR) {
		vt v = load(fresh ? x + i : part + i);
		for (int r = fresh; r < rows; r++)
			v = g(v, load(x + r * stride + i));
		memcpy(part + i, &v, sizeof v);
	}
	for (; i < n; i++) {
		T y = fresh ? x[i] : part[i];
		for (int r = fresh; r < rows; r++)
			y = f(y, x[r * stride + i]);
		part[i] = y;
	}
}

YK_INLINE void each_row(T *part, const T *x, int64_t n, int64_t stride, int rows,
			bool fresh, T (*f)(T, T), vt (*g)(vt, vt))
{
	if (fresh && rows >= TOGETHER) {
		some_rows(part, x, n, stride, TOGETHER, true, f, g);
		rows -= TOGETHER, x += TOGETHER * stride;
	} else if (fresh) {
		some_rows(part, x, n, stride, 1, true, f, g);
		rows--, x += stride;
	}
	for (; rows >= TOGETHER; rows -= TOGETHER, x += TOGETHER * stride)
		some_rows(part, x, n, stride, TOGETHER, false, f, g);
	for (; rows > 0; rows--, x += stride)
		some_rows(part, x, n, stride, 1, false, f, g);
}

static void row_arg(int kind, struct yk_columns *c, const T *x, int64_t at)
{
	for (int64_t i = 0; i < c->cols; i++)
		if (c->at[i] < 0 || better(kind, x[i], c->total.TOTAL[i])) {
			c->total.TOTAL[i] = x[i];
			c->at[i] = at;
		}
}

static void rows(int kind, struct yk_columns *c, const void *from, int64_t stride,
		 int64_t count, int64_t at)
{
	T *part = c->part.PART;
	const T *x = from, *end = x + count * stride;
	const int64_t n = c->cols;

	if (kind == YOKE_REDUCE_ARGMAX || kind == YOKE_REDUCE_ARGMIN) {
		for (; x < end; x += stride)
			row_arg(kind, c, x, at++);
		return;
	}
	while (x < end) {
		const bool fresh = c->depth == 0;
		int64_t left = (end - x) / stride;
		int m = left < DEPTH - c->depth ? (int)left : DEPTH - (int)c->depth;
		if (kind == YOKE_REDUCE_SUM)
			each_row(part, x, n, stride, m, fresh, add, v_add);
		else if (kind == YOKE_REDUCE_PROD)
			each_row(part, x, n, stride, m, fresh, mul, v_mul);
		else if (kind == YOKE_REDUCE_MAX)
			each_row(part, x, n, stride, m, fresh, max, part_max);
		else
			each_row(part, x, n, stride, m, fresh, min, part_min);
		x += m * stride, c->depth += m;
		if (c->depth == DEPTH)
			flush(kind, c);
	}
}

#define REDUCER \
	{ \
		identity, join, run, clear, rows, flush, totals \
	}
