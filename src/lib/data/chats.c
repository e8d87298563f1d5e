// SPDX-License-Identifier: Apache-2.0
// Texts of conversations as tokens with targets, and the windows that they are packed into.
// Memory: 1 to 4 bytes for a token's id, depending on the vocabulary, and one for its target.
#include "config.h"

#include "data/chats.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/number.h"
#include "data/chat.h"
#include "data/chat_line.h"
#include "data/lines.h"
#include "data/pack.h"

// Windows of one part.
struct windows {
	const struct yk_chats *of;
	struct yk_packing packing;
};

struct yk_chats {
	struct yk_tokenizer *tokenizer;
	yoke_chat_template *template; // NULL: the tokenizer has none
	int64_t context;
	struct yk_tokens ids;
	unsigned char *target; // [ids.count]
	size_t target_cap;
	int64_t *begin; // [count + 1]: first token of each text
	int64_t count, cap;
	int64_t conversations, cut, empty; // read; longer than a window; without a target
	int64_t divided;                   // of several samples
	int64_t blank;                     // other texts that have nothing to learn
	uint64_t hash;
	struct windows part[2];
	struct yk_chat_store *store; // NULL: samples become windows
	// the conversation whose samples are added
	bool open, current_cut;
	int64_t current; // its samples
};

static int no_memory(void)
{
	return yk_fail(YOKE_ENOMEM, "data: no memory for conversations");
}

struct yk_chats *yk_chats_new(struct yk_tokenizer *t, int64_t context)
{
	const yoke_tokenizer *pretrained = yk_tokenizer_pretrained(t);
	struct yk_chats *c = calloc(1, sizeof *c);
	if (!c || !(c->begin = calloc(1, sizeof *c->begin))) {
		free(c);
		no_memory();
		return NULL;
	}
	c->tokenizer = t;
	c->context = context;
	c->cap = 1;
	if (yoke_tokenizer_template(pretrained) &&
	    !(c->template = yoke_chat_template_of(pretrained))) {
		yk_chats_free(c);
		return NULL;
	}
	return c;
}

void yk_chats_free(struct yk_chats *c)
{
	if (!c)
		return;
	yoke_chat_template_free(c->template);
	if (c->store)
		yk_chat_store_fini(c->store);
	free(c->store);
	yk_tokens_fini(&c->ids);
	free(c->target);
	free(c->begin);
	for (int i = 0; i < 2; i++)
		yk_packing_fini(&c->part[i].packing);
	free(c);
}

// ---- texts ----

static int reserve(struct yk_chats *c, size_t tokens)
{
	const size_t need = c->ids.count + tokens;
	if (c->count + 1 >= c->cap) {
		const int64_t cap = 2 * c->cap + 2;
		int64_t *begin = realloc(c->begin, (size_t)cap * sizeof *begin);
		if (!begin)
			return no_memory();
		c->begin = begin;
		c->cap = cap;
	}
	if (need > c->target_cap) {
		const size_t cap = need > 2 * c->target_cap ? need : 2 * c->target_cap;
		unsigned char *target = realloc(c->target, cap);
		if (!target)
			return no_memory();
		c->target = target;
		c->target_cap = cap;
	}
	return yk_tokens_reserve(&c->ids, yk_tokenizer_size(c->tokenizer), tokens);
}

// Adds n tokens as one text.
static int add(struct yk_chats *c, const int32_t *id, const unsigned char *target, size_t n)
{
	const int e = reserve(c, n);
	if (e < 0)
		return e;
	memcpy(c->target + c->ids.count, target, n);
	for (size_t i = 0; i < n; i++)
		yk_tokens_add(&c->ids, id[i]);
	c->begin[++c->count] = (int64_t)c->ids.count;
	return 0;
}

static bool has_target(const unsigned char *target, size_t n)
{
	return n > 1 && memchr(target + 1, 1, n - 1); // the first token is never predicted
}

static void close_conversation(struct yk_chats *c)
{
	c->conversations += c->open;
	c->cut += c->open && c->current_cut;
	c->empty += c->open && c->current == 0;
	c->divided += c->open && c->current > 1;
	c->open = c->current_cut = false;
	c->current = 0;
}

// A sample of a conversation: cut at the end of a window; those after it are left out.
static int add_cut(struct yk_chats *c, const struct yk_chat_tokens *x)
{
	const size_t room = (size_t)c->context + 1, n = x->n < room ? x->n : room;
	if (c->current_cut)
		return 0;
	c->current_cut = n < x->n;
	if (!has_target(x->target, n))
		return 0;
	c->current++;
	return add(c, x->id, x->target, n);
}

