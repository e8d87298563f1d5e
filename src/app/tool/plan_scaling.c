// SPDX-License-Identifier: Apache-2.0
// yoke plan scaling: predicts the duration of an all_reduce or of a training step on more ranks
// than are available, by simulating the schedules that ranks execute.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "base/param.h"
#include "comm/tuned.h"
#include "tool/plan_scaling.h"
#include "tool/tool.h"

enum { LIMIT = 4096 };

static int seconds(const char *text, double *to)
{
	char *end;
	const double x = strtod(text, &end);
	if (end == text || *end || !(x >= 0 && x < 1e6))
		return -1;
	*to = x;
	return 0;
}

static int span(const char *text, struct yk_simulation *s)
{
	char first[24];
	const char *dots = strstr(text, "..");
	const size_t n = dots ? (size_t)(dots - text) : strlen(text);
	if (n >= sizeof first)
		return -1;
	memcpy(first, text, n);
	first[n] = '\0';
	if (yk_option_number(first, &s->first) < 0 ||
	    yk_option_number(dots ? dots + 2 : first, &s->last) < 0)
		return -1;
	return s->first < 2 || s->last < s->first || s->last > LIMIT ? -1 : 0;
}

static int parse(struct yk_simulation *s, int argc, char **argv)
{
	struct {
		const char *name;
		double *to;
	} const number[] = { { "alpha1", &s->m.alpha1 },
			     { "beta1", &s->m.beta1 },
			     { "alpha2", &s->m.alpha2 },
			     { "beta2", &s->m.beta2 },
			     { "gamma", &s->m.gamma } };
	const char *value;
	for (int i = 1; i < argc; i++) {
		const char *twice = yk_option_twice(argv, i);
		bool known = false;
		uint64_t n;
		if (twice)
			return yk_usage("plan scaling", "argument '%s' repeats '%s'; give it once",
					argv[i], twice);
		for (size_t k = 0; k < sizeof number / sizeof *number; k++)
			if ((value = yk_option(number[k].name, argc, argv, &i))) {
				known = true;
				if (seconds(value, number[k].to) < 0)
					return yk_usage("plan scaling",
							"%s must be a number of seconds, for "
							"example 2e-6, got '%s'",
							number[k].name, value);
			}
		if (known)
			continue;
		if ((value = yk_option("ranks", argc, argv, &i))) {
			if (span(value, s) < 0)
				return yk_usage("plan scaling",
						"ranks must be a number from 2 to %d, or a range "
						"such as 8..%d, got '%s'",
						LIMIT, LIMIT, value);
		} else if ((value = yk_option("group", argc, argv, &i))) {
			if (yk_option_number(value, &n) < 0 || n < 1 || n > LIMIT)
				return yk_usage(
					"plan scaling",
					"group must be the number of ranks per machine, got '%s'",
					value);
			s->m.node = (uint32_t)n;
		} else if ((value = yk_option("bytes", argc, argv, &i))) {
			if (yk_option_number(value, &s->bytes) < 0 || s->bytes < 1 ||
			    s->bytes > (uint64_t)1 << 50)
				return yk_usage("plan scaling", "bytes must be a number, got '%s'",
						value);
		} else if ((value = yk_option("algorithm", argc, argv, &i))) {
			s->algorithm = value;
		} else if (!s->run && *argv[i] != '-' && !strchr(argv[i], '=')) {
			s->run = argv[i];
		} else {
			return yk_usage(
				"plan scaling",
				"unknown argument '%s'; the arguments are a run's folder, ranks=, "
				"group=, bytes=, algorithm=, alpha1=, beta1=, alpha2=, "
				"beta2= and gamma=",
				argv[i]);
		}
	}
	return YK_DONE;
}

uint64_t yk_simulation_next(const struct yk_simulation *s, uint64_t ranks)
{
	return ranks >= s->last ? 0 : 2 * ranks > s->last ? s->last : 2 * ranks;
}

