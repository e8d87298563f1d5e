// SPDX-License-Identifier: Apache-2.0
// Tests batches on their way to a device: their contents against a plain loop, whenever copies
// complete, with as many batches ahead as memory allows. Copies overlap with steps; a step moves
// its batch up and one record down, nothing else.
// The program runs itself once for each device and its settings.

#include "config.h"

#include <time.h>

#include "base/error.h"
#include "base/log.h"
#include "data/loader.h"
#include "data/permute.h"
#include "fault/fault.h"
#include "graph/context.h"
#include "stats.h"
#include "tap.h"
#include "yoke-data.h"

enum { COUNT = 37, WIDTH = 96, LONGEST = 24, ALL = YOKE_ALL };

static bool regular; // both fields have one shape

// Field "x" has WIDTH numbers, field "r" up to LONGEST, in multiples of eight.
static int length_of(int64_t number)
{
	return regular ? LONGEST : 1 + (int)(number * 7 % LONGEST);
}

static float value_of(int64_t number, int64_t epoch, int i)
{
	return (float)((number * 31 + epoch * 7 + i * 3) % 101) - 50;
}

static int read_sample(void *arg, int64_t n, struct yoke_item *const *s)
{
	(void)arg;
	for (int64_t k = 0; k < n; k++) {
		for (int i = 0; i < WIDTH; i++)
			((float *)s[k]->to[0])[i] = value_of(s[k]->number, s[k]->epoch, i);
		s[k]->dims[1][0] = length_of(s[k]->number);
		for (int i = 0; i < length_of(s[k]->number); i++)
			((float *)s[k]->to[1])[i] = value_of(s[k]->number, s[k]->epoch, i + 1);
	}
	return 0;
}

static yoke_dataset *set(void)
{
	const struct yoke_field field[] = {
		{ .size = sizeof field[0],
		  .name = "x",
		  .dtype = yoke_f32,
		  .rank = 1,
		  .dims = { WIDTH } },
		{ .size = sizeof field[0],
		  .name = "r",
		  .dtype = yoke_f32,
		  .rank = 1,
		  .dims = { LONGEST },
		  .multiple = { regular ? 0 : 8 },
		  .pad = 0.25 },
	};
	return yoke_dataset_new(
		&(struct yoke_dataset_options){ .size = sizeof(struct yoke_dataset_options),
						.name = "rows",
						.count = COUNT,
						.fields = 2,
						.field = field,
						.read = read_sample,
						.chunk = 3 });
}

// ---- contents ----

struct feed {
	int64_t batch, split, seed, at; // at: samples returned so far
};

// Sums of both fields over batches: in a variable, so that no handle keeps a step's graph and
// nothing waits for it, and by a float64 loop; all sums are exact in f32.
struct sums {
	yoke_tensor *total;
	double want[2];
};

static bool part_add(const struct feed *f, int64_t part, yoke_tensor *x, yoke_tensor *r,
		     struct sums *to)
{
	const int64_t rows = f->batch / f->split, first = f->at + part * rows;
	int64_t longest = 1;
	for (int64_t k = f->at; k < f->at + f->batch; k++) {
		const int n =
			length_of(yk_order_at(k % COUNT, COUNT, 1, (uint64_t)f->seed, k / COUNT));
		longest = n > longest ? n : longest;
	}
	longest = (longest + 7) / 8 * 8;
	for (int64_t k = first; k < first + rows; k++) {
		const int64_t epoch = k / COUNT,
			      number = yk_order_at(k % COUNT, COUNT, 1, (uint64_t)f->seed, epoch);
		for (int i = 0; i < WIDTH; i++)
			to->want[0] += (i + k) % 5 * value_of(number, epoch, i);
		for (int i = 0; i < longest; i++)
			to->want[1] +=
				i < length_of(number) ? value_of(number, epoch, i + 1) : 0.25;
	}
	// rows have other values, so that their order shows
	float *weight = malloc(sizeof *weight * (size_t)rows * WIDTH);
	for (int64_t k = 0; k < rows * WIDTH; k++)
		weight[k] = (float)((k % WIDTH + first + k / WIDTH) % 5);
	yoke_tensor *w = yoke_from(yoke_f32, 2, (int64_t[]){ rows, WIDTH }, weight);
	yoke_tensor *both[] = { yoke_reshape(yoke_sum(yoke_mul(x, w), ALL), 1, (int64_t[]){ 1 }),
				yoke_reshape(yoke_sum(r, ALL), 1, (int64_t[]){ 1 }) };
	free(weight);
	return yoke_assign(to->total, yoke_add(to->total, yoke_concat(2, both, 0))) == 0 &&
	       yoke_eval(0, NULL) == 0 && yoke_dim(r, 1) == longest && yoke_dim(x, 0) == rows;
}