// Other texts: in as many windows as they need, each of which begins with the last token of the one
// before. Windows without a target are left out: their loss has no mean.
static int add_whole(struct yk_chats *c, const struct yk_chat_tokens *x)
{
	const size_t step = (size_t)c->context;
	bool added = false;
	int e = 0;
	for (size_t i = 0; i + 1 < x->n && e == 0; i += step) {
		const size_t n = x->n - i < step + 1 ? x->n - i : step + 1;
		if (!has_target(x->target + i, n))
			continue;
		e = add(c, x->id + i, x->target + i, n);
		added = true;
	}
	c->blank += !added;
	return e;
}

// Adds a sample to the windows or to the store.
static int put(void *arg, enum yk_chat_kind kind, const struct yk_chat_tokens *x)
{
	struct yk_chats *c = arg;
	if (c->store)
		return yk_chat_store_add(c->store, yk_tokenizer_size(c->tokenizer), kind, x);
	if (kind != YK_CHAT_FURTHER)
		close_conversation(c);
	if (kind == YK_CHAT_TEXT)
		return add_whole(c, x);
	c->open = true;
	return add_cut(c, x);
}

// The number of tokens at the beginning of x that those of the prompt alone are equal to.
static int prompt_tokens(const struct yk_chats *c, const char *prompt, size_t bytes,
			 const struct yk_chat_tokens *x, size_t *to)
{
	int32_t *id;
	size_t n, k = 0;
	const int e = yk_tokenizer_ids_of(c->tokenizer, prompt, bytes, YOKE_TOKENIZER_ADD, NULL, 0,
					  &id, &n);
	if (e < 0)
		return e;
	while (k < n && k < x->n && id[k] == x->id[k])
		k++;
	free(id);
	*to = k;
	return 0;
}

// Tokens of a text, with those that the tokenizer puts before it and the one that ends a text.  The
// first `prompt` bytes are not to be learned.
static int encode_text(struct yk_chats *c, const char *text, size_t bytes, size_t prompt,
		       struct yk_chat_tokens *to)
{
	const int32_t *eos;
	struct yk_chat_tokens x = { 0 };
	size_t k = 0;
	int e = yk_tokenizer_ids_of(c->tokenizer, text, bytes, YOKE_TOKENIZER_ADD, NULL, 0, &x.id,
				    &x.n);
	if (e < 0)
		return e;
	int32_t *id = realloc(x.id, (x.n + 1) * sizeof *id);
	x.id = id ? id : x.id;
	x.target = malloc(x.n + 1);
	if (!id || !x.target)
		e = no_memory();
	if (e == 0 && prompt)
		e = prompt_tokens(c, text, prompt, &x, &k);
	if (e < 0) {
		yk_chat_tokens_fini(&x);
		return e;
	}
	if (yoke_tokenizer_eos(yk_tokenizer_pretrained(c->tokenizer), &eos) > 0 &&
	    (!x.n || !yk_tokenizer_ends(c->tokenizer, x.id[x.n - 1])))
		x.id[x.n++] = eos[0];
	memset(x.target, 1, x.n);
	memset(x.target, 0, k);
	*to = x;
	return 0;
}

static int encode_pair(struct yk_chats *c, const struct yk_chat_line *l, struct yk_chat_tokens *to)
{
	char *both = malloc(l->prompt_bytes + l->text_bytes + 1);
	if (!both)
		return no_memory();
	memcpy(both, l->prompt, l->prompt_bytes);
	memcpy(both + l->prompt_bytes, l->text, l->text_bytes);
	const int e = encode_text(c, both, l->prompt_bytes + l->text_bytes, l->prompt_bytes, to);
	free(both);
	return e;
}

// ---- lines ----

struct samples {
	struct yk_chats *of;
	int64_t n;
};

static int put_sample(void *arg, const struct yk_chat_tokens *x)
{
	struct samples *s = arg;
	return put(s->of, s->n++ ? YK_CHAT_FURTHER : YK_CHAT_FIRST, x);
}

static int add_messages(struct yk_chats *c, const struct yk_chat_line *l)
{
	const struct yk_conversation chat = { .tokenizer = c->tokenizer,
					      .template = c->template,
					      .messages = l->messages,
					      .tools = l->tools,
					      .from = l->from,
					      .limit = c->store ? SIZE_MAX :
								  (size_t)c->context + 1 };
	if (!c->template)
		return yk_fail(YOKE_ENOENT, "the model has no chat template to write messages "
					    "with; give it a chat_template.jinja, or write "
					    "the text yourself as \"prompt\" and \"completion\"");
	return yk_chat_encode(&chat, put_sample, &(struct samples){ .of = c });
}

