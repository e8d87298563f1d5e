// SPDX-License-Identifier: Apache-2.0
// Fields of samples read in place from files with a constant stride.
#include "config.h"

#include "data/part.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/endian.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/scan.h"
#include "base/system.h"
#include "data/set.h"

// ---- elements ----

static const struct yk_element elements[] = {
	{ "bool", 'b', 1, yoke_bool }, { "i8", 'i', 1, yoke_i8 }, { "i16", 'i', 2, yoke_i32 },
	{ "i32", 'i', 4, yoke_i32 }, { "i64", 'i', 8, yoke_i64 }, { "u8", 'u', 1, yoke_u8 },
	{ "u16", 'u', 2, yoke_i32 }, { "u32", 'u', 4, yoke_i64 }, { "f16", 'f', 2, yoke_f16 },
	{ "f32", 'f', 4, yoke_f32 }, { "f64", 'f', 8, yoke_f64 }, { "bf16", 'B', 2, yoke_bf16 },
	{ "u64", 'u', 8, yoke_i64 },
};
static const struct yk_element ids[] = { { "u8", 'u', 1, yoke_i32 }, { "u16", 'u', 2, yoke_i32 },
					 { "u32", 'u', 4, yoke_i32 } };
#define ELEMENTS (sizeof elements / sizeof *elements)

const struct yk_element *yk_element_named(const char *name, size_t length)
{
	for (size_t i = 0; i < ELEMENTS; i++)
		if (strlen(elements[i].name) == length && !memcmp(name, elements[i].name, length))
			return &elements[i];
	return NULL;
}

const struct yk_element *yk_element_of(char kind, int width)
{
	for (size_t i = 0; i < ELEMENTS; i++)
		if (elements[i].kind == kind && elements[i].width == width)
			return &elements[i];
	return NULL;
}

const struct yk_element *yk_element_ids(const struct yk_element *e)
{
	for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
		if (ids[i].kind == e->kind && ids[i].width == e->width)
			return &ids[i];
	return NULL;
}

bool yk_listed(const char *list, const char *name)
{
	const size_t length = strlen(name);
	if (!list)
		return true;
	for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
		if (strcspn(at, ",") == length && !strncmp(at, name, length))
			return true;
	return false;
}

int yk_element_format(const char *format, const struct yk_element **to, uint64_t *offset)
{
	const size_t length = strcspn(format, ":");
	const char *at = format[length] ? format + length + 1 : "0", *end = at + strlen(at),
		   *first = at;
	int64_t n = 0;
	*to = yk_element_named(format, length);
	if (!*to || !yk_scan_digits(&at, end, &n) || at == first || at < end)
		return yk_fail(
			YOKE_EINVAL,
			"format=%s: must be a type of elements, as u16, and the byte where they begin, as "
			"u16:1024",
			format);
	*offset = (uint64_t)n;
	return 0;
}

int yk_element_count(const struct yk_element *e, const char *path, uint64_t offset, uint64_t bytes,
		     uint64_t *count)
{
	if (bytes < offset || (bytes - offset) % (uint64_t)e->width)
		return yk_fail(
			YOKE_EFORMAT,
			"%s: has %llu bytes, which is not a whole number of %s after byte %llu",
			path, (unsigned long long)bytes, e->name, (unsigned long long)offset);
	*count = (bytes - offset) / (uint64_t)e->width;
	return 0;
}

static int64_t integer(const unsigned char *p, const struct yk_element *e)
{
	uint64_t x = 0;
	for (int k = e->width - 1; k >= 0; k--)
		x = x << 8 | p[YK_HOST_BIG ? e->width - 1 - k : k];
	const int unused = 64 - 8 * e->width;
	return e->kind == 'i' ? (int64_t)(x << unused) >> unused : (int64_t)x;
}

// Widens n elements, which were read to the end of `to`, front to back in place.
static void widen(const struct yk_element *e, void *to, size_t n, int width)
{
	const unsigned char *from = (unsigned char *)to + n * (size_t)(width - e->width);
	if (e->kind == 'u' && width == 4) { // token ids, the common case
		for (size_t i = 0; i < n; i++) {
			uint16_t pair = 0;
			if (e->width == 2)
				memcpy(&pair, from + 2 * i, sizeof pair);
			const uint32_t x = e->width == 1 ? from[i] : pair;
			memcpy((unsigned char *)to + 4 * i, &x, 4);
		}
		return;
	}
	for (size_t i = 0; i < n; i++) {
		const int64_t x = integer(from + i * (size_t)e->width, e);
		memcpy((unsigned char *)to + i * (size_t)width,
		       (const char *)&x + (YK_HOST_BIG ? sizeof x - (size_t)width : 0),
		       (size_t)width);
	}
}

