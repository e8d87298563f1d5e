// SPDX-License-Identifier: Apache-2.0
// Writes GGUF files, version 3: metadata and tensors are declared first, then the data of all
// tensors is written in one pass.
#ifndef YK_GGUF_WRITE_H
#define YK_GGUF_WRITE_H

#include <stdio.h>

#include "base/file.h"
#include "formats/gguf.h"

struct yk_gguf_writer {
	struct yk_gguf_section {
		FILE *f;
		char *at;
		size_t bytes;
	} key, tensor;
	uint64_t keys, tensors, data; // data: bytes of the declared tensors, padded
};

// ENOMEM; call fini at the end, also after an error.
int yk_gguf_writer_init(struct yk_gguf_writer *);
void yk_gguf_writer_fini(struct yk_gguf_writer *);

// Add a key; an error is reported by yk_gguf_write.
void yk_gguf_put_u32(struct yk_gguf_writer *, const char *name, uint32_t);
void yk_gguf_put_real(struct yk_gguf_writer *, const char *name, double); // as f32
void yk_gguf_put_bool(struct yk_gguf_writer *, const char *name, bool);
void yk_gguf_put_string(struct yk_gguf_writer *, const char *name, const char *text, size_t bytes);
// An array of f32 or i32 numbers, or of bytes.
void yk_gguf_put_array(struct yk_gguf_writer *, const char *name, enum yk_gguf_type, uint64_t n,
		       const void *data);
// Begins an array of n strings, which yk_gguf_put_element adds.
void yk_gguf_put_strings(struct yk_gguf_writer *, const char *name, uint64_t n);
void yk_gguf_put_element(struct yk_gguf_writer *, const char *text, size_t bytes);
// Copies a key of another file.
void yk_gguf_put_key(struct yk_gguf_writer *, const struct yk_gguf_key *);

// Declares a tensor; dims slowest first. ERANGE: it does not fit a file, or its rows are not whole
// blocks.
int yk_gguf_put_tensor(struct yk_gguf_writer *, const char *name, int rank, const int64_t *dims,
		       enum yk_gguf_format);

// Writes the file atomically.  `fill` adds the bytes of tensor i, in the order of declaration, with
// yk_file_add.
int yk_gguf_write(struct yk_gguf_writer *, const char *path,
		  int (*fill)(void *arg, size_t i, struct yk_file_writer *), void *arg);

#endif
