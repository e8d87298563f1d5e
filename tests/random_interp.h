// SPDX-License-Identifier: Apache-2.0
// The reference of tests/random.c: tensors as values, each operation a loop over float64 or
// int64.
// Every element carries a bound on the error of a correct engine. Operations that IEEE 754 fixes
// (sums and products of two numbers, rounding, comparing, moving) keep the bound 0 and must match
// to the bit; elsewhere bounds add up, and where a result is undetermined (a comparison of two
// nearly equal numbers) the bound is NaN, which accepts any value.
#ifndef YK_RANDOM_INTERP_H
#define YK_RANDOM_INTERP_H

#include "values.h"
#include "yoke.h"

union cell {
	double d;  // floating dtypes
	int64_t i; // integers, bool
};

struct val {
	int dtype, rank;
	int64_t dims[YOKE_MAX_RANK], n;
	union cell *v;
	double *e; // bounds; 0 or NaN for integers
	struct val *next;
};

#define ZERO 1e-300 // bound of a zero of undetermined sign

static struct val *vals; // all there are, for vals_free

static struct val *val_new(int dtype, int rank, const int64_t *dims)
{
	struct val *x = calloc(1, sizeof *x);
	*x = (struct val){ .dtype = dtype, .rank = rank, .n = 1, .next = vals };
	for (int i = 0; i < rank; i++)
		x->n *= x->dims[i] = dims[i];
	x->v = calloc((size_t)x->n + 1, sizeof *x->v);
	x->e = calloc((size_t)x->n + 1, sizeof *x->e);
	return vals = x;
}

static void vals_free(void)
{
	while (vals) {
		struct val *next = vals->next;
		free(vals->v);
		free(vals->e);
		free(vals);
		vals = next;
	}
}

static inline double eps(int dtype)
{
	return dtype == yoke_f16  ? 0x1p-10 :
	       dtype == yoke_bf16 ? 0x1p-7 :
	       dtype == yoke_f32  ? 0x1p-23 :
				    0x1p-52;
}

static inline double huge(int dtype)
{
	return dtype == yoke_f16 ? 3e4 : dtype == yoke_f64 ? 1e300 : 1e36;
}

// Additional error of an inexact operation for subnormal numbers.
static inline double tiny(int dtype)
{
	return dtype == yoke_f16  ? 0x1p-23 :
	       dtype == yoke_bf16 ? 0x1p-130 :
	       dtype == yoke_f32  ? 0x1p-140 :
				    0x1p-1060;
}

static inline double larger(double a, double b)
{
	return isnan(a) || isnan(b) ? NAN : fmax(a, b);
}

// Element k is y, rounded to the dtype; e bounds the error inherited from the operands. ulps: the
// operation's own error.
static void set_real(struct val *x, int64_t k, double y, double e, double ulps)
{
	if (e == 0 && !isfinite(y))
		ulps = 0;
	if (e != 0 && ulps < 1)
		ulps = 1;
	if (ulps > 0)
		e += ulps * eps(x->dtype) * fabs(y) + tiny(x->dtype);
	if (e > 0 && fabs(y) > huge(x->dtype)) // may overflow in intermediate results
		e = NAN;
	x->v[k].d = round_real(x->dtype, y);
	x->e[k] = e;
}

static void set_int(struct val *x, int64_t k, uint64_t y, double e)
{
	x->v[k].i = yk_num_wrap(y, x->dtype);
	x->e[k] = e == 0 ? 0 : NAN;
}

static void set_cell(struct val *y, int64_t to, const struct val *x, int64_t from)
{
	y->v[to] = x->v[from];
	y->e[to] = x->e[from];
}

// Steps through the indices of dims in row-major order; false after the last.
static bool next_index(int rank, const int64_t *dims, int64_t *ix)
{
	for (int i = rank - 1; i >= 0; i--) {
		if (++ix[i] < dims[i])
			return true;
		ix[i] = 0;
	}
	return false;
}

// Offset of x's element for index ix of a space of this rank to which it broadcasts.
static int64_t at(const struct val *x, int rank, const int64_t *ix)
{
	int64_t k = 0;
	for (int i = 0; i < x->rank; i++)
		k = k * x->dims[i] + (x->dims[i] == 1 ? 0 : ix[i + rank - x->rank]);
	return k;
}

// ---- elementwise ----

// X(name, yoke_ function), by operands and accuracy
#define OPS_WHOLE(X) \
	X(NEG, neg) \
	X(ABS, abs) X(SIGN, sign) X(FLOOR, floor) X(ROUND, round) X(CEIL, ceil) \
		X(SQUARE, square)
