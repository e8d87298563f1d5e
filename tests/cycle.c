// SPDX-License-Identifier: Apache-2.0
// Tests cyclic profiling: schedules against their definition, the results of a cycle, ranges,
// counters, averages by key, memory per step and the live allocations at the peak, correctly
// nested traces; profiling changes no bit of the results.
#include "config.h"

#include <jansson.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "observe/cycle.h"
#include "observe/profile.h"
#include "observed.h"
#include "plan/planner.h"
#include "tap.h"

#ifndef HAVE_LIBDW
#define HAVE_LIBDW 0
#endif

enum { N = 16, STEPS = 10 };

static int warnings;
static char last_warning[400];

static void count_warning(int level, const char *topic, const char *line, void *arg)
{
	(void)arg;
	warnings += level <= YOKE_LOG_WARN;
	if (level <= YOKE_LOG_WARN)
		snprintf(last_warning, sizeof last_warning, "%s: %s", topic, line);
}

// ---- schedules ----

// The definition, step by step without a formula: cycles of wait, warmup and active steps after
// skip_first.
static enum yoke_profile_state walked(const struct yoke_profile_schedule *s, int64_t step)
{
	int64_t at = s->skip_first;
	if (step < at)
		return YOKE_PROFILE_OFF;
	for (int64_t cycle = 0; s->repeat == 0 || cycle < s->repeat; cycle++) {
		if (!(cycle == 0 && s->skip_first_wait))
			at += s->wait;
		if (step < at)
			return YOKE_PROFILE_OFF;
		at += s->warmup;
		if (step < at)
			return YOKE_PROFILE_WARMUP;
		at += s->active;
		if (step < at)
			return YOKE_PROFILE_ACTIVE;
	}
	return YOKE_PROFILE_OFF;
}

static void test_schedules(void)
{
	int bad = 0, n = 0;
	for (int k = 0; k < 4 * 4 * 4 * 3 * 4 * 2; k++) {
		struct yoke_profile_schedule s = { sizeof s,   k % 4,          k / 4 % 4,
						   k / 16 % 4, 1 + k / 64 % 3, k / 192 % 4,
						   k / 768 };
		for (int64_t step = 0; step < 50; step++, n++)
			if (yoke_profile_state(&s, step) != (int)walked(&s, step) && !bad++)
				diag("skip %d wait %d warmup %d active %d repeat %d, without the first wait %d: step %d",
				     (int)s.skip_first, (int)s.wait, (int)s.warmup, (int)s.active,
				     (int)s.repeat, s.skip_first_wait, (int)step);
	}
	ok(!bad, "%d steps of all schedules up to 3", n);
	struct yoke_profile_schedule s = { sizeof s, 0, 1, 1, 3, 2, 0 };
	char got[STEPS + 1] = "";
	for (int i = 0; i < STEPS; i++)
		got[i] = "-wa"[yoke_profile_state(&s, i)];
	ok(!strcmp(got, "-waaa-waaa"), "(1,1,3,2): %s", got);
	s.active = 0;
	ok(yoke_profile_state(&s, 0) == YOKE_EINVAL && strstr(yoke_error(), "active"), "%s",
	   yoke_error());
	yoke_error_clear();
	s.active = 1;
	s.wait = -1;
	ok(yoke_profile_state(&s, 0) == YOKE_EINVAL, "%s", yoke_error());
	yoke_error_clear();
	struct yoke_profile_options o = { .size = sizeof o };
	ok(!yoke_profile_new(&o) && yoke_error_code() == YOKE_EINVAL, "%s", yoke_error());
	yoke_error_clear();
}

// ---- something to watch ----

struct model {
	yoke_tensor *w, *x;
	float loss[STEPS], data[N * N];
};

static void model_new(struct model *m)
{
	float data[N * N];
	tap_state = 7;
	m->w = yoke_variable("w", yoke_f32, 2, (int64_t[]){ N, N });
	m->x = yoke_variable("x", yoke_f32, 2, (int64_t[]){ N, N });
	for (int i = 0; i < N * N; i++) {
		data[i] = (float)rnd_real(-.3, .3);
		m->data[i] = (float)rnd_real(-1, 1);
	}
	yoke_put(m->w, data, sizeof data);
	for (int i = 0; i < STEPS; i++)
		m->loss[i] = NAN;
}

