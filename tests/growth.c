// SPDX-License-Identifier: Apache-2.0
// Tests that memory stays bounded: limits on pending work, and what remains after a thousand
// steps or ten thousand shapes.

#include "config.h"

#include <unistd.h>

#include "base/log.h"
#include "graph/context.h"
#include "stats.h"
#include "tap.h"
#include "updates.h"
#include "yoke.h"

#define DIMS(...) (int64_t[]){ __VA_ARGS__ }

static char warning[600];
static int warnings;

static void on_log(int level, const char *topic, const char *line, void *arg)
{
	(void)arg;
	if (level > YOKE_LOG_WARN || strcmp(topic, "graph"))
		return;
	warnings++;
	snprintf(warning, sizeof warning, "%s", line);
}

static void process(double grown, double max)
{
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
	(void)max;
	diag("the process: %+.0f bytes", grown);
	skip("the process", "a sanitizer keeps what was freed");
#else
	ok(grown < max, "resident memory of the process grew by %+.0f bytes", grown);
#endif
}

static void new_context(void)
{
	yoke_context_free(yoke_use(NULL));
	yoke_use(yoke_context_new(NULL));
	warnings = 0;
	*warning = 0;
}

static void too_many(void)
{
	const int64_t max = 1048576; // graph.max, at its default
	float one = 0;
	new_context();
	yoke_scope *s = yoke_scope_begin("loop"), *t = yoke_scope_begin("inner");
	yoke_tensor *x = yoke_from(yoke_f32, 1, DIMS(1), &one);
	int64_t n = 1; // the leaf
	for (; n <= max + 1 && x; n++)
		x = yoke_neg(x);
	ok(!x && n - 1 == max, "operation %lld of %lld is refused", (long long)n - 1,
	   (long long)max);
	ok(yoke_error_code() == YOKE_EGRAPH && strstr(yoke_error(), "loop/inner"),
	   "the error names the place: %s", yoke_error());
	ok(warnings == 1 && strstr(warning, "\"loop/inner\"") &&
		   strstr(warning, "65537 operations"),
	   "%d warnings before it: %s", warnings, warning);
	yoke_error_clear();
	ok(!yoke_eval(0, NULL) && !stats().pending_nodes, "an evaluation makes room: %s",
	   yoke_error());
	x = yoke_from(yoke_f32, 1, DIMS(1), &one);
	ok(!yoke_read(yoke_neg(x), &one, sizeof one), "and recording continues: %s", yoke_error());
	yoke_scope_end(t);
	yoke_scope_end(s);
}

// Versions of a variable held only by pending operations, of 1 MiB each; the device has 64 MiB.
static void too_large(void)
{
	static float data[1 << 18];
	new_context();
	yoke_tensor *x = yoke_variable("x", yoke_f32, 1, DIMS(1 << 18)), *last = NULL;
	yoke_scope *s = yoke_scope_begin("steps");
	int n = 0;
	for (; n < 40 && !warnings; n++) {
		yoke_put(x, data, sizeof data);
		last = yoke_sum(x, YOKE_ALL);
	}
	// version k is held only by pending work once version k + 1 exists, beginning with 1
	ok(warnings == 1 && n == 18 && strstr(warning, "\"steps\"") &&
		   strstr(warning, "17825792 bytes"),
	   "warned at version %d: %s", n, warning);
	for (; n < 40; n++) {
		yoke_put(x, data, sizeof data);
		last = yoke_sum(x, YOKE_ALL);
	}
	ok(warnings == 1, "there is one warning");
	float got = NAN;
	yoke_read(last, &got, sizeof got);
	ok(got == 0, "the last value is correct: %g %s", (double)got, yoke_error());
	yoke_scope_end(s);
	ok(stats().pool_allocated <= 2 << 20, "memory is released afterwards: %llu bytes are left",
	   (unsigned long long)stats().pool_allocated);
	yoke_free(x);
}

