// SPDX-License-Identifier: Apache-2.0
// Renders a conversation, tokenizes it, and finds the tokens of the assistant's turns.
#include "config.h"

#include "data/chat.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "template/template.h"

// The date that templates insert is fixed, so that the tokens do not depend on the day: 2025-01-01.
enum { NOW = 1735689600 };
#define PREFIX_BYTES ((size_t)64 << 20) // tokenized at most to find where turns begin

// Bytes of the text that the assistant wrote.  turn: found by comparing texts, so it may have a line end after
// the token that ends the turn.
struct answer {
	size_t from, to;
	bool turn;
};

struct answers {
	struct answer *at;
	size_t n;
};

static int no_memory(void)
{
	return yk_fail(YOKE_ENOMEM, "no memory for a conversation");
}

// ---- rendering ----

// Renders the first `count` messages.
static int render(const struct yk_chat *c, size_t count, bool prompt, struct yk_chat_text *to)
{
	struct yoke_chat_options o = { .size = sizeof o,
				       .add_generation_prompt = prompt,
				       .now = NOW };
	char *tools = c->tools ? yk_json_text(c->tools, 0) : NULL;
	json_t *some = json_array();
	int e = some && (tools || !c->tools) ? 0 : YOKE_ENOMEM;
	for (size_t i = 0; i < count && e == 0; i++)
		e = json_array_append(some, json_array_get(c->messages, i)) < 0 ? YOKE_ENOMEM : 0;
	if (e < 0)
		no_memory();
	o.tools = tools;
	if (e == 0)
		e = yk_chat_render(c->template, some, &o, to);
	json_decref(some);
	free(tools);
	return e;
}

static bool begins(const char *text, size_t bytes, const char *with, size_t n)
{
	return n <= bytes && !memcmp(text, with, n);
}

// The answer of message i, which must lie in the text of all messages where the prompt for it ends.
static int find_answer(const struct yk_chat *c, size_t i, const struct yk_chat_text *all,
		       struct answer *to)
{
	struct yk_chat_text before = { 0 }, after = { 0 };
	int e = render(c, i, true, &before);
	if (e == 0)
		e = render(c, i + 1, false, &after);
	if (e == 0 && (after.bytes < before.bytes ||
		       !begins(all->text, all->bytes, before.text, before.bytes) ||
		       !begins(all->text, all->bytes, after.text, after.bytes)))
		e = yk_fail(YOKE_EFORMAT,
			    "messages[%zu]: the chat template does not render the messages up to "
			    "here as the "
			    "beginning of all of them, so the tokens of this answer are unknown; "
			    "use a template with "
			    "{%% generation %%} blocks, or conversations that end with this answer",
			    i);
	*to = (struct answer){ before.bytes, after.bytes, true };
	yk_chat_text_fini(&before);
	yk_chat_text_fini(&after);
	return e;
}

static bool is_answer(const json_t *message)
{
	const char *role = json_string_value(json_object_get(message, "role"));
	return role && !strcmp(role, "assistant");
}

// Answers in the text up to byte `limit`.
static int find_answers(const struct yk_chat *c, const struct yk_chat_text *all, size_t limit,
			struct answers *to)
{
	const size_t n = json_array_size(c->messages);
	int e = 0;
	to->at = malloc((n + 1) * sizeof *to->at);
	if (!to->at)
		return no_memory();
	for (size_t i = c->from; i < n && e == 0; i++) {
		if (!is_answer(json_array_get(c->messages, i)))
			continue;
		e = find_answer(c, i, all, &to->at[to->n]);
		if (e == 0 && to->at[to->n++].to >= limit)
			break;
	}
	return e;
}

// The template's generation blocks, those after message c->from.
static int take_blocks(const struct yk_chat *c, const struct yk_chat_text *all, struct answers *to)
{
	const struct yk_spans *blocks = &all->generation;
	struct answer first = { 0 };
	int e = c->from ? find_answer(c, c->from, all, &first) : 0;
	to->at = e == 0 ? malloc((blocks->n + 1) * sizeof *to->at) : NULL;
	if (e == 0 && !to->at)
		e = no_memory();
	for (size_t i = 0; i < blocks->n && e == 0; i++)
		if (blocks->at[i].from >= first.from)
			to->at[to->n++] =
				(struct answer){ blocks->at[i].from, blocks->at[i].to, false };
	return e;
}

// ---- from bytes to tokens ----

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

// Sets at[k] to the byte at which token k begins, and at[n] to the end, by comparing the text with the decoded
// tokens.  A decoded blank may be missing in the text, where the tokenizer added it, and white space of the
// text among the tokens, where a special token includes it.  false: they differ otherwise.
static bool offsets(struct yk_tokenizer *t, const char *text, size_t bytes,
		    const struct yk_chat_tokens *x, size_t *at)
{
	size_t pos = 0;
	for (size_t k = 0; k < x->n; k++) {
		size_t n, next = pos;
		const char *s = yk_tokenizer_decode(t, x->id[k], &n);
		if (!s || !n)
			return false;
		const size_t added = *s == ' ';
		while (!begins(text + next, bytes - next, s, n) &&
		       !(added && begins(text + next, bytes - next, s + 1, n - 1))) {
			if (next == bytes || !is_space(text[next]))
				return false;
			next++;
		}
		at[k] = next;
		pos = next + (begins(text + next, bytes - next, s, n) ? n : n - 1);
	}
	while (pos < bytes && is_space(text[pos]))
		pos++;
	at[x->n] = pos;
	return pos == bytes;
}

