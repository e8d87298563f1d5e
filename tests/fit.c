// SPDX-License-Identifier: Apache-2.0
// Tests memory estimates: a dry context allocates nothing and counts the bytes of a real run
// exactly; the terms of an estimate add up to known totals; batch=auto finds the fastest batch in
// few timed steps.
// The program runs itself once for each backend, because a process keeps its devices.
#include "config.h"

#include <pthread.h>

#include "base/error.h"
#include "device/pool.h"
#include "graph/context.h"
#include "stats.h"
#include "tap.h"
#include "train/advise.h"
#include "train/batch.h"
#include "train/check.h"
#include "train/memory_estimate.h"
#include "train/trainer_open.h"

#define MIB ((uint64_t)1 << 20)

static struct yk_device *device(void)
{
	return yk_device_choose(NULL);
}

static struct yk_pool_stats pool(void)
{
	struct yk_pool_stats s;
	yk_pool_stats(device()->pool, &s);
	return s;
}

// ---- contexts ----

// The pool's peak and the sum of a few ops.
static uint64_t work(int64_t n, float *sum)
{
	const int64_t dims[] = { n, n };
	yoke_stats_reset_peaks();
	yoke_scope *s = yoke_scope_begin("work");
	yoke_tensor *x = yoke_full(yoke_f32, 2, dims, 0.5), *y = yoke_matmul(yoke_exp(x), x, 0);
	*sum = NAN;
	yoke_read(yoke_sum(yoke_softmax(y, -1), YOKE_ALL), sum, sizeof *sum);
	uint64_t peak = stats().pool_allocated_peak;
	return yoke_scope_end(s) < 0 ? 0 : peak;
}

static void test_context(void)
{
	float sum[2];
	yoke_context *real = yoke_context_new(NULL), *dry = yoke_context_dry(NULL);
	yoke_use(dry);
	uint64_t before = pool().reserved_bytes.current, counted = work(300, &sum[0]);
	ok(counted && pool().reserved_bytes.current == before,
	   "a dry context allocates nothing: %s", yoke_error());
	yoke_use(real);
	uint64_t took = work(300, &sum[1]);
	ok(took == counted, "its peak is the run's: %llu, %llu", (unsigned long long)counted,
	   (unsigned long long)took);
	ok(sum[0] == 0 && fabsf(sum[1] - 300) < 1e-3f,
	   "values read from it are 0: %g; of the real run: %g", (double)sum[0], (double)sum[1]);
	yoke_use(dry);
	const int64_t gib = 1 << 30;
	yoke_tensor *v[4096];
	for (int i = 0; i < 4096; i++)
		v[i] = yoke_variable("v", yoke_u8, 1, &gib);
	ok(v[4095] && stats().pool_allocated >> 30 == 4096,
	   "a request larger than this machine's memory: %llu bytes: %s",
	   (unsigned long long)stats().pool_allocated, yoke_error());
	yoke_error_clear();
	yoke_use(NULL);
	yoke_context_free(dry);
	yoke_context_free(real);
}

// A trial with a limit fails as a run would, removes the limit, and leaves nothing.
static int holds(void *arg)
{
	const int64_t n = *(const int64_t *)arg;
	yoke_tensor *t = yoke_variable("v", yoke_u8, 1, &n);
	yoke_free(t);
	return t ? 0 : yoke_error_code();
}

static void test_limit(void)
{
	int64_t less = 10 * MIB, more = 200 * MIB;
	int a = yk_dry_try(64 * MIB, holds, &less), b = yk_dry_try(64 * MIB, holds, &more);
	ok(a == 0 && b == YOKE_ENOMEM, "a limit applies: %s", yoke_error());
	yoke_error_clear();
	ok(yk_dry_try(UINT64_MAX, holds, &more) == 0, "and is removed afterwards: %s",
	   yoke_error());
	yoke_error_clear();
}

static int device_is(void *arg)
{
	return yk_device_real(yk_current()->device) == arg ? 0 : YOKE_EINVAL;
}

