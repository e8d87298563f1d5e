// SPDX-License-Identifier: Apache-2.0
// Interprets map programs with error bounds.  Operations that are correctly rounded by definition
// (add, casts, comparisons, ...) add no error; functions add the ULPs that OpenCL 1.2 allows, or
// twice the error of good libraries.  An instruction propagates errors by evaluating its operands
// at the ends of their intervals: the largest change is the bound.  If a decision (comparison, cast
// to an integer) differs between the ends, its result is marked loose.
#include "config.h"

#include <math.h>

#include "base/philox.h"
#include "conform/program.h"
#include "yoke.h"

// Number of operands of an instruction.
static int operands_of(int op)
{
	switch (op) {
	case YOKE_MAP_INPUT:
	case YOKE_MAP_CONST:
	case YOKE_MAP_INDEX: return 0;
	case YOKE_MAP_RAND:
	case YOKE_MAP_SELECT: return 3;
	case YOKE_MAP_NORMAL:
	case YOKE_MAP_EQ:
	case YOKE_MAP_NE:
	case YOKE_MAP_LT:
	case YOKE_MAP_LE:
	case YOKE_MAP_GT:
	case YOKE_MAP_GE: return 2;
	}
	return op >= YOKE_MAP_ADD && op <= YOKE_MAP_SHR ? 2 : 1;
}

// ---- functions of floating numbers ----

static double real_fn(int op, double a, double b)
{
	switch (op) {
	case YOKE_MAP_ADD: return a + b;
	case YOKE_MAP_SUB: return a - b;
	case YOKE_MAP_MUL: return a * b;
	case YOKE_MAP_SQUARE: return a * a;
	case YOKE_MAP_DIV: return a / b;
	case YOKE_MAP_RECIP: return 1 / a;
	case YOKE_MAP_POW: return pow(a, b);
	case YOKE_MAP_MOD: return fmod(a, b);
	case YOKE_MAP_MIN: return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
	case YOKE_MAP_MAX: return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
	case YOKE_MAP_NEG: return -a;
	case YOKE_MAP_ABS: return fabs(a);
	case YOKE_MAP_SIGN: return a > 0 ? 1 : a < 0 ? -1 : a;
	case YOKE_MAP_FLOOR: return floor(a);
	case YOKE_MAP_ROUND: return rint(a);
	case YOKE_MAP_CEIL: return ceil(a);
	case YOKE_MAP_EXP: return exp(a);
	case YOKE_MAP_LOG: return log(a);
	case YOKE_MAP_LOG1P: return log1p(a);
	case YOKE_MAP_EXPM1: return expm1(a);
	case YOKE_MAP_SQRT: return sqrt(a);
	case YOKE_MAP_RSQRT: return 1 / sqrt(a);
	case YOKE_MAP_SIN: return sin(a);
	case YOKE_MAP_COS: return cos(a);
	case YOKE_MAP_TANH: return tanh(a);
	case YOKE_MAP_SIGMOID: return a >= 0 ? 1 / (1 + exp(-a)) : exp(a) / (1 + exp(a));
	case YOKE_MAP_ERF: return erf(a);
	}
	return sqrt(-2 * log1p(-a)) * cos(6.283185307179586 * b); // NORMAL
}

// Maximum error of an instruction in ULPs, for exact operands.
static double ulps_of(int op)
{
	switch (op) {
	case YOKE_MAP_DIV:
	case YOKE_MAP_RECIP:
	case YOKE_MAP_SQRT: return 3;
	case YOKE_MAP_RSQRT: return 5;
	case YOKE_MAP_EXP:
	case YOKE_MAP_LOG:
	case YOKE_MAP_LOG1P:
	case YOKE_MAP_EXPM1: return 6;
	case YOKE_MAP_SIN:
	case YOKE_MAP_COS: return 6;
	case YOKE_MAP_TANH:
	case YOKE_MAP_SIGMOID: return 8;
	case YOKE_MAP_POW:
	case YOKE_MAP_ERF: return 16;
	case YOKE_MAP_NORMAL: return 64; // near the zeros of the cosine
	}
	return 0;
}