#define OPS_EXACT(X) OPS_WHOLE(X) X(STOP_GRAD, stop_grad)
#define OPS_NEAR(X) \
	X(EXP, exp) X(LOG, log) X(LOG1P, log1p) X(EXPM1, expm1) X(SQRT, sqrt) X(RSQRT, rsqrt) \
	X(RECIP, recip) X(SIN, sin) X(COS, cos) X(TANH, tanh) X(SIGMOID, sigmoid) X(ERF, erf)
#define OPS_BINARY(X) \
	X(ADD, add) X(SUB, sub) X(MUL, mul) X(DIV, div) X(MIN, min) X(MAX, max) X(MOD, mod) \
	X(POW, pow)
#define OPS_BITS(X) X(SHL, shl) X(SHR, shr) X(AND, and) X(OR, or) X(XOR, xor)
#define OPS_COMPARE(X) \
	X(EQ, eq) X(NE, ne) X(LT, lt) X(LE, le) X(GT, gt) X(GE, ge)
#define OPS_REDUCE(X) \
	X(SUM, sum) X(PROD, prod) X(MEAN, mean) X(REDUCE_MAX, reduce_max) \
	X(REDUCE_MIN, reduce_min)
#define OPS_ARG(X) X(ARGMAX, argmax) X(ARGMIN, argmin)
#define OPS_TEST(X) X(NOT, not ) X(ISFINITE, isfinite) X(CONTIGUOUS, contiguous)
#define OPS_TRUTH(X) X(ANY, any) X(ALL, all)
#define OPS_SCAN(X) X(CUMSUM, cumsum) X(CUMPROD, cumprod)
#define OPS_REST(X) \
	X(CLAMP, clamp) X(SORT, sort) X(ORDER, order) X(SELECT, select) X(CAST, cast) \
	X(MATMUL, matmul) X(RESHAPE, reshape) X(BITCAST, bitcast) X(PERMUTE, permute) \
	X(BROADCAST, broadcast_to) X(SLICE, slice) X(FLIP, flip) X(PAD, pad) X(CONCAT, concat) \
	X(SLICE_UPDATE, slice_update) X(GATHER, gather) X(SCATTER_ADD, scatter_add) \
	X(FULL, full) X(IOTA, iota)
#define OPS(X) \
	OPS_EXACT(X) OPS_NEAR(X) OPS_BINARY(X) OPS_BITS(X) OPS_COMPARE(X) OPS_REDUCE(X) \
	OPS_ARG(X) OPS_TRUTH(X) OPS_TEST(X) OPS_SCAN(X) OPS_REST(X)
#define NUMBER(name, function) name,
enum op { OPS(NUMBER) OPS_END };

#define CODE(name, function) [name] = YOKE_MAP_##name,
static const uint16_t codes[OPS_END] = {
	OPS_WHOLE(CODE) OPS_NEAR(CODE) OPS_BINARY(CODE) OPS_BITS(CODE) OPS_COMPARE(CODE)[NOT] =
		YOKE_MAP_NOT,
	[ISFINITE] = YOKE_MAP_ISFINITE, [SELECT] = YOKE_MAP_SELECT, [CAST] = YOKE_MAP_CAST
};

static struct yk_expected known(const struct val *x, int64_t k)
{
	struct yk_expected w = { .loose = isnan(x->e[k]), .tol = isnan(x->e[k]) ? 0 : x->e[k] };
	if (is_real(x->dtype))
		w.f = x->v[k].d;
	else
		w.i = x->v[k].i;
	return w;
}

// Is a function undetermined between the ends of its argument's interval?
static bool is_vague(int code, const struct yk_expected *in)
{
	const struct yk_expected *x = &in[code == YOKE_MAP_DIV];
	switch (code) {
	case YOKE_MAP_RSQRT: return !(fabs(x->f) > x->tol); // of -0 it has any sign
	case YOKE_MAP_RECIP:
	case YOKE_MAP_DIV: return x->tol > 0 && !(fabs(x->f) > x->tol);
	case YOKE_MAP_SIN:
	case YOKE_MAP_COS: return fabs(x->f) > 1e4; // large arguments are reduced coarsely
	}
	return false;
}

