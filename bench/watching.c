// SPDX-License-Identifier: Apache-2.0
// Measures the overhead of telemetry, records and profiling.
//
//	bench/watching steps ROUNDS KEY=VALUE ..
//		steps of a training (keys of yoke train, including data): without observation; with
//		telemetry; with telemetry 20 times as often; with that and the loss 20 times as
//		often; with a memory history; in active steps of a profile as yoke train makes it.
//		Groups of steps that take at least 0.25 s run in turn after one warm-up group; the
//		figures are medians of the rounds.  CPU time is printed beside the wall time because
//		other load on the machine affects it less.
//	bench/watching trace [events, 1000000]
//		a profile of that many tiny events, and the trace file made from it
//	bench/watching scalars [lines, 200000]
//		lines of two scalars, written to metrics.jsonl and to a TensorBoard event file
#include "config.h"

#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rounds.h"
#include "train/check.h"
#include "train/trainer.h"
#include "train/trainer_open.h"
#include "yoke-observe.h"
#include "yoke-run.h"

enum way { NOTHING, TELEMETRY, HISTORY, PROFILE, WAYS };
enum { OFTEN = 20 }; // telemetry as many times a second

static const char *const name[WAYS] = { "nothing", "telemetry", "memory history", "profile" };
static const double enough[WAYS] = { 0, 1 - OFTEN * 0.01, 0.98, 0.95 };

static const double group_seconds = 0.25;

