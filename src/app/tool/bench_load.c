// SPDX-License-Identifier: Apache-2.0
// Clients are threads with a connection each, which take the next request when they are done with
// one.  What a request contains follows from the seed and its number, whichever client sends it.
#include "config.h"

#include "tool/bench_load.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/philox.h"
#include "http/client.h"
#include "tokenizer/pieces.h"

const char *const yk_load_endpoints[YK_LOAD_ENDPOINTS] = { "completions", "chat", "embeddings" };
static const char *const paths[YK_LOAD_ENDPOINTS] = { "/v1/completions", "/v1/chat/completions",
						      "/v1/embeddings" };

// Common words, each after a space: for most models one token.
static const char *const words[] = {
	" the",     " of",     " and",   " to",    " in",   " is",      " was",    " for",
	" that",    " on",     " as",    " with",  " by",   " at",      " from",   " are",
	" this",    " be",     " an",    " have",  " it",   " not",     " were",   " which",
	" or",      " had",    " one",   " their", " has",  " its",     " been",   " first",
	" two",     " new",    " more",  " other", " when", " there",   " time",   " who",
	" also",    " after",  " may",   " would", " into", " over",    " only",   " year",
	" some",    " these",  " can",   " most",  " made", " between", " during", " under",
	" many",    " such",   " about", " where", " then", " than",    " them",   " very",
	" against", " number", " state", " work"
};
enum { WORDS = sizeof words / sizeof *words };

struct run {
	const struct yk_load *is;
	struct yk_load_result *to;
	const int32_t *id; // tokens of the words; NULL: the server reports none
	int64_t ids;
	_Atomic int64_t next;
	int64_t end;
	bool measured;
	pthread_mutex_t lock; // protects `to->gap`
	size_t room;
};

// ---- requests ----

static uint32_t draw(const struct run *r, int64_t request, uint64_t step)
{
	return yk_philox((uint64_t)request, r->is->seed, step);
}

static int64_t in_range(const struct run *r, int64_t request, struct yk_load_range range,
			uint64_t step)
{
	return range.min +
	       (int64_t)(draw(r, request, step) % (uint64_t)(range.max - range.min + 1));
}

// The prompt of a request, or text `input` of its texts.
static json_t *prompt_of(const struct run *r, int64_t request, int64_t input)
{
	const uint64_t step = 3 + ((uint64_t)input << 32);
	const bool ids = r->id && r->is->endpoint == YK_LOAD_COMPLETIONS;
	const int64_t n = in_range(r, request, r->is->prompt, 2);
	struct yk_string text = { 0 };
	json_t *list = ids ? json_array() : NULL;
	for (int64_t i = 0; i < n; i++) {
		const uint32_t x = draw(r, i < r->is->shared ? -1 : request, step + (uint64_t)i);
		const char *word = words[x % WORDS];
		if (ids)
			json_array_append_new(list, json_integer(r->id[x % (uint64_t)r->ids]));
		else
			yk_string_add(&text, word + !i, strlen(word) - !i);
	}
	if (!ids)
		list = text.failed ? NULL : json_stringn(text.s ? text.s : "", text.n);
	yk_string_fini(&text);
	return list;
}

static json_t *embeddings_body(const struct run *r, int64_t request)
{
	json_t *list = json_array();
	for (int64_t i = 0; i < r->is->inputs; i++)
		json_array_append_new(list, prompt_of(r, request, i));
	return json_pack("{s:s, s:o}", "model", r->to->model, "input", list);
}

static char *body_of(const struct run *r, int64_t request)
{
	const bool chat = r->is->endpoint == YK_LOAD_CHAT;
	json_t *o;
	if (r->is->endpoint == YK_LOAD_EMBEDDINGS) {
		o = embeddings_body(r, request);
	} else {
		json_t *prompt = prompt_of(r, request, 0);
		if (chat)
			prompt = json_pack("[{s:s, s:o}]", "role", "user", "content", prompt);
		o = json_pack("{s:s, s:o, s:I, s:i, s:b, s:b}", "model", r->to->model,
			      chat ? "messages" : "prompt", prompt, "max_tokens",
			      (json_int_t)in_range(r, request, r->is->tokens, 1), "temperature", 0,
			      "ignore_eos", 1, "stream", r->is->stream);
		if (o && r->is->stream)
			json_object_set_new(o, "stream_options",
					    json_pack("{s:b}", "include_usage", 1));
	}
	char *text = o ? yk_json_text(o, JSON_COMPACT) : NULL;
	json_decref(o);
	return text;
}

// ---- replies ----

struct reply {
	struct run *run;
	struct yk_load_sample *to;
	double began, last;     // last: of the last text; 0: none yet
	struct yk_string bytes; // a whole reply, or a line of a stream
	bool ended;
	int64_t texts;
};

static int collect(void *arg, const char *bytes, size_t n)
{
	struct reply *r = arg;
	yk_string_add(&r->bytes, bytes, n);
	return r->bytes.failed ? yk_fail(YOKE_ENOMEM, "no memory for a reply") : 0;
}

