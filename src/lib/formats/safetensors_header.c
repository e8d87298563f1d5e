// SPDX-License-Identifier: Apache-2.0
// Validates the header of a safetensors file and converts it to entries.  The time is
// O(n log n) for any input.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/scan.h"
#include "formats/safetensors.h"

static const struct {
	int dtype;
	const char *name;
} dtypes[] = {
	{ yoke_f32, "F32" },
	{ yoke_f64, "F64" },
	{ yoke_f16, "F16" },
	{ yoke_bf16, "BF16" },
	{ yoke_i8, "I8" },
	{ yoke_u8, "U8" },
	{ yoke_i32, "I32" },
	{ yoke_i64, "I64" },
	{ yoke_bool, "BOOL" },
	{ YK_SAFETENSORS_U16, "U16" },
	{ YK_SAFETENSORS_U32, "U32" },
	{ YK_SAFETENSORS_I16, "I16" },
	{ YK_SAFETENSORS_U64, "U64" },
	{ YK_SAFETENSORS_C64, "C64" },
	{ YK_SAFETENSORS_F8_E4M3, "F8_E4M3" },
	{ YK_SAFETENSORS_F8_E5M2, "F8_E5M2" },
	{ YK_SAFETENSORS_F8_E8M0, "F8_E8M0" },
	{ YK_SAFETENSORS_F8_E4M3FNUZ, "F8_E4M3FNUZ" },
	{ YK_SAFETENSORS_F8_E5M2FNUZ, "F8_E5M2FNUZ" },
	{ YK_SAFETENSORS_F6_E2M3, "F6_E2M3" },
	{ YK_SAFETENSORS_F6_E3M2, "F6_E3M2" },
	{ YK_SAFETENSORS_F4, "F4" },
};
#define DTYPES ((int)(sizeof dtypes / sizeof *dtypes))

const char *yk_safetensors_dtype(int dtype)
{
	for (int i = 0; i < DTYPES; i++)
		if (dtypes[i].dtype == dtype)
			return dtypes[i].name;
	return NULL;
}

// Bits per element.
static uint64_t bits_of(int dtype)
{
	switch (dtype) {
	case YK_SAFETENSORS_F4: return 4;
	case YK_SAFETENSORS_F6_E2M3:
	case YK_SAFETENSORS_F6_E3M2: return 6;
	case YK_SAFETENSORS_F8_E4M3:
	case YK_SAFETENSORS_F8_E5M2:
	case YK_SAFETENSORS_F8_E8M0:
	case YK_SAFETENSORS_F8_E4M3FNUZ:
	case YK_SAFETENSORS_F8_E5M2FNUZ: return 8;
	case YK_SAFETENSORS_U16:
	case YK_SAFETENSORS_I16: return 16;
	case YK_SAFETENSORS_U32: return 32;
	case YK_SAFETENSORS_U64:
	case YK_SAFETENSORS_C64: return 64;
	default: return 8 * yoke_dtype_size(dtype);
	}
}

size_t yk_safetensors_size(int dtype)
{
	return bits_of(dtype) % 8 ? 0 : bits_of(dtype) / 8;
}

size_t yk_safetensors_part(int dtype)
{
	return dtype == YK_SAFETENSORS_C64 ? 4 : yk_safetensors_size(dtype);
}

int yk_host_tensor_bytes(const struct yk_host_tensor *t, uint64_t *bytes)
{
	uint64_t n;

	if (!yk_safetensors_dtype(t->dtype))
		return yk_fail(YOKE_EDTYPE, "tensor '%s': unknown dtype %d", t->name,
			       t->dtype);
	if (t->rank < 0 || t->rank > YOKE_MAX_RANK)
		return yk_fail(YOKE_ERANGE, "tensor '%s': rank %d, at most %d", t->name,
			       t->rank, YOKE_MAX_RANK);
	const uint64_t bits = bits_of(t->dtype);
	n = bits % 8 ? 1 : bits / 8;
	for (int i = 0; i < t->rank; i++)
		if (t->dims[i] < 0 ||
		    __builtin_mul_overflow(n, (uint64_t)t->dims[i], &n) || n > INT64_MAX)
			return yk_fail(YOKE_ERANGE,
				       "tensor '%s': dim %d is %lld, out of range",
				       t->name, i, (long long)t->dims[i]);
	if (bits % 8 && (__builtin_mul_overflow(n, bits, &n) || n % 8))
		return yk_fail(YOKE_ERANGE,
			       "tensor '%s': its elements are no whole number of bytes", t->name);
	*bytes = bits % 8 ? n / 8 : n;
	return 0;
}

