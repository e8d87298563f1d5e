// SPDX-License-Identifier: Apache-2.0
// Special ids and the chat template from the files beside a tokenizer: tokenizer_config.json,
// generation_config.json, chat_template.jinja.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "tokenizer/tokenizer.h"

enum { MAX_TEMPLATE = 1 << 20 };

// NULL if the file does not exist.
static int load(const char *folder, const char *file, json_t **to)
{
	char path[8192];
	struct stat st;

	snprintf(path, sizeof path, "%s/%s", folder, file);
	*to = NULL;
	if (stat(path, &st) < 0)
		return 0;
	*to = yk_json_load(path);
	return *to ? 0 : yk_error_last();
}

// A token named as "<s>" or {"content": "<s>"}; -1: none, or not in the vocabulary.
static int32_t named(const yoke_tokenizer *t, const json_t *config, const char *key)
{
	const json_t *j = json_object_get(config, key);

	if (json_is_object(j))
		j = json_object_get(j, "content");
	return json_is_string(j) ?
		       yk_vocab_id(&t->vocab, json_string_value(j), json_string_length(j)) :
		       -1;
}

static int chat(yoke_tokenizer *t, const char *s, size_t n)
{
	if (n > MAX_TEMPLATE)
		return yk_fail(YOKE_EFORMAT, "%s: the chat template has %zu bytes, at most %d",
			       t->name, n, MAX_TEMPLATE);
	free(t->chat);
	t->chat = strndup(s, n);
	return t->chat ? 0 : yk_fail(YOKE_ENOMEM, "%s: no memory for the chat template", t->name);
}

static int config(yoke_tokenizer *t, const json_t *j)
{
	const json_t *c = json_object_get(j, "chat_template"), *x;
	size_t i;

	t->bos = named(t, j, "bos_token");
	t->pad = named(t, j, "pad_token");
	if (json_object_get(j, "eos_token"))
		t->eos_count = 0;
	yk_tokenizer_end(t, named(t, j, "eos_token"));
	if (t->spm.on) {
		if (json_is_false(json_object_get(j, "add_bos_token")))
			t->before.n = 0;
		if (json_is_true(json_object_get(j, "add_eos_token")) && t->eos_count &&
		    yk_tokenizer_affix(t, true, t->eos[0]) < 0)
			return YOKE_ENOMEM;
	}
	if (json_is_string(c))
		return chat(t, json_string_value(c), json_string_length(c));
	json_array_foreach (c, i, x) { // [{"name": "default", "template": ".."}, ..]
		const json_t *name = json_object_get(x, "name"),
			     *text = json_object_get(x, "template");
		if (json_is_string(name) && json_is_string(text) &&
		    !strcmp(json_string_value(name), "default"))
			return chat(t, json_string_value(text), json_string_length(text));
	}
	return 0;
}

static void generation(yoke_tokenizer *t, const json_t *j)
{
	const json_t *eos = json_object_get(j, "eos_token_id"), *x;
	size_t i;

	if (json_is_integer(eos) && json_integer_value(eos) >= 0 &&
	    json_integer_value(eos) < YK_VOCAB_MAX)
		yk_tokenizer_end(t, (int32_t)json_integer_value(eos));
	json_array_foreach (eos, i, x)
		if (json_is_integer(x) && json_integer_value(x) >= 0 &&
		    json_integer_value(x) < YK_VOCAB_MAX)
			yk_tokenizer_end(t, (int32_t)json_integer_value(x));
}

int yk_tokenizer_read_folder(yoke_tokenizer *t, const char *folder)
{
	char path[8192], *text;
	struct stat st;
	size_t bytes;
	json_t *j;
	int e = load(folder, "tokenizer_config.json", &j);

	if (j)
		e = config(t, j);
	json_decref(j);
	if (e < 0)
		return e;
	e = load(folder, "generation_config.json", &j);
	if (e < 0)
		return e;
	generation(t, j);
	json_decref(j);
	snprintf(path, sizeof path, "%s/chat_template.jinja", folder);
	if (stat(path, &st) < 0)
		return 0;
	e = yk_file_read(path, MAX_TEMPLATE, &text, &bytes);
	if (e == 0) {
		e = chat(t, text, bytes);
		free(text);
	}
	return e;
}