static bool sums_begin(struct sums *s)
{
	*s = (struct sums){ .total = yoke_variable("total", yoke_f32, 1, (int64_t[]){ 2 }) };
	return s->total != NULL;
}

static bool sums_are(struct sums *s)
{
	float got[2] = { 0 };
	const bool good = yoke_read(s->total, got, sizeof got) == 0 &&
			  (double)got[0] == s->want[0] && (double)got[1] == s->want[1];
	if (!good)
		diag("got %g %g, wants %g %g; %s", (double)got[0], (double)got[1], s->want[0],
		     s->want[1], yoke_error());
	yoke_free(s->total);
	return good;
}

static yoke_loader *loader(yoke_dataset *d, struct feed *f, int workers, int prefetch)
{
	char settings[128];
	f->at = 0;
	snprintf(settings, sizeof settings,
		 "batch=%lld split=%lld seed=%lld workers=%d prefetch=%d held=%d",
		 (long long)f->batch, (long long)f->split, (long long)f->seed, workers, prefetch,
		 (int)rnd_int(0, 2));
	diag("%s", settings);
	return yoke_loader_new(d, settings);
}

// The next batches, compared only after the last of them: nothing waits for the device before.
static bool batches_are(yoke_loader *l, struct feed *f, int batches)
{
	struct sums sum;
	bool good = sums_begin(&sum);
	for (int b = 0; b < batches && good; b++, f->at += f->batch) {
		yoke_tensor *t[16];
		yoke_scope *s = yoke_scope_begin("step");
		good = yoke_loader_next(l, 2 * (int)f->split, t, NULL) == f->batch;
		for (int64_t k = 0; k < f->split && good; k++)
			good = part_add(f, k, t[k], t[f->split + k], &sum);
		if (yoke_scope_end(s) < 0 || !good)
			diag("batch at %lld: %s", (long long)f->at, yoke_error());
	}
	return sums_are(&sum) && good;
}

static bool batch_is(yoke_loader *l, struct feed *f)
{
	return batches_are(l, f, 1);
}

static void test_contents(const struct fault_control *ctl)
{
	const int n = tap_cases(9, 60);
	for (int k = 0; k < n; k++) {
		regular = k % 2;
		yoke_dataset *d = set();
		struct feed f = { .split = 1 + k % 3, .seed = rnd_int(0, 1000) };
		f.batch = f.split * rnd_int(1, 6);
		if (ctl)
			ctl->chance((long)rnd_int(0, 1000));
		yoke_loader *l = loader(d, &f, (int)rnd_int(0, 3), k % 9);
		bool good = l != NULL;
		for (int b = 0; b < 12 && good; b += 4)
			good = batches_are(l, &f, 4);
		// and again at the second batch, which was read ahead or returned already
		const struct yoke_position at = { .size = sizeof at, .index = f.batch };
		good = good && yoke_loader_seek(l, &at) == 0;
		f.at = f.batch;
		good = good && batches_are(l, &f, 3);
		ok(good, "batches of %lld in %lld parts, %d ahead: %s", (long long)f.batch,
		   (long long)f.split, k % 9, yoke_error());
		yoke_error_clear();
		yoke_loader_free(l);
		yoke_dataset_free(d);
	}
	regular = false;
	yoke_dataset *d = set();
	// into variables, and alternately into host memory
	struct feed f = { .batch = 4, .split = 1, .seed = 3 };
	yoke_loader *l = yoke_loader_new(d, "batch=4 seed=3 workers=1 prefetch=3");
	yoke_tensor *r = NULL, *x = yoke_variable("x", yoke_f32, 2, (int64_t[]){ 4, WIDTH });
	struct sums sum;
	bool good = sums_begin(&sum) && l;
	for (int b = 0; b < 12 && good; b++, f.at += 4) {
		int64_t longest = 8;
		for (int k = 0; k < 4; k++) {
			const int64_t number =
				yk_order_at((f.at + k) % COUNT, COUNT, 1, 3, (f.at + k) / COUNT);
			longest = length_of(number) > longest ? (length_of(number) + 7) / 8 * 8 :
								longest;
		}
		yoke_scope *s = yoke_scope_begin("step");
		void *data[2];
		if (b % 4 == 3) {
			good = yoke_loader_host(l, 2, data, NULL) == 4 &&
			       *(float *)data[0] ==
				       value_of(yk_order_at(f.at % COUNT, COUNT, 1, 3,
							    f.at / COUNT),
						f.at / COUNT, 0);
		} else {
			r = yoke_variable("r", yoke_f32, 2, (int64_t[]){ 4, longest });
			good = yoke_loader_put(l, 2, (yoke_tensor *[]){ x, r }) == 4 &&
			       part_add(&f, 0, x, r, &sum);
			yoke_free(r);
		}
		yoke_scope_end(s);
	}
	good = sums_are(&sum) && good;
	ok(good, "into variables and into the host's memory: %s", yoke_error());
	yoke_free(x);
	yoke_loader_free(l);
	yoke_dataset_free(d);
}

