// SPDX-License-Identifier: Apache-2.0
// Training text: reads files into one list of tokens and cuts windows out of it.
// Memory: the tokens, and the largest single file while it is read; data.max bounds both.
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/param.h"
#include "data/text.h"

YK_PARAM(data_max, "data.max", YK_BYTES, "8GiB",
	 "most bytes of text that training reads");

#define STDIN "-" // as a path; "./-" is a file of that name

struct yk_data {
	struct yk_tokens tokens;
	int64_t context, files, skipped;
	uint64_t bytes;                       // read so far
	int64_t train, valid;                 // windows
	int64_t valid_start;                  // token where validation begins
	uint64_t fingerprint;
	struct yk_tokenizer *tokenizer; // while reading
};

// ---- reading ----

// An error of the tokenizer, which knows no path, with it.
static int name_file(const char *path, int code)
{
	char why[256];

	snprintf(why, sizeof why, "%s", yoke_error());
	yoke_error_clear();
	return yk_fail(code, "%s: %s", path, why);
}

// named: given by the user, so what cannot be used is an error rather than passed over.
static int read_file(struct yk_data *d, const char *path, bool named)
{
	uint64_t most = (uint64_t)yk_param_int(&data_max);
	bool piped = named && !strcmp(path, STDIN);
	char *text;
	size_t n;
	int e = piped ? yk_file_read_stdin(most - d->bytes, &text, &n) :
		       yk_file_read(path, most - d->bytes, &text, &n);

	if (e == YOKE_EFORMAT) {
		yoke_error_clear();
		return yk_fail(YOKE_ERANGE,
			       "%s: with it there are more than data.max = %llu bytes "
			       "of text; raise YOKE_DATA_MAX or give less",
			       path, (unsigned long long)most);
	}
	if (e < 0)
		return e;
	if (!n && piped) {
		e = yk_fail(YOKE_EFORMAT,
			    "data: standard input is empty, or was read before; a pipe is read once");
	} else if (!n || memchr(text, 0, n)) {
		if (named)
			e = yk_fail(YOKE_EFORMAT, "%s: %s; data must be text", path,
				    n ? "holds a NUL byte" : "is empty");
		d->skipped++;
	} else {
		e = yk_tokenizer_encode(d->tokenizer, text, n, &d->tokens);
		if (e == YOKE_EFORMAT)
			e = name_file(path, e);
		d->fingerprint = yk_hash(text, n, d->fingerprint);
		d->bytes += n;
		d->files++;
	}
	free(text);
	return e;
}

static int visible(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name); // by byte values, whatever the locale
}

static int read_folder(struct yk_data *d, const char *path);

static int read_entry(struct yk_data *d, const char *folder, const char *name)
{
	struct stat st;
	char *path;
	int e = 0;

	if (asprintf(&path, "%s/%s", folder, name) < 0)
		return yk_fail(YOKE_ENOMEM, "out of memory for a path in %s", folder);
	if (lstat(path, &st) < 0)
		e = yk_fail(YOKE_EIO, "%s: %s", path, strerror(errno));
	else if (S_ISDIR(st.st_mode))
		e = read_folder(d, path);
	else if (S_ISREG(st.st_mode))
		e = read_file(d, path, false);
	free(path);
	return e;
}

