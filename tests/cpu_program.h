// SPDX-License-Identifier: Apache-2.0
// Map programs one element at a time, in wide types: what the CPU backend's tests of MAP
// and REDUCE compare with.  Exact instructions only: what they give must be equal to the
// bit.
#ifndef YK_CPU_PROGRAM_H
#define YK_CPU_PROGRAM_H

#include "named_op.h"

// A value of any dtype: f for floating types, i for integers and bool.
struct value {
	double f;
	int64_t i;
};

static inline bool is_float(int dtype)
{
	return dtype == yoke_f32 || dtype == yoke_f64 || dtype == yoke_f16 ||
	       dtype == yoke_bf16;
}

// To nearest even with p bits of mantissa, least exponent e, once.
static inline double round_to(long double x, int p, int e, double most)
{
	int k;
	if (x == 0 || isnan(x) || isinf(x))
		return (double)x;
	frexpl(x, &k);
	long double unit = ldexpl(1, (k - 1 < e ? e : k - 1) - p + 1);
	long double r = rintl(x / unit) * unit;
	return fabsl(r) > most ? (x < 0 ? -INFINITY : INFINITY) : (double)r;
}

static inline double to_dtype(long double x, int dtype)
{
	switch (dtype) {
	case yoke_f32: return round_to(x, 24, -126, 0x1.fffffep127);
	case yoke_f16: return round_to(x, 11, -14, 65504);
	case yoke_bf16: return round_to(x, 8, -126, 0x1.fep127);
	default: return (double)x;
	}
}

static inline int64_t wrap(uint64_t x, int dtype)
{
	switch (dtype) {
	case yoke_i8: return (int8_t)x;
	case yoke_u8: return (uint8_t)x;
	case yoke_i32: return (int32_t)x;
	case yoke_bool: return x != 0;
	default: return (int64_t)x;
	}
}

// ---- memory ----

static inline struct value fetch(const void *p, int dtype)
{
	struct value v = { 0, 0 };
	uint64_t u = 0;
	float f;
	memcpy(&u, p, yk_esize(dtype));
	if (dtype == yoke_f16) {
		int e = (int)(u >> 10 & 31), m = (int)(u & 1023);
		v.f = e == 31 ? (m ? NAN : INFINITY) :
		      e       ? ldexp(1024 + m, e - 25) :
				ldexp(m, -24);
		v.f = u >> 15 ? -v.f : v.f;
	} else if (dtype == yoke_f32 || dtype == yoke_bf16) {
		uint32_t w = (uint32_t)(dtype == yoke_bf16 ? u << 16 : u);
		memcpy(&f, &w, sizeof f);
		v.f = f;
	} else if (dtype == yoke_f64) {
		memcpy(&v.f, p, sizeof v.f);
	} else {
		v.i = wrap(u, dtype);
	}
	return v;
}

// Bits of a value that its dtype holds exactly.
static inline uint64_t bits_of(struct value v, int dtype)
{
	uint64_t u = 0;
	uint32_t w;
	float f = (float)v.f;
	memcpy(&w, &f, sizeof w);
	if (dtype == yoke_f64) {
		memcpy(&u, &v.f, sizeof u);
		return u;
	}
	if (dtype == yoke_f32)
		return w;
	if (dtype == yoke_bf16)
		return w >> 16;
	if (dtype != yoke_f16)
		return (uint64_t)v.i;
	u = signbit(v.f) ? 0x8000 : 0;
	if (isnan(v.f))
		return u | 0x7e00;
	if (isinf(v.f))
		return u | 0x7c00;
	double a = fabs(v.f);
	if (a < 0x1p-14)
		return u | (uint64_t)(a * 0x1p24);
	int e;
	double m = frexp(a, &e);
	return u | (uint64_t)((e + 14) << 10) | ((uint64_t)(m * 2048) & 1023);
}

static inline bool same_value(struct value a, struct value b, int dtype)
{
	if (!is_float(dtype))
		return a.i == b.i;
	if (isnan(a.f) || isnan(b.f))
		return isnan(a.f) && isnan(b.f);
	return a.f == b.f && !signbit(a.f) == !signbit(b.f);
}

static inline double show(struct value v, int dtype)
{
	return is_float(dtype) ? v.f : (double)v.i;
}

// ---- random values, shapes and layouts ----

