// SPDX-License-Identifier: Apache-2.0
// The interpreter of map programs: one instruction at a time over a strip of elements.
//
// A strip's values live in registers: buffers of at most YK_STRIP elements that stay in
// L1, in the computation dtype (f16 and bf16 as f32, rounded after each instruction; bool
// as a byte).  Operands that lie densely in that dtype are used where they are, results
// are written where they belong. Values that are the same for all elements are computed
// once, as one block that is read repeatedly.
#ifndef YK_KERN_MAP_H
#define YK_KERN_MAP_H

#include "../cpu.h"

enum { YK_STRIP = 1024, YK_BLOCK = 64 };

struct yk_link; // kern_map_chain.h

// An operand of a strip function: YK_BLOCK elements at a time, `step` (YK_BLOCK or 0)
// apart.
struct yk_arg {
	const void *at;
	int64_t step;
};

// to[i] = f(a[i], b[i], c[i]) for n elements; `to` may be one of the operands.
typedef void yk_strip_fn(void *to, const struct yk_arg *a, const struct yk_arg *b,
			 const struct yk_arg *c, int64_t n);

// n elements `stride` apart from or to a register.
typedef void yk_load_fn(void *to, const void *from, int64_t stride, int64_t n);
typedef void yk_store_fn(void *to, const void *from, int64_t stride, int64_t n);

// The function of an opcode, NULL: none.
yk_strip_fn *ISA(yk_strip_f32)(int op);
yk_strip_fn *ISA(yk_strip_f64)(int op);
yk_strip_fn *ISA(yk_strip_i8)(int op);
yk_strip_fn *ISA(yk_strip_u8)(int op);
yk_strip_fn *ISA(yk_strip_i32)(int op);
yk_strip_fn *ISA(yk_strip_i64)(int op);
yk_strip_fn *ISA(yk_strip_bool)(int op); // and, or, xor, not, min, max, comparisons
yk_strip_fn *ISA(yk_strip_cast)(int to, int from);
yk_strip_fn *ISA(yk_strip_select)(int dtype);
yk_strip_fn *ISA(yk_strip_round)(int dtype); // f16, bf16: an f32 register rounded to it
yk_load_fn *ISA(yk_load)(int dtype);
yk_store_fn *ISA(yk_store)(int dtype);

// Computation dtype.
static inline int yk_reg(int dtype)
{
	return dtype == yoke_f16 || dtype == yoke_bf16 ? yoke_f32 : dtype;
}

static inline bool yk_is_half(int dtype)
{
	return dtype == yoke_f16 || dtype == yoke_bf16;
}

static inline bool yk_is_float(int dtype)
{
	return dtype == yoke_f32 || dtype == yoke_f64 || yk_is_half(dtype);
}

// Are the program's types and the op's inputs such that it can be computed?
bool ISA(yk_map_check)(const struct yoke_op *);
// The number of values an instruction uses, and which.
int ISA(yk_map_operands)(const struct yoke_insn *, int used[3]);
// The strip function of an instruction that has operands; NULL: RAND.
yk_strip_fn *ISA(yk_map_strip)(const struct yoke_map *, const struct yoke_insn *);

// ---- a program made ready for its operands ----

// An operand over the collapsed iteration space.
struct yk_operand {
	char *base;    // set by yk_prog_bind, like
	uint64_t bits; // of kind SCALAR
	int64_t strides[YOKE_MAX_RANK];
	int64_t low, high; // the first byte of its elements and the one behind them, from base
	uint8_t dtype, size;
	bool scalar, uniform, linear; // one value for all; row major without gaps
};

enum yk_step_kind { YK_STEP_FN, YK_STEP_INPUT, YK_STEP_INDEX, YK_STEP_RANDOM };

struct yk_step {
	yk_strip_fn *fn, *round;
	yk_load_fn *load;
	uint8_t kind, value, a, b, c, input;
	bool copy;     // an input that must not be used in place
	bool narrow;   // an input of 16 bits that chains alone read, each by itself
	bool local;    // read by its own chain alone: its register is one block
	int8_t out;    // the output it may write to directly, -1: none
	uint8_t chain; // steps from here on that run as a chain, 0: none begins here
	uint16_t form; // its first link
	int32_t place; // of its register in the frame, bytes; -1: none
};

