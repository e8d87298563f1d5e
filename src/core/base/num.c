// SPDX-License-Identifier: Apache-2.0
// Converts numbers of any dtype: rounding by float64 arithmetic, and bit patterns.
#include "config.h"

#include <math.h>
#include <string.h>

#include "base/num.h"
#include "base/endian.h"
#include "yoke.h"

// Significand bits including the hidden one, smallest exponent of a normal number, largest number.
struct form {
	int bits, min;
	double max;
};

static struct form form_of(int dtype)
{
	switch (dtype) {
	case yoke_f16: return (struct form){ 11, -14, 65504 };
	case yoke_bf16: return (struct form){ 8, -126, 0x1.fep127 };
	case yoke_f32: return (struct form){ 24, -126, 0x1.fffffep127 };
	}
	return (struct form){ 53, -1022, 0x1.fffffffffffffp1023 };
}

int yk_num_acc(int dtype)
{
	if (!yk_num_real(dtype))
		return yoke_i64;
	return dtype == yoke_f64 ? yoke_f64 : yoke_f32;
}

double yk_num_unit(int dtype)
{
	return ldexp(1, -form_of(dtype).bits);
}

double yk_num_min(int dtype)
{
	return ldexp(1, form_of(dtype).min);
}

double yk_num_round(double x, int dtype)
{
	const struct form f = form_of(dtype);
	int e;
	if (dtype == yoke_f64 || !isfinite(x) || x == 0)
		return x;
	if (dtype == yoke_f32)
		return (float)x;
	frexp(x, &e); // |x| = m 2^e, m in [1/2, 1)
	int last = (e - 1 < f.min ? f.min : e - 1) - f.bits + 1;
	double y = ldexp(rint(ldexp(x, -last)), last);
	return fabs(y) > f.max ? copysign(INFINITY, x) : y;
}

int64_t yk_num_wrap(uint64_t x, int dtype)
{
	switch (dtype) {
	case yoke_i8: return (int8_t)x;
	case yoke_u8: return (uint8_t)x;
	case yoke_i32: return (int32_t)x;
	case yoke_bool: return x != 0;
	default: return (int64_t)x;
	}
}

static double half_value(uint64_t u)
{
	int e = (int)(u >> 10 & 31), m = (int)(u & 1023);
	double x = e == 31 ? (m ? NAN : INFINITY) :
		   e       ? ldexp(1024 + m, e - 25) :
			     ldexp(m, -24);
	return u >> 15 ? -x : x;
}

// Where an element's bytes are in a u64 that has its value.
static void *low(uint64_t *u, int dtype)
{
	return (char *)u + (YK_HOST_BIG ? sizeof *u - yoke_dtype_size(dtype) : 0);
}

struct yk_num yk_num_load(const void *from, int dtype)
{
	struct yk_num n = { 0, 0 };
	uint64_t u = 0;
	uint32_t w;
	float f;
	memcpy(low(&u, dtype), from, yoke_dtype_size(dtype));
	switch (dtype) {
	case yoke_f16: n.f = half_value(u); break;
	case yoke_f32:
	case yoke_bf16:
		w = (uint32_t)(dtype == yoke_bf16 ? u << 16 : u);
		memcpy(&f, &w, sizeof f);
		n.f = f;
		break;
	case yoke_f64: memcpy(&n.f, &u, sizeof n.f); break;
	default: n.i = yk_num_wrap(u, dtype);
	}
	return n;
}

struct yk_num yk_num_of_bits(uint64_t bits, int dtype)
{
	return yk_num_load(low(&bits, dtype), dtype);
}

uint64_t yk_num_bits(struct yk_num n, int dtype)
{
	uint64_t u = 0;
	uint32_t w;
	float f;
	int e;
	if (!yk_num_real(dtype))
		return (uint64_t)n.i;
	double x = yk_num_round(n.f, dtype);
	f = (float)x;
	memcpy(&w, &f, sizeof w);
	memcpy(&u, &x, sizeof u);
	if (dtype == yoke_f64)
		return u;
	if (dtype != yoke_f16)
		return dtype == yoke_f32 ? w : w >> 16;
	u = signbit(x) ? 0x8000 : 0;
	if (!isfinite(x))
		return u | (isnan(x) ? 0x7e00 : 0x7c00);
	if (fabs(x) < 0x1p-14)
		return u | (uint64_t)ldexp(fabs(x), 24);
	frexp(x, &e);
	return u | (uint64_t)(e + 14) << 10 | ((uint64_t)ldexp(fabs(x), 11 - e) & 1023);
}

void yk_num_store(void *to, struct yk_num n, int dtype)
{
	uint64_t u = yk_num_bits(n, dtype);
	memcpy(to, low(&u, dtype), yoke_dtype_size(dtype));
}