static inline struct value random_value(int dtype)
{
	static const double odd[] = { 0,    -0.0,   1,       -1,       0.5,
				      2.5,  -3.5,   NAN,     INFINITY, -INFINITY,
				      1e-7, -1e-41, 65519.9, 65520,    300,
				      -129, 3e9,    -1e19,   1e38 };
	static const int64_t whole[] = { 0,         1,         -1,
					 127,       128,       -128,
					 255,       INT32_MAX, INT32_MIN,
					 INT64_MAX, INT64_MIN, ((int64_t)1 << 54) + 3,
					 65519 };
	struct value v = { 0, 0 };
	if (is_float(dtype)) {
		v.f = rnd() % 4 ? rnd_real(-8, 8) :
				  odd[rnd() % (sizeof odd / sizeof *odd)];
		v.f = to_dtype(v.f, dtype);
	} else {
		int64_t x = rnd() % 4 ? rnd_int(-9, 9) :
					whole[rnd() % (sizeof whole / sizeof *whole)];
		v.i = wrap((uint64_t)x, dtype);
	}
	return v;
}

static inline int random_shape(int64_t dims[YOKE_MAX_RANK], int64_t most)
{
	static const int64_t size[] = { 1,   1,    2,    3,    4,    7,    8,
					13,  63,   64,   65,   255,  256,  257,
					511, 1023, 1024, 1025, 2049, 5003, 20011 };
	int rank = (int)rnd_int(0, rnd() % 4 ? 4 : 8);
	int64_t n = 1;
	for (int d = 0; d < rank; d++) {
		dims[d] = size[rnd() % (sizeof size / sizeof *size)];
		if (n * dims[d] > most)
			dims[d] = most / n > 3 ? rnd_int(1, 3) : 1;
		n *= dims[d];
	}
	if (rank && rnd() % 40 == 0)
		dims[rnd_int(0, rank - 1)] = 0;
	return rank;
}

// An array of its own with these dims: dense, permuted, with gaps, backwards or (not for
// outputs) broadcast along some axes.
static inline struct yoke_view random_layout(int dtype, int rank, const int64_t *dims,
					     bool output)
{
	int order[YOKE_MAX_RANK];
	int64_t strides[YOKE_MAX_RANK], n = 1, low = 0;
	bool permute = rnd() % 4 == 0, gaps = rnd() % 4 == 0, back = rnd() % 8 == 0;
	bool broadcast = !output && rnd() % 3 == 0;

	for (int d = 0; d < rank; d++)
		order[d] = d;
	for (int d = rank - 1; permute && d > 0; d--) {
		int e = (int)rnd_int(0, d), t = order[d];
		order[d] = order[e], order[e] = t;
	}
	for (int k = rank - 1; k >= 0; k--) {
		int d = order[k];
		if (broadcast && rnd() % 2) {
			strides[d] = 0;
			continue;
		}
		strides[d] = gaps && rnd() % 2 ? n * 2 : n;
		n = strides[d] * (dims[d] > 0 ? dims[d] : 1);
		if (back && rnd() % 2) {
			low += strides[d] * (dims[d] - 1);
			strides[d] = -strides[d];
		}
	}
	size_t size = yk_esize(dtype), bytes = (size_t)(n + 1) * size;
	char *p = array_new(bytes);
	for (size_t i = 0; !output && i + size <= bytes; i += size) {
		uint64_t u = bits_of(random_value(dtype), dtype);
		memcpy(p + i, &u, size);
	}
	return strided(p + (size_t)(low > 0 ? low : 0) * size, dtype, rank, dims,
		       strides);
}

static inline struct yoke_view random_input(int dtype, int rank, const int64_t *dims)
{
	if (rnd() % 6)
		return random_layout(dtype, rank, dims, false);
	return (struct yoke_view){ .kind = YOKE_VIEW_SCALAR,
				   .dtype = (uint8_t)dtype,
				   .offset = bits_of(random_value(dtype), dtype) };
}

// Element `index`, row major, of a view.
static inline void *element(const struct yoke_view *v, int64_t index)
{
	int64_t at = 0;
	for (int d = v->rank - 1; d >= 0; d--) {
		at += index % v->dims[d] * v->strides[d];
		index /= v->dims[d];
	}
	return (char *)yk_ptr(v) + at * (int64_t)yk_esize(v->dtype);
}

static inline bool same_bits(const struct yoke_view *a, int64_t i, const struct yoke_view *b,
		      int64_t k)
{
	return !memcmp(element(a, i), element(b, k), yk_esize(a->dtype));
}

