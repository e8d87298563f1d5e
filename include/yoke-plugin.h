// SPDX-License-Identifier: Apache-2.0
// The plugin ABI: what a backend gives the core, and what the core lends a backend.
//
// A backend is a shared object that exports one function, yoke_plugin_init, and answers with a
// table of functions.  It includes this header only and links against nothing of yoke.
// Rules: every struct that crosses the border begins with its size; fields are appended, never
// moved; numbers (ops, map instructions, dtypes, errors) are never reused; a table may be shorter
// than the core's, what is missing counts as "unsupported".  doc/plugins.md walks through an
// example.  Sizes and offsets are bytes, dims and strides are elements.
#ifndef YOKE_PLUGIN_H
#define YOKE_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// MAJOR must be equal on both sides, MINOR only appends.
#define YOKE_ABI_MAJOR 2
#define YOKE_ABI_MINOR 2
#define YOKE_ABI ((uint32_t)YOKE_ABI_MAJOR << 16 | YOKE_ABI_MINOR)

// X(name, number, text): what functions return; 0 is success.
#define YOKE_ERRORS(X) \
	X(EINVAL, -1, "invalid argument") \
	X(ENOMEM, -2, "out of memory") \
	X(EIO, -3, "input or output failed") \
	X(ESHAPE, -4, "shapes do not fit") \
	X(EDTYPE, -5, "dtypes do not fit") \
	X(EUNSUPPORTED, -6, "unsupported") \
	X(ERELEASED, -7, "value is released") \
	X(EFAILED, -8, "value was lost by an earlier failure") \
	X(EBUSY, -9, "in use by another thread") \
	X(EGRAPH, -10, "too many pending operations") \
	X(EDEVICE, -11, "device error") \
	X(ENODEV, -12, "no such device") \
	X(EPLUGIN, -13, "not a usable plugin") \
	X(EABI, -14, "plugin ABI does not match") \
	X(EFORMAT, -15, "malformed file") \
	X(ERANGE, -16, "out of range") \
	X(ENOENT, -17, "not found") \
	X(EPERM, -18, "not permitted") \
	X(EFORK, -19, "not usable in a forked child") \
	X(ECONTEXT, -20, "belongs to another context") \
	X(ERANK, -21, "a rank is lost or late") \
	X(EMISMATCH, -22, "ranks disagree")

enum yoke_error_code {
	YOKE_OK = 0,
#define X(name, number, text) YOKE_##name = number,
	YOKE_ERRORS(X)
#undef X
};

// X(name, number, bytes): element types.  bool is one byte, 0 or 1.
#define YOKE_DTYPES(X) \
	X(f32, 1, 4) X(f64, 2, 8) X(f16, 3, 2) X(bf16, 4, 2) X(i8, 5, 1) \
	X(u8, 6, 1) X(i32, 7, 4) X(i64, 8, 8) X(bool, 9, 1)

enum yoke_dtype {
	YOKE_DTYPE_NONE = 0,
#define X(name, number, bytes) yoke_##name = number,
	YOKE_DTYPES(X)
#undef X
};

#define YOKE_MAX_RANK 8
#define YOKE_MAX_DTYPES 16 // there will be no dtype of that number or above in this MAJOR

// ---- operands ----

enum yoke_view_kind {
	YOKE_VIEW_NONE = 0, // an optional operand that is absent
	YOKE_VIEW_BUFFER,   // elements in a segment
	YOKE_VIEW_SCALAR    // one value passed by itself: .bits, in .dtype; it broadcasts to any shape
};

// One tensor operand.  Its element i0,i1,.. lies at offset + sum(ik * strides[k]) * size of dtype.
// Broadcast axes have stride 0.  In can() and prepare() segment and offset mean nothing.
// The struct is part of MAJOR: it is used in arrays and does not grow.
struct yoke_view {
	void *segment;   // as segment_new gave it
	uint64_t offset; // bytes from its start; kind SCALAR: the value's bits, low bytes first
	int64_t dims[YOKE_MAX_RANK];
	int64_t strides[YOKE_MAX_RANK]; // elements; outputs never overlap themselves
	uint32_t align;                 // guaranteed alignment of the first element in bytes
	uint8_t dtype, rank, kind, reserved;
};

// ---- map programs ----

// Instructions of a map program, one value each.  a, b, c are indices of earlier instructions
// unless said otherwise.  Arithmetic is done in the instruction's dtype and rounded to it (f16 and
// bf16: computed in f32, then rounded); a*b+c is never contracted.
// Integers wrap; their quotient truncates, by 0 it is 0, the least by -1 the least.  MOD is what that
// quotient leaves, with the sign of a: by 0 it is 0; of floating point it is C's fmod.  AND, OR, XOR and
// NOT work on the bits of integers, and are logical in bool.  SHL and SHR move a by b bits, SHR copies
// the sign; by a b outside 0 .. bits - 1 all bits leave: SHL gives 0, SHR 0 or, of a negative a, -1.
//
// Casts: from floating point to integers they truncate, saturate, and send NaN to 0; to f16 and bf16 they round
// to nearest even, overflow to infinity and keep NaN; to bool: is it other than 0?  MIN and MAX give
// NaN where an operand is NaN, ROUND rounds half to even, SIGN of NaN is NaN, a comparison with NaN
// is false, NE true.  Other than that IEEE 754, subnormals included unless YOKE_DEVICE_FLUSHES.
//
// Codes 16 to 31 have two operands and 32 to 63 one, of the instruction's dtype; the result of 64 to 79
// is bool.  Programs have UNIFORM, NORMAL, EXP to RECIP and SIN to ERF in floating types alone, SHL and
// SHR in integers alone, AND, OR, XOR and NOT in integers and bool, and of the rest of 16 to 63 in bool
// only MIN and MAX.
#define YOKE_MAP_CODES(X) \
	X(INPUT, 1)    /* element of input a */ \
	X(CONST, 2)    /* constant a: konst[a], bits in the instruction's dtype */ \
	X(INDEX, 3)    /* i64: row-major index of the element in the iteration space */ \
	X(RAND, 4)     /* i32: Philox 4x32-10 (Salmon et al. 2011): of the block with counter */ \
		       /* (index / 4, step) and key b, each two words, the low one first, word */ \
		       /* index % 4; a index, b key, c step, all i64 */ \
	X(UNIFORM, 5)  /* a bits (i32): (a >> 8, unsigned) * 2^-24 */ \
	X(NORMAL, 6)   /* a, b uniforms: sqrt(-2 log(1 - a)) * cos(2 pi b) */ \
	X(ADD, 16) X(SUB, 17) X(MUL, 18) X(DIV, 19) X(POW, 20) X(MIN, 21) X(MAX, 22) \
	X(MOD, 23) X(AND, 24) X(OR, 25) X(XOR, 26) X(SHL, 27) X(SHR, 28) \
	X(NEG, 32) X(ABS, 33) X(SIGN, 34) X(FLOOR, 35) X(ROUND, 36) X(CEIL, 37) \
	X(EXP, 38) X(LOG, 39) X(LOG1P, 40) X(EXPM1, 41) X(SQRT, 42) X(RSQRT, 43) \
	X(RECIP, 44) X(SQUARE, 45) X(SIN, 46) X(COS, 47) X(TANH, 48) X(SIGMOID, 49) \
	X(ERF, 50) X(NOT, 51) \
	X(EQ, 64) X(NE, 65) X(LT, 66) X(LE, 67) X(GT, 68) X(GE, 69) X(ISFINITE, 73) \
	X(SELECT, 80)  /* a (bool) ? b : c */ \
	X(CAST, 81)    /* a converted to the instruction's dtype */

