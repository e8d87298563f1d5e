// SPDX-License-Identifier: Apache-2.0
// Tokenizers: a table of kinds.
// A kind that needs state beyond its name keeps it behind struct yk_tokenizer and in its
// JSON.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/param.h"
#include "text/tokenizer.h"
#include "text/words.h"

struct yk_kind {
	const char *name, *separator;
	int32_t unknown; // -1: none
	void (*init)(struct yk_tokenizer *);
	int32_t (*size)(const struct yk_tokenizer *);
	int (*encode)(struct yk_tokenizer *, const char *text, size_t bytes,
		      struct yk_tokens *to);
	const char *(*decode)(const struct yk_tokenizer *, int32_t id, size_t *bytes);
	// NULL where nothing is learnt; what the JSON has beyond name and size.
	int (*settle)(struct yk_tokenizer *, struct yk_tokens *, size_t train, size_t most);
	int (*save)(const struct yk_tokenizer *, json_t *to);
	int (*load)(struct yk_tokenizer *, const json_t *, const char *what);
};

struct yk_tokenizer {
	const struct yk_kind *kind;
	char bytes[256]; // what ids of single bytes stand for
	struct yk_words words;
};

// ---- byte ----

static void byte_init(struct yk_tokenizer *t)
{
	for (int b = 0; b < 256; b++)
		t->bytes[b] = (char)b;
}

static int32_t byte_size(const struct yk_tokenizer *t)
{
	return sizeof t->bytes;
}

static int byte_encode(struct yk_tokenizer *t, const char *text, size_t bytes,
		       struct yk_tokens *to)
{
	int e = yk_tokens_reserve(to, byte_size(t), bytes);

	if (e < 0)
		return e;
	if (bytes)
		memcpy((uint8_t *)to->ids + to->count, text, bytes);
	to->count += bytes;
	return 0;
}

static const char *byte_decode(const struct yk_tokenizer *t, int32_t id, size_t *bytes)
{
	*bytes = 1;
	return &t->bytes[id];
}

// ---- word ----

static void word_init(struct yk_tokenizer *t)
{
	t->words.learning = true;
}

static int32_t word_size(const struct yk_tokenizer *t)
{
	return (int32_t)t->words.count;
}

static int word_encode(struct yk_tokenizer *t, const char *text, size_t bytes,
		       struct yk_tokens *to)
{
	return yk_words_encode(&t->words, text, bytes, to);
}

static int word_settle(struct yk_tokenizer *t, struct yk_tokens *tokens, size_t train, size_t most)
{
	return t->words.learning ? yk_words_settle(&t->words, tokens, train, most) : 0;
}

static const char *word_decode(const struct yk_tokenizer *t, int32_t id, size_t *bytes)
{
	*bytes = t->words.word[id].n;
	return t->words.word[id].s;
}

static int word_save(const struct yk_tokenizer *t, json_t *to)
{
	json_t *words = yk_words_save(&t->words);

	return words ? json_object_set_new(to, "words", words) : YOKE_ENOMEM;
}

static int word_load(struct yk_tokenizer *t, const json_t *o, const char *what)
{
	return yk_words_load(&t->words, json_object_get(o, "words"), what);
}

static const struct yk_kind kinds[] = {
	{ "byte", "", -1, byte_init, byte_size, byte_encode, byte_decode, NULL, NULL, NULL },
	{ "word", " ", YK_WORD_UNKNOWN, word_init, word_size, word_encode, word_decode, word_settle, word_save,
	  word_load },
};
#define KINDS ((int)(sizeof kinds / sizeof *kinds))

// ---- entry points ----

struct yk_tokenizer *yk_tokenizer_new(const char *name)
{
	const char *names[KINDS], *nearest;

	for (int i = 0; i < KINDS; i++) {
		struct yk_tokenizer *t;
		names[i] = kinds[i].name;
		if (strcmp(name, kinds[i].name))
			continue;
		t = calloc(1, sizeof *t);
		if (!t) {
			yk_fail(YOKE_ENOMEM, "out of memory for a tokenizer");
			return NULL;
		}
		t->kind = &kinds[i];
		t->kind->init(t);
		return t;
	}
	nearest = yk_nearest(name, names, KINDS);
	yk_fail(YOKE_ENOENT, "no tokenizer '%s'; there is '%s'", name,
		nearest ? nearest : kinds[0].name);
	return NULL;
}

void yk_tokenizer_free(struct yk_tokenizer *t)
{
	if (!t)
		return;
	yk_words_fini(&t->words);
	free(t);
}

const char *yk_tokenizer_name(const struct yk_tokenizer *t)
{
	return t->kind->name;
}

int32_t yk_tokenizer_size(const struct yk_tokenizer *t)
{
	return t->kind->size(t);
}

int yk_tokenizer_encode(struct yk_tokenizer *t, const char *text, size_t bytes,
			struct yk_tokens *to)
{
	return t->kind->encode(t, text, bytes, to);
}

int yk_tokenizer_settle(struct yk_tokenizer *t, struct yk_tokens *tokens, size_t train, size_t most)
{
	return t->kind->settle ? t->kind->settle(t, tokens, train, most) : 0;
}

const char *yk_tokenizer_decode(const struct yk_tokenizer *t, int32_t id, size_t *bytes)
{
	if (id < 0 || id >= t->kind->size(t))
		return NULL;
	return t->kind->decode(t, id, bytes);
}

const char *yk_tokenizer_separator(const struct yk_tokenizer *t)
{
	return t->kind->separator;
}

int32_t yk_tokenizer_unknown(const struct yk_tokenizer *t)
{
	return t->kind->unknown;
}

json_t *yk_tokenizer_save(const struct yk_tokenizer *t)
{
	json_t *o = json_pack("{s:s, s:i}", "name", t->kind->name, "size",
			      (int)t->kind->size(t));

	if (o && (!t->kind->save || t->kind->save(t, o) == 0))
		return o;
	json_decref(o);
	yk_fail(YOKE_ENOMEM, "out of memory for a tokenizer's JSON");
	return NULL;
}

struct yk_tokenizer *yk_tokenizer_load(const json_t *o, const char *what)
{
	struct yk_tokenizer *t;
	const char *name;
	int64_t size;

	if (yk_json_str(o, what, "name", &name) < 0 ||
	    yk_json_int(o, what, "size", 1, INT32_MAX, &size) < 0)
		return NULL;
	t = yk_tokenizer_new(name);
	if (t && t->kind->load && t->kind->load(t, o, what) < 0) {
		yk_tokenizer_free(t);
		return NULL;
	}
	if (t && size != t->kind->size(t)) {
		yk_fail(YOKE_EFORMAT, "%s: tokenizer '%s' has %d ids, not %lld", what,
			name, (int)t->kind->size(t), (long long)size);
		yk_tokenizer_free(t);
		return NULL;
	}
	return t;
}
