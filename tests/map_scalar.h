// SPDX-License-Identifier: Apache-2.0
// A map program on one element, by the plain text of yoke-plugin.h: real arithmetic in
// double, rounded by an algorithm of its own, integers in 128 bits.  The reference of
// tests of generated kernels.
#ifndef YK_TEST_MAP_SCALAR_H
#define YK_TEST_MAP_SCALAR_H

#include "tap.h"
#include "yoke-plugin.h"

struct value { // real dtypes: r; the others: i
	double r;
	int64_t i;
};

static inline bool is_real(int d)
{
	return d >= yoke_f32 && d <= yoke_bf16;
}

static inline size_t dtype_bytes(int d)
{
	static const uint8_t bytes[] = { 0, 4, 8, 2, 2, 1, 1, 4, 8, 1 };
	return bytes[d];
}

// Nearest value with `bits` of significand and exponents down to least, ties to even.
static inline double round_to(long double x, int bits, int least, double overflow)
{
	if (isnan(x) || isinf(x) || x == 0)
		return (double)x;
	int e = ilogbl(x);
	if (e < least)
		e = least;
	long double y = ldexpl(rintl(ldexpl(x, bits - 1 - e)), e - bits + 1);
	return fabsl(y) >= overflow ? (x < 0 ? -INFINITY : INFINITY) : (double)y;
}

static inline double round_real(int d, long double x)
{
	return d == yoke_f16 ? round_to(x, 11, -14, 65536) :
	       d == yoke_bf16 ? round_to(x, 8, -126, 0x1p128) :
	       d == yoke_f32 ? (double)(float)x : (double)x;
}

static inline int64_t wrap(int d, __int128 x)
{
	return d == yoke_i8   ? (int8_t)x :
	       d == yoke_u8   ? (uint8_t)x :
	       d == yoke_i32  ? (int32_t)x :
	       d == yoke_bool ? x != 0 :
				(int64_t)x;
}

static inline int64_t least_of(int d)
{
	return d == yoke_i8  ? INT8_MIN :
	       d == yoke_i32 ? INT32_MIN :
	       d == yoke_i64 ? INT64_MIN :
			       0;
}

static inline int64_t most_of(int d)
{
	return d == yoke_i8  ? INT8_MAX :
	       d == yoke_u8  ? UINT8_MAX :
	       d == yoke_i32 ? INT32_MAX :
	       d == yoke_i64 ? INT64_MAX :
			       1;
}

static inline struct value load(int d, const void *p)
{
	struct value v = { 0, 0 };
	uint16_t h;
	int32_t i;
	float f;

	switch (d) {
	case yoke_f32:
		memcpy(&f, p, 4);
		v.r = f;
		break;
	case yoke_f64:
		memcpy(&v.r, p, 8);
		break;
	case yoke_f16:
		memcpy(&h, p, 2);
		int e = h >> 10 & 31, m = h & 1023;
		v.r = e == 31 ? (m ? NAN : INFINITY) :
		      e       ? ldexp(1024 + m, e - 25) :
				ldexp(m, -24);
		v.r = h & 0x8000 ? -v.r : v.r;
		break;
	case yoke_bf16:
		memcpy(&h, p, 2);
		uint32_t b = (uint32_t)h << 16;
		memcpy(&f, &b, 4);
		v.r = f;
		break;
	case yoke_i8:
		v.i = *(const int8_t *)p;
		break;
	case yoke_i32:
		memcpy(&i, p, 4);
		v.i = i;
		break;
	case yoke_i64:
		memcpy(&v.i, p, 8);
		break;
	default:
		v.i = *(const uint8_t *)p;
	}
	return v;
}

// A value that the dtype holds exactly.
static inline void store(int d, struct value v, void *p)
{
	float f = (float)v.r;
	uint32_t b;
	uint16_t h;

	memcpy(&b, &f, 4);
	switch (d) {
	case yoke_f32:
		memcpy(p, &f, 4);
		break;
	case yoke_f64:
		memcpy(p, &v.r, 8);
		break;
	case yoke_f16: {
		double a = fabs(v.r);
		int e = a ? ilogb(a) : 0;
		h = isnan(a)    ? 0x7e00 :
		    isinf(a)    ? 0x7c00 :
		    a < 0x1p-14 ? (uint16_t)(a * 0x1p24) :
				  (uint16_t)((e + 15) << 10 |
					     ((int)ldexp(a, 10 - e) & 1023));
		h |= signbit(v.r) ? 0x8000 : 0;
		memcpy(p, &h, 2);
		break;
	}
	case yoke_bf16:
		h = (uint16_t)(b >> 16 | (isnan(f) ? 0x40 : 0));
		memcpy(p, &h, 2);
		break;
	default:
		memcpy(p, &v.i, dtype_bytes(d)); // little-endian
	}
}