static int add_strings(struct yk_chats *c, const struct yk_chat_line *l)
{
	struct yk_chat_tokens x = { 0 };
	int e = l->prompt ? encode_pair(c, l, &x) : encode_text(c, l->text, l->text_bytes, 0, &x);
	if (e == 0)
		e = put(c, l->prompt ? YK_CHAT_FIRST : YK_CHAT_TEXT, &x);
	yk_chat_tokens_fini(&x);
	return e;
}

// Puts the line before an error's text.
static int name_line(const char *what, int code)
{
	char why[1200];
	snprintf(why, sizeof why, "%s", yoke_error());
	yoke_error_clear();
	return yk_fail(code, "%s: %s", what, why);
}

static int add_line(struct yk_chats *c, const char *path, int64_t number, const char *text,
		    size_t bytes)
{
	struct yk_chat_line line;
	char *what;
	if (asprintf(&what, "%s:%lld", path, (long long)number) < 0)
		return no_memory();
	int e = yk_chat_line_parse(text, bytes, what, &line);
	if (e == 0) {
		e = (line.messages ? add_messages : add_strings)(c, &line);
		if (e < 0)
			name_line(what, e);
		yk_chat_line_fini(&line);
	}
	free(what);
	return e;
}

static int add_lines(struct yk_chats *c, const char *path, const char *text, size_t bytes)
{
	const char *line = text, *end = text + bytes;
	int e = 0;
	for (int64_t number = 1; line < end && e == 0; number++) {
		const char *stop = memchr(line, '\n', (size_t)(end - line)),
			   *next = stop ? stop + 1 : end;
		const size_t n = (size_t)((stop ? stop : end) - line);
		if (n > YK_RECORD_MAX)
			e = yk_fail(YOKE_EFORMAT,
				    "%s:%lld: the line has more than %llu MiB; divide it", path,
				    (long long)number, (unsigned long long)(YK_RECORD_MAX >> 20));
		else if (!yk_line_is_blank(line, n, 0))
			e = add_line(c, path, number, line, n);
		line = next;
	}
	return e;
}

int yk_chats_add(struct yk_chats *c, const char *path, const char *text, size_t bytes)
{
	struct yk_chat_tokens x = { 0 };
	if (yk_jsonl_is(path))
		return add_lines(c, path, text, bytes);
	int e = encode_text(c, text, bytes, 0, &x);
	if (e == 0)
		e = put(c, YK_CHAT_TEXT, &x);
	else
		name_line(path, e);
	yk_chat_tokens_fini(&x);
	return e;
}

// ---- files of tokens ----

int yk_chats_retain(struct yk_chats *c)
{
	c->store = calloc(1, sizeof *c->store);
	return c->store ? 0 : no_memory();
}

int yk_chats_save(const struct yk_chats *c, const struct yk_sources *sources, const char *path)
{
	if (!c->store->count)
		return yk_fail(YOKE_ERANGE, "%s: there is no conversation to prepare", path);
	return yk_chat_store_write(c->store, c->tokenizer, sources, path);
}

int yk_chats_load(struct yk_chats *c, const char *path, uint64_t *bytes)
{
	return yk_chat_store_read(path, c->tokenizer, bytes, put, c);
}

const struct yk_chat_store *yk_chats_kept(const struct yk_chats *c)
{
	return c->store;
}

// ---- windows ----

// Fills one text from position `at` of a window on; returns the position after it.
static int64_t fill(const struct yk_chats *c, int64_t text, int64_t at, int32_t *to)
{
	const int64_t begin = c->begin[text], n = c->begin[text + 1] - begin - 1;
	int32_t *target = to + c->context, *position = target + c->context;
	yk_tokens_copy(&c->ids, (size_t)begin, (size_t)n, to + at);
	for (int64_t i = 0; i < n; i++) {
		const size_t next = (size_t)(begin + i + 1);
		target[at + i] = c->target[next] ? yk_tokens_get(&c->ids, next) : YK_NO_TARGET;
		position[at + i] = (int32_t)i;
	}
	return at + n;
}

static int read_windows(void *arg, int64_t n, struct yoke_item *const *s)
{
	const struct windows *w = arg;
	const struct yk_chats *c = w->of;
	for (int64_t k = 0; k < n; k++) {
		int32_t *to = s[k]->to[0];
		int64_t at = 0;
		for (int64_t i = w->packing.first[s[k]->number];
		     i < w->packing.first[s[k]->number + 1]; i++)
			at = fill(c, w->packing.text[i], at, to);
		for (; at < c->context; at++) {
			to[at] = to[2 * c->context + at] = 0;
			to[c->context + at] = YK_NO_TARGET;
		}
	}
	return 0;
}

