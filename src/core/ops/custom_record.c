// SPDX-License-Identifier: Apache-2.0
// Calls of custom ops and their gradients: runs the application's callbacks, which record while a
// call is in progress.
#include "config.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "base/error.h"
#include "device/plugin.h"
#include "graph/autocast.h"
#include "graph/context.h"
#include "graph/handle.h"
#include "ops/custom.h"

// ---- callbacks of the application ----

// During a callback its thread re-enters the context.  Its tensors belong to a scope that ends with
// it.  Meanwhile nothing is launched and the graph is not collected, so ids stay valid.
struct frame {
	struct yoke_context *ctx, *current;
	struct yk_scope scope;
	uint32_t path, site;
	uint16_t back;
	const char *call;
	uint8_t dtype; // of autocast, which is off meanwhile
	bool eager;
};

static void frame_begin(struct frame *f, struct yoke_context *ctx)
{
	struct yk_graph *g = &ctx->graph;
	*f = (struct frame){
		.ctx = ctx, .path = g->scope, .site = g->site, .back = g->back, .call = g->call,
		.dtype = ctx->autocast.setting.dtype, .eager = ctx->mode.eager,
		.scope = { .parent = ctx->scopes.innermost, .path = g->scope },
	};
	ctx->scopes.innermost = &f->scope;
	ctx->autocast.setting.dtype = 0;
	ctx->mode.eager = false;
	ctx->access.callbacks++;
	f->current = yoke_use(ctx);
}

static int frame_end(struct frame *f)
{
	struct yoke_context *ctx = f->ctx;
	struct yk_graph *g = &ctx->graph;
	int err = 0;
	while (ctx->scopes.innermost != &f->scope) {
		err = yk_fail(YOKE_EINVAL, "%s: its function left a scope open", f->call);
		yoke_scope_end((yoke_scope *)ctx->scopes.innermost->serial);
	}
	yk_tensors_free(&f->scope.handles, YK_END_SCOPE);
	if (f->scope.casts)
		yk_autocast_end(ctx, &f->scope.former);
	ctx->access.callbacks--;
	yoke_use(f->current);
	ctx->scopes.innermost = f->scope.parent;
	ctx->autocast.setting.dtype = f->dtype;
	ctx->mode.eager = f->eager;
	g->scope = f->path;
	g->site = f->site;
	g->back = f->back;
	g->call = f->call;
	return err;
}

static int handles(struct yoke_context *ctx, int n, const yk_id *id, yoke_tensor **to)
{
	for (int i = 0; i < n; i++)
		if (!(to[i] = id[i] == YK_NIL ? YOKE_NONE : yk_handle_of(ctx, id[i])))
			return yk_error_last();
	return 0;
}

// The value that a callback returned, checked for shape and dtype.
static int value_of(struct yoke_context *ctx, const struct yk_custom *o, yoke_tensor *t,
		    const struct yk_value *want, const char *what, int number, yk_id *to)
{
	char got[160], should[160];
	struct yk_graph *g = &ctx->graph;
	g->call = o->def.name;
	*to = t && t != YOKE_NONE ? yk_operand(ctx, t, want->dtype) : YK_BAD;
	if (*to == YK_BAD)
		return yoke_error_code() ? yoke_error_code() :
					   yk_fail(YOKE_EINVAL, "%s: its %s gives no value %d",
						   o->def.name, what, number);
	if (g->value[*to].dtype == want->dtype && yk_same_shape(&g->value[*to], want))
		return 0;
	return yk_fail(YOKE_ESHAPE, "%s: its %s gives %s for value %d, which must be %s",
		       o->def.name, what, yk_describe(&g->value[*to], got), number,
		       yk_describe(want, should));
}

static int returned(const struct yk_custom *o, const char *what, int err)
{
	if (err && !yoke_error_code())
		yk_fail(err < 0 ? err : YOKE_EINVAL, "%s: its %s returned %d", o->def.name, what,
			err);
	return err > 0 ? YOKE_EINVAL : err;
}

// ---- calls ----