// An op's instruction on operands broadcast to dims, by the conformance interpreter.
static struct val *do_map(int op, int dtype, struct val *const *x, int n, int rank,
			  const int64_t *dims)
{
	struct yoke_map m = { .size = sizeof m,
			      .ninsn = (uint16_t)(n + 1),
			      .nin = (uint16_t)n,
			      .nout = 1,
			      .out = { (uint16_t)n } };
	struct val *y = val_new(dtype, rank, dims);
	int64_t ix[YOKE_MAX_RANK] = { 0 };
	const int code = codes[op];
	const bool zero = op == SIGN || op == MIN || op == MAX; // may have either sign

	for (int i = 0; i < n; i++)
		m.insn[i] = (struct yoke_insn){
			YOKE_MAP_INPUT, (uint8_t)x[i]->dtype, 0, (uint16_t)i, 0, 0
		};
	m.insn[n] = (struct yoke_insn){ (uint16_t)code, (uint8_t)dtype, 0, 0, n > 1, 2 };
	for (int64_t k = 0; k < y->n; k++, next_index(rank, dims, ix)) {
		struct yk_expected in[3] = { { 0 } }, v[4];
		for (int i = 0; i < n; i++)
			in[i] = known(x[i], at(x[i], rank, ix));
		yk_program_at(&m, in, 0, false, v);
		bool vague = v[n].loose || (is_real(dtype) && is_vague(code, in));
		if (is_real(dtype))
			set_real(y, k, v[n].f,
				 vague ? NAN : v[n].tol + (zero && v[n].f == 0 ? ZERO : 0), 0);
		else
			set_int(y, k, (uint64_t)v[n].i, vague);
	}
	return y;
}

// ---- reductions, contractions ----

// Adds x to element k of a sum or product; n: maximum number of addends.
static void accumulate(int op, struct val *y, int64_t k, const struct val *x, int64_t j)
{
	if (!is_real(y->dtype)) {
		uint64_t p = (uint64_t)y->v[k].i, q = (uint64_t)x->v[j].i;
		set_int(y, k, op == PROD ? p * q : p + q, y->e[k] + x->e[j]);
		return;
	}
	double a = y->v[k].d, b = x->v[j].d, unit = eps(x->dtype);
	double e = op == PROD ? fabs(a) * x->e[j] + fabs(b) * y->e[k] +
					x->e[j] * y->e[k] + 2 * unit * fabs(a * b) :
				y->e[k] + x->e[j] +
					unit * (fabs(a) + fabs(b)); // whatever the order
	double next = op == PROD ? a * b : a + b, size = fabs(next);
	bool strange = size > huge(x->dtype) ||
		       (op == PROD && size != 0 && size < 1 / huge(x->dtype));
	if (isnan(b) || isinf(b))
		e = x->e[j] == 0 ? y->e[k] : NAN;
	y->v[k].d = next;
	y->e[k] = strange && isfinite(next)      ? NAN :
		  isfinite(b) && !isfinite(next) ? y->e[k] :
						   e;
}

// Is x's element j ahead of i in this reduction? NAN when their bounds leave it undetermined.
static double ahead(int op, const struct val *x, int64_t j, int64_t i)
{
	bool largest = op == REDUCE_MAX || op == ARGMAX;
	double e = x->e[i] + x->e[j];
	if (!is_real(x->dtype))
		return e != 0 ? NAN :
		       largest   ? x->v[j].i > x->v[i].i :
				x->v[j].i < x->v[i].i;
	double a = x->v[j].d, b = x->v[i].d;
	// the first NaN wins; a bound applies to the numbers beside it
	if (isnan(b) && !isnan(x->e[i]))
		return 0;
	if (isnan(a) && !isnan(x->e[j]) && !isnan(x->e[i]))
		return 1;
	if (e != 0 && !(fabs(a - b) > e))
		return NAN;
	return largest ? a > b : a < b;
}

