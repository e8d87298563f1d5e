// SPDX-License-Identifier: Apache-2.0
// Writes GGUF files for tests, also damaged ones.
#ifndef GGUF_WRITE_H
#define GGUF_WRITE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "formats/gguf.h"

struct gguf_buffer {
	unsigned char *at;
	size_t n;
};

struct gguf_file {
	uint32_t version;     // 0: 3
	uint64_t keys, tensors;
	struct gguf_buffer key, tensor, data;
};

static inline void gguf_add(struct gguf_buffer *b, const void *p, size_t n)
{
	b->at = realloc(b->at, b->n + n + 1);
	if (n)
		memcpy(b->at + b->n, p, n);
	b->n += n;
}
static inline void gguf_add_u32(struct gguf_buffer *b, uint32_t v) { gguf_add(b, &v, sizeof v); }
static inline void gguf_add_u64(struct gguf_buffer *b, uint64_t v) { gguf_add(b, &v, sizeof v); }
static inline void gguf_add_text(struct gguf_buffer *b, const char *text)
{
	gguf_add_u64(b, strlen(text));
	gguf_add(b, text, strlen(text));
}

static inline void gguf_key(struct gguf_file *f, const char *name, uint32_t type)
{
	gguf_add_text(&f->key, name);
	gguf_add_u32(&f->key, type);
	f->keys++;
}
static inline void gguf_text(struct gguf_file *f, const char *name, const char *text)
{
	gguf_key(f, name, YK_GGUF_STRING);
	gguf_add_text(&f->key, text);
}
static inline void gguf_u32(struct gguf_file *f, const char *name, uint32_t v)
{
	gguf_key(f, name, YK_GGUF_U32);
	gguf_add_u32(&f->key, v);
}
static inline void gguf_real(struct gguf_file *f, const char *name, float v)
{
	gguf_key(f, name, YK_GGUF_FLOAT);
	gguf_add(&f->key, &v, sizeof v);
}
static inline void gguf_bool(struct gguf_file *f, const char *name, bool v)
{
	gguf_key(f, name, YK_GGUF_BOOL);
	gguf_add(&f->key, &v, 1);
}
static inline void gguf_array(struct gguf_file *f, const char *name, uint32_t type, uint64_t n)
{
	gguf_key(f, name, YK_GGUF_ARRAY);
	gguf_add_u32(&f->key, type);
	gguf_add_u64(&f->key, n);
}
static inline void gguf_texts(struct gguf_file *f, const char *name, int n, const char *const *text)
{
	gguf_array(f, name, YK_GGUF_STRING, (uint64_t)n);
	for (int i = 0; i < n; i++)
		gguf_add_text(&f->key, text[i]);
}
static inline void gguf_ints(struct gguf_file *f, const char *name, int n, const int32_t *v)
{
	gguf_array(f, name, YK_GGUF_S32, (uint64_t)n);
	gguf_add(&f->key, v, (size_t)n * sizeof *v);
}

// The head of a tensor's entry; dims slowest first.
static inline void gguf_entry(struct gguf_file *f, const char *name, int rank, const int64_t *dims,
			      uint32_t format, uint64_t offset)
{
	gguf_add_text(&f->tensor, name);
	gguf_add_u32(&f->tensor, (uint32_t)rank);
	for (int i = rank; i-- > 0;)
		gguf_add_u64(&f->tensor, (uint64_t)dims[i]);
	gguf_add_u32(&f->tensor, format);
	gguf_add_u64(&f->tensor, offset);
	f->tensors++;
}
static inline void gguf_tensor(struct gguf_file *f, const char *name, int rank, const int64_t *dims,
			       uint32_t format, const void *data, size_t bytes)
{
	static const unsigned char zero[32];
	gguf_add(&f->data, zero, (32 - f->data.n % 32) % 32);
	gguf_entry(f, name, rank, dims, format, f->data.n);
	gguf_add(&f->data, data, bytes);
}

