// SPDX-License-Identifier: Apache-2.0
// Serializes the state of dynamic loss scalers.
#ifndef YK_SCALED_H
#define YK_SCALED_H

#include "base/json.h"
#include "yoke.h"

// Converts a scaler's state to a JSON object and back: EFORMAT; `what` is for messages.  Without a
// scaler: NULL, no effect.
json_t *yk_scaler_describe(const yoke_scaler *);
int yk_scaler_parse(const json_t *, const char *what, yoke_scaler *);

#endif
