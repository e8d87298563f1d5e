// SPDX-License-Identifier: Apache-2.0
// yoke generate: writes text that a trained model goes on with.
#include "config.h"

#include "tool/tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "tool/model_open.h"
#include "train/generate.h"

#define MOST_PROMPT (UINT64_C(1) << 30) // bytes of one that comes through a pipe

static int write_text(const char *text, size_t bytes)
{
	if (fwrite(text, 1, bytes, stdout) == bytes && fflush(stdout) == 0)
		return 0;
	return yk_fail(YOKE_EIO, "standard output: %s", strerror(errno));
}

static int write_token(void *tokenizer, int32_t id)
{
	size_t bytes;
	const char *text = yk_tokenizer_decode(tokenizer, id, &bytes);
	const char *blank = yk_tokenizer_separator(tokenizer);
	int e = *blank ? write_text(blank, strlen(blank)) : 0;
	return e == 0 ? write_text(text, bytes) : e;
}

// The prompt's tokens; where it has none, one to begin with: what is unknown, or an end of line.
static int prompt_tokens(const struct yk_opened *o, const char *prompt, size_t bytes,
			 struct yk_tokens *to)
{
	int32_t unknown = yk_tokenizer_unknown(o->model.tokenizer);
	int e = yk_tokenizer_encode(o->model.tokenizer, prompt, bytes, to);
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

static int generate(const struct yk_opened *o)
{
	const struct yk_config *c = &o->config;
	struct yk_sampling sampling = {
		.temperature = yk_config_real(c, YK_KEY_temperature),
		.top_p = yk_config_real(c, YK_KEY_top_p),
		.seed = (uint64_t)yk_config_int(c, YK_KEY_seed),
	};
	const char *prompt = yk_config_str(c, YK_KEY_prompt);
	size_t bytes = strlen(prompt);
	char *piped = NULL;
	struct yk_tokens tokens = { 0 };
	int e = 0;
	if (!strcmp(prompt, "-")) {
		if (isatty(STDIN_FILENO))
			fprintf(stderr, "reading the prompt; end it with Ctrl-D\n");
		e = yk_file_read_stdin(MOST_PROMPT, &piped, &bytes);
		prompt = piped;
	}
	if (e == 0)
		e = prompt_tokens(o, prompt, bytes, &tokens);
	if (e == 0)
		e = write_text(prompt, bytes);
	if (e == 0)
		e = yk_generate(o->model.net, &sampling, &tokens, yk_config_int(c, YK_KEY_tokens),
				write_token, o->model.tokenizer);
	if (e == 0)
		e = write_text("\n", 1);
	yk_tokens_fini(&tokens);
	free(piped);
	return e;
}

int yk_cmd_generate(int argc, char **argv)
{
	return yk_with_model(YK_G, argc, argv, generate);
}
