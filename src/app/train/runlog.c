// SPDX-License-Identifier: Apache-2.0
// Writes the training log, training_log.tsv.
#include "config.h"

#include "train/runlog.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/number.h"
#include "base/shared.h"

#define NAME "training_log.tsv"

static const char header[] =
	"start\tseconds\tended\tdevice\tdata\ttokenizer\tparameters\tstep\tsteps\tepochs"
	"\t"
	"seconds_per_epoch\ttokens_per_s\tloss\tval_loss\tpeak_bytes\tmodel\terror\n";

static char *default_path(const char *model)
{
	char *path;
	const char *slash = strrchr(model, '/'); // absolute path
	int n = slash ? (int)(slash - model) : 0;
	return asprintf(&path, "%.*s/" NAME, n, model) < 0 ? NULL : path;
}

static bool open_locked(struct yk_runlog *r, const char *path, const char *model)
{
	r->start = time(NULL);
	r->began = yk_seconds();
	r->model = realpath(model, NULL);
	if (!r->model)
		r->model = strdup(model);
	if (r->model)
		r->path = path && *path ? strdup(path) : default_path(r->model);
	if (!r->model || !r->path)
		return false;
	bool had = yoke_error_code() != 0;
	r->fd = yk_file_append_open(r->path);
	if (r->fd >= 0)
		return true;
	r->fd = -1;
	yk_warn("train",
		"%s; this run gets no row in the training log (training_log=FILE selects another "
		"file)",
		had ? r->path : yoke_error());
	if (!had)
		yoke_error_clear();
	return true;
}

int yk_runlog_open(struct yk_runlog *r, const char *path, const char *model,
		   const char *device, const char *data, const char *tokenizer)
{
	pthread_mutex_lock(&r->lock);
	r->device = strdup(device);
	r->data = strdup(data);
	r->tokenizer = strdup(tokenizer);
	bool good = r->device && r->data && r->tokenizer && open_locked(r, path, model);
	pthread_mutex_unlock(&r->lock);
	return good ? 0 : yk_fail(YOKE_ENOMEM, "out of memory for a row of " NAME);
}

void yk_runlog_set(struct yk_runlog *r, const struct yk_run_state *s)
{
	pthread_mutex_lock(&r->lock);
	r->state = *s;
	pthread_mutex_unlock(&r->lock);
}

// ---- fields ----

static void add_text(FILE *to, const char *s)
{
	for (; *s; s++) {
		if (*s == '\t')
			fputs("\\t", to);
		else if (*s == '\n')
			fputs("\\n", to);
		else if (*s == '\\')
			fputs("\\\\", to);
		else if (iscntrl((unsigned char)*s))
			fprintf(to, "\\x%02x", (unsigned char)*s);
		else
			fputc(*s, to);
	}
	fputc('\t', to);
}

static void add_real(FILE *to, const char *fmt, double x)
{
	if (isfinite(x))
		fprintf(to, fmt, x);
	else
		fputc('-', to);
	fputc('\t', to);
}

static void add_row(FILE *to, const struct yk_runlog *r, const char *ended,
		    const char *error)
{
	const struct yk_run_state *s = &r->state;
	char start[32] = "-";
	struct tm tm;
	if (gmtime_r(&r->start, &tm))
		strftime(start, sizeof start, "%Y-%m-%dT%H:%M:%SZ", &tm);
	yk_fprintf(to, "%s\t%.3f\t", start, yk_seconds() - r->began);
	add_text(to, ended);
	add_text(to, r->device);
	add_text(to, r->data);
	add_text(to, r->tokenizer);
	fprintf(to, "%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t", s->parameters, s->step,
		s->steps);
	add_real(to, "%.4g", s->epochs);
	add_real(to, "%.4g", s->epochs > 0 ? s->busy / s->epochs : NAN);
	add_real(to, "%.6g", s->tokens_per_s);
	add_real(to, "%.6f", s->loss);
	add_real(to, "%.6f", s->val_loss);
	fprintf(to, "%" PRIu64 "\t", s->peak_bytes);
	add_text(to, r->model);
	add_text(to, error ? error : "-");
}

void yk_runlog_device(struct yk_runlog *r, const char *device)
{
	char *both;
	if (!r->device || asprintf(&both, "%s,%s", r->device, device) < 0)
		return; // the row contains only the first device
	pthread_mutex_lock(&r->lock);
	free(r->device);
	r->device = both;
	pthread_mutex_unlock(&r->lock);
}

void yk_runlog_end(struct yk_runlog *r, const char *ended, const char *error)
{
	char *row = NULL;
	size_t n = 0;
	pthread_mutex_lock(&r->lock);
	FILE *f = r->written || r->fd < 0 ? NULL : open_memstream(&row, &n);
	r->written = true;
	if (f) {
		add_row(f, r, ended, error);
		if (fclose(f) == 0 && n > 0) {
			bool had = yoke_error_code() != 0;
			row[n - 1] = '\n'; // replaces the last tab
			if (yk_file_append(r->fd, r->path, header, row) < 0) {
				yk_warn("train", "%s: no row for this run",
					had ? r->path : yoke_error());
				if (!had)
					yoke_error_clear();
			}
		}
		free(row);
	}
	pthread_mutex_unlock(&r->lock);
}

void yk_runlog_close(struct yk_runlog *r)
{
	if (r->fd >= 0)
		close(r->fd);
	free(r->path);
	free(r->device);
	free(r->data);
	free(r->tokenizer);
	free(r->model);
	*r = (struct yk_runlog)YK_RUNLOG_INIT;
}
