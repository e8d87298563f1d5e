// SPDX-License-Identifier: Apache-2.0
// Finds tensors in files of either kind, and converts their elements.
#include "config.h"

#include "models/weights.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/half.h"
#include "base/hash.h"
#include "base/number.h"
#include "formats/gguf_blocks.h"

static int format_of(int dtype, enum yk_gguf_format *to)
{
	switch (dtype) {
	case yoke_f32: *to = YK_GGUF_F32; return 0;
	case yoke_f16: *to = YK_GGUF_F16; return 0;
	case yoke_bf16: *to = YK_GGUF_BF16; return 0;
	case yoke_f64: *to = YK_GGUF_F64; return 0;
	default: return YOKE_EDTYPE;
	}
}

// The name without a prefix that files of gpt2 and bert have or lack.
static const char *without_prefix(const char *name)
{
	static const char *const prefixes[] = { "transformer.", "bert." };
	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return name + strlen(prefixes[i]);
	return name;
}

// Old files call the norms' weight and bias gamma and beta.
static bool is_named(const char *full, const char *name)
{
	static const char *const ends[][2] = { { ".LayerNorm.weight", "gamma" },
					       { ".LayerNorm.bias", "beta" } };
	if (!strcmp(full, name))
		return true;
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		const size_t layer = yk_ends_with(name, ends[i][0]) ?
					     (size_t)(strrchr(name, '.') - name) + 1 :
					     0;
		if (layer && !strncmp(full, name, layer) && !strcmp(full + layer, ends[i][1]))
			return true;
	}
	return false;
}

static int find_in_set(struct yk_safetensors_set *s, const char *name, struct yk_weight *to)
{
	for (int i = 0; i < s->count; i++) {
		const struct yk_safetensors_entry *x = s->part[i].entry;
		if (!is_named(without_prefix(x->name), name))
			continue;
		*to = (struct yk_weight){ .path = s->part[i].file->path,
					  .name = x->name,
					  .rank = x->rank,
					  .index = (size_t)i };
		if (x->rank > 4 || format_of(x->dtype, &to->format) < 0)
			return yk_fail(
				YOKE_EDTYPE,
				"%s: tensor '%s' has the dtype %s and %d dims; weights are F32, F16, BF16 or F64 "
				"of at most 4 dims",
				to->path, x->name, yk_safetensors_dtype(x->dtype), x->rank);
		memcpy(to->dims, x->dims, (size_t)x->rank * sizeof *to->dims);
		to->data = yk_safetensors_data(s->part[i].file, x);
		return to->data ? 0 : yoke_error_code();
	}
	return YOKE_ENOENT;
}

int yk_weights_find(struct yk_weights *w, const char *name, struct yk_weight *to)
{
	if (!w->is_gguf)
		return find_in_set(&w->set, name, to);
	const struct yk_gguf_tensor *t = yk_gguf_tensor(&w->gguf, name);
	if (!t)
		return YOKE_ENOENT;
	*to = (struct yk_weight){ .path = w->gguf.file[t->file].path,
				  .name = t->name,
				  .rank = t->rank,
				  .format = t->format,
				  .data = t->data,
				  .index = (size_t)(t - w->gguf.tensor) };
	memcpy(to->dims, t->dims, sizeof to->dims);
	return 0;
}

const char *yk_weights_name(const struct yk_weights *w, size_t i)
{
	if (w->is_gguf)
		return i < w->gguf.tensors ? w->gguf.tensor[i].name : NULL;
	if (i >= (size_t)w->set.count)
		return NULL;
	return without_prefix(w->set.part[i].entry->name);
}

bool yk_weights_stored(const struct yk_weights *w, size_t i, struct yk_weight_stored *to)
{
	if (i >= (w->is_gguf ? w->gguf.tensors : (size_t)w->set.count))
		return false;
	const struct yk_gguf_tensor *t = w->is_gguf ? &w->gguf.tensor[i] : NULL;
	const struct yk_safetensors_entry *x = t ? NULL : w->set.part[i].entry;
	unsigned elements, bytes;
	const int rank = t ? t->rank : x->rank;
	const int64_t *dims = t ? t->dims : x->dims;
	to->format = t ? yk_gguf_format_name(t->format, &elements, &bytes) :
			 yk_safetensors_dtype(x->dtype);
	to->bytes = t ? t->bytes : x->bytes;
	to->elements = 1;
	for (int d = 0; d < rank; d++)
		to->elements *= (uint64_t)dims[d];
	return true;
}

uint64_t yk_weights_elements(const struct yk_weights *w)
{
	struct yk_weight_stored x;
	uint64_t all = 0;
	for (size_t i = 0; yk_weights_stored(w, i, &x); i++)
		all += x.elements;
	return all;
}

// ---- checksums ----

// Advice about the pages of mapped bytes; no error if it is not taken.
static void advise(const void *at, uint64_t bytes, int advice)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)at & ~(page - 1);
	if (bytes)
		madvise((void *)from, (uintptr_t)at + bytes - from, advice);
}

void yk_weights_forget(const void *at, uint64_t bytes)
{
	advise(at, bytes, MADV_DONTNEED);
}

