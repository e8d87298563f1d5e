// SPDX-License-Identifier: Apache-2.0
// Parsers for the sections of a pipeline's JSON.
#ifndef YK_FIT_PARSE_H
#define YK_FIT_PARSE_H

#include "fit/node.h"

// A member of an object; if it is missing, creates it from `def`.  NULL: out of memory.
json_t *yk_parse_member(json_t *object, const char *name, const char *def);
// Index of the node that a string names; -1 for "input", where allowed.  EINVAL suggests the
// nearest.
int yk_parse_node(const yoke_pipeline *, const json_t *, const char *where, const char *key,
		  bool stream, int *to);
// Index of a node's state by name; -1: none.
int yk_state_named(const struct yk_fit_node *, const char *state);
int yk_parse_trainer(json_t *root, struct yk_trainer_keys *);
int yk_parse_metrics(yoke_pipeline *, json_t *root);
// Parses trained states, losses, trainer, optimizer, metrics and monitors; the nodes must be parsed
// first.
int yk_parse_training(yoke_pipeline *, json_t *root);

#endif
