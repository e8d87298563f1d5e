// SPDX-License-Identifier: Apache-2.0
// Strip functions of f32, also used for f16 and bf16.
#include "config.h"

#include "kern_map.h"
#include "../vector/philox.h"
#include "../vector/vfun.h"

#define T float
#define FN(name) yk_##name##_f32

// sin and cos use the vector code unless the strip has an argument out of its range; results are
// the same either way.
static bool all_near(const struct yk_arg *va, int64_t n)
{
	const float *a = va->at;
	int far = 0;
	for (; n > 0; n -= YK_BLOCK, a += va->step) {
		int m = n < YK_BLOCK ? (int)n : YK_BLOCK;
		for (int i = 0; i < m; i++)
			far |= !(yk_abs_f32(a[i]) < YK_TRIG_LIMIT);
	}
	return !far;
}

static yk_strip_fn s_sin, s_cos;

#include "kern_map_float.h"

STRIP1(sin_near, yk_sin_near_f32)
STRIP1(cos_near, yk_cos_near_f32)
STRIP1(sin_any, yk_sin_f32)
STRIP1(cos_any, yk_cos_f32)

static void s_sin(void *to, const struct yk_arg *a, const struct yk_arg *b,
		  const struct yk_arg *c, int64_t n)
{
	(all_near(a, n) ? sin_near : sin_any)(to, a, b, c, n);
}

static void s_cos(void *to, const struct yk_arg *a, const struct yk_arg *b,
		  const struct yk_arg *c, int64_t n)
{
	(all_near(a, n) ? cos_near : cos_any)(to, a, b, c, n);
}

// Uses the vector functions of chains, so that both give the same bits.
#define VECTORS(name, f) \
	static void name(void *to, const struct yk_arg *va, const struct yk_arg *b, \
			 const struct yk_arg *c, int64_t n) \
	{ \
		float *y = to; \
		const float *a = va->at; \
		(void)b, (void)c; \
		for (; n > 0; n -= YK_BLOCK, y += YK_BLOCK, a += va->step) \
			for (int64_t i = 0; i < YK_BLOCK && i < n; i += VF) { \
				vf v = vf_get(a + i, n - i); \
				f(&v, 1); \
				vf_put(y + i, v, n - i); \
			} \
	}
VECTORS(v_strip_log, v_log)
VECTORS(v_strip_erf, v_erf)

yk_strip_fn *ISA(yk_strip_f32)(int op)
{
	if (op == YOKE_MAP_LOG)
		return v_strip_log;
	if (op == YOKE_MAP_ERF)
		return v_strip_erf;
	return op < (int)(sizeof table / sizeof *table) ? table[op] : NULL;
}
