// SPDX-License-Identifier: Apache-2.0
// The engine: in every family each request has the bits it has alone, whatever else is in its
// steps, however its prompt is divided, with shared pages and after it was put back; tokens are
// those of text generation; choices, masks, stops, adapters; requests end with cancellation or a
// fault alone, and all pages return. `batching.t device` tests one family in several dtypes, on the
// device that YOKE_BACKEND names.
#include "config.h"

#include <limits.h>
#include <pthread.h>

#include "base/error.h"
#include "engine/pages.h"
#include "fault/fault.h"
#include "graph/context.h"
#include "nn/model.h"
#include "tap.h"
#include "../tests/models/recorded_files.h"
#include "yoke-engine.h"
#include "yoke-observe.h"

enum { MODELS = sizeof recorded / sizeof *recorded, TOKENS = 40, REQUESTS = 7, TOP = 5 };

struct script {
	int32_t prompt[64];
	struct yoke_engine_request is;
	int at; // number of steps before it is submitted
};

// What a choice received.
struct result {
	int32_t id[TOKENS], top[TOKENS][TOP];
	float logprob[TOKENS], top_logprob[TOKENS][TOP];
	int64_t n, cached;
	int reason, error, ends;
	int32_t last;
	int scores; // of the prompt
	int32_t score_id[TOKENS];
	float score[TOKENS], score_best[TOKENS];
};

static void receive(struct result *r, const struct yoke_engine_event *v)
{
	if (v->kind == YOKE_ENGINE_PROMPT) {
		if (r->scores < TOKENS) {
			r->score[r->scores] = v->logprob;
			r->score_id[r->scores] = v->token;
			r->score_best[r->scores] = v->alternatives ? v->alternative_logprob[0] : 1;
		}
		r->scores++;
		return;
	}
	if (v->kind == YOKE_ENGINE_END) {
		r->reason = v->reason;
		r->error = v->error;
		r->last = v->token;
		r->cached = v->cached;
		r->ends++;
		return;
	}
	if (r->n == TOKENS || v->generated != r->n + 1)
		return;
	r->id[r->n] = v->token;
	r->logprob[r->n] = v->logprob;
	for (int i = 0; i < v->alternatives && i < TOP; i++) {
		r->top[r->n][i] = v->alternative[i];
		r->top_logprob[r->n][i] = v->alternative_logprob[i];
	}
	r->n++;
}

static void on_event(void *user, const struct yoke_engine_event *v)
{
	receive((struct result *)user + v->choice, v);
}

// Runs requests to their ends, with results of choices 0 .. 7 each; false: a call failed.
static bool run_all(yoke_engine *e, struct script *s, int n,
		    struct result (*to)[YOKE_ENGINE_CHOICES])
{
	int left = 1, step = 0, next = 0;
	memset(to, 0, (size_t)n * sizeof *to);
	for (; left > 0 || next < n; step++) {
		for (; next < n && s[next].at <= step; next++) {
			s[next].is.size = sizeof s->is;
			s[next].is.prompt = s[next].prompt;
			s[next].is.event = on_event;
			s[next].is.user = to[next];
			if (yoke_engine_submit(e, &s[next].is) < 0)
				return false;
		}
		left = yoke_engine_step(e);
		if (left < 0 || step > 10000)
			return false;
	}
	return true;
}

static yoke_engine *engine_of(yoke_model *m, struct yoke_engine_options o)
{
	o.size = sizeof o;
	return yoke_engine_new(m, &o);
}

static bool is_idle(yoke_engine *e)
{
	struct yoke_engine_stats s = { .size = sizeof s };
	yoke_engine_stats(e, &s);
	if (s.running || s.queued || s.pages_used)
		diag("%lld running, %lld queued, %lld pages used", (long long)s.running,
		     (long long)s.queued, (long long)s.pages_used);
	return !s.running && !s.queued && !s.pages_used && s.ended == s.submitted;
}

static bool same_result(const struct result *a, const struct result *b)
{
	return a->n == b->n && a->scores == b->scores &&
	       !memcmp(a->score, b->score, sizeof a->score) && a->reason == b->reason &&
	       a->ends == 1 && b->ends == 1 && !memcmp(a->id, b->id, sizeof a->id) &&
	       !memcmp(a->logprob, b->logprob, sizeof a->logprob) &&
	       !memcmp(a->top, b->top, sizeof a->top) &&
	       !memcmp(a->top_logprob, b->top_logprob, sizeof a->top_logprob);
}

// Requests of many lengths, some with common beginnings, greedy and drawn.
static void make_scripts(struct script *s, int64_t context)
{
	static const int64_t lengths[REQUESTS] = { 14, 1, 37, 40, 17, 33, 40 };
	for (int i = 0; i < REQUESTS; i++) {
		const int64_t longest = context * 5 / 8,
			      count = lengths[i] < longest ? lengths[i] : longest;
		s[i] = (struct script){ .is = { .count = count,
						.tokens = 3 + 5 * (i % 4),
						.logprobs = TOP,
						.past_end = 1,
						.seed = 7 + i,
						.temperature = i % 2 ? 1.3 : 0,
						.top_k = i == 3 ? 9 : 0,
						.top_p = i == 5 ? 0.9 : 0,
						.repetition = i == 4 ? 1.3 : 0,
						.score_prompt = i == 2 || i == 6 },
					.at = i / 2 * 3 };
		for (int64_t k = 0; k < count; k++)
			s[i].prompt[k] = k < 20 ?
						 recorded_ids[k % RECORDED_TOKENS] :
						 (int32_t)((7 * k + 11 * (i / 2)) % RECORDED_VOCAB);
	}
}

