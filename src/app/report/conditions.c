// SPDX-License-Identifier: Apache-2.0
// Rules that find problems of a run in its records, with evidence and a suggested change.
#include "config.h"

#include "report/conditions.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/finding.h"

#define LEAK_BYTES 16e6
#define LEAK_SHARE 0.02
#define LEAK_Z 3.3
#define SILENT_S 60.
#define SILENT_STEPS 20
#define DIVERGED 1.2    // last loss over the first
#define OVERFITTED 1.05 // last validation loss over the smallest

const char *const yk_condition_names[] = { "killed", "failed",  "memory", "slow",
					   "leak",   "low use", "loss",   "inconsistent",
					   "launch", "hang",    NULL };

// ---- leak ----

static void leak_of(struct yk_found *f, const char *stage, const char *column, const char *file)
{
	const struct yk_view_table *t = yk_view_table(f->v, stage);
	int c = yk_view_column(t, column), n = 0;
	const int64_t from = f->train && f->train->rows ? yk_view_step(f->train, f->first) : 0;
	double *x = t ? malloc(2 * t->rows * sizeof *x) : NULL, *y = x ? x + t->rows : NULL, z;
	size_t first = SIZE_MAX;
	for (size_t i = 0; x && c >= 0 && i < t->rows; i++) {
		double value = yk_view_value(f->v, t, c, i);
		if (yk_view_step(t, i) < from || isnan(value))
			continue;
		if (first == SIZE_MAX)
			first = i;
		x[n] = isnan(yk_view_time(t, i)) ? (double)yk_view_step(t, i) : yk_view_time(t, i);
		y[n++] = value;
	}
	double growth = n > 2 ? yk_trend(n, x, y, &z) * (x[n - 1] - x[0]) : 0, middle = 0;
	if (n > 2) {
		qsort(y, (size_t)n, sizeof *y, yk_found_by_value);
		middle = y[n / 2];
	}
	if (n > 2 && growth > LEAK_BYTES && growth > LEAK_SHARE * middle && z > LEAK_Z)
		json_array_append_new(
			yk_find(f, "leak",
				yk_finding_text("%s of %s grows by %.4g MB", column, stage,
						1e-6 * growth),
				yk_finding_text("free handles that each step keeps (yoke_keep "
						"without yoke_free), "
						"and check the program's own lists"),
				"", 0),
			yk_evidence(file, yk_found_line(t, first), yk_found_line(t, SIZE_MAX),
				    yk_finding_text(
					    "growth by the Theil-Sen slope: %.4g bytes of %.4g; "
					    "Mann-Kendall z %.3g",
					    growth, middle, z)));
	free(x);
}

static void leak(struct yk_found *f)
{
	double pending = yk_view_last(f->v, "memory", "pending_nodes");
	const struct yk_view_table *t = yk_view_table(f->v, "memory");
	int c = yk_view_column(t, "pending_nodes");
	leak_of(f, "memory", "pool_allocated", "metrics.jsonl");
	leak_of(f, "memory", "rss", "metrics.jsonl");
	leak_of(f, "telemetry", "rss", "telemetry.jsonl");
	if (c >= 0 && t->rows > 4 && pending > 1000 && pending >= 4 * (t->column[c].first + 1))
		json_array_append_new(
			yk_find(f, "leak",
				yk_finding_text("the graph grows: %.0f recorded operations are not "
						"evaluated",
						pending),
				yk_finding_text("evaluate the kept tensors, or free them"), "", 0),
			yk_evidence("metrics.jsonl", yk_found_line(t, 0),
				    yk_found_line(t, SIZE_MAX),
				    yk_finding_text("pending_nodes from %.0f to %.0f",
						    t->column[c].first, pending)));
}

// ---- loss ----

// Rows at the end of `train` without a loss: it is written only while it is finite.
static size_t rows_without(const struct yk_found *f, int column)
{
	size_t n = 0;
	while (n < f->train->rows &&
	       (column < 0 || isnan(yk_view_value(f->v, f->train, column, f->train->rows - 1 - n))))
		n++;
	return n;
}

static struct yk_advice calmer(const struct yk_view *v)
{
	struct yk_advice a = { "" };
	yk_advise(&a, true, "a smaller learning rate (lr=%s now)", yk_found_key(v, "lr"));
	yk_advise(&a, !strncmp(yk_found_key(v, "precision"), "fp16", 4), "precision=bf16-mixed");
	return a;
}

static void not_finite(struct yk_found *f)
{
	const int loss = yk_view_column(f->train, "loss"), lr = yk_view_column(f->train, "lr");
	const size_t rows = lr < 0 ? 0 : rows_without(f, loss), first = f->train->rows - rows;
	const struct yk_advice a = calmer(f->v);
	if (rows)
		json_array_append_new(
			yk_find(f, "loss",
				yk_finding_text("the loss is not finite from step %lld on",
						(long long)yk_view_step(f->train, first)),
				yk_advice_text(&a), "", 0),
			yk_evidence("metrics.jsonl", yk_found_line(f->train, first),
				    yk_found_line(f->train, SIZE_MAX),
				    yk_finding_text("lines without a loss")));
}

