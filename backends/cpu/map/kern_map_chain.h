// SPDX-License-Identifier: Apache-2.0
// Chains: runs of f32 instructions of a map program that keep their value in vector
// registers.
//
// A link is one instruction on a block of YK_LINK_BLOCK elements: a function that takes
// the running value as arguments, which the calling convention passes in registers, reads
// its other operands from memory, and ends by calling the function of the next link. What
// later links need is stored to L1 by a link of its own. An element's bits are those that
// the strip functions give: both are made of the same functions of one element.
#ifndef YK_KERN_MAP_CHAIN_H
#define YK_KERN_MAP_CHAIN_H

#include "kern_map.h"
#include "../vector/vec.h"

// Vectors of a block: what one link does to a vector waits for the link before.  A block is one of
// uniform values at most, YK_BLOCK.
#if VF < 16
#define YK_LINK_COUNT 8
#define YK_LINK_VECTORS vf a0, vf a1, vf a2, vf a3, vf a4, vf a5, vf a6, vf a7
#else
#define YK_LINK_COUNT 4
#define YK_LINK_VECTORS vf a0, vf a1, vf a2, vf a3
#endif
enum { YK_LINK_BLOCK = YK_LINK_COUNT * VF };

// `at` is the block's offset in bytes of an f32 operand.
typedef void yk_link_fn(const struct yk_link *, int64_t at, YK_LINK_VECTORS);

struct yk_link {
	yk_link_fn *fn;
	char *p[3];      // operands in memory, or where to store
	int64_t mask[3]; // -1: the operand advances with `at`, 0: one block for all
};

// Runs the links over n elements, a multiple of YK_LINK_BLOCK.
void ISA(yk_chain_run)(const struct yk_link *, int64_t n);

// How the operands of a link are given: A in registers, M in memory, U as one vector that is
// the same for all elements, which is loaded once.
enum yk_link_way {
	YK_LINK_A,
	YK_LINK_M,
	YK_LINK_AM,
	YK_LINK_MA,
	YK_LINK_AA,
	YK_LINK_MM,
	YK_LINK_AU,
	YK_LINK_UA,
	YK_LINK_MU,
	YK_LINK_UM,
	YK_LINK_WAYS
};

// The function of an opcode, or NULL: it cannot be in a chain. Comparisons leave a mask.
yk_link_fn *ISA(yk_link_op)(int op, enum yk_link_way);
// The same of a binary one whose operand in memory, AM or MA, is f16 or bf16 and advances.
yk_link_fn *ISA(yk_link_op_half)(int op, enum yk_link_way, int dtype);
// ADD, SUB or DIV of what is in registers and p[0] (f32, advances) times the uniform p[1]; left: that product
// is the first operand.  NULL: there is none.
yk_link_fn *ISA(yk_link_fold)(int op, bool left);
// What is in registers times the uniform p[2], and p[0] times the uniform p[1]; .. times the uniform p[1], and
// the uniform p[0].
extern yk_link_fn ISA(yk_link_blend), ISA(yk_link_scale_add);
// SELECT, by the operand that is in registers (0: the mask) or -1; memory is p[0..2], p[0]
// bools or, with `mask`, a mask of the operands' width.
yk_link_fn *ISA(yk_link_select)(int in_registers, bool mask);
yk_link_fn *ISA(yk_link_round)(int dtype);
// Stores to p[0] as dtype; YK_LINK_MASK: a mask as bool. stream: p[0] is aligned to 64.
enum { YK_LINK_MASK = yoke_bool };
yk_link_fn *ISA(yk_link_store)(int dtype, bool stream);
// Loads from p[0], f32, f16 or bf16.
yk_link_fn *ISA(yk_link_load)(int dtype);
extern yk_link_fn ISA(yk_link_end);

#endif
