// SPDX-License-Identifier: Apache-2.0
// Tests the profiler: every node is in one launch or in the list of nodes that need none; every
// launch is in one sum; sums and idle time add up; traces hold each interval with the scopes of
// all its nodes; on the CPU, on devices with device timers (OpenCL) and without. Profiling
// changes no bit of the results.
#include "config.h"

#include <jansson.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "observe/profile.h"
#include "observe/profile_state.h"
#include "observed.h"
#include "tap.h"

enum { N = 24, STEPS = 6 };

static const char trace_path[] = "trace.json";
static int warnings;

static void count_warning(int level, const char *topic, const char *line, void *arg)
{
	(void)arg;
	warnings += level <= YOKE_LOG_WARN && !strcmp(topic, "profile");
	diag("%s: %s", topic, line);
}

// ---- which nodes a plan does ----

// Observes a context and checks each plan that it is shown.
struct checker {
	struct yk_observer observer;
	struct yoke_context *ctx;
	uint64_t serial, plans, opened;
	uint64_t bad_nodes, bad_parts, bad_pairs, reasons;
	bool two_scopes; // was there a step with nodes of both layers?
};

static void look_through(struct checker *c, const struct yk_plan *p)
{
	int *seen = calloc(p->nodes.lowered + 1, sizeof *seen);
	for (size_t i = 0; i < p->steps; i++) {
		const struct yk_step *s = &p->step[i];
		bool shared = i && p->step[i - 1].part == s->part, a = false, b = false;
		c->bad_parts += !s->part || !s->nodes;
		for (uint32_t k = 0; k < s->nodes; k++) {
			const char *path = yk_path_name(&c->ctx->scopes.paths, s->part[k].scope);
			if (!shared)
				seen[s->part[k].node]++;
			a |= strstr(path, "layer0") != NULL;
			b |= strstr(path, "layer1") != NULL;
		}
		c->two_scopes |= a && b;
	}
	for (size_t i = 0; i < p->nodes.absents; i++) {
		seen[p->nodes.absent[i].node]++;
		c->reasons += p->nodes.absent[i].gone && *p->nodes.absent[i].gone;
	}
	for (size_t i = 0; i < p->nodes.lowered; i++) {
		c->bad_nodes += seen[i] != 1;
		if (seen[i] != 1)
			diag("node %zu is in %d places", i, seen[i]);
	}
	c->reasons -= p->nodes.absents;
	c->plans++;
	free(seen);
}

static void check_begin(struct yk_observer *o, struct yk_queue *q)
{
	struct checker *c = (struct checker *)o;
	(void)q;
	c->bad_pairs += c->opened++ != 0;
}

static void check_end(struct yk_observer *o, struct yk_queue *q, enum yk_work_kind kind,
		      const struct yk_plan *p, uint64_t step)
{
	struct checker *c = (struct checker *)o;
	(void)q;
	c->bad_pairs += --c->opened != 0;
	if (kind != YK_WORK_STEP || p->serial == c->serial)
		return;
	c->bad_parts += step != 0;
	c->serial = p->serial;
	look_through(c, p);
}

// ---- something to watch ----

struct model {
	yoke_tensor *w[2], *x;
	float loss[STEPS];
};

static int model_new(struct model *m)
{
	float data[N * N];
	for (int k = 0; k < 3; k++) {
		yoke_tensor *t = yoke_variable("w", yoke_f32, 2, (int64_t[]){ N, N });
		for (int i = 0; i < N * N; i++)
			data[i] = (float)rnd_real(-.3, .3);
		yoke_put(t, data, sizeof data);
		*(k < 2 ? &m->w[k] : &m->x) = t;
	}
	for (int i = 0; i < STEPS; i++)
		m->loss[i] = NAN;
	return yoke_error_code();
}

static void model_free(struct model *m)
{
	yoke_free(m->w[0]);
	yoke_free(m->w[1]);
	yoke_free(m->x);
}

static yoke_tensor *layer(const char *name, yoke_tensor *x, yoke_tensor *w)
{
	yoke_scope *s = yoke_scope_begin(name);
	yoke_tensor *y = yoke_tanh(yoke_add(yoke_matmul(x, w, YOKE_TB), x));
	y = yoke_lift(yoke_mul(yoke_softmax(y, -1), yoke_const(3)));
	yoke_scope_end(s);
	return y;
}

