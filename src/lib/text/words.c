// SPDX-License-Identifier: Apache-2.0
// Word vocabularies: learning, sorting, lookup, saving.
#include "config.h"

#include "text/words.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/hash.h"

// Max bytes of a vocabulary's JSON: half the limit of a manifest.
#define MAX_TEXT ((size_t)32 << 20)

static const char *const special[] = {
	[YK_WORD_PAD] = "<pad>", [YK_WORD_UNKNOWN] = "<unk>"
};
enum { SPECIALS = 2 };

static int no_memory(void)
{
	return yk_fail(YOKE_ENOMEM, "out of memory for a vocabulary");
}

static bool is_blank(char c) // as isspace in the C locale, regardless of the current one
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

// ---- hash table ----

// First table index for a word.  The table's address is the seed, so that inputs cannot be chosen
// to collide.
static size_t home(const uint32_t *table, size_t size, const char *s, size_t n)
{
	return yk_hash(s, n, (uintptr_t)table) & (size - 1);
}

static bool table_fill(struct yk_words *w, size_t size)
{
	uint32_t *table = calloc(size, sizeof *table);
	if (!table)
		return false;
	for (size_t i = 0; i < w->count; i++) {
		size_t at = home(table, size, w->word[i].s, w->word[i].n);
		while (table[at])
			at = (at + 1) & (size - 1);
		table[at] = (uint32_t)i + 1;
	}
	free(w->table);
	w->table = table;
	w->table_size = size;
	return true;
}

// Builds the final table, at most half full.
static int table_make(struct yk_words *w)
{
	size_t size = 1024;
	while (size < 2 * w->count)
		size *= 2;
	return table_fill(w, size) ? 0 : no_memory();
}

// The table entry of a word, or a free one for it.
static uint32_t *find(const struct yk_words *w, const char *s, size_t n)
{
	size_t at = home(w->table, w->table_size, s, n);
	for (; w->table[at]; at = (at + 1) & (w->table_size - 1)) {
		const struct yk_word *x = &w->word[w->table[at] - 1];
		if (x->n == n && !memcmp(x->s, s, n))
			break;
	}
	return &w->table[at];
}

static int append(struct yk_words *w, const char *s, size_t n)
{
	if (yk_grow(&w->word, &w->capacity, w->count + 1, sizeof *w->word) < 0)
		return no_memory();
	char *copy = malloc(n + 1);
	if (!copy)
		return no_memory();
	memcpy(copy, s, n);
	copy[n] = 0;
	w->word[w->count++] = (struct yk_word){ .s = copy, .n = n };
	return 0;
}

static int not_utf8(const char *s, size_t n)
{
	char shown[41] = "";
	for (size_t i = 0; i < n && i < sizeof shown - 1; i++)
		shown[i] = s[i] > ' ' && s[i] < 127 ? s[i] : '?';
	return yk_fail(YOKE_EFORMAT,
		       "the word '%s' is not UTF-8, as tokenizer=word needs; convert "
		       "the text or use tokenizer=byte",
		       shown);
}

// Sets the id of a word and adds the word if it is new.
static int learn(struct yk_words *w, const char *s, size_t n, int32_t *id)
{
	if (2 * (w->count + 1) > w->table_size &&
	    !table_fill(w, w->table_size ? 2 * w->table_size : 1024))
		return no_memory();
	uint32_t *place = find(w, s, n);
	if (!*place) {
		json_t *utf8 = json_stringn(s, n);
		json_decref(utf8);
		if (!utf8)
			return not_utf8(s, n);
		if (w->count >= INT32_MAX)
			return yk_fail(YOKE_ERANGE,
				       "too many different words; use tokenizer=byte");
		int e = append(w, s, n);
		if (e < 0)
			return e;
		*place = (uint32_t)w->count;
	}
	*id = (int32_t)*place - 1;
	return 0;
}

// ---- text to ids ----

static const char *next_word(const char **at, const char *end)
{
	while (*at < end && is_blank(**at))
		++*at;
	const char *word = *at;
	while (*at < end && !is_blank(**at))
		++*at;
	return word;
}

int yk_words_encode(struct yk_words *w, const char *text, size_t bytes,
		    struct yk_tokens *to)
{
	const char *end = text + bytes, *at = text, *word;
	size_t n = 0, before = to->count;
	while (next_word(&at, end) < end)
		n++;
	int e = yk_tokens_reserve(to, w->learning ? INT32_MAX : (int32_t)w->count, n);
	at = text;
	while (e == 0 && (word = next_word(&at, end)) < end) {
		const uint32_t known = w->learning ? 0 : *find(w, word, (size_t)(at - word));
		int32_t id = known ? (int32_t)known - 1 : YK_WORD_UNKNOWN;
		if (w->learning)
			e = learn(w, word, (size_t)(at - word), &id);
		if (e == 0)
			yk_tokens_add(to, id);
	}
	if (e < 0)
		to->count = before;
	return e;
}

// ---- the vocabulary ----

static int by_bytes(const struct yk_word *a, const struct yk_word *b)
{
	int d = memcmp(a->s, b->s, a->n < b->n ? a->n : b->n);
	return d ? d : (a->n > b->n) - (a->n < b->n);
}

static int by_rank(const void *a, const void *b)
{
	return by_bytes(a, b);
}

static int special_of(const struct yk_word *x)
{
	for (int i = 0; i < SPECIALS; i++)
		if (x->n == strlen(special[i]) && !memcmp(x->s, special[i], x->n))
			return i;
	return -1;
}

// Bytes of a word in a manifest: quotes, comma, newline, indentation, escapes.
static size_t json_size(const struct yk_word *x)
{
	size_t n = x->n + 12;
	for (size_t i = 0; i < x->n; i++)
		n += (unsigned char)x->s[i] < 32 ? 5 : x->s[i] == '"' || x->s[i] == '\\';
	return n;
}

