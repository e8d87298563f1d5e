// SPDX-License-Identifier: Apache-2.0
// Tests conversions between f32 and the 16-bit formats, in casts and in additions: every 16-bit
// value and random bits of f32, against scalar conversions.

#include "config.h"

#include <string.h>

#include "base/num.h"
#include "tap.h"
#include "yoke.h"

enum { ALL = 1 << 16, RANDOM = 1 << 18 };

static float of_bits(uint32_t u)
{
	float f;
	memcpy(&f, &u, sizeof f);
	return f;
}

static double widen(int dtype, uint16_t h)
{
	return yk_num_load(&h, dtype).f;
}

static bool same(double a, double b)
{
	return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

static void widened(int dtype)
{
	static uint16_t h[ALL];
	static float f[ALL];
	int wrong = -1;
	for (int i = 0; i < ALL; i++)
		h[i] = (uint16_t)i;
	yoke_scope *s = yoke_scope_begin("widen");
	yoke_tensor *x = yoke_from(dtype, 1, (int64_t[]){ ALL }, h);
	memset(f, 0xff, sizeof f);
	int err = yoke_read(yoke_cast(x, yoke_f32), f, sizeof f);
	for (int i = ALL; i-- > 0;)
		if (!same((double)f[i], widen(dtype, h[i])))
			wrong = i;
	yoke_scope_end(s);
	ok(!err && wrong < 0, "%s to f32, every value (first wrong: %#x, got %g want %g)",
	   yoke_dtype_name(dtype), (unsigned)wrong, wrong < 0 ? 0 : (double)f[wrong],
	   wrong < 0 ? 0 : widen(dtype, h[wrong]));
}

static void narrowed(int dtype)
{
	static float f[RANDOM];
	static uint16_t h[RANDOM];
	int wrong = -1;
	for (int i = 0; i < RANDOM; i++) { // every second one near an exact value or a tie
		uint64_t r = rnd();
		float x = (float)widen(dtype, (uint16_t)(r >> 32));
		uint32_t u;
		memcpy(&u, &x, sizeof u);
		f[i] = of_bits(i % 2 ? (uint32_t)r :
				       u + (uint32_t)(r & 3) - 1 + (i % 4 ? 0x1000 : 0x8000));
	}
	yoke_scope *s = yoke_scope_begin("narrow");
	memset(h, 0xff, sizeof h);
	yoke_tensor *x = yoke_from(yoke_f32, 1, (int64_t[]){ RANDOM }, f);
	int err = yoke_read(yoke_cast(x, dtype), h, sizeof h);
	for (int i = RANDOM; i-- > 0;)
		if (!same(widen(dtype, h[i]), yk_num_round((double)f[i], dtype)))
			wrong = i;
	yoke_scope_end(s);
	ok(!err && wrong < 0, "f32 to %s, %d random ones (first wrong: %a got %g want %g)",
	   yoke_dtype_name(dtype), RANDOM, wrong < 0 ? 0 : (double)f[wrong],
	   wrong < 0 ? 0 : widen(dtype, h[wrong]),
	   wrong < 0 ? 0 : yk_num_round((double)f[wrong], dtype));
}

// x + y in 16 bits: exact in f64, or so close that it rounds equally
static void added(int dtype)
{
	static uint16_t a[RANDOM], b[RANDOM], c[RANDOM];
	int wrong = -1;
	for (int i = 0; i < RANDOM; i++) {
		a[i] = (uint16_t)rnd();
		b[i] = (uint16_t)(i % 2 ? rnd() : (uint64_t)(a[i] ^ 0x8000u) + (rnd() & 7));
	}
	yoke_scope *s = yoke_scope_begin("add");
	yoke_tensor *x = yoke_from(dtype, 1, (int64_t[]){ RANDOM }, a);
	yoke_tensor *y = yoke_from(dtype, 1, (int64_t[]){ RANDOM }, b);
	memset(c, 0xff, sizeof c);
	int err = yoke_read(yoke_add(x, y), c, sizeof c);
	for (int i = RANDOM; i-- > 0;) {
		float sum = (float)(widen(dtype, a[i]) + widen(dtype, b[i])); // then rounded again
		if (!same(widen(dtype, c[i]), yk_num_round((double)sum, dtype)))
			wrong = i;
	}
	yoke_scope_end(s);
	ok(!err && wrong < 0, "sums of %s (first wrong: %#x + %#x)", yoke_dtype_name(dtype),
	   wrong < 0 ? 0u : a[wrong], wrong < 0 ? 0u : b[wrong]);
}

int main(void)
{
	tap_seed();
	for (int dtype = 0; dtype < 16; dtype++)
		if (dtype == yoke_f16 || dtype == yoke_bf16) {
			widened(dtype);
			narrowed(dtype);
			added(dtype);
		}
	return done();
}
