// SPDX-License-Identifier: Apache-2.0
// Shards of parameters: which elements a rank has, and copies between whole and shard.
#include "config.h"

#include "nn/shard.h"

#include <fnmatch.h>
#include <stdbool.h>
#include <string.h>

#include "base/error.h"

int yk_shard_range_of(const struct yk_shard *s, const char *name, int rank, int64_t *dims,
		      struct yk_shard_range *to)
{
	const struct yk_shard_rule *r = s && s->ranks > 1 ? s->rule : NULL;
	*to = (struct yk_shard_range){ 0 };
	while (r && r->pattern && fnmatch(r->pattern, name, 0))
		r++;
	if (!r || !r->pattern)
		return 0;
	const int axis = r->by == YK_ROW;
	const int64_t blocks = r->blocks ? r->blocks : 1;
	if (axis >= rank || dims[axis] % blocks || dims[axis] / blocks < s->ranks)
		return yk_fail(
			YOKE_EINVAL,
			"tensor=%lld: %s has %lld in its axis %d, too few for each rank to have one",
			(long long)s->ranks, name,
			axis < rank ? (long long)(dims[axis] / blocks) : 0, axis);
	const int64_t n = dims[axis] / blocks;
	if (r->by != YK_VOCAB && n % s->ranks)
		return yk_fail(YOKE_EINVAL, "tensor=%lld does not divide the %lld of %s",
			       (long long)s->ranks, (long long)n, name);
	*to = (struct yk_shard_range){ axis, (int)blocks, dims[axis], s->rank * n / s->ranks,
				       (s->rank + 1) * n / s->ranks };
	dims[axis] = blocks * (to->to - to->from);
	return 0;
}

yoke_tensor *yk_shard_slice(const struct yk_shard_range *c, yoke_tensor *whole)
{
	yoke_tensor *block[8];
	const int64_t n = c->blocks ? c->all / c->blocks : 0;
	for (int b = 0; b < c->blocks; b++)
		block[b] = yoke_slice(whole, c->axis, b * n + c->from, b * n + c->to, 1);
	return c->blocks == 0 ? whole :
	       c->blocks == 1 ? block[0] :
				yoke_concat(c->blocks, block, c->axis);
}

// Copies between a whole and a shard, in either direction.
static void copy(const struct yk_shard_range *c, int rank, const int64_t *dims, size_t each,
		 char *whole, char *shard, bool out)
{
	size_t outer = 1, inner = each;
	for (int d = 0; d < rank; d++)
		if (c->blocks && d < c->axis)
			outer *= (size_t)dims[d];
		else if (!c->blocks || d > c->axis)
			inner *= (size_t)dims[d];
	const size_t blocks = c->blocks ? (size_t)c->blocks : 1,
		     n = c->blocks ? (size_t)c->all / blocks : 1, from = (size_t)c->from * inner,
		     bytes = c->blocks ? (size_t)(c->to - c->from) * inner : inner;
	for (size_t i = 0; i < outer * blocks; i++, shard += bytes) {
		char *at = whole + i * n * inner + from;
		memcpy(out ? shard : at, out ? at : shard, bytes);
	}
}

void yk_shard_extract(const struct yk_shard_range *c, int rank, const int64_t *dims, size_t each,
		      const void *whole, void *shard)
{
	copy(c, rank, dims, each, (char *)(uintptr_t)whole, shard, true);
}

void yk_shard_insert(const struct yk_shard_range *c, int rank, const int64_t *dims, size_t each,
		     const void *shard, void *whole)
{
	copy(c, rank, dims, each, whole, (char *)(uintptr_t)shard, false);
}
