// SPDX-License-Identifier: Apache-2.0
// Lowering: copies the marked nodes into the plan's own graph, each on a device that can run it.  A
// named op runs on the context's device as one op if supported, else it is decomposed, else it runs
// on the CPU.  Equal nodes are merged; views become locations (base, offset, strides).

#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/param.h"
#include "device/usable.h"
#include "device/warmup.h"
#include "plan/build.h"
#include "plan/key.h"
#include "plan/lower.h"
#include "plan/passes.h"
#include "plan/planner.h"
#include "plan/strides.h"
#include "plan/work.h"

YK_PARAM(strict, "strict", YK_BOOL, "0",
	 "an op that the device cannot run is an error, never run on the CPU");
YK_PARAM(named, "plan.named", YK_BOOL, "1",
	 "pass named ops to backends undecomposed; 0: decompose all (for tests)", .debug = true);
YK_PARAM(cse, "plan.cse", YK_BOOL, "1", "merge equal nodes", .debug = true);

bool yk_strict(void)
{
	return yk_param_bool(&strict);
}

struct yk_device *yk_work_device(const struct yk_work *w, int stream)
{
	return w->ctx->stream[stream].device;
}

// ---- equal nodes ----

static uint64_t node_hash(const struct yk_graph *g, const struct yk_node *n)
{
	uint64_t h = yk_hash(yk_ins(g, n), n->nin * sizeof(yk_id),
			     n->op | (uint64_t)n->stream << 16 | (uint64_t)n->list << 32);
	h = yk_hash(yk_attrs(g, n), n->nattr * sizeof(union yoke_attr), h);
	return h;
}

static bool node_equal(const struct yk_graph *g, const struct yk_node *a,
		       const struct yk_node *b)
{
	return a->op == b->op && a->stream == b->stream && a->list == b->list &&
	       a->nin == b->nin && a->nattr == b->nattr &&
	       (!a->nin || !memcmp(yk_ins(g, a), yk_ins(g, b), a->nin * sizeof(yk_id))) &&
	       (!a->nattr || !memcmp(yk_attrs(g, a), yk_attrs(g, b),
				     a->nattr * sizeof(union yoke_attr)));
}

static int table_grow(struct yk_work *w)
{
	size_t size = w->lowering.table_size ? 2 * w->lowering.table_size : 256;
	uint32_t *table = calloc(size, sizeof *table);
	if (!table)
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	for (size_t i = 0; i < w->lowering.table_size; i++) {
		if (!w->lowering.table[i])
			continue;
		size_t at = node_hash(&w->g, &w->g.node[w->lowering.table[i] - 1]) & (size - 1);
		while (table[at])
			at = (at + 1) & (size - 1);
		table[at] = w->lowering.table[i];
	}
	free(w->lowering.table);
	w->lowering.table = table;
	w->lowering.table_size = size;
	return 0;
}

// Merges the last node with an older equal one, if there is one. Dense copies of quantized weights
// are not merged: one that the forward and the backward pass read would exist between them.
static int merge_equal(struct yk_work *w, yk_id *out)
{
	struct yk_graph *g = &w->g;
	uint32_t last = (uint32_t)g->nodes - 1;
	const struct yk_node *n = &g->node[last];
	if (!yk_param_bool(&cse) || n->op == YK_DEQUANT)
		return 0;
	if (2 * (g->nodes + 1) > w->lowering.table_size && table_grow(w) < 0)
		return YOKE_ENOMEM;
	size_t at = node_hash(g, n) & (w->lowering.table_size - 1);
	for (; w->lowering.table[at]; at = (at + 1) & (w->lowering.table_size - 1)) {
		const struct yk_node *o = &g->node[w->lowering.table[at] - 1];
			// attributes of views do not determine their shape: results must be equal,
			// too
		if (node_equal(g, o, n) &&
		    yk_same_shape(&g->value[o->out], &g->value[n->out]) &&
		    g->value[o->out].dtype == g->value[n->out].dtype) {
			*out = o->out;
			g->values = n->out;
			g->args = n->in;
			g->nattrs = n->attr;
			g->nodes = last;
			return 0;
		}
	}
	w->lowering.table[at] = last + 1;
	return 0;
}