// Whether the quotient of MOD is the same integer, small enough to be distinguished from its
// neighbors, for all numbers in the intervals.
static bool same_quotient(const struct yk_expected *a, const struct yk_expected *b)
{
	double q = trunc(a->f / b->f);
	bool same = fabs(b->f) > b->tol && fabs(q) < 0x1p40;
	for (int k = 0; k < 4 && same; k++)
		same = trunc((a->f + (k & 1 ? a->tol : -a->tol)) /
			     (b->f + (k & 2 ? b->tol : -b->tol))) == q;
	return same;
}

// A number outside the dtype's range counts as infinite.
static bool same_kind(double a, double b)
{
	return isnan(a) == isnan(b) && isinf(a) == isinf(b);
}

static struct yk_expected real_insn(int op, const struct yk_expected *a,
				    const struct yk_expected *b, int dtype, bool flushes)
{
	const int wide = dtype == yoke_f64 ? yoke_f64 : yoke_f32; // dtype of the computation
	double raw = real_fn(op, a->f, b->f),
	       v = yk_num_round(yk_num_round(raw, wide), dtype);
	struct yk_expected r = { .f = v, .loose = a->loose || b->loose };
	double ulps = ulps_of(op), change = 0;

	if (a->tol > 0 || b->tol > 0)
		for (int k = 0; k < 4; k++) {
			double y = real_fn(op, a->f + (k & 1 ? a->tol : -a->tol),
					   b->f + (k & 2 ? b->tol : -b->tol));
			y = yk_num_round(yk_num_round(y, wide), dtype);
			if (!same_kind(y, v) || (isinf(y) && y != v))
				r.loose = true;
			else if (isfinite(y) && fabs(y - v) > change)
				change = fabs(y - v);
		}
	if (op == YOKE_MAP_MOD && (a->tol > 0 || b->tol > 0) && !same_quotient(a, b))
		r.loose = true;
	if (op == YOKE_MAP_SIN || op == YOKE_MAP_COS) // an interval may contain an extremum
		change += a->tol * a->tol;
	double own = ulps * 2 * yk_num_unit(wide) * fmax(fabs(v), yk_num_min(wide));
	if (op == YOKE_MAP_NORMAL)
		own = ulps * 2 * yk_num_unit(wide);
	r.tol = 1.5 * change + (isfinite(v) ? own : 0);
	if (r.tol > 0 && dtype != wide) // a small error may round the other way
		r.tol += 2 * yk_num_unit(dtype) * fmax(fabs(v), yk_num_min(dtype));
	if (flushes && fabs(v) < 2 * yk_num_min(wide))
		r.tol += yk_num_min(wide);
// a value that rounds to the largest number may overflow, and vice versa
	if (r.tol > 0 && isfinite(raw) && isinf(yk_num_round(fabs(raw) + r.tol, dtype)))
		r.loose = true;
	return r;
}

// ---- integers ----

static int64_t int_pow(int64_t a, int64_t b, int dtype)
{
	uint64_t r = 1, x = (uint64_t)a;
	if (b < 0)
		return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
	for (; b; b >>= 1, x *= x)
		if (b & 1)
			r *= x;
	return yk_num_wrap(r, dtype);
}

