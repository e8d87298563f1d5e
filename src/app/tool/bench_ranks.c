// SPDX-License-Identifier: Apache-2.0
// yoke bench ranks: times all_reduce of f32 among ranks, by size and algorithm: as a direct call,
// and as a recorded operation that is evaluated and synchronized ("in a plan"). The reference is
// a hand-written loop over the same arrays if ranks are threads, and bench/mpi otherwise. Under
// mpirun, the processes that it started are the ranks.
// Counted: algbw, bytes of one rank's operand over the time; busbw, the bytes that each rank must
// send at least, 2 (N - 1) / N of the operand, over the time. The time is that of rank 0.
#include "config.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/system.h"
#include "comm/process.h"
#include "comm/ranks.h"
#include "parallel/ranks.h"
#include "tool/bench.h"
#include "tool/tool.h"
#include "train/trial.h"

enum {
	SIZES = 16,
	SAMPLES = 9,
	WARM = 2,
	MIN_SIZE = 8,
	GROW = 8,
	TIMES = 1000,
	COPIES = 2,
	WAYS = YK_BY_SHARED + 3 + COPIES
};
#define SAMPLE_S 0.02
#define LIMIT ((uint64_t)256 << 20)

struct rank_state;
struct way { // a method of computing the all_reduce
	const char *name, *algorithm;
	int (*one)(struct rank_state *, int way);
	double sample[SAMPLES]; // seconds, on rank 0
};

struct bench {
	int ranks, sizes, ways;
	uint64_t bytes[SIZES];
	bool json; // prints JSON
	json_t *results;
	int64_t n;        // elements of the current operand
	struct way way[WAYS];
	bool processes;   // ranks are processes
	yoke_group *world; // group of this process if ranks are processes
	// arrays of all ranks, for the hand-written loop
	float *in[YK_MAX_RANKS], *out[YK_MAX_RANKS];
	_Atomic uint64_t arrived;
};

struct rank_state { // state of one rank
	struct bench *b;
	yoke_group *world;
	float *in, *out;
	yoke_tensor *x;
	struct yk_task task[WAYS]; // each keeps the schedule of its first run
	int times[WAYS];           // operations per sample, as determined by rank 0
	uint64_t barriers;            // number of barrier() calls
};

// ---- measured operations ----

static int in_plan(struct rank_state *m, int way)
{
	(void)way;
	yoke_scope *s = yoke_scope_begin("bench");
	yoke_tensor *y = yoke_all_reduce(m->world, YOKE_REDUCE_SUM, m->x);
	int e = y ? yoke_eval(1, &y) : yoke_error_code();
	if (e == 0)
		e = yoke_sync();
	const int ended = yoke_scope_end(s);
	return e < 0 ? e : ended;
}

static int direct_call(struct rank_state *m, int way)
{
	return yk_task_do(&m->task[way], m->in, m->out);
}

// Barrier for threads: waits until all ranks have called it equally often.
static void barrier(struct rank_state *m)
{
	atomic_fetch_add(&m->b->arrived, 1);
	m->barriers++;
	while (atomic_load(&m->b->arrived) < m->barriers * (uint64_t)m->b->ranks)
		sched_yield();
}

static int hand_written(struct rank_state *m, int way)
{
	struct bench *b = m->b;
	const int r = yoke_group_rank(m->world);
	const int64_t from = b->n * r / b->ranks, to = b->n * (r + 1) / b->ranks;
	(void)way;
	barrier(m);
	for (int64_t i = from; i < to; i++) {
		float sum = b->in[0][i];
		for (int other = 1; other < b->ranks; other++)
			sum += b->in[other][i];
		for (int other = 0; other < b->ranks; other++)
			b->out[other][i] = sum;
	}
	barrier(m);
	return 0;
}

static int down(struct rank_state *m, int way)
{
	(void)way;
	return yoke_read(m->x, m->in, (size_t)m->b->n * sizeof(float));
}

