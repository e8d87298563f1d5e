// SPDX-License-Identifier: Apache-2.0
// A request for completions in the engine: a submission for each prompt, whose choices become one
// reply or one stream.
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/system.h"
#include "serve/call.h"
#include "serve/mask.h"
#include "serve/reply.h"

struct completions;

struct submission {
	struct completions *of;
	int first;       // its first choice in the reply
	int64_t request; // in the engine; 0: not submitted
	int open;        // choices that have not ended
	bool counted;    // its prompt is part of the usage
};

struct completions {
	struct yk_serve_call call; // the first member
	struct yk_completion_request request;
	struct yk_reply reply;
	struct submission *submission;
	struct yk_mask *mask; // of each choice
	int open;             // choices that have not ended
	bool begun;           // the first token was made
};

static struct yk_choice *choices_new(int n)
{
	return calloc((size_t)n, sizeof(struct yk_choice));
}

// ---- the reply ----

static void send(struct completions *c, int choice, enum yk_reply_delta kind)
{
	json_t *o = yk_reply_chunk(&c->reply, choice, kind);
	char *text = o ? yk_json_text(o, JSON_COMPACT) : NULL;
	json_decref(o);
	if (text)
		yk_exchange_event(c->call.x, text, strlen(text));
	else
		yk_exchange_error(c->call.x, 500, NULL, NULL, "no memory for a reply");
	free(text);
}

static void send_ready(struct completions *c, int choice)
{
	const struct yk_choice *k = &c->reply.choice[choice];
	if (c->request.stream && (k->text.n || k->ready > k->taken))
		send(c, choice, YK_CHUNK_TEXT);
}

static void finish(struct completions *c)
{
	struct yk_exchange *x = c->call.x;
	for (int i = 0; i < c->reply.choices; i++)
		c->reply.usage.generated += c->reply.choice[i].tokens;
	if (!c->request.stream) {
		yk_exchange_json(x, 200, yk_reply_whole(&c->reply));
		return;
	}
	if (c->request.usage)
		send(c, 0, YK_CHUNK_USAGE);
	yk_exchange_end(x, "[DONE]", 6);
}

// ---- events of the engine ----

// The texts of the other choices are of no use after an error.
static void fail(struct completions *c)
{
	yk_exchange_failed(c->call.x, NULL);
	if (!c->call.cancelled)
		c->call.kind->cancel(&c->call);
	c->call.cancelled = true;
}

// Appends the text of a token to a choice; takes the entry.
static bool add_token(struct completions *c, struct yk_choice *k, const struct yk_stops *stops,
		      int32_t id, json_t *entry)
{
	struct yk_serve *serve = c->call.serve;
	size_t bytes = 0;
	const char *text = yk_tokenizer_decode(serve->lm.pieces, id, &bytes);
	if (!text || yoke_tokenizer_is_special(serve->lm.tokenizer, id) > 0)
		bytes = 0;
	if (yk_choice_add(k, stops, text ? text : "", bytes, entry) == 0)
		return true;
	fail(c);
	return false;
}

// Begins choices with the prompt.  With log-probabilities all tokens but the first wait for their
// events.
static void echo(struct completions *c, const struct submission *s,
		 const struct yk_token_list *prompt)
{
	static const struct yk_stops none;
	const size_t n = c->request.logprobs ? 1 : prompt->n;
	for (int i = 0; i < c->request.choices; i++) {
		struct yk_choice *k = &c->reply.choice[s->first + i];
		for (size_t t = 0; t < n; t++) {
			json_t *entry = c->request.logprobs ?
						yk_reply_first_entry(c->call.serve, prompt->id[t]) :
						NULL;
			if (!add_token(c, k, &none, prompt->id[t], entry))
				return;
		}
		k->tokens = 0;
	}
}

static void take_prompt(struct completions *c, struct submission *s,
			const struct yoke_engine_event *v)
{
	static const struct yk_stops none;
	for (int i = 0; i < c->request.choices; i++) {
		struct yk_choice *k = &c->reply.choice[s->first + i];
		if (!add_token(c, k, &none, v->token, yk_reply_entry(c->call.serve, v)))
			return;
		k->tokens = 0;
		send_ready(c, s->first + i);
	}
}