// A step with an optimizer, an accumulated metric, a schedule and dropout.
static void thousand_steps(void)
{
	static float data[32 * 16];
	enum { P = 4 };
	static const int64_t dims[P][2] = { { 24, 16 }, { 24 }, { 4, 24 }, { 4 } };
	yoke_tensor *p[P], *m[P], *v[P], *g[P];
	new_context();
	for (int i = 0; i < P; i++) {
		int rank = dims[i][1] ? 2 : 1;
		p[i] = yoke_variable("p", yoke_f32, rank, dims[i]);
		m[i] = yoke_variable("m", yoke_f32, rank, dims[i]);
		v[i] = yoke_variable("v", yoke_f32, rank, dims[i]);
		for (int k = 0; k < 24 * 16; k++)
			data[k] = (float)rnd_real(-0.3, 0.3);
		yoke_put(p[i], data, yoke_bytes(p[i]));
	}
	yoke_tensor *x = yoke_variable("x", yoke_f32, 2, DIMS(32, 16)),
		    *ids = yoke_variable("ids", yoke_i32, 1, DIMS(32)),
		    *total = yoke_variable("total", yoke_f32, 0, NULL);
	yoke_tensor *lr = yoke_scalar(0), *c1 = yoke_scalar(0), *c2 = yoke_scalar(0);
	struct yoke_stats s0 = { .size = sizeof s0 };
	double rss = 0, sum = 0;
	uint64_t pending = 0, handles = 0;
	for (int t = 1; t <= 1000; t++) {
		int32_t id[32];
		float l = NAN;
		for (int i = 0; i < 32 * 16; i++)
			data[i] = (float)rnd_real(-1, 1);
		for (int i = 0; i < 32; i++)
			id[i] = (int32_t)rnd_int(0, 3);
		yoke_random_set(9, t);
		yoke_scope *s = yoke_scope_begin("step");
		yoke_put(x, data, sizeof data);
		yoke_put(ids, id, sizeof id);
		yoke_scalar_set(lr, t % 7 ? 0.01 / t : 0);
		yoke_scalar_set(c1, 1 - pow(0.9, t));
		yoke_scalar_set(c2, 1 - pow(0.99, t));
		yoke_tensor *h = yoke_dropout(yoke_gelu_tanh(yoke_linear(x, p[0], p[1])), 0.1);
		yoke_tensor *loss = yoke_cross_entropy(yoke_linear(h, p[2], p[3]), ids, -1, 0);
		yoke_assign(total, yoke_add(total, loss));
		yoke_grad(loss, P, p, g);
		yoke_adamw_step(P, p, g, m, v,
				&(struct yoke_adamw){ .size = sizeof(struct yoke_adamw),
						      lr,
						      c1,
						      c2,
						      YOKE_NONE,
						      0.9,
						      0.99,
						      1e-8,
						      0.1 });
		yoke_read(loss, &l, sizeof l);
		sum += (double)l;
		if (yoke_scope_end(s) < 0)
			break;
		struct yoke_stats now = stats();
		if (t == 50) {
			s0 = now;
			rss = tap_resident();
		}
		pending += now.pending_nodes;
		handles += t > 50 && now.live_handles != s0.live_handles;
	}
	struct yoke_stats s1 = stats();
	float got = NAN;
	double grown = tap_resident() - rss;
	yoke_read(total, &got, sizeof got);
	ok(fabs((double)got - sum) < 1e-3 * sum && sum > 0,
	   "the metric of 1000 steps: %g, want %g %s", (double)got, sum, yoke_error());
	ok(!pending, "no pending nodes after any step: %llu", (unsigned long long)pending);
	ok(!handles, "the number of handles is constant: %llu",
	   (unsigned long long)s1.live_handles);
	ok(s1.plans == s0.plans && s1.plan_misses == s0.plan_misses,
	   "so is the number of plans: %llu", (unsigned long long)s1.plans);
	ok(s1.pool_allocated == s0.pool_allocated && s1.pool_reserved == s0.pool_reserved,
	   "and the pool's size: %llu and %llu bytes", (unsigned long long)s1.pool_allocated,
	   (unsigned long long)s1.pool_reserved);
	process(grown, 1 << 20);
}

