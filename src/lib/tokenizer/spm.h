// SPDX-License-Identifier: Apache-2.0
// SentencePiece models, whichever file they come from.
#ifndef YK_SPM_H
#define YK_SPM_H

#include "tokenizer/tokenizer.h"

// Types of pieces, as in the files.
enum {
	YK_PIECE_NORMAL = 1,
	YK_PIECE_UNKNOWN,
	YK_PIECE_CONTROL,
	YK_PIECE_USER,
	YK_PIECE_UNUSED,
	YK_PIECE_BYTE
};

struct yk_spm_piece {
	const char *s; // not NUL-terminated
	size_t n;
	float score;
	int type;
};

// Fills an empty tokenizer whose `spm` settings are already there.  EFORMAT, ENOMEM.
int yk_spm_build(yoke_tokenizer *, enum yk_model_kind, const struct yk_spm_piece *, size_t count);

#endif
