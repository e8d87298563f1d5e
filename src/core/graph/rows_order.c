// SPDX-License-Identifier: Apache-2.0
// barrier(x..; y..): the values x themselves, for readers that must not run before the y are computed.
// Nothing runs for it; it holds the order in which the scheduler launches (plan/order.c).

#include "config.h"

#include "graph/op.h"

// list x; y.. -> list x
int yk_shape_barrier(struct yk_graph *g, const struct yk_call *c, struct yk_value *out)
{
	for (uint32_t i = 0; i < c->list; i++)
		out[i] = g->value[c->in[i]];
	return 0;
}

void yk_grad_barrier(struct yk_graph *g, uint32_t node, const yk_id *gout, yk_id *gin)
{
	for (uint32_t i = 0; i < g->node[node].list; i++)
		gin[i] = gout[i];
}
