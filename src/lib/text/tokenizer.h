// SPDX-License-Identifier: Apache-2.0
// Tokenizers: text to token ids and back.  "byte" has one id for each byte, "word" one
// for each word between blanks, out of a vocabulary (text/words.h) that it learns from
// the text to train on; the text of "ids" is the numbers themselves, in decimal between
// blanks, for tokens that others made. Ids are 0 .. size - 1.
#ifndef YK_TOKENIZER_H
#define YK_TOKENIZER_H

#include <jansson.h>
#include <stdbool.h>

#include "text/tokens.h"

struct yk_tokenizer;

// By name; NULL with ENOENT naming the nearest.  One that learns does so with each text
// it encodes, until it is settled.
struct yk_tokenizer *yk_tokenizer_new(const char *name);
// "ids" of so many; `what` is for messages.
struct yk_tokenizer *yk_tokenizer_ids(int64_t size, const char *what);
void yk_tokenizer_free(struct yk_tokenizer *); // NULL is fine
const char *yk_tokenizer_name(const struct yk_tokenizer *);
int32_t yk_tokenizer_size(const struct yk_tokenizer *); // ids in the vocabulary
// Appends the ids of a text; sets the list's width when it is empty.  A failure leaves
// the list as it was: ENOMEM, EFORMAT.
int yk_tokenizer_encode(struct yk_tokenizer *, const char *text, size_t bytes,
			struct yk_tokens *to);
// All of a text is encoded: the vocabulary is that of its first `train` tokens, at most `most` ids (0: all,
// else 3 at least), and the list is renumbered.  Does nothing where there is nothing to learn.  ENOMEM, ERANGE.
int yk_tokenizer_settle(struct yk_tokenizer *, struct yk_tokens *, size_t train, size_t most);
// How many words one that learns has met, which have the ids 0 .. in the order of their first appearance; else 0.
int64_t yk_tokenizer_learnt(const struct yk_tokenizer *);
// The same end of learning by several: the vocabulary of `to` is the words w of from[i] with in[i][w].
int yk_tokenizer_join(struct yk_tokenizer *to, int n, struct yk_tokenizer *const *from, bool *const *in);
// What the ids of one that learns are in the vocabulary of `to`, [learnt].
void yk_tokenizer_map(const struct yk_tokenizer *to, const struct yk_tokenizer *from, int32_t *id);
// The bytes that one id stands for, valid as long as the tokenizer; NULL for an id
// outside.
const char *yk_tokenizer_decode(const struct yk_tokenizer *, int32_t id, size_t *bytes);
// What stands between two tokens: "" or a blank.
const char *yk_tokenizer_separator(const struct yk_tokenizer *);
// The id that stands for all that is not in the vocabulary; -1 when it has everything.
int32_t yk_tokenizer_unknown(const struct yk_tokenizer *);
// Do tokens stand for parts of a text, so that it has a number of bytes?
bool yk_tokenizer_is_text(const struct yk_tokenizer *);
// As the object that a manifest holds, and back; `what` is for messages.  NULL: EFORMAT,
// ENOENT, ENOMEM.
json_t *yk_tokenizer_save(const struct yk_tokenizer *);
struct yk_tokenizer *yk_tokenizer_load(const json_t *, const char *what);

#endif
