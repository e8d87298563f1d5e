// SPDX-License-Identifier: Apache-2.0
// The graph's arrays, and facts about values and dtypes.

#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "graph/graph.h"

void yk_graph_clear(struct yk_graph *g)
{
	g->nodes = g->values = g->args = g->nattrs = g->settled = g->owed = 0;
}

void yk_graph_fini(struct yk_graph *g)
{
	free(g->node);
	free(g->value);
	free(g->arg);
	free(g->attrs);
	*g = (struct yk_graph){ 0 };
}

int64_t yk_count(const struct yk_value *v)
{
	int64_t n = 1;
	for (int i = 0; i < v->rank; i++)
		n *= v->dims[i];
	return n;
}

double yk_reduced(const struct yk_value *v, unsigned axes)
{
	double n = 1;
	for (int i = 0; i < v->rank; i++)
		n *= axes >> i & 1 ? (double)v->dims[i] : 1;
	return n;
}

char *yk_describe(const struct yk_value *v, char *to)
{
	int n = snprintf(to, 160, "%s [", yoke_dtype_name(v->dtype));
	for (int i = 0; i < v->rank; i++)
		n += snprintf(to + n, (size_t)(160 - n), "%s%lld", i ? "," : "",
			      (long long)v->dims[i]);
	snprintf(to + n, (size_t)(160 - n), "]");
	return to;
}

bool yk_is_float(int dtype)
{
	return dtype == yoke_f32 || dtype == yoke_f64 || dtype == yoke_f16 ||
	       dtype == yoke_bf16;
}

bool yk_is_int(int dtype)
{
	return dtype == yoke_i8 || dtype == yoke_u8 || dtype == yoke_i32 ||
	       dtype == yoke_i64;
}

int yk_acc(int dtype)
{
	return dtype == yoke_f64 ? yoke_f64 : yk_is_float(dtype) ? yoke_f32 : yoke_i64;
}

// f64 to f16 bits, rounded to nearest even through an exactly scaled integer
static uint16_t half_bits(double x)
{
	uint16_t sign = signbit(x) ? 0x8000 : 0;
	double a = fabs(x);
	if (isnan(x))
		return sign | 0x7e00;
	if (a >= 65520)
		return sign | 0x7c00;
	int e;
	frexp(a, &e); // a = m 2^e, m in [1/2, 1)
	int exponent = e - 1 < -14 ? -14 : e - 1;
	double m = nearbyint(ldexp(a, 10 - exponent)); // in units of the last place
	uint16_t n = (uint16_t)m;
	// a carry out of the significand increments the exponent by itself
	return (uint16_t)(sign | (n < 1024 ? n : ((exponent + 15) << 10) + n - 1024));
}

bool yk_has_number(int dtype, double value)
{
	static const double bound[][2] = { // the second is exclusive
		[yoke_i8] = { -0x1p7, 0x1p7 },	 [yoke_u8] = { 0, 0x1p8 },
		[yoke_i32] = { -0x1p31, 0x1p31 }, [yoke_i64] = { -0x1p63, 0x1p63 },
		[yoke_bool] = { 0, 2 },
	};
	return yk_is_float(dtype) ||
	       (value >= bound[dtype][0] && value < bound[dtype][1] && value == trunc(value));
}

static int64_t saturate(double x, int64_t min, int64_t max)
{
	if (isnan(x))
		return 0;
	return x <= (double)min ? min : x >= (double)max ? max : (int64_t)x;
}

uint64_t yk_bits(int dtype, double value)
{
	union {
		float f;
		double d;
		uint32_t u;
		uint64_t w;
	} b = { .w = 0 };
	switch (dtype) {
	case yoke_f32: b.f = (float)value; return b.u;
	case yoke_f64: b.d = value; return b.w;
	case yoke_f16: return half_bits(value);
	case yoke_bf16:
		b.f = (float)value;
		if (isnan(value))
			return 0x7fc0;
		return (b.u + 0x7fff + (b.u >> 16 & 1)) >> 16;
	case yoke_i8: return (uint8_t)saturate(value, INT8_MIN, INT8_MAX);
	case yoke_u8: return (uint8_t)saturate(value, 0, UINT8_MAX);
	case yoke_i32: return (uint32_t)saturate(value, INT32_MIN, INT32_MAX);
	case yoke_i64: return (uint64_t)saturate(value, INT64_MIN, INT64_MAX);
	case yoke_bool: return value != 0;
	}
	return 0;
}
