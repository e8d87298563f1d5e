// SPDX-License-Identifier: Apache-2.0
// From texts and messages of a request to prompts of tokens.
#ifndef YK_SERVE_PROMPT_H
#define YK_SERVE_PROMPT_H

#include "serve/fields.h"

// All of these: false: the reply is an error.

// "prompt": a text, texts, tokens, or several lists of them.
bool yk_prompt_texts(struct yk_serve *, struct yk_exchange *, const json_t *,
		     struct yk_completion_request *);
// "messages", with the model's chat template.
bool yk_prompt_messages(struct yk_serve *, struct yk_exchange *, const json_t *,
			struct yk_completion_request *);
// "response_format": which texts are allowed.
bool yk_prompt_format(struct yk_serve *, struct yk_exchange *, const json_t *,
		      struct yk_completion_request *);
// Calls `take` for each of the texts or lists of tokens in a member: for a prompt, or an input of
// embeddings.
bool yk_prompt_each(struct yk_exchange *, const json_t *member, const char *param, size_t max,
		    bool (*take)(void *arg, const json_t *), void *arg);

#endif
