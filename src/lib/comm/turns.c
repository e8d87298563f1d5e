// SPDX-License-Identifier: Apache-2.0
// Pipeline schedules (see turns.h).
#include "config.h"

#include "comm/turns.h"

struct yk_turn yk_turn_of(enum yk_pipeline how, int64_t stages, int64_t stage, int64_t parts,
			  int64_t i)
{
	const int64_t later = how == YK_GPIPE ? parts : stages - 1 - stage,
		      warm = later < parts ? later : parts;
	const int64_t k = i - warm, pairs = parts - warm;
	if (k < 0)
		return (struct yk_turn){ false, i };
	if (k < 2 * pairs)
		return (struct yk_turn){ k % 2, k / 2 + (k % 2 ? 0 : warm) };
	return (struct yk_turn){ true, k - pairs };
}
