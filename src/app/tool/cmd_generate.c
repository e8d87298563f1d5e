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

enum { DEFAULT_TOKENS = 256 };

// Destination of the texts: standard output immediately or, for several texts, buffers in memory.
struct output {
	struct yk_tokenizer *tokenizer;
	FILE *to[YK_SEQUENCES];
};

static int write_text(FILE *to, const char *text, size_t bytes)
{
	if (fwrite(text, 1, bytes, to) == bytes && fflush(to) == 0)
		return 0;
	return yk_fail(YOKE_EIO, "%s: %s", to == stdout ? "standard output" : "text",
		       strerror(errno));
}

static int write_token(void *arg, int text, int32_t id)
{
	const struct output *o = arg;
	size_t bytes;
	if (yk_tokenizer_ends(o->tokenizer, id))
		return 1;
	const char *token = yk_tokenizer_decode(o->tokenizer, id, &bytes);
	const char *blank = yk_tokenizer_separator(o->tokenizer);
	int e = *blank ? write_text(o->to[text], blank, strlen(blank)) : 0;
	return e == 0 ? write_text(o->to[text], token, bytes) : e;
}

// Tokens of the prompt. An empty prompt is replaced by one token: the unknown token, or an end of
// line.
static int prompt_tokens(const struct yk_opened *o, const char *prompt, size_t bytes,
			 struct yk_tokens *to)
{
	int32_t unknown = yk_tokenizer_unknown(o->model.tokenizer);
	int e = yk_tokenizer_prompt(o->model.tokenizer, prompt, bytes, to);
	size_t strange = 0;
	for (size_t i = 0; i < to->count && unknown >= 0; i++)
		strange += yk_tokens_get(to, i) == unknown;
	if (e == 0 && to->count == 0 && unknown < 0)
		e = yk_tokenizer_encode(o->model.tokenizer, "\n", 1, to);
	else if (e == 0 && to->count == 0 &&
		 (e = yk_tokens_reserve(to, yk_tokenizer_size(o->model.tokenizer), 1)) == 0)
		yk_tokens_add(to, unknown);
	if (strange && yk_config_given(&o->config, YK_KEY_prompt))
		yk_warn("generate", "%zu of %zu words of the prompt are not in the vocabulary",
			strange, to->count);
	return e;
}

static int go_on(const struct yk_opened *o, int n, const struct yk_tokens *prompt,
		 struct output *to)
{
	const struct yk_sampling s = yk_opened_sampling(o);
	const int64_t tokens = yk_config_int(&o->config, YK_KEY_tokens);
	return yk_generate(o->model.net, &s, n, prompt, tokens == YK_AUTO ? DEFAULT_TOKENS : tokens, write_token, to);
}

// ---- one prompt ----

static int generate_one(const struct yk_opened *o)
{
	const char *prompt = yk_config_str(&o->config, YK_KEY_prompt);
	size_t bytes = strlen(prompt);
	char *piped = NULL;
	struct output to = { .tokenizer = o->model.tokenizer, .to = { stdout } };
	struct yk_tokens tokens = { 0 };
	int e = 0;
	if (!strcmp(prompt, "-")) {
		e = yk_prompts_read(prompt, "prompt; end it", &piped, &bytes);
		prompt = piped;
	}
	if (e == 0)
		e = prompt_tokens(o, prompt, bytes, &tokens);
	if (e == 0)
		e = write_text(stdout, prompt, bytes);
	if (e == 0)
		e = go_on(o, 1, &tokens, &to);
	if (e == 0)
		e = write_text(stdout, "\n", 1);
	yk_tokens_fini(&tokens);
	free(piped);
	return e;
}

// ---- several prompts ----

struct line {
	const char *at;
	size_t bytes;
};

// Takes up to `max` lines from the remaining text; returns their number.
static int take_lines(struct line *left, int max, struct line *to)
{
	int n = 0;
	for (; n < max && left->bytes > 0; n++) {
		const char *end = memchr(left->at, '\n', left->bytes);
		size_t bytes = end ? (size_t)(end - left->at) : left->bytes;
		to[n] = (struct line){ left->at, bytes };
		left->at += bytes + (end != NULL);
		left->bytes -= bytes + (end != NULL);
	}
	return n;
}

// Continues n lines in one batch, and prints the texts in order.
static int generate_lines(const struct yk_opened *o, int64_t before, int n, const struct line *line)
{
	struct output to = { .tokenizer = o->model.tokenizer };
	struct yk_tokens tokens[YK_SEQUENCES] = { 0 };
	char *text[YK_SEQUENCES] = { NULL };
	char title[40];
	size_t bytes[YK_SEQUENCES];
	int e = 0;
	for (int i = 0; i < n && e == 0; i++) {
		to.to[i] = open_memstream(&text[i], &bytes[i]);
		e = to.to[i] ? prompt_tokens(o, line[i].at, line[i].bytes, &tokens[i]) :
			       yk_fail(YOKE_ENOMEM, "prompts: out of memory for a prompt");
		if (e == 0)
			e = write_text(to.to[i], line[i].at, line[i].bytes);
	}
	if (e == 0)
		e = go_on(o, n, tokens, &to);
	for (int i = 0; i < n; i++) {
		if (to.to[i] && fclose(to.to[i]) && e == 0)
			e = yk_fail(YOKE_ENOMEM, "prompts: out of memory for a prompt");
		snprintf(title, sizeof title, "%s==> %" PRId64 " <==\n", before + i > 0 ? "\n" : "",
			 before + i + 1);
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

// One prompt per line.
static int generate_several(const struct yk_opened *o)
{
	const char *path = yk_config_str(&o->config, YK_KEY_prompts);
	int64_t batch = yk_config_int(&o->config, YK_KEY_batch), done = 0;
	int max = batch == YK_AUTO || batch > YK_SEQUENCES ? YK_SEQUENCES : (int)batch, n;
	struct line line[YK_SEQUENCES], left = { 0 };
	char *text = NULL;
	int e = yk_prompts_read(path, "prompts; end them", &text, &left.bytes);
	if (e == 0 && left.bytes == 0)
		e = yk_fail(YOKE_EINVAL, "prompts=%s: the file is empty; give one prompt per line",
			    path);
	left.at = text;
	for (; e == 0 && (n = take_lines(&left, max, line)) > 0; done += n)
		e = generate_lines(o, done, n, line);
	free(text);
	return e;
}

static int generate(const struct yk_opened *o, void *arg)
{
	(void)arg;
	const struct yk_config *c = &o->config;
	bool several = *yk_config_str(c, YK_KEY_prompts);
	if (several && yk_config_given(c, YK_KEY_prompt))
		return yk_fail(YOKE_EINVAL, "prompt and prompts are both given; drop one");
	o->model.net->by_row = !strcmp(yk_config_str(c, YK_KEY_by_row), "1");
	return several ? generate_several(o) : generate_one(o);
}

int yk_cmd_generate(int argc, char **argv)
{
	return yk_with_model(YK_G, argc, argv, generate, NULL);
}
