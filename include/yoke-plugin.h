// SPDX-License-Identifier: Apache-2.0
// The plugin ABI: the functions that a backend provides to the core, and the services that the core
// provides to backends.
//
// A backend is a shared object that exports one function, yoke_plugin_init, which returns a table
// of functions.  It includes only this header and does not link against yoke.
// Rules: every struct that crosses the ABI begins with its size; members are appended, never moved;
// numbers (ops, map instructions, dtypes, errors) are never reused; a table may be shorter than the
// core's, and missing members count as "unsupported".  doc/plugins.md walks through an example.
// Sizes and offsets are bytes, dims and strides are elements.
#ifndef YOKE_PLUGIN_H
#define YOKE_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// MAJOR must match; a new MINOR only appends.
#define YOKE_ABI_MAJOR 2
#define YOKE_ABI_MINOR 2
#define YOKE_ABI ((uint32_t)YOKE_ABI_MAJOR << 16 | YOKE_ABI_MINOR)

// X(name, number, text): return values of functions; 0 is success.
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
#define YOKE_MAX_DTYPES 16 // dtype numbers stay below this for this MAJOR

// ---- operands ----

enum yoke_view_kind {
	YOKE_VIEW_NONE = 0, // an omitted optional operand
	YOKE_VIEW_BUFFER,   // elements in a segment
	YOKE_VIEW_SCALAR    // one value passed by value: .bits, in .dtype; it broadcasts to any
			    // shape
};

// A tensor operand.  Element i0,i1,... is at offset + sum(ik * strides[k]) * size of dtype.
// Broadcast axes have stride 0.  segment and offset are undefined in can() and prepare().  The
// layout is fixed for this MAJOR: the struct is used in arrays and does not grow.
struct yoke_view {
	void *segment;   // from segment_new
	uint64_t offset; // bytes from the segment's start; kind SCALAR: the value's bits, low bytes
			 // first
	int64_t dims[YOKE_MAX_RANK];
	int64_t strides[YOKE_MAX_RANK]; // elements; outputs have no overlapping elements
	uint32_t align;                 // guaranteed alignment of the first element in bytes
	uint8_t dtype, rank, kind, reserved;
};

// ---- map programs ----

// Instructions of a map program; each computes one value.  a, b, c are indices of earlier
// instructions unless stated otherwise.  Arithmetic is done in the instruction's dtype and rounded
// to it (f16 and bf16: computed in f32, then rounded); a*b+c is never contracted to a fused
// multiply-add.
// Integers wrap.  Their quotient truncates; x/0 is 0, and the minimum divided by -1 is the minimum.
// MOD is the remainder of that quotient, with the sign of a, and 0 for b = 0; for floating point it
// is C's fmod.  AND, OR, XOR and NOT are bitwise for integers and logical for bool.  SHL and SHR
// shift a by b bits, SHR copies the sign; for b outside 0 .. bits - 1, SHL gives 0 and SHR gives 0,
// or -1 for a negative a.
//
// Casts from floating point to integers truncate, saturate, and map NaN to 0; casts to f16 and bf16
// round to nearest even, overflow to infinity and keep NaN; casts to bool test for a nonzero value.
// MIN and MAX are NaN if an operand is NaN, ROUND rounds half to even, SIGN of NaN is NaN, a
// comparison with NaN is false, except NE, which is true.  Otherwise IEEE 754 applies, including
// subnormals unless YOKE_DEVICE_FLUSHES.
//
// Codes 16 to 31 have two operands and 32 to 63 one, of the instruction's dtype; the result of 64
// to 79 is bool.  UNIFORM, NORMAL, EXP to RECIP and SIN to ERF occur only in floating-point dtypes,
// SHL and SHR only in integers, AND, OR, XOR and NOT in integers and bool; of the other codes 16 to
// 63 only MIN and MAX occur in bool.
#define YOKE_MAP_CODES(X) \
	X(INPUT, 1)    /* element of input a */ \
	X(CONST, 2)    /* constant a: konst[a], bits in the instruction's dtype */ \
	X(INDEX, 3)    /* i64: row-major index of the element in the iteration space */ \
	X(RAND, 4)     /* i32: Philox 4x32-10 (Salmon et al. 2011): word index % 4 of the block */ \
		       /* with counter (index / 4, step) and key b, two words each, low word */ \
		       /* first; a index, b key, c step, all i64 */ \
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

// Sized for optimizer steps: they read and write at most 8 lists each (parameters, gradients and
// states: averaged gradients and squares, their maximum, momentum) and read 8 numbers (learning
// rate, corrections, scales).  These, 10 constants and the arithmetic, with casts of half
// precision, are less than 64 instructions.
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