static void model_free(struct model *m)
{
	yoke_free(m->w);
	yoke_free(m->x);
}

// A step with random numbers (dropout), and ranges on request.
static void model_step(struct model *m, int i, bool ranges)
{
	yoke_tensor *g;
	yoke_scope *s = yoke_scope_begin("step");
	yoke_random_set(5, i);
	yoke_put(m->x, m->data, sizeof m->data);
	if (ranges)
		yoke_range_push("forward");
	yoke_tensor *y = yoke_tanh(yoke_matmul(m->x, m->w, YOKE_TB));
	if (ranges)
		yoke_range_push("drop");
	y = yoke_mul(y, yoke_cast(yoke_lt(yoke_uniform(yoke_f32, 2, (int64_t[]){ N, N }),
					  yoke_const(.9)),
				  yoke_f32));
	if (ranges)
		yoke_range_pop();
	yoke_tensor *loss = yoke_mean(yoke_square(yoke_softmax(y, -1)), YOKE_ALL);
	if (ranges) {
		yoke_range_pop();
		yoke_range_push("backward");
	}
	yoke_grad(loss, 1, &m->w, &g);
	yoke_assign(m->w, yoke_sub(m->w, yoke_mul(g, yoke_const(1))));
	if (ranges)
		yoke_range_pop();
	yoke_read(loss, &m->loss[i], sizeof m->loss[i]);
	yoke_scope_end(s);
}

// ---- cycles ----

struct seen {
	int cycles, partial;
	bool rows_good;
	double share;
	int64_t matmuls;
};

static int on_cycle(yoke_profile *p, int64_t cycle, int partial, void *arg)
{
	struct seen *s = arg;
	struct yoke_profile_row row[64] = { { .size = sizeof *row } };
	int n = yoke_profile_rows(p, 64, row);
	s->rows_good = n > 0 && n <= 64 && cycle == s->cycles;
	s->cycles++;
	s->partial += partial;
	s->share = 0;
	for (int i = 0; i < n; i++) {
		s->share += isnan(row[i].share) ? 0 : row[i].share;
		s->matmuls += strcmp(row[i].op, "matmul") ? 0 : (int64_t)row[i].calls;
		s->rows_good &= row[i].calls > 0 && (i == 0 || !(row[i].total > row[i - 1].total));
	}
	return 0;
}

// pid is the test's: traces are in its own directory.
static json_t *trace_of(int cycle)
{
	char path[64];
	snprintf(path, sizeof path, "traces/cycle%d.json", cycle);
	return json_load_file(path, 0, NULL);
}

struct interval {
	double from, to;
};

static int by_begin(const void *a, const void *b)
{
	const struct interval *x = a, *y = b;
	return x->from != y->from ? (x->from > y->from) - (x->from < y->from) :
				    (x->to < y->to) - (x->to > y->to);
}

