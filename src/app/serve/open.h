// SPDX-License-Identifier: Apache-2.0
// Opening and closing of what a server computes with.
#ifndef YK_SERVE_OPEN_H
#define YK_SERVE_OPEN_H

#include "serve/state.h"

// A server in the phase LOADING, which has no model yet.  ENOMEM.
struct yk_serve *yk_serve_new(const struct yk_serve_options *);
// Opens the models and the engine, in the current context.
int yk_serve_open(struct yk_serve *);
void yk_serve_free(struct yk_serve *); // NULL is allowed

// ---- the computing thread (work.c) ----

// Takes calls that have arrived, and computes a step.  Returns 1 if there is more to do at once,
// otherwise 0; negative: nothing more can be computed.
int yk_serve_work(struct yk_serve *);
// Waits until a call arrives, or there are others; at most so many milliseconds.
void yk_serve_wait(struct yk_serve *, int64_t milliseconds);
// Ends a yk_serve_wait, or the next one.  From any thread.
void yk_serve_wake(struct yk_serve *);
// Ends all calls with the reply that the server is shutting down.
void yk_serve_cancel(struct yk_serve *);
bool yk_serve_is_idle(struct yk_serve *);
// Frees all calls, without an engine.
void yk_serve_abandon(struct yk_serve *);

#endif
