// SPDX-License-Identifier: Apache-2.0
// What the two halves of the generator share: mapvalue.c writes where operands are and what instructions give,
// mapsrc.c the functions around them.
#ifndef YK_MAPSRC_PRIV_H
#define YK_MAPSRC_PRIV_H

#include <stdbool.h>
#include <stddef.h>

#include "kernel/mapform.h"

// What a dtype is called: in a buffer, in a variable, as the suffix of functions (f16 and
// bf16 use those of f32), and as itself.
struct yk_map_dtype {
	const char *stored, *type, *suffix, *name;
};
extern const struct yk_map_dtype yk_map_dtypes[];

struct yk_text {
	char *to;
	size_t cap, length; // length goes on counting beyond cap
};

void yk_put(struct yk_text *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool yk_map_in_memory(const struct yk_map_operand *);
// x0, x1, ..: indices along merged axes first .. end-1, of which `row` counts all but the
// last and `last` that.
void yk_put_axes(struct yk_text *, const struct yk_map_form *, int first, int end, const char *row,
		 const char *last);
// The index of operand k's element along merged axes 0 .. end-1.
void yk_put_place(struct yk_text *, const struct yk_map_form *, unsigned k, int end);
// p0, p1, ..: where operand k's elements are; e0, e1, ..: the index of the one at hand.
void yk_put_operand(struct yk_text *, const struct yk_map_form *, unsigned k);
// What the buffer or the word of an input holds.
void yk_put_operand_value(struct yk_text *, const struct yk_map_form *, unsigned input);
bool yk_map_half(int dtype);
// Does yk_put_value give the bits of a half, and not its value?
bool yk_map_as_bits(const struct yk_map_form *, const struct yoke_insn *);
// The value of an instruction, or EUNSUPPORTED.
int yk_put_value(struct yk_text *, const struct yk_map_form *, const struct yoke_insn *);

#endif
