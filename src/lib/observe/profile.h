// SPDX-License-Identifier: Apache-2.0
// The profiler: watches a context and sums where its time goes.
//
// A piece of work is a step of a plan, a copy between host and device, a wait for an
// earlier launch, or the making of a plan; each is timed whole and belongs to one sum,
// never split by guess.  On the CPU backend, whose work is done when the call returns,
// times are the host's.  Elsewhere steps are only counted, and the host's copies and
// waits timed, unless details are asked for: then an event stands between the steps of each queue, and
// times are the device's (event_elapsed).  Pieces of a queue are
// disjoint: planning counts there as far as the device had nothing to do meanwhile.
#ifndef YK_PROFILE_H
#define YK_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "observe/report.h"

struct yk_profile;

// Watches the calling thread's context from now on.  details: rows for each kind of step,
// and pieces for a trace.  NULL: no memory, or no context.
struct yk_profile *yk_profile_new(bool details);
// The same with what tells rows apart (YOKE_PROFILE_*).
struct yk_profile *yk_profile_with(bool details, unsigned flags);
void yk_profile_free(struct yk_profile *); // NULL is fine
// With details: asks the backend of the device that will be used for times of its queues
// (its setting NAME.profile); before the context is made.
void yk_profile_prepare(void);
// A thread of the loader (-1: the caller's) read for so long, from that moment of yk_nanoseconds: a lane of the trace.
void yk_profile_reading(struct yk_profile *, int worker, uint64_t begin, uint64_t ns);
// Starts from zero, and the clock with it.
void yk_profile_start(struct yk_profile *);
// Seconds of all pieces since then; waits for them.
double yk_profile_busy(struct yk_profile *);
// What happened since the start.
int yk_profile_report(struct yk_profile *, struct yk_report *);
// The rows that took longest as lines, at most `most`.
void yk_profile_top(const struct yk_profile *, int most, yk_line_fn *, void *arg);
// Chrome's trace format (chrome://tracing, Perfetto); details only.
int yk_profile_trace(struct yk_profile *, const char *path);
// The same of several ranks.  Each says which it is, and how much later it began than the first of them, in nanoseconds of
// yk_profile_began; the others give their events as text, for free(), NULL: an error, which rank 0 puts behind its own.
uint64_t yk_profile_began(const struct yk_profile *); // by the clock that all machines have
void yk_profile_rank(struct yk_profile *, int rank, int ranks, uint64_t later);
char *yk_profile_events(struct yk_profile *);
int yk_profile_trace_ranks(struct yk_profile *, const char *path, int others, char *const *other);

#endif
