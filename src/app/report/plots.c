// SPDX-License-Identifier: Apache-2.0
// Selects the plots that runs offer, and computes their curves.
#include "config.h"

#include "report/plots.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define STEP "a logged step"
#define TELEMETRY "a run with telemetry on a device that reports it"

#define COLUMN(in, name) { .stage = in, .column = name }

static const struct yk_plot_kind kinds[] = {
	{ .name = "loss",
	  .title = "Loss",
	  .y_label = "loss",
	  .why = STEP,
	  .column = { COLUMN("train", "loss"), COLUMN("valid", "val_loss") } },
	{ .name = "learning_rate",
	  .title = "Learning rate",
	  .y_label = "lr",
	  .why = STEP,
	  .exact = true,
	  .column = { COLUMN("train", "lr") } },
	{ .name = "grad_norm",
	  .title = "Gradient norm",
	  .y_label = "norm",
	  .why = STEP,
	  .column = { COLUMN("train", "grad_norm") } },
	{ .name = "tokens_per_s",
	  .title = "Tokens per second",
	  .y_label = "tokens/s",
	  .why = STEP,
	  .column = { COLUMN("train", "tokens_per_s") } },
	{ .name = "samples_per_s",
	  .title = "Samples per second",
	  .y_label = "samples/s",
	  .why = "a run of yoke_fit",
	  .column = { COLUMN("train", "samples_per_s") } },
	{ .name = "memory",
	  .title = "Memory",
	  .y_label = "bytes",
	  .unit = YK_UNIT_BYTES,
	  .why = STEP,
	  .exact = true,
	  .column = { COLUMN("train", "peak_bytes"), COLUMN("memory", "pool_reserved"),
		      COLUMN("memory", "rss") } },
	{ .name = "data_wait",
	  .title = "Total wait for data",
	  .y_label = "time",
	  .unit = YK_UNIT_SECONDS,
	  .why = STEP,
	  .exact = true,
	  .column = { COLUMN("train", "data_wait_s") } },
	{ .name = "loss_scale",
	  .title = "Loss scale",
	  .y_label = "scale",
	  .why = "precision=fp16-mixed",
	  .exact = true,
	  .column = { COLUMN("train", "scale") } },
	{ .name = "utilisation",
	  .title = "Utilisation",
	  .y_label = "share of the device",
	  .unit = YK_UNIT_SHARE,
	  .axis = YK_VIEW_BY_SECONDS,
	  .why = TELEMETRY,
	  .column = { COLUMN("telemetry", "devices.*.util"),
		      { "telemetry", "process_cpu", .per = "host.processors_allowed",
			.otherwise = true } } },
	{ .name = "resident",
	  .title = "Resident memory",
	  .y_label = "bytes",
	  .unit = YK_UNIT_BYTES,
	  .axis = YK_VIEW_BY_SECONDS,
	  .why = TELEMETRY,
	  .exact = true,
	  .column = { COLUMN("telemetry", "rss"), COLUMN("telemetry", "devices.*.mem_used") } },
	{ .name = "temperature",
	  .title = "Temperature",
	  .y_label = "°C",
	  .axis = YK_VIEW_BY_SECONDS,
	  .why = TELEMETRY,
	  .column = { COLUMN("telemetry", "devices.*.temp_c"),
		      { "telemetry", "host.temp_c", .otherwise = true } } },
	{ .name = "power",
	  .title = "Power",
	  .y_label = "W",
	  .axis = YK_VIEW_BY_SECONDS,
	  .why = TELEMETRY,
	  .column = { COLUMN("telemetry", "devices.*.power_w") } },
};
enum {
	KINDS = sizeof kinds / sizeof *kinds,
	COLUMNS = sizeof kinds->column / sizeof *kinds->column
};

// A column of a run that becomes a curve.
struct source {
	const struct yk_view_table *table;
	int column;
	double per;     // divides its values
	char label[64]; // "loss", or "device 2"
};

