// SPDX-License-Identifier: Apache-2.0
// The head of a report: what ran, for how long, with which result, and whether it is healthy.
#ifndef YK_HEADLINE_H
#define YK_HEADLINE_H

#include "runs/read.h"

// { state, what, verdict, healthy, figures: [ { label, text, note } ] }; texts for people, whose
// exact numbers are elsewhere in the report. findings: of yk_conditions. NULL: out of memory.
json_t *yk_headline(const struct yk_view *, const json_t *findings);
// [ { key, value, default } ] of the keys whose values are not the default, without those that are
// not keys of `yoke train`, which have "default": "".
json_t *yk_changed_keys(const struct yk_view *);

#endif
