// SPDX-License-Identifier: Apache-2.0
// Compares files to be written with files that are read, by device and inode, so that links are
// recognized.
#include "config.h"

#include "tool/fit_out.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

enum { PATH = 4096 };

// ---- paths ----

int yk_file_list_add(struct yk_file_list *p, const char *path)
{
	if (p->n == p->cap) {
		const size_t cap = 2 * p->cap + 16;
		char **more = realloc(p->path, cap * sizeof *more);
		if (!more)
			return yk_fail(YOKE_ENOMEM, "out of memory for paths");
		p->path = more;
		p->cap = cap;
	}
	p->path[p->n] = strdup(path);
	return p->path[p->n] ? (p->n++, 0) : yk_fail(YOKE_ENOMEM, "out of memory for paths");
}

void yk_file_list_fini(struct yk_file_list *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->path[i]);
	free(p->path);
	*p = (struct yk_file_list){ .path = NULL };
}

void yk_out_path(char to[PATH], const char *folder, const char *file)
{
	snprintf(to, PATH, "%.3000s/%.1000s", folder, file);
}

// ---- identities ----

// Identifies a file by device and inode (stem NULL), or a name without suffix within a directory.
struct identity {
	dev_t device;
	ino_t number;
	const char *stem;
	size_t length; // of the stem
	const char *path;
};

static int by_identity(const void *a, const void *b)
{
	const struct identity *x = a, *y = b;
	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	if (x->length != y->length)
		return x->length < y->length ? -1 : 1;
	return x->length ? memcmp(x->stem, y->stem, x->length) : 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool file_identity(const char *path, struct identity *to)
{
	struct stat s;
	if (stat(path, &s) < 0)
		return false;
	*to = (struct identity){ .device = s.st_dev, .number = s.st_ino, .path = path };
	return true;
}

// Splits a path into the directory and the name up to its last dot.
static bool stem_identity(const char *path, struct identity *to)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path,
		   *dot = strrchr(name, '.');
	char folder[PATH];
	snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1,
		 slash ? path : ".");
	const bool found = file_identity(folder, to);
	to->stem = name;
	to->length = dot ? (size_t)(dot - name) : strlen(name);
	to->path = path;
	return found;
}

// Both identities of each path, sorted. The caller frees them.
static struct identity *identities(const struct yk_file_list *p, size_t *n)
{
	struct identity *all = calloc(2 * p->n + 1, sizeof *all);
	*n = 0;
	for (size_t i = 0; all && i < p->n; i++) {
		*n += file_identity(p->path[i], all + *n);
		*n += stem_identity(p->path[i], all + *n);
	}
	if (all)
		qsort(all, *n, sizeof *all, by_identity);
	else
		yk_fail(YOKE_ENOMEM, "out of memory for paths");
	return all;
}

static bool exists(const char *path)
{
	struct stat s;
	return lstat(path, &s) == 0; // a dangling link counts as a file
}

// For a header, the name without .hdr, a file that readers take for its data.
static bool data_name(const char *path, char to[PATH])
{
	const size_t n = strlen(path);
	struct stat s;
	if (n < 4 || strcmp(path + n - 4, ".hdr"))
		return false;
	snprintf(to, PATH, "%.*s", (int)n - 4, path);
	return stat(to, &s) == 0 && !S_ISDIR(s.st_mode);
}

// ---- checks ----

static int check_same(const char *path, const struct identity *from, size_t n, bool stems)
{
	struct identity key;
	const struct identity *same = NULL;
	if (file_identity(path, &key))
		same = bsearch(&key, from, n, sizeof key, by_identity);
	if (same)
		return yk_fail(YOKE_EINVAL,
			       "out: %s is the input file %s; choose another name or folder", path,
			       same->path);
	if (stems && stem_identity(path, &key))
		same = bsearch(&key, from, n, sizeof key, by_identity);
	return !same ? 0 :
		       yk_fail(YOKE_EINVAL,
			       "out: %s would share its name with the input file %s, so that both "
			       "would look like one cube; choose another name or folder",
			       path, same->path);
}