static int64_t int_insn(int op, int64_t a, int64_t b, int dtype)
{
	uint64_t x = (uint64_t)a, y = (uint64_t)b, r = x; // FLOOR, ROUND, CEIL
	const uint64_t bits = 8 * yoke_dtype_size(dtype);
	switch (op) {
	case YOKE_MAP_ADD: r = x + y; break;
	case YOKE_MAP_SUB: r = x - y; break;
	case YOKE_MAP_MUL: r = x * y; break;
	case YOKE_MAP_SQUARE: r = x * x; break;
	case YOKE_MAP_DIV: r = b == 0 ? 0 : b == -1 ? 0 - x : (uint64_t)(a / b); break;
	case YOKE_MAP_RECIP: r = a == 1 || a == -1 ? x : 0; break;
	case YOKE_MAP_POW: return int_pow(a, b, dtype);
	case YOKE_MAP_MIN: r = (uint64_t)(a < b ? a : b); break;
	case YOKE_MAP_MAX: r = (uint64_t)(a > b ? a : b); break;
	case YOKE_MAP_NEG: r = 0 - x; break;
	case YOKE_MAP_ABS: r = a < 0 ? 0 - x : x; break;
	case YOKE_MAP_SIGN: r = (uint64_t)((a > 0) - (a < 0)); break;
	case YOKE_MAP_MOD: r = b == 0 || b == -1 ? 0 : (uint64_t)(a % b); break;
	case YOKE_MAP_AND: r = x & y; break;
	case YOKE_MAP_OR: r = x | y; break;
	case YOKE_MAP_XOR: r = x ^ y; break;
	case YOKE_MAP_NOT: r = dtype == yoke_bool ? !x : ~x; break;
	case YOKE_MAP_SHL: r = y < bits ? x << y : 0; break;
	case YOKE_MAP_SHR: r = (uint64_t)(a >> (y < bits ? y : 63)); break;
	}
	return yk_num_wrap(r, dtype);
}

// ---- decisions and conversions ----

static bool test(int op, const struct yk_expected *a, const struct yk_expected *b, int from)
{
	bool f = yk_num_real(from);
	switch (op) {
	case YOKE_MAP_EQ: return f ? a->f == b->f : a->i == b->i;
	case YOKE_MAP_NE: return f ? a->f != b->f : a->i != b->i;
	case YOKE_MAP_LT: return f ? a->f < b->f : a->i < b->i;
	case YOKE_MAP_LE: return f ? a->f <= b->f : a->i <= b->i;
	case YOKE_MAP_GT: return f ? a->f > b->f : a->i > b->i;
	case YOKE_MAP_GE: return f ? a->f >= b->f : a->i >= b->i;
	}
	return !f || isfinite(a->f); // ISFINITE
}

static struct yk_expected test_insn(int op, const struct yk_expected *a,
				    const struct yk_expected *b, int from, bool flushes)
{
	struct yk_expected r = { .i = test(op, a, b, from), .loose = a->loose || b->loose };
	if (!yk_num_real(from))
		return r;
	double ea = a->tol, eb = b->tol;
	if (flushes && op != YOKE_MAP_ISFINITE) {
		double min = yk_num_min(from == yoke_f64 ? yoke_f64 : yoke_f32);
		ea += fabs(a->f) < min && a->f != 0 ? min : 0;
		eb += fabs(b->f) < min && b->f != 0 ? min : 0;
	}
	for (int k = 0; k < 4 && (ea > 0 || eb > 0); k++) {
		struct yk_expected x = { .f = a->f + (k & 1 ? ea : -ea) };
		struct yk_expected y = { .f = b->f + (k & 2 ? eb : -eb) };
		if (test(op, &x, &y, from) != (bool)r.i)
			r.loose = true;
	}
	if ((ea > 0 || eb > 0) && fabs(a->f - b->f) <= ea + eb)
		r.loose = true;
	return r;
}

static int64_t real_to_int(double x, int dtype)
{
	double low = dtype == yoke_i8  ? -128 :
		     dtype == yoke_u8  ? 0 :
		     dtype == yoke_i32 ? -0x1p31 :
					 -0x1p63;
	double high = dtype == yoke_i8  ? 127 :
		      dtype == yoke_u8  ? 255 :
		      dtype == yoke_i32 ? 0x1p31 - 1 :
					  0x1p63;
	double t = trunc(x);
	if (isnan(t))
		return 0;
	if (t >= high)
		return dtype == yoke_i64 ? INT64_MAX : (int64_t)high;
	return (int64_t)fmax(t, low);
}

