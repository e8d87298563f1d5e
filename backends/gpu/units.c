// SPDX-License-Identifier: Apache-2.0
// Tests whether matrix units multiply as cl/matrix.cl expects: an advertised capability counts only
// if the kernel of cl/units.cl computes a product of integers exactly. A miscompiled instruction or
// a different layout of lanes therefore costs only speed.
#include "config.h"

#include <string.h>

#include "contract.h"

enum { LINES = 16, BYTES = 32, SUMS = LINES * LINES }; // BYTES: length of a line along k
enum { UNKNOWN, GOOD, BAD };

// Matches the kernel's data.
struct product {
	union {
		float of_f32[2 * LINES * BYTES / 4];
		uint16_t of_half[2 * LINES * BYTES / 2];
		uint8_t of_byte[2 * LINES * BYTES];
	};
	union {
		float of_f32[SUMS];
		int32_t of_i32[SUMS];
	} sums[2]; // i32: sums of bytes
};

// -8 .. 8; no two rows of a are equal, no two columns of b, and a differs from b.
static int factor(int side, int line, int k)
{
	return (side ? 7 * line + 2 * k + 3 * line * k : 5 * line + 3 * k + line * k) % 17 - 8;
}

// The factor in the dtype; bytes use nearly their whole range.
static int factor_of(int dtype, int side, int line, int k)
{
	const int x = factor(side, line, k);

	return dtype == yoke_i8 ? 15 * x : dtype == yoke_u8 ? 15 * (x + 8) : x;
}

static uint16_t half_of(int dtype, int x)
{
	static const uint16_t f16[] = { 0,      0x3c00, 0x4000, 0x4200, 0x4400,
					0x4500, 0x4600, 0x4700, 0x4800 };
	const float as_f32 = (float)x;
	uint32_t bits;

	if (dtype == yoke_f16)
		return (uint16_t)(f16[x < 0 ? -x : x] | (x < 0) << 15);
	memcpy(&bits, &as_f32, sizeof bits);
	return (uint16_t)(bits >> 16);
}

static int sum_of(int dtype, int steps, int row, int column)
{
	int sum = 0;

	for (int k = 0; k < steps; k++)
		sum += 2 * factor_of(dtype, 0, row, k) * factor_of(dtype, 1, column, k);
	return sum;
}

static const char *name_of(int dtype)
{
	return dtype == yoke_f32  ? "tf32" :
	       dtype == yoke_f16  ? "f16" :
	       dtype == yoke_bf16 ? "bf16" :
	       dtype == yoke_i8   ? "i8" :
				    "u8";
}

static int test(struct yk_gpu_device *d, int dtype)
{
	const int steps = BYTES / (dtype == yoke_f32 ? 4 : yk_gpu_byte(dtype) ? 1 : 2);
	struct yk_gpu_build b = { .file = "units.cl", .name = "units_product" };
	struct product p;
	int wrong = 0;

	memset(&p, 0xff, sizeof p);
	for (int i = 0; i < 2 * LINES * steps; i++) {
		const int x = factor_of(dtype, i / (LINES * steps), i / steps % LINES, i % steps);
		if (dtype == yoke_f32)
			p.of_f32[i] = (float)x;
		else if (yk_gpu_byte(dtype))
			p.of_byte[i] = (uint8_t)x;
		else
			p.of_half[i] = half_of(dtype, x);
	}
	yk_gpu_define(&b, "MATRIX", dtype);
	yk_gpu_define(&b, "WARP", d->warp);
	const int err = yk_gpu_try(d, &b, (size_t)d->warp, (size_t)d->warp, &p, sizeof p);
	for (int i = 0; i < 2 * SUMS; i++) {
		const int at = i % SUMS, want = sum_of(dtype, steps, at / LINES, at % LINES);
		wrong += !(yk_gpu_byte(dtype) ? p.sums[i / SUMS].of_i32[at] == want :
						p.sums[i / SUMS].of_f32[at] == (float)want);
	}
	if (!err && !wrong)
		return GOOD;
	yk_gpu_log(YOKE_LOG_WARN,
		   "%s:%u (%s) reports matrix units for %s, but %s: they are not used",
		   yk_gpu_driver.name, d->index, d->info.name, name_of(dtype),
		   err ? "the test kernel failed" : "a test product is wrong");
	return BAD;
}

static bool offered(const struct yk_gpu_device *d, int dtype)
{
	if (!d->warp)
		return false;
	if (dtype == yoke_f32)
		return d->tf32 && yk_gpu_tf32_enabled();
	return (dtype == yoke_f16 || dtype == yoke_bf16 || yk_gpu_byte(dtype)) &&
	       d->info.products >> dtype & 1;
}

bool yk_gpu_units(const struct yk_gpu_device *of, int dtype)
{
	if (!offered(of, dtype))
		return false;
	struct yk_gpu_device *d = yk_gpu_device_at(of->index);
	int state = d ? __atomic_load_n(&d->units[dtype], __ATOMIC_ACQUIRE) : BAD;

	if (state != UNKNOWN || yk_gpu_forked() || yk_gpu_device_open(d))
		return state == GOOD;
	pthread_mutex_lock(&d->lock);
	if ((state = d->units[dtype]) == UNKNOWN)
		__atomic_store_n(&d->units[dtype], state = test(d, dtype), __ATOMIC_RELEASE);
	pthread_mutex_unlock(&d->lock);
	return state == GOOD;
}