enum yoke_map_code {
#define X(name, number) YOKE_MAP_##name = number,
	YOKE_MAP_CODES(X)
#undef X
};

// What an optimizer step asks for: at most 8 lists (parameters, gradients and their state, as averaged
// gradients and squares, their maximum, momentum) that are read and 8 that are written, and 8 numbers
// beside them (learning rate, corrections, scales).  That, 10 constants and their arithmetic, with casts
// of half precision, is less than 64 instructions.
#define YOKE_MAP_MAX_INSNS 64
#define YOKE_MAP_MAX_CONSTS 16
#define YOKE_MAP_MAX_INPUTS 16
#define YOKE_MAP_MAX_OUTPUTS 8

struct yoke_insn {
	uint16_t op;    // enum yoke_map_code; an unknown one means "unsupported"
	uint8_t dtype;  // of the result
	uint8_t flags;  // 0
	uint16_t a, b, c;
};

// An elementwise program in single-assignment form.
struct yoke_map {
	uint32_t size;
	uint16_t ninsn, nconst, nin, nout;
	uint16_t out[YOKE_MAP_MAX_OUTPUTS]; // output k is the value of instruction out[k]
	struct yoke_insn insn[YOKE_MAP_MAX_INSNS];
	uint64_t konst[YOKE_MAP_MAX_CONSTS];
};

// ---- ops ----