// Ops that a backend may implement.  Shapes in brackets; attr lists attributes: i integer, f
// double.  The core merges the axes of views.  Where the number of axes is not fixed (all axes of
// MAP, MOVE and CHECK; the kept and the reduced axes of REDUCE, separately, except the axis of
// ARGMAX and ARGMIN; the leading axes of CONTRACT, SORT, SOFTMAX and the norms; the axes before and
// after the axis of SCAN, the ALONG ops and GATHER; indices and rows of GATHER and SCATTER_ADD),
// axes with one element are removed, and adjacent axes that all operands traverse like a single
// axis are merged: a backend gains nothing by merging them again.
// "acc" is f64 for f64, i64 for integers, f32 otherwise.  Reductions have a fixed order.
// idx and ids are i32 or i64, counted from 0.  An index out of range is ERANGE, from run or, if
// only the device can detect it, from the next event that covers the op, and nothing outside is
// read or written.
#define YOKE_OP_CODES(X) \
	/* out k = program; every input and output has the shape op->dims (stride 0: broadcast) */ \
	X(MAP, 1) \
	/* inputs as in MAP, over op->dims; output dim k is 1 for a reduced axis k; the map */ \
	/* (always present, with one output) is applied first; attr: i kind, i mask of reduced
	   axes */ \
	X(REDUCE, 2) \
	/* a [..,M,K] b [..,K,N] -> [..,M,N]; accumulates in acc; all have the same leading */ \
	/* dims (stride 0: broadcast); attr: i dtype of the product: that of a and b, or f32 if */ \
	/* they are f16 or bf16; i 1: each row of the product is bitwise independent of the */ \
	/* number of rows and matrices, of its position and of memory layout; implementations */ \
	/* that cannot guarantee this, or differ from each other, must reject the op.  With a */ \
	/* map (epilogue): input 0 is the product, rounded to its dtype; in[2..] are inputs 1.. */ \
	/* of shape [..,M,N]; outputs are the map's, INDEX counts in [..,M,N] */ \
	X(CONTRACT, 3) \
	/* x -> y: a strided copy, same dims, same dtype */ \
	X(MOVE, 4) \
	/* x [..,N,..], idx [I..] -> [..,I..,..]: indexes axis attr[0].i */ \
	X(GATHER, 5) \
	/* x [N,R..] or none (zeros), idx [I..], v [I..,R..] -> y = x with v's rows \
	   added at idx */ \
	X(SCATTER_ADD, 6) \
	/* x -> y, cumulative sum or product along an axis; attr: i axis, i kind */ \
	/* (YOKE_REDUCE_SUM or PROD), i 1: from the end; accumulates in acc */ \
	X(SCAN, 7) \
	/* x [..,N] -> values [..,k], positions [..,k] i64 (outputs may be none): the first k */ \
	/* in sorted order, stable, -0 equals 0, NaN last; attr: i k, i 1 descending */ \
	X(SORT, 8) \
	/* x -> y = x; ERANGE if an element is not finite; attr: none, or i 1: the elements are
	   rows of RESOLVENT */ \
	X(CHECK, 9) \
	/* x, for each axis a start (i64 value, none: 0) -> y: the slice of x that begins */ \
	/* there; a slice that exceeds x is ERANGE, and nothing outside is read or written */ \
	X(SLICE_AT, 10) \
	/* x, starts as in SLICE_AT, v -> y = x with that slice replaced by v; y may be x */ \
	X(SLICE_UPDATE_AT, 11) \
	/* x [..,N,..], idx [..,I,..], equal along other axes -> y like idx: */ \
	/* y[..,i,..] = x[..,idx[..,i,..],..]; attr: i axis */ \
	X(GATHER_ALONG, 12) \
	/* x [..,N,..] or none (zeros), idx and v [..,I,..] -> y = x with v added at idx along */ \
	/* the axis; attr: i axis, i N */ \
	X(SCATTER_ADD_ALONG, 13) \
	/* a recurrence: the program runs step by step along an axis of op->dims, independently */ \
	/* for each position of the other axes.  Its last inputs are carried: in each step they */ \
	/* have the values that the same number of last outputs had in the previous step, and */ \
	/* in the first step those of in k, which has dim 1 along the axis.  The out k of such */ \
	/* an output has dim 1, too, and gets the values of the last step.  All other inputs */ \
	/* and outputs have the shape op->dims.  Outputs may be none; the program has neither
	   INDEX nor RAND; attr: i axis, i 1 from the end, i number of carried values */ \
	X(SCAN_MAP, 14) \
	/* EIGH, CHOLESKY and SOLVE_TRIANGULAR take f32 or f64 and compute in f64. */ \
	/* a [..,n,n], symmetric, only the lower triangle is read -> values [..,n], ascending, */ \
	/* vectors [..,n,n], one per column, each with its element of largest modulus positive */ \
	/* (outputs may be none); all NaN for a matrix that is not finite */ \
	X(EIGH, 20) \
	/* a [..,n,n], only the lower triangle is read -> L [..,n,n], 0 above the diagonal, L */ \
	/* L' = a; run fails with ERANGE if a pivot is not positive */ \
	X(CHOLESKY, 21) \
	/* t [..,n,n], b [..,n,k] -> x with t x = b, for lower triangular t; attr: i 1: solves */ \
	/* t' x = b, i 1: t is upper triangular, i 1: t has a unit diagonal, which is not read */ \
	X(SOLVE_TRIANGULAR, 22) \
	/* LU, LU_SOLVE, QR, SVD and MATRIX_EXP take f32 or f64; outputs may be none. */ \
	/* a [..,m,n] -> lu [..,m,n], L below its unit diagonal and U, perm [..,m] i64, the row */ \
	/* of a that each row of L U is, sign [..] of the permutation; partial pivoting */ \
	X(LU, 24) \
	/* lu [..,n,n], perm [..,n] of LU, b [..,n,k] or none (1) -> x [..,n,k] with a x = b; \
	   attr: i 1: solves a' x = b (with b only); run fails with ERANGE if a pivot is 0 */ \
	X(LU_SOLVE, 25) \
	/* a [..,m,n] -> Q [..,m,k], R [..,k,n] by Householder reflections that give R's diagonal \
	   the sign opposite to that of the reflected element; attr: i 1: k is m, else \
	   min(m, n) */ \
	X(QR, 26) \
	/* a [..,m,n] -> U [..,m,k], s [..,k] descending, V' [..,k,n], k = min(m, n); all NaN for \
	   a matrix that is not finite; attr: i 1: U [..,m,m], V' [..,n,n] */ \
	X(SVD, 27) \
	/* a [..,n,n] -> exp(a) */ \
	X(MATRIX_EXP, 28) \
	/* x [M,C], weights w [M] or none -> n [], the sum of weights, mean [C], m2 [C,C], the */ \
	/* sum of w (x - mean)(x - mean)', all f64, min [C], max [C], of x's dtype; rows */ \
	/* of weight 0 are not read; without rows mean and m2 are 0, the extremes infinite; m2 */ \
	/* is accurate to 1e-6 sqrt(m2_ii m2_jj); outputs may be none; attr: i 1: m2 is only
	   the diagonal [C] */ \
	X(MOMENTS, 23) \
	/* In the following ops, lse, loss, mean and rstd have dtype acc; w, b, dw, db, cos, */ \
	/* sin and mask have the dtype of x or q, or f32 if that is f16 or bf16. */ \
	/* over the last axis; attr: i 1 for the logarithm */ \
	X(SOFTMAX, 32) \
	/* y, g -> dx; attr as SOFTMAX */ \
	X(SOFTMAX_BACKWARD, 33) \
	/* x [..,C], w [C] or none, b [C] or none -> y, mean [..], rstd [..]; attr: f eps */ \
	X(LAYER_NORM, 34) \
	/* x, w or none, mean, rstd, g -> dx, dw [C], db [C] (outputs may be none); attr: i */ \
	/* dtype of dw and db */ \
	X(LAYER_NORM_BACKWARD, 35) \
	/* x [..,C], w [C] or none -> y, rstd [..]; attr: f eps */ \
	X(RMS_NORM, 36) \
	/* x, w or none, rstd, g -> dx, dw; attr: i dtype of dw */ \
	X(RMS_NORM_BACKWARD, 37) \
	/* logits [N,V], ids [N] -> loss [], lse [N]: mean over ids that are not ignored; */ \
	/* attr: i ignored id, f label smoothing */ \
	X(CROSS_ENTROPY, 38) \
	/* logits, ids, lse, g [] -> dlogits; attr as CROSS_ENTROPY; dlogits may be logits */ \
	X(CROSS_ENTROPY_BACKWARD, 39) \
	/* q [B,T,H,D], k v [B,S,G,D], G divides H, mask [B|1,H|1,T,S] added or none, key and */ \
	/* step (i64) or none, n (i64, [] or [B]) or none -> o [B,T,H,D], lse [B,H,T].  Only */ \
	/* the first n keys, or n[b] for batch row b, are visible (none: n is S; outside 0..S: */ \
	/* ERANGE); the others are not read.  attr: i causal (query t sees keys up to t + n - */ \
	/* T), f scale, f dropout; dropout keeps index ((b*H+h)*T+t)*S+s where */ \
	/* UNIFORM(RAND(index, key, step)) >= dropout, and divides by 1 - dropout.  A mask of
	   -inf hides a key, too.  Keys of weight 0 add nothing, even if k or v is NaN */ \
	X(ATTENTION, 40) \
	/* q k v mask key step o lse g n -> dq dk dv; 0 for hidden keys */ \
	X(ATTENTION_BACKWARD, 41) \
	/* a program over lists: its first lists_in inputs are elements of lists; the others */ \
	/* are numbers, the same for all elements: a SCALAR, a BUFFER of one element, or a */ \
	/* BUFFER of dims [list] with one number per tensor.  Outputs are lists.  The i-th */ \
	/* tensors of all lists have the same shape, different i may have different shapes; the
	   program has neither INDEX nor RAND */ \
	X(LIST_MAP, 42) \
	/* inputs as in LIST_MAP; the program's one output, of a floating-point dtype, is */ \
	/* reduced over all elements, [], or over each tensor, [list], or both, [list + 1], */ \
	/* with the total last; attr: i kind (SUM, MAX or MIN), i 0, 1 or 2 for these cases.
	   For f32 the output may be f64: then sums are not rounded */ \
	X(LIST_REDUCE, 43) \
	/* x [B,T,H,D], cos and sin [T,D/2] -> y: (x0 cos - x1 sin, x1 cos + x0 sin), x0 and x1 */ \
	/* the halves of the last axis; y may be x */ \
	X(ROPE, 45) \
	/* The diagonal of (H - z)^-1, H tridiagonal and real: a [..,N] H_ii, b and c [..,N-1] */ \
	/* or none (ones) H_i,i+1 and H_i+1,i, z [..,2] (re, im), all of the same dtype and */ \
	/* leading dims (stride 0: broadcast) -> G [..,N,2], bound [..] in acc, may be none. */ \
	/* With alpha = a - z, k_i = b_i c_i: L_0 = alpha_0, L_i = alpha_i - k_(i-1)/L_(i-1), R */ \
	/* likewise from the end; G_i = 1/(L_i + R_i - alpha_i), or 1/L_i for side 1, left. */ \
	/* ERANGE if an operand is not finite or z is an eigenvalue.  attr: i side, i tier: 1
	   f64, 2 */ \
	/* f32, 3 mixed (L and R in f32, the division in f64), 4 and 5 half: L and R rounded to */ \
	/* f16 or bf16 after each operation, scaled by powers of two, then i `sweeps` updates, */ \
	/* over all i at once, L_i <- alpha_i - k_(i-1)/L_(i-1), R likewise, in f32; bound is */ \
	/* then D max|Im G|/|Im z|, with D the largest |change| of L plus that of R in the last
	   sweep plus a rounding term, or infinite if a k < 0 or sweeps is 0.  Rows with bound
	   above f tolerance are recomputed in f32, bit for bit.  For other tiers bound is 0.
	   Then RESOLVENT_BACKWARD's remaining attributes */ \
	X(RESOLVENT, 60) \
	/* a, b, c, z, g [..,N,2] (derivatives by re and im) -> da [..,N], db, dc [..,N-1], dz */ \
	/* [..,2] (may be none), in f64 for tier 1 and, for tiers 3 to 5, in rows with max|g| < */ \
	/* adaptive, else f32; attr: i side, i tier, i sweeps, f tolerance, i gradient: 0 */ \
	/* exact; the others approximate da and set the other derivatives to 0, with F = G^2, */ \
	/* g~ the conjugate: 1 -Re(g~ F); 2 -Re(g/(F + 1e-6)), F of modulus below 1e-3 */ \
	/* multiplied by 1e-3/(|F| + 1e-9); 3 (1 - blend) times 1 + blend times 2; 4 as 3 with
	   g for g~ in 1; clamped to +-1000, 0 if not finite; f blend, f adaptive */ \
	X(RESOLVENT_BACKWARD, 61) \
	/* x [T,K], w [E,K,N] (attr 1: [E,N,K]), first [E+1] -> y [T,N]: rows first[e] <= t < */ \
	/* first[e+1] times w[e], other rows 0; first is i64, does not decrease and stays */ \
	/* within 0 .. T, else ERANGE; accumulates in acc; attr: i 1: w is transposed */ \
	X(GROUPED, 62) \
	/* x [T,K], g [T,N], first as above -> dw [E,K,N]: for each e, x[rows]' g[rows] with
	   rows first[e]..first[e+1]-1 */ \
	X(GROUPED_BACKWARD, 63) \
	/* g [..,Q,..,size], gradient of the windows of an axis of n elements, which Q replaces */ \
	/* -> y [..,n,..]: y[s] = sum of g[..,q,..,k] over q and k with q stride + k dilation = */ \
	/* s, in order of k, in acc; attr: i axis, i size, i stride, i dilation, i n */ \
	X(WINDOW_ADD, 64) \
	/* x [B,C,S..], w [O,C/groups,K..], 1 to 3 spatial axes -> y [B,O,Q..] = sum of */ \
	/* w[o,c,k] x[b,c',s], c' the c-th channel of o's group, s = q stride + k dilation - */ \
	/* lo, x is 0 outside; sums in acc.  attr: i groups, for each axis i stride | dilation
	   << 16 | lo << 32 | hi << 48; hi is implied by Q */ \
	X(CONV, 65) \
	/* g [B,O,Q..], w -> [B,C,S..]: CONV's derivative by x; attr: CONV's, then i S of each \
	   axis */ \
	X(CONV_X, 66) \
	/* x, g -> [O,C/groups,K..]: CONV's derivative by w; attr: CONV's, then i K of each \
	   axis */ \
	X(CONV_W, 67) \
	/* x [n] f32, e [n] or none -> v [k], places i32 [k], ascending, rest [n]: with a = x + */ \
	/* e, v are the k elements of a with the largest modulus, the first ones of equals, NaN */ \
	/* above all; rest is a with 0 at these indices and may be x or e.  Outputs may be
	   none; n < 2^31; attr: i k */ \
	X(LARGEST, 70) \
	/* x [B,C,S..], 1 to 3 spatial axes -> y [B,C,Q..]: the maximum of each window K.. of */ \
	/* x, with -inf outside of S, NaN if an element is NaN; attr: i K of each axis, then
	   for each as in CONV */ \
	X(POOL_MAX, 71) \
	/* x, g [B,C,Q..] -> [B,C,S..]: POOL_MAX's derivative: equal maxima share g equally; g */ \
	/* is dropped if a window has a NaN; sums in acc; attr: POOL_MAX's */ \
	X(POOL_MAX_BACKWARD, 72) \
	/* Quantized weights: w u8 [N,bytes] has rows of K elements in a block format of GGUF, \
	   with yoke-quant.h's numbers.  attr: i format, i K.  dims of bytes: yoke_quant_bytes */ \
	/* w -> y [N,K] in f32, f16 or bf16, computed in f32 and rounded once */ \
	X(DEQUANT, 80) \
	/* x [..,K] f32, f16 or bf16, w -> y [..,N] of x's dtype; weights and sums are f32.  x */ \
	/* may be rounded to 16-bit integers: an error of 2^-14 of the largest modulus of its \
	   32 elements from a multiple of 32 on.  attr: also i dtype of x and, if present, i 1: as \
	   CONTRACT's second */ \
	X(QLINEAR, 81) \
	/* w, ids i32 or i64 [I..] -> y [I..,K]: rows of w, as DEQUANT; an id outside of 0 .. N \
	   - 1: ERANGE */ \
	X(QGATHER, 82) \
	/* q [T,H,D], k v [pages,N,G,D], G divides H, table i32 [rows,M] of pages, row and pos i32 \
	   [T] -> o [T,H,D]: query t attends to positions s <= pos[t] of the sequence row[t], \
	   whose s-th key is in page table[row,s/N] at s % N; a row of -1: 0.  attr: f scale, i \
	   window (0: none): only s > pos - window, f cap (0: none): scores become \
	   cap tanh(score / cap).  k and v are f32, f16 or bf16, whatever q is, or f64 like q.  A \
	   row of the result has the same bits whatever the other queries are.  ERANGE: a row, or \
	   a page that a query needs, that does not exist */ \
	X(PAGED_ATTENTION, 83) \
	/* x [N,R..], idx i32 or i64 [I..], v [I..,R..] -> y = x with the rows of v at idx, of \
	   equal ones the last, -1: skipped; y may be x; ERANGE: another index outside of \
	   0 .. N - 1 */ \
	X(SCATTER_SET, 84) \
	/* x [N] bool -> positions [K] i64 of the first K elements that are true, ascending, then \
	   -1; count [] i64, of all that are true; attr: i K */ \
	X(COMPACT, 90) \
	/* sorted [..,N], ascending, v [..,M], equal leading dims -> [..,M] i64: for each element \
	   of v the number of elements of its row that are less than it or, if set, equal; \
	   attr: i 1: or equal */ \
	X(SEARCHSORTED, 91) \
	/* A sparse matrix: row i has the entries m with first[i] <= m < first[i+1], or without \
	   first the M / rows entries from i M / rows on; entry m is in column idx[m] and is w[m], \
	   or 1 without w; idx -1 is skipped.  idx i32 or i64 [G,M] and w [G,M] have a first axis \
	   of G or 1; first is i64 [rows+1].  All in acc, in order of m.  ERANGE: another index, \
	   or first decreases or leaves 0 .. M */ \
	/* x [G,A,N,R], idx, w or none, first or none -> y [G,A,rows,R], for each row the sum of \
	   w[m] x[..,idx[m],..]; attr: i rows, i 1: the maximum, without w, of no entries -inf */ \
	X(SPARSE, 110) \
	/* g [G,A,rows,R], idx, w, first -> [G,A,N,R]: SPARSE's derivative by x; attr: i N */ \
	X(SPARSE_X, 111) \
	/* x, g, idx, first -> [G,M] or [1,M], as idx: its derivative by w, 0 for skipped \
	   entries */ \
	X(SPARSE_W, 112) \
	/* x [B,C,S..] -> i64 [B,C,Q..]: the row-major index in S.. of POOL_MAX's element: the */ \
	/* first maximum, or the last NaN; -1 if a window has none; attr: POOL_MAX's */ \
	X(POOL_ARGMAX, 113) \
	/* x -> i64: along an axis, the index of the last maximum so far, or of the last NaN */ \
	/* once there is one; attr: i axis, i kind: REDUCE_ARGMAX or REDUCE_ARGMIN */ \
	X(CUM_ARG, 114) \
	/* Fourier transforms of f32 or f64 along the axis before the last one of pairs (re, im), \
	   or the last one of real numbers.  kind 0: x [..,n,2] -> y [..,n,2], y_k = scale sum of \
	   x_j exp(-2 pi i jk/n), with +2 pi i if inverse is 1.  Kind 1: x [..,n] -> the elements \
	   0 .. n/2 [..,n/2+1,2] of that, but those other than 0 and n/2 times weight.  Kind 2: x \
	   [..,n/2+1,2] -> y [..,n], the real part of the same sum over 0 .. n/2, with elements \
	   other than 0 and n/2 (n even) times weight.  attr: i kind, i n, i inverse, i weight, \
	   f scale */ \
	X(FFT, 100) \
	/* A recurrent layer.  x [T,B,G H], the products of the inputs, with biases; w [G H,H], b \
	   [G H] or none (0): the products of the state are h w' + b; h0, c0 [B,H] or none \
	   (zeros); lengths i64 [B] or none -> y [T,B,H], h [B,H] and c [B,H] after the last step, \
	   gates [T,B,G H], more [T,B,H]; all but y may be none.  attr: i cell, i 1: from the last \
	   step to the first.  Row b takes only steps below lengths[b]; in the others y, gates and \
	   more are 0 and the state is kept.  G and cells: 1, 0 h = tanh(x + p), p the product of \
	   the state; 1, 1 the same with relu; 4, 2 LSTM: i, f, g, o = s, s, tanh, s of x + p, \
	   c = f c + i g, h = o tanh(c), s the sigmoid; 3, 3 GRU: r, z = s(x + p), n = tanh(x + r \
	   p), h = (1 - z) n + z h.  gates are these values (h for cells 0 and 1), more is c, or \
	   GRU's p of n */ \
	X(RECURRENT, 101) \
	/* w, h0, c0, lengths as above, y, gates, more; dy, dh, dc or none (0) -> dx [T,B,G H], dp \
	   [T,B,G H], the derivative by p, dh0, dc0 [B,H]; all may be none; attr: RECURRENT's */ \
	X(RECURRENT_BACKWARD, 102) \
	/* Connectionist temporal classification (Graves et al. 2006).  x [T,N,C] logarithms of \
	   probabilities, targets i64 [N,S], steps, labels i64 [N]: lengths -> loss [N], the \
	   negative log likelihood, alpha [N,T,2 S + 1], the logarithm of the probability of label \
	   or blank s at step t, -inf outside; f32 or f64; ERANGE: lengths above T or S, targets \
	   not below C.  attr: i blank */ \
	X(CTC, 103) \
	/* x, targets, steps, labels, loss, alpha, g [N] -> dx [T,N,C]; 0 where g is 0; attr: \
	   CTC's */ \
	X(CTC_BACKWARD, 104) \
	/* the application's kernel op->source: any outputs, inputs and attributes; contiguous */ \
	/* (row-major) BUFFER views, inputs may be none */ \
	X(SOURCE, 50)

