// SPDX-License-Identifier: Apache-2.0
// What the models share, and the two that are only look-ups: WordPiece and WordLevel.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "tokenizer/model.h"
#include "tokenizer/pieces.h"

void yk_model_settle(struct yk_token_model *m, const struct yk_vocab *v)
{
	for (int i = 0; i < 256; i++) {
		char name[8];
		snprintf(name, sizeof name, "<0x%02X>", (unsigned)i);
		m->byte[i] = yk_vocab_id(v, name, 6);
	}
	for (int i = 0; i < 128; i++)
		m->ascii[i] = yk_vocab_id(v, &(char){ (char)i }, 1);
}

// Longest match first, from left to right; a word with any rest is unknown.
static int wordpiece(const struct yk_token_model *m, const struct yk_vocab *v, const char *s,
		     size_t n, struct yk_scratch *w, struct yk_ids *to)
{
	const size_t before = to->n;
	size_t chars = 0;

	for (size_t i = 0; i < n; i += yk_char_size(s[i]))
		chars++;
	bool bad = chars > m->word_max;
	for (size_t at = 0; !bad && at < n;) {
		size_t end = n - at > v->longest ? at + v->longest : n;
		int32_t id = -1;
		while (end < n && end > at && ((unsigned char)s[end] & 0xc0) == 0x80)
			end--;
		for (; end > at && id < 0;) {
			const size_t pre = at ? m->prefix_bytes : 0;
			if (yk_grow(&w->text, &w->text_cap, pre + end - at, 1) < 0)
				return yk_fail(YOKE_ENOMEM, "no memory to tokenize %zu bytes", n);
			if (pre)
				memcpy(w->text, m->prefix, pre);
			memcpy(w->text + pre, s + at, end - at);
			id = yk_vocab_id(v, w->text, pre + end - at);
			if (id >= 0)
				break;
			for (end--; end > at && ((unsigned char)s[end] & 0xc0) == 0x80;)
				end--;
		}
		bad = id < 0;
		if (!bad)
			yk_ids_add(to, id);
		at = end;
	}
	if (bad) {
		to->n = before;
		if (m->unknown < 0)
			return yk_fail(YOKE_EFORMAT,
				       "a word has no token, and the model has no unknown token");
		yk_ids_add(to, m->unknown);
	}
	return 0;
}

int yk_model_encode(const struct yk_token_model *m, const struct yk_vocab *v, const char *s,
		    size_t n, struct yk_scratch *w, struct yk_ids *to)
{
	int32_t id;

	if (!n)
		return 0;
	switch (m->kind) {
	case YK_BPE: return yk_bpe_encode(m, v, s, n, w, to);
	case YK_UNIGRAM: return yk_unigram_encode(m, v, s, n, w, to);
	case YK_WORDPIECE: return wordpiece(m, v, s, n, w, to);
	case YK_WORDLEVEL: break;
	}
	id = yk_vocab_id(v, s, n);
	if (id < 0)
		id = m->unknown;
	if (id < 0)
		return yk_fail(YOKE_EFORMAT,
			       "a word has no token, and the model has no unknown token");
	yk_ids_add(to, id);
	return 0;
}

void yk_model_fini(struct yk_token_model *m)
{
	free(m->merge);
	free(m->score);
	yk_trie_fini(&m->trie);
	yk_trie_fini(&m->user);
}

void yk_scratch_fini(struct yk_scratch *w)
{
	free(w->symbol);
	free(w->heap);
	free(w->node);
	free(w->text);
	free(w->path);
}
