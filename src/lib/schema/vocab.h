// SPDX-License-Identifier: Apache-2.0
// The tokens of a vocabulary as trees over their bytes.
#ifndef YK_SCHEMA_VOCAB_H
#define YK_SCHEMA_VOCAB_H

#include "schema/schema.h"

enum { YK_TOKEN_BYTES = 255 }; // longer ones are never allowed

// Nodes in the order of a walk from the root, without the root.  Tokens that end at node i are
// id[node[i].token] .. id[node[i + 1].token - 1].
struct yk_token_tree {
	struct yk_token_node {
		uint32_t end; // the node after all below this one
		uint32_t token;
		uint8_t byte, depth; // depth 0: the first byte of a token
	} * node;
	size_t nodes;
	uint32_t *id;
	size_t ids;
};

struct yk_schema_vocab {
	int32_t ids;
	size_t words; // of a bitmap
	char *bytes;
	struct yk_vocab_token {
		size_t at;
		uint32_t n; // 0: never allowed in a text
		bool ends;
	} * token;
	// Plain tokens consist of whole characters that a JSON string does not escape.
	struct yk_token_tree plain, other;
	uint32_t *plain_bits, *end_bits; // bitmaps
	uint8_t *plain_chars;            // of each token of plain_id, ascending
	uint32_t *plain_id;
	size_t plain_max; // characters of the longest
};

#endif