enum yoke_op_code {
#define X(name, number) YOKE_OP_##name = number,
	YOKE_OP_CODES(X)
#undef X
	YOKE_OP_LIMIT = 256
};

enum yoke_reduce_kind {
	YOKE_REDUCE_SUM = 1, YOKE_REDUCE_MAX, YOKE_REDUCE_MIN, YOKE_REDUCE_PROD,
	YOKE_REDUCE_ARGMAX, YOKE_REDUCE_ARGMIN // output i64, one reduced axis, first of equals
};

#define YOKE_MAX_ATTRS 16

union yoke_attr {
	int64_t i;
	double f;
};

// Languages of kernel sources: OpenCL C 1.2; CUDA C++, also for HIP.  HOST: a function instead of a
// source.
enum yoke_dialect { YOKE_DIALECT_HOST = 0, YOKE_DIALECT_OPENCL = 1, YOKE_DIALECT_CUDA = 2 };

struct yoke_op;

// A custom kernel of an application.  Its parameters are, for each output and then each input, the
// segment (a pointer to global memory; an absent input: NULL) and the byte offset of the operand's
// first element (ulong), then each attribute (8 bytes: long or double).  A backend accepts sources
// of its dialect, and the dialect HOST if its segments are addressable by the host.
struct yoke_source {
	uint32_t size, dialect;
	const char *text, *entry; // compiled as is; it may use #include as in kernel_source
	uint64_t hash;            // of dialect, text and entry: equal if these are equal
	uint64_t global[3];       // global size, at least 1 along each axis, multiples of local
	uint64_t local[3];        // work-group size; all 0: the backend chooses
	// HOST: called for chunk 0 .. chunks - 1, on any thread, several concurrently.  data: the
	// address of the first element of each output, then of each input (absent: NULL).  Returns
	// 0, or an error.
	int (*host)(const void *arg, const struct yoke_op *, void *const *data, int64_t chunk,
		    int64_t chunks);
	const void *arg;
	int64_t chunks;
	uint32_t strided, reserved; // strided: inputs may have any strides
};