// Ops a backend may take.  Shapes in brackets; trailing names are attr[]: i integer, f double.
// Views come with their axes merged.  Where it is open how many axes there are (all of MAP, MOVE and CHECK;
// of REDUCE, kept and reduced ones apart, but for the axis of a place; the leading axes of CONTRACT, SORT,
// SOFTMAX and the norms; those before and behind the axis of SCAN, the ALONG ops and GATHER; indices and rows
// of GATHER and SCATTER_ADD), axes of one element are left out and neighbours that all operands run through as
// one are one axis: a backend has nothing to gain from merging them again.
// "acc" is f64 for f64, i64 for integers, f32 otherwise.  Reductions have a fixed order.
// idx and ids are i32 or i64, counted from 0; one outside of its range makes ERANGE, at run or, where
// only the device can see it, at the next event that stands for the op, and nothing is read or
// written outside.
#define YOKE_OP_CODES(X) \
	/* out k = program; every input and output has the shape op->dims (stride 0: broadcast) */ \
	X(MAP, 1) \
	/* in as MAP over op->dims; out has dim 1 where axis k is reduced; the map (always there, */ \
	/* one output) is applied first; attr: i kind, i mask of reduced axes */ \
	X(REDUCE, 2) \
	/* a [..,M,K] b [..,K,N] -> [..,M,N]; accumulates in acc; the same leading dims on all */ \
	/* (stride 0: broadcast); attr: i dtype of the product, that of a and b, or f32 where they */ \
	/* are f16 or bf16, i 1: a row of the product has the same bits, however many rows and */ \
	/* matrices there are, wherever it stands, and however they lie; implementations that cannot */ \
	/* keep that, or differ from each other, do not take it.  With a map: input 0 is the product, */ \
	/* rounded to its dtype; in[2..] are inputs 1.. of shape [..,M,N]; outputs are the map's, */ \
	/* INDEX counts in [..,M,N] */ \
	X(CONTRACT, 3) \
	/* x -> y: a strided copy, same dims, same dtype */ \
	X(MOVE, 4) \
	/* x [..,N,..], idx [I..] -> [..,I..,..] rows of axis attr[0].i */ \
	X(GATHER, 5) \
	/* x [N,R..] or none (zeros), idx [I..], v [I..,R..] -> y = x with v's rows added at idx */ \
	X(SCATTER_ADD, 6) \
	/* x -> y, running totals along an axis; attr: i axis, i kind (YOKE_REDUCE_SUM or PROD), */ \
	/* i 1 from the end; accumulates in acc */ \
	X(SCAN, 7) \
	/* x [..,N] -> values [..,k], positions [..,k] i64 (outputs may be none): the first k in */ \
	/* order, stable, -0 equals 0, NaN last; attr: i k, i 1 descending */ \
	X(SORT, 8) \
	/* x -> y = x; ERANGE when an element is not finite; attr: none, or i 1: elements are rows of RESOLVENT's */ \
	X(CHECK, 9) \
	/* x, for each axis a start (i64 value, none: 0) -> y: the part of x that begins there; */ \
	/* starts that leave x: ERANGE, nothing read or written outside */ \
	X(SLICE_AT, 10) \
	/* x, starts as SLICE_AT, v -> y = x with v in place of that part; y may be x */ \
	X(SLICE_UPDATE_AT, 11) \
	/* x [..,N,..], idx [..,I,..], equal along other axes -> y like idx: */ \
	/* y[..,i,..] = x[..,idx[..,i,..],..]; attr: i axis */ \
	X(GATHER_ALONG, 12) \
	/* x [..,N,..] or none (zeros), idx and v [..,I,..] -> y = x with v added at idx along */ \
	/* the axis; attr: i axis, i N */ \
	X(SCATTER_ADD_ALONG, 13) \
	/* a recurrence: the program runs step by step along an axis of op->dims, for each position of */ \
	/* the other axes by itself.  Its last inputs are carried: at each step they have the values that */ \
	/* as many last outputs had at the step before, at the first step those of in k, of dim 1 along */ \
	/* the axis.  The out k of such an output, of dim 1 too, gets the values of the last step.  All */ \
	/* other inputs and outputs have the shape op->dims.  Outputs may be none; the program has */ \
	/* neither INDEX nor RAND; attr: i axis, i 1 from the end, i how many are carried */ \
	X(SCAN_MAP, 14) \
	/* The next three are of f32 or f64 and computed in f64. */ \
	/* a [..,n,n], symmetric, of which the lower half is read -> values [..,n], ascending, vectors */ \
	/* [..,n,n], one a column, of each the element of largest modulus positive (outputs may be */ \
	/* none); all NaN for a matrix that is not finite */ \
	X(EIGH, 20) \
	/* a [..,n,n], of which the lower half is read -> L [..,n,n], 0 above the diagonal, L L' = a; */ \
	/* run fails with ERANGE when a pivot is not positive */ \
	X(CHOLESKY, 21) \
	/* t [..,n,n], b [..,n,k] -> x with t x = b, of t the lower half; attr: i 1: t' x = b, */ \
	/* i 1: of t the upper half, i 1: t has 1 on its diagonal, which is not read */ \
	X(SOLVE_TRIANGULAR, 22) \
	/* x [M,C], weights w [M] or none -> n [], the sum of weights, mean [C], m2 [C,C], the sum of */ \
	/* w (x - mean)(x - mean)', all f64, least [C], greatest [C], of x's dtype; rows of weight 0 are */ \
	/* not read; of none mean and m2 are 0, the extremes infinite; m2 within 1e-6 sqrt(m2_ii m2_jj); */ \
	/* outputs may be none; attr: i 1: of m2 the diagonal [C] alone */ \
	X(MOMENTS, 23) \
	/* From here on lse, loss, mean and rstd are of acc; w, b, dw, db, cos, sin and mask are of */ \
	/* the dtype of x or q, or f32 where that is f16 or bf16. */ \
	/* over the last axis; attr: i 1 for the logarithm */ \
	X(SOFTMAX, 32) \
	/* y, g -> dx; attr as SOFTMAX */ \
	X(SOFTMAX_BACK, 33) \
	/* x [..,C], w [C] or none, b [C] or none -> y, mean [..], rstd [..]; attr: f eps */ \
	X(LAYER_NORM, 34) \
	/* x, w or none, mean, rstd, g -> dx, dw [C], db [C] (outputs may be none); attr: i dtype of */ \
	/* dw and db */ \
	X(LAYER_NORM_BACK, 35) \
	/* x [..,C], w [C] or none -> y, rstd [..]; attr: f eps */ \
	X(RMS_NORM, 36) \
	/* x, w or none, rstd, g -> dx, dw; attr: i dtype of dw */ \
	X(RMS_NORM_BACK, 37) \
	/* logits [N,V], ids [N] -> loss [], lse [N]: mean over ids that are not ignored; */ \
	/* attr: i ignored id, f label smoothing */ \
	X(CROSS_ENTROPY, 38) \
	/* logits, ids, lse, g [] -> dlogits; attr as CROSS_ENTROPY; dlogits may be logits */ \
	X(CROSS_ENTROPY_BACK, 39) \
	/* q [B,T,H,D], k v [B,S,G,D], G divides H, mask [B|1,H|1,T,S] added or none, key and */ \
	/* step (i64) or none, n (i64, [] or [B]) or none -> o [B,T,H,D], lse [B,H,T]; only the first */ \
	/* n keys, or n[b] of row b, are seen (none: n is S; not in 0..S: ERANGE), the others not even */ \
	/* read; attr: i causal (query t sees keys up to t + n - T), f scale, f dropout; dropout keeps */ \
	/* index ((b*H+h)*T+t)*S+s where UNIFORM(RAND(index, key, step)) >= dropout, and divides by */ \
	/* 1 - dropout.  A mask of -inf hides a key too.  Keys of weight 0 add nothing, though k or v be NaN */ \
	X(ATTENTION, 40) \
	/* q k v mask key step o lse g n -> dq dk dv; 0 for keys that are not seen */ \
	X(ATTENTION_BACK, 41) \
	/* program over lists: its first lists_in inputs are elements of lists, the others numbers, the */ \
	/* same for all elements: a SCALAR, or a BUFFER of one element or, with dims [list], of one a */ \
	/* tensor; outputs are lists.  The i-th tensors of all lists have one shape, which may differ */ \
	/* from the next ones'; the program has neither INDEX nor RAND */ \
	X(LIST_MAP, 42) \
	/* in as LIST_MAP, the program with one output, of a floating-point dtype -> that, reduced over */ \
	/* all elements, [], or of each tensor, [list], or both, [list + 1], that over all elements last; */ \
	/* attr: i kind (SUM, MAX or MIN), i 0, 1 or 2 for these.  Of f32 it may be f64: sums are not rounded then */ \
	X(LIST_REDUCE, 43) \
	/* x [B,T,H,D], cos and sin [T,D/2] -> y: (x0 cos - x1 sin, x1 cos + x0 sin), x0 and x1 */ \
	/* the halves of the last axis; y may be x */ \
	X(ROPE, 45) \
	/* The diagonal of (H - z)^-1, H tridiagonal and real: a [..,N] H_ii, b and c [..,N-1] or none (ones) */ \
	/* H_i,i+1 and H_i+1,i, z [..,2] (re, im), all of one dtype and the same leading dims (stride 0: */ \
	/* broadcast) -> G [..,N,2], bound [..] in acc, may be none.  With alpha = a - z, k_i = b_i c_i: L_0 = */ \
	/* alpha_0, L_i = alpha_i - k_(i-1)/L_(i-1), R alike from the end; G_i = 1/(L_i + R_i - alpha_i), or */ \
	/* 1/L_i for side 1, left.  An operand not finite, z an eigenvalue: ERANGE.  attr: i side, i tier: 1 f64, 2 f32, */ \
	/* 3 mixed (L and R in f32, the division in f64), 4 and 5 half: L and R rounded to f16 or bf16 at each */ \
	/* operation, scaled by powers of two, then i `sweeps` times, of all i at once, L_i <- alpha_i - */ \
	/* k_(i-1)/L_(i-1), R alike, in f32; bound is then D max|Im G|/|Im z|, D the largest |change| of L and */ \
	/* of R in the last sweep; infinite where a k < 0 or sweeps are 0.  Rows whose bound is above f */ \
	/* tolerance are computed in f32, bit for bit.  Otherwise bound is 0.  Then what RESOLVENT_BACK has */ \
	X(RESOLVENT, 60) \
	/* a, b, c, z, g [..,N,2] (derivatives by re and im) -> da [..,N], db, dc [..,N-1], dz [..,2] (may be */ \
	/* none), in f64 for tier 1, for 3 to 5 where max|g| of a row < adaptive, else f32; attr: i side, i tier, */ \
	/* i sweeps, f tolerance, i gradient: 0 exact; else of a alone, the others 0, with F = G^2, g~ the */ \
	/* conjugate: 1 -Re(g~ F); 2 -Re(g/(F + 1e-6)), F of modulus below 1e-3 times 1e-3/(|F| + 1e-9); 3 */ \
	/* (1 - blend) times 1 + blend times 2; 4 as 3 with g for g~ in 1; clamped to +-1000, 0 if not finite; */ \
	/* f blend, f adaptive */ \
	X(RESOLVENT_BACK, 61) \
	/* x [T,K], w [E,K,N] (attr 1: [E,N,K]), first [E+1] -> y [T,N]: rows first[e] <= t < first[e+1] times w[e], */ \
	/* other rows 0; first is i64 and does not fall, from 0 or above to T at most, else ERANGE; accumulates in */ \
	/* acc; attr: i 1 for the transposed w */ \
	X(GROUPED, 62) \
	/* x [T,K], g [T,N], first as above -> dw [E,K,N]: of each e, x[first[e]..first[e+1]-1]' g[the same] */ \
	X(GROUPED_BACK, 63) \
	/* g [..,Q,..,size], windows of an axis of n elements in the place of Q -> y [..,n,..]: y = sum of */ \
	/* g[..,q,..,k] over q and k with q stride + k dilation there, k rising, in acc; attr: i axis, i size, */ \
	/* i stride, i dilation, i n */ \
	X(WINDOW_ADD, 64) \
	/* x [B,C,S..], w [O,C/groups,K..], 1 or 2 axes behind -> y [B,O,Q..] = sum of w[o,c,k] x[b,c',s], c' the */ \
	/* c-th channel of o's group, s = q stride + k dilation - lo, x is 0 outside; sums in acc.  attr: i */ \
	/* groups, for each axis i stride | dilation << 16 | lo << 32 | hi << 48, of hi Q follows */ \
	X(CONV, 65) \
	/* g [B,O,Q..], w -> [B,C,S..]: CONV's derivative by x; attr: CONV's, then i S of each axis */ \
	X(CONV_X, 66) \
	/* x, g -> [O,C/groups,K..]: CONV's derivative by w; attr: CONV's, then i K of each axis */ \
	X(CONV_W, 67) \
	/* x [n] f32, e [n] or none -> v [k], places i32 [k], ascending, rest [n]: of a = x + e the k elements of */ \
	/* largest modulus, of equal ones the first, NaN above all; rest: a with 0 there; it may be x or e.  Outputs */ \
	/* may be none; n < 2^31; attr: i k */ \
	X(LARGEST, 70) \
	/* x [B,C,S..], 1 or 2 axes behind -> y [B,C,Q..]: the largest of K.. elements of x, those outside of S -inf, */ \
	/* NaN where one is; attr: i K of each axis, then for each as CONV */ \
	X(POOL_MAX, 71) \
	/* x, g [B,C,Q..] -> [B,C,S..]: POOL_MAX's derivative: the largest share g equally, beside NaN it is lost, sums */ \
	/* in acc; attr: POOL_MAX's */ \
	X(POOL_MAX_BACK, 72) \
	/* the kernel op->source, whose text is the application's: any outputs, inputs and attributes; */ \
	/* BUFFER views without gaps (row major), inputs may be none */ \
	X(SOURCE, 50)

