// SPDX-License-Identifier: Apache-2.0
// yoke plan scaling stages=: duration of a step with pipeline parallelism, from the schedule of its
// ranks.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "comm/simulate.h"
#include "comm/tuned.h"
#include "tool/tool.h"

enum { LIMIT = 1024 };

static int number(const char *text, double *to)
{
	char *end;
	const double x = strtod(text, &end);
	if (end == text || *end || !(x >= 0 && x < 1e12))
		return -1;
	*to = x;
	return 0;
}

static int row(const struct yk_wire_model *m, struct yk_pipeline_request *w, int how)
{
	static const char *const names[] = { "1f1b", "gpipe" };
	double took, bubble;
	w->how = how;
	const int err = yk_simulate_pipeline(m, w, &took, &bubble);
	const double formula = (double)(w->stages - 1) / (double)(w->parts + w->stages - 1);
	if (!err)
		printf("simulated  %6lld  %-8s %12.3f us  %8.2f %%  %8.2f %%  %6.3f\n",
		       (long long)w->stages, names[how], 1e6 * took, 100 * bubble, 100 * formula,
		       formula > 0 ? bubble / formula : 1);
	return err;
}

int yk_plan_scaling_stages(int argc, char **argv)
{
	struct yk_wire_model found = { -1, -1, -1, -1, -1, 0 };
	double stages = 2, parts = 8, forward = -1, back = -1, bytes = 0, alpha = -1, beta = -1;
	const struct {
		const char *name;
		double *to;
	} key[] = { { "stages", &stages }, { "micro_batches", &parts }, { "forward", &forward },
		    { "backward", &back }, { "bytes", &bytes },         { "alpha1", &alpha },
		    { "beta1", &beta } };
	int err = 0;
	for (int i = 1; i < argc; i++) {
		const char *value = NULL, *twice = yk_option_twice(argv, i);
		if (twice)
			return yk_usage("plan scaling", "argument '%s' repeats '%s'; give it once",
					argv[i], twice);
		for (size_t k = 0; k < sizeof key / sizeof *key && !value; k++)
			if ((value = yk_option(key[k].name, argc, argv, &i)) &&
			    number(value, key[k].to) < 0)
				return yk_usage("plan scaling", "%s must be a number, got '%s'",
						key[k].name, value);
		if (!value)
			return yk_usage(
				"plan scaling",
				"unknown argument '%s'; with stages= the arguments are "
				"micro_batches=, forward=, backward=, bytes=, alpha1= and beta1=",
				argv[i]);
	}
	if (stages < 1 || stages > LIMIT || parts < 1 || parts > 65536 ||
	    stages != (int64_t)stages || parts != (int64_t)parts)
		return yk_usage("plan scaling",
				"stages must be a number from 1 to %d, and micro_batches a number "
				"from 1 to 65536",
				LIMIT);
	if (forward < 0)
		return yk_usage("plan scaling",
				"the time of a stage is unknown: give forward= in seconds per "
				"micro-batch, and backward= unless it is twice as long");
	yk_tuned_model(&found);
	const struct yk_wire_model m = { .alpha1 = alpha >= 0       ? alpha :
						   found.alpha1 > 0 ? found.alpha1 :
								      0,
					 .beta1 = beta >= 0       ? beta :
						  found.beta1 > 0 ? found.beta1 :
								    0,
					 .node = LIMIT };
	struct yk_pipeline_request w = { .stages = (int64_t)stages,
					 .parts = (int64_t)parts,
					 .forward = forward,
					 .back = back < 0 ? 2 * forward : back,
					 .bytes = bytes };
	printf("a step of %lld micro-batches: %.3g s forward and %.3g s backward each; %.0f bytes "
	       "sent between stages, %.3g s + %.3g s/byte\n",
	       (long long)w.parts, w.forward, w.back, w.bytes, m.alpha1, m.beta1);
	printf("%9s  %6s  %-8s %15s  %10s  %10s  %6s\n", "", "stages", "pipeline", "time", "bubble",
	       "formula", "ratio");
	for (int how = 0; how < 2 && !err; how++)
		err = row(&m, &w, how);
	return err ? yk_failed("plan scaling") : YK_DONE;
}