// Links are not followed, so a walk ends; the depth of a path is bounded by the system.
static int read_folder(struct yk_data *d, const char *path)
{
	struct dirent **entries;
	int e = 0, n = scandir(path, &entries, visible, by_name);

	if (n < 0)
		return yk_fail(errno == ENOMEM ? YOKE_ENOMEM : YOKE_EIO, "%s: %s", path, strerror(errno));
	for (int i = 0; i < n; i++) {
		if (e == 0)
			e = read_entry(d, path, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	return e;
}

static int read_path(struct yk_data *d, const char *path)
{
	int64_t before = d->files;
	struct stat st;
	int e;

	if (!strcmp(path, STDIN) && isatty(STDIN_FILENO))
		return yk_fail(YOKE_EINVAL, "data=-: standard input is a terminal; give text by a "
			       "pipe, or name files");
	if (!strcmp(path, STDIN))
		return read_file(d, path, true);
	if (stat(path, &st) < 0)
		return yk_fail(errno == ENOENT ? YOKE_ENOENT : YOKE_EIO, "data: %s: %s",
			       path, strerror(errno));
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return yk_fail(YOKE_EINVAL, "data: %s: neither a file nor a folder",
			       path);
	if (!S_ISDIR(st.st_mode))
		return read_file(d, path, true);
	e = read_folder(d, path);
	if (e == 0 && d->files == before)
		return yk_fail(YOKE_EFORMAT, "data: %s: no file of text in this folder",
			       path);
	return e;
}

bool yk_data_piped(const char *paths)
{
	struct stat st;
	if (strcmp(paths, STDIN) && stat(paths, &st) == 0) // one name that has a comma
		return false;
	for (size_t n; *paths; paths += n + (paths[n] == ','))
		if ((n = strcspn(paths, ",")) == strlen(STDIN) && !strncmp(paths, STDIN, n))
			return true;
	return false;
}

static int read_list(struct yk_data *d, const char *paths)
{
	struct stat st;
	char *copy, *rest, *path;
	int e = 0;

	if (!*paths)
		return yk_fail(YOKE_EINVAL,
			       "data: not given; name files or folders of text");
	if (stat(paths, &st) == 0)
		return read_path(d, paths);
	rest = copy = strdup(paths);
	if (!copy)
		return yk_fail(YOKE_ENOMEM, "out of memory for the list of data");
	while (e == 0 && (path = strsep(&rest, ",")))
		e = *path ? read_path(d, path) :
			    yk_fail(YOKE_EINVAL, "data: an empty name in '%s'", paths);
	free(copy);
	return e;
}

// ---- windows ----

// Windows in n tokens: each begins on the last token of the one before.
static int64_t windows(int64_t n, int64_t context)
{
	return n > context ? (n - 1) / context : 0;
}

static int cut(struct yk_data *d, const char *paths, const struct yk_data_spec *spec)
{
	int64_t n = (int64_t)d->tokens.count, least = spec->context + 1;
	int64_t parts = spec->valid > 0 && spec->valid < 1 ? 2 : 1, held;

	if (n / parts < least)
		return yk_fail(YOKE_ERANGE,
			       "data: %s: %lld tokens are too few: context=%lld needs "
			       "%lld%s; give more text or a smaller context",
			       paths, (long long)n, (long long)spec->context,
			       (long long)(parts * least),
			       parts == 2 ? ", a window to train and one to validate" :
					    "");
	held = (int64_t)((double)n * spec->valid);
	if (parts == 2) {
		held = held < least ? least : held;
		held = held > n - least ? n - least : held;
	}
	d->fingerprint = yk_hash(&spec->valid, sizeof spec->valid, d->fingerprint);
	d->valid_start = n - held;
	d->train = windows(n - held, spec->context);
	d->valid = windows(held, spec->context);
	return 0;
}

// ---- entry points ----

struct yk_data *yk_data_new(const char *paths, struct yk_tokenizer *tokenizer,
			    const struct yk_data_spec *spec)
{
	struct yk_data *d = calloc(1, sizeof *d);

	if (!d) {
		yk_fail(YOKE_ENOMEM, "out of memory for the data");
		return NULL;
	}
	d->context = spec->context;
	d->tokenizer = tokenizer;
	int e = read_list(d, paths);
	if (e == 0 && spec->limit && (int64_t)d->tokens.count > spec->limit) {
		d->tokens.count = (size_t)spec->limit;
		d->fingerprint = yk_hash(&spec->limit, sizeof spec->limit, d->fingerprint);
	}
	if (e < 0 || cut(d, paths, spec) < 0 ||
	    yk_tokenizer_settle(tokenizer, &d->tokens, (size_t)d->valid_start, (size_t)spec->vocab) < 0) {
		yk_data_free(d);
		return NULL;
	}
	d->tokenizer = NULL;
	if (d->skipped)
		yk_info("data", "%s: %lld files passed over (empty, or with a NUL byte)",
			paths, (long long)d->skipped);
	return d;
}

void yk_data_free(struct yk_data *d)
{
	if (!d)
		return;
	yk_tokens_fini(&d->tokens);
	free(d);
}

int32_t *yk_data_windows(const struct yk_data *d, int64_t batch)
{
	size_t bytes;
	int32_t *to = NULL;
	if (!__builtin_mul_overflow((size_t)batch, (size_t)(d->context + 1) * sizeof *to, &bytes))
		to = malloc(bytes);
	if (!to)
		yk_fail(YOKE_ENOMEM, "batch=%lld: no host memory for its windows of %lld tokens",
			(long long)batch, (long long)d->context);
	return to;
}

int64_t yk_data_tokens(const struct yk_data *d)
{
	return (int64_t)d->tokens.count;
}

int64_t yk_data_files(const struct yk_data *d)
{
	return d->files;
}

int64_t yk_data_train_windows(const struct yk_data *d)
{
	return d->train;
}

int64_t yk_data_valid_windows(const struct yk_data *d)
{
	return d->valid;
}

uint64_t yk_data_fingerprint(const struct yk_data *d)
{
	return d->fingerprint;
}

static int read_windows(void *arg, int64_t n, struct yoke_item *const *s)
{
	const struct yk_data *d = arg;
	for (int64_t i = 0; i < n; i++)
		yk_tokens_copy(&d->tokens, (size_t)(s[i]->number * d->context), (size_t)d->context + 1, s[i]->to[0]);
	return 0;
}

yoke_dataset *yk_data_set(struct yk_data *d)
{
	const struct yoke_field ids = { .size = sizeof ids, .name = "ids", .dtype = yoke_i32, .rank = 1,
					.dims = { d->context + 1 } };
	return yoke_dataset_new(&(struct yoke_dataset_options){
		.size = sizeof(struct yoke_dataset_options), .name = "text", .count = d->train, .fields = 1, .field = &ids,
		.read = read_windows, .chunk = 64, .arg = d, .fingerprint = d->fingerprint });
}

int64_t yk_data_valid(const struct yk_data *d, int64_t first, int64_t batch, int32_t *to)
{
	int64_t b;

	for (b = 0; b < batch && first + b < d->valid; b++)
		yk_tokens_copy(&d->tokens,
			       (size_t)(d->valid_start + (first + b) * d->context),
			       (size_t)d->context + 1, to + b * (d->context + 1));
	return b;
}
