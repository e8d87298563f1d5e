// SPDX-License-Identifier: Apache-2.0
// The program that a schema is compiled to: a pushdown automaton.  A thread of it has an
// instruction, a number and a stack of such pairs; only RUN consumes bytes.
#ifndef YK_SCHEMA_PROGRAM_H
#define YK_SCHEMA_PROGRAM_H

#include "schema/automaton.h"

enum yk_schema_op {
	YK_OP_END,    // the value is complete
	YK_OP_RETURN, // pops
	YK_OP_RUN,    // runs the automaton that begins at `start`, then goes to `next`; with `min`
		      // it is of strings of up to `max` characters
	YK_OP_CALL,   // pushes `next` and goes to `target`
	YK_OP_CHOICE, // goes to each of the `choices` targets from `first` on; none: no value
		      // exists
	YK_OP_LOOP,   // calls `target` min .. max times, then goes to `next`; the number counts
};

enum {
	YK_LOOP_UNBOUNDED = UINT32_MAX,
	YK_PROGRAM_OPS = 1 << 18,
	YK_PROGRAM_TARGETS = 1 << 19,
	YK_STACK_MAX = 1000, // frames; a value nests half as deeply
	YK_NO_VALUE = UINT16_MAX,
	// The number of a thread of RUN is the automaton's state and, above it, that of characters.
	YK_COUNT_SHIFT = 18,
	YK_COUNT_MAX = (1 << (32 - YK_COUNT_SHIFT)) - 1,
};

struct yk_instr {
	enum yk_schema_op op;
	uint32_t next;
	union {
		uint32_t start;
		uint32_t target;
		uint32_t first;
	};
	uint32_t choices;
	uint32_t min, max;
	uint16_t need; // frames that it and what follows in its rule push at least; YK_NO_VALUE: no
		       // value exists
};

struct yk_program {
	struct yk_dfa dfa;
	struct yk_instr *op;
	size_t ops, op_cap;
	uint32_t *target;
	size_t targets, target_cap;
	uint32_t entry;
	uint32_t any_char; // the automaton of one character of a string without a pattern
	uint32_t char_op;  // the RUN of it
};

// The automaton's state of a thread of RUN.
static inline uint32_t yk_run_state(uint32_t number)
{
	return number & (((uint32_t)1 << YK_COUNT_SHIFT) - 1);
}

void yk_program_fini(struct yk_program *);
// Adds an instruction.  ERANGE, not reported: too many; ENOMEM.
int yk_program_add(struct yk_program *, struct yk_instr, uint32_t *to);
// Gives a CHOICE its n targets, once.
int yk_program_choose(struct yk_program *, uint32_t choice, const uint32_t *target, size_t n);
// Computes `need` of all instructions.  ENOMEM.
int yk_program_measure(struct yk_program *);
// Finds a CHOICE that leads to itself without consuming; -1: none.  ENOMEM.
int yk_program_cycle(const struct yk_program *, int64_t *choice);

#endif
