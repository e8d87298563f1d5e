// SPDX-License-Identifier: Apache-2.0
// The fuzz targets: each accepts arbitrary bytes and aborts if a reader accepts what it must
// refuse.
#ifndef YK_FUZZ_TARGETS_H
#define YK_FUZZ_TARGETS_H

#include <stddef.h>
#include <stdint.h>

// The bytes as a whole file; and as a header after two bytes with the size of the data that
// follows, so that a fuzzer need not find a length that fits.
void yk_fuzz_safetensors(const uint8_t *, size_t);
// As the manifest of a checkpoint, whose checksum is corrected first.
void yk_fuzz_manifest(const uint8_t *, size_t);
// As a .npy file and as a token file: accepted input is read.
void yk_fuzz_npy(const uint8_t *, size_t);
void yk_fuzz_tokens(const uint8_t *, size_t);
// As the header of a cube.
void yk_fuzz_envi(const uint8_t *, size_t);
// As a table, and as JSON lines.
void yk_fuzz_table(const uint8_t *, size_t);
// As a .npz file, and as an image.
void yk_fuzz_npz(const uint8_t *, size_t);
void yk_fuzz_image(const uint8_t *, size_t);
// As a GGUF file: its tensors are in the file; its model and its tokenizer open or give one line.
void yk_fuzz_gguf(const uint8_t *, size_t);
// As a tokenizer.json or tokenizer.model: what is accepted encodes and decodes a text.
void yk_fuzz_tokenizer(const uint8_t *, size_t);
// As a chat template: what is accepted renders messages or fails with one line.
void yk_fuzz_template(const uint8_t *, size_t);
// As a JSON schema: what is accepted gives texts that can always be completed.
void yk_fuzz_schema(const uint8_t *, size_t);
// As a config.env.
void yk_fuzz_config(const uint8_t *, size_t);

#endif