static void take_token(struct completions *c, struct submission *s,
		       const struct yoke_engine_event *v)
{
	struct yk_serve *serve = c->call.serve;
	struct yk_choice *k = &c->reply.choice[s->first + v->choice];
	const double now = yk_seconds();
	if (k->stopped || k->finish || c->request.none)
		return;
	if (!c->begun)
		yk_metrics_observe(&serve->metrics, YK_TTFT, now - yk_exchange_began(c->call.x));
	c->begun = true;
	if (k->tokens)
		yk_metrics_observe(&serve->metrics, YK_TOKEN, now - k->last);
	k->last = now;
	if (!add_token(c, k, &c->request.stops, v->token,
		       c->request.logprobs ? yk_reply_entry(serve, v) : NULL))
		return;
	send_ready(c, s->first + v->choice);
	if (k->stopped && s->open == 1) // of several choices each is ended by the mask
		yoke_engine_cancel(serve->lm.engine, s->request);
}

static void take_end(struct completions *c, struct submission *s, const struct yoke_engine_event *v)
{
	struct yk_choice *k = &c->reply.choice[s->first + v->choice];
	s->open--;
	c->open--;
	if (!s->counted) {
		c->reply.usage.prompt += v->prompt;
		c->reply.usage.cached += v->cached;
		s->counted = true;
	}
	if (!c->call.cancelled && v->reason == YOKE_ENGINE_ERROR) {
		yk_warn("serve", "request %" PRIu64 ": the engine failed: %s",
			yk_exchange_id(c->call.x), yk_error_text(v->error));
		yk_fail(v->error, "the computation failed: %s",
			v->message ? v->message : yk_error_text(v->error));
		fail(c);
	} else if (!c->call.cancelled) {
		if (yk_choice_end(k, &c->request.stops,
				  v->reason == YOKE_ENGINE_LENGTH || c->request.none ?
					  "length" :
					  "stop") < 0) {
			fail(c);
		} else {
			send_ready(c, s->first + v->choice);
			if (c->request.stream)
				send(c, s->first + v->choice, YK_CHUNK_LAST);
			if (!c->open)
				finish(c);
		}
	}
	if (!c->open)
		c->call.done = true;
}

static void take_event(void *arg, const struct yoke_engine_event *v)
{
	struct submission *s = arg;
	if (v->kind == YOKE_ENGINE_END)
		take_end(s->of, s, v);
	else if (!s->of->call.cancelled && v->kind == YOKE_ENGINE_PROMPT)
		take_prompt(s->of, s, v);
	else if (!s->of->call.cancelled)
		take_token(s->of, s, v);
}

// Ends a choice that has met a stop text while others of its request go on; applies a schema.
static int mask(void *arg, int choice, int64_t n, const int32_t *tokens, uint32_t *bits)
{
	const struct submission *s = arg;
	const struct completions *c = s->of;
	if (c->reply.choice[s->first + choice].stopped)
		return 1;
	return yk_mask_apply(&c->mask[s->first + choice], n, tokens, bits,
			     yk_schema_vocab_words(c->call.serve->lm.schemas));
}

// ---- the call ----

static int64_t submit(struct completions *c, struct submission *s,
		      const struct yk_token_list *prompt)
{
	const struct yk_completion_request *a = &c->request;
	const struct yoke_engine_request r = {
		.size = sizeof r,
		.prompt = prompt->id,
		.count = (int64_t)prompt->n,
		.tokens = a->tokens,
		.choices = a->choices,
		.biases = a->biases,
		.bias_id = a->bias_id,
		.bias = a->bias,
		.repetition = a->repetition,
		.frequency = a->frequency,
		.presence = a->presence,
		.temperature = a->temperature,
		.top_k = a->top_k,
		.top_p = a->top_p,
		.min_p = a->min_p,
		.seed = a->seed,
		.past_end = a->past_end,
		.adapter = a->model->adapter ? a->model->name : NULL,
		.logprobs = a->logprobs,
		.score_prompt = a->echo && a->logprobs,
		.mask = a->schema || (a->stops.n && a->choices > 1) ? mask : NULL,
		.event = take_event,
		.user = s,
	};
	return yoke_engine_submit(c->call.serve->lm.engine, &r);
}

static void refuse(struct yk_exchange *x, int64_t e)
{
	if (e == YOKE_EBUSY) {
		yoke_error_clear();
		yk_serve_refuse(x);
	} else {
		yk_exchange_failed(x, NULL);
	}
}