// ---- entries ----

struct reader {
	struct yk_safetensors *s;
	struct yk_scan scan;
	const char *text;
	size_t cap;         // capacity of s->entries
	const char *tensor; // name of the entry being parsed; NULL outside
};

// Reports the scanner's error, or else `why`, with the position.
static int bad(struct reader *r, const char *why)
{
	unsigned long long at = (unsigned long long)(r->scan.at - r->text);

	if (r->scan.why)
		why = r->scan.why;
	if (r->tensor)
		return yk_fail(YOKE_EFORMAT,
			       "%s: tensor '%.80s': byte %llu of the header: %s",
			       r->s->path, r->tensor, at, why);
	return yk_fail(YOKE_EFORMAT, "%s: byte %llu of the header: %s", r->s->path, at,
		       why);
}

static int read_dtype(struct reader *r, struct yk_safetensors_entry *to)
{
	const char *name = yk_scan_string(&r->scan);

	if (!name)
		return bad(r, NULL);
	for (int i = 0; i < DTYPES; i++)
		if (!strcmp(name, dtypes[i].name)) {
			to->dtype = dtypes[i].dtype;
			return 0;
		}
	return yk_fail(YOKE_EFORMAT, "%s: tensor '%.80s': unknown dtype '%.16s'",
		       r->s->path, r->tensor, name);
}

// Parses [1, 2, ..], at most `max` numbers.
static int read_sizes(struct reader *r, int max, const char *more, int64_t *to, int *n)
{
	*n = 0;
	if (!yk_scan_expect(&r->scan, '['))
		return bad(r, NULL);
	if (yk_scan_is(&r->scan, ']'))
		return 0;
	do {
		if (*n == max)
			return bad(r, more);
		if (!yk_scan_size(&r->scan, &to[(*n)++]))
			return bad(r, NULL);
	} while (yk_scan_is(&r->scan, ','));
	return yk_scan_expect(&r->scan, ']') ? 0 : bad(r, NULL);
}

// Do the offsets match dtype and shape, and lie within the `size` bytes of data?
static int check_entry(const struct reader *r, const struct yk_safetensors_entry *x,
		       const int64_t at[2], uint64_t size)
{
	struct yk_host_tensor t = { .name = x->name, .dtype = x->dtype, .rank = x->rank };
	// other dtypes need no alignment
	const size_t width = x->dtype < YK_SAFETENSORS_U16 ? yk_safetensors_size(x->dtype) : 1;
	uint64_t bytes, begin = (uint64_t)at[0], end = (uint64_t)at[1];

	memcpy(t.dims, x->dims, sizeof t.dims);
	if (yk_host_tensor_bytes(&t, &bytes) < 0) {
		yoke_error_clear();
		return yk_fail(YOKE_EFORMAT, "%s: tensor '%.80s': its shape is too large",
			       r->s->path, x->name);
	}
	if (begin > size || end > size)
		return yk_fail(YOKE_EFORMAT,
			       "%s: tensor '%.80s': data_offsets %llu .. %llu, outside "
			       "the file's %llu bytes of data",
			       r->s->path, x->name, (unsigned long long)begin,
			       (unsigned long long)end, (unsigned long long)size);
	if (begin > end || end - begin != bytes)
		return yk_fail(YOKE_EFORMAT,
			       "%s: tensor '%.80s': data_offsets %llu .. %llu, but "
			       "dtype and shape need %llu bytes",
			       r->s->path, x->name, (unsigned long long)begin,
			       (unsigned long long)end, (unsigned long long)bytes);
	if (begin % width)
		return yk_fail(YOKE_EFORMAT,
			       "%s: tensor '%.80s': offset %llu is not aligned to %s",
			       r->s->path, x->name, (unsigned long long)begin,
			       yk_safetensors_dtype(x->dtype));
	return 0;
}

