// SPDX-License-Identifier: Apache-2.0
// The contexts in which a pipeline runs: creates them from the trainer's keys, allocates the states
// in them, and applies precision and determinism.
#ifndef YK_FIT_PIPELINE_CONTEXT_H
#define YK_FIT_PIPELINE_CONTEXT_H

#include "fit/node.h"

// Allocates the states as variables of the current context.
int yk_pipeline_variables(yoke_pipeline *);
// Autocasts to the trainer's precision until the innermost scope ends.
void yk_fit_cast(const yoke_pipeline *);
// EINVAL: trainer.deterministic is set, but a setting selects a library whose results depend on the
// number of threads.
int yk_fit_deterministic(const yoke_pipeline *, const char *call);
// A new CPU context if statistics are collected on the CPU and the current context is on another
// device; otherwise NULL.
int yk_statistics_context(const yoke_pipeline *, yoke_context **to);

// If the data set's scenes differ in size, stops the current context's warnings about new plans,
// since there is one per size.  Returns the context if it was changed, else NULL; pass the result
// to yk_fit_varying_end.
struct yoke_context *yk_fit_varying_begin(const struct yk_set_fields *);
void yk_fit_varying_end(struct yoke_context *);

#endif
