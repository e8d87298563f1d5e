// SPDX-License-Identifier: Apache-2.0
// yoke tune: times the implementations of classes of ops on a device. Each class runs in a child
// process, which is killed if it hangs. Results are saved after each class, so that the command can
// be interrupted and continued at any time.
#include "config.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/number.h"
#include "base/param.h"
#include "base/system.h"
#include "conform/tune.h"
#include "device/child.h"
#include "tool/tool.h"
#include "tool/tune_model.h"

YK_PARAM(limit_setting, "tune.limit", YK_INT, "180",
	 "seconds after which the measurement of a class of ops, including the compilation of its "
	 "kernels, is ended as hung",
	 .min = 1, .max = 1000000);

enum { IMPLS = 32, WORD = 64 };
#define SAY_EVERY 30. // interval of log lines, in seconds, if the output is not a terminal
#define NEAR 1.03 // the rules' choice is kept within this factor of the best time

// Result for one implementation.
struct result {
	char name[WORD];
	double nanoseconds;
	int place;       // index among the timed implementations, in the order of the rules
	const char *bad; // "wrong", "fails", or NULL
};

struct results {
	struct result at[IMPLS];
	int n, timed;
};

static struct result *result_of(struct results *r, const char *name)
{
	for (int i = 0; i < r->n; i++)
		if (!strcmp(r->at[i].name, name))
			return &r->at[i];
	if (r->n == IMPLS)
		return NULL;
	struct result *x = &r->at[r->n++];
	*x = (struct result){ .bad = NULL };
	snprintf(x->name, sizeof x->name, "%s", name);
	return x;
}

// ---- child process ----

// Parses the output of a child; false: it did not finish, and `last` is the implementation that it
// was testing.
static bool parse_answer(struct results *r, char *answer, char last[WORD])
{
	char name[WORD], *rest = answer, *line;

	last[0] = '\0';
	while ((line = strsep(&rest, "\n"))) {
		int n = 0;
		double t;
		struct result *x;
		if (!strcmp(line, "done"))
			return true;
		if (sscanf(line, "try %63s", name) == 1 && result_of(r, name)) {
			snprintf(last, WORD, "%s", name);
		} else if (sscanf(line, "wrong %63s %n", name, &n) == 1 && n &&
			   (x = result_of(r, name))) {
			x->bad = "wrong";
			fprintf(stderr, "yoke tune: %s gives wrong results: %s\n", name, line + n);
		} else if (sscanf(line, "time %63s %lf", name, &t) == 2 && t >= 1 && t < 1e18 &&
			   (x = result_of(r, name))) {
			x->nanoseconds = t;
			x->place = r->timed++;
		}
	}
	return false;
}

// Whole seconds until then, at least 0.
static int64_t seconds_left(double until)
{
	double left = until - yk_seconds();

	return left <= 0 ? 0 : left < INT32_MAX ? (int64_t)ceil(left) : INT32_MAX;
}

// Measures a class in a child process. After each crash or hang, another child continues without
// the implementation that caused it. Returns 1 if the time budget ended without a result.
static int measure(const struct yk_device *d, const char *name, double until, struct results *r)
{
	char path[PATH_MAX], answer[16384], outcome[400], last[WORD], without[IMPLS * WORD] = "";
	const char *const argv[] = { path,     "tune",      d->id,   "--only",
				     name,     "--without", without, NULL };

	*r = (struct results){ .n = 0 };
	if (!realpath(yk_program(), path))
		return yk_fail(YOKE_EIO,
			       "cannot find the path of this program, which a child process runs");
	for (int tries = 0; tries <= IMPLS; tries++) {
		int64_t limit = yk_param_int(&limit_setting), left = seconds_left(until);
		if (!left)
			return 1;
		int answered = yk_child_watch(argv, left < limit ? left : limit, limit_setting.name,
					      answer, sizeof answer, outcome, sizeof outcome);
		if (answered < 0)
			return yk_fail(YOKE_EIO, "cannot start a child process: %s", outcome);
		if (parse_answer(r, answer, last))
			return 0;
		if (left <= limit && !seconds_left(until))
			return 1;
		struct result *x = *last ? result_of(r, last) : NULL;
		if (!answered || !x || x->bad)
			return yk_fail(YOKE_EDEVICE,
				       "measuring %s %s; see `yoke tune %s --only %s`", name,
				       outcome, d->id, name);
		x->bad = "fails";
		fprintf(stderr, "yoke tune: %s %s\n", last, outcome);
		size_t n = strlen(without);
		snprintf(without + n, sizeof without - n, "%s%s", n ? "," : "", last);
	}
	return yk_fail(YOKE_EDEVICE, "the measurement of %s does not end", name);
}

// ---- results ----

static bool is_before(const struct result *a, const struct result *b, double min)
{
	bool a_near = a->nanoseconds <= NEAR * min, b_near = b->nanoseconds <= NEAR * min;

	if (a->bad || b->bad)
		return !a->bad;
	if (a_near && b_near)
		return a->place < b->place;
	return a->nanoseconds < b->nanoseconds;
}

