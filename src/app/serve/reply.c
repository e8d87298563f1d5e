// SPDX-License-Identifier: Apache-2.0
// Writes replies.  A completion and a chat differ in their names and in the form of
// log-probabilities.
#include "config.h"

#include "serve/reply.h"

#include <math.h>

static json_t *text_of(const char *s, size_t n)
{
	struct yk_string valid = { 0 };
	yk_utf8_lossy(&valid, s, n);
	json_t *o = valid.failed ? NULL : json_stringn(valid.s ? valid.s : "", valid.n);
	yk_string_fini(&valid);
	return o;
}

// JSON has no infinity.
static json_t *logprob_of(float v)
{
	return json_real(isfinite(v) ? (double)v : -9999);
}

static json_t *token_entry(struct yk_serve *s, int32_t id, float logprob)
{
	size_t n = 0;
	const char *text = yk_tokenizer_decode(s->lm.pieces, id, &n);
	if (!text || !n || yoke_tokenizer_is_special(s->lm.tokenizer, id) > 0)
		text = yoke_tokenizer_piece(s->lm.tokenizer, id, &n);
	json_t *bytes = json_array();
	for (size_t i = 0; text && i < n; i++)
		json_array_append_new(bytes, json_integer((unsigned char)text[i]));
	return json_pack("{s:o, s:o, s:o}", "token", text_of(text ? text : "", text ? n : 0),
			 "logprob", logprob_of(logprob), "bytes", bytes);
}

json_t *yk_reply_first_entry(struct yk_serve *s, int32_t id)
{
	json_t *o = token_entry(s, id, 0);
	json_object_set_new(o, "logprob", json_null());
	return o;
}

json_t *yk_reply_entry(struct yk_serve *s, const struct yoke_engine_event *v)
{
	json_t *o = token_entry(s, v->token, v->logprob), *top = json_array();
	for (int i = 0; i < v->alternatives; i++)
		json_array_append_new(top,
				      token_entry(s, v->alternative[i], v->alternative_logprob[i]));
	if (json_object_set_new(o, "top_logprobs", top) == 0)
		return o;
	json_decref(o);
	return NULL;
}

// The form of /v1/completions: a list for each quantity.  at: bytes of the text before these
// tokens.
static json_t *lists_of(const json_t *entries, int alternatives, size_t *at)
{
	json_t *tokens = json_array(), *values = json_array(), *tops = json_array(),
	       *offsets = json_array();
	for (size_t i = 0; i < json_array_size(entries); i++) {
		json_t *e = json_array_get(entries, i), *token = json_object_get(e, "token");
		const json_t *top = json_object_get(e, "top_logprobs");
		json_t *best = top ? json_object() : json_null();
		for (size_t k = 0; k < json_array_size(top); k++) {
			json_t *t = json_array_get(top, k);
			const char *name = json_string_value(json_object_get(t, "token"));
			if (name &&
			    !json_object_get(best, name)) // two tokens may have one spelling
				json_object_set(best, name, json_object_get(t, "logprob"));
		}
		json_array_append(tokens, token);
		json_array_append(values, json_object_get(e, "logprob"));
		json_array_append_new(tops, best);
		json_array_append_new(offsets, json_integer((json_int_t)*at));
		*at += json_string_length(token);
	}
	if (alternatives < 1) {
		json_decref(tops);
		tops = json_null();
	}
	return json_pack("{s:o, s:o, s:o, s:o}", "tokens", tokens, "token_logprobs", values,
			 "top_logprobs", tops, "text_offset", offsets);
}

static json_t *logprobs_of(const struct yk_reply *r, struct yk_choice *c)
{
	if (!r->request->logprobs)
		return json_null();
	json_t *entries = yk_choice_entries(c);
	if (r->request->chat)
		return json_pack("{s:o, s:n}", "content", entries, "refusal");
	json_t *o = lists_of(entries, r->request->logprobs, &c->offset);
	json_decref(entries);
	return o;
}

static json_t *take_text(struct yk_choice *c)
{
	json_t *o = json_stringn(c->text.s ? c->text.s : "", c->text.n);
	c->text.n = 0;
	return o;
}

static json_t *usage_of(const struct yk_usage *u)
{
	return json_pack("{s:I, s:I, s:I, s:{s:I}}", "prompt_tokens", (json_int_t)u->prompt,
			 "completion_tokens", (json_int_t)u->generated, "total_tokens",
			 (json_int_t)(u->prompt + u->generated), "prompt_tokens_details",
			 "cached_tokens", (json_int_t)u->cached);
}

static json_t *reply(const struct yk_reply *r, bool chunk, json_t *choices, json_t *usage)
{
	const char *chat = chunk ? "chat.completion.chunk" : "chat.completion";
	return json_pack("{s:s, s:s, s:I, s:s, s:s, s:o, s:o*}", "id", r->id, "object",
			 r->request->chat ? chat : "text_completion", "created",
			 (json_int_t)r->created, "model", r->request->model->name,
			 "system_fingerprint", "yoke-" VERSION, "choices", choices, "usage", usage);
}

json_t *yk_reply_whole(const struct yk_reply *r)
{
	json_t *choices = json_array();
	for (int i = 0; i < r->choices; i++) {
		struct yk_choice *c = &r->choice[i];
		json_t *text = take_text(c), *logprobs = logprobs_of(r, c);
		if (r->request->chat)
			text = json_pack("{s:s, s:o, s:n}", "role", "assistant", "content", text,
					 "refusal");
		json_array_append_new(choices,
				      json_pack("{s:i, s:o, s:o, s:s?}", "index", i,
						r->request->chat ? "message" : "text", text,
						"logprobs", logprobs, "finish_reason", c->finish));
	}
	return reply(r, false, choices, usage_of(&r->usage));
}

json_t *yk_reply_chunk(const struct yk_reply *r, int choice, enum yk_reply_delta kind)
{
	json_t *choices = json_array(), *usage = NULL;
	if (kind == YK_CHUNK_USAGE) {
		usage = usage_of(&r->usage);
	} else {
		struct yk_choice *c = &r->choice[choice];
		json_t *text = kind == YK_CHUNK_TEXT ? take_text(c) : json_string("");
		json_t *logprobs = kind == YK_CHUNK_TEXT ? logprobs_of(r, c) : json_null();
		if (r->request->chat && kind == YK_CHUNK_FIRST)
			text = json_pack("{s:s, s:o}", "role", "assistant", "content", text);
		else if (r->request->chat && kind == YK_CHUNK_TEXT)
			text = json_pack("{s:o}", "content", text);
		else if (r->request->chat) {
			json_decref(text);
			text = json_object();
		}
		json_array_append_new(choices, json_pack("{s:i, s:o, s:o, s:s?}", "index", choice,
							 r->request->chat ? "delta" : "text", text,
							 "logprobs", logprobs, "finish_reason",
							 kind == YK_CHUNK_LAST ? c->finish : NULL));
		usage = r->request->usage ? json_null() : NULL;
	}
	return reply(r, true, choices, usage);
}