static inline struct value cast(int from, int to, struct value x)
{
	struct value y = { 0, 0 };

	if (is_real(to)) {
		y.r = is_real(from) ? round_real(to, x.r) :
				      round_real(to, (long double)x.i);
		// The least rounding of an integer is to float itself, not through
		// double.
		if (to == yoke_f32 && !is_real(from))
			y.r = (float)x.i;
	} else if (!is_real(from)) {
		y.i = wrap(to, x.i);
	} else if (to == yoke_bool) {
		y.i = x.r != 0;
	} else {
		y.i = isnan(x.r) ? 0 : x.r <= (double)least_of(to) ? least_of(to) :
		      x.r >= (double)most_of(to) ? most_of(to) : (int64_t)x.r;
	}
	return y;
}

// Salmon et al. 2011, written with arrays.
static inline int32_t philox(int64_t index, int64_t key, int64_t step)
{
	uint64_t n = (uint64_t)index / 4;
	uint32_t c[4] = { (uint32_t)n, (uint32_t)(n >> 32), (uint32_t)step,
			  (uint32_t)((uint64_t)step >> 32) };
	uint32_t k[2] = { (uint32_t)key, (uint32_t)((uint64_t)key >> 32) };

	for (int r = 0; r < 10; r++) {
		uint64_t p = 0xD2511F53ull * c[0], q = 0xCD9E8D57ull * c[2];
		uint32_t next[4] = { (uint32_t)(q >> 32) ^ c[1] ^ k[0], (uint32_t)q,
				     (uint32_t)(p >> 32) ^ c[3] ^ k[1], (uint32_t)p };
		memcpy(c, next, sizeof c);
		k[0] += 0x9E3779B9;
		k[1] += 0xBB67AE85;
	}
	return (int32_t)c[(uint64_t)index % 4];
}

static inline double real_insn(int op, double a, double b)
{
	switch (op) {
	case YOKE_MAP_ADD: return a + b;
	case YOKE_MAP_SUB: return a - b;
	case YOKE_MAP_MUL: return a * b;
	case YOKE_MAP_DIV: return a / b;
	case YOKE_MAP_POW: return pow(a, b);
	case YOKE_MAP_MIN: return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
	case YOKE_MAP_MAX: return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
	case YOKE_MAP_NEG: return -a;
	case YOKE_MAP_ABS: return fabs(a);
	case YOKE_MAP_SIGN: return isnan(a) ? a : (a > 0) - (a < 0);
	case YOKE_MAP_FLOOR: return floor(a);
	case YOKE_MAP_ROUND: return rint(a);
	case YOKE_MAP_CEIL: return ceil(a);
	case YOKE_MAP_EXP: return exp(a);
	case YOKE_MAP_LOG: return log(a);
	case YOKE_MAP_LOG1P: return log1p(a);
	case YOKE_MAP_EXPM1: return expm1(a);
	case YOKE_MAP_SQRT: return sqrt(a);
	case YOKE_MAP_RSQRT: return 1 / sqrt(a);
	case YOKE_MAP_RECIP: return 1 / a;
	case YOKE_MAP_SQUARE: return a * a;
	case YOKE_MAP_SIN: return sin(a);
	case YOKE_MAP_COS: return cos(a);
	case YOKE_MAP_TANH: return tanh(a);
	case YOKE_MAP_SIGMOID: return 1 / (1 + exp(-a));
	case YOKE_MAP_NORMAL: return sqrt(-2 * log(1 - a)) * cos(2 * M_PI * b);
	default: return erf(a);
	}
}

static inline int64_t int_insn(int op, int d, __int128 a, __int128 b)
{
	switch (op) {
	case YOKE_MAP_ADD: return wrap(d, a + b);
	case YOKE_MAP_SUB: return wrap(d, a - b);
	case YOKE_MAP_SQUARE: return wrap(d, a * a);
	case YOKE_MAP_MUL: return wrap(d, a * b);
	case YOKE_MAP_DIV: return b ? wrap(d, a / b) : 0;
	case YOKE_MAP_MIN: return (int64_t)(a < b ? a : b);
	case YOKE_MAP_MAX: return (int64_t)(a > b ? a : b);
	case YOKE_MAP_NEG: return wrap(d, -a);
	case YOKE_MAP_ABS: return wrap(d, a < 0 ? -a : a);
	case YOKE_MAP_SIGN: return (a > 0) - (a < 0);
	case YOKE_MAP_POW: {
		int64_t y = 1;
		if (b < 0)
			return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
		if (b > 64) { // by squaring
			int64_t half = int_insn(op, d, a, b / 2);
			y = wrap(d, (__int128)half * half);
			return b % 2 ? wrap(d, y * a) : y;
		}
		for (int k = 0; k < b; k++)
			y = wrap(d, y * a);
		return y;
	}
	default: return (int64_t)a; // floor, round, ceil
	}
}