static void start(struct yk_serve_call *call)
{
	struct completions *c = (struct completions *)call;
	for (int i = 0; i < c->request.prompts && !call->cancelled; i++) {
		struct submission *s = &c->submission[i];
		const int64_t request = submit(c, s, &c->request.prompt[i]);
		if (request > 0) {
			s->request = request;
			s->open = c->request.choices;
			c->open += c->request.choices;
		} else {
			refuse(call->x, request);
			call->cancelled = true;
			call->kind->cancel(call);
		}
	}
	call->done = !c->open;
	if (c->request.stream && !call->cancelled) {
		yk_exchange_stream(call->x);
		for (int i = 0; i < c->reply.choices && c->request.chat; i++)
			send(c, i, YK_CHUNK_FIRST);
	}
	for (int i = 0; i < c->request.prompts && c->request.echo && !call->cancelled; i++)
		echo(c, &c->submission[i], &c->request.prompt[i]);
	for (int i = 0; i < c->reply.choices && c->request.echo && !call->cancelled; i++)
		send_ready(c, i);
}

static void cancel(struct yk_serve_call *call)
{
	struct completions *c = (struct completions *)call;
	for (int i = 0; i < c->request.prompts; i++)
		if (c->submission[i].open &&
		    yoke_engine_cancel(call->serve->lm.engine, c->submission[i].request) < 0)
			yoke_error_clear(); // it has ended in the meantime
}

static void release(struct yk_serve_call *call)
{
	struct completions *c = (struct completions *)call;
	for (int i = 0; c->reply.choice && i < c->reply.choices; i++)
		yk_choice_fini(&c->reply.choice[i]);
	for (int i = 0; c->mask && i < c->reply.choices; i++)
		yk_schema_end(c->mask[i].state);
	free(c->mask);
	free(c->reply.choice);
	free(c->submission);
	yk_completion_request_fini(&c->request);
	free(c);
}

static const struct yk_call_kind completions_kind = { start, NULL, cancel, release };

static int begin_masks(struct completions *c)
{
	c->mask = calloc((size_t)c->reply.choices, sizeof *c->mask);
	if (!c->mask)
		return yk_fail(YOKE_ENOMEM, "no memory for a request");
	for (int i = 0; i < c->reply.choices && c->request.schema; i++) {
		c->mask[i].state = yk_schema_begin(c->request.schema);
		if (!c->mask[i].state)
			return yk_error_last();
	}
	return 0;
}

static int name_reply(struct yk_reply *r, bool chat)
{
	uint64_t bits[2];
	const int e = yk_random(bits, sizeof bits);
	if (e == 0)
		snprintf(r->id, sizeof r->id, "%s-%016" PRIx64 "%08" PRIx32,
			 chat ? "chatcmpl" : "cmpl", bits[0], (uint32_t)bits[1]);
	return e;
}

void yk_call_completions(struct yk_serve *s, struct yk_exchange *x, bool chat)
{
	struct yk_completion_request request;
	if (!yk_completion_request_read(s, x, chat, &request))
		return;
	struct completions *c = calloc(1, sizeof *c);
	if (!c) {
		yk_completion_request_fini(&request);
		yk_exchange_error(x, 500, NULL, NULL, "no memory for a request");
		return;
	}
	c->call = (struct yk_serve_call){ .serve = s,
					  .x = x,
					  .kind = &completions_kind,
					  .prompts = request.prompts,
					  .choices = request.choices };
	c->request = request;
	c->reply.request = &c->request;
	c->reply.created = (int64_t)yk_unix_seconds();
	c->reply.choices = request.prompts * request.choices;
	c->reply.choice = choices_new(c->reply.choices);
	c->submission = calloc((size_t)request.prompts, sizeof *c->submission);
	int e = c->reply.choice && c->submission ? name_reply(&c->reply, chat) :
						   yk_fail(YOKE_ENOMEM, "no memory for a request");
	if (e == 0)
		e = begin_masks(c);
	if (e < 0) {
		yk_exchange_failed(x, NULL);
		release(&c->call);
		return;
	}
	for (int i = 0; i < request.prompts; i++)
		c->submission[i] = (struct submission){ .of = c, .first = i * request.choices };
	if (!yk_serve_arrive(s, &c->call))
		release(&c->call);
}
