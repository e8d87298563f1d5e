// SPDX-License-Identifier: Apache-2.0
// Counts the words of a training text, so that each is merged once, whatever its frequency.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/train.h"
#include "tokenizer/unicode.h"

enum { CHUNK = 1 << 16 }; // bytes that a scan takes at once, if the text can be cut there

static int no_memory(const struct yk_bpe_words *w)
{
	return yk_fail(YOKE_ENOMEM, "%s: no memory for the words of the text", w->what);
}

static size_t slot_of(const struct yk_bpe_words *w, uint64_t hash, const char *s, size_t n)
{
	size_t i = hash & (w->table_size - 1);

	for (; w->table[i]; i = (i + 1) & (w->table_size - 1)) {
		const struct yk_bpe_word *x = &w->word[w->table[i] - 1];
		if (x->hash == hash && x->n == n && !memcmp(w->bytes + x->at, s, n))
			break;
	}
	return i;
}

static int rehash(struct yk_bpe_words *w)
{
	const size_t size = w->table_size ? 2 * w->table_size : 4096;
	uint32_t *table = calloc(size, sizeof *table);

	if (!table)
		return no_memory(w);
	free(w->table);
	w->table = table;
	w->table_size = size;
	for (size_t k = 0; k < w->count; k++) {
		const struct yk_bpe_word *x = &w->word[k];
		table[slot_of(w, x->hash, w->bytes + x->at, x->n)] = (uint32_t)k + 1;
	}
	return 0;
}

static int count(struct yk_bpe_words *w, const char *s, size_t n)
{
	if (2 * (w->count + 1) > w->table_size && rehash(w) < 0)
		return YOKE_ENOMEM;
	const uint64_t hash = yk_hash(s, n, 0);
	const size_t slot = slot_of(w, hash, s, n);
	if (w->table[slot]) {
		w->word[w->table[slot] - 1].count++;
		return 0;
	}
	if (w->count >= INT32_MAX)
		return yk_fail(YOKE_ERANGE, "%s: the text has more than %d different words",
			       w->what, INT32_MAX);
	if (yk_grow(&w->word, &w->cap, w->count + 1, sizeof *w->word) < 0 ||
	    yk_grow(&w->bytes, &w->bytes_cap, w->used + n, 1) < 0)
		return no_memory(w);
	memcpy(w->bytes + w->used, s, n);
	w->word[w->count] = (struct yk_bpe_word){ hash, w->used, n, 1 };
	w->used += n;
	w->table[slot] = (uint32_t)++w->count;
	return 0;
}

// Is the character that ends before s[i] no white space?
static bool ends_in_text(const char *s, size_t i)
{
	const char *at = s + i;

	do
		at--;
	while (at > s && ((unsigned char)*at & 0xc0) == 0x80);
	return !yk_is_space(yk_char_next(&at));
}

// No word continues after white space that another character precedes, and the pattern looks at
// nothing before a word, so a text may be cut there.
static size_t chunk_of(const char *s, size_t n)
{
	for (size_t i = CHUNK; i < n; i++)
		if ((s[i] == ' ' || s[i] == '\n') && ends_in_text(s, i))
			return i;
	return n;
}

static int scan(struct yk_bpe_words *w, const char *s, size_t n)
{
	struct yk_regex_scan m;
	size_t from, to, done = 0;
	int e = yk_regex_begin(&m, w->regex, s, n);

	if (e < 0)
		return e;
	while (e == 0 && (e = yk_regex_next(&m, &from, &to)) > 0) {
		e = from > done ? count(w, s + done, from - done) : 0;
		if (e == 0 && to > from)
			e = count(w, s + from, to - from);
		done = to;
	}
	yk_regex_end(&m);
	return e == 0 && done < n ? count(w, s + done, n - done) : e;
}

int yk_bpe_words_add(struct yk_bpe_words *w, const char *text, size_t n)
{
	const size_t good = yk_utf8_check(text, n);
	int e = 0;

	if (good < n)
		return yk_fail(YOKE_EFORMAT, "%s: the text is not UTF-8 at byte %zu", w->what,
			       good);
	if (!w->regex)
		w->regex = yk_regex_new(YK_GPT2_PATTERN, strlen(YK_GPT2_PATTERN), w->what);
	if (!w->regex)
		return yk_error_last();
	for (size_t at = 0, k; at < n && e == 0; at += k) {
		k = chunk_of(text + at, n - at);
		e = scan(w, text + at, k);
	}
	return e;
}

void yk_bpe_words_fini(struct yk_bpe_words *w)
{
	yk_regex_free(w->regex);
	free(w->bytes);
	free(w->word);
	free(w->table);
	*w = (struct yk_bpe_words){ 0 };
}
