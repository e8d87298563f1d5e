// SPDX-License-Identifier: Apache-2.0
// Extrapolates a run's end from the steps since its last start.
#include "config.h"

#include "live/pace.h"

#include <math.h>

static double started(const struct yk_view *v)
{
	const json_t *x = json_object_get(v->about, "started");
	double first = INFINITY;
	if (json_is_number(x))
		return json_number_value(x);
	for (int i = 0; i < v->tables; i++)
		if (v->table[i]->rows)
			first = fmin(first, yk_view_time(v->table[i], 0));
	return isfinite(first) ? first : NAN;
}

double yk_pace_newest(const struct yk_view *v)
{
	double newest = -INFINITY;
	for (int i = 0; i < v->tables; i++)
		if (v->table[i]->rows)
			newest = fmax(newest, yk_view_time(v->table[i], v->table[i]->rows - 1));
	return isfinite(newest) ? newest : NAN;
}

double yk_pace_elapsed(const struct yk_view *v, double now)
{
	const json_t *end = json_object_get(json_object_get(v->about, "ended"), "time");
	double until = yk_pace_newest(v);
	if (v->state == YK_VIEW_LIVE)
		until = now;
	else if (json_is_number(end))
		until = json_number_value(end);
	const double seconds = until - started(v);
	return seconds >= 0 ? seconds : NAN;
}

// The first row at or after a time; times increase.
static size_t row_at(const struct yk_view_table *t, double time)
{
	size_t low = 0, high = t->rows;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (yk_view_time(t, middle) < time)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

double yk_pace_remaining(const struct yk_view *v, double now)
{
	const struct yk_view_table *t = yk_view_table(v, "train");
	const json_t *steps = json_object_get(v->about, "steps");
	if (!t || t->rows < 2 || !json_is_integer(steps) || v->state != YK_VIEW_LIVE)
		return NAN;
	const size_t last = t->rows - 1, first = row_at(t, started(v));
	if (first >= last)
		return NAN;
	const double at = (double)yk_view_step(t, last), done = at - (double)yk_view_step(t, first),
		     took = yk_view_time(t, last) - yk_view_time(t, first),
		     rest = (double)json_integer_value(steps) - at;
	if (!(done > 0 && took >= 0 && rest >= 0)) // e.g. lines without a time
		return NAN;
	return fmax(0, rest * took / done - (now - yk_view_time(t, last)));
}
