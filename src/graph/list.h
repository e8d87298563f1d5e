// SPDX-License-Identifier: Apache-2.0
// Recording LIST_MAP and LIST_REDUCE from formulas.
#ifndef YK_LIST_H
#define YK_LIST_H

#include "graph/graph.h"
#include "kernel/formula.h"

// Operands of a formula: its lists, n tensors each, one list behind another, then its numbers, each of one
// element or, [n], of one a tensor; an absent one is YK_NIL.  The tensors of a list have one dtype; the
// arithmetic is in f64 when one of them has it, else in f32.
struct yk_list_call {
	const struct yk_formula *formula;
	uint32_t n;
	const yk_id *in;
	const double *constant;
	const yk_id *skip; // one number: where it is not 0, results keep what was in the list; NULL: none
};
// The first result of the first tensor; the others follow, list by list.
int yk_list_map(struct yk_graph *, const struct yk_list_call *, yk_id *out);
// kind: of the plugin ABI; each: a number for each tensor, [n], else one for all, [].  YK_BAD on error.
yk_id yk_list_reduce(struct yk_graph *, const struct yk_list_call *, int kind, bool each);

#endif