// ---- views ----

// Changes the element size of a location of v: elements are split or combined along the last axis.
static bool resize(const struct yk_value *v, int64_t size, struct yk_location *to)
{
	const int64_t was = (int64_t)yoke_dtype_size(v->dtype);
	const int last = v->rank - 1;
	if (size == was)
		return true;
	if (to->offset % size || (v->dims[last] != 1 && to->stride[last] != 1))
		return false;
	to->stride[last] = 1;
	for (int i = 0; i < last; i++) {
		if (v->dims[i] > 1 && to->stride[i] * was % size)
			return false;
		to->stride[i] = to->stride[i] * was / size;
	}
	return true;
}

// The location of a view's elements; false if no strides describe it.
static bool view_place(const struct yk_work *w, const struct yk_call *c,
		       const struct yk_location *x, const struct yk_value *out,
		       struct yk_location *to)
{
	const struct yk_value *v = &w->g.value[c->in[0]];
	const int64_t size = (int64_t)yoke_dtype_size(out->dtype);
	*to = *x;
	switch (c->op) {
	case YK_RESHAPE:
		return yk_restride(v->rank, v->dims, x->stride, out->rank, out->dims,
				   to->stride);
	case YK_BROADCAST:
		yk_broadcast_strides(v, x->stride, out->rank, out->dims, to->stride);
		return true;
	case YK_PERMUTE:
		for (int i = 0; i < out->rank; i++)
			to->stride[i] = x->stride[c->attr[i].i];
		return true;
	case YK_SLICE:
		for (int i = 0; i < v->rank; i++) {
			if (out->dims[i])
				to->offset += c->attr[i].i * x->stride[i] * size;
			to->stride[i] = c->attr[v->rank + i].i * x->stride[i];
		}
		return true;
	case YK_WINDOW:
		to->stride[v->rank] = x->stride[c->attr[0].i] * c->attr[3].i;
		to->stride[c->attr[0].i] *= c->attr[2].i;
		return true;
	case YK_BITCAST:
		// memory of the application is aligned at least to its own elements
		return !yk_is_number(w, x->base) &&
		       (yk_maker(&w->g, x->base)->op != YK_LEAF ||
			yoke_dtype_size(out->dtype) <= w->align) &&
		       resize(v, size, to);
	}
	return true; // the same location
}

static int lower_call(struct yk_work *, const struct yk_call *, uint32_t,
		      const struct yk_value *, int, yk_id *);

// A contiguous row-major copy of v, on v's device.
static int contiguous(struct yk_work *w, yk_id v, int device, yk_id *out)
{
	struct yk_value value = w->g.value[v];
	struct yk_call c = { .op = YK_CONTIGUOUS, .nin = 1, .in = &v };
	return lower_call(w, &c, 1, &value, device, out);
}

int yk_lower_view(struct yk_work *w, const struct yk_call *c, const struct yk_value *outv,
		  yk_id *out)
{
	struct yk_location p;
	struct yk_value value = *outv;
	yk_id x = c->in[0];
	struct yk_call again = *c;
	int err;
	if (!view_place(w, c, &w->value[x].place, outv, &p)) {
		int device = yk_maker(&w->g, w->value[x].place.base)->stream;
		if ((err = contiguous(w, x, device, &x)) < 0)
			return err;
		again.in = &x;
		view_place(w, &again, &w->value[x].place, outv, &p);
	}
	int device = yk_maker(&w->g, p.base)->stream;
	if ((err = yk_node_add(w, &again, 1, &value, device, NULL, out)) < 0)
		return err;
	w->value[*out].place = p;
	return merge_equal(w, out);
}

