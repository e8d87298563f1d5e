// SPDX-License-Identifier: Apache-2.0
// Builds ops of the plugin ABI from nodes: views of operands, attributes, and the copies that a
// move consists of.  Offsets of views are relative to the value that owns the bytes; layout makes
// them final.

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "ops/custom.h"
#include "kernel/merge.h"
#include "plan/build.h"
#include "plan/strides.h"
#include "plan/work.h"

void yk_built_fini(struct yk_built *b)
{
	free(b->view);
	free(b->value);
	*b = (struct yk_built){ 0 };
}

int yk_built_reset(struct yk_built *b, uint16_t code, size_t views)
{
	size_t cap = b->cap;
	if (yk_grow(&b->view, &b->cap, views, sizeof *b->view) < 0 ||
	    yk_grow(&b->value, &cap, views, sizeof *b->value) < 0)
		return yk_fail(YOKE_ENOMEM, "no memory for %zu views", views);
	b->op = (struct yoke_op){ .size = sizeof b->op, .code = code };
	b->op.out = b->op.in = b->view;
	return 0;
}

static uint32_t alignment(const struct yk_work *w, uint64_t offset)
{
	uint64_t a = offset | w->align;
	return (uint32_t)(a & -a);
}

void yk_buffer_view(const struct yk_work *w, struct yoke_view *to, int dtype, int rank,
		    const int64_t *dims, const int64_t *stride, int64_t offset)
{
	*to = (struct yoke_view){ .kind = YOKE_VIEW_BUFFER,
				  .dtype = (uint8_t)dtype,
				  .rank = (uint8_t)rank };
	to->offset = (uint64_t)offset;
	to->align = alignment(w, to->offset);
	if (rank) {
		memcpy(to->dims, dims, sizeof *dims * (size_t)rank);
		memcpy(to->strides, stride, sizeof *stride * (size_t)rank);
	}
}

void yk_number_view(const struct yk_work *w, struct yoke_view *to, yk_id base, int rank,
		    const int64_t *dims)
{
	const struct yk_node *n = yk_maker(&w->g, base);
	if (n->op == YK_SCALAR && w->scalars.buffer != YK_NIL) {
		const int64_t same[YOKE_MAX_RANK] = { 0 };
		const uint32_t at = w->scalars.index[yk_attrs(&w->g, n)[0].i];
		yk_buffer_view(w, to, w->g.value[base].dtype, rank, dims, same,
			       8 * ((int64_t)at - 1));
		return;
	}
	*to = (struct yoke_view){ .kind = YOKE_VIEW_SCALAR,
				  .dtype = w->g.value[base].dtype,
				  .rank = (uint8_t)rank };
	if (rank)
		memcpy(to->dims, dims, sizeof *dims * (size_t)rank);
	if (n->op == YK_CONST)
		to->offset = (uint64_t)yk_attrs(&w->g, n)[1].i;
}

// A view of a value in its own shape.
static void plain_view(struct yk_work *w, struct yoke_view *to, yk_id v, bool dense)
{
	if (v == YK_NIL) {
		*to = (struct yoke_view){ .kind = YOKE_VIEW_NONE };
		return;
	}
	const struct yk_value *x = &w->g.value[v];
	const struct yk_location *p = &w->value[v].place;
	int64_t stride[YOKE_MAX_RANK];
	if (dense) {
		yk_strides(x->rank, x->dims, stride);
		yk_buffer_view(w, to, x->dtype, x->rank, x->dims, stride, 0);
	} else if (yk_is_number(w, p->base)) {
		yk_number_view(w, to, p->base, x->rank, x->dims);
	} else {
		yk_buffer_view(w, to, x->dtype, x->rank, x->dims, p->stride, p->offset);
	}
}

static void swap_last(struct yoke_view *v)
{
	int64_t t = v->dims[v->rank - 1];
	v->dims[v->rank - 1] = v->dims[v->rank - 2];
	v->dims[v->rank - 2] = t;
	t = v->strides[v->rank - 1];
	v->strides[v->rank - 1] = v->strides[v->rank - 2];
	v->strides[v->rank - 2] = t;
}

// Leading axes broadcast to the result's.
static void spread_lead(struct yoke_view *v, const struct yk_value *y)
{
	struct yoke_view x = *v;
	int more = y->rank - x.rank;
	v->rank = y->rank;
	for (int i = 0; i < y->rank; i++) {
		bool matrix = i >= y->rank - 2;
		v->dims[i] = matrix ? x.dims[i - more] : y->dims[i];
		v->strides[i] = i < more || (!matrix && x.dims[i - more] == 1) ?
					0 :
					x.strides[i - more];
	}
}

void yk_build_factors(struct yk_work *w, const struct yk_node *n, bool dense,
		      struct yk_built *b)
{
	struct yoke_view *view = b->view + b->op.nout;
	const int64_t flags = yk_attrs(&w->g, n)[0].i;
	for (uint32_t i = 0; i < 2; i++) {
		yk_id v = w->g.arg[n->in + i];
		b->value[b->op.nout + i] = v;
		plain_view(w, &view[i], v, dense);
		if (flags & (i ? YOKE_TB : YOKE_TA))
			swap_last(&view[i]);
		spread_lead(&view[i], &w->g.value[n->out]);
	}
	b->op.nin = 2;
	b->op.nattr = 2;
	b->op.attr[0].i = w->g.value[n->out].dtype;
	b->op.attr[1].i = (flags & YOKE_BY_ROW) != 0;
}

