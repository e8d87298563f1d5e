// SPDX-License-Identifier: Apache-2.0
// Maximum and sum of exponentials of one row, for softmax and cross entropy.
#ifndef YK_SOFTROW_H
#define YK_SOFTROW_H

#include "../vector/vfun.h"

enum { LINE = 16 }; // floats per cache line

// Replaces lanes n and up of v; n may exceed VF.
static inline vf vf_fill_tail(vf v, int64_t n, float with)
{
	return n >= VF ? v :
			 vf_select(vi_iota() < vi_splat((int32_t)n), v, vf_splat(with));
}

// Treats NaN as small; it reappears in the exponentials.
static inline float row_max(const float *x, int64_t n)
{
	vf m[4];
	int64_t i = 0;
	for (int k = 0; k < 4; k++)
		m[k] = vf_splat(-__builtin_inff());
	for (; i + 4 * VF <= n; i += 4 * VF)
		for (int k = 0; k < 4; k++)
			m[k] = vf_max(vf_load(x + i + k * VF), m[k]);
	for (; i < n; i += VF)
		m[0] = vf_max(vf_fill_tail(vf_get(x + i, n - i), n - i,
					   -__builtin_inff()),
			      m[0]);
	return vf_hmax(vf_max(vf_max(m[0], m[1]), vf_max(m[2], m[3])));
}

// A finished row of whole vectors whose non-temporal store is deferred: y = x a - b - c.
struct late_row {
	float *y; // NULL: none
	const float *x;
	float a, b, c;
	bool product; // product: y = x a; otherwise y = x - b - c
};

YK_INLINE void late_write(const struct late_row *r, int64_t i)
{
	const vf x = vf_load(r->x + i);
	// not b + c, which would lose a small c
	vf_stream(r->y + i,
		  r->product ? x * vf_splat(r->a) : x - vf_splat(r->b) - vf_splat(r->c));
}

// sum exp(x - m); the terms are stored in y unless it is NULL (y may be x). x is already in cache
// and memory would be idle, so meanwhile `next`, the n floats read afterwards, is prefetched, and
// `late`, of the same length, is written.
YK_INLINE float row_exp_late(float *y, const float *x, int64_t n, float m,
			     const float *next, const struct late_row *late)
{
	const vf mv = vf_splat(m);
	vf sum[4] = { { 0 }, { 0 }, { 0 }, { 0 } };
	int64_t i = 0;
	for (; i + 4 * VF <= n; i += 4 * VF) {
		for (int k = 0; k < 4 * VF; k += LINE)
			__builtin_prefetch(next + i + k);
		vf e[4];
		for (int k = 0; k < 4; k++)
			e[k] = vf_load(x + i + k * VF) - mv;
		v_exp(e, 4);
		for (int k = 0; k < 4; k++) {
			if (y)
				vf_store(y + i + k * VF, e[k]);
			sum[k] += e[k];
			if (late)
				late_write(late, i + k * VF);
		}
	}
	for (; i < n; i += VF) {
		vf e = vf_exp(vf_get(x + i, n - i) - mv);
		if (y)
			vf_put(y + i, e, n - i);
		sum[0] += vf_fill_tail(e, n - i, 0);
		if (late)
			late_write(late, i);
	}
	return vf_sum((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

static inline float row_exp(float *y, const float *x, int64_t n, float m,
			    const float *next)
{
	return row_exp_late(y, x, n, m, next, NULL);
}

#endif
