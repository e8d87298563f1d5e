// SPDX-License-Identifier: Apache-2.0
// Lists the contents of the largest launched arena at its peak, by op, range and call site.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "observe/profile_state.h"
#include "plan/planner.h"

void yk_peak_clear(struct yk_peak *k)
{
	k->bytes = 0;
	k->holders = 0;
	yk_arena_fini(&k->text);
	k->text = (struct yk_arena){ 0 };
}

void yk_peak_fini(struct yk_peak *k)
{
	yk_arena_fini(&k->text);
	free(k->holder);
}

static void hold(struct yk_peak *k, const char *op, const char *range, const char *site,
		 uint64_t bytes)
{
	size_t i = 0;
	while (i < k->holders &&
	       (strcmp(k->holder[i].op, op) || strcmp(k->holder[i].range, range) ||
		strcmp(k->holder[i].site, site)))
		i++;
	if (i == k->holders) {
		if (yk_grow(&k->holder, &k->cap, i + 1, sizeof *k->holder) < 0)
			return;
		k->holder[i] = (struct yk_peak_holder){ yk_arena_strdup(&k->text, op),
							yk_arena_strdup(&k->text, range),
							yk_arena_strdup(&k->text, site), 0, 0 };
		if (!k->holder[i].op || !k->holder[i].range || !k->holder[i].site)
			return;
		k->holders++;
	}
	k->holder[i].bytes += bytes;
	k->holder[i].values++;
}

static int by_bytes(const void *a, const void *b)
{
	const struct yk_peak_holder *x = a, *y = b;
	return x->bytes != y->bytes ? (x->bytes < y->bytes ? 1 : -1) : strcmp(x->op, y->op);
}

// The step at whose beginning the device's arena holds most bytes.
static uint32_t fullest(const struct yk_plan *p)
{
	int64_t *change = calloc(p->steps + 1, sizeof *change), now = 0, max = -1;
	uint32_t at = 0;
	for (size_t i = 0; i < p->layout.lives && change; i++) {
		const struct yk_live *l = &p->layout.live[i];
		if (l->stream != YK_STREAM_DEVICE)
			continue;
		change[l->born] += (int64_t)l->bytes;
		change[l->dies + 1] -= (int64_t)l->bytes;
	}
	for (uint32_t s = 0; s < p->steps && change; s++) {
		now += change[s];
		if (now > max) {
			max = now;
			at = s;
		}
	}
	free(change);
	return at;
}

void yk_peak_note(struct yk_profile *prof, const struct yk_plan *p)
{
	const struct yoke_context *ctx = prof->ctx;
	const struct yk_marks *m = &ctx->planner->marks;
	struct yk_peak *k = &prof->peak;
	uint64_t arena = 0, live = 0;
	char site[YK_SITE_TEXT];
	for (size_t i = 0; i < p->layout.arena[YK_STREAM_DEVICE].n; i++)
		arena += p->layout.arena[YK_STREAM_DEVICE].chunk[i];
	if (arena <= k->bytes)
		return;
	yk_peak_clear(k);
	k->bytes = arena;
	const uint32_t at = fullest(p);
	for (size_t i = 0; i < p->layout.lives; i++) {
		const struct yk_live *l = &p->layout.live[i];
		if (l->stream != YK_STREAM_DEVICE || l->born > at || l->dies < at)
			continue;
		const struct yk_step *s = &p->step[l->writer];
		const struct yk_step_node *part = s->nodes ? &s->part[s->nodes - 1] : NULL;
		const struct yk_node *n = part && part->recorded < m->nodes ?
						  &ctx->graph.node[m->node[part->recorded]] : NULL;
		live += l->bytes;
		hold(k,
		     l->workspace           ? "workspace" :
		     s->kind == YK_STEP_RUN ? yk_op_def(s->opcode)->name :
					      yk_step_kind_name[s->kind],
		     n ? yk_path_name(&ctx->observe.ranges, n->range) : "",
		     n ? yk_site_line(&ctx->observe.sites, n->site, site) : "", l->bytes);
	}
	if (arena > live)
		hold(k, "between values", "", "", arena - live);
	if (k->holders)
		qsort(k->holder, k->holders, sizeof *k->holder, by_bytes);
}
