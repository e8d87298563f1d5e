// SPDX-License-Identifier: Apache-2.0
// CTC and CTC_BACKWARD (Graves et al. 2006): a work item is a sequence; all states of a step are
// computed together.
#include "config.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "../cpu.h"
#include "../host/scalar.h"
#include "../vector/vfun.h"

struct job {
	const struct yoke_op *op;
	int64_t blank;
	atomic_bool no_memory;
};

static int64_t padded(int64_t n)
{
	return (n + 63) & ~(int64_t)63;
}

static int64_t length_of(const struct yoke_view *v, int64_t index)
{
	return ((const int64_t *)yk_ptr(v))[index * v->strides[0]];
}

// log(e^x + e^y + e^z); -inf if all are, NaN if one is
static inline __attribute__((always_inline)) vf join3(vf x, vf y, vf z)
{
	const vf low = vf_splat(-INFINITY), max = vf_max(vf_max(x, y), z), all = x + y + z,
		 m = vf_select(max == low, vf_splat(0), max);
	vf e[3] = { x - m, y - m, z - m };
	v_exp(e, 3);
	vf s = e[0] + e[1] + e[2];
	v_log(&s, 1);
	return vf_select((max == low) | (all != all), all, m + s);
}

static void join_f32(float *to, const float *a, int64_t n, const float *skip)
{
	for (int64_t i = 0; i < n; i += VF)
		vf_put(to + i,
		       join3(vf_get(a + i, n - i), vf_get(a + i - 1, n - i),
			     vf_get(a + i - 2, n - i) + vf_get(skip + i, n - i)),
		       n - i);
}

static void join_f64(double *to, const double *a, int64_t n, const double *skip)
{
	for (int64_t i = 0; i < n; i++) {
		const double x = a[i], y = a[i - 1], z = a[i - 2] + skip[i];
		double max = x > y ? x : y;
		max = z > max ? z : max;
		to[i] = max == -INFINITY ? x + y + z :
					   max + log(exp(x - max) + exp(y - max) + exp(z - max));
	}
}

static void exp_f32(float *x, int64_t n)
{
	for (int64_t i = 0; i < n; i += VF) {
		vf v = vf_get(x + i, n - i);
		const vf given = v;
		v_exp_any(&v, 1);
		vf_put(x + i, vf_select(given != given, given, v), n - i);
	}
}

static void exp_f64(double *x, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		x[i] = exp(x[i]);
}

static float bits_f32(const struct yoke_view *v)
{
	float x;
	memcpy(&x, yk_low_bytes(&v->offset, sizeof x), sizeof x);
	return x;
}

static double bits_f64(const struct yoke_view *v)
{
	double x;
	memcpy(&x, &v->offset, sizeof x);
	return x;
}

#define REAL float
#define CTC(name) name##_f32
#define JOIN join_f32
#define EXP exp_f32
#include "kern_ctc_states.h"
#undef REAL
#undef CTC
#undef JOIN
#undef EXP

#define REAL double
#define CTC(name) name##_f64
#define JOIN join_f64
#define EXP exp_f64
#include "kern_ctc_states.h"

static uint64_t can(const struct yoke_op *op)
{
	const int dtype = op->in[0].dtype;
	for (uint32_t i = 0; i < op->nin; i++)
		if (op->in[i].kind != YOKE_VIEW_BUFFER && i < 6)
			return 0;
	return (dtype == yoke_f32 || dtype == yoke_f64) && op->in[1].dtype == yoke_i64 &&
	       op->nattr >= 1;
}

// Are lengths and targets in range? Else an error.
static int valid(const struct yoke_op *op)
{
	const struct yoke_view *x = &op->in[0], *targets = &op->in[1];
	for (int64_t n = 0; n < x->dims[1]; n++) {
		const int64_t steps = length_of(&op->in[2], n), labels = length_of(&op->in[3], n);
		if (steps < 0 || steps > x->dims[0] || labels < 0 || labels > targets->dims[1])
			return yk_cpu_fail(
				YOKE_ERANGE,
				"ctc: sequence %lld has %lld steps of %lld and %lld labels of %lld",
				(long long)n, (long long)steps, (long long)x->dims[0],
				(long long)labels, (long long)targets->dims[1]);
		for (int64_t s = 0; s < labels; s++) {
			const int64_t c = ((const int64_t *)yk_ptr(
				targets))[n * targets->strides[0] + s * targets->strides[1]];
			if (c < 0 || c >= x->dims[2])
				return yk_cpu_fail(YOKE_ERANGE,
						   "ctc: target %lld of sequence %lld is %lld, "
						   "which is none of %lld classes",
						   (long long)s, (long long)n, (long long)c,
						   (long long)x->dims[2]);
		}
	}
	return 0;
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	struct job j = { .op = op, .blank = op->attr[0].i };
	const int err = valid(op);
	(void)impl, (void)prepared;
	if (err)
		return err;
	atomic_init(&j.no_memory, false);
	yk_team_run(op->in[0].dims[1], op->in[0].dtype == yoke_f64 ? item_f64 : item_f32, &j);
	if (atomic_load(&j.no_memory))
		return yk_cpu_fail(YOKE_ENOMEM, "ctc: no memory for %lld labels",
				   (long long)op->in[1].dims[1]);
	return 0;
}

YK_KERNEL(ctc, CTC, CTC_BACKWARD) = { .can = can, .run = run, .impl = { "states" } };
