// SPDX-License-Identifier: Apache-2.0
// Measures one step of each optimizer over many parameters, beside a plain loop over as many
// arrays by the same team. Bytes: the minimum traffic of a step, where each pass over the
// parameters reads its inputs once and updates its outputs in place once. Every round runs the
// loop and then the step; the figures are medians of the rounds, and the ratio of the fastest
// times, which other load on the machine affects least.
//
//	bench/optim [millions of parameters, 100] [substring of a row's name, all] [rounds, 8]
//
// YOKE_CPU_ISA and YOKE_THREADS apply; with YOKE_BACKEND the loop still runs on the host.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../backends/cpu/host/frame.h"
#include "rounds.h"
#include "yoke-optim.h"

#if defined __SSE2__
#include <immintrin.h>
#endif

enum { TENSORS = 200, WARM = 2, ARRAYS = 5, PASSES = 3, PIECE = 1 << 14, LARGE = 2 << 20 };

// Gap between arrays, so that equal indices are not equal modulo a page, which slows any loop.
enum { STAGGER = 1088 };

static const double enough = 0.90;

// One pass over all parameters: numbers of arrays that it only reads, updates in place, and only
// writes.
struct pass {
	int read, update, write;
};

static const struct row {
	const char *name, *kind, *settings;
	struct pass pass[PASSES];
} rows[] = {
	{ "sgd", "sgd", "", { { 1, 1, 0 } } },
	{ "sgd momentum", "sgd", "momentum=0.9", { { 1, 2, 0 } } },
	{ "sgd nesterov", "sgd", "momentum=0.9 nesterov=1", { { 1, 2, 0 } } },
	{ "heavy_ball", "heavy_ball", "", { { 1, 2, 0 } } },
	{ "accelerated", "accelerated", "restart=none q=0.01", { { 1, 2, 0 } } },
	{ "accelerated gradient", "accelerated", "restart=gradient", { { 3, 0, 0 }, { 1, 2, 0 } } },
	{ "adam", "adam", "", { { 1, 3, 0 } } },
	{ "adam amsgrad", "adam", "amsgrad=1", { { 1, 4, 0 } } },
	{ "adamw", "adamw", "", { { 1, 3, 0 } } },
	{ "adamw amsgrad", "adamw", "amsgrad=1", { { 1, 4, 0 } } },
	{ "adamw clip", "adamw", "clip=1", { { 1, 0, 0 }, { 1, 3, 0 } } },
	{ "lamb", "lamb", "", { { 2, 2, 1 }, { 2, 0, 0 }, { 1, 1, 0 } } },
	{ "rmsprop", "rmsprop", "", { { 1, 2, 0 } } },
	{ "rmsprop momentum", "rmsprop", "momentum=0.9", { { 1, 3, 0 } } },
	{ "rmsprop nesterov", "rmsprop", "momentum=0.9 nesterov=1", { { 1, 3, 0 } } },
	{ "rmsprop centered", "rmsprop", "centered=1", { { 1, 3, 0 } } },
	{ "rmsprop all", "rmsprop", "centered=1 momentum=0.9", { { 1, 4, 0 } } },
	{ "adagrad", "adagrad", "", { { 1, 2, 0 } } },
	{ "adagrad post", "adagrad", "precondition=post", { { 2, 2, 0 } } },
	{ "adagrad decayed", "adagrad", "window=8 window_by=decayed", { { 1, 2, 0 } } },
	{ "adagrad window", "adagrad", "window=4 window_by=sum", { { 1, 3, 0 } } },
	{ "adadelta", "adadelta", "", { { 1, 3, 0 } } },
	{ "nadam", "nadam", "", { { 1, 3, 0 } } },
	{ "radam", "radam", "", { { 1, 3, 0 } } },
	{ "adamax", "adamax", "", { { 1, 3, 0 } } },
	{ "rprop", "rprop", "", { { 1, 3, 0 } } },
	{ "asgd", "asgd", "", { { 1, 2, 0 } } },
};

