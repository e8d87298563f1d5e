// SPDX-License-Identifier: Apache-2.0
// Groups of elementwise nodes as one map program: alone, before a reduction, or as the epilogue of
// a contraction.
//
// The iteration space has the shape of the last map, of the reduced value or of the product.  A
// member reads another only element by element; all other operands are inputs of the program with
// strides over the space.  A product is input 0.

#include "config.h"

#include <string.h>

#include "base/error.h"
#include "kernel/merge.h"
#include "plan/build.h"
#include "plan/strides.h"
#include "plan/work.h"

struct input {
	yk_id base;
	int dtype;
	int64_t offset, stride[YOKE_MAX_RANK]; // as in struct yk_location
};

struct program {
	struct yk_work *w;
	struct yoke_map *map;
	const uint32_t *member;
	uint32_t members;
	int rank;
	int64_t dims[YOKE_MAX_RANK];
	struct input input[YOKE_MAP_MAX_INPUTS];
	uint16_t input_insn[YOKE_MAP_MAX_INPUTS];
	uint16_t result[YOKE_MAP_MAX_INSNS]; // by member: the instruction of its value
	uint32_t done;
	bool full;                           // the program or its inputs do not fit
};

static uint16_t insn(struct program *p, int op, int dtype, int a, int b, int c)
{
	if (p->map->ninsn == YOKE_MAP_MAX_INSNS) {
		p->full = true;
		return 0;
	}
	p->map->insn[p->map->ninsn] = (struct yoke_insn){
		.op = (uint16_t)op,
		.dtype = (uint8_t)dtype,
		.a = (uint16_t)a,
		.b = (uint16_t)b,
		.c = (uint16_t)c,
	};
	return p->map->ninsn++;
}

static uint16_t constant(struct program *p, int dtype, uint64_t bits)
{
	struct yoke_map *m = p->map;
	for (uint16_t i = 0; i < m->ninsn; i++)
		if (m->insn[i].op == YOKE_MAP_CONST && m->insn[i].dtype == dtype &&
		    m->konst[m->insn[i].a] == bits)
			return i;
	if (m->nconst == YOKE_MAP_MAX_CONSTS) {
		p->full = true;
		return 0;
	}
	m->konst[m->nconst] = bits;
	return insn(p, YOKE_MAP_CONST, dtype, m->nconst++, 0, 0);
}

static int member_of(const struct program *p, uint32_t node)
{
	for (uint32_t i = 0; i < p->members; i++)
		if (p->member[i] == node)
			return (int)i;
	return -1;
}

// The instruction for value v, read with shape `rank, dims`, which has as many elements as the
// space.
static uint16_t read(struct program *p, yk_id v, int rank, const int64_t *dims)
{
	struct yk_work *w = p->w;
	const struct yk_value *x = &w->g.value[v];
	const struct yk_location *at = &w->value[v].place;
	const struct yk_node *maker = yk_maker(&w->g, at->base);
	if (maker->op == YK_CONST)
		return constant(p, x->dtype, (uint64_t)yk_attrs(&w->g, maker)[1].i);
	struct input in = { .base = at->base, .dtype = x->dtype };
	if (maker->op != YK_SCALAR) {
		int64_t stride[YOKE_MAX_RANK];
		yk_broadcast_strides(x, at->stride, rank, dims, stride);
		in.offset = at->offset;
		int k = member_of(p, w->g.value[at->base].node);
		if (k >= 0) {
				// element by element: must match the layout of the maker's own
				// result
			const struct yk_value *b = &w->g.value[at->base];
			const struct yk_location *bp = &w->value[at->base].place;
			int64_t own[YOKE_MAX_RANK], elements = 1;
			for (int i = 0; i < rank; i++)
				elements *= dims[i];
				// a clone of a member may come after its reader
			if ((uint32_t)k >= p->done || x->dtype != b->dtype ||
			    at->offset != bp->offset || yk_count(b) != elements ||
			    !yk_restride(b->rank, b->dims, bp->stride, rank, dims, own)) {
				p->full = true;
				return 0;
			}
			for (int i = 0; i < rank; i++)
				p->full |= dims[i] != 1 && own[i] != stride[i];
			return p->result[k];
		}
		if (!yk_restride(rank, dims, stride, p->rank, p->dims, in.stride)) {
			p->full = true;
			return 0;
		}
		for (int i = 0; i < p->rank; i++)
			if (p->dims[i] == 1)
				in.stride[i] = 0;
	}
	struct yoke_map *m = p->map;
	for (int i = 0; i < m->nin; i++)
		if (p->input[i].base == in.base && p->input[i].dtype == in.dtype &&
		    p->input[i].offset == in.offset &&
		    !memcmp(p->input[i].stride, in.stride,
			    sizeof *in.stride * (size_t)p->rank))
			return p->input_insn[i];
	if (m->nin == YOKE_MAP_MAX_INPUTS) {
		p->full = true;
		return 0;
	}
	p->input[m->nin] = in;
	p->input_insn[m->nin] = insn(p, YOKE_MAP_INPUT, x->dtype, m->nin, 0, 0);
	return p->input_insn[m->nin++];
}