enum yoke_op_code {
#define X(name, number) YOKE_OP_##name = number,
	YOKE_OP_CODES(X)
#undef X
	YOKE_OP_LIMIT = 256
};

enum yoke_reduce_kind {
	YOKE_REDUCE_SUM = 1, YOKE_REDUCE_MAX, YOKE_REDUCE_MIN, YOKE_REDUCE_PROD,
	YOKE_REDUCE_ARGMAX, YOKE_REDUCE_ARGMIN // the last two: out i64, one reduced axis, first of equals
};

#define YOKE_MAX_ATTRS 16

union yoke_attr {
	int64_t i;
	double f;
};

// Languages of kernel texts: OpenCL C 1.2; CUDA C++, which HIP takes too.  HOST: no text but a function.
enum yoke_dialect { YOKE_DIALECT_HOST = 0, YOKE_DIALECT_OPENCL = 1, YOKE_DIALECT_CUDA = 2 };

struct yoke_op;

// A kernel that an application brings.  Its parameters are, for each output and then each input, the
// segment (a pointer to global memory; an absent input: NULL) and the byte offset of the operand's first
// element (ulong), then each attribute (8 bytes: long or double).  A backend takes texts of its dialect; of the
// dialect HOST where segments have addresses in the host.
struct yoke_source {
	uint32_t size, dialect;
	const char *text, *entry; // nothing is put in front of the text, which may include as in kernel_source
	uint64_t hash;            // of dialect, text and entry: equal ones have equal hashes
	uint64_t global[3];       // work items, at least 1 along each axis, multiples of local
	uint64_t local[3];        // of a group; all 0: as the backend likes
	// HOST: called for piece 0 .. pieces - 1, on any thread, several at a time; data: the address of the first element
	// of each output, then of each input (absent: NULL).  0, or an error.
	int (*host)(const void *arg, const struct yoke_op *, void *const *data, int64_t piece, int64_t pieces);
	const void *arg;
	int64_t pieces;
	uint32_t strided, reserved; // strided: inputs may have any strides
};

