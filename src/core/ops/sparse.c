// SPDX-License-Identifier: Apache-2.0
// Products of sparse matrices and tensors along an axis, and their two gradients: sparse_x by the
// tensor, sparse_w by the matrix.  See ops/sparse.h for the matrices.
#include "config.h"

#include <math.h>
#include <string.h>

#include "graph/record.h"
#include "ops/rules.h"
#include "ops/sparse.h"

// Operands: a tensor, for sparse_w a second one, idx, w (but for sparse_w), first.  attr: the size
// of the axis in the result; kind
enum { X, IDX, W, FIRST, SPARSE_OPERANDS };

// ---- shapes ----

// Checks the tensor, the matrix of `rows` rows and the number of its entries.
static int want_matrix(struct yk_graph *g, const struct yk_call *c, const struct yk_value *x,
		       const struct yk_value *idx, const struct yk_value *first, int64_t rows)
{
	if (x->dtype != yoke_f32 && x->dtype != yoke_f64)
		return fail_one(g, c, YOKE_EDTYPE, "takes f32 or f64, got", x);
	if (want_index(g, c, idx) < 0)
		return YOKE_EDTYPE;
	if (x->rank != 4 || idx->rank != 2 || (idx->dims[0] != 1 && idx->dims[0] != x->dims[0]))
		return fail_two(g, c, YOKE_ESHAPE,
				"expects [G,A,N,R] and indices [G,M] or [1,M], got", x, idx);
	if (!first && (rows ? idx->dims[1] % rows : idx->dims[1]))
		return yk_op_fail(g, c->op, YOKE_ESHAPE,
				  "%lld entries do not divide into %lld rows",
				  (long long)idx->dims[1], (long long)rows);
	if (first && (first->dtype != yoke_i64 || first->rank != 1 || first->dims[0] != rows + 1))
		return fail_one(g, c, YOKE_ESHAPE, "first is i64 [rows+1], got", first);
	return 0;
}

static const struct yk_value *optional(struct yk_graph *g, const struct yk_call *c, uint32_t k)
{
	return has(c, k) ? IN(k) : NULL;
}

static int want_weights(struct yk_graph *g, const struct yk_call *c)
{
	struct yk_value like = *IN(IDX);
	like.dtype = IN(X)->dtype;
	return want_like(g, c, W, &like);
}

static int shape_sparse(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const int err = want_matrix(g, c, IN(X), IN(IDX), optional(g, c, FIRST), c->attr[0].i);
	if (err || want_weights(g, c) < 0)
		return err ? err : YOKE_ESHAPE;
	*out = *IN(X);
	out->dims[2] = c->attr[0].i;
	return want_size(g, c, out);
}

static int shape_sparse_x(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const int64_t rows = IN(X)->rank == 4 ? IN(X)->dims[2] : 0;
	const int err = want_matrix(g, c, IN(X), IN(IDX), optional(g, c, FIRST), rows);
	if (err || want_weights(g, c) < 0)
		return err ? err : YOKE_ESHAPE;
	*out = *IN(X);
	out->dims[2] = c->attr[0].i;
	return want_size(g, c, out);
}

// x, g, idx, first
static int shape_sparse_w(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	struct yk_value like = *IN(0);
	const int64_t rows = IN(1)->rank == 4 ? IN(1)->dims[2] : 0;
	const int err = want_matrix(g, c, IN(1), IN(2), optional(g, c, 3), rows);
	if (err)
		return err;
	if (like.rank == 4)
		like.dims[2] = rows;
	if (want_like(g, c, 1, &like) < 0)
		return YOKE_ESHAPE;
	*out = *IN(2);
	out->dtype = IN(0)->dtype;
	return want_size(g, c, out);
}

// ---- decompositions ----

// [1,M] or [G,M] as [1 or G,1,M,1]
static yk_id along(struct yk_graph *g, yk_id v)
{
	return v == YK_BAD ?
		       v :
		       yk_reshape(g, v, 4,
				  (int64_t[]){ g->value[v].dims[0], 1, g->value[v].dims[1], 1 });
}

// Is the entry present?  bool [1 or G,1,M,1]
static yk_id present(struct yk_graph *g, yk_id idx)
{
	return along(g, yk_bin(g, YK_GE, idx, lit_like(g, idx, 0)));
}

