// SPDX-License-Identifier: Apache-2.0
// The printed plan: one line per step, tab-separated: step, device, op, implementation, shape,
// bytes, location of the first result, numbers of the recorded nodes and their scopes, cause; then
// a line per reason for which recorded nodes are in no step.

#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/number.h"
#include "plan/passes.h"
#include "plan/plan.h"
#include "plan/work.h"

const char *const yk_step_kind_name[] = { "", "fill", "down", "up", "numbers", "ranks" };

static const char *where(const struct yk_ref *r, char *to, size_t cap)
{
	static const char *const name[] = { "-", "arena", "leaf", "root", "scalar" };
	if (r->where == YK_AT_ARENA)
		snprintf(to, cap, "arena%u+%llu", r->index,
			 (unsigned long long)r->offset);
	else
		snprintf(to, cap, "%s%u+%llu", name[r->where], r->index,
			 (unsigned long long)r->offset);
	return to;
}

// ---- lists ----

struct text {
	char *at;
	size_t n, cap;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *t, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = yk_vsnprintf(t->at + t->n, t->cap - t->n, fmt, ap);
	va_end(ap);
	if (n > 0)
		t->n += (size_t)n < t->cap - t->n ? (size_t)n : t->cap - t->n - 1;
}

// "1,5-9"
static void add_numbers(struct text *t, const uint32_t *x, size_t n)
{
	for (size_t i = 0, k; i < n; i = k) {
		for (k = i + 1; k < n && x[k] == x[k - 1] + 1; k++)
			;
		add(t, i ? ",%u" : "%u", x[i]);
		if (k > i + 1)
			add(t, "-%u", x[k - 1]);
	}
}

static uint32_t add_once(uint32_t *list, uint32_t n, uint32_t x)
{
	for (uint32_t i = 0; i < n; i++)
		if (list[i] == x)
			return n;
	list[n] = x;
	return n + 1;
}

static void print_step(const struct yk_work *w, const struct yk_plan *p, size_t i, struct text *t)
{
	const struct yk_step *s = &p->step[i];
	const struct yk_device *d = yk_work_device(w, s->stream);
	const struct yoke_view *first = &p->view[s->view];
	struct yk_value v = { .dtype = first->dtype, .rank = first->rank };
	char shape[160], place[64];
	memcpy(v.dims, first->dims, sizeof v.dims);
	const char *impl = s->kind != YK_STEP_RUN ? yk_step_kind_name[s->kind] :
						    d->ops->impl_name(d->index, &s->op, s->impl);
	uint32_t recorded[YOKE_MAP_MAX_INSNS] = { 0 }, scope[YOKE_MAP_MAX_INSNS] = { 0 };
	uint32_t n = 0, nscopes = 0;
	for (uint32_t k = 0; k < s->nodes; k++) {
		n = add_once(recorded, n, s->part[k].recorded);
		nscopes = add_once(scope, nscopes, s->part[k].scope);
	}
	t->n = 0;
	add_numbers(t, recorded, n);
	add(t, " in ");
	for (uint32_t k = 0; k < nscopes; k++)
		add(t, k ? ",%s" : "%s", yk_path_name(&w->ctx->scopes.paths, scope[k]));
	yk_log(YOKE_LOG_DEBUG, "plan", "%zu\t%s\t%s\t%s\t%s\t%llu\t%s%s\t%s\t%s", i, d->id,
	       yk_op_def(s->opcode)->name, impl ? impl : "-", yk_describe(&v, shape),
	       (unsigned long long)s->bytes, where(&p->ref[s->view], place, sizeof place),
	       s->op.alias_mask ? " in place" : "", t->at, s->cause ? s->cause : "");
}

// ---- nodes that are in no step ----

enum { LINE = 200 }; // numbers per line: the log truncates lines at 2,000 bytes

// By recorded node: why it is in no step, NULL if it is in one.  The reason is that of its lowered
// node; a node without one was merged with an equal node.
static void find_reasons(const struct yk_plan *p, const char **reason, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++)
		reason[k] = "equal to an earlier one, or a product with 1";
	for (size_t i = 0; i < p->nodes.absents; i++)
		reason[p->nodes.absent[i].recorded] = p->nodes.absent[i].gone;
	for (size_t i = 0; i < p->steps; i++)
		for (uint32_t k = 0; k < p->step[i].nodes; k++)
			reason[p->step[i].part[k].recorded] = NULL;
}

// Prints one or more lines per reason; there are few reasons.
static void print_gone(const struct yk_work *w, const struct yk_plan *p, struct text *t)
{
	uint32_t list[LINE], count, n = (uint32_t)w->marks->nodes;
	const char **reason = malloc((n + 1) * sizeof *reason);
	if (!reason)
		return;
	find_reasons(p, reason, n);
	for (uint32_t i = 0; i < n; i++) {
		const char *why = reason[i];
		count = 0;
		for (uint32_t k = i; k <= n && why; k++) {
			if (k < n && reason[k] == why) {
				list[count++] = k;
				reason[k] = NULL;
			}
			if (!count || (k < n && count < LINE))
				continue;
			t->n = 0;
			add_numbers(t, list, count);
			yk_log(YOKE_LOG_DEBUG, "plan", "-\t%s\t%s", why, t->at);
			count = 0;
		}
	}
	free(reason);
}

void yk_plan_print(const struct yk_work *w, const struct yk_plan *p)
{
	uint64_t arena = 0, roots = 0;
	size_t cap = 4096 + 8 * w->marks->nodes;
	struct text t = { .at = malloc(cap), .cap = cap };
	if (!t.at)
		return;
	for (int k = 0; k < YK_STREAMS; k++)
		for (size_t i = 0; i < p->layout.arena[k].n; i++)
			arena += p->layout.arena[k].chunk[i];
	for (size_t i = 0; i < p->layout.blocks; i++)
		roots += yk_is_new(&p->layout.block[i]) ? p->layout.block[i].bytes : 0;
	yk_log(YOKE_LOG_DEBUG, "plan",
	       "%zu nodes, %zu lowered, %zu steps, arena %llu bytes, new roots %llu bytes, "
	       "%llu assignments copied (%llu bytes)",
	       w->marks->nodes, w->g.nodes, p->steps, (unsigned long long)arena,
	       (unsigned long long)roots, (unsigned long long)p->layout.copies,
	       (unsigned long long)p->layout.copy_bytes);
	for (size_t i = 0; i < p->steps; i++)
		print_step(w, p, i, &t);
	print_gone(w, p, &t);
	free(t.at);
}
