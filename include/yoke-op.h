// SPDX-License-Identifier: Apache-2.0
// Custom operations, which are recorded, planned, profiled, differentiated and named in errors like
// those of yoke.h.
//
//	static int shape(const struct yoke_op_args *a, struct yoke_op_tensor *out)
//	{
//		out[0] = a->in[0]; // dtype and dims
//		return 0;
//	}
//	static int cpu(const struct yoke_op_args *a, int64_t chunk, int64_t chunks) { .. }
//	static int gradient(const struct yoke_op_args *a, yoke_tensor *const *in,
//			    yoke_tensor *const *out, yoke_tensor *const *g, yoke_tensor **to)
//	{
//		to[0] = yoke_mul(g[0], yoke_const(3));
//		return 0;
//	}
//	int op = yoke_op_register(&(struct yoke_op_def){
//		.size = sizeof(struct yoke_op_def), .name = "acme.triple", .nin = 1, .nout = 1,
//		.shape = shape, .cpu = cpu, .text = text, .entry = "triple",
//		.gradient = gradient });
//	yoke_op_call(op, 1, &x, 0, NULL, 1, &y);
//
// On a device other than the CPU, an op runs as a kernel compiled from its source text if the
// device supports it, otherwise by its decomposition into other operations or by its CPU function,
// whichever exists.  On the CPU it runs by its CPU function, otherwise by its decomposition.  A
// decomposition plus a gradient define a function with a custom gradient.  examples/custom_op.c is
// a complete example.
//
// The kernel source uses the dialect of the library's kernels, which OpenCL, CUDA and ROCm compile.
// It begins with #include "prologue.h", which defines KERNEL, GLOBAL, FN, GLOBAL_ID(d), uchar,
// ulong and more.  Compiler errors refer to its line numbers, under the op's name.  The kernel's
// parameters are, for each result and then each operand, a GLOBAL uchar * and a ulong, the byte
// offset of its first element (an absent operand: NULL and 0); then each attribute, as a long or
// double:
//
//	#include "prologue.h"
//	KERNEL void triple(GLOBAL uchar *y, ulong y0, GLOBAL uchar *x, ulong x0)
//	{
//		ulong i = GLOBAL_ID(0);
//		((GLOBAL float *)(y + y0))[i] = 3 * ((GLOBAL const float *)(x + x0))[i];
//	}
//
// Elements are row-major.  Results must not depend on how the work is divided.
#ifndef YOKE_OP_H
#define YOKE_OP_H

#include <yoke.h>

#ifdef __cplusplus
extern "C" {
#endif

// An operand or a result as passed to an op's functions.
struct yoke_op_tensor {
	int dtype, rank;                // YOKE_DTYPE_NONE: an omitted optional operand
	int64_t dims[YOKE_MAX_RANK];
	int64_t strides[YOKE_MAX_RANK]; // in elements; only set for cpu
	void *data;                     // the first element; only set for cpu
};

// A call of an op.
struct yoke_op_args {
	size_t size;
	const char *name;
	int nin, nout, nattr;
	const struct yoke_op_tensor *in, *out; // out: not set for shape
	const union yoke_attr *attr;
	void *arg; // the definition's arg
};

#define YOKE_OP_MAX_IN 16
#define YOKE_OP_MAX_OUT 8

enum { YOKE_STRIDED = 1 }; // cpu accepts strided operands, which are otherwise copied

struct yoke_op_def {
	size_t size;      // sizeof, set by the caller
	const char *name; // "acme.gate": letters, digits and _, with one '.'
	int nin, nout, nattr; // 0 .. 16 operands, 1 .. 8 results, 0 .. 16 attributes
	unsigned optional;    // bit i: operand i may be YOKE_NONE
	unsigned flags;       // YOKE_STRIDED
	// Sets dtype, rank and dims of the results, or rejects the operands by yoke_op_fail.  Must
	// depend only on its arguments; it is called again before a launch.  Required; must not
	// record operations.
	int (*shape)(const struct yoke_op_args *, struct yoke_op_tensor *out);
	// Records the op as other operations on these operands only; the results must have the
	// shapes set by `shape`.  Not used for gradients.  Returns 0, or an error.
	int (*decompose)(const struct yoke_op_args *, yoke_tensor *const *in, yoke_tensor **out);
	// Computes chunk 0 .. chunks - 1 of the results, on any thread, several concurrently.
	// Returns 0, or an error.
	int (*cpu)(const struct yoke_op_args *, int64_t chunk, int64_t chunks);
	const char *text, *entry; // kernel source, and the kernel's name in it
	// Sets the global size along each axis and, unless left 0, the work-group size.  The global
	// size is rounded up to multiples of the group size, so the kernel must check its bounds.
	// NULL: one work item per element of the first result.
	int (*geometry)(const struct yoke_op_args *, uint64_t global[3], uint64_t local[3]);
	// Records the gradient by each operand, of its shape and dtype, given the gradient by each
	// result (YOKE_NONE for one that is not floating point).  to[i] = YOKE_NONE: it is 0.
	// NULL: yoke_grad fails with the op's name.
	int (*gradient)(const struct yoke_op_args *, yoke_tensor *const *in,
			yoke_tensor *const *out, yoke_tensor *const *g, yoke_tensor **to);
	void *arg; // passed to all of these functions
};

// Registers an op for the life of the process; the definition is copied with everything it points
// to except arg.  Returns the op's number, 1 or above.  EINVAL: an op of that name exists, or the
// definition is incomplete; the error names the missing member.
YOKE_API int yoke_op_register(const struct yoke_op_def *);
// The number of the op with a name; ENOENT.
YOKE_API int yoke_op_find(const char *name);
// Records the op.  EINVAL: other counts than in its definition.  The first call compiles the kernel
// source for the context's device: EUNSUPPORTED, with the compiler's message, if that fails; also
// EUNSUPPORTED if the device has no way to compute the op.  After an error each out[i] is NULL.
// Functions that record operations run in their own scope, without mixed precision, and must not
// evaluate (EINVAL).
YOKE_API int yoke_op_call(int op, int nin, yoke_tensor *const *in, int nattr,
			  const union yoke_attr *attr, int nout, yoke_tensor **out);
// Sets the message of an error that one of an op's functions is about to return.  Returns code.
YOKE_API int yoke_op_fail(const struct yoke_op_args *, int code, const char *why);
// Tests an op: computes it in each available way, with the kernel on the context's device, and
// compares the results; and compares its gradient with finite differences along random directions
// if all floating-point operands are f32 or f64.  tolerance: relative to the largest element; 0: by
// dtype, and 2e-3 for gradients of f32.  EINVAL names the first difference: "its text gives 2 at
// [3,1] of result 0, its decomposition 1".  Gradients are not checked at elements at or near kinks
// and jumps of the results; if that leaves no element of an operand, a warning is logged.  Waits.
YOKE_API int yoke_op_check(int op, int nin, yoke_tensor *const *in, int nattr,
			   const union yoke_attr *attr, double tolerance);

#ifdef __cplusplus
}
#endif
#endif
