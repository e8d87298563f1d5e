// SPDX-License-Identifier: Apache-2.0
// Tests the trainer: a model learns, a step is planned once, micro-batches add up, a resumed run
// has the bits of an unbroken one.
#include "config.h"

#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "data/permute.h"
#include "device/pool.h"
#include "graph/context.h"
#include "models/generate.h"
#include "nn/windows.h"
#include "stats.h"
#include "tap.h"
#include "train/check.h"
#include "train/trainer.h"
#include "train/trainer_open.h"

enum { CONTEXT = 16 };

static char folder[256], text_path[300];

// keys: words separated by spaces
static bool configure(struct yk_config *c, const char *keys)
{
	char all[1024], *save = NULL;
	int e = yk_config_init(c, YK_T);

	snprintf(all, sizeof all, "data=%s context=16 layers=1 %s embed=32 batch=8 lr=1e-2 "
		 "warmup=5 steps=60 %s", text_path, strstr(keys, "model=") ? "" : "heads=2", keys);
	for (char *word; e == 0 && (word = strtok_r(save ? NULL : all, " ", &save));)
		e = yk_config_argument(c, word);
	if (e == 0)
		e = yk_config_check(c);
	if (e < 0)
		diag("%s", yoke_error());
	return e == 0;
}

static struct yk_trainer *make(struct yk_config *c, const char *keys)
{
	struct yk_trainer *t = NULL;

	if (!configure(c, keys) || yk_trainer_new(c, folder, NULL, &t) < 0)
		ok(false, "trainer: %s", yoke_error());
	return t;
}

static void drop(struct yk_config *c, struct yk_trainer *t)
{
	yk_trainer_free(t);
	yk_config_fini(c);
	yoke_error_clear();
}

// n steps; the loss of each into to.
static bool steps(struct yk_trainer *t, int n, float *to)
{
	for (int i = 0; i < n; i++) {
		struct yk_record r;
		if (yk_trainer_step(t) < 0 || yk_trainer_record(t, &r) < 0) {
			diag("step %d: %s", i, yoke_error());
			return false;
		}
		to[i] = r.loss;
	}
	return true;
}

// Limits the pool so that whole steps do not fit: to a fraction of their size. Returns the previous
// limit.
static uint64_t squeeze(double share)
{
	struct yk_pool *pool = yk_current()->device->pool;
	struct yoke_stats s = stats();
	yk_pool_trim(pool);
	return yk_pool_limit(
		pool, s.pool_allocated +
			      (uint64_t)(share * (double)(s.predicted_peak - s.pool_allocated)) +
			      (4 << 20));
}

// A step that does not fit is split in halves: the losses are those of the same halves without a
// failure, to the bit, and those of whole steps up to rounding.
static void test_halves(void)
{
	char keys[400], path[320], letters[6000];
	enum { WHOLE = 3, ALL = 6 };
	float loss[3][ALL];
	int64_t micro[3] = { 0 };
	for (size_t i = 0; i < sizeof letters; i++) // windows that differ
		letters[i] = (char)('a' + rnd_int(0, (int64_t)(i / 600)));
	snprintf(path, sizeof path, "%s.halves.txt", folder);
	snprintf(keys, sizeof keys, "data=%s batch=33 context=64 layers=4 embed=32", path);
	bool good = yk_file_write(path, letters, sizeof letters) == 0;
	for (int k = 0; k < 3; k++) {
		struct yk_config c;
		yoke_context *ctx = yoke_context_new("cpu"), *was = yoke_use(ctx);
		struct yk_trainer *t = make(&c, keys);
		if (!t)
			return;
		good = good && steps(t, WHOLE, loss[k]);
		const uint64_t limit = k == 0 ? squeeze(0.7) : UINT64_MAX;
		if (k == 1)
			t->micro = micro[0];
		good = good && steps(t, ALL - WHOLE, loss[k] + WHOLE);
		micro[k] = t->micro;
		if (k == 0)
			yk_pool_limit(yk_current()->device->pool, limit);
		drop(&c, t);
		yoke_use(was);
		yoke_context_free(ctx);
	}
	unlink(path);
	ok(good && micro[0] == 17,
	   "a batch of 33 that does not fit is split into micro-batches of %lld windows",
	   (long long)micro[0]);
	ok(good && !memcmp(loss[0], loss[1], sizeof loss[0]),
	   "with the losses of that split from the start: %.9g, %.9g",
	   (double)loss[0][ALL - 1], (double)loss[1][ALL - 1]);
	double off = 0; // each window is used once
	for (int i = 0; i < ALL; i++)
		off = fmax(off, fabs((double)loss[0][i] - (double)loss[2][i]) / (double)loss[2][i]);
	ok(good && micro[2] == 33 && off < 5e-6, "and, up to rounding, of whole steps: %.2g off",
	   off);
}

