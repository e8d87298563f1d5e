// SPDX-License-Identifier: Apache-2.0
// Vocabularies: reads the bytes of tokens, sorts them and builds the trees.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "schema/states.h"
#include "schema/vocab.h"
#include "tokenizer/pieces.h"

// A token to be sorted.
struct item {
	const char *s;
	uint32_t n, id, chars;
};

static int by_bytes(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	const int c = memcmp(x->s, y->s, x->n < y->n ? x->n : y->n);
	if (c)
		return c;
	return x->n == y->n ? (x->id > y->id) - (x->id < y->id) : (x->n > y->n) - (x->n < y->n);
}

static int by_chars(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	return x->chars == y->chars ? (x->id > y->id) - (x->id < y->id) :
				      (x->chars > y->chars) - (x->chars < y->chars);
}

// The characters of a plain token, 0: another one.
static uint32_t plain_chars(const char *s, size_t n)
{
	uint32_t chars = 0;

	if (yk_utf8_check(s, n) < n)
		return 0;
	for (size_t i = 0; i < n; i++) {
		if (!yk_plain_byte((uint8_t)s[i]))
			return 0;
		chars += (s[i] & 0xc0) != 0x80;
	}
	return chars;
}

static size_t common(const struct item *a, const struct item *b)
{
	size_t n = 0;

	while (n < a->n && n < b->n && a->s[n] == b->s[n])
		n++;
	return n;
}

// Builds the tree of n tokens, which it sorts.
static int build(struct yk_token_tree *t, struct item *x, size_t n)
{
	uint32_t open[YK_TOKEN_BYTES]; // the nodes of the last token
	size_t nodes = 0, depth = 0;

	if (n)
		qsort(x, n, sizeof *x, by_bytes);
	for (size_t i = 0; i < n; i++)
		nodes += x[i].n - (i ? common(&x[i - 1], &x[i]) : 0);
	t->node = malloc((nodes + 1) * sizeof *t->node);
	t->id = malloc((n + 1) * sizeof *t->id);
	if (!t->node || !t->id)
		return YOKE_ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const size_t from = i ? common(&x[i - 1], &x[i]) : 0;
		while (depth > from)
			t->node[open[--depth]].end = (uint32_t)t->nodes;
		for (; depth < x[i].n; depth++) {
			open[depth] = (uint32_t)t->nodes;
			t->node[t->nodes++] =
				(struct yk_token_node){ .token = (uint32_t)i,
							.byte = (uint8_t)x[i].s[depth],
							.depth = (uint8_t)depth };
		}
		t->id[t->ids++] = x[i].id;
	}
	while (depth)
		t->node[open[--depth]].end = (uint32_t)t->nodes;
	t->node[t->nodes] =
		(struct yk_token_node){ .end = (uint32_t)t->nodes, .token = (uint32_t)n };
	return 0;
}

// Divides the tokens into plain ones and others.
static int build_all(struct yk_schema_vocab *v)
{
	struct item *plain = malloc(((size_t)v->ids + 1) * sizeof *plain),
		    *other = malloc(((size_t)v->ids + 1) * sizeof *other);
	size_t plains = 0, others = 0;
	int e = plain && other ? 0 : YOKE_ENOMEM;

	for (int32_t i = 0; e == 0 && i < v->ids; i++) {
		const struct yk_vocab_token *t = &v->token[i];
		struct item x = { v->bytes + t->at, t->n, (uint32_t)i, 0 };
		if (!t->n)
			continue;
		x.chars = plain_chars(x.s, x.n);
		if (x.chars)
			plain[plains++] = x;
		else
			other[others++] = x;
	}
	if (e == 0 && (e = build(&v->plain, plain, plains)) == 0)
		e = build(&v->other, other, others);
	if (e == 0) {
		v->plain_chars = malloc(plains + 1);
		v->plain_id = malloc((plains + 1) * sizeof *v->plain_id);
		e = v->plain_chars && v->plain_id ? 0 : YOKE_ENOMEM;
	}
	if (e == 0 && plains)
		qsort(plain, plains, sizeof *plain, by_chars);
	for (size_t i = 0; e == 0 && i < plains; i++) {
		v->plain_id[i] = plain[i].id;
		v->plain_chars[i] = (uint8_t)plain[i].chars;
		v->plain_max = plain[i].chars;
		v->plain_bits[plain[i].id / 32] |= (uint32_t)1 << plain[i].id % 32;
	}
	free(plain);
	free(other);
	return e;
}

