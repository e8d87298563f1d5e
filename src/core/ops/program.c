// SPDX-License-Identifier: Apache-2.0
// Map programs (include/yoke-plugin.h) as graphs of elementwise operations.
#include "config.h"

#include "ops/rules.h"

// ---- map programs ----

// The op of an instruction, or YK_OPS; MIN and MAX do not exist for bool.
static int op_of(const struct yoke_insn *n)
{
	int op = 0;
	if (n->dtype == yoke_bool && (n->op == YOKE_MAP_MIN || n->op == YOKE_MAP_MAX))
		return n->op == YOKE_MAP_MIN ? YK_AND : YK_OR;
	while (op < YK_OPS && (!(yk_op_def(op)->flags & YK_F_MAP) || yk_op_def(op)->map != n->op))
		op++;
	return op;
}

bool yk_is_program(const struct yoke_map *m)
{
	for (int k = 0; k < m->ninsn; k++) {
		const struct yoke_insn *n = &m->insn[k];
		const uint16_t from[3] = { n->a, n->b, n->c };
		bool good = n->op != YOKE_MAP_INDEX && n->op != YOKE_MAP_RAND;
		if (n->op == YOKE_MAP_INPUT || n->op == YOKE_MAP_CONST) {
			good = n->a < (n->op == YOKE_MAP_INPUT ? m->nin : m->nconst);
		} else {
			const int op = op_of(n);
			good = good && op < YK_OPS;
			for (uint32_t i = 0; good && i < yk_op_def(op)->min_in; i++)
				good = from[i] < k;
		}
		if (!good)
			return false;
	}
	for (int k = 0; k < m->nout; k++)
		if (m->out[k] >= m->ninsn)
			return false;
	return true;
}

void yk_program_parts(struct yk_graph *g, const struct yoke_map *m, const yk_id *in, yk_id *out)
{
	yk_id v[YOKE_MAP_MAX_INSNS];
	for (int k = 0; k < m->ninsn; k++) {
		const struct yoke_insn *n = &m->insn[k];
		if (n->op == YOKE_MAP_INPUT) {
			v[k] = in[n->a];
		} else if (n->op == YOKE_MAP_CONST) {
			union yoke_attr a[2] = { { .i = n->dtype },
						 { .i = (int64_t)m->konst[n->a] } };
			v[k] = yk_record(g, YK_CONST, 0, NULL, 2, a);
		} else if (n->op == YOKE_MAP_CAST) {
			v[k] = yk_cast(g, v[n->a], n->dtype);
		} else {
			const int op = op_of(n), count = yk_op_def(op)->min_in;
			const yk_id x[3] = { v[n->a], count > 1 ? v[n->b] : 0,
					     count > 2 ? v[n->c] : 0 };
			v[k] = yk_cast(g, yk_record(g, op, (uint32_t)count, x, 0, NULL), n->dtype);
		}
	}
	for (int k = 0; k < m->nout; k++)
		out[k] = v[m->out[k]];
}
