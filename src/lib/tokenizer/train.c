// SPDX-License-Identifier: Apache-2.0
// Training of byte-level BPE: the most frequent pair of adjacent symbols becomes a token, over and
// over; of equally frequent pairs, that of the smallest ids (Sennrich et al. 2016).
//
// A heap has the pairs with their counts and the words that contain them. Counts only decrease
// after an entry is made, so an outdated one is recognized when it is taken out, and goes back with
// its count. The same string may be made by two pairs; then both merges have the same token, and a
// pair that occurs anew has a second entry for the new words, as in the reference.
#include "config.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/train.h"

#define NO_LIST UINT32_MAX

struct pair {
	uint64_t key;  // left id << 32 | right id
	int64_t count; // occurrences in the text
	uint32_t list; // of the words that have it since the last merge; NO_LIST: none
	bool used;
};

struct list {
	uint64_t key;
	uint32_t *word; // ascending
	size_t n, cap;
};

struct entry {
	uint64_t key;
	int64_t count;
	uint32_t *word;
	size_t n;
};

struct trainer {
	const struct yk_bpe_words *words;
	struct yk_vocab vocab; // tokens as the file spells them
	int32_t *symbol;       // of word i from words->word[i].at on
	size_t *length;        // symbols of a word
	struct pair *pair;     // hash table
	size_t pairs, pair_size;
	struct list *fresh; // pairs that occur anew
	size_t freshes, fresh_cap;
	struct entry *heap;
	size_t heaped, heap_cap;
	uint64_t *merge; // keys in order
	size_t merges, merge_cap;
	bool failed; // ENOMEM
};