// The number in a name that matches a pattern with one '*'; -1: no match.
static long number_in(const char *name, const char *pattern)
{
	const char *star = strchr(pattern, '*');
	const size_t head = (size_t)(star - pattern),
		     digits = strncmp(name, pattern, head) ? 0 : strspn(name + head, "0123456789");
	return digits && digits < 6 && !strcmp(name + head + digits, star + 1) ?
		       strtol(name + head, NULL, 10) :
		       -1;
}

static bool is_stage(const struct yk_view_table *t, const char *stage)
{
	const size_t n = strlen(stage);
	return !strcmp(t->stage, stage) ||
	       (!strcmp(stage, "telemetry") && !strncmp(t->stage, "telemetry.", n + 1));
}

static void label(struct source *s, long device)
{
	const char *rank = strncmp(s->table->stage, "telemetry.", 10) ? "" : s->table->stage + 10;
	char of[16] = "", which[32] = "";
	if (*rank)
		snprintf(of, sizeof of, "rank %.8s", rank);
	if (device >= 0)
		snprintf(which, sizeof which, "device %ld", device);
	snprintf(s->label, sizeof s->label, "%s%s%.40s", of, *of ? " " : "",
		 device >= 0 ? which : s->table->column[s->column].name);
}

// The columns of a run that belong to a plot.
static int sources(const struct yk_view *v, const struct yk_plot_kind *k,
		   struct source to[YK_PLOT_CURVES])
{
	int n = 0;
	for (int i = 0; i < COLUMNS && k->column[i].stage; i++) {
		const struct yk_plot_column *p = &k->column[i];
		if (p->otherwise && n)
			continue;
		for (int t = 0; t < v->tables; t++) {
			const struct yk_view_table *table = v->table[t];
			const int per = p->per ? yk_view_column(table, p->per) : -1;
			for (int c = 0;
			     c < table->columns && is_stage(table, p->stage) && n < YK_PLOT_CURVES;
			     c++) {
				const char *name = table->column[c].name;
				const long device =
					strchr(p->column, '*') ? number_in(name, p->column) : -1;
				if (!table->column[c].count ||
				    (device < 0 && strcmp(name, p->column)))
					continue;
				to[n] = (struct source){ table, c,
							 per >= 0 ? table->column[per].last : 1,
							 "" };
				label(&to[n++], device);
			}
		}
	}
	return n;
}

static bool has_numbers(int n, struct yk_view *const *v, const struct yk_plot_kind *k)
{
	bool zeros;
	return yk_plot_values(n, v, k, &zeros) > 0;
}

uint64_t yk_plot_values(int n, struct yk_view *const *v, const struct yk_plot_kind *k, bool *zeros)
{
	struct source s[YK_PLOT_CURVES];
	uint64_t max = 0;
	*zeros = true;
	for (int i = 0; i < n; i++)
		for (int c = sources(v[i], k, s) - 1; c >= 0; c--) {
			const struct yk_view_column *column = &s[c].table->column[s[c].column];
			max = column->count > max ? column->count : max;
			*zeros &= column->min == 0 && column->max == 0;
		}
	return max;
}

static bool is_ours(const char *stage, const char *column)
{
	static const char *const known[] = { "tokens",    "skipped",     "perplexity",
					     "epoch",     "seconds",     "pool_allocated",
					     "pool_peak", "data_wait_s", "data_ready",
					     "throttled" };
	const size_t n = strlen(column);
	for (int i = 0; i < KINDS; i++)
		for (int k = 0; k < COLUMNS && kinds[i].column[k].stage; k++)
			if (!strcmp(kinds[i].column[k].stage, stage) &&
			    !strcmp(kinds[i].column[k].column, column))
				return true;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (!strcmp(known[i], column))
			return true;
	// the sums of each stage of reading data, which are read beside each other
	if (!strcmp(stage, "train") && !strncmp(column, "data_", 5) &&
	    !strcmp(column + n - 2, "_s"))
		return true;
	return !strncmp(stage, "telemetry", 9); // the predefined plots show the relevant telemetry
}