static bool is_as_generated(yoke_model *m, const struct script *s, const struct result *r)
{
	const struct yoke_generation_options o = { .size = sizeof o,
						   .tokens = r->n,
						   .past_end = 1,
						   .temperature = s->is.temperature,
						   .top_k = s->is.top_k,
						   .top_p = s->is.top_p,
						   .repetition = s->is.repetition,
						   .seed = s->is.seed };
	const int32_t *prompt[] = { s->prompt };
	yoke_generation *g = yoke_generation_new(m, 1, prompt, &s->is.count, &o);
	bool same = g != NULL;
	for (int64_t i = 0; i < r->n && same; i++) {
		int32_t id = -1;
		same = yoke_generation_next(g, &id) == 1 && id == r->id[i];
	}
	yoke_generation_free(g);
	return same;
}

static struct result together[REQUESTS][YOKE_ENGINE_CHOICES], alone[REQUESTS][YOKE_ENGINE_CHOICES],
	again[REQUESTS][YOKE_ENGINE_CHOICES];

static const char *write_model(const char *name)
{
	for (int i = 0; i < MODELS; i++)
		if (!strcmp(recorded[i].name, name)) {
			struct tensors all = tensors_of(&recorded[i]);
			const char *path = write_folder(name, recorded[i].config, &all);
			tensors_free(&all);
			return path;
		}
	return NULL;
}

static int unlike(struct result (*a)[YOKE_ENGINE_CHOICES], struct result (*b)[YOKE_ENGINE_CHOICES])
{
	for (int i = 0; i < REQUESTS; i++)
		if (!same_result(a[i], b[i])) {
			diag("request %d: %lld and %lld tokens, reasons %d and %d, first %d %.9g and %d %.9g",
			     i, (long long)a[i]->n, (long long)b[i]->n, a[i]->reason, b[i]->reason,
			     a[i]->id[0], (double)a[i]->logprob[0], b[i]->id[0],
			     (double)b[i]->logprob[0]);
			return i;
		}
	return -1;
}

static void test_family(const char *name, const char *path, const struct yoke_model_options *how,
			const char *what)
{
	struct script s[REQUESTS];
	struct yoke_model_info info = { .size = sizeof info };
	yoke_model *m = yoke_model_open(path, how);
	yoke_model_info(m, &info);
	make_scripts(s, info.context);
	bool good = true, idle = true, generated = true;
	for (int i = 0; i < REQUESTS && good; i++) {
		const int at = s[i].at;
		yoke_engine *e = engine_of(m, (struct yoke_engine_options){ .reuse = -1 });
		s[i].at = 0;
		good = e && run_all(e, &s[i], 1, &alone[i]);
		s[i].at = at;
		idle = idle && good && is_idle(e);
		generated = generated && (!good || is_as_generated(m, &s[i], alone[i]));
		yoke_engine_free(e);
	}
	ok(good && idle, "%s %s: requests alone: %s", name, what, yoke_error());
	ok(good && generated, "%s %s: tokens, greedy and drawn, are those of text generation", name,
	   what);
	yoke_engine *e = engine_of(m, (struct yoke_engine_options){ .slots = 4, .step = 11 });
	good = e && run_all(e, s, REQUESTS, together);
	ok(good && unlike(together, alone) < 0 && is_idle(e),
	   "%s %s: together, in steps of 11 tokens, each has the bits it has alone %s", name, what,
	   yoke_error());
	struct yoke_engine_stats before = { .size = sizeof before },
				 after = { .size = sizeof after };
	yoke_engine_stats(e, &before);
	good = e && run_all(e, s, REQUESTS, again);
	yoke_engine_stats(e, &after);
	ok(good && unlike(again, alone) < 0 &&
		   (info.context < 64 || after.cached_tokens > before.cached_tokens + 64),
	   "%s %s: again, with %lld tokens found in pages, they have the same bits", name, what,
	   (long long)(after.cached_tokens - before.cached_tokens));
	yoke_engine_free(e);
	e = engine_of(m, (struct yoke_engine_options){
				 .slots = 7, .step = 64, .pages = info.context / 16 + 2 });
	good = e && run_all(e, s, REQUESTS, again);
	yoke_engine_stats(e, &after);
	ok(good && unlike(again, alone) < 0 && is_idle(e) &&
		   (info.context != 64 || after.preempted > 0),
	   "%s %s: with %lld pages, %lld sequences are put back, and have the same bits", name,
	   what, (long long)after.pages, (long long)after.preempted);
	yoke_engine_free(e);
	yoke_model_free(m);
	yoke_error_clear();
}

static void test_dtypes(void)
{
	static const char *const quants[] = { "q8_0", "q4_0" };
	for (int i = 0; i < 2; i++)
		test_family("llama", write_model("llama"),
			    &(struct yoke_model_options){ .size = sizeof(struct yoke_model_options),
							  .quant = quants[i],
							  .kv = "f16" },
			    quants[i]);
	static const char *const dtypes[] = { "f16", "bf16" };
	for (int i = 0; i < 2; i++)
		test_family("llama", write_model("llama"),
			    &(struct yoke_model_options){ .size = sizeof(struct yoke_model_options),
							  .dtype = dtypes[i] },
			    dtypes[i]);
}

