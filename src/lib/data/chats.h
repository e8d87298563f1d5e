// SPDX-License-Identifier: Apache-2.0
// Training data of separate texts: conversations in .jsonl files, prompts with completions, and
// plain texts. Each text is tokenized by itself, and windows hold several of them that do not see
// each other.  Only the tokens that the model shall write have targets.
//
// A line of a .jsonl file is an object with one of
//	"messages": [{"role": .., "content": ..}, ..], and optionally "tools": [..]
//	"prompt" and "completion": two strings, or two lists of messages
//	"text": a string
// Members that are null count as absent.
// A message's content is a string or a list of {"type": "text", "text": ..}; it may have further
// members, which the chat template receives.
#ifndef YK_DATA_CHATS_H
#define YK_DATA_CHATS_H

#include <stdbool.h>

#include "data/chat_store.h"
#include "yoke-data.h"

// A window of T tokens is a row of YK_PACKED_FIELDS T numbers: ids [T], targets [T], YK_NO_TARGET
// where there is none, and positions [T], which count from 0 in each text.  At the end it may be
// filled up with tokens that are each a text without a target.
enum { YK_PACKED_FIELDS = 3, YK_NO_TARGET = -1 };

struct yk_chats;

// NULL: ENOMEM, or an error of the chat template.
struct yk_chats *yk_chats_new(struct yk_tokenizer *, int64_t context);
void yk_chats_free(struct yk_chats *); // NULL is allowed
// Adds the lines of a .jsonl file, or the text of another one.  Conversations that are longer than
// a window are cut there, and left out if no target remains; texts continue in the next window.
// EFORMAT names path and line.
int yk_chats_add(struct yk_chats *, const char *path, const char *text, size_t bytes);
// Instead of making windows, keep all samples, uncut, for a file; before the first yk_chats_add.
// ENOMEM.
int yk_chats_retain(struct yk_chats *);
const struct yk_chat_store *yk_chats_kept(const struct yk_chats *);
int yk_chats_save(const struct yk_chats *, const struct yk_sources *, const char *path);
// Adds the samples of such a file (chat_store.h), which must be of this tokenizer (EINVAL), and
// their bytes to *bytes.
int yk_chats_load(struct yk_chats *, const char *path, uint64_t *bytes);
// After all files: divides the texts, a fraction `valid` of them, the last ones, being for
// validation, and makes windows of both parts, of several texts each if `pack`; *train or *valid is
// NULL if it has none.  Reports how many were cut.  The windows use the memory of yk_chats.
// ERANGE: too few texts.
int yk_chats_windows(struct yk_chats *, const char *paths, double valid, bool pack,
		     yoke_dataset **train, yoke_dataset **validation);
int64_t yk_chats_tokens(const struct yk_chats *);
int64_t yk_chats_count(const struct yk_chats *);
// Depends on all tokens, targets and windows.
uint64_t yk_chats_fingerprint(const struct yk_chats *);
// Number of targets of a window of the training (0) or validation part (1).
int64_t yk_chats_targets(const struct yk_chats *, int part, int64_t window);

#endif
