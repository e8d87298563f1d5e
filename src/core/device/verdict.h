// SPDX-License-Identifier: Apache-2.0
// How the trial of a plugin went, kept in the cache for later processes.
// A verdict is recalled only for an equal key and while every library that the trial loaded is unchanged; a failure
// is recalled only for a limited time, after which the plugin is tried again.
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

// libraries: one path per line, those that the trial loaded.
void yk_verdict_keep(const char *key, size_t bytes, const struct yk_verdict *, const char *libraries);
// False: none is kept, a library has changed, or it is a failure whose time is over at `now`.
bool yk_verdict_recall(const char *key, size_t bytes, int64_t now, struct yk_verdict *);
// Seconds after which a failure is tried again: 100 times the trial's duration, from 5 minutes to an hour, so that
// trials take about a hundredth of the time at most.
int64_t yk_verdict_patience(const struct yk_verdict *);

// ---- verdict_key.c ----

// Text of everything that a plugin's trial depends on and that can be named beforehand: plugin, helper, drivers,
// mounts, device nodes, limits, user, environment. The caller frees it; NULL: no memory.
char *yk_verdict_key(const char *file, const char *helper, size_t *bytes);
// Writes a line "PATH: DEVICE INODE SIZE TIME", by which a changed file is recognised; "PATH: ERRNO" of one that
// cannot be found.
void yk_stamp_file(FILE *, const char *path);

#endif
