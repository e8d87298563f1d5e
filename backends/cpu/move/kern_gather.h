// SPDX-License-Identifier: Apache-2.0
// Index handling shared by gather and scatter_add: indices of 32 or 64 bits with any strides, and
// their range check.
#ifndef YK_KERN_GATHER_H
#define YK_KERN_GATHER_H

#include <string.h>

#include "walk.h"

static inline bool is_index(const struct yoke_view *v)
{
	return v->kind != YOKE_VIEW_NONE &&
	       (v->dtype == yoke_i32 || v->dtype == yoke_i64);
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

static inline int out_of_range(const char *name, const struct yoke_view *idx,
			       int64_t position, int64_t n)
{
	return yk_cpu_fail(YOKE_ERANGE,
			   "%s: index %lld at position %lld is not in 0..%lld", name,
			   (long long)index_at(idx, position), (long long)position,
			   (long long)n - 1);
}

// True if the axes from `first` on are contiguous and row-major.
static inline bool dense_from(const struct yoke_view *v, int first)
{
	int64_t n = 1;
	for (int d = v->rank - 1; d >= first; d--) {
		if (v->dims[d] != 1 && v->strides[d] != n)
			return false;
		n *= v->dims[d];
	}
	return true;
}

static inline int64_t indices(const struct yoke_view *idx)
{
	int64_t n = 1;
	for (int d = 0; d < idx->rank; d++)
		n *= idx->dims[d];
	return n;
}

#endif
