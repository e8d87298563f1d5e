// SPDX-License-Identifier: Apache-2.0
// Dry runs: what fits in memory, and advice if it does not.
#include "config.h"

#include "train/advise.h"

#include <pthread.h>
#include <stdio.h>

#include "base/error.h"
#include "device/pool.h"
#include "graph/context.h"

static struct yk_device *device_of(void)
{
	const struct yoke_context *now = yk_current_or_null();
	return now ? yk_device_real(now->device) : yk_device_choose(NULL);
}

static struct yk_pool *pool_of(void)
{
	struct yk_device *d = device_of();
	return d ? d->pool : NULL;
}

uint64_t yk_dry_capacity(void)
{
	struct yk_pool *pool = pool_of();
	if (!pool)
		return 0;
	yk_pool_trim(pool);
	return yk_pool_could(pool);
}

// The largest amount that the device was ever found to provide.
static uint64_t reserved_max(void)
{
	struct yk_pool_stats s = { 0 };
	struct yk_pool *pool = pool_of();
	if (pool)
		yk_pool_stats(pool, &s);
	return s.reserved_bytes.peak;
}

// Advice if other processes use most of the device's memory, or "".
static const char *others_hold(char *to, size_t cap)
{
	struct yk_device *d = device_of();

	to[0] = 0;
	if (d && d->pool && d->info.kind != YOKE_DEVICE_CPU &&
	    yk_pool_could(d->pool) < yk_pool_capacity(d->pool) / 2)
		snprintf(
			to, cap,
			"; or end other processes that use %s, or choose another device (YOKE_DEVICE)",
			d->id);
	return to;
}

static int try_alone(uint64_t limit, int (*fn)(void *arg), void *arg)
{
	yoke_context *ctx = yk_context_dry(device_of()), *former;
	if (!ctx)
		return yoke_error_code();
	former = yoke_use(ctx);
	struct yk_pool *pool = ctx->device->pool;
	yk_pool_trim(pool);
	uint64_t was = yk_pool_limit(pool, limit);
	yk_pool_reset_peaks(pool);
	int e = fn(arg);
	yk_pool_limit(pool, was);
	yoke_use(former);
	yoke_context_free(ctx);
	return e;
}

int yk_dry_try(uint64_t limit, int (*fn)(void *arg), void *arg)
{
	// ranks may share a device and its dry pool
	static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&one);
	const int e = try_alone(limit, fn, arg);
	pthread_mutex_unlock(&one);
	return e;
}

struct batches {
	yk_dry_run_fn *fn;
	void *arg;
	int64_t batch;
};

static int rehearse(void *arg)
{
	const struct batches *b = arg;
	return b->fn(b->arg, b->batch);
}

static bool fits(struct batches *b, uint64_t limit, int64_t batch)
{
	b->batch = batch;
	int e = yk_dry_try(limit, rehearse, b);
	yoke_error_clear();
	return e == 0;
}

int64_t yk_dry_batch(int64_t max, uint64_t limit, yk_dry_run_fn *fn, void *arg)
{
	struct batches b = { .fn = fn, .arg = arg };
	int64_t good = 0, bad = max + 1, step = 1;
	while (good < max) { // grow from below: what fits is usually much less than `max`
		int64_t next = max - good < step ? max : good + step;
		if (!fits(&b, limit, next)) {
			bad = next;
			break;
		}
		good = next;
		step *= 2;
	}
	while (bad - good > 1) {
		int64_t middle = good + (bad - good) / 2;
		if (fits(&b, limit, middle))
			good = middle;
		else
			bad = middle;
	}
	return good;
}

int yk_advise_batch(int64_t batch, const char *smaller, yk_dry_run_fn *fn, void *arg)
{
	char why[1600], others[200];
	snprintf(why, sizeof why, "%s", yoke_error());
	yoke_error_clear();
	int64_t good = yk_dry_batch(batch, yk_dry_capacity(), fn, arg);
	if (good == batch) // the device provides less than it reports
		good = yk_dry_batch(batch, reserved_max(), fn, arg);
	if (good == batch) // the missing memory was not the device's
		return yk_fail(YOKE_ENOMEM, "%s", why);
	if (good == 0)
		return yk_fail(YOKE_ENOMEM, "%s; not even batch=1 fits: %s%s", why, smaller,
			       others_hold(others, sizeof others));
	return yk_fail(YOKE_ENOMEM, "%s; batch=%lld is the largest that fits%s", why,
		       (long long)good, others_hold(others, sizeof others));
}
