// SPDX-License-Identifier: Apache-2.0
// Stride arithmetic for views and broadcasts.

#include "config.h"

#include <string.h>

#include "plan/strides.h"

void yk_strides(int rank, const int64_t *dims, int64_t *stride)
{
	int64_t n = 1;
	for (int i = rank - 1; i >= 0; i--) {
		stride[i] = n;
		n *= dims[i];
	}
}

bool yk_is_dense(int rank, const int64_t *dims, const int64_t *stride)
{
	int64_t n = 1;
	for (int i = rank - 1; i >= 0; i--) {
		if (dims[i] != 1 && stride[i] != n)
			return false;
		n *= dims[i];
	}
	return true;
}

bool yk_restride(int rank, const int64_t *dims, const int64_t *stride, int to_rank,
		 const int64_t *to_dims, int64_t *to_stride)
{
	int64_t d[YOKE_MAX_RANK], s[YOKE_MAX_RANK];
	int n = 0;
	for (int i = 0; i < to_rank; i++)
		to_stride[i] = 0;
	for (int i = 0; i < to_rank; i++)
		if (!to_dims[i])
			return true; // no elements
	for (int i = 0; i < rank; i++)
		if (dims[i] != 1) {
			d[n] = dims[i];
			s[n++] = stride[i];
		}
	// match runs of old axes with runs of new axes that have the same number of elements
	for (int i = 0, k = 0; i < n;) {
		int64_t have = d[i], want = 1;
		int i0 = i++, k0 = k;
		for (;;) {
			while (want < have && k < to_rank)
				want *= to_dims[k++];
			if (want == have)
				break;
			if (i == n || want < have)
				return false;
			have *= d[i++];
		}
		for (int j = i0; j + 1 < i; j++) // the old axes must be contiguous
			if (s[j] != d[j + 1] * s[j + 1])
				return false;
		int64_t at = s[i - 1];
		for (int j = k - 1; j >= k0; j--) {
			to_stride[j] = at;
			at *= to_dims[j];
		}
	}
	return true;
}

void yk_broadcast_strides(const struct yk_value *x, const int64_t *stride, int rank,
			  const int64_t *dims, int64_t *to)
{
	int more = rank - x->rank;
	for (int i = 0; i < rank; i++)
		to[i] = i < more || (x->dims[i - more] == 1 && dims[i] != 1) ?
				0 :
				stride[i - more];
}
