// SPDX-License-Identifier: Apache-2.0
// Decomposes the ops of a copied graph that ONNX has no operators for, and merges equal nodes: each
// layer of a network has its own constants and masks.
#include "config.h"

#include "export/onnx.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "graph/op.h"
#include "ops/conv.h"
#include "yoke-quant.h"

enum { MAX_PASSES = 16 }; // decompositions contain ops that are decomposed

// ---- which ops are written as they are ----

// Operators accept less padding than windows have elements.
static bool is_plain_pool(const struct yk_graph *g, const struct yk_call *c)
{
	const int axes = g->value[c->in[0]].rank - 2;
	bool plain = true;
	for (int i = 0; i < axes; i++) {
		const struct yk_conv_axis a = yk_conv_axis(c->attr[axes + i].i);
		plain = plain && a.lo < c->attr[i].i && a.hi < c->attr[i].i;
	}
	return plain;
}

static bool is_written(const struct yk_graph *g, const struct yk_call *c)
{
	switch (c->op) {
	case YK_SOFTMAX: return yk_count(&g->value[c->in[0]]) > 0;
	case YK_LAYER_NORM: // its statistics are f32
		return g->value[c->in[0]].dtype != yoke_f64 && yk_count(&g->value[c->in[0]]) > 0;
	case YK_CONV:
	case YK_CONV_X: // onnxruntime has none of f64
		return g->value[c->in[0]].dtype != yoke_f64 && yk_count(&g->value[c->in[0]]) &&
		       yk_count(&g->value[c->in[1]]);
	case YK_POOL_MAX: return yk_count(&g->value[c->in[0]]) && is_plain_pool(g, c);
	}
	return !yk_op_def(c->op)->decompose;
}

static int refuse(const struct yk_graph *g, const struct yk_call *c, const char *why)
{
	const yk_id first = c->nin ? c->in[0] : YK_NIL;
	char text[160] = "";
	if (first != YK_NIL)
		yk_describe(&g->value[first], text);
	return yk_op_fail(g, c->op, YOKE_EUNSUPPORTED,
			  "onnx_write: ONNX has no operator for '%s'%s%s%s%s",
			  yk_op_def(c->op)->name, *text ? " of " : "", text, *why ? ": " : "", why);
}

static int check(const struct yk_graph *g, const struct yk_call *c)
{
	switch (c->op) {
	case YK_RAND_BITS:
	case YK_UNIFORM:
	case YK_NORMAL:
		return refuse(g, c,
			      "nothing random is written; evaluate values that shall be constants");
	case YK_BITCAST: {
		const int from = g->value[c->in[0]].dtype, to = (int)c->attr[0].i;
		const bool bytes =
			(from == yoke_i8 || from == yoke_u8) && (to == yoke_i8 || to == yoke_u8);
		return from == to || bytes ? 0 : refuse(g, c, "it gives bits another dtype");
	}
	case YK_LARGEST: // compares bits
	case YK_EIGH:
	case YK_CHOLESKY:
	case YK_SOLVE_TRIANGULAR:
	case YK_LU:
	case YK_QR:
	case YK_SVD:
	case YK_MATRIX_EXP:
	case YK_RECURRENT:
	case YK_RECURRENT_BACKWARD:
	case YK_CTC:
	case YK_CTC_BACKWARD: return refuse(g, c, "");
	}
	if (yk_op_def(c->op)->flags & YK_F_RANKS)
		return refuse(g, c, "ranks communicate");
	if (c->op >= YK_OPS && !yk_op_def(c->op)->decompose)
		return refuse(g, c, "it is a kernel of the application, without a decomposition");
	if (c->op == YK_SCAN_MAP &&
	    g->value[c->in[0]].dims[yk_scanned(c->attr).axis] > YK_SCAN_PARTS)
		return refuse(g, c, "a recurrence of more than 64 steps");
	return 0;
}

// ---- quantized weights ----

yk_id yk_onnx_leaf(struct yk_graph *g, int64_t i, const struct yk_value *v)
{
	const struct yk_call c = { .op = YK_LEAF,
				   .nattr = 1,
				   .attr = &(union yoke_attr){ .i = i } };
	yk_id id;
	return yk_append_as(g, &c, 1, v, &id) < 0 ? YK_BAD : id;
}

