// SPDX-License-Identifier: Apache-2.0
// Observation of a run as its keys request: profiles over cycles of steps, memory history,
// telemetry.
#ifndef YK_WATCH_H
#define YK_WATCH_H

#include "config/conf.h"
#include "train/progress.h"
#include "yoke-observe.h"

struct yk_watch {
	bool whole;    // profile=1: a single profile of the whole run, kept elsewhere
	bool cycles;   // profile=skip,wait,warmup,active,repeat
	struct yoke_profile_schedule schedule;
	int rows;      // of profile_table
	char column[16];
	bool memory;   // memory_history=1
	double telemetry; // seconds between samples
	// NULL or the group of ranks, whose collectives appear in the telemetry
	const yoke_group *group;
	bool follows;     // telemetry starts after the first step
	yoke_recorder *sampler;
	char *folder;  // of the run
	struct yk_progress *progress;
	yoke_profile *profile;
};

// check: reads the keys; EINVAL names the invalid one. init: also applies what they need before a
// context is created.
int yk_watch_check(struct yk_watch *, const struct yk_config *);
int yk_watch_init(struct yk_watch *, const struct yk_config *);
// Call once there are a context and a directory.
int yk_watch_begin(struct yk_watch *, const char *folder, struct yk_progress *);
// For other ranks than rank 0: telemetry only, started after the first step, when rank 0 has
// created the directory.
int yk_watch_follow(struct yk_watch *, const struct yk_watch *leader, const char *folder,
		    const yoke_group *);
// Call after each step.
int yk_watch_step(struct yk_watch *, int64_t step, double data_wait);
// At the end of a successful run: completes unfinished profiles.
int yk_watch_end(struct yk_watch *);
// The context is about to be freed; stops observing it.
void yk_watch_drop(struct yk_watch *);
void yk_watch_fini(struct yk_watch *);

#endif
