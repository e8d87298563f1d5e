// SPDX-License-Identifier: Apache-2.0
// Distributed sampler: which samples of an epoch's permutation a rank takes.
#include "config.h"

#include "base/error.h"
#include "data/permute.h"
#include "comm/ranks.h"

int64_t yoke_sampler_count(const yoke_group *g, int kind, int64_t n)
{
	const int err = yk_require_as(g, "sampler", "group");
	if (err)
		return err;
	const int64_t ranks = g->ranks, rank = g->rank;
	if (n < 0)
		return yk_fail(YOKE_EINVAL, "sampler: %lld samples", (long long)n);
	switch (kind) {
	case YOKE_SAMPLER_PAD: return n / ranks + (n % ranks > 0);
	case YOKE_SAMPLER_EXACT: return n / ranks + (rank < n % ranks);
	case YOKE_SAMPLER_DROP: return n / ranks;
	}
	return yk_fail(YOKE_EINVAL, "sampler: kind %d is none of YOKE_SAMPLER_PAD, EXACT and DROP",
		       kind);
}

int64_t yoke_sampler(const yoke_group *g, int kind, int64_t n, uint64_t seed, int64_t epoch,
		     int64_t i)
{
	const int64_t count = yoke_sampler_count(g, kind, n);
	if (count < 0)
		return count;
	if (i < 0 || i >= count)
		return yk_fail(YOKE_ERANGE, "sampler: sample %lld of %lld", (long long)i,
			       (long long)count);
	return yk_order_at((i * g->ranks + g->rank) % n, n, 1, seed, epoch);
}
