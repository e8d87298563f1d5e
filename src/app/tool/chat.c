// SPDX-License-Identifier: Apache-2.0
// Conversations: prompts from messages, answers token by token, files.
#include "config.h"

#include "tool/chat.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "template/template.h"
#include "tokenizer/pieces.h"

#define FILE_MAX (UINT64_C(1) << 30)
enum { RESERVE = 256 }; // tokens of an answer that a cache has space for at first

// ---- messages ----

int yk_chat_init(struct yk_chat *c, const struct yk_opened *o)
{
	const char *file = yk_config_str(&o->config, YK_KEY_template),
		   *system = yk_config_str(&o->config, YK_KEY_system);
	char *source = NULL;
	size_t bytes;
	*c = (struct yk_chat){ .o = o,
			       .tokenizer = yk_tokenizer_pretrained(o->model.tokenizer),
			       .limit = yk_config_int(&o->config, YK_KEY_tokens) };
	if (!c->tokenizer)
		return yk_fail(
			YOKE_EUNSUPPORTED,
			"%s: its tokenizer (%s) has no special tokens, which a conversation needs; "
			"`yoke generate` continues text",
			o->folder, yk_tokenizer_name(o->model.tokenizer));
	if (!*file && !yoke_tokenizer_template(c->tokenizer))
		return yk_fail(YOKE_ENOENT,
			       "%s: has no chat template, so it may not be made for conversations; "
			       "give template=FILE, or "
			       "continue text with `yoke generate`",
			       o->folder);
	int e = *file ? yk_file_read(file, FILE_MAX, &source, &bytes) : 0;
	if (e == 0) {
		c->template = *file ? yk_chat_template_for(c->tokenizer, source, bytes, file) :
				      yoke_chat_template_of(c->tokenizer);
		c->messages = json_array();
		e = !c->template ? yk_error_last() :
		    c->messages  ? 0 :
				   yk_fail(YOKE_ENOMEM, "no memory for a conversation");
	}
	free(source);
	return e == 0 && *system ? yk_chat_system(c, system, strlen(system)) : e;
}

void yk_chat_fini(struct yk_chat *c)
{
	yk_generation_free(c->generation);
	yoke_chat_template_free(c->template);
	json_decref(c->messages);
}

static json_t *message(const char *role, const char *text, size_t bytes)
{
	const size_t good = yk_utf8_check(text, bytes);
	const char *nul = memchr(text, 0, bytes);
	if (good < bytes || nul) {
		yk_fail(YOKE_EFORMAT, "the message has %s at byte %zu; it was not sent",
			nul ? "a NUL" : "an invalid UTF-8 sequence",
			nul ? (size_t)(nul - text) : good);
		return NULL;
	}
	json_t *m = json_pack("{s:s, s:s%}", "role", role, "content", text, bytes);
	if (!m)
		yk_fail(YOKE_ENOMEM, "no memory for a message");
	return m;
}

int yk_chat_add(struct yk_chat *c, const char *role, const char *text, size_t bytes)
{
	json_t *m = message(role, text, bytes);
	if (!m)
		return yk_error_last();
	return json_array_append_new(c->messages, m) < 0 ?
		       yk_fail(YOKE_ENOMEM, "no memory for a message") :
		       0;
}

static bool has_role(const json_t *m, const char *role)
{
	const char *is = json_string_value(json_object_get(m, "role"));
	return is && !strcmp(is, role);
}

static bool has_system(const struct yk_chat *c)
{
	return has_role(json_array_get(c->messages, 0), "system");
}

int yk_chat_system(struct yk_chat *c, const char *text, size_t bytes)
{
	json_t *m = bytes ? message("system", text, bytes) : NULL;
	if (bytes && !m)
		return yk_error_last();
	if (has_system(c))
		json_array_remove(c->messages, 0);
	c->first = 0;
	return m && json_array_insert_new(c->messages, 0, m) < 0 ?
		       yk_fail(YOKE_ENOMEM, "no memory for a message") :
		       0;
}

int yk_chat_reset(struct yk_chat *c)
{
	while (json_array_size(c->messages) > has_system(c))
		json_array_remove(c->messages, json_array_size(c->messages) - 1);
	c->first = 0;
	return 0;
}

bool yk_chat_pop(struct yk_chat *c, const char *role)
{
	const size_t n = json_array_size(c->messages);
	return n > 0 && has_role(json_array_get(c->messages, n - 1), role) &&
	       json_array_remove(c->messages, n - 1) == 0;
}

// ---- prompts ----

