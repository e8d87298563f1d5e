// SPDX-License-Identifier: Apache-2.0
// Emission: turns each group into a step of the plan, a move into several copies.
// Until layout, a view's ref has the value that owns its bytes (index); the offset is in the view.

#include "config.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/endian.h"
#include "base/error.h"
#include "base/log.h"
#include "device/tuning.h"
#include "device/usable.h"
#include "device/warmup.h"
#include "plan/build.h"
#include "plan/passes.h"
#include "plan/plan.h"
#include "plan/planner.h"
#include "plan/work.h"

int yk_step_add(struct yk_work *w, uint32_t node, size_t views, struct yk_step **to)
{
	struct yk_plan *p = w->plan;
	size_t cap = p->view_cap;
	if (yk_grow(&p->step, &p->step_cap, p->steps + 1, sizeof *p->step) < 0 ||
	    yk_grow(&p->view, &p->view_cap, p->views + views, sizeof *p->view) < 0 ||
	    yk_grow(&p->ref, &cap, p->views + views, sizeof *p->ref) < 0)
		return yk_fail(YOKE_ENOMEM, "no memory to plan");
	const struct yk_node *n = &w->g.node[node];
	struct yk_step *s = &p->step[p->steps++];
	*s = (struct yk_step){ .stream = n->stream,
			       .event = YK_NIL,
			       .view = (uint32_t)p->views,
			       .views = (uint32_t)views,
			       .node = node,
			       .scope = n->scope,
			       .opcode = n->op,
			       .cause = w->node[node].cause };
	p->views += views;
	*to = s;
	return 0;
}

// Bytes of its elements in memory: broadcast axes count once.
static uint64_t view_bytes(const struct yoke_view *v)
{
	uint64_t n = yoke_dtype_size(v->dtype);
	for (int i = 0; i < v->rank && v->kind == YOKE_VIEW_BUFFER; i++)
		n *= v->strides[i] || !v->dims[i] ? (uint64_t)v->dims[i] : 1;
	return n;
}

// Does view i of the step, an operand, read the same memory as the operand before it that reads the
// same value?
static bool is_read_before(struct yk_work *w, const struct yk_step *s, const struct yk_built *b,
			   uint32_t i)
{
	if (i < b->op.nout || b->value[i] == YK_NIL)
		return false;
	uint32_t *viewed = &w->value[b->value[i]].viewed;
	const uint32_t k = *viewed - 1 - s->view; // wraps where no operand of this step read it
	*viewed = s->view + i + 1;
	return k < i && b->view[k].offset == b->view[i].offset &&
	       view_bytes(&b->view[k]) == view_bytes(&b->view[i]);
}

void yk_ref_set(struct yk_work *w, struct yk_ref *ref, const struct yoke_view *v, yk_id value)
{
	*ref = (struct yk_ref){ .where = YK_AT_NONE, .offset = v->offset };
	if (v->kind == YOKE_VIEW_NONE || value == YK_NIL)
		return;
	yk_id base = w->value[value].place.base;
	if (v->kind == YOKE_VIEW_BUFFER) {
		ref->where = YK_AT_ARENA;
		ref->index = yk_maker(&w->g, base)->op == YK_SCALAR ? w->scalars.buffer : base;
	} else if (yk_maker(&w->g, base)->op == YK_SCALAR) {
		ref->where = YK_AT_SCALAR;
		ref->index = (uint32_t)yk_attrs(&w->g, yk_maker(&w->g, base))[0].i;
	}
}

// Chooses the best implementation that builds. If none does, the plan is made again, because the
// device no longer offers the op.
static int choose(struct yk_work *w, struct yk_device *d, const struct yoke_op *op,
		  struct yk_step *s, char *why, size_t cap)
{
	for (uint64_t left; (left = yk_device_usable(d, op));) {
		uint32_t impl = yk_tuning_pick(d, op, left);
		bool had = yoke_error_code() != 0;
		int err = d->ops->prepare(d->index, op, impl, w->plan->serial, &s->handle,
					  &s->work_bytes);
		s->impl = (uint16_t)impl;
		s->ops = d->ops;
		if (!err)
			return 0;
		yk_backend_detail(had, err, why, cap);
		if (err != YOKE_EUNSUPPORTED)
			return err;
		const char *name = d->ops->impl_name(d->index, op, impl);
		int what = op->code == YOKE_OP_CONTRACT ? YK_MATMUL : s->opcode;
		yk_warn("plan", "%s: %s/%s is not used, it does not build: %s", d->id,
			yk_op_def(what)->name, name ? name : "-", why);
		if ((err = yk_device_refuse(d, op, impl)) < 0)
			return err;
	}
	w->replan = true;
	return YOKE_EUNSUPPORTED;
}

