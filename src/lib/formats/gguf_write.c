// SPDX-License-Identifier: Apache-2.0
// Writes GGUF files (formats/gguf_write.h).
#include "config.h"

#include "formats/gguf_write.h"

#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "base/error.h"

enum { ALIGNMENT = 32 }; // general.alignment's default

int yk_gguf_writer_init(struct yk_gguf_writer *w)
{
	*w = (struct yk_gguf_writer){ 0 };
	w->key.f = open_memstream(&w->key.at, &w->key.bytes);
	w->tensor.f = open_memstream(&w->tensor.at, &w->tensor.bytes);
	return w->key.f && w->tensor.f ? 0 : yk_fail(YOKE_ENOMEM, "gguf: no memory for metadata");
}

void yk_gguf_writer_fini(struct yk_gguf_writer *w)
{
	struct yk_gguf_section *all[] = { &w->key, &w->tensor };
	for (int i = 0; i < 2; i++) {
		if (all[i]->f)
			fclose(all[i]->f);
		free(all[i]->at);
	}
	*w = (struct yk_gguf_writer){ 0 };
}

// ---- little-endian values ----

static void put(FILE *f, uint64_t v, int bytes)
{
	for (int i = 0; i < bytes; i++)
		putc((int)(v >> 8 * i & 255), f);
}

static void put_text(FILE *f, const char *text, size_t bytes)
{
	put(f, bytes, 8);
	fwrite(text, 1, bytes, f);
}

static FILE *put_name(struct yk_gguf_writer *w, const char *name, enum yk_gguf_type type)
{
	put_text(w->key.f, name, strlen(name));
	put(w->key.f, type, 4);
	w->keys++;
	return w->key.f;
}

static FILE *put_array_name(struct yk_gguf_writer *w, const char *name, enum yk_gguf_type type,
			    uint64_t n)
{
	FILE *f = put_name(w, name, YK_GGUF_ARRAY);
	put(f, type, 4);
	put(f, n, 8);
	return f;
}

// ---- keys ----

void yk_gguf_put_u32(struct yk_gguf_writer *w, const char *name, uint32_t v)
{
	put(put_name(w, name, YK_GGUF_U32), v, 4);
}

void yk_gguf_put_real(struct yk_gguf_writer *w, const char *name, double v)
{
	const float x = (float)v;
	uint32_t bits;
	memcpy(&bits, &x, sizeof bits);
	put(put_name(w, name, YK_GGUF_FLOAT), bits, 4);
}

void yk_gguf_put_bool(struct yk_gguf_writer *w, const char *name, bool v)
{
	put(put_name(w, name, YK_GGUF_BOOL), v, 1);
}

void yk_gguf_put_string(struct yk_gguf_writer *w, const char *name, const char *text, size_t bytes)
{
	put_text(put_name(w, name, YK_GGUF_STRING), text, bytes);
}

void yk_gguf_put_array(struct yk_gguf_writer *w, const char *name, enum yk_gguf_type type,
		       uint64_t n, const void *data)
{
	const size_t size = type == YK_GGUF_U8 || type == YK_GGUF_S8 ? 1 : 4;
	fwrite(data, size, (size_t)n, put_array_name(w, name, type, n));
}

void yk_gguf_put_strings(struct yk_gguf_writer *w, const char *name, uint64_t n)
{
	put_array_name(w, name, YK_GGUF_STRING, n);
}

void yk_gguf_put_element(struct yk_gguf_writer *w, const char *text, size_t bytes)
{
	put_text(w->key.f, text, bytes);
}

void yk_gguf_put_key(struct yk_gguf_writer *w, const struct yk_gguf_key *k)
{
	FILE *f = k->array ? put_array_name(w, k->name, k->type, k->count) :
			     put_name(w, k->name, k->type);
	fwrite(k->data, 1, (size_t)k->bytes, f);
}

// ---- tensors ----

static uint64_t padded(uint64_t n)
{
	return (n + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

int yk_gguf_put_tensor(struct yk_gguf_writer *w, const char *name, int rank, const int64_t *dims,
		       enum yk_gguf_format format)
{
	unsigned elements, size;
	uint64_t n = 1, bytes, end;
	bool fits = yk_gguf_format_name(format, &elements, &size) && rank >= 1 && rank <= 4 &&
		    dims[rank - 1] % elements == 0;
	for (int i = 0; i < rank && fits; i++)
		fits = dims[i] > 0 && !__builtin_mul_overflow(n, (uint64_t)dims[i], &n);
	fits = fits && !__builtin_mul_overflow(n / elements, size, &bytes) &&
	       bytes < INT64_MAX / 2 && !__builtin_add_overflow(w->data, padded(bytes), &end) &&
	       end < INT64_MAX;
	if (!fits)
		return yk_fail(
			YOKE_ERANGE,
			"gguf: tensor '%s' does not fit the format, or its rows are not whole blocks",
			name);
	put_text(w->tensor.f, name, strlen(name));
	put(w->tensor.f, (uint64_t)rank, 4);
	for (int i = rank; i-- > 0;)
		put(w->tensor.f, (uint64_t)dims[i], 8);
	put(w->tensor.f, format, 4);
	put(w->tensor.f, w->data, 8);
	w->data = end;
	w->tensors++;
	return 0;
}

// ---- the file ----

static int add_padding(struct yk_file_writer *to, uint64_t written)
{
	static const char zero[ALIGNMENT];
	return yk_file_add(to, zero, (size_t)(padded(written) - written));
}

static int write_head(struct yk_gguf_writer *w, struct yk_file_writer *to)
{
	char *head = NULL;
	size_t bytes;
	FILE *f = open_memstream(&head, &bytes);
	if (f) {
		fwrite("GGUF", 1, 4, f);
		put(f, 3, 4);
		put(f, w->tensors, 8);
		put(f, w->keys, 8);
	}
	const bool good = f && fclose(f) == 0 && fflush(w->key.f) == 0 && fflush(w->tensor.f) == 0;
	int e = good ? yk_file_add(to, head, bytes) :
		       yk_fail(YOKE_ENOMEM, "gguf: no memory for metadata");
	if (e == 0)
		e = yk_file_add(to, w->key.at, w->key.bytes);
	if (e == 0)
		e = yk_file_add(to, w->tensor.at, w->tensor.bytes);
	if (e == 0)
		e = add_padding(to, to->bytes);
	free(head);
	return e;
}

int yk_gguf_write(struct yk_gguf_writer *w, const char *path,
		  int (*fill)(void *arg, size_t i, struct yk_file_writer *), void *arg)
{
	struct yk_file_writer to;
	int e = yk_only_little(path, "GGUF");
	if (e == 0)
		e = yk_file_begin(&to, path);
	if (e < 0)
		return e;
	e = write_head(w, &to);
	const uint64_t head = to.bytes;
	for (size_t i = 0; i < w->tensors && e == 0; i++) {
		e = fill(arg, i, &to);
		if (e == 0)
			e = add_padding(&to, to.bytes);
	}
	if (e == 0 && to.bytes - head != w->data)
		e = yk_fail(YOKE_EINVAL, "gguf: tensors have %llu bytes, not the declared %llu",
			    (unsigned long long)(to.bytes - head), (unsigned long long)w->data);
	if (e == 0)
		return yk_file_commit(&to);
	yk_file_abort(&to);
	return e;
}