// The numbers of quantized constant rows, as another constant; f16 and bf16 keep their bits.
// YK_NIL: w is computed.
static yk_id numbers_of(struct yk_onnx *e, struct yk_graph *g, yk_id w, const union yoke_attr *attr)
{
	const struct yk_node *maker = yk_maker(g, w);
	const int64_t at = maker->op == YK_LEAF ? yk_attrs(g, maker)[0].i - YK_ONNX_CONSTANTS : -1;
	const int format = (int)attr[0].i;
	if (at < 0 || !e->constant[at].tensor)
		return YK_NIL;
	struct yk_value v = { .dtype = yoke_f32,
			      .rank = 2,
			      .dims = { g->value[w].dims[0], attr[1].i } };
	const bool stored = format == YOKE_QUANT_F16 || format == YOKE_QUANT_BF16;
	if (stored)
		v.dtype = format == YOKE_QUANT_F16 ? yoke_f16 : yoke_bf16;
	for (size_t i = 0; i < e->constants; i++)
		if (e->constant[i].base == at && e->constant[i].format == format)
			return yk_onnx_leaf(g, YK_ONNX_CONSTANTS + (int64_t)i, &v);
	const int i = yk_onnx_constant_new(e, NULL, yk_onnx_type_of(v.dtype), 2, v.dims);
	if (i < 0)
		return YK_BAD;
	struct yk_onnx_constant *c = &e->constant[i];
	c->tensor = e->constant[at].tensor;
	c->format = format;
	c->row = stored ? 0 : attr[1].i;
	c->base = (int)at;
	return yk_onnx_leaf(g, YK_ONNX_CONSTANTS + i, &v);
}

// Replaces ops on quantized constants; false: the call is none.
static bool unquantized(struct yk_onnx *e, struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	if (c->op != YK_DEQUANT && c->op != YK_QLINEAR && c->op != YK_QGATHER)
		return false;
	const yk_id w = numbers_of(e, g, c->in[c->op == YK_QLINEAR], c->attr);
	if (w == YK_NIL)
		return false;
	const int dtype = (int)c->attr[2].i;
	if (c->op == YK_DEQUANT) {
		out[0] = yk_cast(g, w, dtype);
	} else if (c->op == YK_QGATHER) {
		const yk_id in[] = { w, c->in[1] };
		out[0] = yk_cast(g, yk_record(g, YK_GATHER, 2, in, 1, &(union yoke_attr){ .i = 0 }),
				 dtype);
	} else {
		const struct yk_value x = g->value[c->in[0]];
		const int64_t row[] = { 1, x.dims[0] };
		yk_id y = yk_cast_acc(g, x.rank > 1 ? c->in[0] : yk_reshape(g, c->in[0], 2, row));
		y = yk_cast_like(g, yk_matmul(g, y, yk_cast(g, w, yoke_f32), YOKE_TB), c->in[0]);
		out[0] = x.rank > 1 || y == YK_BAD ? y : yk_reshape(g, y, 1, &g->value[w].dims[0]);
	}
	return true;
}

// ---- attention ----

// Without the decomposition's care for values of weight 0 that are not finite, which takes two more
// products.  q [B,T,H,D], k and v [B,S,G,D], R = H / G.
static bool attention(struct yk_graph *g, const struct yk_call *c, yk_id *out)
{
	if (c->op != YK_ATTENTION || c->in[4] != YK_NIL || c->in[6] != YK_NIL)
		return false;
	const struct yk_value vq = g->value[c->in[0]], vk = g->value[c->in[1]];
	const int64_t b = vq.dims[0], t = vq.dims[1], h = vq.dims[2], d = vq.dims[3],
		      s = vk.dims[1], groups = vk.dims[2];
	const bool causal = c->attr[0].i != 0, masked = c->in[3] != YK_NIL;
	if (!b || !t || !h || !s)
		return false;
	const int dtype = yk_acc(vq.dtype), order[] = { 0, 2, 1, 3 };
	yk_id q = yk_reshape(g, yk_permute(g, yk_cast_acc(g, c->in[0]), order), 4,
			     (int64_t[]){ b, groups, h / groups * t, d });
	yk_id k = yk_permute(g, yk_cast_acc(g, c->in[1]), order),
	      v = yk_permute(g, yk_cast_acc(g, c->in[2]), order);
	yk_id x = yk_bin_lit(g, YK_MUL, yk_matmul(g, q, k, YOKE_TB), c->attr[1].f);
	x = yk_reshape(g, x, 4, (int64_t[]){ b, h, t, s });
	const yk_id none = yk_lit(g, dtype, -INFINITY), zero = yk_lit(g, dtype, 0);
	if (masked) {
		const yk_id mask = yk_cast(g, c->in[3], dtype);
		x = yk_tri(g, YK_SELECT, yk_bin(g, YK_EQ, mask, none), none,
			   yk_bin(g, YK_ADD, x, mask));
	}
	const union yoke_attr count[] = { { .i = s }, { .i = t } };
	if (causal) {
		yk_id key = yk_record(g, YK_IOTA, 0, NULL, 1, &count[0]);
		yk_id row = yk_reshape(g, yk_record(g, YK_IOTA, 0, NULL, 1, &count[1]), 2,
				       (int64_t[]){ t, 1 });
		yk_id end = yk_bin_lit(g, YK_ADD, row, (double)(1 + s - t));
		x = yk_tri(g, YK_SELECT, yk_bin(g, YK_LT, key, end), x, none);
	}
	yk_id w = yk_record(g, YK_SOFTMAX, 1, &x, 1, &(union yoke_attr){ .i = 0 });
	yk_id max = yk_reduce(g, YK_REDUCE_MAX, x, 8, true), hidden = yk_bin(g, YK_EQ, max, none);
	if (masked || (causal && t > s)) // rows without a visible key
		w = yk_tri(g, YK_SELECT, hidden, zero, w);
	yk_id o = yk_matmul(g, yk_reshape(g, w, 4, (int64_t[]){ b, groups, h / groups * t, s }), v,
			    0);
	o = yk_permute(g, yk_reshape(g, o, 4, (int64_t[]){ b, h, t, d }), order);
	out[0] = yk_cast_like(g, o, c->in[0]);
	max = yk_tri(g, YK_SELECT, hidden, zero, max);
	yk_id sum = yk_reduce(g, YK_SUM, yk_un(g, YK_EXP, yk_bin(g, YK_SUB, x, max)), 8, true);
	out[1] = yk_reshape(g, yk_bin(g, YK_ADD, max, yk_un(g, YK_LOG, sum)), 3,
			    (int64_t[]){ b, h, t });
	return true;
}