static void *tries(void *arg)
{
	int64_t bytes = 40 * MIB, fitted = 0;
	yoke_context *ctx = yoke_context_new(NULL), *was = yoke_use(ctx);
	for (int i = 0; ctx && i < 100; i++)
		fitted += yk_dry_try(64 * MIB, holds, &bytes) == 0;
	yoke_use(was);
	yoke_context_free(ctx);
	*(int64_t *)arg = fitted;
	return NULL;
}

// Ranks that are threads run trials at once, each on its device.
static void test_threads(void)
{
	enum { THREADS = 3 };
	pthread_t thread[THREADS];
	int64_t fitted[THREADS] = { 0 };
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, tries, &fitted[i]))
			abort();
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	ok(fitted[0] == 100 && fitted[1] == 100 && fitted[2] == 100,
	   "trials that fit alone fit at the same time: %d, %d, %d of 100",
	   (int)fitted[0], (int)fitted[1], (int)fitted[2]);
	yoke_context *ctx = yoke_context_new("cpu"), *was = yoke_use(ctx);
	ok(yk_dry_try(UINT64_MAX, device_is, ctx->device) == 0,
	   "a trial uses the device of the current context");
	yoke_use(was);
	yoke_context_free(ctx);
}

// ---- forecasts ----

static const char *const configurations[] = {
	"",
	"model=mlp",
	"dropout=0.1 optimizer=sgd",
	"accumulate=3 batch=3",
	"accumulate=4 batch=2",
	"embed=48 heads=3 layers=3 context=33",
	"optimizer=sgd momentum=0",
	"batch=1",
	"clip=0",
	"model=mlp history=1 layers=1",
	"layers=1 context=200 batch=2",
	"tokenizer=word",
	"batch=31 context=5",
	"accumulate=2 dropout=0.2 optimizer=sgd",
	"embed=8 heads=1",
	"valid=0",
	"model=mlp accumulate=2 dropout=0.3",
	"context=1 batch=64",
	"layers=5",
	"embed=130 heads=13 batch=3",
	"eval_tokens=0 batch=7",
};
enum { ALL = sizeof configurations / sizeof *configurations, USUAL = 6 };

static bool configure(struct yk_config *c, const char *keys, bool data)
{
	char all[512], *save = NULL;
	static const char *const usual[] = { "context=16", "layers=2", "batch=8",
					     "heads=2",    "embed=32", "steps=6" };
	int e = yk_config_init(c, YK_T);
	for (size_t i = 0; i < sizeof usual / sizeof *usual && e == 0; i++) {
		char key[16];
		snprintf(key, sizeof key, "%.*s", (int)strcspn(usual[i], "=") + 1, usual[i]);
		if (!strstr(keys, key) && !(strstr(keys, "model=mlp") && !strcmp(key, "heads=")))
			e = yk_config_argument(c, usual[i]);
	}
	if (e == 0 && data)
		e = yk_config_argument(c, "data=text");
	snprintf(all, sizeof all, "%s", keys);
	for (char *word; e == 0 && (word = strtok_r(save ? NULL : all, " ", &save));)
		e = yk_config_argument(c, word);
	if (e == 0)
		e = yk_config_check_model(c);
	if (e < 0)
		diag("%s: %s", keys, yoke_error());
	return e == 0;
}

struct peaks {
	uint64_t all, validation;
};

// The pool's peaks of a run with six steps and a validation, overall and of the validation; 0: it
// failed.
static struct peaks run(struct yk_config *c)
{
	struct peaks p = { 0 };
	struct yk_trainer *t = NULL;
	struct yk_record record;
	double loss;
	yoke_context *ctx = yoke_context_new(NULL);
	yoke_use(ctx);
	yoke_stats_reset_peaks();
	int e = yk_trainer_new(c, "none", NULL, &t);
	for (int i = 0; i < 6 && e == 0; i++) {
		e = yk_trainer_step(t);
		if (e == 0 && i % 2)
			e = yk_trainer_record(t, &record);
		if (e == 0 && i == 3) {
			p.all = stats().pool_allocated_peak;
			yoke_stats_reset_peaks();
			e = yk_model_validate(t->replica.net, t->feed.data, t->replica.group, NULL,
					      t->batch, t->valid_windows, NULL, NULL, NULL, &loss);
			p.validation = stats().pool_allocated_peak;
		}
	}
	if (e == 0 && stats().pool_allocated_peak > p.all)
		p.all = stats().pool_allocated_peak;
	if (e < 0)
		diag("%s", yoke_error());
	yk_trainer_free(t);
	yoke_use(NULL);
	yoke_context_free(ctx);
	return e < 0 ? (struct peaks){ 0 } : p;
}