static int check_new(const char *path, bool overwrite)
{
	char bare[PATH];
	if (data_name(path, bare))
		return yk_fail(YOKE_EINVAL,
			       "out: the existing file %s would be read as the data of %s; choose "
			       "another folder",
			       bare, path);
	return overwrite || !exists(path) ?
		       0 :
		       yk_fail(YOKE_EINVAL, "out: %s exists; overwrite=1 replaces it", path);
}

static int check_all_new(const struct yk_file_list *to, bool overwrite)
{
	int err = 0;
	for (size_t i = 0; i < to->n && !err; i++)
		err = check_new(to->path[i], overwrite);
	return err;
}

static int check_names(const struct yk_file_list *to)
{
	char **sorted = malloc((to->n + 1) * sizeof *sorted);
	int err = 0;
	if (!sorted)
		return yk_fail(YOKE_ENOMEM, "out of memory for paths");
	if (to->n)
		memcpy(sorted, to->path, to->n * sizeof *sorted);
	qsort(sorted, to->n, sizeof *sorted, by_name);
	for (size_t i = 1; i < to->n && !err; i++)
		if (!strcmp(sorted[i - 1], sorted[i]))
			err = yk_fail(YOKE_EINVAL,
				      "out: two results would be named %s; write them with "
				      "separate commands",
				      sorted[i]);
	free(sorted);
	return err;
}

static int check_all(const struct yk_file_list *to, const struct yk_file_list *from, bool stems)
{
	size_t n;
	struct identity *read = identities(from, &n);
	int err = read ? 0 : yk_error_last();
	for (size_t i = 0; i < to->n && !err; i++)
		err = check_same(to->path[i], read, n, stems);
	free(read);
	return err;
}

int yk_out_convert(const struct yk_file_list *to, const struct yk_file_list *from, bool overwrite)
{
	const int err = check_all(to, from, false);
	return err ? err : check_all_new(to, overwrite);
}

int yk_out_check(const struct yk_file_list *to, const struct yk_file_list *from, bool overwrite)
{
	int err = check_names(to);
	if (!err)
		err = check_all(to, from, true);
	return err ? err : check_all_new(to, overwrite);
}

// ---- runs ----

static const char *const run_files[] = { "pipeline.json", "pipeline.safetensors", "run.json",
					 "metrics.jsonl", "events.jsonl",         "checkpoint.json",
					 "collected.json" };

static bool has(const char *folder, const char *file)
{
	char path[PATH];
	yk_out_path(path, folder, file);
	return exists(path);
}

int yk_out_run(const char *folder, const char *configuration, bool resume, bool overwrite,
	       bool *resumes)
{
	struct identity ours, theirs;
	char path[PATH];
	*resumes = resume && (has(folder, "checkpoint.json") || has(folder, "collected.json"));
	if (*resumes)
		return 0;
	yk_out_path(path, folder, "pipeline.json");
	if (file_identity(path, &ours) && file_identity(configuration, &theirs) &&
	    !by_identity(&ours, &theirs))
		return yk_fail(
			YOKE_EINVAL,
			"out=%s: its pipeline.json is the input file; choose another folder%s",
			folder, resume ? ", because there is no checkpoint to resume from" : "");
	if (resume && !overwrite && has(folder, "pipeline.safetensors"))
		return yk_fail(YOKE_EINVAL,
			       "out=%s: contains a run without a checkpoint to resume from; "
			       "overwrite=1 replaces it",
			       folder);
	for (size_t i = 0; i < sizeof run_files / sizeof *run_files && !resume && !overwrite; i++)
		if (has(folder, run_files[i]))
			return yk_fail(YOKE_EINVAL,
				       "out=%s: already contains a run (%s); resume=1 continues "
				       "it, overwrite=1 replaces it",
				       folder, run_files[i]);
	return 0;
}

void yk_out_clear(const char *folder)
{
	static const char *const files[] = { "pipeline.safetensors", "checkpoint.json",
					     "collected.json" };
	char path[PATH];
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		yk_out_path(path, folder, files[i]);
		unlink(path);
	}
}