static uint16_t compute(struct program *p, const struct yk_node *n)
{
	const struct yk_graph *g = &p->w->g;
	const struct yk_value *y = &g->value[n->out];
	const yk_id *in = yk_ins(g, n);
	uint16_t r[3] = { 0 };
	if (yk_op_def(n->op)->code == YOKE_OP_CONTRACT)
		return insn(p, YOKE_MAP_INPUT, y->dtype, 0, 0, 0);
	for (uint32_t i = 0; i < n->nin && i < 3; i++)
		r[i] = read(p, in[i], y->rank, y->dims);
	if (n->op == YK_RAND_BITS) {
		uint16_t index = insn(p, YOKE_MAP_INDEX, yoke_i64, 0, 0, 0);
		return insn(p, YOKE_MAP_RAND, yoke_i32, index, r[0], r[1]);
	}
	return insn(p, yk_op_def(n->op)->map, y->dtype, r[0], r[1], r[2]);
}

// Is member i's value a root, or read outside the group?
static bool wanted(const struct program *p, uint32_t i)
{
	const struct yk_work *w = p->w;
	yk_id v = w->g.node[p->member[i]].out;
	if (!w->use)
		return i + 1 == p->members;
	if (w->value[v].rooted)
		return true;
	for (uint32_t u = w->value[v].use; u != YK_NIL; u = w->use[u].next)
		if (member_of(p, w->use[u].node) < 0)
			return true;
	return false;
}

// Adds an output with the value's strides over the space; full if there are none.
static void output(struct program *p, struct yk_built *b, yk_id v)
{
	struct yk_work *w = p->w;
	const struct yk_value *x = &w->g.value[v];
	const struct yk_location *at = &w->value[v].place;
	int64_t stride[YOKE_MAX_RANK];
	if (!yk_restride(x->rank, x->dims, at->stride, p->rank, p->dims, stride))
		p->full = true;
	b->value[b->op.nout] = v;
	yk_buffer_view(w, &b->view[b->op.nout++], x->dtype, p->rank, p->dims, stride, at->offset);
}

// Adds the result of a reduction over `axes` of the space: stride 0 along axes of 1 element.
static void reduced_output(struct program *p, struct yk_built *b, const struct yk_node *r,
			   unsigned axes)
{
	struct yk_work *w = p->w;
	const struct yk_value *y = &w->g.value[r->out];
	const struct yk_location *at = &w->value[r->out].place;
	bool keep = yk_attrs(&w->g, r)[1].i;
	int64_t dims[YOKE_MAX_RANK], stride[YOKE_MAX_RANK];
	for (int i = 0, k = 0; i < p->rank; i++) {
		bool gone = axes >> i & 1;
		dims[i] = gone ? 1 : p->dims[i];
		stride[i] = gone ? 0 : at->stride[k];
		k += !gone || keep;
	}
	b->value[0] = r->out;
	b->op.nout = 1;
	yk_buffer_view(w, &b->view[0], y->dtype, p->rank, dims, stride, at->offset);
}

