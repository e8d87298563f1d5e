// SPDX-License-Identifier: Apache-2.0
// Tests whether a device computes in f64: an advertised capability counts only if the kernel of
// cl/f64.cl gives the host's results.
#include "config.h"

#include <math.h>
#include <string.h>

#include "gpu.h"

enum { INPUTS = 4, ALL = 14 };
enum { UNKNOWN, GOOD, BAD };

// Same values as the kernel's x; volatile, so that the processor computes them, not the compiler.
static void expected(double x[ALL])
{
	const volatile double a = 1 + 0x1p-30, b = -3 + 0x1p-49, tiny = 0x3p-1073,
			      big = 0x1p1000;
	const volatile double product = a * b;
	const double all[ALL] = { a,
				  b,
				  tiny,
				  big,
				  a + b,
				  a - b,
				  product,
				  a / b,
				  sqrt(a),
				  product - a,
				  tiny * 0.5,
				  big * a,
				  (double)(int64_t)(a * 1e15),
				  (double)(float)a };

	memcpy(x, all, sizeof all);
}

static int test(struct yk_gpu_device *d)
{
	struct yk_gpu_build b = { .file = "f64.cl", .name = "f64_results" };
	double want[ALL], got[ALL];

	expected(want);
	memset(got, 0xff, sizeof got);
	memcpy(got, want, INPUTS * sizeof *got);
	yk_gpu_define(&b, "USE_F64", 1);
	if (yk_gpu_try(d, &b, 1, 1, got, sizeof got)) {
		yk_gpu_log(
			YOKE_LOG_WARN,
			"%s:%u (%s) reports f64 support, but the test kernel failed: f64 is disabled",
			yk_gpu_driver.name, d->index, d->info.name);
		return BAD;
	}
	for (int i = 0; i < ALL; i++)
		if (memcmp(&want[i], &got[i], sizeof *got)) {
			yk_gpu_log(YOKE_LOG_WARN,
				   "%s:%u (%s) reports f64 support, but result %d of the test is "
				   "%a instead of %a: f64 is disabled",
				   yk_gpu_driver.name, d->index, d->info.name, i - INPUTS, got[i],
				   want[i]);
			return BAD;
		}
	return GOOD;
}

bool yk_gpu_f64(struct yk_gpu_device *d)
{
	int state = __atomic_load_n(&d->f64, __ATOMIC_ACQUIRE);

	if (state != UNKNOWN || !(d->info.flags & YOKE_DEVICE_F64))
		return state == GOOD;
	if (yk_gpu_forked() || yk_gpu_device_open(d))
		return false;
	pthread_mutex_lock(&d->lock);
	if ((state = d->f64) == UNKNOWN)
		__atomic_store_n(&d->f64, state = test(d), __ATOMIC_RELEASE);
	pthread_mutex_unlock(&d->lock);
	return state == GOOD;
}