// The bytes of tensor i, and a hash of what describes them.  NULL: an error.
static const unsigned char *describe(const struct yk_weights *w, size_t i,
				     const struct yk_weight_stored *x, uint64_t *hash)
{
	const struct yk_safetensors_part *part = w->is_gguf ? NULL : &w->set.part[i];
	const void *data =
		w->is_gguf ? w->gguf.tensor[i].data : yk_safetensors_data(part->file, part->entry);
	const int64_t *dims = w->is_gguf ? w->gguf.tensor[i].dims : part->entry->dims;
	const int rank = w->is_gguf ? w->gguf.tensor[i].rank : part->entry->rank;
	const char *name = yk_weights_name(w, i);
	*hash = yk_hash(name, strlen(name), 0);
	*hash = yk_hash(x->format, strlen(x->format), *hash);
	*hash = yk_hash(dims, (size_t)rank * sizeof *dims, *hash);
	return data;
}

enum { WINDOW = 4 << 20 }; // bytes that are in memory at once

static int hash_of(const unsigned char *data, uint64_t bytes, uint64_t seed, uint64_t *to)
{
	struct yk_hash_state *s = yk_hash_new(seed);
	if (!s)
		return yk_fail(YOKE_ENOMEM, "no memory for a checksum");
	for (uint64_t at = 0; at < bytes; at += WINDOW) {
		const uint64_t n = bytes - at < WINDOW ? bytes - at : WINDOW;
		yk_hash_add(s, data + at, n);
		yk_weights_forget(data + at, n);
	}
	*to = yk_hash_end(s);
	return 0;
}

int yk_weights_hash(const struct yk_weights *w, uint64_t *to)
{
	struct yk_weight_stored x;
	uint64_t sum = 0, hash; // does not depend on the order
	for (size_t i = 0; yk_weights_stored(w, i, &x); i++) {
		const unsigned char *data = describe(w, i, &x, &hash);
		const int e = data ? hash_of(data, x.bytes, hash, &hash) : yoke_error_code();
		if (e < 0)
			return e;
		sum += hash;
	}
	*to = sum;
	return 0;
}

static const char *file_of(const struct yk_weights *w, int i)
{
	if (w->is_gguf)
		return i < w->gguf.files ? w->gguf.file[i].path : NULL;
	return i < w->set.files ? w->set.file[i].path : NULL;
}

int yk_weights_state(const struct yk_weights *w, uint64_t *to)
{
	enum { SAMPLE = 512 };
	struct yk_weight_stored x;
	struct stat st;
	uint64_t all = 0, hash;
	const char *path;
	for (int i = 0; (path = file_of(w, i)); i++) {
		if (stat(path, &st) < 0)
			return yk_fail(YOKE_EIO, "%s: %s", path, strerror(errno));
		// any write sets the change time, also one that sets the modification time back
		all = yk_hash((int64_t[]){ st.st_size, st.st_ctim.tv_sec, st.st_ctim.tv_nsec }, 24,
			      all);
	}
	for (size_t i = 0; yk_weights_stored(w, i, &x); i++) {
		const unsigned char *data = describe(w, i, &x, &hash);
		if (!data)
			return yoke_error_code();
		const uint64_t n = x.bytes < SAMPLE ? x.bytes : SAMPLE;
		const unsigned char *sample[] = { data + (x.bytes - n) / 2, data + x.bytes - n };
		for (int k = 0; k < 2; k++) {
			advise(sample[k], n, MADV_RANDOM); // reads this page only
			hash = yk_hash(sample[k], n, hash);
			advise(sample[k], n, MADV_NORMAL);
		}
		all = yk_hash(&hash, sizeof hash, all);
	}
	*to = all;
	return 0;
}

struct yk_weights *yk_weights_new(const char *path)
{
	struct yk_weights *w = calloc(1, sizeof *w);
	if (!w)
		yk_fail(YOKE_ENOMEM, "%s: no memory", path);
	else
		w->users = 1;
	return w;
}

void yk_weights_release(void *weights)
{
	struct yk_weights *w = weights;
	if (!w || --w->users > 0)
		return;
	if (w->is_gguf)
		yk_gguf_close(&w->gguf);
	else
		yk_safetensors_set_close(&w->set);
	free(w);
}

// ---- elements ----

int yk_weight_rows(const struct yk_weight *w, int64_t from, int64_t rows, float *to)
{
	unsigned elements, bytes;
	const char *format = yk_gguf_format_name(w->format, &elements, &bytes);
	size_t row = 1;
	for (int i = 1; i < w->rank; i++)
		row *= (size_t)w->dims[i];
	if (elements > 1 && (w->rank < 2 || row % elements))
		return yk_fail(YOKE_EDTYPE, "%s: tensor '%s': only matrices can have the format %s",
			       w->path, w->name, format);
	const size_t n = (size_t)rows * row;
	const unsigned char *at =
		(const unsigned char *)w->data + (size_t)from * row / elements * bytes;
	uint16_t half;
	double wide;
	switch (w->format) {
	case YK_GGUF_F32: memcpy(to, at, n * sizeof *to); return 0;
	case YK_GGUF_F16:
	case YK_GGUF_BF16:
		for (size_t i = 0; i < n; i++) {
			memcpy(&half, at + i * sizeof half, sizeof half);
			to[i] = w->format == YK_GGUF_F16 ? yk_float_of_f16(half) :
							   yk_float_of_bf16(half);
		}
		return 0;
	case YK_GGUF_F64:
		for (size_t i = 0; i < n; i++) {
			memcpy(&wide, at + i * sizeof wide, sizeof wide);
			to[i] = (float)wide;
		}
		return 0;
	default:
		return yk_gguf_to_f32(w->format, at, n, to) ?
			       0 :
			       yk_fail(YOKE_EDTYPE,
				       "%s: tensor '%s': weights of format %s cannot be read",
				       w->path, w->name, format);
	}
}
