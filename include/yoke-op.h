// SPDX-License-Identifier: Apache-2.0
// Operations of an application's own: recorded, planned, profiled, differentiated and named in errors as those of yoke.h.
//
//	static int shape(const struct yoke_op_args *a, struct yoke_op_tensor *out)
//	{
//		out[0] = a->in[0]; // dtype and dims
//		return 0;
//	}
//	static int cpu(const struct yoke_op_args *a, int64_t piece, int64_t pieces) { .. }
//	static int gradient(const struct yoke_op_args *a, yoke_tensor *const *in, yoke_tensor *const *out,
//			    yoke_tensor *const *g, yoke_tensor **to)
//	{
//		to[0] = yoke_mul(g[0], yoke_const(3));
//		return 0;
//	}
//	int op = yoke_op_register(&(struct yoke_op_def){ .size = sizeof(struct yoke_op_def), .name = "acme.triple",
//		.nin = 1, .nout = 1, .shape = shape, .cpu = cpu, .text = text, .entry = "triple", .gradient = gradient });
//	yoke_op_call(op, 1, &x, 0, NULL, 1, &y);
//
// An op is computed by a kernel text where the device compiles it, else, of what it has, by its decomposition, which
// is made of other operations, or by its function on the CPU; on the CPU by that function, else by its decomposition.
// A decomposition and a gradient alone make a function with a gradient of its own.  examples/own_op.c is a whole one.
//
// A text is in the dialect of the library's own, so that OpenCL, CUDA and ROCm compile it: it begins with
// #include "prologue.h", which defines KERNEL, GLOBAL, FN, GLOBAL_ID(d), uchar, ulong and more.  Errors of a driver
// have its line numbers, under the op's name.  The kernel's parameters are, for each result and then each operand, a
// GLOBAL uchar * and a ulong, the bytes from there to its first element (an absent operand: NULL and 0); then each
// attribute, as a long or double:
//
//	#include "prologue.h"
//	KERNEL void triple(GLOBAL uchar *y, ulong y0, GLOBAL uchar *x, ulong x0)
//	{
//		ulong i = GLOBAL_ID(0);
//		((GLOBAL float *)(y + y0))[i] = 3 * ((GLOBAL const float *)(x + x0))[i];
//	}
//
// Elements lie row major.  Results may not depend on how work is cut.
#ifndef YOKE_OP_H
#define YOKE_OP_H

#include <yoke.h>

#ifdef __cplusplus
extern "C" {
#endif

// An operand or a result as an op's functions see it.
struct yoke_op_tensor {
	int dtype, rank;                // YOKE_DTYPE_NONE: an optional operand that is absent
	int64_t dims[YOKE_MAX_RANK];
	int64_t strides[YOKE_MAX_RANK]; // elements; given to cpu alone
	void *data;                     // its first element; given to cpu alone
};

// A call of an op.
struct yoke_op_args {
	size_t size;
	const char *name;
	int nin, nout, nattr;
	const struct yoke_op_tensor *in, *out; // out: of all but shape
	const union yoke_attr *attr;
	void *arg; // the definition's
};

#define YOKE_OP_MAX_IN 16
#define YOKE_OP_MAX_OUT 8

enum { YOKE_STRIDED = 1 }; // cpu takes operands as they lie, with strides, where they would be copied else

struct yoke_op_def {
	size_t size;      // sizeof, set by the caller
	const char *name; // "acme.gate": letters, digits and _, with one '.'
	int nin, nout, nattr; // 0 .. 16 operands, 1 .. 8 results, 0 .. 16 attributes
	unsigned optional;    // bit i: operand i may be YOKE_NONE
	unsigned flags;       // YOKE_STRIDED
	// Sets dtype, rank and dims of the results, or refuses the operands by yoke_op_fail.  What it says depends on its
	// arguments alone; it is asked again before a launch.  Needed; records nothing.
	int (*shape)(const struct yoke_op_args *, struct yoke_op_tensor *out);
	// Records the op by other operations, of these operands alone: of values of the shapes that `shape` says.  Gradients
	// do not go through it.  0, or an error.
	int (*decompose)(const struct yoke_op_args *, yoke_tensor *const *in, yoke_tensor **out);
	// Computes piece 0 .. pieces - 1 of the results, on any thread, several at a time.  0, or an error.
	int (*cpu)(const struct yoke_op_args *, int64_t piece, int64_t pieces);
	const char *text, *entry; // a kernel's text, and its name in it
	// Sets work items along each axis and, unless left 0, those of a group; the items are filled up to multiples of
	// it, so the kernel looks where it is.  NULL: an item for each element of the first result.
	int (*geometry)(const struct yoke_op_args *, uint64_t global[3], uint64_t local[3]);
	// Records the gradient by each operand, of its shape and dtype, given that by each result (YOKE_NONE for one that
	// is not floating point).  to[i] = YOKE_NONE: it is 0.  NULL: yoke_grad fails with the op's name.
	int (*gradient)(const struct yoke_op_args *, yoke_tensor *const *in, yoke_tensor *const *out,
			yoke_tensor *const *g, yoke_tensor **to);
	void *arg; // handed to all of them
};

// For the life of the process; what the definition points to is copied, but for arg.  Returns the op's number, 1 or
// above.  EINVAL: there is an op of that name, or the definition is not whole; the error says which part.
YOKE_API int yoke_op_register(const struct yoke_op_def *);
// The number of a name; ENOENT.
YOKE_API int yoke_op_find(const char *name);
// Records the op.  EINVAL: other counts than it was registered with.  A text is compiled for the context's device by
// the first call: EUNSUPPORTED, with the driver's complaint, where it does not compile, and where the device has no
// way to compute the op.  After an error each out[i] is NULL.  Functions that record run in a scope of their own,
// without mixed precision, and do not evaluate (EINVAL).
YOKE_API int yoke_op_call(int op, int nin, yoke_tensor *const *in, int nattr, const union yoke_attr *attr, int nout,
			  yoke_tensor **out);
// For an op's functions: the error they are about to return, in words.  Returns code.
YOKE_API int yoke_op_fail(const struct yoke_op_args *, int code, const char *why);
// Computes the op of these operands in each way that it has, its text on the context's device, and compares the
// results; and its gradient with differences of its results along random directions, where all operands of floating
// point are f32 or f64.  tolerance: relative to the largest element; 0: by dtype, and 2e-3 for gradients of f32.
// EINVAL names what differs: "its text gives 2 at [3,1] of result 0, its decomposition 1".  Gradients are not checked at
// elements at or near kinks and jumps of the results; if that leaves no element of an operand, a warning is logged.  Waits.
YOKE_API int yoke_op_check(int op, int nin, yoke_tensor *const *in, int nattr, const union yoke_attr *attr,
			   double tolerance);

#ifdef __cplusplus
}
#endif
#endif