// Events of a lane in file order: do their begins increase, and do they nest? Microseconds.
static void check_trace(const char *backend, int cycle, double rows)
{
	static struct interval lane[256][4096];
	static int n[256];
	json_t *t = trace_of(cycle), *events = json_object_get(t, "traceEvents"), *x;
	size_t i, bad = 0, flows = 0, starts = 0, counters = 0;
	const bool apart = !strcmp(backend, "opencl");
	double sum = 0;
	memset(n, 0, sizeof n);
	json_array_foreach (events, i, x) {
		const char *ph = json_string_value(json_object_get(x, "ph"));
		int tid = (int)json_integer_value(json_object_get(x, "tid"));
		double ts = json_number_value(json_object_get(x, "ts")),
		       dur = json_number_value(json_object_get(x, "dur"));
		counters += *ph == 'C';
		starts += *ph == 's';
		flows += *ph == 'f';
		bad += (*ph == 's' || *ph == 'f') && !json_is_integer(json_object_get(x, "id"));
		if (*ph != 'X')
			continue;
		bad += ts < 0 || dur < 0 || tid < 0 || tid > 255 || n[tid] == 4096 ||
		       (n[tid] && ts < lane[tid][n[tid] - 1].from - 1e-9);
		if (tid >= 0 && tid < 256 && n[tid] < 4096)
			lane[tid][n[tid]++] = (struct interval){ ts, ts + dur };
		sum += tid < 4 ? dur : 0;
	}
	size_t overlaps = 0;
	for (int k = 0; k < 256; k++) {
		double open[64];
		int depth = 0;
		qsort(lane[k], (size_t)n[k], sizeof **lane, by_begin);
		for (int j = 0; j < n[k]; j++) {
			while (depth && open[depth - 1] <= lane[k][j].from + 1e-4)
				depth--;
			overlaps += (depth && lane[k][j].to > open[depth - 1] + 1e-4) ||
				    (k < 4 && depth);
			if (depth < 64)
				open[depth++] = lane[k][j].to;
		}
	}
	ok(t && !bad && flows == starts && counters > 0,
	   "%s: a trace in order, %zu flow arrows, %zu counters", backend, flows,
	   counters);
	// profiling moves no copy to the queue of the steps, and flow arrows lead to work that runs
	// after the host call
	ok(!apart || (n[YK_STREAM_UP] >= 5 && n[YK_STREAM_DEVICE] > 5 &&
		      (int)flows >= n[YK_STREAM_DEVICE] + n[YK_STREAM_UP]),
	   "%s: %d uploads on a separate lane, %d steps, %zu arrows", backend, n[YK_STREAM_UP],
	   n[YK_STREAM_DEVICE], flows);
	ok(!overlaps, "%s: events nest, those of queues are disjoint (%zu)", backend, overlaps);
	ok(fabs(1e-6 * sum - rows) <= 1e-3 * rows, "%s: lanes add up to the table: %.6f s of %.6f",
	   backend, 1e-6 * sum, rows);
	json_decref(t);
}

static int keep_rows(yoke_profile *p, int64_t cycle, int partial, void *arg)
{
	double *total = arg;
	struct yoke_profile_row row[64] = { { .size = sizeof *row } };
	int n = yoke_profile_rows(p, 64, row);
	(void)partial;
	total[cycle] = 0;
	for (int i = 0; i < n; i++)
		total[cycle] += isnan(row[i].total) ? 0 : row[i].total;
	return 0;
}

// Three profiles at once with all flags, and none: the same bits.
static void test_cycles(const char *backend, bool timed)
{
	static struct model alone, m;
	struct seen seen = { 0 };
	double rows[4] = { 0 };
	struct yoke_context *ctx = yoke_context_new(backend), *former = yoke_use(ctx);
	model_new(&alone);
	for (int i = 0; i < STEPS; i++)
		model_step(&alone, i, false);
	model_free(&alone);
	model_new(&m);
	struct yoke_profile_options o = { .size = sizeof o,
					  .wait = 1,
					  .warmup = 1,
					  .active = 3,
					  .repeat = 2,
					  .cycle = on_cycle,
					  .arg = &seen };
	struct yoke_profile_options all = { .size = sizeof all,
					    .active = 5,
					    .flags = 63,
					    .folder = "traces",
					    .cycle = keep_rows,
					    .arg = rows };
	yoke_profile *p = yoke_profile_new(&o), *q = yoke_profile_new(&all);
	struct yk_profile *sums = yk_profile_new(false);
	for (int i = 0; i < STEPS; i++) {
		model_step(&m, i, true);
		if (yoke_profile_step(p) < 0 || yoke_profile_step(q) < 0)
			diag("%s", yoke_error());
	}
	ok(!memcmp(m.loss, alone.loss, sizeof m.loss) && m.loss[0] > 0 && !yoke_error_code(),
	   "%s: profiling changes no bit: %g %s", backend, m.loss[0], yoke_error());
	ok(seen.cycles == 2 && !seen.partial && seen.rows_good, "%s: two cycles are reported",
	   backend);
	// forward once, backward once for w: x needs no gradient
	ok(seen.matmuls == 2 * 3 * 2, "%s: of three steps each: %d products", backend,
	   (int)seen.matmuls);
	ok(!timed || fabs(seen.share - 100) < 1e-6, "%s: shares are %.9f %%", backend, seen.share);
	yk_profile_free(sums);
	yoke_profile_free(p);
	yoke_profile_free(q);
	if (timed) {
		check_trace(backend, 0, rows[0]);
		check_trace(backend, 1, rows[1]);
	}
	ok(!ctx->observe.first && !ctx->observe.range, "%s: no profile is active at the end",
	   backend);
	model_free(&m);
	yoke_use(former);
	yoke_context_free(ctx);
	yoke_error_clear();
}