static int64_t loaded(const void *to, int dtype, size_t i)
{
	return dtype == yoke_i64 ? ((const int64_t *)to)[i] :
	       dtype == yoke_i32 ? ((const int32_t *)to)[i] :
				   ((const uint8_t *)to)[i];
}

// Are all ids below the limit?
static bool all_below(const int32_t *id, size_t n, int64_t limit)
{
	uint32_t max = 0; // unsigned, so that negative ids are large
	for (size_t i = 0; i < n; i++)
		max = (uint32_t)id[i] > max ? (uint32_t)id[i] : max;
	return max < (uint64_t)limit;
}

// Can the file contain values that the dtype or the dataset does not allow?
static bool is_checked(const struct yk_field_file *p)
{
	return p->limit || p->element->kind == 'b' ||
	       (p->element->kind == 'u' && p->element->width == 8);
}

static int check(const struct yk_field_file *p, int64_t sample, const void *to)
{
	if (p->limit && p->element->dtype == yoke_i32 &&
	    all_below(to, (size_t)p->elements, p->limit))
		return 0;
	for (size_t i = 0; i < (size_t)p->elements; i++) {
		const int64_t x = loaded(to, p->element->dtype, i);
		if (p->element->kind == 'b' && x > 1)
			return yk_fail(YOKE_EFORMAT,
				       "%s: element %zu of row %lld of a bool is neither 0 nor 1",
				       p->path, i, (long long)sample);
		if (p->element->kind == 'u' && x < 0)
			return yk_fail(
				YOKE_EFORMAT,
				"%s: element %zu of row %lld is %llu, which i64 cannot represent",
				p->path, i, (long long)sample, (unsigned long long)x);
		if (p->limit && (x < 0 || x >= p->limit))
			return yk_fail(
				YOKE_EFORMAT,
				"%s: the token at byte %llu is %lld, beyond the vocabulary of %lld",
				p->path,
				(unsigned long long)(p->offset + (uint64_t)sample * p->stride +
						     i * (size_t)p->element->width),
				(long long)x, (long long)p->limit);
	}
	return 0;
}

// Copies a sample element by element out of Fortran order.
static int gather(const struct yk_field_file *p, int64_t sample, unsigned char *to)
{
	const size_t width = (size_t)p->element->width;
	int e = 0;
	for (int64_t i = 0; i < p->elements && e == 0; i++) {
		uint64_t at = 0;
		int64_t rest = i;
		uint64_t place[YOKE_MAX_RANK] = { (uint64_t)sample };
		for (int k = p->rank - 1; k > 0; k--) {
			place[k] = (uint64_t)(rest % p->dims[k]);
			rest /= p->dims[k];
		}
		for (int k = p->rank - 1; k >= 0; k--)
			at = at * (uint64_t)p->dims[k] + place[k];
		e = yk_file_read_at(p->fd, p->path, p->offset + at * width, to + (size_t)i * width,
				    width);
	}
	return e;
}

void *yk_field_buffer(const struct yk_field_file *p, void *to)
{
	return (unsigned char *)to + (size_t)p->elements * (yoke_dtype_size(p->element->dtype) -
							    (size_t)p->element->width);
}

int yk_field_convert(const struct yk_field_file *p, int64_t sample, void *to)
{
	const size_t memory = yoke_dtype_size(p->element->dtype), n = (size_t)p->elements;
	if (p->big != YK_HOST_BIG)
		yk_swap_bytes(yk_field_buffer(p, to), (size_t)p->element->width, n);
	if (memory > (size_t)p->element->width)
		widen(p->element, to, n, (int)memory);
	return is_checked(p) ? check(p, sample, to) : 0;
}

static int part_read(const struct yk_field_file *p, int64_t sample, void *to)
{
	unsigned char *at = yk_field_buffer(p, to);
	const int e =
		p->rank ? gather(p, sample, at) :
			  yk_file_read_at(p->fd, p->path, p->offset + (uint64_t)sample * p->stride,
					  at, (uint64_t)p->elements * (uint64_t)p->element->width);
	return e == 0 ? yk_field_convert(p, sample, to) : e;
}

// ---- sets ----

enum { SLOW = 30000 }; // ns per sample: slower reads do not come from the page cache, and prefetch
		       // hints cost less than that

struct parts {
	atomic_bool slow; // the last read was slow
	int n;
	struct yk_field_file part[];
};

void yk_field_files_close(int n, struct yk_field_file *p)
{
	for (int i = 0; i < n; i++) {
		if (p[i].fd >= 0)
			close(p[i].fd);
		free(p[i].path);
	}
}

