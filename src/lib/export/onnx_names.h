// SPDX-License-Identifier: Apache-2.0
// Names of an ONNX file: a hash table that makes them valid and unique and holds what is known
// about each.
#ifndef YK_ONNX_NAMES_H
#define YK_ONNX_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct yk_onnx_name {
	const char *text; // NULL: a free entry
	uint32_t copies;  // names made from this one by appending numbers
	bool used;        // by a node that is kept, or as an output
	bool described;   // has a ValueInfoProto
};

struct yk_onnx_names {
	struct yk_onnx_name *at; // open addressing
	size_t count, size;      // size: a power of 2, at least twice the count
};

// Valid names have at most 300 bytes of UTF-8, without white space or control characters.
enum { YK_ONNX_NAME = 301 };
// Makes a name valid: other bytes become '_', more bytes are cut off, and an empty name is
// "unnamed".
void yk_onnx_clean(const char *name, char to[YK_ONNX_NAME]);

bool yk_onnx_is_utf8(const char *);

// The entry of a name, or NULL.
struct yk_onnx_name *yk_onnx_names_find(const struct yk_onnx_names *, const char *text);
// Adds a text, which is not copied, if it is new; false: no memory.
bool yk_onnx_names_add(struct yk_onnx_names *, const char *text);
// Adds a name that no other has: `wanted`, made valid, or with a number; the text is in `memory`.
// NULL: no memory.
const char *yk_onnx_names_unique(struct yk_onnx_names *, struct yk_arena *memory,
				 const char *wanted);
void yk_onnx_names_fini(struct yk_onnx_names *);

#endif
