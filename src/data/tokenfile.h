// SPDX-License-Identifier: Apache-2.0
// Token files: safetensors with `tokens`, U8, U16 or U32 [N], `documents`, I64 [D] (the token at which each text
// begins; may be missing), and metadata:
//     format       "yoke tokens 1"
//     tokenizer    JSON, as manifests have it
//     vocabulary   XXH64 of that text, 16 hexadecimal digits; may be missing
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
};

bool yk_token_file_is(const struct yk_safetensors *);
// EFORMAT: it is none, or what it says of itself does not hold.
int yk_token_file_take(struct yk_token_file *, const struct yk_safetensors *);
// The tokenizer's JSON, checked against its hash; NULL: EFORMAT, ENOMEM.
json_t *yk_token_file_tokenizer(const struct yk_safetensors *);

#endif
