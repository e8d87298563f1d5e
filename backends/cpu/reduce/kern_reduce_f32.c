// SPDX-License-Identifier: Apache-2.0
// The accumulators for f32, f16 and bf16: instantiates kern_reduce_acc.h, and sums columns of f16
// and bf16 without converting them to memory.
#include "config.h"

#include <string.h>

#include "kern_reduce.h"
#include "../vector/vec.h"
#include "../vector/vhalf.h"
#include "../vector/vmath.h"

#define T float
#define W double
#define V f
#define PART f32
#define TOTAL f64
#define ADD(t, a, b) ((t)((a) + (b)))
#define MUL(t, a, b) ((t)((a) * (b)))
#define V_ADD(a, b) ((a) + (b))
#define V_MUL(a, b) ((a) * (b))
#define V_MIN vf_min_nan
#define V_MAX vf_max_nan
#define IS_NAN(a) ((a) != (a))
#define LOWEST -INFINITY
#define HIGHEST INFINITY

#include "kern_reduce_acc.h"

const struct yk_reducer ISA(yk_reduce_f32) = REDUCER;

// ---- columns of f16 or bf16 ----

// As some_rows with sums, of one vector of n columns at most.
YK_INLINE void add_halves(const int dtype, float *part, const uint16_t *x, int64_t n,
			  int64_t stride, const int rows, bool fresh)
{
	vf v = fresh ? vf_get_as(dtype, x, n) : vf_get(part, n);
	for (int r = fresh; r < rows; r++)
		v += vf_get_as(dtype, x + r * stride, n);
	vf_put(part, v, n);
}

// Prefetches the next rows, because a tile's rows are too far apart for the hardware.
YK_INLINE void some_halves(const int dtype, float *part, const uint16_t *x, int64_t n,
			   int64_t stride, const int rows, bool fresh)
{
	enum { LINE = VF > 32 ? VF : 32 }; // a cache line, if vectors are not longer
	int64_t i = 0;
	for (; i + LINE <= n; i += LINE) {
		for (int r = 0; r < rows; r++)
			__builtin_prefetch(x + (rows + r) * stride + i);
		for (int64_t j = i; j < i + LINE; j += VF)
			add_halves(dtype, part + j, x + j, VF, stride, rows, fresh);
	}
	for (; i + VF <= n; i += VF)
		add_halves(dtype, part + i, x + i, VF, stride, rows, fresh);
	if (i < n)
		add_halves(dtype, part + i, x + i, n - i, stride, rows, fresh);
}

YK_INLINE void half_rows(const int dtype, struct yk_columns *c, const uint16_t *x, int64_t stride,
			 int64_t count)
{
	for (int64_t left = count, m; left > 0; left -= m, x += m * stride, c->depth += m) {
		if (c->depth == DEPTH)
			flush(YOKE_REDUCE_SUM, c);
		m = left >= TOGETHER && c->depth + TOGETHER <= DEPTH ? TOGETHER : 1;
		if (m == TOGETHER)
			some_halves(dtype, c->part.f32, x, c->cols, stride, TOGETHER, !c->depth);
		else
			some_halves(dtype, c->part.f32, x, c->cols, stride, 1, !c->depth);
	}
}

void ISA(yk_reduce_half_rows)(struct yk_columns *c, int dtype, const uint16_t *x, int64_t stride,
			      int64_t count)
{
	if (dtype == yoke_bf16)
		half_rows(yoke_bf16, c, x, stride, count);
	else
		half_rows(yoke_f16, c, x, stride, count);
}