// One op, valid during the call.  Operand views are flat arrays: an ordinary op has nout views in
// out and nin in in.  In a list op (list > 0) the first lists_out outputs and lists_in inputs are
// lists of `list` tensors: tensor i of list k is view k*list + i, and the other operands follow.
struct yoke_op {
	uint32_t size;
	uint16_t code;
	uint8_t nattr, rank;       // rank: of dims
	uint32_t nout, nin;        // views in out and in, counting each tensor of a list
	uint32_t list;             // tensors in each list, 0: not a list op
	uint8_t lists_out, lists_in;
	uint16_t reserved;
	int64_t dims[YOKE_MAX_RANK]; // iteration space of MAP, REDUCE and SCAN_MAP
	const struct yoke_view *out, *in;
	union yoke_attr attr[YOKE_MAX_ATTRS];
	const struct yoke_map *map; // MAP, REDUCE, SCAN_MAP, LIST_MAP, LIST_REDUCE, CONTRACT with
				    // an epilogue; else NULL
	uint64_t alias_mask;        // in run: bit k: input operand k (a list counts as one) is
				    // overwritten by an output of the same shape, dtype and
				    // strides, element by element
	struct yoke_view workspace; // in run: the workspace that prepare() requested, aligned to
				    // info.align; kind NONE: no workspace
	uint64_t id;                // number of the plan's step, for messages and profiles
	const struct yoke_source *source; // SOURCE; else NULL
};

