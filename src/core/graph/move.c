// SPDX-License-Identifier: Apache-2.0
// Copies of tensors in other contexts (yoke_to), and the links from a copy to its source that
// gradients follow.  A copy is evaluated at the call: in a plan it is a leaf, like yoke_from's.

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/handle.h"
#include "graph/record.h"

static atomic_uint_fast64_t moves; // links ever made

// ---- links ----

struct yk_moved *yk_moved_ref(struct yk_moved *m)
{
	if (m)
		atomic_fetch_add(&m->refs, 1);
	return m;
}

void yk_moved_unref(struct yk_moved *m)
{
	if (!m || atomic_fetch_sub(&m->refs, 1) > 1)
		return;
	const bool had = yoke_error_code() != 0;
	if (m->own && yk_is_alive(m->source) && !yk_forked())
		yk_free_later(
			m->source); // the calling thread may be inside the copy's context only
	if (!had)                   // the source's context was freed meanwhile
		yoke_error_clear();
	free(m);
}

bool yk_moved_lives(const struct yk_moved *m)
{
	return m && yk_is_alive(m->source);
}

// Creates another handle, in no scope, of a value with history.  Call inside the context.
static yoke_tensor *hold(struct yoke_context *ctx, struct yk_tensor *t)
{
	const yk_id id = yk_value_of(ctx, t, t->dtype);
	struct yk_scope *scope = ctx->scopes.innermost;
	if (id == YK_BAD)
		return NULL;
	ctx->scopes.innermost = NULL;
	yoke_tensor *held = yk_handle_of(ctx, id);
	ctx->scopes.innermost = scope;
	return held;
}

// The link to a value without history stores only the application's handle, so that freeing that
// handle frees the memory.
static struct yk_moved *link_to(yoke_tensor *source)
{
	struct yk_tensor *t = yk_enter_of(source, "to");
	if (!t)
		return NULL;
	struct yoke_context *ctx = t->ctx;
	struct yk_moved *m = calloc(1, sizeof *m);
	if (m) {
		const bool history = t->id != YK_NIL || (t->kind == YK_VALUE && t->moved);
		*m = (struct yk_moved){ .own = history,
					.version = t->version,
					.serial = atomic_fetch_add(&moves, 1) + 1,
					.source = history ? hold(ctx, t) : source };
		atomic_init(&m->refs, 1);
	} else {
		yk_fail(YOKE_ENOMEM, "to: no memory");
	}
	if (m && !m->source) {
		free(m);
		m = NULL;
	}
	yk_leave(ctx);
	return m;
}

// ---- copies ----

// The value's bytes in host memory: those of the CPU's device itself, or a copy; nothing in a dry
// context, which has none.
struct bytes {
	const void *at;
	void *copy;
	yoke_tensor *shared;
};

static int bytes_get(yoke_tensor *t, const struct yk_tensor *of, struct bytes *to)
{
	const size_t n = yk_bytes_of(of);
	*to = (struct bytes){ 0 };
	if (of->ctx->mode.dry)
		return yoke_eval(1, &t);
	if (of->ctx->device == of->ctx->cpu && !yk_is_packed(of)) {
		to->shared = yoke_share(t, &to->at);
		return to->shared ? 0 : yk_error_last();
	}
	if (!(to->copy = malloc(n + !n)))
		return yk_fail(YOKE_ENOMEM, "to: no host memory for %zu bytes", n);
	to->at = to->copy;
	return yoke_read(t, to->copy, n);
}

static void bytes_free(struct bytes *b)
{
	free(b->copy);
	yoke_free(b->shared);
}

yoke_tensor *yk_move(yoke_tensor *source, struct yoke_context *to)
{
	const struct yk_tensor *t = yk_tensor(source, "to");
	struct bytes b;
	if (!t)
		return NULL;
	const int dtype = t->dtype, rank = t->rank;
	int64_t dims[YOKE_MAX_RANK];
	memcpy(dims, t->dims, sizeof dims);
	struct yk_moved *m = NULL;
	yoke_tensor *copy = NULL;
	int err = bytes_get(source, t, &b);
	if (!err && yk_is_float(dtype) && !(m = link_to(source)))
		err = yk_error_last();
	if (!err) {
		struct yoke_context *was = yoke_use(to);
		copy = yk_value_from(dtype, rank, dims, b.at);
		yoke_use(was);
	}
	bytes_free(&b);
	struct yk_tensor *c = copy ? yk_enter_of(copy, "to") : NULL;
	if (c) {
		c->moved = yk_moved_ref(m);
		yk_leave(c->ctx);
	}
	yk_moved_unref(m);
	return c ? copy : NULL;
}

yoke_tensor *yoke_to(yoke_tensor *t, const char *device)
{
	if (yk_require(t, "tensor") || yk_require(device, "name of a device"))
		return NULL;
	const struct yk_tensor *of = t == YOKE_NONE ? NULL : yk_tensor(t, "to");
	if (t == YOKE_NONE || (of && of->kind >= YK_HOST_SCALAR))
		yk_fail(YOKE_EINVAL, "to: takes a tensor, not %s",
			of ? "a host scalar or literal" : "YOKE_NONE");
	if (!of || of->kind >= YK_HOST_SCALAR)
		return NULL;
	struct yk_device *d = yk_device_named(device);
	const struct yoke_context *now = yk_current_or_null();
	if (!d)
		return NULL;
	const bool elsewhere = now && now != of->ctx && yk_context_has(now, d);
	struct yoke_context *to = yk_context_has(of->ctx, d) && !elsewhere ?
					  of->ctx :
					  yk_context_on(d, of->ctx->mode.dry);
	if (!to)
		return NULL;
	if (to != of->ctx)
		return yk_move(t, to);
	struct yk_rec r = yk_rec_begin(1, &t);
	return yk_rec_end(&r, r.in[0]);
}
