// SPDX-License-Identifier: Apache-2.0
// Appends nodes to a graph, checked by their shape rules; and the short functions that rules and
// decompositions append with (yk_bin, yk_reduce, yk_lit).

#include "config.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/number.h"
#include "graph/op.h"

int yk_op_fail(const struct yk_graph *g, int op, int code, const char *fmt, ...)
{
	char why[400];
	va_list ap;
	va_start(ap, fmt);
	yk_vsnprintf(why, sizeof why, fmt, ap);
	va_end(ap);
	const char *scope = g->paths ? yk_path_name(g->paths, g->scope) : "";
	char site[YK_SITE_TEXT];
	yk_site_text(g->sites, g->site, site);
	return yk_fail(code, "%s%s%s%s%s: %s", g->call ? g->call : yk_op_def(op)->name,
		       *scope ? " in " : "", scope, *site ? ", recorded at " : "", site, why);
}

// Makes room for one more node and its results; 0 or the error.
static inline int reserve(struct yk_graph *g, const struct yk_call *c, uint32_t nout)
{
	if (g->max && g->nodes - g->settled >= g->max)
		return yk_op_fail(g, c->op, YOKE_EGRAPH,
				  "%zu operations are pending (graph.max); evaluate them",
				  g->nodes - g->settled);
	if (yk_grow(&g->node, &g->node_cap, g->nodes + 1, sizeof *g->node) < 0 ||
	    yk_grow(&g->value, &g->value_cap, g->values + nout, sizeof *g->value) < 0 ||
	    yk_grow(&g->arg, &g->arg_cap, g->args + c->nin, sizeof *g->arg) < 0 ||
	    yk_grow(&g->attrs, &g->attr_cap, g->nattrs + c->nattr, sizeof *g->attrs) < 0)
		return yk_op_fail(g, c->op, YOKE_ENOMEM, "no memory for the graph");
	return 0;
}

// Appends a node after reserve; the caller has filled in its results' dtypes and shapes.  Returns
// the first result.
static inline yk_id commit(struct yk_graph *g, const struct yk_call *c, uint32_t nout)
{
	const yk_id first = (yk_id)g->values;
	struct yk_node *n = &g->node[g->nodes];
	yk_id *in = g->arg + g->args;
	union yoke_attr *attr = g->attrs + g->nattrs;
	struct yk_value *value = g->value + first;
	for (uint32_t i = 0; i < c->nin; i++)
		in[i] = c->in[i];
	for (uint32_t i = 0; i < c->nattr; i++)
		attr[i] = c->attr[i];
	for (uint32_t i = 0; i < nout; i++) {
		value[i].node = (uint32_t)g->nodes;
		value[i].nth = i < YK_NTH_MAX ? (uint8_t)i : YK_NTH_MAX;
		value[i].made = YK_NIL;
	}
	n->op = c->op;
	n->nattr = (uint8_t)c->nattr;
	n->stream = 0;
	n->done = false;
	n->in = (uint32_t)g->args;
	n->nin = c->nin;
	n->out = first;
	n->nout = nout;
	n->attr = (uint32_t)g->nattrs;
	n->list = c->list;
	n->scope = g->scope;
	n->site = g->site;
	n->back = g->back;
	n->range = g->range;
	n->call = g->call;
	g->values += nout;
	g->args += c->nin;
	g->nattrs += c->nattr;
	g->nodes++;
	return first;
}

int yk_append_as(struct yk_graph *g, const struct yk_call *c, uint32_t nout,
		 const struct yk_value *outs, yk_id *out)
{
	int err = reserve(g, c, nout);
	if (err)
		return err;
	for (uint32_t i = 0; i < nout; i++) // mostly one: no call of memcpy
		g->value[g->values + i] = outs[i];
	*out = commit(g, c, nout);
	return 0;
}

static inline int append(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	const struct yk_op_def *row = yk_op_def(c->op);
	const uint32_t nout = yk_nout(row, c);
	int err = reserve(g, c, nout);
	if (err || (err = row->shape(g, c, g->value + g->values)) < 0)
		return err;
	*out = commit(g, c, nout);
	if (row->flags & YK_F_RANKS)
		g->owed++;
	return 0;
}

