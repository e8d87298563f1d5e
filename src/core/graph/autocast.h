// SPDX-License-Identifier: Apache-2.0
// Mixed precision where calls record: what yoke_autocast sets, and what it makes of operands.
#ifndef YK_AUTOCAST_H
#define YK_AUTOCAST_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/graph.h"

struct yoke_context;

struct yk_autocast {
	uint8_t dtype;    // f16 or bf16; 0: off
	bool kept;        // the scope at hand, path, is one of those that are kept in f32
	uint32_t path;
	uint32_t matched; // bit i: pattern i named a scope
	char *keep;       // patterns, of the heap; NULL: none
};

// Casts of variables that outlive the evaluation that made them.
struct yk_casts {
	yoke_tensor **held;
	size_t n, cap, next; // next: behind the one that was taken last
};

// The innermost scope, which set what is in force, ends: puts back the former.  EINVAL: a pattern named no scope.
int yk_autocast_end(struct yoke_context *, const struct yk_autocast *former);
// While it is on: the dtypes that n operands of a call are cast to by the policy of an op's row, in place of
// their own (0: no tensor).  Returns the dtype of numbers among them, 0: as ever.
int yk_autocast_want(struct yoke_context *, int op, int n, uint8_t *dtype);
// x as dtype: a cast that is held, or a new one.
yk_id yk_autocast_cast(struct yoke_context *, yk_id x, int dtype);
// Holds the casts of variables to half precision that are recorded so far, each of which is read in one place,
// so that later recordings, until they are released or the variable changes, take them as they are.  Where one
// is read in several places the gradients of all are added in f32, so each has a cast of its own.
int yk_autocast_hold(struct yoke_context *);
void yk_autocast_release(struct yoke_context *);

#endif