// A barrier's results are its first operands, marked as having passed it.
static int lower_barrier(struct yk_work *w, const struct yk_call *c, uint32_t nout,
			 const struct yk_value *outs, yk_id *out)
{
	int err = yk_node_add(w, c, nout, outs, 0, NULL, out);
	for (uint32_t i = 0; i < nout && !err; i++) {
		w->value[*out + i].place = w->value[c->in[i]].place;
		w->value[*out + i].place.gate = (uint32_t)w->g.nodes;
	}
	return err;
}

// v's elements on a device: v itself, or the same view of a copy of its base.
int yk_lower_on_device(struct yk_work *w, yk_id v, int device, yk_id *out)
{
	struct yk_graph *g = &w->g;
	struct yk_location p = w->value[v].place;
	int err;
	*out = v;
	if (yk_is_number(w, p.base) || yk_maker(g, p.base)->stream == device)
		return 0;
	// copies only the elements in the view
	if (!device && v != p.base && yk_is_too_large(w, p.base)) {
		if ((err = contiguous(w, v, 1, &v)) < 0)
			return err;
		p = w->value[v].place;
	}
	struct yk_value value = g->value[p.base], view = g->value[v];
	struct yk_call c = { .op = YK_TRANSFER, .nin = 1, .in = &p.base };
	yk_id base;
	if ((err = yk_node_add(w, &c, 1, &value, device, "to the device of its reader",
			  &base)) < 0 ||
	    (err = merge_equal(w, &base)) < 0)
		return err;
	if (v == p.base) {
		*out = base;
		return 0;
	}
	c = (struct yk_call){ .op = YK_STOP_GRAD, .nin = 1, .in = &base };
	if ((err = yk_node_add(w, &c, 1, &view, device, NULL, out)) < 0)
		return err;
	p.base = base;
	w->value[*out].place = p;
	return 0;
}

int yk_lower_dense(struct yk_work *w, yk_id v, int device, yk_id *out)
{
	int err = contiguous(w, v, device, out);
	return err ? err : yk_lower_on_device(w, *out, device, out);
}

// ---- may a device run it? ----

static uint64_t query(struct yk_work *w, int device, const struct yoke_op *op)
{
	struct yk_device *d = yk_work_device(w, device);
	return yk_device_usable(d, op);
}

static bool can_copy(struct yk_work *w, int device, const struct yk_value *x,
		     const struct yk_location *to, const struct yk_location *from,
		     struct yk_built *b)
{
	for (int map = yk_is_number(w, from->base); map < 2; map++)
		if (!yk_build_copy(w, x, to, from, map, b) && query(w, device, &b->op))
			return true;
	return false;
}

// Can this device run the last node?  dense: after copying its operands to contiguous buffers.
static bool can_run(struct yk_work *w, int device, bool dense, struct yk_built *b)
{
	struct yk_graph *g = &w->g;
	uint32_t node = (uint32_t)g->nodes - 1;
	const struct yk_node *n = &g->node[node];
	const struct yk_op_def *row = yk_op_def(n->op);
	if (row->code == YOKE_OP_MOVE) {
		for (uint32_t k = 0; k < n->nin; k++) {
			struct yk_location part = yk_operand_region(w, node, k);
			yk_id x = yk_ins(g, n)[k];
			if (!can_copy(w, device, &g->value[x], &part, &w->value[x].place, b))
				return false;
		}
		return true;
	}
	if (row->flags & (YK_F_MAP | YK_F_REDUCE))
		return !dense && !yk_build_group(w, &node, 1, b) &&
		       query(w, device, &b->op);
	return !yk_build_node(w, node, dense, b) && query(w, device, &b->op);
}

// Removes the last node.
static void drop_last(struct yk_graph *g)
{
	const struct yk_node *n = &g->node[g->nodes - 1];
	g->values = n->out;
	g->args = n->in;
	g->nattrs = n->attr;
	g->nodes--;
}

