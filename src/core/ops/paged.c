// SPDX-License-Identifier: Apache-2.0
// Attention over a paged cache of keys and values (Kwon et al. 2023), and the op that writes to it.
// Sequences own pages of the cache, in any order; a table lists the pages of each.  The
// decomposition gathers all pages of each query's sequence; it defines the op, and runs where a
// backend has no kernel. Shapes: q [T,H,D], k and v [pages,N,G,D], table [rows,M], R = H / G query
// heads share a key head, and S = M N keys.
#include "config.h"

#include <math.h>

#include "graph/record.h"
#include "ops/rules.h"

// q k v table row pos -> o [T,H,D]; attr: scale, window, cap
static int shape_paged(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *q = IN(0), *k = IN(1);
	if (want_float(g, c, q) < 0 || want_float(g, c, k) < 0)
		return YOKE_EDTYPE;
	if ((q->dtype == yoke_f64) != (k->dtype == yoke_f64))
		return fail_two(g, c, YOKE_EDTYPE, "f64 goes with f64 only:", q, k);
	if (q->rank != 3 || k->rank != 4 || q->dims[2] != k->dims[3] || !k->dims[2] ||
	    q->dims[1] % k->dims[2] || !q->dims[2])
		return fail_two(g, c, YOKE_ESHAPE,
				"expects [T,H,D] and [pages,N,G,D] with G dividing H, got", q, k);
	const int unlike = want_like(g, c, 2, k);
	if (unlike)
		return unlike;
	for (uint32_t i = 3; i < 6; i++)
		if (IN(i)->dtype != yoke_i32)
			return fail_one(g, c, YOKE_EDTYPE, "table, rows and positions are i32, got",
					IN(i));
	if (IN(3)->rank != 2)
		return fail_one(g, c, YOKE_ESHAPE, "the table is [rows,pages of each], got", IN(3));
	for (uint32_t i = 4; i < 6; i++)
		if (IN(i)->rank != 1 || IN(i)->dims[0] != q->dims[0])
			return fail_two(g, c, YOKE_ESHAPE,
					"there is one row and one position for each query:", q,
					IN(i));
	*out = *q;
	return 0;
}

struct paged {
	struct yk_graph *g;
	int64_t t, groups, r, d, s;
	int dtype; // in which it computes
	yk_id pages;   // of each query's sequence, [T,M]
	yk_id visible; // [T,S]
};

static yk_id at_least_0(struct yk_graph *g, yk_id x)
{
	return yk_bin(g, YK_MAX, x, yk_lit(g, yoke_i32, 0));
}

static yk_id gather_rows(struct yk_graph *g, yk_id x, yk_id idx)
{
	return yk_record(g, YK_GATHER, 2, (yk_id[]){ x, idx }, 1, &(union yoke_attr){ .i = 0 });
}

static yk_id visible(struct yk_graph *g, const struct yk_call *c, int64_t t, int64_t s)
{
	const int64_t one[] = { t, 1 }, window = c->attr[1].i;
	const yk_id row = yk_reshape(g, c->in[4], 2, one),
		    pos = yk_cast(g, yk_reshape(g, c->in[5], 2, one), yoke_i64);
	const yk_id before = yk_bin(g, YK_SUB, pos, yk_counting(g, s)),
		    zero = yk_lit(g, yoke_i64, 0);
	yk_id ok = yk_bin(g, YK_AND, yk_bin(g, YK_GE, before, zero),
			  yk_bin(g, YK_GE, row, yk_lit(g, yoke_i32, 0)));
	if (window > 0)
		ok = yk_bin(g, YK_AND, ok,
			    yk_bin(g, YK_LT, before, yk_lit(g, yoke_i64, (double)window)));
	return ok;
}

// [pages,N,G,D] -> [T,G,S,D], hidden keys 0, since 0 times their content may be NaN
static yk_id keys(const struct paged *p, yk_id x)
{
	struct yk_graph *g = p->g;
	const yk_id there = yk_reshape(g, p->visible, 4, (int64_t[]){ p->t, p->s, 1, 1 });
	x = yk_reshape(g, gather_rows(g, x, p->pages), 4,
		       (int64_t[]){ p->t, p->s, p->groups, p->d });
	x = yk_cast(g, x, p->dtype);
	x = yk_tri(g, YK_SELECT, there, x, yk_lit(g, p->dtype, 0));
	return yk_permute(g, x, (int[]){ 0, 2, 1, 3 });
}

