// SPDX-License-Identifier: Apache-2.0
// Saves and loads modules as safetensors files, one or several under an index.
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "base/sized.h"
#include "formats/safetensors_set.h"
#include "graph/graph.h"
#include "nn/module.h"

// ---- saving ----

static void host_free(struct yk_host_tensor *t, size_t n)
{
	for (size_t i = 0; t && i < n; i++)
		free(t[i].data);
	free(t);
}

static int read_all(const struct yk_module_entry *e, size_t n, struct yk_host_tensor *to)
{
	for (size_t i = 0; i < n; i++) {
		yoke_tensor *t = e[i].own->tensor;
		to[i] = (struct yk_host_tensor){ .name = e[i].own->path, .dtype = yoke_dtype(t) };
		to[i].rank = yk_module_dims(t, to[i].dims);
		if (!(to[i].data = malloc(yoke_bytes(t) + 1)))
			return yk_fail(YOKE_ENOMEM, "module_save: no host memory for '%s'",
				       to[i].name);
		int err = yoke_read(t, to[i].data, yoke_bytes(t));
		if (err)
			return err;
	}
	return 0;
}

int yoke_module_save(yoke_module *m, const char *path)
{
	size_t n;
	uint64_t bytes, hash;
	if (path && yk_safetensors_is_index(path))
		return yk_fail(
			YOKE_EINVAL,
			"module_save: '%s' is the name of an index; yoke_module_save_split writes one, with "
			"its files",
			path);
	struct yk_module_entry *e =
		yk_module_require(m, "module_save") ? yk_module_entries(m, &n) : NULL;
	if (!e)
		return yoke_error_code();
	struct yk_host_tensor *t = calloc(n + 1, sizeof *t);
	int err = t ? read_all(e, n, t) : yk_fail(YOKE_ENOMEM, "module_save: no memory");
	if (!err)
		err = yk_safetensors_write(path, (int)n, t, &bytes, &hash);
	host_free(t, n);
	free(e);
	return err;
}

struct split {
	const struct yk_module_entry *entry;
	struct yk_host_tensor *tensor; // of one file
	int n;
};

static int split_fill(void *arg, int from, int n, struct yk_host_tensor **to)
{
	struct split *s = arg;
	host_free(s->tensor, (size_t)s->n);
	s->n = n;
	s->tensor = *to = calloc((size_t)n + 1, sizeof **to);
	return s->tensor ? read_all(s->entry + from, (size_t)n, s->tensor) :
			   yk_fail(YOKE_ENOMEM, "module_save_split: no memory");
}

int yoke_module_save_split(yoke_module *m, const char *path, uint64_t max)
{
	size_t n;
	if (!path || !yk_safetensors_is_index(path) || !max)
		return yk_fail(
			YOKE_EINVAL,
			"module_save_split: '%s' with files of %llu bytes: an index is called "
			"NAME.safetensors.index.json, and its files have a byte at least",
			path ? path : "", (unsigned long long)max);
	struct yk_module_entry *e =
		yk_module_require(m, "module_save_split") ? yk_module_entries(m, &n) : NULL;
	if (!e)
		return yoke_error_code();
	struct split s = { .entry = e };
	int parts = 0, *from = calloc(n + 2, sizeof *from);
	int err = from ? 0 : yk_fail(YOKE_ENOMEM, "module_save_split: no memory");
	uint64_t bytes = 0;
	for (size_t i = 0; i < n && !err; i++) {
		const uint64_t more = yoke_bytes(e[i].own->tensor);
		if (parts == 0 || bytes + more > max) {
			from[parts++] = (int)i;
			bytes = 0;
		}
		bytes += more;
	}
	if (!err) {
		parts += parts == 0; // a module without tensors still has one file
		from[parts] = (int)n;
		err = yk_safetensors_set_write(path, parts, from, split_fill, &s);
	}
	host_free(s.tensor, (size_t)s.n);
	free(from);
	free(e);
	return err;
}

// ---- loading ----

struct load {
	const struct yk_safetensors_set *file;
	const struct yoke_module_load *how;
	const struct yk_module_entry *entry;
	size_t n;
	int *from; // by entry: index in the file; -1: none
	char wrong[1500];
	size_t length;
	int described, more, code;
};

// Records a mismatch; the first dozen are described.
__attribute__((format(printf, 3, 4)))
static void wrong(struct load *l, int code, const char *fmt, ...)
{
	va_list ap;
	l->code = l->code ? l->code : code;
	if (l->described++ >= 12) {
		l->more++;
		return;
	}
	va_start(ap, fmt);
	l->length += (size_t)snprintf(l->wrong + l->length, sizeof l->wrong - l->length,
				      l->length ? "; " : "");
	yk_vsnprintf(l->wrong + l->length, sizeof l->wrong - l->length, fmt, ap);
	va_end(ap);
	l->length = strlen(l->wrong);
}