// dims: of the result with the reduced axes kept; the caller may change rank and shape
static struct val *do_reduce(int op, const struct val *x, unsigned axes)
{
	bool arg = op == ARGMAX || op == ARGMIN, picks = op >= REDUCE_MAX;
	int64_t dims[YOKE_MAX_RANK], ix[YOKE_MAX_RANK] = { 0 }, n = 1;
	for (int i = 0; i < x->rank; i++) {
		dims[i] = axes >> i & 1 ? 1 : x->dims[i];
		n *= axes >> i & 1 ? x->dims[i] : 1;
	}
	struct val *y = val_new(arg ? yoke_i64 : x->dtype, x->rank, dims);
	int64_t *best = calloc((size_t)y->n + 1, sizeof *best);
	double *open = calloc((size_t)y->n + 1, sizeof *open);
	for (int64_t k = 0; k < y->n; k++) {
		best[k] = -1;
		if (is_real(y->dtype))
			y->v[k].d = op == PROD;
		else
			y->v[k].i = op == PROD;
	}
	for (int64_t j = 0; j < x->n; j++, next_index(x->rank, x->dims, ix)) {
		int64_t k = at(y, x->rank, ix);
		if (!picks) {
			accumulate(op, y, k, x, j);
			continue;
		}
		double wins = best[k] < 0 ? 1 : ahead(op, x, j, best[k]);
		if (isnan(wins)) { // either is possible
			open[k] = larger(open[k], x->e[j]) +
				  (arg || !is_real(x->dtype) ? NAN : x->e[best[k]]);
			wins = (x->v[j].d > x->v[best[k]].d) == (op == REDUCE_MAX);
		}
		if (wins == 1)
			best[k] = j;
	}
	memset(ix, 0, sizeof ix);
	for (int64_t j = 0; j < x->n && arg; j++, next_index(x->rank, x->dims, ix)) {
		int64_t k = at(y, x->rank, ix);
		for (int i = 0; i < x->rank; i++)
			if (axes >> i & 1 && best[k] == j)
				y->v[k].i = ix[i];
		y->e[k] = open[k] + (best[k] == j ? x->e[j] * 0 : 0);
	}
	for (int64_t k = 0; k < y->n; k++) {
		if (picks && !arg) {
			set_cell(y, k, x, best[k]);
			y->e[k] += open[k];
			if (is_real(y->dtype) && y->v[k].d == 0)
				y->e[k] += ZERO;
		} else if (!picks && is_real(y->dtype)) {
			double d = op == MEAN ? y->v[k].d / (double)n : y->v[k].d;
			set_real(y, k, d, op == MEAN && n ? y->e[k] / (double)n : y->e[k],
				 4);
			if (op == PROD &&
			    n > (isfinite(d) ? 40 : 2)) // factors may over- or underflow
				y->e[k] = NAN;
		}
	}
	free(best);
	free(open);
	return y;
}

// dims: as in do_reduce
static struct val *do_truth(int op, const struct val *x, unsigned axes)
{
	int64_t dims[YOKE_MAX_RANK], ix[YOKE_MAX_RANK] = { 0 };
	for (int i = 0; i < x->rank; i++)
		dims[i] = axes >> i & 1 ? 1 : x->dims[i];
	struct val *y = val_new(yoke_bool, x->rank, dims);
	for (int64_t k = 0; k < y->n; k++)
		y->v[k].i = op == ALL;
	for (int64_t j = 0; j < x->n; j++, next_index(x->rank, x->dims, ix)) {
		int64_t k = at(y, x->rank, ix);
		bool b = x->v[j].i;
		set_int(y, k, op == ALL ? y->v[k].i && b : y->v[k].i || b,
			y->e[k] + x->e[j]);
	}
	return y;
}

// Line l along an axis: its first element and its stride.
static int64_t line_of(const struct val *x, int axis, int64_t l, int64_t *inner)
{
	*inner = 1;
	for (int i = axis + 1; i < x->rank; i++)
		*inner *= x->dims[i];
	return l / *inner * *inner * x->dims[axis] + l % *inner;
}

static struct val *do_scan(int op, const struct val *x, int axis, bool reverse)
{
	struct val *y = val_new(x->dtype, x->rank, x->dims);
	int64_t n = x->dims[axis], inner;
	for (int64_t l = 0; n && l < x->n / n; l++) {
		int64_t first = line_of(x, axis, l, &inner), last = -1;
		for (int64_t i = 0; i < n; i++) {
			int64_t k = first + (reverse ? n - 1 - i : i) * inner;
			if (last >= 0)
				set_cell(y, k, y, last);
			else if (is_real(x->dtype))
				y->v[k].d = op == CUMPROD;
			else
				y->v[k].i = op == CUMPROD;
			accumulate(op == CUMPROD ? PROD : SUM, y, k, x, k);
			last = k;
		}
		for (int64_t i = 0; i < n && is_real(x->dtype); i++) {
			int64_t k = first + (reverse ? n - 1 - i : i) * inner;
			double d = y->v[k].d;
			set_real(y, k, d, y->e[k], 4);
			if (op == CUMPROD && i >= (isfinite(d) ? 40 : 2))
				y->e[k] = NAN; // parts may over- or underflow
		}
	}
	return y;
}

