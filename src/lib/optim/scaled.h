// SPDX-License-Identifier: Apache-2.0
// Dynamic loss scales in files.
#ifndef YK_SCALED_H
#define YK_SCALED_H

#include "base/json.h"
#include "yoke.h"

// A scaler's state as an object; and back: EFORMAT, `what` is for messages.  NULL and nothing for no scaler.
json_t *yk_scaler_describe(const yoke_scaler *);
int yk_scaler_parse(const json_t *, const char *what, yoke_scaler *);

#endif
