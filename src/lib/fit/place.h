// SPDX-License-Identifier: Apache-2.0
// Creates the contexts (devices) that a pipeline runs in, and checks its trainer's keys against
// them.
#ifndef YK_FIT_PLACE_H
#define YK_FIT_PLACE_H

#include "fit/node.h"

// The states as variables of the context that is current.
int yk_pipeline_place(yoke_pipeline *);
// Mixed precision from here to the end of the innermost scope, as the trainer's precision says.
void yk_fit_cast(const yoke_pipeline *);
// EINVAL: it shall be deterministic, and a setting takes a library whose sums depend on threads.
int yk_fit_deterministic(const yoke_pipeline *, const char *call);
// A context of the CPU, where statistics are collected there and the current context is elsewhere; else NULL.
int yk_statistics_context(const yoke_pipeline *, yoke_context **to);

// If scenes of the set have different sizes, the current context no longer warns of new plans, one for each size.  Returns the
// context if this changed it, for yk_fit_sizes_end, which takes NULL too.
struct yoke_context *yk_fit_sizes(const struct yk_set_fields *);
void yk_fit_sizes_end(struct yoke_context *);

#endif