// Elements idx [1 or G,M] of x [G,A,N,R] along axis 2; for idx -1, element 0.
static yk_id picked(struct yk_graph *g, yk_id x, yk_id idx)
{
	const yk_id at = yk_bin(g, YK_MAX, idx, lit_like(g, idx, 0));
	if (at == YK_BAD || x == YK_BAD)
		return YK_BAD;
	struct yk_value v = g->value[x];
	const struct yk_value i = g->value[idx];
	v.dims[2] = i.dims[1];
	if (i.dims[0] == 1)
		return yk_record(g, YK_GATHER, 2, (yk_id[]){ x, yk_reshape(g, at, 1, i.dims + 1) },
				 1, &(union yoke_attr){ .i = 2 });
	return yk_record(g, YK_TAKE_ALONG, 2,
			 (yk_id[]){ x, yk_broadcast_like(g, along(g, at), &v) }, 1,
			 &(union yoke_attr){ .i = 2 });
}

yk_id yk_sparse_rows(struct yk_graph *g, yk_id first, int64_t entries)
{
	if (first == YK_BAD)
		return first;
	const struct yk_value f = g->value[first];
	// the number of rows that begin at or before each entry, minus 1
	const int64_t n = entries + 1, rows = f.dims[0] - 1;
	const yk_id one = yk_broadcast(g, yk_lit(g, yoke_i64, 1), 1, f.dims);
	yk_id v = yk_record(g, YK_SCATTER_ADD, 3, (yk_id[]){ YK_NIL, first, one }, 1,
			    &(union yoke_attr){ .i = n });
	v = yk_record(g, YK_CUMSUM, 1, &v, 3,
		      (union yoke_attr[]){ { .i = 0 }, { .i = YOKE_REDUCE_SUM }, { .i = 0 } });
	v = yk_bin_lit(g, YK_SUB, yk_slice_axis(g, v, 0, 0, entries), 1);
	return yk_tri(g, YK_SELECT, yk_bin_lit(g, YK_LT, v, (double)rows), v,
		      yk_lit(g, yoke_i64, -1));
}

// The row of each entry, i64 [1,M].
static yk_id rows_of(struct yk_graph *g, const struct yk_call *c, uint32_t k, int64_t rows,
		     int64_t entries)
{
	yk_id v;
	if (has(c, k))
		v = yk_sparse_rows(g, c->in[k], entries);
	else
		v = yk_bin_lit(g, YK_DIV, yk_counting(g, entries),
			       rows ? (double)(entries / rows) : 1);
	return yk_reshape(g, v, 2, (int64_t[]){ 1, entries });
}

// Adds v [G,A,M,R] at idx [1 or G,M] to zeros [G,A,n,R]; -1 is dropped.
static yk_id added(struct yk_graph *g, yk_id v, yk_id idx, int64_t n)
{
	if (v == YK_BAD || idx == YK_BAD)
		return YK_BAD;
	const struct yk_value x = g->value[v], i = g->value[idx];
	const yk_id there = yk_bin(g, YK_GE, idx, lit_like(g, idx, 0));
	const yk_id at = yk_tri(g, YK_SELECT, there, idx, lit_like(g, idx, (double)n));
	yk_id y;
	if (i.dims[0] == 1) {
		const int back[] = { 1, 2, 0, 3 };
		y = yk_permute(g, v, (const int[]){ 2, 0, 1, 3 });
		y = yk_record(g, YK_SCATTER_ADD, 3,
			      (yk_id[]){ YK_NIL, yk_reshape(g, at, 1, i.dims + 1), y }, 1,
			      &(union yoke_attr){ .i = n + 1 });
		y = yk_permute(g, y, back);
	} else {
		y = yk_record(g, YK_SCATTER_ADD_ALONG, 3,
			      (yk_id[]){ YK_NIL, yk_broadcast_like(g, along(g, at), &x), v }, 2,
			      (union yoke_attr[]){ { .i = 2 }, { .i = n + 1 } });
	}
	return yk_slice_axis(g, y, 2, 0, n);
}