int yk_append(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	return append(g, c, out);
}

yk_id yk_record(struct yk_graph *g, int op, uint32_t nin, const yk_id *in, uint32_t nattr,
		const union yoke_attr *attr)
{
	for (uint32_t i = 0; i < nin; i++)
		if (in[i] == YK_BAD)
			return YK_BAD;
	struct yk_call c = {
		.op = (uint16_t)op, .nin = nin, .in = in, .nattr = nattr, .attr = attr
	};
	yk_id out = YK_BAD;
	append(g, &c, &out);
	return out;
}

yk_id yk_un(struct yk_graph *g, int op, yk_id x)
{
	return yk_record(g, op, 1, &x, 0, NULL);
}

yk_id yk_bin(struct yk_graph *g, int op, yk_id a, yk_id b)
{
	return yk_record(g, op, 2, (yk_id[]){ a, b }, 0, NULL);
}

yk_id yk_tri(struct yk_graph *g, int op, yk_id a, yk_id b, yk_id c)
{
	return yk_record(g, op, 3, (yk_id[]){ a, b, c }, 0, NULL);
}

yk_id yk_lit(struct yk_graph *g, int dtype, double value)
{
	return yk_record(g, YK_CONST, 0, NULL, 2,
			 (union yoke_attr[]){ { .i = dtype },
					      { .i = (int64_t)yk_bits(dtype, value) } });
}

yk_id yk_bin_lit(struct yk_graph *g, int op, yk_id x, double value)
{
	if (x == YK_BAD)
		return YK_BAD;
	return yk_bin(g, op, x, yk_lit(g, g->value[x].dtype, value));
}

yk_id yk_cast(struct yk_graph *g, yk_id x, int dtype)
{
	if (x == YK_BAD || g->value[x].dtype == dtype)
		return x;
	return yk_record(g, YK_CAST, 1, &x, 1, &(union yoke_attr){ .i = dtype });
}

yk_id yk_cast_acc(struct yk_graph *g, yk_id x)
{
	return x == YK_BAD || x == YK_NIL ? x : yk_cast(g, x, yk_acc(g->value[x].dtype));
}

yk_id yk_cast_like(struct yk_graph *g, yk_id x, yk_id like)
{
	return x == YK_BAD ? x : yk_cast(g, x, g->value[like].dtype);
}

yk_id yk_reduce(struct yk_graph *g, int op, yk_id x, unsigned axes, bool keep)
{
	return yk_record(g, op, 1, &x, 2,
			 (union yoke_attr[]){ { .i = axes }, { .i = keep } });
}

yk_id yk_mean(struct yk_graph *g, yk_id x, unsigned axes, bool keep)
{
	if (x == YK_BAD)
		return x;
	struct yk_value v = g->value[x];
	yk_id sum = yk_reduce(g, YK_SUM, yk_cast(g, x, yk_acc(v.dtype)), axes, keep);
	return yk_cast(g, yk_bin_lit(g, YK_MUL, sum, 1 / yk_reduced(&v, axes)), v.dtype);
}

yk_id yk_row_max(struct yk_graph *g, yk_id x, int axis)
{
	if (x == YK_BAD)
		return x;
	struct yk_value v = g->value[x];
	if (v.dims[axis])
		return yk_reduce(g, YK_REDUCE_MAX, x, 1u << axis, true);
	v.dims[axis] = 1;
	return yk_broadcast(g, yk_lit(g, v.dtype, -INFINITY), v.rank, v.dims);
}

yk_id yk_matmul_to(struct yk_graph *g, yk_id a, yk_id b, unsigned flags, int dtype)
{
	return yk_record(g, YK_MATMUL, 2, (yk_id[]){ a, b }, 2,
			 (union yoke_attr[]){ { .i = flags }, { .i = dtype } });
}

yk_id yk_matmul(struct yk_graph *g, yk_id a, yk_id b, unsigned flags)
{
	return a == YK_BAD ? a : yk_matmul_to(g, a, b, flags, g->value[a].dtype);
}