static void test_families(void)
{
	for (int i = 0; i < MODELS; i++) {
		if (is_minimal(&recorded[i]) || strstr(recorded[i].config, "\"bert\""))
			continue;
		const char *path = write_model(recorded[i].name);
		test_family(recorded[i].name, path, NULL, "f32");
	}
}

// ---- one model ----

static int even_only(void *user, int choice, int64_t n, const int32_t *tokens, uint32_t *bits)
{
	(void)user, (void)choice, (void)tokens;
	for (int i = 0; i < RECORDED_VOCAB; i++)
		if (i % 2)
			bits[i / 32] &= ~(UINT32_C(1) << i % 32);
	return n == 5;
}

static int nothing(void *user, int choice, int64_t n, const int32_t *tokens, uint32_t *bits)
{
	(void)user, (void)choice, (void)n, (void)tokens;
	bits[0] = bits[1] = 0;
	return 0;
}

static int fails(void *user, int choice, int64_t n, const int32_t *tokens, uint32_t *bits)
{
	(void)user, (void)choice, (void)tokens, (void)bits;
	return n == 2 ? YOKE_EPERM : 0;
}

static struct script plain(int64_t count, int64_t tokens)
{
	struct script s = { .is = { .count = count, .tokens = tokens, .past_end = 1 } };
	for (int64_t i = 0; i < count; i++)
		s.prompt[i] = recorded_ids[i % RECORDED_TOKENS];
	return s;
}

static void test_sampling(yoke_model *m)
{
	yoke_engine *e = engine_of(m, (struct yoke_engine_options){ 0 });
	static struct result r[8][YOKE_ENGINE_CHOICES];
	struct script s[5];
	// choices
	s[0] = plain(35, 9);
	s[0].is.choices = 3;
	s[0].is.temperature = 1.5;
	s[0].is.seed = 40;
	for (int i = 1; i < 4; i++) {
		s[i] = s[0];
		s[i].is.choices = 1;
		s[i].is.seed = 40 + (uint64_t)i - 1;
	}
	bool good = run_all(e, s, 4, r);
	for (int i = 0; i < 3; i++)
		good = good && same_result(&r[0][i], &r[1 + i][0]);
	ok(good && r[0][1].cached == 32 && memcmp(r[0][0].id, r[0][1].id, sizeof r[0][0].id),
	   "3 choices are those of 3 seeds, and share the prompt's pages: %lld tokens",
	   (long long)r[0][1].cached);
	// masks
	s[0] = plain(14, 9);
	s[1] = s[2] = s[3] = s[0];
	s[0].is.mask = even_only;
	s[1].is.mask = nothing;
	s[2].is.mask = fails;
	good = run_all(e, s, 4, r);
	bool even = r[0]->n == 5 && r[0]->reason == YOKE_ENGINE_STOP;
	for (int64_t i = 0; i < r[0]->n; i++)
		even = even && r[0]->id[i] % 2 == 0;
	ok(good && even, "a mask leaves even tokens, and ends the text after 5: %lld tokens",
	   (long long)r[0]->n);
	ok(r[1]->reason == YOKE_ENGINE_ERROR && r[1]->error == YOKE_EFORMAT &&
		   r[2]->error == YOKE_EPERM && r[2]->n == 2 && r[3]->n == 9 &&
		   r[3]->reason == YOKE_ENGINE_LENGTH,
	   "a mask without a token, and one that fails, end their requests only");
	// stops and biases
	const int32_t stop[] = { r[3]->id[4] }, other[] = { r[3]->id[0] };
	const float bias[] = { -100 };
	int64_t first = 0;
	while (r[3]->id[first] != stop[0])
		first++;
	s[0] = s[1] = s[3];
	s[0].is.stop = stop;
	s[0].is.stops = 1;
	s[1].is.bias_id = other;
	s[1].is.bias = bias;
	s[1].is.biases = 1;
	good = run_all(e, s, 2, r);
	ok(good && r[0]->n == first && r[0]->reason == YOKE_ENGINE_STOP && r[0]->last == stop[0],
	   "a stop token ends the text, and is no part of it");
	ok(r[1]->n == 9 && r[1]->id[0] != other[0], "a bias of -100 forbids a token");
	s[0] = plain(60, 0);
	good = run_all(e, s, 1, r);
	ok(good && r[0]->n == 4 && r[0]->reason == YOKE_ENGINE_LENGTH,
	   "without a limit a text ends with the context: %lld tokens", (long long)r[0]->n);
	yoke_engine_free(e);
}

