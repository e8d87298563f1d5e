// SPDX-License-Identifier: Apache-2.0
// Writes folders as Hugging Face's libraries do: config.json, model.safetensors, in several files
// if it is large, tokenizer files.  The folder is written under a temporary name and renamed when
// it is complete.
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "export/export.h"
#include "formats/checkpoint.h"
#include "yoke-quant.h"

// ---- weights ----

static int dtype_of(const struct yk_export_tensor *t, int format)
{
	const int stored = (int)yk_export_stored(t), use = format >= 0 ? format : stored;
	return use == YK_GGUF_F16 ? yoke_f16 : use == YK_GGUF_BF16 ? yoke_bf16 : yoke_f32;
}

static size_t width_of(int dtype)
{
	return dtype == yoke_f32 ? 4 : 2;
}

static uint64_t bytes_of(const struct yk_export_tensor *t, int format)
{
	return (uint64_t)t->dims[0] * (uint64_t)(t->rank == 2 ? t->dims[1] : 1) *
	       width_of(dtype_of(t, format));
}

static int quant_of(int dtype)
{
	return dtype == yoke_f16  ? YOKE_QUANT_F16 :
	       dtype == yoke_bf16 ? YOKE_QUANT_BF16 :
				    YOKE_QUANT_F32;
}

struct order {
	uint64_t offset;
	size_t i;
};

static int by_offset(const void *a, const void *b)
{
	const struct order *x = a, *y = b;
	return (x->offset > y->offset) - (x->offset < y->offset);
}

// Writes tensors from .. from + n - 1 of the list.
static int write_file(const struct yk_export *x, int format, size_t from, size_t n,
		      const char *path)
{
	struct yk_host_tensor *t = calloc(n, sizeof *t);
	uint64_t *offset = calloc(n, sizeof *offset);
	struct order *order = calloc(n, sizeof *order);
	json_t *metadata = json_pack("{s:s}", "format", "pt"); // required by transformers
	size_t bytes;
	char *head = NULL;
	struct yk_file_writer to;
	int e = t && offset && order && metadata ? 0 : yk_fail(YOKE_ENOMEM, "%s: no memory", path);
	for (size_t i = 0; i < n && e == 0; i++) {
		const struct yk_export_tensor *s = &x->tensor[from + i];
		t[i] = (struct yk_host_tensor){ .name = s->name,
						.dtype = dtype_of(s, format),
						.rank = s->rank };
		memcpy(t[i].dims, s->dims, sizeof s->dims);
	}
	if (e == 0 && !(head = yk_safetensors_head(path, metadata, (int)n, t, &bytes, offset)))
		e = yoke_error_code();
	for (size_t i = 0; i < n && e == 0; i++)
		order[i] = (struct order){ offset[i], i };
	if (e == 0)
		qsort(order, n, sizeof *order, by_offset);
	if (e == 0)
		e = yk_file_begin(&to, path);
	if (e == 0) {
		e = yk_file_add(&to, head, bytes);
		for (size_t i = 0; i < n && e == 0; i++)
			e = yk_export_write_tensor(&x->tensor[from + order[i].i],
						   quant_of(t[order[i].i].dtype), &to);
		if (e == 0)
			e = yk_file_commit(&to);
		else
			yk_file_abort(&to);
	}
	json_decref(metadata);
	free(head);
	free(order);
	free(offset);
	free(t);
	return e;
}

// The end of the file that begins with tensor `from`: as many as fit, but at least one.
static size_t file_end(const struct yk_export *x, const struct yk_export_options *o, size_t from)
{
	uint64_t bytes = 0;
	size_t i = from;
	for (; i < x->tensors; i++) {
		bytes += bytes_of(&x->tensor[i], o->format);
		if (i > from && bytes > o->shard)
			break;
	}
	return i;
}

static int write_index(const struct yk_export *x, const struct yk_export_options *o, json_t *map,
		       const char *folder)
{
	char path[4096];
	uint64_t total = 0;
	for (size_t i = 0; i < x->tensors; i++)
		total += bytes_of(&x->tensor[i], o->format);
	json_t *index = json_pack("{s:{s:I}, s:O}", "metadata", "total_size", (json_int_t)total,
				  "weight_map", map);
	snprintf(path, sizeof path, "%s/model.safetensors.index.json", folder);
	const int e =
		index ? yk_json_save(path, index) : yk_fail(YOKE_ENOMEM, "%s: no memory", path);
	json_decref(index);
	return e;
}

static int write_weights(const struct yk_export *x, const struct yk_export_options *o,
			 const char *folder)
{
	char path[4096], name[64] = "model.safetensors";
	json_t *map = json_object();
	int files = 0, e = map ? 0 : yk_fail(YOKE_ENOMEM, "%s: no memory", folder);
	for (size_t from = 0; from < x->tensors; from = file_end(x, o, from))
		files++;
	int k = 0;
	for (size_t from = 0, end; from < x->tensors && e == 0; from = end) {
		end = file_end(x, o, from);
		if (files > 1)
			snprintf(name, sizeof name, "model-%05d-of-%05d.safetensors", ++k, files);
		snprintf(path, sizeof path, "%s/%s", folder, name);
		e = write_file(x, o->format, from, end - from, path);
		for (size_t i = from; i < end; i++)
			json_object_set_new(map, x->tensor[i].name, json_string(name));
	}
	if (e == 0 && files > 1)
		e = write_index(x, o, map, folder);
	json_decref(map);
	return e;
}

// ---- configuration ----