// A step with products, fused maps across scopes, softmax, a concat, a slice, assignments.
static int model_step(struct model *m, int i)
{
	yoke_tensor *g[2];
	yoke_scope *s = yoke_scope_begin("step");
	yoke_tensor *y = layer("layer1", layer("layer0", m->x, m->w[0]), m->w[1]);
	yoke_tensor *both[] = { yoke_slice(y, 1, 0, 5, 1), yoke_exp(m->x) };
	yoke_tensor *loss = yoke_mean(yoke_square(yoke_concat(2, both, 1)), YOKE_ALL);
	yoke_grad(loss, 2, m->w, g);
	for (int k = 0; k < 2; k++)
		yoke_assign(m->w[k], yoke_sub(m->w[k], yoke_mul(g[k], yoke_const(.1))));
	yoke_read(loss, &m->loss[i], sizeof m->loss[i]);
	return yoke_scope_end(s);
}

static int model_run(struct model *m)
{
	int e = model_new(m);
	for (int i = 0; i < STEPS && e == 0; i++)
		e = model_step(m, i);
	return e;
}

// fuses: does the device support maps?
static void test_nodes(const char *backend, bool fuses)
{
	struct model m;
	struct yoke_context *ctx = yoke_context_new(backend), *former = yoke_use(ctx);
	struct checker c = { .observer = { .begin = check_begin, .end = check_end },
			     .ctx = ctx };
	tap_state = 5;
	struct checker other = c; // two observers are permitted
	yk_observer_add(ctx, &c.observer);
	yk_observer_add(ctx, &other.observer);
	int e = model_run(&m);
	yk_observer_remove(ctx, &c.observer);
	yk_observer_remove(ctx, &other.observer);
	ok(c.plans == other.plans && !other.bad_pairs && !ctx->observe.first,
	   "%s: both observers saw everything", backend);
	ok(e == 0 && c.plans >= 1, "%s: %llu plans checked %s", backend,
	   (unsigned long long)c.plans, yoke_error());
	ok(!c.bad_nodes, "%s: each node is in one launch or in the list of removed nodes",
	   backend);
	ok(!c.bad_parts && !c.reasons, "%s: each step has nodes, each removed node has a reason",
	   backend);
	ok(!c.bad_pairs && !c.opened, "%s: begin and end come in pairs that do not nest",
	   backend);
	ok(c.two_scopes == fuses, "%s: a fused step has the scopes of all its nodes",
	   backend);
	model_free(&m);
	yoke_use(former);
	yoke_context_free(ctx);
}

// ---- sums ----

static double sum_of(const struct yk_report *r, uint64_t *steps)
{
	double t = 0;
	*steps = 0;
	for (int lane = 0; lane < 2; lane++)
		for (int k = 0; k < YK_BUSY_KINDS; k++) {
			t += 1e-9 * (double)r->sum[lane][k].ns;
			*steps += k <= YK_BUSY_OTHER ? r->sum[lane][k].count : 0;
		}
	return t;
}

static size_t on_queues(const struct yk_profile *p)
{
	size_t n = 0;
	for (size_t i = 0; i < p->trace.events; i++)
		n += p->trace.event[i].stream != YK_HOST_ACTIVITY;
	return n;
}

static void check_trace(struct yk_profile *p, const char *backend)
{
	int e = yk_profile_trace(p, trace_path);
	json_t *t = json_load_file(trace_path, 0, NULL);
	json_t *events = json_object_get(t, "traceEvents"), *x;
	size_t i, n = 0, bad = 0, both = 0;
	double last[4] = { -1, -1, -1, -1 }, sum = 0;
	const size_t pieces = on_queues(p);
	json_array_foreach (events, i, x) {
		if (strcmp(json_string_value(json_object_get(x, "ph")), "X"))
			continue;
		json_int_t lane = json_integer_value(json_object_get(x, "tid"));
		double ts = json_number_value(json_object_get(x, "ts")),
		       dur = json_number_value(json_object_get(x, "dur"));
		const char *nodes = json_string_value(
			json_object_get(json_object_get(x, "args"), "nodes"));
		if (lane > 3)
			continue; // of threads
		bad += lane < 0 || ts < 0 || dur < 0 || 
		       !json_string_value(json_object_get(x, "name"));
		// microseconds, printed with nanosecond resolution
		if (lane >= 0 && lane <= 3) {
			bad += ts < last[lane] - .002;
			last[lane] = ts + dur;
		}
		both += nodes && strstr(nodes, "step/layer0:") &&
			strstr(nodes, "step/layer1:");
		sum += 1e-6 * dur;
		n++;
	}
	ok(e == 0 && n == pieces && !p->trace.dropped && n > 0,
	   "%s: a trace of %zu intervals %s", backend, n, yoke_error());
	ok(!bad, "%s: each has name, lane and nodes, and none overlaps (%zu)", backend,
	   bad);
	ok(both > 0, "%s: a fused launch names both scopes", backend);
	double busy = yk_profile_busy(p);
	ok(fabs(sum - busy) <= 1e-9 * (double)n + 1e-12,
	   "%s: intervals add up: %.9f of %.9f s", backend, sum, busy);
	json_decref(t);
}