static void diverged(struct yk_found *f)
{
	const int c = yk_view_column(f->train, "loss");
	const struct yk_view_column *loss = c < 0 ? NULL : &f->train->column[c];
	const struct yk_advice a = calmer(f->v);
	if (loss && loss->count > YK_FOUND_QUARTER && loss->first > 0 &&
	    loss->last > DIVERGED * loss->first)
		json_array_append_new(
			yk_find(f, "loss",
				yk_finding_text("the loss grew from %.4g to %.4g", loss->first,
						loss->last),
				yk_advice_text(&a), "", 0),
			yk_evidence("metrics.jsonl", yk_found_line(f->train, 0),
				    yk_found_line(f->train, SIZE_MAX),
				    yk_finding_text("smallest loss: %.4g at step %lld", loss->min,
						    (long long)loss->min_step)));
}

// The validation loss rises while the training loss falls.
static void overfitted(struct yk_found *f)
{
	const struct yk_view *v = f->v;
	const struct yk_view_table *t = yk_view_table(v, "valid");
	const int c = yk_view_column(t, "val_loss"), d = yk_view_column(f->train, "loss");
	if (c < 0 || d < 0 || t->column[c].count < YK_FOUND_QUARTER ||
	    !(f->train->column[d].last < f->train->column[d].first))
		return;
	const struct yk_view_column *loss = &t->column[c];
	const double before = yk_view_value(v, t, c, t->rows - 2);
	if (!(loss->min > 0 && loss->last > OVERFITTED * loss->min && before > loss->min &&
	      before <= loss->last))
		return;
	struct yk_advice a = { "" };
	yk_advise(&a, true, "about %lld steps", (long long)loss->min_step);
	yk_advise(&a, yk_found_is(v, "dropout", "0"), "dropout=0.1");
	yk_advise(&a, true, "more data, or a smaller model");
	json_array_append_new(
		yk_find(f, "loss",
			yk_finding_text("overfitting: the validation loss rose from %.4g at step "
					"%lld to %.4g",
					loss->min, (long long)loss->min_step, loss->last),
			yk_advice_text(&a), "", 0),
		yk_evidence("metrics.jsonl", yk_found_line(t, 0), yk_found_line(t, SIZE_MAX),
			    yk_finding_text("val_loss of the last two validations: %.4g, %.4g",
					    before, loss->last)));
}

static void loss(struct yk_found *f)
{
	if (!f->train || !f->train->rows)
		return;
	not_finite(f);
	diverged(f);
	overfitted(f);
}

// ---- hang ----

static void hang(struct yk_found *f, double now)
{
	const struct yk_view *v = f->v;
	double newest = -INFINITY, each = NAN;
	if (v->state != YK_VIEW_LIVE)
		return;
	for (int i = 0; i < v->tables; i++)
		// telemetry continues while the run hangs
		if (v->table[i]->rows && strncmp(v->table[i]->stage, "telemetry", 9))
			newest = fmax(newest, yk_view_time(v->table[i], v->table[i]->rows - 1));
	if (f->train && f->train->rows > 1) {
		double *gap = malloc(f->train->rows * sizeof *gap);
		size_t n = 0;
		for (size_t i = 1; gap && i < f->train->rows; i++) {
			double steps =
				(double)(yk_view_step(f->train, i) - yk_view_step(f->train, i - 1));
			if (steps > 0)
				gap[n++] = (yk_view_time(f->train, i) -
					    yk_view_time(f->train, i - 1)) /
					   steps;
		}
		if (n) {
			qsort(gap, n, sizeof *gap, yk_found_by_value);
			each = gap[n / 2];
		}
		free(gap);
	}
	const double allowed = fmax(SILENT_S, isnan(each) ? 0 : SILENT_STEPS * each);
	if (!isfinite(newest) || now - newest <= allowed)
		return;
	json_t *list =
		yk_find(f, "hang",
			yk_finding_text("the process is running, but its last record is %.0f s old",
					now - newest),
			yk_finding_text("end it (SIGTERM twice) and continue with resume=1%s",
					yk_found_set(v, "sync") ?
						"" :
						"; YOKE_SYNC=1 shows which step does not end"),
			"", 0);
	json_array_append_new(
		list,
		yk_evidence("metrics.jsonl", yk_found_line(f->train, SIZE_MAX),
			    yk_found_line(f->train, SIZE_MAX),
			    yk_finding_text("%.0f s without a record; at most %.0f s are expected",
					    now - newest, allowed)));
	// among ranks, the one with the fewest collectives
	double min = INFINITY, max = -INFINITY;
	const char *last = NULL;
	// start time of the run; 0: unknown
	const double started = json_number_value(json_object_get(v->about, "started"));
	for (int i = 0; i < v->tables; i++) {
		double seq = yk_view_last(v, v->table[i]->stage, "collective.seq");
		if (v->table[i]->rows && yk_view_time(v->table[i], v->table[i]->rows - 1) < started)
			continue; // a rank of an earlier start
		if (seq < min)
			min = seq, last = v->table[i]->stage;
		if (seq > max)
			max = seq;
	}
	if (last && min < max)
		json_array_append_new(
			list,
			yk_evidence(
				"telemetry.jsonl", 0, 0,
				yk_finding_text("rank %s waits in collective %.0f, others in %.0f",
						last[9] ? last + 10 : "0", min, max)));
}

