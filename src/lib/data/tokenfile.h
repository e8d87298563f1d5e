// SPDX-License-Identifier: Apache-2.0
// Token files: safetensors with `tokens`, U8, U16 or U32 [N], `documents`, I64 [D] (the token at
// which each text begins; optional), and metadata:
//     format       "yoke tokens 1"
//     tokenizer    JSON, as in checkpoint manifests
//     vocabulary   XXH64 of that text, 16 hexadecimal digits; optional
// `yoke data prepare` adds
//     train        number of training tokens, at the beginning; the others are for validation
//     valid        requested fraction for validation
//     fingerprint  fingerprint of the text, equal to that of training on the text itself
//     xxh64        hash of all bytes of the arrays, in file order
//     sources      JSON: the text files, as in checkpoint manifests (source.h)
//     made         sources and options, which a later `prepare` compares to detect an up-to-date
//                  file
#ifndef YK_DATA_TOKENFILE_H
#define YK_DATA_TOKENFILE_H

#include <jansson.h>
#include <stdbool.h>

#include "data/part.h"
#include "formats/safetensors.h"

#define YK_TOKENS_FORMAT "yoke tokens 1"
#define YK_CHATS_FORMAT "yoke conversations 1" // chat_store.h

struct yk_token_file {
	const struct yk_element *element; // u8, u16, u32
	uint64_t offset, count;           // byte of the first token; tokens
	int64_t vocab;
	int64_t train;                    // -1: no split is stored
	double valid;
	uint64_t fingerprint, whole;      // of its text, of its tokens (xxh64); 0: not stored
};

// Refuses a file of raw elements that begins like another format: EFORMAT names the format and how
// to read it.  An llm.c token file is accepted from byte 1024 on if width and number of ids match
// its header.
int yk_raw_check(int fd, const char *path, const struct yk_element *, uint64_t offset,
		 uint64_t bytes);

bool yk_token_file_is(const struct yk_safetensors *);
// Reads the description.  EFORMAT: not a token file, or its metadata is inconsistent.
int yk_token_file_take(struct yk_token_file *, const struct yk_safetensors *);
// Checks the arrays against the stored hash.  EFORMAT, EIO; 0 also if no hash is stored.
int yk_token_file_verify(const struct yk_safetensors *);
// The tokenizer's JSON, checked against its hash; NULL: EFORMAT, ENOMEM.
json_t *yk_token_file_tokenizer(const struct yk_safetensors *);

#endif