static void last_line(void *arg, const char *line)
{
	snprintf(arg, 400, "%s", line);
	diag("%s", line);
}

// timed: does the device measure times?
static void test_sums(const char *backend, bool details, bool timed)
{
	struct model m, alone;
	struct yk_report r;
	struct yoke_stats before = { .size = sizeof before },
			  after = { .size = sizeof after };
	struct yoke_context *ctx = yoke_context_new(backend), *former = yoke_use(ctx);
	char line[400] = "";
	uint64_t steps, rows = 0, row_ns = 0;
	diag("%s, %s", backend, details ? "details" : "sums");
	tap_state = 5;
	int e = model_run(&alone);
	model_free(&alone);
	struct yk_profile *p = yk_profile_new(details);
	tap_state = 5;
	double began = yk_seconds();
	yk_profile_start(p);
	yoke_stats(&before);
	e = e ? e : model_run(&m);
	yoke_stats(&after);
	e = e ? e : yk_profile_report(p, &r);
	double wall = yk_seconds() - began, sum = sum_of(&r, &steps);
	ok(e == 0 && !memcmp(m.loss, alone.loss, sizeof m.loss) && m.loss[0] > 0,
	   "profiling changes no bit: loss %g %s", m.loss[0], yoke_error());
	uint64_t transfers = 0; // steps of plans that move bytes are launches, too
	for (int lane = 0; lane < 2; lane++)
		transfers += r.sum[lane][YK_BUSY_TRANSFER].count;
	uint64_t copies = 3 + STEPS; // three puts, a read a step
	ok(steps + transfers - copies == after.launches - before.launches && steps > 0 &&
		   r.launches == after.launches - before.launches,
	   "each of %llu launches is in one sum", (unsigned long long)r.launches);
	ok(fabs(sum + r.idle - r.wall) < 1e-6 * r.wall,
	   "sums and idle time add up to the wall time: %g + %g = %g", sum, r.idle, r.wall);
	ok(r.wall > 0 && r.wall <= wall && (r.device[1][0] || r.idle >= 0),
	   "%g s, of %g on another clock", r.wall, wall);
	ok(r.timed[0] == timed && (r.sum[0][YK_BUSY_OTHER].ns > 0) == timed,
	   "steps are timed: %d", timed);
	// per layer and step one product forward, two backward, except that x needs no gradient
	double flops = STEPS * (2 * 3 - 1) * 2. * N * N * N;
	double got = r.sum[0][YK_BUSY_CONTRACT].flops + r.sum[1][YK_BUSY_CONTRACT].flops;
	ok(got == flops, "%g flops of products, counted %g", flops, got);
	ok(r.bytes_up == 3 * 4 * N * N && r.bytes_down == 4 * STEPS,
	   "%llu bytes up, %llu down", (unsigned long long)r.bytes_up,
	   (unsigned long long)r.bytes_down);
	for (size_t i = 0; i < p->rows.n; i++) {
		rows += p->rows.row[i].count;
		row_ns += p->rows.row[i].ns;
	}
	if (details && timed) {
		ok(fabs(1e-9 * (double)row_ns - sum) < 1e-12 * (double)rows + 1e-12,
		   "rows add up to the sums: %llu intervals", (unsigned long long)rows);
		check_trace(p, backend);
		yk_profile_top(p, 3, last_line, line);
		ok(strstr(line, "s  ") != NULL, "the longest rows");
	} else if (!details) {
		ok(!p->rows.n && !p->trace.events, "no rows without details");
	}
	yk_report_print(&r, last_line, line);
	ok(!timed == !strstr(line, "Amdahl"), "the report ends: %.60s", line);
	json_t *o = yk_report_json(&r);
	ok(o && json_number_value(json_object_get(o, "wall")) == r.wall &&
		   json_integer_value(json_object_get(o, "launches")) ==
			   (json_int_t)r.launches,
	   "as JSON");
	json_decref(o);
	yk_profile_free(p);
	ok(!ctx->observe.first, "no observer is left when it is freed");
	model_free(&m);
	yoke_use(former);
	yoke_context_free(ctx);
	yoke_error_clear();
}