// ---- equal nodes ----

struct table {
	uint32_t *node; // open addressing: index + 1
	size_t size;    // a power of 2, above twice the number of nodes
};

static uint64_t hash_of(const struct yk_graph *g, const struct yk_node *n)
{
	const uint64_t h =
		yk_hash(yk_ins(g, n), n->nin * sizeof(yk_id), n->op | (uint64_t)n->list << 32);
	return yk_hash(yk_attrs(g, n), n->nattr * sizeof(union yoke_attr), h);
}

static bool is_equal(const struct yk_graph *g, const struct yk_node *a, const struct yk_node *b)
{
	bool same = a->op == b->op && a->list == b->list && a->nin == b->nin &&
		    a->nattr == b->nattr && a->nout == b->nout &&
		    (!a->nin || !memcmp(yk_ins(g, a), yk_ins(g, b), a->nin * sizeof(yk_id))) &&
		    (!a->nattr ||
		     !memcmp(yk_attrs(g, a), yk_attrs(g, b), a->nattr * sizeof(union yoke_attr)));
	for (uint32_t i = 0; i < a->nout && same; i++)
		same = yk_same_shape(&g->value[a->out + i], &g->value[b->out + i]) &&
		       g->value[a->out + i].dtype == g->value[b->out + i].dtype;
	return same;
}

// Replaces the last node by an older equal one, if there is one.
static void merge(struct yk_graph *g, struct table *t, yk_id *out)
{
	const uint32_t last = (uint32_t)g->nodes - 1;
	const struct yk_node *n = &g->node[last];
	size_t at = hash_of(g, n) & (t->size - 1);
	for (; t->node[at]; at = (at + 1) & (t->size - 1)) {
		const struct yk_node *o = &g->node[t->node[at] - 1];
		if (!is_equal(g, o, n))
			continue;
		*out = o->out;
		g->values = n->out;
		g->args = n->in;
		g->nattrs = n->attr;
		g->nodes = last;
		return;
	}
	t->node[at] = last + 1;
}

// ---- passes ----

// Have all results of a node no elements?
static bool is_empty(const struct yk_graph *g, const struct yk_node *n)
{
	bool empty = true;
	for (uint32_t i = 0; i < n->nout; i++)
		empty = empty && !yk_count(&g->value[n->out + i]);
	return empty;
}

static yk_id empty_leaf(struct yk_onnx *e, struct yk_graph *g, const struct yk_value *v)
{
	const int i = yk_onnx_constant_new(e, NULL, yk_onnx_type_of(v->dtype), v->rank, v->dims);
	return i < 0 ? YK_BAD : yk_onnx_leaf(g, YK_ONNX_CONSTANTS + i, v);
}

