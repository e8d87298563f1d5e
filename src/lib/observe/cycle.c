// SPDX-License-Identifier: Apache-2.0
// Profiles that run in cycles of steps: which steps are recorded follows from the schedule and the
// step number.
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/sized.h"
#include "observe/cycle.h"
#include "observe/profile.h"

// ---- the schedule ----

static int check(const char *call, const struct yoke_profile_schedule *s)
{
	if (s->skip_first < 0 || s->wait < 0 || s->warmup < 0 || s->active < 0 || s->repeat < 0)
		return yk_fail(YOKE_EINVAL, "%s: a number of steps below 0", call);
	if (!s->active)
		return yk_fail(YOKE_EINVAL, "%s: a schedule without active steps records nothing; "
			"set active to 1 or more", call);
	return 0;
}

// The step's position in its cycle, and the number of that cycle; -1: profiling has ended or not
// started yet.
static int64_t place_of(const struct yoke_profile_schedule *s, int64_t step, int64_t *cycle)
{
	const int64_t length = s->wait + s->warmup + s->active;
	int64_t k = step - s->skip_first;
	*cycle = 0;
	if (k < 0)
		return -1;
	k += s->skip_first_wait ? s->wait : 0;
	*cycle = k / length;
	return s->repeat > 0 && *cycle >= s->repeat ? -1 : k % length;
}

static enum yoke_profile_state state_of(const struct yoke_profile_schedule *s, int64_t step)
{
	int64_t cycle, m = place_of(s, step, &cycle);
	return m < s->wait             ? YOKE_PROFILE_OFF :
	       m < s->wait + s->warmup ? YOKE_PROFILE_WARMUP :
					 YOKE_PROFILE_ACTIVE;
}

int yoke_profile_state(const struct yoke_profile_schedule *from, int64_t step)
{
	struct yoke_profile_schedule s = { 0 };
	int e = yk_sized_read(&s, sizeof s, from, "profile_state", "yoke_profile_schedule");
	if (e == 0)
		e = check("profile_state", &s);
	return e < 0 ? e : (int)state_of(&s, step);
}

// ---- a profile ----

static bool is_last(const yoke_profile *p)
{
	int64_t cycle, m = place_of(&p->schedule, p->step, &cycle);
	return m >= 0 && m == p->schedule.wait + p->schedule.warmup + p->schedule.active - 1;
}

int yk_profile_require_as(const yoke_profile *p, const char *call)
{
	const int err = yk_require_as(p, call, "profile");
	return err || !p->core->ctx->access.ended ?
		       err :
		       yk_fail(YOKE_ECONTEXT, "%s: the profile's context was freed",
			       call + strlen("yoke_"));
}

// Enters the state of the step that begins; the first active step resets the totals.
static void enter(yoke_profile *p, enum yoke_profile_state state, bool fresh)
{
	struct yoke_context *was = yoke_use(p->core->ctx);
	yk_profile_watch(p->core, state != YOKE_PROFILE_OFF);
	if (state == YOKE_PROFILE_ACTIVE && fresh)
		yk_profile_start(p->core);
	yoke_use(was);
	p->state = state;
}

yoke_profile *yoke_profile_new(const struct yoke_profile_options *from)
{
	struct yoke_profile_options o = { 0 };
	if (yk_sized_read(&o, sizeof o, from, "profile_new", "yoke_profile_options") < 0)
		return NULL;
	const struct yoke_profile_schedule s = { sizeof s, o.skip_first, o.wait,           o.warmup,
						 o.active, o.repeat,     o.skip_first_wait };
	if (check("profile_new", &s) < 0)
		return NULL;
	if (o.folder && yk_dir_make(o.folder) < 0)
		return NULL;
	yoke_profile *p = calloc(1, sizeof *p);
	char *folder = o.folder ? strdup(o.folder) : NULL;
	if (!p || (o.folder && !folder)) {
		free(p);
		free(folder);
		yk_fail(YOKE_ENOMEM, "profile: no memory");
		return NULL;
	}
	*p = (struct yoke_profile){ .options = o, .schedule = s, .folder = folder };
	if (!(p->core = yk_profile_with(true, o.flags))) {
		free(folder);
		free(p);
		return NULL;
	}
	if (o.max_bytes)
		yk_profile_bound(p->core, o.max_bytes);
	struct yoke_context *ctx = p->core->ctx;
	p->traced = ctx->observe.traced;
	if (o.flags & YOKE_PROFILE_SITES)
		ctx->observe.traced = true;
	enter(p, state_of(&s, 0), true);
	return p;
}