// Tensors that the caller keeps, and that outlive their loader, keep their contents.
static void test_kept(void)
{
	enum { KEPT = 9, BATCH = 3 };
	yoke_dataset *d = set();
	yoke_loader *l = yoke_loader_new(d, "batch=3 seed=4 workers=2 prefetch=2");
	yoke_tensor *t[KEPT][2];
	bool good = l != NULL;
	for (int b = 0; b < KEPT && good; b++)
		good = yoke_loader_next(l, 2, t[b], NULL) == BATCH;
	yoke_loader_free(l);
	for (int b = 0; b < KEPT && good; b++) {
		float x[BATCH][WIDTH];
		good = yoke_read(t[b][0], x, sizeof x) == 0;
		for (int k = 0; k < BATCH * WIDTH && good; k++) {
			const int64_t at = b * BATCH + k / WIDTH;
			good = ((float *)x)[k] ==
			       value_of(yk_order_at(at % COUNT, COUNT, 1, 4, at / COUNT),
					at / COUNT, k % WIDTH);
		}
		yoke_free(t[b][0]);
		yoke_free(t[b][1]);
	}
	ok(good, "batches kept by the caller keep their contents: %s", yoke_error());
	yoke_dataset_free(d);
}

// Another context in the middle, and a loader whose context is freed before it.
static void test_contexts(const char *device)
{
	yoke_dataset *d = set();
	struct feed f = { .batch = 5, .split = 1, .seed = 8 };
	yoke_loader *l = loader(d, &f, 2, 3);
	yoke_context *a = yoke_context_new(device), *b = yoke_context_new("cpu"),
		     *was = yoke_use(a);
	bool good = a && b && l;
	for (int k = 0; k < 9 && good; k++) {
		yoke_use(k % 3 == 2 ? b : a);
		good = batch_is(l, &f);
	}
	ok(good, "batches go to the context that is current: %s", yoke_error());
	yoke_use(was);
	yoke_context_free(a);
	good = good && batch_is(l, &f); // in the first one again
	ok(good, "and to another context when that one is freed: %s", yoke_error());
	yoke_context_free(b);
	yoke_loader_free(l);
	yoke_dataset_free(d);
}

// ---- what a step moves ----

static void ready(yoke_loader *l, int64_t n)
{
	struct yoke_loader_stats s = { .size = sizeof s };
	for (int k = 0; k < 6000000 && (yoke_loader_stats(l, &s) < 0 || s.ready < n); k++)
		nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
}

// In steady state, each step uploads one batch, except for the additional prefetched ones at the
// end.
static void test_counters(void)
{
	enum { STEPS = 20, WARM = 6, BATCH = 4 };
	yoke_dataset *d = set();
	yoke_loader *l = yoke_loader_new(d, "batch=4 workers=2 prefetch=3 held=1");
	const bool cpu = yk_current()->device == yk_current()->cpu;
	struct yoke_loader_stats s = { .size = sizeof s };
	uint64_t up = 0, down = 0;
	int64_t rows = 0;
	bool good = l != NULL;
	for (int b = 0; b < STEPS && good; b++) {
		yoke_tensor *t[2];
		float sum;
		yoke_scope *scope = yoke_scope_begin("step");
		good = yoke_loader_next(l, 2, t, NULL) == BATCH &&
		       yoke_read(yoke_sum(t[0], ALL), &sum, sizeof sum) == 0;
		yoke_scope_end(scope);
		yoke_loader_stats(l, &s);
		if (b != WARM - 1 && b != STEPS - 1)
			continue;
		const struct yoke_stats now = stats();
		up = now.bytes_up - up;
		down = now.bytes_down - down;
		rows = BATCH * (b < WARM ? s.sent : s.sent + STEPS - WARM) - rows;
	}
	const double each = (double)up / (double)rows / sizeof(float);
	ok(good && down == (STEPS - WARM) * sizeof(float) &&
		   (cpu ? up == 0 : each >= WIDTH + 8 && each <= WIDTH + LONGEST),
	   "a step uploads %g numbers per row, and downloads %llu bytes of %d records: %s", each,
	   (unsigned long long)down, STEPS - WARM, yoke_error());
	yoke_loader_free(l);
	yoke_dataset_free(d);
}