static int validate(const struct yk_trainer *t, yk_validate_fn *go_on, void *arg, double *loss)
{
	return yk_model_validate(t->replica.net, t->feed.data, t->replica.group, NULL, t->batch,
				 t->valid_windows, NULL, go_on, arg, loss);
}

static void test_learns(const char *keys)
{
	struct yk_config c;
	struct yk_trainer *t = make(&c, keys);
	float loss[60];
	double valid = NAN;

	if (!t)
		return;
	struct yoke_stats zero = stats(), first = { 0 }, second = { 0 };
	bool good = steps(t, 1, loss);
	first = stats();
	good = good && steps(t, 1, loss + 1);
	second = stats();
	good = good && steps(t, 58, loss + 2);
	struct yoke_stats last = stats();
	ok(good, "60 steps %s", yoke_error());
	diag("loss %.4f .. %.4f", loss[0], loss[59]);
	ok(fabs(loss[0] - log(256)) < 0.2, "%s: the first loss is log 256: %.4f", keys, loss[0]);
	ok(loss[59] < 0.6, "the last loss is small: %.4f", loss[59]);
	ok((first.plan_misses > zero.plan_misses && last.plan_misses == first.plan_misses) ||
		   tap_eager(),
	   "a step is planned once");
	ok(last.pending_nodes == 0 && last.live_handles == first.live_handles,
	   "a step leaves nothing: %d nodes, %d handles", (int)last.pending_nodes,
	   (int)(last.live_handles - first.live_handles));
	ok(second.bytes_up == first.bytes_up, "the CPU reads ids in place: %d bytes are copied",
	   (int)(second.bytes_up - first.bytes_up));
	ok(second.bytes_down - first.bytes_down <= 64, "one record is downloaded: %d bytes",
	   (int)(second.bytes_down - first.bytes_down));
	ok(last.pool_allocated == second.pool_allocated, "memory does not grow");
	ok(last.fallbacks == zero.fallbacks, "nothing falls back");
	good = validate(t, NULL, NULL, &valid) == 0;
	ok(good && valid < 0.8, "validation: %.4f", valid);
	drop(&c, t);
}

struct asked {
	int64_t times, done, windows, stop; // stop: at this call
};

static bool go_on(void *arg, int64_t done, int64_t windows)
{
	struct asked *a = arg;
	a->done = done;
	a->windows = windows;
	return ++a->times != a->stop;
}

// Mean loss of n windows spread over the split, one by one.
static double spread_loss(const struct yk_trainer *t, int64_t n)
{
	int64_t all = yk_data_valid_windows(t->feed.data);
	double sum = 0;

	for (int64_t k = 0; k < n; k++) {
		int32_t ids[CONTEXT + 1];
		float loss = NAN;
		yoke_scope *s = yoke_scope_begin("test");
		yk_data_valid(t->feed.data, k * all / n, 1, ids);
		yoke_read(yk_windows_loss(t->replica.net, yoke_from(yoke_i32, 2,
				(int64_t[]){ 1, CONTEXT + 1 }, ids), 0), &loss, sizeof loss);
		yoke_scope_end(s);
		sum += (double)loss;
	}
	return sum / (double)n;
}

