// SPDX-License-Identifier: Apache-2.0
// The models, which convert one piece of text to ids: BPE, Unigram, WordPiece and WordLevel.
#ifndef YK_TOKENIZER_MODEL_H
#define YK_TOKENIZER_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "tokenizer/trie.h"
#include "tokenizer/vocab.h"

struct yk_ids {
	int32_t *id;
	size_t n, cap;
	bool failed; // ENOMEM
};

static inline void yk_ids_add(struct yk_ids *to, int32_t id)
{
	if (yk_grow(&to->id, &to->cap, to->n + 1, sizeof *to->id) < 0)
		to->failed = true;
	else
		to->id[to->n++] = id;
}

enum yk_model_kind { YK_BPE, YK_UNIGRAM, YK_WORDPIECE, YK_WORDLEVEL };

struct yk_merge {
	uint64_t pair; // left id << 32 | right id; the table's unused entries have to < 0
	int32_t rank, to;
};

struct yk_token_model {
	enum yk_model_kind kind;
	int32_t unknown; // -1: none
	bool fallback;   // bytes of unknown characters become <0xNN>
	bool fuse;       // BPE, Unigram: a run of unknown characters is one id
	int32_t byte[256];

	// BPE.  Ranked by the file's list, or (`scored`) by the score of the merged token, as
	// SentencePiece.
	struct yk_merge *merge; // hash table
	size_t merges, merge_size;
	bool scored;
	bool whole; // ignore_merges: a piece that is a token is not divided
	const char *prefix,
		*suffix; // continuing_subword_prefix (also WordPiece), end_of_word_suffix
	size_t prefix_bytes, suffix_bytes;
	int32_t ascii[128];  // ids of one-character tokens
	struct yk_trie user; // SentencePiece: symbols that are never divided

	// Unigram
	struct yk_trie trie;
	double *score; // of each id
	double unknown_score;

	// WordPiece
	size_t word_max; // characters
};

// Memory of one caller that the models reuse from piece to piece.
struct yk_scratch {
	struct yk_symbol *symbol;
	size_t symbols, symbol_cap;
	struct yk_heap_entry *heap;
	size_t heaped, heap_cap;
	struct yk_unigram_node *node;
	size_t node_cap;
	char *text;
	size_t text_cap;
	uint32_t *path; // ends of the tokens of the best segmentation
	size_t path_cap;
};
void yk_scratch_fini(struct yk_scratch *);

// Appends the ids of a piece.  ENOMEM, or EFORMAT if the model has no token for unknown text and
// the reference reports an error.
int yk_model_encode(const struct yk_token_model *, const struct yk_vocab *, const char *s, size_t n,
		    struct yk_scratch *, struct yk_ids *to);
int yk_bpe_encode(const struct yk_token_model *, const struct yk_vocab *, const char *s, size_t n,
		  struct yk_scratch *, struct yk_ids *to);
int yk_unigram_encode(const struct yk_token_model *, const struct yk_vocab *, const char *s,
		      size_t n, struct yk_scratch *, struct yk_ids *to);
// Adds a merge; of equal pairs the last one counts, as in the reference.  ENOMEM.
int yk_bpe_merge(struct yk_token_model *, int32_t left, int32_t right, int32_t rank, int32_t to);
// Finds the ids of single bytes and of ASCII characters, after the vocabulary is complete.
void yk_model_settle(struct yk_token_model *, const struct yk_vocab *);
void yk_model_fini(struct yk_token_model *);

#endif
