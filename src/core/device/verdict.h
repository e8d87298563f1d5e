// SPDX-License-Identifier: Apache-2.0
// The outcome of a plugin's trial, cached for later processes.  It is used only for an equal key
// and while every library that the trial loaded is unchanged.  A failure is used only for a limited
// time, after which the plugin is tried again.
#ifndef YK_VERDICT_H
#define YK_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct yk_verdict {
	char outcome[256]; // how the trial failed; "" when it succeeded
	int64_t tried;     // seconds since 1970
	int64_t cost_ms;   // duration of the trial
};

// libraries: the paths of those that the trial loaded, one per line.
void yk_verdict_save(const char *key, size_t bytes, const struct yk_verdict *,
		     const char *libraries);
// False: none is cached, a library has changed, or it is a failure that has expired at time `now`.
bool yk_verdict_recall(const char *key, size_t bytes, int64_t now, struct yk_verdict *);
// Seconds after which a failure is tried again: 100 times the trial's duration, from 5 minutes to
// an hour, so that trials take at most about a hundredth of the time.
int64_t yk_verdict_patience(const struct yk_verdict *);

// ---- verdict_key.c ----

// Describes everything nameable that a trial's outcome depends on: plugin, helper, drivers, mounts,
// device nodes, limits, user, environment.  The caller frees the text; NULL: no memory.
char *yk_verdict_key(const char *file, const char *helper, size_t *bytes);
// Writes a line "PATH: DEVICE INODE SIZE TIME", which changes when the file does; "PATH: ERRNO" if
// it cannot be found.
void yk_stamp_file(FILE *, const char *path);

#endif
