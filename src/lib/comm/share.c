// SPDX-License-Identifier: Apache-2.0
// Shards of a list of tensors (Rajbhandari et al. 2020): which elements belong to which rank.
#include "config.h"

#include "comm/ranks.h"

int64_t yk_shard_at(uint32_t ranks, uint32_t r, int64_t unit, uint32_t tensors,
		    const int64_t *count)
{
	int64_t all = 0, start = 0;
	for (uint32_t i = 0; i < tensors; i++)
		all += count[i];
	const int64_t want = r * (all / ranks + (all % ranks != 0));
	for (uint32_t i = 0; i < tensors; start += count[i++]) {
		if (want <= start)
			return start;
		const int64_t offset = unit ? (want - start + unit - 1) / unit * unit : count[i];
		if (offset < count[i])
			return start + offset;
	}
	return all;
}

void yk_shard_overlap(int64_t first, int64_t end, int64_t start, int64_t count, int64_t *from,
		      int64_t *to)
{
	*from = first > start ? first - start : 0;
	*to = end - start < count ? end - start : count;
	if (*from >= *to)
		*from = *to = 0;
}
