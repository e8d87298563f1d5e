// SPDX-License-Identifier: Apache-2.0
// Safetensors files, written in one pass and read only after the whole header is found
// sound.
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "train/safetensors.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "elements are copied as they are: the host must be little endian"
#endif

#define MOST_HEADER ((uint64_t)100000000) // bytes, as the format's own reader
#define METADATA "__metadata__"

static const struct {
	int dtype;
	const char *name;
	unsigned size;
} dtypes[] = {
	{ yoke_f32, "F32", 4 },   { yoke_f64, "F64", 8 }, { yoke_f16, "F16", 2 },
	{ yoke_bf16, "BF16", 2 }, { yoke_i8, "I8", 1 },   { yoke_u8, "U8", 1 },
	{ yoke_i32, "I32", 4 },   { yoke_i64, "I64", 8 }, { yoke_bool, "BOOL", 1 },
};
#define DTYPES ((int)(sizeof dtypes / sizeof *dtypes))

static int dtype_row(int dtype)
{
	for (int i = 0; i < DTYPES; i++)
		if (dtypes[i].dtype == dtype)
			return i;
	return -1;
}

int yk_host_tensor_bytes(const struct yk_host_tensor *t, uint64_t *bytes)
{
	int row = dtype_row(t->dtype);
	uint64_t n;

	if (row < 0)
		return yk_fail(YOKE_EDTYPE, "tensor '%s': unknown dtype %d", t->name,
			       t->dtype);
	if (t->rank < 0 || t->rank > YOKE_MAX_RANK)
		return yk_fail(YOKE_ERANGE, "tensor '%s': rank %d, at most %d", t->name,
			       t->rank, YOKE_MAX_RANK);
	n = dtypes[row].size;
	for (int i = 0; i < t->rank; i++)
		if (t->dims[i] < 0 ||
		    __builtin_mul_overflow(n, (uint64_t)t->dims[i], &n) || n > INT64_MAX)
			return yk_fail(YOKE_ERANGE,
				       "tensor '%s': dim %d is %lld, out of range",
				       t->name, i, (long long)t->dims[i]);
	*bytes = n;
	return 0;
}

// ---- writing ----

struct place { // of a tensor in the file
	const struct yk_host_tensor *tensor;
	int index, row;
	uint64_t bytes;
};

