// SPDX-License-Identifier: Apache-2.0
// Starts and stops the observation of a run.
#include "config.h"

#include "train/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/param.h"
#include "graph/context.h"
#include "observe/cycle.h"
#include "observe/profile.h"
#include "observe/roof.h"
#include "observe/table.h"

// ---- keys ----

// Parses n comma-separated numbers such as "1,1,3,2"; false: malformed or negative.
static bool numbers(const char *text, int64_t *to, int n)
{
	char *end = NULL;
	for (int i = 0; i < n; i++) {
		if (*text < '0' || *text > '9' || strspn(text, "0123456789") > 12)
			return false;
		to[i] = strtoll(text, &end, 10);
		if (*end != (i + 1 < n ? ',' : '\0'))
			return false;
		text = end + 1;
	}
	return true;
}

static int take_profile(struct yk_watch *w, const char *text)
{
	int64_t n[5];
	w->whole = !strcmp(text, "1");
	if (w->whole || !strcmp(text, "0"))
		return 0;
	if (!numbers(text, n, 5))
		return yk_fail(YOKE_EINVAL,
			       "profile=%s: must be 0, 1, or five numbers of steps "
			       "skip,wait,warmup,active,repeat, for example profile=10,1,1,3,2",
			       text);
	if (!n[3])
		return yk_fail(YOKE_EINVAL,
			       "profile=%s: the fourth number, the profiled steps of a cycle, must "
			       "be at least 1",
			       text);
	w->cycles = true;
	w->schedule = (struct yoke_profile_schedule){
		sizeof w->schedule, n[0], n[1], n[2], n[3], n[4], 0
	};
	return 0;
}

static int take_table(struct yk_watch *w, const char *text)
{
	const char *colon = strchr(text, ':');
	const size_t digits = strspn(text, "0123456789");
	if (!digits || digits > 6 || colon != text + digits)
		return yk_fail(YOKE_EINVAL,
			       "profile_table=%s: must be ROWS:COLUMN, for example 20:total", text);
	w->rows = atoi(text);
	snprintf(w->column, sizeof w->column, "%s", colon + 1);
	int e = yk_profile_column(colon + 1);
	return e < 0 ? e : 0;
}

static int set(const char *name, const char *value)
{
	int e = yk_param_set(name, value, YK_CONFIG);
	return e < 0 ? e : 0;
}

int yk_watch_check(struct yk_watch *w, const struct yk_config *c)
{
	int e = take_profile(w, yk_config_str(c, YK_KEY_profile));
	w->telemetry = yk_config_real(c, YK_KEY_telemetry);
	w->memory = !strcmp(yk_config_str(c, YK_KEY_memory_history), "1");
	return e == 0 ? take_table(w, yk_config_str(c, YK_KEY_profile_table)) : e;
}

int yk_watch_init(struct yk_watch *w, const struct yk_config *c)
{
	char path[4096];
	const char *out = yk_config_str(c, YK_KEY_out);
	int e = yk_watch_check(w, c);
	if (e == 0 && w->memory && (e = set("memory.history", "1")) == 0) {
		snprintf(path, sizeof path, "%s/memory.json", out);
		e = set("memory.snapshot", path);
	}
	if (e == 0 && (w->whole || w->cycles))
		yk_profile_prepare();
	return e;
}

// ---- the run ----

static void print_lines(struct yk_progress *p, char *text)
{
	for (char *line = strtok_r(text, "\n", &text); line; line = strtok_r(NULL, "\n", &text))
		yk_progress_print(p, "%s", line); // table lines are not wrapped
}

static int on_cycle(yoke_profile *p, int64_t cycle, int partial, void *arg)
{
	struct yk_watch *w = arg;
	const int64_t n = yoke_profile_table(p, w->rows, w->column, NULL, 0);
	char *text = n < 0 ? NULL : malloc((size_t)n + 1);
	if (!text)
		return n < 0 ? (int)n : yk_fail(YOKE_ENOMEM, "profile: out of memory for a table");
	yoke_profile_table(p, w->rows, w->column, text, (size_t)n + 1);
	yk_progress_print(w->progress, "profile, cycle %lld%s: %s/trace/cycle%lld.json",
			  (long long)cycle, partial ? ", incomplete" : "", w->folder,
			  (long long)cycle);
	print_lines(w->progress, text);
	free(text);
	return 0;
}

