// SPDX-License-Identifier: Apache-2.0
// What watches a run as its keys ask: a profile by cycles of steps, a history of memory.
#ifndef YK_WATCH_H
#define YK_WATCH_H

#include "train/conf.h"
#include "train/progress.h"
#include "yoke-observe.h"

struct yk_watch {
	bool whole;    // profile=1: one of the whole run, which is not kept here
	bool cycles;   // profile=skip,wait,warmup,active,repeat
	struct yoke_profile_schedule schedule;
	int rows;      // of profile_table
	char column[16];
	bool memory;   // memory_history=1
	double telemetry; // seconds
	const yoke_group *group; // of ranks, or NULL: their telemetry says what they do together
	bool follows;     // it begins with a step
	yoke_recorder *sampler;
	char *folder;  // of the run
	struct yk_progress *progress;
	yoke_profile *profile;
};

// Takes the keys; EINVAL names what is wrong with them.  init sets what they ask for, before there is a context.
int yk_watch_check(struct yk_watch *, const struct yk_config *);
int yk_watch_init(struct yk_watch *, const struct yk_config *);
// Once there is a context, and its folder.
int yk_watch_begin(struct yk_watch *, const char *folder, struct yk_progress *);
// Of a rank that does not lead: telemetry alone, from the first step on behind which the leader has made the folder.
int yk_watch_follow(struct yk_watch *, const struct yk_watch *leader, const char *folder, const yoke_group *);
// A step is over.
int yk_watch_step(struct yk_watch *, int64_t step, double data_wait);
// At the end of a run that went well: what is not finished is handed over.
int yk_watch_end(struct yk_watch *);
// The context goes: nothing of it is asked any more.
void yk_watch_drop(struct yk_watch *);
void yk_watch_fini(struct yk_watch *);

#endif