static int64_t count(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

static void take_usage(struct yk_load_sample *to, const json_t *o)
{
	const json_t *usage = json_object_get(o, "usage");
	if (!json_is_object(usage))
		return;
	to->prompt = count(usage, "prompt_tokens");
	to->generated = count(usage, "completion_tokens");
	to->cached = count(json_object_get(usage, "prompt_tokens_details"), "cached_tokens");
}

static void take_error(struct yk_load_sample *to, const json_t *o, int status)
{
	const json_t *error = json_object_get(o, "error");
	const char *message = json_string_value(
		json_is_string(error) ? error : json_object_get(error, "message"));
	snprintf(to->error, sizeof to->error, "status %d%s%.120s", status, message ? ": " : "",
		 message ? message : "");
}

static bool has_text(const json_t *o)
{
	const json_t *choice = json_array_get(json_object_get(o, "choices"), 0),
		     *delta = json_object_get(choice, "delta");
	return json_string_length(
		       json_object_get(delta ? delta : choice, delta ? "content" : "text")) > 0;
}

static int add_gap(struct run *r, double seconds)
{
	struct yk_load_result *to = r->to;
	pthread_mutex_lock(&r->lock);
	const int e = yk_grow(&to->gap, &r->room, (size_t)to->gaps + 1, sizeof *to->gap);
	if (e == 0)
		to->gap[to->gaps++] = seconds;
	pthread_mutex_unlock(&r->lock);
	return e;
}

static int take_event(struct reply *r, const char *text, size_t n)
{
	const double now = yk_seconds();
	int e = 0;
	if (n == 6 && !memcmp(text, "[DONE]", 6)) {
		r->ended = true;
		return 0;
	}
	json_t *o = yk_json_parse(text, n, "an event");
	if (!o)
		return yoke_error_code();
	if (json_object_get(o, "error"))
		take_error(r->to, o, 200);
	take_usage(r->to, o);
	if (has_text(o)) {
		if (r->last == 0)
			r->to->first = now - r->began;
		else if (r->run->measured)
			e = add_gap(r->run, now - r->last);
		r->last = now;
		r->texts++;
	}
	json_decref(o);
	return e;
}

// Takes the lines of a stream of server-sent events.
static int take_lines(void *arg, const char *bytes, size_t n)
{
	struct reply *r = arg;
	int e = collect(r, bytes, n);
	size_t from = 0;
	for (const char *end;
	     e == 0 && (end = memchr(r->bytes.s + from, '\n', r->bytes.n - from));) {
		const char *line = r->bytes.s + from;
		size_t length = (size_t)(end - line);
		from += length + 1;
		length -= length && line[length - 1] == '\r';
		if (length > 6 && !memcmp(line, "data: ", 6))
			e = take_event(r, line + 6, length - 6);
	}
	if (e == 0 && from) {
		memmove(r->bytes.s, r->bytes.s + from, r->bytes.n - from);
		r->bytes.n -= from;
	}
	return e;
}

// A whole reply, whose counts are taken.
static int take_whole(struct reply *r, int status)
{
	json_t *o = yk_json_parse(r->bytes.s ? r->bytes.s : "", r->bytes.n, "the reply");
	if (status != 200) {
		take_error(r->to, o, status);
		if (!o)
			yoke_error_clear();
	} else if (o) {
		take_usage(r->to, o);
	}
	json_decref(o);
	return o || status != 200 ? 0 : yoke_error_code();
}

static void send_request(struct run *r, struct yk_client *c, int64_t request,
			 struct yk_load_sample *to)
{
	const bool stream = r->is->stream && r->is->endpoint != YK_LOAD_EMBEDDINGS;
	char *body = body_of(r, request);
	struct reply reply = { .run = r, .to = to, .began = yk_seconds() };
	int e = body ? yk_client_request(c, paths[r->is->endpoint], body, strlen(body),
					 stream ? take_lines : collect, &reply) :
		       yk_fail(YOKE_ENOMEM, "no memory for a request");
	to->all = yk_seconds() - reply.began;
	if (e >= 0 && (!stream || e != 200))
		e = take_whole(&reply, e);
	else if (e >= 0 && !reply.ended && !*to->error)
		snprintf(to->error, sizeof to->error, "the stream has no end");
	if (e < 0) {
		snprintf(to->error, sizeof to->error, "%s", yoke_error());
		yoke_error_clear();
	}
	if (stream && !to->generated)
		to->generated = reply.texts; // of a server that reports no usage
	yk_string_fini(&reply.bytes);
	free(body);
}

static void *client(void *arg)
{
	struct run *r = arg;
	struct yk_load_sample unused;
	struct yk_client *c = NULL;
	int64_t i;
	const int e = yk_client_new(r->is->url, r->is->key, r->is->timeout, &c);
	while ((i = atomic_fetch_add(&r->next, 1)) < r->end) {
		struct yk_load_sample *to = r->measured ? &r->to->sample[i] : &unused;
		*to = (struct yk_load_sample){ 0 };
		if (e < 0)
			snprintf(to->error, sizeof to->error, "no memory for a client");
		else
			send_request(r, c, i, to);
	}
	yk_client_free(c);
	return NULL;
}

// Sends requests from `from` on.
static int send_requests(struct run *r, int64_t from, int64_t n, bool measured)
{
	pthread_t thread[YK_LOAD_CLIENTS];
	int started = 0;
	atomic_store(&r->next, from);
	r->end = from + n;
	r->measured = measured;
	const double began = yk_seconds();
	while (started < r->is->clients && pthread_create(&thread[started], NULL, client, r) == 0)
		started++;
	const bool all = started == r->is->clients;
	if (!all)
		atomic_store(&r->next, r->end);
	for (int i = 0; i < started; i++)
		pthread_join(thread[i], NULL);
	r->to->seconds = yk_seconds() - began;
	return all ? 0 : yk_fail(YOKE_ENOMEM, "cannot start %d clients", r->is->clients);
}

// ---- the server ----

// NULL: an error.
static json_t *whole_reply(struct yk_client *c, const char *path, const char *body, int *status)
{
	struct reply reply = { 0 };
	*status = yk_client_request(c, path, body, body ? strlen(body) : 0, collect, &reply);
	json_t *o = *status < 0 ?
			    NULL :
			    yk_json_parse(reply.bytes.s ? reply.bytes.s : "", reply.bytes.n, path);
	yk_string_fini(&reply.bytes);
	return o;
}

static int find_model(const struct yk_load *is, struct yk_client *c, struct yk_load_result *to)
{
	int status;
	json_t *o = whole_reply(c, "/v1/models", NULL, &status);
	const json_t *list = json_object_get(o, "data");
	const size_t last = is->endpoint == YK_LOAD_EMBEDDINGS && json_array_size(list) ?
				    json_array_size(list) - 1 :
				    0;
	const char *name = json_string_value(json_object_get(json_array_get(list, last), "id"));
	struct yk_load_sample refused;
	int e = o ? 0 : yoke_error_code();
	if (o && status != 200) {
		take_error(&refused, o, status);
		e = yk_fail(YOKE_EIO, "%s/v1/models: %s", is->url, refused.error);
	} else if (o && !name && !is->model) {
		e = yk_fail(YOKE_EFORMAT, "%s/v1/models names no model; give model=", is->url);
	}
	if (e == 0)
		snprintf(to->model, sizeof to->model, "%s", is->model ? is->model : name);
	json_decref(o);
	return e;
}

// Asks the server for the tokens of the words, as yoke and llama-server can; others get texts.
static int find_tokens(struct run *r, struct yk_client *c)
{
	int status;
	struct yk_string all = { 0 };
	for (int i = 0; i < WORDS; i++)
		yk_string_add(&all, words[i], strlen(words[i]));
	json_t *question = all.failed ? NULL : json_pack("{s:s%}", "content", all.s, all.n);
	yk_string_fini(&all);
	char *body = question ? yk_json_text(question, JSON_COMPACT) : NULL;
	json_decref(question);
	if (!body)
		return yk_fail(YOKE_ENOMEM, "no memory for a request");
	json_t *o = whole_reply(c, "/tokenize", body, &status);
	const json_t *list = json_object_get(o, "tokens");
	const size_t n = status == 200 ? json_array_size(list) : 0;
	int32_t *id = n ? malloc(n * sizeof *id) : NULL;
	free(body);
	for (size_t i = 0; id && i < n; i++)
		id[i] = (int32_t)json_integer_value(json_array_get(list, i));
	if (!o)
		yoke_error_clear();
	json_decref(o);
	r->id = id;
	r->ids = (int64_t)n;
	r->to->exact = id && r->is->endpoint == YK_LOAD_COMPLETIONS;
	return n && !id ? yk_fail(YOKE_ENOMEM, "no memory for tokens") : 0;
}

static int prepare(struct run *r)
{
	struct yk_client *c;
	int e = yk_client_new(r->is->url, r->is->key, r->is->timeout, &c);
	if (e < 0)
		return e;
	e = find_model(r->is, c, r->to);
	if (e == 0)
		e = find_tokens(r, c);
	yk_client_free(c);
	return e;
}

int yk_load_run(const struct yk_load *is, struct yk_load_result *to)
{
	struct run r = { .is = is, .to = to };
	*to = (struct yk_load_result){ .sample = calloc((size_t)is->requests, sizeof *to->sample) };
	if (!to->sample)
		return yk_fail(YOKE_ENOMEM, "no memory for %lld requests", (long long)is->requests);
	pthread_mutex_init(&r.lock, NULL);
	int e = prepare(&r);
	if (e == 0 && is->warm)
		e = send_requests(&r, is->requests, is->warm, false);
	if (e == 0)
		e = send_requests(&r, 0, is->requests, true);
	pthread_mutex_destroy(&r.lock);
	free((int32_t *)(uintptr_t)r.id);
	return e;
}