// ---- devices ----

enum yoke_device_kind {
	YOKE_DEVICE_OTHER = 0,
	YOKE_DEVICE_GPU,
	YOKE_DEVICE_IGPU,
	YOKE_DEVICE_CPU,
	YOKE_DEVICE_ACCELERATOR
};

enum yoke_device_flag {
	YOKE_DEVICE_F64 = 1, YOKE_DEVICE_F16 = 2, // supports arithmetic in that dtype
	YOKE_DEVICE_UNIFIED = 4,                  // shares the host's memory
	YOKE_DEVICE_FLUSHES = 8,                  // flushes f32 subnormals to zero
	YOKE_DEVICE_TF32 = 16                     // rounds f32 factors to 10 mantissa bits because
						  // a setting enables it
};

struct yoke_device_info {
	uint32_t size;
	uint32_t kind, flags, units; // units: number of compute units or threads
	uint64_t memory;             // total bytes
	uint64_t max_segment;        // largest single allocation, bytes
	uint32_t align;              // of segments and of blocks in them, bytes, a power of two
	uint32_t max_args;           // maximum bytes of kernel arguments, 0: no limit
	char name[128], vendor[64], driver[128];
	// Identity of the device, independent of backend and driver; "" if unknown.  Unique among
	// the devices of a driver.
	char uuid[40]; // "6f0a4e1c-0000-4000-8000-00000000beef"
	char pci[24];  // domain, bus, device and function, "0000:01:00.0"
	// The software layer between the backend and the vendor's driver, "Portable Computing
	// Language"; "": none.  quirks.conf matches on it.
	char platform[64];
	uint64_t memory_free; // bytes of unused memory at the time of the call, 0: unknown
	// Bit d, for d f16, bf16, i8 or u8: CONTRACT has native instructions for factors of that
	// dtype; otherwise half-precision factors are converted to f32 first.
	uint32_t products;
	// m, n and k of CONTRACT for factors of dtype d should be multiples of these because
	// kernels are slower otherwise; 0 or 1: any size is fine.  These need not be the tile
	// sizes: kernels that handle partial tiles at the edges without loss gain nothing from
	// padding.  At most 4096.  The core pads the factors of large products with zeros
	// accordingly.
	uint16_t multiple[YOKE_MAX_DTYPES][3];
	// Hardware properties; 0 and "" if unknown.
	uint32_t warp;        // work items that execute in lockstep
	uint32_t memory_bits; // width of the memory bus
	uint64_t local_bytes; // shared memory of a work group
	uint64_t cache_bytes; // last-level cache
	uint64_t clock_hz, memory_clock_hz; // maximum clocks
	char generation[32];  // the vendor's name of the instruction set: "sm_90", "gfx90a"
	char matrix[64];      // dtypes supported by matrix units: "f16 bf16 tf32 f64 i8 fp8"
};

