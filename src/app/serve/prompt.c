// SPDX-License-Identifier: Apache-2.0
// Makes prompts.  Special tokens in a client's text are text: only the chat template writes them.
#include "config.h"

#include "serve/prompt.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "tokenizer/pieces.h"

bool yk_prompt_each(struct yk_exchange *x, const json_t *m, const char *param, size_t max,
		    bool (*take)(void *arg, const json_t *), void *arg)
{
	const json_t *first = json_array_get(m, 0);
	if (json_is_string(m) || json_is_integer(first))
		return take(arg, m);
	if (!json_is_array(m) || !first || json_array_size(m) > max) {
		yk_exchange_error(x, 400, param, NULL,
				  "'%s' must be a string, an array of 1 to %zu strings, an array "
				  "of tokens, or an array of "
				  "such arrays",
				  param, max);
		return false;
	}
	for (size_t i = 0; i < json_array_size(m); i++) {
		const json_t *one = json_array_get(m, i);
		if (!json_is_string(one) && !json_is_array(one)) {
			yk_exchange_error(
				x, 400, param, NULL,
				"'%s': element %zu must be a string or an array of tokens", param,
				i);
			return false;
		}
		if (!take(arg, one))
			return false;
	}
	return true;
}

// Appends a prompt, whose ids the request takes, also after an error.
static bool add(struct yk_serve *s, struct yk_exchange *x, const char *param,
		struct yk_token_list ids, struct yk_completion_request *a)
{
	struct yk_token_list *all = realloc(a->prompt, ((size_t)a->prompts + 1) * sizeof *all);
	if (!all) {
		free(ids.id);
		yk_exchange_error(x, 500, NULL, NULL, "no memory for a prompt");
		return false;
	}
	a->prompt = all;
	all[a->prompts++] = ids;
	for (size_t i = 0; i < ids.n; i++)
		if (ids.id[i] >= s->lm.vocabulary) {
			yk_exchange_error(x, 400, param, NULL,
					  "the text has token %d, which the model does not have",
					  (int)ids.id[i]);
			return false;
		}
	return yk_check_length(x, param, ids.n, s->lm.context, true);
}

struct texts {
	struct yk_serve *s;
	struct yk_exchange *x;
	struct yk_completion_request *a;
};

static bool take_text(void *arg, const json_t *m)
{
	struct texts *t = arg;
	struct yk_token_list ids = { 0 };
	if (json_is_array(m))
		return yk_field_ids(t->x, m, "prompt", t->s->lm.vocabulary, &ids) &&
		       add(t->s, t->x, "prompt", ids, t->a);
	if (yoke_tokenizer_encode(t->s->lm.tokenizer, json_string_value(m), json_string_length(m),
				  YOKE_TOKENIZER_ADD, &ids.id, &ids.n) == 0)
		return add(t->s, t->x, "prompt", ids, t->a);
	yk_exchange_failed(t->x, "prompt");
	return false;
}

bool yk_prompt_texts(struct yk_serve *s, struct yk_exchange *x, const json_t *o,
		     struct yk_completion_request *a)
{
	struct texts t = { s, x, a };
	const json_t *m = yk_field(o, "prompt");
	if (m)
		return yk_prompt_each(x, m, "prompt", YK_ASK_PROMPTS, take_text, &t);
	yk_exchange_error(x, 400, "prompt", NULL, "'prompt' is missing");
	return false;
}

// ---- messages ----

static const char *role_of(const json_t *m)
{
	static const char *const roles[][2] = { { "system", "system" },
						{ "developer", "system" },
						{ "user", "user" },
						{ "assistant", "assistant" } };
	const char *role = json_string_value(json_object_get(m, "role"));
	for (size_t i = 0; role && i < sizeof roles / sizeof *roles; i++)
		if (!strcmp(role, roles[i][0]))
			return roles[i][1];
	return NULL;
}