static double processors(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// ---- steps ----

struct side { // a context with a trainer
	yoke_context *ctx;
	struct yk_trainer *trainer;
};

static int side_new(struct side *s, struct yk_config *c)
{
	if (!(s->ctx = yoke_context_new(NULL)))
		return yoke_error_code();
	yoke_use(s->ctx);
	return yk_trainer_new(c, "bench", NULL, &s->trainer);
}

static int steps(struct yk_trainer *t, int n, yoke_profile *p)
{
	struct yk_record record;
	int e = 0;
	for (int i = 0; i < n && e == 0; i++) {
		e = yk_trainer_step(t);
		if (e == 0 && p)
			e = yoke_profile_step(p);
	}
	return e == 0 ? yk_trainer_record(t, &record) : e;
}

// Seconds of a group, of the wall and of processors.
static int group(struct yk_trainer *t, enum way way, int each, double *wall, double *busy)
{
	const struct yoke_recorder_options often = { .size = sizeof often,
						     .path = "watching.jsonl",
						     .seconds = 1.0 / OFTEN };
	const struct yoke_profile_options whole = {
		.size = sizeof whole,
		.active = each + 1,
		.flags = YOKE_PROFILE_IMPLEMENTATIONS | YOKE_PROFILE_SHAPES | YOKE_PROFILE_RANGES |
			 YOKE_PROFILE_MEMORY,
	};
	yoke_recorder *r = way == TELEMETRY ? yoke_recorder_new(&often) : NULL;
	yoke_profile *p = way == PROFILE ? yoke_profile_new(&whole) : NULL;
	int e = yoke_memory_record(way == HISTORY);
	if (e < 0 || (way == TELEMETRY && !r) || (way == PROFILE && !p))
		return yoke_error_code();
	if (r) // its first sample looks at the machine
		nanosleep(&(struct timespec){ .tv_nsec = 60000000 }, NULL);
	const double began = yk_seconds(), was = processors();
	e = steps(t, each, p);
	*wall = yk_seconds() - began;
	*busy = processors() - was;
	yoke_recorder_free(r);
	yoke_profile_free(p);
	return e;
}

static int measure(struct side side[2], int rounds)
{
	static double wall[WAYS][MAX_ROUNDS], busy[WAYS][MAX_ROUNDS], by_wall[MAX_ROUNDS],
		by_busy[MAX_ROUNDS];
	double w, b = 0;
	int each = 1, e = 0;
	yoke_use(side[0].ctx);
	for (; e == 0 && b < group_seconds; each = b < group_seconds ? 2 * each : each)
		e = group(side[0].trainer, NOTHING, each, &w, &b);
	for (int r = -1; r < rounds && e == 0; r++)
		for (int k = 0; k < WAYS && e == 0; k++) { // none is always behind the same one
			const enum way way = (enum way)((k * (r & 1 ? 1 : 3) + r + WAYS) % WAYS);
			const struct side *s = &side[way == PROFILE];
			yoke_use(s->ctx);
			e = group(s->trainer, way, each, &w, &b);
			wall[way][r < 0 ? 0 : r] = w;
			busy[way][r < 0 ? 0 : r] = b;
		}
	if (e < 0)
		return e;
	const double none = median(wall[NOTHING], rounds);
	printf("%d rounds of %d steps, %.3f ms a step\n%-16s%12s%12s%8s\n", rounds, each,
	       1e3 * none / each, "", "steps/s", "processors", "want");
	for (int way = TELEMETRY; way < WAYS; way++) {
		// a round's own ratio: what disturbs the machine disturbs both
		for (int r = 0; r < rounds; r++) {
			by_wall[r] = wall[NOTHING][r] / wall[way][r];
			by_busy[r] = busy[NOTHING][r] / busy[way][r];
		}
		printf("%-16s%12.3f%12.3f%8.2f\n", name[way], median(by_wall, rounds),
		       median(by_busy, rounds), enough[way]);
	}
	return 0;
}

static int run_steps(int rounds, int argc, char **argv)
{
	struct yk_config config[2];
	struct side side[2] = { { 0 } };
	yoke_setting_set("profile.limits", "0");
	for (int i = 0; i < 2; i++) {
		int e = yk_config_init(&config[i], YK_T);
		if (e == 0)
			e = yk_config_arguments(&config[i], argc, argv);
		if (e == 0)
			e = yk_config_check(&config[i]);
		if (e == 0)
			e = yk_config_apply(&config[i]);
		if (e == 0 && i == 1)
			yoke_profile_prepare();
		if (e < 0 || (e = side_new(&side[i], &config[i])) < 0)
			return e;
	}
	int e = measure(side, rounds);
	for (int i = 0; i < 2; i++) {
		yoke_use(side[i].ctx);
		yk_trainer_free(side[i].trainer);
		yoke_use(NULL);
		yoke_context_free(side[i].ctx);
		yk_config_fini(&config[i]);
	}
	unlink("watching.jsonl");
	return e;
}

// ---- a trace ----

static double resident_peak(void)
{
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return (double)u.ru_maxrss / 1024;
}

static int run_trace(int64_t events)
{
	enum { DEEP = 500 };
	const struct yoke_profile_options o = { .size = sizeof o,
						.active = events,
						.flags = YOKE_PROFILE_SHAPES,
						.max_bytes = INT64_MAX };
	struct yoke_profile_quality q = { .size = sizeof q };
	struct stat st = { 0 };
	yoke_setting_set("profile.limits", "0");
	yoke_setting_set("fuse", "0");
	yoke_tensor *x = yoke_variable("x", yoke_f32, 1, &(int64_t){ 8 });
	const double before = resident_peak();
	yoke_profile *p = yoke_profile_new(&o);
	int e = x && p ? 0 : yoke_error_code();
	for (int64_t n = 0; n < events && e == 0; n += DEEP) {
		yoke_scope *s = yoke_scope_begin("step");
		yoke_tensor *y = x;
		for (int i = 0; i < DEEP; i++)
			y = yoke_tanh(y);
		yoke_eval(1, &y);
		e = yoke_scope_end(s);
		if (e == 0)
			e = yoke_profile_step(p);
	}
	const double kept = resident_peak() - before, began = yk_seconds(), was = processors();
	if (e == 0)
		e = yoke_profile_trace(p, "watching.json");
	const double wall = yk_seconds() - began, busy = processors() - was;
	if (e == 0 && stat("watching.json", &st) == 0 && yoke_profile_quality(p, &q) == 0)
		printf("%lld pieces: %.2f s (%.2f of processors) to write %.0f MB, %.0f MiB kept, %.0f MiB more while it is "
		       "written; %llu dropped; want 3 s and 64 MiB\n",
		       (long long)events, wall, busy, 1e-6 * (double)st.st_size, kept,
		       resident_peak() - before - kept, (unsigned long long)q.dropped);
	unlink("watching.json");
	yoke_profile_free(p);
	yoke_free(x);
	return e;
}

// ---- scalars ----

static int run_scalars(int64_t lines)
{
	const struct yoke_run_options o = { .size = sizeof o, .tensorboard = 1 };
	static const char *const names[] = { "loss", "lr" };
	yoke_run *r = yoke_run_open("watching.run", &o);
	int e = r ? 0 : yoke_error_code();
	const double began = yk_seconds(), was = processors();
	for (int64_t i = 0; i < lines && e == 0; i++)
		e = yoke_run_log(r, i, "train", 2, names, (double[]){ 1 / (1 + (double)i), 1e-3 });
	yoke_run_close(r, "done", NULL);
	const double wall = yk_seconds() - began, busy = processors() - was;
	if (e == 0)
		printf("%.0f scalars/s to both logs, %.0f a second of processors\n",
		       2 * (double)lines / wall, 2 * (double)lines / busy);
	return system("rm -rf watching.run") ? YOKE_EIO : e;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	const int64_t n = argc > 2 ? atoll(argv[2]) : 0;
	int e = YOKE_EINVAL;
	if (!strcmp(what, "steps") && argc > 3 && n > 0 && n <= MAX_ROUNDS)
		e = run_steps((int)n, argc - 3, argv + 3);
	else if (!strcmp(what, "trace") && argc <= 3 && n >= 0)
		e = run_trace(n ? n : 1000000);
	else if (!strcmp(what, "scalars") && argc <= 3 && n >= 0)
		e = run_scalars(n ? n : 200000);
	else
		return fprintf(stderr,
			       "usage: watching steps ROUNDS KEY=VALUE .. | trace [events] | scalars [lines]\n"),
		       2;
	if (e < 0)
		fprintf(stderr, "watching: %s\n", yoke_error());
	return e < 0;
}