static int by_begin(const void *a, const void *b)
{
	const struct yk_traced *x = *(const struct yk_traced *const *)a,
			       *y = *(const struct yk_traced *const *)b;
	return (x->begin > y->begin) - (x->begin < y->begin);
}

// Adds the time during which no activity was in progress to the context's counters; the wall
// time is the host's.
static void count_idle(struct yk_profile *p, uint64_t wall)
{
	const struct yk_traced **order = malloc((p->trace.events + 1) * sizeof *order);
	uint64_t end = 0, busy = 0;
	size_t n = 0;
	if (!order)
		return;
	for (size_t i = 0; i < p->trace.events; i++)
		if (p->trace.event[i].stream != YK_HOST_ACTIVITY)
			order[n++] = &p->trace.event[i];
	if (n)
		qsort(order, n, sizeof *order, by_begin);
	for (size_t i = 0; i < n; i++) {
		const uint64_t from = order[i]->begin > end ? order[i]->begin : end,
			       to = order[i]->begin + order[i]->ns;
		busy += to > from ? to - from : 0;
		end = to > end ? to : end;
	}
	free(order);
	struct yk_counts *c = &p->ctx->counts;
	if (p->trace.dropped) // work that is not in the trace may have been in progress
		return;
	c->idle_ns += wall > busy ? wall - busy : 0;
	c->idle_known = true;
}

static int hand_over(yoke_profile *p, bool partial)
{
	char path[4096];
	struct yk_profile *core = p->core;
	struct yoke_context *was = yoke_use(core->ctx);
	yk_activity_ranges_end(core);
	const uint64_t wall = yk_nanoseconds() - core->started;
	p->seconds = 1e-9 * (double)wall;
	yk_profile_watch(core, false);
	yk_profile_settle(core);
	count_idle(core, wall);
	int e = 0;
	if (p->folder) {
		snprintf(path, sizeof path, "%s/cycle%lld.json", p->folder, (long long)p->cycle);
		e = yk_profile_trace_max(core, path, yk_profile_max_bytes(p), 0, NULL);
		if (e == 0 && core->trace.dropped)
			yk_warn("profile",
				"%s: %llu events are omitted, because the file would "
				"exceed %llu bytes",
				path, (unsigned long long)core->trace.dropped,
				(unsigned long long)yk_profile_max_bytes(p));
	}
	if (e == 0 && p->options.cycle)
		e = p->options.cycle(p, p->cycle, partial, p->options.arg);
	p->cycle++;
	yoke_use(was);
	return e;
}

int yoke_profile_step(yoke_profile *p)
{
	int e = yk_profile_require_as(p, __func__);
	if (e)
		return e;
	const bool last = p->state == YOKE_PROFILE_ACTIVE && is_last(p);
	if (last)
		e = hand_over(p, false);
	p->step++;
	const enum yoke_profile_state next = state_of(&p->schedule, p->step);
	enter(p, next, last || p->state != YOKE_PROFILE_ACTIVE);
	return e;
}

void yoke_profile_free(yoke_profile *p)
{
	if (!p)
		return;
	if (p->step == 0)
		yk_warn("profile", "it ends without a step: yoke_profile_step was never called");
	else if (p->state == YOKE_PROFILE_ACTIVE && p->core->ctx->access.ended)
		yk_warn("profile",
			"the last cycle is lost: its context was freed before the profile");
	else if (p->state == YOKE_PROFILE_ACTIVE && p->core->number && hand_over(p, true) < 0)
		yk_warn("profile", "the last cycle: %s", yoke_error());
	yk_profile_drop(p);
}

void yk_profile_drop(yoke_profile *p)
{
	if (!p)
		return;
	p->core->ctx->observe.traced = p->traced;
	yk_profile_free(p->core);
	free(p->folder);
	free(p);
}

void yoke_profile_prepare(void)
{
	yk_profile_prepare();
}

uint64_t yk_profile_max_bytes(const yoke_profile *p)
{
	return p->options.max_bytes ? p->options.max_bytes : yk_profile_trace_bytes();
}

int yoke_profile_trace(yoke_profile *p, const char *path)
{
	int e = yk_profile_require_as(p, __func__);
	if (!e)
		e = yk_require(path, "path");
	if (e)
		return e;
	yk_profile_settle(p->core);
	return yk_profile_trace_max(p->core, path, yk_profile_max_bytes(p), 0, NULL);
}
