// SPDX-License-Identifier: Apache-2.0
// Attributes of convolutions, windows and pools, and helpers that these families share.
#ifndef YK_CONV_H
#define YK_CONV_H

#include "graph/record.h"

// MAX: limit of each size, stride, dilation and padding
enum { YK_CONV_AXES = 3, YK_CONV_MAX = UINT16_MAX };

struct yk_conv_axis {
	int64_t stride, dilation, lo, hi; // lo, hi: zeros before and after
};

static inline int64_t yk_conv_pack(const struct yk_conv_axis *a)
{
	return (int64_t)((uint64_t)a->stride | (uint64_t)a->dilation << 16 | (uint64_t)a->lo << 32 |
			 (uint64_t)a->hi << 48);
}

static inline struct yk_conv_axis yk_conv_axis(int64_t packed)
{
	const uint64_t p = (uint64_t)packed;
	return (struct yk_conv_axis){ .stride = p & 0xffff,
				      .dilation = p >> 16 & 0xffff,
				      .lo = p >> 32 & 0xffff,
				      .hi = (int64_t)(p >> 48) };
}

// Windows of x's last axes, padded with `fill`.  The new axes come before the position axes:
// positions are many, so kernels get the long axes as their inner loops.  attr: window sizes, then
// the packed axes.
yk_id yk_windows_in_front(struct yk_graph *, yk_id x, int axes, const union yoke_attr *attr,
			  double fill);
// The adjoint: sums v, values per element of the windows of x, into the shape of x.
yk_id yk_windows_gathered(struct yk_graph *, yk_id v, const struct yk_value *x, int axes,
			  const union yoke_attr *attr);
// The mask of the window axes in this layout.
unsigned yk_axes_in_front(const struct yk_graph *, yk_id windows, int axes);

// Number of windows along an axis of n elements; 0: none fits, or an argument is not positive.
int64_t yk_window_count(int64_t n, int64_t size, int64_t stride, int64_t dilation);
// Number of axes after [B,C] in the operand; 0 with an error.
int yk_conv_axes_of(struct yk_rec *, yk_id x);
// Operand 0 with a batch: [C,S..] of `axes` spatial axes becomes [1,C,S..], and *single is set;
// others are unchanged.
yk_id yk_conv_batched(struct yk_rec *, int axes, bool *single);
// The result for an operand that had no batch.
yk_id yk_conv_single(struct yk_rec *, yk_id y);
// An option: `given`, or the default `unset` if it is 0. False, with an error, if it is not in min
// .. YK_CONV_MAX.
bool yk_conv_number(struct yk_rec *, const char *what, int64_t given, int64_t min, int64_t unset,
		    int64_t *to);

// A call with the options of pools.
struct yk_pooling_call {
	int axes;    // number of spatial axes
	bool single; // x has no batch
	struct yoke_pool_options o;
	union yoke_attr attr[2 * YK_CONV_AXES]; // window sizes, then each axis as for convolutions
	int64_t excess[YK_CONV_AXES];           // elements at the end that only ceil_mode adds
};
// Operand 0 with a batch, and *p; YK_BAD with an error.
yk_id yk_pool_begin(struct yk_rec *, const struct yoke_pool_options *given,
		    struct yk_pooling_call *p);
// Its steps: copies the options; reads those of axis i of n elements.
bool yk_pool_take(struct yk_rec *, const struct yoke_pool_options *given,
		  struct yoke_pool_options *o);
bool yk_pool_axis(struct yk_rec *, struct yk_pooling_call *p, int i, int64_t n,
		  struct yk_conv_axis *a);

#endif
