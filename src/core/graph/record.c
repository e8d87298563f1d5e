// SPDX-License-Identifier: Apache-2.0
// yk_rec_begin and yk_rec_end: the frame of every recording function, and its checks of operands.

#include "config.h"

#include "base/error.h"
#include "graph/record.h"
#include "graph/autocast.h"
#include "graph/handle.h"

enum { LIMIT = sizeof ((struct yk_rec *)NULL)->in / sizeof(yk_id) }; // operands

// The context of the first operand that is a tensor; without one, the thread's.  NULL with an
// error.
static struct yoke_context *context_of(const char *call, int n, yoke_tensor *const *t)
{
	for (int i = 0; i < n; i++) {
		if (!t[i] || t[i] == YOKE_NONE)
			continue;
		struct yk_tensor *first = yk_tensor(t[i], call);
		return first ? first->ctx : NULL;
	}
	if (n && !yoke_error_code())
		yk_fail(YOKE_EINVAL, "%s: an operand is NULL; optional ones are YOKE_NONE", call);
	return n ? NULL : yk_current();
}

// Looks up tensors; NULL for NULL and YOKE_NONE.  Called inside the context, where no other
// thread's free runs.  False, with an error, if a tensor is gone.
static bool look_up(const char *call, int n, yoke_tensor *const *t, struct yk_tensor **h)
{
	for (int i = 0; i < n; i++) {
		h[i] = NULL;
		if (t[i] && t[i] != YOKE_NONE && !(h[i] = yk_tensor(t[i], call)))
			return false;
	}
	return true;
}

// The dtype for literals: that of the first operand that has one; bool only if there is no other.
static int dtype_of_numbers(int n, struct yk_tensor *const *h)
{
	int found = 0;
	for (int i = 0; i < n; i++)
		if (h[i] && h[i]->dtype && (!found || found == yoke_bool))
			found = h[i]->dtype;
	return found ? found : yoke_f32;
}

// Mixed precision: the dtype that each operand is cast to, 0: no cast; returns that of literals, 0:
// see above.
static int dtypes_wanted(struct yoke_context *ctx, int op, int n, struct yk_tensor *const *h,
			 uint8_t *want)
{
	for (int i = 0; i < n; i++)
		want[i] = h[i] ? h[i]->dtype : 0;
	return yk_autocast_dtypes(ctx, op, n, want);
}

struct yk_rec yk_rec_begin_as(const char *call, int op, unsigned optional, int n,
			      yoke_tensor *const *t)
{
	static struct yk_graph nowhere; // never written: YK_BAD operands append nothing
	struct yk_rec r;
	struct yk_tensor *h[LIMIT];
	uint8_t want[LIMIT];
	struct yoke_context *ctx = context_of(call, n, t);
	if (ctx && yk_enter(ctx) < 0)
		ctx = NULL;
	if (ctx && !look_up(call, n, t, h)) {
		yk_leave(ctx);
		ctx = NULL;
	}
	r.ctx = ctx;
	r.g = ctx ? &ctx->graph : &nowhere;
	r.n = n;
	if (!ctx) {
		for (int i = 0; i < LIMIT; i++)
			r.in[i] = YK_BAD;
		return r;
	}
	r.g->call = call;
	const bool casts = ctx->autocast.setting.dtype;
	int dtype = casts ? dtypes_wanted(ctx, op, n, h, want) : 0; // of literals
	for (int i = 0; i < n; i++) {
		if (h[i] && h[i]->kind >= YK_HOST_SCALAR && !dtype)
			dtype = dtype_of_numbers(n, h);
		r.in[i] = h[i] ? yk_value_of(ctx, h[i], dtype) : yk_operand(ctx, t[i], dtype);
		if (casts && h[i] && want[i])
			r.in[i] = yk_autocast_cast(ctx, r.in[i], want[i]);
		if (r.in[i] != YK_NIL || optional >> i & 1)
			continue;
		yk_rec_fail(&r, YOKE_EINVAL, "operand %d is YOKE_NONE and not optional", i);
		r.in[i] = YK_BAD;
	}
	return r;
}

