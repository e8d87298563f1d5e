// SPDX-License-Identifier: Apache-2.0
// Chat templates: parsing, variables, rendering.
#include "config.h"

#include "template/template.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/sized.h"

enum { SOURCE_MAX = 1 << 20, TOKENS = 4 };

struct yoke_chat_template {
	struct yk_arena arena; // of the syntax tree
	struct yk_syntax_node *root;
	char *name;
	char *token[TOKENS]; // values of the variables of a tokenizer, NULL: not defined
};

static const char *const token_names[TOKENS] = { "bos_token", "eos_token", "pad_token",
						 "unk_token" };

yoke_chat_template *yoke_chat_template_parse(const char *source, size_t bytes, const char *name)
{
	struct yk_render r = { .steps = 64 * YK_RENDER_STEPS, .memory = 4 * YK_RENDER_MEMORY };
	struct yk_lexemes lexemes = { 0 };
	yoke_chat_template *t = NULL;
	if (yk_require(source, "source") < 0 || yk_require(name, "name") < 0)
		return NULL;
	if (bytes > SOURCE_MAX) {
		yk_fail(YOKE_ERANGE, "%s: a template of %zu bytes; at most %d", name, bytes,
			SOURCE_MAX);
		return NULL;
	}
	r.name = name;
	yk_template_lex(&r, source, bytes, &lexemes);
	struct yk_syntax_node *root = r.failed ? NULL : yk_template_syntax(&r, &lexemes);
	free(lexemes.at);
	if (root && (!(t = calloc(1, sizeof *t)) || !(t->name = strdup(name)))) {
		yk_fail(YOKE_ENOMEM, "%s: no memory for a template", name);
		free(t);
		root = NULL;
	}
	if (!root) {
		yk_arena_fini(&r.arena);
		return NULL;
	}
	t->arena = r.arena;
	t->root = root;
	return t;
}

yoke_chat_template *yoke_chat_template_of(const yoke_tokenizer *tokenizer)
{
	const char *source = yoke_tokenizer_template(tokenizer);
	if (yk_require(tokenizer, "tokenizer") < 0)
		return NULL;
	if (!source) {
		yk_fail(YOKE_ENOENT, "the tokenizer has no chat template");
		return NULL;
	}
	return yk_chat_template_for(tokenizer, source, strlen(source), "chat template");
}

yoke_chat_template *yk_chat_template_for(const yoke_tokenizer *tokenizer, const char *source,
					 size_t bytes, const char *name)
{
	yoke_chat_template *t = yoke_chat_template_parse(source, bytes, name);
	const int32_t *eos = NULL;
	const int count = yoke_tokenizer_eos(tokenizer, &eos);
	const int ids[TOKENS] = { yoke_tokenizer_bos(tokenizer), count > 0 ? eos[0] : -1,
				  yoke_tokenizer_pad(tokenizer),
				  yoke_tokenizer_unknown(tokenizer) };
	for (int i = 0; t && i < TOKENS; i++) {
		size_t n;
		const char *piece =
			ids[i] >= 0 ? yoke_tokenizer_piece(tokenizer, ids[i], &n) : NULL;
		if (piece && !(t->token[i] = strndup(piece, n))) {
			yk_fail(YOKE_ENOMEM, "chat template: no memory for a token");
			yoke_chat_template_free(t);
			t = NULL;
		}
	}
	return t;
}

void yoke_chat_template_free(yoke_chat_template *t)
{
	if (!t)
		return;
	for (int i = 0; i < TOKENS; i++)
		free(t->token[i]);
	yk_arena_fini(&t->arena);
	free(t->name);
	free(t);
}

// ---- rendering ----

static void set(struct yk_render *r, struct yk_v_frame *f, const char *name, struct yk_v_value v)
{
	const struct yk_v_value key = yk_v_text(r, name);
	if (!r->failed)
		yk_frame_set(r, f, key.s, v);
}

// Parses JSON of an option that must be an array or an object; NULL if it is not given.
static int parse_option(const char *text, bool array, const char *what, json_t **to)
{
	*to = NULL;
	if (!text)
		return 0;
	*to = yk_json_parse(text, strlen(text), what);
	if (*to && (array ? json_is_array(*to) : json_is_object(*to)))
		return 0;
	json_decref(*to);
	*to = NULL;
	return yk_fail(YOKE_EINVAL, "%s: must be a JSON %s", what, array ? "array" : "object");
}

