// SPDX-License-Identifier: Apache-2.0
// The accumulators for f32, f16 and bf16: instantiates kern_reduce_acc.h.
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

YK_INLINE vf load_half(const uint16_t *x, const bool bf16)
{
	return bf16 ? vf_of_bf16(vh_load(x)) : vf_of_f16(vh_load(x));
}

YK_INLINE float half_of(uint16_t x, const bool bf16)
{
	return bf16 ? yk_f32_of_bf16(x) : yk_f32_of_f16(x);
}

// As some_rows with sums.
YK_INLINE void some_halves(float *part, const uint16_t *x, int64_t n, int64_t stride,
			   const int rows, bool fresh, const bool bf16)
{
	int64_t i = 0;
	for (; i + VF <= n; i += VF) {
		vf v = fresh ? load_half(x + i, bf16) : vf_load(part + i);
		for (int r = fresh; r < rows; r++)
			v += load_half(x + r * stride + i, bf16);
		vf_store(part + i, v);
	}
	for (; i < n; i++) {
		float y = fresh ? half_of(x[i], bf16) : part[i];
		for (int r = fresh; r < rows; r++)
			y += half_of(x[r * stride + i], bf16);
		part[i] = y;
	}
}

YK_INLINE void half_rows(struct yk_columns *c, const uint16_t *x, int64_t stride, int64_t count,
			 const bool bf16)
{
	for (int64_t left = count, m; left > 0; left -= m, x += m * stride, c->depth += m) {
		if (c->depth == DEPTH)
			flush(YOKE_REDUCE_SUM, c);
		m = left >= TOGETHER && c->depth + TOGETHER <= DEPTH ? TOGETHER : 1;
		if (m == TOGETHER)
			some_halves(c->part.f32, x, c->cols, stride, TOGETHER, !c->depth, bf16);
		else
			some_halves(c->part.f32, x, c->cols, stride, 1, !c->depth, bf16);
	}
}

void ISA(yk_reduce_half_rows)(struct yk_columns *c, int dtype, const uint16_t *x, int64_t stride,
			      int64_t count)
{
	if (dtype == yoke_bf16)
		half_rows(c, x, stride, count, true);
	else
		half_rows(c, x, stride, count, false);
}
