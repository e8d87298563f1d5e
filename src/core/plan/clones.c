// SPDX-License-Identifier: Apache-2.0
// Random clones, for tests: some readers of a value get their own copy of the node that computes
// it.  No result may change by a bit.

#include "config.h"

#include "base/param.h"
#include "plan/edit.h"
#include "plan/passes.h"
#include "plan/work.h"

YK_PARAM(seed_setting, "plan.clones", YK_INT, "0",
	 "seed of nodes that are computed twice (for tests); 0: none", .max = INT64_MAX,
	 .debug = true);

enum { ONE_IN = 8 };

static bool is_chosen(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u; // Knuth's MMIX
	return (*seed >> 33) % ONE_IN == 0;
}

// May the node be duplicated?
static bool may_clone(const struct yk_work *w, uint32_t node)
{
	const struct yk_node *n = &w->g.node[node];
	return yk_computes(w, node) && n->nout == 1 && n->op != YK_BARRIER &&
	       n->op != YK_TRANSFER && !yk_is_ranks(n);
}

// Makes the operand read a clone of the node that computes it.
static int read_clone(struct yk_work *w, uint32_t arg, uint32_t node)
{
	const struct yk_node n = w->g.node[node];
	yk_id v = w->g.arg[arg], in[16], clone;
	if (n.nin > sizeof in / sizeof *in || w->value[v].place.gate)
		return 0;
	for (uint32_t i = 0; i < n.nin; i++)
		in[i] = w->g.arg[n.in + i];
	int err = yk_edit_clone(w, node, in, &clone);
	if (!err)
		err = yk_edit_view(w, v, clone, &clone);
	return err ? err : yk_edit_replace(w, arg, clone);
}

int yk_clones(struct yk_work *w)
{
	uint64_t seed = (uint64_t)yk_param_int(&seed_setting);
	size_t args = w->g.args;
	int err = 0;
	for (uint32_t arg = 0; arg < args && seed && !err; arg++) {
		uint32_t base = w->use[arg].base;
		if (base == YK_NIL || !may_clone(w, w->g.value[base].node) || !is_chosen(&seed))
			continue;
		yk_edit_begin(w);
		err = read_clone(w, arg, w->g.value[base].node);
		if (!err && is_chosen(&seed))
			yk_edit_undo(w);
	}
	return err || !seed ? err : yk_edit_sweep(w);
}
