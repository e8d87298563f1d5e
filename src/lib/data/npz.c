// SPDX-License-Identifier: Apache-2.0
// .npz files: .npy arrays in a zip archive, read with libzip.  Compressed data has no random
// access, so all arrays are unpacked once, with their checksums checked, into an unnamed temporary
// file and then read as .npy files.
#include "config.h"

#include "data/npz.h"

#include <stdbool.h>

#include "base/error.h"

#ifndef HAVE_LIBZIP

yoke_dataset *yk_npz_open(const char *path, const char *fields)
{
	(void)fields;
	yk_fail(YOKE_EUNSUPPORTED, "%s: is .npz, and yoke was built without libzip", path);
	return NULL;
}

#else

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zip.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/kind.h"
#include "data/part.h"
#include "data/source.h"

enum { BUFFER = 1 << 18 };

struct npz {
	const char *path;
	zip_t *zip;
	struct yk_file_writer out; // the unnamed temporary file
	uint64_t at;               // offset for the next array
	char *buffer;
	struct yk_field_file *part;
	struct yk_field_shape *shape;
	int n;
	int64_t rows;
};

// Member "x.npy" is field x; false: the member is not an array.
static bool field_of(const char *member, char *to, size_t room)
{
	const size_t n = strlen(member);
	if (n < 5 || strcmp(member + n - 4, ".npy"))
		return false;
	snprintf(to, room, "%.*s", (int)(n - 4), member);
	return true;
}

static int damaged(const struct npz *z, const char *member, const char *why)
{
	return yk_fail(YOKE_EFORMAT, "%s: member %.80s: %s", z->path, member, why);
}

// Fills the buffer; returns fewer bytes at the end of the member.
static int64_t read_buffer(const struct npz *z, zip_file_t *f, const char *member)
{
	int64_t n = 0;
	while (n < BUFFER) {
		const zip_int64_t got = zip_fread(f, z->buffer + n, (zip_uint64_t)(BUFFER - n));
		if (got < 0)
			return damaged(z, member, zip_file_strerror(f));
		if (got == 0)
			break;
		n += got;
	}
	return n;
}

// Unpacks the array of a member; its header is checked before anything is written.
static int unpack(struct npz *z, zip_file_t *f, const zip_stat_t *st, struct yk_npy *header)
{
	const uint64_t max = yk_data_max();
	char name[1200];
	uint64_t written = 0;
	snprintf(name, sizeof name, "%s: member %.80s", z->path, st->name);
	for (int64_t n; (n = read_buffer(z, f, st->name)) != 0; written += (uint64_t)n) {
		int e = n < 0 ? (int)n : 0;
		if (e == 0 && written == 0)
			e = yk_npy_header(header, name, z->buffer,
					  n < YK_NPY_HEADER ? (size_t)n : YK_NPY_HEADER, st->size);
		if (e == 0 && written == 0 && (st->size > max || z->at > max - st->size))
			e = yk_fail(
				YOKE_ERANGE,
				"%s: unpacked it has %llu bytes; the total exceeds data.max = %llu; raise "
				"YOKE_DATA_MAX",
				name, (unsigned long long)st->size, (unsigned long long)max);
		if (e == 0 && written + (uint64_t)n > st->size)
			e = damaged(z, st->name, "it is longer than its recorded size");
		if (e == 0)
			e = yk_file_put(&z->out, z->at + written, z->buffer, (size_t)n);
		if (e < 0)
			return e;
	}
	return written == st->size && written ?
		       0 :
		       damaged(z, st->name, "it is shorter than its recorded size, or empty");
}

static int add_member(struct npz *z, zip_uint64_t i, const char *field)
{
	struct yk_field_file *p = &z->part[z->n];
	struct yk_npy header;
	zip_stat_t st;
	if (zip_stat_index(z->zip, i, 0, &st) < 0 || !(st.valid & ZIP_STAT_SIZE))
		return yk_fail(YOKE_EFORMAT, "%s: %s", z->path, zip_strerror(z->zip));
	zip_file_t *f = zip_fopen_index(z->zip, i, 0);
	if (!f)
		return damaged(z, st.name, zip_strerror(z->zip));
	int e = unpack(z, f, &st, &header);
	zip_fclose(f);
	if (e < 0)
		return e;
	if (strlen(field) >= sizeof p->name)
		return damaged(z, st.name, "its name is too long for a field");
	*p = (struct yk_field_file){ .fd = fcntl(z->out.fd, F_DUPFD_CLOEXEC, 0),
				     .path = strdup(z->path) };
	memcpy(p->name, field, strlen(field) + 1);
	yk_npy_part(p, &header, &z->shape[z->n]);
	p->offset += z->at;
	z->n++;
	z->at += (st.size + 63) & ~(uint64_t)63;
	if (p->fd < 0 || !p->path)
		return yk_fail(YOKE_ENOMEM, "%s: no memory, or too many open files", z->path);
	if (z->rows && header.dims[0] != z->rows)
		return yk_fail(
			YOKE_ESHAPE,
			"%s: array %s has %lld rows, the others %lld; name some with fields=",
			z->path, field, (long long)header.dims[0], (long long)z->rows);
	z->rows = header.dims[0];
	return 0;
}