// Prefetch uploads overlap with steps, and the trace shows it: profiling serializes nothing. A
// driver with only one thread may serialize, and one with more threads does so occasionally.
static bool overlaps(double *up, double *steps)
{
	enum { SIDE = 512, DEEP = 8, LARGE = 1 << 22 };
	struct yoke_profile_options o = { .size = sizeof o, .active = 2, .folder = "traces" };
	yoke_tensor *a = yoke_variable("a", yoke_f32, 2, (int64_t[]){ SIDE, SIDE });
	yoke_tensor *b = yoke_variable("b", yoke_f32, 1, (int64_t[]){ LARGE });
	float *data = calloc(LARGE, sizeof *data), got;
	yoke_put(a, data, SIDE * SIDE * sizeof *data);
	yoke_profile *p = yoke_profile_new(&o);
	for (int i = 0; i < 2 && data; i++) {
		yoke_scope *s = yoke_scope_begin("step");
		yoke_tensor *y = a;
		for (int k = 0; k < DEEP; k++)
			y = yoke_matmul(y, a, 0);
		y = yoke_sum(y, YOKE_ALL);
		yoke_eval(1, &y);
		yoke_put(b, data, LARGE * sizeof *data);
		yoke_read(y, &got, sizeof got);
		yoke_scope_end(s);
		yoke_profile_step(p);
	}
	yoke_profile_free(p);
	json_t *t = trace_of(0), *x, *z;
	size_t i, j;
	double shared = 0;
	*up = *steps = 0;
	json_array_foreach (json_object_get(t, "traceEvents"), i, x) {
		double from = json_number_value(json_object_get(x, "ts")),
		       to = from + json_number_value(json_object_get(x, "dur"));
		const json_int_t lane = json_integer_value(json_object_get(x, "tid"));
		if (*json_string_value(json_object_get(x, "ph")) != 'X')
			continue;
		*(lane == YK_STREAM_UP ? up : steps) +=
			lane == YK_STREAM_UP || lane == YK_STREAM_DEVICE ? to - from : 0;
		json_array_foreach (json_object_get(t, "traceEvents"), j, z) {
			double other = json_number_value(json_object_get(z, "ts")),
			       end = other + json_number_value(json_object_get(z, "dur"));
			if (lane == YK_STREAM_UP &&
			    *json_string_value(json_object_get(z, "ph")) == 'X' &&
			    json_integer_value(json_object_get(z, "tid")) == YK_STREAM_DEVICE &&
			    fmin(to, end) > fmax(from, other))
				shared += fmin(to, end) - fmax(from, other);
		}
	}
	json_decref(t);
	free(data);
	yoke_free(a);
	yoke_free(b);
	return shared > 0 && !yoke_error_code();
}

static void test_overlap(const char *backend)
{
	struct yoke_context *ctx = yoke_context_new(backend), *former = yoke_use(ctx);
	double up = 0, steps = 0;
	int tries = 1;
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		skip("an upload beside steps", "there is one processor");
	} else {
		while (!overlaps(&up, &steps) && tries < 20 && !yoke_error_code())
			tries++;
		ok(tries < 20 && !yoke_error_code(),
		   "%s: an upload overlaps a kernel: %.0f us beside %.0f us, at attempt %d %s",
		   backend, up, steps, tries, yoke_error());
	}
	yoke_use(former);
	yoke_context_free(ctx);
	yoke_error_clear();
}

static void test_ends(void)
{
	struct model m;
	struct seen seen = { 0 };
	struct yoke_context *ctx = yoke_context_new("cpu"), *former = yoke_use(ctx);
	struct yoke_profile_options o = {
		.size = sizeof o, .active = 3, .cycle = on_cycle, .arg = &seen
	};
	model_new(&m);
	warnings = 0;
	yoke_profile_free(yoke_profile_new(&o));
	ok(warnings == 1 && !seen.cycles, "without a step: %s", last_warning);
	yoke_profile *p = yoke_profile_new(&o);
	for (int i = 0; i < 4; i++) {
		model_step(&m, i, false);
		yoke_profile_step(p);
	}
	model_step(&m, 4, false);
	yoke_profile_free(p);
	ok(seen.cycles == 2 && seen.partial == 1, "an unfinished cycle is partial");
	yoke_profile_free(NULL);
	model_free(&m);
	yoke_use(former);
	yoke_context_free(ctx);
}

