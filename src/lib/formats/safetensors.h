// SPDX-License-Identifier: Apache-2.0
// Safetensors files: named arrays after a JSON header (the format of the `safetensors`
// project, 0.4).
//
//     u64 little endian: bytes of the header
//     header, JSON, padded with spaces so that data begins at a multiple of 8:
//         { "name": { "dtype": "F32", "shape": [..], "data_offsets": [begin, end] }, .. }
//     data, row major, little endian, without gaps or overlaps
//
// Files are untrusted: nothing is used before it is checked.
#ifndef YK_SAFETENSORS_H
#define YK_SAFETENSORS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "yoke-plugin.h"

#define YK_SAFETENSORS_METADATA "__metadata__" // a key of the header that is not a tensor

// Dtypes of the format that yoke tensors lack: such arrays are listed, and read as samples if
// part.h has the element type.
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

// yk_safetensors_dtype returns the format's name of a dtype, NULL if it has none;
// yk_safetensors_size the bytes per element, 0 if that is not a whole number or the dtype is
// unknown.
const char *yk_safetensors_dtype(int dtype);
size_t yk_safetensors_size(int dtype);
// Bytes whose order a host may reverse: of an element, or of the parts of a complex one.
size_t yk_safetensors_part(int dtype);

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

// Bytes of its elements; ERANGE if rank, dims or their product is out of bounds,
// EDTYPE.
int yk_host_tensor_bytes(const struct yk_host_tensor *, uint64_t *bytes);

// Writes a file atomically; arrays with wider elements come first, otherwise the given order is
// kept.  `bytes` and `hash` (XXH64 of the whole file, seed 0) describe the file.
int yk_safetensors_write(const char *path, int n, const struct yk_host_tensor *,
			 uint64_t *bytes, uint64_t *hash);
// The same with a callback that provides the data during the write: `bytes` bytes of array i
// starting at byte `from`, at most YK_SAFETENSORS_WINDOW and whole elements.  It returns 0, or an
// error, after which no file is written.
enum { YK_SAFETENSORS_WINDOW = 16 << 20 };
typedef int yk_safetensors_source_fn(void *arg, int i, uint64_t from, size_t bytes, void *to);
int yk_safetensors_write_by(const char *path, int n, const struct yk_host_tensor *,
			    yk_safetensors_source_fn *, void *arg, uint64_t *bytes, uint64_t *hash);

// Returns the beginning of a file, up to its data, for arrays that the caller writes; the caller
// frees it.  metadata: strings, or NULL.  Sets offset[i] to the file offset of array i; its data
// pointer is not used.  NULL: errors as above.
char *yk_safetensors_head(const char *path, json_t *metadata, int n, const struct yk_host_tensor *,
			  size_t *bytes, uint64_t *offset);

// Do a file's first bytes look like safetensors: a header of at most 4 GiB that is a JSON object?
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
	const unsigned char *map;             // of the whole file; mapped on first use
	char *text;                           // the header, decoded in place; holds the names
	struct yk_safetensors_entry *entries; // in data order
	int count;
	const char **metadata; // key, value, ..
	size_t metadata_count; // number of keys plus values
	struct yk_safetensors_name { // sorted by hash, then name
		uint64_t hash;
		const char *name;
		int entry;
	} *names;
};

// Opens and checks the whole header.  ENOENT, EIO, ENOMEM, EFORMAT with path and reason.
int yk_safetensors_open(struct yk_safetensors *, const char *path);
void yk_safetensors_close(struct yk_safetensors *);
// Parses a header that is in memory: fills entries, count and names of a struct
// that has only its path.  `size` bytes of data follow the header; entries' offsets count from
// there.  The text is modified and must outlive the struct.
int yk_safetensors_header(struct yk_safetensors *, char *text, uint64_t length,
			  uint64_t size);
// Finds an entry by name; NULL if there is none.
const struct yk_safetensors_entry *yk_safetensors_find(const struct yk_safetensors *,
						       const char *name);
// A string of the header's metadata; NULL if there is no such key.
const char *yk_safetensors_metadata(const struct yk_safetensors *, const char *key);
// Reads the elements to `to`, which has entry->bytes bytes.  EIO, also if the file was truncated
// after opening; EFORMAT for a bool that is neither 0 nor 1.
int yk_safetensors_read(const struct yk_safetensors *,
			const struct yk_safetensors_entry *, void *to);
// Returns the elements in the mapped file, at any alignment, valid until close; NULL with an error.
// Truncating the file later causes SIGBUS; replacing it by rename, as yoke does with all its files,
// is safe.
const void *yk_safetensors_data(struct yk_safetensors *, const struct yk_safetensors_entry *);

#endif