int yk_lower_try(struct yk_work *w, const struct yk_call *c, uint32_t nout,
		 const struct yk_value *outs, int device, const char *cause, yk_id *out)
{
	struct yk_built b = { 0 };
	struct yk_graph *g = &w->g;
	int err = yk_node_add(w, c, nout, outs, device, cause, out);
	if (err)
		return err;
	bool dense = false, can = can_run(w, device, false, &b);
	if (!can)
		can = dense = can_run(w, device, true, &b);
	yk_built_fini(&b);
	drop_last(g);
	if (!can)
		return 0;
	yk_id few[16], *in = c->nin <= 16 ? few : malloc(c->nin * sizeof *in);
	if (!in)
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	for (uint32_t i = 0; i < c->nin && !err; i++) {
		in[i] = c->in[i];
		if (in[i] == YK_NIL)
			continue;
		err = yk_lower_on_device(w, in[i], device, &in[i]);
		struct yk_value *v = &g->value[in[i]];
		struct yk_location *p = &w->value[in[i]].place;
		if (!err && dense &&
		    (yk_is_number(w, p->base) || p->offset ||
		     !yk_is_dense(v->rank, v->dims, p->stride)))
			err = yk_lower_dense(w, in[i], device, &in[i]);
	}
	struct yk_call moved = *c;
	moved.in = in;
	if (!err)
		err = yk_node_add(w, &moved, nout, outs, device, cause, out);
	if (!err)
		err = merge_equal(w, out);
	if (in != few)
		free(in);
	return err ? err : 1;
}

// ---- decomposition ----

// Marks the nodes that the results need, in the small graph of a decomposition.
static void mark_needed(const struct yk_graph *t, const yk_id *out, uint32_t nout,
			uint8_t *need)
{
	for (uint32_t i = 0; i < nout; i++)
		if (out[i] != YK_NIL)
			need[t->value[out[i]].node] = 1;
	for (size_t k = t->nodes; k-- > 0;)
		for (uint32_t i = 0; need[k] && i < t->node[k].nin; i++)
			if (t->arg[t->node[k].in + i] != YK_NIL)
				need[t->value[t->arg[t->node[k].in + i]].node] = 1;
}

static int decompose(struct yk_work *w, const struct yk_call *c, uint32_t nout,
		     int device, yk_id *out)
{
	struct yk_graph t = { .paths = w->g.paths,
			      .sites = w->g.sites,
			      .scope = w->g.scope,
			      .site = w->g.site };
	const struct yk_op_def *row = yk_op_def(c->op);
	int err = YOKE_ENOMEM;
	yk_id *in = calloc(c->nin + nout + 1, sizeof *in),
	      *outs = in ? in + c->nin : NULL;
	yk_id *map = NULL, *args = NULL;
	uint8_t *need = NULL;
	if (!in)
		goto out;
	for (uint32_t i = 0; i < c->nin; i++) { // placeholders for the operands
		struct yk_call leaf = { .op = YK_LEAF };
		in[i] = YK_NIL;
		if (c->in[i] != YK_NIL &&
		    (err = yk_append_as(&t, &leaf, 1, &w->g.value[c->in[i]], &in[i])) < 0)
			goto out;
	}
	size_t leaves = t.nodes;
	struct yk_call inner = *c;
	inner.in = in;
	row->decompose(&t, &inner, outs);
	for (uint32_t i = 0; i < nout; i++)
		if (outs[i] == YK_BAD) {
			err = yk_error_last();
			goto out;
		}
	err = YOKE_ENOMEM;
	map = malloc((t.values + 1) * sizeof *map);
	need = calloc(t.nodes + 1, 1);
	args = malloc((t.args + 1) * sizeof *args);
	if (!map || !need || !args)
		goto out;
	for (uint32_t i = 0, k = 0; i < c->nin; i++)
		if (c->in[i] != YK_NIL)
			map[k++] = c->in[i];
	mark_needed(&t, outs, nout, need);
	err = 0;
	for (size_t k = leaves; k < t.nodes && !err; k++) {
		const struct yk_node *n = &t.node[k];
		if (!need[k])
			continue;
		for (uint32_t i = 0; i < n->nin; i++)
			args[i] = t.arg[n->in + i] == YK_NIL ? YK_NIL :
							       map[t.arg[n->in + i]];
		struct yk_call part = { .op = n->op,
					.list = n->list,
					.nin = n->nin,
					.in = args,
					.nattr = n->nattr,
					.attr = yk_attrs(&t, n) };
		err = yk_lower_node(w, &part, n->nout, &t.value[n->out], device, &map[n->out]);
	}
	for (uint32_t i = 0; i < nout && !err; i++)
		out[i] = outs[i] == YK_NIL ? YK_NIL : map[outs[i]];
out:
	if (err == YOKE_ENOMEM)
		yk_fail(err, "no memory to plan");
	yk_graph_fini(&t);
	free(in);
	free(map);
	free(need);
	free(args);
	return err;
}