static void judge(struct load *l, size_t i)
{
	const struct yk_safetensors_entry *f = l->file->part[l->from[i]].entry;
	const yoke_tensor *t = l->entry[i].own->tensor;
	const char *path = l->entry[i].own->path;
	int64_t dims[YOKE_MAX_RANK];
	const int rank = yk_module_dims(t, dims);
	const bool same = f->rank == rank && !memcmp(f->dims, dims, (size_t)rank * sizeof *dims);
	const bool cast = !l->how->exact && yk_is_float(f->dtype) && yk_is_float(yoke_dtype(t));
	if (!same) {
		char has[YK_SHAPE_TEXT], wants[YK_SHAPE_TEXT];
		wrong(l, YOKE_ESHAPE, "'%.80s' is %s, not %s", path,
		      yk_shape_text(has, f->rank, f->dims), yk_shape_text(wants, rank, dims));
	} else if (f->dtype != yoke_dtype(t) && !cast) {
		wrong(l, YOKE_EDTYPE, "'%.80s' is %s, not %s", path, yk_safetensors_dtype(f->dtype),
		      yoke_dtype_name(yoke_dtype(t)));
	}
}

// Matches entries of the file to tensors.
static void match(struct load *l)
{
	for (size_t i = 0; i < l->n; i++)
		l->from[i] = -1;
	for (int k = 0; k < l->file->count; k++) {
		char name[1024];
		const char *has = l->file->part[k].entry->name;
		snprintf(name, sizeof name, "%s", has);
		if (l->how->rename)
			l->how->rename(l->how->arg, has, name, sizeof name);
		size_t i = 0;
		while (i < l->n && strcmp(l->entry[i].own->path, name))
			i++;
		if (i == l->n && !l->how->partial)
			wrong(l, YOKE_EFORMAT, "'%.80s' is not known", has);
		else if (i < l->n && l->from[i] >= 0)
			wrong(l, YOKE_EFORMAT, "'%.80s' is there twice", name);
		else if (i < l->n)
			l->from[i] = k;
	}
	for (size_t i = 0; i < l->n; i++)
		if (l->from[i] >= 0)
			judge(l, i);
		else if (!l->how->partial)
			wrong(l, YOKE_EFORMAT, "'%.80s' is missing", l->entry[i].own->path);
}

// Converts elements of a file to the tensor's dtype, in newly allocated memory.
static int convert(const void *data, const struct yk_safetensors_entry *f, int dtype, void **to)
{
	int64_t count = (int64_t)(f->bytes / yk_safetensors_size(f->dtype));
	const size_t bytes = (size_t)count * yoke_dtype_size(dtype);
	if (!(*to = malloc(bytes + 1)))
		return yk_fail(YOKE_ENOMEM, "module_load: no host memory for '%s'", f->name);
	yoke_scope *s = yoke_scope_begin("load");
	int err = yoke_read(yoke_cast(yoke_from(f->dtype, 1, &count, data), dtype), *to, bytes);
	const int ended = yoke_scope_end(s);
	return err ? err : ended;
}

// Checks and converts everything before changing any tensor; the rest is copied directly from the
// mapped files.
static int take(const struct load *l, const char *path)
{
	const void **data = calloc(l->n + 1, sizeof *data);
	void **own = calloc(l->n + 1, sizeof *own);
	int err = data && own ? 0 : yk_fail(YOKE_ENOMEM, "%s: no memory", path);
	for (size_t i = 0; i < l->n && !err; i++) {
		if (l->from[i] < 0)
			continue;
		const struct yk_safetensors_part *p = &l->file->part[l->from[i]];
		const int dtype = yoke_dtype(l->entry[i].own->tensor);
		if (!(data[i] = yk_safetensors_data(p->file, p->entry)))
			err = yoke_error_code();
		else if (p->entry->dtype != dtype &&
			 !(err = convert(data[i], p->entry, dtype, &own[i])))
			data[i] = own[i];
	}
	for (size_t i = 0; i < l->n && !err; i++)
		if (data[i])
			err = yoke_put(l->entry[i].own->tensor, data[i],
				       yoke_bytes(l->entry[i].own->tensor));
	for (size_t i = 0; own && i < l->n; i++)
		free(own[i]);
	free(own);
	free(data);
	return err;
}

int yoke_module_load(yoke_module *m, const char *path, const struct yoke_module_load *how)
{
	struct yoke_module_load own = { .size = sizeof own };
	struct yk_safetensors_set f;
	int err = how ? yk_sized_read(&own, sizeof own, how, "module_load", "yoke_module_load") : 0;
	if (!err)
		err = yk_require(path, "path");
	if (err)
		return err;
	struct load l = { .file = &f, .how = &own };
	struct yk_module_entry *e =
		yk_module_require(m, "module_load") ? yk_module_entries(m, &l.n) : NULL;
	if (!e)
		return yoke_error_code();
	l.entry = e;
	l.from = calloc(l.n + 1, sizeof *l.from);
	err = l.from ? yk_safetensors_set_open(&f, path) :
		       yk_fail(YOKE_ENOMEM, "%s: no memory", path);
	if (!err) {
		char more[40] = "";
		match(&l);
		if (l.more)
			snprintf(more, sizeof more, "; and %d more", l.more);
		err = l.code ? yk_fail(l.code, "%s: %s%s", path, l.wrong, more) : take(&l, path);
		yk_safetensors_set_close(&f);
	}
	free(l.from);
	free(e);
	return err;
}