// Maxima of the entries' elements v [G,A,M,R] over rows that lie one after the other.
static yk_id maxima(struct yk_graph *g, yk_id v, yk_id row, yk_id first, int64_t entries)
{
	const yk_id at = along(g, row);
	for (int64_t by = 1; by < entries && v != YK_BAD; by *= 2) {
		const yk_id same = yk_bin(g, YK_EQ, at, yk_moved(g, at, 2, by, false, -1));
		v = yk_tri(g, YK_SELECT, same,
			   yk_bin(g, YK_MAX, v, yk_moved(g, v, 2, by, false, -INFINITY)), v);
	}
	if (v == YK_BAD || first == YK_BAD)
		return YK_BAD;
	const int64_t rows = g->value[first].dims[0] - 1;
	const yk_id end = yk_slice_axis(g, first, 0, 1, rows);
	const yk_id any = yk_bin(g, YK_GT, end, yk_slice_axis(g, first, 0, 0, rows));
	const yk_id last =
		yk_tri(g, YK_SELECT, any, yk_bin_lit(g, YK_SUB, end, 1), yk_lit(g, yoke_i64, -1));
	const yk_id idx = yk_reshape(g, last, 2, (int64_t[]){ 1, rows });
	const yk_id y = picked(g, v, idx);
	return y == YK_BAD ? y :
			     yk_tri(g, YK_SELECT, present(g, idx), y, lit_like(g, y, -INFINITY));
}

static void decompose_sparse(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	const int64_t rows = c->attr[0].i, entries = IN(IDX)->dims[1];
	const struct yk_value x = *IN(X);
	const bool max = c->attr[1].i == YK_SPARSE_MAX;
	if (!rows || !entries || !x.dims[2]) {
		struct yk_value y = x;
		y.dims[2] = rows;
		out[0] = yk_broadcast_like(g, yk_lit(g, x.dtype, max ? -INFINITY : 0), &y);
		return;
	}
	yk_id v = picked(g, c->in[X], c->in[IDX]);
	if (has(c, W))
		v = yk_bin(g, YK_MUL, v, along(g, c->in[W]));
	v = yk_tri(g, YK_SELECT, present(g, c->in[IDX]), v,
		   yk_lit(g, x.dtype, max ? -INFINITY : 0));
	if (has(c, FIRST)) {
		const yk_id row = rows_of(g, c, FIRST, rows, entries);
		out[0] = max ? maxima(g, v, row, c->in[FIRST], entries) : added(g, v, row, rows);
		return;
	}
	v = yk_reshape(g, v, 5,
		       (int64_t[]){ x.dims[0], x.dims[1], rows, entries / rows, x.dims[3] });
	out[0] = yk_reduce(g, max ? YK_REDUCE_MAX : YK_SUM, v, 1u << 3, false);
}

static void decompose_sparse_x(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	const struct yk_value y = *IN(X);
	const int64_t entries = IN(IDX)->dims[1];
	if (!entries || !y.dims[2] || !c->attr[0].i) {
		struct yk_value x = y;
		x.dims[2] = c->attr[0].i;
		out[0] = yk_broadcast_like(g, yk_lit(g, y.dtype, 0), &x);
		return;
	}
	const yk_id row = rows_of(g, c, FIRST, y.dims[2], entries);
	yk_id v = picked(g, c->in[X], row);
	if (has(c, W))
		v = yk_bin(g, YK_MUL, v, along(g, c->in[W]));
	v = yk_tri(g, YK_SELECT, present(g, row), v, lit_like(g, v, 0));
	out[0] = added(g, v, c->in[IDX], c->attr[0].i);
}

static void decompose_sparse_w(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	const struct yk_value x = *IN(0), y = *IN(1), idx = *IN(2);
	if (!idx.dims[1] || !x.dims[2] || !y.dims[2]) {
		struct yk_value w = idx;
		w.dtype = x.dtype;
		out[0] = yk_broadcast_like(g, yk_lit(g, x.dtype, 0), &w);
		return;
	}
	const yk_id row = rows_of(g, c, 3, y.dims[2], idx.dims[1]);
	yk_id v = yk_bin(g, YK_MUL, picked(g, c->in[0], c->in[2]), picked(g, c->in[1], row));
	v = yk_tri(g, YK_SELECT, yk_bin(g, YK_AND, present(g, c->in[2]), present(g, row)), v,
		   lit_like(g, v, 0));
	v = yk_reduce(g, YK_SUM, v, 1u << 1 | 1u << 3 | (idx.dims[0] == 1 ? 1u : 0), false);
	out[0] = v == YK_BAD ? v : yk_reshape(g, v, 2, idx.dims);
}

// ---- gradients ----

static yk_id sparse_x(struct yk_graph *g, yk_id v, yk_id idx, yk_id w, yk_id first, int64_t n)
{
	return yk_record(g, YK_SPARSE_X, 4, (yk_id[]){ v, idx, w, first }, 1,
			 &(union yoke_attr){ .i = n });
}

