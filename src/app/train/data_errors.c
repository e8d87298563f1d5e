// SPDX-License-Identifier: Apache-2.0
// Writes skipped samples to data_errors.jsonl.
#include "config.h"

#include "train/data_errors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/scan.h"
#include "base/shared.h"

#define LIMIT ((uint64_t)1 << 32) // max bytes of an existing file to read

// Bytes of the leading lines whose step is at most `step`; a killed run may leave an incomplete
// last line.
static size_t kept(const char *text, size_t bytes, const char *path, int64_t step)
{
	size_t at = 0;
	while (at < bytes) {
		const char *end = memchr(text + at, '\n', bytes - at);
		const size_t length = end ? (size_t)(end - text) - at : 0;
		json_t *line = end ? yk_json_parse(text + at, length, path) : NULL;
		int64_t of;
		const bool good = line && yk_json_int(line, path, "step", 0, INT64_MAX, &of) == 0 &&
				  of <= step;
		json_decref(line);
		if (!good)
			break;
		at += length + 1;
	}
	yoke_error_clear();
	return at;
}

int yk_data_errors_open(struct yk_data_errors *d, const char *folder, int64_t step)
{
	char *text;
	size_t bytes;
	*d = (struct yk_data_errors){ .file = -1 };
	if (asprintf(&d->path, "%s/data_errors.jsonl", folder) < 0) {
		d->path = NULL;
		return yk_fail(YOKE_ENOMEM, "%s: out of memory for a path", folder);
	}
	int e = yk_file_read(d->path, LIMIT, &text, &bytes);
	if (e == YOKE_ENOENT) {
		yoke_error_clear();
		return 0;
	}
	if (e < 0)
		return e;
	const size_t n = kept(text, bytes, d->path, step);
	e = n < bytes ? yk_file_write(d->path, text, n) : 0;
	free(text);
	return e;
}

// Makes a file name or an application's message valid UTF-8 for JSON: invalid bytes become '?'.
static const char *readable(const char *from, char *to, size_t room)
{
	const unsigned char *s = (const unsigned char *)from, *end = s + strlen(from);
	size_t at = 0;
	while (s < end && at + 5 < room) {
		const int n = *s < 0x80 ? 1 : yk_utf8(s, end);
		if (n == 0)
			to[at++] = '?';
		else
			memcpy(to + at, s, (size_t)n);
		at += (size_t)n;
		s += n ? n : 1;
	}
	to[at] = 0;
	return to;
}

static int write_line(struct yk_data_errors *d, int64_t step, const struct yoke_data_error *x)
{
	char name[512], why[512], *text = NULL;
	if (d->file < 0 && (d->file = yk_file_append_open(d->path)) < 0)
		return d->file;
	json_t *line =
		json_pack("{s:I, s:I, s:s, s:I, s:s, s:s}", "step", (json_int_t)step, "epoch",
			  (json_int_t)x->epoch, "source", readable(x->name, name, sizeof name),
			  "sample", (json_int_t)x->number, "error", yoke_error_name(x->code), "why",
			  readable(x->why, why, sizeof why));
	char *json = line ? yk_json_text(line, JSON_COMPACT) : NULL;
	json_decref(line);
	if (!json || asprintf(&text, "%s\n", json) < 0) {
		free(json);
		return yk_fail(YOKE_ENOMEM, "%s: out of memory for a line", d->path);
	}
	const int e = yk_file_append(d->file, d->path, NULL, text);
	free(json);
	free(text);
	return e;
}

void yk_data_errors_add(struct yk_data_errors *d, int64_t step, const struct yoke_data_error *x)
{
	const int max = sizeof d->count / sizeof *d->count;
	int k = 0;
	while (k < max - 1 && d->count[k].n && d->count[k].code != x->code)
		k++;
	d->count[k].code = x->code;
	d->count[k].n++;
	if (!d->path || d->broken)
		return;
	struct yk_error_aside *aside = yk_error_aside();
	d->broken = write_line(d, step, x) < 0;
	if (d->broken)
		yk_warn("train", "%s; further skipped samples are not listed", yoke_error());
	yk_error_restore(aside);
}

uint64_t yk_data_errors_count(const struct yk_data_errors *d)
{
	uint64_t n = 0;
	for (size_t k = 0; k < sizeof d->count / sizeof *d->count; k++)
		n += d->count[k].n;
	return n;
}

void yk_data_errors_text(const struct yk_data_errors *d, char *to, size_t room)
{
	const int max = sizeof d->count / sizeof *d->count;
	size_t at = 0;
	*to = 0;
	for (int k = 0; k < max && d->count[k].n && at < room; k++)
		at += (size_t)snprintf(to + at, room - at, "%s%" PRIu64 " %s", k ? ", " : "",
				       d->count[k].n, yoke_error_name(d->count[k].code));
}

void yk_data_errors_close(struct yk_data_errors *d)
{
	if (d->path && d->file >= 0)
		close(d->file);
	free(d->path);
	*d = (struct yk_data_errors){ .file = -1 };
}