// The file's bytes; frees what was added.
static inline unsigned char *gguf_bytes(struct gguf_file *f, size_t *bytes)
{
	static const unsigned char zero[32];
	struct gguf_buffer all = { 0 };
	gguf_add(&all, "GGUF", 4);
	gguf_add_u32(&all, f->version ? f->version : 3);
	gguf_add_u64(&all, f->tensors);
	gguf_add_u64(&all, f->keys);
	gguf_add(&all, f->key.at, f->key.n);
	gguf_add(&all, f->tensor.at, f->tensor.n);
	gguf_add(&all, zero, (32 - all.n % 32) % 32);
	if (f->data.n)
		gguf_add(&all, f->data.at, f->data.n);
	free(f->key.at);
	free(f->tensor.at);
	free(f->data.at);
	*f = (struct gguf_file){ 0 };
	*bytes = all.n;
	return all.at;
}
static inline void gguf_save(struct gguf_file *f, const char *path)
{
	size_t bytes;
	unsigned char *data = gguf_bytes(f, &bytes);
	yk_file_write(path, data, bytes);
	free(data);
}

// ---- what a file must not have ----

static const int64_t gguf_one[5] = { 1, 1, 1, 1, 1 };
static inline void gguf_version_1(struct gguf_file *f) { f->version = 1; }
static inline void gguf_big_endian(struct gguf_file *f) { f->version = 3u << 24; }
static inline void gguf_nested(struct gguf_file *f) { gguf_array(f, "nested", YK_GGUF_ARRAY, 1); }
static inline void gguf_key_twice(struct gguf_file *f) { gguf_u32(f, "count", 8); }
static inline void gguf_tensor_twice(struct gguf_file *f)
{
	gguf_entry(f, "v", 1, gguf_one, YK_GGUF_F32, 0);
}
static inline void gguf_overlap(struct gguf_file *f)
{
	gguf_entry(f, "x", 1, gguf_one, YK_GGUF_F32, 0);
}
static inline void gguf_five_dims(struct gguf_file *f)
{
	gguf_entry(f, "x", 5, gguf_one, YK_GGUF_F32, 64);
}
static inline void gguf_unknown_format(struct gguf_file *f)
{
	gguf_entry(f, "x", 1, gguf_one, 4, 64);
}
static inline void gguf_odd_row(struct gguf_file *f)
{
	gguf_entry(f, "x", 1, gguf_one, YK_GGUF_Q8_0, 64);
}
static inline void gguf_alignment_24(struct gguf_file *f) { gguf_u32(f, "general.alignment", 24); }
static inline void gguf_unaligned(struct gguf_file *f)
{
	gguf_entry(f, "x", 1, gguf_one, YK_GGUF_F32, 36);
}
static inline void gguf_huge_dims(struct gguf_file *f)
{
	gguf_entry(f, "x", 2, (int64_t[]){ INT64_C(1) << 40, INT64_C(1) << 23 }, YK_GGUF_F32, 64);
}
static inline void gguf_huge_array(struct gguf_file *f)
{
	gguf_array(f, "long", YK_GGUF_STRING, UINT64_C(1) << 61);
}
static inline void gguf_huge_keys(struct gguf_file *f) { f->keys = UINT64_C(1) << 62; }
static inline void gguf_huge_tensors(struct gguf_file *f) { f->tensors = UINT64_C(1) << 62; }
static inline void gguf_zero_dim(struct gguf_file *f)
{
	gguf_entry(f, "x", 1, (int64_t[]){ 0 }, YK_GGUF_F32, 64);
}
static inline void gguf_empty_name(struct gguf_file *f) { gguf_u32(f, "", 1); }
static inline void gguf_nul_name(struct gguf_file *f)
{
	gguf_u32(f, "name", 1);
	f->key.at[f->key.n - 9] = 0; // before the type and the value
}
static inline void gguf_second_file(struct gguf_file *f)
{
	gguf_u32(f, "split.no", 1);
	gguf_u32(f, "split.count", 2);
}
static inline void gguf_split_name(struct gguf_file *f)
{
	gguf_u32(f, "split.no", 0);
	gguf_u32(f, "split.count", 2);
}

#endif
