// SPDX-License-Identifier: Apache-2.0
// Scopes: they own the handles recorded in them, name recorded operations, and end in reverse
// order.

#include "config.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/log.h"
#include "graph/autocast.h"
#include "graph/context.h"

// A scope is known to the caller by its serial, so that an ended one is recognized.
static atomic_uintptr_t serials;
enum { SERIALS = 1 << 16 }; // reserved by a context at a time

enum { DEEP = 1000 }; // nesting depth that triggers a warning

static uintptr_t serial_of(struct yoke_context *ctx)
{
	if (ctx->scopes.serial % SERIALS == 0)
		ctx->scopes.serial = atomic_fetch_add(&serials, SERIALS);
	return ++ctx->scopes.serial;
}

uintptr_t yk_scope_open(struct yoke_context *ctx, const char *name)
{
	struct yk_scope *s = ctx->scopes.idle ? ctx->scopes.idle : malloc(sizeof *s);
	if (s && s == ctx->scopes.idle)
		ctx->scopes.idle = s->parent;
	uint32_t path = yk_path_get(&ctx->scopes.paths,
				    ctx->scopes.innermost ? ctx->scopes.innermost->path : 0,
				    name ? name : "");
	if (!s || path == YK_NIL) {
		yk_fail(YOKE_ENOMEM, "no memory for scope \"%s\"", name ? name : "");
		free(s);
		return 0;
	}
	s->parent = ctx->scopes.innermost;
	s->handles = NULL;
	s->path = path;
	s->casts = false;
	s->depth = s->parent ? s->parent->depth + 1 : 1;
	if (s->depth == DEEP && !ctx->warn.handles_logged) {
		ctx->warn.handles_logged = true;
		yk_warn("graph", "%d nested scopes are open, the innermost \"%s\": does a loop "
			"begin a scope without ending it?  yoke_scope_end frees "
			"handles", DEEP, name ? name : "");
	}
	s->serial = serial_of(ctx);
	if (!s->parent) {
		ctx->scopes.opening++;
		ctx->scopes.outermost++;
	}
	ctx->scopes.innermost = s;
	ctx->graph.scope = path;
	yk_profiler_push(ctx, name ? name : "");
	return s->serial;
}

yoke_scope *yoke_scope_begin(const char *name)
{
	struct yoke_context *ctx = yk_current();
	if (!ctx || yk_enter(ctx) < 0)
		return NULL;
	const uintptr_t serial = yk_scope_open(ctx, name);
	yk_leave(ctx);
	return (yoke_scope *)serial;
}

int yk_scope_close(struct yoke_context *ctx, uintptr_t serial)
{
	struct yk_scope *s = ctx->scopes.innermost;
	while (s && s->serial != serial)
		s = s->parent;
	if (!s)
		return yk_fail(YOKE_EINVAL,
			       "scope_end: no such scope is open in this thread's context; "
			       "it has ended, or is another context's");
	if (s != ctx->scopes.innermost)
		return yk_fail(YOKE_EINVAL, "scope \"%s\" is not the innermost one",
			       yk_path_name(&ctx->scopes.paths, s->path));
	if (!s->parent)
		yk_versions_close(ctx);
	yk_tensors_free(&s->handles, YK_END_SCOPE);
	ctx->scopes.innermost = s->parent;
	ctx->graph.scope = s->parent ? s->parent->path : 0;
	yk_profiler_pop(ctx);
	int err = s->casts ? yk_autocast_end(ctx, &s->former) : 0;
	s->parent = ctx->scopes.idle;
	ctx->scopes.idle = s;
	// copies of a step in two contexts hold each other's graphs
	if (!ctx->scopes.innermost && !yk_history_is_unused(ctx) &&
	    (yk_history_is_long(ctx) || ctx->leaves.copies))
		yk_history_collect(ctx);
	return err;
}

int yoke_scope_end(yoke_scope *s)
{
	if (!s)
		return yk_fail(YOKE_EINVAL, "scope_end: no scope");
	struct yoke_context *ctx = yk_current();
	int err = ctx ? yk_enter(ctx) : yk_error_last();
	if (err)
		return err;
	err = yk_scope_close(ctx, (uintptr_t)s);
	yk_leave(ctx);
	return err ? err : yoke_error_code();
}