// Starts telemetry; the run continues without it on failure.
static void begin_telemetry(struct yk_watch *w)
{
	char path[4096], number[24] = "";
	const int rank = w->group ? yoke_group_rank(w->group) : 0;
	if (!(w->telemetry > 0))
		return;
	if (rank)
		snprintf(number, sizeof number, ".%d", rank);
	snprintf(path, sizeof path, "%s/telemetry%s.jsonl", w->folder, number);
	const struct yoke_recorder_options o = { .size = sizeof o,
						 .path = path,
						 .seconds = w->telemetry,
						 .run = w->folder,
						 .rank = rank,
						 .group = w->group };
	struct yk_error_aside *was = yk_error_aside();
	if (!(w->sampler = yoke_recorder_new(&o)))
		yk_warn("telemetry", "%s; the run continues without telemetry", yoke_error());
	yk_error_restore(was);
}

int yk_watch_begin(struct yk_watch *w, const char *folder, struct yk_progress *progress)
{
	char traces[4096];
	free(w->folder);
	if (!(w->folder = strdup(folder)))
		return yk_fail(YOKE_ENOMEM, "out of memory");
	w->progress = progress;
	begin_telemetry(w);
	if (!w->cycles)
		return 0;
	// measure before the run's clock starts
	if (yk_roof_enabled() && !yk_roof_of(yk_current()->device, yoke_f32))
		return yk_fail(YOKE_ENOMEM, "out of memory");
	snprintf(traces, sizeof traces, "%s/trace", folder);
	const struct yoke_profile_schedule *s = &w->schedule;
	const struct yoke_profile_options o = {
		.size = sizeof o,
		.flags = YOKE_PROFILE_IMPLEMENTATIONS | YOKE_PROFILE_SHAPES | YOKE_PROFILE_RANGES |
			 YOKE_PROFILE_MEMORY,
		.skip_first = s->skip_first,
		.wait = s->wait,
		.warmup = s->warmup,
		.active = s->active,
		.repeat = s->repeat,
		.cycle = on_cycle,
		.arg = w,
		.folder = traces,
	};
	return (w->profile = yoke_profile_new(&o)) ? 0 : yoke_error_code();
}

int yk_watch_follow(struct yk_watch *w, const struct yk_watch *leader, const char *folder,
		    const yoke_group *group)
{
	*w = (struct yk_watch){ .telemetry = leader->telemetry,
				.group = group,
				.follows = leader->telemetry > 0 };
	return (w->folder = strdup(folder)) ? 0 : yk_fail(YOKE_ENOMEM, "out of memory");
}

int yk_watch_step(struct yk_watch *w, int64_t step, double data_wait)
{
	if (w->follows && access(w->folder, F_OK) == 0) {
		w->follows = false;
		begin_telemetry(w);
	}
	if (w->sampler)
		yoke_recorder_progress(w->sampler, step, data_wait);
	return w->profile ? yoke_profile_step(w->profile) : 0;
}

int yk_watch_end(struct yk_watch *w)
{
	char path[4096];
	yoke_profile_free(w->profile);
	w->profile = NULL;
	yoke_recorder_free(w->sampler);
	w->sampler = NULL;
	if (!w->memory)
		return 0;
	snprintf(path, sizeof path, "%s/memory.json", w->folder);
	return yk_pool_snapshot(yk_current()->device->pool, path, "end");
}

void yk_watch_drop(struct yk_watch *w)
{
	yk_profile_drop(w->profile);
	w->profile = NULL;
	yoke_recorder_free(w->sampler);
	w->sampler = NULL;
}

void yk_watch_fini(struct yk_watch *w)
{
	yk_watch_drop(w);
	free(w->folder);
	w->folder = NULL;
}