// The cotangent of each row goes to its maxima, in equal parts.
static yk_id grad_max(struct yk_graph *g, const struct yk_node_copy *n, yk_id cot)
{
	const struct yk_value x = g->value[n->in[X]], idx = g->value[n->in[IDX]];
	const int64_t m = idx.dims[1];
	struct yk_call c = { .op = YK_SPARSE, .nin = 4, .in = n->in };
	const struct yk_sparse pick = {
		.idx = n->in[IDX], .w = YK_NIL, .first = YK_NIL, .rows = m
	};
	const struct yk_sparse of_row = { .idx = rows_of(g, &c, FIRST, n->attr[0].i, m),
					  .w = YK_NIL,
					  .first = YK_NIL,
					  .rows = m };
	const struct yk_sparse count = { .idx = yk_reshape(g, yk_counting(g, m), 2,
							   (int64_t[]){ 1, m }),
					 .w = YK_NIL,
					 .first = n->in[FIRST],
					 .rows = n->attr[0].i };
	yk_id is = yk_bin(g, YK_EQ, yk_sparse(g, n->in[X], &pick, YK_SPARSE_SUM),
			  yk_sparse(g, n->y, &of_row, YK_SPARSE_SUM));
	is = yk_cast(g, yk_bin(g, YK_AND, is, present(g, n->in[IDX])), x.dtype);
	const yk_id ties = yk_sparse(g, is, &count, YK_SPARSE_SUM);
	const yk_id each = yk_bin(g, YK_DIV, cot, yk_bin(g, YK_MAX, ties, yk_lit(g, x.dtype, 1)));
	const yk_id v = yk_bin(g, YK_MUL, is, yk_sparse(g, each, &of_row, YK_SPARSE_SUM));
	return sparse_x(g, v, n->in[IDX], YK_NIL, YK_NIL, x.dims[2]);
}

static void grad_sparse(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const struct yk_node_copy n = yk_node_copy(g, node);
	if (n.attr[1].i == YK_SPARSE_MAX) {
		gin[X] = grad_max(g, &n, gout[0]);
		return;
	}
	gin[X] = sparse_x(g, gout[0], n.in[IDX], n.in[W], n.in[FIRST], g->value[n.in[X]].dims[2]);
	if (n.in[W] != YK_NIL)
		gin[W] = yk_record(g, YK_SPARSE_W, 4,
				   (yk_id[]){ n.in[X], gout[0], n.in[IDX], n.in[FIRST] }, 0, NULL);
}

static void grad_sparse_x(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const struct yk_node_copy n = yk_node_copy(g, node);
	const struct yk_sparse m = { n.in[IDX], n.in[W], n.in[FIRST], g->value[n.in[X]].dims[2] };
	gin[X] = yk_sparse(g, gout[0], &m, YK_SPARSE_SUM);
	if (n.in[W] != YK_NIL)
		gin[W] = yk_record(g, YK_SPARSE_W, 4,
				   (yk_id[]){ gout[0], n.in[X], n.in[IDX], n.in[FIRST] }, 0, NULL);
}

static void grad_sparse_w(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const struct yk_node_copy n = yk_node_copy(g, node);
	const struct yk_sparse m = { n.in[2], gout[0], n.in[3], g->value[n.in[1]].dims[2] };
	gin[0] = sparse_x(g, n.in[1], n.in[2], gout[0], n.in[3], g->value[n.in[0]].dims[2]);
	gin[1] = yk_sparse(g, n.in[0], &m, YK_SPARSE_SUM);
}

#define SPARSE(N, NAME, rule) YK_OP(N) = { \
	.name = NAME, .code = YOKE_OP_##N, .min_in = 4, .max_in = 4, .nout = 1, \
	.cast = YK_CAST_F32, .shape = shape_##rule, .grad = grad_##rule, \
	.decompose = decompose_##rule };

SPARSE(SPARSE, "sparse", sparse)
SPARSE(SPARSE_X, "sparse_x", sparse_x) SPARSE(SPARSE_W, "sparse_w", sparse_w)

	yk_id yk_sparse(struct yk_graph *g, yk_id x, const struct yk_sparse *m, int kind)
{
	return yk_record(g, YK_SPARSE, 4, (yk_id[]){ x, m->idx, m->w, m->first }, 2,
			 (union yoke_attr[]){ { .i = m->rows }, { .i = kind } });
}