static void forecast(const char *keys)
{
	struct yk_config c;
	struct yk_trainer *t = NULL;
	struct yk_memory_estimate n = { 0 };
	if (!configure(&c, keys, true)) {
		ok(false, "%s", keys);
		return;
	}
	int64_t batch = yk_config_int(&c, YK_KEY_batch);
	uint64_t before = pool().reserved_bytes.current;
	int e = yk_trainer_plan(&c, &t);
	if (e == 0)
		e = yk_memory_estimate_of(t, batch, UINT64_MAX, &n, NULL);
	ok(e == 0 && n.fits && pool().reserved_bytes.current == before,
	   "%s: asked without memory: %s", keys, yoke_error());
	yoke_error_clear();
	struct peaks p = run(&c);
	ok(p.all && n.peak == p.all && n.validation == p.validation,
	   "%s: peaks of %llu bytes, %llu in a validation, predicted %llu and %llu", keys,
	   (unsigned long long)p.all, (unsigned long long)p.validation, (unsigned long long)n.peak,
	   (unsigned long long)n.validation);
	bool word = !strcmp(yk_config_str(&c, YK_KEY_optimizer), "adamw");
	bool momentum = strcmp(yk_config_str(&c, YK_KEY_momentum), "0");
	ok(n.weights == 4 * (uint64_t)n.parameters &&
		   n.states == (word ? 2u : momentum) * n.weights &&
		   n.sums == (uint64_t)log2((double)yk_config_int(&c, YK_KEY_accumulate)) *
				     n.weights &&
		   n.step >= n.weights + n.states + n.sums && n.step <= n.peak &&
		   n.forward <= n.backward && n.validation <= n.peak &&
		   (n.activations > 0 || tap_eager()) && n.activations < n.peak,
	   "%s: terms: %llu parameters, %llu states, %llu activations", keys,
	   (unsigned long long)n.weights, (unsigned long long)n.states,
	   (unsigned long long)n.activations);
	yk_trainer_free(t);
	yk_config_fini(&c);
}

// A hidden layer of an mlp keeps its result, f32, and the relu mask, bool; the rest of the model
// keeps the input of the first product, the logits, and a few numbers per row of these.
static void test_activations(void)
{
	struct yk_config c;
	struct yk_trainer *t = NULL;
	struct yk_memory_estimate n[2];
	int e = 0;
	for (int i = 0; i < 2 && e == 0; i++) {
		if (!configure(&c, i ? "model=mlp layers=3" : "model=mlp layers=2", false))
			return;
		e = yk_trainer_plan(&c, &t);
		if (e == 0)
			e = yk_memory_estimate_of(t, 8, UINT64_MAX, &n[i], NULL);
		yk_trainer_free(t);
		t = NULL;
		yk_config_fini(&c);
	}
	uint64_t layer = 8 * 16 * 4 * 32 * (sizeof(float) + 1); // batch, context, hidden
	ok(e == 0 && n[1].activations - n[0].activations == layer,
	   "an additional hidden layer adds %llu bytes, expected %llu", (unsigned long long)layer,
	   (unsigned long long)(n[1].activations - n[0].activations));
	uint64_t all = 2 * layer + 8 * 16 * (8 * 32 + 256) * sizeof(float),
		 few = 8 * 16 * 8 * sizeof(float);
	ok(n[0].activations >= all && n[0].activations <= all + few,
	   "%llu bytes of activations, %llu computed by hand", (unsigned long long)n[0].activations,
	   (unsigned long long)all);
}