// One op, valid during the call.  Operand views come flat: an ordinary op has nout views in out
// and nin in in.  A list op (list > 0): its first lists_out outputs and lists_in inputs are lists
// of `list` tensors; list k's tensor i is view k*list + i, and the other operands follow.
struct yoke_op {
	uint32_t size;
	uint16_t code;
	uint8_t nattr, rank;       // rank: of dims
	uint32_t nout, nin;        // views in out and in, lists counted in full
	uint32_t list;             // tensors in each list, 0: no list op
	uint8_t lists_out, lists_in;
	uint16_t reserved;
	int64_t dims[YOKE_MAX_RANK]; // iteration space of MAP, REDUCE and SCAN_MAP
	const struct yoke_view *out, *in;
	union yoke_attr attr[YOKE_MAX_ATTRS];
	const struct yoke_map *map; // MAP, REDUCE, SCAN_MAP, LIST_MAP, LIST_REDUCE, CONTRACT with an
				    // epilogue; else NULL
	uint64_t alias_mask;        // in run: bit k: input operand k (a list is one) is written over by an
	                            // output of the same shape, dtype and strides: element by element
	struct yoke_view workspace; // in run: as many bytes as prepare() asked for, aligned as
	                            // info.align; kind NONE: nothing
	uint64_t id;                // the plan's step, for messages and profiles
	const struct yoke_source *source; // SOURCE; else NULL
};

// ---- devices ----

enum yoke_device_kind {
	YOKE_DEVICE_OTHER = 0, YOKE_DEVICE_GPU, YOKE_DEVICE_IGPU, YOKE_DEVICE_CPU, YOKE_DEVICE_ACCELERATOR
};

enum yoke_device_flag {
	YOKE_DEVICE_F64 = 1, YOKE_DEVICE_F16 = 2, // arithmetic in that dtype
	YOKE_DEVICE_UNIFIED = 4,                  // shares the host's memory
	YOKE_DEVICE_FLUSHES = 8,                  // flushes subnormals of f32 to zero
	YOKE_DEVICE_TF32 = 16                     // rounds factors of f32 to 10 bits of mantissa, as a setting of it wants
};

struct yoke_device_info {
	uint32_t size;
	uint32_t kind, flags, units; // units: compute units or threads
	uint64_t memory;             // bytes in all
	uint64_t max_segment;        // largest single allocation, bytes
	uint32_t align;              // of segments and of blocks in them, bytes, a power of two
	uint32_t max_args;           // bytes of kernel arguments, 0: no limit
	char name[128], vendor[64], driver[128];
	// What a device is known by, whichever backend or driver offers it; "" where that is not known.
	// No two devices of one driver have the same.
	char uuid[40]; // "6f0a4e1c-0000-4000-8000-00000000beef"
	char pci[24];  // domain, bus, device and function, "0000:01:00.0"
	// What stands between the backend and the vendor's driver, "Portable Computing
	// Language"; "": nothing does.  quirks.conf goes by it.
	char platform[64];
	uint64_t memory_free; // bytes of memory that nobody uses at the moment of the call, 0: not known
	uint32_t products;    // bit d, d f16, bf16, i8 or u8: CONTRACT multiplies factors of that dtype by instructions
			      // for it; those of other halves are converted to f32 first
	// multiple[d]: of what m, n and k (as CONTRACT has them) should be multiples for products of factors of
	// dtype d, because kernels are slower otherwise; 0 or 1: any will do.  Not simply the sizes of tiles: kernels
	// that fill up their own tiles at the edges lose nothing that padding would gain.  Up to 4096.
	// The core pads the factors of big products with zeros then.
	uint16_t multiple[YOKE_MAX_DTYPES][3];
	// What the hardware is, where the backend knows; 0 and "" where not.
	uint32_t warp;        // work items that run in step
	uint32_t memory_bits; // width of the memory's bus
	uint64_t local_bytes; // of memory that a group shares
	uint64_t cache_bytes; // of the last cache before memory
	uint64_t clock_hz, memory_clock_hz; // the highest ones
	char generation[32];  // as the vendor calls its instructions: "sm_90", "gfx90a"
	char matrix[64];      // what matrix units multiply: "f16 bf16 tf32 f64 i8 fp8"
};

enum yoke_segment_kind { YOKE_SEGMENT_DEVICE = 0, YOKE_SEGMENT_HOST = 1 }; // HOST: pinned staging
enum yoke_queue_kind { YOKE_QUEUE_COMPUTE = 0, YOKE_QUEUE_UP = 1, YOKE_QUEUE_DOWN = 2 };

// ---- what the core lends ----

enum yoke_log_level { YOKE_LOG_ERROR = 0, YOKE_LOG_WARN, YOKE_LOG_INFO, YOKE_LOG_DEBUG };

// A setting "opencl.platform" is YOKE_OPENCL_PLATFORM in the environment.
struct yoke_setting {
	uint32_t size;
	const char *name, *type, *def, *help; // type: "bool", "int", "int 0..9", "bytes", "string"
};

#define YOKE_MAP_MAX_ARGS 128
#define YOKE_MAP_KEY_BYTES 768
#define YOKE_MAP_INDICES 4

enum yoke_map_arg_kind {
	YOKE_MAP_ARG_WORD = 0, // the word, 8 bytes by value
	YOKE_MAP_ARG_SEGMENT,  // the start of an operand's segment
	YOKE_MAP_ARG_OFFSET    // its view's offset, by value: of a SCALAR its bits
};

