// SPDX-License-Identifier: Apache-2.0
// The form of a MAP op: its program checked, its axes merged, each operand's stride
// class; what the generator writes a kernel from.
#ifndef YK_MAPFORM_H
#define YK_MAPFORM_H

#include <stdbool.h>

#include "yoke-plugin.h"

#define YK_MAP_RANK 4
#define YK_MAP_OPERANDS (YOKE_MAP_MAX_OUTPUTS + YOKE_MAP_MAX_INPUTS)

enum yk_map_class {
	YK_MAP_VALUE,   // no buffer: a word
	YK_MAP_LINEAR,  // row major without gaps
	YK_MAP_ONE,     // all strides 0
	YK_MAP_ROW,     // last stride 1
	YK_MAP_COLUMN,  // last stride 0
	YK_MAP_GENERAL
};

struct yk_map_operand {
	const struct yoke_view *view;
	uint8_t class;
	int64_t strides[YOKE_MAX_RANK]; // of the merged axes
};

struct yk_map_form {
	const struct yoke_map *map;
	int rank;        // merged, at least 1
	bool flat;       // rank 1, each operand LINEAR, ONE or VALUE
	uint32_t dtypes; // bit d: dtype d occurs
	uint64_t rows, cols;
	unsigned noperand; // outputs, then inputs
	int64_t dims[YOKE_MAX_RANK];
	struct yk_map_operand operand[YK_MAP_OPERANDS];
};

// 0, EINVAL for a malformed op, EUNSUPPORTED; says nothing in yoke_error, since backends
// ask with it.
int yk_map_form(const struct yoke_op *, struct yk_map_form *);
// Strides that are arguments of the kernel: the leading n.
int yk_map_strides(const struct yk_map_form *, const struct yk_map_operand *);

static inline bool yk_map_real(int dtype)
{
	return dtype >= yoke_f32 && dtype <= yoke_bf16;
}

static inline bool yk_map_integer(int dtype)
{
	return dtype >= yoke_i8 && dtype <= yoke_i64;
}

#endif