// ---- ranges ----

static void test_ranges(const char *backend)
{
	struct model m;
	struct yoke_context *ctx = yoke_context_new(backend), *former = yoke_use(ctx);
	struct yoke_profile_options o = { .size = sizeof o,
					  .active = 100,
					  .flags = YOKE_PROFILE_RANGES };
	struct yoke_profile_range r[8] = { { .size = sizeof *r } };
	const struct yoke_profile_range *forward = NULL, *drop = NULL, *back = NULL;
	model_new(&m);
	yoke_profile *p = yoke_profile_new(&o);
	for (int i = 0; i < 4; i++) {
		model_step(&m, i, true);
		yoke_profile_step(p);
	}
	int n = yoke_profile_ranges(p, 8, r);
	double all = 0;
	struct yoke_profile_row row[64] = { { .size = sizeof *row } };
	int rows = yoke_profile_rows(p, 64, row);
	bool named = false;
	for (int i = 0; i < rows; i++) {
		all += isnan(row[i].total) ? 0 : row[i].total;
		named |= !strcmp(row[i].range, "backward") && !strcmp(row[i].op, "matmul");
	}
	for (int i = 0; i < n && i < 8; i++)
		*(!strcmp(r[i].name, "forward")      ? &forward :
		  !strcmp(r[i].name, "forward/drop") ? &drop :
						       &back) = &r[i];
	ok(n == 3 && forward && drop && back && !strcmp(back->name, "backward") &&
		   forward->calls == 4 && named,
	   "%s: %d ranges, and rows by range", backend, n);
	ok(forward && drop && drop->host <= forward->host && drop->device <= forward->device &&
		   forward->device + back->device <= all * (1 + 1e-9) && back->device > 0,
	   "%s: a nested range is no longer than its parent: %g of %g, both %g of %g s", backend,
	   drop ? drop->device : 0, forward ? forward->device : 0,
	   forward && back ? forward->device + back->device : 0, all);
	yoke_profile_free(p);
	ok(yoke_range_pop() == YOKE_EINVAL && strstr(yoke_error(), "push"), "%s", yoke_error());
	yoke_error_clear();
	ok(yoke_range_push("") == YOKE_EINVAL && yoke_range_push(NULL) == YOKE_EINVAL, "%s",
	   yoke_error());
	yoke_error_clear();
	model_free(&m);
	yoke_use(former);
	yoke_context_free(ctx);
}

// A node that belongs to two ranges is attributed to their nearest common ancestor.
static void test_common(void)
{
	struct yoke_context *ctx = yoke_context_new("cpu"), *former = yoke_use(ctx);
	uint32_t path[5];
	const char *const name[] = { "a", "b", "c" };
	for (int i = 0; i < 3; i++) {
		yoke_range_push(name[i]);
		path[i] = ctx->graph.range;
	}
	yoke_range_pop();
	yoke_range_push("d");
	path[3] = ctx->graph.range;
	for (int i = 0; i < 3; i++)
		yoke_range_pop();
	yoke_range_push("e");
	path[4] = ctx->graph.range;
	yoke_range_pop();
	ok(yk_path_common(&ctx->observe.ranges, path[2], path[3]) == path[1] &&
		   yk_path_common(&ctx->observe.ranges, path[2], path[0]) == path[0] &&
		   yk_path_common(&ctx->observe.ranges, path[2], path[4]) == 0 &&
		   yk_path_common(&ctx->observe.ranges, path[3], path[3]) == path[3],
	   "a node of two ranges belongs to their nearest common ancestor");
	yoke_use(former);
	yoke_context_free(ctx);
}

// ---- tables ----