static int up(struct rank_state *m, int way)
{
	(void)way;
	const int e = yoke_put(m->x, m->in, (size_t)m->b->n * sizeof(float));
	return e == 0 ? yoke_sync() : e;
}

// Is the current context's device the CPU?
static bool on_host(void)
{
	const yoke_context *ctx = yk_current();
	return ctx->device == ctx->cpu;
}

// Sets the number of operations per sample, the same on all ranks, from the duration of one
// operation on rank 0.
static int set_repetitions(yoke_group *world, double each, int *times)
{
	const double max = SAMPLE_S / (each > 0 ? each : SAMPLE_S);
	int own = max > TIMES ? TIMES : max > 1 ? (int)max : 1, all[YK_MAX_RANKS];
	const int e = yoke_group_exchange(world, &own, sizeof own, all);
	*times = all[0];
	return e;
}

// Measures sample k of a method. Samples with k < 0 warm up and determine the number of operations
// per sample.
static int sample(struct rank_state *m, int way, int k)
{
	struct way *w = &m->b->way[way];
	// no rank starts before the setting has reached all ranks
	int e = yoke_group_barrier(m->world);
	if (e == 0)
		e = yoke_setting_set("dist.algorithm", w->algorithm);
	if (e == 0)
		e = yoke_group_barrier(m->world);
	const double began = yk_seconds();
	for (int i = 0; i < m->times[way] && e == 0; i++)
		e = w->one(m, way);
	const double each = (yk_seconds() - began) / m->times[way];
	if (k >= 0 && yoke_group_rank(m->world) == 0)
		w->sample[k] = each;
	return k < 0 && e == 0 ? set_repetitions(m->world, each, &m->times[way]) : e;
}

// Measures all methods in turn, so that a temporary slowdown of the machine affects them equally.
static int measure_ways(yoke_group *world, void *arg)
{
	struct bench *b = arg;
	const int r = yoke_group_rank(world);
	struct rank_state m = { .b = b,
				.world = world,
				.in = calloc((size_t)b->n, sizeof(float)),
				.out = calloc((size_t)b->n, sizeof(float)),
				.x = yoke_variable("x", yoke_f32, 1, &b->n) };
	b->in[r] = m.in;
	b->out[r] = m.out;
	for (int i = 0; i < b->ways; i++) {
		m.times[i] = WARM;
		m.task[i] = (struct yk_task){ .group = world,
					      .what = YK_DO_ALL_REDUCE,
					      .kind = YOKE_REDUCE_SUM,
					      .dtype = yoke_f32,
					      .tensors = 1,
					      .count = &b->n };
		yk_task_name(&m.task[i], NULL);
	}
	int e = !m.x          ? yoke_error_code() :
		m.in && m.out ? 0 :
				yk_fail(YOKE_ENOMEM,
					"out of memory for two arrays of %lld elements per rank",
					(long long)b->n);
	const int ways = on_host() ? b->ways - COPIES : b->ways;
	for (int k = -WARM; k < SAMPLES && e == 0; k++)
		for (int i = 0; i < ways && e == 0; i++)
			e = sample(&m, i, k);
	if (e == 0)
		e = yoke_group_barrier(world); // no rank reads these any more
	for (int i = 0; i < b->ways; i++)
		yk_task_fini(&m.task[i]);
	yoke_free(m.x);
	free(m.in);
	free(m.out);
	return e;
}

// ---- rows ----

// hand: time of the hand-written loop, the reference of the ratio; 0: none.
static void row(struct bench *b, const char *name, double *samples, double hand)
{
	double spread, median = yk_median(SAMPLES, samples, &spread);
	const double bytes = (double)b->n * sizeof(float), algbw = bytes / median,
		     busbw = algbw * 2 * (b->ranks - 1) / b->ranks;
	char ratio[24] = "";
	if (hand > 0)
		snprintf(ratio, sizeof ratio, "%8.2f", hand / median);
	printf("%12.0f  %-9s %12.2f us %9.3f GB/s %9.3f GB/s %s\n", bytes, name, 1e6 * median,
	       1e-9 * algbw, 1e-9 * busbw, ratio);
	json_array_append_new(b->results,
			      json_pack("{s:I, s:s, s:f, s:f, s:f, s:f}", "bytes",
					(json_int_t)bytes, "algorithm", name, "median_s", median,
					"spread_s", spread, "algbw", algbw, "busbw", busbw));
}

