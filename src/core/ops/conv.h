// SPDX-License-Identifier: Apache-2.0
// Attributes of convolutions, windows and pools, and what these families share.
#ifndef YK_CONV_H
#define YK_CONV_H

#include "graph/record.h"

enum { YK_CONV_AXES = 2, YK_CONV_MAX = UINT16_MAX }; // most: of each number

struct yk_conv_axis {
	int64_t stride, dilation, lo, hi; // lo, hi: zeros before and behind
};

static inline int64_t yk_conv_pack(const struct yk_conv_axis *a)
{
	return (int64_t)((uint64_t)a->stride | (uint64_t)a->dilation << 16 | (uint64_t)a->lo << 32 | (uint64_t)a->hi << 48);
}

static inline struct yk_conv_axis yk_conv_axis(int64_t packed)
{
	const uint64_t p = (uint64_t)packed;
	return (struct yk_conv_axis){ .stride = p & 0xffff, .dilation = p >> 16 & 0xffff, .lo = p >> 32 & 0xffff,
				      .hi = (int64_t)(p >> 48) };
}

// The windows of x's last axes, beside which there is `fill`: as many axes more, in front of the positions, since those
// are many, and what runs through the windows has them in its inner loops.  attr: sizes of windows, then the axes.
yk_id yk_windows_in_front(struct yk_graph *, yk_id x, int axes, const union yoke_attr *attr, double fill);
// The mask of the axes that are in front.
unsigned yk_axes_in_front(const struct yk_graph *, yk_id windows, int axes);

// Windows of an axis of n elements; 0: none fits, or a number is not positive.
int64_t yk_window_count(int64_t n, int64_t size, int64_t stride, int64_t dilation);
// How many axes follow [B,C] in the operand; 0 with an error.
int yk_conv_axes_of(struct yk_rec *, yk_id x);
// An option: `given`, or `unsaid` where it is 0.  False, with an error, unless it is in least .. YK_CONV_MAX.
bool yk_conv_number(struct yk_rec *, const char *what, int64_t given, int64_t least, int64_t unsaid, int64_t *to);

#endif
