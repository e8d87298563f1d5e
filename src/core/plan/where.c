// SPDX-License-Identifier: Apache-2.0
// Descriptions of steps for error messages: op, shapes, scope, and the source line that recorded
// it.

#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "plan/launch.h"
#include "plan/plan.h"
#include "plan/planner.h"

struct text {
	char *to;
	size_t cap, n;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *t, const char *fmt, ...)
{
	va_list ap;
	if (t->n >= t->cap)
		return;
	va_start(ap, fmt);
	int n = yk_vsnprintf(t->to + t->n, t->cap - t->n, fmt, ap);
	va_end(ap);
	t->n += n > 0 ? (size_t)n : 0;
}

const struct yk_node *yk_step_recorded(const struct yk_planner *pl, const struct yk_step *s)
{
	return s->nodes ? &pl->ctx->graph.node[pl->marks.node[s->part[s->nodes - 1].recorded]] :
			  NULL;
}

enum { MAX_OPS = 6, MAX_OPERANDS = 4 };

// "matmul", "mul, add, exp and 3 more"
static void add_ops(struct text *t, const struct yk_step *s)
{
	uint32_t shown = s->nodes > MAX_OPS ? MAX_OPS - 1 : s->nodes;
	if (s->nodes < 2) {
		add(t, "%s", yk_op_def(s->opcode)->name);
		return;
	}
	for (uint32_t i = 0; i < shown; i++)
		add(t, "%s%s", i ? ", " : "", yk_op_def(s->part[i].opcode)->name);
	if (shown < s->nodes)
		add(t, " and %u more", s->nodes - shown);
}

static void add_shapes(struct text *t, const struct yk_graph *g, const struct yk_node *n)
{
	char shape[160];
	bool first = true;
	add(t, " %s", yk_describe(&g->value[n->out], shape));
	for (uint32_t i = 0; i < n->nin; i++) {
		yk_id v = yk_ins(g, n)[i];
		if (v == YK_NIL)
			continue;
		if (i == MAX_OPERANDS) {
			add(t, ", ..");
			break;
		}
		add(t, "%s%s", first ? " from " : ", ", yk_describe(&g->value[v], shape));
		first = false;
	}
}

void yk_step_text(const struct yk_planner *pl, const struct yk_step *s, char *to, size_t cap)
{
	const struct yoke_context *ctx = pl->ctx;
	const struct yk_node *n = yk_step_recorded(pl, s);
	struct text t = { .to = to, .cap = cap };
	char site[YK_SITE_TEXT];
	const char *of = !n ? NULL : n->call ? n->call : yk_op_def(n->op)->name;
	add_ops(&t, s);
	if (of && s->nodes == 1 && strcmp(of, yk_op_def(s->opcode)->name))
		add(&t, " of %s", of);
	if (n)
		add_shapes(&t, &ctx->graph, n);
	if (n && n->back)
		add(&t, ", backward of %s,", yk_op_def(n->back)->name);
	add(&t, " in \"%s\"", yk_path_name(&ctx->scopes.paths, n ? n->scope : s->scope));
	if (n && *yk_site_text(&ctx->observe.sites, n->site, site))
		add(&t, ", recorded at %s", site);
}
