// SPDX-License-Identifier: Apache-2.0
// What gather and scatter_add share: indices of either width and any strides, and their
// check.
#ifndef YK_KERN_GATHER_H
#define YK_KERN_GATHER_H

#include <stdatomic.h>
#include <string.h>

#include "cpu.h"

static inline bool is_index(const struct yoke_view *v)
{
	return v->kind != YOKE_VIEW_NONE &&
	       (v->dtype == yoke_i32 || v->dtype == yoke_i64);
}

// Offset of element i, counted row major, in elements.
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

static inline int64_t index_at(const struct yoke_view *v, int64_t i)
{
	const char *p = (const char *)&v->offset;
	int32_t narrow;
	int64_t wide;

	if (v->kind == YOKE_VIEW_BUFFER)
		p = (const char *)yk_ptr(v) + offset_of(v->dims, v->strides, v->rank, i) *
						      (int64_t)yk_esize(v->dtype);
	if (v->dtype == yoke_i32) {
		memcpy(&narrow, p, sizeof narrow);
		return narrow;
	}
	memcpy(&wide, p, sizeof wide);
	return wide;
}

// Keeps the least position, whoever comes first.
static inline void note_first(_Atomic int64_t *first, int64_t position)
{
	int64_t seen = atomic_load(first);
	while (position < seen && !atomic_compare_exchange_weak(first, &seen, position))
		;
}

static inline int out_of_range(const struct yoke_op *op, const char *name,
			       const struct yoke_view *idx, int64_t position, int64_t n)
{
	return yk_cpu_fail(
		YOKE_ERANGE,
		"%s (step %llu): index %lld at position %lld is not in 0..%lld", name,
		(unsigned long long)op->id, (long long)index_at(idx, position),
		(long long)position, (long long)n - 1);
}

#endif
