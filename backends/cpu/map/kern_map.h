// SPDX-License-Identifier: Apache-2.0
// Interpreter of map programs: executes one instruction at a time on a strip of elements.
//
// The values of a strip live in registers: buffers of at most YK_STRIP elements that stay in L1, in
// the computation dtype (f16 and bf16 as f32, rounded after each instruction; bool as a byte).
// Operands that are contiguous in that dtype are read in place, and results are written directly to
// the outputs. Values that are the same for all elements are computed once, as one block that is
// read repeatedly.
#ifndef YK_KERN_MAP_H
#define YK_KERN_MAP_H

#include "../cpu.h"

enum { YK_STRIP = 1024, YK_BLOCK = 128, YK_MAX_TILE = 16 }; // elements
_Static_assert(YK_STRIP % YK_BLOCK == 0, "strips are copied in whole blocks");

struct yk_link; // kern_map_chain.h

// An operand of a strip function: blocks of YK_BLOCK elements, `step` apart (YK_BLOCK, or 0 for a
// uniform value).
struct yk_arg {
	const void *at;
	int64_t step;
};

// to[i] = f(a[i], b[i], c[i]) for n elements; `to` may be one of the operands.
typedef void yk_strip_fn(void *to, const struct yk_arg *a, const struct yk_arg *b,
			 const struct yk_arg *c, int64_t n);

// Copies n elements, `stride` apart in memory, to or from a register.
typedef void yk_load_fn(void *to, const void *from, int64_t stride, int64_t n);
typedef void yk_store_fn(void *to, const void *from, int64_t stride, int64_t n);

// The strip function of an opcode; NULL: unsupported.
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

// The computation dtype of a dtype.
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

// True if the program's types and the op's inputs are supported.
bool ISA(yk_map_check)(const struct yoke_op *);
// Returns the number of values that an instruction reads, and which.
int ISA(yk_map_operands)(const struct yoke_insn *, int used[3]);
// The strip function of an instruction with operands; NULL for RAND, which has none.
yk_strip_fn *ISA(yk_map_strip)(const struct yoke_map *, const struct yoke_insn *);

// ---- a program prepared for the layout of its operands ----

// An operand in the collapsed iteration space.
struct yk_operand {
	char *base;    // set by yk_prog_bind, also `bits`
	uint64_t bits; // the value of a SCALAR
	int64_t strides[YOKE_MAX_RANK];
	int64_t low, high; // byte range of its elements relative to base: [low, high)
	uint8_t dtype, size;
	// scalar, uniform: one value for all elements; linear: contiguous and row-major
	bool scalar, uniform, linear;
};

enum yk_step_kind { YK_STEP_FN, YK_STEP_INPUT, YK_STEP_INDEX, YK_STEP_RANDOM };

struct yk_step {
	yk_strip_fn *fn, *round;
	yk_load_fn *load;
	uint8_t kind, value, a, b, c, input;
	bool copy;     // an input that must not be read in place
	bool narrow;   // a 16-bit input that only chains read, each converting it itself
	bool local;    // read only within its own chain, so its register is one block
	int8_t out;    // the output that it may write to directly; -1: none
	uint8_t chain; // number of steps from here that run as a chain; 0: no chain begins here
	uint16_t form; // its first link
	int32_t place; // byte offset of its register in the frame; -1: none
};

// A link's function; its real arguments depend on the size of the block (kern_map_links.h).
typedef void yk_link_fn(void);

enum yk_link_size { YK_LINK_SMALL, YK_LINK_LARGE, YK_LINK_SIZES };

// A link's functions for each size of block. Some builds have no large ones.
struct yk_links {
	yk_link_fn *fn[YK_LINK_SIZES];
};

static inline bool yk_is_link(struct yk_links l)
{
	return l.fn[YK_LINK_SMALL];
}

// A link before its operands' addresses are known. A store may write directly to an output instead
// of to the value's register.
struct yk_form {
	struct yk_links links;
	struct yk_links narrow; // used if the first operand is read in place in 16 bits
	int8_t value[3]; // -1: none
	int8_t out;      // -1: the register
	bool store;
};

// Max links per value: load, instruction, rounding, two stores, end of chain.
enum { YK_FORMS = 6 };

