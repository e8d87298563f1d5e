// SPDX-License-Identifier: Apache-2.0
// Checks before a launch, so that a failure has no effect: host scalars that are used as indices
// must be in range.  Numbers on the device are checked by the kernels.

#include "config.h"

#include <stdio.h>

#include "base/error.h"
#include "plan/launch.h"
#include "plan/plan.h"
#include "plan/planner.h"

// Is operand k of a node a host scalar?
static bool on_host(const struct yk_planner *pl, const struct yk_node *n, uint32_t k, int64_t *to)
{
	const struct yk_graph *g = &pl->ctx->graph;
	yk_id v = yk_ins(g, n)[k];
	if (v == YK_NIL)
		return false;
	const struct yk_node *maker = yk_maker(g, v);
	if (maker->op == YK_CONST)
		*to = yk_attrs(g, maker)[1].i;
	else if (maker->op == YK_SCALAR)
		*to = (int64_t)yk_scalar_bits(pl, pl->marks.leaf_index[yk_attrs(g, maker)[0].i]);
	return maker->op == YK_CONST || maker->op == YK_SCALAR;
}

static int fail(const struct yk_planner *pl, const struct yk_node *n, const char *what,
		int64_t got, int64_t max)
{
	return yk_fail(YOKE_ERANGE, "%s%s%s: %s %lld is not in 0..%lld",
		       yk_op_def(n->op)->name, n->scope ? " in " : "",
		       yk_path_name(&pl->ctx->scopes.paths, n->scope), what, (long long)got,
		       (long long)max);
}

// x, starts [, v]: the region has the shape of the result, or of v
static int check_starts(const struct yk_planner *pl, const struct yk_node *n)
{
	const struct yk_graph *g = &pl->ctx->graph;
	const struct yk_value *x = &g->value[yk_ins(g, n)[0]];
	const struct yk_value *part = n->op == YK_SLICE_AT ? &g->value[n->out] :
							     &g->value[yk_ins(g, n)[n->nin - 1]];
	int64_t start;
	for (uint32_t i = 0; i < x->rank; i++)
		if (on_host(pl, n, 1 + i, &start) &&
		    (start < 0 || start > x->dims[i] - part->dims[i])) {
			char what[32];
			snprintf(what, sizeof what, "start of axis %u", i);
			return fail(pl, n, what, start, x->dims[i] - part->dims[i]);
		}
	return 0;
}

static int check_keys(const struct yk_planner *pl, const struct yk_node *n)
{
	const struct yk_graph *g = &pl->ctx->graph;
	const int64_t max = g->value[yk_ins(g, n)[1]].dims[1];
	int64_t keys;
	if (on_host(pl, n, 6, &keys) && (keys < 0 || keys > max))
		return fail(pl, n, "number of keys", keys, max);
	return 0;
}

// Can each host scalar be represented in the dtype it is read as?
static int check_numbers(const struct yk_planner *pl)
{
	const struct yoke_context *ctx = pl->ctx;
	for (size_t i = 0; pl->marks.numbers && i < pl->marks.leaves; i++) {
		const struct yk_leaf *leaf = &ctx->leaves.at[pl->marks.leaf[i]];
		if (leaf->kind != YK_LEAF_SCALAR || leaf->frozen || !leaf->scalar ||
		    yk_has_number(leaf->dtype, leaf->scalar->scalar))
			continue;
		for (size_t k = 0; k < pl->marks.nodes; k++) { // find the op that reads it
			const struct yk_node *n = &ctx->graph.node[pl->marks.node[k]];
			for (uint32_t j = 0; j < n->nin; j++)
				if (yk_ins(&ctx->graph, n)[j] == leaf->id)
					return yk_fail(
						YOKE_ERANGE,
						"%s%s%s: the host scalar %.9g is no number of %s",
						n->call ? n->call : yk_op_def(n->op)->name,
						n->scope ? " in " : "",
						yk_path_name(&ctx->scopes.paths, n->scope),
						leaf->scalar->scalar, yoke_dtype_name(leaf->dtype));
		}
		return yk_fail(YOKE_ERANGE, "the host scalar %.9g is no number of %s",
			       leaf->scalar->scalar, yoke_dtype_name(leaf->dtype));
	}
	return 0;
}

static bool is_ranged(const struct yk_node *n)
{
	return n->op == YK_SLICE_AT || n->op == YK_SLICE_UPDATE_AT || n->op == YK_ATTENTION;
}

bool yk_is_ranged(const struct yk_planner *pl)
{
	bool any = false;
	for (size_t k = 0; k < pl->marks.nodes && !any; k++)
		any = is_ranged(&pl->ctx->graph.node[pl->marks.node[k]]);
	return any;
}

int yk_check_scalars(const struct yk_planner *pl, const struct yk_plan *p)
{
	int err = check_numbers(pl);
	for (size_t k = 0; p->ranged && k < pl->marks.nodes && !err; k++) {
		const struct yk_node *n = &pl->ctx->graph.node[pl->marks.node[k]];
		if (pl->marks.made[k])
			continue;
		if (is_ranged(n))
			err = n->op == YK_ATTENTION ? check_keys(pl, n) : check_starts(pl, n);
	}
	return err;
}

// Plans are found by key only, so this fails only if a key lacks information: better an error than
// a step that accesses other memory.
int yk_check_leaves(const struct yk_planner *pl, const struct yk_plan *p)
{
	const struct yoke_context *ctx = pl->ctx;
	for (size_t i = 0; i < p->layout.leaves; i++) {
		const struct yk_storage *s = ctx->leaves.at[pl->marks.leaf[i]].storage;
		bool there = s && s->buffer;
		if (!p->layout.leaf_bytes[i] || (there && s->bytes >= p->layout.leaf_bytes[i] &&
				    (yk_is_wrapped(s) || yk_storage_at(s) % YK_ALIGN == 0)))
			continue;
		return yk_fail(
			YOKE_EINVAL,
			"the cached plan needs %llu bytes, aligned to %d, in leaf %zu, which has "
			"%llu: an error of yoke; YOKE_PLAN_MAX=0 plans anew",
			(unsigned long long)p->layout.leaf_bytes[i], YK_ALIGN, i,
			(unsigned long long)(there ? s->bytes : 0));
	}
	return 0;
}
