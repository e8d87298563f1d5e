// SPDX-License-Identifier: Apache-2.0
// What the parts of a pipeline's JSON are read with.
#ifndef YK_FIT_PARSE_H
#define YK_FIT_PARSE_H

#include "base/json.h"
#include "fit/node.h"

// EINVAL with the nearest name: the object has a key that is not among n names.
int yk_parse_known(json_t *object, const char *where, const char *const *names, int n);
// The place of a word among space-separated ones; -1.
int yk_parse_word(const json_t *, const char *words);
// Losses, trainer, optimizer and metrics, behind the nodes.
int yk_parse_training(yoke_pipeline *, json_t *root);

#endif