// Appends a step that runs the op built for `node`.
static int add_run(struct yk_work *w, uint32_t node, const struct yk_built *b)
{
	struct yk_device *d = yk_work_device(w, w->g.node[node].stream);
	struct yk_step *s;
	bool takes = yk_device_usable(d, &b->op);
	if (!takes && yk_device_verdict(d) < 0)
		return YOKE_EDEVICE;
	if (!takes && w->scalars.buffer != YK_NIL) { // it may support scalars only by value
		w->ctx->planner->attempt.by_value = w->replan = true;
		return YOKE_EUNSUPPORTED;
	}
	// results of the fused form may be unused now
	if (!takes && b->op.map && !w->ctx->planner->attempt.unfused) {
		w->ctx->planner->attempt.unfused = w->replan = true;
		return YOKE_EUNSUPPORTED;
	}
	if (!takes)
		return yk_op_fail(&w->g, w->g.node[node].op, YOKE_EUNSUPPORTED,
				  "%s no longer supports it", d->id);
	uint32_t nviews = b->op.nout + b->op.nin;
	int err = yk_step_add(w, node, nviews, &s);
	if (err)
		return err;
	s->kind = YK_STEP_RUN;
	s->op = b->op;
	s->op.id = w->plan->steps - 1;
	if (b->op.map) {
		if (!(s->map = yk_arena_alloc(&w->plan->memory, sizeof *s->map)))
			return yk_fail(YOKE_ENOMEM, "no memory to plan");
		*s->map = b->map;
		s->op.map = s->map;
	}
	if (b->op.source) {
		struct yoke_source *source = yk_arena_alloc(&w->plan->memory, sizeof *source);
		if (!source)
			return yk_fail(YOKE_ENOMEM, "no memory to plan");
		*source = b->source;
		s->op.source = source;
	}
	for (uint32_t i = 0; i < nviews; i++) {
		w->plan->view[s->view + i] = b->view[i];
		yk_ref_set(w, &w->plan->ref[s->view + i], &b->view[i], b->value[i]);
		s->bytes += is_read_before(w, s, b, i) ? 0 : view_bytes(&b->view[i]);
	}
	char why[900] = "";
	err = choose(w, d, &s->op, s, why, sizeof why);
	if (!err || w->replan)
		return err;
	const char *what = err == YOKE_ENOMEM  ? "has no memory for a kernel" :
			   err == YOKE_EDEVICE ? "failed" :
						 "has no kernel";
	return yk_op_fail(&w->g, w->g.node[node].op, err, "%s %s: %s", d->id, what, why);
}

// A step that copies without a kernel: destination, then source.
static int add_transfer(struct yk_work *w, uint32_t node, struct yk_built *b)
{
	const struct yk_node *n = &w->g.node[node];
	yk_id x = w->g.arg[n->in];
	struct yk_step *s;
	int err = yk_build_copy(w, &w->g.value[x], &w->value[n->out].place, &w->value[x].place,
				false, b);
	if (!err)
		err = yk_step_add(w, node, 2, &s);
	if (err)
		return err;
	s->kind = n->stream == YK_STREAM_CPU ? YK_STEP_DOWN : YK_STEP_UP;
	s->stream = n->stream == YK_STREAM_CPU ? YK_STREAM_DOWN : YK_STREAM_UP;
	for (int i = 0; i < 2; i++) {
		w->plan->view[s->view + (uint32_t)i] = b->view[i];
		yk_ref_set(w, &w->plan->ref[s->view + (uint32_t)i], &b->view[i],
			b->value[i]);
	}
	s->bytes = view_bytes(&b->view[0]);
	return 0;
}

static int add_fill(struct yk_work *w, uint32_t node, uint64_t pattern)
{
	const struct yk_node *n = &w->g.node[node];
	const struct yk_value *v = &w->g.value[n->out];
	struct yk_step *s;
	int err = yk_step_add(w, node, 1, &s);
	if (err)
		return err;
	struct yoke_view *view = &w->plan->view[s->view];
	*view = (struct yoke_view){ .kind = YOKE_VIEW_BUFFER,
				    .dtype = v->dtype,
				    .rank = v->rank };
	memcpy(view->dims, v->dims, sizeof view->dims);
	memcpy(view->strides, w->value[n->out].place.stride, sizeof view->strides);
	yk_ref_set(w, &w->plan->ref[s->view], view, n->out);
	s->kind = YK_STEP_FILL;
	// the element's bytes come first
	s->pattern = YK_HOST_BIG ? pattern << (64 - 8 * yoke_dtype_size(v->dtype)) : pattern;
	s->bytes = view_bytes(view);
	return 0;
}