static void test_table(void)
{
	struct model m;
	char text[20000], small[8], *line;
	struct yoke_context *ctx = yoke_context_new("cpu"), *former = yoke_use(ctx);
	struct yoke_profile_options o = { .size = sizeof o,
					  .active = 100,
					  .flags = YOKE_PROFILE_SHAPES };
	model_new(&m);
	yoke_profile *p = yoke_profile_new(&o);
	for (int i = 0; i < 4; i++)
		model_step(&m, i, false);
	struct yoke_profile_row row[64] = { { .size = sizeof *row } };
	int n = yoke_profile_rows(p, 64, row), lines = 0;
	int64_t bytes = yoke_profile_table(p, 2, "calls", text, sizeof text);
	for (line = text; (line = strchr(line, '\n')); line++)
		lines++;
	ok(n > 3 && bytes == (int64_t)strlen(text) && lines == 4 && strstr(text, "others\n"),
	   "2 of %d rows and others:\n%s", n, text);
	ok(yoke_profile_table(p, 2, "calls", small, sizeof small) == bytes && strlen(small) == 7,
	   "as snprintf: %s", small);
	ok(yoke_profile_table(p, 0, "nonsense", text, sizeof text) == YOKE_EINVAL &&
		   strstr(yoke_error(), "roofline"),
	   "%s", yoke_error());
	yoke_error_clear();
	double flops = 0, bytes_read = 0;
	uint64_t calls = 0;
	for (int i = 0; i < n; i++)
		if (!strcmp(row[i].op, "matmul") && strstr(row[i].shapes, "f32 [16,16]")) {
			flops += row[i].flops;
			bytes_read += row[i].bytes;
			calls += row[i].calls;
		}
	ok(calls == 8 && flops == 8. * 2 * N * N * N && bytes_read >= 8. * 3 * 4 * N * N,
	   "%d products of %g flops, %g bytes", (int)calls, flops, bytes_read);
	yoke_profile_free(p);
	model_free(&m);
	yoke_use(former);
	yoke_context_free(ctx);
}

// ---- memory ----

struct growth {
	struct yk_observer observer;
	uint64_t plans, serial;
	bool good;
};

// In a repeated plan, the memory growth of a step equals the size of its roots.
static void growth_end(struct yk_observer *o, struct yk_queue *q, enum yk_work_kind kind,
		       const struct yk_plan *p, uint64_t step)
{
	struct growth *g = (struct growth *)o;
	int64_t steps = 0, roots = 0;
	(void)q;
	if (kind != YK_WORK_STEP || step || p->serial == g->serial)
		return;
	for (size_t i = 0; i < p->steps; i++)
		steps += p->step[i].growth;
	for (size_t i = 0; i < p->layout.blocks; i++)
		roots += yk_is_new(&p->layout.block[i]) ? (int64_t)p->layout.block[i].bytes : 0;
	g->good &= steps == roots;
	g->plans++;
	g->serial = p->serial;
	if (steps != roots)
		diag("steps grow by %lld, roots by %lld", (long long)steps, (long long)roots);
}

static void growth_begin(struct yk_observer *o, struct yk_queue *q)
{
	(void)o, (void)q;
}

static void test_memory(void)
{
	struct model m;
	struct yoke_context *ctx = yoke_context_new("cpu"), *former = yoke_use(ctx);
	struct growth g = { .observer = { .begin = growth_begin, .end = growth_end },
			    .good = true };
	struct yoke_profile_options o = { .size = sizeof o,
					  .active = 100,
					  .flags = YOKE_PROFILE_MEMORY | YOKE_PROFILE_SITES };
	struct yoke_profile_holder h[32] = { { .size = sizeof *h } };
	model_new(&m);
	yk_observer_add(ctx, &g.observer);
	yoke_profile *p = yoke_profile_new(&o);
	for (int i = 0; i < 3; i++)
		model_step(&m, i, true);
	int n = yoke_profile_peak(p, 32, h);
	uint64_t sum = 0, arena = 0;
	bool sorted = true, range = false;
	for (int i = 0; i < n && i < 32; i++) {
		sum += h[i].bytes;
		sorted &= !i || h[i].bytes <= h[i - 1].bytes;
		range |= *h[i].range != 0;
		diag("%8llu bytes of %s in %s at %s", (unsigned long long)h[i].bytes, h[i].op,
		     h[i].range, h[i].site);
	}
	for (int b = 0; b < YK_BUCKETS; b++)
		for (const struct yk_plan *plan = ctx->planner->cache.bucket[b]; plan;
		     plan = plan->cached.next) {
			uint64_t bytes = 0;
			for (size_t i = 0; i < plan->layout.arena[YK_STREAM_DEVICE].n; i++)
				bytes += plan->layout.arena[YK_STREAM_DEVICE].chunk[i];
			arena = bytes > arena ? bytes : arena;
		}
	ok(n > 0 && n <= 32 && sum == arena && sorted && range,
	   "live memory at the peak is the arena: %llu of %llu bytes",
	   (unsigned long long)sum, (unsigned long long)arena);
	ok(g.plans > 0 && g.good, "the growth of steps is that of their roots, in %d plans",
	   (int)g.plans);
	yk_observer_remove(ctx, &g.observer);
	yoke_profile_free(p);
	model_free(&m);
	yoke_use(former);
	yoke_context_free(ctx);
}

