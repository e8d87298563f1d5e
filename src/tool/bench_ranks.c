// SPDX-License-Identifier: Apache-2.0
// yoke bench ranks: all_reduce of f32 among ranks, by size and algorithm, by itself; as an operation that is recorded,
// evaluated and waited for ("in a plan"); beside a loop over the same arrays that is written by hand, where ranks are
// threads, and MPI's own among processes where there is one.  Under mpirun it is among what that started.
// Counted: algbw, bytes of one rank's operand over the time; busbw, what each rank has to send at least, 2 (N - 1) / N
// of them.  The time is rank 0's.
#include "config.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "dist/carrier.h"
#include "dist/process.h"
#include "dist/ranks.h"
#include "tool/bench.h"
#include "tool/tool.h"
#include "train/trial.h"

enum { SAMPLES = 7, WARM = 2, LEAST = 8, GROW = 8, TIMES = 1000 };
#define SAMPLE_S 0.02
#define MOST ((uint64_t)256 << 20)

struct bench {
	int ranks;
	uint64_t most;
	const char *file; // JSON goes here; NULL: nowhere
	json_t *results;
	int64_t n;        // elements of the operand at hand
	int times;        // operations of a sample by hand, as rank 0 found
	bool processes;   // ranks are
	yoke_group *world; // .. and this is one of them
	double sample[SAMPLES];
	float *in[YK_MOST_RANKS], *out[YK_MOST_RANKS]; // by hand
	_Atomic uint64_t came;
	bool peer; // it is a rank under mpirun, and measures MPI's own
	struct yk_bench_peer mpi[YK_MPIS];
};

// ---- what is timed ----

static int all_reduce(void *x, yoke_group *world)
{
	yoke_scope *s = yoke_scope_begin("bench");
	yoke_tensor *y = yoke_all_reduce(world, YOKE_REDUCE_SUM, x);
	int e = y ? yoke_eval(1, &y) : yoke_error_code();
	if (e == 0)
		e = yoke_sync();
	const int ended = yoke_scope_end(s);
	return e < 0 ? e : ended;
}

// The same times on all ranks, of operations that take rank 0 so long.
static int settle(yoke_group *world, double each, int *times)
{
	const double most = SAMPLE_S / (each > 0 ? each : SAMPLE_S);
	int mine = most > TIMES ? TIMES : most > 1 ? (int)most : 1, all[YK_MOST_RANKS];
	const int e = yoke_group_exchange(world, &mine, sizeof mine, all);
	*times = all[0];
	return e;
}

// Operations by `one`, into b->sample.
static int sample(struct bench *b, yoke_group *world, int (*one)(void *, yoke_group *), void *arg)
{
	int e = 0, times = WARM;
	for (int k = -WARM; k < SAMPLES && e == 0; k++) {
		e = yoke_group_barrier(world);
		const double began = yk_seconds();
		for (int i = 0; i < times && e == 0; i++)
			e = one(arg, world);
		const double each = (yk_seconds() - began) / times;
		if (k >= 0 && yoke_group_rank(world) == 0)
			b->sample[k] = each;
		else if (k < 0 && e == 0)
			e = settle(world, each, &times);
	}
	return e;
}

static int in_plan(yoke_group *world, void *arg)
{
	struct bench *b = arg;
	yoke_tensor *x = yoke_variable("x", yoke_f32, 1, &b->n);
	const int e = x ? sample(b, world, all_reduce, x) : yoke_error_code();
	yoke_free(x);
	return e;
}

struct itself {
	struct yk_task task;
	float *in, *out;
};

static int do_itself(void *arg, yoke_group *world)
{
	struct itself *i = arg;
	(void)world;
	return yk_task_do(&i->task, i->in, i->out);
}

static int by_itself(yoke_group *world, void *arg)
{
	struct bench *b = arg;
	struct itself i = { .task = { .group = world, .what = YK_DO_ALL_REDUCE, .kind = YOKE_REDUCE_SUM, .dtype = yoke_f32,
				      .tensors = 1, .count = &b->n },
			    .in = calloc((size_t)b->n, sizeof(float)), .out = calloc((size_t)b->n, sizeof(float)) };
	yk_task_name(&i.task, NULL);
	const int e = i.in && i.out ? sample(b, world, do_itself, &i) :
				      yk_fail(YOKE_ENOMEM, "no memory for two arrays of %lld elements a rank", (long long)b->n);
	yk_task_fini(&i.task);
	free(i.in);
	free(i.out);
	return e;
}

// Behind sample k, of so many operations; those before 0 warm up, and say how many there will be.
static void note(struct bench *b, int k, double took, int times)
{
	const double each = took / times, most = SAMPLE_S / (each > 0 ? each : SAMPLE_S);
	if (k >= 0)
		b->sample[k] = each;
	else
		b->times = most > TIMES ? TIMES : most > 1 ? (int)most : 1;
}

