// SPDX-License-Identifier: Apache-2.0
// Token files: safetensors with `tokens`, U8, U16 or U32 [N], `documents`, I64 [D] (the token at which each text
// begins; may be missing), and metadata:
//     format       "yoke tokens 1"
//     tokenizer    JSON, as manifests have it
//     vocabulary   XXH64 of that text, 16 hexadecimal digits; may be missing
// Those that `yoke data prepare` wrote have besides
//     train        how many tokens, the first ones, are to train with; the others are to validate
//     valid        the share that was asked for
//     fingerprint  that of the text, as training on it has
//     xxh64        of all bytes of the arrays, in the order of the file
//     sources      JSON: the files of text, as manifests have them (source.h)
//     made         what it was made from and how, which another run compares
#ifndef YK_DATA_TOKENFILE_H
#define YK_DATA_TOKENFILE_H

#include <jansson.h>
#include <stdbool.h>

#include "data/part.h"
#include "formats/safetensors.h"

#define YK_TOKENS_FORMAT "yoke tokens 1"

struct yk_token_file {
	const struct yk_element *element; // u8, u16, u32
	uint64_t offset, count;           // byte of the first token; tokens
	int64_t vocab;
	int64_t train;                    // -1: it says no split
	double valid;
	uint64_t fingerprint, whole;      // of its text, of its tokens (xxh64); 0: it says none
};

// Refuses a file of raw elements that begins like a file of another format: EFORMAT names the format and how to read it.  A token
// file of llm.c is accepted from byte 1024 on, with the width and the number of ids of its header.
int yk_raw_check(int fd, const char *path, const struct yk_element *, uint64_t offset, uint64_t bytes);

bool yk_token_file_is(const struct yk_safetensors *);
// EFORMAT: it is none, or what it says of itself does not hold.
int yk_token_file_take(struct yk_token_file *, const struct yk_safetensors *);
// Do the bytes of its arrays have the hash that it says?  EFORMAT, EIO; 0 also where it says none.
int yk_token_file_verify(const struct yk_safetensors *);
// The tokenizer's JSON, checked against its hash; NULL: EFORMAT, ENOMEM.
json_t *yk_token_file_tokenizer(const struct yk_safetensors *);

#endif
