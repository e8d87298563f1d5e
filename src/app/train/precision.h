// SPDX-License-Identifier: Apache-2.0
// The keys precision, keep_f32 and allow_emulated: which half a run computes in, with a loss scale or not.
#ifndef YK_PRECISION_H
#define YK_PRECISION_H

#include "optim/scaled.h"
#include "train/conf.h"

struct yk_precision {
	int half;         // f16 or bf16; 0: all is f32
	bool scaled;      // the loss has a scale
	const char *keep; // patterns of scopes that stay in f32; NULL: none
};

// EINVAL: the current context's device has no such products, or none that are faster, and nobody allowed them.
int yk_precision_of(const struct yk_config *, struct yk_precision *);
// The same of a word of the key `precision`, and patterns or NULL; emulated: it may be no faster.  EINVAL: no such word.
int yk_precision_named(const char *name, const char *keep, bool emulated, struct yk_precision *);
// The word of the key `precision` that means the same and comes first; any other text is given back.
const char *yk_precision_word(const char *);
// Casts what is recorded in the innermost scope from now on.
int yk_precision_begin(const struct yk_precision *);
// The scaler of a run; NULL: yoke_error says why.
yoke_scaler *yk_scaler_make(const struct yk_config *);

#endif