// Tokens of the system message and the messages from c->first on.
static int encode(const struct yk_chat *c, struct yk_tokens *to)
{
	const struct yoke_chat_options options = { .size = sizeof options,
						   .add_generation_prompt = 1 };
	const size_t n = json_array_size(c->messages);
	struct yk_chat_text text = { 0 };
	json_t *shown = json_array();
	int32_t *ids = NULL;
	size_t count = 0;
	int e = shown ? 0 : YOKE_ENOMEM;
	if (e == 0 && c->first > 0 && has_system(c))
		e = json_array_append(shown, json_array_get(c->messages, 0));
	for (size_t i = c->first; i < n && e == 0; i++)
		e = json_array_append(shown, json_array_get(c->messages, i));
	e = e < 0 ? yk_fail(YOKE_ENOMEM, "no memory for a prompt") :
		    yk_chat_render(c->template, shown, &options, &text);
	if (e == 0)
		e = yk_tokenizer_ids_of(c->o->model.tokenizer, text.text, text.bytes,
					YOKE_TOKENIZER_PARSE, text.written.at, text.written.n, &ids,
					&count);
	if (e == 0 && count == 0)
		e = yk_fail(YOKE_EFORMAT, "the chat template writes nothing for these messages");
	to->count = 0;
	if (e == 0)
		e = yk_tokens_reserve(to, yk_tokenizer_size(c->o->model.tokenizer), count);
	for (size_t i = 0; i < count && e == 0; i++)
		yk_tokens_add(to, ids[i]);
	free(ids);
	yk_chat_text_fini(&text);
	json_decref(shown);
	return e;
}

// The next message of the user after c->first; a shortened conversation begins with one.  0: there
// is none.
static size_t next_start(const struct yk_chat *c)
{
	for (size_t i = c->first + 1 + (c->first == 0 && has_system(c));
	     i < json_array_size(c->messages); i++)
		if (has_role(json_array_get(c->messages, i), "user"))
			return i;
	return 0;
}

// Omits the oldest messages until a quarter of the context, or the limit of an answer, is free.
static int fit_prompt(struct yk_chat *c, struct yk_tokens *to)
{
	const int64_t context = c->o->model.net->shape.context,
		      quarter = context / 4 > 0 ? context / 4 : 1;
	const int64_t reserved = c->limit >= 0 && c->limit < quarter ? c->limit : quarter;
	for (;;) {
		const int e = encode(c, to);
		const size_t next =
			e == 0 && (int64_t)to->count > context - reserved ? next_start(c) : 0;
		if (e < 0)
			return e;
		if (next)
			c->first = next;
		else if ((int64_t)to->count < context)
			return 0;
		else
			return yk_fail(YOKE_ERANGE,
				       "the message has %zu tokens with those of the template, and "
				       "the context only %" PRId64 "; shorten it%s",
				       to->count, context,
				       yk_config_is_set(&c->o->config, YK_KEY_context) ?
					       ", or give a larger context=" :
					       "");
	}
}

// ---- answers ----

struct answer {
	struct yk_string text; // all of it
	size_t shown;          // bytes passed on so far
};

// Passes on complete characters, with U+FFFD for invalid bytes; at the end also an incomplete one.
static int show(struct answer *a, bool all, yk_chat_emit_fn *emit, void *arg)
{
	int e = 0;
	while (a->shown < a->text.n && e == 0) {
		const char *s = a->text.s + a->shown;
		const size_t n = a->text.n - a->shown, good = yk_utf8_check(s, n);
		if (good) {
			e = emit(arg, s, good);
			a->shown += good;
		} else if (yk_char_is_begun(s, n) && !all) {
			break;
		} else {
			e = emit(arg, "\xef\xbf\xbd", 3);
			a->shown++;
		}
	}
	return e;
}

static int add_token(const struct yk_chat *c, struct answer *a, int32_t id)
{
	struct yk_tokenizer *t = c->o->model.tokenizer;
	size_t bytes;
	if (yoke_tokenizer_is_special(c->tokenizer, id))
		return 0;
	const char *s = yk_tokenizer_decode(t, id, &bytes), *blank = yk_tokenizer_separator(t);
	yk_string_add(&a->text, blank, a->text.n ? strlen(blank) : 0);
	yk_string_add(&a->text, s, bytes);
	return a->text.failed ? yk_fail(YOKE_ENOMEM, "no memory for an answer") : 0;
}