static void set_variables(struct yk_render *r, struct yk_v_frame *f, const yoke_chat_template *t,
			  const json_t *messages, const json_t *tools, const json_t *variables,
			  bool prompt)
{
	for (int i = 0; i < TOKENS; i++)
		if (t->token[i])
			set(r, f, token_names[i], yk_v_text(r, t->token[i]));
	const char *name;
	json_t *v;
	set(r, f, "messages", yk_v_messages(r, messages));
	set(r, f, "tools", tools ? yk_v_json(r, tools, -1) : yk_v_none());
	set(r, f, "documents", yk_v_none());
	set(r, f, "add_generation_prompt", yk_v_bool(prompt));
	json_object_foreach ((json_t *)(uintptr_t)variables, name, v)
		set(r, f, name, yk_v_json(r, v, YK_NO_ORIGIN));
}

int yk_chat_render(const yoke_chat_template *t, const json_t *messages,
		   const struct yoke_chat_options *options, struct yk_chat_text *to)
{
	struct yoke_chat_options o = { .size = sizeof o };
	struct yk_v_buffer out = { 0 };
	struct yk_spans generation = { 0 };
	struct yk_render r = { .name = t->name,
			       .steps = YK_RENDER_STEPS,
			       .memory = YK_RENDER_MEMORY,
			       .out = &out,
			       .whole = &out,
			       .generation = &generation };
	json_t *tools = NULL, *variables = NULL;
	int e = options ? yk_sized_read(&o, sizeof o, options, "yoke_chat_template_render",
					"yoke_chat_options") :
			  0;
	if (e == 0)
		e = parse_option(o.tools, true, "tools", &tools);
	if (e == 0)
		e = parse_option(o.variables, false, "variables", &variables);
	if (e == 0) {
		r.now = o.now;
		r.steps +=
			64 * (int64_t)json_array_size(messages); // conversion is not the template's
		struct yk_v_frame *f = yk_frame_new(&r, NULL);
		if (f)
			set_variables(&r, f, t, messages, tools, variables,
				      o.add_generation_prompt);
		yk_statements(&r, f, t->root);
		yk_string_add(&out.s, "", 1);
		if (!r.failed && out.s.failed)
			yk_render_fail(&r, YOKE_ENOMEM, "no memory for the text");
		e = r.failed ? yk_error_last() : 0;
	}
	if (e == 0) {
		*to = (struct yk_chat_text){ out.s.s, out.s.n - 1, out.spans, generation };
	} else {
		yk_text_fini(&out);
		free(generation.at);
	}
	yk_arena_fini(&r.arena);
	json_decref(tools);
	json_decref(variables);
	return e;
}

void yk_chat_text_fini(struct yk_chat_text *x)
{
	free(x->text);
	free(x->written.at);
	free(x->generation.at);
	*x = (struct yk_chat_text){ 0 };
}

// ---- public functions ----

// Messages as JSON, given as such or as an array.
static json_t *json_of_text(const char *messages, size_t length)
{
	json_t *j = yk_json_parse(messages, length, "messages");
	if (j && !json_is_array(j)) {
		yk_fail(YOKE_EFORMAT, "messages: must be a JSON array");
		json_decref(j);
		j = NULL;
	}
	return j;
}

static json_t *json_of_array(const struct yoke_chat_message *m, size_t count)
{
	json_t *j = json_array();
	if (!j)
		yk_fail(YOKE_ENOMEM, "no memory for %zu messages", count);
	for (size_t i = 0; i < count && j; i++) {
		json_t *x = m[i].role && m[i].content ? json_pack("{s:s, s:s}", "role", m[i].role,
								  "content", m[i].content) :
							NULL;
		if (x && json_array_append_new(j, x) == 0)
			continue;
		yk_fail(YOKE_EINVAL, "message %zu: role and content must be UTF-8", i);
		json_decref(j);
		j = NULL;
	}
	return j;
}

// Renders messages and releases them; NULL: making them has failed.
static int render(const yoke_chat_template *t, json_t *messages, const struct yoke_chat_options *o,
		  struct yk_chat_text *to)
{
	const int e = messages ? yk_chat_render(t, messages, o, to) : yk_error_last();
	json_decref(messages);
	return e;
}