// ---- one node ----

// Is v the literal 1?  x * 1 is replaced by x.
static bool is_one(const struct yk_work *w, yk_id v)
{
	const struct yk_node *n = yk_maker(&w->g, w->value[v].place.base);
	return n->op == YK_CONST &&
	       (uint64_t)yk_attrs(&w->g, n)[1].i == yk_bits(w->g.value[v].dtype, 1);
}

static yk_id simpler(const struct yk_work *w, const struct yk_call *c,
		     const struct yk_value *out)
{
	for (int k = 0; k < 2 && c->op == YK_MUL; k++)
		if (is_one(w, c->in[1 - k]) && yk_same_shape(&w->g.value[c->in[k]], out))
			return c->in[k];
	return YK_NIL;
}

const char yk_placed[] = "kept in the host's memory";

static int lower_leaf(struct yk_work *w, const struct yk_call *c, const struct yk_value *v,
		      yk_id *out)
{
	const struct yk_storage *s =
		c->op == YK_LEAF ? w->ctx->leaves.at[w->marks->leaf[c->attr[0].i]].storage : NULL;
	const bool host = s && yk_lies_on_host(s);
	const char *cause = !host ? NULL :
			    yk_is_hosts(w->ctx, yk_bytes_of_value(v)) ? yk_too_large :
			    yk_placed;
	int err = yk_node_add(w, c, 1, v, host, cause, out);
	return err ? err : merge_equal(w, out);
}

// Lowers a call whose results are numbered consecutively from *out: any but decomposed nodes of
// several results, for which see yk_lower_node.  device: the preferred one.
static int lower_call(struct yk_work *w, const struct yk_call *c, uint32_t nout,
		      const struct yk_value *outs, int device, yk_id *out)
{
	const struct yk_op_def *row = yk_op_def(c->op);
	struct yk_value value;
	int err;
	if (nout == 1) { // a copy: the caller's may be in an array that is reallocated
		value = outs[0];
		outs = &value;
	}
	if (row->flags & YK_F_LEAF)
		return lower_leaf(w, c, outs, out);
	if (row->flags & YK_F_VIEW)
		return yk_lower_view(w, c, outs, out);
	if (c->op == YK_BARRIER)
		return lower_barrier(w, c, nout, outs, out);
	if (row->flags & YK_F_RANKS)
		return yk_lower_ranks(w, c, nout, outs, out);
	if (nout == 1 && (*out = simpler(w, c, outs)) != YK_NIL)
		return 0;
	const bool parts = yk_has_parts(&w->g, c->op, c->in, c->attr);
	if (row->code && (!parts || yk_param_bool(&named))) {
		err = yk_lower_try(w, c, nout, outs, device, NULL, out);
		if (err)
			return err < 0 ? err : 0;
	}
	if (parts && nout == 1)
		return decompose(w, c, nout, device, out);
	if (w->ctx->cpu != w->ctx->device && device == YK_STREAM_DEVICE) {
		if (yk_strict()) {
			char text[160];
			return yk_op_fail(&w->g, c->op, YOKE_EUNSUPPORTED,
					  "%s does not run it for %s, and "
					  "YOKE_STRICT forbids the CPU",
					  w->ctx->device->id,
					  yk_describe(&outs[0], text));
		}
		err = yk_lower_try(w, c, nout, outs, YK_STREAM_CPU, "the device does not take it",
				   out);
		if (err)
			return err < 0 ? err : 0;
	}
	char text[160];
	return yk_op_fail(&w->g, c->op, YOKE_EUNSUPPORTED, "no device runs it for %s",
			  yk_describe(&outs[0], text));
}