int yk_words_make(struct yk_words *to, struct yk_word *list, size_t n)
{
	struct yk_words w = { 0 };
	size_t text = 0, count = 0;
	int e = 0;
	qsort(list, n, sizeof *list, by_rank);
	for (size_t i = 0; i < n; i++)
		if (special_of(&list[i]) < 0 &&
		    (count == 0 || by_bytes(&list[count - 1], &list[i]) != 0)) {
			text += json_size(&list[i]);
			list[count++] = list[i];
		}
	if (text > MAX_TEXT)
		return yk_fail(YOKE_ERANGE,
			       "the text has %zu different words, more than the %zu MiB "
			       "that a vocabulary may have; use tokenizer=byte",
			       count, MAX_TEXT >> 20);
	for (int i = 0; i < SPECIALS && e == 0; i++)
		e = append(&w, special[i], strlen(special[i]));
	for (size_t i = 0; i < count && e == 0; i++)
		e = append(&w, list[i].s, list[i].n);
	if (e == 0)
		e = table_make(&w);
	if (e < 0)
		yk_words_fini(&w);
	else
		*to = w;
	return e;
}

void yk_words_map(const struct yk_words *fixed, const struct yk_words *from, int32_t *id)
{
	for (size_t i = 0; i < from->count; i++) {
		const uint32_t *at = find(fixed, from->word[i].s, from->word[i].n);
		id[i] = *at ? (int32_t)*at - 1 : YK_WORD_UNKNOWN;
	}
}

struct counted {
	struct yk_word word;
	size_t times; // number of occurrences in the training part
};

static int by_count(const void *a, const void *b)
{
	const struct counted *x = a, *y = b;
	if (x->times != y->times)
		return x->times < y->times ? 1 : -1;
	return by_bytes(&x->word, &y->word);
}

// Selects the most frequent words of the training split and, once the vocabulary is fixed, sets the
// new id of each.
static int settle(const struct yk_words *w, const struct yk_tokens *tokens, size_t train,
		  size_t max, int32_t *to, struct yk_word *list, struct yk_words *fixed)
{
	struct counted *all = calloc(w->count + 1, sizeof *all);
	size_t n = 0;
	if (!all)
		return no_memory();
	for (size_t i = 0; i < w->count; i++)
		all[i].word = w->word[i];
	for (size_t i = 0; i < train; i++)
		all[yk_tokens_get(tokens, i)].times++;
	for (size_t i = 0; i < w->count; i++)
		if (all[i].times && special_of(&all[i].word) < 0)
			all[n++] = all[i];
	if (max && n + SPECIALS > max) {
		qsort(all, n, sizeof *all, by_count);
		n = max - SPECIALS;
	}
	for (size_t i = 0; i < n; i++)
		list[i] = all[i].word;
	free(all);
	int e = yk_words_make(fixed, list, n);
	if (e == 0)
		yk_words_map(fixed, w, to);
	return e;
}

int yk_words_settle(struct yk_words *w, struct yk_tokens *tokens, size_t train, size_t max)
{
	struct yk_word *list = malloc((w->count + 1) * sizeof *list);
	int32_t *to = malloc((w->count + 1) * sizeof *to);
	struct yk_words fixed;
	int e = list && to ? settle(w, tokens, train, max, to, list, &fixed) : no_memory();
	if (e == 0) {
		yk_tokens_renumber(tokens, to, (int32_t)fixed.count);
		yk_words_fini(w);
		*w = fixed;
	}
	free(list);
	free(to);
	return e;
}

// ---- files ----

json_t *yk_words_save(const struct yk_words *w)
{
	json_t *a = json_array();
	for (size_t i = 0; a && i < w->count; i++)
		if (json_array_append_new(a, json_stringn(w->word[i].s, w->word[i].n)) <
		    0) {
			json_decref(a);
			a = NULL;
		}
	if (!a)
		no_memory();
	return a;
}

static int take_word(struct yk_words *w, const json_t *s, const char *what)
{
	size_t i = w->count;
	struct yk_word x = { .n = json_string_length(s) };
	bool good = json_is_string(s) && x.n > 0;
	x.s = (char *)json_string_value(s);
	for (size_t k = 0; k < x.n && good; k++)
		good = x.s[k] && !is_blank(x.s[k]);
	if (good)
		good = i < SPECIALS ?
			       special_of(&x) == (int)i :
			       special_of(&x) < 0 && (i == SPECIALS ||
						      by_bytes(&w->word[i - 1], &x) < 0);
	if (!good)
		return yk_fail(YOKE_EFORMAT,
			       "%s: entry %zu of its vocabulary is invalid: expected <pad>, "
			       "<unk>, then words in the order of their bytes",
			       what, i);
	return append(w, x.s, x.n);
}

int yk_words_load(struct yk_words *to, const json_t *array, const char *what)
{
	struct yk_words w = { 0 };
	size_t n = json_array_size(array);
	if (!json_is_array(array) || n < SPECIALS || n > INT32_MAX)
		return yk_fail(YOKE_EFORMAT, "%s: its tokenizer has no list of words",
			       what);
	int e = 0;
	for (size_t i = 0; i < n && e == 0; i++)
		e = take_word(&w, json_array_get(array, i), what);
	if (e == 0)
		e = table_make(&w);
	if (e < 0) {
		yk_words_fini(&w);
		return e;
	}
	*to = w;
	return 0;
}

void yk_words_fini(struct yk_words *w)
{
	for (size_t i = 0; i < w->count; i++)
		free(w->word[i].s);
	free(w->word);
	free(w->table);
	*w = (struct yk_words){ 0 };
}