// ---- two runs ----

static bool same(const struct yk_view *a, const struct yk_view *b, const char *key)
{
	const json_t *x = json_object_get(a->about, key), *y = json_object_get(b->about, key);
	return x && y && json_equal(x, y);
}

static json_t *not_alike(const struct yk_view *a, const struct yk_view *b)
{
	static const char *const keys[] = { "driver", "version", "host", "settings" };
	char text[256] = "";
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (!same(a, b, keys[i]))
			snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s",
				 *text ? ", " : "", keys[i]);
	return yk_finding_text(*text ? "other differences: %s" : "nothing else differs", text);
}

static void inconsistent(struct yk_found *f, const struct yk_view *b)
{
	static const struct {
		const char *stage, *column;
	} rows[] = { { "train", "loss" }, { "valid", "val_loss" } };
	const struct yk_view *a = f->v;
	if (!same(a, b, "config") || !same(a, b, "data") || !same(a, b, "device"))
		return;
	for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
		const struct yk_view_table *s = yk_view_table(a, rows[k].stage),
					   *t = yk_view_table(b, rows[k].stage);
		int c = yk_view_column(s, rows[k].column), d = yk_view_column(t, rows[k].column);
		for (size_t i = 0, j = 0; c >= 0 && d >= 0 && i < s->rows && j < t->rows;) {
			int64_t p = yk_view_step(s, i), q = yk_view_step(t, j);
			double x = yk_view_value(a, s, c, i), y = yk_view_value(b, t, d, j);
			if (p == q && x != y && !(isnan(x) && isnan(y))) {
				json_t *list = yk_find(
					f, "inconsistent",
					yk_finding_text("%s differs from that of %s at step %lld",
							rows[k].column, b->name, (long long)p),
					yk_finding_text("the same instruction set (YOKE_CPU_ISA), "
							"driver and version"),
					"", 0);
				json_array_append_new(
					list,
					yk_evidence(
						"metrics.jsonl", yk_found_line(s, i),
						yk_found_line(s, i),
						yk_finding_text("%.9g here, %.9g there, line %u", x,
								y, (unsigned)yk_found_line(t, j))));
				json_array_append_new(
					list, yk_evidence("run.json", 0, 0, not_alike(a, b)));
				return;
			}
			i += p <= q;
			j += q <= p;
		}
	}
}

static void of_run(json_t *list, const struct yk_view *v, double now)
{
	struct yk_found f = {
		.list = list, .v = v, .train = yk_view_table(v, "train"), .wall = NAN
	};
	if (f.train && f.train->rows) {
		const int64_t from = yk_view_step(f.train, 0),
			      to = yk_view_step(f.train, f.train->rows - 1);
		while (f.first + 1 < f.train->rows &&
		       yk_view_step(f.train, f.first) < from + (to - from) / 10)
			f.first++;
		f.wall = yk_view_time(f.train, f.train->rows - 1) - yk_view_time(f.train, f.first);
	}
	yk_find_end(&f);
	yk_find_speed(&f);
	leak(&f);
	loss(&f);
	hang(&f, now);
}

// Sorts findings of the same condition by gain, the largest first.
static void sort(json_t *list)
{
	for (size_t i = 1; i < json_array_size(list); i++)
		for (size_t k = i; k > 0; k--) {
			json_t *a = json_array_get(list, k - 1), *b = json_array_get(list, k);
			if (strcmp(json_string_value(json_object_get(a, "condition")), "slow") ||
			    strcmp(json_string_value(json_object_get(b, "condition")), "slow") ||
			    json_number_value(json_object_get(a, "gain")) >=
				    json_number_value(json_object_get(b, "gain")))
				break;
			json_incref(b);
			json_array_remove(list, k);
			json_array_insert_new(list, k - 1, b);
		}
}

json_t *yk_conditions(struct yk_view *v, struct yk_view *other, double now)
{
	json_t *list = json_array();
	if (!list)
		return NULL;
	of_run(list, v, now);
	if (other) {
		struct yk_found f = { .list = list, .v = v };
		of_run(list, other, now);
		inconsistent(&f, other);
	}
	sort(list);
	return list;
}
