// SPDX-License-Identifier: Apache-2.0
// Iterates over the elements of a view in row-major order, and records the first invalid position.
#ifndef YK_WALK_H
#define YK_WALK_H

#include <stdatomic.h>

#include "../cpu.h"

// Offset, in elements, of the i-th element in row-major order.
static inline int64_t offset_of(const int64_t *dims, const int64_t *strides, int rank,
				int64_t i)
{
	int64_t offset = 0;
	for (int d = rank - 1; d >= 0; d--) {
		offset += i % dims[d] * strides[d];
		i /= dims[d];
	}
	return offset;
}

static inline bool same_dims(const int64_t *a, const int64_t *b, int n)
{
	for (int d = 0; d < n; d++)
		if (a[d] != b[d])
			return false;
	return true;
}

// Keeps the smallest position, whatever the order of the calls.
static inline void record_first(_Atomic int64_t *first, int64_t position)
{
	int64_t seen = atomic_load(first);
	while (position < seen && !atomic_compare_exchange_weak(first, &seen, position))
		;
}

#endif
