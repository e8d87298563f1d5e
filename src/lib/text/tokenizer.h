// SPDX-License-Identifier: Apache-2.0
// Tokenizers convert text to token ids and back.  "byte" has one id per byte; "word" one
// per blank-separated word, with a vocabulary (text/words.h) that it learns from
// the training text; "ids" reads text that consists of decimal ids between
// blanks, for tokens made by other programs.  Ids are 0 .. size - 1.
#ifndef YK_TOKENIZER_H
#define YK_TOKENIZER_H

#include <jansson.h>
#include <stdbool.h>

#include "text/tokens.h"
#include "tokenizer/segments.h"
#include "yoke-tokenizer.h"

struct yk_tokenizer;

#define YK_TOKENIZER_PUBLISHED "published" // the name of a pretrained model's tokenizer

// By name; NULL with ENOENT, which names the nearest one.  A tokenizer that learns adds the words
// of each text it encodes until it is settled.
struct yk_tokenizer *yk_tokenizer_new(const char *name);
// An "ids" tokenizer of `size` ids; `what` is for messages.
struct yk_tokenizer *yk_tokenizer_ids(int64_t size, const char *what);
// The tokenizer of a pretrained model, which the result owns, also after an error; `size`: ids of
// the model's vocabulary. The tokenizer may have more ids; texts that need them are refused.
struct yk_tokenizer *yk_tokenizer_published(yoke_tokenizer *, int32_t size);
// The same for a tokenizer that the caller frees, after the result.
struct yk_tokenizer *yk_tokenizer_borrow(const yoke_tokenizer *, int32_t size);
// For models whose training text has no special tokens: prompts get none either.
void yk_tokenizer_bare(struct yk_tokenizer *);
// The tokenizer of the pretrained model; NULL if it is of another kind.
const yoke_tokenizer *yk_tokenizer_source(const struct yk_tokenizer *);
// Gives the pretrained model's tokenizer to the caller, who frees it after this one, which can only
// be freed then.
yoke_tokenizer *yk_tokenizer_release(struct yk_tokenizer *, bool *bare);
void yk_tokenizer_free(struct yk_tokenizer *); // NULL is allowed
const char *yk_tokenizer_name(const struct yk_tokenizer *);
int32_t yk_tokenizer_size(const struct yk_tokenizer *); // ids in the vocabulary
// Appends the ids of a text; sets the list's width if it is empty.  On failure
// the list is unchanged: ENOMEM, EFORMAT.
int yk_tokenizer_encode(struct yk_tokenizer *, const char *text, size_t bytes,
			struct yk_tokens *to);
// The same for a text to be continued: with the special tokens that a published tokenizer puts
// before a text, unless it is bare.
int yk_tokenizer_prompt(struct yk_tokenizer *, const char *text, size_t bytes,
			struct yk_tokens *to);
// The pretrained model's tokenizer, or NULL if this is another kind.
const yoke_tokenizer *yk_tokenizer_pretrained(const struct yk_tokenizer *);
// For a pretrained model's tokenizer: yoke_tokenizer_encode_spans, and EINVAL for an id that the
// model does not have.
int yk_tokenizer_ids_of(const struct yk_tokenizer *, const char *text, size_t bytes, unsigned flags,
			const struct yoke_text_span *plain, size_t n, int32_t **ids, size_t *count);
// The same with the segments of the text, which are appended.
int yk_tokenizer_segments_of(const struct yk_tokenizer *, const char *text, size_t bytes,
			     unsigned flags, const struct yoke_text_span *plain, size_t n,
			     struct yk_segments *, int32_t **ids, size_t *count);
// Does this id end a text?
bool yk_tokenizer_ends(const struct yk_tokenizer *, int32_t id);
// Ends learning, after all text is encoded: builds the vocabulary from the first `train` tokens,
// with at most `max` ids (0: no limit, else at least 3), and renumbers the list.  Does nothing for
// tokenizers that do not learn.  ENOMEM, ERANGE.
int yk_tokenizer_settle(struct yk_tokenizer *, struct yk_tokens *, size_t train, size_t max);
// Number of distinct words learned so far, whose ids count from 0 in order of first appearance; 0
// if the tokenizer does not learn.
int64_t yk_tokenizer_learnt(const struct yk_tokenizer *);
// Ends learning of several tokenizers: the vocabulary of `to` becomes all words w of from[i] with
// in[i][w].
int yk_tokenizer_join(struct yk_tokenizer *to, int n, struct yk_tokenizer *const *from,
		      bool *const *in);
// id [learnt]: maps the ids of `from`, which learned, to those of the vocabulary of `to`.
void yk_tokenizer_map(const struct yk_tokenizer *to, const struct yk_tokenizer *from, int32_t *id);
// The bytes that an id adds to a text, valid while the tokenizer lives; NULL for an id out of
// range.
const char *yk_tokenizer_decode(const struct yk_tokenizer *, int32_t id, size_t *bytes);
// The text between two decoded tokens: "" or a blank.
const char *yk_tokenizer_separator(const struct yk_tokenizer *);
// The id for words that are not in the vocabulary; -1 if the tokenizer has none.
int32_t yk_tokenizer_unknown(const struct yk_tokenizer *);
// Do tokens represent text, so that a sequence has a length in bytes?
bool yk_tokenizer_is_text(const struct yk_tokenizer *);
// Conversion to the JSON object of a manifest, and back; `what` is for messages.  NULL: EFORMAT,
// ENOENT, ENOMEM.
json_t *yk_tokenizer_save(const struct yk_tokenizer *);
struct yk_tokenizer *yk_tokenizer_load(const json_t *, const char *what);

#endif
