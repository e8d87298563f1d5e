// SPDX-License-Identifier: Apache-2.0
// Renders a conversation and divides it into samples, in which each answer follows the prompt that
// a model is given for it.
#include "config.h"

#include "data/chat.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "template/template.h"

// The date that templates insert is fixed, so that the tokens do not depend on the day: noon of
// 2025-01-01, UTC.
enum { NOW = 1735732800, CHECKED = 1 << 14 };

static int no_memory(void)
{
	return yk_fail(YOKE_ENOMEM, "no memory for a conversation");
}

// ---- rendering ----

// Renders the first `count` messages.
static int render(const struct yk_conversation *c, size_t count, bool prompt,
		  struct yk_chat_text *to)
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

static bool begins_with(const struct yk_chat_text *text, const struct yk_chat_text *with)
{
	return with->bytes <= text->bytes && !memcmp(text->text, with->text, with->bytes);
}

static bool is_answer(const json_t *message)
{
	const char *role = json_string_value(json_object_get(message, "role"));
	return role && !strcmp(role, "assistant");
}

// ---- an answer after its prompt ----

// The end of the bytes that come from tools and messages before message i, and the first one of
// message i; the end of the text if there is none.
static void bytes_of(const struct yk_chat_text *text, size_t i, size_t *end, size_t *first)
{
	*end = 0;
	*first = text->bytes;
	for (size_t k = 0; k < text->written.n; k++) {
		const struct yoke_text_span *s = &text->written.at[k];
		if (s->message < (int64_t)i)
			*end = s->to;
		else if (*first == text->bytes)
			*first = s->from;
	}
}

// Makes the sample of a prompt up to byte `cut`, and the text `after` from byte `from` on.
static int join(const struct yk_chat_text *prompt, size_t cut, const struct yk_chat_text *after,
		size_t from, struct yk_chat_text *to)
{
	const struct yk_spans *p = &prompt->written, *a = &after->written;
	struct yk_chat_text x = { .bytes = cut + after->bytes - from };
	x.text = malloc(x.bytes + 1);
	if (!x.text ||
	    yk_grow(&x.written.at, &x.written.cap, p->n + a->n + 1, sizeof *x.written.at) < 0) {
		yk_chat_text_fini(&x);
		return no_memory();
	}
	memcpy(x.text, prompt->text, cut);
	memcpy(x.text + cut, after->text + from, after->bytes - from + 1);
	for (size_t k = 0; k < p->n; k++) // all of them end before the cut
		x.written.at[x.written.n++] = p->at[k];
	for (size_t k = 0; k < a->n; k++) {
		const struct yoke_text_span *s = &a->at[k];
		const size_t first =
			s->from > from ? s->from : from; // the prompt may have its beginning
		if (s->to > from)
			x.written.at[x.written.n++] =
				(struct yoke_text_span){ first - from + cut, s->to - from + cut,
							 s->message };
	}
	*to = x;
	return 0;
}

// The sample of an answer whose rendering does not begin with its prompt.
static int join_differing(size_t i, const struct yk_chat_text *prompt,
			  const struct yk_chat_text *after, struct yk_chat_text *to,
			  struct yk_answer_span *answer)
{
	size_t p, a, first, none, k = 0;
	bytes_of(prompt, i, &p, &none);
	bytes_of(after, i, &a, &first);
	if (first < a)
		return yk_fail(YOKE_EFORMAT,
			       "messages[%zu]: the chat template does not render this answer after "
			       "the messages "
			       "before it, so its tokens are unknown; use a template with {%% "
			       "generation %%} blocks",
			       i);
	const size_t tail = prompt->bytes - p, rest = after->bytes - a;
	while (k < tail && k < rest && prompt->text[p + k] == after->text[a + k])
		k++;
	if (k < tail && k > first - a) // what the answer itself begins with is not the prompt's
		k = first - a;
	while (k > 0 && a + k < after->bytes && ((unsigned char)after->text[a + k] & 0xc0) == 0x80)
		k--; // a character is not divided
	const int e = join(prompt, p + k, after, a + k, to);
	*answer = (struct yk_answer_span){ p + k, e == 0 ? to->bytes : 0, true };
	return e;
}

// The sample that ends with the answer of message i.
static int make_turn(const struct yk_conversation *c, size_t i, struct yk_chat_text *to,
		     struct yk_answer_span *answer)
{
	struct yk_chat_text prompt = { 0 }, after = { 0 };
	int e = render(c, i, true, &prompt);
	if (e == 0)
		e = render(c, i + 1, false, &after);
	if (e == 0 && begins_with(&after, &prompt)) {
		*answer = (struct yk_answer_span){ prompt.bytes, after.bytes, true };
		*to = after;
		after = (struct yk_chat_text){ 0 };
	} else if (e == 0) {
		e = join_differing(i, &prompt, &after, to, answer);
	}
	yk_chat_text_fini(&prompt);
	yk_chat_text_fini(&after);
	return e;
}

