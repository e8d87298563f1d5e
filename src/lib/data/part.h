// SPDX-License-Identifier: Apache-2.0
// Fields whose samples lie in a file at a constant stride, read in place with pread.  Files are
// never mapped, so a truncated or unreadable file gives an error that names it and the byte.
#ifndef YK_DATA_PART_H
#define YK_DATA_PART_H

#include <stdbool.h>

#include "yoke-data.h"

// Type of an element in a file, and the dtype it is converted to.
struct yk_element {
	const char *name; // "u16"
	char kind;        // 'b' bool, 'i', 'u', 'f'
	int width;        // bytes in the file
	int dtype;
};
// Is the name in the list "a,b,c"?  NULL matches every name.
bool yk_listed(const char *list, const char *name);
// Parses "u16" or "u16:1024": element type and byte offset of the first element.  EINVAL:
// malformed.
int yk_element_format(const char *format, const struct yk_element **, uint64_t *offset);
// Counts the elements from the offset to the end of a file of `bytes` bytes.  EFORMAT: not a whole
// number of elements.
int yk_element_count(const struct yk_element *, const char *path, uint64_t offset, uint64_t bytes,
		     uint64_t *count);
// The type read as vocabulary ids of i32; the type of that name; the type of that kind and width.
// NULL: none.
const struct yk_element *yk_element_ids(const struct yk_element *);
const struct yk_element *yk_element_named(const char *name, size_t length);
const struct yk_element *yk_element_of(char kind, int width);

struct yk_field_file {
	char *path;
	int fd;
	const struct yk_element *element;
	bool big;              // the file is big-endian
	uint64_t offset;       // byte offset of sample 0
	uint64_t stride;       // bytes from a sample to the next
	int64_t elements;      // elements per sample
	int rank;              // Fortran order: rank of [samples, dims..]; 0: row major
	int64_t dims[YOKE_MAX_RANK];
	int64_t limit;         // ids must be below it; 0: no limit
	char name[64];         // of the field
};

// Makes a dataset of n parts; it takes their descriptors and paths, also on failure.  dims: shape
// of each part's sample, row major.
struct yk_field_shape {
	int rank;
	int64_t dims[YOKE_MAX_RANK];
};
yoke_dataset *yk_field_files_dataset(const char *name, int64_t count, int n, struct yk_field_file *,
				     const struct yk_field_shape *, uint64_t fingerprint);
// yk_field_buffer returns the address within a sample's buffer to which the file's elements are
// read; yk_field_convert then converts them in place.  EFORMAT: invalid bools, ids beyond the
// limit.
void *yk_field_buffer(const struct yk_field_file *, void *to);
int yk_field_convert(const struct yk_field_file *, int64_t sample, void *to);
void yk_field_files_close(int n, struct yk_field_file *);
// Turns a part with path, descriptor, element and offset, and n elements, into windows of context +
// 1 ids; each window begins with the last id of the one before.  vocab 0: any ids.  Takes the part,
// also on failure.
void yk_windows_field(struct yk_field_file *, const struct yk_element *ids, int64_t context,
		      int64_t vocab);
yoke_dataset *yk_windows_set(struct yk_field_file *, uint64_t n, int64_t context, int64_t vocab,
			     uint64_t fingerprint);

// ---- npy.c ----

// Contents of a .npy header.  dims: with the rows first; rank: 0 for C order.
struct yk_npy {
	const struct yk_element *element;
	bool big, fortran;
	uint64_t offset;
	int rank;
	int64_t dims[YOKE_MAX_RANK];
};
#define YK_NPY_HEADER (12 + 65536) // max bytes of a header
// Parses the header from the first `length` bytes of a file of `bytes`.  EFORMAT and EUNSUPPORTED
// name path and reason.
int yk_npy_header(struct yk_npy *, const char *path, const char *text, size_t length,
		  uint64_t bytes);

#define YK_NPY_BYTES 320 // max bytes of a header that yk_npy_head writes
// Writes a header of version 1.0 for an array in C order, padded to a multiple of 64 bytes; descr:
// as "<f4".  Returns its bytes.
size_t yk_npy_head(char to[YK_NPY_BYTES], const char *descr, int rank, const int64_t *dims);

// Fills a part with the array's rows; the part's descriptor and its offset, at which the header
// begins, are set already.
void yk_npy_part(struct yk_field_file *, const struct yk_npy *, struct yk_field_shape *);

#endif
