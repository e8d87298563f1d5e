// SPDX-License-Identifier: Apache-2.0
// A map program analyzed for one op: the checked program, its merged axes and each operand's
// strides.  The source generator works from this form alone.
#ifndef YK_MAPFORM_H
#define YK_MAPFORM_H

#include <stdbool.h>

#include "yoke-plugin.h"

// Outputs, then the program's inputs, then the element's index.
#define YK_MAP_OPERANDS (YOKE_MAP_MAX_OUTPUTS + YOKE_MAP_MAX_INPUTS + 1)

#define YK_MAP_AXES (YOKE_MAX_RANK + 1) // each group of axes has at least one

enum yk_map_class {
	YK_MAP_VALUE,   // no buffer: a word
	YK_MAP_PRODUCT, // the product of a contraction, a parameter of the function
	YK_MAP_ABSENT,  // an output that is not requested
	YK_MAP_LINEAR,  // row-major without gaps
	YK_MAP_ONE,     // all strides 0
	YK_MAP_STRIDED
};

// A stride in the generated text: not known; known to be 1; known to be 0.
enum yk_map_step { YK_MAP_ANY, YK_MAP_UNIT, YK_MAP_STILL };

struct yk_map_operand {
	const struct yoke_view *view; // NULL for an absent operand, a product or the index
	int32_t number;               // of the buffer, numbered as in struct yoke_map_arg
	uint8_t class, dtype;
	bool each;                    // in an op over lists: one number per tensor
	uint8_t step[YK_MAP_AXES];    // STRIDED: per stride, see above
	int64_t strides[YK_MAP_AXES]; // along the merged axes
};

// Merged axes: group 0 .. split-1, then group split .. rank-1.  The last axis of each group has its
// own index, a parameter of the function; the axes before it share one.  Only reductions (kept and
// reduced axes) and recurrences (the second group is the axis of the recurrence) have two groups;
// otherwise split is 0.
struct yk_map_form {
	const struct yoke_map *map;
	uint16_t code;
	int rank, split;
	unsigned carried; // recurrence: the number of carried values, the last inputs and outputs
	bool flat;       // one axis; each operand is LINEAR, ONE or has no buffer
	bool narrow;     // all index arithmetic fits 31 bits
	uint32_t dtypes; // bit d: dtype d occurs
	uint64_t count[YOKE_MAP_INDICES]; // as in struct yoke_map_call
	unsigned noperand;                // not counting the index
	int64_t dims[YK_MAP_AXES];
	bool list;      // one tensor of each list; LINEAR operands are lists, the others numbers
	uint64_t given; // in an op over lists: bit k: instruction k depends on numbers only
	struct yk_map_operand operand[YK_MAP_OPERANDS];
};

// 0, EINVAL for a malformed op, or EUNSUPPORTED.  Sets no message in yoke_error, because backends
// call it to find out whether they support an op.
int yk_map_form(const struct yoke_op *, struct yk_map_form *);
// Is the length of this axis an argument?  True of each axis that follows another one under the
// same index.
bool yk_map_length(const struct yk_map_form *, int axis);
// The number of values that an instruction reads.
int yk_map_operands(int op);
// Does the program use the element's index?
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