// ---- memory ----

static void test_limit(void)
{
	enum { BATCH = 512 };
	yoke_dataset *d = set();
	struct yk_pool *pool = yk_current()->device->pool;
	const bool cpu = yk_current()->device == yk_current()->cpu;
	for (int prefetch = 0; prefetch <= 8; prefetch += 2 + 2 * !tap_long()) {
		struct feed f = { .batch = BATCH, .split = 1, .seed = 5 };
		yk_pool_trim(pool);
		const struct yoke_stats was = stats();
		// on the CPU all batches are there; other devices hold fewer ahead
		const uint64_t limit = was.pool_reserved + (cpu ? 64 : 5) * ((uint64_t)1 << 20);
		const uint64_t old = yk_pool_limit(pool, limit);
		yoke_loader *l = loader(d, &f, 2, prefetch);
		bool good = l != NULL;
		for (int b = 0; b < 8 && good; b++)
			good = batch_is(l, &f);
		const struct yoke_stats now = stats();
		ok(good && now.pool_reserved <= limit,
		   "%d batches ahead within %llu bytes: %llu: %s", prefetch,
		   (unsigned long long)limit, (unsigned long long)now.pool_reserved, yoke_error());
		yoke_error_clear();
		yoke_loader_free(l);
		yk_pool_limit(pool, old);
	}
	yoke_dataset_free(d);
}

// ---- the fault backend's ----

// A failing upload is an error of the call, and the batch comes with the next call.
static void test_faults(const struct fault_control *ctl)
{
	yoke_dataset *d = set();
	for (int k = 1; k <= 3; k++) {
		struct feed f = { .batch = 3, .split = 1, .seed = k };
		yoke_loader *l = loader(d, &f, 1, 2);
		yoke_tensor *t[2];
		bool good = l && batch_is(l, &f);
		ready(l, 2);
		ctl->how("error");
		ctl->arm("put", k);
		yoke_scope *s = yoke_scope_begin("step");
		const int64_t rows = yoke_loader_next(l, 2, t, NULL);
		if (rows < 0) // only if none was in progress
			good = good && strstr(yoke_error(), "fault.put");
		else
			f.at += 3;
		ctl->arm("put", 0);
		yoke_error_clear();
		yoke_scope_end(s);
		yoke_error_clear();
		for (int b = 0; b < 4 && good; b++)
			good = batch_is(l, &f);
		ok(good, "put %d of a call fails, the call returned %lld rows: %s", k,
		   (long long)rows, yoke_error());
		yoke_error_clear();
		yoke_loader_free(l);
	}
	yoke_dataset_free(d);
}

static int read_many(void *arg, int64_t n, struct yoke_item *const *s)
{
	(void)arg;
	for (int64_t k = 0; k < n; k++)
		for (int i = 0; i < 1024; i++)
			((float *)s[k]->to[0])[i] = (float)(s[k]->number % 7);
	return 0;
}

// Steps that wait for their result, as when each loss is logged: their duration by the backend's
// clock.
static double wall(const struct fault_control *ctl, yoke_dataset *d, int prefetch, long put,
		   long run_time)
{
	enum { STEPS = 24, WARM = 4 };
	char settings[96];
	long began = 0;
	bool good = true;
	snprintf(settings, sizeof settings, "batch=16 shuffle=0 workers=1 prefetch=%d", prefetch);
	yoke_loader *l = yoke_loader_new(d, settings);
	for (int b = 0; b < WARM + STEPS && l && good; b++) {
		yoke_tensor *x;
		float got;
		if (b == WARM)
			ctl->timed(put, run_time);
		if (b == WARM)
			began = ctl->clock();
		// the host's time does not count, so it must not affect the result
		ready(l, prefetch && b ? prefetch + 1 : 0);
		yoke_scope *s = yoke_scope_begin("step");
		good = yoke_loader_next(l, 1, &x, NULL) == 16 &&
		       yoke_read(yoke_sum(x, ALL), &got, sizeof got) == 0;
		yoke_scope_end(s);
	}
	const long took = ctl->clock() - began;
	ctl->timed(0, 0);
	yoke_loader_free(l);
	return good ? (double)took / STEPS : -1;
}