// Appends one node of `from`, with operands renumbered by `to_of`, or its decomposition.
static int lower_node(struct yk_onnx *e, struct yk_graph *from, const struct yk_node *n,
		      struct table *t, yk_id *to_of, bool *again)
{
	struct yk_graph *to = &e->g;
	yk_id *in = malloc((n->nin + 1) * sizeof *in), *out = calloc(n->nout + 1, sizeof *out);
	struct yk_call c = { .op = n->op,
			     .list = n->list,
			     .nin = n->nin,
			     .in = in,
			     .nattr = n->nattr,
			     .attr = yk_attrs(from, n) };
	int err = in && out ? 0 : yk_fail(YOKE_ENOMEM, "onnx_write: no memory");
	const bool empty = is_empty(from, n) && n->op != YK_LEAF;
	for (uint32_t i = 0; i < n->nout && !err && empty; i++)
		if ((out[i] = empty_leaf(e, to, &from->value[n->out + i])) == YK_BAD)
			err = yk_error_last();
	for (uint32_t i = 0; i < n->nin && !err && !empty; i++)
		in[i] = yk_ins(from, n)[i] == YK_NIL ? YK_NIL : to_of[yk_ins(from, n)[i]];
	to->scope = n->scope;
	if (!err && !empty)
		err = check(to, &c);
	if (!err && !empty && is_written(to, &c)) {
		err = yk_append_as(to, &c, n->nout, from->value + n->out, &out[0]);
		if (!err)
			merge(to, t, &out[0]);
		for (uint32_t i = 1; i < n->nout; i++)
			out[i] = out[0] + i;
	} else if (!err && !empty) {
		*again = true;
		if (!unquantized(e, to, &c, out) && !attention(to, &c, out))
			yk_op_def(c.op)->decompose(to, &c, out);
		for (uint32_t i = 0; i < n->nout && !err; i++)
			err = out[i] == YK_BAD ? yk_error_last() : 0;
	}
	for (uint32_t i = 0; i < n->nout && !err; i++)
		to_of[n->out + i] = out[i];
	free(in);
	free(out);
	return err;
}

static bool is_live(const struct yk_onnx_value *value, const struct yk_node *n)
{
	bool live = false;
	for (uint32_t i = 0; i < n->nout; i++)
		live = live || value[n->out + i].live;
	return live;
}

// Marks the values that the roots need.
static void mark(struct yk_onnx *e, size_t n, const yk_id *root)
{
	const struct yk_graph *g = &e->g;
	for (size_t i = 0; i < n; i++)
		e->value[root[i]].live = true;
	for (size_t k = g->nodes; k-- > 0;) {
		const struct yk_node *node = &g->node[k];
		const bool reads = is_live(e->value, node) && !is_empty(g, node);
		for (uint32_t i = 0; i < node->nin && reads; i++)
			if (yk_ins(g, node)[i] != YK_NIL)
				e->value[yk_ins(g, node)[i]].live = true;
	}
}

static int values_new(struct yk_onnx *e, size_t n, const yk_id *root)
{
	free(e->value);
	e->value = calloc(e->g.values + 1, sizeof *e->value);
	if (!e->value)
		return yk_fail(YOKE_ENOMEM, "onnx_write: no memory");
	mark(e, n, root);
	return 0;
}

static int pass(struct yk_onnx *e, size_t n, yk_id *root, bool *again)
{
	struct yk_graph from = e->g;
	struct table t = { .size = 256 };
	while (t.size < 4 * from.nodes)
		t.size *= 2;
	t.node = calloc(t.size, sizeof *t.node);
	yk_id *to_of = malloc((from.values + 1) * sizeof *to_of);
	int err = t.node && to_of ? 0 : yk_fail(YOKE_ENOMEM, "onnx_write: no memory");
	e->g = (struct yk_graph){ .paths = from.paths };
	for (size_t k = 0; k < from.nodes && !err; k++)
		if (is_live(e->value, &from.node[k]))
			err = lower_node(e, &from, &from.node[k], &t, to_of, again);
	for (size_t i = 0; i < n && !err; i++)
		root[i] = to_of[root[i]];
	free(t.node);
	free(to_of);
	from.paths = NULL;
	yk_graph_fini(&from);
	return err ? err : values_new(e, n, root);
}

int yk_onnx_lower(struct yk_onnx *e, size_t n, yk_id *roots)
{
	bool again = true;
	int err = values_new(e, n, roots);
	for (int i = 0; again && !err; i++) {
		again = false;
		err = i < MAX_PASSES ?
			      pass(e, n, roots, &again) :
			      yk_fail(YOKE_EUNSUPPORTED, "onnx_write: decompositions have no end");
	}
	return err;
}