static void parts_free(void *arg)
{
	struct parts *p = arg;
	yk_field_files_close(p->n, p->part);
	free(p);
}

// Hints the samples to the kernel, which then reads them concurrently.
static void prefetch(const struct parts *p, int64_t n, struct yoke_item *const *s)
{
	for (int64_t i = 0; i < n; i++)
		for (int f = 0; f < p->n; f++)
			if (!p->part[f].rank)
				yk_file_prefetch(p->part[f].fd,
						 p->part[f].offset +
							 (uint64_t)s[i]->number * p->part[f].stride,
						 p->part[f].elements * p->part[f].element->width);
}

static int parts_read(void *arg, int64_t n, struct yoke_item *const *s)
{
	struct parts *p = arg;
	const uint64_t began = yk_nanoseconds();
	if (n > 1 && atomic_load_explicit(&p->slow, memory_order_relaxed))
		prefetch(p, n, s);
	for (int64_t i = 0; i < n; i++)
		for (int f = 0; f < p->n && !s[i]->code; f++) {
			const int e = part_read(&p->part[f], s[i]->number, s[i]->to[f]);
			if (e < 0)
				yk_sample_failed(s[i], e);
		}
	const bool slow = yk_nanoseconds() - began > (uint64_t)n * SLOW;
	atomic_store_explicit(&p->slow, slow, memory_order_relaxed);
	return 0;
}

yoke_dataset *yk_field_files_dataset(const char *name, int64_t count, int n,
				     struct yk_field_file *part, const struct yk_field_shape *shape,
				     uint64_t fingerprint)
{
	struct parts *p = malloc(sizeof *p + (size_t)n * sizeof *p->part);
	struct yoke_field *field = calloc((size_t)n + 1, sizeof *field);
	yoke_dataset *d = NULL;
	uint64_t bytes = 1;
	if (p && field) {
		atomic_init(&p->slow, true);
		p->n = n;
		memcpy(p->part, part, (size_t)n * sizeof *part);
		for (int i = 0; i < n; i++) {
			field[i] = (struct yoke_field){ .size = sizeof *field,
							.name = part[i].name,
							.dtype = part[i].element->dtype,
							.rank = shape[i].rank };
			memcpy(field[i].dims, shape[i].dims, sizeof field[i].dims);
			bytes += (uint64_t)part[i].elements * (uint64_t)part[i].element->width;
		}
		d = yoke_dataset_new(&(struct yoke_dataset_options){
			.size = sizeof(struct yoke_dataset_options),
			.name = name,
			.count = count,
			.fields = n,
			.field = field,
			.read = parts_read,
			.arg = p,
			.free_fn = parts_free,
			.chunk = bytes < 1 << 15 ? (1 << 15) / (int64_t)bytes + 1 : 1,
			.fingerprint = fingerprint });
	} else {
		yk_fail(YOKE_ENOMEM, "%s: no memory", name);
	}
	if (!d) {
		yk_field_files_close(n, part);
		free(p);
	}
	free(field);
	return d;
}

void yk_windows_field(struct yk_field_file *p, const struct yk_element *of, int64_t context,
		      int64_t vocab)
{
	snprintf(p->name, sizeof p->name, "ids");
	p->element = of;
	p->elements = context + 1;
	p->stride = (uint64_t)context * (uint64_t)of->width;
	p->limit = vocab ? vocab : INT32_MAX;
}

yoke_dataset *yk_windows_set(struct yk_field_file *p, uint64_t n, int64_t context, int64_t vocab,
			     uint64_t fingerprint)
{
	const struct yk_element *of = yk_element_ids(p->element);
	int e = 0;
	if (!of)
		e = yk_fail(
			YOKE_EINVAL,
			"dataset_open: %s: context=%lld: ids of tokens are u8, u16 or u32, not %s",
			p->path, (long long)context, p->element->name);
	else if (n < (uint64_t)context + 1)
		e = yk_fail(YOKE_ERANGE, "%s: %llu tokens are too few: context=%lld needs %lld",
			    p->path, (unsigned long long)n, (long long)context,
			    (long long)context + 1);
	if (e < 0) {
		yk_field_files_close(1, p);
		return NULL;
	}
	const struct yk_field_shape shape = { 1, { context + 1 } };
	yk_windows_field(p, of, context, vocab);
	return yk_field_files_dataset(p->path, (int64_t)((n - 1) / (uint64_t)context), 1, p, &shape,
			    yk_hash_numbers(&context, sizeof context, 1, fingerprint));
}