// All ranks have come so often.
static void meet(struct bench *b, uint64_t *often)
{
	atomic_fetch_add(&b->came, 1);
	++*often;
	while (atomic_load(&b->came) < *often * (uint64_t)b->ranks)
		sched_yield();
}

static int by_hand(yoke_group *world, void *arg)
{
	struct bench *b = arg;
	const int r = yoke_group_rank(world);
	const int64_t from = b->n * r / b->ranks, to = b->n * (r + 1) / b->ranks;
	uint64_t often = 0;
	for (int k = -WARM; k < SAMPLES; k++) {
		meet(b, &often);
		const int times = k < 0 ? WARM : b->times;
		const double began = yk_seconds();
		for (int done = 0; done < times; done++) {
			meet(b, &often);
			for (int64_t i = from; i < to; i++) {
				float sum = b->in[0][i];
				for (int other = 1; other < b->ranks; other++)
					sum += b->in[other][i];
				for (int other = 0; other < b->ranks; other++)
					b->out[other][i] = sum;
			}
			meet(b, &often);
		}
		if (r == 0)
			note(b, k, yk_seconds() - began, times);
	}
	return 0;
}

// ---- rows ----

static double row(struct bench *b, const char *name, double hand)
{
	if (b->world && yoke_group_rank(b->world))
		return 0;
	double spread, median = yk_median(SAMPLES, b->sample, &spread);
	const double bytes = (double)b->n * sizeof(float), algbw = bytes / median,
		     busbw = algbw * 2 * (b->ranks - 1) / b->ranks;
	char ratio[24] = "";
	if (hand > 0)
		snprintf(ratio, sizeof ratio, "%8.2f", hand / median);
	printf("%12.0f  %-9s %12.2f us %9.3f GB/s %9.3f GB/s %s\n", bytes, name, 1e6 * median, 1e-9 * algbw, 1e-9 * busbw,
	       ratio);
	json_array_append_new(b->results, json_pack("{s:I, s:s, s:f, s:f, s:f, s:f}", "bytes", (json_int_t)bytes,
						    "algorithm", name, "median_s", median, "spread_s", spread,
						    "algbw", algbw, "busbw", busbw));
	return median;
}

// Rows of MPI's own; 0 bytes: all.
static void rows_mpi(struct bench *b, uint64_t bytes, double hand)
{
	for (int i = 0; i < YK_MPIS; i++)
		for (int k = 0; k < b->mpi[i].n; k++) {
			if (bytes && b->mpi[i].bytes[k] != bytes)
				continue;
			b->n = (int64_t)(b->mpi[i].bytes[k] / sizeof(float));
			for (int s = 0; s < SAMPLES; s++)
				b->sample[s] = b->mpi[i].seconds[k];
			row(b, yk_mpi_names[i], hand);
		}
}

static int measure_hand(struct bench *b, double *to)
{
	int e = 0;
	atomic_init(&b->came, 0);
	for (int r = 0; r < b->ranks; r++) {
		b->in[r] = calloc((size_t)b->n, sizeof(float));
		b->out[r] = calloc((size_t)b->n, sizeof(float));
		if (!b->in[r] || !b->out[r])
			e = yk_fail(YOKE_ENOMEM, "no memory for two arrays of %lld elements a rank", (long long)b->n);
	}
	if (e == 0)
		e = yoke_group_run(b->ranks, NULL, by_hand, b);
	for (int r = 0; r < b->ranks; r++) {
		free(b->in[r]);
		free(b->out[r]);
	}
	if (e == 0)
		*to = row(b, "by hand", 0);
	return e;
}

// All ranks do it: threads are started for it.
static int by_all(struct bench *b, int (*fn)(yoke_group *, void *))
{
	return b->world ? fn(b->world, b) : yoke_group_run(b->ranks, NULL, fn, b);
}

static int by_algorithm(struct bench *b, const char *name, double hand)
{
	int e = yoke_setting_set("dist.algorithm", name);
	if (e == 0)
		e = by_all(b, by_itself);
	if (e == 0)
		row(b, *name ? name : "auto", hand);
	yoke_setting_set("dist.algorithm", "");
	return e;
}

// One size, every way there is for so many ranks.
static int measure(struct bench *b, uint64_t bytes)
{
	double hand = 0;
	b->n = (int64_t)(bytes / sizeof(float));
	int e = b->processes ? 0 : measure_hand(b, &hand);
	for (int how = 0; how < YK_BY_SHARED && e == 0; how++) {
		const struct yk_schedule_want w = { .what = YK_DO_ALL_REDUCE, .how = (uint8_t)how, .ranks = (uint32_t)b->ranks,
						    .node = b->ranks > 2 ? 2 : (uint32_t)b->ranks };
		if (yk_schedule_exists(&w))
			e = by_algorithm(b, yk_algorithm_name[how], hand);
	}
	if (e == 0)
		e = by_algorithm(b, "", hand);
	if (e == 0)
		e = by_all(b, in_plan);
	if (e == 0)
		row(b, "in a plan", hand);
	if (e == 0)
		rows_mpi(b, bytes, hand);
	return e;
}

