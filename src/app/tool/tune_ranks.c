// SPDX-License-Identifier: Apache-2.0
// yoke tune ranks: times all_reduce of f32 among processes with every algorithm, at sizes that grow
// by factors of 4, and derives alpha, beta and gamma for `yoke plan scaling`. Without a launcher it
// starts the processes, which run this command again; under a launcher it is one of them.
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/system.h"
#include "comm/process.h"
#include "comm/sums.h"
#include "comm/tuned.h"
#include "parallel/ranks.h"
#include "tool/tool.h"
#include "train/trial.h"

enum { SAMPLES = 5, WARM = 1, ADD_ELEMENTS = 1 << 20 };
#define SAMPLE_S 0.01

struct tuner {
	yoke_group *world;
	bool leads;
	struct yk_tuning t;
	uint64_t max;
	double small, large[2]; // seconds for the smallest size; for the largest, pairwise
};

static int all_reduce(yoke_group *world, yoke_tensor *x, int times)
{
	int e = 0;
	for (int i = 0; i < times && e == 0; i++) {
		yoke_scope *s = yoke_scope_begin("tune");
		yoke_tensor *y = yoke_all_reduce(world, YOKE_REDUCE_SUM, x);
		e = y ? yoke_eval(1, &y) : yoke_error_code();
		if (e == 0)
			e = yoke_sync();
		const int ended = yoke_scope_end(s);
		e = e < 0 ? e : ended;
	}
	return e;
}

// Median time of one operation on rank 0; all ranks run the same number of operations.
static int time_it(yoke_group *world, yoke_tensor *x, double *to)
{
	double sample[SAMPLES], spread;
	int e = 0, times = 1;
	for (int k = -WARM; k < SAMPLES && e == 0; k++) {
		e = yoke_group_barrier(world);
		const double began = yk_seconds();
		if (e == 0)
			e = all_reduce(world, x, times);
		const double each = (yk_seconds() - began) / times;
		if (k >= 0) {
			sample[k] = each;
			continue;
		}
		int *all = calloc((size_t)yoke_group_size(world), sizeof *all);
		times = each * 1000 > SAMPLE_S ? (int)(SAMPLE_S / each) + 1 : 1000;
		if (!all)
			return yk_fail(YOKE_ENOMEM, "out of memory for results");
		e = e < 0 ? e : yoke_group_exchange(world, &times, sizeof times, all);
		times = all[0];
		free(all);
	}
	if (e == 0)
		*to = yk_median(SAMPLES, sample, &spread);
	return e;
}

// Measures one size: one line of the file, the fastest algorithm first.
static int measure(struct tuner *u, int size)
{
	const int64_t n = (int64_t)(yk_tuned_bytes(size) / sizeof(float));
	const uint32_t ranks = u->world->ranks;
	double took[YK_BY_SHARED];
	int order[YK_BY_SHARED], ways = 0, e = 0;
	yoke_tensor *x = yoke_variable("x", yoke_f32, 1, &n);
	if (!x)
		return yoke_error_code();
	for (int how = 0; how < YK_BY_SHARED && e == 0; how++) {
		const struct yk_schedule_request w = {
			.what = YK_DO_ALL_REDUCE,
			.how = (uint8_t)how,
			.ranks = ranks,
			.node = u->world->rendezvous->node ? u->world->rendezvous->node :
				ranks > 2 ? 2 :
				ranks
		};
		if (!yk_schedule_exists(&w) || !yk_schedule_in_order(&w))
			continue;
		e = yoke_setting_set("dist.algorithm", yk_algorithm_name[how]);
		if (e == 0)
			e = time_it(u->world, x, &took[how]);
		int k = ways++;
		for (; k > 0 && e == 0 && took[order[k - 1]] > took[how]; k--)
			order[k] = order[k - 1];
		order[k] = how;
	}
	yoke_setting_set("dist.algorithm", "");
	yoke_free(x);
	if (e < 0)
		return e;
	u->small = size ? u->small : took[YK_BY_TREE];
	u->large[0] = (double)yk_tuned_bytes(size);
	u->large[1] = took[YK_BY_PAIRWISE];
	char line[400];
	size_t at = (size_t)snprintf(line, sizeof line, "all_reduce.f32.%" PRIu64,
				     yk_tuned_bytes(size));
	for (int k = 0; k < ways; k++)
		at += (size_t)snprintf(line + at, sizeof line - at, " %s=%.0f",
				       yk_algorithm_name[order[k]], 1e9 * took[order[k]] + 1);
	if (u->leads) {
		printf("%s\n", line);
		fflush(stdout);
	}
	return yk_tuning_add(&u->t, line);
}

