// SPDX-License-Identifier: Apache-2.0
// Whether matrix units multiply as cl/matrix.cl says: what a device advertises counts once the kernel of cl/units.cl has
// given a product of whole numbers, of which nothing is rounded.  A compiler that mistakes an instruction, or lanes that
// hold other elements than the prologue takes them to, so cost speed alone.
#include "config.h"

#include <string.h>

#include "contract.h"

enum { LINES = 16, MOST = 16, SUMS = LINES * LINES }; // MOST: steps of k
enum { UNKNOWN, GOOD, BAD };

// As the kernel's data.
struct product {
	union {
		float of_f32[2 * LINES * MOST / 2];
		uint16_t of_half[2 * LINES * MOST];
	};
	float sums[2][SUMS];
};

// -8 .. 8; no two lines of a are alike, none of b's columns, and a is not b.
static int factor(int side, int line, int k)
{
	return (side ? 7 * line + 2 * k + 3 * line * k : 5 * line + 3 * k + line * k) % 17 - 8;
}

static uint16_t half_of(int dtype, int x)
{
	static const uint16_t f16[] = { 0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700, 0x4800 };
	const float as_f32 = (float)x;
	uint32_t bits;

	if (dtype == yoke_f16)
		return (uint16_t)(f16[x < 0 ? -x : x] | (x < 0) << 15);
	memcpy(&bits, &as_f32, sizeof bits);
	return (uint16_t)(bits >> 16);
}

static float sum_of(int steps, int row, int column)
{
	int sum = 0;

	for (int k = 0; k < steps; k++)
		sum += 2 * factor(0, row, k) * factor(1, column, k);
	return (float)sum;
}

static int test(struct yk_gpu_device *d, int dtype)
{
	const int steps = dtype == yoke_f32 ? MOST / 2 : MOST;
	struct yk_gpu_build b = { .file = "units.cl", .name = "units_product" };
	struct product p;
	int wrong = 0;

	memset(&p, 0xff, sizeof p);
	for (int i = 0; i < 2 * LINES * steps; i++) {
		const int x = factor(i / (LINES * steps), i / steps % LINES, i % steps);
		if (dtype == yoke_f32)
			p.of_f32[i] = (float)x;
		else
			p.of_half[i] = half_of(dtype, x);
	}
	yk_gpu_define(&b, "MATRIX", dtype);
	yk_gpu_define(&b, "WARP", d->warp);
	const int err = yk_gpu_try(d, &b, (size_t)d->warp, (size_t)d->warp, &p, sizeof p);
	for (int i = 0; i < 2 * SUMS; i++)
		wrong += !(p.sums[i / SUMS][i % SUMS] == sum_of(steps, i % SUMS / LINES, i % LINES));
	if (!err && !wrong)
		return GOOD;
	yk_gpu_log(YOKE_LOG_WARN, "%s:%u (%s) offers matrix units for %s, but %s: without them", yk_gpu_driver.name,
		   d->index, d->info.name, dtype == yoke_f32 ? "tf32" : dtype == yoke_f16 ? "f16" : "bf16",
		   err ? "their test fails" : "a product of theirs is wrong");
	return BAD;
}

static bool offered(const struct yk_gpu_device *d, int dtype)
{
	if (!d->warp)
		return false;
	if (dtype == yoke_f32)
		return d->tf32 && yk_gpu_tf32_wanted();
	return (dtype == yoke_f16 || dtype == yoke_bf16) && d->info.products >> dtype & 1;
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
