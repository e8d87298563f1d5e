// SPDX-License-Identifier: Apache-2.0
// Bags of embeddings: sums, means and maxima of rows of a table, without a copy of the rows.
#include "config.h"

#include "base/sized.h"
#include "graph/record.h"
#include "ops/rules.h"
#include "ops/sparse.h"
#include "yoke-math.h"

// Checks the operands; bags: their number, *matrix: without offsets.
static bool want_bags(struct yk_rec *r, const struct yoke_embedding_bag *o, int64_t *bags)
{
	char a[160], b[160];
	const struct yk_value *w = &r->g->value[r->in[0]], *ids = &r->g->value[r->in[1]];
	const bool rows = r->in[2] == YK_NIL;
	if (w->rank != 2 || ids->rank != (rows ? 2 : 1)) {
		yk_rec_fail(r, YOKE_ESHAPE,
			    "expects w [N,C] and ids [B,L], or [M] with offsets, got %s and %s",
			    yk_describe(w, a), yk_describe(ids, b));
		return false;
	}
	if (!yk_is_float(w->dtype) || (ids->dtype != yoke_i32 && ids->dtype != yoke_i64)) {
		yk_rec_fail(r, YOKE_EDTYPE,
			    "w is floating point and ids are i32 or i64, got %s and %s",
			    yk_describe(w, a), yk_describe(ids, b));
		return false;
	}
	if (!rows) {
		const struct yk_value *offsets = &r->g->value[r->in[2]];
		if (offsets->rank != 1 ||
		    (offsets->dtype != yoke_i32 && offsets->dtype != yoke_i64) ||
		    (o->include_last && !offsets->dims[0])) {
			yk_rec_fail(r, YOKE_ESHAPE, "offsets are i32 or i64 [B], got %s",
				    yk_describe(offsets, a));
			return false;
		}
		*bags = offsets->dims[0] - (o->include_last ? 1 : 0);
	} else {
		*bags = ids->dims[0];
	}
	if (r->in[3] != YK_NIL) {
		const struct yk_value *by = &r->g->value[r->in[3]];
		if (by->dtype != w->dtype || !yk_same_shape(by, ids) || o->mode != YOKE_BAG_SUM) {
			yk_rec_fail(
				r, o->mode != YOKE_BAG_SUM ? YOKE_EINVAL : YOKE_ESHAPE,
				"weights are of sums and have the shape of ids and the dtype of w, got %s for %s",
				yk_describe(by, a), yk_describe(ids, b));
			return false;
		}
	}
	if (o->mode < YOKE_BAG_SUM || o->mode > YOKE_BAG_MAX) {
		yk_rec_fail(r, YOKE_EINVAL, "mode %d is unknown", o->mode);
		return false;
	}
	return true;
}

// Offsets and the end of the last bag as i64 [B+1].
static yk_id ends_of(struct yk_graph *g, yk_id offsets, bool include_last, int64_t entries)
{
	const yk_id from = yk_cast(g, offsets, yoke_i64);
	if (include_last)
		return from;
	const yk_id end =
		yk_broadcast(g, yk_lit(g, yoke_i64, (double)entries), 1, (int64_t[]){ 1 });
	return yk_record(g, YK_CONCAT, 2, (yk_id[]){ from, end }, 1, &(union yoke_attr){ .i = 0 });
}

yoke_tensor *yoke_embedding_bag(yoke_tensor *w, yoke_tensor *ids,
				const struct yoke_embedding_bag *options)
{
	struct yoke_embedding_bag o = YOKE_EMBEDDING_BAG_INIT;
	const int err = options ? yk_sized_read(&o, sizeof o, options, "embedding_bag",
						"yoke_embedding_bag") :
				  0;
	struct yk_rec r = yk_rec_begin_with(YK_SPARSE, 1u << 2 | 1u << 3, 4,
					    (yoke_tensor *[]){ w, ids, o.offsets, o.weights });
	struct yk_graph *g = r.g;
	int64_t bags;
	for (int i = 0; i < 4; i++)
		if (r.in[i] == YK_BAD)
			return yk_rec_end(&r, YK_BAD);
	if (err || !want_bags(&r, &o, &bags))
		return yk_rec_end(&r, YK_BAD);
	const struct yk_value table = g->value[r.in[0]];
	const int64_t entries = yk_count(&g->value[r.in[1]]), all[] = { 1, entries };
	const bool max = o.mode == YOKE_BAG_MAX;
	// a negative id is an error, but the one that is left out
	yk_id idx = yk_reshape(g, r.in[1], 2, all), there = YK_NIL;
	const yk_id none = lit_like(g, idx, -1);
	idx = yk_tri(g, YK_SELECT, yk_bin_lit(g, YK_LT, idx, 0),
		     lit_like(g, idx, (double)table.dims[0]), idx);
	if (o.padding >= 0) {
		there = yk_bin_lit(g, YK_NE, idx, (double)o.padding);
		idx = yk_tri(g, YK_SELECT, there, idx, none);
	}
	const yk_id x = yk_cast_acc(
		g, yk_reshape(g, r.in[0], 4, (int64_t[]){ 1, 1, table.dims[0], table.dims[1] }));
	const struct yk_sparse m = {
		.idx = idx,
		.w = r.in[3] == YK_NIL ? YK_NIL : yk_cast_acc(g, yk_reshape(g, r.in[3], 2, all)),
		.first = r.in[2] == YK_NIL ? YK_NIL : ends_of(g, r.in[2], o.include_last, entries),
		.rows = bags
	};
	yk_id y = yk_sparse(g, x, &m, max ? YK_SPARSE_MAX : YK_SPARSE_SUM);
	// as many rows in each bag
	const bool even = there == YK_NIL && m.first == YK_NIL && entries;
	if (even && o.mode == YOKE_BAG_MEAN) {
		y = yk_bin_lit(g, YK_DIV, y, (double)(entries / bags));
	} else if (o.mode != YOKE_BAG_SUM && !even &&
		   y != YK_BAD) { // the number of rows in each bag
		const int dtype = g->value[y].dtype;
		const int64_t flags[] = { 1, 1, entries, 1 };
		const struct yk_sparse one = { .idx = yk_reshape(g, yk_counting(g, entries), 2,
								 all),
					       .w = YK_NIL,
					       .first = m.first,
					       .rows = bags };
		const yk_id flag = there == YK_NIL ?
					   yk_broadcast(g, yk_lit(g, dtype, 1), 4, flags) :
					   yk_reshape(g, yk_cast(g, there, dtype), 4, flags);
		const yk_id count = yk_sparse(g, flag, &one, YK_SPARSE_SUM);
		if (max)
			y = yk_tri(g, YK_SELECT, yk_bin_lit(g, YK_GT, count, 0), y,
				   yk_lit(g, dtype, 0));
		else
			y = yk_bin(g, YK_DIV, y, yk_bin_lit(g, YK_MAX, count, 1));
	}
	y = y == YK_BAD ? y : yk_reshape(g, y, 2, (int64_t[]){ bags, table.dims[1] });
	return yk_rec_end(&r, y == YK_BAD ? y : yk_cast_like(g, y, r.in[0]));
}