// The log-probabilities of a prompt beside those of each of its tokens as the next one of a shorter
// prompt.
static void test_scores(yoke_model *m)
{
	yoke_engine *e = engine_of(m, (struct yoke_engine_options){ .slots = 2 });
	static struct result r[1][YOKE_ENGINE_CHOICES], one[1][YOKE_ENGINE_CHOICES];
	struct script s = plain(35, 2);
	double got[35], want[35];
	s.is.score_prompt = 1;
	s.is.logprobs = 1;
	bool good = run_all(e, &s, 1, r) && r[0]->scores == 34 && r[0]->n == 2, order = true;
	for (int i = 1; i < 35 && good; i++) {
		struct script next = plain(i, 1);
		const int32_t id = s.prompt[i];
		const float bias = 1000;
		next.is.bias_id = &id;
		next.is.bias = &bias;
		next.is.biases = 1;
		next.is.logprobs = 1;
		good = run_all(e, &next, 1, one) && one[0]->id[0] == id;
		order = order && r[0]->score_id[i - 1] == id &&
			r[0]->score[i - 1] <= r[0]->score_best[i - 1];
		got[i] = (double)r[0]->score[i - 1];
		want[i] = (double)one[0]->logprob[0];
	}
	ok(good && order, "a prompt of 35 tokens gets 34 log-probabilities, in order: %d",
	   r[0]->scores);
	near(got + 1, want + 1, 34, 0, 1, "they are those of the tokens after shorter prompts");
	yoke_engine_free(e);
}

// ---- plans ----

static bool run_plain(yoke_engine *e, int n, int64_t count, int64_t tokens)
{
	static struct result r[REQUESTS][YOKE_ENGINE_CHOICES];
	struct script s[REQUESTS];
	for (int i = 0; i < n; i++) {
		s[i] = plain(count + i, tokens);
		s[i].prompt[0] = i; // no pages are shared
	}
	return run_all(e, s, n, r);
}

// After a warm-up no step needs a new plan. A step's operands are copied to the device at once, the
// frequencies of rotary embeddings apart, and its logits are copied back; the host waits for the
// device once.
static void test_plans(yoke_model *m)
{
	enum { SLOTS = 6, STEPS = 20 };
	yoke_engine *e = engine_of(
		m, (struct yoke_engine_options){ .slots = SLOTS, .step = 64, .reuse = -1 });
	struct yoke_counters before = { .size = sizeof before }, after = before, step = before;
	bool good = e != NULL;
	for (int n = 1; n <= SLOTS && good; n++)
		good = run_plain(e, n, 1, 3) && run_plain(e, n, 7, 2) && run_plain(e, n, 40, 2);
	yoke_counters(&before);
	for (int n = SLOTS; n >= 1 && good; n--)
		good = run_plain(e, n, 3, 9) && run_plain(e, n, 14, 5) && run_plain(e, n, 33, 4);
	yoke_counters(&after);
	yoke_counters_between(&before, &after, &step);
	ok(good && step.evals > 50 && !step.plan_misses,
	   "after a warm-up, %llu of %llu steps need a new plan %s",
	   (unsigned long long)step.plan_misses, (unsigned long long)step.evals, yoke_error());
	struct yoke_engine_request r = { .size = sizeof r,
					 .prompt = recorded_ids,
					 .count = 1,
					 .tokens = STEPS + 5,
					 .past_end = 1 };
	for (int i = 0; i < SLOTS && good; i++)
		good = yoke_engine_submit(e, &r) > 0;
	good = good && yoke_engine_step(e) > 0;
	yoke_counters(&before);
	for (int i = 0; i < STEPS && good; i++)
		good = yoke_engine_step(e) > 0;
	yoke_counters(&after);
	yoke_counters_between(&before, &after, &step);
	ok(good && step.evals == STEPS && step.copies_up <= 2 * STEPS &&
		   step.copies_down == STEPS && step.waits <= STEPS,
	   "a step: %.2f launches, copies %.2f up %.2f down, %.2f waits",
	   (double)step.launches / STEPS, (double)step.copies_up / STEPS,
	   (double)step.copies_down / STEPS, (double)step.waits / STEPS);
	while (good && yoke_engine_step(e) > 0)
		;
	yoke_engine_free(e);
}