// Sorts: the chosen implementation first, then the others by time, then those that fail.
static void sort(struct results *r)
{
	double min = INFINITY;

	for (int i = 0; i < r->n; i++)
		if (!r->at[i].bad && r->at[i].nanoseconds < min)
			min = r->at[i].nanoseconds;
	for (int i = 1; i < r->n; i++)
		for (int j = i; j && is_before(&r->at[j], &r->at[j - 1], min); j--) {
			struct result t = r->at[j];
			r->at[j] = r->at[j - 1];
			r->at[j - 1] = t;
		}
}

static int keep(struct yk_device *d, struct yk_tuning *t, const char *name,
		const struct results *r)
{
	char line[IMPLS * (WORD + 32)];
	size_t n = (size_t)snprintf(line, sizeof line, "%s", name);

	for (int i = 0; i < r->n; i++)
		if (r->at[i].bad)
			n += (size_t)snprintf(line + n, sizeof line - n, " %s=%s",
					      r->at[i].name, r->at[i].bad);
		else
			n += (size_t)snprintf(line + n, sizeof line - n, " %s=%.0f",
					      r->at[i].name, r->at[i].nanoseconds);
	int err = yk_tuning_add(t, line);
	return err ? err : yk_tuning_write(d, t);
}

static void show(const char *name, const struct results *r)
{
	printf("%-38s", name);
	for (int i = 0; i < r->n; i++)
		if (r->at[i].bad)
			printf("  %s %s", r->at[i].name, r->at[i].bad);
		else
			printf("  %s %.*f ms", r->at[i].name, r->at[i].nanoseconds < 1e5 ? 6 : 3,
			       r->at[i].nanoseconds * 1e-6);
	printf("\n");
	fflush(stdout);
}

// ---- the command ----

// The classes to measure: they have several implementations, are used by the model if one is given,
// and were not measured before.
struct todo {
	struct yk_tuning_class c[YK_TUNING_CLASSES];
	size_t n, before;
	bool cut; // the time budget ended before all classes of the model were known
};

static int list(struct yk_device *d, const char *model, double until, const struct yk_tuning *t,
		struct todo *to)
{
	static struct yk_tuning_class all[YK_TUNING_CLASSES];
	static struct yk_tuning_watch used;
	size_t n = yk_tuning_classes(all);
	char name[YK_TUNING_NAME];
	int err = 0;

	if (model) {
		printf("%s: collecting the matrix products of %s; this compiles kernels\n", d->id,
		       model);
		fflush(stdout);
		err = yk_tune_model(d, model, until, &used);
	}
	if (err < 0)
		return err;
	to->cut = err > 0;
	for (size_t i = 0; i < n; i++) {
		if (model && !yk_tuning_watched(&used, &all[i]))
			continue;
		yk_tuning_class_name(&all[i], name);
		if (yk_tuning_find(t, name))
			to->before++;
		else if (yk_tune_offered(d, &all[i]) >= 2)
			to->c[to->n++] = all[i];
	}
	return 0;
}

// Relative cost of measuring a class: a constant for compilation and checks, plus its arithmetic.
static double cost(const struct yk_tuning_class *c)
{
	return 1 + 2e-9 * (double)c->m * (double)c->n * (double)c->k * (double)c->batch;
}

// Estimates the seconds for the classes from i on, based on the time of earlier classes; initially
// 1 s per unit of cost.
static double seconds_to_go(const struct todo *t, size_t i, double elapsed)
{
	double done = 0, rest = 0;

	for (size_t k = 0; k < t->n; k++)
		*(k < i ? &done : &rest) += cost(&t->c[k]);
	return done > 0 ? elapsed / done * rest : rest;
}

static const char *duration(double s, char to[32])
{
	snprintf(to, 32, s < 90 ? "%.0f s" : "%.0f min", s < 90 ? ceil(s) : s / 60);
	return to;
}

// Prints the progress on stderr: at intervals, or in place on a terminal. *last_output: time of the
// last output.
static void show_progress(const struct todo *t, size_t i, double elapsed, int64_t left,
			  double *last_output)
{
	char classes[64];
	double s = seconds_to_go(t, i, elapsed);
	bool terminal = isatty(STDERR_FILENO);
	char text[32];

	if (i == t->n || (!terminal && elapsed - *last_output < SAY_EVERY))
		return;
	*last_output = elapsed;
	fprintf(stderr, "%s%zu of %s, about %s left%s%s", terminal ? "\r" : "", i,
		yk_counted(classes, (long long)t->n, "class"),
		duration(left < s ? (double)left : s, text),
		left < s ? ", which is too short for all" : "", terminal ? "\033[K" : "\n");
}

static void clear_line(void)
{
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
}

