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

#include "graph/context.h"

struct yk_rec {
	struct yoke_context *ctx; // NULL: could not be entered
	struct yk_graph *g;
	yk_id in[8];
};

// n at most 8.  Literals and scalars take the dtype of the first operand that has one, else f32.
// YOKE_NONE is an error but for operand i with bit i of `optional`, which is YK_NIL then.
struct yk_rec yk_rec_begin(int n, yoke_tensor *const *t);
struct yk_rec yk_rec_begin_with(int n, yoke_tensor *const *t, unsigned optional);
yoke_tensor *yk_rec_end(struct yk_rec *, yk_id result);
// Would the map take the first two operands as they are?  Else an error that shows them so; asked where
// they are cast first.
bool yk_rec_fit(struct yk_rec *, int map);
// An axis from 0 or from the end; negative, with an error, when there is none.
int yk_rec_axis(struct yk_rec *, int op, yk_id x, int axis);
// x with that axis, as yk_rec_axis gives it, and its last one exchanged; done twice, x again.
yk_id yk_rec_last(struct yk_rec *, yk_id x, int axis);

#endif
