// SPDX-License-Identifier: Apache-2.0
// yoke generate: continues prompts with a trained model.
#include "config.h"

#include "tool/tool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "models/generate.h"
#include "tool/model_open.h"
#include "tool/prompts.h"
#include "text/stops.h"

enum { DEFAULT_TOKENS = 256 };

// Destination of the texts: standard output immediately or, for several texts, buffers in memory.
struct output {
	struct yk_tokenizer *tokenizer;
	const struct yk_stops *stops;
	struct yk_stop_tail tail[YK_SEQUENCES];
	FILE *to[YK_SEQUENCES];
};

static int write_text(FILE *to, const char *text, size_t bytes)
{
	if (fwrite(text, 1, bytes, to) == bytes && fflush(to) == 0)
		return 0;
	return yk_fail(YOKE_EIO, "%s: %s", to == stdout ? "standard output" : "text",
		       strerror(errno));
}

static int write_part(void *to, const char *text, size_t bytes)
{
	return bytes ? write_text(to, text, bytes) : 0;
}

// Writes a part of a text; 1: a stop text ends it.
static int pass(struct output *o, int text, const char *part, size_t bytes)
{
	return o->stops->n ? yk_stops_pass(o->stops, &o->tail[text], part, bytes, write_part,
					   o->to[text]) :
			     write_part(o->to[text], part, bytes);
}

static int write_token(void *arg, int text, int32_t id)
{
	struct output *o = arg;
	size_t bytes;
	if (yk_tokenizer_ends(o->tokenizer, id))
		return 1;
	const char *token = yk_tokenizer_decode(o->tokenizer, id, &bytes);
	const char *blank = yk_tokenizer_separator(o->tokenizer);
	const int e = *blank ? pass(o, text, blank, strlen(blank)) : 0;
	return e == 0 ? pass(o, text, token, bytes) : e;
}

// Tokens of the prompt. An empty prompt is replaced by one token: the unknown token, or an end of
// line.
static int prompt_tokens(const struct yk_opened *o, const char *prompt, size_t bytes,
			 struct yk_tokens *to)
{
	int32_t unknown = yk_tokenizer_unknown(o->model.tokenizer);
	int e = yk_tokenizer_prompt(o->model.tokenizer, prompt, bytes, to);
	size_t strange = 0;
	if (e == 0 && to->count == 0 && !strcmp(yk_tokenizer_name(o->model.tokenizer), "ids"))
		return yk_fail(YOKE_EINVAL, "prompt: the model's text consists of token ids; give "
					    "at least one, for example prompt=0");
	for (size_t i = 0; i < to->count && unknown >= 0; i++)
		strange += yk_tokens_get(to, i) == unknown;
	if (e == 0 && to->count == 0 && unknown < 0)
		e = yk_tokenizer_encode(o->model.tokenizer, "\n", 1, to);
	else if (e == 0 && to->count == 0 &&
		 (e = yk_tokens_reserve(to, yk_tokenizer_size(o->model.tokenizer), 1)) == 0)
		yk_tokens_add(to, unknown);
	if (strange && yk_config_is_set(&o->config, YK_KEY_prompt))
		yk_warn("generate", "%zu of %zu words of the prompt are not in the vocabulary",
			strange, to->count);
	return e;
}

// seeds: per text; NULL: all have that of the key `seed`.
static int continue_prompts(const struct yk_opened *o, int n, const struct yk_tokens *prompt,
			    const uint64_t *seeds, struct output *to)
{
	struct yk_sampling s = yk_opened_sampling(o);
	const int64_t tokens = yk_config_int(&o->config, YK_KEY_tokens);
	s.seeds = seeds;
	int e = yk_generate(o->model.net, &s, n, prompt,
			    tokens == YK_AUTO ? DEFAULT_TOKENS : tokens, write_token, to);
	for (int i = 0; i < n; i++) {
		if (e == 0)
			e = yk_stops_flush(&to->tail[i], write_part, to->to[i]);
		yk_stop_tail_fini(&to->tail[i]);
	}
	return e;
}

// ---- one prompt ----

static int generate_one(const struct yk_opened *o, const struct yk_stops *stops, const char *prompt,
			size_t bytes)
{
	struct output to = { .tokenizer = o->model.tokenizer, .stops = stops, .to = { stdout } };
	struct yk_tokens tokens = { 0 };
	int e = prompt_tokens(o, prompt, bytes, &tokens);
	if (e == 0)
		e = write_text(stdout, prompt, bytes);
	if (e == 0)
		e = continue_prompts(o, 1, &tokens, NULL, &to);
	if (e == 0)
		e = write_text(stdout, "\n", 1);
	yk_tokens_fini(&tokens);
	return e;
}

// ---- several texts ----

// A sample of a prompt.
struct line {
	const char *at;
	size_t bytes;
	int64_t number, sample; // of the prompt, and of its samples; from 1
};

// The remaining prompts, and the text taken last.
struct rest {
	const char *at;
	size_t bytes;
	bool whole; // one prompt, which may have line ends
	struct line line;
	int64_t samples; // per prompt
};

// Makes the next prompt the current one, before its first sample; false: there is none.
static bool next_prompt(struct rest *r)
{
	if (r->whole ? r->line.number > 0 : r->bytes == 0)
		return false;
	const char *end = r->whole ? NULL : memchr(r->at, '\n', r->bytes);
	const size_t bytes = end ? (size_t)(end - r->at) : r->bytes;
	r->line = (struct line){ r->at, bytes, r->line.number + 1, 0 };
	r->at += bytes + (end != NULL);
	r->bytes -= bytes + (end != NULL);
	return true;
}