static int make_set(struct yk_chats *c, int part, int64_t begin, int64_t end, bool pack,
		    yoke_dataset **to)
{
	struct windows *w = &c->part[part];
	const struct yoke_field row = { .size = sizeof row,
					.name = "ids",
					.dtype = yoke_i32,
					.rank = 1,
					.dims = { YK_PACKED_FIELDS * c->context } };
	int64_t *length = malloc(((size_t)c->count + 1) * sizeof *length);
	*to = NULL;
	if (!length)
		return no_memory();
	for (int64_t i = begin; i < end; i++)
		length[i] = c->begin[i + 1] - c->begin[i] - 1;
	int e = yk_packing_make(&w->packing, length, begin, end, c->context, pack);
	free(length);
	w->of = c;
	if (e < 0 || w->packing.windows == 0)
		return e;
	c->hash = yk_hash_numbers(w->packing.first, sizeof *w->packing.first,
				  (size_t)w->packing.windows + 1, c->hash);
	*to = yoke_dataset_new(
		&(struct yoke_dataset_options){ .size = sizeof(struct yoke_dataset_options),
						.name = "conversations",
						.count = w->packing.windows,
						.fields = 1,
						.field = &row,
						.read = read_windows,
						.chunk = 64,
						.arg = w,
						.fingerprint = c->hash });
	return *to ? 0 : yoke_error_code();
}

static void report(const struct yk_chats *c, const char *paths)
{
	char left[120] = "", n[2][64];
	if (c->empty)
		snprintf(left, sizeof left, "; %s without a token to learn there %s left out",
			 yk_counted(n[1], c->empty, "conversation"), c->empty == 1 ? "is" : "are");
	if (c->cut || c->empty)
		yk_info("data", "%s: %lld of %s longer than context=%lld and cut there%s", paths,
			(long long)c->cut, yk_counted(n[0], c->conversations, "conversation"),
			(long long)c->context, left);
	if (c->divided)
		yk_info("data",
			"%s: %s divided into a sample for each answer, because the chat template "
			"writes "
			"earlier turns in another way than the last",
			paths, yk_counted(n[0], c->divided, "conversation"));
	if (c->blank)
		yk_info("data", "%s: %s without a token to learn left out", paths,
			yk_counted(n[0], c->blank, "text"));
}

int yk_chats_windows(struct yk_chats *c, const char *paths, double valid, bool pack,
		     yoke_dataset **train, yoke_dataset **validation)
{
	const bool split = valid > 0 && valid < 1;
	int64_t held = (int64_t)((double)c->count * valid);
	close_conversation(c);
	report(c, paths);
	if (c->count < (split ? 2 : 1))
		return yk_fail(
			YOKE_ERANGE,
			"data: %s: %lld samples to learn in %lld conversations and %lld empty "
			"texts; %s",
			paths, (long long)c->count, (long long)c->conversations,
			(long long)c->blank,
			split ? "one to train and one to validate are needed: give more, or "
				"valid=0" :
				"give some with an answer of the assistant within context=");
	if (split && held < 1) // both parts have one at least
		held = 1;
	c->hash = yk_hash_numbers(c->begin, sizeof *c->begin, (size_t)c->count + 1, pack);
	c->hash = yk_hash_numbers(c->ids.ids, (size_t)c->ids.width, c->ids.count, c->hash);
	c->hash = yk_hash(c->target, c->ids.count, c->hash);
	*validation = NULL;
	int e = make_set(c, 0, 0, c->count - held, pack, train);
	if (e == 0)
		e = make_set(c, 1, c->count - held, c->count, pack, validation);
	return e;
}

int64_t yk_chats_tokens(const struct yk_chats *c)
{
	return (int64_t)c->ids.count;
}

int64_t yk_chats_count(const struct yk_chats *c)
{
	return c->count;
}

uint64_t yk_chats_fingerprint(const struct yk_chats *c)
{
	return c->hash;
}

int64_t yk_chats_targets(const struct yk_chats *c, int part, int64_t window)
{
	const struct yk_packing *p = &c->part[part].packing;
	int64_t n = 0;
	for (int64_t i = p->first[window]; i < p->first[window + 1]; i++)
		for (int64_t k = c->begin[p->text[i]] + 1; k < c->begin[p->text[i] + 1]; k++)
			n += c->target[k];
	return n;
}