static void add_way(struct bench *b, const char *name, const char *algorithm,
		    int (*one)(struct rank_state *, int))
{
	b->way[b->ways++] = (struct way){ .name = name, .algorithm = algorithm, .one = one };
}

// Measures one size with every available method.
static int measure(struct bench *b, uint64_t bytes)
{
	double hand = 0, spread;
	b->n = (int64_t)(bytes / sizeof(float));
	b->ways = 0;
	atomic_init(&b->arrived, 0);
	if (!b->processes)
		add_way(b, "by hand", "", hand_written);
	for (int how = 0; how < YK_BY_SHARED; how++) {
		const struct yk_schedule_request w = { .what = YK_DO_ALL_REDUCE,
						       .how = (uint8_t)how,
						       .ranks = (uint32_t)b->ranks,
						       .node = b->ranks > 2 ? 2 :
							       (uint32_t)b->ranks };
		if (yk_schedule_exists(&w))
			add_way(b, yk_algorithm_name[how], yk_algorithm_name[how], direct_call);
	}
	add_way(b, "auto", "", direct_call);
	add_way(b, "in a plan", "", in_plan);
	add_way(b, "down", "", down); // copies to the host, if the device is not the CPU
	add_way(b, "up", "", up);
	const int e = b->world ? measure_ways(b->world, b) :
				 yoke_group_run(b->ranks, NULL, measure_ways, b);
	yoke_setting_set("dist.algorithm", "");
	if (e < 0 || (b->world && yoke_group_rank(b->world)))
		return e;
	for (int i = 0; i < b->ways && b->way[i].sample[0] > 0; i++) {
		row(b, b->way[i].name, b->way[i].sample, hand);
		if (b->way[i].one == hand_written)
			hand = yk_median(SAMPLES, b->way[i].sample, &spread);
	}
	return 0;
}

// ---- the command ----

// Parses e.g. "1024,1048576".
static int parse_sizes(struct bench *b, const char *text)
{
	char one[24];
	for (b->sizes = 0; b->sizes < SIZES; text++) {
		const size_t n = strcspn(text, ",");
		if (n >= sizeof one)
			return -1;
		memcpy(one, text, n);
		one[n] = '\0';
		uint64_t *to = &b->bytes[b->sizes++];
		if (yk_option_number(one, to) < 0 || *to < MIN_SIZE || *to > LIMIT ||
		    *to % sizeof(float))
			return -1;
		text += n;
		if (!*text)
			return 0;
	}
	return -1;
}

// Sizes from MIN_SIZE by factors of GROW up to `max`; LIMIT itself is included if `max` allows.
static void usual_sizes(struct bench *b, uint64_t max)
{
	b->sizes = 0;
	for (uint64_t bytes = MIN_SIZE; bytes <= max;
	     bytes = bytes * GROW > LIMIT && bytes < LIMIT ? LIMIT : bytes * GROW)
		b->bytes[b->sizes++] = bytes;
}

