// SPDX-License-Identifier: Apache-2.0
// Numbers of any dtype in wide types, and map instructions on them, as the conformance test
// computes both.
#ifndef YK_TEST_VALUES_H
#define YK_TEST_VALUES_H

#include "conform/program.h"
#include "tap.h"

struct value { // real dtypes: r; the others: i
	double r;
	int64_t i;
};

static inline bool is_real(int d)
{
	return yk_num_real(d);
}

static inline double round_real(int d, long double x)
{
	return yk_num_round((double)x, d);
}

static inline struct value load(int d, const void *p)
{
	struct yk_num n = yk_num_load(p, d);
	return (struct value){ n.f, n.i };
}

// A value that the dtype holds exactly.
static inline void store(int d, struct value v, void *p)
{
	yk_num_store(p, (struct yk_num){ v.r, v.i }, d);
}

// An instruction on x and y, which are of dtype `from`; a cast goes to `to`, others are computed in
// it.
static inline struct value insn_of(int op, int from, int to, struct value x, struct value y)
{
	const struct yoke_map m = { .size = sizeof m,
				    .ninsn = 3,
				    .nin = 2,
				    .nout = 1,
				    .out = { 2 },
				    .insn = { { YOKE_MAP_INPUT, (uint8_t)from, 0, 0, 0, 0 },
					      { YOKE_MAP_INPUT, (uint8_t)from, 0, 1, 0, 0 },
					      { (uint16_t)op, (uint8_t)to, 0, 0, 1, 0 } } };
	const struct yk_expected in[2] = { { .f = x.r, .i = x.i }, { .f = y.r, .i = y.i } };
	struct yk_expected v[3];
	yk_program_at(&m, in, 0, false, v);
	return (struct value){ v[2].f, v[2].i };
}

static inline int64_t min_of(int d)
{
	return d == yoke_i8  ? INT8_MIN :
	       d == yoke_i32 ? INT32_MIN :
	       d == yoke_i64 ? INT64_MIN :
			       0;
}

static inline int64_t max_of(int d)
{
	return d == yoke_i8  ? INT8_MAX :
	       d == yoke_u8  ? UINT8_MAX :
	       d == yoke_i32 ? INT32_MAX :
	       d == yoke_i64 ? INT64_MAX :
			       1;
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
	v.i = rnd_int(0, 3)      ? yk_num_wrap((uint64_t)rnd_int(-9, 9), d) :
	      rnd_int(0, 2) == 0 ? min_of(d) :
	      rnd_int(0, 1)      ? max_of(d) :
				   yk_num_wrap((uint64_t)((int64_t)rnd() >> rnd_int(0, 60)), d);
	if (d == yoke_bool)
		v.i = (int64_t)(rnd() & 1);
	return v;
}

#endif