// Measures gamma: seconds per byte of an addition.
static int add_bytes(double *to)
{
	float *x = calloc(2 * (size_t)ADD_ELEMENTS, sizeof *x);
	double sample[SAMPLES], spread;
	if (!x)
		return yk_fail(YOKE_ENOMEM, "out of memory for results");
	for (int k = -WARM; k < SAMPLES; k++) {
		const double began = yk_seconds();
		yk_sums(yoke_f32, YOKE_REDUCE_SUM, 2, (const void *[]){ x, x + ADD_ELEMENTS }, 1,
			(void *[]){ x }, ADD_ELEMENTS);
		if (k >= 0)
			sample[k] = (yk_seconds() - began) / (sizeof *x * (double)ADD_ELEMENTS);
	}
	*to = yk_median(SAMPLES, sample, &spread);
	free(x);
	return 0;
}

// A tree of two ranks takes 2 (alpha + B beta) + B gamma; pairwise takes 2 alpha + B beta + B gamma
// / 2.
static int model(struct tuner *u)
{
	double gamma = 0, beta;
	char line[200];
	int e = add_bytes(&gamma);
	if (e < 0 || u->world->ranks != 2)
		return e;
	const double alpha = u->small / 2;
	beta = (u->large[1] - 2 * alpha) / u->large[0] - gamma / 2;
	beta = beta > 0 ? beta : 0;
	snprintf(line, sizeof line, "model.fs alpha=%.0f beta=%.0f gamma=%.0f", 1e15 * alpha,
		 1e15 * beta, 1e15 * gamma);
	if (u->leads)
		printf("%s\n", line);
	return yk_tuning_add(&u->t, line);
}

static int member(yoke_group *world, void *arg)
{
	struct tuner *u = arg;
	const bool far = world->rendezvous->route;
	const uint32_t node = far ? world->rendezvous->node : world->ranks;
	int e = 0;
	u->world = world;
	u->leads = world->rank == 0;
	for (int size = 0; size < YK_TUNED_SIZES && yk_tuned_bytes(size) <= u->max && e == 0;
	     size++)
		e = measure(u, size);
	if (e == 0)
		e = model(u);
	if (e == 0 && u->leads) {
		struct yk_tuning old;
		yk_tuned_open(far ? "mpi" : "processes", world->ranks, node, &old);
		memcpy(u->t.path, old.path, sizeof old.path);
		yk_tuning_fini(&old);
		e = yk_tuned_save(far ? "mpi" : "processes", world->ranks, node, &u->t);
	}
	if (e == 0 && u->leads)
		printf("%u ranks, %u per machine, by %s: %s\n", world->ranks, node,
		       far ? "MPI" : "shared memory", u->t.path);
	return e;
}

int yk_tune_ranks(int argc, char **argv)
{
	struct tuner u = { .max = (uint64_t)64 << 20 };
	uint64_t ranks = 2, n;
	uint32_t rank, started;
	char *words[8] = { (char *)(uintptr_t)yk_program(), (char *)(uintptr_t)"tune" };
	for (int i = 1; i < argc; i++)
		if (!strncmp(argv[i], "ranks=", 6) && yk_option_number(argv[i] + 6, &n) == 0 &&
		    n >= 2 && n <= 64)
			ranks = n;
		else if (!strncmp(argv[i], "max=", 4) && yk_option_number(argv[i] + 4, &n) == 0 &&
			 n >= 256)
			u.max = n;
		else
			return yk_usage("tune",
					"'%s': tune ranks takes ranks=, from 2 to 64, and max=, a "
					"number of bytes from 256",
					argv[i]);
	const int place = yk_process_rank(&rank, &started);
	int e = place < 0 ? place : 0;
	if (place > 0) {
		e = yk_ranks_divide_cpu(started);
		if (e == 0)
			e = yk_process_run(NULL, member, &u);
		yk_tuning_fini(&u.t);
		return e == 0 ? YK_DONE : yk_process_failed() ? YK_FAILED : yk_failed("tune");
	}
	for (int i = 0; i < argc && i < 5; i++)
		words[i + 2] = argv[i];
	if (e == 0)
		e = yoke_group_spawn((int)ranks, words);
	return e < 0 ? yk_failed("tune") : YK_DONE;
}