static void kind_of(const struct yk_view_table *t, int column, struct yk_plot_kind *to)
{
	*to = (struct yk_plot_kind){ .title = t->column[column].name,
				     .y_label = "",
				     .axis = YK_VIEW_BY_STEP,
				     .why = "",
				     .column = { { .stage = t->stage,
						   .column = t->column[column].name } } };
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
				if (is_ours(table->stage, table->column[c].name) ||
				    !table->column[c].count)
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

// The dashes of curves with this label, equal for all runs.
static int dash_of(struct yk_plot_result *to, const char *text)
{
	int i = 0;
	while (i < YK_SVG_DASHES - 1 && *to->dash_name[i] && strcmp(to->dash_name[i], text))
		i++;
	if (!*to->dash_name[i])
		snprintf(to->dash_name[i], sizeof *to->dash_name, "%s", text);
	return i;
}

// Appends a curve without points; of: number of runs in the plot.
static struct yk_curve *add_curve(struct yk_plot_result *to, int of, const struct yk_view *v,
				  const struct source *s, bool first)
{
	const int k = to->plot.curves++, dash = of > 1 ? dash_of(to, s->label) : 0;
	const bool valid = !strcmp(s->table->stage, "valid");
	if (of > 1)
		snprintf(to->name[k], sizeof *to->name, "%.60s%s%s", v->name, dash ? " " : "",
			 dash ? s->label : "");
	else
		snprintf(to->name[k], sizeof *to->name, "%s", s->label);
	to->curve[k] = (struct yk_curve){ .name = to->name[k],
					  .color = of > 1 || valid ? 0 : k,
					  .dash = of > 1 ? dash : valid,
					  .legend = of > 1 ? v->name : NULL,
					  .unlisted = of > 1 && !first };
	return &to->curve[k];
}

int yk_plot_make(int n, struct yk_view *const *v, const struct yk_plot_kind *k,
		 const struct yk_plot_options *ask, struct yk_plot_result *to)
{
	const struct yk_view_range range = { k->axis, ask->from, ask->to,
					     ask->points < 2 ? 2 : ask->points,
					     k->exact ? 0 : ask->smooth };
	struct source s[YK_PLOT_CURVES];
	*to = (struct yk_plot_result){
		.plot = { .name = k->name,
			  .title = k->title,
			  .y_label = k->y_label,
			  .y_unit = k->unit,
			  .target = NAN,
			  .x_label = k->axis == YK_VIEW_BY_STEP ? "step" : "seconds",
			  .x_unit = k->axis == YK_VIEW_BY_STEP ? YK_UNIT_NONE : YK_UNIT_SECONDS,
			  .y = ask->log ? YK_SCALE_LOG10 : YK_SCALE_LINEAR },
	};
	to->numbers = malloc(2 * YK_PLOT_CURVES * range.points * sizeof(double));
	if (!to->numbers)
		return yk_fail(YOKE_ENOMEM, "out of memory for a plot");
	for (int i = 0; i < n; i++) {
		const int columns = sources(v[i], k, s);
		bool first = !ask->plain;
		for (int c = 0; c < columns && to->plot.curves < YK_PLOT_CURVES; c++) {
			double *x = to->numbers + 2 * range.points * (size_t)to->plot.curves,
			       *y = x + range.points;
			const size_t got =
				yk_view_series(v[i], s[c].table, s[c].column, &range, x, y);
			if (!got)
				continue;
			for (size_t p = 0; p < got && s[c].per > 0; p++)
				y[p] /= s[c].per;
			struct yk_curve *curve = add_curve(to, n, v[i], &s[c], first);
			curve->color = n > 1 ? (ask->color ? ask->color[i] : i) : curve->color;
			curve->n = got;
			curve->x = x;
			curve->y = y;
			first = false;
		}
	}
	to->plot.curve = to->curve;
	for (int i = 0; i < YK_SVG_DASHES && *to->dash_name[i] && *to->dash_name[1]; i++)
		to->plot.dash_name[i] = to->dash_name[i];
	return 0;
}

void yk_plot_drop(struct yk_plot_result *m)
{
	free(m->numbers);
}