// ---- counters ----

static void test_counters(void)
{
	struct model m;
	struct yoke_context *ctx = yoke_context_new("cpu"), *former = yoke_use(ctx);
	struct yoke_counters a = { .size = sizeof a }, b = a, d = a;
	model_new(&m);
	yoke_counters(&a);
	ok(a.idle_ns == -1, "idle time is n/a before a profile");
	struct yoke_profile_options o = { .size = sizeof o, .active = 4, .repeat = 1 };
	yoke_profile *p = yoke_profile_new(&o);
	for (int i = 0; i < 4; i++) {
		model_step(&m, i, false);
		yoke_profile_step(p);
	}
	yoke_counters(&b);
	yoke_counters_between(&a, &b, &d);
	ok(d.bytes_up == 4 * sizeof m.data && d.copies_up == 4 && d.bytes_down == 16 &&
		   d.copies_down == 4 && d.evals == 4 && d.launches > 8 &&
		   d.plan_hits + d.plan_misses == 4,
	   "4 steps: %llu bytes up, %llu down, %llu launches", (unsigned long long)d.bytes_up,
	   (unsigned long long)d.bytes_down, (unsigned long long)d.launches);
	ok(d.idle_ns >= 0 && (uint64_t)d.idle_ns < d.ns && d.waits == 0 && d.wait_ns == 0,
	   "idle %lld of %llu ns, no wait on a processor", (long long)d.idle_ns,
	   (unsigned long long)d.ns);
	struct yoke_counters none = { 0 };
	ok(yoke_counters(&none) == YOKE_EINVAL, "%s", yoke_error());
	yoke_error_clear();
	yoke_profile_free(p);
	model_free(&m);
	yoke_use(former);
	yoke_context_free(ctx);
}

// YOKE_SYNC=warn reports each place where the host waits once; all waits are counted.
static void test_waits(void)
{
	float data[4] = { 1, 2, 3, 4 }, got[4];
	yoke_setting_set("sync", "warn");
	struct yoke_context *ctx = yoke_context_new("fault"), *former = yoke_use(ctx);
	struct yoke_counters a = { .size = sizeof a }, b = a;
	if (!ctx) {
		skip("YOKE_SYNC=warn", yoke_error());
		yoke_error_clear();
		return;
	}
	yoke_tensor *x = yoke_variable("x", yoke_f32, 1, (int64_t[]){ 4 });
	yoke_put(x, data, sizeof data);
	warnings = 0;
	yoke_counters(&a);
	yoke_range_push("look");
#pragma GCC unroll 1
	for (int i = 0; i < 3; i++)
		yoke_read(x, got, sizeof got);
	ok(warnings == 1 && strstr(last_warning, "a read waits for fault:0") &&
		   strstr(last_warning, "range \"look\"") && strstr(last_warning, ", at "),
	   "three waits at one place are reported once: %s", last_warning);
	yoke_range_pop();
	yoke_read(x, got, sizeof got);
	yoke_counters(&b);
	ok(warnings == 2 && b.waits - a.waits == 4 && b.wait_ns > a.wait_ns,
	   "and a wait at another place; %d waits", (int)(b.waits - a.waits));
	// as a compiler does with a loop that it unrolls: three calls on one line
	warnings = 0;
	yoke_read(x, got, sizeof got), yoke_read(x, got, sizeof got), yoke_read(x, got, sizeof got);
	ok(warnings == (HAVE_LIBDW ? 1 : 3), "three reads on a line count as %d waits", warnings);
	yoke_free(x);
	yoke_use(former);
	yoke_context_free(ctx);
	yoke_setting_set("sync", "x");
	ok(!yoke_context_new("cpu") && yoke_error_code() == YOKE_EINVAL, "%s", yoke_error());
	yoke_error_clear();
	yoke_setting_set("sync", "0");
}