static int row(const struct yk_simulation *s, uint32_t ranks, int how)
{
	const struct yk_schedule_request w = { .what = YK_DO_ALL_REDUCE,
					       .how = (uint8_t)how,
					       .ranks = ranks,
					       .node = s->m.node < ranks ? s->m.node : ranks };
	const struct yk_wire_model m = { s->m.alpha1, s->m.beta1, s->m.alpha2,
					 s->m.beta2,  s->m.gamma, w.node };
	const double bytes = (double)s->bytes;
	double took, formula = 0;
	if (!yk_schedule_exists(&w))
		return 0;
	int err = yk_simulate(&m, &w, bytes, &took);
	if (err)
		return err;
	const bool closed = yk_simulate_formula(&m, &w, bytes, &formula);
	printf("simulated  %5u  %-9s %14.3f us  ", ranks, yk_algorithm_name[how], 1e6 * took);
	if (closed)
		printf("%14.3f us  %6.3f", 1e6 * formula, formula > 0 ? took / formula : 1);
	else
		printf("%14s     %6s", "-", "-");
	printf("  %9.1f %%\n", took > 0 ? 100 * yk_simulate_min(&m, ranks, bytes) / took : 100);
	return 0;
}

int yk_plan_scaling(int argc, char **argv)
{
	char text[2][64];
	struct yk_simulation s = { .m = { .alpha1 = -1,
					  .beta1 = -1,
					  .alpha2 = -1,
					  .beta2 = -1,
					  .gamma = -1,
					  .node = 1 },
				   .first = 8,
				   .last = 8,
				   .bytes = 1 << 20,
				   .algorithm = "" };
	struct yk_wire_model found = { -1, -1, -1, -1, -1, 0 };
	char hint[200];
	for (int i = 1; i < argc; i++)
		if (!strncmp(argv[i], "stages=", 7) || !strcmp(argv[i], "--stages"))
			return yk_plan_scaling_stages(argc, argv);
	int status = parse(&s, argc, argv), err = 0;
	if (status != YK_DONE)
		return status;
	bool known = !*s.algorithm;
	for (int how = 0; how < YK_BY_SHARED; how++)
		known |= !strcmp(s.algorithm, yk_algorithm_name[how]);
	if (!known)
		return yk_usage(
			"plan scaling", "algorithm '%s': %s", s.algorithm,
			yk_hint(s.algorithm, yk_algorithm_name, YK_BY_SHARED, hint, sizeof hint));
	yk_tuned_model(&found);
	double *const want[] = { &s.m.alpha1, &s.m.beta1, &s.m.alpha2, &s.m.beta2, &s.m.gamma };
	const double have[] = { found.alpha1, found.beta1, found.alpha2, found.beta2, found.gamma };
	for (int i = 0; i < 5; i++)
		*want[i] = *want[i] < 0 ? have[i] : *want[i];
	const bool one = s.m.node >= s.last, apart = s.m.node == 1;
	if (s.m.gamma < 0 || (!apart && (s.m.alpha1 < 0 || s.m.beta1 < 0)) ||
	    (!one && (s.m.alpha2 < 0 || s.m.beta2 < 0)))
		return yk_usage("plan scaling",
				"the cost of %s is unknown: give alpha%d=, beta%d= and gamma=, or "
				"measure it with `%s`",
				!one && s.m.alpha2 < 0 ? "messages between machines" :
							 "messages within a machine",
				!one && s.m.alpha2 < 0 ? 2 : 1, !one && s.m.alpha2 < 0 ? 2 : 1,
				!one && s.m.alpha2 < 0 ? "mpirun -n 2 yoke tune ranks" :
							 "yoke tune ranks");
	if (s.run)
		printf("data-parallel ranks, %u per machine; ", s.m.node);
	else
		printf("all_reduce sum of %s, %s per machine; ",
		       yk_counted(text[0], (long long)s.bytes, "byte"),
		       yk_counted(text[1], s.m.node, "rank"));
	if (!apart)
		printf("within: %.3g s + %.3g s/byte; ", s.m.alpha1, s.m.beta1);
	if (!one)
		printf("between: %.3g s + %.3g s/byte; ", s.m.alpha2, s.m.beta2);
	printf("adding: %.3g s/byte\n", s.m.gamma);
	if (s.run)
		return yk_plan_scaling_run(&s) < 0 ? yk_failed("plan scaling") : YK_DONE;
	printf("%9s  %5s  %-9s %17s  %17s  %6s  %11s\n", "", "ranks", "by", "time", "formula",
	       "ratio", "efficiency");
	for (uint64_t n = s.first; n && !err; n = yk_simulation_next(&s, n))
		for (int how = 0; how < YK_BY_SHARED && !err; how++)
			if (!*s.algorithm || !strcmp(s.algorithm, yk_algorithm_name[how]))
				err = row(&s, (uint32_t)n, how);
	return err ? yk_failed("plan scaling") : YK_DONE;
}