static void test_refused(yoke_model *m)
{
	yoke_engine *e = engine_of(m, (struct yoke_engine_options){ .slots = 2, .queue = 1 });
	static const int32_t beyond[] = { 61 };
	static const struct {
		const char *what;
		int error;
		struct yoke_engine_request is;
	} bad[] = {
		{ "an empty prompt", YOKE_EINVAL, { .prompt = recorded_ids } },
		{ "no prompt", YOKE_EINVAL, { .count = 3 } },
		{ "a prompt that fills the context", YOKE_ESHAPE, { .count = 64 } },
		{ "9 choices", YOKE_EINVAL, { .count = 3, .choices = 9 } },
		{ "a NaN temperature", YOKE_EINVAL, { .count = 3, .temperature = NAN } },
		{ "21 alternatives", YOKE_EINVAL, { .count = 3, .logprobs = 21 } },
		{ "an unknown adapter", YOKE_ENOENT, { .count = 3, .adapter = "none" } },
		{ "a stop outside of the vocabulary",
		  YOKE_ERANGE,
		  { .count = 3, .stops = 1, .stop = beyond } },
	};
	static int32_t prompt[64];
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct yoke_engine_request r = bad[i].is;
		r.size = sizeof r;
		r.prompt = r.prompt || i == 1 ? r.prompt : prompt;
		const int64_t got = yoke_engine_submit(e, &r);
		ok(got == bad[i].error, "%s is refused: %s", bad[i].what, yoke_error());
		yoke_error_clear();
	}
	struct yoke_engine_request r = {
		.size = sizeof r, .prompt = prompt, .count = 3, .tokens = 1
	};
	struct yoke_engine_stats s = { .size = sizeof s };
	int64_t id[4];
	for (int i = 0; i < 4; i++)
		id[i] = yoke_engine_submit(e, &r);
	ok(id[0] == 1 && id[1] == 2 && id[2] == 3 && id[3] == YOKE_EBUSY,
	   "two requests have slots, one waits, and the full queue refuses another: %s",
	   yoke_error());
	yoke_error_clear();
	ok(yoke_engine_stats(e, &s) == 0 && s.waiting == 1 && s.queued == 3, "one waits: %d of %d",
	   (int)s.waiting, (int)s.queued);
	while (yoke_engine_step(e) > 0)
		;
	r.choices = 2;
	const int64_t pair = yoke_engine_submit(e, &r), after = yoke_engine_submit(e, &r),
		      refused = yoke_engine_submit(e, &r);
	ok(pair > 0 && after > 0 && refused == YOKE_EBUSY, "two choices take both slots: %s",
	   yoke_error());
	yoke_error_clear();
	ok(yoke_engine_cancel(e, 99) == YOKE_ENOENT, "an unknown request cannot be cancelled");
	yoke_error_clear();
	yoke_engine_free(e);
	ok(!engine_of(m, (struct yoke_engine_options){ .slots = 300 }) &&
		   yoke_error_code() == YOKE_EINVAL,
	   "300 slots are refused: %s", yoke_error());
	yoke_error_clear();
}

static void test_cancel(yoke_model *m)
{
	yoke_engine *e = engine_of(m, (struct yoke_engine_options){ .slots = 2 });
	struct yoke_engine_request r = { .size = sizeof r,
					 .prompt = recorded_ids,
					 .count = RECORDED_TOKENS,
					 .tokens = 20,
					 .past_end = 1 };
	const int64_t a = yoke_engine_submit(e, &r), b = yoke_engine_submit(e, &r),
		      c = yoke_engine_submit(e, &r);
	int64_t tokens[4] = { 0 };
	int reason[4] = { 0 };
	yoke_engine_step(e);
	yoke_engine_cancel(e, a); // it runs
	yoke_engine_cancel(e, c); // it waits
	struct yoke_engine_event v = { .size = sizeof v };
	while (yoke_engine_step(e) > 0)
		;
	while (yoke_engine_next(e, &v) > 0) {
		tokens[v.request] += v.kind == YOKE_ENGINE_TOKEN;
		reason[v.request] += v.kind == YOKE_ENGINE_END ? v.reason : 0;
	}
	ok(tokens[a] == 1 && reason[a] == YOKE_ENGINE_CANCELLED && tokens[c] == 0 &&
		   reason[c] == YOKE_ENGINE_CANCELLED && tokens[b] == 20 &&
		   reason[b] == YOKE_ENGINE_LENGTH && is_idle(e),
	   "running and waiting requests are cancelled, others go on: %lld %lld %lld tokens",
	   (long long)tokens[a], (long long)tokens[b], (long long)tokens[c]);
	ok(yoke_engine_cancel(e, a) == YOKE_ENOENT, "a request that has ended cannot be cancelled");
	yoke_error_clear();
	yoke_engine_free(e);
}

// ---- threads ----

struct client {
	yoke_engine *e;
	int64_t last, failed;
};

static void *client_thread(void *arg)
{
	struct client *c = arg;
	struct yoke_engine_request r = { .size = sizeof r,
					 .prompt = recorded_ids,
					 .count = RECORDED_TOKENS,
					 .tokens = 4,
					 .past_end = 1 };
	for (int i = 0; i < 25; i++) {
		const int64_t id = yoke_engine_submit(c->e, &r);
		c->failed += id < 0;
		if (i % 3 == 0 && id > 0)
			yoke_engine_cancel(c->e, id);
		yoke_error_clear();
	}
	yoke_engine_wake(c->e);
	return NULL;
}

static void test_threads(yoke_model *m)
{
	yoke_engine *e = engine_of(m, (struct yoke_engine_options){ .queue = 1000 });
	struct client c[4];
	pthread_t thread[4];
	int64_t ends = 0;
	for (int i = 0; i < 4; i++) {
		c[i] = (struct client){ .e = e };
		pthread_create(&thread[i], NULL, client_thread, &c[i]);
	}
	struct yoke_engine_event v = { .size = sizeof v };
	while (ends < 100) {
		yoke_engine_wait(e, 1000);
		if (yoke_engine_step(e) < 0)
			break;
		while (yoke_engine_next(e, &v) > 0)
			ends += v.kind == YOKE_ENGINE_END;
	}
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	yoke_engine_step(e);
	ok(ends == 100 && is_idle(e), "4 threads submit and cancel 100 requests: %lld ended",
	   (long long)ends);
	ok(yoke_engine_wait(e, 0) == 0, "an idle engine has nothing to step");
	yoke_engine_free(e);
}

// ---- adapters ----