// The amount of validation follows from the keys alone: by default at most 5 % of the run.
static void test_validation(void)
{
	static const struct {
		const char *keys;
		// of the windows trained on; forward and backward cost three times forward
		double share;
		int64_t windows, times;
	} cases[] = {
		{ "steps=60 eval_every=0", .15, 0, 1 },
		{ "steps=60 eval_every=7", .15, 0, 9 },
		{ "steps=60 eval_every=1", .15, 0, 60 },
		{ "steps=7 batch=3 eval_every=0", .15, 0, 1 },
		{ "eval_every=0 accumulate=2", .15, 0, 1 },
		{ "steps=60 eval_tokens=0", 0, -1, 1 },
		{ "steps=60 eval_tokens=33", 0, 3, 1 },
		{ "eval_tokens=1e12", 0, -1, 1 },
		{ "steps=1 batch=1 eval_every=0", 1, 1, 1 },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct yk_config c;
		struct yk_trainer *t = make(&c, cases[i].keys);
		if (!t)
			return;
		int64_t all = yk_data_valid_windows(t->feed.data), n = t->valid_windows;
		double trained = (double)(t->steps * t->batch * t->replica.batches.accumulate);
		double share = (double)(n * cases[i].times) / trained;
		int64_t want = cases[i].windows < 0 ? all : cases[i].windows;
		ok(want ? n == want : n > 0 && n <= all && share <= cases[i].share,
		   "%s: %d of %d windows, %.3f of those trained on", cases[i].keys, (int)n,
		   (int)all, share);
		ok(want || n == all || share > .05, "%s: and not much less than that",
		   cases[i].keys);
		drop(&c, t);
	}
	struct yk_config c;
	struct yk_trainer *t = make(&c, "eval_tokens=208"); // 13 windows, by 8
	struct asked a = { 0 };
	double got = NAN;
	if (!t)
		return;
	int e = validate(t, go_on, &a, &got);
	double want = spread_loss(t, 13);
	ok(e == 0 && fabs(got - want) < 1e-5, "13 windows: loss %.7f, want %.7f", got, want);
	ok(a.times == 2 && a.done == 8 && a.windows == 13, "asked %d times, last behind %d of %d",
	   (int)a.times, (int)a.done, (int)a.windows);
	a = (struct asked){ .stop = 2 };
	e = validate(t, go_on, &a, &got);
	ok(e == 0 && isnan(got), "a cancelled validation has no loss: %g", got);
	drop(&c, t);
}

// The loss after the last step, for an optimizer that needs it; NAN for others.
static double asked_loss(const struct yk_trainer *t)
{
	float x = NAN;
	yoke_tensor *state = yoke_optim_state(t->replica.optim->rule, NULL, "last");
	if (!state || yoke_read(state, &x, sizeof x) < 0)
		yoke_error_clear();
	return x;
}

// Micro-batches give the losses of one batch of their sum.
static void test_accumulate(const char *optimizer)
{
	struct yk_config c;
	float whole[5], parts[5];
	double w[5], p[5];

	for (int k = 2; k <= 4; k *= 2) {
		char keys[128];
		struct yk_trainer *t = make(&c, optimizer);
		bool good = t && steps(t, 5, whole);
		double last = good ? asked_loss(t) : NAN, asked;
		drop(&c, t);
		snprintf(keys, sizeof keys, "%s batch=%d accumulate=%d", optimizer, 8 / k, k);
		t = make(&c, keys);
		good = good && t && steps(t, 1, parts);
		uint64_t misses = stats().plan_misses;
		good = good && steps(t, 4, parts + 1);
		ok(good && (stats().plan_misses == misses || tap_eager()),
		   "%d micro-batches are planned once", k);
		for (int i = 0; good && i < 5; i++)
			w[i] = whole[i], p[i] = parts[i];
		if (good)
			near(p, w, 5, 2e-4, 1, "micro-batches add up");
		asked = good ? asked_loss(t) : NAN;
		if (!isnan(last))
			near(&asked, &last, 1, 2e-4, 1,
			     "and are all asked for the loss that decides on a restart");
		drop(&c, t);
	}
}