static float *array[ARRAYS];
static int64_t count; // parameters
static int rounds = 8;

// ---- the limit ----

typedef float vec4 __attribute__((vector_size(16)));

// Streaming store where the processor has one: a line is not read before it is written.
static void stream(vec4 *to, vec4 v)
{
#if defined __SSE2__
	_mm_stream_ps((float *)to, (__m128)v);
#else
	*to = v;
#endif
}

// The first arrays are updated in place, the following ones are read, the last ones are written.
#define LOOP(read, update, write) \
	static void loop_##read##_##update##_##write(void *unused, int64_t piece) \
	{ \
		vec4 last = { 0 }; \
		(void)unused; \
		for (int64_t i = piece * PIECE; i < (piece + 1) * PIECE && i < count; i += 16) { \
			vec4 sum[4] = { { 0 } }; \
			_Pragma("GCC unroll 4") for (int a = (update); a < (read) + (update); a++) \
				_Pragma("GCC unroll 4") for (int k = 0; k < 4; k++) sum[k] += \
				((const vec4 *)(array[a] + i))[k]; \
			_Pragma("GCC unroll 4") for (int a = 0; a < (update); a++) \
				_Pragma("GCC unroll 4") for (int k = 0; k < 4; k++) sum[k] = \
				((vec4 *)(array[a] + i))[k] = ((vec4 *)(array[a] + i))[k] * 0.9f + \
							      sum[k]; \
			for (int k = 0; k < 4 * (write); k++) \
				stream((vec4 *)(array[ARRAYS - 1] + i) + k, sum[k]); \
			last += sum[0] + sum[1] + sum[2] + sum[3]; \
		} \
		__asm__ volatile("" : : "x"(last)); /* counts as used */ \
	}
#define LOOPS(X) \
	X(1, 0, 0) X(2, 0, 0) X(3, 0, 0) X(1, 1, 0) X(1, 2, 0) X(1, 3, 0) X(1, 4, 0) \
	X(2, 2, 0) X(2, 2, 1)
LOOPS(LOOP)

static const struct {
	struct pass pass;
	void (*run)(void *, int64_t);
} loops[] = {
#define ROW(read, update, write) { { read, update, write }, loop_##read##_##update##_##write },
	LOOPS(ROW)
#undef ROW
};

static void limit(const struct row *r)
{
	for (int p = 0; p < PASSES; p++)
		for (size_t i = 0; i < sizeof loops / sizeof *loops; i++)
			if (!memcmp(&loops[i].pass, &r->pass[p], sizeof r->pass[p]))
				yk_team_run((count + PIECE - 1) / PIECE, loops[i].run, NULL);
}

// Allocated on huge pages, as the backend's segments are.
static bool arrays(void)
{
	const size_t one = (size_t)count * sizeof(float) + STAGGER;
	const size_t bytes = (ARRAYS * one / LARGE + 1) * LARGE;
	char *base = aligned_alloc(LARGE, bytes);
	if (!base)
		return false;
#ifdef MADV_HUGEPAGE
	madvise(base, bytes, MADV_HUGEPAGE);
#endif
	memset(base, 0, bytes);
	for (int k = 0; k < ARRAYS; k++)
		array[k] = (float *)(base + (size_t)k * one);
	return true;
}

// ---- steps ----

struct run {
	yoke_optim *o;
	yoke_tensor *p[TENSORS], *g[TENSORS], *P[TENSORS]; // P: factor of AdaGrad's steps
};

// Small random numbers.
static yoke_tensor *variable(int64_t n)
{
	yoke_tensor *x = yoke_variable("x", yoke_f32, 1, &n);
	yoke_scope *s = yoke_scope_begin("fill");
	yoke_assign(x, yoke_sub(yoke_uniform(yoke_f32, 1, &n), yoke_const(0.5)));
	yoke_eval(0, NULL);
	yoke_scope_end(s);
	return x;
}