static int parse(struct bench *b, int argc, char **argv)
{
	usual_sizes(b, LIMIT);
	for (int i = 1; i < argc; i++) {
		uint64_t n;
		if (!strcmp(argv[i], "--json")) {
			b->json = true;
		} else if (!strncmp(argv[i], "ranks=", 6)) {
			if (yk_option_number(argv[i] + 6, &n) < 0 || n < 2 || n > YK_MAX_RANKS)
				return yk_usage("bench ranks",
						"'%s': must be a number from 2 to %d", argv[i],
						YK_MAX_RANKS);
			b->ranks = (int)n;
		} else if (!strncmp(argv[i], "max=", 4)) {
			if (yk_option_number(argv[i] + 4, &n) < 0 || n < MIN_SIZE || n > LIMIT)
				return yk_usage("bench ranks",
						"'%s': must be a number of bytes from %d to %llu",
						argv[i], MIN_SIZE, (unsigned long long)LIMIT);
			usual_sizes(b, n);
		} else if (!strncmp(argv[i], "bytes=", 6)) {
			if (parse_sizes(b, argv[i] + 6) < 0)
				return yk_usage("bench ranks",
						"'%s': must be a list of byte counts from %d to "
						"%llu, multiples of %zu, with at most %d entries",
						argv[i], MIN_SIZE, (unsigned long long)LIMIT,
						sizeof(float), SIZES);
		} else if (!strcmp(argv[i], "spawn=process") || !strcmp(argv[i], "spawn=thread")) {
			b->processes = argv[i][6] == 'p';
		} else {
			return yk_usage("bench ranks",
					"unknown argument '%s'; the arguments are ranks=, spawn=, "
					"max=, bytes= and --json",
					argv[i]);
		}
	}
	return YK_DONE;
}

// Measures the table on all ranks; rank 0 prints it.
static int table(struct bench *b)
{
	const bool first = !b->world || yoke_group_rank(b->world) == 0;
	FILE *json = first && b->json ? yk_json_only() : NULL;
	int e = first && b->json && !json ? YOKE_EIO : 0;
	if (first)
		printf("all_reduce sum f32, %d ranks, %s\n%12s  %-9s %15s %14s %14s %s\n", b->ranks,
		       b->processes ? "processes" : "threads", "bytes", "by", "time", "algbw",
		       "busbw", b->processes ? "" : "vs by hand");
	for (int i = 0; e == 0 && i < b->sizes; i++)
		e = measure(b, b->bytes[i]);
	if (e == 0 && json)
		e = yk_json_end(json, json_pack("{s:s, s:i, s:O}", "version", yoke_version(),
						"ranks", b->ranks, "results", b->results));
	return e;
}

static int member(yoke_group *world, void *arg)
{
	struct bench *b = arg;
	b->world = world;
	b->ranks = yoke_group_size(world);
	b->processes = true;
	return table(b);
}

// Runs as one of the processes that a launcher started as ranks.
static int as_process(struct bench *b, uint32_t started)
{
	const int e = yk_ranks_divide_cpu(started);
	return e ? e : yk_process_run(NULL, member, b);
}

int yk_bench_ranks(int argc, char **argv)
{
	struct bench b = { .ranks = 2 };
	char *words[12] = { (char *)(uintptr_t)yk_program(), (char *)(uintptr_t)"bench" };
	uint32_t rank, started;
	int status = parse(&b, argc, argv), e = 0;
	if (status != YK_DONE)
		return status;
	const int place = yk_process_rank(&rank, &started);
	if (place < 0)
		return yk_failed("bench ranks");
	if (!place && b.processes) {
		for (int i = 0; i < argc && i < 9; i++)
			words[i + 2] = argv[i];
		return yoke_group_spawn(b.ranks, words) < 0 ? yk_failed("bench ranks") : YK_DONE;
	}
	if (!(b.results = json_array()))
		e = yk_fail(YOKE_ENOMEM, "out of memory for the results");
	if (e == 0 && place) {
		e = as_process(&b, started);
		json_decref(b.results);
		return e == 0              ? YK_DONE :
		       yk_process_failed() ? YK_FAILED :
					     yk_failed("bench ranks");
	}
	if (e == 0)
		e = yk_ranks_divide_cpu(b.ranks);
	if (e == 0)
		e = table(&b);
	json_decref(b.results);
	return e < 0 ? yk_failed("bench ranks") : status;
}