// Records the op's decomposition; out: its results.
static int decompose(struct yoke_context *ctx, const struct yk_custom *o, const yk_id *in,
		     const union yoke_attr *attr, const struct yk_value *want, yk_id *out)
{
	struct frame f;
	struct yk_custom_args s;
	yoke_tensor *x[YOKE_OP_MAX_IN], *y[YOKE_OP_MAX_OUT] = { NULL };
	yk_custom_see(o, &ctx->graph, in, attr, want, &s);
	frame_begin(&f, ctx);
	int err = handles(ctx, o->def.nin, in, x);
	if (!err)
		err = returned(o, "decomposition", o->def.decompose(&s.args, x, y));
	for (int i = 0; i < o->def.nout && !err; i++)
		err = value_of(ctx, o, y[i], &want[i], "decomposition", i, &out[i]);
	const int ended = frame_end(&f);
	return err ? err : ended;
}

// Can the device compute the op itself?  Then *op has its source.
static int takes(struct yoke_context *ctx, struct yk_device *d, const struct yk_custom *o,
		 const yk_id *in, const union yoke_attr *attr, const struct yk_value *want,
		 struct yoke_source *source, struct yoke_op *op, struct yoke_view *view)
{
	*op = (struct yoke_op){ .size = sizeof *op,
				.code = YOKE_OP_SOURCE,
				.nattr = (uint8_t)o->def.nattr,
				.nout = (uint32_t)o->def.nout,
				.nin = (uint32_t)o->def.nin };
	op->out = view;
	op->in = view + o->def.nout;
	if (o->def.nattr)
		memcpy(op->attr, attr, (size_t)o->def.nattr * sizeof *attr);
	for (int i = 0; i < o->def.nout + o->def.nin; i++) {
		const yk_id id = i < o->def.nout ? YK_BAD : in[i - o->def.nout];
		const struct yk_value *v = i < o->def.nout ? &want[i] :
					   id == YK_NIL    ? NULL :
							     &ctx->graph.value[id];
		int64_t stride = 1;
		view[i] = (struct yoke_view){ .kind = v ? YOKE_VIEW_BUFFER : YOKE_VIEW_NONE };
		if (!v)
			continue;
		view[i].dtype = v->dtype;
		view[i].rank = v->rank;
		view[i].align = d->info.align;
		memcpy(view[i].dims, v->dims, sizeof view[i].dims);
		for (int k = v->rank; k-- > 0; stride *= v->dims[k])
			view[i].strides[k] = stride;
	}
	const int err = yk_custom_source(o, op, d, source);
	return err ? err : yk_device_can(d, op) != 0;
}

// Has the device compile the source once; a compile error is an error of the call.
static int compile(struct yk_custom *o, struct yk_device *d, const struct yoke_op *op)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	void *handle = NULL;
	uint64_t workspace = 0;
	size_t k = 0;
	const size_t max = sizeof o->built / sizeof *o->built;
	char why[900];
	d = yk_device_real(d);
	pthread_mutex_lock(&lock);
	while (k < max && o->built[k] && o->built[k] != d)
		k++;
	int err = 0;
	if (k < max && !o->built[k]) {
		const bool had = yoke_error_code() != 0;
		err = d->ops->prepare(d->index, op, 0, 0, &handle, &workspace);
		if (!err && handle)
			d->ops->release(handle);
		if (err)
			yk_backend_detail(had, err, why, sizeof why);
		o->built[k] = err ? NULL : d;
	}
	pthread_mutex_unlock(&lock);
	return err ? yk_fail(err, "%s: its kernel text does not serve on %s: %s", o->def.name,
			     d->id, why) :
		     0;
}

// 1: record the op itself; 0: decompose it; negative: an error.
static int choose(struct yoke_context *ctx, struct yk_custom *o, int way, const yk_id *in,
		  const union yoke_attr *attr, const struct yk_value *want)
{
	struct yoke_view view[YOKE_OP_MAX_IN + YOKE_OP_MAX_OUT];
	struct yoke_source source;
	struct yoke_op op;
	const bool parts = o->def.decompose && (way == YK_CUSTOM_ANY || way == YK_CUSTOM_PARTS);
	if (way == YK_CUSTOM_PARTS)
		return parts ? 0 : YOKE_EUNSUPPORTED;
	const int taken = takes(ctx, ctx->device, o, in, attr, want, &source, &op, view);
	if (taken < 0)
		return taken;
	const bool text = taken && source.dialect != YOKE_DIALECT_HOST;
	if (way != YK_CUSTOM_ANY && (!taken || text != (way == YK_CUSTOM_TEXT)))
		return YOKE_EUNSUPPORTED;
	if (text) {
		const int err = compile(o, ctx->device, &op);
		return err ? err : 1;
	}
	if (taken || (o->def.cpu && !parts))
		return 1;
	return parts ? 0 :
		       yk_fail(YOKE_EUNSUPPORTED,
			       "%s: %s takes no kernel text of it, and it has neither a decomposition "
			       "nor a CPU function",
			       o->def.name, ctx->device->id);
}

