// SPDX-License-Identifier: Apache-2.0
// GGUF files: metadata and named tensors, as llama.cpp and its relatives write models (versions 2
// and 3, little endian).
//
//     "GGUF", u32 version, u64 tensors, u64 keys
//     per key: string name, u32 type, value; an array is u32 type, u64 count, elements
//     per tensor: string name, u32 rank, u64 dims[rank] fastest first, u32 format, u64 offset
//     padding to the alignment, then the tensors' data, each at a multiple of the alignment
//
// A string is u64 length and bytes.  Large models are split into files NAME-00001-of-00003.gguf, of
// which the first has the metadata.  Files are mapped and untrusted: every count, offset and size
// is checked before it is used.
#ifndef YK_GGUF_H
#define YK_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "yoke-plugin.h"

// X(NAME, number, elements per block, bytes per block): how a tensor's elements are stored.
#define YK_GGUF_FORMATS(X) \
	X(F32, 0, 1, 4) X(F16, 1, 1, 2) X(Q4_0, 2, 32, 18) X(Q4_1, 3, 32, 20) X(Q5_0, 6, 32, 22) \
	X(Q5_1, 7, 32, 24) X(Q8_0, 8, 32, 34) X(Q8_1, 9, 32, 36) \
	X(Q2_K, 10, 256, 84) X(Q3_K, 11, 256, 110) X(Q4_K, 12, 256, 144) X(Q5_K, 13, 256, 176) \
	X(Q6_K, 14, 256, 210) X(Q8_K, 15, 256, 292) X(IQ2_XXS, 16, 256, 66) \
	X(IQ2_XS, 17, 256, 74) X(IQ3_XXS, 18, 256, 98) X(IQ1_S, 19, 256, 50) \
	X(IQ4_NL, 20, 32, 18) X(IQ3_S, 21, 256, 110) X(IQ2_S, 22, 256, 82) \
	X(IQ4_XS, 23, 256, 136) X(I8, 24, 1, 1) X(I16, 25, 1, 2) X(I32, 26, 1, 4) \
	X(I64, 27, 1, 8) X(F64, 28, 1, 8) X(IQ1_M, 29, 256, 56) X(BF16, 30, 1, 2) \
	X(TQ1_0, 34, 256, 54) X(TQ2_0, 35, 256, 66) X(MXFP4, 39, 32, 17)

enum yk_gguf_format {
#define X(name, number, elements, bytes) YK_GGUF_##name = number,
	YK_GGUF_FORMATS(X)
#undef X
};

enum yk_gguf_type {
	YK_GGUF_U8,
	YK_GGUF_S8,
	YK_GGUF_U16,
	YK_GGUF_S16,
	YK_GGUF_U32,
	YK_GGUF_S32,
	YK_GGUF_FLOAT,
	YK_GGUF_BOOL,
	YK_GGUF_STRING,
	YK_GGUF_ARRAY,
	YK_GGUF_U64,
	YK_GGUF_S64,
	YK_GGUF_DOUBLE,
};

struct yk_gguf_key {
	const char *name;
	enum yk_gguf_type type;    // of the value or, for an array, of its elements
	bool array;
	uint64_t count, bytes;     // of the elements; 1 if it is no array
	const unsigned char *data; // in the mapped file
};

struct yk_gguf_tensor {
	const char *name;
	int rank;
	int64_t dims[4];           // slowest first, as everywhere in yoke
	enum yk_gguf_format format;
	uint64_t bytes;
	const unsigned char *data; // in the mapped file
	int file;
};

struct yk_gguf {
	char *path;
	struct yk_gguf_file {
		char *path;
		const unsigned char *map;
		uint64_t bytes;
	} *file;
	int files;
	struct yk_gguf_key *key;       // sorted by name
	struct yk_gguf_tensor *tensor; // sorted by name
	size_t keys, tensors, key_cap, tensor_cap;
	struct yk_arena names;
};

// The name of a format, "Q4_K"; elements and bytes of a block.  NULL: unknown.
const char *yk_gguf_format_name(unsigned format, unsigned *elements, unsigned *bytes);

// Opens a file and, if it is the first of a split model, the others.  ENOENT, EIO, ENOMEM; EFORMAT
// with the path, the offset or name, and what is wrong.
int yk_gguf_open(struct yk_gguf *, const char *path);
void yk_gguf_close(struct yk_gguf *);
// Is it a regular file that begins as GGUF does?
bool yk_gguf_is(const char *path);

// NULL: there is no such key or tensor.
const struct yk_gguf_key *yk_gguf_key(const struct yk_gguf *, const char *name);
const struct yk_gguf_tensor *yk_gguf_tensor(const struct yk_gguf *, const char *name);

// Values by key.  They return 1 if the key exists, 0 and leave *to alone if not, and EFORMAT if it
// has another type or, for integers, is outside min .. max.
int yk_gguf_int(const struct yk_gguf *, const char *key, int64_t min, int64_t max, int64_t *to);
int yk_gguf_real(const struct yk_gguf *, const char *key, double *to);
int yk_gguf_bool(const struct yk_gguf *, const char *key, bool *to);
// The text is not terminated by a NUL.
int yk_gguf_string(const struct yk_gguf *, const char *key, const char **to, size_t *bytes);
// Element i of an array of integers or bools, or of floating-point numbers; i < count.
int64_t yk_gguf_int_at(const struct yk_gguf_key *, uint64_t i);
double yk_gguf_real_at(const struct yk_gguf_key *, uint64_t i);
// Visits the strings of an array in order; they were checked by open.
struct yk_gguf_strings {
	const unsigned char *at;
	uint64_t left;
};
struct yk_gguf_strings yk_gguf_strings(const struct yk_gguf_key *);
bool yk_gguf_next(struct yk_gguf_strings *, const char **to, size_t *bytes);

#endif