enum yoke_segment_kind { YOKE_SEGMENT_DEVICE = 0, YOKE_SEGMENT_HOST = 1 }; // HOST: pinned staging
enum yoke_queue_kind { YOKE_QUEUE_COMPUTE = 0, YOKE_QUEUE_UP = 1, YOKE_QUEUE_DOWN = 2 };

// ---- services of the core ----

enum yoke_log_level { YOKE_LOG_ERROR = 0, YOKE_LOG_WARN, YOKE_LOG_INFO, YOKE_LOG_DEBUG };

// The environment variable of a setting "opencl.platform" is YOKE_OPENCL_PLATFORM.
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
	YOKE_MAP_ARG_OFFSET    // the offset of its view, by value; for a SCALAR its bits
};

// One argument of a generated kernel.
struct yoke_map_arg {
	uint32_t kind;
	uint32_t operand; // output k, or the op's input k - nout
	uint64_t word;
};

// Cache key and arguments of the kernel that kernel_source generates for an op.  The axes of the
// iteration space (for a CONTRACT: of its result) are merged if all operands allow it, and elements
// are addressed by
//   MAP       (r, j): j along the last merged axis, r row-major along the axes before it
//   CONTRACT  (r, j): the same, but j is along the last axis of the result, r along all others
//   REDUCE    (r, c, q, j): r and c like r and j, for the kept axes; q and j for the reduced axes
//   SCAN_MAP  (r, c, q, j): r and c for all axes except the scanned one, which j indexes; q is 0
//   LIST_MAP, LIST_REDUCE  the elements of a tensor, one kernel for all; arguments are LIST_PARAMS
struct yoke_map_call {
	uint32_t size;
	uint32_t dtypes;     // bit d: dtype d occurs; a device without f64 rejects 1 << yoke_f64
	uint64_t count[YOKE_MAP_INDICES]; // range of each index, in the order above; MAP and
					  // CONTRACT: both 0 if there is nothing to do The key
					  // depends on op, instructions, dtypes, rank and which
					  // strides are 0 or 1, but not on dims, offsets or
					  // constants.  Equal keys have equal sources.
	uint32_t key_bytes;
	uint32_t narg;
	uint8_t key[YOKE_MAP_KEY_BYTES];
	struct yoke_map_arg arg[YOKE_MAP_MAX_ARGS]; // narg arguments, in order, 8 bytes each
};

struct yoke_host {
	uint32_t size, abi;
	// Logs one line, without a newline.
	void (*log)(int level, const char *topic, const char *text);
	// Sets the message of an error that a function is about to return; copied.
	void (*error)(int code, const char *text);
	// Declares a setting (static storage) and returns its value as text, valid forever.
	const char *(*setting)(const struct yoke_setting *);
	// Generates a program to compile: the op's map program as functions, or nothing if op is
	// NULL, followed by `text`.  A line #include "NAME", regardless of surrounding
	// conditionals, is replaced by the file of that name in cl/ ("contract_op.cl"), once per
	// file, at its first occurrence; "prologue.h", which these files include, is that of the
	// dialect.  The files belong to the running core and change with it: modules built together
	// with the core use them, others bring their own.  The functions:
	//   MAP       FN void map_at(ulong r, ulong j MAP_PARAMS): element (r, j) of every output
	//   CONTRACT  FN void map_store(TYPE product, ulong r, ulong j MAP_PARAMS): the same;
	//             product, rounded to its dtype, takes the place of input 0
	//   REDUCE    FN MAP_TYPE map_load(ulong r, ulong c, ulong q, ulong j MAP_PARAMS): the
	//             value to reduce; FN ulong map_place(ulong r, ulong c MAP_PARAMS): the index
	//             of the result, in elements from the first one of operand 0 (s0 + at0)
	//   SCAN_MAP  FN void map_scan(ulong r, ulong c, ulong steps, ulong back MAP_PARAMS): the
	//             whole recurrence at (r, c), from the end if back is not 0
	//   LIST_MAP, LIST_REDUCE  map_at and map_load as above, of a tensor's element j; r, c, q 0
	// MAP_PARAMS are parameters to append to the kernel's own, beginning with a comma, and
	// MAP_ARGS passes them on; map_call lists the arguments, each 8 bytes.  They are: for each
	// output and each BUFFER input the segment, GLOBAL uchar *s0, and its byte offset, ulong
	// at0; the bits of each SCALAR input, then of each constant; counts and strides.  For list
	// ops a kernel takes LIST_PARAMS instead, and LIST_TENSOR(i) declares these variables for
	// tensor i of all tensors.  For list k of LISTS, results first, it uses the backend's
	// LIST_SEGMENT(k) and LIST_OFFSET(k), which give the tensor's segment, GLOBAL uchar *, and
	// offset, ulong.  f16 and bf16 values are floats.  Works like snprintf: writes at most cap
	// bytes including the terminating NUL and returns the length without it, or a negative
	// error (EUNSUPPORTED: an unknown instruction, one not defined for its dtype, or more
	// arguments than YOKE_MAP_MAX_ARGS; and, with a message set, a file that does not exist or
	// includes itself).
	// The functions depend only on the key of map_call.  Compile without contraction of a*b+c.
	int64_t (*kernel_source)(int dialect, const struct yoke_op *, const char *text, char *to,
				 size_t cap);
	// The cache of compiled kernels.  get copies at most cap bytes and returns the length or a
	// negative error; put replaces an entry.  Both may fail at any time.
	int64_t (*cache_get)(const void *key, size_t key_bytes, void *to, size_t cap);
	int (*cache_put)(const void *key, size_t key_bytes, const void *data, size_t bytes);
	// Fills *call, whose size the caller has set; errors as for kernel_source.  The result
	// depends only on the op as passed to prepare.
	int (*map_call)(const struct yoke_op *, struct yoke_map_call *call);
	// Adds to the reported counts of programs: compiled from source, and found compiled by
	// cache_get.
	void (*programs)(uint32_t compiled, uint32_t found);
	// Adds to the count of RESOLVENT rows recomputed because half precision was not accurate
	// enough.
	void (*promoted)(uint64_t rows);
};

// ---- functions of a backend ----