static int record(struct yoke_context *ctx, struct yk_custom *o, int way, const yk_id *in,
		  const union yoke_attr *attr, yk_id *first)
{
	struct yk_value want[YOKE_OP_MAX_OUT];
	yk_id operand[YOKE_OP_MAX_IN + YOKE_OP_MAX_OUT];
	struct yk_call c = { .op = o->op,
			     .nin = (uint32_t)o->def.nin,
			     .in = operand,
			     .nattr = (uint32_t)o->def.nattr,
			     .attr = attr };
	memcpy(operand, in, c.nin * sizeof *in);
	int err = yk_shape_custom(&ctx->graph, &c, want);
	const int whole = err ? err : choose(ctx, o, way, in, attr, want);
	if (whole == 0) {
		c.op++;
		c.nin += (uint32_t)o->def.nout;
		if ((err = decompose(ctx, o, in, attr, want, operand + o->def.nin)) < 0)
			return err;
	}
	return whole < 0 ? whole : yk_append(&ctx->graph, &c, first);
}

// The context of the first operand that is a tensor; without one, the thread's.
static struct yoke_context *context_of(const struct yk_custom *o, yoke_tensor *const *in)
{
	for (int i = 0; i < o->def.nin; i++) {
		if (in[i] == YOKE_NONE)
			continue;
		const struct yk_tensor *t = yk_tensor(in[i], o->def.name);
		return t ? t->ctx : NULL;
	}
	return yk_current();
}

static int operands(struct yoke_context *ctx, const struct yk_custom *o, yoke_tensor *const *in,
		    yk_id *to)
{
	int dtype = 0;
	for (int i = 0; i < o->def.nin; i++) {
		const struct yk_tensor *t =
			in[i] == YOKE_NONE ? NULL : yk_tensor(in[i], o->def.name);
		if (!t && in[i] != YOKE_NONE)
			return yk_error_last();
		dtype = dtype || !t ? dtype : t->dtype; // for literals
	}
	for (int i = 0; i < o->def.nin; i++) {
		to[i] = yk_operand(ctx, in[i], dtype ? dtype : yoke_f32);
		if (to[i] == YK_BAD)
			return yk_error_last();
		if (to[i] == YK_NIL && !(o->def.optional >> i & 1))
			return yk_op_fail(&ctx->graph, o->op, YOKE_EINVAL,
					  "operand %d is YOKE_NONE and not optional", i);
	}
	return 0;
}

int yk_custom_call(struct yk_custom *o, int way, yoke_tensor *const *in,
		   const union yoke_attr *attr, yoke_tensor **out)
{
	struct yoke_context *ctx = context_of(o, in);
	yk_id id[YOKE_OP_MAX_IN], first = YK_NIL;
	int err = ctx ? yk_enter(ctx) : yk_error_last();
	if (!err) {
		ctx->graph.call = o->def.name;
		err = operands(ctx, o, in, id);
		if (!err)
			err = record(ctx, o, way, id, attr, &first);
		if (!err)
			err = yk_recorded(ctx);
		for (int i = 0; i < o->def.nout && !err; i++)
			if (!(out[i] = yk_handle_of(ctx, first + (yk_id)i)))
				err = yk_error_last();
		yk_leave(ctx);
	}
	for (int i = 0; i < o->def.nout && err; i++)
		out[i] = NULL;
	return err;
}