// One argument of a generated kernel.
struct yoke_map_arg {
	uint32_t kind;
	uint32_t operand; // output k, or the op's input k - nout
	uint64_t word;
};

// How what kernel_source writes for an op is told apart and called.  The axes of the iteration
// space (of a CONTRACT: of its result) are merged where all operands allow it, and elements are
// found by
//   MAP       (r, j): j along the last merged axis, r row major along those before it
//   CONTRACT  (r, j): the same, but j is along the last axis of the result, r along all others
//   REDUCE    (r, c, q, j): r and c as r and j, but of the kept axes; q and j of the reduced ones
//   SCAN_MAP  (r, c, q, j): r and c of all axes but the one it runs along, which is j's; q is 0
//   LIST_MAP, LIST_REDUCE  the elements of a tensor, of all the same text; arguments are LIST_PARAMS
struct yoke_map_call {
	uint32_t size;
	uint32_t dtypes;     // bit d: dtype d occurs; a device without f64 refuses 1 << yoke_f64
	uint64_t count[YOKE_MAP_INDICES]; // how far each index goes, in the order above; MAP and
			     // CONTRACT: 0 for both where there is nothing to do
	uint32_t key_bytes;  // equal keys: equal texts.  Holds op, instructions, dtypes, rank and
	uint32_t narg;       // which strides are 0 or 1, but neither dims, offsets nor constants
	uint8_t key[YOKE_MAP_KEY_BYTES];
	struct yoke_map_arg arg[YOKE_MAP_MAX_ARGS]; // narg of them, in order, 8 bytes each
};

struct yoke_host {
	uint32_t size, abi;
	// One line for the log, without a newline.
	void (*log)(int level, const char *topic, const char *text);
	// The detail behind an error a function is about to return; copied.
	void (*error)(int code, const char *text);
	// Declares a setting (static storage) and returns its value as text, valid for good.
	const char *(*setting)(const struct yoke_setting *);
	// A program to compile: the map program of the op as functions, or nothing where op is NULL, and
	// `text` behind them.  A line #include "NAME", whatever stands around it, is that file of cl/
	// ("contract_op.cl"), each once, where it is named first; "prologue.h" is the dialect's, which they
	// include.  The files are those of the core that runs and change with it: modules that are built
	// with it use them, others bring their own.  The functions:
	//   MAP       FN void map_at(ulong r, ulong j MAP_PARAMS): element (r, j) of every output
	//   CONTRACT  FN void map_store(TYPE product, ulong r, ulong j MAP_PARAMS): the same;
	//             product, rounded to its dtype, stands for input 0
	//   REDUCE    FN MAP_TYPE map_load(ulong r, ulong c, ulong q, ulong j MAP_PARAMS): the value
	//             to reduce; FN ulong map_place(ulong r, ulong c MAP_PARAMS): where the
	//             result is, in elements from the first one of operand 0 (s0 + at0)
	//   SCAN_MAP  FN void map_scan(ulong r, ulong c, ulong steps, ulong back MAP_PARAMS): the
	//             whole recurrence there, from the end if back is not 0
	//   LIST_MAP, LIST_REDUCE  map_at and map_load as above, of element j of a tensor; r, c, q are 0
	// MAP_PARAMS are the parameters that such a kernel takes at its end, with a comma in front,
	// MAP_ARGS passes them on; map_call lists the arguments, each 8 bytes.  They are: for each
	// output and each BUFFER input the segment, GLOBAL uchar *s0, and ulong at0, bytes; the bits
	// of each SCALAR input, then of each constant; counts and strides.  Of lists they stand for what
	// LIST_TENSOR(i), tensor i among all, declares in a kernel that takes LIST_PARAMS, the numbers',
	// in their place: of list k, of LISTS, results first, it finds the tensor's segment, GLOBAL uchar *,
	// and offset, ulong, by LIST_SEGMENT(k) and LIST_OFFSET(k) of the backend.  f16 and bf16 values are
	// floats.  In the manner of snprintf: at most cap bytes with the closing NUL, returns the
	// length without it, or a negative error (EUNSUPPORTED: an unknown instruction, one that is
	// not defined for its dtype, more arguments than YOKE_MAP_MAX_ARGS; and, which is said by
	// then, a file that is not there, or that includes itself).
	// The functions depend on the key of map_call only.  Compile without contraction of a*b+c.
	int64_t (*kernel_source)(int dialect, const struct yoke_op *, const char *text, char *to, size_t cap);
	// The cache of compiled kernels.  get copies at most cap bytes, returns the length or a
	// negative error; put replaces.  Both may always fail.
	int64_t (*cache_get)(const void *key, size_t key_bytes, void *to, size_t cap);
	int (*cache_put)(const void *key, size_t key_bytes, const void *data, size_t bytes);
	// Fills a call, whose size the caller has set; errors as kernel_source.  It follows from the op
	// as prepare sees it.
	int (*map_call)(const struct yoke_op *, struct yoke_map_call *call);
	// Adds to the counts that reports show: programs compiled from their text, programs
	// that cache_get had compiled.
	void (*programs)(uint32_t compiled, uint32_t found);
	// Adds to the count of rows that RESOLVENT computed again, since half precision did not suffice.
	void (*promoted)(uint64_t rows);
};

// ---- what a backend gives ----

