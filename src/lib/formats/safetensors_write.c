// SPDX-License-Identifier: Apache-2.0
// Writes safetensors files in one pass.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "formats/safetensors.h"

struct place { // position of a tensor in the file
	const struct yk_host_tensor *tensor;
	int index;
	uint64_t bytes;
};

// Wide elements first, so that every array is aligned to its element without gaps.
static int by_width(const void *x, const void *y)
{
	const struct place *a = x, *b = y;
	size_t wa = yk_safetensors_size(a->tensor->dtype);
	size_t wb = yk_safetensors_size(b->tensor->dtype);

	return wa != wb ? (wa < wb) - (wa > wb) :
			  (a->index > b->index) - (a->index < b->index);
}

static int place_all(const char *path, int n, const struct yk_host_tensor *t,
		     struct place *places)
{
	for (int i = 0; i < n; i++) {
		struct place *p = &places[i];
		int e = yk_host_tensor_bytes(&t[i], &p->bytes);
		if (e < 0)
			return e;
		if (!*t[i].name || !strcmp(t[i].name, YK_SAFETENSORS_METADATA))
			return yk_fail(YOKE_EINVAL,
				       "%s: a tensor must not be called '%s'", path,
				       t[i].name);
		p->tensor = &t[i];
		p->index = i;
	}
	qsort(places, (size_t)n, sizeof *places, by_width);
	return 0;
}

// The header's object: { name: { dtype, shape, data_offsets } .. }
static int describe(const char *path, int n, const struct place *places, json_t *header)
{
	uint64_t begin = 0, end;

	for (int i = 0; i < n; i++, begin = end) {
		const struct yk_host_tensor *t = places[i].tensor;
		json_t *shape, *entry;
		if (json_object_get(header, t->name))
			return yk_fail(YOKE_EINVAL, "%s: two tensors are called '%s'",
				       path, t->name);
		if (__builtin_add_overflow(begin, places[i].bytes, &end) ||
		    end > INT64_MAX)
			return yk_fail(YOKE_ERANGE, "%s: too large at tensor '%s'", path,
				       t->name);
		shape = json_array();
		for (int k = 0; k < t->rank; k++)
			json_array_append_new(shape, json_integer(t->dims[k]));
		entry = json_pack("{s:s, s:o, s:[I, I]}", "dtype",
				  yk_safetensors_dtype(t->dtype), "shape", shape,
				  "data_offsets", (json_int_t)begin, (json_int_t)end);
		if (json_object_set_new(header, t->name, entry) < 0)
			return yk_fail(YOKE_EINVAL,
				       "%s: tensor '%s': no memory, or the name is "
				       "not UTF-8",
				       path, t->name);
	}
	return 0;
}

static int emit(struct yk_file_writer *w, struct yk_hash_state *h, const void *data,
		size_t bytes)
{
	yk_hash_add(h, data, bytes);
	return yk_file_add(w, data, bytes);
}

// The beginning of the file, up to its data: length, JSON, padding.
static char *head_text(const char *path, const json_t *header, size_t *bytes)
{
	char *text = yk_json_text(header, JSON_COMPACT | JSON_PRESERVE_ORDER), *head = NULL;
	const uint64_t length = text ? strlen(text) : 0, padded = (length + 7) & ~(uint64_t)7;
	if (text)
		head = malloc(8 + padded);
	if (head) {
		memcpy(head, &(uint64_t){ yk_le64(padded) }, 8);
		memcpy(head + 8, text, length);
		memset(head + 8 + length, ' ', padded - length);
		*bytes = 8 + padded;
	} else {
		yk_fail(YOKE_ENOMEM, "out of memory for the header of %s", path);
	}
	free(text);
	return head;
}

static char *make_head(const char *path, json_t *metadata, int n, const struct yk_host_tensor *t,
		       struct place *places, size_t *bytes)
{
	json_t *header = json_object();
	char *head = NULL;
	if (header && metadata)
		json_object_set(header, YK_SAFETENSORS_METADATA, metadata);
	if (!header || !places)
		yk_fail(YOKE_ENOMEM, "out of memory for the header of %s", path);
	else if (place_all(path, n, t, places) == 0 && describe(path, n, places, header) == 0)
		head = head_text(path, header, bytes);
	json_decref(header);
	return head;
}

char *yk_safetensors_head(const char *path, json_t *metadata, int n, const struct yk_host_tensor *t,
			  size_t *bytes, uint64_t *offset)
{
	struct place *places = calloc((size_t)n + 1, sizeof *places);
	char *head = make_head(path, metadata, n, t, places, bytes);
	uint64_t at = head ? *bytes : 0;
	for (int i = 0; head && i < n; i++) {
		offset[places[i].index] = at;
		at += places[i].bytes;
	}
	free(places);
	return head;
}

// Writes an array's data, from memory or in windows from the callback.
static int emit_array(struct yk_file_writer *w, struct yk_hash_state *h, const struct place *p,
		      yk_safetensors_source_fn *give, void *arg, char *window)
{
	const size_t width = yk_safetensors_part(p->tensor->dtype);
	int e = 0;
	if (!window)
		return emit(w, h, p->tensor->data, p->bytes);
	for (uint64_t at = 0; at < p->bytes && e == 0; at += YK_SAFETENSORS_WINDOW) {
		const uint64_t left = p->bytes - at;
		const size_t n =
			left < YK_SAFETENSORS_WINDOW ? (size_t)left : YK_SAFETENSORS_WINDOW;
		if (give)
			e = give(arg, p->index, at, n, window);
		else
			memcpy(window, (const char *)p->tensor->data + at, n);
		yk_le(window, width, width ? n / width : 0);
		if (e == 0)
			e = emit(w, h, window, n);
	}
	return e;
}

int yk_safetensors_write_by(const char *path, int n, const struct yk_host_tensor *t,
			    yk_safetensors_source_fn *give, void *arg, uint64_t *bytes,
			    uint64_t *hash)
{
	struct place *places = calloc((size_t)n + 1, sizeof *places);
	struct yk_hash_state *h = yk_hash_new(0);
	struct yk_file_writer w;
	size_t length;
	char *window = give || YK_HOST_BIG ? malloc(YK_SAFETENSORS_WINDOW) : NULL;
	char *head = make_head(path, NULL, n, t, places, &length);
	int e = !head ? yoke_error_code() :
		!h || ((give || YK_HOST_BIG) && !window) ?
			yk_fail(YOKE_ENOMEM, "out of memory to write %s", path) :
			0;

	if (e == 0)
		e = yk_file_begin(&w, path);
	if (e == 0) {
		e = emit(&w, h, head, length);
		for (int i = 0; e == 0 && i < n; i++)
			e = emit_array(&w, h, &places[i], give, arg, window);
		const uint64_t written = w.bytes;
		if (e == 0)
			e = yk_file_commit(&w);
		else
			yk_file_abort(&w);
		if (e == 0) {
			*bytes = written;
			*hash = yk_hash_end(h);
			h = NULL;
		}
	}
	if (h)
		yk_hash_end(h);
	free(window);
	free(head);
	free(places);
	return e;
}

int yk_safetensors_write(const char *path, int n, const struct yk_host_tensor *t, uint64_t *bytes,
			 uint64_t *hash)
{
	return yk_safetensors_write_by(path, n, t, NULL, NULL, bytes, hash);
}
