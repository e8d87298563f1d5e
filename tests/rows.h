// SPDX-License-Identifier: Apache-2.0
// Helpers shared by the tests of ops: arrays of random values of any dtype, in every layout that
// an operand can have, and comparison of a result with a reference.
#ifndef YK_TEST_ROWS_H
#define YK_TEST_ROWS_H

#include "values.h"
#include "yoke.h"

enum layout { PLAIN, PERMUTED, SLICED, SPREAD, RANK8, EMPTY, ONE, LAYOUTS };

static const char *const layout_name[] = { "contiguous", "permuted", "sliced",
					   "broadcast",  "rank 8",   "empty",
					   "one element" };

enum { ELEMENTS = 512 };

struct arr { // logical values, row major
	int dtype, rank;
	int64_t dims[YOKE_MAX_RANK], n;
	struct value v[ELEMENTS];
	enum layout layout;
	yoke_tensor *base; // the operand that view_of makes
};

// A value of the dtype in -most .. most, or, with odd, sometimes an extreme of its range.
static inline struct value any_value(int d, double max, bool odd)
{
	static const double edge[] = { 0x1p-149,   -0x1p-140, 0x1p-133,       -0x1p-127,
				       0x1p-1074,  0x1p-1030, 0x1.fffffep127, 65504,
				       0x1.fep127, 0x1p-15,   -0.0,           0x1.8p-24 };
	struct value v = { 0, 0 };
	if (odd && rnd_int(0, 5) == 0) {
		v.r = round_real(d, edge[rnd() % (sizeof edge / sizeof *edge)]);
		return is_real(d) ? v : random_value(d);
	}
	if (odd && rnd_int(0, 1))
		return random_value(d);
	if (is_real(d))
		v.r = round_real(d, rnd_real(-max, max));
	else
		v.i = yk_num_wrap((uint64_t)rnd_int(-(int64_t)max, (int64_t)max), d);
	return v;
}

// A tensor on the host whose elements are at at p, in its dtype.
static inline yoke_tensor *tensor_of(int d, int rank, const int64_t *dims,
				     const struct value *v)
{
	static unsigned char bytes[8 * ELEMENTS];
	int64_t n = 1;
	for (int i = 0; i < rank; i++)
		n *= dims[i];
	for (int64_t i = 0; i < n; i++)
		store(d, v[i], bytes + (size_t)i * yoke_dtype_size(d));
	return yoke_from(d, rank, dims, bytes);
}

static inline void set_dims(struct arr *a, int dtype, int rank, const int64_t *dims)
{
	a->dtype = dtype;
	a->rank = rank;
	a->n = 1;
	for (int i = 0; i < rank; i++)
		a->n *= a->dims[i] = dims[i];
}

// Row-major number of an index, and the next index; false behind the last.
static inline int64_t number_of(const struct arr *a, const int64_t *ix)
{
	int64_t k = 0;
	for (int i = 0; i < a->rank; i++)
		k = k * a->dims[i] + ix[i];
	return k;
}

static inline bool next_index(int rank, const int64_t *dims, int64_t *ix)
{
	for (int i = rank - 1; i >= 0; i--) {
		if (++ix[i] < dims[i])
			return true;
		ix[i] = 0;
	}
	return false;
}

// The tensor of a in the given layout; made anew for each evaluation, which releases views.
static inline yoke_tensor *view_of(const struct arr *a)
{
	yoke_tensor *t = a->base;
	switch (a->layout) {
	case PERMUTED: return yoke_permute(t, (int[]){ 1, 2, 0 });
	case SLICED:
		t = yoke_slice(yoke_slice(t, 1, 0, 10, 2), 2, 1, 15, 2);
		return yoke_flip(t, YOKE_AXIS(0) | YOKE_AXIS(2));
	case SPREAD: return yoke_broadcast_to(t, 3, a->dims);
	case RANK8: return yoke_permute(t, (int[]){ 7, 6, 5, 4, 3, 2, 1, 0 });
	default: return t;
	}
}

// The values of a as they are now, contiguous.
static inline void lay_plain(struct arr *a)
{
	a->layout = PLAIN;
	a->base = tensor_of(a->dtype, a->rank, a->dims, a->v);
}

// Offset of element ix of a layout in its base.
static inline int64_t in_base(enum layout layout, const int64_t *ix)
{
	static const int64_t turned[8] = { 3, 1, 2, 1, 3, 1, 2, 2 };
	int64_t at = 0;
	switch (layout) {
	case PERMUTED: return (ix[2] * 3 + ix[0]) * 5 + ix[1];
	case SLICED: return ((2 - ix[0]) * 10 + 2 * ix[1]) * 16 + 13 - 2 * ix[2];
	case SPREAD: return ix[1];
	default:
		for (int i = 0; i < 8; i++)
			at = at * turned[i] + ix[7 - i];
		return at;
	}
}

