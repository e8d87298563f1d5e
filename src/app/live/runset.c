// SPDX-License-Identifier: Apache-2.0
// The set of runs that the dashboard shows: named runs, and all runs below named folders, which
// come and go. A run keeps its number as long as the dashboard runs.
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "live/answers.h"
#include "live/find.h"

#define SEARCH_S 2.
#define SEARCH_REST 20 // a search that takes long is repeated after that many times its duration
enum { FILES = 6 };    // open files of a run, about

static int number_of(const struct yk_live_state *l, const char *folder)
{
	for (int i = 0; i < l->n; i++)
		if (!strcmp(l->view[i]->folder, folder))
			return i;
	return -1;
}

// Adds a run; one that is there already, or was removed and came back, stays at its place.
static int add(void *arg, const char *folder, const char *name)
{
	struct yk_live_state *l = arg;
	const int known = number_of(l, folder);
	if (known >= 0) {
		l->run[known].gone = false;
		return 0;
	}
	if (l->n == YK_LIVE_MAX) {
		l->hidden++;
		return 0;
	}
	struct yk_view *v;
	int e = yk_view_open(folder, false, &v);
	if (e < 0)
		return e;
	char *copy = strdup(name);
	if (copy) {
		free(v->name);
		v->name = copy;
	}
	l->view[l->n] = v;
	l->run[l->n++] = (struct yk_live_run){ .state = v->state,
					       .generation = v->generation,
					       .lines = v->lines,
					       .found = -INFINITY };
	return 0;
}

static int search(struct yk_live_state *l)
{
	int e = 0;
	l->hidden = 0;
	const double from = yk_seconds();
	for (int i = 0; i < l->folders && e == 0; i++)
		e = yk_find_runs(l->folder[i], add, l);
	l->searched = yk_seconds();
	l->search_cost = l->searched - from;
	yk_view_names(l->n, l->view);
	return e;
}

// Allows as many open files as many runs need.
static void allow_files(void)
{
	struct rlimit r;
	const rlim_t want = YK_LIVE_MAX * FILES + 256;
	if (getrlimit(RLIMIT_NOFILE, &r) < 0 || r.rlim_cur >= want)
		return;
	r.rlim_cur = r.rlim_max < want ? r.rlim_max : want;
	setrlimit(RLIMIT_NOFILE, &r);
}

int yk_live_open(struct yk_live_state *l, int n, const char *const *folder)
{
	int e = 0;
	allow_files();
	for (int i = 0; i < n && e == 0; i++) {
		const int before = l->n;
		if (number_of(l, folder[i]) >= 0)
			continue;
		e = yk_find_runs(folder[i], add, l);
		if (e == 0 && l->n == before && !l->hidden)
			e = yk_fail(YOKE_ENOENT,
				    "'%s' is not a run and contains none: a run has a run.json or "
				    "a metrics.jsonl; "
				    "give the folder that was named by `out`, or one above it",
				    folder[i]);
		l->folder[l->folders++] = folder[i];
	}
	if (e == 0)
		e = search(l);
	return e;
}

void yk_live_close(struct yk_live_state *l)
{
	for (int i = 0; i < l->n; i++) {
		yk_view_close(l->view[i]);
		json_decref(l->run[i].findings);
	}
	for (int i = 0; i < YK_LIVE_KEPT; i++)
		free(l->plot[i].text);
}

bool yk_live_search(struct yk_live_state *l)
{
	if (yk_seconds() - l->searched < fmax(SEARCH_S, SEARCH_REST * l->search_cost))
		return false;
	const int before = l->n;
	bool changed = false;
	struct yk_error_aside *aside = yk_error_aside();
	for (int i = 0; i < l->n; i++) {
		const bool gone = !yk_view_is_run(l->view[i]->folder);
		changed |= gone != l->run[i].gone;
		l->run[i].gone = gone;
	}
	search(l); // a run that disappears meanwhile is found missing by the next search
	yoke_error_clear();
	yk_error_restore(aside);
	changed |= l->n != before;
	l->version += changed;
	return changed;
}

void yk_live_position(const struct yk_live_state *l, char to[YK_LIVE_ID])
{
	uint64_t hash = (uint64_t)l->n;
	char one[4096];
	for (int i = 0; i < l->n; i++) {
		yk_view_position(l->view[i], one, sizeof one);
		hash = yk_hash(one, strlen(one), hash);
	}
	snprintf(to, YK_LIVE_ID, "%016llx", (unsigned long long)hash);
}

// ---- choice ----

static double started(const struct yk_live_state *l, int i)
{
	const json_t *x = json_object_get(l->view[i]->about, "started");
	return json_is_number(x) ? json_number_value(x) : -INFINITY;
}

static void put(const struct yk_live_state *l, struct yk_live_choice *c, long run, int color)
{
	for (int i = 0; i < c->n; i++)
		if (c->run[i] == run)
			return;
	if (run < 0 || run >= l->n || l->run[run].gone || color >= YK_LIVE_DRAWN)
		return;
	c->run[c->n] = (int)run;
	c->color[c->n++] = color;
}

// Does run a come before run b among the runs that are drawn first?
static bool is_first(const struct yk_live_state *l, int a, int b)
{
	const bool live = l->view[a]->state == YK_VIEW_LIVE;
	return live != (l->view[b]->state == YK_VIEW_LIVE) ? live : started(l, a) > started(l, b);
}

// All runs if they are few, in their order; otherwise running ones and the newest.
static struct yk_live_choice usual(const struct yk_live_state *l)
{
	struct yk_live_choice c = { .n = 0 };
	int there = 0;
	for (int i = 0; i < l->n; i++)
		there += !l->run[i].gone;
	for (int i = 0; i < l->n; i++) {
		int before = 0;
		for (int k = 0; k < l->n && there > YK_LIVE_DRAWN; k++)
			before += !l->run[k].gone &&
				  (is_first(l, k, i) || (!is_first(l, i, k) && k < i));
		if (before < YK_LIVE_DRAWN)
			put(l, &c, i, c.n);
	}
	return c;
}

struct yk_live_choice yk_live_choose(const struct yk_live_state *l, const char *text)
{
	struct yk_live_choice c = { .n = 0 };
	if (!text)
		return usual(l);
	for (int color = 0; *text && color < YK_LIVE_DRAWN; color++) {
		char *end;
		const long run = strtol(text, &end, 10);
		if (end != text)
			put(l, &c, run, color);
		text = end + strcspn(end, ",");
		text += *text == ',';
	}
	return c;
}
