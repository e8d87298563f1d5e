// SPDX-License-Identifier: Apache-2.0
// yoke data: describes training data, checks that all of it is readable, and measures loading;
// prepare: data_prepare.c.
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "data/chat_store.h"
#include "data/tokenfile.h"
#include "tool/table.h"
#include "tool/tool.h"
#include "yoke-data.h"

enum { NAMED = 100, BENCH_BATCH = 64, CONTEXT = 128 }; // CONTEXT: default of prepare and train

// Shape of a sample, e.g. "[3, up to 64 by 16]" if the last axis is padded to a multiple of 16.
static void shape_text(const struct yoke_field *f, char *to, size_t cap)
{
	size_t at = (size_t)snprintf(to, cap, "[");
	for (int k = 0; k < f->rank && at < cap; k++) {
		at += (size_t)snprintf(to + at, cap - at, "%s%s%" PRId64, k ? ", " : "",
				       f->multiple[k] ? "up to " : "", f->dims[k]);
		if (f->multiple[k] > 1 && at < cap)
			at += (size_t)snprintf(to + at, cap - at, " by %" PRId64, f->multiple[k]);
	}
	if (at < cap)
		snprintf(to + at, cap - at, "]");
}

static struct yoke_field *fields_of(const yoke_dataset *d, int *n)
{
	*n = yoke_dataset_fields(d, 0, NULL);
	struct yoke_field *f = calloc((size_t)*n + 1, sizeof *f);
	if (!f) {
		yk_fail(YOKE_ENOMEM, "out of memory for %d fields", *n);
		return NULL;
	}
	f->size = sizeof *f;
	yoke_dataset_fields(d, *n, f);
	return f;
}

static size_t bytes_of(const struct yoke_field *f)
{
	size_t bytes = yoke_dtype_size(f->dtype);
	for (int k = 0; k < f->rank; k++)
		bytes *= (size_t)f->dims[k];
	return bytes;
}

static int info(const yoke_dataset *d)
{
	static const char *const keys[] = { "field", "dtype", "shape" };
	int n;
	struct yoke_field *f = fields_of(d, &n);
	json_t *rows = json_array();
	char shape[256];
	for (int i = 0; f && i < n; i++) {
		shape_text(&f[i], shape, sizeof shape);
		json_array_append_new(rows,
				      json_pack("{s:s, s:s, s:s}", "field", f[i].name, "dtype",
						yoke_dtype_name(f[i].dtype), "shape", shape));
	}
	printf("samples      %" PRId64 "\nfingerprint  %016" PRIx64 "\n", yoke_dataset_count(d),
	       yoke_dataset_fingerprint(d));
	yk_table(rows, "", 3, keys, keys);
	json_decref(rows);
	free(f);
	return f ? 0 : yoke_error_code();
}

// Compares a token file with the hash that was stored when it was prepared.
static int check_hash(const char *path)
{
	struct yk_safetensors f;
	if (yk_safetensors_open(&f, path) < 0) {
		yoke_error_clear(); // not a safetensors file
		return 0;
	}
	const int e = yk_token_file_verify(&f);
	yk_safetensors_close(&f);
	return e;
}

// Reads each sample. Returns the number of failures, or an error.
static int64_t check(const yoke_dataset *d, const char *path)
{
	int n;
	int64_t failed = check_hash(path);
	if (failed < 0)
		return failed;
	struct yoke_field *f = fields_of(d, &n);
	void **to = f ? calloc((size_t)n, sizeof *to) : NULL;
	bool allocated = to != NULL;
	for (int i = 0; i < n && allocated; i++)
		allocated = (to[i] = malloc(bytes_of(&f[i])));
	for (int64_t i = 0; i < yoke_dataset_count(d) && allocated; i++) {
		if (yoke_dataset_read(d, i, 0, 0, i, to, NULL) == 0)
			continue;
		if (failed++ < NAMED)
			printf("%s\n", yoke_error());
		yoke_error_clear();
	}
	for (int i = 0; i < n && to; i++)
		free(to[i]);
	free(to);
	free(f);
	if (!allocated)
		return yk_fail(YOKE_ENOMEM, "out of memory for a sample");
	if (failed > NAMED)
		printf("and %" PRId64 " more\n", failed - NAMED);
	printf("%" PRId64 " of %" PRId64 " samples cannot be read\n", failed,
	       yoke_dataset_count(d));
	return failed;
}

static int bench_row(yoke_dataset *d, int workers, double max, json_t *rows)
{
	int n;
	struct yoke_field *f = fields_of(d, &n);
	void **data = f ? calloc((size_t)n, sizeof *data) : NULL;
	char settings[80], cell[4][32];
	double bytes = 0;
	for (int i = 0; f && i < n; i++)
		bytes += (double)bytes_of(&f[i]);
	free(f);
	snprintf(settings, sizeof settings, "batch=%d workers=%d on_error=skip", BENCH_BATCH,
		 workers);
	yoke_loader *l = data ? yoke_loader_new(d, settings) : NULL;
	int64_t samples = 0, got = 1;
	const double began = yk_seconds();
	while (l && got > 0 && yk_seconds() - began < max) {
		got = yoke_loader_host(l, n, data, NULL);
		samples += got;
	}
	const double wall = yk_seconds() - began;
	struct yoke_loader_stats s = { .size = sizeof s };
	const int e = !l ? yoke_error_code() : got < 0 ? (int)got : yoke_loader_stats(l, &s);
	yoke_loader_free(l);
	free(data);
	if (e < 0)
		return e;
	const double busy = s.reading / (wall * (workers ? workers : 1));
	snprintf(cell[0], sizeof *cell, "%d", workers);
	snprintf(cell[1], sizeof *cell, "%.0f", (double)samples / wall);
	snprintf(cell[2], sizeof *cell, "%.1f", (double)samples * bytes / wall / 1e6);
	snprintf(cell[3], sizeof *cell, "%.0f %%", 100 * (busy < 1 ? busy : 1));
	json_array_append_new(rows,
			      json_pack("{s:s, s:s, s:s, s:s}", "workers", cell[0], "samples/s",
					cell[1], "MB/s", cell[2], "reading", cell[3]));
	return 0;
}

