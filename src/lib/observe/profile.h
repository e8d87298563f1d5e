// SPDX-License-Identifier: Apache-2.0
// The profiler: watches a context and adds up where its time goes.
//
// An activity is a step of a plan, a copy between host and device, a wait for an earlier
// launch, or the planning itself.  Each is timed as a whole and added to exactly one sum, never
// split by estimate.  The CPU backend finishes work before the call returns, so its times are the
// host's.  On other devices, without details, steps are only counted, and the host's copies and
// waits are timed.  With details, an event separates the steps of each queue and times are the
// device's (event_elapsed).  Activities of a queue do not overlap: planning counts only while the
// device was idle.
#ifndef YK_PROFILE_H
#define YK_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "observe/report.h"

struct yk_profile;

// Watches the calling thread's context from now on.  details: keeps a row for each kind of step,
// and activities for a trace.  NULL: out of memory, or no context.
struct yk_profile *yk_profile_new(bool details);
// As above; flags (YOKE_PROFILE_*) select the fields that distinguish rows.
struct yk_profile *yk_profile_with(bool details, unsigned flags);
void yk_profile_free(struct yk_profile *); // NULL is fine
// With details: requests queue timing from the backend of the device that will be used (its setting
// NAME.profile).  Call it before the context is created.
void yk_profile_prepare(void);
// Adds a read of `ns` by a loader thread (-1: the caller's), starting at `begin` of yk_nanoseconds,
// to its trace lane.
void yk_profile_reading(struct yk_profile *, int worker, uint64_t begin, uint64_t ns);
// Resets all sums and the clock to zero.
void yk_profile_start(struct yk_profile *);
// Total seconds of all activities since the start; waits for their completion.
double yk_profile_busy(struct yk_profile *);
// Reports everything since the start.
int yk_profile_report(struct yk_profile *, struct yk_report *);
// Prints the rows that took longest, one per line, at most `max` lines.
void yk_profile_top(const struct yk_profile *, int max, yk_line_fn *, void *arg);
// Writes Chrome's trace format (chrome://tracing, Perfetto); details only.
int yk_profile_trace(struct yk_profile *, const char *path);
// One trace for several ranks.  Each rank sets its number and its start relative to the first
// rank's, in nanoseconds of yk_profile_began.  The other ranks return their events as text (caller
// frees; NULL: an error), and rank 0 appends them to its own.
uint64_t yk_profile_began(const struct yk_profile *); // on the clock that all machines share
void yk_profile_rank(struct yk_profile *, int rank, int ranks, uint64_t later);
char *yk_profile_events(struct yk_profile *);
int yk_profile_trace_ranks(struct yk_profile *, const char *path, int others, char *const *other);

#endif