// { "dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24] }, members in any order
static int read_entry(struct reader *r, struct yk_safetensors_entry *to, uint64_t size)
{
	enum { DTYPE = 1, SHAPE = 2, OFFSETS = 4, ALL = 7 };
	struct yk_safetensors_entry x = { .name = r->tensor };
	int64_t at[2];
	int seen = 0, which, n, e;

	if (!yk_scan_expect(&r->scan, '{'))
		return bad(r, NULL);
	do {
		const char *key = yk_scan_string(&r->scan);
		if (!key || !yk_scan_expect(&r->scan, ':'))
			return bad(r, NULL);
		if (!strcmp(key, "dtype")) {
			which = DTYPE;
			e = read_dtype(r, &x);
		} else if (!strcmp(key, "shape")) {
			which = SHAPE;
			e = read_sizes(r, YOKE_MAX_RANK, "more than 8 dims", x.dims,
				       &x.rank);
		} else if (!strcmp(key, "data_offsets")) {
			which = OFFSETS;
			e = read_sizes(r, 2, "more than two data_offsets", at, &n);
			if (e == 0 && n < 2)
				e = bad(r, "expected two data_offsets");
		} else {
			return bad(r, "a key other than dtype, shape and data_offsets");
		}
		if (e < 0)
			return e;
		if (seen & which)
			return bad(r, "a key for the second time");
		seen |= which;
	} while (yk_scan_is(&r->scan, ','));
	if (seen != ALL)
		return bad(r, "expected dtype, shape and data_offsets");
	if (!yk_scan_expect(&r->scan, '}'))
		return bad(r, NULL);
	e = check_entry(r, &x, at, size);
	if (e < 0)
		return e;
	x.offset = (uint64_t)at[0];
	x.bytes = (uint64_t)at[1] - x.offset;
	*to = x;
	return 0;
}

// Parses the metadata: an object of strings, or null.
static int read_metadata(struct reader *r)
{
	struct yk_safetensors *s = r->s;
	size_t cap = 0;

	if (yk_scan_is(&r->scan, 'n')) {
		r->scan.at--;
		return yk_scan_skip(&r->scan) ? 0 : bad(r, NULL);
	}
	if (!yk_scan_expect(&r->scan, '{'))
		return bad(r, NULL);
	if (yk_scan_is(&r->scan, '}'))
		return 0;
	do {
		const char *key = yk_scan_string(&r->scan);
		const char *value =
			key && yk_scan_expect(&r->scan, ':') ? yk_scan_string(&r->scan) : NULL;
		if (!value)
			return bad(r, NULL);
		if (yk_grow(&s->metadata, &cap, s->metadata_count + 2, sizeof *s->metadata) < 0)
			return yk_fail(YOKE_ENOMEM, "out of memory for the header of '%s'",
				       s->path);
		s->metadata[s->metadata_count++] = key;
		s->metadata[s->metadata_count++] = value;
	} while (yk_scan_is(&r->scan, ','));
	return yk_scan_expect(&r->scan, '}') ? 0 : bad(r, NULL);
}

static int read_all(struct reader *r, uint64_t size)
{
	struct yk_safetensors *s = r->s;
	bool metadata = false;
	int e;

	if (!yk_scan_expect(&r->scan, '{'))
		return bad(r, NULL);
	if (yk_scan_is(&r->scan, '}'))
		return yk_scan_end(&r->scan) ? 0 : bad(r, NULL);
	do {
		const char *name = yk_scan_string(&r->scan);
		if (!name || !yk_scan_expect(&r->scan, ':'))
			return bad(r, NULL);
		r->tensor = name;
		if (!strcmp(name, YK_SAFETENSORS_METADATA)) {
			e = metadata ? bad(r, "for the second time") : read_metadata(r);
			metadata = true;
		} else if (yk_grow(&s->entries, &r->cap, (size_t)s->count + 1,
				   sizeof *s->entries) < 0) {
			e = yk_fail(YOKE_ENOMEM, "out of memory for the header of '%s'",
				    s->path);
		} else {
			e = read_entry(r, &s->entries[s->count], size);
			s->count += e == 0;
		}
		if (e < 0)
			return e;
		r->tensor = NULL;
	} while (yk_scan_is(&r->scan, ','));
	return yk_scan_expect(&r->scan, '}') && yk_scan_end(&r->scan) ? 0 : bad(r, NULL);
}

