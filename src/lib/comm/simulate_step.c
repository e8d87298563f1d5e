// SPDX-License-Identifier: Apache-2.0
// Data-parallel training step in the simulator.
#include "config.h"

#include "comm/simulate_step.h"

#include <math.h>

enum { RECORD = 8 }; // bytes summed after the gradients: the loss and the stop request

static int sum_takes(const struct yk_wire_model *m, uint32_t ranks, double bytes, double *seconds,
		     double *formula)
{
	struct yk_schedule_request w = { .what = YK_DO_ALL_REDUCE,
					 .ranks = ranks,
					 .node = m->node };
	yk_schedule_usual(&w, bytes, false);
	if (!yk_simulate_formula(m, &w, bytes, formula))
		*formula = NAN;
	return yk_simulate(m, &w, bytes, seconds);
}

int yk_simulate_step(const struct yk_wire_model *model, uint32_t ranks,
		     const struct yk_step_times *t, double *seconds, double *formula)
{
	struct yk_wire_model m = *model;
	double f = 0, g = 0, took, closed;
	int err = 0;
	m.node = m.node < ranks ? m.node : ranks;
	for (int k = 0; k <= t->buckets && !err; k++) {
		const bool record = k == t->buckets;
		const double ready = record ? t->computed : t->bucket[k].ready;
		err = sum_takes(&m, ranks, record ? RECORD : t->bucket[k].bytes, &took, &closed);
		f = (f > ready ? f : ready) + took;
		g = (g > ready || isnan(g) ? g : ready) + closed;
	}
	*seconds = f + t->update;
	*formula = g + t->update;
	return err;
}