static inline void put_index(struct yoke_view *idx, int64_t i, int64_t value)
{
	int32_t narrow = (int32_t)value;
	if (idx->dtype == yoke_i32)
		memcpy(element(idx, i), &narrow, sizeof narrow);
	else
		memcpy(element(idx, i), &value, sizeof value);
}

static inline int64_t read_index(const struct yoke_view *idx, int64_t i)
{
	return fetch(element(idx, i), idx->dtype).i;
}

// ---- the interpreter ----

static inline uint32_t philox_word(uint64_t index, uint64_t key, uint64_t step)
{
	uint32_t c[4] = { (uint32_t)(index / 4), (uint32_t)(index / 4 >> 32),
			  (uint32_t)step, (uint32_t)(step >> 32) };
	uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
	for (int r = 0; r < 10; r++) {
		uint64_t p = (uint64_t)0xD2511F53 * c[0], q = (uint64_t)0xCD9E8D57 * c[2];
		uint32_t n[4] = { (uint32_t)(q >> 32) ^ c[1] ^ k0, (uint32_t)q,
				  (uint32_t)(p >> 32) ^ c[3] ^ k1, (uint32_t)p };
		memcpy(c, n, sizeof c);
		k0 += 0x9E3779B9, k1 += 0xBB67AE85;
	}
	return c[index % 4];
}

static inline struct value float_insn(int op, double a, double b, int t)
{
	double y;
	int c = t == yoke_f64 ? yoke_f64 : yoke_f32; // the format of the computation
	switch (op) {
	case YOKE_MAP_ADD: y = a + b; break;
	case YOKE_MAP_SUB: y = a - b; break;
	case YOKE_MAP_MUL:
	case YOKE_MAP_SQUARE: y = a * b; break;
	case YOKE_MAP_DIV:
	case YOKE_MAP_RECIP: y = a / b; break;
	case YOKE_MAP_MIN: y = isnan(a) || a < b ? a : b; break;
	case YOKE_MAP_MAX: y = isnan(a) || a > b ? a : b; break;
	case YOKE_MAP_NEG: y = -a; break;
	case YOKE_MAP_ABS: y = fabs(a); break;
	case YOKE_MAP_SIGN: y = a > 0 ? 1 : a < 0 ? -1 : a; break;
	case YOKE_MAP_FLOOR: y = floor(a); break;
	case YOKE_MAP_ROUND: y = rint(a); break;
	case YOKE_MAP_CEIL: y = ceil(a); break;
	case YOKE_MAP_SQRT: y = sqrt(a); break;
	default: y = 1 / to_dtype(sqrt(a), c); // RSQRT
	}
	return (struct value){ to_dtype(to_dtype(y, c), t), 0 };
}

static inline struct value int_insn(int op, int64_t a, int64_t b, int t)
{
	uint64_t x = (uint64_t)a, y = (uint64_t)b, r = 0;
	switch (op) {
	case YOKE_MAP_ADD: r = x + y; break;
	case YOKE_MAP_SUB: r = x - y; break;
	case YOKE_MAP_MUL:
	case YOKE_MAP_SQUARE: r = x * y; break;
	case YOKE_MAP_DIV: r = b == 0 ? 0 : b == -1 ? 0 - x : (uint64_t)(a / b); break;
	case YOKE_MAP_POW:
		r = 1;
		if (b < 0)
			r = a == 1 ? 1 : a == -1 ? (b % 2 ? ~(uint64_t)0 : 1) : 0;
		for (; b > 0; b--) {
			r = (uint64_t)wrap(r * x, t);
			if (r == 0 || x == 1 ||
			    (x == ~(uint64_t)0 && b > 4 && b % 2 && (b = 3)))
				break;
		}
		break;
	case YOKE_MAP_MIN: r = (uint64_t)(a < b ? a : b); break;
	case YOKE_MAP_MAX: r = (uint64_t)(a > b ? a : b); break;
	case YOKE_MAP_NEG: r = 0 - x; break;
	case YOKE_MAP_ABS: r = a < 0 ? 0 - x : x; break;
	case YOKE_MAP_SIGN: r = (uint64_t)((a > 0) - (a < 0)); break;
	default: r = x; // FLOOR, ROUND, CEIL
	}
	return (struct value){ 0, wrap(r, t) };
}

