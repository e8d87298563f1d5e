// SPDX-License-Identifier: Apache-2.0
// Reads safetensors files, after the whole header has been validated.
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/endian.h"
#include "base/error.h"
#include "base/file.h"
#include "base/kind.h"
#include "formats/safetensors.h"

const char *yk_shape_text(char to[YK_SHAPE_TEXT], int rank, const int64_t *dims)
{
	int n = snprintf(to, YK_SHAPE_TEXT, "[");
	for (int i = 0; i < rank; i++)
		n += snprintf(to + n, YK_SHAPE_TEXT - (size_t)n, "%s%lld", i ? "," : "",
			      (long long)dims[i]);
	snprintf(to + n, YK_SHAPE_TEXT - (size_t)n, "]");
	return to;
}

#define MAX_HEADER ((uint64_t)100000000) // bytes; the limit of the reference implementation

static int open_file(struct yk_safetensors *s)
{
	uint64_t length;
	char *text;
	int e;

	s->fd = yk_file_open(s->path, &s->bytes);
	if (s->fd < 0)
		return s->fd;
	if (s->bytes < 8)
		return yk_file_refused_at(s->path, s->fd, "a safetensors file",
					  "it has fewer than 8 bytes");
	e = yk_file_read_at(s->fd, s->path, 0, &length, sizeof length);
	if (e < 0)
		return e;
	length = yk_le64(length);
	if (length > s->bytes - 8 || length > MAX_HEADER) {
		char why[120];
		snprintf(why, sizeof why, "a header of %llu bytes in a file of %llu%s",
			 (unsigned long long)length, (unsigned long long)s->bytes,
			 __builtin_bswap64(length) <= s->bytes - 8 ?
				 "; its numbers are big-endian" :
				 "");
		return yk_file_refused_at(s->path, s->fd, "a safetensors file", why);
	}
	text = malloc(length + 1);
	if (!text)
		return yk_fail(YOKE_ENOMEM, "out of memory for the header of '%s'",
			       s->path);
	s->text = text;
	e = yk_file_read_at(s->fd, s->path, 8, text, length);
	if (e < 0)
		return e;
	e = yk_safetensors_header(s, text, length, s->bytes - 8 - length);
	for (int i = 0; e == 0 && i < s->count; i++)
		s->entries[i].offset += 8 + length;
	return e;
}

bool yk_safetensors_begins(const char begin[YK_SAFETENSORS_BEGIN])
{
	return !begin[4] && !begin[5] && !begin[6] && !begin[7] && begin[8] == '{';
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
	if (s->map)
		munmap((void *)s->map, s->bytes);
	if (s->fd >= 0)
		close(s->fd);
	free(s->metadata);
	free(s->names);
	free(s->entries);
	free(s->text);
	free(s->path);
	*s = (struct yk_safetensors){ .fd = -1 };
}

// The elements of an array as the host has them, and the reverse.
static void turn(const struct yk_safetensors_entry *x, void *data)
{
	const size_t width = yk_safetensors_part(x->dtype);
	yk_le(data, width, width ? (size_t)x->bytes / width : 0);
}

// Bools must be 0 or 1.
static int check(const struct yk_safetensors *s, const struct yk_safetensors_entry *x,
		 const uint8_t *data)
{
	for (uint64_t i = 0; x->dtype == yoke_bool && i < x->bytes; i++)
		if (data[i] > 1)
			return yk_fail(YOKE_EFORMAT,
				       "%s: tensor '%s': element %llu of a bool is neither 0 nor 1",
				       s->path, x->name, (unsigned long long)i);
	return 0;
}

int yk_safetensors_read(const struct yk_safetensors *s,
			const struct yk_safetensors_entry *x, void *to)
{
	int e = yk_file_read_at(s->fd, s->path, x->offset, to, x->bytes);
	if (e)
		return e;
	turn(x, to);
	return check(s, x, to);
}

const void *yk_safetensors_data(struct yk_safetensors *s, const struct yk_safetensors_entry *x)
{
	struct stat st;
	void *map = (void *)s->map;
	if (!map) {
		if (fstat(s->fd, &st) < 0 || (uint64_t)st.st_size < s->bytes) {
			yk_fail(YOKE_EIO, "%s: was truncated while it was read", s->path);
			return NULL;
		}
		if (s->bytes > PTRDIFF_MAX) {
			yk_file_beyond(s->path, s->bytes);
			return NULL;
		}
		map = mmap(NULL, s->bytes, YK_HOST_BIG ? PROT_READ | PROT_WRITE : PROT_READ,
			   MAP_PRIVATE, s->fd, 0);
		if (map == MAP_FAILED) {
			yk_fail(errno == ENOMEM ? YOKE_ENOMEM : YOKE_EIO,
				"%s: cannot be mapped: %s", s->path, strerror(errno));
			return NULL;
		}
		s->map = map;
		for (int i = 0; YK_HOST_BIG && i < s->count; i++)
			turn(&s->entries[i], (char *)map + s->entries[i].offset);
	}
	return check(s, x, s->map + x->offset) < 0 ? NULL : s->map + x->offset;
}
