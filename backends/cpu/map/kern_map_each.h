// SPDX-License-Identifier: Apache-2.0
// Loops over a strip, block by block, that apply a function of one element of type T. The including
// file defines T; the function is a constant at each use and is inlined.

YK_INLINE void each1(void *to, const struct yk_arg *va, int64_t n, T (*f)(T))
{
	T *y = to;
	const T *a = va->at;
	for (; n >= YK_BLOCK; n -= YK_BLOCK, y += YK_BLOCK, a += va->step) {
		YK_SIMD
		for (int i = 0; i < YK_BLOCK; i++)
			y[i] = f(a[i]);
	}
	YK_SIMD
	for (int i = 0; i < (int)n; i++)
		y[i] = f(a[i]);
}

YK_INLINE void each2(void *to, const struct yk_arg *va, const struct yk_arg *vb,
		     int64_t n, T (*f)(T, T))
{
	T *y = to;
	const T *a = va->at, *b = vb->at;
	for (; n >= YK_BLOCK;
	     n -= YK_BLOCK, y += YK_BLOCK, a += va->step, b += vb->step) {
		YK_SIMD
		for (int i = 0; i < YK_BLOCK; i++)
			y[i] = f(a[i], b[i]);
	}
	YK_SIMD
	for (int i = 0; i < (int)n; i++)
		y[i] = f(a[i], b[i]);
}

// The result is a bool.
YK_INLINE void test2(void *to, const struct yk_arg *va, const struct yk_arg *vb,
		     int64_t n, bool (*f)(T, T))
{
	uint8_t *y = to;
	const T *a = va->at, *b = vb->at;
	for (; n >= YK_BLOCK;
	     n -= YK_BLOCK, y += YK_BLOCK, a += va->step, b += vb->step) {
		YK_SIMD
		for (int i = 0; i < YK_BLOCK; i++)
			y[i] = f(a[i], b[i]);
	}
	YK_SIMD
	for (int i = 0; i < (int)n; i++)
		y[i] = f(a[i], b[i]);
}

// Defines the strip function NAME from a function of one or two elements.
#define STRIP1(name, f) \
	static void name(void *to, const struct yk_arg *a, const struct yk_arg *b, \
			 const struct yk_arg *c, int64_t n) \
	{ \
		(void)b, (void)c; \
		each1(to, a, n, f); \
	}
#define STRIP2(name, f) \
	static void name(void *to, const struct yk_arg *a, const struct yk_arg *b, \
			 const struct yk_arg *c, int64_t n) \
	{ \
		(void)c; \
		each2(to, a, b, n, f); \
	}
#define TEST2(name, f) \
	static void name(void *to, const struct yk_arg *a, const struct yk_arg *b, \
			 const struct yk_arg *c, int64_t n) \
	{ \
		(void)c; \
		test2(to, a, b, n, f); \
	}

YK_INLINE bool f_eq(T a, T b)
{
	return a == b;
}
YK_INLINE bool f_ne(T a, T b)
{
	return a != b;
}
YK_INLINE bool f_lt(T a, T b)
{
	return a < b;
}
YK_INLINE bool f_le(T a, T b)
{
	return a <= b;
}
YK_INLINE bool f_gt(T a, T b)
{
	return a > b;
}
YK_INLINE bool f_ge(T a, T b)
{
	return a >= b;
}
TEST2(s_eq, f_eq)
TEST2(s_ne, f_ne)
TEST2(s_lt, f_lt)
TEST2(s_le, f_le)
TEST2(s_gt, f_gt)
TEST2(s_ge, f_ge)
