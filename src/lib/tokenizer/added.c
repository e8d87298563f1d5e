// SPDX-License-Identifier: Apache-2.0
// Finds added tokens with a trie.
#include "config.h"

#include <stdlib.h>

#include "tokenizer/added.h"
#include "tokenizer/unicode.h"

static uint32_t char_before(const char *s, const char *at)
{
	do
		at--;
	while (at > s && ((unsigned char)*at & 0xc0) == 0x80);
	return yk_char_next(&at);
}

// Letters, marks, digits and connectors.
static bool is_word(uint32_t c)
{
	if (c < 0x80)
		return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		       c == '_';
	return c == 0x200c || c == 0x200d || yk_is_letter(c);
}

static bool fits(const struct yk_added_token *t, const char *s, const char *end, const char *from,
		 const char *to)
{
	if (!t->word)
		return true;
	const char *after = to;
	return (from == s || !is_word(char_before(s, from))) &&
	       (to == end || !is_word(yk_char_next(&after)));
}

int yk_added_split(const struct yk_added *a, const struct yk_trie *trie, const char *s, size_t n,
		 const struct yk_special_rule *rule,
		 int (*fn)(void *, const char *, size_t, int32_t), void *arg)
{
	const char *end = s + n, *done = s, *at = s;
	size_t next = 0; // the first interval that ends after `at`
	int e = 0;

	while (e == 0 && trie->nodes && at < end) {
		size_t bytes;
		int32_t i = yk_trie_longest(trie, at, end, &bytes);
		while (next < rule->n && rule->plain[next].to <= (size_t)(at - s))
			next++;
		const char *plain = next < rule->n ? s + rule->plain[next].from : end;
		if (i >= 0 && a->token[i].special && at < plain && plain < at + bytes)
			i = yk_trie_longest(trie, at, plain,
					    &bytes); // a token does not reach into plain text
		if (i < 0) {
			at += yk_char_size(*at);
			continue;
		}
		const struct yk_added_token *t = &a->token[i];
		const char *from = at, *to = at + bytes;
		at = to;
		if (t->special && rule->parse && to > plain && s + rule->plain[next].to < to)
			at = s + rule->plain[next].to;
		if ((t->special && (!rule->parse || to > plain)) || !fits(t, s, end, from, to))
			continue;
		for (const char *b = from; t->left && b > done && yk_is_space(char_before(s, b));
		     from = b)
			do
				b--;
			while (((unsigned char)*b & 0xc0) == 0x80);
		for (const char *b = to; t->right && b < end && yk_is_space(yk_char_next(&b));
		     to = b)
			;
		if (from > done)
			e = fn(arg, done, (size_t)(from - done), -1);
		if (e == 0)
			e = fn(arg, from, (size_t)(to - from), t->id);
		done = to;
	}
	return e == 0 && done < end ? fn(arg, done, (size_t)(end - done), -1) : e;
}

bool yk_added_special(const struct yk_added *a, const struct yk_trie *trie, const char *s, size_t n)
{
	const char *end = s + n;
	size_t bytes;

	for (const char *at = s; trie->nodes && at < end; at++) {
		const int32_t i = yk_trie_longest(trie, at, end, &bytes);
		if (i >= 0 && a->token[i].special)
			return true;
	}
	return false;
}

void yk_added_fini(struct yk_added *a)
{
	free(a->token);
	yk_trie_fini(&a->raw);
	yk_trie_fini(&a->normalized);
}