// Prints the classes to measure, or why there are none.
static void show_todo(const struct yk_device *d, const char *model, int64_t left,
		      const struct todo *t, const char *file)
{
	char classes[64];
	const char *of = model ? " of " : "", *whose = model ? model : "";
	double s = seconds_to_go(t, 0, 0);
	char text[2][32];

	if (t->cut)
		printf("%s: the time limit expired before all matrix products of %s were found\n",
		       d->id, model);
	else if (!t->n && t->before)
		printf("%s: %s%s%s%s %s measured earlier; nothing to measure; %s\n", d->id,
		       t->before == 1 ? "" : "all ",
		       yk_counted(classes, (long long)t->before, "class"), of, whose,
		       t->before == 1 ? "was" : "were", file);
	else if (!t->n)
		printf("%s has only one implementation of each class%s%s; nothing to measure\n",
		       d->id, of, whose);
	else
		printf("%s: %s to measure%s%s, about %s%s%s\n", d->id,
		       yk_counted(classes, (long long)t->n, "class"), of, whose,
		       duration(s, text[0]), (double)left < s ? ", limited to " : "",
		       (double)left < s ? duration((double)left, text[1]) : "");
	fflush(stdout);
}

static int tune(struct yk_device *d, const char *model, uint64_t budget)
{
	char classes[64];
	static struct todo todo;
	size_t now = 0, i;
	struct yk_tuning t;
	char text[32];
	double began = yk_seconds(), until = began + (double)budget, last_output = 0, elapsed = 0;

	yk_tuning_read(d, &t);
	int err = list(d, model, until, &t, &todo);
	if (!err)
		show_todo(d, model, seconds_left(until), &todo, t.path);
	double first = yk_seconds();
	for (i = 0; i < todo.n && !err; i++) {
		char name[YK_TUNING_NAME];
		struct results r;
		show_progress(&todo, i, elapsed, seconds_left(until), &last_output);
		yk_tuning_class_name(&todo.c[i], name);
		err = measure(d, name, until, &r);
		elapsed = yk_seconds() - first;
		clear_line();
		if (err)
			break;
		sort(&r);
		show(name, &r);
		if (r.n) // at least one implementation is known
			err = keep(d, &t, name, &r);
		now += !err;
	}
	if (err >= 0 && todo.n)
		printf("%s: %s measured now, %zu earlier, %zu left; %s; %s\n", d->id,
		       yk_counted(classes, (long long)now, "class"), todo.before, todo.n - i,
		       duration(yk_seconds() - began, text), t.path);
	yk_tuning_fini(&t);
	return err < 0 ? err : 0;
}

// Measures one class in this process, as a child does. It sets its own time limit in case no parent
// watches it.
static int only(struct yk_device *d, const char *name, const char *without)
{
	struct yk_tuning_class c;

	if (!yk_tuning_class_parse(name, &c))
		return yk_usage("tune",
				"'%s' is not a class; a class is "
				"contract.DTYPE.TRANSPOSITIONS.MxNxKxBATCH, for example "
				"contract.f32.nn.384x384x384x1",
				name);
	alarm((unsigned)yk_param_int(&limit_setting) + 5);
	return yk_tune_class(d, &c, without, stdout) < 0 ? yk_failed("tune") :
							     YK_DONE;
}

// Parses e.g. "0.5" minutes; the result is in seconds, rounded up.
static int minutes(const char *text, uint64_t *to)
{
	char *end;
	double x = strtod(text, &end);

	if (end == text || *end || !(x > 0 && x < 1e9))
		return -1;
	*to = (uint64_t)ceil(60 * x);
	return 0;
}

int yk_cmd_tune(int argc, char **argv)
{
	const char *name = NULL, *class_name = NULL, *without = "", *model = NULL, *value;
	uint64_t budget = UINT64_MAX;

	if (argc > 1 && !strcmp(argv[1], "ranks"))
		return yk_tune_ranks(argc - 1, argv + 1);
	for (int i = 1; i < argc; i++) {
		const char *twice = yk_option_twice(argv, i);
		if (twice)
			return yk_usage("tune", "argument '%s' repeats '%s'; give it once", argv[i],
					twice);
		if ((value = yk_option("--budget", argc, argv, &i))) {
			if (yk_option_number(value, &budget) < 0)
				return yk_usage("tune",
						"--budget must be a number of seconds, got '%s'",
						value);
		} else if ((value = yk_option("minutes", argc, argv, &i))) {
			if (minutes(value, &budget) < 0)
				return yk_usage("tune",
						"minutes must be a number above 0, got '%s'",
						value);
		} else if ((value = yk_option("model", argc, argv, &i))) {
			if (!*value)
				return yk_usage("tune", "model= needs the folder of a model");
			model = value;
		} else if ((value = yk_option("--only", argc, argv, &i))) {
			class_name = value;
		} else if ((value = yk_option("--without", argc, argv, &i))) {
			without = value;
		} else if (argv[i][0] == '-' || strchr(argv[i], '=')) {
			return yk_usage(
				"tune",
				"unknown option '%s'; the options are model=, minutes=, --budget, "
				"--only and --without",
				argv[i]);
		} else if (name) {
			return yk_usage("tune", "two devices, '%s' and '%s'; name one", name,
					argv[i]);
		} else {
			name = argv[i];
		}
	}
	struct yk_device *d = yk_option_device(name);
	if (!d)
		return yk_failed("tune");
	if (class_name)
		return only(d, class_name, without);
	return tune(d, model, budget) < 0 ? yk_failed("tune") : YK_DONE;
}
