// SPDX-License-Identifier: Apache-2.0
// Sizes and attributes of convolutions, and the entry points of Winograd's algorithm
// (kern_winograd.c), for the kernel in kern_conv.c.
#ifndef YK_KERN_CONV_H
#define YK_KERN_CONV_H

#include "kern_contract.h"

enum { YK_CONV_AXES = 3 };

// Axes 0 to 2 stand for the last three axes; the first ones may be missing.
static inline int64_t yk_conv_dim(const struct yoke_view *v, int axis)
{
	return axis + v->rank - YK_CONV_AXES < 2 ? 1 : v->dims[axis + v->rank - YK_CONV_AXES];
}

static inline int64_t yk_conv_stride(const struct yoke_view *v, int axis)
{
	return axis + v->rank - YK_CONV_AXES < 2 ? 0 : v->strides[axis + v->rank - YK_CONV_AXES];
}

// The attributes of spatial axis 0 to 2; the first ones may be missing.
struct yk_conv_axis {
	int64_t stride, dilation, lo;
};

static inline struct yk_conv_axis yk_conv_axis_of(const struct yoke_op *op, int rank, int axis)
{
	const int at = axis + rank - 1 - YK_CONV_AXES;
	if (at < 1)
		return (struct yk_conv_axis){ 1, 1, 0 };
	const uint64_t p = (uint64_t)op->attr[at].i;
	return (struct yk_conv_axis){ p & 0xffff, p >> 16 & 0xffff, p >> 32 & 0xffff };
}

// x, w and y of the op, whichever of them is the result.
struct yk_conv_operands {
	const struct yoke_view *x, *w, *y;
};

static inline struct yk_conv_operands yk_conv_operands_of(const struct yoke_op *op)
{
	switch (op->code) {
	case YOKE_OP_CONV: return (struct yk_conv_operands){ &op->in[0], &op->in[1], &op->out[0] };
	case YOKE_OP_CONV_X:
		return (struct yk_conv_operands){ &op->out[0], &op->in[1], &op->in[0] };
	default: return (struct yk_conv_operands){ &op->in[0], &op->out[0], &op->in[1] };
	}
}

// Winograd's algorithm for 3x3 taps without stride, see kern_winograd.c. The new object is freed by
// free; NULL: out of memory. bytes: the size of the workspace.
struct yk_winograd;
bool ISA(yk_winograd_can)(const struct yoke_op *op);
struct yk_winograd *ISA(yk_winograd_new)(const struct yoke_op *op);
uint64_t ISA(yk_winograd_bytes)(const struct yk_winograd *);
int ISA(yk_winograd_run)(const struct yk_winograd *, const struct yoke_op *op);

#endif