// Functions return 0 or a negative YOKE_E*, and say more by host->error.  They may be called from
// several threads at once, for one device too; a queue, with what is enqueued and marked in it, is
// used by one thread at a time.  In a forked child the core does not call them.
// A function that is absent, NULL or beyond the table's size, counts as one that answers EUNSUPPORTED
// (can: 0; prepare: a NULL handle and no bytes; queue_flush: 0).  Needed in fact: probe, device_info,
// segments, queues, put, get, event_mark, event_done, event_wait, event_free.  Without copy,
// copy_between, fill, event_after or event_elapsed the host does it, or waits, or knows no times.
// What the core makes of errors: ENOMEM of segment_new or run, it makes room and tries once more;
// EUNSUPPORTED of prepare, it takes another implementation or device; any other, of an event as
// well, fails the values that the op would have written and what uses them; EDEVICE, the device is
// lost besides, and training goes on elsewhere if it may.
struct yoke_backend {
	uint32_t size, abi;
	const char *name;    // "opencl": lower case, no spaces
	const char *version; // free text
	// Finds devices, once; 0 devices is no error, and what host->error was told then is the reason.
	int (*probe)(uint32_t *ndevices);
	// Fills at most info->size bytes.
	int (*device_info)(uint32_t device, struct yoke_device_info *info);
	int (*segment_new)(uint32_t device, int kind, uint64_t bytes, void **segment); // bytes > 0
	void (*segment_free)(uint32_t device, void *segment);
	// Address of the segment's first byte in the host, or NULL if it has none.
	void *(*segment_host)(void *segment);
	int (*queue_new)(uint32_t device, int kind, void **queue);
	void (*queue_free)(void *queue);
	int (*queue_flush)(void *queue); // starts what is enqueued
	// Enqueue; host memory stays valid and unchanged until an event marked behind is done; bytes > 0.
	int (*put)(void *queue, void *segment, uint64_t offset, const void *from, uint64_t bytes);
	int (*get)(void *queue, void *segment, uint64_t offset, void *to, uint64_t bytes);
	int (*copy)(void *queue, void *to, uint64_t to_offset, void *from, uint64_t from_offset,
		    uint64_t bytes);
	// pattern_bytes: 1, 2, 4 or 8; offset and bytes are multiples of it.
	int (*fill)(void *queue, void *segment, uint64_t offset, uint64_t bytes, const void *pattern,
		    uint32_t pattern_bytes);
	// An event stands for all that is enqueued before it; NULL stands for one that is done already.
	int (*event_mark)(void *queue, void **event);
	// The queue goes on only behind the event, of any device of this backend.  EUNSUPPORTED: the host
	// waits for it.
	int (*event_after)(void *queue, void *event);
	int (*event_done)(void *event);               // 1 done, 0 not yet, negative: what it stands for failed
	int (*event_wait)(void *event);
	int (*event_elapsed)(void *from, void *to, uint64_t *nanoseconds); // of the same device, both done
	void (*event_free)(void *event);
	// Bit i: implementation i can run this op, best first; 0: none.  What it accepts, run takes.
	uint64_t (*can)(uint32_t device, const struct yoke_op *);
	// Called for each step of a plan before anything of it is launched: the place to build kernels
	// and to derive what run needs of the op, for as many runs as there will be.  Those see the same
	// op, but for what only a launch knows: segments and offsets of BUFFER views, bits of SCALAR ones
	// (the kinds stay), alias_mask, the same in all of them, and workspace; op, views and map lie
	// elsewhere then.  plan: one number for all steps of a plan, never given twice in a process; 0:
	// the op is of no plan.  *handle is NULL before, and may stay so; *workspace, in bytes, is 0
	// before.  EUNSUPPORTED: it does not build after all; the next implementation, or another device,
	// runs ops of this form from now on.
	int (*prepare)(uint32_t device, const struct yoke_op *, uint32_t impl, uint64_t plan, void **handle,
		       uint64_t *workspace);
	// With what prepare gave; one at a time for a handle, on queues of its device.  ENOMEM: nothing
	// that writes over an operand was enqueued.  The core makes room and tries once more.
	int (*run)(void *queue, void *handle, const struct yoke_op *);
	// Frees a handle, none of whose runs is under way any more.
	void (*release)(void *handle);
	// Static, of a-z, 0-9, _ and -; the same from run to run, for tuning, self-tests and quirks are
	// kept by it.
	const char *(*impl_name)(uint32_t device, const struct yoke_op *, uint32_t impl);
	// A table by name, or NULL: "telemetry", struct yoke_telemetry; "notes", struct yoke_notes; "limits", struct
	// yoke_limits_ext; "occupancy", struct yoke_occupancy_ext; "ranges", struct yoke_ranges_ext; "collectives",
	// struct yoke_collectives_ext.
	const void *(*ext)(const char *name);
	// A segment of memory that exists, aligned as info.align says, and is only read; freeing
	// the segment leaves the memory.  EUNSUPPORTED: the core copies.
	int (*segment_wrap)(uint32_t device, void *memory, uint64_t bytes, void **segment);
	// copy between segments of two devices of this backend, on a queue of either.  EUNSUPPORTED: the
	// core copies by way of the host.
	int (*copy_between)(void *queue, uint32_t to_device, void *to, uint64_t to_offset,
			    uint32_t from_device, void *from, uint64_t from_offset, uint64_t bytes);
	// Records work of a queue for replay: all four, beside copy and fill, or none.  From graph_begin
	// on, run, copy and fill on that queue are recorded and not done; no other function is called with
	// it until graph_end, which always ends that.  After an error of a call in between the graph, if
	// one is given, is freed without being run.  graph_run enqueues all of it, on a queue of the same device, as often as
	// the core likes, one at a time for a graph.  Nothing differs between replays: segments, offsets,
	// bits of SCALAR views and handles are those that were recorded, and live until the last replay is over;
	// what lies in the segments is as it is then.  The graph may be freed after them.  graph_free: none of its
	// runs is under way any more.
	int (*graph_begin)(void *queue);
	int (*graph_end)(void *queue, void **graph);
	int (*graph_run)(void *queue, void *graph);
	void (*graph_free)(void *graph);
};

// ---- tables of ext ----

// Bits of `known` and `throttle` of a sample.
enum yoke_sample_known {
	YOKE_SAMPLE_UTIL = 1 << 0, YOKE_SAMPLE_MEM_UTIL = 1 << 1, YOKE_SAMPLE_MEM_USED = 1 << 2,
	YOKE_SAMPLE_MEM_TOTAL = 1 << 3, YOKE_SAMPLE_TEMP = 1 << 4, YOKE_SAMPLE_MEM_TEMP = 1 << 5,
	YOKE_SAMPLE_POWER = 1 << 6, YOKE_SAMPLE_POWER_LIMIT = 1 << 7, YOKE_SAMPLE_ENERGY = 1 << 8,
	YOKE_SAMPLE_CLOCK = 1 << 9, YOKE_SAMPLE_CLOCK_MAX = 1 << 10, YOKE_SAMPLE_MEM_CLOCK = 1 << 11,
	YOKE_SAMPLE_PCIE_TX = 1 << 12, YOKE_SAMPLE_PCIE_RX = 1 << 13, YOKE_SAMPLE_FAN = 1 << 14,
	YOKE_SAMPLE_THROTTLE = 1 << 15
};
enum yoke_throttle { YOKE_THROTTLE_POWER = 1, YOKE_THROTTLE_HEAT = 2, YOKE_THROTTLE_OTHER = 4 };