// An integer converted to f32 or narrower rounds once; going through float64 would round a large
// i64 twice.
static double int_to_real(int64_t i, int dtype)
{
	if (dtype == yoke_f64)
		return (double)i;
	double hi = (double)i;
	int64_t back = hi >= 0x1p63 ? INT64_MAX : (int64_t)hi;
	if (back != i) { // round to odd, so that the second rounding is correct
		double toward = back > i ? -INFINITY : INFINITY,
		       other = nextafter(hi, toward);
		uint64_t bits = yk_num_bits((struct yk_num){ hi, 0 }, yoke_f64);
		hi = bits & 1 ? hi : other;
	}
	return yk_num_round(hi, dtype);
}

static struct yk_expected cast_insn(const struct yk_expected *a, int from, int to)
{
	struct yk_expected r = { .loose = a->loose };
	if (yk_num_real(to) && !yk_num_real(from)) {
		r.f = int_to_real(a->i, to);
	} else if (yk_num_real(to)) {
		r.f = yk_num_round(a->f, to);
		if (a->tol > 0 && isfinite(r.f))
			r.tol = a->tol +
				2 * yk_num_unit(to) * fmax(fabs(r.f), yk_num_min(to));
		if (a->tol > 0 && isinf(yk_num_round(fabs(a->f) + a->tol, to)) &&
		    isfinite(a->f))
			r.loose = true;
	} else if (!yk_num_real(from)) {
		r.i = yk_num_wrap((uint64_t)a->i, to);
	} else if (to == yoke_bool) {
		r.i = a->f != 0;
		r.loose |= a->tol > 0 && fabs(a->f) <= a->tol;
	} else {
		r.i = real_to_int(a->f, to);
		r.loose |= real_to_int(a->f - a->tol, to) != r.i ||
			   real_to_int(a->f + a->tol, to) != r.i;
	}
	return r;
}

static struct yk_expected select_insn(const struct yk_expected *c, const struct yk_expected *a,
				  const struct yk_expected *b, int dtype)
{
	struct yk_expected r = c->i ? *a : *b;
	bool equal = yk_num_real(dtype) ? a->f == b->f && a->tol == b->tol : a->i == b->i;
	r.loose |= c->loose && !equal;
	return r;
}

// ---- a program ----

static struct yk_expected number(uint64_t bits, int dtype)
{
	struct yk_num x = yk_num_of_bits(bits, dtype);
	return (struct yk_expected){ .f = x.f, .i = x.i };
}

static struct yk_expected at_insn(const struct yoke_map *m, int k, const struct yk_expected *in,
			      int64_t index, bool flushes, const struct yk_expected *v)
{
	const struct yoke_insn *s = &m->insn[k];
	const int n = operands_of(s->op), dtype = s->dtype,
		  from = m->insn[s->a].dtype;
	const struct yk_expected *a = n > 0 ? &v[s->a] : NULL, *b = n > 1 ? &v[s->b] : a;
	struct yk_expected r = { .loose = n > 0 && (a->loose || b->loose) };

	switch (s->op) {
	case YOKE_MAP_INPUT: return in[s->a];
	case YOKE_MAP_CONST: return number(m->konst[s->a], dtype);
	case YOKE_MAP_INDEX: r.i = index; return r;
	case YOKE_MAP_RAND:
		r.i = (int32_t)yk_philox((uint64_t)a->i, (uint64_t)b->i,
					 (uint64_t)v[s->c].i);
		r.loose |= v[s->c].loose;
		return r;
	case YOKE_MAP_UNIFORM:
		r.f = yk_num_round((double)((uint32_t)a->i >> 8) * 0x1p-24, dtype);
		return r;
	case YOKE_MAP_SELECT: return select_insn(a, b, &v[s->c], dtype);
	case YOKE_MAP_CAST: return cast_insn(a, from, dtype);
	}
	if (s->op >= YOKE_MAP_EQ)
		return test_insn(s->op, a, b, from, flushes);
	if (yk_num_real(dtype))
		return real_insn(s->op, a, b, dtype, flushes);
	r.i = int_insn(s->op, a->i, b->i, dtype);
	return r;
}

void yk_program_at(const struct yoke_map *m, const struct yk_expected *in, int64_t index,
		   bool flushes, struct yk_expected *regs)
{
	for (int k = 0; k < m->ninsn; k++)
		regs[k] = at_insn(m, k, in, index, flushes, regs);
}
