// SPDX-License-Identifier: Apache-2.0
// Shared by the two halves of the generator: mapvalue.c writes operand addresses and the values of
// instructions, mapsrc.c the functions around them.
#ifndef YK_MAPSRC_PRIV_H
#define YK_MAPSRC_PRIV_H

#include <stdbool.h>
#include <stddef.h>

#include "kernel/mapform.h"

// For each dtype: the names of its storage type and of the type of a variable, the suffix of its
// functions (f16 and bf16 use f32's), and its own name.
struct yk_map_dtype {
	const char *stored, *type, *suffix, *name;
};
extern const struct yk_map_dtype yk_map_dtypes[];

struct yk_text {
	char *to;
	size_t cap, length; // keeps counting beyond cap
};

void yk_put(struct yk_text *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool yk_map_in_memory(const struct yk_map_operand *);
// x0, x1, ..: indices along merged axes first .. end-1.  The expression `row` counts all axes but
// the last, `last` indexes that one.
void yk_put_axes(struct yk_text *, const struct yk_map_form *, int first, int end, const char *row,
		 const char *last);
// The index of operand k's element along merged axes 0 .. end-1.
void yk_put_index(struct yk_text *, const struct yk_map_form *, unsigned k, int end);
// p0, p1, ..: base addresses of operand k's elements; e0, e1, ..: the index of the current element.
void yk_put_operand(struct yk_text *, const struct yk_map_form *, unsigned k);
// The value that an input's buffer or word holds.
void yk_put_operand_value(struct yk_text *, const struct yk_map_form *, unsigned input);
bool yk_map_half(int dtype);
// Does yk_put_value write the bits of a half instead of its value?
bool yk_map_as_bits(const struct yk_map_form *, const struct yoke_insn *);
// Writes the value of an instruction, or returns EUNSUPPORTED.
int yk_put_value(struct yk_text *, const struct yk_map_form *, const struct yoke_insn *);

#endif
