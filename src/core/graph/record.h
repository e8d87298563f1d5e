// SPDX-License-Identifier: Apache-2.0
// The frame of every public function that records: enter the context, turn handles into values,
// append, make a handle.
//
//	struct yk_rec r = yk_rec_begin(2, (yoke_tensor *[]){ a, b });
//	return yk_rec_end(&r, yk_bin(r.g, YK_ADD, r.in[0], r.in[1]));
//
// If begin fails, every operand is YK_BAD and g is an empty graph, so the calls in between need no
// checks: they fail too.
#ifndef YK_RECORD_H
#define YK_RECORD_H

#include <string.h>

#include "graph/context.h"

struct yk_rec {
	struct yoke_context *ctx; // NULL: the context could not be entered
	struct yk_graph *g;
	int n; // operands
	yk_id in[9];
};

// n at most 9.  Literals and scalars take the dtype of the first operand that has one, else f32;
// bool counts only if no operand has another dtype (select's condition).
// YOKE_NONE is an error, except for operand i with bit i of `optional`, which becomes YK_NIL.
// Errors name `call`, the public function without yoke_; yk_rec_begin, _op and _with take it from
// the enclosing function.
// Mixed precision casts the operands by the policy of `op`, also for composed functions; YK_LEAF:
// no casts.
struct yk_rec yk_rec_begin_as(const char *call, int op, unsigned optional, int n,
			      yoke_tensor *const *t);
#define yk_rec_begin(...) yk_rec_begin_as(yk_call_of(__func__), YK_LEAF, 0, __VA_ARGS__)
#define yk_rec_begin_op(op, ...) yk_rec_begin_as(yk_call_of(__func__), op, 0, __VA_ARGS__)
#define yk_rec_begin_with(...) yk_rec_begin_as(yk_call_of(__func__), __VA_ARGS__)
static inline const char *yk_call_of(const char *function)
{
	return strncmp(function, "yoke_", 5) ? function : function + 5;
}
#define yk_rec_fail(r, code, ...) yk_op_fail((r)->g, YK_LEAF, code, __VA_ARGS__)
// Never returns an operand: an operation that changes nothing returns a view, which has its own
// gradient.
yoke_tensor *yk_rec_end(struct yk_rec *, yk_id result);
// The same for an operation with n further results, which are stored where `to` is not NULL; NULLs
// after an error.
struct yk_rec_result {
	yoke_tensor **to;
	yk_id value;
};
yoke_tensor *yk_rec_end_with(struct yk_rec *, yk_id first, int n, const struct yk_rec_result *more);
// Are the first n operands, 1 or 2, floating point of one dtype, with shapes that broadcast?  Else
// an error that shows them as given; for functions that cast them first.
bool yk_rec_reals(struct yk_rec *, int n);
// Normalizes an axis that may count from the end; negative, with an error, if x has no such axis.
int yk_rec_axis(struct yk_rec *, yk_id x, int axis);
// Is this a valid mask of axes of x, with YOKE_KEEP or without?  Else an error.
bool yk_rec_axes(struct yk_rec *, yk_id x, unsigned axes);
// Is the first operand floating point with at least one axis?  Else an error.
bool yk_rec_check_axis(struct yk_rec *);
// Is `array` non-NULL for n elements?  False after an error, also an earlier one.
bool yk_rec_array(struct yk_rec *, int n, const void *array, const char *what);
// x with that axis, as returned by yk_rec_axis, and the last one exchanged; its own inverse.
yk_id yk_rec_last(struct yk_rec *, yk_id x, int axis);

// ---- lists ----

// Enters the context of t[0]; NULL after an error, which names the call `what`.
struct yoke_context *yk_enter_list(int n, yoke_tensor *const *t, const char *what);
// The same for a call with results in `to`, which may not be NULL.
struct yoke_context *yk_enter_list_to(int n, yoke_tensor *const *t, yoke_tensor **to,
				      const char *what);
// The tensors of `count` lists of n as values, list after list, with room for `more` values at the
// end; the caller frees the array.  NULL after an error.  A list that is NULL is absent.
yk_id *yk_lists(struct yoke_context *, int n, int count, yoke_tensor *const *const *list, int more);
// EINVAL if `call` assigns the same variable twice, since one of the values would be lost.
int yk_lists_once(size_t n, struct yk_tensor *const *var, const char *call);
// A frame of n tensors, any number of them and at least one: enters the context of x[0], and turns
// them into values, cast by the policy of `op`.  The caller frees the array; NULL after an error.
// yk_rec_end closes the frame in either case.
yk_id *yk_rec_list(struct yk_rec *, const char *call, int op, int n, yoke_tensor *const *x);
// After an error the results are NULL, so that operations on them fail too.  Returns err.
int yk_results(int err, int n, yoke_tensor **to);
// Unless err: appends an op of n results and makes their handles.  Frees `in`, leaves the context,
// returns the error.
int yk_list_record(struct yoke_context *, int err, const struct yk_call *, yk_id *in, int n,
		   yoke_tensor **to);
// For f32 gradients times scale: the squared norm of each, [n]; in `order`, the index of the tensor
// that each norm belongs to; the norm of all, []; and 1 if that is infinite or NaN, else 0, [].
int yk_scaled_squares(int n, yoke_tensor *const *g, yoke_tensor *scale, uint32_t *order,
		      yoke_tensor *to[3]);

#endif
