// SPDX-License-Identifier: Apache-2.0
// How the attributes of a convolution say what it does along an axis.
#ifndef YK_CONV_H
#define YK_CONV_H

#include <stdint.h>

enum { YK_CONV_AXES = 2, YK_CONV_MOST = UINT16_MAX }; // most: of each number

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

#endif
