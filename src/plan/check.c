// SPDX-License-Identifier: Apache-2.0
// What is checked before a launch, so that it fails without effect: host scalars that say where a
// step reads or writes.  The same numbers on the device are checked by the kernels.

#include "config.h"

#include <stdio.h>

#include "base/error.h"
#include "plan/plan.h"

// Operand k of a step when it is a number on the host.
static bool on_host(const struct yk_planner *pl, const struct yk_plan *p,
		    const struct yk_step *s, uint32_t k, int64_t *to)
{
	uint32_t at = s->view + s->op.nout + k;
	const struct yk_ref *r = &p->ref[at];
	if (p->view[at].kind != YOKE_VIEW_SCALAR)
		return false;
	*to = (int64_t)(r->where == YK_AT_SCALAR ? yk_scalar_bits(pl, r->index) :
						   p->view[at].offset); // a literal
	return true;
}

static int fail(const struct yk_planner *pl, const struct yk_step *s, const char *what,
		int64_t got, int64_t most)
{
	return yk_fail(YOKE_ERANGE, "%s%s%s: %s %lld is not in 0..%lld",
		       yk_ops[s->opcode].name, s->scope ? " in " : "",
		       yk_path_name(&pl->ctx->paths, s->scope), what, (long long)got,
		       (long long)most);
}

static int check_starts(const struct yk_planner *pl, const struct yk_plan *p,
			const struct yk_step *s)
{
	// the whole and the part: x and y, or y and v
	const struct yoke_view *v = &p->view[s->view];
	const struct yoke_view *whole = s->opcode == YK_SLICE_AT ? v + 1 : v,
			       *part = s->opcode == YK_SLICE_AT ? v : v + s->op.nin;
	int64_t start;
	for (uint32_t i = 0; i < whole->rank; i++)
		if (on_host(pl, p, s, 1 + i, &start) &&
		    (start < 0 || start > whole->dims[i] - part->dims[i])) {
			char what[32];
			snprintf(what, sizeof what, "start of axis %u", i);
			return fail(pl, s, what, start, whole->dims[i] - part->dims[i]);
		}
	return 0;
}

int yk_check_scalars(const struct yk_planner *pl, const struct yk_plan *p)
{
	int err = 0;
	int64_t keys;
	for (size_t i = 0; i < p->steps && !err; i++) {
		const struct yk_step *s = &p->step[i];
		if (s->kind != YK_STEP_RUN)
			continue;
		switch (s->op.code) {
		case YOKE_OP_SLICE_AT:
		case YOKE_OP_SLICE_UPDATE_AT: err = check_starts(pl, p, s); break;
		case YOKE_OP_ATTENTION:
			if (on_host(pl, p, s, 6, &keys)) {
				int64_t most = p->view[s->view + s->op.nout + 1].dims[1];
				if (keys < 0 || keys > most)
					err = fail(pl, s, "number of keys", keys, most);
			}
		}
	}
	return err;
}