// ---- samples ----

// The sample that grows by answers.
struct sample {
	struct yk_chat_text text;
	struct yk_answers answers;
	size_t checked; // bytes of the text when its tokens were counted
	bool full;      // it has no token left for another answer
};

static void sample_fini(struct sample *s)
{
	yk_chat_text_fini(&s->text);
	free(s->answers.at);
	*s = (struct sample){ 0 };
}

static int add_answer(struct sample *s, struct yk_answer_span a)
{
	if (yk_grow(&s->answers.at, &s->answers.cap, s->answers.n + 1, sizeof a) < 0)
		return no_memory();
	s->answers.at[s->answers.n++] = a;
	return 0;
}

// Passes a sample on and releases it; *full is set if it exceeds the limit.
static int finish(const struct yk_conversation *c, struct sample *s, yk_chat_sample_fn *fn,
		  void *arg, bool *full)
{
	struct yk_chat_tokens x = { 0 };
	int e = yk_chat_tokens_make(c->tokenizer, &s->text, &s->answers, c->limit, &x);
	if (e == 0) {
		*full = x.n > c->limit;
		e = fn(arg, &x);
	}
	yk_chat_tokens_fini(&x);
	sample_fini(s);
	return e;
}

// Sets s->full if the tokens exceed the limit.  They are counted each time that the text has
// doubled.
static int check_size(const struct yk_conversation *c, struct sample *s)
{
	int32_t *ids;
	size_t n;
	if (c->limit == SIZE_MAX || s->text.bytes < CHECKED || s->text.bytes < 2 * s->checked)
		return 0;
	s->checked = s->text.bytes;
	const int e =
		yk_tokenizer_ids_of(c->tokenizer, s->text.text, s->text.bytes, YOKE_TOKENIZER_PARSE,
				    s->text.written.at, s->text.written.n, &ids, &n);
	if (e < 0)
		return e;
	s->full = n > c->limit;
	free(ids);
	return 0;
}

// Adds the answer of message i to the sample, or finishes it and begins another one.
static int add_turn(const struct yk_conversation *c, size_t i, struct sample *s,
		    yk_chat_sample_fn *fn, void *arg, bool *full)
{
	struct yk_chat_text text = { 0 };
	struct yk_answer_span answer = { 0 };
	int e = make_turn(c, i, &text, &answer);
	if (e == 0 && s->text.text && !begins_with(&text, &s->text))
		e = finish(c, s, fn, arg, full);
	else if (e == 0)
		*full = s->full;
	if (e < 0 || *full) {
		yk_chat_text_fini(&text);
		return e;
	}
	yk_chat_text_fini(&s->text);
	s->text = text;
	e = add_answer(s, answer);
	return e < 0 ? e : check_size(c, s);
}

// Each answer after its prompt.
static int encode_turns(const struct yk_conversation *c, struct yk_chat_text *all,
			yk_chat_sample_fn *fn, void *arg)
{
	const size_t n = json_array_size(c->messages);
	struct sample s = { 0 };
	bool full = false;
	int e = 0;
	for (size_t i = c->from; i < n && e == 0 && !full; i++)
		if (is_answer(json_array_get(c->messages, i)))
			e = add_turn(c, i, &s, fn, arg, &full);
	if (e == 0 && (s.text.text ? begins_with(all, &s.text) : !full)) {
		yk_chat_text_fini(&s.text);
		s.text = *all;
		*all = (struct yk_chat_text){ 0 };
	}
	if (e == 0 && s.text.text)
		e = finish(c, &s, fn, arg, &full);
	sample_fini(&s);
	return e;
}

// The template's generation blocks, those of messages from c->from on.
static int encode_blocks(const struct yk_conversation *c, struct yk_chat_text *all,
			 yk_chat_sample_fn *fn, void *arg)
{
	const struct yk_spans *blocks = &all->generation;
	struct yk_chat_text before = { 0 };
	struct sample s = { 0 };
	bool full;
	int e = c->from ? render(c, c->from, false, &before) : 0;
	for (size_t i = before.generation.n; i < blocks->n && e == 0; i++)
		e = add_answer(
			&s, (struct yk_answer_span){ blocks->at[i].from, blocks->at[i].to, false });
	yk_chat_text_fini(&before);
	s.text = *all;
	*all = (struct yk_chat_text){ 0 };
	if (e == 0)
		e = finish(c, &s, fn, arg, &full);
	sample_fini(&s);
	return e;
}

int yk_chat_encode(const struct yk_conversation *c, yk_chat_sample_fn *fn, void *arg)
{
	struct yk_chat_text all = { 0 };
	int e = render(c, json_array_size(c->messages), false, &all);
	if (e == 0)
		e = (all.generation.n ? encode_blocks : encode_turns)(c, &all, fn, arg);
	yk_chat_text_fini(&all);
	return e;
}