// The text of a message's content, which may be given in parts.  NULL: it has others than text.
static json_t *content_of(const json_t *m)
{
	json_t *content = yk_field(m, "content");
	struct yk_string all = { 0 };
	if (json_is_string(content))
		return json_incref(content);
	if (!content && role_of(m) && !strcmp(role_of(m), "assistant"))
		return json_string("");
	bool good = json_is_array(content);
	for (size_t i = 0; i < json_array_size(content) && good; i++) {
		const json_t *part = json_array_get(content, i),
			     *text = json_object_get(part, "text");
		const char *type = json_string_value(json_object_get(part, "type"));
		good = type && !strcmp(type, "text") && json_is_string(text);
		if (good)
			yk_string_add(&all, json_string_value(text), json_string_length(text));
	}
	json_t *to = good && !all.failed ? json_stringn(all.s ? all.s : "", all.n) : NULL;
	yk_string_fini(&all);
	return to;
}

static json_t *message(struct yk_exchange *x, const json_t *m, size_t i)
{
	const char *role = role_of(m), *name = json_string_value(json_object_get(m, "name"));
	if (!role) {
		yk_exchange_error(x, 400, "messages", NULL,
				  "'messages': the role of message %zu must be system, developer, "
				  "user or assistant",
				  i);
		return NULL;
	}
	json_t *content = content_of(m);
	if (!content) {
		yk_exchange_error(x, 400, "messages", NULL,
				  "'messages': the content of message %zu must be a string or an "
				  "array of parts of type text",
				  i);
		return NULL;
	}
	json_t *to = json_pack("{s:s, s:o, s:s*}", "role", role, "content", content, "name", name);
	if (!to)
		yk_exchange_error(x, 500, NULL, NULL, "no memory for a message");
	return to;
}

// JSON texts of the messages and of the template's variables.
static bool texts_of(struct yk_exchange *x, const json_t *o, char **messages, char **variables)
{
	const json_t *list = yk_field(o, "messages"), *more = yk_field(o, "chat_template_kwargs");
	json_t *all = json_array();
	bool good = true;
	if (!json_is_array(list) || !json_array_size(list)) {
		yk_exchange_error(x, 400, "messages", NULL,
				  "'messages' must be an array of one or more messages");
		good = false;
	} else if (more && !json_is_object(more)) {
		yk_exchange_error(x, 400, "chat_template_kwargs", NULL,
				  "'chat_template_kwargs' must be an object");
		good = false;
	}
	for (size_t i = 0; good && i < json_array_size(list); i++) {
		json_t *m = message(x, json_array_get(list, i), i);
		good = m && json_array_append_new(all, m) == 0;
	}
	*messages = good ? yk_json_text(all, JSON_COMPACT) : NULL;
	*variables = good && more ? yk_json_text(more, JSON_COMPACT) : NULL;
	json_decref(all);
	if (good && (!*messages || (more && !*variables)))
		yk_exchange_error(x, 500, NULL, NULL, "no memory for the messages");
	return good && *messages;
}

bool yk_prompt_messages(struct yk_serve *s, struct yk_exchange *x, const json_t *o,
			struct yk_completion_request *a)
{
	char *messages = NULL, *variables = NULL;
	struct yk_token_list ids = { 0 };
	if (!s->lm.template) {
		yk_exchange_error(x, 400, "messages", NULL,
				  "the model has no chat template; use /v1/completions, or start "
				  "the server with template=FILE");
		return false;
	}
	bool good = texts_of(x, o, &messages, &variables);
	const struct yoke_chat_options options = { .size = sizeof options,
						   .add_generation_prompt = 1,
						   .variables = variables };
	if (good &&
	    yoke_chat_template_encode_json(s->lm.template, s->lm.tokenizer, messages,
					   strlen(messages), &options, &ids.id, &ids.n) < 0) {
		yk_exchange_failed(x, "messages");
		good = false;
	}
	free(messages);
	free(variables);
	return good && add(s, x, "messages", ids, a);
}

bool yk_prompt_format(struct yk_serve *s, struct yk_exchange *x, const json_t *o,
		      struct yk_completion_request *a)
{
	const json_t *m = yk_field(o, "response_format");
	if (!m || yk_schema_of_format(m, s->lm.schemas, &a->schema) == 0)
		return true;
	yk_exchange_failed(x, "response_format");
	return false;
}