// No text, no memory: estimates of gigabytes return at once.
static void test_large(void)
{
	static const struct {
		const char *keys;
		double min, max;
		bool fits;
	} models[] = {
		{ "layers=7 heads=12 embed=768 context=512 tokenizer=byte batch=4", 50e6, 51e6,
		  true },
		{ "layers=16 heads=40 embed=5120 context=1024 batch=4", 4.9e9, 5.2e9, false },
	};
	for (size_t i = 0; i < 2; i++) {
		struct yk_config c;
		struct yk_trainer *t = NULL;
		struct yk_memory_estimate n = { 0 };
		if (!configure(&c, models[i].keys, false))
			return;
		int e = yk_trainer_plan(&c, &t);
		if (e == 0)
			e = yk_memory_estimate_of(t, 4, 15 * 1024 * MIB, &n, NULL);
		ok(e == 0 && (double)n.parameters >= models[i].min &&
			   (double)n.parameters <= models[i].max && n.fits == models[i].fits &&
			   n.peak > 4 * n.weights,
		   "%s: %lld parameters, %llu bytes, %s 15 GiB: %s", models[i].keys,
		   (long long)n.parameters, (unsigned long long)n.peak,
		   n.fits ? "within" : "not within", yoke_error());
		yoke_error_clear();
		yk_trainer_free(t);
		yk_config_fini(&c);
	}
}

// The largest batch whose estimate is within the limit: the estimate of the next one is not.
static void test_largest(void)
{
	struct yk_config c;
	struct yk_trainer *t = NULL;
	struct yk_memory_estimate a, b;
	const uint64_t room = 24 * MIB;
	if (!configure(&c, "", false) || yk_trainer_plan(&c, &t) < 0)
		return;
	int64_t n = yk_dry_batch(1 << 20, room, yk_trainer_dry_run, t);
	bool good = n > 0 && yk_memory_estimate_of(t, n, room, &a, NULL) == 0 &&
		    yk_memory_estimate_of(t, n + 1, room, &b, NULL) == 0;
	ok(good && a.fits && !b.fits && a.peak <= room,
	   "%lld is the largest batch within 24 MiB, with %llu bytes: %s", (long long)n,
	   (unsigned long long)a.peak, yoke_error());
	ok(yk_dry_batch(n - 1, room, yk_trainer_dry_run, t) == n - 1 &&
		   yk_dry_batch(1, MIB / 8, yk_trainer_dry_run, t) == 0 && !yoke_error_code(),
	   "no more than requested; none");
	yoke_error_clear();
	yk_trainer_free(t);
	yk_config_fini(&c);
}

// ---- batch=auto ----

// Seconds of a step: a constant, a cost per window, and more for each window beyond the size of
// caches.
struct curve {
	double start, each, beyond;
	int64_t cache, max;
	double busy; // fraction of steps that other load on the machine slows by up to 2
	int calls;
	bool large;
};

static double seconds_of(const struct curve *c, int64_t batch)
{
	double over = batch > c->cache ? (double)(batch - c->cache) : 0;
	return c->start + c->each * (double)batch + c->beyond * over;
}

static int timed(void *arg, int64_t batch, double *seconds)
{
	struct curve *c = arg;
	c->calls++;
	c->large |= batch > c->max || batch < 1;
	*seconds = seconds_of(c, batch) *
		   (c->busy > 0 && rnd_real(0, 1) < c->busy ? rnd_real(1, 2) : 1);
	return 0;
}

static int fails(void *arg, int64_t batch, double *seconds)
{
	struct curve *c = arg;
	*seconds = 1;
	return ++c->calls < 3 ? 0 : yk_fail(YOKE_EDEVICE, "with %lld", (long long)batch);
}

// Number of curves that end with a batch more than 5 % slower than the best.
static int pick_curves(int curves, double busy, double *worst)
{
	int max = 0, wrong = 0, slower = 0;
	*worst = 1;
	for (int i = 0; i < curves; i++) {
		struct curve c = { .start = exp(rnd_real(-9, 0)),
				   .each = exp(rnd_real(-9, -3)),
				   .cache = (int64_t)exp(rnd_real(0, 8)),
				   .max = (int64_t)exp(rnd_real(0, 9)),
				   .busy = busy };
		c.beyond = rnd_int(0, 1) ? c.each * rnd_real(0, 1) : 0;
		struct yk_batch_pick p;
		double best = 0;
		wrong += yk_batch_pick(c.max, timed, &c, &p) < 0 || c.large || p.timed != c.calls;
		for (int64_t b = 1; b <= c.max; b++)
			best = fmax(best, (double)b / seconds_of(&c, b));
		double share = (double)p.batch / seconds_of(&c, p.batch) / best;
		max = c.calls > max ? c.calls : max;
		*worst = fmin(*worst, share);
		slower += share < 0.95;
	}
	ok(!wrong && max <= YK_BATCH_TIMED, "%d curves: at most %d steps", curves, max);
	return slower;
}

