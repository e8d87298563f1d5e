// SPDX-License-Identifier: Apache-2.0
// What the files of a profile by cycles share.
#ifndef YK_CYCLE_H
#define YK_CYCLE_H

#include "observe/pieces.h"

struct yoke_profile {
	struct yoke_profile_options options;
	struct yoke_profile_schedule schedule;
	char *folder;
	struct yk_profile *core;
	enum yoke_profile_state state; // of the step that goes on
	int64_t step, cycle;
	double seconds; // of the cycle at hand
	bool traced;    // the context kept call sites before
};

// Is there a profile, and the context that it watches?  Else an error of the public function `call`, with yoke_.
int yk_profile_given_as(const yoke_profile *, const char *call);
uint64_t yk_profile_max_bytes(const yoke_profile *);

#endif
