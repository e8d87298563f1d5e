// SPDX-License-Identifier: Apache-2.0
// The object of a profile that runs in cycles of steps, shared by the files that implement it.
#ifndef YK_CYCLE_H
#define YK_CYCLE_H

#include "observe/activity.h"

struct yoke_profile {
	struct yoke_profile_options options;
	struct yoke_profile_schedule schedule;
	char *folder;
	struct yk_profile *core;
	enum yoke_profile_state state; // of the current step
	int64_t step, cycle;
	double seconds; // length of the current cycle
	bool traced;    // the context already recorded call sites before the profile began
};

// Checks the profile and the context that it watches.  An error names the public function `call`
// (with "yoke_").
int yk_profile_require_as(const yoke_profile *, const char *call);
uint64_t yk_profile_max_bytes(const yoke_profile *);
// Ends a profile without reading its results: its device is lost, or its context is being freed.
// NULL is fine.
void yk_profile_drop(yoke_profile *);

#endif