// Takes up to `max` texts; returns their number.
static int take_lines(struct rest *r, int max, struct line *to)
{
	int n = 0;
	while (n < max && (r->line.sample < r->samples || next_prompt(r))) {
		r->line.sample++;
		to[n++] = r->line;
	}
	return n;
}

// Writes "==> 2, sample 3, seed 7 <=="; omits the number of a single prompt and the sample if there
// is one per prompt.
static void write_title(const struct rest *r, const struct line *l, uint64_t seed, char *to,
			size_t cap)
{
	char sample[80] = "", number[24] = "";
	if (!r->whole)
		snprintf(number, sizeof number, "%" PRId64, l->number);
	if (r->samples > 1)
		snprintf(sample, sizeof sample, "%ssample %" PRId64 ", seed %" PRIu64,
			 r->whole ? "" : ", ", l->sample, seed);
	snprintf(to, cap, "%s==> %s%s <==\n", l->number > 1 || l->sample > 1 ? "\n" : "", number,
		 sample);
}

// Continues n prompts in one batch, and prints the texts in order.
static int generate_lines(const struct yk_opened *o, const struct yk_stops *stops,
			  const struct rest *r, int n, const struct line *line)
{
	struct output to = { .tokenizer = o->model.tokenizer, .stops = stops };
	struct yk_tokens tokens[YK_SEQUENCES] = { 0 };
	uint64_t seeds[YK_SEQUENCES] = { 0 };
	char *text[YK_SEQUENCES] = { NULL };
	char title[160];
	size_t bytes[YK_SEQUENCES];
	int e = 0;
	for (int i = 0; i < n && e == 0; i++) {
		seeds[i] = (uint64_t)yk_config_int(&o->config, YK_KEY_seed) +
			   (uint64_t)line[i].sample - 1;
		to.to[i] = open_memstream(&text[i], &bytes[i]);
		e = to.to[i] ? prompt_tokens(o, line[i].at, line[i].bytes, &tokens[i]) :
			       yk_fail(YOKE_ENOMEM, "prompts: out of memory for a prompt");
		if (e == 0)
			e = write_text(to.to[i], line[i].at, line[i].bytes);
	}
	if (e == 0)
		e = continue_prompts(o, n, tokens, seeds, &to);
	for (int i = 0; i < n; i++) {
		if (to.to[i] && fclose(to.to[i]) && e == 0)
			e = yk_fail(YOKE_ENOMEM, "prompts: out of memory for a prompt");
		write_title(r, &line[i], seeds[i], title, sizeof title);
		if (e == 0)
			e = write_text(stdout, title, strlen(title));
		if (e == 0)
			e = write_text(stdout, text[i], bytes[i]);
		if (e == 0)
			e = write_text(stdout, "\n", 1);
		free(text[i]);
		yk_tokens_fini(&tokens[i]);
	}
	return e;
}

static int generate_several(const struct yk_opened *o, const struct yk_stops *stops, struct rest r)
{
	const int64_t batch = yk_config_int(&o->config, YK_KEY_batch);
	const int max = batch == YK_AUTO || batch > YK_SEQUENCES ? YK_SEQUENCES : (int)batch;
	struct line line[YK_SEQUENCES];
	int n, e = 0;
	while (e == 0 && (n = take_lines(&r, max, line)) > 0)
		e = generate_lines(o, stops, &r, n, line);
	return e;
}

// ---- the command ----

// Reads the prompts if they are in a file, and continues them.
static int generate_all(const struct yk_opened *o, const struct yk_stops *stops)
{
	const struct yk_config *c = &o->config;
	const char *path = yk_config_str(c, YK_KEY_prompts),
		   *prompt = yk_config_str(c, YK_KEY_prompt);
	const bool piped = !strcmp(prompt, "-");
	const int64_t samples = yk_config_int(c, YK_KEY_samples);
	struct rest r = { .at = prompt,
			  .bytes = strlen(prompt),
			  .whole = !*path,
			  .samples = samples,
			  .line.sample = samples }; // none remain of a prompt before the first
	char *text = NULL;
	int e = 0;
	if (*path)
		e = yk_prompts_read(path, "prompts; end them", &text, &r.bytes);
	else if (piped)
		e = yk_prompts_read(prompt, "prompt; end it", &text, &r.bytes);
	if (e == 0 && *path && r.bytes == 0)
		e = yk_fail(YOKE_EINVAL, "prompts=%s: the file is empty; give one prompt per line",
			    path);
	if (text)
		r.at = text;
	if (e == 0 && samples > 1 && yk_config_real(c, YK_KEY_temperature) == 0)
		yk_warn("generate",
			"samples=%" PRId64
			": with temperature=0 all samples of a prompt are the same text",
			samples);
	if (e == 0)
		e = r.whole && samples == 1 ? generate_one(o, stops, r.at, r.bytes) :
					      generate_several(o, stops, r);
	free(text);
	return e;
}

static int generate(const struct yk_opened *o, void *arg)
{
	(void)arg;
	const struct yk_config *c = &o->config;
	struct yk_stops stops;
	if (*yk_config_str(c, YK_KEY_prompts) && yk_config_is_set(c, YK_KEY_prompt))
		return yk_fail(YOKE_EINVAL, "prompt and prompts are both given; drop one");
	o->model.net->by_row = !strcmp(yk_config_str(c, YK_KEY_by_row), "1");
	int e = yk_stops_parse(&stops, yk_config_str(c, YK_KEY_stop));
	if (e < 0)
		return e;
	e = generate_all(o, &stops);
	yk_stops_fini(&stops);
	return e;
}

int yk_cmd_generate(int argc, char **argv)
{
	return yk_with_model(YK_G, argc, argv, generate, NULL);
}