// Measures with 0, 1, 2, 4, ... workers, up to the number of processors.
static int bench(yoke_dataset *d, double seconds)
{
	static const char *const keys[] = { "workers", "samples/s", "MB/s", "reading" };
	const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	json_t *rows = json_array();
	int e = 0;
	for (int workers = 0; e == 0 && (workers < 2 || workers <= cpus);
	     workers = workers ? 2 * workers : 1)
		e = bench_row(d, workers, seconds, rows);
	if (e == 0) {
		printf("batches of %d; each row is measured for %g s; MB/s counts samples as they are in "
		       "memory;\nreading: share of the threads' time spent reading; near 100 %%, "
		       "more threads may help\n",
		       BENCH_BATCH, seconds);
		yk_table(rows, "", 4, keys, keys);
	}
	json_decref(rows);
	return e;
}

// Reads the header of a token file written by yoke data prepare, and a default sample length.
// False: another kind of file.
static bool look_at_tokens(const char *path, struct yk_token_file *t, int64_t *context)
{
	struct yk_safetensors f;
	bool is = false;

	if (yk_safetensors_open(&f, path) == 0) {
		is = yk_token_file_is(&f) && yk_token_file_take(t, &f) == 0;
		yk_safetensors_close(&f);
	}
	yoke_error_clear(); // opening it as a source reports the error
	if (is)
		*context = t->count > CONTEXT ? CONTEXT : (int64_t)t->count - 1;
	return is && *context > 0;
}

static void print_tokens(const struct yk_token_file *t)
{
	printf("tokens       %" PRIu64 " of %" PRId64 " different", t->count, t->vocab);
	if (t->train >= 0)
		printf(", %" PRId64 " to train, %" PRId64 " to validate", t->train,
		       (int64_t)t->count - t->train);
	printf("\n");
}

// Writes columns= with each name in quotes: a shell has removed those of columns="sepal
// length":f32.
static size_t quote_names(const char *list, char *to, size_t cap)
{
	size_t at = (size_t)snprintf(to, cap, "columns=");
	for (const char *name = list; at < cap; name++) {
		const size_t n = strcspn(name, ",");
		const char *colon = memrchr(name, ':', n);
		const size_t length = colon ? (size_t)(colon - name) : n;
		at += (size_t)snprintf(to + at, cap - at, "\"%.*s\"%.*s%s", (int)length, name,
				       (int)(n - length), name + length, name[n] ? "," : " ");
		name += n;
		if (!*name)
			break;
	}
	return at;
}

// Arguments other than options are settings of the source.
static int open_source(int argc, char **argv, double *seconds, yoke_dataset **to)
{
	char settings[2048] = "";
	struct yk_token_file tokens;
	bool has_context = false;
	int64_t context;
	size_t at = 0;
	for (int i = 3; i < argc; i++) {
		char *end = NULL;
		if (!strncmp(argv[i], "seconds=", 8)) {
			*seconds = strtod(argv[i] + 8, &end);
			if (*end || end == argv[i] + 8 || !(*seconds > 0 && *seconds <= 3600))
				return yk_usage("data", "%s: must be above 0, and 3600 at most",
						argv[i]);
			continue;
		}
		const char *value = strchr(argv[i], '=');
		if (!value || (strchr(argv[i], ' ') && strncmp(argv[i], "columns=", 8)))
			return yk_usage("data", "'%s' is not key=value", argv[i]);
		has_context |= !strncmp(argv[i], "context=", 8);
		if (strchr(value, ' ') && !strchr(value, '"'))
			at += quote_names(value + 1, settings + at, sizeof settings - at);
		else
			at += (size_t)snprintf(settings + at, sizeof settings - at, "%s ", argv[i]);
		if (at >= sizeof settings - 32)
			return yk_usage("data", "the settings are longer than %zu bytes",
					sizeof settings - 32);
	}
	if (look_at_tokens(argv[2], &tokens, &context)) {
		if (!strcmp(argv[1], "info"))
			print_tokens(&tokens);
		if (!has_context)
			snprintf(settings + at, sizeof settings - at, "context=%" PRId64, context);
	}
	*to = yoke_dataset_open(argv[2], settings);
	return *to ? YK_DONE : yk_failed("data");
}

int yk_cmd_data(int argc, char **argv)
{
	static const char *const verbs[] = { "info", "check", "bench" };
	yoke_dataset *d;
	double seconds = 1;
	int verb = 0;
	if (argc > 2 && !strcmp(argv[1], "prepare"))
		return yk_data_prepare(argc, argv);
	while (verb < 3 && argc > 1 && strcmp(argv[1], verbs[verb]))
		verb++;
	if (argc < 3 || verb == 3)
		return yk_usage(
			"data",
			"needs info, check, bench or prepare, and a file, or get and a name");
	if (yk_chat_store_is(argv[2]))
		return yk_data_chats_info(argc, argv);
	int status = open_source(argc, argv, &seconds, &d);
	if (status != YK_DONE)
		return status;
	const int64_t e = verb == 0 ? info(d) : verb == 1 ? check(d, argv[2]) : bench(d, seconds);
	yoke_dataset_free(d);
	if (e < 0)
		return yk_failed("data");
	return e ? YK_FAILED : YK_DONE;
}