static inline int64_t test_insn(int op, struct value a, struct value b, int from)
{
	bool f = is_float(from);
	switch (op) {
	case YOKE_MAP_EQ: return f ? a.f == b.f : a.i == b.i;
	case YOKE_MAP_NE: return f ? a.f != b.f : a.i != b.i;
	case YOKE_MAP_LT: return f ? a.f < b.f : a.i < b.i;
	case YOKE_MAP_LE: return f ? a.f <= b.f : a.i <= b.i;
	case YOKE_MAP_GT: return f ? a.f > b.f : a.i > b.i;
	case YOKE_MAP_GE: return f ? a.f >= b.f : a.i >= b.i;
	case YOKE_MAP_AND: return a.i && b.i;
	case YOKE_MAP_OR: return a.i || b.i;
	case YOKE_MAP_NOT: return !a.i;
	default: return f ? isfinite(a.f) != 0 : 1;
	}
}

static inline struct value cast_insn(struct value a, int from, int to)
{
	struct value v = { 0, 0 };
	double low, high;
	if (is_float(to)) {
		v.f = to_dtype(is_float(from) ? (long double)a.f : (long double)a.i, to);
		return v;
	}
	if (to == yoke_bool) {
		v.i = is_float(from) ? a.f != 0 : a.i != 0;
		return v;
	}
	if (!is_float(from)) {
		v.i = wrap((uint64_t)a.i, to);
		return v;
	}
	low = to == yoke_i8  ? -128 :
	      to == yoke_u8  ? 0 :
	      to == yoke_i32 ? -0x1p31 :
			       -0x1p63;
	high = to == yoke_i8  ? 127 :
	       to == yoke_u8  ? 255 :
	       to == yoke_i32 ? 0x1p31 - 1 :
				0x1p63;
	double t = trunc(a.f);
	if (isnan(t))
		return v;
	v.i = t >= 0x1p63 ? INT64_MAX : (int64_t)fmax(t, low);
	if (t > high)
		v.i = (int64_t)(to == yoke_i64 ? INT64_MAX : (int64_t)high);
	return v;
}

static inline struct value one_insn(const struct yoke_map *m, int k,
				    const struct value *v, const struct yoke_view *in,
				    int64_t index)
{
	const struct yoke_insn *s = &m->insn[k];
	const int t = s->dtype, from = m->insn[s->a].dtype;
	struct value a = v[s->a], b = v[s->b];

	switch (s->op) {
	case YOKE_MAP_INPUT:
		return fetch(in[s->a].kind == YOKE_VIEW_SCALAR ?
				     (const void *)&in[s->a].offset :
				     element(&in[s->a], index),
			     t);
	case YOKE_MAP_CONST: return fetch(&m->konst[s->a], t);
	case YOKE_MAP_INDEX: return (struct value){ 0, index };
	case YOKE_MAP_RAND:
		return (struct value){ 0,
				       (int32_t)philox_word((uint64_t)a.i, (uint64_t)b.i,
							    (uint64_t)v[s->c].i) };
	case YOKE_MAP_UNIFORM:
		return (struct value){
			to_dtype((double)((uint32_t)a.i >> 8) * 0x1p-24, t), 0
		};
	case YOKE_MAP_SELECT: return a.i ? b : v[s->c];
	case YOKE_MAP_CAST: return cast_insn(a, from, t);
	case YOKE_MAP_SQUARE: b = a; break;
	case YOKE_MAP_RECIP: b = a, a = (struct value){ 1, 1 }; break;
	}
	if (s->op >= YOKE_MAP_EQ)
		return (struct value){ 0, test_insn(s->op, a, b, from) };
	return is_float(t) ? float_insn(s->op, a.f, b.f, t) :
			     int_insn(s->op, a.i, b.i, t);
}

// Values of all instructions at one element.
static inline void interpret(const struct yoke_map *m, const struct yoke_view *in,
			     int64_t index, struct value *v)
{
	for (int k = 0; k < m->ninsn; k++)
		v[k] = one_insn(m, k, v, in, index);
}

// ---- random programs ----

static inline int pick(const struct yoke_map *m,
		       int dtype) // an instruction of it, -1: none
{
	int start = (int)rnd_int(0, m->ninsn - 1);
	for (int k = 0; k < m->ninsn; k++)
		if (m->insn[(start + k) % m->ninsn].dtype == dtype)
			return (start + k) % m->ninsn;
	return -1;
}