static inline bool compare_insn(int op, int d, struct value a, struct value b)
{
	bool less = is_real(d) ? a.r < b.r : a.i < b.i;
	bool equal = is_real(d) ? a.r == b.r : a.i == b.i;
	bool more = is_real(d) ? a.r > b.r : a.i > b.i;

	switch (op) {
	case YOKE_MAP_EQ: return equal;
	case YOKE_MAP_NE: return !equal;
	case YOKE_MAP_LT: return less;
	case YOKE_MAP_LE: return less || equal;
	case YOKE_MAP_GT: return more;
	default: return more || equal;
	}
}

// v: values of the instructions; in: of the inputs for this element.
static inline void map_scalar(const struct yoke_map *m, const struct value *in,
			      int64_t index, struct value *v)
{
	static const struct value none;

	for (int k = 0; k < m->ninsn; k++) {
		const struct yoke_insn *n = &m->insn[k];
		bool leaf = n->op <= YOKE_MAP_INDEX;
		struct value a = leaf ? none : v[n->a],
			     b = leaf || n->b >= k ? none : v[n->b];
		int from = leaf ? 0 : m->insn[n->a].dtype;

		v[k] = none;
		if (n->op == YOKE_MAP_INPUT)
			v[k] = in[n->a];
		else if (n->op == YOKE_MAP_CONST)
			v[k] = load(n->dtype, &m->konst[n->a]);
		else if (n->op == YOKE_MAP_INDEX)
			v[k].i = index;
		else if (n->op == YOKE_MAP_RAND)
			v[k].i = philox(a.i, b.i, v[n->c].i);
		else if (n->op == YOKE_MAP_UNIFORM)
			v[k].r = round_real(n->dtype, ((uint32_t)a.i >> 8) * 0x1p-24L);
		else if (n->op == YOKE_MAP_CAST)
			v[k] = cast(from, n->dtype, a);
		else if (n->op == YOKE_MAP_SELECT)
			v[k] = a.i ? b : v[n->c];
		else if (n->op == YOKE_MAP_AND || n->op == YOKE_MAP_OR ||
			 n->op == YOKE_MAP_NOT)
			v[k].i = n->op == YOKE_MAP_NOT ? !a.i :
				 n->op == YOKE_MAP_AND ? a.i && b.i :
							 a.i || b.i;
		else if (n->op == YOKE_MAP_ISFINITE)
			v[k].i = !is_real(from) || isfinite(a.r);
		else if (n->op >= YOKE_MAP_EQ && n->op <= YOKE_MAP_GE)
			v[k].i = compare_insn(n->op, from, a, b);
		else if (is_real(n->dtype))
			v[k].r = round_real(
				n->dtype,
				round_real(n->dtype == yoke_f64 ? yoke_f64 : yoke_f32,
					   real_insn(n->op, a.r, b.r)));
		else
			v[k].i = int_insn(n->op, n->dtype, a.i, b.i);
	}
}

// A value of the dtype: at times an edge case.
static inline struct value random_value(int d)
{
	static const double edges[] = {
		0,      -0.0,    1,        -1,         0.5,          -0.5,
		1.5,    2.5,     INFINITY, -INFINITY,  NAN,          65504,
		65520,  0x1p-24, 0x1p-14,  127,        128,          255,
		256,    -128,    -129,     2147483647, 2147483648.0, -2147483648.0,
		0x1p63, -0x1p63
	};
	struct value v = { 0, 0 };

	if (is_real(d)) {
		v.r = rnd_int(0, 3) ? rnd_real(-4, 4) :
		      rnd_int(0, 3) ? edges[rnd() % (sizeof edges / sizeof *edges)] :
		      ldexp(rnd_real(-1, 1), (int)rnd_int(-20, 70));
		v.r = round_real(d, v.r);
		return v;
	}
	v.i = rnd_int(0, 3)      ? wrap(d, (__int128)rnd_int(-9, 9)) :
	      rnd_int(0, 2) == 0 ? least_of(d) :
	      rnd_int(0, 1)      ? most_of(d) :
				   wrap(d, (__int128)(int64_t)rnd() >> rnd_int(0, 60));
	if (d == yoke_bool)
		v.i = (int64_t)(rnd() & 1);
	return v;
}

#endif