static void test_overlap(const struct fault_control *ctl)
{
	const struct yoke_field field = {
		.size = sizeof field, .name = "x", .dtype = yoke_f32, .rank = 1, .dims = { 1024 }
	};
	yoke_dataset *d = yoke_dataset_new(
		&(struct yoke_dataset_options){ .size = sizeof(struct yoke_dataset_options),
						.name = "rows",
						.count = 1000,
						.fields = 1,
						.field = &field,
						.read = read_many,
						.chunk = 16 });
	const double put = 10, copy = put * 16 * 4; // of a batch of 64 KiB
	const double run_only = wall(ctl, d, 2, 0, (long)copy), runs = run_only / copy;
	ok(runs >= 1 && runs == floor(runs), "a step has %g runs", runs);
	const double longer = copy * runs, base = wall(ctl, d, 0, (long)(put * runs), (long)copy);
	for (int prefetch = 1; prefetch <= 3; prefetch++) {
		const double ahead = wall(ctl, d, prefetch, (long)(put * runs), (long)copy);
		ok(ahead > 0 && ahead <= 1.15 * longer && base >= 1.7 * ahead,
		   "%d ahead: a step takes %g, copy and compute take %g each, %g without overlap",
		   prefetch, ahead, longer, base);
	}
	yoke_dataset_free(d);
}

static char said[8][256];
static int lines;

static void hear_line(int level, const char *topic, const char *text, void *arg)
{
	(void)arg, (void)level, (void)topic;
	if (lines < 8 && strstr(text, "pinned"))
		snprintf(said[lines++], sizeof *said, "%s", text);
}

// Slots for which there is no pinned memory.
static void test_plain(void)
{
	enum { BATCH = 4096 };
	static float x[BATCH][WIDTH];
	yk_log_to(hear_line, NULL);
	yoke_dataset *d = set();
	yoke_loader *l = yoke_loader_new(d, "batch=4096 seed=1 workers=1");
	bool good = l != NULL;
	for (int64_t b = 0; b < 4 && good; b++) {
		yoke_tensor *t[2];
		yoke_scope *s = yoke_scope_begin("step");
		good = yoke_loader_next(l, 2, t, NULL) == BATCH &&
		       yoke_read(t[0], x, sizeof x) == 0;
		for (int64_t k = b * BATCH; k < (b + 1) * BATCH && good; k++)
			good = x[k % BATCH][5] ==
			       value_of(yk_order_at(k % COUNT, COUNT, 1, 1, k / COUNT), k / COUNT,
					5);
		yoke_scope_end(s);
	}
	ok(good && lines == 1, "without pinned memory there are %d warnings: %s", lines, *said);
	yoke_loader_free(l);
	yoke_dataset_free(d);
}

// ---- children ----

static int child(const char *device)
{
	tap_seed();
	struct yoke_context *ctx = yk_current();
	if (!ctx) {
		skip(device, yoke_error());
		return done();
	}
	const struct fault_control *ctl = ctx->device->ops->ext("fault");
	const char *pinned = getenv("YOKE_FAULT_PINNED");
	if (pinned) {
		test_plain();
		return done();
	}
	test_contents(ctl);
	test_kept();
	test_contexts(device);
	test_counters();
	test_limit();
	if (ctl && !getenv("YOKE_FAULT_DEFER")) {
		test_faults(ctl);
		test_overlap(ctl);
	}
	yoke_context_free(ctx);
	if (ctl)
		ok(ctl->early() == 0, "no data was taken from a run");
	return done();
}

static void with(const char *self, const char *settings, const char *device)
{
	char command[2048];
	snprintf(command, sizeof command, "%s YOKE_BACKEND=%s '%s' %s 2>&1", settings, device, self,
		 device);
	ok(tap_run(command), "%s %s", device, settings);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return child(argv[1]);
	const char *opencl = getenv("YOKE_TEST_OPENCL");
	tap_plugin_path();
	setenv("POCL_DEVICES", "pthread pthread", 1);
	with(argv[0], "", "cpu");
	with(argv[0], "YOKE_FAULT_HOST=0 YOKE_FAULT_LAG=1", "fault");
	with(argv[0], "YOKE_FAULT_DEFER=1 YOKE_FAULT_HOST=0 YOKE_FAULT_LAG=9", "fault");
	with(argv[0], "YOKE_FAULT_PINNED=4194304", "fault");
	if (opencl) {
		with(argv[0], "YOKE_DEVICE=opencl:1", "opencl"); // the second of two
		if (tap_long())
			with(argv[0], "YOKE_DEVICE=opencl:0", "opencl");
	} else {
		skip("on a device of OpenCL", "its module is not built");
	}
	return done();
}
