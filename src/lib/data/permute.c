// SPDX-License-Identifier: Apache-2.0
// Sample order of epochs: a keyed permutation of 0 .. n - 1 without a table.
#include "config.h"

#include "data/permute.h"

static uint64_t mix(uint64_t z) // the finalizer of splitmix64 (Steele et al. 2014)
{
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

// Element i, i < n, of the permutation of 0 .. n - 1 that the key selects.
// A Feistel network on the next even number of bits; outputs that are out of range are permuted
// again (Black and Rogaway 2002): less than four rounds on average.
static uint64_t permuted(uint64_t i, uint64_t n, uint64_t key)
{
	int half = 1;
	uint64_t mask, left, right;

	while (half < 32 && (uint64_t)1 << 2 * half < n)
		half++;
	mask = ((uint64_t)1 << half) - 1;
	do {
		left = i >> half;
		right = i & mask;
		for (uint64_t round = 0; round < 6; round++) {
			uint64_t f = mix(key + round * 0x9e3779b97f4a7c15u + right) & mask;
			uint64_t next = left ^ f;
			left = right;
			right = next;
		}
		i = left << half | right;
	} while (i >= n);
	return i;
}

int64_t yk_order_at(int64_t i, int64_t n, int64_t block, uint64_t seed, int64_t epoch)
{
	const uint64_t key = mix(seed ^ mix((uint64_t)epoch + 1));

	if (block == 0)
		return i;
	if (block == 1)
		return (int64_t)permuted((uint64_t)i, (uint64_t)n, key);
	const int64_t first = i - i % block, left = n - first;
	return first + (int64_t)permuted((uint64_t)(i - first),
					 (uint64_t)(left < block ? left : block),
					 mix(key ^ mix((uint64_t)(first / block) + 1)));
}