// Functions return 0 or a negative YOKE_E*, with a message through host->error.  They may be called
// from several threads concurrently, also for one device; a queue and its events are used by one
// thread at a time.  The core does not call them in a forked child.
// A function that is NULL or beyond the table's size counts as returning EUNSUPPORTED (can: 0;
// prepare: a NULL handle and no workspace; queue_flush: 0).  Required in practice: probe,
// device_info, segments, queues, put, get, event_mark, event_done, event_wait, event_free.  Without
// copy, copy_between, fill or event_after, the core uses the host to copy or wait; without
// event_elapsed it has no timings.
// Error handling in the core.  After ENOMEM from segment_new or run it frees memory and retries
// once.  After EUNSUPPORTED from prepare it uses another implementation or device.  Any other
// error, also of an event, makes the op's outputs and everything that depends on them fail.  After
// EDEVICE the device is also considered lost, and training continues elsewhere if permitted.
struct yoke_backend {
	uint32_t size, abi;
	const char *name;    // "opencl": lower case, no spaces
	const char *version; // free text
	// Detects devices, once; finding 0 devices is not an error, and a message set through
	// host->error is the reason.  The settings that it reads become final: yoke_setting_set
	// refuses another value afterwards.  A setting that has an effect later must not be read
	// here.
	int (*probe)(uint32_t *ndevices);
	// Fills at most info->size bytes.
	int (*device_info)(uint32_t device, struct yoke_device_info *info);
	int (*segment_new)(uint32_t device, int kind, uint64_t bytes, void **segment); // bytes > 0
	void (*segment_free)(uint32_t device, void *segment);
	// Host address of the segment's first byte, or NULL if it has none.
	void *(*segment_host)(void *segment);
	int (*queue_new)(uint32_t device, int kind, void **queue);
	void (*queue_free)(void *queue);
	int (*queue_flush)(void *queue); // submits the enqueued work Enqueue a copy; the host
					 // memory stays valid and unchanged until an event marked
					 // later is done; bytes > 0.
	int (*put)(void *queue, void *segment, uint64_t offset, const void *from, uint64_t bytes);
	int (*get)(void *queue, void *segment, uint64_t offset, void *to, uint64_t bytes);
	int (*copy)(void *queue, void *to, uint64_t to_offset, void *from, uint64_t from_offset,
		    uint64_t bytes);
	// pattern_bytes: 1, 2, 4 or 8; offset and bytes are multiples of it.
	int (*fill)(void *queue, void *segment, uint64_t offset, uint64_t bytes,
		    const void *pattern, uint32_t pattern_bytes);
	// Creates an event that is done when all work enqueued before it is; NULL is an event that
	// is already done.
	int (*event_mark)(void *queue, void **event);
	// Makes the queue wait for an event of any device of this backend.  EUNSUPPORTED: the host
	// waits instead.
	int (*event_after)(void *queue, void *event);
	int (*event_done)(void *event);               // 1: done, 0: not yet, negative: the work it
						      // covers failed
	int (*event_wait)(void *event);
	int (*event_elapsed)(void *from, void *to,
			     uint64_t *nanoseconds); // of the same device, both done
	void (*event_free)(void *event);
	// Bit i: implementation i, best first, can run this op; 0: none can.  run must then accept
	// the op.
	uint64_t (*can)(uint32_t device, const struct yoke_op *);
	// Called for each step of a plan before any of its work is launched, to build kernels and
	// to derive data that run needs, for any number of runs.  The runs pass the same op except
	// for data known only at launch: segments and offsets of BUFFER views, bits of SCALAR views
	// (kinds stay the same), alias_mask, which is the same in all runs, and workspace; op,
	// views and map are at other addresses.  plan: a number shared by all steps of a plan and
	// never reused in a process; 0: the op belongs to no plan.  *handle is NULL before the call
	// and may stay NULL; *workspace, in bytes, is 0 before the call.  EUNSUPPORTED: the kernel
	// cannot be built after all; from now on the next implementation, or another device, runs
	// ops of this form.
	int (*prepare)(uint32_t device, const struct yoke_op *, uint32_t impl, uint64_t plan,
		       void **handle, uint64_t *workspace);
	// Runs an op with the handle from prepare; one run at a time per handle, on queues of its
	// device.  ENOMEM: nothing that overwrites an operand was enqueued.  The core frees memory
	// and retries once.
	int (*run)(void *queue, void *handle, const struct yoke_op *);
	// Frees a handle, none of whose runs is in progress.
	void (*release)(void *handle);
	// The implementation's name: static, of a-z, 0-9, _ and -, and the same in every process,
	// since tuning results, self-test results and quirks are stored by name.
	const char *(*impl_name)(uint32_t device, const struct yoke_op *, uint32_t impl);
	// Returns an extension table by name, or NULL: "telemetry", struct yoke_telemetry; "notes"
	// and "processors", struct yoke_notes; "limits", struct yoke_limits_ext; "occupancy",
	// struct yoke_occupancy_ext; "ranges", struct yoke_ranges_ext; "collectives", struct
	// yoke_collectives_ext.
	const void *(*ext)(const char *name);
	// Creates a read-only segment of existing memory, aligned to info.align; freeing the
	// segment does not free the memory.  EUNSUPPORTED: the core copies.
	int (*segment_wrap)(uint32_t device, void *memory, uint64_t bytes, void **segment);
	// Like copy, between segments of two devices of this backend, on a queue of either.
	// EUNSUPPORTED: the core copies through the host.
	int (*copy_between)(void *queue, uint32_t to_device, void *to, uint64_t to_offset,
			    uint32_t from_device, void *from, uint64_t from_offset, uint64_t bytes);
	// Recorded graphs of a queue's work for replay; a backend has all four functions, and copy
	// and fill, or none.  After graph_begin, run, copy and fill on that queue are recorded and
	// not executed; no other function is called with the queue until graph_end, which always
	// ends recording.  After an error of a call in between, the graph, if one is returned, is
	// freed without being run.  graph_run enqueues the whole graph, on a queue of the same
	// device, any number of times, one run at a time per graph.  Replays are identical:
	// segments, offsets, bits of SCALAR views and handles are the recorded ones and stay valid
	// until the last replay is done; the contents of the segments are those at the time of the
	// replay.  The recorded objects may be freed before the graph.  graph_free: none of the
	// graph's runs is in progress.
	int (*graph_begin)(void *queue);
	int (*graph_end)(void *queue, void **graph);
	int (*graph_run)(void *queue, void *graph);
	void (*graph_free)(void *graph);
};

// ---- extension tables ----