static int check_fields(const struct npz *z, const char *fields)
{
	for (const char *at = fields; at && *at; at += strcspn(at, ","), at += *at == ',') {
		const int length = (int)strcspn(at, ",");
		bool there = false;
		for (int i = 0; i < z->n; i++)
			there |= (int)strlen(z->part[i].name) == length &&
				 !strncmp(z->part[i].name, at, (size_t)length);
		if (!there)
			return yk_fail(YOKE_ENOENT,
				       "dataset_open: %s: fields: there is no array '%.*s'",
				       z->path, length, at);
	}
	return z->n ? 0 : yk_fail(YOKE_EFORMAT, "%s: holds no arrays", z->path);
}

static int read_members(struct npz *z, const char *fields)
{
	const zip_int64_t n = zip_get_num_entries(z->zip, 0);
	char field[256];
	z->part = calloc((size_t)n + 1, sizeof *z->part);
	z->shape = calloc((size_t)n + 1, sizeof *z->shape);
	z->buffer = malloc(BUFFER);
	int e = z->part && z->shape && z->buffer ? yk_file_nameless(&z->out, z->path) :
						   yk_fail(YOKE_ENOMEM, "%s: no memory", z->path);
	for (zip_int64_t i = 0; i < n && e == 0; i++) {
		const char *name = zip_get_name(z->zip, (zip_uint64_t)i, 0);
		if (!name)
			e = yk_fail(YOKE_EFORMAT, "%s: %s", z->path, zip_strerror(z->zip));
		else if (field_of(name, field, sizeof field) && yk_listed(fields, field))
			e = add_member(z, (zip_uint64_t)i, field);
	}
	return e == 0 ? check_fields(z, fields) : e;
}

static int open_zip(struct npz *z, uint64_t *hash)
{
	uint64_t bytes;
	int reason;
	const int fd = yk_file_open(z->path, &bytes);
	if (fd < 0)
		return fd;
	const int e = yk_file_sample(fd, z->path, bytes, hash);
	z->zip = e == 0 ? zip_fdopen(fd, ZIP_CHECKCONS, &reason) : NULL;
	if (e < 0)
		close(fd); // otherwise the archive owns it
	if (e < 0 || z->zip)
		return e;
	char begin[YK_KIND_BEGIN];
	const size_t n = bytes < sizeof begin ? (size_t)bytes : sizeof begin;
	if (yk_file_read_at(fd, z->path, 0, begin, n) == 0 && (n < 2 || memcmp(begin, "PK", 2))) {
		close(fd);
		return yk_file_refused(z->path, begin, n, "a .npz file", "it is not a zip archive");
	}
	zip_error_t error;
	zip_error_init_with_code(&error, reason);
	yk_fail(YOKE_EFORMAT, "%s: cannot be read as a .npz file: %s", z->path,
		zip_error_strerror(&error));
	zip_error_fini(&error);
	close(fd);
	return YOKE_EFORMAT;
}

yoke_dataset *yk_npz_open(const char *path, const char *fields)
{
	struct npz z = { .path = path, .out = { .fd = -1 } };
	yoke_dataset *d = NULL;
	uint64_t hash;
	int e = open_zip(&z, &hash);
	if (e == 0)
		e = read_members(&z, fields);
	if (e == 0)
		d = yk_field_files_dataset(path, z.rows, z.n, z.part, z.shape,
				 yk_hash(fields ? fields : "", fields ? strlen(fields) : 0, hash));
	else if (z.part)
		yk_field_files_close(z.n, z.part);
	if (z.zip)
		zip_discard(z.zip);
	yk_file_nameless_close(&z.out);
	free(z.part);
	free(z.shape);
	free(z.buffer);
	return d;
}

#endif