// ---- checks across entries ----

static int by_offset(const void *x, const void *y)
{
	const struct yk_safetensors_entry *a = x, *b = y;

	if (a->offset != b->offset)
		return a->offset < b->offset ? -1 : 1;
	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? -1 : 1;
	return strcmp(a->name, b->name);
}

// Checks that the arrays cover the `size` bytes of data without gaps or overlaps.
static int check_cover(struct yk_safetensors *s, uint64_t size)
{
	bool sorted = true;
	uint64_t at = 0;

	for (int i = 1; sorted && i < s->count; i++)
		sorted = by_offset(&s->entries[i - 1], &s->entries[i]) <= 0;
	if (!sorted)
		qsort(s->entries, (size_t)s->count, sizeof *s->entries, by_offset);
	for (int i = 0; i < s->count; i++) {
		const struct yk_safetensors_entry *x = &s->entries[i];
		if (x->offset != at)
			return yk_fail(YOKE_EFORMAT,
				       "%s: tensor '%.80s': begins at %llu, %s at %llu",
				       s->path, x->name, (unsigned long long)x->offset,
				       x->offset < at ? "inside the one that ends" :
							"after a gap that begins",
				       (unsigned long long)at);
		at += x->bytes;
	}
	if (at != size)
		return yk_fail(YOKE_EFORMAT,
			       "%s: %llu bytes of data, but the header describes %llu",
			       s->path, (unsigned long long)size, (unsigned long long)at);
	return 0;
}

static int by_hash(const void *x, const void *y)
{
	const struct yk_safetensors_name *a = x, *b = y;

	if (a->hash != b->hash)
		return a->hash < b->hash ? -1 : 1;
	return strcmp(a->name, b->name);
}

// Sorted instead of a hash table: names chosen to collide cost string comparisons,
// nothing more.
static int index_names(struct yk_safetensors *s)
{
	s->names = malloc(((size_t)s->count + 1) * sizeof *s->names);
	if (!s->names)
		return yk_fail(YOKE_ENOMEM, "out of memory for the header of '%s'",
			       s->path);
	for (int i = 0; i < s->count; i++) {
		const char *name = s->entries[i].name;
		s->names[i] = (struct yk_safetensors_name){
			.hash = yk_hash(name, strlen(name), 0), .name = name, .entry = i,
		};
	}
	qsort(s->names, (size_t)s->count, sizeof *s->names, by_hash);
	for (int i = 1; i < s->count; i++)
		if (!by_hash(&s->names[i - 1], &s->names[i]))
			return yk_fail(YOKE_EFORMAT,
				       "%s: two tensors are called '%.80s'", s->path,
				       s->names[i].name);
	return 0;
}

const struct yk_safetensors_entry *yk_safetensors_find(const struct yk_safetensors *s,
						       const char *name)
{
	struct yk_safetensors_name key = { yk_hash(name, strlen(name), 0), name, 0 }, *at;

	at = s->count ? bsearch(&key, s->names, (size_t)s->count, sizeof key, by_hash) :
			NULL;
	return at ? &s->entries[at->entry] : NULL;
}

const char *yk_safetensors_metadata(const struct yk_safetensors *s, const char *key)
{
	for (size_t i = 0; i < s->metadata_count; i += 2)
		if (!strcmp(s->metadata[i], key))
			return s->metadata[i + 1];
	return NULL;
}

int yk_safetensors_header(struct yk_safetensors *s, char *text, uint64_t length,
			  uint64_t size)
{
	struct reader r = { .s = s, .scan = { text, text + length, NULL }, .text = text };
	int e;

		// The format allows nothing before the brace.
	if (!length || *text != '{')
		return yk_fail(YOKE_EFORMAT, "%s: not a safetensors file: no header",
			       s->path);
	e = read_all(&r, size);
	if (e == 0)
		e = check_cover(s, size);
	return e < 0 ? e : index_names(s);
}