// Insertion sort, which is stable. Bounds: a sorted value moves by no more than the largest change
// of any; its index is undetermined.
static struct val *do_sort(int op, const struct val *x, int axis, bool descending)
{
	struct val *y = val_new(op == ORDER ? yoke_i64 : x->dtype, x->rank, x->dims);
	int64_t n = x->dims[axis], inner;
	int64_t *order = calloc((size_t)n + 1, sizeof *order);
	for (int64_t l = 0; n && l < x->n / n; l++) {
		int64_t first = line_of(x, axis, l, &inner);
		double largest = 0;
		for (int64_t i = 0; i < n; i++) {
			const union cell *v = &x->v[first + i * inner];
			int64_t k = i;
			for (; k > 0; k--) {
				const union cell *w = &x->v[first + order[k - 1] * inner];
				bool less =
					!is_real(x->dtype) ?
						(descending ? v->i > w->i : v->i < w->i) :
					isnan(w->d) ? !isnan(v->d) :
					descending  ? v->d > w->d :
						      v->d < w->d;
				if (!less)
					break;
				order[k] = order[k - 1];
			}
			order[k] = i;
			// a NaN with a bound may be a number, at any position
			double e = x->e[first + i * inner];
			largest = larger(
				largest,
				e != 0 && is_real(x->dtype) && !isfinite(v->d) ? NAN : e);
		}
		for (int64_t i = 0; i < n; i++) {
			int64_t k = first + i * inner;
			if (op == ORDER)
				set_int(y, k, (uint64_t)order[i], largest);
			else
				set_cell(y, k, x, first + order[i] * inner);
			if (op == SORT)
				y->e[k] = largest;
		}
	}
	free(order);
	return y;
}

// The matrices begin at element i of a and j of b, with these strides.
static void dot(struct val *y, int64_t to, const struct val *a, int64_t i, int64_t as,
		const struct val *b, int64_t j, int64_t bs, int64_t n)
{
	double sum = 0, e = 0, size = 0;
	uint64_t whole = 0;
	for (int64_t k = 0; k < n; k++, i += as, j += bs) {
		double ea = a->e[i], eb = b->e[j];
		if (!is_real(y->dtype)) {
			whole += (uint64_t)a->v[i].i * (uint64_t)b->v[j].i;
			e += ea + eb;
			continue;
		}
		double p = a->v[i].d, q = b->v[j].d;
		sum += p * q;
		size += fabs(p * q);
		e += ea != 0 || eb != 0 ? fabs(p) * eb + fabs(q) * ea + ea * eb : 0;
		if (y->dtype == yoke_bf16 && (fabs(p) < 0x1p-126 || fabs(q) < 0x1p-126))
			e += fabs(p * q); // a product of bf16 may flush them to 0
	}
	if (!is_real(y->dtype))
		set_int(y, to, whole, e);
	else if (!isfinite(size) || !isfinite(sum))
		set_real(y, to, sum, NAN, 0); // packed zeros times infinity, and the like
	else
		set_real(y, to, sum, e + (double)n * eps(y->dtype) * size, 4);
}

static struct val *do_matmul(const struct val *a, const struct val *b, unsigned flags,
			     int rank, const int64_t *dims)
{
	struct val *y = val_new(a->dtype, rank, dims);
	int64_t ix[YOKE_MAX_RANK] = { 0 },
		k = a->dims[a->rank - (flags & YOKE_TA ? 2 : 1)];
	int64_t sa = a->dims[a->rank - 1], sb = b->dims[b->rank - 1];
	for (int64_t to = 0; to < y->n; to++, next_index(rank, dims, ix)) {
		int64_t m = ix[rank - 2], n = ix[rank - 1], i = 0, j = 0;
		for (int l = 0; l < rank - 2; l++) { // matrices before this one
			int la = l - (rank - a->rank), lb = l - (rank - b->rank);
			i = la < 0 ? 0 : i * a->dims[la] + (a->dims[la] == 1 ? 0 : ix[l]);
			j = lb < 0 ? 0 : j * b->dims[lb] + (b->dims[lb] == 1 ? 0 : ix[l]);
		}
		i *= sa * a->dims[a->rank - 2];
		j *= sb * b->dims[b->rank - 2];
		dot(y, to, a, flags & YOKE_TA ? i + m : i + m * sa,
		    flags & YOKE_TA ? sa : 1, b, flags & YOKE_TB ? j + n * sb : j + n,
		    flags & YOKE_TB ? 1 : sb, k);
	}
	return y;
}

// ---- moves ----