// The dtype in which transformers computes by default: one that holds all weights.
static const char *common_dtype(const struct yk_export *x, int format)
{
	int dtype = dtype_of(&x->tensor[0], format);
	for (size_t i = 1; i < x->tensors; i++)
		if (dtype_of(&x->tensor[i], format) != dtype)
			dtype = yoke_f32;
	return dtype == yoke_f16 ? "float16" : dtype == yoke_bf16 ? "bfloat16" : "float32";
}

static int write_config(const struct yk_export *x, int format, const char *folder)
{
	char path[4096];
	json_t *o = x->config ? json_deep_copy(x->config) : yk_export_config(x);
	snprintf(path, sizeof path, "%s/config.json", folder);
	if (o)
		json_object_set_new(o, json_object_get(o, "dtype") ? "dtype" : "torch_dtype",
				    json_string(common_dtype(x, format)));
	const int e = o                     ? yk_json_save(path, o) :
		      yoke_error_code() < 0 ? yoke_error_code() :
					      yk_fail(YOKE_ENOMEM, "%s: no memory", path);
	json_decref(o);
	return e;
}

// ---- the folder ----

static int write_folder(const struct yk_export *x, const struct yk_export_options *o,
			const char *folder)
{
	int e = write_config(x, o->format, folder);
	if (e == 0)
		e = yk_export_tokenizer_hf(x, folder);
	return e == 0 ? write_weights(x, o, folder) : e;
}

// Renames the complete folder to its name; an earlier one is removed afterwards.
static int publish(const char *temporary, const char *old, const char *to)
{
	struct stat st;
	const bool replaces = stat(to, &st) == 0;
	if (replaces && rename(to, old) < 0)
		return yk_fail(YOKE_EIO, "out=%s: %s", to, strerror(errno));
	if (rename(temporary, to) < 0) {
		const int reason = errno;
		if (replaces && rename(old, to) < 0)
			return yk_fail(YOKE_EIO, "out=%s: %s; its previous contents are in %s", to,
				       strerror(reason), old);
		return yk_fail(YOKE_EIO, "out=%s: %s", to, strerror(reason));
	}
	return replaces ? yk_dir_remove(old) : 0;
}

// Does the marker's kind of export write a file of this name?
static bool is_exported(const char *marker, const char *name)
{
	static const char *const names[] = {
		"config.json",
		"generation_config.json",
		"model.safetensors",
		"model-*-of-*.safetensors",
		"model.safetensors.index.json",
		"tokenizer.json",
		"tokenizer.model",
		"tokenizer_config.json",
		"special_tokens_map.json",
		"added_tokens.json",
		"vocab.json",
		"merges.txt",
		"chat_template.jinja",
		"chat_template.json",
	};
	if (strcmp(marker, "config.json") != 0)
		return !strcmp(name, marker) || !strcmp(name, "adapter_model.safetensors");
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (fnmatch(names[i], name, 0) == 0)
			return true;
	return false;
}

// Has the folder only files that the same kind of export writes?  All others would be lost with it.
static int check_replaceable(const char *to, const char *marker)
{
	DIR *dir = opendir(to);
	int e = dir ? 0 : yk_fail(YOKE_EIO, "out=%s: %s", to, strerror(errno));
	for (struct dirent *d; e == 0 && (d = readdir(dir));) {
		struct stat st;
		const bool folder = fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
				    S_ISDIR(st.st_mode);
		if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."))
			continue;
		if (folder || !is_exported(marker, d->d_name))
			e = yk_fail(
				YOKE_EINVAL,
				"out=%s: holds the %s '%.80s', which would be lost; remove it or choose another name",
				to, folder ? "folder" : "file", d->d_name);
	}
	if (dir)
		closedir(dir);
	return e;
}

int yk_export_folder(const char *to, const char *marker,
		     int (*write)(const struct yk_export *, const struct yk_export_options *,
				  const char *folder),
		     const struct yk_export *x, const struct yk_export_options *o)
{
	struct stat st;
	char *temporary = NULL, *old = NULL, name[4096];
	size_t n = strlen(to);
	int e = 0;
	while (n > 1 && to[n - 1] == '/')
		n--;
	if (stat(to, &st) == 0) {
		snprintf(name, sizeof name, "%s/%s", to, marker);
		if (!S_ISDIR(st.st_mode) || access(name, F_OK) < 0)
			return yk_fail(YOKE_EINVAL,
				       "out=%s: has no %s and is not replaced; choose another name",
				       to, marker);
		if (yk_checkpoint_exists(to))
			return yk_fail(
				YOKE_EINVAL,
				"out=%s: holds a run, which is not replaced; choose another name",
				to);
		e = check_replaceable(to, marker);
	}
	if (e < 0)
		return e;
	if (asprintf(&temporary, "%.*s.tmp.%ld", (int)n, to, (long)getpid()) < 0 ||
	    asprintf(&old, "%.*s.old.%ld", (int)n, to, (long)getpid()) < 0)
		e = yk_fail(YOKE_ENOMEM, "out=%s: no memory", to);
	if (e == 0)
		e = yk_dir_make(temporary);
	if (e == 0) {
		e = write(x, o, temporary);
		if (e == 0)
			e = publish(temporary, old, to);
		if (e < 0)
			yk_dir_remove(temporary);
	}
	free(temporary);
	free(old);
	return e;
}

int yk_export_hf(const char *path, const char *to, const struct yk_export_options *o)
{
	struct yk_export x;
	int e = yk_export_target(path, to, o->overwrite);
	if (e < 0)
		return e;
	e = yk_export_open(path, false, o, &x);
	if (e == 0 && x.base)
		e = yk_export_target(x.base, to, o->overwrite);
	if (e == 0)
		e = yk_export_folder(to, "config.json", write_folder, &x, o);
	yk_export_close(&x);
	return e;
}