int yk_build_node(struct yk_work *w, uint32_t node, bool dense, struct yk_built *b)
{
	struct yk_graph *g = &w->g;
	struct yk_node *n = &g->node[node];
	const struct yk_op_def *row = yk_op_def(n->op);
	if (yk_built_reset(b, row->code, n->nout + n->nin) < 0)
		return YOKE_ENOMEM;
	struct yoke_op *op = &b->op;
	op->nout = n->nout;
	op->nin = n->nin;
	op->list = n->list;
	const union yoke_attr *a = yk_attrs(g, n);
	op->lists_in = (uint8_t)yk_lists_in(n->op, a);
	op->lists_out = (uint8_t)yk_lists_out(n->op, a);
	op->in = b->view + n->nout;
	for (uint32_t i = 0; i < n->nout; i++) {
		yk_id v = n->out + i;
		if (row->flags & YK_F_PARTIAL && w->use && w->value[v].use == YK_NIL &&
		    !w->value[v].rooted)
			v = YK_NIL;
		b->value[i] = v;
		plain_view(w, &b->view[i], v, false);
	}
	if (row->code == YOKE_OP_CONTRACT) {
		yk_build_factors(w, n, dense, b);
		yk_merge_axes(op, b->view, b->view + op->nout);
		return 0;
	}
	for (uint32_t i = 0; i < n->nin; i++) {
		yk_id v = g->arg[n->in + i];
		b->value[n->nout + i] = v;
		plain_view(w, &b->view[n->nout + i], v, dense);
	}
	if (n->op == YK_SCAN_MAP) {
		const struct yk_scanned s = yk_scanned(a);
		const struct yk_value *x = &g->value[g->arg[n->in]];
		b->map = s.map;
		op->map = &b->map;
		op->rank = x->rank;
		memcpy(op->dims, x->dims, sizeof op->dims);
		op->nattr = 3;
		op->attr[0].i = s.axis;
		op->attr[1].i = s.from_end;
		op->attr[2].i = s.carried;
	} else if (yk_is_listed(n->op)) {
		const struct yk_listed l = yk_listed(a);
		b->map = l.map;
		op->map = &b->map;
		op->nattr = n->op == YK_LIST_REDUCE ? 2 : 0;
		op->attr[0].i = l.kind;
		op->attr[1].i = l.each;
	} else if (row->code != YOKE_OP_MOVE && row->code != YOKE_OP_SCATTER_ADD) {
		op->nattr = n->nattr;
		memcpy(op->attr, a, n->nattr * sizeof *a);
	}
	yk_merge_axes(op, b->view, b->view + op->nout);
	return row->custom ?
		       yk_custom_source(row->custom, op, yk_work_device(w, n->stream), &b->source) :
		       0;
}

struct yk_location yk_operand_region(const struct yk_work *w, uint32_t node, uint32_t k)
{
	const struct yk_graph *g = &w->g;
	const struct yk_node *n = &g->node[node];
	const union yoke_attr *a = yk_attrs(g, n);
	const yk_id *in = yk_ins(g, n);
	struct yk_location p = w->value[n->out].place;
	const int64_t size = (int64_t)yoke_dtype_size(g->value[n->out].dtype);
	if (n->op == YK_CONCAT) {
		int64_t at = 0;
		for (uint32_t i = 0; i < k; i++)
			at += g->value[in[i]].dims[a[0].i];
		p.offset += at * p.stride[a[0].i] * size;
	} else if (n->op == YK_PAD || (n->op == YK_SLICE_UPDATE && k == 1)) {
		for (int i = 0; i < g->value[in[0]].rank; i++)
			p.offset += a[i].i * p.stride[i] * size;
	}
	return p;
}

int yk_build_copy(struct yk_work *w, const struct yk_value *x, const struct yk_location *to,
		  const struct yk_location *from, bool map, struct yk_built *b)
{
	if (yk_built_reset(b, map ? YOKE_OP_MAP : YOKE_OP_MOVE, 2) < 0)
		return YOKE_ENOMEM;
	struct yoke_op *op = &b->op;
	bool number = yk_is_number(w, from->base);
	op->nout = op->nin = 1;
	op->in = b->view + 1;
	b->value[0] = to->base;
	b->value[1] = from->base;
	yk_buffer_view(w, &b->view[0], x->dtype, x->rank, x->dims, to->stride, to->offset);
	if (number)
		yk_number_view(w, &b->view[1], from->base, x->rank, x->dims);
	else
		yk_buffer_view(w, &b->view[1], x->dtype, x->rank, x->dims, from->stride,
			       from->offset);
	if (map) {
		op->rank = x->rank;
		memcpy(op->dims, x->dims, sizeof op->dims);
		b->map = (struct yoke_map){
			.size = sizeof b->map, .ninsn = 1, .nin = 1, .nout = 1
		};
		b->map.insn[0] = (struct yoke_insn){ .op = YOKE_MAP_INPUT, .dtype = x->dtype };
		op->map = &b->map;
	}
	yk_merge_axes(op, b->view, b->view + 1);
	return 0;
}
