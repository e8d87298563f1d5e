// SPDX-License-Identifier: Apache-2.0
// Embeddings of texts: a block at a time between the steps of the engine.
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "models/pretrained.h"
#include "serve/ask.h"
#include "serve/call.h"
#include "serve/prompt.h"

enum { INPUTS = 2048, BLOCK = 32 };

struct input {
	char *text; // NULL: the tokens are given
	struct yk_ids ids;
};

struct embeddings {
	struct yk_call call; // the first member
	const char *model;
	bool base64;
	struct input *input;
	int64_t inputs, cap, done, tokens;
	float *vector; // [inputs, width]
};

// ---- the request ----

static bool add(struct embeddings *e, struct input in)
{
	if (yk_check_length(e->call.x, "input", in.ids.n, e->call.serve->embed_context, false) &&
	    e->inputs < e->cap) {
		e->tokens += (int64_t)in.ids.n;
		e->input[e->inputs++] = in;
		return true;
	}
	free(in.text);
	free(in.ids.id);
	return false;
}

static bool take_input(void *arg, const json_t *m)
{
	struct embeddings *e = arg;
	const struct yk_serve *s = e->call.serve;
	struct input in = { 0 };
	if (json_is_array(m))
		return yk_field_ids(e->call.x, m, "input", s->embed_vocabulary, &in.ids) &&
		       add(e, in);
	if (!json_string_length(m)) {
		yk_exchange_error(e->call.x, 400, "input", NULL, "'input' has an empty text");
		return false;
	}
	if (yoke_tokenizer_encode(s->embed_tokenizer, json_string_value(m), json_string_length(m),
				  YOKE_TOKENIZER_ADD, &in.ids.id, &in.ids.n) < 0) {
		yk_exchange_failed(e->call.x, "input");
		return false;
	}
	in.text = strdup(json_string_value(m));
	if (in.text)
		return add(e, in);
	free(in.ids.id);
	yk_exchange_error(e->call.x, 500, NULL, NULL, "no memory for a text");
	return false;
}

static bool read(struct embeddings *e, const json_t *o)
{
	struct yk_exchange *x = e->call.x;
	struct yk_serve *s = e->call.serve;
	const char *format = "float";
	int64_t width = s->embed_width;
	const json_t *m = yk_field(o, "input");
	const struct yk_serve_model *model = yk_field_model(s, x, o, true);
	if (!model || !yk_field_text(x, o, "encoding_format", &format) ||
	    !yk_field_int(x, o, "dimensions", 1, INT32_MAX, &width))
		return false;
	e->model = model->name;
	e->base64 = !strcmp(format, "base64");
	if (!e->base64 && strcmp(format, "float")) {
		yk_exchange_error(x, 400, "encoding_format", NULL,
				  "'encoding_format' must be float or base64");
		return false;
	}
	if (width != s->embed_width) {
		yk_exchange_error(x, 400, "dimensions", "unsupported_parameter",
				  "'dimensions': the model's vectors have %" PRId64
				  " numbers, and this server does not "
				  "shorten them",
				  s->embed_width);
		return false;
	}
	if (!m) {
		yk_exchange_error(x, 400, "input", NULL, "'input' is missing");
		return false;
	}
	e->cap = json_is_array(m) && !json_is_integer(json_array_get(m, 0)) ?
			 (int64_t)json_array_size(m) :
			 1;
	e->input = e->cap <= INPUTS ? calloc((size_t)e->cap + 1, sizeof *e->input) : NULL;
	if (!e->input && e->cap <= INPUTS) {
		yk_exchange_error(x, 500, NULL, NULL, "no memory for the texts");
		return false;
	}
	return yk_prompt_each(x, m, "input", INPUTS, take_input, e);
}

// ---- the vectors ----

static int embed_ids(struct yk_serve *s, const struct yk_ids *ids, float *to)
{
	const struct yoke_embed_options options = { .size = sizeof options };
	const int32_t n = (int32_t)ids->n;
	yoke_scope *scope = yoke_scope_begin("embed");
	yoke_tensor *v =
		yoke_model_embed(s->embedder, yoke_from(yoke_i32, 2, (int64_t[]){ 1, n }, ids->id),
				 yoke_from(yoke_i32, 1, (int64_t[]){ 1 }, &n), &options);
	const int e = yoke_read(v, to, (size_t)s->embed_width * sizeof *to);
	yoke_scope_end(scope);
	return e;
}

