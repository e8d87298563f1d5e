// SPDX-License-Identifier: Apache-2.0
// Writes messages in the wire format of protocol buffers: a sequence of fields, each a key
// (number << 3 | type) and a value.  A message inside a message is written first, as bytes.
#ifndef YK_WIRE_H
#define YK_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct yk_wire {
	unsigned char *at;
	size_t n, cap;
	bool failed; // ENOMEM
};

void yk_wire_int(struct yk_wire *, unsigned field, uint64_t v); // negative numbers as 64-bit ones
void yk_wire_f32(struct yk_wire *, unsigned field, float v);
void yk_wire_bytes(struct yk_wire *, unsigned field, const void *data, size_t bytes);
void yk_wire_text(struct yk_wire *, unsigned field, const char *text);
// A field of `bytes` bytes whose data the caller writes elsewhere: only the key and the length.
void yk_wire_head(struct yk_wire *, unsigned field, uint64_t bytes);
// Integers without keys, for packed fields.
void yk_wire_add(struct yk_wire *, uint64_t v);
void yk_wire_fini(struct yk_wire *);

#endif