int yk_lower_on(struct yk_work *w, const struct yk_call *c, uint32_t nout,
		const struct yk_value *outs, int device, const char *cause, yk_id *out)
{
	char text[160];
	yk_id first;
	struct yk_value one = outs[0]; // a copy: the caller's may be in an array that is
				       // reallocated
	const struct yk_value *v = nout == 1 ? &one : outs;
	int err = yk_lower_try(w, c, nout, v, device, cause, &first);
	if (err < 0)
		return err;
	if (!err && yk_has_parts(&w->g, c->op, c->in, c->attr))
		return decompose(w, c, nout, device, out);
	if (!err)
		return yk_op_fail(&w->g, c->op, YOKE_EUNSUPPORTED, "%s does not run it for %s",
				  yk_work_device(w, device)->id, yk_describe(v, text));
	for (uint32_t i = 0; i < nout; i++)
		out[i] = first + i;
	return 0;
}

static bool reads_placed(const struct yk_work *w, const struct yk_call *c)
{
	bool any = false;
	for (uint32_t i = 0; i < c->nin && !any; i++)
		any = c->in[i] != YK_NIL &&
		      w->node[w->g.value[w->value[c->in[i]].place.base].node].cause == yk_placed;
	return any;
}

// The same for a node with any number of results; out[i] receives result i.
int yk_lower_node(struct yk_work *w, const struct yk_call *c, uint32_t nout,
		  const struct yk_value *outs, int device, yk_id *out)
{
	const struct yk_op_def *row = yk_op_def(c->op);
	for (uint32_t i = 0; row->joined && i < nout; i++)
		out[i] = c->in[c->nin - nout + i];
	if (row->joined)
		return 0;
	if (w->ctx->planner->attempt.large[w->lowering.recorded] && !w->lowering.in_slice &&
	    !(row->flags & (YK_F_LEAF | YK_F_VIEW)) && c->op != YK_BARRIER && device == 0 &&
	    yk_is_large(w, c, nout, outs))
		return yk_lower_large(w, c, nout, outs, out);
	if (c->op == YK_MATMUL && device == YK_STREAM_DEVICE && !w->lowering.in_slice) {
		int aligned = yk_lower_aligned(w, c, outs, out);
		if (aligned)
			return aligned < 0 ? aligned : 0;
	}
	if ((c->op == YK_LIST_MAP || c->op == YK_LIST_REDUCE) && device == YK_STREAM_DEVICE &&
	    reads_placed(w, c))
		return yk_lower_on(w, c, nout, outs, YK_STREAM_CPU, yk_placed, out);
	if (nout > 1 && yk_has_parts(&w->g, c->op, c->in, c->attr)) {
		yk_id first;
		int err = yk_param_bool(&named) ?
				  yk_lower_try(w, c, nout, outs, device, NULL, &first) :
				  0;
		if (!err)
			return decompose(w, c, nout, device, out);
		for (uint32_t i = 0; i < nout; i++)
			out[i] = first + i;
		return err < 0 ? err : 0;
	}
	yk_id first;
	int err = lower_call(w, c, nout, outs, device, &first);
	for (uint32_t i = 0; i < nout && !err; i++)
		out[i] = first + i;
	return err;
}

