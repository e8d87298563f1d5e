// SPDX-License-Identifier: Apache-2.0
// Mixed precision where calls record: what yoke_autocast sets, and what it makes of operands.
#ifndef YK_AUTOCAST_H
#define YK_AUTOCAST_H

#include <stdbool.h>
#include <stdint.h>

struct yoke_context;

struct yk_autocast {
	uint8_t dtype;    // f16 or bf16; 0: off
	bool kept;        // the scope at hand, path, is one of those that are kept in f32
	uint32_t path;
	uint32_t matched; // bit i: pattern i named a scope
	char *keep;       // patterns, of the heap; NULL: none
};

// The innermost scope, which set what is in force, ends: puts back the former.  EINVAL: a pattern named no scope.
int yk_autocast_end(struct yoke_context *, const struct yk_autocast *former);
// While it is on: the dtypes that n operands of a call are cast to by the policy of an op's row, in place of
// their own (0: no tensor).  Returns the dtype of numbers among them, 0: as ever.
int yk_autocast_want(struct yoke_context *, int op, int n, uint8_t *dtype);

#endif