static void test_pick(void)
{
	double worst;
	int slower = pick_curves(2000, 0, &worst);
	ok(slower <= 2 && worst > 0.93,
	   "%d of 2000 curves are below 0.95 of the best, %.3f at worst", slower, worst);
	// 0.06 of them, or 0.12 if a slow measurement once ended the search
	slower = pick_curves(2000, 0.2, &worst);
	ok(slower < 0.085 * 2000, "%d of 2000 on a busy machine", slower);
	struct curve c = { .calls = 0 };
	struct yk_batch_pick p;
	ok(yk_batch_pick(100, fails, &c, &p) == YOKE_EDEVICE && c.calls == 3,
	   "an error ends it: %s", yoke_error());
	yoke_error_clear();
}

// A run with an automatic batch: the chosen batch is recorded in the configuration, and fits.
static void test_auto(void)
{
	struct yk_config c;
	struct yk_trainer *t = NULL;
	if (!configure(&c, "batch=auto", true))
		return;
	uint64_t ooms = pool().num_ooms;
	yoke_context *ctx = yoke_context_new(NULL);
	yoke_use(ctx);
	int e = yk_trainer_new(&c, "none", NULL, &t);
	int64_t batch = yk_config_int(&c, YK_KEY_batch);
	ok(e == 0 && batch >= 1 && batch == t->batch &&
		   batch <= yk_data_train_windows(t->feed.data) && *t->batch_why &&
		   pool().num_ooms == ooms && atoll(yk_config_str(&c, YK_KEY_batch)) == batch,
	   "batch=auto: %s: %s", t ? t->batch_why : "", yoke_error());
	yk_trainer_free(t);
	yoke_use(NULL);
	yoke_context_free(ctx);
	yk_config_fini(&c);
	yoke_error_clear();
}

static int child(const char *backend)
{
	tap_seed();
	if (!device()) {
		skip(backend, yoke_error());
		return done();
	}
	test_context();
	test_limit();
	test_threads();
	// where a compiler takes a third of a second for each kernel: a selection
	const bool all = tap_long() || strcmp(backend, "opencl");
	const int turn = (int)(tap_seed_value() % 3);
	for (int i = 0; i < ALL; i++) // the rest in turn
		if (tap_long() || (all && i < USUAL - 1) ||
		    i == USUAL - 1 + (int)(tap_seed_value() % (ALL - USUAL + 1)))
			forecast(configurations[i]);
	if (tap_eager()) // a plan has one op: nothing waits in it, and long-held values are dropped
		return done();
	if (all || turn == 0)
		test_activations();
	if (all || turn == 1)
		test_largest();
	if (all || turn == 2)
		test_auto();
	if (strcmp(backend, "cpu"))
		return done();
	test_large();
	test_pick();
	return done();
}

static void mode(const char *self, const char *settings, const char *backend)
{
	char command[2048];
	snprintf(command, sizeof command, "YOKE_BACKEND=%s %s '%s' %s 2>&1", backend, settings,
		 self, backend);
	ok(tap_run(command), "%s %s", backend, settings);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return child(argv[1]);
	char *self = realpath(argv[0], NULL); // modes are its child processes
	tap_plugin_path();
	tap_folder();
	FILE *f = fopen("text", "w");
	for (int i = 0; f && i < 400; i++)
		fprintf(f, "line %d of a text that is easy to learn, and %d more\n", i, i * 7 % 31);
	if (!f || fclose(f) || !self)
		return 99;
	mode(self, "", "cpu");
	mode(self, "YOKE_FAULT_HOST=0 YOKE_FAULT_LAG=3", "fault");
	if (getenv("YOKE_TEST_OPENCL"))
		mode(self, "", "opencl");
	else
		skip("opencl", "it is not built");
	free(self);
	return done();
}