// Wide elements first, so that every array is aligned to its element without gaps.
static int by_width(const void *x, const void *y)
{
	const struct place *a = x, *b = y;
	unsigned wa = dtypes[a->row].size, wb = dtypes[b->row].size;

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
		if (!*t[i].name || !strcmp(t[i].name, METADATA))
			return yk_fail(YOKE_EINVAL,
				       "%s: a tensor must not be called '%s'", path,
				       t[i].name);
		p->tensor = &t[i];
		p->index = i;
		p->row = dtype_row(t[i].dtype);
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
				  dtypes[places[i].row].name, "shape", shape,
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

static int emit_all(struct yk_file_writer *w, struct yk_hash_state *h,
		    const json_t *header, int n, const struct place *places)
{
	static const char spaces[8] = "       ";
	char *text = json_dumps(header, JSON_COMPACT | JSON_PRESERVE_ORDER);
	uint64_t length, padded;
	int e;

	if (!text)
		return yk_fail(YOKE_ENOMEM, "out of memory for the header of %s",
			       w->path);
	length = strlen(text);
	padded = (length + 7) & ~(uint64_t)7;
	e = emit(w, h, &padded, sizeof padded);
	if (e == 0)
		e = emit(w, h, text, length);
	if (e == 0)
		e = emit(w, h, spaces, padded - length);
	free(text);
	for (int i = 0; e == 0 && i < n; i++)
		e = emit(w, h, places[i].tensor->data, places[i].bytes);
	return e;
}

int yk_safetensors_write(const char *path, int n, const struct yk_host_tensor *t,
			 uint64_t *bytes, uint64_t *hash)
{
	struct place *places = calloc((size_t)n + 1, sizeof *places);
	struct yk_hash_state *h = yk_hash_new();
	json_t *header = json_object();
	struct yk_file_writer w;
	uint64_t written = 0, sum;
	int e;

	if (places && h && header)
		e = place_all(path, n, t, places);
	else
		e = yk_fail(YOKE_ENOMEM, "out of memory for the header of %s", path);
	if (e == 0)
		e = describe(path, n, places, header);
	if (e == 0)
		e = yk_file_begin(&w, path);
	if (e == 0) {
		e = emit_all(&w, h, header, n, places);
		written = w.bytes;
		if (e == 0)
			e = yk_file_commit(&w);
		else
			yk_file_abort(&w);
	}
	sum = h ? yk_hash_end(h) : 0;
	json_decref(header);
	free(places);
	if (e == 0) {
		*bytes = written;
		*hash = sum;
	}
	return e;
}

// ---- reading ----

static int read_at(const struct yk_safetensors *s, uint64_t offset, void *to,
		   uint64_t bytes)
{
	char *at = to;

	while (bytes) {
		// A single call takes at most 2 GiB on Linux.
		size_t some = bytes < 1 << 30 ? bytes : 1 << 30;
		ssize_t n = pread(s->fd, at, some, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return yk_fail(YOKE_EIO, "cannot read '%s': %s", s->path,
				       strerror(errno));
		if (!n)
			return yk_fail(
				YOKE_EIO,
				"'%s' ends at byte %llu: cut short while it was read",
				s->path, (unsigned long long)offset);
		at += n;
		offset += (uint64_t)n;
		bytes -= (uint64_t)n;
	}
	return 0;
}

// { "dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24] }; `size` bytes of data in
// the file.
static int parse_entry(const struct yk_safetensors *s, const char *name, const json_t *o,
		       uint64_t size, struct yk_safetensors_entry *to)
{
	const json_t *dtype = json_object_get(o, "dtype");
	const json_t *shape = json_object_get(o, "shape");
	const json_t *offsets = json_object_get(o, "data_offsets");
	struct yk_host_tensor t = { .name = name };
	uint64_t begin, end, bytes;
	int row;

	if (json_object_size(o) != 3 || !json_is_string(dtype) || !json_is_array(shape) ||
	    !json_is_array(offsets) || json_array_size(offsets) != 2)
		return yk_fail(YOKE_EFORMAT,
			       "%s: tensor '%s': wants dtype, shape and two "
			       "data_offsets",
			       s->path, name);
	for (row = 0; row < DTYPES; row++)
		if (!strcmp(json_string_value(dtype), dtypes[row].name))
			break;
	if (row == DTYPES)
		return yk_fail(YOKE_EFORMAT, "%s: tensor '%s': unknown dtype '%.16s'",
			       s->path, name, json_string_value(dtype));
	if (json_array_size(shape) > YOKE_MAX_RANK)
		return yk_fail(YOKE_EFORMAT, "%s: tensor '%s': rank %zu, at most %d",
			       s->path, name, json_array_size(shape), YOKE_MAX_RANK);
	t.dtype = dtypes[row].dtype;
	t.rank = (int)json_array_size(shape);
	for (int i = 0; i < t.rank; i++) {
		const json_t *dim = json_array_get(shape, (size_t)i);
		if (!json_is_integer(dim) || json_integer_value(dim) < 0)
			return yk_fail(YOKE_EFORMAT, "%s: tensor '%s': dim %d is no size",
				       s->path, name, i);
		t.dims[i] = json_integer_value(dim);
	}
	for (int i = 0; i < 2; i++) {
		const json_t *at = json_array_get(offsets, (size_t)i);
		if (!json_is_integer(at) || json_integer_value(at) < 0 ||
		    (uint64_t)json_integer_value(at) > size)
			return yk_fail(YOKE_EFORMAT,
				       "%s: tensor '%s': data_offsets outside the "
				       "file's %llu bytes of data",
				       s->path, name, (unsigned long long)size);
	}
	begin = (uint64_t)json_integer_value(json_array_get(offsets, 0));
	end = (uint64_t)json_integer_value(json_array_get(offsets, 1));
	if (yk_host_tensor_bytes(&t, &bytes) < 0) {
		yoke_error_clear();
		return yk_fail(YOKE_EFORMAT, "%s: tensor '%s': its shape is too large",
			       s->path, name);
	}
	if (begin > end || end - begin != bytes)
		return yk_fail(YOKE_EFORMAT,
			       "%s: tensor '%s': data_offsets %llu .. %llu, but "
			       "dtype and shape need %llu bytes",
			       s->path, name, (unsigned long long)begin,
			       (unsigned long long)end, (unsigned long long)bytes);
	if (begin % dtypes[row].size)
		return yk_fail(
			YOKE_EFORMAT, "%s: tensor '%s': offset %llu is not aligned to %s",
			s->path, name, (unsigned long long)begin, dtypes[row].name);
	to->name = name;
	to->dtype = t.dtype;
	to->rank = t.rank;
	memcpy(to->dims, t.dims, sizeof to->dims);
	to->offset = begin;
	to->bytes = bytes;
	return 0;
}

static int check_metadata(const struct yk_safetensors *s, json_t *o)
{
	const char *key;
	json_t *value;
	bool good = json_is_object(o);

	json_object_foreach (o, key, value)
		good = good && json_is_string(value);
	if (good)
		return 0;
	return yk_fail(YOKE_EFORMAT, "%s: %s is not an object of strings", s->path,
		       METADATA);
}

static int by_offset(const void *x, const void *y)
{
	const struct yk_safetensors_entry *a = x, *b = y;

	if (a->offset != b->offset)
		return a->offset < b->offset ? -1 : 1;
	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? -1 : 1;
	return strcmp(a->name, b->name);
}

// The arrays cover `size` bytes of data one behind the other.
static int check_cover(const struct yk_safetensors *s, uint64_t size)
{
	uint64_t at = 0;

	for (int i = 0; i < s->count; i++) {
		const struct yk_safetensors_entry *x = &s->entries[i];
		if (x->offset != at)
			return yk_fail(YOKE_EFORMAT,
				       "%s: tensor '%s': begins at %llu, %s at %llu",
				       s->path, x->name, (unsigned long long)x->offset,
				       x->offset < at ? "inside the one that ends" :
							"behind a gap that begins",
				       (unsigned long long)at);
		at += x->bytes;
	}
	if (at != size)
		return yk_fail(YOKE_EFORMAT,
			       "%s: %llu bytes of data, but the header describes %llu",
			       s->path, (unsigned long long)size, (unsigned long long)at);
	return 0;
}

static int parse_header(struct yk_safetensors *s, char *text, uint64_t length)
{
	uint64_t start = 8 + length, size = s->bytes - start;
	const char *name;
	json_t *o;
	int e;

	if (!length || *text != '{')
		return yk_fail(YOKE_EFORMAT, "%s: not a safetensors file: no header",
			       s->path);
	s->header = yk_json_parse(text, length, s->path);
	if (!s->header)
		return yoke_error_code();
	s->entries = calloc(json_object_size(s->header) + 1, sizeof *s->entries);
	if (!s->entries)
		return yk_fail(YOKE_ENOMEM, "out of memory for the header of '%s'",
			       s->path);
	json_object_foreach (s->header, name, o) {
		if (!strcmp(name, METADATA))
			e = check_metadata(s, o);
		else
			e = parse_entry(s, name, o, size, &s->entries[s->count++]);
		if (e < 0)
			return e;
	}
	qsort(s->entries, (size_t)s->count, sizeof *s->entries, by_offset);
	e = check_cover(s, size);
	for (int i = 0; i < s->count; i++)
		s->entries[i].offset += start;
	return e;
}

static int open_file(struct yk_safetensors *s)
{
	uint64_t length;
	struct stat st;
	char *text;
	int e;

	// O_NONBLOCK: a pipe of that name must not hold us up
	s->fd = open(s->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (s->fd < 0)
		return yk_fail(errno == ENOENT ? YOKE_ENOENT : YOKE_EIO,
			       "cannot read '%s': %s", s->path, strerror(errno));
	if (fstat(s->fd, &st) < 0)
		return yk_fail(YOKE_EIO, "cannot read '%s': %s", s->path,
			       strerror(errno));
	if (!S_ISREG(st.st_mode))
		return yk_fail(YOKE_EFORMAT, "%s: not a regular file", s->path);
	s->bytes = (uint64_t)st.st_size;
	if (s->bytes < 8)
		return yk_fail(YOKE_EFORMAT,
			       "%s: %llu bytes are too few for a safetensors file",
			       s->path, (unsigned long long)s->bytes);
	e = read_at(s, 0, &length, sizeof length);
	if (e < 0)
		return e;
	if (length > s->bytes - 8 || length > MOST_HEADER)
		return yk_fail(YOKE_EFORMAT,
			       "%s: a header of %llu bytes in a file of %llu", s->path,
			       (unsigned long long)length, (unsigned long long)s->bytes);
	text = malloc(length + 1);
	if (!text)
		return yk_fail(YOKE_ENOMEM, "out of memory for the header of '%s'",
			       s->path);
	e = read_at(s, 8, text, length);
	if (e == 0)
		e = parse_header(s, text, length);
	free(text);
	return e;
}

int yk_safetensors_open(struct yk_safetensors *to, const char *path)
{
	struct yk_safetensors s = { .fd = -1, .path = strdup(path) };
	int e = s.path ? open_file(&s) : yk_fail(YOKE_ENOMEM, "out of memory for a path");

	if (e < 0)
		yk_safetensors_close(&s);
	else
		*to = s;
	return e;
}

void yk_safetensors_close(struct yk_safetensors *s)
{
	if (s->fd >= 0)
		close(s->fd);
	json_decref(s->header);
	free(s->entries);
	free(s->path);
	*s = (struct yk_safetensors){ .fd = -1 };
}

const struct yk_safetensors_entry *yk_safetensors_find(const struct yk_safetensors *s,
						       const char *name)
{
	for (int i = 0; i < s->count; i++)
		if (!strcmp(s->entries[i].name, name))
			return &s->entries[i];
	return NULL;
}

int yk_safetensors_read(const struct yk_safetensors *s,
			const struct yk_safetensors_entry *x, void *to)
{
	int e = read_at(s, x->offset, to, x->bytes);

	if (e == 0 && x->dtype == yoke_bool)
		for (uint64_t i = 0; i < x->bytes; i++)
			if (((const uint8_t *)to)[i] > 1)
				return yk_fail(YOKE_EFORMAT,
					       "%s: tensor '%s': element %llu of a "
					       "bool is neither 0 nor 1",
					       s->path, x->name, (unsigned long long)i);
	return e;
}