// Finds the only contraction among the members, NULL if there is none; false if there are several,
// or if a member computes one of its factors.
static bool find_product(const struct program *p, const struct yk_node **product)
{
	const struct yk_work *w = p->w;
	*product = NULL;
	for (uint32_t i = 0; i < p->members; i++) {
		const struct yk_node *n = &w->g.node[p->member[i]];
		if (yk_op_def(n->op)->code != YOKE_OP_CONTRACT)
			continue;
		if (*product)
			return false;
		*product = n;
		for (uint32_t k = 0; k < n->nin; k++) {
			yk_id base = w->value[w->g.arg[n->in + k]].place.base;
			if (member_of(p, w->g.value[base].node) >= 0)
				return false;
		}
	}
	return true;
}

// Adds the views of the program's inputs from `first` on.
static void input_views(const struct program *p, struct yk_built *b, int first)
{
	struct yk_work *w = p->w;
	for (int i = first; i < b->map.nin; i++) {
		yk_id base = p->input[i].base;
		uint32_t at = b->op.nout + b->op.nin++;
		b->value[at] = base;
		if (yk_is_number(w, base))
			yk_number_view(w, &b->view[at], base, p->rank, p->dims);
		else
			yk_buffer_view(w, &b->view[at], p->input[i].dtype, p->rank, p->dims,
				       p->input[i].stride, p->input[i].offset);
	}
}

int yk_build_group(struct yk_work *w, const uint32_t *member, uint32_t n,
		   struct yk_built *b)
{
	const struct yk_graph *g = &w->g;
	const struct yk_node *last = &g->node[member[n - 1]], *product;
	bool reduces = yk_op_def(last->op)->flags & YK_F_REDUCE;
	struct program p = { .w = w,
			     .map = &b->map,
			     .member = member,
			     .members = n - reduces };
	if (n > YOKE_MAP_MAX_INSNS || !find_product(&p, &product) || (reduces && product))
		return YOKE_EUNSUPPORTED;
	const struct yk_value *space =
		&g->value[product ? product->out :
			  reduces ? yk_ins(g, last)[0] : last->out];
	if (yk_built_reset(b, product ? YOKE_OP_CONTRACT :
			      reduces ? YOKE_OP_REDUCE : YOKE_OP_MAP,
			   YOKE_MAP_MAX_INPUTS + YOKE_MAP_MAX_OUTPUTS + 2) < 0)
		return YOKE_ENOMEM;
	b->map = (struct yoke_map){ .size = sizeof b->map };
	p.rank = space->rank;
	memcpy(p.dims, space->dims, sizeof p.dims);
	if (product)
		p.input[b->map.nin++] = (struct input){ .base = YK_NIL };
	struct yoke_op *op = &b->op;
	for (; p.done < p.members && !p.full; p.done++)
		p.result[p.done] = compute(&p, &g->node[member[p.done]]);
	unsigned axes = 0;
	if (reduces) {
		const union yoke_attr *a = yk_attrs(g, last);
		axes = (unsigned)a[0].i & ((1u << space->rank) - 1);
		b->map.out[b->map.nout++] = read(&p, yk_ins(g, last)[0], p.rank, p.dims);
		reduced_output(&p, b, last, axes);
	} else {
		for (uint32_t i = 0; i < n && !p.full; i++) {
			if (!wanted(&p, i))
				continue;
			if (b->map.nout == YOKE_MAP_MAX_OUTPUTS)
				return YOKE_EUNSUPPORTED;
			b->map.out[b->map.nout++] = p.result[i];
			output(&p, b, g->node[member[i]].out);
		}
	}
	if (p.full)
		return YOKE_EUNSUPPORTED;
	op->in = b->view + op->nout;
	op->map = &b->map;
	if (product) {
		yk_build_factors(w, product, false, b);
		input_views(&p, b, 1);
		yk_merge_axes(op, b->view, b->view + op->nout);
		return 0;
	}
	op->rank = (uint8_t)p.rank;
	memcpy(op->dims, p.dims, sizeof op->dims);
	input_views(&p, b, 0);
	if (reduces) {
		op->nattr = 2;
		op->attr[0].i = yk_op_def(last->op)->map;
		op->attr[1].i = axes;
	}
	yk_merge_axes(op, b->view, b->view + op->nout);
	return 0;
}
