// SPDX-License-Identifier: Apache-2.0
// Mixed precision of a run: the keys precision, keep_f32 and allow_emulated.
#ifndef YK_PRECISION_H
#define YK_PRECISION_H

#include "optim/scaled.h"
#include "config/conf.h"

struct yk_precision {
	int half;         // f16 or bf16; 0: everything is f32
	bool scaled;      // uses loss scaling
	const char *keep; // patterns of scopes that stay in f32; NULL: none
};

// EINVAL: the current context's device has no products in that dtype, or slower ones, without
// allow_emulated.
int yk_precision_of(const struct yk_config *, struct yk_precision *);
// The same from a value of the key `precision`, and patterns or NULL. emulated: it may be slower.
// EINVAL: unknown value.
int yk_precision_named(const char *name, const char *keep, bool emulated, struct yk_precision *);
// The canonical value of the key `precision` with the same meaning; any other text is returned
// unchanged.
const char *yk_precision_word(const char *);
// Enables autocast for ops recorded in the innermost scope from now on.
int yk_precision_begin(const struct yk_precision *);
// The loss scaler of a run; NULL with the error set on failure.
yoke_scaler *yk_scaler_make(const struct yk_config *);

#endif
