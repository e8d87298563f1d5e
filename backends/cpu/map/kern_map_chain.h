// SPDX-License-Identifier: Apache-2.0
// Chains: sequences of instructions of a map program in f32, i32 and bool that keep their value in
// vector registers. A bool is a mask of 32 bits there.
//
// A link is one instruction on a block of elements. Its function receives the running value as
// arguments, which the calling convention passes in registers, reads its other operands from
// memory, and ends by calling the function of the next link. A link of its own stores a value that
// later links need to L1. Chains and strip functions give the same bits: both are made from the
// same functions of one element.
#ifndef YK_KERN_MAP_CHAIN_H
#define YK_KERN_MAP_CHAIN_H

#include "kern_map.h"
#include "../vector/vec.h"

// A block has several vectors, because each link's operation on a vector depends on the previous
// link. It has at most YK_BLOCK elements, the size of a uniform value's register. With vectors of
// 16 elements there are two sizes: strips that are whole large blocks use those, with half as many
// calls.
#if VF < 16
#define YK_SMALL_COUNT 8
#define YK_LARGE_COUNT 8
#else
#define YK_SMALL_COUNT 4
#define YK_LARGE_COUNT 8
#endif
enum { YK_SMALL_BLOCK = YK_SMALL_COUNT * VF, YK_LARGE_BLOCK = YK_LARGE_COUNT * VF }; // elements
_Static_assert((int)YK_LARGE_BLOCK <= (int)YK_BLOCK, "a uniform value has one block");

struct yk_link {
	yk_link_fn *fn;
	yk_link_fn *loop; // of the first link: runs the whole chain; or NULL
	char *p[3];      // operands in memory, or the address to store to
	int64_t mask[3]; // -1: the operand advances with the block; 0: one block for all
};

// Runs the links over n elements, at least one block. If n is not a multiple of the block, the last
// block overlaps the one before it.
void ISA(yk_chain_run)(const struct yk_link *, enum yk_link_size, int64_t n);

// Where a link's operands are: A in registers, M in memory, U a vector that is the same for all
// elements and is loaded once.
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

// The links of an opcode whose operands are f32, i32 or bool; none: not possible in a chain.
// Comparisons produce a mask. Those of bool have only the ways A, AM and AA, with a mask in memory.
struct yk_links ISA(yk_link_op)(int op, int dtype, enum yk_link_way);
// The same for a binary opcode whose memory operand (AM or MA) is f16, bf16 (both advance) or bool.
struct yk_links ISA(yk_link_op_narrow)(int op, enum yk_link_way, int dtype);
// CAST of a value in registers, or, from f32 and i32, in memory; none: not possible in a chain.
struct yk_links ISA(yk_link_cast)(int to, int from, bool in_registers);
// ADD, SUB or DIV of the register value and p[0] (f32, advances) times the uniform p[1]; left: the
// product is the first operand. None: unsupported.
struct yk_links ISA(yk_link_fold)(int op, bool left);
// yk_link_blend: register value times the uniform p[2] plus p[0] times the uniform p[1].
// yk_link_scale_add: register value times the uniform p[1] plus the uniform p[0].
extern const struct yk_links ISA(yk_link_blend), ISA(yk_link_scale_add);
// SELECT. in_registers: which operand is in registers (0: the condition), or -1. The others are
// p[0..2]; p[0] holds bools or, with `mask`, a mask of the operands' width.
struct yk_links ISA(yk_link_select)(int in_registers, bool mask);
struct yk_links ISA(yk_link_round)(int dtype);
// Stores to p[0] as dtype; YK_LINK_MASK: a mask as bool. stream: non-temporal; p[0] is aligned to
// 64.
enum { YK_LINK_MASK = yoke_bool };
struct yk_links ISA(yk_link_store)(int dtype, bool stream);
// Loads from p[0], f16 and bf16 as f32, bool as a mask.
struct yk_links ISA(yk_link_load)(int dtype);
extern const struct yk_links ISA(yk_link_end);
// A function that runs a chain of one instruction and a store, from the chain's first link on;
// NULL: there is none.
yk_link_fn *ISA(yk_link_loop)(const struct yk_link *first, enum yk_link_size);

#endif