// to: y[start + step i] = x[i]; else y[i] = x[start + step i]
static void copy_part(struct val *y, const struct val *x, const int64_t *start,
		      const int64_t *step, bool to)
{
	const struct val *part = to ? x : y, *whole = to ? y : x;
	int64_t ix[YOKE_MAX_RANK] = { 0 };
	for (int64_t k = 0; k < part->n; k++, next_index(part->rank, part->dims, ix)) {
		int64_t w = 0;
		for (int i = 0; i < part->rank; i++)
			w = w * whole->dims[i] + start[i] + step[i] * ix[i];
		set_cell(y, to ? w : k, x, to ? k : w);
	}
}

static struct val *do_same(const struct val *x, int rank, const int64_t *dims)
{
	struct val *y = val_new(x->dtype, rank, dims);
	int64_t ix[YOKE_MAX_RANK] = { 0 };
	for (int64_t k = 0; k < y->n; k++, next_index(rank, dims, ix))
		set_cell(y, k, x, y->n == x->n ? k : at(x, rank, ix));
	return y;
}

// The bytes of x as elements of another dtype; the bytes of a NaN, or the sign of a zero, are
// undetermined.
static struct val *do_bitcast(const struct val *x, int dtype, int rank, const int64_t *dims)
{
	const int64_t was = (int64_t)yoke_dtype_size(x->dtype),
		      size = (int64_t)yoke_dtype_size(dtype);
	struct val *y = val_new(dtype, rank, dims);
	char *bytes = malloc((size_t)(x->n * was) + 1);
	for (int64_t k = 0; k < x->n; k++)
		store(x->dtype, (struct value){ is_real(x->dtype) ? x->v[k].d : 0, x->v[k].i },
		      bytes + k * was);
	for (int64_t k = 0; k < y->n; k++) {
		struct value v = load(dtype, bytes + k * size);
		if (is_real(dtype))
			y->v[k].d = v.r;
		else
			y->v[k].i = v.i;
		for (int64_t i = k * size / was; i * was < (k + 1) * size; i++)
			if (x->e[i] != 0 || (is_real(x->dtype) && !(fabs(x->v[i].d) > 0)))
				y->e[k] = NAN;
	}
	free(bytes);
	return y;
}

static struct val *do_permute(const struct val *x, const int64_t *order)
{
	int64_t dims[YOKE_MAX_RANK], ix[YOKE_MAX_RANK] = { 0 }, from[YOKE_MAX_RANK];
	for (int i = 0; i < x->rank; i++)
		dims[i] = x->dims[order[i]];
	struct val *y = val_new(x->dtype, x->rank, dims);
	for (int64_t k = 0; k < y->n; k++, next_index(y->rank, dims, ix)) {
		for (int i = 0; i < x->rank; i++)
			from[order[i]] = ix[i];
		set_cell(y, k, x, at(x, x->rank, from));
	}
	return y;
}

// Rows are x.dims[axis] elements of `inner` each, `outer` times.
static struct val *do_gather(const struct val *x, const struct val *idx, int axis,
			     int rank, const int64_t *dims)
{
	struct val *y = val_new(x->dtype, rank, dims);
	int64_t inner = 1, outer = 1;
	for (int i = 0; i < x->rank; i++)
		*(i < axis ? &outer : &inner) *= i == axis ? 1 : x->dims[i];
	for (int64_t o = 0, k = 0; o < outer; o++)
		for (int64_t r = 0; r < idx->n; r++)
			for (int64_t i = 0; i < inner; i++, k++) {
				set_cell(y, k, x,
					 (o * x->dims[axis] + idx->v[r].i) * inner + i);
				if (idx->e[r] != 0)
					y->e[k] = NAN;
			}
	return y;
}

static struct val *do_scatter_add(const struct val *x, const struct val *idx,
				  const struct val *v)
{
	struct val *y = do_same(x, x->rank, x->dims);
	int64_t inner = x->dims[0] ? x->n / x->dims[0] : 0;
	for (int64_t r = 0; r < idx->n; r++)
		for (int64_t i = 0; i < inner; i++)
			accumulate(SUM, y, idx->v[r].i * inner + i, v, r * inner + i);
	for (int64_t k = 0; k < y->n; k++) {
		if (is_real(y->dtype))
			set_real(y, k, y->v[k].d, y->e[k], 2);
		for (int64_t r = 0; r < idx->n; r++)
			if (idx->e[r] != 0)
				y->e[k] = NAN;
	}
	return y;
}

#endif