// Makes a root's value a contiguous block of its own: on the context's device, unless it is too
// large or the variable is placed on the host.
static int settle_root(struct yk_work *w, const struct yk_tensor *handle, yk_id *v)
{
	const bool placed = handle && handle->host && w->ctx->device != w->ctx->cpu;
	int device = placed || yk_is_too_large(w, *v), err = yk_lower_on_device(w, *v, device, v);
	if (err)
		return err;
	const struct yk_location *p = &w->value[*v].place;
	const struct yk_value *x = &w->g.value[*v], *base = &w->g.value[p->base];
	if (yk_is_number(w, p->base) || p->offset ||
	    yk_bytes_of_value(x) != yk_bytes_of_value(base) ||
	    !yk_is_dense(x->rank, x->dims, p->stride))
		return yk_lower_dense(w, *v, device, v);
	return 0;
}

// Lowers the existing results of a node as leaves.
static int lower_made(struct yk_work *w, const struct yk_node *n, uint32_t wanted, uint32_t *leaves,
		      yk_id *map)
{
	const struct yk_graph *g = &w->ctx->graph;
	int err = 0;
	for (uint32_t i = 0; i < n->nout && !err; i++) {
		struct yk_call c = { .op = YK_LEAF,
				     .nattr = 1,
				     .attr = &(union yoke_attr){ .i = *leaves } };
		map[i] = YK_NIL;
		if (!(wanted & yk_result_bit(g, n->out + i)))
			continue;
		err = yk_lower_node(w, &c, 1, &g->value[n->out + i], 0, &map[i]);
		++*leaves;
	}
	return err;
}

int yk_lower(struct yk_work *w)
{
	const struct yk_graph *g = &w->ctx->graph;
	const struct yk_marks *m = w->marks;
	yk_id *map = malloc((m->values + 1) * sizeof *map),
	      *in = malloc((g->args + 1) * sizeof *in);
	int err = 0;
	w->root_value = malloc((w->roots + 1) * sizeof *w->root_value);
	w->g.paths = &w->ctx->scopes.paths;
	w->g.sites = &w->ctx->observe.sites;
	if (!map || !in || !w->root_value)
		err = yk_fail(YOKE_ENOMEM, "no memory to plan");
	uint32_t leaves = 0;
	for (size_t k = 0; k < m->nodes && !err; k++) {
		const struct yk_node *n = &g->node[m->node[k]];
		w->g.scope = n->scope;
		w->g.site = n->site;
		w->lowering.recorded = (uint32_t)k;
		if (m->made[k]) {
			err = lower_made(w, n, m->made[k], &leaves,
					 &map[yk_number_of(m, g, n->out)]);
			continue;
		}
		for (uint32_t i = 0; i < n->nin; i++) {
			yk_id v = g->arg[n->in + i];
			in[i] = v == YK_NIL ? YK_NIL : map[yk_number_of(m, g, v)];
		}
		struct yk_call c = { .op = n->op,
				     .list = n->list,
				     .nin = n->nin,
				     .in = in,
				     .nattr = n->nattr,
				     .attr = yk_attrs(g, n) };
		union yoke_attr leaf = { .i = leaves };
		if (n->op == YK_LEAF || n->op == YK_SCALAR) {
			c.attr = &leaf;
			leaves++;
		}
		yk_warmup_at("tests", "operations", k + 1, m->nodes);
		err = yk_lower_node(w, &c, n->nout, &g->value[n->out], 0,
				    &map[yk_number_of(m, g, n->out)]);
	}
	for (size_t i = 0; i < w->roots && !err; i++) {
		yk_id v = w->root[i].id;
		uint32_t node = g->value[v].node;
		w->root_value[i] = map[yk_number_of(m, g, v)];
		w->g.scope = g->node[node].scope;
		w->g.site = g->node[node].site;
		w->lowering.recorded = m->mark[node].index;
		err = settle_root(w, w->root[i].handle, &w->root_value[i]);
	}
	free(map);
	free(in);
	return err;
}
