// SPDX-License-Identifier: Apache-2.0
// Selects the plots that runs offer, and computes their curves.
#include "config.h"

#include "report/plots.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define TELEMETRY "a run with telemetry on a device that reports it"

static const struct yk_plot_kind kinds[] = {
	{ "loss", "Loss", "loss", YK_VIEW_BY_STEP, "a logged step", { { "train", "loss" }, { "valid", "val_loss" } } },
	{ "learning_rate", "Learning rate", "lr", YK_VIEW_BY_STEP, "a logged step", { { "train", "lr" } } },
	{ "grad_norm", "Gradient norm", "norm", YK_VIEW_BY_STEP, "a logged step", { { "train", "grad_norm" } } },
	{ "tokens_per_s", "Tokens per second", "tokens/s", YK_VIEW_BY_STEP, "a logged step",
	  { { "train", "tokens_per_s" } } },
	{ "memory", "Memory", "bytes", YK_VIEW_BY_STEP, "a logged step",
	  { { "train", "peak_bytes" }, { "memory", "pool_reserved" }, { "memory", "rss" } } },
	{ "data_wait", "Total wait for data", "seconds", YK_VIEW_BY_STEP, "a logged step",
	  { { "train", "data_wait_s" } } },
	{ "loss_scale", "Loss scale", "scale", YK_VIEW_BY_STEP, "precision=fp16-mixed", { { "train", "scale" } } },
	{ "utilisation", "Utilisation", "share", YK_VIEW_BY_SECONDS, TELEMETRY,
	  { { "telemetry", "devices.0.util" }, { "telemetry", "devices.1.util" }, { "telemetry", "cpu" } } },
	{ "resident", "Resident memory", "bytes", YK_VIEW_BY_SECONDS, TELEMETRY,
	  { { "telemetry", "rss" }, { "telemetry", "devices.0.mem_used" }, { "telemetry", "devices.1.mem_used" } } },
	{ "temperature", "Temperature", "°C", YK_VIEW_BY_SECONDS, TELEMETRY,
	  { { "telemetry", "devices.0.temp_c" }, { "telemetry", "devices.1.temp_c" } } },
	{ "power", "Power", "W", YK_VIEW_BY_SECONDS, TELEMETRY,
	  { { "telemetry", "devices.0.power_w" }, { "telemetry", "devices.1.power_w" } } },
};
enum { KINDS = sizeof kinds / sizeof *kinds, COLUMNS = 4 };

static bool has_column(int n, struct yk_view *const *v, const struct yk_plot_column *c)
{
	for (int i = 0; i < n; i++) {
		const struct yk_view_table *t = yk_view_table(v[i], c->stage);
		int at = yk_view_column(t, c->column);
		if (at >= 0 && t->column[at].count)
			return true;
	}
	return false;
}

static bool has_numbers(int n, struct yk_view *const *v, const struct yk_plot_kind *k)
{
	for (int i = 0; i < COLUMNS && k->column[i].stage; i++)
		if (has_column(n, v, &k->column[i]))
			return true;
	return false;
}

static bool is_ours(const char *stage, const char *column)
{
	static const char *const known[] = { "tokens", "skipped", "perplexity", "epoch", "seconds", "pool_allocated",
					     "pool_peak", "data_wait_s", "throttled" };
	for (int i = 0; i < KINDS; i++)
		for (int k = 0; k < COLUMNS && kinds[i].column[k].stage; k++)
			if (!strcmp(kinds[i].column[k].stage, stage) && !strcmp(kinds[i].column[k].column, column))
				return true;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (!strcmp(known[i], column))
			return true;
	return !strncmp(stage, "telemetry", 9); // the predefined plots show the relevant telemetry
}

static void kind_of(const struct yk_view_table *t, int column, struct yk_plot_kind *to)
{
	*to = (struct yk_plot_kind){ .title = t->column[column].name, .y_label = "", .axis = YK_VIEW_BY_STEP,
				     .why = "", .column = { { t->stage, t->column[column].name } } };
	snprintf(to->name, sizeof to->name, "%.30s.%s", t->stage, t->column[column].name);
}

int yk_plot_kinds(int n, struct yk_view *const *v, bool all, struct yk_plot_kind to[YK_PLOT_MAX])
{
	int found = 0;
	for (int i = 0; i < KINDS; i++)
		if (all || has_numbers(n, v, &kinds[i]))
			to[found++] = kinds[i];
	for (int i = 0; i < n; i++)
		for (int t = 0; t < v[i]->tables; t++)
			for (int c = 0; c < v[i]->table[t]->columns && found < YK_PLOT_MAX; c++) {
				const struct yk_view_table *table = v[i]->table[t];
				if (is_ours(table->stage, table->column[c].name) || !table->column[c].count)
					continue;
				int k = 0;
				kind_of(table, c, &to[found]);
				while (strcmp(to[k].name, to[found].name))
					k++;
				found += k == found;
			}
	return found;
}

bool yk_plot_find(int n, struct yk_view *const *v, const char *name, struct yk_plot_kind *to)
{
	struct yk_plot_kind list[YK_PLOT_MAX];
	int found = yk_plot_kinds(n, v, true, list);
	for (int i = 0; i < found; i++)
		if (!strcmp(list[i].name, name)) {
			*to = list[i];
			return true;
		}
	return false;
}

// Exponential running mean with bias correction for the start (Kingma & Ba 2015).
static void smooth(double share, size_t n, double *y)
{
	double mean = 0, weight = 0;
	for (size_t i = 0; i < n; i++) {
		mean = share * mean + (1 - share) * y[i];
		weight = share * weight + (1 - share);
		y[i] = mean / weight;
	}
}

int yk_plot_make(int n, struct yk_view *const *v, const struct yk_plot_kind *k, const struct yk_plot_ask *ask,
		 struct yk_plot_made *to)
{
	const size_t points = ask->points < 2 ? 2 : ask->points;
	*to = (struct yk_plot_made){
		.plot = { .name = k->name, .title = k->title, .y_label = k->y_label, .target = NAN,
			  .x_label = k->axis == YK_VIEW_BY_STEP ? "step" : "seconds",
			  .y = ask->log ? YK_SCALE_LOG10 : YK_SCALE_LINEAR },
	};
	to->numbers = malloc(2 * YK_PLOT_CURVES * points * sizeof(double));
	if (!to->numbers)
		return yk_fail(YOKE_ENOMEM, "out of memory for a plot");
	int made = 0;
	for (int i = 0; i < n; i++)
		for (int c = 0; c < COLUMNS && k->column[c].stage && made < YK_PLOT_CURVES; c++) {
			const struct yk_view_table *t = yk_view_table(v[i], k->column[c].stage);
			double *x = to->numbers + 2 * points * (size_t)made, *y = x + points;
			size_t got = yk_view_series(v[i], t, yk_view_column(t, k->column[c].column), k->axis,
						    ask->from, ask->to, points, x, y);
			if (!got)
				continue;
			if (ask->smooth > 0)
				smooth(ask->smooth, got, y);
			snprintf(to->name[made], sizeof *to->name, "%.60s%s%s", n > 1 ? v[i]->name : "",
				 n > 1 && c ? " " : "", n > 1 && !c ? "" : k->column[c].column);
			to->curve[made] = (struct yk_curve){ .name = to->name[made], .color = n > 1 ? i + 3 * c : c,
							     .n = got, .x = x, .y = y };
			made++;
		}
	to->plot.curves = made;
	to->plot.curve = to->curve;
	return 0;
}

void yk_plot_drop(struct yk_plot_made *m)
{
	free(m->numbers);
}
