// SPDX-License-Identifier: Apache-2.0
// Times the matrix products that a training step was observed to compute.

#include "config.h"

#include "fit/tune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/number.h"
#include "conform/tune.h"
#include "graph/context.h"

enum { IMPLS = 32 };

struct result {
	char name[64];
	double nanoseconds; // 0: it gives wrong results
};

static int by_time(const void *a, const void *b)
{
	const struct result *x = a, *y = b;
	if (!x->nanoseconds || !y->nanoseconds)
		return !x->nanoseconds - !y->nanoseconds;
	return (x->nanoseconds > y->nanoseconds) - (x->nanoseconds < y->nanoseconds);
}

// Converts "try NAME", "wrong NAME WHY", "time NAME NANOSECONDS", "done" to "CLASS NAME=NANOSECONDS
// .. NAME=wrong".
static int line_of(char *text, const char *class_name, char *to, size_t cap)
{
	struct result r[IMPLS];
	int n = 0;
	char *rest = text, *line;
	while ((line = strsep(&rest, "\n")) && n < IMPLS) {
		r[n].nanoseconds = 0;
		if (yk_sscanf(line, "time %63s %lf", r[n].name, &r[n].nanoseconds) == 2 ||
		    sscanf(line, "wrong %63s", r[n].name) == 1)
			n++;
	}
	qsort(r, (size_t)n, sizeof *r, by_time);
	size_t at = (size_t)snprintf(to, cap, "%s", class_name);
	for (int i = 0; i < n && at < cap; i++)
		at += r[i].nanoseconds > 0 ?
			      (size_t)yk_snprintf(to + at, cap - at, " %s=%.0f", r[i].name,
						  r[i].nanoseconds) :
			      (size_t)snprintf(to + at, cap - at, " %s=wrong", r[i].name);
	return n;
}

static int measure(struct yk_device *d, const struct yk_tuning_class *c)
{
	char name[YK_TUNING_NAME], line[4096], *text = NULL;
	size_t bytes;
	FILE *f = open_memstream(&text, &bytes);
	int err = f ? yk_tune_class(d, c, "", f) : yk_fail(YOKE_ENOMEM, "benchmark: no memory");
	if (f)
		fclose(f);
	yk_tuning_class_name(c, name);
	if (!err && line_of(text, name, line, sizeof line)) {
		yk_log(YOKE_LOG_INFO, "fit", "benchmark: %s", line);
		err = yk_tuning_learn(d, line);
	}
	free(text);
	return err;
}

int yk_fit_tune(int (*try)(void *arg), void *arg)
{
	struct yk_tuning_watch *w = calloc(1, sizeof *w);
	const struct yoke_context *ctx = yk_current();
	if (!w || !ctx) {
		free(w);
		return ctx ? yk_fail(YOKE_ENOMEM, "benchmark: no memory") : yk_error_last();
	}
	w->device = ctx->device;
	yk_tuning_watch(w);
	int err = try(arg);
	yk_tuning_watch(NULL);
	for (size_t i = 0; i < w->n && !err; i++)
		if (!yk_tuning_learnt(ctx->device, &w->seen[i]))
			err = measure(ctx->device, &w->seen[i]);
	yk_log(YOKE_LOG_INFO, "fit", "benchmark: %zu classes of products", w->n);
	free(w);
	return err;
}
