// SPDX-License-Identifier: Apache-2.0
// Embeddings of texts: a block at a time between the steps of the engine.
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "models/pretrained.h"
#include "serve/call.h"
#include "serve/prompt.h"

enum { INPUTS = 2048, BLOCK = 32 };

struct embeddings {
	struct yk_serve_call call; // the first member
	const char *model;
	bool base64;
	struct yk_embed_text *input;
	int64_t inputs, cap, done, tokens;
	float *vector; // [inputs, width]
};

// ---- the request ----

// An input is a text or a list of tokens.
static bool take_input(void *arg, const json_t *m)
{
	struct embeddings *e = arg;
	struct yk_exchange *x = e->call.x;
	const struct yk_serve_embedder *b = &e->call.serve->embedder;
	struct yk_embed_text *in = &e->input[e->inputs];
	in->index = e->inputs++; // for messages
	if (json_is_array(m)) {
		struct yk_token_list ids = { 0 };
		if (!yk_field_ids(x, m, "input", b->vocabulary, &ids))
			return false;
		in->ids = ids.id;
		in->n = ids.n;
	} else if (!json_string_length(m)) {
		yk_exchange_error(x, 400, "input", NULL, "'input' has an empty text");
		return false;
	} else if (yk_embed_encode(b->tokenizer, b->settings.prompt, json_string_value(m), SIZE_MAX,
				   in) < 0) {
		yk_exchange_failed(x, "input");
		return false;
	}
	e->tokens += (int64_t)in->n;
	return yk_check_length(x, "input", in->n, b->context, false);
}

static bool read(struct embeddings *e, const json_t *o)
{
	struct yk_exchange *x = e->call.x;
	struct yk_serve *s = e->call.serve;
	const char *format = "float";
	int64_t width = s->embedder.width;
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
	if (width != s->embedder.width) {
		yk_exchange_error(x, 400, "dimensions", "unsupported_parameter",
				  "'dimensions': the model's vectors have %" PRId64
				  " numbers, and this server does not "
				  "shorten them",
				  s->embedder.width);
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

// Embeds the next inputs; vectors are in the order of inputs.
static int embed_block(struct embeddings *e)
{
	const struct yk_serve *s = e->call.serve;
	const int64_t n = e->inputs - e->done < BLOCK ? e->inputs - e->done : BLOCK;
	struct yk_embed_text *block = e->input + e->done;
	for (int64_t i = 0; i < n; i++)
		block[i].index = i;
	const int status = yk_embed_texts(s->embedder.model, &s->embedder.settings, n, block,
					  e->vector + e->done * s->embedder.width);
	e->done += n;
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
	const int64_t width = e->call.serve->embedder.width;
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

static void start(struct yk_serve_call *call)
{
	(void)call;
}

static void work(struct yk_serve_call *call)
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

static void cancel(struct yk_serve_call *call)
{
	call->done = true;
}

static void release(struct yk_serve_call *call)
{
	struct embeddings *e = (struct embeddings *)call;
	for (int64_t i = 0; i < e->inputs; i++)
		free(e->input[i].ids);
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
	e->call = (struct yk_serve_call){ .serve = s, .x = x, .kind = &embeddings_kind };
	bool good = read(e, o);
	json_decref(o);
	if (good) {
		e->vector =
			calloc((size_t)e->inputs * (size_t)s->embedder.width, sizeof *e->vector);
		good = e->vector != NULL;
	}
	if (good && yk_serve_arrive(s, &e->call))
		return;
	// unless it has an error
	yk_exchange_error(x, 500, NULL, NULL, "no memory for the vectors");
	release(&e->call);
}
