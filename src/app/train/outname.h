// SPDX-License-Identifier: Apache-2.0
// Expands placeholders in the model's directory name: out=runs/{data}-l{layers}-{device}.
#ifndef YK_OUTNAME_H
#define YK_OUTNAME_H

#include "config/conf.h"

// The value of `out` with {device} ("cpu-0"), {layers}, {embed}, {heads} and {data} (names of the
// texts without directories and extensions, joined by '+') replaced; free() the result. {device}
// applies the configuration's settings and chooses the device. EINVAL: unknown placeholder.
int yk_out_name(const struct yk_config *, char **to);

#endif