// The tokens of the text up to byte `end`; special tokens in messages are text.
static int tokenize(const struct yk_chat *c, const struct yk_chat_text *all, size_t end,
		    int32_t **id, size_t *n)
{
	const size_t spans = all->written.n;
	struct yoke_text_span *plain = malloc((spans + 1) * sizeof *plain);
	size_t k = 0;
	if (!plain)
		return no_memory();
	for (; k < spans && all->written.at[k].from < end; k++) {
		plain[k] = all->written.at[k];
		plain[k].to = plain[k].to < end ? plain[k].to : end;
	}
	const int e = yk_tokenizer_ids_of(c->tokenizer, all->text, end, YOKE_TOKENIZER_PARSE, plain,
					  k, id, n);
	free(plain);
	return e;
}

// The number of tokens that the text up to byte `end` has in common with the whole text.
static int tokens_until(const struct yk_chat *c, const struct yk_chat_text *all, size_t end,
			const struct yk_chat_tokens *x, size_t *work, size_t *to)
{
	int32_t *id;
	size_t n, k = 0;
	if ((*work += end) > PREFIX_BYTES)
		return yk_fail(YOKE_ERANGE, "the conversation has too many turns for this "
					    "tokenizer, which changes the text: divide it");
	const int e = tokenize(c, all, end, &id, &n);
	if (e < 0)
		return e;
	while (k < n && k < x->n && id[k] == x->id[k])
		k++;
	free(id);
	*to = k;
	return 0;
}

// Tokens first .. end - 1 of an answer.
struct range {
	size_t first, end;
};

// A token belongs to an answer if any of its bytes does.
static struct range range_at(const size_t *at, size_t n, const struct answer *a, size_t first)
{
	struct range r = { first, first };
	while (r.first < n && at[r.first + 1] <= a->from)
		r.first++;
	for (r.end = r.first; r.end < n && at[r.end] < a->to;)
		r.end++;
	return r;
}

// Removes the white space after the token that ends the turn, which the model need not write.
static size_t without_rest(struct yk_tokenizer *t, const struct yk_chat_tokens *x, struct range r)
{
	for (size_t k = r.end; k > r.first; k--) {
		size_t n;
		const char *s = yk_tokenizer_decode(t, x->id[k - 1], &n);
		if (yoke_tokenizer_is_special(yk_tokenizer_pretrained(t), x->id[k - 1]))
			return k;
		for (size_t i = 0; i < n; i++)
			if (!is_space(s[i]))
				return r.end;
	}
	return r.end;
}

static int mark(const struct yk_chat *c, const struct yk_chat_text *all, const struct answers *a,
		const size_t *at, struct yk_chat_tokens *x)
{
	size_t work = 0;
	struct range r = { 0 };
	for (size_t i = 0; i < a->n; i++) {
		int e = 0;
		if (at) {
			r = range_at(at, x->n, &a->at[i], r.end);
		} else {
			e = tokens_until(c, all, a->at[i].from, x, &work, &r.first);
			if (e == 0)
				e = tokens_until(c, all, a->at[i].to, x, &work, &r.end);
		}
		if (e < 0)
			return e;
		const size_t end = a->at[i].turn ? without_rest(c->tokenizer, x, r) : r.end;
		for (size_t k = r.first; k < end; k++)
			x->target[k] = 1;
	}
	return 0;
}

// ---- entry points ----

static int encode(const struct yk_chat *c, const struct yk_chat_text *all, struct yk_chat_tokens *x)
{
	struct answers a = { 0 };
	int e = tokenize(c, all, all->bytes, &x->id, &x->n);
	if (e < 0)
		return e;
	x->target = calloc(x->n + 1, 1);
	size_t *at = malloc((x->n + 1) * sizeof *at);
	if (!x->target || !at) {
		free(at);
		return no_memory();
	}
	const bool aligned = offsets(c->tokenizer, all->text, all->bytes, x, at);
	const size_t limit = aligned && c->limit < x->n ? at[c->limit] : all->bytes;
	e = all->generation.n ? take_blocks(c, all, &a) : find_answers(c, all, limit, &a);
	if (e == 0)
		e = mark(c, all, &a, aligned ? at : NULL, x);
	free(a.at);
	free(at);
	return e;
}

int yk_chat_encode(const struct yk_chat *c, struct yk_chat_tokens *to)
{
	struct yk_chat_tokens x = { 0 };
	struct yk_chat_text all = { 0 };
	int e = render(c, json_array_size(c->messages), false, &all);
	if (e == 0)
		e = encode(c, &all, &x);
	yk_chat_text_fini(&all);
	if (e < 0)
		yk_chat_tokens_fini(&x);
	else
		*to = x;
	return e;
}

void yk_chat_tokens_fini(struct yk_chat_tokens *x)
{
	free(x->id);
	free(x->target);
	*x = (struct yk_chat_tokens){ 0 };
}
