// SPDX-License-Identifier: Apache-2.0
// Tokenizers from the metadata of GGUF files.  The reader of the file fills the struct; everything
// it points to must live only during the call.
#ifndef YK_TOKENIZER_GGUF_H
#define YK_TOKENIZER_GGUF_H

#include <stddef.h>
#include <stdint.h>

#include "formats/gguf.h"
#include "tokenizer/spm.h"

struct yk_gguf_string {
	const char *s; // not NUL-terminated
	size_t n;
};

// Members are named after the metadata keys tokenizer.ggml.*.
struct yk_gguf_tokenizer {
	const char *model, *pre; // NULL: absent
	const struct yk_gguf_string *tokens;
	size_t count;
	const float *scores;       // [count] or NULL
	const int32_t *token_type; // [count] or NULL: all normal
	const struct yk_gguf_string *merges;
	size_t merge_count;
	int64_t bos, eos, eot, pad, unknown, separator, cls;         // ids, -1: absent
	int add_bos, add_eos, add_space_prefix, remove_extra_spaces; // 0, 1; -1: absent
	const void *charsmap;                                        // precompiled_charsmap
	size_t charsmap_bytes;
	const char *chat_template; // NULL: none
};

// `name` is for messages.  NULL: EFORMAT, ENOMEM, EUNSUPPORTED.
yoke_tokenizer *yk_tokenizer_gguf(const struct yk_gguf_tokenizer *, const char *name);
// Calls `use` with the tokenizer in the metadata of a GGUF file, and returns its result.  ENOENT if
// there is none.
int yk_tokenizer_gguf_read(const struct yk_gguf *,
			   int (*use)(void *arg, const struct yk_gguf_tokenizer *), void *arg);
// The names that `pre` may have, separated by blanks; for messages and help texts.
const char *yk_tokenizer_pre_names(void);
// Pattern i of the splits that a name of `pre` stands for; NULL after the last, and if the name is
// unknown.  *whole: a word that is a token is not divided.
const char *yk_tokenizer_pre_pattern(const char *name, int i, bool *whole);

#endif
