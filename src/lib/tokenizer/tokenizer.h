// SPDX-License-Identifier: Apache-2.0
// A published tokenizer: its components in the order in which a text passes them.
#ifndef YK_PUBLISHED_TOKENIZER_H
#define YK_PUBLISHED_TOKENIZER_H

#include <jansson.h>
#include <pthread.h>

#include "tokenizer/added.h"
#include "tokenizer/model.h"
#include "tokenizer/steps.h"
#include "yoke-tokenizer.h"

// Normalization of SentencePiece files, which is not one of tokenizer.json's components.
struct yk_spm {
	bool on;
	struct yk_charsmap *map; // NULL: identity
	bool dummy;              // a space before the text
	bool squeeze;            // remove_extra_whitespaces
	bool escape;             // spaces become U+2581
	bool suffix;             // treat_whitespace_as_suffix
};

enum { YK_EOS_MAX = 16 };

struct yoke_tokenizer {
	char *name; // the file, for messages
	struct yk_arena arena;
	struct yk_vocab vocab;
	struct yk_added added;
	struct yk_steps normalizer, splitter, decoder;
	struct yk_spm spm;
	struct yk_token_model model;
	bool joined;                 // tokens are joined with blanks: there is no decoder
	struct yk_ids before, after; // added by the post-processor
	int32_t bos, pad, eos[YK_EOS_MAX];
	int eos_count;
	char *chat;
	char *json; // the text of tokenizer.json, if it was trained
	// hash of the file: of tokenizer.json without its formatting, of a GGUF file's tokenizer.*
	// keys
	uint64_t source;
	pthread_mutex_t lock; // of work
	struct yk_encode_cache *work; // scratch memory and cache of one caller
};

// An empty tokenizer.  NULL: ENOMEM.
yoke_tokenizer *yk_tokenizer_alloc(const char *name);
// Adds a special or added token that is already in the vocabulary.  `normalized`: it is sought
// after normalization, in the form that its own normalization gives it.
int yk_tokenizer_added(yoke_tokenizer *, struct yk_added_token, bool normalized);
// Completes tables after the vocabulary is read.
int yk_tokenizer_finish(yoke_tokenizer *);
// Adds to the post-processor, at the beginning or at the end of the text.
int yk_tokenizer_affix(yoke_tokenizer *, bool after, int32_t id);
// The kind of model that it uses, as tokenizer.json names it: "BPE".
const char *yk_tokenizer_model_name(const yoke_tokenizer *);
// Hash of all that decides the ids and renderings of texts: the file that it was read from, the
// special tokens and the chat template.  Files of different formats differ.
uint64_t yk_tokenizer_hash(const yoke_tokenizer *);
// Adds an id that ends a text.
void yk_tokenizer_end(yoke_tokenizer *, int32_t id);

// Readers of files into an empty tokenizer.
int yk_tokenizer_read_json(yoke_tokenizer *, const char *text, size_t bytes);
int yk_tokenizer_read_spm(yoke_tokenizer *, const void *data, size_t bytes);
yoke_tokenizer *yk_tokenizer_gguf_open(const char *path);
// Special ids and the chat template from the other files of a folder.
int yk_tokenizer_read_folder(yoke_tokenizer *, const char *folder);

// Components of tokenizer.json.
int yk_tokenizer_normalizer(yoke_tokenizer *, const json_t *);
int yk_tokenizer_splitter(yoke_tokenizer *, const json_t *);
int yk_tokenizer_decoder(yoke_tokenizer *, const json_t *);
// Adds a step that splits by a regular expression (SPLIT, matches kept apart) or, with SPLIT_BYTES,
// converts to byte-level characters.
int yk_tokenizer_split_by(yoke_tokenizer *, enum yk_token_step_kind, const char *pattern);
// Adds a step; NULL: ENOMEM.
struct yk_token_step *yk_tokenizer_step(struct yk_steps *, enum yk_token_step_kind);
#define YK_GPT2_PATTERN \
	"'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

// Normalizes as SentencePiece does.
void yk_spm_normalize(const yoke_tokenizer *, const char *s, size_t n, struct yk_string *to);
// Joins tokens as SentencePiece does.
void yk_spm_decode(const yoke_tokenizer *, const int32_t *ids, size_t count, bool skip, bool raw,
		   struct yk_string *to);

// The length up to which a word's ids are cached.
enum { YK_CACHED_BYTES = 128 };

#endif