// Hand-written updates leave a graph of a few steps, in any scopes, and give the weights of one
// scope per step. If nothing is overwritten, all gradients through the assignments are defined, so
// the whole graph stays.
static void updates(void)
{
	enum { STEPS = 600, STEP_NODES = 40, BOUND = 2 * STEP_NODES + YK_SHORT + STEP_NODES };
	static float want[UPDATES][UPDATE_WIDTH * UPDATE_WIDTH], got[UPDATE_WIDTH * UPDATE_WIDTH];
	for (int update = 0; update < UPDATES; update++) {
		size_t nodes = 0;
		int wrong = 0, failed = 0;
		for (int k = 0; k < UPDATE_SCOPES * UPDATE_READS; k++) {
			struct updates u;
			updates_begin(&u, update, (k / UPDATE_READS + UPDATE_SCOPE) % UPDATE_SCOPES,
				      k % UPDATE_READS);
			for (int i = 0; i < STEPS; i++) {
				update_step(&u);
				nodes = yk_current()->graph.nodes > nodes ?
						yk_current()->graph.nodes :
						nodes;
			}
			failed += yoke_read(u.update == UPDATE_AVERAGE_AFTER ? u.average : u.w, got,
					    sizeof got) ||
				  yoke_error_code();
			if (k == 0)
				memcpy(want[update], got, sizeof got);
			wrong += memcmp(want[update], got, sizeof got) != 0;
			updates_end(&u);
		}
		ok((nodes <= BOUND || getenv("YOKE_DONATE")) && !wrong && !failed,
		   "%s: %zu nodes at most, of %d; %d differ, %d failed %s", update_name[update],
		   nodes, BOUND, wrong, failed, yoke_error());
		yoke_error_clear();
	}
}

static void many_shapes(void)
{
	enum { LIMIT = 10000 };
	double rss = 0;
	struct yoke_stats s0 = { .size = sizeof s0 };
	bool good = true;
	new_context();
	yoke_setting_set("log", "error"); // new plans are expected
	float *got = malloc((size_t)LIMIT * sizeof *got);
	for (int n = 1; n <= LIMIT && good; n++) {
		yoke_scope *s = yoke_scope_begin("shape");
		yoke_tensor *x = yoke_full(yoke_f32, 1, DIMS(n), n);
		yoke_read(yoke_neg(yoke_sqrt(yoke_square(x))), got, (size_t)n * sizeof *got);
		good = got[0] == (float)-n && got[n - 1] == (float)-n && yoke_scope_end(s) == 0;
		if (n == LIMIT / 4) {
			rss = tap_resident();
			s0 = stats();
		}
	}
	free(got);
	struct yoke_stats s1 = stats();
	double grown = tap_resident() - rss;
	ok(good, "%d shapes give right values: %s", LIMIT, yoke_error());
	ok(s1.plans <= 64, "the number of plans is bounded: %llu", (unsigned long long)s1.plans);
	ok(s1.live_handles == s0.live_handles && s1.pool_reserved <= s0.pool_reserved + (4 << 20),
	   "so are handles and pool: %llu, %llu bytes", (unsigned long long)s1.live_handles,
	   (unsigned long long)s1.pool_reserved);
	process(grown, 2 << 20);
	yoke_setting_set("log", "warn");
}

// The last batch of an epoch has another shape: one additional plan, and both stay.
static void partial_batch(void)
{
	float data[8] = { 0 }, got;
	new_context();
	uint64_t misses[3];
	for (int epoch = 0; epoch < 3; epoch++) {
		for (int b = 0; b < 5; b++) {
			int n = b == 4 ? 3 : 8;
			yoke_scope *s = yoke_scope_begin("step");
			yoke_tensor *x = yoke_from(yoke_f32, 1, DIMS(n), data);
			yoke_read(yoke_sum(yoke_exp(x), YOKE_ALL), &got, sizeof got);
			if (got != (float)n)
				ok(false, "sum of %d ones: %g", n, (double)got);
			yoke_scope_end(s);
		}
		misses[epoch] = stats().plan_misses;
	}
	ok(misses[0] == misses[2] && (misses[0] == 2 || tap_eager()),
	   "two plans serve three epochs with a partial batch: %llu, %llu",
	   (unsigned long long)misses[0], (unsigned long long)misses[2]);
}

int main(void)
{
	tap_seed();
	yoke_setting_set("memory", "64M"); // before the device's pool is made
	yk_log_to(on_log, NULL);
	too_many();
	too_large();
	thousand_steps();
	partial_batch();
	updates();
	many_shapes();
	yoke_context_free(yoke_use(NULL));
	return done();
}
