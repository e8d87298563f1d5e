// SPDX-License-Identifier: Apache-2.0
// Barriers: barrier(x.., y..) returns the values x to readers that must not run before the values y
// are computed.  It runs no kernel; it constrains the order in which the scheduler launches
// (plan/order.c).
#include "config.h"

#include "base/error.h"
#include "graph/record.h"
#include "ops/rules.h"

// list x; y.. -> list x
static int shape_barrier(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	for (uint32_t i = 0; i < c->list; i++)
		out[i] = g->value[c->in[i]];
	return 0;
}

static void grad_barrier(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	for (uint32_t i = 0; i < g->node[node].list; i++)
		gin[i] = gout[i];
}

// not launched: see plan/order.c
YK_OP(BARRIER) = { .name = "barrier", .min_in = 1, .max_in = UINT32_MAX, .nout = 1, .lists_in = 1,
	.lists_out = 1, .shape = shape_barrier, .grad = grad_barrier };

int yoke_barrier(int n, yoke_tensor *const *x, int m, yoke_tensor *const *after,
		 yoke_tensor **to)
{
	struct yoke_context *ctx = NULL;
	if (m < 1 || !yk_require(after, "list of values before it"))
		ctx = yk_enter_list_to(n, x, to, "barrier");
	if (!ctx)
		return yk_results(yk_error_last(), n, to);
	int err = 0;
	yk_id *in = m < 0 ? NULL : yk_lists(ctx, n, 1, &x, m);
	if (m < 0)
		err = yk_fail(YOKE_EINVAL, "barrier: after %d values", m);
	else if (!in)
		err = yk_error_last();
	for (int i = 0; i < m && !err; i++) {
		in[n + i] = yk_operand(ctx, after[i], yoke_f32);
		if (in[n + i] == YK_NIL)
			yk_fail(YOKE_EINVAL, "barrier: after nothing");
		if (in[n + i] == YK_NIL || in[n + i] == YK_BAD)
			err = yk_error_last();
	}
	struct yk_call c = { .op = YK_BARRIER,
			     .list = (uint32_t)n,
			     .nin = (uint32_t)(n + m),
			     .in = in };
	return yk_list_record(ctx, err, &c, in, n, to);
}