int yoke_op_call(int op, int nin, yoke_tensor *const *in, int nattr, const union yoke_attr *attr,
		 int nout, yoke_tensor **out)
{
	struct yk_custom *o = yk_custom_of(op);
	for (int i = 0; out && i < nout; i++)
		out[i] = NULL;
	if (!o)
		return yk_fail(YOKE_EINVAL,
			       "op_call: no op has the number %d; yoke_op_register gives one", op);
	if (nin != o->def.nin || nattr != o->def.nattr || nout != o->def.nout || (nin && !in) ||
	    (nattr && !attr) || !out)
		return yk_fail(
			YOKE_EINVAL,
			"%s: takes %d operands and %d attributes and gives %d results, got %d, %d and %d",
			o->def.name, o->def.nin, o->def.nattr, o->def.nout, nin, nattr, nout);
	for (int i = 0; i < nin; i++)
		if (!in[i])
			return yoke_error_code() ? yoke_error_code() :
				yk_fail(YOKE_EINVAL, "%s: operand %d is NULL", o->def.name, i);
	return yk_custom_call(o, YK_CUSTOM_ANY, in, attr, out);
}

// ---- gradients ----

// Cotangents of the results, zeros where nothing depends on one; NIL for results without gradient.
static int cotangents(struct yk_graph *g, const struct yk_custom *o, uint32_t first,
		      const yk_id *gout, yk_id *to)
{
	for (int i = 0; i < o->def.nout; i++) {
		const yk_id y = first + (uint32_t)i;
		to[i] = !yk_is_float(g->value[y].dtype) ? YK_NIL :
			gout[i] != YK_NIL               ? gout[i] :
							  yk_full_like(g, y, 0);
		if (to[i] == YK_BAD)
			return yk_error_last();
	}
	return 0;
}

// Checks the gradient that the callback returned for operand i.
static int take_gradient(struct yoke_context *ctx, const struct yk_custom *o, int i, yk_id x,
			 yoke_tensor *t, yk_id *to)
{
	struct yk_graph *g = &ctx->graph;
	if (x == YK_NIL || !t || !yk_is_float(g->value[x].dtype))
		return 0; // a missing gradient is reported where it is needed
	const struct yk_value v = g->value[x];
	if (t != YOKE_NONE)
		return value_of(ctx, o, t, &v, "gradient", i, to);
	*to = yk_full_like(g, x, 0);
	return *to == YK_BAD ? yk_error_last() : 0;
}

void yk_grad_custom(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	struct yoke_context *ctx =
		(struct yoke_context *)((char *)g - offsetof(struct yoke_context, graph));
	const struct yk_node n = g->node[node];
	const struct yk_custom *o = yk_op_def(n.op)->custom;
	yk_id in[YOKE_OP_MAX_IN], out[YOKE_OP_MAX_OUT], cot[YOKE_OP_MAX_OUT];
	union yoke_attr attr[YOKE_MAX_ATTRS];
	yoke_tensor *x[YOKE_OP_MAX_IN], *y[YOKE_OP_MAX_OUT], *c[YOKE_OP_MAX_OUT],
		*to[YOKE_OP_MAX_IN] = { NULL };
	struct yk_custom_args s;
	struct frame f;
	int err;
	memcpy(in, yk_ins(g, &n), (size_t)o->def.nin * sizeof *in); // appending moves the arrays
	memcpy(attr, yk_attrs(g, &n), n.nattr * sizeof *attr);
	yk_custom_see(o, g, in, attr, &g->value[n.out], &s);
	for (int i = 0; i < o->def.nout; i++)
		out[i] = n.out + (uint32_t)i;
	if (!o->def.gradient) {
		err = yk_op_fail(g, n.op, YOKE_EUNSUPPORTED, "%s has no gradient", o->def.name);
	} else if (!(err = cotangents(g, o, n.out, gout, cot))) {
		frame_begin(&f, ctx);
		err = handles(ctx, o->def.nin, in, x);
		if (!err)
			err = handles(ctx, o->def.nout, out, y);
		if (!err)
			err = handles(ctx, o->def.nout, cot, c);
		if (!err)
			err = returned(o, "gradient", o->def.gradient(&s.args, x, y, c, to));
		for (int i = 0; i < o->def.nin && !err; i++)
			err = take_gradient(ctx, o, i, in[i], to[i], &gin[i]);
		const int ended = frame_end(&f);
		err = err ? err : ended;
	}
	for (int i = 0; i < o->def.nin && err; i++)
		gin[i] = YK_BAD;
}
