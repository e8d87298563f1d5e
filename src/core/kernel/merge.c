// SPDX-License-Identifier: Apache-2.0
// Merges axes of ops.  An op's definition divides its axes into groups: the leading axes of [..,N],
// the axes before and after a given axis, the axes of indices.  Neighbours in a group are merged in
// all operands that have the group.
#include "config.h"

#include <stdbool.h>
#include <string.h>

#include "kernel/merge.h"

enum { VIEWS = YOKE_MAP_MAX_OUTPUTS + YOKE_MAP_MAX_INPUTS + 2 }; // contraction, map, space

// The views of an op: its iteration space, if any, as a SCALAR, whose strides restrict nothing;
// then the outputs and inputs that are present.
struct views {
	struct yoke_view *v[VIEWS];
	uint32_t operand[VIEWS]; // operand number, outputs first
	int n;
	struct yoke_view space;
};

static void drop_axes(struct yoke_view *v, int first, int n)
{
	const size_t after = (size_t)(v->rank - first - n);
	memmove(v->dims + first, v->dims + first + n, after * sizeof *v->dims);
	memmove(v->strides + first, v->strides + first + n, after * sizeof *v->strides);
	v->rank = (uint8_t)(v->rank - n);
}

static bool runs_on(const struct yoke_view *v, int outer, int inner)
{
	return v->kind != YOKE_VIEW_BUFFER || v->dims[inner] == 1 ||
	       v->strides[outer] == v->strides[inner] * v->dims[inner];
}

// Merges the n axes of a group that begins at axis at[k] of view k (-1: the view does not have the
// group).  Returns the number of axes left, `min` or more.
static int merge(struct views *w, const int *at, int n, int min)
{
	int left = 0, lead = 0;
	while (lead < w->n && at[lead] < 0)
		lead++;
	for (int i = 0; i < n; i++) {
		bool joins = left > 0;
		if (w->v[lead]->dims[at[lead] + i] == 1 && n - i > min - left)
			continue;
		for (int k = lead; k < w->n && joins; k++)
			joins = at[k] < 0 || runs_on(w->v[k], at[k] + left - 1, at[k] + i);
		left += !joins;
		for (int k = lead; k < w->n; k++) {
			if (at[k] < 0)
				continue;
			int64_t *dims = w->v[k]->dims + at[k], *strides = w->v[k]->strides + at[k];
			dims[left - 1] = joins ? dims[left - 1] * dims[i] : dims[i];
			strides[left - 1] = strides[i];
		}
	}
	for (int k = lead; k < w->n; k++)
		if (at[k] >= 0)
			drop_axes(w->v[k], at[k] + left, n - left);
	return left;
}

// The same for a group that begins at the same axis of all views except the operands in the mask
// `without`.
static int merge_at(struct views *w, int axis, int n, int min, uint32_t without)
{
	int at[VIEWS];
	for (int k = 0; k < w->n; k++)
		at[k] = without >> w->operand[k] & 1 ? -1 : axis;
	return n > 0 ? merge(w, at, n, min) : 0;
}

// Kept and reduced axes are merged separately.  The axis of an argmin or argmax stays.
static void merge_reduced(struct yoke_op *op, struct views *w)
{
	const bool place = op->attr[0].i >= YOKE_REDUCE_ARGMAX;
	const uint64_t was = (uint64_t)op->attr[1].i;
	uint64_t mask = 0;
	int rank = 0;

	for (int i = 0; i < op->rank; i++) { // axis i of the op is axis `rank` of the views
		const bool reduced = was >> i & 1;
		if (w->space.dims[rank] == 1 && !(place && reduced) && w->space.rank > 1)
			merge_at(w, rank, 1, 0, 0);
		else
			mask |= (uint64_t)reduced << rank++;
	}
	for (int end = rank, first; end > 0; end = first) {
		for (first = end - 1;
		     first > 0 && (mask >> first & 1) == (mask >> (first - 1) & 1);)
			first--;
		const int left = merge_at(w, first, end - first, 1, 0);
		const uint64_t before = mask & (((uint64_t)1 << first) - 1);
		const uint64_t after = mask >> end << (first + left);
		mask = before | after |
		       (mask >> first & 1 ? (((uint64_t)1 << left) - 1) << first : 0);
	}
	op->attr[1].i = (int64_t)mask;
}