static uint64_t key_of(int32_t left, int32_t right)
{
	return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

// ---- counts of pairs ----

static struct pair *slot_of(const struct trainer *t, uint64_t key)
{
	size_t i = (key * 0x9e3779b97f4a7c15u >> 24) & (t->pair_size - 1);

	while (t->pair[i].used && t->pair[i].key != key)
		i = (i + 1) & (t->pair_size - 1);
	return &t->pair[i];
}

static bool rehash(struct trainer *t)
{
	struct pair *before = t->pair;
	const size_t size = t->pair_size;
	struct pair *table = calloc(size ? 2 * size : 65536, sizeof *table);

	if (!table)
		return false;
	t->pair = table;
	t->pair_size = size ? 2 * size : 65536;
	for (size_t i = 0; i < size; i++)
		if (before[i].used)
			*slot_of(t, before[i].key) = before[i];
	free(before);
	return true;
}

static void add_word(struct trainer *t, struct pair *p, uint32_t word)
{
	if (p->list == NO_LIST) {
		if (yk_grow(&t->fresh, &t->fresh_cap, t->freshes + 1, sizeof *t->fresh) < 0) {
			t->failed = true;
			return;
		}
		t->fresh[t->freshes] = (struct list){ .key = p->key };
		p->list = (uint32_t)t->freshes++;
	}
	struct list *l = &t->fresh[p->list];
	if (l->n && l->word[l->n - 1] == word)
		return;
	if (yk_grow(&l->word, &l->cap, l->n + 1, sizeof *l->word) < 0)
		t->failed = true;
	else
		l->word[l->n++] = word;
}

static void change(struct trainer *t, int32_t left, int32_t right, int64_t by, uint32_t word)
{
	if (2 * (t->pairs + 1) > t->pair_size && !rehash(t)) {
		t->failed = true;
		return;
	}
	struct pair *p = slot_of(t, key_of(left, right));
	if (!p->used) {
		*p = (struct pair){ .key = key_of(left, right), .list = NO_LIST, .used = true };
		t->pairs++;
	}
	p->count += by;
	if (by > 0)
		add_word(t, p, word);
}

// ---- heap: the largest count, then the smallest ids ----

static bool before(const struct entry *a, const struct entry *b)
{
	return a->count != b->count ? a->count > b->count : a->key < b->key;
}

static void push(struct trainer *t, struct entry x)
{
	if (yk_grow(&t->heap, &t->heap_cap, t->heaped + 1, sizeof *t->heap) < 0) {
		t->failed = true;
		free(x.word);
		return;
	}
	size_t i = t->heaped++;
	for (; i && before(&x, &t->heap[(i - 1) / 2]); i = (i - 1) / 2)
		t->heap[i] = t->heap[(i - 1) / 2];
	t->heap[i] = x;
}

static struct entry pop(struct trainer *t)
{
	const struct entry first = t->heap[0], x = t->heap[--t->heaped];
	size_t i = 0;

	for (size_t k; (k = 2 * i + 1) < t->heaped; i = k) {
		if (k + 1 < t->heaped && before(&t->heap[k + 1], &t->heap[k]))
			k++;
		if (!before(&t->heap[k], &x))
			break;
		t->heap[i] = t->heap[k];
	}
	t->heap[i] = x;
	return first;
}

// Moves the pairs that occur anew to the heap.
static void push_fresh(struct trainer *t)
{
	for (size_t i = 0; i < t->freshes; i++) {
		struct pair *p = slot_of(t, t->fresh[i].key);
		p->list = NO_LIST;
		if (p->count > 0)
			push(t,
			     (struct entry){ p->key, p->count, t->fresh[i].word, t->fresh[i].n });
		else
			free(t->fresh[i].word);
	}
	t->freshes = 0;
}

// ---- training ----

// The special token, then the characters of all bytes by code point.
static int alphabet(struct trainer *t, int32_t id[256])
{
	int32_t next = 0;
	int e = yk_vocab_add(&t->vocab, t->words->what, next++, YK_END_OF_TEXT,
			     strlen(YK_END_OF_TEXT));
	for (uint32_t c = 0; c < 0x200 && e == 0; c++) {
		struct yk_string s = { 0 };
		const int byte = yk_char_byte(c);
		if (byte < 0)
			continue;
		yk_string_char(&s, c);
		id[byte] = next;
		e = s.failed ? yk_fail(YOKE_ENOMEM, "%s: no memory for the vocabulary",
				       t->words->what) :
			       yk_vocab_add(&t->vocab, t->words->what, next++, s.s, s.n);
		yk_string_fini(&s);
	}
	return e;
}

static void begin(struct trainer *t, const int32_t id[256])
{
	const struct yk_bpe_words *w = t->words;
	t->symbol = malloc((w->used + 1) * sizeof *t->symbol);
	t->length = malloc((w->count + 1) * sizeof *t->length);
	t->failed = !t->symbol || !t->length;
	for (size_t i = 0; i < w->used && !t->failed; i++)
		t->symbol[i] = id[(unsigned char)w->bytes[i]];
	for (size_t k = 0; k < w->count && !t->failed; k++) {
		const int32_t *s = t->symbol + w->word[k].at;
		t->length[k] = w->word[k].n;
		for (size_t i = 0; i + 1 < t->length[k]; i++)
			change(t, s[i], s[i + 1], w->word[k].count, (uint32_t)k);
	}
	push_fresh(t);
}

// Replaces a pair in a word and updates the counts of its neighbours; that of the pair itself
// stays.
static void merge_word(struct trainer *t, uint32_t word, int32_t left, int32_t right, int32_t to)
{
	int32_t *s = t->symbol + t->words->word[word].at;
	const int64_t count = t->words->word[word].count;
	const size_t n = t->length[word];
	size_t w = 0;

	for (size_t r = 0; r < n;) {
		if (s[r] != left || r + 1 == n || s[r + 1] != right) {
			s[w++] = s[r++];
			continue;
		}
		if (w) {
			change(t, s[w - 1], left, -count, word);
			change(t, s[w - 1], to, count, word);
		}
		s[w++] = to;
		r += 2;
		if (r < n) {
			change(t, right, s[r], -count, word);
			change(t, to, s[r], count, word);
		}
	}
	t->length[word] = w;
}

// The token that two make, which may exist; -1: none, since it would be too long; ENOMEM sets
// `failed`.
static int32_t token_of(struct trainer *t, int32_t left, int32_t right)
{
	const struct yk_token *a = &t->vocab.token[left], *b = &t->vocab.token[right];
	const size_t n = (size_t)a->n + b->n;
	char *s = n <= YK_VOCAB_TOKEN ? malloc(n + 1) : NULL;
	if (!s) {
		t->failed = n <= YK_VOCAB_TOKEN;
		return -1;
	}
	memcpy(s, a->s, a->n);
	memcpy(s + a->n, b->s, b->n);
	int32_t id = yk_vocab_id(&t->vocab, s, n);
	if (id < 0) {
		id = (int32_t)t->vocab.count;
		t->failed |= yk_vocab_add(&t->vocab, t->words->what, id, s, n) < 0;
	}
	free(s);
	return id;
}

static void take(struct trainer *t, const struct entry *x)
{
	const int32_t left = (int32_t)(x->key >> 32), right = (int32_t)(x->key & UINT32_MAX);
	const int32_t to = token_of(t, left, right);
	if (to < 0 || t->failed)
		return;
	if (yk_grow(&t->merge, &t->merge_cap, t->merges + 1, sizeof *t->merge) < 0) {
		t->failed = true;
		return;
	}
	t->merge[t->merges++] = x->key;
	for (size_t i = 0; i < x->n; i++)
		merge_word(t, x->word[i], left, right, to);
	push_fresh(t);
}

static void run(struct trainer *t, size_t vocab)
{
	while (t->vocab.count < vocab && t->heaped && !t->failed) {
		struct entry x = pop(t);
		const int64_t now = slot_of(t, x.key)->count;
		if (x.count != now && now > 0) {
			x.count = now;
			push(t, x);
			continue;
		}
		if (now > 0)
			take(t, &x);
		free(x.word);
	}
}

// ---- the result ----

static json_t *vocabulary(const struct trainer *t)
{
	json_t *o = json_object();
	for (size_t i = 0; i < t->vocab.count; i++)
		o = yk_json_with(o, t->vocab.token[i].s, t->vocab.token[i].n,
				 json_integer((json_int_t)i));
	return o;
}

// Strings with a blank, which also old versions of the library read.
static json_t *merges(const struct trainer *t)
{
	json_t *list = json_array();
	for (size_t i = 0; i < t->merges; i++)
		json_array_append_new(list,
				      json_sprintf("%s %s", t->vocab.token[t->merge[i] >> 32].s,
						   t->vocab.token[t->merge[i] & UINT32_MAX].s));
	return list;
}

static json_t *byte_level(bool regex)
{
	return json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", 0,
			 "trim_offsets", 1, "use_regex", regex);
}