// A vocabulary whose tokens are to be added.
static struct yk_schema_vocab *begin(int32_t ids)
{
	struct yk_schema_vocab *v = calloc(1, sizeof *v);

	if (!v)
		return NULL;
	v->ids = ids;
	v->words = ((size_t)ids + 31) / 32;
	v->token = calloc((size_t)ids + 1, sizeof *v->token);
	v->plain_bits = calloc(v->words + 1, sizeof *v->plain_bits);
	v->end_bits = calloc(v->words + 1, sizeof *v->end_bits);
	if (v->token && v->plain_bits && v->end_bits)
		return v;
	yk_schema_vocab_free(v);
	return NULL;
}

static struct yk_schema_vocab *no_memory(struct yk_schema_vocab *v, int32_t ids)
{
	yk_schema_vocab_free(v);
	yk_fail(YOKE_ENOMEM, "no memory for the bytes of %d tokens", (int)ids);
	return NULL;
}

// Adds a token.  `all` collects the bytes.
static void add(struct yk_schema_vocab *v, int32_t id, enum yk_schema_token kind,
		const char *prefix, const char *s, size_t n, struct yk_string *all)
{
	struct yk_vocab_token *t = &v->token[id];
	const size_t before = strlen(prefix), at = all->n;

	if (kind == YK_TOKEN_ENDS) {
		t->ends = true;
		v->end_bits[id / 32] |= (uint32_t)1 << id % 32;
	}
	if (kind != YK_TOKEN_TEXT || !n || before + n > YK_TOKEN_BYTES)
		return;
	yk_string_add(all, prefix, before);
	yk_string_add(all, s, n);
	*t = (struct yk_vocab_token){ at, (uint32_t)(before + n), false };
}

static struct yk_schema_vocab *end(struct yk_schema_vocab *v, struct yk_string *all)
{
	v->bytes = all->s;
	return all->failed || build_all(v) < 0 ? no_memory(v, v->ids) : v;
}

struct yk_schema_vocab *yk_schema_vocab_of(int32_t n, const char *const *text, const size_t *bytes,
					   const enum yk_schema_token *kind)
{
	struct yk_schema_vocab *v = begin(n);
	struct yk_string all = { 0 };

	if (!v)
		return no_memory(v, n);
	for (int32_t i = 0; i < n; i++)
		add(v, i, kind[i], "", text[i], bytes[i], &all);
	return end(v, &all);
}

struct yk_schema_vocab *yk_schema_vocab_new(const struct yk_tokenizer *t, int32_t ids)
{
	const yoke_tokenizer *of = yk_tokenizer_source(t);
	const int32_t size = yk_tokenizer_size(t);
	struct yk_string all = { 0 };

	if (ids < size || ids > YK_SCHEMA_IDS) {
		yk_fail(YOKE_ERANGE, "a vocabulary of %d ids for a tokenizer of %d, at most %d",
			(int)ids, (int)size, YK_SCHEMA_IDS);
		return NULL;
	}
	struct yk_schema_vocab *v = begin(ids);
	if (!v)
		return no_memory(v, ids);
	for (int32_t i = 0; i < size; i++) {
		enum yk_schema_token kind = YK_TOKEN_TEXT;
		size_t n = 0;
		if (yk_tokenizer_ends(t, i))
			kind = YK_TOKEN_ENDS;
		else if (i == yk_tokenizer_unknown(t) || (of && (yoke_tokenizer_is_special(of, i) ||
								 i == yoke_tokenizer_unknown(of))))
			kind = YK_TOKEN_NEVER;
		const char *s = kind == YK_TOKEN_TEXT ? yk_tokenizer_decode(t, i, &n) : NULL;
		add(v, i, kind, yk_tokenizer_separator(t), s ? s : "", s ? n : 0, &all);
	}
	return end(v, &all);
}

void yk_schema_vocab_free(struct yk_schema_vocab *v)
{
	if (!v)
		return;
	free(v->bytes);
	free(v->token);
	free(v->plain.node);
	free(v->plain.id);
	free(v->other.node);
	free(v->other.id);
	free(v->plain_bits);
	free(v->end_bits);
	free(v->plain_chars);
	free(v->plain_id);
	free(v);
}

size_t yk_schema_vocab_words(const struct yk_schema_vocab *v)
{
	return v->words;
}