// A link before its operands are known: their values, and for a store the output it may
// write to directly instead of the value's register.
struct yk_form {
	void (*fn)(void);
	void (*narrow)(void); // if the first operand lies there in 16 bits
	int8_t value[3]; // -1: none
	int8_t out;      // -1: the register
	bool store;
};

// Links of one value at most: load, instruction, rounding, two stores; and ends of chains.
enum { YK_FORMS = 6 };

struct yk_prog {
	const struct yoke_map *map;
	int rank;                            // of the collapsed iteration space
	int64_t dims[YOKE_MAX_RANK], n, row; // row: length of the innermost axis
	int nstep, nout;
	struct yk_step *step; // room for all instructions
	struct yk_operand in[YOKE_MAP_MAX_INPUTS], out[YOKE_MAP_MAX_OUTPUTS], index;
	bool uniform[YOKE_MAP_MAX_INSNS];
	uint8_t fold[YOKE_MAP_MAX_INSNS]; // the instruction whose link computes this one too, 0: its own
	uint16_t over[YOKE_MAP_MAX_OUTPUTS]; // bit k: input k has bytes of the output's
	// the value each output is written with when computed, -1: stored at the end
	int64_t direct[YOKE_MAP_MAX_OUTPUTS];
	bool once[YOKE_MAP_MAX_OUTPUTS];   // written by a step and not read from there again
	bool stream[YOKE_MAP_MAX_OUTPUTS]; // past the caches
	struct yk_form *form; // behind the steps
	int nform;
	size_t links; // where the links lie in a frame's memory
	size_t frame; // bytes of a frame's registers and links
	int cost;     // of an element, roughly in additions
};

// Bytes of a program's steps and links.
size_t ISA(yk_prog_bytes)(const struct yoke_map *);
// Prepares op->map over the iteration space op->dims with its axes taken in the order of
// perm[] (NULL: as they are), but for where operands are.  With nout = 0 the values stay in
// registers.  memory: yk_prog_bytes.  prog->over is as it is, all 0 before the first time.
void ISA(yk_prog_init)(struct yk_prog *, void *memory, const struct yoke_op *, const int *perm,
		       int nout);
// Sets where operands are, inputs from `first` on.  False: which inputs lie in outputs is not as it was
// prepared; prog->over is set, for it to be prepared again.
bool ISA(yk_prog_bind)(struct yk_prog *, const struct yoke_map *, const struct yoke_view *out,
		       const struct yoke_view *in, int first);

// Lets large outputs that nothing reads soon be written past the caches.  Whoever ran the
// program on a thread then calls vf_fence there.
void ISA(yk_prog_stream)(struct yk_prog *);

// Finds products that are computed where they are read.  reads: how many instructions and outputs read
// each value, 0: it is not computed.
void ISA(yk_prog_fold)(struct yk_prog *, const uint8_t *reads);

// Finds the values that only their own chain reads.
void ISA(yk_prog_local)(struct yk_prog *);

// Last instruction that reads each value, 0: none; into which chains are made of it.
void ISA(yk_prog_link)(struct yk_prog *, const int *reader);

// What one thread needs to run strips.
struct yk_frame {
	const struct yk_prog *prog;
	char *registers;
	struct yk_link *link;
	struct yk_arg value[YOKE_MAP_MAX_INSNS];
	// Of a value that lies in place in 16 bits: its register, which holds what of the strip
	// fills no block of a chain; else NULL.
	const char *wide[YOKE_MAP_MAX_INSNS];
	// For yk_frame_next: whether strips differ by where their links point alone, and how far
	// apart those of two strips are, behind the links.
	bool shifts;
	struct yk_shift *shift;
};

struct yk_shift {
	char *p[3]; // of the first strip, until the second has run
	int64_t by[3];
};

// Registers from `memory` (prog->frame bytes, aligned to 64); computes the uniform
// values.
void ISA(yk_frame_init)(struct yk_frame *, const struct yk_prog *, void *memory);
// Elements first .. first + n - 1 of the iteration space, n <= YK_STRIP.
void ISA(yk_frame_run)(struct yk_frame *, int64_t first, int64_t n);
// The same for strip number `strip`, from 0, of a sequence of strips of n elements that lie
// equally far apart, either in one row or at the same place of one row after the other: what
// is the same for all of them is found with the first two.
void ISA(yk_frame_next)(struct yk_frame *, int64_t strip, int64_t first, int64_t n);

#endif
