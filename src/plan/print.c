// SPDX-License-Identifier: Apache-2.0
// The printed plan: a line a step, tab-separated: step, device, op, implementation, shape, bytes,
// offset, nodes, cause.

#include "config.h"

#include <stdio.h>

#include "base/log.h"
#include "plan/plan.h"

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

void yk_plan_print(const struct yk_work *w, const struct yk_plan *p)
{
	uint64_t arena = 0, roots = 0;
	for (int d = 0; d < 2; d++)
		for (size_t i = 0; i < p->chunks[d]; i++)
			arena += p->chunk[d][i];
	for (size_t i = 0; i < p->blocks; i++)
		roots += p->block[i].leaf == YK_NIL && p->block[i].donor == YK_NIL ?
				 p->block[i].bytes :
				 0;
	yk_log(YOKE_LOG_DEBUG, "plan",
	       "%zu nodes, %zu steps, arena %llu bytes, new roots %llu bytes, "
	       "%llu assignments copied",
	       w->g.nodes, p->steps, (unsigned long long)arena, (unsigned long long)roots,
	       (unsigned long long)p->copies);
	for (size_t i = 0; i < p->steps; i++) {
		const struct yk_step *s = &p->step[i];
		const struct yk_device *d = yk_work_device(w, s->device);
		static const char *const kind[] = { "", "fill", "down", "up" };
		struct yk_value v = { .dtype = p->view[s->view].dtype,
				      .rank = p->view[s->view].rank };
		char shape[160], place[64];
		for (int k = 0; k < v.rank; k++)
			v.dims[k] = p->view[s->view].dims[k];
		const char *impl = s->kind != YK_STEP_RUN ?
					   kind[s->kind] :
					   d->ops->impl_name(d->index, &s->op, s->impl);
		yk_log(YOKE_LOG_DEBUG, "plan",
		       "%zu\t%s\t%s\t%s\t%s\t%llu\t%s%s\t%u in %s\t%s", i, d->id,
		       yk_ops[s->opcode].name, impl ? impl : "-", yk_describe(&v, shape),
		       (unsigned long long)s->bytes,
		       where(&p->ref[s->view], place, sizeof place),
		       s->op.alias_mask ? " in place" : "", s->nodes,
		       yk_path_name(&w->ctx->paths, s->scope), s->cause ? s->cause : "");
	}
}