// Bits of `known` and `throttle` of a sample.
enum yoke_sample_known {
	YOKE_SAMPLE_UTIL = 1 << 0,
	YOKE_SAMPLE_MEM_UTIL = 1 << 1,
	YOKE_SAMPLE_MEM_USED = 1 << 2,
	YOKE_SAMPLE_MEM_TOTAL = 1 << 3,
	YOKE_SAMPLE_TEMP = 1 << 4,
	YOKE_SAMPLE_MEM_TEMP = 1 << 5,
	YOKE_SAMPLE_POWER = 1 << 6,
	YOKE_SAMPLE_POWER_LIMIT = 1 << 7,
	YOKE_SAMPLE_ENERGY = 1 << 8,
	YOKE_SAMPLE_CLOCK = 1 << 9,
	YOKE_SAMPLE_CLOCK_MAX = 1 << 10,
	YOKE_SAMPLE_MEM_CLOCK = 1 << 11,
	YOKE_SAMPLE_PCIE_TX = 1 << 12,
	YOKE_SAMPLE_PCIE_RX = 1 << 13,
	YOKE_SAMPLE_FAN = 1 << 14,
	YOKE_SAMPLE_THROTTLE = 1 << 15
};
enum yoke_throttle { YOKE_THROTTLE_POWER = 1, YOKE_THROTTLE_HEAT = 2, YOKE_THROTTLE_OTHER = 4 };

// State of a device at one moment, from its vendor's counters.  A member is valid if its bit of
// `known` is set.
struct yoke_sample {
	uint32_t size, known;
	double util, mem_util;            // 0 .. 1, means over an interval chosen by the vendor
	uint64_t mem_used, mem_total;     // bytes, of all processes
	double temp_c, mem_temp_c;
	double power_w, power_limit_w;
	double energy_j;                  // since a time chosen by the driver
	uint64_t clock_hz, clock_max_hz, mem_clock_hz;
	uint64_t pcie_tx, pcie_rx;        // bytes a second
	double fan;                       // 0 .. 1
	uint32_t throttle, reserved;      // why the clock is throttled: bits of enum yoke_throttle
};

struct yoke_telemetry {
	uint32_t size;
	// Fills at most sample->size bytes; from any thread, within 5 ms.  EUNSUPPORTED: no
	// counters are available.
	int (*sample)(uint32_t device, struct yoke_sample *sample);
};

// Maximum rates of a device, measured by dedicated kernels.  0: unknown.
struct yoke_limits {
	uint32_t size, reserved;
	double flops[YOKE_MAX_DTYPES]; // per second, by dtype: multiply-adds, counted as 2
	double copy;                   // bytes per second, read plus written, between blocks larger
				       // than caches
	double launch_ns, wait_ns;     // one of many empty launches; one launch including the wait
				       // for it
};

struct yoke_limits_ext {
	uint32_t size;
	// Fills at most limits->size bytes, within about a second.
	int (*measure)(uint32_t device, struct yoke_limits *limits);
};

// Occupancy of a multiprocessor by a kernel.  0, or share below 0: unknown.
struct yoke_occupancy {
	uint32_t size;
	uint32_t group, warp; // work items of a group, and of a warp
	uint32_t registers;   // per work item, 32 bits each
	uint64_t local_bytes; // shared memory per group
	double share;         // 0..1: resident warps over the maximum, as reported by the driver
};

struct yoke_occupancy_ext {
	uint32_t size;
	// The occupancy of the op's launch with the most work items, on the queue's device, with
	// the kernels that prepare would choose; fills at most to->size bytes.  EUNSUPPORTED:
	// unknown.
	int (*ask)(void *queue, const struct yoke_op *op, uint32_t impl, struct yoke_occupancy *to);
};

// Ranges of the vendor's profiler, per calling thread: they nest, and pop ends the innermost.
struct yoke_ranges_ext {
	uint32_t size;
	void (*push)(const char *name); // the name is copied
	void (*pop)(void);
};

// Collectives through the vendor's library, between ranks that each use their own device, all of
// this backend.
#define YOKE_COLLECTIVE_CODES(X) \
	X(SEND, 1)           /* in [count] -> rank peer, whose RECV has the same count */ \
	X(RECV, 2)           /* rank peer's SEND -> out [count] */ \
	X(ALL_GATHER, 3)     /* in [count] -> out [ranks, count] */ \
	X(BROADCAST, 4)      /* in [count] of rank peer -> out [count]; in is read there only */ \
	X(ALL_REDUCE, 5)     /* in [count] -> out [count], reduced in the library's order */ \
	X(REDUCE, 6)         /* as ALL_REDUCE, with the result on rank peer only */ \
	X(REDUCE_SCATTER, 7) /* in [ranks, count] -> out [count], row `rank` of the result */

enum yoke_collective_code {
#define X(name, number) YOKE_COLLECTIVE_##name = number,
	YOKE_COLLECTIVE_CODES(X)
#undef X
};

// One collective: contiguous elements in segments of the queue's device; out may be in if both have
// the same shape.
struct yoke_collective {
	uint32_t code, dtype, kind, peer; // kind: YOKE_REDUCE_SUM, MAX or MIN for reductions, else
					  // 0
	uint64_t count;                   // elements, 1 or more
	void *in, *out;                   // segments
	uint64_t in_offset, out_offset;   // bytes
};

#define YOKE_COLLECTIVES_ID 256

// No function waits for other ranks except `leave` without `abort`, which all ranks call.
struct yoke_collectives_ext {
	uint32_t size;
	// Creates the id by which the ranks of a group find each other, on one of them:
	// YOKE_COLLECTIVES_ID bytes.  EUNSUPPORTED: the library is missing or too old.
	int (*id)(void *to);
	// Begins to join a group with the id that one rank created and distributed; status reports
	// when all have joined.
	int (*join)(uint32_t device, const void *id, uint32_t rank, uint32_t ranks, void **comm);
	// 1: ready for run, and all submitted work is enqueued; 0: not yet; negative: failed, with
	// a message set.
	int (*status)(void *comm);
	// Enqueues n collectives as one operation: all ranks submit the same ones, and matching
	// SENDs and RECVs.  Nothing else is enqueued on the queue before status returns 1.
	int (*run)(void *queue, void *comm, uint32_t n, const struct yoke_collective *what);
	// Leaves the group and frees comm.  abort: work in progress ends at once, with undefined
	// results; without abort no work is in progress.
	void (*leave)(void *comm, int abort);
};

struct yoke_notes {
	uint32_t size;
	// "notes": lines for `yoke doctor`, one per library that the backend loads: version, or why
	// it is missing.  "processors": lines for `yoke info` on where threads run.  NULL: the end.
	const char *(*note)(uint32_t index);
};

// The mandatory part ends with release: a shorter table is rejected.
#define YOKE_BACKEND_MANDATORY offsetof(struct yoke_backend, impl_name)

// The only symbol of a plugin, called before anything else.  Checks core_abi's MAJOR, keeps the
// host table (valid forever) and returns its own (static) table.  Returns 0 or a negative error.
typedef int yoke_plugin_init_fn(uint32_t core_abi, const struct yoke_host *host,
				const struct yoke_backend **backend);
yoke_plugin_init_fn yoke_plugin_init;

#ifdef __cplusplus
}
#endif
#endif
