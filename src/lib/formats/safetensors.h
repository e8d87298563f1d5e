// SPDX-License-Identifier: Apache-2.0
// Safetensors files: named arrays behind a JSON header (the format of the `safetensors`
// project, 0.4).
//
//     u64 little endian: bytes of the header
//     header, JSON, padded with spaces so that data begins at a multiple of 8:
//         { "name": { "dtype": "F32", "shape": [..], "data_offsets": [begin, end] }, .. }
//     data, row major, little endian, without gaps or overlaps
//
// A file is taken as hostile: nothing in it is used before it is checked.
#ifndef YK_SAFETENSORS_H
#define YK_SAFETENSORS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "yoke-plugin.h"

#define YK_SAFETENSORS_METADATA "__metadata__" // a key of the header that is no tensor

// Dtypes that arrays of files may have and tensors have not: they are listed, and read as samples where part.h has such elements.
enum {
	YK_SAFETENSORS_U16 = 64,
	YK_SAFETENSORS_U32,
	YK_SAFETENSORS_I16,
	YK_SAFETENSORS_U64,
	YK_SAFETENSORS_C64,
	YK_SAFETENSORS_F8_E4M3,
	YK_SAFETENSORS_F8_E5M2,
	YK_SAFETENSORS_F8_E8M0,
	YK_SAFETENSORS_F8_E4M3FNUZ,
	YK_SAFETENSORS_F8_E5M2FNUZ,
	YK_SAFETENSORS_F6_E2M3,
	YK_SAFETENSORS_F6_E3M2,
	YK_SAFETENSORS_F4,
};

// The format's name of a dtype, NULL when it has none; bytes of an element, 0 where it has none or no whole number of them.
const char *yk_safetensors_dtype(int dtype);
size_t yk_safetensors_size(int dtype);

// "[3,4]", for messages.
enum { YK_SHAPE_TEXT = 22 * YOKE_MAX_RANK };
const char *yk_shape_text(char to[YK_SHAPE_TEXT], int rank, const int64_t *dims);

// An array in host memory, row major.
struct yk_host_tensor {
	const char *name;
	int dtype, rank;
	int64_t dims[YOKE_MAX_RANK];
	void *data;
};

// Bytes of its elements; ERANGE when rank, dims or their product is out of bounds,
// EDTYPE.
int yk_host_tensor_bytes(const struct yk_host_tensor *, uint64_t *bytes);

// Writes a file atomically, wide elements first, else in the order given.  `bytes` and
// `hash` (XXH64 of the whole file, seed 0) describe what was written.
int yk_safetensors_write(const char *path, int n, const struct yk_host_tensor *,
			 uint64_t *bytes, uint64_t *hash);
// The same of arrays whose data is asked for as it is written: the next bytes of array i, from one on, at most
// YK_SAFETENSORS_WINDOW of them and whole elements.  0, or an error that ends the file, which is not there then.
enum { YK_SAFETENSORS_WINDOW = 16 << 20 };
typedef int yk_safetensors_give_fn(void *arg, int i, uint64_t from, size_t bytes, void *to);
int yk_safetensors_write_by(const char *path, int n, const struct yk_host_tensor *, yk_safetensors_give_fn *, void *arg,
			    uint64_t *bytes, uint64_t *hash);

// The begin of a file whose arrays are written by other means, up to its data, for free(): with these strings as
// metadata (NULL: none).  offset[i]: where array i, whose data is not looked at, has to lie.  NULL: as above.
char *yk_safetensors_head(const char *path, json_t *metadata, int n, const struct yk_host_tensor *,
			  size_t *bytes, uint64_t *offset);

// Do the first bytes of a file look like one's: a header of at most 4 GiB that is an object?
enum { YK_SAFETENSORS_BEGIN = 9 };
bool yk_safetensors_begins(const char begin[YK_SAFETENSORS_BEGIN]);

struct yk_safetensors_entry {
	const char *name;
	int dtype, rank;
	int64_t dims[YOKE_MAX_RANK];
	uint64_t offset, bytes; // in the file
};

struct yk_safetensors {
	char *path;
	int fd;
	uint64_t bytes;                       // of the file
	const unsigned char *map;             // of the whole file, once it is asked for
	char *text;                           // the header, decoded in place: the names
	struct yk_safetensors_entry *entries; // in the order of their data
	int count;
	const char **metadata; // key, value, ..
	size_t metadata_count; // of both
	struct yk_safetensors_name { // by hash, then name
		uint64_t hash;
		const char *name;
		int entry;
	} *names;
};

// Opens and checks the whole header.  ENOENT, EIO, ENOMEM, EFORMAT with path and reason.
int yk_safetensors_open(struct yk_safetensors *, const char *path);
void yk_safetensors_close(struct yk_safetensors *);
// What open does with a header once it is read: fills entries, count and names of a struct
// that has only its path.  `size` bytes of data are behind it, from which offsets count
// here.  The text is changed and has to stay.
int yk_safetensors_header(struct yk_safetensors *, char *text, uint64_t length,
			  uint64_t size);
// By name; NULL when there is none.
const struct yk_safetensors_entry *yk_safetensors_find(const struct yk_safetensors *,
						       const char *name);
// A string of the header's metadata; NULL when there is none of that key.
const char *yk_safetensors_metadata(const struct yk_safetensors *, const char *key);
// Its elements to `to`, which has room for entry->bytes.  EIO, also when the file was cut
// meanwhile; EFORMAT for a bool that is neither 0 nor 1.
int yk_safetensors_read(const struct yk_safetensors *,
			const struct yk_safetensors_entry *, void *to);
// The same, where they lie in the mapped file, at any alignment, until it is closed; NULL with an error.  Whoever cuts the
// file after that ends the process (SIGBUS): one that is replaced, as all files of ours are, stays what it was.
const void *yk_safetensors_data(struct yk_safetensors *, const struct yk_safetensors_entry *);

#endif