static int text_of(const yoke_chat_template *t, json_t *messages, const struct yoke_chat_options *o,
		   char **text, size_t *bytes)
{
	struct yk_chat_text x = { 0 };
	const int e = render(t, messages, o, &x);
	if (e < 0)
		return e;
	*text = x.text;
	*bytes = x.bytes;
	x.text = NULL;
	yk_chat_text_fini(&x);
	return 0;
}

static int ids_of(const yoke_chat_template *t, const yoke_tokenizer *tokenizer, json_t *messages,
		  const struct yoke_chat_options *o, int32_t **ids, size_t *n)
{
	struct yk_chat_text x = { 0 };
	int e = render(t, messages, o, &x);
	if (e == 0)
		e = yoke_tokenizer_encode_spans(tokenizer, x.text, x.bytes, YOKE_TOKENIZER_PARSE,
						x.written.at, x.written.n, ids, n);
	yk_chat_text_fini(&x);
	return e;
}

// Refuses NULL among the arguments.
static int given(const char *call, const yoke_chat_template *t, const void *messages,
		 const void *first, const char *what, const void *bytes)
{
	int e = yk_require_as(t, call, "template");
	if (e == 0)
		e = yk_require_as(messages, call, "messages");
	if (e == 0)
		e = yk_require_as(first, call, what);
	return e ? e : yk_require_as(bytes, call, "pointer to the length");
}

int yoke_chat_template_render_json(const yoke_chat_template *t, const char *messages, size_t length,
				   const struct yoke_chat_options *options, char **text,
				   size_t *bytes)
{
	const int e = given(__func__, t, messages, text, "text", bytes);
	return e ? e : text_of(t, json_of_text(messages, length), options, text, bytes);
}

int yoke_chat_template_render(const yoke_chat_template *t, const struct yoke_chat_message *m,
			      size_t count, const struct yoke_chat_options *options, char **text,
			      size_t *bytes)
{
	const int e = given(__func__, t, m, text, "text", bytes);
	return e ? e : text_of(t, json_of_array(m, count), options, text, bytes);
}

int yoke_chat_template_render_spans(const yoke_chat_template *t, const char *messages,
				    size_t length, const struct yoke_chat_options *options,
				    char **text, size_t *bytes, struct yoke_text_span **spans,
				    size_t *count)
{
	struct yk_chat_text x = { 0 };
	int e = given(__func__, t, messages, text, "text", bytes);
	if (e == 0)
		e = yk_require(spans, "spans");
	if (e == 0)
		e = yk_require(count, "count");
	if (e == 0)
		e = render(t, json_of_text(messages, length), options, &x);
	// never NULL, also without any
	if (e == 0 &&
	    yk_grow(&x.written.at, &x.written.cap, x.written.n + 1, sizeof *x.written.at) < 0)
		e = yk_fail(YOKE_ENOMEM, "no memory for the intervals of a text");
	if (e == 0) {
		*text = x.text;
		*bytes = x.bytes;
		*spans = x.written.at;
		*count = x.written.n;
		x.text = NULL;
		x.written.at = NULL;
	}
	yk_chat_text_fini(&x);
	return e;
}

int yoke_chat_template_encode_json(const yoke_chat_template *t, const yoke_tokenizer *tokenizer,
				   const char *messages, size_t length,
				   const struct yoke_chat_options *options, int32_t **ids,
				   size_t *count)
{
	int e = given(__func__, t, messages, ids, "pointer to the ids", count);
	if (e == 0)
		e = yk_require(tokenizer, "tokenizer");
	return e ? e : ids_of(t, tokenizer, json_of_text(messages, length), options, ids, count);
}

int yoke_chat_template_encode(const yoke_chat_template *t, const yoke_tokenizer *tokenizer,
			      const struct yoke_chat_message *m, size_t messages,
			      const struct yoke_chat_options *options, int32_t **ids, size_t *count)
{
	int e = given(__func__, t, m, ids, "pointer to the ids", count);
	if (e == 0)
		e = yk_require(tokenizer, "tokenizer");
	return e ? e : ids_of(t, tokenizer, json_of_array(m, messages), options, ids, count);
}
