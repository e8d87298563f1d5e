// SPDX-License-Identifier: Apache-2.0
// The helper program yoke-probe: drivers are met in a process of their own, which may die of it.
#ifndef YK_CHILD_H
#define YK_CHILD_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// OFF: YOKE_PLUGIN_PROBE=0 asks for none. MISSING: it is not there, or others may write it.
enum yk_helper { YK_HELPER_FOUND, YK_HELPER_OFF, YK_HELPER_MISSING };
// The helper's path, or why there is none.
enum yk_helper yk_child_helper(char to[PATH_MAX], char *why, size_t cap);
int64_t yk_child_limit(void); // seconds that a plugin may take in it
const char *yk_signal_name(int number, char to[32]);
// Runs it with what its arguments, at most two (NULL: none), ask for, under a time limit.  1: how it
// went is known: outcome is "" when it came through, and answer has its words, else how it ended.
// 0: it ended in a way that says nothing for the next time.  -1: it could not be run.
int yk_child_run(const char *helper, const char *argument, const char *second, char *answer,
		 size_t answer_cap, char *outcome, size_t cap);

// The same of any program, argv[0] its path, with the limit in seconds and the name of the setting that
// gives it.  The answer is what it wrote until it ended, with a NUL behind it in any case.
int yk_child_watch(const char *const *argv, int64_t seconds, const char *setting, char *answer,
		   size_t answer_cap, char *outcome, size_t cap);

#endif
