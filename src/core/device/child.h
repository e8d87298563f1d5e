// SPDX-License-Identifier: Apache-2.0
// Runs the helper program yoke-probe, so that a driver that crashes or hangs does so in a child
// process.
#ifndef YK_CHILD_H
#define YK_CHILD_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// OFF: YOKE_PLUGIN_PROBE=0 disables the helper.  MISSING: it is not installed, or other users may
// write it.
enum yk_helper { YK_HELPER_FOUND, YK_HELPER_OFF, YK_HELPER_MISSING };
// Stores the helper's path, or the reason why it is not used.
enum yk_helper yk_child_helper(char to[PATH_MAX], char *why, size_t cap);
int64_t yk_child_limit(void); // time limit of a plugin in the helper, in seconds
const char *yk_signal_name(int number, char to[32]);
// Runs the helper with up to two arguments (NULL: none) under the time limit.  1: the outcome is
// known: either outcome is "" and answer holds the helper's output, or outcome describes how it
// ended.  0: it ended for a reason that may not recur, such as an outside kill.  -1: it could not
// be run.
int yk_child_run(const char *helper, const char *argument, const char *second, char *answer,
		 size_t answer_cap, char *outcome, size_t cap);

// The same for any program, argv[0] its path, with a limit in seconds and the name of the setting
// that configures it. answer receives the program's output up to its end and is always terminated
// by NUL.
int yk_child_watch(const char *const *argv, int64_t seconds, const char *setting, char *answer,
		   size_t answer_cap, char *outcome, size_t cap);

#endif