// a gets random values, and a tensor of them in the given `layout`.
static inline void make(struct arr *a, int d, enum layout layout, double max, bool odd)
{
	static struct value base[ELEMENTS];
	static const struct {
		int rank, base_rank;
		int64_t dims[8], base[8];
	} shape[LAYOUTS] = {
		[PLAIN] = { 3, 0, { 3, 5, 7 }, { 0 } },
		[PERMUTED] = { 3, 3, { 3, 5, 7 }, { 7, 3, 5 } },
		[SLICED] = { 3, 3, { 3, 5, 7 }, { 3, 10, 16 } },
		[SPREAD] = { 3, 2, { 3, 5, 7 }, { 5, 1 } },
		[RANK8] = { 8,
			    8,
			    { 2, 2, 1, 3, 1, 2, 1, 3 },
			    { 3, 1, 2, 1, 3, 1, 2, 2 } },
		[EMPTY] = { 3, 0, { 3, 0, 5 }, { 0 } },
		[ONE] = { 2, 0, { 1, 1 }, { 0 } },
	};
	int64_t ix[YOKE_MAX_RANK] = { 0 };
	for (size_t i = 0; i < ELEMENTS; i++)
		base[i] = any_value(d, max, odd);
	set_dims(a, d, shape[layout].rank, shape[layout].dims);
	memcpy(a->v, base, (size_t)a->n * sizeof *base);
	a->layout = layout;
	if (!shape[layout].base_rank) {
		lay_plain(a);
		return;
	}
	a->base = tensor_of(d, shape[layout].base_rank, shape[layout].base, base);
	for (int64_t k = 0; k < a->n; k++, next_index(a->rank, a->dims, ix))
		a->v[k] = base[in_base(layout, ix)];
}

// How a result is compared: relative to scale (or |want|); loose: zeros of any sign are equal.
struct bound {
	double relative, absolute;
	bool loose;
};
static const struct bound exact = { 0, 0, false }, exact_but_sign = { 0, 0, true };

// Half a unit in the last place of a dtype, relative.
static inline double unit_of(int d)
{
	return d == yoke_f64 ? 0x1p-53 :
	       d == yoke_f32 ? 0x1p-24 :
	       d == yoke_f16 ? 0x1p-11 :
			       0x1p-8;
}

// Smallest normal number.
static inline double min_normal(int d)
{
	return d == yoke_f64 ? 0x1p-1022 : d == yoke_f16 ? 0x1p-14 : 0x1p-126;
}

static inline bool agrees(int d, struct value got, struct value want, struct bound b)
{
	if (!is_real(d))
		return got.i == want.i;
	if (isnan(want.r) || isnan(got.r))
		return isnan(want.r) && isnan(got.r);
	if (got.r == want.r)
		return b.loose || want.r != 0 || signbit(got.r) == signbit(want.r);
	if (isinf(want.r) || isinf(got.r)) { // at the limit of the range either is possible
		double max = d == yoke_f16 ? 65504 :
			      d == yoke_f64 ? 0x1.fffffffffffffp1023 :
			      d == yoke_f32 ? 0x1.fffffep127 :
					      0x1.fep127;
		double less = isinf(want.r) ? got.r : want.r;
		return b.relative > 0 && signbit(got.r) == signbit(want.r) &&
		       fabs(less) >= max * (1 - 4 * unit_of(d) - 4 * b.relative);
	}
	return fabs(got.r - want.r) <=
	       b.relative * fmax(fabs(want.r), min_normal(d)) + b.absolute;
}

// Reads y, which must have the shape and dtype of want, and compares.
static inline bool same(yoke_tensor *y, const struct arr *want, struct bound b,
			const char *what)
{
	static unsigned char bytes[8 * ELEMENTS];
	memset(bytes, 0xff, sizeof bytes); // NaN, -1
	bool good = y && yoke_dtype(y) == want->dtype && yoke_rank(y) == want->rank;
	for (int i = 0; good && i < want->rank; i++)
		good = yoke_dim(y, i) == want->dims[i];
	if (!good ||
	    yoke_read(y, bytes, (size_t)want->n * yoke_dtype_size(want->dtype)) < 0) {
		diag("%s: shape, dtype or error: %s", what, yoke_error());
		yoke_error_clear();
		return false;
	}
	for (int64_t i = 0; i < want->n; i++) {
		struct value got =
			load(want->dtype, bytes + (size_t)i * yoke_dtype_size(want->dtype));
		if (agrees(want->dtype, got, want->v[i], b))
			continue;
		if (is_real(want->dtype))
			diag("%s: [%lld] got %.17g want %.17g", what, (long long)i, got.r,
			     want->v[i].r);
		else
			diag("%s: [%lld] got %lld want %lld", what, (long long)i,
			     (long long)got.i, (long long)want->v[i].i);
		return false;
	}
	return true;
}

// The call must have been refused with this code; clears the error.
static inline bool refused(yoke_tensor *y, int code)
{
	int got = yoke_error_code();
	if (y || got != code)
		diag("got %s: %s", yoke_error_name(got), yoke_error());
	yoke_error_clear();
	return !y && got == code;
}

#endif
