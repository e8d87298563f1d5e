// SPDX-License-Identifier: Apache-2.0
// A conversation with a model: chat MODEL.  Each answer reuses the pages of the conversation so
// far.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yoke-engine.h>

enum { MESSAGES = 200, ANSWER = 1 << 16 };

// Prints the answer as it is generated, and keeps it at `user`.
static const yoke_tokenizer *words;
static void on_event(void *user, const struct yoke_engine_event *v)
{
	char *text, *answer = user;
	size_t bytes;
	if (v->kind == YOKE_ENGINE_END ||
	    yoke_tokenizer_decode(words, &v->token, 1, YOKE_TOKENIZER_SKIP | YOKE_TOKENIZER_BYTES,
				  &text, &bytes) < 0)
		return;
	fwrite(text, 1, bytes, stdout);
	fflush(stdout);
	if (strlen(answer) + bytes < ANSWER)
		strncat(answer, text, bytes);
	free(text);
}

int main(int argc, char **argv)
{
	struct yoke_chat_message m[MESSAGES];
	const struct yoke_chat_options chat = { .size = sizeof chat, .add_generation_prompt = 1 };
	char line[4096];
	yoke_model *model = argc == 2 ? yoke_model_open(argv[1], NULL) : NULL;
	words = model ? yoke_model_tokenizer(model) : NULL;
	yoke_chat_template *t = words ? yoke_chat_template_of(words) : NULL;
	yoke_engine *e = t ? yoke_engine_new(model, NULL) : NULL;
	size_t n = 0, count;
	if (!e)
		return fprintf(stderr, "usage: chat MODEL\n%s\n", yoke_error()), 1;
	while (n + 2 <= MESSAGES && printf("> ") && fflush(stdout) == 0 &&
	       fgets(line, sizeof line, stdin)) {
		char *answer = calloc(1, ANSWER);
		int32_t *ids = NULL;
		struct yoke_engine_request r = { .size = sizeof r,
						 .tokens = 512,
						 .temperature = 0.7,
						 .event = on_event,
						 .user = answer };
		line[strcspn(line, "\n")] = 0;
		m[n++] = (struct yoke_chat_message){ "user", strdup(line) };
		const int bad = yoke_chat_template_encode(t, words, m, n, &chat, &ids, &count);
		r.prompt = ids;
		r.count = (int64_t)count;
		if (bad || yoke_engine_submit(e, &r) < 0)
			return fprintf(stderr, "%s\n", yoke_error()), 1;
		while (yoke_engine_step(e) > 0)
			;
		free(ids);
		puts("");
		m[n++] = (struct yoke_chat_message){ "assistant", answer };
	}
	for (; n > 0; n--)
		free((void *)m[n - 1].content);
	yoke_engine_free(e);
	yoke_chat_template_free(t);
	yoke_model_free(model);
	return 0;
}