// Appends a random instruction of those that are exact.
static inline void random_insn(struct yoke_map *m)
{
	static const uint8_t both[] = { YOKE_MAP_ADD,   YOKE_MAP_SUB,   YOKE_MAP_MUL,
					YOKE_MAP_DIV,   YOKE_MAP_MIN,   YOKE_MAP_MAX,
					YOKE_MAP_NEG,   YOKE_MAP_ABS,   YOKE_MAP_SIGN,
					YOKE_MAP_FLOOR, YOKE_MAP_ROUND, YOKE_MAP_CEIL, YOKE_MAP_SQUARE };
	int a = (int)rnd_int(0, m->ninsn - 1), t = m->insn[a].dtype,
	    kind = (int)rnd_int(0, 11);
	struct yoke_insn s = { .dtype = (uint8_t)t, .a = (uint16_t)a };
	int c = pick(m, yoke_bool), i = pick(m, yoke_i64), r = pick(m, yoke_i32);

	s.b = (uint16_t)pick(m, t);
	if (kind == 0) {
		s.op = YOKE_MAP_CAST, s.dtype = (uint8_t)rnd_int(yoke_f32, yoke_bool);
	} else if (kind == 1) {
		s.op = (uint16_t)rnd_int(YOKE_MAP_EQ, YOKE_MAP_GE), s.dtype = yoke_bool;
	} else if (kind == 2 && c >= 0) {
		s = (struct yoke_insn){ .op = YOKE_MAP_SELECT,
					.dtype = (uint8_t)t,
					.a = (uint16_t)c,
					.b = (uint16_t)a,
					.c = s.b };
	} else if (kind == 3 && c >= 0) {
		s = (struct yoke_insn){ .op = (uint16_t)rnd_int(YOKE_MAP_AND,
								YOKE_MAP_NOT),
					.dtype = yoke_bool,
					.a = (uint16_t)c,
					.b = (uint16_t)pick(m, yoke_bool) };
	} else if (kind == 4 && i >= 0) {
		s = (struct yoke_insn){ .op = YOKE_MAP_RAND,
					.dtype = yoke_i32,
					.a = (uint16_t)i,
					.b = (uint16_t)pick(m, yoke_i64),
					.c = (uint16_t)pick(m, yoke_i64) };
	} else if (kind == 5 && r >= 0) {
		s = (struct yoke_insn){ .op = YOKE_MAP_UNIFORM,
					.dtype = yoke_f32,
					.a = (uint16_t)r };
	} else if (kind == 6 && t != yoke_bool) {
		s.op = YOKE_MAP_ISFINITE, s.dtype = yoke_bool;
	} else if (kind == 7 && is_float(t)) {
		s.op = (uint16_t)rnd_int(YOKE_MAP_SQRT, YOKE_MAP_RECIP);
	} else if (kind == 7 && t != yoke_bool && t != yoke_i64 && t != yoke_i32) {
		s.op = YOKE_MAP_POW;
	} else if (t == yoke_bool) {
		s.op = rnd() % 2 ? YOKE_MAP_MIN : YOKE_MAP_MAX;
	} else {
		s.op = both[rnd() % (sizeof both / sizeof *both)];
	}
	m->insn[m->ninsn++] = s;
}

// Inputs of any dtypes, constants, an index now and then, then `count` instructions.
static inline struct yoke_map random_program(int nin, int nconst, int count)
{
	struct yoke_map m = { .size = sizeof m,
			      .nconst = (uint16_t)nconst,
			      .nin = (uint16_t)nin };

	for (int k = 0; k < nin; k++)
		m.insn[m.ninsn++] = (struct yoke_insn){ .op = YOKE_MAP_INPUT,
							.a = (uint16_t)k,
							.dtype = (uint8_t)rnd_int(
								yoke_f32, yoke_bool) };
	for (int k = 0; k < nconst; k++) {
		int t = (int)rnd_int(yoke_f32, yoke_bool);
		m.konst[k] = bits_of(random_value(t), t);
		m.insn[m.ninsn++] = (struct yoke_insn){ .op = YOKE_MAP_CONST,
							.a = (uint16_t)k,
							.dtype = (uint8_t)t };
	}
	if (rnd() % 2 || m.ninsn == 0)
		m.insn[m.ninsn++] =
			(struct yoke_insn){ .op = YOKE_MAP_INDEX, .dtype = yoke_i64 };
	for (int k = 0; k < count; k++)
		random_insn(&m);
	return m;
}

#endif