static json_t *describe(const struct trainer *t)
{
	json_t *model = json_pack("{s:s, s:n, s:n, s:n, s:n, s:b, s:b, s:b, s:o, s:o}", "type",
				  "BPE", "dropout", "unk_token", "continuing_subword_prefix",
				  "end_of_word_suffix", "fuse_unk", 0, "byte_fallback", 0,
				  "ignore_merges", 0, "vocab", vocabulary(t), "merges", merges(t));
	return json_pack(
		"{s:s, s:n, s:n, s:[{s:i, s:s, s:b, s:b, s:b, s:b, s:b}], s:n, s:o, s:n, s:o, s:o}",
		"version", "1.0", "truncation", "padding", "added_tokens", "id", 0, "content",
		YK_END_OF_TEXT, "single_word", 0, "lstrip", 0, "rstrip", 0, "normalized", 0,
		"special", 1, "normalizer", "pre_tokenizer", byte_level(true), "post_processor",
		"decoder", byte_level(true), "model", model);
}

static yoke_tokenizer *result(const struct trainer *t)
{
	json_t *o = describe(t);
	char *text = yk_json_text(o, JSON_COMPACT | JSON_PRESERVE_ORDER);
	yoke_tokenizer *made = NULL;
	json_decref(o);
	if (text)
		made = yoke_tokenizer_parse(text, strlen(text), t->words->what);
	else
		yk_fail(YOKE_ENOMEM, "%s: no memory for a tokenizer", t->words->what);
	if (!made) {
		free(text);
		return NULL;
	}
	made->json = text;
	yk_tokenizer_end(made, 0);
	return made;
}

yoke_tokenizer *yk_bpe_train(const struct yk_bpe_words *words, int64_t vocab)
{
	struct trainer t = { .words = words };
	int32_t id[256];
	yoke_tokenizer *made = NULL;
	if (vocab < YK_BPE_MIN || vocab > YK_VOCAB_MAX) {
		yk_fail(YOKE_ERANGE,
			"%s: a vocabulary of %" PRId64 " ids; %d (all bytes and " YK_END_OF_TEXT
			") to %d are possible",
			words->what, vocab, YK_BPE_MIN, YK_VOCAB_MAX);
		return NULL;
	}
	if (alphabet(&t, id) == 0) {
		begin(&t, id);
		run(&t, (size_t)vocab);
		if (t.failed)
			yk_fail(YOKE_ENOMEM, "%s: no memory to train a tokenizer", words->what);
		else
			made = result(&t);
	}
	if (made && (int64_t)t.vocab.count < vocab)
		yk_warn("tokenizer",
			"%s: the text has no pair to merge after %zu of %" PRId64
			" ids; vocab is %zu",
			words->what, t.vocab.count, vocab, t.vocab.count);
	for (size_t i = 0; i < t.heaped; i++)
		free(t.heap[i].word);
	for (size_t i = 0; i < t.freshes; i++)
		free(t.fresh[i].word);
	free(t.fresh);
	free(t.heap);
	free(t.pair);
	free(t.merge);
	free(t.symbol);
	free(t.length);
	yk_vocab_fini(&t.vocab);
	return made;
}

// ---- public functions ----

yoke_tokenizer *yoke_tokenizer_train(const char *const *texts, const size_t *bytes, size_t count,
				     int64_t vocab)
{
	struct yk_bpe_words words = { .what = "tokenizer_train" };
	yoke_tokenizer *t = NULL;
	int e = count ? yk_require(texts, "texts") : 0;
	for (size_t i = 0; i < count && e == 0; i++) {
		e = yk_require(texts[i], "text");
		if (e == 0)
			e = yk_bpe_words_add(&words, texts[i], bytes ? bytes[i] : strlen(texts[i]));
	}
	if (e == 0)
		t = yk_bpe_train(&words, vocab);
	yk_bpe_words_fini(&words);
	return t;
}

int yoke_tokenizer_save(const yoke_tokenizer *t, const char *path)
{
	int e = yk_require(t, "tokenizer");
	if (e == 0)
		e = yk_require(path, "path");
	if (e == 0 && !t->json)
		e = yk_fail(YOKE_EINVAL,
			    "tokenizer_save: %s was opened, not trained; copy its file", t->name);
	return e ? e : yk_file_write(path, t->json, strlen(t->json));
}