// Against the same tree in a loop, bit for bit.
static void test_sums(bool fast)
{
	enum { PARTS = 37, N = 5 };
	struct yk_parameters ps = { 0 };
	struct yk_sums s = { .fast = fast };
	float part[PARTS][N], x[PARTS][N], got[N], loss;
	int wrong = 0;
	yk_parameters_vector(&ps, N, 0, "w");
	for (int64_t n = 1; n <= PARTS && !yoke_error_code(); n++) {
		yoke_tensor *sum = NULL, *total = NULL;
		yoke_scope *scope = yoke_scope_begin("sums");
		yk_sums_init(&s, n, 1, ps.var, NULL);
		for (int64_t k = 0; k < n; k++) {
			for (int i = 0; i < N; i++)
				part[k][i] = x[k][i] = (float)rnd_real(-1, 1);
			sum = yoke_from(yoke_f32, 1, (int64_t[]){ N }, part[k]);
			total = yoke_slice(sum, 0, 0, 1, 1);
			total = yoke_reshape(total, 0, NULL);
			yk_sums_add(&s, k, n, &sum, &total);
			if (k < n - 1)
				yoke_eval(0, NULL);
		}
		for (int64_t d = 1; d < n && !fast; d *= 2)
			for (int64_t i = 0; i + d < n; i += 2 * d)
				for (int j = 0; j < N; j++)
					x[i][j] += x[i + d][j];
		for (int64_t i = 1; i < n && fast; i++)
			for (int j = 0; j < N; j++)
				x[0][j] += x[i][j];
		yoke_read(sum, got, sizeof got);
		yoke_read(total, &loss, sizeof loss);
		wrong += memcmp(got, x[0], sizeof got) || memcmp(&loss, x[0], sizeof loss);
		yoke_scope_end(scope);
	}
	ok(!yoke_error_code() && !wrong && s.places == (fast ? 1 : 5) &&
		   yk_sums_bytes(&s) == (uint64_t)s.places * sizeof got,
	   "sums over 1 to %d parts are those of the order %s; %d copies of the gradients: %s",
	   PARTS, fast ? "fast" : "tree", s.places, yoke_error());
	yk_sums_fini(&s);
	yk_parameters_fini(&ps);
}

static void test_resume(const char *keys)
{
	struct yk_config c;
	struct yk_checkpoint ck;
	float whole[12], parts[12];
	struct yk_trainer *t = make(&c, keys);
	bool good = t && steps(t, 12, whole);
	drop(&c, t);
	t = make(&c, keys);
	good = good && t && steps(t, 5, parts) && yk_trainer_save(t, folder) == 0;
	drop(&c, t);
	t = NULL;
	good = good && configure(&c, keys) && yk_checkpoint_open(folder, &ck) == 0;
	if (good) {
		good = yk_trainer_new(&c, folder, &ck, &t) == 0 && steps(t, 7, parts + 5);
		if (!good)
			diag("%s", yoke_error());
		yk_checkpoint_fini(&ck);
		drop(&c, t);
	}
	for (int i = 0; good && i < 12; i++)
		if (memcmp(&whole[i], &parts[i], sizeof(float)))
			diag("step %d: got %.9g want %.9g", i + 1, parts[i], whole[i]);
	ok(good && !memcmp(whole, parts, sizeof whole), "resumed bit for bit: %s", keys);
	yk_dir_remove(folder);
}

