// SPDX-License-Identifier: Apache-2.0
// Tokenizers: a table of kinds.
// A kind with state beyond its name stores it in struct yk_tokenizer and in its
// JSON.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/param.h"
#include "text/tokenizer.h"
#include "text/words.h"

enum { MAX_IDS = 1 << 20, ID_TEXT = 8 };

struct yk_tokenizer_kind {
	const char *name, *separator;
	int32_t unknown; // -1: none
	bool text;       // tokens represent text
	void (*init)(struct yk_tokenizer *);
	int32_t (*size)(const struct yk_tokenizer *);
	int (*encode)(struct yk_tokenizer *, const char *text, size_t bytes,
		      struct yk_tokens *to);
	const char *(*decode)(const struct yk_tokenizer *, int32_t id, size_t *bytes);
	// NULL if it does not learn; members of the JSON besides name and size.
	int (*settle)(struct yk_tokenizer *, struct yk_tokens *, size_t train, size_t max);
	int (*save)(const struct yk_tokenizer *, json_t *to);
	int (*load)(struct yk_tokenizer *, const json_t *, const char *what);
};

struct yk_tokenizer {
	const struct yk_tokenizer_kind *kind;
	char bytes[256]; // byte of each id, for decoding
	struct yk_words words;
	int32_t ids;
	char (*id)[ID_TEXT]; // in decimal
	struct yk_published {
		yoke_tokenizer *tokenizer;
		bool bare; // prompts get no special tokens
		bool lent; // another object frees the tokenizer
		struct yk_decoded {
			char *text; // NULL: not decoded yet
			size_t at, bytes;
		} *decoded; // by id
	} published;
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

static int word_settle(struct yk_tokenizer *t, struct yk_tokens *tokens, size_t train, size_t max)
{
	return t->words.learning ? yk_words_settle(&t->words, tokens, train, max) : 0;
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

// ---- ids: numbers between blanks ----

static int32_t ids_size(const struct yk_tokenizer *t)
{
	return t->ids;
}

static int ids_make(struct yk_tokenizer *t, int64_t size, const char *what)
{
	if (size < 1 || size > MAX_IDS)
		return yk_fail(YOKE_EFORMAT, "%s: a vocabulary of %lld ids; there may be 1 to %d",
			       what, (long long)size, MAX_IDS);
	t->id = calloc((size_t)size, sizeof *t->id);
	if (!t->id)
		return yk_fail(YOKE_ENOMEM, "out of memory for a tokenizer of %lld ids",
			       (long long)size);
	for (int64_t i = 0; i < size; i++)
		snprintf(t->id[i], sizeof *t->id, "%d", (int)i);
	t->ids = (int32_t)size;
	return 0;
}

// Parses the next number of a text; 0: end of text; EFORMAT.
static int ids_next(const struct yk_tokenizer *t, const char **at, const char *end, int32_t *id)
{
	const char *c = *at;
	while (c < end && (*c == ' ' || (*c >= '\t' && *c <= '\r')))
		c++;
	const char *first = c;
	int64_t n = 0;
	while (c < end && *c >= '0' && *c <= '9' && n < t->ids)
		n = 10 * n + (*c++ - '0');
	*at = c;
	if (c == end && c == first)
		return 0;
	if (c == first || n >= t->ids || (c < end && *c != ' ' && !(*c >= '\t' && *c <= '\r')))
		return yk_fail(
			YOKE_EFORMAT,
			"the text is not numbers below %d between blanks, as tokenizer=ids needs",
			t->ids);
	*id = (int32_t)n;
	return 1;
}

static int ids_encode(struct yk_tokenizer *t, const char *text, size_t bytes, struct yk_tokens *to)
{
	const char *at = text, *end = text + bytes;
	const size_t before = to->count;
	int32_t id = 0;
	int e = yk_tokens_reserve(to, t->ids, bytes / 2 + 1);
	while (e == 0 && (e = ids_next(t, &at, end, &id)) > 0) {
		yk_tokens_add(to, id);
		e = 0;
	}
	if (e < 0)
		to->count = before;
	return e;
}

static const char *ids_decode(const struct yk_tokenizer *t, int32_t id, size_t *bytes)
{
	*bytes = strlen(t->id[id]);
	return t->id[id];
}

static int ids_load(struct yk_tokenizer *t, const json_t *o, const char *what)
{
	return ids_make(t, json_integer_value(json_object_get(o, "size")), what);
}

// ---- published: of a pretrained model ----

int yk_tokenizer_ids_of(const struct yk_tokenizer *t, const char *text, size_t bytes,
			unsigned flags, const struct yoke_text_span *plain, size_t spans,
			int32_t **to, size_t *count)
{
	return yk_tokenizer_segments_of(t, text, bytes, flags, plain, spans, NULL, to, count);
}

int yk_tokenizer_segments_of(const struct yk_tokenizer *t, const char *text, size_t bytes,
			     unsigned flags, const struct yoke_text_span *plain, size_t spans,
			     struct yk_segments *segments, int32_t **to, size_t *count)
{
	int32_t *ids;
	size_t n;
	int e = yk_tokenizer_encode_segments(t->published.tokenizer, text, bytes, flags, plain,
					     spans, segments, &ids, &n);
	if (e < 0)
		return e;
	for (size_t i = 0; i < n && e == 0; i++)
		if (ids[i] >= t->ids)
			e = yk_fail(YOKE_EINVAL,
				    "the text has token %d, but the model knows only %d",
				    (int)ids[i], (int)t->ids);
	if (e < 0) {
		free(ids);
		return e;
	}
	*to = ids;
	*count = n;
	return 0;
}

static int published_add(struct yk_tokenizer *t, unsigned flags, const char *text, size_t bytes,
			 struct yk_tokens *to)
{
	int32_t *ids;
	size_t n;
	int e = yk_tokenizer_ids_of(t, text, bytes, flags, NULL, 0, &ids, &n);
	if (e < 0)
		return e;
	e = yk_tokens_reserve(to, t->ids, n);
	for (size_t i = 0; i < n && e == 0; i++)
		yk_tokens_add(to, ids[i]);
	free(ids);
	return e;
}

static int published_encode(struct yk_tokenizer *t, const char *text, size_t bytes,
			    struct yk_tokens *to)
{
	return published_add(t, 0, text, bytes, to);
}

// Decoders may treat the first token of a text differently, so two equal tokens are decoded, and
// the text of the second is returned.
static const char *published_decode(const struct yk_tokenizer *t, int32_t id, size_t *bytes)
{
	struct yk_decoded *d = &t->published.decoded[id];
	const int32_t twice[] = { id, id };
	const unsigned flags = YOKE_TOKENIZER_BYTES;
	char *one, *two;
	size_t n, m;
	*bytes = 0;
	if (!d->text) {
		if (yoke_tokenizer_decode(t->published.tokenizer, twice, 1, flags, &one, &n) < 0)
			return "";
		if (yoke_tokenizer_decode(t->published.tokenizer, twice, 2, flags, &two, &m) < 0) {
			free(one);
			return "";
		}
		d->at = m >= n && !memcmp(one, two, n) ? n : 0;
		d->bytes = m - d->at;
		d->text = two;
		free(one);
	}
	*bytes = d->bytes;
	return d->text + d->at;
}

static const struct yk_tokenizer_kind published_kind = {
	YK_TOKENIZER_PUBLISHED, "",   -1,   true, NULL, ids_size, published_encode,
	published_decode,       NULL, NULL, NULL,
};

static struct yk_tokenizer *published_new(yoke_tokenizer *of, int32_t size, bool lent)
{
	struct yk_tokenizer *t = calloc(1, sizeof *t);
	struct yk_decoded *decoded = calloc((size_t)size + 1, sizeof *decoded);
	if (t && decoded) {
		*t = (struct yk_tokenizer){
			.kind = &published_kind,
			.ids = size,
			.published = { .tokenizer = of, .lent = lent, .decoded = decoded }
		};
		return t;
	}
	yk_fail(YOKE_ENOMEM, "out of memory for a tokenizer of %d ids", (int)size);
	free(decoded);
	free(t);
	return NULL;
}

struct yk_tokenizer *yk_tokenizer_published(yoke_tokenizer *of, int32_t size)
{
	struct yk_tokenizer *t = published_new(of, size, false);
	if (!t)
		yoke_tokenizer_free(of);
	return t;
}

struct yk_tokenizer *yk_tokenizer_borrow(const yoke_tokenizer *of, int32_t size)
{
	return published_new((yoke_tokenizer *)(uintptr_t)of, size, true);
}

void yk_tokenizer_bare(struct yk_tokenizer *t)
{
	t->published.bare = true;
}

yoke_tokenizer *yk_tokenizer_release(struct yk_tokenizer *t, bool *bare)
{
	t->published.lent = true;
	*bare = t->published.bare;
	return t->published.tokenizer;
}

const yoke_tokenizer *yk_tokenizer_source(const struct yk_tokenizer *t)
{
	return t->published.tokenizer;
}

static void nothing(struct yk_tokenizer *t)
{
	(void)t;
}

static const struct yk_tokenizer_kind kinds[] = {
	{ "byte", "", -1, true, byte_init, byte_size, byte_encode, byte_decode, NULL, NULL, NULL },
	{ "word", " ", YK_WORD_UNKNOWN, true, word_init, word_size, word_encode, word_decode,
	  word_settle, word_save, word_load },
	{ "ids", " ", -1, false, nothing, ids_size, ids_encode, ids_decode, NULL, NULL, ids_load },
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
	for (int32_t i = 0; t->published.decoded && i < t->ids; i++)
		free(t->published.decoded[i].text);
	free(t->published.decoded);
	if (!t->published.lent)
		yoke_tokenizer_free(t->published.tokenizer);
	free(t->id);
	free(t);
}

struct yk_tokenizer *yk_tokenizer_ids(int64_t size, const char *what)
{
	struct yk_tokenizer *t = yk_tokenizer_new("ids");
	if (t && ids_make(t, size, what) < 0) {
		yk_tokenizer_free(t);
		return NULL;
	}
	return t;
}

int64_t yk_tokenizer_learnt(const struct yk_tokenizer *t)
{
	return t->words.learning ? (int64_t)t->words.count : 0;
}

int yk_tokenizer_join(struct yk_tokenizer *to, int n, struct yk_tokenizer *const *from,
		      bool *const *in)
{
	size_t count = 0, k = 0;
	struct yk_words words;
	if (!to->words.learning)
		return 0;
	for (int i = 0; i < n; i++)
		count += from[i]->words.count;
	struct yk_word *list = malloc((count + 1) * sizeof *list);
	if (!list)
		return yk_fail(YOKE_ENOMEM, "out of memory for a vocabulary");
	for (int i = 0; i < n; i++)
		for (size_t w = 0; w < from[i]->words.count; w++)
			if (in[i][w])
				list[k++] = from[i]->words.word[w];
	const int e = yk_words_make(&words, list, k);
	free(list);
	if (e == 0) {
		yk_words_fini(&to->words);
		to->words = words;
	}
	return e;
}

void yk_tokenizer_map(const struct yk_tokenizer *to, const struct yk_tokenizer *from, int32_t *id)
{
	yk_words_map(&to->words, &from->words, id);
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

int yk_tokenizer_prompt(struct yk_tokenizer *t, const char *text, size_t bytes,
			struct yk_tokens *to)
{
	return t->published.tokenizer && !t->published.bare ?
		       published_add(t, YOKE_TOKENIZER_ADD, text, bytes, to) :
		       yk_tokenizer_encode(t, text, bytes, to);
}

const yoke_tokenizer *yk_tokenizer_pretrained(const struct yk_tokenizer *t)
{
	return t->published.tokenizer;
}

bool yk_tokenizer_ends(const struct yk_tokenizer *t, int32_t id)
{
	const int32_t *eos = NULL;
	const int n = t->published.tokenizer ? yoke_tokenizer_eos(t->published.tokenizer, &eos) : 0;
	for (int i = 0; i < n; i++)
		if (eos[i] == id)
			return true;
	return false;
}

int yk_tokenizer_settle(struct yk_tokenizer *t, struct yk_tokens *tokens, size_t train, size_t max)
{
	return t->kind->settle ? t->kind->settle(t, tokens, train, max) : 0;
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

bool yk_tokenizer_is_text(const struct yk_tokenizer *t)
{
	return t->kind->text;
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