static yk_id with_dims(struct yk_graph *g, int op, yk_id x, int rank, const int64_t *dims)
{
	union yoke_attr a[YOKE_MAX_RANK];
	if (rank < 0 || rank > YOKE_MAX_RANK) {
		yk_op_fail(g, op, YOKE_ESHAPE, "rank %d; 0 to %d are possible", rank,
			   YOKE_MAX_RANK);
		return YK_BAD;
	}
	if (rank && !dims) {
		yk_op_fail(g, op, YOKE_EINVAL, "dims is NULL");
		return YK_BAD;
	}
	for (int i = 0; i < rank; i++)
		a[i].i = dims[i];
	return yk_record(g, op, 1, &x, (uint32_t)rank, a);
}

yk_id yk_reshape(struct yk_graph *g, yk_id x, int rank, const int64_t *dims)
{
	return with_dims(g, YK_RESHAPE, x, rank, dims);
}

yk_id yk_broadcast(struct yk_graph *g, yk_id x, int rank, const int64_t *dims)
{
	return with_dims(g, YK_BROADCAST, x, rank, dims);
}

yk_id yk_permute(struct yk_graph *g, yk_id x, const int *order)
{
	if (x == YK_BAD)
		return YK_BAD;
	union yoke_attr a[YOKE_MAX_RANK];
	uint32_t rank = g->value[x].rank;
	for (uint32_t i = 0; i < rank; i++)
		a[i].i = order[i];
	return yk_record(g, YK_PERMUTE, 1, &x, rank, a);
}

yk_id yk_exchange(struct yk_graph *g, yk_id x, int a, int b)
{
	int order[YOKE_MAX_RANK];

	if (x == YK_BAD || a == b)
		return x;
	for (int i = 0; i < g->value[x].rank; i++)
		order[i] = i == a ? b : i == b ? a : i;
	return yk_permute(g, x, order);
}

yk_id yk_slice(struct yk_graph *g, yk_id x, const int64_t *start, const int64_t *step,
	       const int64_t *size)
{
	if (x == YK_BAD)
		return YK_BAD;
	union yoke_attr a[3 * YOKE_MAX_RANK];
	uint32_t rank = g->value[x].rank;
	for (uint32_t i = 0; i < rank; i++) {
		a[i].i = start[i];
		a[rank + i].i = step[i];
		a[2 * rank + i].i = size[i];
	}
	return yk_record(g, YK_SLICE, 1, &x, 3 * rank, a);
}

yk_id yk_pad(struct yk_graph *g, yk_id x, const int64_t *lo, const int64_t *hi,
	     double value)
{
	if (x == YK_BAD)
		return YK_BAD;
	union yoke_attr a[2 * YOKE_MAX_RANK + 1];
	uint32_t rank = g->value[x].rank;
	for (uint32_t i = 0; i < rank; i++) {
		a[i].i = lo[i];
		a[rank + i].i = hi[i];
	}
	a[2 * rank].i = (int64_t)yk_bits(g->value[x].dtype, value);
	return yk_record(g, YK_PAD, 1, &x, 2 * rank + 1, a);
}

yk_id yk_full_like(struct yk_graph *g, yk_id x, double value)
{
	if (x == YK_BAD)
		return YK_BAD;
	struct yk_value v = g->value[x];
	return yk_broadcast(g, yk_lit(g, v.dtype, value), v.rank, v.dims);
}

yk_id yk_sum_to(struct yk_graph *g, yk_id x, yk_id like)
{
	if (x == YK_BAD || like == YK_BAD)
		return YK_BAD;
	struct yk_value v = g->value[x], to = g->value[like];
	int more = v.rank - to.rank;
	unsigned axes = 0;
	for (int i = 0; i < v.rank; i++)
		if (i < more || (to.dims[i - more] == 1 && v.dims[i] != 1))
			axes |= 1u << i;
	if (!axes)
		return x;
	x = yk_reduce(g, YK_SUM, x, axes, true);
	return more ? yk_reshape(g, x, to.rank, to.dims) : x;
}

int yk_check_literal(const struct yk_graph *g, int dtype, double value)
{
	if (yk_has_number(dtype, value))
		return 0;
	return yk_op_fail(g, YK_CONST, YOKE_ERANGE, "%.9g is no number of %s", value,
			  yoke_dtype_name(dtype));
}