static int generate(struct yk_chat *c, int64_t tokens, struct answer *a, yk_chat_emit_fn *emit,
		    void *arg, enum yk_chat_end *end)
{
	int32_t id;
	int e;
	while ((e = yk_generation_next(c->generation, &id)) > 0) {
		if (yk_tokenizer_ends(c->o->model.tokenizer, id)) {
			*end = YK_CHAT_ENDED;
			return show(a, true, emit, arg);
		}
		e = add_token(c, a, id);
		if (e == 0)
			e = show(a, false, emit, arg);
		if (e == 0) // also for a special token, which has no text
			e = emit(arg, "", 0);
		if (e > 0)
			*end = YK_CHAT_STOPPED;
		if (e != 0)
			return e;
	}
	*end = tokens == c->limit ? YK_CHAT_LIMIT : YK_CHAT_FULL;
	return e < 0 ? e : show(a, true, emit, arg);
}

int yk_chat_answer(struct yk_chat *c, yk_chat_emit_fn *emit, void *arg, enum yk_chat_end *end,
		   size_t *dropped)
{
	struct yk_sampling s = yk_opened_sampling(c->o);
	const struct yk_network *net = c->o->model.net;
	const size_t before = c->first;
	struct yk_tokens prompt = { 0 };
	struct answer a = { 0 };
	struct yk_string valid = { 0 };
	s.seed += (uint64_t)c->answers;
	int e = fit_prompt(c, &prompt);
	*dropped = c->first > before ? c->first - has_system(c) : 0;
	int64_t tokens = net->shape.context - (int64_t)prompt.count;
	if (c->limit >= 0 && c->limit <= tokens)
		tokens = c->limit;
	if (e == 0 && !c->generation)
		e = yk_generation_new(net, &s, 1, &prompt, 0, &c->generation);
	if (e == 0)
		e = yk_generation_again(c->generation, &s, &prompt, tokens, RESERVE);
	c->prompt = (int64_t)prompt.count;
	if (e == 0)
		e = generate(c, tokens, &a, emit, arg, end);
	yk_utf8_lossy(&valid, a.text.s ? a.text.s : "", a.text.n);
	if (e >= 0) {
		c->answers++;
		for (size_t i = 0; i < valid.n; i++) // a model may write anything
			valid.s[i] = valid.s[i] ? valid.s[i] : ' ';
		e = valid.failed ? yk_fail(YOKE_ENOMEM, "no memory for an answer") :
				   yk_chat_add(c, "assistant", valid.s ? valid.s : "", valid.n);
	}
	if (e < 0)
		c->first = before;
	yk_string_fini(&valid);
	yk_string_fini(&a.text);
	yk_tokens_fini(&prompt);
	return e;
}

// ---- files ----

int yk_chat_save(const struct yk_chat *c, const char *path)
{
	json_t *o = json_pack("{s:O}", "messages", c->messages);
	FILE *f = o ? fopen(path, "a+e") : NULL;
	int e = 0;
	errno = o ? errno : ENOMEM;
	// terminates an incomplete last line
	if (f && fseek(f, -1, SEEK_END) == 0 && fgetc(f) != '\n' &&
	    (fseek(f, 0, SEEK_END) || fputc('\n', f) == EOF))
		e = -1;
	if (!f || e < 0 || fseek(f, 0, SEEK_END) || json_dumpf(o, f, JSON_COMPACT) < 0 ||
	    fputc('\n', f) == EOF)
		e = yk_fail(YOKE_EIO, "%s: %s", path, strerror(errno));
	if (f && fclose(f) == EOF && e == 0)
		e = yk_fail(YOKE_EIO, "%s: %s", path, strerror(errno));
	json_decref(o);
	return e;
}

static bool is_conversation(const json_t *messages)
{
	bool good = json_array_size(messages) > 0;
	for (size_t i = 0; i < json_array_size(messages); i++) {
		const json_t *m = json_array_get(messages, i);
		good = good && json_is_string(json_object_get(m, "role")) &&
		       json_is_string(json_object_get(m, "content"));
	}
	return good;
}

int yk_chat_load(struct yk_chat *c, const char *path)
{
	char *text = NULL;
	size_t bytes, from;
	int e = yk_file_read(path, FILE_MAX, &text, &bytes);
	if (e < 0)
		return e;
	while (bytes > 0 && strchr("\r\n", text[bytes - 1]))
		bytes--;
	for (from = bytes; from > 0 && text[from - 1] != '\n';)
		from--;
	json_t *o = yk_json_parse(text + from, bytes - from, path),
	       *messages = json_object_get(o, "messages");
	if (!o) {
		e = yk_error_last();
	} else if (!is_conversation(messages)) {
		e = yk_fail(YOKE_EFORMAT, "%s: its last line has no messages with role and content",
			    path);
	} else {
		json_decref(c->messages);
		c->messages = json_incref(messages);
		c->first = 0;
	}
	json_decref(o);
	free(text);
	return e;
}
