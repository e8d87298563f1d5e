// SPDX-License-Identifier: Apache-2.0
// Counts and times the host's waits for devices; with YOKE_SYNC=warn it logs their call sites.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/param.h"
#include "graph/context.h"

YK_PARAM(sync_setting, "sync", YK_STRING, "0",
	 "1: wait after every step, so that an error appears at its cause; warn: log each call "
		"site where the host waits for a device");

int yk_sync_setting(enum yk_sync *to)
{
	static const char *const word[][4] = {
		[YK_SYNC_NO] = { "0", "no", "off", "false" },
		[YK_SYNC_STEPS] = { "1", "yes", "on", "true" },
		[YK_SYNC_WARN] = { "warn" },
	};
	const char *text = yk_param_str(&sync_setting);
	for (int k = YK_SYNC_NO; k <= YK_SYNC_WARN; k++)
		for (int i = 0; i < 4 && word[k][i]; i++)
			if (!strcmp(text, word[k][i])) {
				*to = (enum yk_sync)k;
				return 0;
			}
	return yk_fail(YOKE_EINVAL, "sync '%s': there are 0, 1 and warn", text);
}

struct yk_waited { // call sites that were logged
	size_t n, cap;
	struct yk_place_named {
		const char *why;
		uint32_t site, range;
		uint64_t lines; // yk_site_lines
	} *place;
};

// Is the call site new?  False if there is no memory to remember it.
static bool note(struct yoke_context *ctx, struct yk_place_named at)
{
	struct yk_waited *w = ctx->observe.waited;
	bool named = false;
	if (!w && !(w = ctx->observe.waited = calloc(1, sizeof *w)))
		return false;
	for (size_t i = 0; i < w->n; i++)
		if (w->place[i].why == at.why && w->place[i].site == at.site &&
		    w->place[i].range == at.range)
			return false;
	if (yk_grow(&w->place, &w->cap, w->n + 1, sizeof *w->place) < 0)
		return false;
	at.lines = yk_site_lines(&ctx->observe.sites, at.site);
	for (size_t i = 0; i < w->n; i++)
		named |= w->place[i].why == at.why && w->place[i].range == at.range &&
			 w->place[i].lines == at.lines;
	w->place[w->n++] = at;
	return !named;
}

uint64_t yk_wait_begin(void)
{
	return yk_nanoseconds();
}

void yk_wait_end(struct yoke_context *ctx, uint64_t began, const char *why)
{
	char site[YK_SITE_TEXT];
	const struct yk_graph *g = &ctx->graph;
	ctx->counts.waits++;
	ctx->counts.wait_ns += yk_nanoseconds() - began;
	if (ctx->observe.sync != YK_SYNC_WARN)
		return;
	struct yk_place_named at = { .why = why,
				     .range = g->range,
				     .site = ctx->observe.traced ?
						     g->site :
						     yk_site_here(&ctx->observe.sites) };
	if (!note(ctx, at))
		return;
	const char *scope = yk_path_name(&ctx->scopes.paths, g->scope),
		   *range = yk_path_name(&ctx->observe.ranges, g->range);
	yk_site_line(&ctx->observe.sites, at.site, site);
	yk_warn("sync",
		"%s waits for %s%s%s%s%s%s%s%s%s (logged once for this call "
		"site)",
		why, ctx->device->id, *scope ? " in \"" : "", scope, *scope ? "\"" : "",
		*range ? ", range \"" : "", range, *range ? "\"" : "", *site ? ", at " : "", site);
}

void yk_waited_free(struct yk_waited *w)
{
	if (w)
		free(w->place);
	free(w);
}