// ---- the command ----

// Those that there are; one that fails is said, and left out.
static void measure_mpi(struct bench *b)
{
	for (int i = 0; i < YK_MPIS; i++)
		if (yk_bench_mpi(yk_mpi_names[i], b->ranks, b->most, &b->mpi[i]) < 0) {
			fprintf(stderr, "yoke bench: %s\n", yoke_error());
			yoke_error_clear();
		}
}

static int parse(struct bench *b, int argc, char **argv)
{
	const char *value;
	for (int i = 1; i < argc; i++) {
		uint64_t n;
		if ((value = yk_option("--json", argc, argv, &i))) {
			if (!*value)
				return yk_usage("bench", "--json wants a file");
			b->file = value;
		} else if (!strcmp(argv[i], "--peer")) {
			b->peer = true;
		} else if (!strncmp(argv[i], "ranks=", 6)) {
			if (yk_option_number(argv[i] + 6, &n) < 0 || n < 2 || n > YK_MOST_RANKS)
				return yk_usage("bench", "'%s': it is a number from 2 to %d", argv[i], YK_MOST_RANKS);
			b->ranks = (int)n;
		} else if (!strncmp(argv[i], "most=", 5)) {
			if (yk_option_number(argv[i] + 5, &n) < 0 || n < LEAST || n > MOST)
				return yk_usage("bench", "'%s': it is a number of bytes from %d to %llu", argv[i], LEAST,
						(unsigned long long)MOST);
			b->most = n;
		} else if (!strcmp(argv[i], "spawn=process") || !strcmp(argv[i], "spawn=thread")) {
			b->processes = argv[i][6] == 'p';
		} else {
			return yk_usage("bench", "'%s': of ranks there are ranks=, spawn=, most= and --json", argv[i]);
		}
	}
	return YK_DONE;
}

// The table, by all ranks; rank 0 prints it.
static int table(struct bench *b)
{
	int e = 0;
	if (!b->world || yoke_group_rank(b->world) == 0)
		printf("all_reduce sum f32, %d ranks, %s\n%12s  %-9s %15s %14s %14s %s\n", b->ranks,
		       b->processes ? "processes" : "threads", "bytes", "by", "time", "algbw", "busbw",
		       b->processes ? "" : "of by hand");
	for (uint64_t bytes = LEAST; e == 0 && bytes <= b->most; bytes = bytes * GROW > MOST && bytes < MOST ? MOST : bytes * GROW)
		e = measure(b, bytes);
	if (e == 0 && b->file && (!b->world || yoke_group_rank(b->world) == 0)) {
		json_t *o = json_pack("{s:s, s:i, s:O}", "version", yoke_version(), "ranks", b->ranks, "results", b->results);
		e = o ? yk_json_save(b->file, o) : yk_fail(YOKE_ENOMEM, "out of memory for the results");
		json_decref(o);
	}
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

static int divide(uint32_t ranks)
{
	char n[24];
	snprintf(n, sizeof n, "%u", ranks);
	return getenv("YOKE_CPU_DEVICES") ? 0 : yoke_setting_set("cpu.devices", n);
}

// As one of the processes that were started as ranks.
static int as_process(struct bench *b, uint32_t started)
{
	uint32_t index, share = started;
	int e = yk_process_launched() ? yk_process_cpu(&index, &share) : 0;
	if (e == 0)
		e = divide(share);
	return e ? e : yk_process_run(NULL, member, b);
}

int yk_bench_ranks(int argc, char **argv)
{
	struct bench b = { .ranks = 2, .most = MOST };
	char *words[12] = { (char *)(uintptr_t)"/proc/self/exe", (char *)(uintptr_t)"bench" };
	uint32_t rank, started;
	int status = parse(&b, argc, argv), e = 0;
	if (status != YK_DONE)
		return status;
	if (b.peer)
		return yk_bench_mpi_rank(LEAST, b.most, GROW) < 0 ? yk_failed("bench") : YK_DONE;
	const int place = yk_process_place(&rank, &started);
	if (place < 0)
		return yk_failed("bench");
	if (!place && b.processes) {
		for (int i = 0; i < argc && i < 9; i++)
			words[i + 2] = argv[i];
		measure_mpi(&b);
		rows_mpi(&b, 0, 0);
		return yoke_group_spawn(b.ranks, words) < 0 ? yk_failed("bench") : YK_DONE;
	}
	if (!(b.results = json_array()))
		e = yk_fail(YOKE_ENOMEM, "out of memory for the results");
	if (e == 0 && place) {
		e = as_process(&b, started);
		json_decref(b.results);
		return e == 0 ? YK_DONE : yk_process_failed() ? YK_FAILED : yk_failed("bench");
	}
	measure_mpi(&b);
	if (e == 0)
		e = divide((uint32_t)b.ranks);
	if (e == 0)
		e = table(&b);
	json_decref(b.results);
	return e < 0 ? yk_failed("bench") : status;
}