yoke_tensor *yk_rec_end(struct yk_rec *r, yk_id result)
{
	if (!r->ctx)
		return NULL;
	yoke_tensor *t = NULL;
	for (int i = 0; i < r->n && result != YK_BAD; i++)
		if (result == r->in[i]) {
			const struct yk_value v = r->g->value[result];
			// a view: copies nothing, whatever the strides
			result = yk_broadcast(r->g, result, v.rank, v.dims);
		}
	if (result != YK_BAD && !yk_recorded(r->ctx))
		t = yk_handle_of(r->ctx, result);
	yk_leave(r->ctx);
	return t;
}

yoke_tensor *yk_rec_end_with(struct yk_rec *r, yk_id first, int n, const struct yk_rec_result *more)
{
	bool good = first != YK_BAD;
	for (int i = 0; i < n && good; i++)
		good = !more[i].to || (more[i].value != YK_BAD &&
				       (*more[i].to = yk_handle_of(r->ctx, more[i].value)));
	for (int i = 0; i < n && !good; i++)
		if (more[i].to)
			*more[i].to = NULL;
	return yk_rec_end(r, good ? first : YK_BAD);
}

bool yk_rec_reals(struct yk_rec *r, int n)
{
	// checked like the operands of a floating-point map
	struct yk_call c = { .op = n > 1 ? YK_POW : YK_EXP, .nin = (uint32_t)n, .in = r->in };
	struct yk_value out;
	return r->in[0] != YK_BAD && r->in[n - 1] != YK_BAD &&
	       !yk_op_def(c.op)->shape(r->g, &c, &out);
}

int yk_rec_axis(struct yk_rec *r, yk_id x, int axis)
{
	if (x == YK_BAD)
		return YOKE_EINVAL;
	int rank = r->g->value[x].rank, k = axis < 0 ? axis + rank : axis;
	char text[160];
	if (k < 0 || k >= rank)
		return yk_rec_fail(r, YOKE_ERANGE, "no axis %d in %s", axis,
				   yk_describe(&r->g->value[x], text));
	return k;
}

bool yk_rec_array(struct yk_rec *r, int n, const void *array, const char *what)
{
	if (r->ctx && n > 0 && !array)
		yk_rec_fail(r, YOKE_EINVAL, "%s is NULL", what);
	return r->ctx && (n < 1 || array);
}

bool yk_rec_axes(struct yk_rec *r, yk_id x, unsigned axes)
{
	char text[160];
	if (x == YK_BAD)
		return false;
	const struct yk_value *v = &r->g->value[x];
	unsigned known = YOKE_ALL | YOKE_KEEP, of = axes & YOKE_ALL;
	if (axes & ~known)
		yk_rec_fail(r, YOKE_EINVAL, "axes 0x%x: 0x%x is neither an axis nor YOKE_KEEP",
			    axes, axes & ~known);
	else if (of != YOKE_ALL && of >> v->rank)
		yk_rec_fail(r, YOKE_ERANGE, "no axis %d in %s",
			    __builtin_ctz(of >> v->rank) + v->rank, yk_describe(v, text));
	else
		return true;
	return false;
}

yk_id yk_rec_last(struct yk_rec *r, yk_id x, int axis)
{
	return yk_exchange(r->g, x, axis, x == YK_BAD ? axis : r->g->value[x].rank - 1);
}

bool yk_rec_check_axis(struct yk_rec *r)
{
	char text[160];
	const struct yk_value *v = &r->g->value[r->in[0]];
	if (v->rank && yk_is_float(v->dtype))
		return true;
	yk_rec_fail(r, v->rank ? YOKE_EDTYPE : YOKE_ESHAPE,
		    "takes floating point of at least one axis, got %s", yk_describe(v, text));
	return false;
}