struct yk_prog {
	const struct yoke_map *map;
	int rank;                            // of the collapsed iteration space
	int64_t dims[YOKE_MAX_RANK], n, row; // row: length of the innermost axis
	// a tile: the elements along the axes after tile_axis, if they are few axes of few
	// elements, or 0
	int64_t tile;
	int tile_axis;
	int nstep, nout;
	struct yk_step *step; // memory for all instructions
	struct yk_operand in[YOKE_MAP_MAX_INPUTS], out[YOKE_MAP_MAX_OUTPUTS], index;
	bool uniform[YOKE_MAP_MAX_INSNS];
	// the instruction whose link also computes this one; 0: none
	uint8_t fold[YOKE_MAP_MAX_INSNS];
	uint16_t over[YOKE_MAP_MAX_OUTPUTS]; // bit k: input k overlaps the output
	// the value that writes each output when it is computed; -1: stored at the end
	int64_t direct[YOKE_MAP_MAX_OUTPUTS];
	bool once[YOKE_MAP_MAX_OUTPUTS];   // written by a step and not read back
	bool stream[YOKE_MAP_MAX_OUTPUTS]; // use non-temporal stores
	struct yk_form *form; // stored after the steps
	int nform;
	size_t links; // offset of the links in a frame's memory
	size_t frame; // bytes of a frame's registers and links
	int cost;     // cost per element, roughly in additions
};

// Bytes needed for a program's steps and links.
size_t ISA(yk_prog_bytes)(const struct yoke_map *);
// Prepares op->map over the iteration space op->dims, with axes in the order perm[] (NULL:
// unchanged); operand addresses are set later by yk_prog_bind. With nout = 0 the values stay in
// registers. memory: yk_prog_bytes bytes. Reads prog->over, which must be 0 before the first call.
void ISA(yk_prog_init)(struct yk_prog *, void *memory, const struct yoke_op *, const int *perm,
		       int nout);
// Sets the operands' addresses; inputs start at index `first`. False: inputs overlap outputs
// differently than when the program was prepared; prog->over has been updated, and yk_prog_init
// must be called again.
bool ISA(yk_prog_bind)(struct yk_prog *, const struct yoke_map *, const struct yoke_view *out,
		       const struct yoke_view *in, int first);

// Allows non-temporal stores to large outputs that will not be read soon. A thread that has run the
// program must then call vf_fence.
void ISA(yk_prog_stream)(struct yk_prog *);

// Finds products that can be computed by the instruction that reads them. reads: number of
// instructions and outputs that read each value; 0: not computed.
void ISA(yk_prog_fold)(struct yk_prog *, const uint8_t *reads);

// Finds the values that only their own chain reads.
void ISA(yk_prog_local)(struct yk_prog *);

// Divides the steps into chains. reader: the last instruction that reads each value; 0: none.
void ISA(yk_prog_link)(struct yk_prog *, const int *reader);

// Per-thread state for running strips.
struct yk_frame {
	const struct yk_prog *prog;
	char *registers;
	struct yk_link *link;
	struct yk_arg value[YOKE_MAP_MAX_INSNS];
	// For a value in place in 16 bits: its register, which holds the rest of the strip that
	// does not fill a block of a chain; otherwise NULL.
	const char *wide[YOKE_MAP_MAX_INSNS];
	// For yk_frame_next: shifts is set if strips differ only in the addresses of their links,
	// those of `move`. was: the addresses in the first strip. Both arrays are stored after the
	// links.
	// splat: the inputs whose value for all of a row is in a register.
	bool shifts;
	struct yk_was *was;
	struct yk_move *move;
	int moves;
	const struct yk_step *splat[YOKE_MAP_MAX_INSNS];
	int splats;
};

struct yk_was { // a link's operands in the first strip
	char *p[3];
};

struct yk_move { // an address and its distance between two strips
	char **at;
	int64_t by;
};

// Places the registers in `memory` (prog->frame bytes, aligned to 64) and computes the uniform
// values.
void ISA(yk_frame_init)(struct yk_frame *, const struct yk_prog *, void *memory);
// Runs elements first .. first + n - 1 of the iteration space, n <= YK_STRIP.
void ISA(yk_frame_run)(struct yk_frame *, int64_t first, int64_t n);
// The same for strip number `strip`, from 0, of a sequence of equally spaced strips of n elements:
// in one row, or at the same position in consecutive rows; another n begins a new sequence. What
// all strips share is determined with the first two.
void ISA(yk_frame_next)(struct yk_frame *, int64_t strip, int64_t first, int64_t n);

#endif