static void decompose_paged(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	const struct yk_value q = g->value[c->in[0]], k = g->value[c->in[1]],
			      table = g->value[c->in[3]];
	struct paged p = { .g = g,
			   .t = q.dims[0],
			   .groups = k.dims[2],
			   .r = q.dims[1] / k.dims[2],
			   .d = q.dims[2],
			   .s = table.dims[1] * k.dims[1],
			   .dtype = yk_acc(q.dtype) };
	const double scale = c->attr[0].f, cap = c->attr[2].f;
	p.pages = at_least_0(g, gather_rows(g, c->in[3], at_least_0(g, c->in[4])));
	p.visible = visible(g, c, p.t, p.s);
	const yk_id heads = yk_reshape(g, yk_cast(g, c->in[0], p.dtype), 4,
				       (int64_t[]){ p.t, p.groups, p.r, p.d });
	const yk_id zero = yk_lit(g, p.dtype, 0), none = yk_lit(g, p.dtype, -INFINITY);
	yk_id x = yk_bin_lit(g, YK_MUL,
			     yk_matmul(g, heads, keys(&p, c->in[1]), YOKE_TB | YOKE_BY_ROW), scale);
	if (cap > 0)
		x = yk_bin_lit(g, YK_MUL, yk_un(g, YK_TANH, yk_bin_lit(g, YK_DIV, x, cap)), cap);
	x = yk_tri(g, YK_SELECT, yk_reshape(g, p.visible, 4, (int64_t[]){ p.t, 1, 1, p.s }), x,
		   none);
	yk_id max = yk_row_max(g, x, 3);
	max = yk_tri(g, YK_SELECT, yk_bin(g, YK_EQ, max, none), zero, max);
	const yk_id e = yk_un(g, YK_EXP, yk_bin(g, YK_SUB, x, max)),
		    sum = yk_reduce(g, YK_SUM, e, 8, true);
	const yk_id w =
		yk_tri(g, YK_SELECT, yk_bin(g, YK_EQ, sum, zero), zero, yk_bin(g, YK_DIV, e, sum));
	const yk_id o = yk_reshape(g, yk_matmul(g, w, keys(&p, c->in[2]), YOKE_BY_ROW), 3, q.dims);
	out[0] = yk_cast(g, o, q.dtype);
}

// x [N,R..], idx [I..], v [I..,R..] -> x with the rows of v at idx
static int shape_scatter_set(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	const struct yk_value *x = IN(0), *idx = IN(1), *v = IN(2);
	if (want_index(g, c, idx) < 0)
		return YOKE_EDTYPE;
	if (x->dtype != v->dtype)
		return fail_two(g, c, YOKE_EDTYPE, "dtypes differ:", x, v);
	bool good = x->rank >= 1 && v->rank == idx->rank + x->rank - 1;
	for (int i = 0; good && i < v->rank; i++)
		good = v->dims[i] == (i < idx->rank ? idx->dims[i] : x->dims[i - idx->rank + 1]);
	if (!good)
		return fail_two(g, c, YOKE_ESHAPE, "indices and rows do not fit:", idx, v);
	*out = *x;
	return 0;
}

static void decompose_scatter_set(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	const struct yk_value x = g->value[c->in[0]], idx = g->value[c->in[1]];
	const int64_t n = yk_count(&idx);
	int64_t rows[YOKE_MAX_RANK] = { n };
	if (!n || !yk_count(&x)) {
		out[0] = yk_un(g, YK_CONTIGUOUS, c->in[0]);
		return;
	}
	memcpy(rows + 1, x.dims + 1, (size_t)(x.rank - 1) * sizeof *rows);
	const yk_id to = yk_reshape(g, c->in[1], 1, &n), v = yk_reshape(g, c->in[2], x.rank, rows);
	// sorted by target, the last row of each is before another target
	const yk_id sorted =
		yk_record(g, YK_SORT, 1, &to, 2, (union yoke_attr[]){ { .i = n }, { .i = 0 } });
	if (sorted == YK_BAD) {
		out[0] = YK_BAD;
		return;
	}
	const yk_id last = yk_bin(g, YK_NE, sorted, yk_moved(g, sorted, 0, 1, true, -2));
	const yk_id put = yk_bin(g, YK_AND, last, yk_bin_lit(g, YK_NE, sorted, -1));
	// for each row of x: 1 + the row of v that it gets, or 0
	const yk_id from = yk_tri(g, YK_SELECT, put, yk_bin_lit(g, YK_ADD, sorted + 1, 1),
				  yk_lit(g, yoke_i64, 0));
	const yk_id target = yk_tri(g, YK_SELECT, yk_bin_lit(g, YK_EQ, sorted, -1),
				    yk_lit(g, idx.dtype, 0), sorted);
	const yk_id there = yk_record(g, YK_SCATTER_ADD, 3, (yk_id[]){ YK_NIL, target, from }, 1,
				      &(union yoke_attr){ .i = x.dims[0] });
	const yk_id taken =
		yk_record(g, YK_GATHER, 2,
			  (yk_id[]){ v, yk_bin(g, YK_MAX, yk_bin_lit(g, YK_SUB, there, 1),
					       yk_lit(g, yoke_i64, 0)) },
			  1, &(union yoke_attr){ .i = 0 });
	int64_t one[YOKE_MAX_RANK] = { x.dims[0], 1, 1, 1, 1, 1, 1, 1 };
	out[0] = yk_tri(g, YK_SELECT, yk_reshape(g, yk_bin_lit(g, YK_NE, there, 0), x.rank, one),
			taken, c->in[0]);
}

