// SPDX-License-Identifier: Apache-2.0
// Records LIST_MAP and LIST_REDUCE from formulas: one launch for all tensors of a list.
#ifndef YK_LIST_H
#define YK_LIST_H

#include "graph/graph.h"
#include "kernel/formula.h"

// A formula applied to lists of n tensors.  Operands: the tensors, list after list, then the
// numbers, each of one element or [n] with one per tensor; an absent one is YK_NIL.  The tensors of
// a list have one dtype.  The arithmetic is in f64 if a list has that dtype, else in f32.
struct yk_list_call {
	const struct yk_formula *formula;
	uint32_t n;
	const yk_id *in;
	const double *constant;
	const struct yoke_map *map; // the formula's program for these dtypes, or NULL
	const yk_id *skip; // a number: where not 0, results keep the old values; NULL: none
};
// *out is the first result of the first tensor; the others follow, list by list.
int yk_list_map(struct yk_graph *, const struct yk_list_call *, yk_id *out);
// kind: of the plugin ABI.  each 0: one number for all, []; 1: one per tensor, [n];
// 2: both, [n + 1], the total last.  YK_BAD on error.
// wide: the f64 sums are returned without rounding to the program's dtype.
yk_id yk_list_reduce(struct yk_graph *, const struct yk_list_call *, int kind, int each);
yk_id yk_list_reduce_wide(struct yk_graph *, const struct yk_list_call *, int kind, int each);

// The same for handles; each list has one dtype.  Numbers that are YOKE_NONE are absent.
struct yk_list_step {
	const char *what; // the call named in errors
	const struct yk_formula *formula;
	const double *constant;
	const struct yoke_map *map;      // as above
	int n;
	yoke_tensor *const *const *list; // n tensors for each list of the formula
	yoke_tensor *const *number;
	yoke_tensor *const *const *to;   // n variables to assign for each result, or NULL
	yoke_tensor **made;              // new handles of the only result without variables
	bool wide;                       // for sums, as above
};
int yk_list_step(const struct yk_list_step *);
// The sum of the formula's result; `each` as above.
yoke_tensor *yk_list_sum(const struct yk_list_step *, int each);

// yoke_scaler_check for gradients whose scaled squares, f32 [n], are known.  The names must live as
// long as the scaler.
int yk_scaler_take(struct yoke_scaler *, int n, const char *const *name, yoke_tensor *squares,
		   yoke_tensor **norm, yoke_tensor **skip);

#endif