// Steps with the windows that a plain loop selects; returns the losses in `to`.
static bool fed_steps(struct yk_trainer *t, const uint8_t *text, int windows, int n, float *to)
{
	const int each = (int)(t->batch * t->replica.batches.accumulate);
	for (int i = 0; i < n; i++) {
		if (yk_trainer_feed(t) < 0)
			return false;
		for (int w = 0; w < each; w++) {
			const int64_t at = t->replica.step * each + w;
			const int64_t first = CONTEXT * yk_order_at(at % windows, windows, 1,
								    t->replica.seed, at / windows);
			for (int k = 0; k <= CONTEXT; k++)
				if (yk_trainer_windows(
					    t, w / t->batch)[w % t->batch * (CONTEXT + 1) + k] !=
				    text[first + k]) {
					diag("step %d window %d token %d: got %d want %d",
					     (int)t->replica.step, w, k,
					     (int)yk_trainer_windows(
						     t, w / t->batch)[w % t->batch * (CONTEXT + 1) +
								      k],
					     text[first + k]);
					return false;
				}
		}
		if (!steps(t, 1, to + i))
			return false;
	}
	return true;
}

// Two epochs, interrupted after each step, including the last of an epoch, and resumed with another
// number of threads.
static void test_windows(void)
{
	enum { WINDOWS = 21, STEPS = 7 }; // of 6 windows
	uint8_t text[WINDOWS * CONTEXT + 1];
	float whole[STEPS], parts[STEPS];
	char path[320], keys[2][480];
	snprintf(path, sizeof path, "%s.windows.txt", folder);
	for (size_t i = 0; i < sizeof text; i++)
		text[i] = (uint8_t)rnd_int('a', 'z');
	bool good = yk_file_write(path, text, sizeof text) == 0;
	for (int stop = 0; stop <= STEPS && good; stop++) {
		struct yk_config c;
		struct yk_checkpoint ck;
		for (int k = 0; k < 2; k++)
			snprintf(
				keys[k], sizeof keys[k],
				"data=%s valid=0 batch=3 accumulate=2 steps=%d workers=%d prefetch=%d",
				path, STEPS, (int)rnd_int(0, 5) * (stop > 0), (int)rnd_int(0, 8));
		struct yk_trainer *t = make(&c, keys[0]);
		float *to = stop ? parts : whole;
		const int first = stop ? stop : STEPS;
		good = t && fed_steps(t, text, WINDOWS, first, to) &&
		       yk_trainer_save(t, folder) == 0;
		drop(&c, t);
		t = NULL;
		if (!good || stop == 0)
			continue;
		good = configure(&c, keys[1]) && yk_checkpoint_open(folder, &ck) == 0;
		if (good) {
			good = yk_trainer_new(&c, folder, &ck, &t) == 0 &&
			       fed_steps(t, text, WINDOWS, STEPS - stop, parts + stop);
			yk_checkpoint_fini(&ck);
			drop(&c, t);
		}
		good = good && !memcmp(whole, parts, sizeof whole);
		if (!good)
			diag("behind step %d: %s; %s", stop, keys[0], keys[1]);
	}
	ok(good,
	   "windows and losses are those of a plain loop, bit for bit, with any number of reading threads");
	yk_dir_remove(folder);
	unlink(path);
}

static void test_other_shape(const char *keys, const char *part)
{
	struct yk_config c;
	struct yk_checkpoint ck;
	struct yk_trainer *t = make(&c, "");
	bool good = t && yk_trainer_save(t, folder) == 0;
	drop(&c, t);
	t = NULL;
	if (good && configure(&c, keys) && yk_checkpoint_open(folder, &ck) == 0) {
		int e = yk_trainer_new(&c, folder, &ck, &t);
		ok(e == YOKE_ESHAPE && !t && strstr(yoke_error(), part), "refused: %s",
		   yoke_error());
		yk_checkpoint_fini(&ck);
		drop(&c, t);
	}
	yk_dir_remove(folder);
}