// A run of texts, or a list of tokens.
static int embed_block(struct embeddings *e)
{
	struct yk_serve *s = e->call.serve;
	const struct yoke_embed_options options = { .size = sizeof options };
	const char *texts[BLOCK];
	float *to = e->vector + e->done * s->embed_width;
	int64_t n = 0;
	while (n < BLOCK && e->done + n < e->inputs && e->input[e->done + n].text) {
		texts[n] = e->input[e->done + n].text;
		n++;
	}
	const int status = n ? yoke_model_embed_texts(s->embedder, n, texts, &options, to) :
			       embed_ids(s, &e->input[e->done].ids, to);
	e->done += n ? n : 1;
	return status;
}

static json_t *base64_of(const float *v, int64_t n)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const size_t bytes = (size_t)n * 4, size = (bytes + 2) / 3 * 4;
	char *text = malloc(size + 1);
	for (size_t i = 0, at = 0; text && i < bytes; i += 3, at += 4) {
		unsigned char b[3] = { 0 };
		for (size_t k = 0; k < 3 && i + k < bytes;
		     k++) { // little endian, whatever the host
			uint32_t word;
			memcpy(&word, &v[(i + k) / 4], 4);
			b[k] = (unsigned char)(word >> 8 * ((i + k) % 4));
		}
		const uint32_t all = (uint32_t)b[0] << 16 | (uint32_t)b[1] << 8 | b[2];
		for (size_t k = 0; k < 4; k++)
			text[at + k] = i + k > bytes ? '=' : digits[all >> (18 - 6 * k) & 63];
	}
	json_t *o = text ? json_stringn_nocheck(text, size) : NULL;
	free(text);
	return o;
}

static json_t *numbers_of(const float *v, int64_t n)
{
	json_t *list = json_array();
	for (int64_t i = 0; i < n; i++)
		json_array_append_new(list, json_real((double)v[i]));
	return list;
}

static json_t *reply_of(const struct embeddings *e)
{
	const int64_t width = e->call.serve->embed_width;
	json_t *data = json_array();
	for (int64_t i = 0; i < e->inputs; i++) {
		const float *v = e->vector + i * width;
		json_array_append_new(
			data, json_pack("{s:s, s:I, s:o}", "object", "embedding", "index",
					(json_int_t)i, "embedding",
					e->base64 ? base64_of(v, width) : numbers_of(v, width)));
	}
	return json_pack("{s:s, s:o, s:s, s:{s:I, s:I}}", "object", "list", "data", data, "model",
			 e->model, "usage", "prompt_tokens", (json_int_t)e->tokens, "total_tokens",
			 (json_int_t)e->tokens);
}

// ---- the call ----

static void start(struct yk_call *call)
{
	(void)call;
}

static void work(struct yk_call *call)
{
	struct embeddings *e = (struct embeddings *)call;
	if (embed_block(e) < 0)
		yk_exchange_failed(call->x, NULL);
	else if (e->done == e->inputs)
		yk_exchange_json(call->x, 200, reply_of(e));
	else
		return;
	call->done = true;
}

static void cancel(struct yk_call *call)
{
	call->done = true;
}

static void release(struct yk_call *call)
{
	struct embeddings *e = (struct embeddings *)call;
	for (int64_t i = 0; i < e->inputs; i++) {
		free(e->input[i].text);
		free(e->input[i].ids.id);
	}
	free(e->input);
	free(e->vector);
	free(e);
}

static const struct yk_call_kind embeddings_kind = { start, work, cancel, release };

void yk_call_embeddings(struct yk_serve *s, struct yk_exchange *x)
{
	json_t *o = yk_fields_of(x);
	struct embeddings *e = o ? calloc(1, sizeof *e) : NULL;
	if (!e) {
		yk_exchange_error(x, 500, NULL, NULL, "no memory for a request");
		json_decref(o);
		return;
	}
	e->call = (struct yk_call){ .serve = s, .x = x, .kind = &embeddings_kind };
	bool good = read(e, o);
	json_decref(o);
	if (good) {
		e->vector = calloc((size_t)e->inputs * (size_t)s->embed_width, sizeof *e->vector);
		good = e->vector != NULL;
	}
	if (good && yk_serve_arrive(s, &e->call))
		return;
	yk_exchange_error(x, 500, NULL, NULL, "no memory for the vectors");
	release(&e->call);
}
