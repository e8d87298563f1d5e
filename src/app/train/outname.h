// SPDX-License-Identifier: Apache-2.0
// Names of models made of what they are: out=runs/{data}-l{layers}-{device}.
#ifndef YK_OUTNAME_H
#define YK_OUTNAME_H

#include "train/conf.h"

// The value of `out` with {device} ("cpu-0"), {layers}, {embed}, {heads} and {data} (names of the
// texts without folders and endings, joined by '+') replaced; for free().  Sets the settings of the
// configuration and chooses the device where it is asked for.  EINVAL: a word that is none of these.
int yk_out_name(const struct yk_config *, char **to);

#endif