static int add_copy(struct yk_work *w, uint32_t node, yk_id x, const struct yk_location *to,
		    struct yk_built *b)
{
	struct yk_device *d = yk_work_device(w, w->g.node[node].stream);
	struct yk_value v = w->g.value[x];
	const struct yk_location from = w->value[x].place;
	if (!yk_count(&v) || (from.base == to->base && from.offset == to->offset))
		return 0; // it was computed in place
	bool map = yk_is_number(w, from.base);
	int err = yk_build_copy(w, &v, to, &from, map, b);
	if (!err && !map && !yk_device_usable(d, &b->op))
		err = yk_build_copy(w, &v, to, &from, true, b);
	return err ? err : add_run(w, node, b);
}

static int add_moves(struct yk_work *w, uint32_t node, struct yk_built *b)
{
	const struct yk_node *n = &w->g.node[node];
	int err = 0;
	if (n->op == YK_PAD)
		err = add_fill(w, node, (uint64_t)yk_attrs(&w->g, n)[n->nattr - 1].i);
	for (uint32_t k = 0; k < n->nin && !err; k++) {
		struct yk_location to = yk_operand_region(w, node, k);
		err = add_copy(w, node, w->g.arg[n->in + k], &to, b);
	}
	return err;
}

// The step that writes host scalars to device memory, in a plan that can be recorded.
static int add_numbers(struct yk_work *w)
{
	struct yk_step *s;
	const struct yk_value *v = &w->g.value[w->scalars.buffer];
	const uint32_t node = v->node;
	int err = yk_step_add(w, node, 1, &s);
	if (err)
		return err;
	struct yoke_view *view = &w->plan->view[s->view];
	yk_buffer_view(w, view, v->dtype, v->rank, v->dims,
		       w->value[w->scalars.buffer].place.stride, 0);
	yk_ref_set(w, &w->plan->ref[s->view], view, w->scalars.buffer);
	s->kind = YK_STEP_NUMBERS;
	s->bytes = view_bytes(view);
	return 0;
}

int yk_emit(struct yk_work *w)
{
	static atomic_uint_fast64_t plans;
	struct yk_built b = { 0 };
	int err = 0;
	w->plan->serial = 1 + atomic_fetch_add(&plans, 1);
	if (w->scalars.buffer != YK_NIL)
		err = add_numbers(w);
	for (size_t i = 0; i < w->schedule.norder && !err; i++) {
		const struct yk_group *m = &w->schedule.group[w->schedule.order[i]];
		const struct yk_node *n = &w->g.node[m->at];
		const struct yk_op_def *row = yk_op_def(n->op);
		bool empty = true;
		for (uint32_t k = 0; k < n->nout; k++)
			empty &= !yk_count(&w->g.value[n->out + k]);
		if ((empty && !yk_is_ranks(n)) || n->op == YK_BARRIER) // it computes nothing
			continue;
		w->g.scope = n->scope;
		w->g.site = n->site;
		size_t first = w->plan->steps;
		yk_warmup_at("compiles", "launches", i + 1, w->schedule.norder);
		if (n->op == YK_TRANSFER) {
			err = add_transfer(w, m->at, &b);
		} else if (yk_is_ranks(n)) {
			err = yk_emit_ranks(w, m->at, &b);
		} else if (row->code == YOKE_OP_MOVE) {
			err = add_moves(w, m->at, &b);
		} else if (row->flags & (YK_F_MAP | YK_F_REDUCE)) {
			if (!(err = yk_build_group(w, m->member, m->n, &b)) &&
			    !(err = add_run(w, m->at, &b)) && m->n > 1) {
				struct yk_step *s = &w->plan->step[w->plan->steps - 1];
				bool product = s->op.code == YOKE_OP_CONTRACT;
				s->cause = product ? "epilogue" : "fused";
				s->opcode = product ? YK_MATMUL : s->opcode;
			}
		} else if (!(err = yk_build_node(w, m->at, false, &b))) {
			err = add_run(w, m->at, &b);
		}
		if (!err)
			err = yk_parts(w, m, first);
	}
	yk_built_fini(&b);
	return err;
}