// Writes an adapter whose matrices are random.
static void write_adapter(const char *model, const char *targets, int64_t rank, const char *name,
			  char path[300])
{
	const struct yoke_lora_options o = {
		.size = sizeof o, .rank = rank, .alpha = 2 * (double)rank, .targets = targets
	};
	yoke_tensor *p[64];
	yoke_model *m = yoke_model_open(model, NULL);
	yoke_model_adapt(m, &o);
	yoke_module *net = yoke_model_module(m);
	const int n = yoke_module_parameters(net, 64, p, NULL);
	for (int i = 0; i < n; i++) {
		float x[4096];
		for (int64_t k = 0; k < yoke_count(p[i]); k++)
			x[k] = (float)rnd_real(-0.3, 0.3);
		yoke_put(p[i], x, yoke_bytes(p[i]));
	}
	snprintf(path, 300, "%s/%s", folder, name);
	yoke_model_save_adapter(m, path, 1);
	yoke_module_free(net);
	yoke_model_free(m);
}

static void test_adapters(const char *model)
{
	static const char *const names[] = { "a", "b", NULL };
	char path[2][300], base[300];
	struct script s[REQUESTS];
	snprintf(base, sizeof base, "%s", model);
	write_adapter(base, "q,v", 3, "a", path[0]);
	write_adapter(base, "all", 2, "b", path[1]);
	yoke_model *m = yoke_model_open(base, NULL);
	yoke_engine *e = engine_of(m, (struct yoke_engine_options){ .slots = 5, .step = 20 });
	ok(e && !yoke_engine_adapter(e, "a", path[0]) && !yoke_engine_adapter(e, "b", path[1]),
	   "two adapters are opened: %s", yoke_error());
	ok(yoke_engine_adapter(e, "a", path[1]) == YOKE_EINVAL &&
		   yoke_engine_adapter(e, "c", folder) < 0,
	   "a name that is used, and a folder without an adapter, are refused");
	yoke_error_clear();
	make_scripts(s, 64);
	for (int i = 0; i < REQUESTS; i++)
		s[i].is.adapter = names[i % 3];
	bool good = run_all(e, s, REQUESTS, together), differ = false;
	for (int i = 0; i < REQUESTS && good; i++) {
		s[i].at = 0;
		good = run_all(e, &s[i], 1, &alone[i]);
	}
	ok(good && unlike(together, alone) < 0 && is_idle(e),
	   "requests with different adapters have the bits they have alone %s", yoke_error());
	for (int k = 0; k < 3; k++) {
		s[k] = plain(14, 12);
		s[k].is.adapter = names[k];
	}
	good = run_all(e, s, 3, together);
	for (int k = 0; k < 3 && good; k++) {
		yoke_model *own = yoke_model_open(base, NULL);
		if (names[k])
			good = yoke_model_load_adapter(own, path[k]) == 0;
		good = good && is_as_generated(own, &s[k], together[k]);
		differ = differ || memcmp(together[k]->id, together[2]->id, sizeof together[k]->id);
		yoke_model_free(own);
	}
	ok(good && differ, "tokens are those of a model with that adapter: %s", yoke_error());
	yoke_engine_free(e);
	yoke_model_free(m);
}

// ---- faults ----

static int count_reason(struct result (*r)[YOKE_ENGINE_CHOICES], int reason)
{
	int n = 0;
	for (int i = 0; i < REQUESTS; i++)
		n += r[i]->reason == reason;
	return n;
}

// The k-th call of a kind fails, for each k: all requests have the tokens that they have without.
static void test_faults(const char *path, const struct fault_control *ctl, const char *kind)
{
	struct script s[REQUESTS];
	struct yoke_engine_options o = { .slots = 2, .step = 16 };
	struct yoke_engine_stats stats = { .size = sizeof stats };
	int rounds = 0;
	yoke_model *m = yoke_model_open(path, NULL);
	yoke_engine *e = m ? engine_of(m, o) : NULL;
	make_scripts(s, 64);
	bool good = e && run_all(e, s, REQUESTS, alone);
	const long before = ctl->calls(kind);
	good = good && run_all(e, s, REQUESTS, alone);
	const long calls = ctl->calls(kind) - before;
	const long step = tap_long() ? 1 : calls / 12 + 1;
	for (long k = 1; k <= calls && good; k += step, rounds++) {
		ctl->arm(kind, k);
		good = run_all(e, s, REQUESTS, together) && unlike(together, alone) < 0 &&
		       is_idle(e);
		ctl->arm(kind, 0);
		yoke_error_clear();
		good = good && run_all(e, s, REQUESTS, again) && unlike(again, alone) < 0 &&
		       is_idle(e);
	}
	yoke_engine_stats(e, &stats);
	ok(good && (calls == 0) == (stats.failed_steps == 0) && stats.failed_steps <= rounds,
	   "%s: in %d rounds with a failed call, %lld steps fail, and all requests have their tokens %s",
	   kind, rounds, (long long)stats.failed_steps, yoke_error());
	yoke_error_clear();
	yoke_engine_free(e);
	yoke_model_free(m);
}

