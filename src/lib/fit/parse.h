// SPDX-License-Identifier: Apache-2.0
// Parsers for the sections of a pipeline's JSON.
#ifndef YK_FIT_PARSE_H
#define YK_FIT_PARSE_H

#include "fit/node.h"

// A member of an object, which is made by `def` where it is not there; NULL: no memory.
json_t *yk_parse_member(json_t *object, const char *name, const char *def);
// The node that a text names; -1 for "input", where that may be.  EINVAL with the nearest.
int yk_parse_node(const yoke_pipeline *, const json_t *, const char *where, const char *key, bool stream, int *to);
// The place of a node's state of that name; -1.
int yk_state_named(const struct yk_fit_node *, const char *state);
int yk_parse_trainer(json_t *root, struct yk_trainer_keys *);
int yk_parse_metrics(yoke_pipeline *, json_t *root);
// What is trained, losses, trainer, optimizer, metrics and monitors, behind the nodes.
int yk_parse_training(yoke_pipeline *, json_t *root);

#endif