// Every optimizer and schedule of the library is available in the command, and takes steps.
static void test_all_kinds(void)
{
	for (int k = 0; yoke_optim_kind(k) || k < YK_SCHEDULES; k++) {
		const char *kind = yoke_optim_kind(k);
		char keys[128];
		float loss[4] = { NAN, NAN, NAN, NAN };
		struct yk_config c;
		snprintf(keys, sizeof keys, "optimizer=%s lr=1e-3 schedule=%s",
			 kind ? kind : "adamw", yk_schedule_names[k % YK_SCHEDULES]);
		struct yk_trainer *t = make(&c, keys);
		const bool good = t && steps(t, 4, loss);
		ok(good && loss[3] < loss[0] + 0.05, "%s: loss %.4f .. %.4f", keys, loss[0],
		   loss[3]);
		drop(&c, t);
	}
}

// A non-finite loss ends the run and is never saved.
static void test_diverges(void)
{
	struct yk_config c;
	struct yk_trainer *t = make(&c, "lr=1000 warmup=0 schedule=constant clip=0 optimizer=sgd");
	float loss[1];
	int e = 0;

	if (!t)
		return;
	for (int i = 0; i < 20 && e == 0; i++)
		e = steps(t, 1, loss) ? 0 : yoke_error_code();
	ok(e == YOKE_ERANGE, "diverged: %s", yoke_error());
	yoke_error_clear();
	ok(yk_trainer_save(t, folder) == YOKE_ERANGE && !yk_checkpoint_exists(folder),
	   "and is not saved");
	drop(&c, t);
}

struct text {
	int32_t ids[64];
	int n, max;
};

static int collect(void *arg, int text, int32_t id)
{
	struct text *t = (struct text *)arg + text;

	t->ids[t->n++] = id;
	return t->n == t->max ? 1 : 0;
}

// Prompts of several lengths at once, beyond the window: the texts of each alone, one of which its
// caller ends.
static void test_several(struct yk_trainer *t, const struct yk_sampling *s)
{
	enum { N = 5 };
	static const char *const prompts[N] = { "abcdefg", "d", "efghijkabcdefghijkabcde", "kab",
						"abcdefghijkabcde" };
	struct yk_tokens prompt[N] = { 0 };
	struct text together[N] = {
		{ .max = 64 }, { .max = 64 }, { .max = 5 }, { .max = 64 }, { .max = 64 }
	};
	struct yk_sampling drawn = *s;
	int wrong = 0, e = 0;

	t->replica.net->by_row = true;
	drawn.temperature = 0.9;
	for (int i = 0; i < N && e == 0; i++)
		e = yk_tokenizer_encode(t->feed.tokenizer, prompts[i], strlen(prompts[i]),
					&prompt[i]);
	if (e == 0)
		e = yk_generate(t->replica.net, &drawn, N, prompt, 40, collect, together);
	for (int i = 0; i < N && e == 0; i++) {
		struct text alone = { .max = 64 };
		e = yk_generate(t->replica.net, &drawn, 1, &prompt[i], 40, collect, &alone);
		int n = i == 2 ? 5 : 40;
		wrong += together[i].n != n || alone.n != 40 ||
			 memcmp(alone.ids, together[i].ids, (size_t)n * sizeof(int32_t));
		yk_tokens_fini(&prompt[i]);
	}
	ok(e == 0 && !wrong, "%d prompts at once: %d differ from single prompts %s", N, wrong,
	   yoke_error());
	ok(yk_generate(t->replica.net, s, 0, prompt, 1, collect, together) == YOKE_EINVAL,
	   "no prompt: %s", yoke_error());
	yoke_error_clear();
	t->replica.net->by_row = false;
}