// A device at one moment, by its vendor's counters.  A field counts where its bit of `known` is set.
struct yoke_sample {
	uint32_t size, known;
	double util, mem_util;            // 0 .. 1, means over a time of the vendor's
	uint64_t mem_used, mem_total;     // bytes, of all processes
	double temp_c, mem_temp_c;
	double power_w, power_limit_w;
	double energy_j;                  // since a moment of the driver's
	uint64_t clock_hz, clock_max_hz, mem_clock_hz;
	uint64_t pcie_tx, pcie_rx;        // bytes a second
	double fan;                       // 0 .. 1
	uint32_t throttle, reserved;      // why the clock is held down: bits of enum yoke_throttle
};

struct yoke_telemetry {
	uint32_t size;
	// Fills at most sample->size bytes; from any thread, within 5 ms.  EUNSUPPORTED: nothing is known.
	int (*sample)(uint32_t device, struct yoke_sample *sample);
};

// What a device reaches at most, measured by kernels that do nothing else.  0: not known.
struct yoke_limits {
	uint32_t size, reserved;
	double flops[YOKE_MAX_DTYPES]; // a second, by dtype: multiply-adds, 2 each
	double copy;                   // bytes a second, read and written, between blocks larger than caches
	double launch_ns, wait_ns;     // an empty launch among many; one that is waited for
};

struct yoke_limits_ext {
	uint32_t size;
	// Fills at most limits->size bytes, within a second or so.
	int (*measure)(uint32_t device, struct yoke_limits *limits);
};

// How a kernel fills a device's multiprocessor.  0, and share below 0: not known.
struct yoke_occupancy {
	uint32_t size;
	uint32_t group, warp; // items of a group; of those that run in step
	uint32_t registers;   // of an item, 32 bits each
	uint64_t local_bytes; // of a group
	double share;         // 0..1: warps that are resident over the most there can be, as the driver says
};

struct yoke_occupancy_ext {
	uint32_t size;
	// Of the op's launch with most work items, on the queue's device, as prepare would have it; fills at most
	// to->size bytes.  EUNSUPPORTED: nothing is known.
	int (*ask)(void *queue, const struct yoke_op *op, uint32_t impl, struct yoke_occupancy *to);
};

// Ranges of the vendor's profiler, of the calling thread: they nest, and pop ends the innermost.
struct yoke_ranges_ext {
	uint32_t size;
	void (*push)(const char *name); // which is copied
	void (*pop)(void);
};

// What ranks do together by the vendor's own library, each on a device of its own, all of this backend.
#define YOKE_COLLECTIVE_CODES(X) \
	X(SEND, 1)           /* in [count] -> peer, whose RECV of as many it meets */ \
	X(RECV, 2)           /* .. peer's SEND -> out [count] */ \
	X(ALL_GATHER, 3)     /* in [count] -> out [ranks, count] */ \
	X(BROADCAST, 4)      /* in [count] of rank peer -> out [count]; in is read there alone */ \
	X(ALL_REDUCE, 5)     /* in [count] -> out [count], sums or extremes in an order of the library's own */ \
	X(REDUCE, 6)         /* .. of rank peer alone */ \
	X(REDUCE_SCATTER, 7) /* in [ranks, count] -> out [count], row `rank` of them */

enum yoke_collective_code {
#define X(name, number) YOKE_COLLECTIVE_##name = number,
	YOKE_COLLECTIVE_CODES(X)
#undef X
};

// One of them: elements without gaps, of segments of the queue's device; out may be in, where both have one shape.
struct yoke_collective {
	uint32_t code, dtype, kind, peer; // kind: YOKE_REDUCE_SUM, MAX or MIN of those that reduce, else 0
	uint64_t count;                   // elements, 1 or more
	void *in, *out;                   // segments
	uint64_t in_offset, out_offset;   // bytes
};

#define YOKE_COLLECTIVES_ID 256

// Nothing here waits for other ranks but `leave` without `abort`, which they come to as well.
struct yoke_collectives_ext {
	uint32_t size;
	// What the ranks of a group find each other by, made by one of them: YOKE_COLLECTIVES_ID bytes.  EUNSUPPORTED: the
	// library is not there, or too old.
	int (*id)(void *to);
	// Begins to join a group with the id that its maker handed out; status says when all have.
	int (*join)(uint32_t device, const void *id, uint32_t rank, uint32_t ranks, void **comm);
	// 1: it takes run, and what was given to it is enqueued; 0: not yet; negative: it failed, by what is said.
	int (*status)(void *comm);
	// Enqueues n of them as one: all ranks come to the same, those of SEND and RECV to each other's.  Nothing else is
	// enqueued on the queue before status says 1.
	int (*run)(void *queue, void *comm, uint32_t n, const struct yoke_collective *what);
	// Ends it, and frees it.  abort: what is under way ends at once, its results are undefined; otherwise none is.
	void (*leave)(void *comm, int abort);
};

struct yoke_notes {
	uint32_t size;
	// Lines for `yoke doctor`, one for each library that the backend opens by itself: which it is, or why it is
	// not there and what is off without it.  NULL behind the last.
	const char *(*note)(uint32_t index);
};

// The mandatory part ends with release: a table cut off before its end is refused.
#define YOKE_BACKEND_MANDATORY offsetof(struct yoke_backend, impl_name)

// The one symbol of a plugin, called before anything else.  Checks core_abi's MAJOR, keeps the
// host table (valid for good), gives its own (static) table.  Returns 0 or a negative error.
typedef int yoke_plugin_init_fn(uint32_t core_abi, const struct yoke_host *host,
				const struct yoke_backend **backend);
yoke_plugin_init_fn yoke_plugin_init;

#ifdef __cplusplus
}
#endif
#endif
