// SPDX-License-Identifier: Apache-2.0
// How a public function records: enter the context, turn handles into values, append, make a handle.
//
//	struct yk_rec r = yk_rec_begin(2, (yoke_tensor *[]){ a, b });
//	return yk_rec_end(&r, yk_bin(r.g, YK_ADD, r.in[0], r.in[1]));
//
// After an error in begin every operand is YK_BAD and g is an empty graph, so that what is appended
// in between fails without a check.
#ifndef YK_RECORD_H
#define YK_RECORD_H

#include <string.h>

#include "graph/context.h"

struct yk_rec {
	struct yoke_context *ctx; // NULL: could not be entered
	struct yk_graph *g;
	int n; // operands
	yk_id in[8];
};

// n at most 8.  Literals and scalars take the dtype of the first operand that has one, bool only where no
// other has (select's condition), else f32.
// YOKE_NONE is an error but for operand i with bit i of `optional`, which is YK_NIL then.
// Errors name the call: the public function without yoke_.  begin, begin_op and begin_with stand in it itself.
// Mixed precision casts operands as the row of `op` says, also for what is made of several ops; YK_LEAF: not.
struct yk_rec yk_rec_begin_as(const char *call, int op, unsigned optional, int n, yoke_tensor *const *t);
#define yk_rec_begin(...) yk_rec_begin_as(yk_call_of(__func__), YK_LEAF, 0, __VA_ARGS__)
#define yk_rec_begin_op(op, ...) yk_rec_begin_as(yk_call_of(__func__), op, 0, __VA_ARGS__)
#define yk_rec_begin_with(...) yk_rec_begin_as(yk_call_of(__func__), __VA_ARGS__)
static inline const char *yk_call_of(const char *function)
{
	return strncmp(function, "yoke_", 5) ? function : function + 5;
}
#define yk_rec_fail(r, code, ...) yk_op_fail((r)->g, YK_LEAF, code, __VA_ARGS__)
// Never returns an operand itself: an operation that changes nothing returns a view, which has its own gradient.
yoke_tensor *yk_rec_end(struct yk_rec *, yk_id result);
// Are the first n operands, 1 or 2, floating point of one dtype that broadcast?  Else an error that shows
// them as they are: asked where they are cast first.
bool yk_rec_reals(struct yk_rec *, int n);
// An axis from 0 or from the end; negative, with an error, when there is none.
int yk_rec_axis(struct yk_rec *, yk_id x, int axis);
// Are these axes of x, with YOKE_KEEP or without?  Else an error.
bool yk_rec_axes(struct yk_rec *, yk_id x, unsigned axes);
// Is the first operand floating point with at least one axis?  Else an error.
bool yk_rec_want_axis(struct yk_rec *);
// Checks that `array` is there for n elements.  False after an error, also an earlier one.
bool yk_rec_array(struct yk_rec *, int n, const void *array, const char *what);
// x with that axis, as yk_rec_axis gives it, and its last one exchanged; done twice, x again.
yk_id yk_rec_last(struct yk_rec *, yk_id x, int axis);

// ---- lists ----

// Enters the context of t[0], NULL after an error; errors name the call `what`.
struct yoke_context *yk_enter_list(int n, yoke_tensor *const *t, const char *what);
// The same for a call that fills `to`, which may not be NULL.
struct yoke_context *yk_enter_list_to(int n, yoke_tensor *const *t, yoke_tensor **to, const char *what);
// The tensors of several lists of n as values, one list behind another, and room for `more` behind; to be
// freed.  NULL after an error.  A list that is NULL is absent.
yk_id *yk_lists(struct yoke_context *, int n, int count, yoke_tensor *const *const *list, int more);
// EINVAL when one of the variables that `call` assigns is given twice, since one of both values would be lost.
int yk_lists_once(size_t n, struct yk_tensor *const *var, const char *call);
// Results are NULL after an error, so that what is recorded with them hands it on.  Returns err.
int yk_results(int err, int n, yoke_tensor **to);
// Unless err: appends an op of n results and gives their handles.  Frees `in`, leaves the context, returns the error.
int yk_list_record(struct yoke_context *, int err, const struct yk_call *, yk_id *in, int n, yoke_tensor **to);
// Of gradients times scale, all f32: the square of each one's norm [n], in `order` which it is of; the norm of all
// []; and is that one infinite or NaN, 0 or 1 [].
int yk_scaled_squares(int n, yoke_tensor *const *g, yoke_tensor *scale, uint32_t *order, yoke_tensor *to[3]);

#endif