// A trained model goes on with the pattern, below the context's length and beyond it,
// with plans made once.
static void test_generate(const char *keys)
{
	struct yk_config c;
	struct yk_trainer *t = make(&c, keys);
	struct yk_sampling s = { .temperature = 0, .top_p = 1, .seed = 1 };
	struct yk_tokens prompt = { 0 };
	struct text a = { .max = 64 }, b = { .max = 64 };
	float loss[60];

	if (!t || !steps(t, 60, loss) ||
	    yk_tokenizer_encode(t->feed.tokenizer, "abcdefg", 7, &prompt) < 0) {
		ok(false, "generate: %s", yoke_error());
		return;
	}
	// the prompt, the second token, and the half window that a full one goes on with
	int e = yk_generate(t->replica.net, &s, 1, &prompt, 2, collect, &b);
	ok(e == 0 && b.n == 2, "two tokens are generated %s", yoke_error());
	uint64_t misses = stats().plan_misses;
	b.n = 0;
	e = yk_generate(t->replica.net, &s, 1, &prompt, 10, collect, &b);
	ok(e == 0 && b.n == 10 && stats().plan_misses == misses,
	   "until the window is full, no new plan %s", yoke_error());
	b.n = 0;
	e = yk_generate(t->replica.net, &s, 1, &prompt, 11, collect, &b);
	ok(e == 0 && (stats().plan_misses == misses + 1 || tap_eager()),
	   "one for the half window %s", yoke_error());
	misses = stats().plan_misses;
	b.n = 0;
	e = yk_generate(t->replica.net, &s, 1, &prompt, 40, collect, &a);
	ok(e == 0 && a.n == 40 && stats().plan_misses == misses, "40 tokens, no new plan %s",
	   yoke_error());
	int right = 0;
	for (int i = 0; i < a.n; i++)
		right += a.ids[i] == 'a' + (7 + i) % 11;
	ok(right >= 36, "the pattern continues: %d of 40", right);
	yk_generate(t->replica.net, &s, 1, &prompt, 40, collect, &b);
	ok(a.n == b.n && !memcmp(a.ids, b.ids, sizeof(int32_t) * 40),
	   "a repetition gives the same");
	b = (struct text){ .max = 3 };
	ok(yk_generate(t->replica.net, &s, 1, &prompt, 40, collect, &b) == 0 && b.n == 3,
	   "the caller ends it");
	test_several(t, &s);
	yk_tokens_fini(&prompt);
	drop(&c, t);
}

int main(void)
{
	char text[4000];

	tap_seed();
	const char *temporary = getenv("TMPDIR");
	snprintf(folder, sizeof folder, "%s/yoke-train-%d", temporary ? temporary : "/tmp",
		 (int)getpid());
	snprintf(text_path, sizeof text_path, "%s.txt", folder);
	for (size_t i = 0; i < sizeof text; i++)
		text[i] = (char)('a' + i % 11);
	int e = yk_file_write(text_path, text, sizeof text);
	if (!ok(e == 0, "a text %s", yoke_error()))
		return done();
	test_learns("");
	test_learns("model=mlp history=3");
	test_validation();
	test_sums(false);
	test_sums(true);
	test_accumulate("precision=bf16-mixed allow_emulated=1");
	test_accumulate("");
	test_accumulate("optimizer=accelerated restart=function lr=0.5");
	test_halves();
	test_resume("dropout=0");
	test_resume("dropout=0.2 accumulate=2 batch=4");
	test_resume("optimizer=sgd lr=0.1");
	test_resume("optimizer=adagrad window=3 schedule=linear clip_value=0.1");
	test_resume("optimizer=muon lr=1e-3 accumulate=2 batch=4");
	test_resume("optimizer=adafactor");
	test_resume(
		"optimizer=accelerated restart=function lr=0.1 accumulate=2 batch=4 dropout=0.1");
	test_resume("optimizer=rmsprop momentum=0.9 centered=1 lr=1e-3 schedule=onecycle");
	test_resume("model=mlp dropout=0.2 accumulate=2 batch=4");
	test_windows();
	test_other_shape("embed=64", "model=gpt layers=1 heads=2 embed=32 context=16;");
	test_other_shape("model=mlp", "model=gpt ");
	test_all_kinds();
	test_diverges();
	test_generate("");
	test_generate("model=mlp");
	unlink(text_path);
	return done();
}
