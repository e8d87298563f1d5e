// SPDX-License-Identifier: Apache-2.0
// Ranges for the vendor's profiler: open scopes, ranges of the application, the launches of an
// evaluation, and within these the scopes in which the steps were recorded.
#include "config.h"

#include <string.h>

#include "base/param.h"
#include "graph/context.h"

YK_PARAM(ranges, "profiler_ranges", YK_BOOL, "0",
	 "scopes, and the launches of what was recorded in them, are ranges of the device vendor's profiler, NVTX or roctx");

void yk_profiler_open(struct yoke_context *ctx)
{
	const struct yoke_backend *ops = yk_device_real(ctx->device)->ops;

	ctx->observe.profiler = yk_param_bool(&ranges) && ops->ext ? ops->ext("ranges") : NULL;
}

void yk_profiler_push(const struct yoke_context *ctx, const char *name)
{
	if (ctx->observe.profiler)
		ctx->observe.profiler->push(name);
}

void yk_profiler_pop(const struct yoke_context *ctx)
{
	if (ctx->observe.profiler)
		ctx->observe.profiler->pop();
}

// ---- the steps of a launch ----

static int depth_of(const struct yk_paths *p, uint32_t path)
{
	int n = 0;

	for (; path; path = p->path[path].parent)
		n++;
	return n;
}

// Pushes the path's scopes below `from`, outermost first.
static void push_below(const struct yoke_context *ctx, uint32_t from, uint32_t path)
{
	const struct yk_path *p = ctx->scopes.paths.path;
	const char *name = path == from ? NULL : p[path].name, *cut;

	if (!name)
		return;
	push_below(ctx, from, p[path].parent);
	cut = name + strlen(p[p[path].parent].name);
	ctx->observe.profiler->push(*cut == '/' && cut > name ? cut + 1 : cut);
}

void yk_profiler_go(const struct yoke_context *ctx, uint32_t base, uint32_t *at, uint32_t to)
{
	const struct yk_paths *p = &ctx->scopes.paths;

	if (!ctx->observe.profiler || *at == to)
		return;
	// the common part of both paths, but at least the base, whose ranges must stay open
	const uint32_t shared = yk_path_common(p, *at, to), floor = yk_path_common(p, base, *at);
	const uint32_t keep = depth_of(p, shared) > depth_of(p, floor) ? shared : floor;

	for (int n = depth_of(p, *at) - depth_of(p, keep); n > 0; n--)
		ctx->observe.profiler->pop();
	push_below(ctx, keep == floor ? yk_path_common(p, base, to) : keep, to);
	*at = to;
}