// Each n-th launch fails, from often to seldom: requests end with the error or have their tokens.
static void test_many_faults(yoke_model *m, const struct fault_control *ctl)
{
	struct script s[REQUESTS];
	yoke_engine *e = engine_of(m, (struct yoke_engine_options){ .slots = 4, .step = 16 });
	int failed[3] = { 0 }, rounds = 0, wrong = 0;
	make_scripts(s, 64);
	bool good = e && run_all(e, s, REQUESTS, alone);
	const long before = ctl->calls("run");
	yoke_engine_step(e);
	for (int i = 0; i < REQUESTS; i++)
		s[i].at = 0;
	struct yoke_engine_request r = {
		.size = sizeof r, .prompt = recorded_ids, .count = RECORDED_TOKENS, .tokens = 1
	};
	good = good && yoke_engine_submit(e, &r) > 0 && yoke_engine_step(e) == 0;
	const long launches = ctl->calls("run") - before; // of a step
	const long every[] = { 1, launches + launches / 2, 7 * launches };
	for (; rounds < 3 && good; rounds++) {
		int left = 1;
		memset(together, 0, sizeof together);
		for (int i = 0; i < REQUESTS; i++) {
			s[i].is.size = sizeof s->is;
			s[i].is.prompt = s[i].prompt;
			s[i].is.event = on_event;
			s[i].is.user = together[i];
			good = good && yoke_engine_submit(e, &s[i].is) > 0;
		}
		for (long last = ctl->calls("run"); left > 0;) {
			ctl->arm("run", every[rounds] - (ctl->calls("run") - last) % every[rounds]);
			left = yoke_engine_step(e);
		}
		ctl->arm("run", 0);
		failed[rounds] = count_reason(together, YOKE_ENGINE_ERROR);
		for (int i = 0; i < REQUESTS; i++)
			wrong += together[i]->ends != 1 ||
				 (together[i]->reason == YOKE_ENGINE_ERROR ?
					  together[i]->error >= 0 :
					  !same_result(together[i], alone[i]));
		good = good && left == 0 && is_idle(e);
	}
	good = good && run_all(e, s, REQUESTS, again) && unlike(again, alone) < 0 && is_idle(e);
	ok(good && !wrong && failed[0] == REQUESTS && failed[1] < REQUESTS && failed[2] == 0,
	   "each n-th launch fails, with %ld in a step: for n = %ld, %ld, %ld %d, %d, %d of %d requests end with the error",
	   launches, every[0], every[1], every[2], failed[0], failed[1], failed[2], REQUESTS);
	yoke_error_clear();
	yoke_engine_free(e);
}

// All steps fail until one request has ended with the error: the other one, which ran beside it,
// goes on.
static void test_one_at_fault(yoke_model *m, const struct fault_control *ctl)
{
	struct script s[REQUESTS];
	yoke_engine *e = engine_of(m, (struct yoke_engine_options){ .slots = 2 });
	int left = 1, steps = 0;
	make_scripts(s, 64);
	s[0].at = s[1].at = 0;
	bool good = e && run_all(e, s, 2, alone);
	memset(together, 0, sizeof together);
	for (int i = 0; i < 2 && good; i++) {
		s[i].is.user = together[i];
		good = yoke_engine_submit(e, &s[i].is) > 0;
	}
	for (; good && left > 0 && steps < 1000; steps++) {
		ctl->arm("run", together[0]->ends + together[1]->ends ? 0 : 1);
		left = yoke_engine_step(e);
	}
	ctl->arm("run", 0);
	ok(good && together[0]->reason == YOKE_ENGINE_ERROR && together[0]->error < 0 &&
		   same_result(together[1], alone[1]) && is_idle(e),
	   "a request that fails alone ends with the error (%s), and the one beside it has its tokens",
	   yoke_error_name(together[0]->error));
	yoke_engine_free(e);
}

// Launches fail for lack of memory in the first steps: the next ones are smaller, and no request is
// at fault.
static void test_memory(yoke_model *m, const struct fault_control *ctl)
{
	struct script s[REQUESTS];
	struct yoke_engine_stats stats = { .size = sizeof stats };
	int64_t largest = 0;
	int left = 1;
	make_scripts(s, 64);
	yoke_engine *e =
		engine_of(m, (struct yoke_engine_options){ .slots = 4, .step = 64, .reuse = -1 });
	bool good = e && run_all(e, s, REQUESTS, alone);
	memset(together, 0, sizeof together);
	for (int i = 0; i < REQUESTS && good; i++) {
		s[i].is.user = together[i];
		good = yoke_engine_submit(e, &s[i].is) > 0;
	}
	ctl->how("enomem");
	for (int step = 0; left > 0 && good; step += stats.failed_steps == 4) {
		ctl->arm("run", stats.failed_steps < 4 ? 1 : 0);
		left = yoke_engine_step(e);
		yoke_engine_stats(e, &stats);
		if (step > 0 && step < 30)
			largest =
				stats.last_step_tokens > largest ? stats.last_step_tokens : largest;
	}
	ctl->how("error");
	ok(good && stats.failed_steps == 4 && largest > 0 && largest <= 4 &&
		   unlike(together, alone) < 0 && is_idle(e),
	   "after %lld lacks of memory steps have %lld of 64 tokens, and all requests have their tokens",
	   (long long)stats.failed_steps, (long long)largest);
	yoke_engine_free(e);
}

