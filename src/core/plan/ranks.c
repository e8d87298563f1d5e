// SPDX-License-Identifier: Apache-2.0
// Collectives in a plan: operands and results are contiguous, in host memory (which on a CPU device
// is the device's own), or in device memory if the ranks queue supports it, and the steps go to the
// ranks queue in recorded order.  Such nodes are never merged, reordered, duplicated or dropped.

#include "config.h"

#include <stdlib.h>

#include "base/error.h"
#include "plan/build.h"
#include "plan/lower.h"
#include "plan/plan.h"
#include "plan/strides.h"
#include "plan/work.h"

static bool is_on_device(const struct yk_work *w, int op)
{
	return w->ctx->queues.device_ranks && op != YK_RANKS_SEND && op != YK_RANKS_RECV;
}

// The stream that owns the operands' memory.
static int stream_for(const struct yk_work *w, int op)
{
	return w->ctx->device == w->ctx->cpu || is_on_device(w, op) ? YK_STREAM_DEVICE :
								      YK_STREAM_CPU;
}

int yk_lower_ranks(struct yk_work *w, const struct yk_call *c, uint32_t nout,
		   const struct yk_value *outs, yk_id *out)
{
	const int home = stream_for(w, c->op);
	struct yk_call brought = *c;
	yk_id *in = malloc((c->nin + (size_t)1) * sizeof *in);
	int err = in ? 0 : yk_fail(YOKE_ENOMEM, "no memory to plan");
	brought.in = in;
	for (uint32_t i = 0; i < c->nin && !err; i++) {
		const struct yk_location *p = &w->value[c->in[i]].place;
		const struct yk_value *v = &w->g.value[c->in[i]];
		if (yk_is_number(w, p->base) || !yk_is_dense(v->rank, v->dims, p->stride))
			err = yk_lower_dense(w, c->in[i], home, &in[i]);
		else
			err = yk_lower_on_device(w, c->in[i], home, &in[i]);
	}
	if (!err)
		err = yk_node_add(w, &brought, nout, outs, home, NULL, out);
	free(in);
	if (err || c->op != YK_RANKS_SEND)
		return err;
	// a constant instead of the send's result 0, whose readers would wait for its arrival
	const union yoke_attr zero[] = { { .i = yoke_f32 }, { .i = 0 } };
	const struct yk_value number = { .dtype = yoke_f32 };
	return yk_lower_node(w, &(struct yk_call){ .op = YK_CONST, .nattr = 2, .attr = zero }, 1,
			     &number, home, out);
}

int yk_emit_ranks(struct yk_work *w, uint32_t node, struct yk_built *b)
{
	struct yk_node *n = &w->g.node[node];
	struct yk_step *s;
	int err = yk_built_reset(b, (uint16_t)(YK_STEP_RANKS_CODE | n->op), n->nout + n->nin);
	if (!err)
		err = yk_step_add(w, node, n->nout + n->nin, &s);
	if (err)
		return err;
	for (uint32_t i = 0; i < n->nout + n->nin; i++) {
		const yk_id v = i < n->nout ? n->out + i : w->g.arg[n->in + i - n->nout];
		const struct yk_value *x = &w->g.value[v];
		const struct yk_location *p = &w->value[v].place;
		struct yoke_view *view = &w->plan->view[s->view + i];
		yk_buffer_view(w, view, x->dtype, x->rank, x->dims, p->stride, p->offset);
		yk_ref_set(w, &w->plan->ref[s->view + i], view, v);
		s->bytes += yk_bytes_of_value(x);
	}
	s->kind = YK_STEP_RANKS;
	s->stream = YK_STREAM_RANKS;
	s->on_device = is_on_device(w, n->op);
	s->op = b->op;
	s->op.nout = n->nout;
	s->op.nin = n->nin;
	s->op.list = n->list;
	s->op.nattr = YK_RANKED;
	memcpy(s->op.attr, yk_attrs(&w->g, n), YK_RANKED * sizeof *s->op.attr);
	s->op.out = &w->plan->view[s->view];
	s->op.in = s->op.out + n->nout;
	s->ops = yk_work_device(w, YK_STREAM_RANKS)->ops;
	err = s->ops->prepare(0, &s->op, 0, w->plan->serial, &s->handle, &s->work_bytes);
	return err ? yk_op_fail(&w->g, n->op, err, "the ranks do not support it") : 0;
}