// Axes before and after the one in attribute 0.
static void merge_around(struct yoke_op *op, struct views *w, int rank)
{
	const int axis = (int)op->attr[0].i;
	merge_at(w, axis + 1, rank - axis - 1, 0, 0);
	op->attr[0].i = merge_at(w, 0, axis, 0, 0);
}

// x [O..,N,R..], idx [I..] -> y [O..,I..,R..]
static void merge_gather(struct yoke_op *op, struct views *w, const struct yoke_view *x,
			 const struct yoke_view *idx)
{
	const int axis = (int)op->attr[0].i, n = idx->rank;
	merge(w, (int[]){ axis + n, axis + 1, -1 }, x->rank - axis - 1, 0);
	merge(w, (int[]){ axis, -1, 0 }, n, 0);
	op->attr[0].i = axis ? merge(w, (int[]){ 0, 0, -1 }, axis, 0) : 0;
}

// x [N,R..] or none, idx [I..], v [I..,R..] -> y like x
static void merge_scatter(struct views *w, const struct yoke_view *y, const struct yoke_view *idx)
{
	const int n = idx->rank, rows = y->rank - 1;
	int after[VIEWS], index[VIEWS];
	for (int k = 0; k < w->n; k++) {
		after[k] = w->operand[k] == 2 ? -1 : w->operand[k] == 3 ? n : 1;
		index[k] = w->operand[k] < 2 ? -1 : 0;
	}
	merge(w, after, rows, 0);
	merge(w, index, n, 0);
}

void yk_merge_axes(struct yoke_op *op, struct yoke_view *out, struct yoke_view *in)
{
	const bool spaced = op->code == YOKE_OP_MAP || op->code == YOKE_OP_REDUCE ||
			    op->code == YOKE_OP_SCAN_MAP;
	struct views w = { .n = 0, .space = { .kind = YOKE_VIEW_SCALAR, .rank = op->rank } };

	if (op->nout + op->nin + spaced > VIEWS)
		return;
	memcpy(w.space.dims, op->dims, sizeof w.space.dims);
	if (spaced) {
		w.operand[0] = 31; // a bit that no mask has
		w.v[w.n++] = &w.space;
	}
	for (uint32_t k = 0; k < op->nout + op->nin; k++) {
		struct yoke_view *v = k < op->nout ? &out[k] : &in[k - op->nout];
		if (v->kind == YOKE_VIEW_NONE)
			continue;
		w.operand[w.n] = k;
		w.v[w.n++] = v;
	}
	switch (op->code) {
	case YOKE_OP_MAP: merge_at(&w, 0, op->rank, 1, 0); break;
	case YOKE_OP_REDUCE: merge_reduced(op, &w); break;
	case YOKE_OP_SCAN_MAP: merge_around(op, &w, op->rank); break;
	case YOKE_OP_CONTRACT: merge_at(&w, 0, out[0].rank - 2, 0, 0); break;
	case YOKE_OP_MOVE: case YOKE_OP_CHECK: merge_at(&w, 0, out[0].rank, 1, 0); break;
	case YOKE_OP_GATHER: merge_gather(op, &w, &in[0], &in[1]); break;
	case YOKE_OP_SCATTER_ADD: merge_scatter(&w, &out[0], &in[1]); break;
	case YOKE_OP_SCAN: case YOKE_OP_GATHER_ALONG: case YOKE_OP_SCATTER_ADD_ALONG:
		merge_around(op, &w, out[0].rank);
		break;
	// [..,N]; w and b, dw and db have the last axis only
	case YOKE_OP_SORT: case YOKE_OP_SOFTMAX: case YOKE_OP_SOFTMAX_BACKWARD:
		merge_at(&w, 0, in[0].rank - 1, 0, 0);
		break;
	case YOKE_OP_LAYER_NORM: merge_at(&w, 0, in[0].rank - 1, 0, 1u << 4 | 1u << 5); break;
	case YOKE_OP_LAYER_NORM_BACKWARD:
		merge_at(&w, 0, in[0].rank - 1, 0, 1u << 1 | 1u << 2 | 1u << 4);
		break;
	case YOKE_OP_RMS_NORM: merge_at(&w, 0, in[0].rank - 1, 0, 1u << 3); break;
	case YOKE_OP_RMS_NORM_BACKWARD:
		merge_at(&w, 0, in[0].rank - 1, 0, 1u << 1 | 1u << 3);
		break;
	}
	if (spaced) {
		op->rank = w.space.rank;
		memcpy(op->dims, w.space.dims, sizeof w.space.dims);
	}
}