static int run_new(struct run *r, const struct row *row)
{
	static char name[TENSORS][8];
	const char *names[TENSORS];

	for (int i = 0; i < TENSORS; i++) {
		r->p[i] = variable(count / TENSORS);
		r->g[i] = variable(count / TENSORS);
		r->P[i] = strstr(row->settings, "precondition") ? variable(count / TENSORS) : NULL;
		snprintf(name[i], sizeof name[i], "p%d", i);
		names[i] = name[i];
	}
	r->o = yoke_optim_new(row->kind, row->settings);
	return r->o ? yoke_optim_add(r->o, TENSORS, r->p, names, NULL) : yoke_error_code();
}

static void run_free(struct run *r)
{
	yoke_optim_free(r->o);
	for (int i = 0; i < TENSORS; i++) {
		yoke_free(r->p[i]);
		yoke_free(r->g[i]);
		yoke_free(r->P[i]);
	}
}

static int step(struct run *r)
{
	const struct yoke_step with = { .size = sizeof with, .scale = YOKE_NONE, .skip = YOKE_NONE,
					.precondition = r->P[0] ? r->P : NULL };
	yoke_scope *s = yoke_scope_begin("step");
	int err = yoke_optim_step(r->o, TENSORS, r->g, &with);
	if (!err)
		err = yoke_eval(0, NULL);
	if (!err)
		err = yoke_sync();
	const int ended = yoke_scope_end(s);
	return err ? err : ended;
}

static int measure(const struct row *row)
{
	static double loop[MAX_ROUNDS], took[MAX_ROUNDS], ratio[MAX_ROUNDS];
	double bytes = 0;
	struct run r = { 0 };
	int err = run_new(&r, row);

	for (int i = -WARM; i < rounds && !err; i++) {
		double t[3] = { yk_seconds() };
		limit(row);
		t[1] = yk_seconds();
		err = step(&r);
		t[2] = yk_seconds();
		if (i >= 0)
			loop[i] = t[1] - t[0], took[i] = t[2] - t[1], ratio[i] = loop[i] / took[i];
	}
	run_free(&r);
	if (err)
		return err;
	for (int p = 0; p < PASSES; p++)
		bytes += 4.0 * (row->pass[p].read + 2 * row->pass[p].update + row->pass[p].write);
	const double fraction = median(ratio, rounds), seconds = median(took, rounds);
	double *const times[] = { loop, took, ratio };
	for (int k = 0; k < 3; k++)
		qsort(times[k], (size_t)rounds, sizeof *times[k], by_value);
	printf("%-21s %3.0f bytes %8.1f ms, fastest %8.1f %7.2f GB/s  loop %7.2f  %5.2f of it %s  "
	       "%.2f .. %.2f, of fastest %.2f\n", row->name, bytes, seconds * 1e3, took[0] * 1e3,
	       bytes * (double)count / seconds * 1e-9,
	       bytes * (double)count / median(loop, rounds) * 1e-9, fraction,
	       fraction < enough ? "LOW" : "   ", ratio[0], ratio[rounds - 1], loop[0] / took[0]);
	return fflush(stdout);
}

int main(int argc, char **argv)
{
	const double millions = argc > 1 ? atof(argv[1]) : 100;

	rounds = argc > 3 ? atoi(argv[3]) : rounds;
	if (argc > 4 || rounds < 1 || rounds > MAX_ROUNDS || !(millions > 0) || millions > 1e5)
		return fprintf(stderr,
			       "usage: optim [millions of parameters] [part of a row's name] [rounds]\n"),
		       2;
	count = (int64_t)(millions * 1e6) / (TENSORS * 16) * (TENSORS * 16);
	if (count < 1 || !arrays())
		return fprintf(stderr, "optim: no memory, or too few parameters\n"), 1;
	printf("%lld parameters in %d tensors, %d threads, median of %d\n", (long long)count,
	       TENSORS, yk_team_size(), rounds);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if ((argc < 3 || strstr(rows[i].name, argv[2])) && measure(&rows[i]))
			return fprintf(stderr, "optim: %s: %s\n", rows[i].name, yoke_error()), 1;
	return 0;
}