// By the host's clock: waiting for earlier work is not part of the copy of four bytes.
static void test_read(const char *backend)
{
	enum { SIDE = 512, DEEP = 8, TRIES = 10 };
	struct yoke_context *ctx = yoke_context_new(backend), *former = yoke_use(ctx);
	yoke_tensor *a = yoke_variable("a", yoke_f32, 2, (int64_t[]){ SIDE, SIDE });
	double copies = 1, waits = 0;
	int e = 0, tries = 0;
	// other load on the machine may delay a copy
	for (; e == 0 && 10 * copies > waits && tries < TRIES; tries++) {
		float got;
		struct yk_profile *p = yk_profile_new(false);
		yk_profile_start(p);
		yoke_scope *s = yoke_scope_begin("step");
		yoke_tensor *y = a;
		for (int k = 0; k < DEEP; k++)
			y = yoke_matmul(y, a, 0);
		y = yoke_sum(y, YOKE_ALL);
		e = yoke_eval(1, &y);
		e = e ? e : yoke_read(y, &got, sizeof got);
		yoke_scope_end(s);
		copies = 1e-9 * (double)p->sum[0][YK_BUSY_TRANSFER].ns;
		waits = 1e-9 * (double)p->sum[0][YK_BUSY_WAIT].ns;
		yk_profile_free(p);
	}
	ok(e == 0 && 10 * copies <= waits,
	   "%s: a read copies for %.6f s and waits for %.6f s, at attempt %d %s", backend, copies,
	   waits, tries, yoke_error());
	yoke_free(a);
	yoke_use(former);
	yoke_context_free(ctx);
	yoke_error_clear();
}

// With the plan included: no step is charged with it, so work on the device's queue is disjoint and
// does not exceed the wall time; counts do not change later.
static void test_first(const char *backend)
{
	struct model m;
	struct yk_report r;
	struct yoke_context *ctx = yoke_context_new(backend), *former = yoke_use(ctx);
	diag("%s, from the first plan on", backend);
	tap_state = 5;
	struct yk_profile *p = yk_profile_new(true);
	int e = model_run(&m);
	uint64_t wait = p->sum[0][YK_BUSY_WAIT].ns;
	double busy = yk_profile_busy(p);
	e = e ? e : yk_profile_report(p, &r);
	double after = yk_profile_busy(p);
	wait = p->sum[0][YK_BUSY_WAIT].ns - wait; // of the report
	ok(e == 0 && busy > 0 && fabs(after - busy - 1e-9 * (double)wait) < 1e-12,
	   "%.9f s of intervals, and later %.9f, %.9f for waiting %s", busy, after,
	   1e-9 * (double)wait, yoke_error());
	ok(r.sum[0][YK_BUSY_PLAN].count > 0, "planning: %.6f s",
	   1e-9 * (double)r.sum[0][YK_BUSY_PLAN].ns);
	ok(r.idle > -1e-3 * r.wall, "intervals %.6f s and idle %.6f s of %.6f s", after, r.idle,
	   r.wall);
	check_trace(p, backend);
	yk_profile_free(p);
	model_free(&m);
	yoke_use(former);
	yoke_context_free(ctx);
	yoke_error_clear();
}

// A full trace drops intervals and counts them; many plans give few rows.
static void test_bounds(void)
{
	struct model m;
	struct yoke_context *ctx = yoke_context_new("cpu"), *former = yoke_use(ctx);
	yoke_setting_set("profile.trace", "1400"); // 7 intervals
	yoke_setting_set("plan.max", "0");
	struct yk_profile *p = yk_profile_new(true);
	tap_state = 5;
	int e = model_run(&m);
	size_t rows = p->rows.n;
	for (int i = 0; i < 40 && e == 0; i++)
		e = model_step(&m, 0);
	ok(e == 0 && p->trace.events + p->trace.counts == 7 && p->trace.dropped > 0,
	   "7 intervals, %llu dropped %s", (unsigned long long)p->trace.dropped, yoke_error());
	ok(p->rows.n == rows, "40 new plans of equal steps give %zu rows", p->rows.n);
	yk_profile_free(p);
	model_free(&m);
	yoke_setting_set("plan.max", "64");
	yoke_setting_set("profile.trace", "256000000");
	yoke_use(former);
	yoke_context_free(ctx);
}

int main(void)
{
	if (tap_eager())
		return skip_all("its plans are of whole graphs");
	tap_seed();
	yk_log_to(count_warning, NULL);
	tap_folder();
	tap_plugin_path();
	ok(yk_amdahl(10, 0) == 1 && yk_amdahl(10, 7.5) == 4 && isinf(yk_amdahl(10, 10)),
	   "Amdahl's law");
	test_nodes("cpu", true);
	test_sums("cpu", false, true);
	test_sums("cpu", true, true);
	test_first("cpu");
	test_bounds();
	test_nodes("skeleton", false);
	warnings = 0;
	test_sums("skeleton", false, false);
	ok(!warnings, "no message about times unless requested");
	test_sums("skeleton", true, false);
	ok(warnings == 1, "a device without timing is reported once");
	if (observed_opencl("times of OpenCL")) {
		test_nodes("opencl", true);
		test_sums("opencl", false, false);
		test_read("opencl");
		test_sums("opencl", true, true);
		test_first("opencl");
	}
	return done();
}
