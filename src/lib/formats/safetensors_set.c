// SPDX-License-Identifier: Apache-2.0
// Reads and writes sharded safetensors files.  The index is only trusted where the files confirm
// it.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "formats/safetensors_set.h"

#define INDEX ".index.json"
enum { MAX_FILES = 100000 };

bool yk_safetensors_is_index(const char *path)
{
	const size_t n = strlen(path), end = sizeof INDEX - 1;
	return n > end && !strcmp(path + n - end, INDEX);
}

// Path of a file in the same directory as another, which the caller frees.  NULL with an error.
static char *beside(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');
	char *to = NULL;
	if (asprintf(&to, "%.*s%s", slash ? (int)(slash + 1 - path) : 0, path, name) >= 0)
		return to;
	yk_fail(YOKE_ENOMEM, "out of memory for a path");
	return NULL;
}

static bool is_file_name(const char *name)
{
	return *name && !strchr(name, '/') && strcmp(name, ".") && strcmp(name, "..");
}

// ---- reading ----

// The member weight_map, whose values must be plain file names; NULL with an error.
static const json_t *map_of(const json_t *index, const char *path)
{
	const json_t *map = json_object_get(index, "weight_map");
	const char *name;
	json_t *file;
	if (!json_is_object(map)) {
		yk_fail(YOKE_EFORMAT,
			"%s: has no \"weight_map\", an object of tensors' names and their files",
			path);
		return NULL;
	}
	json_object_foreach((json_t *)map, name, file) {
		if (json_is_string(file) && is_file_name(json_string_value(file)))
			continue;
		yk_fail(YOKE_EFORMAT, "%s: the file of '%.80s' is no name of a file beside it",
			path, name);
		return NULL;
	}
	return map;
}

// The distinct files of a map, numbered; NULL with an error.
static json_t *files_of(const json_t *map, const char *path)
{
	json_t *files = json_object();
	const char *name;
	json_t *file;
	if (!files)
		yk_fail(YOKE_ENOMEM, "%s: no memory", path);
	json_object_foreach((json_t *)map, name, file)
		if (files && !json_object_get(files, json_string_value(file)) &&
		    json_object_set_new(files, json_string_value(file),
					json_integer((json_int_t)json_object_size(files))) < 0) {
			yk_fail(YOKE_ENOMEM, "%s: no memory", path);
			json_decref(files);
			files = NULL;
		}
	if (files && json_object_size(files) > MAX_FILES) {
		yk_fail(YOKE_EFORMAT, "%s: names %zu files; %d are possible", path,
			json_object_size(files), MAX_FILES);
		json_decref(files);
		files = NULL;
	}
	return files;
}

