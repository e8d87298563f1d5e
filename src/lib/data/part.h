// SPDX-License-Identifier: Apache-2.0
// Parts: fields of samples that lie in files at regular distances, read in place by position.  Files are never mapped:
// one that is cut short or unreadable is an error that names it and the byte.
#ifndef YK_DATA_PART_H
#define YK_DATA_PART_H

#include <stdbool.h>

#include "yoke-data.h"

// How an element lies in a file, and which dtype it becomes.
struct yk_element {
	const char *name; // "u16"
	char kind;        // 'b' bool, 'i', 'u', 'f'
	int width;        // bytes in the file
	int dtype;
};
// Is a name among "a,b,c"?  NULL has all.
bool yk_listed(const char *list, const char *name);
// "u16" or "u16:1024": the elements, and from which byte on.  EINVAL: it is none of them.
int yk_element_format(const char *format, const struct yk_element **, uint64_t *offset);
// A file of that many bytes from the offset on holds whole elements: how many.  EFORMAT.
int yk_element_count(const struct yk_element *, const char *path, uint64_t offset, uint64_t bytes, uint64_t *count);
// NULL: there is none.
const struct yk_element *yk_element_ids(const struct yk_element *); // as ids of a vocabulary, i32
const struct yk_element *yk_element_named(const char *name, size_t length);
const struct yk_element *yk_element_of(char kind, int width);

struct yk_part {
	char *path;
	int fd;
	const struct yk_element *element;
	bool swap;             // big endian
	uint64_t offset;       // of sample 0 in the file
	uint64_t stride;       // bytes from a sample to the next
	int64_t elements;      // of a sample
	int rank;              // in Fortran's order, as [samples, dims..]; 0: row major
	int64_t dims[YOKE_MAX_RANK];
	int64_t limit;         // ids have to be below; 0: any
	char name[64];         // of the field
};

// A set of n parts, whose descriptors and paths it takes, also when it fails.  dims: of each part's samples, in row-major order.
struct yk_parts_shape {
	int rank;
	int64_t dims[YOKE_MAX_RANK];
};
yoke_dataset *yk_parts_set(const char *name, int64_t count, int n, struct yk_part *, const struct yk_parts_shape *,
			   uint64_t fingerprint);
// Elements as a file has them, at yk_part_room of the sample's room, become a sample.  EFORMAT: bools, ids beyond the limit.
void *yk_part_room(const struct yk_part *, void *to);
int yk_part_convert(const struct yk_part *, int64_t sample, void *to);
void yk_parts_close(int n, struct yk_part *);
// Of a part that has path, descriptor, element and offset, with n elements: windows of context + 1 ids, each
// beginning on the last one of the window before.  vocab 0: any ids.  Takes the part, also when it fails.
void yk_windows_part(struct yk_part *, const struct yk_element *ids, int64_t context, int64_t vocab);
yoke_dataset *yk_windows_set(struct yk_part *, uint64_t n, int64_t context, int64_t vocab, uint64_t fingerprint);

// ---- npy.c ----

// What the header of a .npy file says, whose first `length` bytes these are, of `bytes` in all: element, swap,
// offset, rank (0 where rows are in C's order), dims with the rows first.
struct yk_npy {
	const struct yk_element *element;
	bool swap, fortran;
	uint64_t offset;
	int rank;
	int64_t dims[YOKE_MAX_RANK];
};
#define YK_NPY_HEADER (12 + 65536) // bytes at most that it wants
// EFORMAT, EUNSUPPORTED, with path and reason.
int yk_npy_header(struct yk_npy *, const char *path, const char *text, size_t length, uint64_t bytes);

// Its rows as a part that has its descriptor already, offset from the header's begin.
void yk_npy_part(struct yk_part *, const struct yk_npy *, struct yk_parts_shape *);

#endif
