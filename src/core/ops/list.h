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
	const struct yoke_map *map; // the formula's, when it was made before, for these dtypes; or NULL
	const yk_id *skip; // one number: where it is not 0, results keep what was in the list; NULL: none
};
// The first result of the first tensor; the others follow, list by list.
int yk_list_map(struct yk_graph *, const struct yk_list_call *, yk_id *out);
// kind: of the plugin ABI; each 0: one number for all, []; 1: one for each tensor, [n]; 2: both, [n + 1], the
// one for all last.  YK_BAD on error.
// wide: the result is f64, as sums are made, without the rounding to the program's dtype.
yk_id yk_list_reduce(struct yk_graph *, const struct yk_list_call *, int kind, int each);
yk_id yk_list_reduce_wide(struct yk_graph *, const struct yk_list_call *, int kind, int each);

// The same by handles, of lists that have one dtype each.  Numbers that are YOKE_NONE are absent.
struct yk_list_step {
	const char *what; // the call that errors name
	const struct yk_formula *formula;
	const double *constant;
	const struct yoke_map *map;      // as above
	int n;
	yoke_tensor *const *const *list; // n tensors for each list of the formula
	yoke_tensor *const *number;
	yoke_tensor *const *const *to;   // n variables for each result, which are assigned; NULL: ..
	yoke_tensor **made;              // .. handles of the only such result
	bool wide;                       // of a sum, as above
};
int yk_list_step(const struct yk_list_step *);
// The formula's result summed; each as above.
yoke_tensor *yk_list_sum(const struct yk_list_step *, int each);

// As yoke_scaler_check, of gradients whose scaled squares are known: f32 [n].  Their names live as long as the scaler is used.
int yk_scaler_take(struct yoke_scaler *, int n, const char *const *name, yoke_tensor *squares, yoke_tensor **norm,
		   yoke_tensor **skip);

#endif