static int open_files(struct yk_safetensors_set *s, const json_t *files)
{
	const char *name;
	json_t *number;
	int err = 0;
	s->file = calloc(json_object_size(files) + 1, sizeof *s->file);
	if (!s->file)
		return yk_fail(YOKE_ENOMEM, "%s: no memory", s->path);
	json_object_foreach((json_t *)files, name, number) {
		char *path = err ? NULL : beside(s->path, name);
		if (path && access(path, F_OK) < 0)
			err = yk_fail(YOKE_ENOENT, "%s: its file '%s' is not in its directory; "
				"all files of a set are needed", s->path, name);
		else if (!path || (err = yk_safetensors_open(&s->file[s->files], path)) < 0)
			err = yoke_error_code();
		else
			s->files++;
		free(path);
	}
	return err;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

// Collects the tensors of all files; each must be in the file that the map names.
static int take_files(struct yk_safetensors_set *s, const json_t *map, uint64_t *bytes)
{
	size_t all = 0;
	for (int i = 0; i < s->files; i++)
		all += (size_t)s->file[i].count;
	if (!(s->part = calloc(all + 1, sizeof *s->part)))
		return yk_fail(YOKE_ENOMEM, "%s: no memory", s->path);
	for (int i = 0; i < s->files; i++)
		for (int k = 0; k < s->file[i].count; k++) {
			const struct yk_safetensors_entry *e = &s->file[i].entries[k];
			const char *in = base_name(s->file[i].path),
				   *listed =
					   map ? json_string_value(json_object_get(map, e->name)) :
						 in;
			if (!listed)
				return yk_fail(YOKE_EFORMAT,
					       "%s: does not list '%.80s', which is in %s", s->path,
					       e->name, in);
			if (strcmp(listed, in))
				return yk_fail(YOKE_EFORMAT, "%s: '%.80s' is in %s, as listed, "
					"and also in %s", s->path, e->name, listed, in);
			s->part[s->count++] = (struct yk_safetensors_part){ &s->file[i], e };
			*bytes += e->bytes; // cannot overflow: bounded by the file sizes
		}
	return 0;
}

// Checks that every tensor of the index is present.
static int judge(const struct yk_safetensors_set *s, const json_t *index, const json_t *map,
		 const json_t *files, uint64_t bytes)
{
	const char *name;
	json_t *file;
	json_object_foreach((json_t *)map, name, file) {
		const int i =
			(int)json_integer_value(json_object_get(files, json_string_value(file)));
		if (!yk_safetensors_find(&s->file[i], name))
			return yk_fail(YOKE_EFORMAT, "%s: '%.80s' is not in %s, where it is "
				"listed", s->path, name,
				       json_string_value(file));
	}
	const json_t *total = json_object_get(json_object_get(index, "metadata"), "total_size");
	// only a warning: tools that modify tensors do not update it
	if (total && (!json_is_number(total) || json_number_value(total) != (double)bytes))
		yk_warn("load", "%s: its total_size differs from the %llu bytes of tensors in its "
			"files", s->path,
			(unsigned long long)bytes);
	return 0;
}

static int open_index(struct yk_safetensors_set *s)
{
	uint64_t bytes = 0;
	json_t *index = yk_json_load(s->path), *files = NULL;
	const json_t *map = index ? map_of(index, s->path) : NULL;
	int err =
		map && (files = files_of(map, s->path)) ? open_files(s, files) : yoke_error_code();
	if (!err)
		err = take_files(s, map, &bytes);
	if (!err)
		err = judge(s, index, map, files, bytes);
	json_decref(files);
	json_decref(index);
	return err;
}

static int open_one(struct yk_safetensors_set *s)
{
	uint64_t bytes = 0;
	if (!(s->file = calloc(1, sizeof *s->file)))
		return yk_fail(YOKE_ENOMEM, "%s: no memory", s->path);
	const int err = yk_safetensors_open(s->file, s->path);
	s->files = !err;
	return err ? err : take_files(s, NULL, &bytes);
}

int yk_safetensors_set_open(struct yk_safetensors_set *to, const char *path)
{
	struct yk_safetensors_set s = { .path = strdup(path) };
	int err = !s.path ? yk_fail(YOKE_ENOMEM, "out of memory for a path") :
			    yk_safetensors_is_index(path) ? open_index(&s) : open_one(&s);
	if (err)
		yk_safetensors_set_close(&s);
	else
		*to = s;
	return err;
}

void yk_safetensors_set_close(struct yk_safetensors_set *s)
{
	for (int i = 0; i < s->files; i++)
		yk_safetensors_close(&s->file[i]);
	free(s->file);
	free(s->part);
	free(s->path);
	*s = (struct yk_safetensors_set){ 0 };
}

// ---- writing ----

// The files of the existing index, to be removed later; NULL if there is no readable index.
static json_t *files_before(const char *path)
{
	json_t *index = access(path, F_OK) == 0 ? yk_json_load(path) : NULL;
	const json_t *map = index ? map_of(index, path) : NULL;
	json_t *files = map ? files_of(map, path) : NULL;
	json_decref(index);
	yoke_error_clear();
	return files;
}

// NAME-00001-of-00003.safetensors, or NAME.1-.. if the existing set uses such names already.
static void part_name(const char *path, bool other, int k, int parts, char *to, size_t room)
{
	const char *base = base_name(path), *end = strstr(base, ".safetensors" INDEX);
	const int n = end ? (int)(end - base) : (int)(strlen(base) - (sizeof INDEX - 1));
	snprintf(to, room, "%.*s%s-%05d-of-%05d.safetensors", n, base, other ? ".1" : "", k + 1,
		 parts);
}

static bool is_taken(const char *path, const json_t *before, int parts)
{
	char name[512];
	for (int k = 0; k < parts; k++) {
		part_name(path, false, k, parts, name, sizeof name);
		if (json_object_get(before, name))
			return true;
	}
	return false;
}

// Removes the files of `before` that are not in `files`, and those of an unfinished set.
static void remove_files(const char *path, const json_t *before, const json_t *files)
{
	const char *name;
	json_t *number;
	json_object_foreach((json_t *)before, name, number) {
		char *file = json_object_get(files, name) ? NULL : beside(path, name);
		if (file)
			unlink(file);
		free(file);
	}
}

static int write_part(const char *path, const char *name, int n, struct yk_host_tensor *t,
		      json_t *map, uint64_t *total)
{
	char *file = beside(path, name);
	uint64_t bytes, hash;
	int err = file ? yk_safetensors_write(file, n, t, &bytes, &hash) : yoke_error_code();
	for (int i = 0; i < n && !err; i++) {
		if (json_object_get(map, t[i].name))
			err = yk_fail(YOKE_EINVAL, "%s: two tensors are called '%s'", path,
				      t[i].name);
		else if (json_object_set_new(map, t[i].name, json_string(name)) < 0)
			err = yk_fail(YOKE_ENOMEM, "%s: no memory", path);
		if (!err)
			err = yk_host_tensor_bytes(&t[i], &bytes);
		*total += bytes;
	}
	free(file);
	return err;
}

int yk_safetensors_set_write(const char *path, int parts, const int *from,
			     int (*fill)(void *, int, int, struct yk_host_tensor **), void *arg)
{
	json_t *before = files_before(path), *map = json_object(), *written = json_object(),
	       *index = NULL;
	const bool other = is_taken(path, before, parts);
	uint64_t total = 0;
	int err = map && written ? 0 : yk_fail(YOKE_ENOMEM, "%s: no memory", path);
	for (int k = 0; k < parts && !err; k++) {
		char name[512];
		struct yk_host_tensor *t;
		part_name(path, other, k, parts, name, sizeof name);
		err = fill(arg, from[k], from[k + 1] - from[k], &t);
		if (!err && json_object_set_new(written, name, json_true()) < 0)
			err = yk_fail(YOKE_ENOMEM, "%s: no memory", path);
		if (!err)
			err = write_part(path, name, from[k + 1] - from[k], t, map, &total);
	}
	if (!err && !(index = json_pack("{s:{s:I}, s:O}", "metadata", "total_size",
					(json_int_t)total, "weight_map", map)))
		err = yk_fail(YOKE_ENOMEM, "%s: no memory", path);
	if (!err)
		err = yk_json_save(path, index);
	if (err)
		remove_files(path, written, before);
	else
		remove_files(path, before, written);
	json_decref(index);
	json_decref(written);
	json_decref(map);
	json_decref(before);
	return err;
}
