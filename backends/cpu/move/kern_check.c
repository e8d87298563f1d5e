// SPDX-License-Identifier: Apache-2.0
// CHECK: a copy that fails at the first element that is infinite or NaN. y may be x.
#include "config.h"

#include <string.h>

#include "../vector/half.h"
#include "walk.h"

enum { PER_ITEM = 1 << 16 }; // elements per work item

struct job {
	const struct yoke_view *x, *y;
	bool dense, same;
	int64_t n;
	_Atomic int64_t bad; // position of the first such element
};

static uint64_t can(const struct yoke_op *op)
{
	if (op->nin != 1 || op->nout != 1)
		return 0;
	const struct yoke_view *x = &op->in[0], *y = &op->out[0];
	return x->kind == YOKE_VIEW_BUFFER && y->kind == YOKE_VIEW_BUFFER &&
	       x->dtype == y->dtype && x->dtype >= yoke_f32 && x->dtype <= yoke_bf16 &&
	       x->rank == y->rank && same_dims(x->dims, y->dims, x->rank);
}

static double element(const struct yoke_view *v, int64_t i)
{
	const char *p =
		(const char *)yk_ptr(v) +
		offset_of(v->dims, v->strides, v->rank, i) * (int64_t)yk_esize(v->dtype);
	uint16_t h;
	float f;
	double d;
	switch (v->dtype) {
	case yoke_f32: memcpy(&f, p, sizeof f); return f;
	case yoke_f64: memcpy(&d, p, sizeof d); return d;
	}
	memcpy(&h, p, sizeof h);
	return v->dtype == yoke_f16 ? yk_f32_of_f16(h) : yk_f32_of_bf16(h);
}

// Defines a test whether any exponent is all ones.
#define ANY(name, T, mask) \
	static bool name(const void *from, int64_t n) \
	{ \
		const T *x = from; \
		T any = 0; \
		for (int64_t i = 0; i < n; i++) \
			any |= (T)((x[i] & mask) == mask); \
		return any; \
	}
ANY(any_f32, uint32_t, 0x7f800000)
ANY(any_f64, uint64_t, 0x7ff0000000000000)
ANY(any_f16, uint16_t, 0x7c00)
ANY(any_bf16, uint16_t, 0x7f80)

static bool any(const void *x, int64_t n, int dtype)
{
	switch (dtype) {
	case yoke_f32: return any_f32(x, n);
	case yoke_f64: return any_f64(x, n);
	case yoke_f16: return any_f16(x, n);
	}
	return any_bf16(x, n);
}

static void item(void *arg, int64_t index)
{
	struct job *j = arg;
	const size_t size = yk_esize(j->x->dtype);
	int64_t at = index * PER_ITEM, end = at + PER_ITEM < j->n ? at + PER_ITEM : j->n;
	bool look = !j->dense;

	if (j->dense) {
		const char *x = (const char *)yk_ptr(j->x) + at * (int64_t)size;
		if (!j->same)
			memcpy((char *)yk_ptr(j->y) + at * (int64_t)size, x,
			       (size_t)(end - at) * size);
		look = any(x, end - at, j->x->dtype);
	}
	for (int64_t i = at; i < end && look; i++) {
		const struct yoke_view *x = j->x, *y = j->y;
		if (!j->dense && !j->same)
			memcpy((char *)yk_ptr(y) +
				       offset_of(y->dims, y->strides, y->rank, i) *
					       (int64_t)size,
			       (const char *)yk_ptr(x) +
				       offset_of(x->dims, x->strides, x->rank, i) *
					       (int64_t)size,
			       size);
		double v = element(x, i);
		if (v - v != 0) // infinite or NaN
			record_first(&j->bad, i);
	}
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	struct job j = { .x = &op->in[0], .y = &op->out[0], .same = op->alias_mask & 1 };

	(void)impl, (void)prepared;
	j.n = yk_elements(j.x);
	j.dense = yk_dense(j.x) && yk_dense(j.y);
	atomic_init(&j.bad, INT64_MAX);
	yk_team_run((j.n + PER_ITEM - 1) / PER_ITEM, item, &j);
	int64_t bad = atomic_load(&j.bad);
	if (bad == INT64_MAX)
		return 0;
	if (op->nattr && op->attr[0].i)
		return yk_cpu_fail(
			YOKE_ERANGE,
			"resolvent: in row %lld z is an eigenvalue of the matrix to rounding, or an operand "
			"or a product of b and c is infinite or NaN; choose another z",
			(long long)bad);
	return yk_cpu_fail(YOKE_ERANGE, "check_finite: element %lld of %lld is %g",
			   (long long)bad, (long long)j.n, element(j.x, bad));
}

YK_KERNEL(check, CHECK) = { .can = can, .run = run, .impl = { "copy" } };
