// SPDX-License-Identifier: Apache-2.0
// The form of a map program in its op: the program checked, axes merged, each operand's
// strides; what the generator writes functions from.
#ifndef YK_MAPFORM_H
#define YK_MAPFORM_H

#include <stdbool.h>

#include "yoke-plugin.h"

// Outputs, then the program's inputs, then the element's index.
#define YK_MAP_OPERANDS (YOKE_MAP_MAX_OUTPUTS + YOKE_MAP_MAX_INPUTS + 1)

#define YK_MAP_AXES (YOKE_MAX_RANK + 1) // each part has one

enum yk_map_class {
	YK_MAP_VALUE,   // no buffer: a word
	YK_MAP_PRODUCT, // of a contraction: a parameter of the function
	YK_MAP_ABSENT,  // an output that is not wanted
	YK_MAP_LINEAR,  // row major without gaps
	YK_MAP_ONE,     // all strides 0
	YK_MAP_STRIDED
};

enum yk_map_step { YK_MAP_ANY, YK_MAP_UNIT, YK_MAP_STILL }; // a stride; 1; 0

struct yk_map_operand {
	const struct yoke_view *view; // NULL: none, a product or an index
	int32_t number;               // of a buffer: as struct yoke_map_arg counts
	uint8_t class, dtype;
	bool each;                    // of lists: one number a tensor
	uint8_t step[YK_MAP_AXES];    // STRIDED: where the text knows the stride
	int64_t strides[YK_MAP_AXES]; // of the merged axes
};

// Merged axes, 0 .. split-1 and split .. rank-1.  Of each part the last axis has an index
// of its own, which is a parameter; those before it share one.  Only a reduction has two
// parts, kept and reduced axes, and a recurrence, whose second part is the axis it runs along;
// else split is 0.
struct yk_map_form {
	const struct yoke_map *map;
	uint16_t code;
	int rank, split;
	unsigned carried; // of a recurrence: the last inputs and outputs
	bool flat;       // one axis, each operand LINEAR, ONE or no buffer
	bool narrow;     // whatever is computed of indices fits 31 bits
	uint32_t dtypes; // bit d: dtype d occurs
	uint64_t count[YOKE_MAP_INDICES]; // as in struct yoke_map_call
	unsigned noperand;                // without the index
	int64_t dims[YK_MAP_AXES];
	bool list;      // one tensor of each list; LINEAR operands are lists, others numbers
	uint64_t given; // bit k: of lists: instruction k is of numbers alone
	struct yk_map_operand operand[YK_MAP_OPERANDS];
};

// 0, EINVAL for a malformed op, EUNSUPPORTED; says nothing in yoke_error, since backends
// ask with it.
int yk_map_form(const struct yoke_op *, struct yk_map_form *);
// Is there an argument for the length of this axis?  One for each that comes behind another
// under the same index.
bool yk_map_length(const struct yk_map_form *, int axis);
// Values that an instruction reads.
int yk_map_operands(int op);
// Does the program ask for the index?
bool yk_map_indexed(const struct yoke_map *);

static inline bool yk_map_real(int dtype)
{
	return dtype >= yoke_f32 && dtype <= yoke_bf16;
}

static inline bool yk_map_integer(int dtype)
{
	return dtype >= yoke_i8 && dtype <= yoke_i64;
}

#endif
