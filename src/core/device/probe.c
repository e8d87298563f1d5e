// SPDX-License-Identifier: Apache-2.0
// Tries a plugin in a child process and caches the outcome.  As long as nothing that the outcome
// depends on has changed, no child is started.
#include "config.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/number.h"
#include "base/param.h"
#include "device/child.h"
#include "device/guard.h"
#include "device/icd.h"
#include "device/probe.h"
#include "device/verdict.h"

YK_PARAM(remember, "plugin.remember", YK_BOOL, "1",
	 "later processes reuse the outcome of a plugin's trial; 0: each process tries the plugin "
		"again");

#define ANSWER_MAX 65536 // capacity of a pipe

// OpenCL's loader opens every file of its directory and blocks on one that is not a regular file.
static int refuse_blocked(const char *file, char *why, size_t cap)
{
	static const char plugin[] = "/yoke_opencl.so";
	const size_t n = strlen(file);
	struct yk_icds icds;
	int code = 0;

	if (n < sizeof plugin || strcmp(file + n - (sizeof plugin - 1), plugin))
		return 0;
	yk_icds_find(&icds);
	for (size_t i = 0; i < icds.n && !code; i++)
		if (icds.at[i].blocks) {
			snprintf(why, cap, "%s %s; remove that file", icds.at[i].file,
				 icds.at[i].flaw);
			code = YOKE_EPLUGIN;
		}
	yk_icds_free(&icds);
	return code;
}

// Has the helper load the file, and caches the verdict if it is valid for later processes.  False:
// it was not cached.
static bool try_in_child(const char *helper, const char *file, const char *key, size_t bytes,
			 struct yk_verdict *v)
{
	char *answer = malloc(ANSWER_MAX);
	struct timespec from, to;

	clock_gettime(CLOCK_MONOTONIC, &from);
	int known = answer ? yk_child_run(helper, file, NULL, answer, ANSWER_MAX, v->outcome,
					  sizeof v->outcome) :
			     -1;
	clock_gettime(CLOCK_MONOTONIC, &to);
	yk_log(YOKE_LOG_DEBUG, "plugin", "%s: tried by %s: %s", file, helper,
	       *v->outcome ? v->outcome : "passed");
	v->tried = (int64_t)time(NULL);
	v->cost_ms = (to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000;
	if (known > 0 && key)
		yk_verdict_save(key, bytes, v, *v->outcome ? "" : answer);
	if (known < 0) {
		yk_warn("plugin",
			"%s: tried in this process, since the helper %s cannot be run: %s", file,
			helper, *v->outcome ? v->outcome : "out of memory");
		v->outcome[0] = '\0';
	}
	free(answer);
	return known > 0 && key;
}

int yk_probe(const char *file, char *why, size_t cap)
{
	struct yk_verdict v = { .tried = (int64_t)time(NULL) };
	char helper[PATH_MAX], reason[400], left[64];
	size_t bytes = 0;

	if (refuse_blocked(file, why, cap) < 0)
		return YOKE_EPLUGIN;
	const enum yk_helper state = yk_child_helper(helper, reason, sizeof reason);
	if (state != YK_HELPER_FOUND) {
		yk_log(state == YK_HELPER_OFF ? YOKE_LOG_DEBUG : YOKE_LOG_WARN, "plugin",
		       "%s: tried in this process: %s", file, reason);
		return 0;
	}
	char *key = yk_verdict_key(file, helper, &bytes);
	const bool crashed = yk_guard_crashed(file, v.outcome, sizeof v.outcome);
	const bool recalled = !crashed && key && yk_param_bool(&remember) &&
			      yk_verdict_recall(key, bytes, (int64_t)time(NULL), &v);
	bool kept = recalled || (crashed && key);
	if (crashed && key)
		yk_verdict_save(key, bytes, &v, "");
	if (!crashed && !recalled)
		kept = try_in_child(helper, file, key, bytes, &v);
	free(key);
	if (!*v.outcome)
		return 0;
	yk_counted(left, (v.tried + yk_verdict_patience(&v) - (int64_t)time(NULL) + 59) / 60,
		   "minute");
	snprintf(why, cap,
		 "%s when it was tried%s; not loaded%s%s%s (YOKE_PLUGIN_PROBE=0 loads "
		 "it anyway)",
		 v.outcome, recalled ? " before" : "", kept ? " for " : " by this process",
		 kept ? left : "",
		 kept ? ", or until it or its driver changes, or `yoke doctor` tries it again" :
			"");
	return YOKE_EPLUGIN;
}
