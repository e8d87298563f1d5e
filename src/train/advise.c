// SPDX-License-Identifier: Apache-2.0
// Advice where memory does not suffice, by trying.
#include "config.h"

#include "train/advise.h"

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "device/pool.h"
#include "graph/context.h"

struct rehearsal {
	yk_rehearse_fn *fn;
	void *arg;
	bool alone;
};

// A host gives out more memory than it has, so the pool is kept to what nobody else uses.
static bool fits(const struct rehearsal *r, int64_t batch)
{
	struct yoke_context *ctx = yk_current();
	if (!ctx)
		return false;
	struct yk_pool *pool = ctx->device->pool;
	yk_pool_trim(pool);
	uint64_t limit = yk_pool_limit(pool, yk_pool_could(pool));
	ctx->rehearses = true;
	int e = r->fn(r->arg, batch);
	ctx->rehearses = false;
	yk_pool_limit(pool, limit);
	if (r->alone)
		yoke_context_free(ctx);
	yoke_error_clear();
	return e == 0;
}

int yk_advise_batch(int64_t batch, bool alone, const char *smaller, yk_rehearse_fn *fn, void *arg)
{
	const struct rehearsal r = { fn, arg, alone };
	char why[1600];
	int64_t good = 0, bad = batch;
	snprintf(why, sizeof why, "%s", yoke_error());
	yoke_error_clear();
	if (fits(&r, batch)) // it was other memory
		return yk_fail(YOKE_ENOMEM, "%s", why);
	while (bad - good > 1) {
		int64_t middle = good + (bad - good) / 2;
		if (fits(&r, middle))
			good = middle;
		else
			bad = middle;
	}
	if (good == 0)
		return yk_fail(YOKE_ENOMEM, "%s; not even batch=1 fits: %s", why, smaller);
	return yk_fail(YOKE_ENOMEM, "%s; batch=%lld is the largest that fits", why, (long long)good);
}