// A file with a size limit: omitted events are counted, and the file is still valid JSON.
static void test_bound(void)
{
	struct model m;
	struct stat st = { 0 };
	struct yoke_context *ctx = yoke_context_new("cpu"), *former = yoke_use(ctx);
	struct yoke_profile_options o = {
		.size = sizeof o, .active = 6, .repeat = 1, .folder = "bound", .max_bytes = 4000
	};
	model_new(&m);
	warnings = 0;
	yoke_profile *p = yoke_profile_new(&o);
	for (int i = 0; i < 6; i++) {
		model_step(&m, i, true);
		yoke_profile_step(p);
	}
	struct yoke_profile_quality q = { .size = sizeof q };
	yoke_profile_quality(p, &q);
	json_t *t = json_load_file("bound/cycle0.json", 0, NULL);
	stat("bound/cycle0.json", &st);
	ok(t && st.st_size <= 4000 && q.dropped > 0 &&
		   json_integer_value(json_object_get(t, "dropped")) == (json_int_t)q.dropped &&
		   warnings == 1,
	   "with a limit of %d bytes, %d events are omitted: %s", (int)st.st_size, (int)q.dropped,
	   last_warning);
	json_decref(t);
	yoke_profile_free(p);
	model_free(&m);
	yoke_use(former);
	yoke_context_free(ctx);
}

// A profile outlives its context, as objects of garbage-collected languages may.
static void test_outlived(void)
{
	const struct yoke_profile_options o[] = {
		{ .size = sizeof *o, .active = 3, .folder = "outlived" },
		// active, and not yet active
		{ .size = sizeof *o, .wait = 2, .active = 3 }
	};
	for (int i = 0; i < 2; i++) {
		yoke_context *ctx = yoke_context_new("cpu"), *former = yoke_use(ctx);
		yoke_profile *p = yoke_profile_new(&o[i]), *other = yoke_profile_new(&o[i]);
		struct yoke_profile_quality q = { .size = sizeof q };
		char text[64];
		yoke_scope *s = yoke_scope_begin("x");
		yoke_tensor *x = yoke_neg(yoke_full(yoke_f32, 1, &(int64_t){ 3 }, 1));
		yoke_eval(1, &x);
		yoke_scope_end(s);
		yoke_profile_step(p);
		yoke_use(former);
		yoke_context_free(ctx);
		const int64_t code[] = { yoke_profile_step(p),
					 yoke_profile_rows(p, 0, NULL),
					 yoke_profile_ranges(p, 0, NULL),
					 yoke_profile_peak(p, 0, NULL),
					 yoke_profile_quality(p, &q),
					 yoke_profile_trace(p, "x.json"),
					 yoke_profile_table(p, 0, NULL, text, sizeof text) };
		bool good = true;
		for (size_t k = 0; k < sizeof code / sizeof *code; k++)
			good &= code[k] == YOKE_ECONTEXT;
		ok(good && strstr(yoke_error(), "profile_step: "),
		   "a profile whose context was freed: %s", yoke_error());
		yoke_error_clear();
		yoke_profile_free(other);
		yoke_profile_free(p);
		ok(!yoke_error_code(), "and it can be freed: %s", yoke_error());
	}
}

int main(void)
{
	if (tap_eager())
		return skip_all("its plans are of whole graphs");
	tap_seed();
	tap_plugin_path();
	tap_folder();
	yk_log_to(count_warning, NULL);
	// measuring them takes a second; tests/roofline.c tests it
	yoke_setting_set("profile.limits", "0");
	test_schedules();
	test_cycles("cpu", true);
	test_ends();
	test_ranges("cpu");
	test_common();
	test_table();
	test_memory();
	test_counters();
	test_bound();
	test_waits();
	test_outlived();
	if (observed_opencl("cycles on OpenCL")) {
		test_cycles("opencl", true);
		test_ranges("opencl");
		test_overlap("opencl");
	}
	return done();
}