static void grad_scatter_set(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	const struct yk_node_copy c = yk_node_copy(g, node);
	const struct yk_value idx = g->value[c.in[1]], v = g->value[c.in[2]];
	const int64_t n = yk_count(&idx);
	int64_t each[YOKE_MAX_RANK] = { 1, 1, 1, 1, 1, 1, 1, 1 };
	gin[0] = yk_record(g, YK_SCATTER_SET, 3,
			   (yk_id[]){ gout[0], c.in[1], yk_full_like(g, c.in[2], 0) }, 0, NULL);
	if (!n) {
		gin[2] = yk_full_like(g, c.in[2], 0);
		return;
	}
	for (int i = 0; i < idx.rank; i++)
		each[i] = idx.dims[i];
	const yk_id at = yk_bin(g, YK_MAX, c.in[1], yk_lit(g, idx.dtype, 0)),
		    number = yk_reshape(g, yk_counting(g, n), idx.rank, idx.dims);
	const int64_t rows = g->value[gout[0]].dims[0];
	// the row of v that each row of x got
	yk_id last = yk_broadcast(g, yk_lit(g, yoke_i64, -1), 1, &rows);
	last = yk_record(g, YK_SCATTER_SET, 3, (yk_id[]){ last, c.in[1], number }, 0, NULL);
	yk_id got = yk_bin(g, YK_AND, yk_bin(g, YK_EQ, gather_rows(g, last, at), number),
			   yk_bin_lit(g, YK_GE, c.in[1], 0));
	gin[2] = yk_tri(g, YK_SELECT, yk_reshape(g, got, v.rank, each), gather_rows(g, gout[0], at),
			yk_lit(g, v.dtype, 0));
}

YK_OP(PAGED_ATTENTION) = { .name = "paged_attention",
			   .code = YOKE_OP_PAGED_ATTENTION,
			   .flags = YK_F_FLOAT,
			   .min_in = 6,
			   .max_in = 6,
			   .nout = 1,
			   .shape = shape_paged,
			   .decompose = decompose_paged };
YK_OP(SCATTER_SET) = { .name = "scatter_set",
		       .code = YOKE_OP_SCATTER_SET,
		       .cast = YK_CAST_WIDEST,
		       .min_in = 3,
		       .max_in = 3,
		       .nout = 1,
		       .shape = shape_scatter_set,
		       .grad = grad_scatter_set,
		       .decompose = decompose_scatter_set,
		       .inplace = { { 0, 0 } },
		       .ninplace = 1 };

yoke_tensor *yoke_paged_attention(yoke_tensor *q, yoke_tensor *k, yoke_tensor *v,
				  yoke_tensor *table, yoke_tensor *row, yoke_tensor *pos,
				  double scale, int64_t window, double cap)
{
	struct yk_rec r = yk_rec_begin_op(YK_PAGED_ATTENTION, 6,
					  (yoke_tensor *[]){ q, k, v, table, row, pos });
	if (r.in[0] == YK_BAD)
		return yk_rec_end(&r, YK_BAD);
	const struct yk_value *x = &r.g->value[r.in[0]];
	if (scale == 0 && x->rank)
		scale = 1 / sqrt((double)x->dims[x->rank - 1]);
	if (window < 0 || !(cap >= 0)) {
		yk_rec_fail(&r, YOKE_ERANGE, "window %lld, cap %g: must not be negative",
			    (long long)window, cap);
		return yk_rec_end(&r, YK_BAD);
	}
	const union yoke_attr a[] = { { .f = scale }, { .i = window }, { .f = cap } };
	return yk_rec_end(&r, yk_record(r.g, YK_PAGED_ATTENTION, 6, r.in, 3, a));
}

yoke_tensor *yoke_scatter_set(yoke_tensor *x, yoke_tensor *idx, yoke_tensor *v)
{
	struct yk_rec r = yk_rec_begin_op(YK_SCATTER_SET, 3, (yoke_tensor *[]){ x, idx, v });
	return yk_rec_end(&r, yk_record(r.g, YK_SCATTER_SET, 3, r.in, 0, NULL));
}