// No memory is left during one step, for each step of a run: that step fails, and so does the new
// cache until memory returns.
static int starved(void)
{
	struct script s[REQUESTS];
	struct yoke_engine_stats stats = { .size = sizeof stats };
	yoke_context *c = yoke_context_new("fault");
	const struct fault_control *ctl = c ? c->device->ops->ext("fault") : NULL;
	if (!ctl)
		return 1;
	yoke_use(c);
	yoke_model *m = yoke_model_open(write_model("llama"), NULL);
	yoke_engine *e = engine_of(m, (struct yoke_engine_options){ .slots = 4, .step = 16 });
	make_scripts(s, 64);
	bool good = e && run_all(e, s, REQUESTS, alone);
	int rounds = 0;
	for (bool more = true; more && good; rounds++) {
		int left = 1, step = 0, next = 0;
		memset(together, 0, sizeof together);
		for (; left > 0 || next < REQUESTS; step++) {
			for (; next < REQUESTS && s[next].at <= step; next++) {
				s[next].is.user = together[next];
				good = good && yoke_engine_submit(e, &s[next].is) > 0;
			}
			if (step == rounds) {
				yoke_trim();
				ctl->memory(1, 0);
			}
			left = yoke_engine_step(e);
			ctl->memory(0, 0);
		}
		more = step > rounds;
		good = good && left == 0 && unlike(together, alone) < 0 && is_idle(e);
	}
	yoke_engine_stats(e, &stats);
	ok(good && stats.failed_steps >= rounds / 2 && rounds > 20,
	   "without memory in each of %d steps, %lld fail, and all requests have their tokens %s",
	   rounds, (long long)stats.failed_steps, yoke_error());
	yoke_engine_free(e);
	yoke_model_free(m);
	yoke_use(NULL);
	yoke_context_free(c);
	return done();
}

static void test_fault_backend(const char *path)
{
	static const char *const kinds[] = { "run", "put", "get", "late", "mark", "event" };
	yoke_context *c = yoke_context_new("fault"), *was = c ? yoke_use(c) : NULL;
	const struct fault_control *ctl =
		c && c->device->ops->ext ? c->device->ops->ext("fault") : NULL;
	if (!ctl) {
		yoke_error_clear();
		skip("faults", "the fault backend is not loaded");
		return;
	}
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		test_faults(path, ctl, kinds[i]);
	yoke_model *m = yoke_model_open(path, NULL);
	test_one_at_fault(m, ctl);
	test_many_faults(m, ctl);
	test_memory(m, ctl);
	yoke_model_free(m);
	yoke_use(was);
	yoke_context_free(c);
}

// ---- pages ----

static void test_pages(void)
{
	int32_t tokens[3][YK_PAGE];
	struct yk_pages *p = yk_pages_new(3);
	for (int i = 0; i < 3 * YK_PAGE; i++)
		tokens[i / YK_PAGE][i % YK_PAGE] = i;
	struct yk_page_chain a = yk_page_chain_of(0), b = a, other = yk_page_chain_of(1);
	const int32_t x = yk_page_alloc(p), y = yk_page_alloc(p);
	yk_page_filled(p, x, &a, tokens[0]);
	yk_page_filled(p, y, &a, tokens[1]);
	ok(yk_page_find(p, &other, tokens[0]) == YK_NO_PAGE,
	   "pages of another variant are not found");
	ok(yk_page_find(p, &b, tokens[1]) == YK_NO_PAGE && yk_page_find(p, &b, tokens[0]) == x &&
		   yk_page_find(p, &b, tokens[1]) == y,
	   "pages are found by their tokens and those before");
	yk_page_release(p, y);
	yk_page_release(p, x);
	yk_page_release(p, y);
	yk_page_release(p, x);
	struct yk_page_counts c = yk_pages_count(p);
	ok(c.used == 0 && c.kept == 2, "released pages are kept: %d", (int)c.kept);
	yk_page_alloc(p);
	ok(yk_page_alloc(p) == y, "the last page of a sequence is reused first");
	b = yk_page_chain_of(0);
	ok(yk_page_find(p, &b, tokens[0]) == x && yk_page_find(p, &b, tokens[1]) == YK_NO_PAGE &&
		   yk_page_alloc(p) == YK_NO_PAGE,
	   "the page before is still found; then all pages are used");
	yk_pages_free(p);
}

int main(int argc, char **argv)
{
	static char self[PATH_MAX], command[PATH_MAX + 64];
	if (!realpath(argv[0], self)) // a mode is its child process
		return 99;
	tap_plugin_path();
	tap_folder();
	mkdir(folder, 0777);
	if (argc > 1 && !strcmp(argv[1], "starved"))
		return starved();
	tap_seed();
	if (argc > 1 && !strcmp(argv[1], "device")) {
		test_family("llama", write_model("llama"), NULL, "f32");
		test_dtypes();
		yoke_model *m = yoke_model_open(write_model("llama"), NULL);
		test_plans(m);
		yoke_model_free(m);
		return done();
	}
	test_pages();
	test_families();
	test_dtypes();
	yoke_model *m = yoke_model_open(write_model("llama"), NULL);
	test_sampling(m);
	test_scores(m);
	test_plans(m);
	test_refused(m);
	test_cancel(m);
	test_threads(m);
	yoke_model_free(m);
	test_adapters(write_model("llama"));
	test_fault_backend(write_model("llama"));
	snprintf(command, sizeof command, "YOKE_POOL=0 '%s' starved", self);
	if (getenv("YOKE_TEST_MODULES"))
		ok(tap_run(command), "a run that lacks memory in one step, for each step");
	return done();
}
