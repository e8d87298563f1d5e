// SPDX-License-Identifier: Apache-2.0
// yoke generate: writes text that a trained model goes on with.
#include "config.h"

#include "tool/tool.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "tool/model_open.h"
#include "train/generate.h"

static int write_token(void *tokenizer, int32_t id)
{
	size_t bytes;
	const char *text = yk_tokenizer_decode(tokenizer, id, &bytes);
	if (text && fwrite(text, 1, bytes, stdout) == bytes && fflush(stdout) == 0)
		return 0;
	return yk_fail(YOKE_EIO, "standard output: %s", strerror(errno));
}

static int generate(struct yk_opened *o)
{
	const struct yk_config *c = &o->config;
	struct yk_sampling sampling = {
		.temperature = yk_config_real(c, YK_KEY_temperature),
		.top_p = yk_config_real(c, YK_KEY_top_p),
		.seed = (uint64_t)yk_config_int(c, YK_KEY_seed),
	};
	const char *prompt = yk_config_str(c, YK_KEY_prompt);
	struct yk_tokens tokens = { 0 };
	int e = yk_tokenizer_encode(o->tokenizer, prompt, strlen(prompt), &tokens);
	for (size_t i = 0; e == 0 && i < tokens.count; i++)
		e = write_token(o->tokenizer, yk_tokens_get(&tokens, i));
	if (e == 0)
		e = yk_generate(o->gpt, &sampling, &tokens, yk_config_int(c, YK_KEY_tokens),
				write_token, o->tokenizer);
	yk_tokens_fini(&tokens);
	return e;
}

int yk_cmd_generate(int argc, char **argv)
{
	struct yk_opened o;
	int status = yk_open_model(&o, YK_G, argc, argv);
	if (status != YK_DONE)
		return status;
	if (generate(&o) < 0)
		status = yk_failed("generate");
	else
		putchar('\n');
	yk_close_model(&o);
	return yk_finish("generate", status);
}
