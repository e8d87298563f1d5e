// SPDX-License-Identifier: Apache-2.0
// Unigram language model (Kudo 2018): the segmentation of highest total score, by Viterbi's
// algorithm. A character that no token covers alone costs the score of the unknown token.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "tokenizer/model.h"
#include "tokenizer/pieces.h"

// The best segmentation that ends at a byte: its score and where its last token begins.
struct yk_unigram_node {
	double score;
	uint32_t from; // NONE: no segmentation ends here
	int32_t id;
};

#define NONE UINT32_MAX

// SentencePiece keeps scores in f32, `tokenizers` in f64.
static void offer(const struct yk_token_model *m, struct yk_unigram_node *x, double score,
		  size_t from, int32_t id)
{
	if (m->scored)
		score = (float)score;
	if (x->from == NONE || score > x->score)
		*x = (struct yk_unigram_node){ .score = score, .from = (uint32_t)from, .id = id };
}

static void viterbi(const struct yk_token_model *m, const char *s, size_t n,
		    struct yk_unigram_node *node)
{
	for (size_t i = 0; i <= n; i++)
		node[i] = (struct yk_unigram_node){ .from = NONE };
	for (size_t i = 0, size; i < n; i += size) {
		const double here = node[i].score;
		bool single = false;
		uint32_t at = 0;
		size = yk_char_size(s[i]);
		for (size_t j = i; j < n && (at = yk_trie_next(&m->trie, at, s[j])); j++) {
			const int32_t id = m->trie.value[at];
			if (id < 0)
				continue;
			offer(m, &node[j + 1], here + m->score[id], i, id);
			single |= j + 1 - i == size;
		}
		if (!single)
			offer(m, &node[i + size], here + m->unknown_score, i, m->unknown);
	}
}

static int emit_unknown(const struct yk_token_model *m, const struct yk_vocab *v, const char *s,
			size_t n, struct yk_ids *to)
{
	const int32_t id = yk_vocab_id(v, s, n); // a fused run may be a token
	size_t i = 0;

	if (id >= 0 && !m->scored) {
		yk_ids_add(to, id);
		return 0;
	}
	while (m->fallback && i < n && m->byte[(unsigned char)s[i]] >= 0)
		i++;
	if (i == n) {
		for (i = 0; i < n; i++)
			yk_ids_add(to, m->byte[(unsigned char)s[i]]);
		return 0;
	}
	if (m->unknown < 0)
		return yk_fail(YOKE_EFORMAT, "the text has a character without a token, and the "
					     "model has no unknown token");
	yk_ids_add(to, m->unknown);
	return 0;
}

int yk_unigram_encode(const struct yk_token_model *m, const struct yk_vocab *v, const char *s,
		      size_t n, struct yk_scratch *w, struct yk_ids *to)
{
	size_t steps = 0;

	if (n >= NONE)
		return yk_fail(YOKE_ERANGE,
			       "a piece of text has %zu bytes, less than 4 GiB is possible", n);
	if (yk_grow(&w->node, &w->node_cap, n + 1, sizeof *w->node) < 0 ||
	    yk_grow(&w->path, &w->path_cap, n + 1, sizeof *w->path) < 0)
		return yk_fail(YOKE_ENOMEM, "no memory to tokenize %zu bytes", n);
	viterbi(m, s, n, w->node);
	for (size_t end = n; end; end = w->node[end].from)
		w->path[steps++] = (uint32_t)end;
	size_t from = 0, unknown_from = 0;
	bool unknown = false;
	for (size_t i = steps; i-- > 0;) {
		const size_t end = w->path[i];
		const bool is = w->node[end].id == m->unknown;
		int e = 0;
		if (unknown && !(is && m->fuse))
			e = emit_unknown(m, v, s + unknown_from, from - unknown_from, to);
		if (e < 0)
			return e;
		if (is && !(unknown && m->fuse))
			unknown_from = from;
		unknown = is;
		if (!is)
			yk_ids_add(to, w->node[end].id);
		from = end;
	}
	return unknown ? emit_unknown(m, v, s + unknown_from, n - unknown_from, to) : 0;
}
