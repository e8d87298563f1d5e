// SPDX-License-Identifier: Apache-2.0
// yoke: train and run neural networks on whatever compute a machine has.
//
// An operation on tensors checks shapes and dtypes at once and is recorded; nothing runs until a
// value is read or yoke_eval is called.  Then what that needs is planned, launched, and the plan
// is kept, so that the next step of the same structure plans nothing.
//
// What an evaluation computes: its roots, which are new versions of variables, kept values (yoke_keep)
// and what yoke_eval or yoke_read is given; and what they need.  The rest stays pending.  Roots have
// their bytes from then on.  What was computed on the way has not: it is computed again, with the same
// bits, when it is read or differentiated later, which yoke_stats counts and a warning says once.  That
// is ERELEASED when it needs a variable's version that an assignment has overwritten since.  So one plan
// does a step in this order, and it takes the least memory:
//
//	loss = yoke_mse(model(x), y);
//	yoke_grad(loss, n, p, g);                      // before the loss is read
//	for (int i = 0; i < n; i++)
//		yoke_assign(p[i], yoke_sub(p[i], yoke_mul(lr, g[i])));
//	yoke_read(loss, &value, sizeof value);         // computes all of it
//
// How values were computed is remembered while there are handles of them, and forgotten where it grows
// long: yoke_stop_grad what is carried from step to step.
//
// The time of an evaluation does not change gradients.  A variable that was assigned a value means that value, before and
// after its evaluation, so that a gradient goes on through the assignment.  This ends when the outermost scope in which
// the variable was assigned closes: for a gradient recorded later the variable is a leaf.  So a training step in a scope
// of its own depends on nothing but the values of its variables.  While that scope is open, or without one, a gradient that
// would go through versions which were overwritten is right or ERELEASED, and a loop keeps the history of a few steps.
//
// Where a function differs from PyTorch's of that name, it says so.  Everywhere: dtypes are not
// promoted, the operands of a call have one; sums and products of integers keep their dtype, and
// wrap; where a call takes one axis, a tensor of rank 0 has none to give.
//
// Conventions.  Functions return 0 or a negative YOKE_E* (yoke-plugin.h), or NULL for a handle;
// yoke_error() says why.  NULL given as an operand, an object (a scaler, a module, a group) or a list means an earlier
// error: the call fails with that error's code, or returns NULL again, so a chain of calls is checked once at its end.
// Where there was no error it is EINVAL.  A declaration says where NULL is allowed.  An operation's result belongs to the
// innermost open scope; a handle is otherwise the caller's, who gives it to yoke_free.  Sizes are bytes, dims are
// elements, row major, the last axis contiguous.  Axes count from 0, or from the end as -1, -2, ..
// A set of axes is a mask, bit k for axis k: YOKE_AXIS(1) | YOKE_AXIS(2), or YOKE_ALL.
//
// Every struct that a call takes or fills begins with its size, which the caller sets:
//
//	struct yoke_stats s = { .size = sizeof s };
//
// It grows at its end in later versions; a function uses what both sides know of it.  Members beyond the
// caller's size have their defaults, tensors YOKE_NONE and numbers 0.  EINVAL for a size that no version has: less than
// two words (of a size_t), not a multiple of a word, or above 64 KiB.
#ifndef YOKE_H
#define YOKE_H

#include <yoke-plugin.h> // dtypes and error numbers

#ifdef __cplusplus
extern "C" {
#endif

#if defined __GNUC__
#define YOKE_API __attribute__((visibility("default")))
#else
#define YOKE_API
#endif

typedef struct yoke_context yoke_context;
typedef struct yoke_tensor yoke_tensor;
typedef struct yoke_scope yoke_scope;

// An optional operand that is absent.
#define YOKE_NONE ((yoke_tensor *)(intptr_t)-1)

#define YOKE_AXIS(k) (1u << (k))
#define YOKE_ALL 0xffu
#define YOKE_KEEP 0x100u // or'ed to a mask of axes: reduced axes stay, with 1 element

// ---- library, errors ----

// "0.1.0"
YOKE_API const char *yoke_version(void);
// This thread's first error since the last yoke_error_clear, or "".
YOKE_API const char *yoke_error(void);
// Its number, 0 when there is none.
YOKE_API int yoke_error_code(void);
YOKE_API void yoke_error_clear(void);
// Name of an error or a dtype: "YOKE_ESHAPE", "f32"; "?" when there is none of that number.
YOKE_API const char *yoke_error_name(int code);
YOKE_API const char *yoke_dtype_name(int dtype);
// Bytes of one element, 0 for an unknown dtype.
YOKE_API size_t yoke_dtype_size(int dtype);
// Sets a setting ("plan.max") before it is first used; wins over the environment.  EINVAL: it is no value
// of that setting, or out of its range; ENOENT: there is no such setting.  Those of a plugin
// ("opencl.preset") load it, from the folders that are set by then.
YOKE_API int yoke_setting_set(const char *name, const char *value);
// The text of a setting as it is in force, in the manner of snprintf: at most cap bytes with the closing NUL, and the
// length without it.  ENOENT: there is no such setting.
YOKE_API int yoke_setting_get(const char *name, char *to, size_t cap);
// With the setting trace.ops, where errors say that an operation was recorded: a language that calls yoke gives a place
// of its own, "train.py:12 in step", which is copied; NULL: the calling functions, as without it.  Called by each call that
// records, on its thread; it must not call yoke.  NULL: nobody.
YOKE_API void yoke_site_hook(const char *(*where)(void));

// ---- contexts ----

// A context on a device chosen by YOKE_BACKEND and YOKE_DEVICE, or by `backend` ("cpu", "opencl,cpu")
// when that is not NULL.  NULL with ENODEV when it cannot be used.  Used by one thread at a time
// (else EBUSY), and by no process that is forked off later (EFORK).  Each thread makes one on first
// use if none was set with yoke_use.
YOKE_API yoke_context *yoke_context_new(const char *backend);
// On the device of a name, as YOKE_DEVICE takes them: "opencl:1", "cpu:0", "pci:0000:01:00.0".
YOKE_API yoke_context *yoke_context_new_on(const char *device);
// Device i of the backends that YOKE_BACKEND names, best first, as yoke_context_new_on takes it; NULL, without an error,
// when there are no more.
YOKE_API const char *yoke_device_name(int i);
// yoke_context_new for asking what memory work takes, without doing it: all is recorded, planned and launched as in a
// run and counted to the byte in yoke_stats, but no memory of the device is taken and nothing is computed, so
// models may be asked for that no machine here could hold.  What is read is zeros.  A limit that is set
// (YOKE_MEMORY) counts: what a run would not find, ENOMEM says here.  Memory given to yoke_wrap is counted as a
// copy.  Its dry devices are those of all dry contexts, as are their peaks.
YOKE_API yoke_context *yoke_context_dry(const char *backend);
// Frees it with everything recorded in it.  Using a handle of it is ECONTEXT from then on.  NULL is fine.
YOKE_API void yoke_context_free(yoke_context *);
// Makes it the calling thread's current one; returns the former (NULL: none).
YOKE_API yoke_context *yoke_use(yoke_context *);
// Seed and step of all random numbers recorded from now on; one evaluation may have several.  Neither is part of
// the plan.  Behind a change calls in a scope are counted anew, as behind a new outermost scope.
YOKE_API int yoke_random_set(uint64_t seed, int64_t step);

// ---- scopes ----

// Opens a scope inside the innermost one.  Its name joins the path ("step/layer3/attn") that errors,
// plans and random numbers use; NULL: no name.
YOKE_API yoke_scope *yoke_scope_begin(const char *name);
// Closes it, a scope of the current context: frees the handles it owns, except kept ones.  0, or the code
// of the first error of this thread that is not cleared.  Scopes close in reverse order, each once (else
// EINVAL).
YOKE_API int yoke_scope_end(yoke_scope *);
// Moves a handle out of its scope to the caller and makes its value a root of the next evaluation.
// Returns its argument, or NULL after an error.
YOKE_API yoke_tensor *yoke_keep(yoke_tensor *);
// Moves a handle to the scope around its own (or to the caller, when there is none), so that it outlives
// its own scope without becoming a root: the result of a layer.  Returns its argument, or NULL after an error.
YOKE_API yoke_tensor *yoke_lift(yoke_tensor *);
// Mixed precision: from here to the end of the innermost open scope, or for good where none is open, calls cast
// their operands, to dtype, f16 or bf16, or as below; YOKE_DTYPE_NONE: no more.  Contractions (matmul, linear,
// attention's q, k, v) take that dtype and give it; exp, log, log1p, expm1, pow, sums and other reductions,
// running totals, statistics and the losses made of them take and give f32; other maps, concat and updates of a
// part take the dtype that holds all of their operands, f32 for f16 beside bf16.  softmax, norms, cross_entropy
// and rope compute in f32 what they are given, without a copy.  Operands of f64, integers and bool stay as they
// are, as does what only moves elements.  Numbers take the dtype that the tensors beside them get.  Casts are
// ordinary operations: the gradient of an f32 variable is f32, and however often a variable is cast, an
// evaluation does it once.  An f32 variable saturates where it is cast to f16: |x| above 65504 becomes 65504, and
// its gradient is multiplied by 65504 / |x|.
// keep_f32, or NULL: comma-separated patterns of scopes ("norm*,head"), each as fnmatch has them for one name of
// the path, or for several with / between them; in scopes that match, and in those inside, all of the above
// happens in f32.  EINVAL, of the scope's end: a pattern named no scope in which something was recorded.
YOKE_API int yoke_autocast(int dtype, const char *keep_f32);
// Frees a handle that the caller owns.  NULL and YOKE_NONE are fine.  A handle used or freed once more, or
// after its scope has ended, is EINVAL with what it was, even where its memory serves another tensor.
// From a thread of which the context is not the current one, and while the context is busy, it is
// remembered and done by the next call on that context, so that garbage collectors may call it.
YOKE_API void yoke_free(yoke_tensor *);

// ---- leaves ----

// A variable filled with zeros, owned by the caller.  The name is for messages; NULL: none.
YOKE_API yoke_tensor *yoke_variable(const char *name, int dtype, int rank, const int64_t *dims);
// A new version of a variable from host memory (bytes must be its size); copied before it returns.
YOKE_API int yoke_put(yoke_tensor *variable, const void *data, size_t bytes);
// A new version of a variable: value has its shape and dtype, nothing is cast.  Operations recorded
// before this go on reading the old version.  The evaluation may write the new version over the old one, unless a
// gradient through this assignment needs the old bytes.  Gradients through operations that yoke_grad recorded do not
// count: such a gradient, and one through another variable, is ERELEASED if the old bytes are gone.
YOKE_API int yoke_assign(yoke_tensor *variable, yoke_tensor *value);
// Moves n evaluated variables of the current context into one block of memory, in this order, each at a
// multiple of 256 bytes, with zeros between.  Handles, and what was recorded with them, go on as before, and
// each variable is freed by itself.  It keeps its place until it is freed or packed anew: its new versions
// are written there, by yoke_put behind what reads the old version; what cannot be written in place is copied
// there, which yoke_stats counts.  Both blocks are held until the copies are done.  EINVAL: a variable has a
// pending value, or is given twice; ERANGE: they are larger together than the device's largest allocation.
YOKE_API int yoke_pack(int n, yoke_tensor *const *variables);
// Where a variable of the current context lies from now on, this version and those to come: on the context's
// device (as a new one does), or in the host's memory, which the device then need not have.  Operations on
// lists of tensors (the optimizers' steps) of which one lies on the host run on the CPU, and what else they read
// is brought there; any other operation has it brought to the device while it needs it.  Waits for the variable's
// value.  On the CPU all is the host's already.  EINVAL: no variable, or one in a pack.
enum { YOKE_ON_DEVICE, YOKE_ON_HOST };
YOKE_API int yoke_place(yoke_tensor *variable, int where);
// A value from host memory, copied before it returns.
YOKE_API yoke_tensor *yoke_from(int dtype, int rank, const int64_t *dims, const void *data);
// The same of memory that stays as it is, and is not freed, until free_fn(arg) is called (NULL: never):
// used where it lies when the device can and it is aligned as the device wants (on the CPU as its elements are),
// else copied.  free_fn is called once, inside a yoke_ call of the thread that uses the context (this
// one when the memory is copied or NULL is returned, yoke_context_free at the latest), and must not
// call yoke itself.  The memory is never written.
YOKE_API yoke_tensor *yoke_wrap(int dtype, int rank, const int64_t *dims, void *data,
				void (*free_fn)(void *), void *arg);
// A number on the host, read when the step is evaluated: changing it costs no new plan.  It takes the dtype of the other operand
// and has no shape.  An evaluation that uses it as an integer or bool is ERANGE if that dtype cannot represent it.
YOKE_API yoke_tensor *yoke_scalar(double value);
YOKE_API int yoke_scalar_set(yoke_tensor *scalar, double value);
// A literal: part of the plan.  It takes the dtype of the other operand; ERANGE when that is an integer or
// bool and has no such number.
YOKE_API yoke_tensor *yoke_const(double value);
// All elements equal to a literal; ERANGE as for yoke_const.
YOKE_API yoke_tensor *yoke_full(int dtype, int rank, const int64_t *dims, double value);
// 0, 1, 2, .. along an axis.
YOKE_API yoke_tensor *yoke_iota(int dtype, int rank, const int64_t *dims, int axis);
// Counter-based random numbers (Salmon et al. 2011, Philox 4x32-10); the key is the context's seed
// xor a hash of the scope's path and the number of the call in it, the counter index and step.
// Bits are i32; uniform is [0, 1) in steps of 2^-24; normal is Box and Muller's.
YOKE_API yoke_tensor *yoke_rand_bits(int rank, const int64_t *dims);
YOKE_API yoke_tensor *yoke_uniform(int dtype, int rank, const int64_t *dims);
YOKE_API yoke_tensor *yoke_normal(int dtype, int rank, const int64_t *dims);

// ---- shapes ----

YOKE_API int yoke_rank(const yoke_tensor *);
YOKE_API int yoke_dtype(const yoke_tensor *);
// Axis as everywhere; negative YOKE_E* when out of range.
YOKE_API int64_t yoke_dim(const yoke_tensor *, int axis);
YOKE_API int64_t yoke_count(const yoke_tensor *); // elements
YOKE_API size_t yoke_bytes(const yoke_tensor *);
// 1 for a variable, which yoke_put and yoke_assign take; 0 for other tensors.
YOKE_API int yoke_is_variable(const yoke_tensor *);
// The device of a tensor's context, as yoke_context_new_on takes it: "cpu:0".  NULL after an error.
YOKE_API const char *yoke_device_of(const yoke_tensor *);

// ---- elementwise (map) ----
// Operands have one dtype and broadcast as in NumPy.  Results have the operands' dtype,
// comparisons bool.

YOKE_API yoke_tensor *yoke_add(yoke_tensor *a, yoke_tensor *b);
YOKE_API yoke_tensor *yoke_sub(yoke_tensor *a, yoke_tensor *b);
YOKE_API yoke_tensor *yoke_mul(yoke_tensor *a, yoke_tensor *b);
// Integers: truncates, x/0 = 0 (PyTorch's gives floating point).
YOKE_API yoke_tensor *yoke_div(yoke_tensor *a, yoke_tensor *b);
// What the truncated quotient leaves, exactly, with the sign of a, as C's % and fmod (NumPy's mod: of b).
// Integers: x mod 0 = 0.  The gradient by b is minus that quotient.
YOKE_API yoke_tensor *yoke_mod(yoke_tensor *a, yoke_tensor *b);
// Floating point.  The gradient by a is 0 where b is 0.  The gradient by b is y log a; for a < 0 it is 0 (JAX's and PyTorch's:
// NaN); at a = 0 it is 0, or -inf for b < 0.
YOKE_API yoke_tensor *yoke_pow(yoke_tensor *a, yoke_tensor *b);
// NaN if either is.  Equal operands get half of the gradient each, and where one is NaN neither gets any
// (PyTorch's: both all of it).
YOKE_API yoke_tensor *yoke_min(yoke_tensor *a, yoke_tensor *b);
YOKE_API yoke_tensor *yoke_max(yoke_tensor *a, yoke_tensor *b);
YOKE_API yoke_tensor *yoke_neg(yoke_tensor *x);
YOKE_API yoke_tensor *yoke_abs(yoke_tensor *x); // its gradient at 0 is 0 (JAX's: 1)
YOKE_API yoke_tensor *yoke_sign(yoke_tensor *x); // of NaN: NaN (PyTorch's: 0)
YOKE_API yoke_tensor *yoke_floor(yoke_tensor *x);
YOKE_API yoke_tensor *yoke_round(yoke_tensor *x); // half to even
YOKE_API yoke_tensor *yoke_ceil(yoke_tensor *x);
YOKE_API yoke_tensor *yoke_exp(yoke_tensor *x);
YOKE_API yoke_tensor *yoke_log(yoke_tensor *x);
YOKE_API yoke_tensor *yoke_log1p(yoke_tensor *x);
YOKE_API yoke_tensor *yoke_expm1(yoke_tensor *x);
YOKE_API yoke_tensor *yoke_sqrt(yoke_tensor *x);
YOKE_API yoke_tensor *yoke_rsqrt(yoke_tensor *x);
YOKE_API yoke_tensor *yoke_recip(yoke_tensor *x);
YOKE_API yoke_tensor *yoke_square(yoke_tensor *x);
YOKE_API yoke_tensor *yoke_sin(yoke_tensor *x);
YOKE_API yoke_tensor *yoke_cos(yoke_tensor *x);
YOKE_API yoke_tensor *yoke_tanh(yoke_tensor *x);
YOKE_API yoke_tensor *yoke_sigmoid(yoke_tensor *x);
YOKE_API yoke_tensor *yoke_erf(yoke_tensor *x);
YOKE_API yoke_tensor *yoke_eq(yoke_tensor *a, yoke_tensor *b);
YOKE_API yoke_tensor *yoke_ne(yoke_tensor *a, yoke_tensor *b);
YOKE_API yoke_tensor *yoke_lt(yoke_tensor *a, yoke_tensor *b);
YOKE_API yoke_tensor *yoke_le(yoke_tensor *a, yoke_tensor *b);
YOKE_API yoke_tensor *yoke_gt(yoke_tensor *a, yoke_tensor *b);
YOKE_API yoke_tensor *yoke_ge(yoke_tensor *a, yoke_tensor *b);
// Of bool logical, of integers bit by bit.
YOKE_API yoke_tensor *yoke_and(yoke_tensor *a, yoke_tensor *b);
YOKE_API yoke_tensor *yoke_or(yoke_tensor *a, yoke_tensor *b);
YOKE_API yoke_tensor *yoke_xor(yoke_tensor *a, yoke_tensor *b);
YOKE_API yoke_tensor *yoke_not(yoke_tensor *x);
// Integers: a moved by b bits; shr copies the sign.  By a b outside 0 .. bits - 1 all bits leave: shl gives
// 0, shr 0 or, of a negative a, -1.
YOKE_API yoke_tensor *yoke_shl(yoke_tensor *a, yoke_tensor *b);
YOKE_API yoke_tensor *yoke_shr(yoke_tensor *a, yoke_tensor *b);
YOKE_API yoke_tensor *yoke_isfinite(yoke_tensor *x);
YOKE_API yoke_tensor *yoke_select(yoke_tensor *c, yoke_tensor *a, yoke_tensor *b); // c bool: c ? a : b
// To an integer: truncates, saturates, NaN becomes 0.  To f16 and bf16: nearest even.
YOKE_API yoke_tensor *yoke_cast(yoke_tensor *x, int dtype);
YOKE_API yoke_tensor *yoke_relu(yoke_tensor *x); // its gradient at 0 is 0
// The following are computed in f32 for half precision, their gradients too, and rounded once.
YOKE_API yoke_tensor *yoke_gelu(yoke_tensor *x);      // x/2 (1 + erf(x / sqrt 2))
YOKE_API yoke_tensor *yoke_gelu_tanh(yoke_tensor *x); // x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
YOKE_API yoke_tensor *yoke_silu(yoke_tensor *x);      // x sigmoid(x)
YOKE_API yoke_tensor *yoke_swiglu(yoke_tensor *gate, yoke_tensor *x); // silu(gate) x: Shazeer 2020
// x [u >= p] / (1 - p), u uniform, p in [0, 1); equal to x if p is 0.  Always on: evaluation is
// p 0, which draws nothing and leaves the numbers that others draw as they are.
YOKE_API yoke_tensor *yoke_dropout(yoke_tensor *x, double p);
// No less than lo, no more than hi, either may be YOKE_NONE; hi where they cross.  NaN stays.  Of
// the gradient, x gets half where it equals a bound (PyTorch's: all).
YOKE_API yoke_tensor *yoke_clamp(yoke_tensor *x, yoke_tensor *lo, yoke_tensor *hi);
// x itself, floating point; its evaluation fails with ERANGE, naming the scope, when an element is
// infinite or NaN.  As after every failed launch, what it should have computed is lost, new versions
// of variables included: it tells where numbers go wrong, it does not guard a training step.
YOKE_API yoke_tensor *yoke_check_finite(yoke_tensor *x);
// x itself; its gradient is 0.
YOKE_API yoke_tensor *yoke_stop_grad(yoke_tensor *x);

// ---- reductions ----
// Of numbers; cast bool first.  EINVAL for bits of axes that are neither an axis nor YOKE_KEEP.

YOKE_API yoke_tensor *yoke_sum(yoke_tensor *x, unsigned axes);
YOKE_API yoke_tensor *yoke_mean(yoke_tensor *x, unsigned axes);
YOKE_API yoke_tensor *yoke_prod(yoke_tensor *x, unsigned axes);
// NaN if one is, and then no element gets a gradient (PyTorch's: NaN); equal ones share it.
YOKE_API yoke_tensor *yoke_reduce_max(yoke_tensor *x, unsigned axes);
YOKE_API yoke_tensor *yoke_reduce_min(yoke_tensor *x, unsigned axes);
// i64 index of the first largest (smallest) along an axis; NaN counts as largest (smallest).  Of an
// empty axis there is none: ESHAPE, as for reduce_max and reduce_min.
YOKE_API yoke_tensor *yoke_argmax(yoke_tensor *x, int axis);
YOKE_API yoke_tensor *yoke_argmin(yoke_tensor *x, int axis);

// Is any, are all of the elements true (bool)?  Of none: false, true.
YOKE_API yoke_tensor *yoke_any(yoke_tensor *x, unsigned axes);
YOKE_API yoke_tensor *yoke_all(yoke_tensor *x, unsigned axes);
// Running totals along an axis, from its end with reverse; the element itself is included.  Floating
// point accumulates in f64 on the CPU, integers wrap.
YOKE_API yoke_tensor *yoke_cumsum(yoke_tensor *x, int axis, int reverse);
YOKE_API yoke_tensor *yoke_cumprod(yoke_tensor *x, int axis, int reverse);

// ---- statistics ----
// Of floating point, computed in f32 at least.

// sum (x - mean)^2 / (n - correction), in two passes; correction 1 is Bessel's.  NaN or infinite where
// n is not above it.  The gradient of std is 0 where it is 0.
YOKE_API yoke_tensor *yoke_var(yoke_tensor *x, unsigned axes, double correction);
YOKE_API yoke_tensor *yoke_std(yoke_tensor *x, unsigned axes, double correction);
// x [..,V,N]: N observations of V variables -> [..,V,V].  corr is Pearson's, within -1 .. 1, NaN for a
// variable that does not vary.
YOKE_API yoke_tensor *yoke_cov(yoke_tensor *x, double correction);
YOKE_API yoke_tensor *yoke_corr(yoke_tensor *x);
// (sum |x|^p)^(1/p); infinite p: the largest or least |x|; p 0: how many are not 0.  The gradient is 0 where the norm is (JAX's
// and PyTorch's: NaN), with p < 0 wherever an element is 0, and by elements that are 0 (JAX's: infinite for 0 < p < 1).
YOKE_API yoke_tensor *yoke_norm(yoke_tensor *x, double p, unsigned axes);
// The value below which a part q in [0, 1] lies, with straight lines between the neighbours (Hyndman
// and Fan 1996, definition 7).  q: a number, or [Q], which gives [Q,..].  NaN where an element is.  ERANGE
// for a q outside, by this call when it is a literal, else by the evaluation.
YOKE_API yoke_tensor *yoke_quantile(yoke_tensor *x, yoke_tensor *q, int axis);
// x [M,C], M observations of C channels, and their weights [M], not negative, of x's dtype, or YOKE_NONE: the weights' sum,
// the means, the sums of products of deviations from them, and the least and greatest numbers, in one pass
// over x.  Observations of weight 0 are not read.  Covariance is square / (weight - 1).
struct yoke_moments {
	size_t size;
	yoke_tensor *weight, *mean;     // f64 [], [C]
	yoke_tensor *square; // f64 [C,C], with `diagonal` [C]; within 1e-12 sqrt(square_ii square_kk), summed in f64
	yoke_tensor *least, *greatest;  // [C], of x's dtype
};
// Fills what is recorded, in the innermost scope.  After an error all are NULL.
YOKE_API int yoke_moments(yoke_tensor *x, yoke_tensor *weight, int diagonal, struct yoke_moments *to);
// How many elements lie in each of `bins` parts of lo .. hi of equal width, i64 [bins].  A part holds its
// lower end, the last also hi; what is outside, NaN too, counts nowhere.  Any number type.
YOKE_API yoke_tensor *yoke_histogram(yoke_tensor *x, int64_t bins, double lo, double hi);

// ---- contractions ----

#define YOKE_TA 1u // a is [..,K,M]
#define YOKE_TB 2u // b is [..,N,K]
// A row of the result has the same bits however many rows and matrices it is computed with, and wherever
// it stands; slower for few rows.  Of a NaN that it is one.
#define YOKE_BY_ROW 4u
// a [..,M,K], b [..,K,N] -> [..,M,N]; leading axes broadcast; f32 sums for f16, bf16 and f32.  No vectors:
// both have at least two axes.
YOKE_API yoke_tensor *yoke_matmul(yoke_tensor *a, yoke_tensor *b, unsigned flags);
// The same in a dtype of its own: that of a and b, or f32 where they are f16 or bf16, rounded once, or i32 where they
// are i8 or u8, exact up to 2^31 and wrapped beyond.  Gradients are computed in f32 and rounded to the operands' dtype.
YOKE_API yoke_tensor *yoke_matmul_to(yoke_tensor *a, yoke_tensor *b, unsigned flags, int dtype);
// x [..,K], w [N,K], b [N] or YOKE_NONE -> [..,N]: x w' + b.  In half precision the product is rounded
// before b is added.
YOKE_API yoke_tensor *yoke_linear(yoke_tensor *x, yoke_tensor *w, yoke_tensor *b);

// ---- linear algebra ----
// Of matrices [..,n,n] of f32 or f64, computed in f64 and rounded once; leading axes are a batch.  Other devices than
// the CPU have no kernels for these and use its (yoke_fallbacks).

// The eigenvalues [..,n] of a symmetric matrix, of which the lower half is read, ascending; unless `vectors` is NULL,
// it gets unit vectors [..,n,n], one a column, of each the element of largest modulus positive.  ||A V - V L|| / ||A|| and
// ||V'V - 1|| are below 50 n 2^-53 for f64.  The gradient is that of a symmetric matrix; of eigenvalues that are equal,
// closer than 4 n times the dtype's precision times the largest modulus, it has the parts that do not depend on the choice of their
// vectors, so it is finite (PyTorch's: infinite).  NaN where the matrix is not finite.
YOKE_API yoke_tensor *yoke_eigh(yoke_tensor *a, yoke_tensor **vectors);
// L, lower, with L L' = a symmetric a, of which the lower half is read.  Its evaluation fails with ERANGE, naming matrix and
// row, when a pivot is not positive.  The gradient is that of a symmetric matrix.
YOKE_API yoke_tensor *yoke_cholesky(yoke_tensor *a);
#define YOKE_TRANSPOSED 1u // t' x = b
#define YOKE_UPPER 2u      // t is upper; else lower.  The other half is not read
#define YOKE_UNIT 4u       // t has 1 on its diagonal, which is not read
// x [..,n,k] with t x = b for a triangular t [..,n,n] and b [..,n,k]; leading axes broadcast.  A diagonal with 0 gives
// what a division by it does.
YOKE_API yoke_tensor *yoke_solve_triangular(yoke_tensor *t, yoke_tensor *b, unsigned flags);

// ---- moves ----
// reshape, permute, slice and broadcast_to copy nothing, bitcast seldom.

// One dim may be -1: what is left.
YOKE_API yoke_tensor *yoke_reshape(yoke_tensor *x, int rank, const int64_t *dims);
// The same bytes as elements of another dtype, any but bool, in little-endian order.  Where sizes differ the
// last axis has more or fewer elements: f32 [..,N] gives u8 [..,4N], which gives f32 [..,N].  Bytes are copied
// first where they do not lie one behind another along that axis, or not at multiples of the new size.  It
// has no gradient: EUNSUPPORTED where one would have to go through.
YOKE_API yoke_tensor *yoke_bitcast(yoke_tensor *x, int dtype);
// Axis k of the result is axis order[k] of x.
YOKE_API yoke_tensor *yoke_permute(yoke_tensor *x, const int *order);
YOKE_API yoke_tensor *yoke_broadcast_to(yoke_tensor *x, int rank, const int64_t *dims);
// Elements start, start + step, .. before stop along one axis; negative counts from the end.
YOKE_API yoke_tensor *yoke_slice(yoke_tensor *x, int axis, int64_t start, int64_t stop, int64_t step);
// lo and hi elements of value added before and behind, for each axis.
YOKE_API yoke_tensor *yoke_pad(yoke_tensor *x, const int64_t *lo, const int64_t *hi, double value);
YOKE_API yoke_tensor *yoke_concat(int n, yoke_tensor *const *x, int axis);
YOKE_API yoke_tensor *yoke_flip(yoke_tensor *x, unsigned axes);
// x with v in place of x[starts .. starts + dims of v].
YOKE_API yoke_tensor *yoke_slice_update(yoke_tensor *x, const int64_t *starts, yoke_tensor *v);
// The same with starts that are values: one for each axis of x, an i64 of rank 0 or a host scalar;
// YOKE_NONE is 0.  Sizes are part of the plan, starts are not.  ERANGE where the part leaves x, by
// an evaluation without effect when the start is on the host; a start on the device is seen as
// the operation runs.
YOKE_API yoke_tensor *yoke_slice_at(yoke_tensor *x, yoke_tensor *const *starts, const int64_t *sizes);
YOKE_API yoke_tensor *yoke_slice_update_at(yoke_tensor *x, yoke_tensor *const *starts, yoke_tensor *v);
// Assigns the variable itself with v at starts: in place where nothing else holds the old version.
YOKE_API int yoke_assign_at(yoke_tensor *variable, yoke_tensor *const *starts, yoke_tensor *v);
// Rows of an axis: x [..,N,..], idx [I..] i32 or i64 -> [..,I..,..].  ERANGE for an index outside.
YOKE_API yoke_tensor *yoke_gather(yoke_tensor *x, yoke_tensor *idx, int axis);
// x [N,R..] with v [I..,R..] added at rows idx [I..]; in a fixed order.
YOKE_API yoke_tensor *yoke_scatter_add(yoke_tensor *x, yoke_tensor *idx, yoke_tensor *v);
// Along an axis: x [..,N,..], idx [..,I,..], which broadcasts to x along the others ->
// y[..,i,..] = x[..,idx[..,i,..],..].  ERANGE for an index outside.
YOKE_API yoke_tensor *yoke_take_along(yoke_tensor *x, yoke_tensor *idx, int axis);
// x with v [..,I,..] added at idx [..,I,..] along an axis; in a fixed order.
YOKE_API yoke_tensor *yoke_scatter_add_along(yoke_tensor *x, yoke_tensor *idx, yoke_tensor *v,
					     int axis);
// Sorted along an axis; stable, -0 equals 0, NaN last in either direction (PyTorch's: first when
// descending).  Unless `indices` is NULL, it gets where each element was, i64.
YOKE_API yoke_tensor *yoke_sort(yoke_tensor *x, int axis, int descending, yoke_tensor **indices);
// The k first of them: the largest in descending order, or the smallest in ascending order; NaN only where
// numbers do not suffice.
YOKE_API yoke_tensor *yoke_topk(yoke_tensor *x, int64_t k, int axis, int largest,
				yoke_tensor **indices);
// Of x, f32, of fewer than 2^31 elements, the k of largest modulus, as they lie row major: their values [k], and in
// *places where they are, i32 [k], ascending; of equal ones the first, NaN above all.  *rest: x with 0 in those places.
// carried: YOKE_NONE, or of x's shape: what is added to x first, as the rest of the time before is to gradients that
// are sent in part (Stich et al. 2018).  places and rest may be NULL.
YOKE_API yoke_tensor *yoke_largest(yoke_tensor *x, yoke_tensor *carried, int64_t k, yoke_tensor **places,
				   yoke_tensor **rest);
// A copy whose elements lie row major.
YOKE_API yoke_tensor *yoke_contiguous(yoke_tensor *x);

// ---- networks ----

// Over one axis; -1 is the last.  logsumexp loses it; where its result is infinite, the elements that are equal to the result
// share its gradient (JAX's: NaN).
YOKE_API yoke_tensor *yoke_softmax(yoke_tensor *x, int axis);
YOKE_API yoke_tensor *yoke_log_softmax(yoke_tensor *x, int axis);
YOKE_API yoke_tensor *yoke_logsumexp(yoke_tensor *x, int axis);
// x [..,C], w and b [C] or YOKE_NONE, of the dtype of x, or f32 beside half precision.  Ba et al. 2016;
// Zhang and Sennrich 2019.
YOKE_API yoke_tensor *yoke_layer_norm(yoke_tensor *x, yoke_tensor *w, yoke_tensor *b, double eps);
YOKE_API yoke_tensor *yoke_rms_norm(yoke_tensor *x, yoke_tensor *w, double eps);
// x [B,C,..] by mean and variance (biased) of each channel over all the rest, which mean and var are given, [C], f32 of half
// precision, unless they are NULL; w and b [C] or YOKE_NONE, as above.  Ioffe and Szegedy 2015.
YOKE_API yoke_tensor *yoke_batch_norm(yoke_tensor *x, yoke_tensor *w, yoke_tensor *b, double eps, yoke_tensor **mean,
				      yoke_tensor **var);
// x [B,T,H,D], cosine and sine [T,D/2]: elements k and k + D/2 of a head turned by the angle of column k,
// (x0 cos - x1 sin, x1 cos + x0 sin).  The tables may be f32 beside half precision.  Su et al. 2021, with
// halves in place of neighbours.
YOKE_API yoke_tensor *yoke_rope(yoke_tensor *x, yoke_tensor *cosine, yoke_tensor *sine);
// w [N,C], ids [I..] i32 or i64 -> [I..,C].  ERANGE for an id outside.
YOKE_API yoke_tensor *yoke_embedding(yoke_tensor *w, yoke_tensor *ids);
// q [B,T,H,D], k [B,S,G,D], v [B,S,G,E], G divides H, mask [B|1,H|1,T|1,S|1] or YOKE_NONE ->
// [B,T,H,E]: softmax(scale q k' + mask) v; the narrower of D and E is padded.  causal: query t sees keys
// up to t + S - T, so that the last query sees all (PyTorch's counts from the first).  A query that sees no
// key gives 0.  Keys that a query does not see, by `causal` or a mask that is false or -inf, and keys whose weight is 0 add
// nothing to its result and gradients, even where k or v is NaN there (PyTorch's: NaN).  The mask has the dtype of q, or is
// f32 beside half precision, or is bool: which keys are seen.  Its gradient is computed in parts, with [B,H,T,S] in memory.
// scale 0 means 1/sqrt(D).
YOKE_API yoke_tensor *yoke_attention(yoke_tensor *q, yoke_tensor *k, yoke_tensor *v,
				     yoke_tensor *mask, int causal, double scale, double dropout);
// The same where only the first `keys` of the S keys are there, an i64 of rank 0 or a host scalar, or
// one number for each row of the batch, i64 [B]: a cache that fills, of sequences of one length or of
// several.  causal: query t sees keys up to t + keys - T.  ERANGE for keys outside 0 .. S.
YOKE_API yoke_tensor *yoke_attention_keys(yoke_tensor *q, yoke_tensor *k, yoke_tensor *v,
					  yoke_tensor *keys, yoke_tensor *mask, int causal,
					  double scale, double dropout);
// logits [..,V], ids [..] i32 or i64 -> []: mean of -log softmax(logits)[id] over ids that are not
// `ignore`, NaN when there are none; label smoothing in [0, 1).  Of half precision the loss is f32
// (PyTorch's: the logits' dtype); the other losses have the dtype of their operands.
YOKE_API yoke_tensor *yoke_cross_entropy(yoke_tensor *logits, yoke_tensor *ids, int64_t ignore,
					 double smooth);
YOKE_API yoke_tensor *yoke_mse(yoke_tensor *x, yoke_tensor *y); // mean (x - y)^2, which broadcast
// x logits and y targets in [0, 1] of one shape -> []: mean of -y log s(x) - (1 - y) log(1 - s(x)), s
// the sigmoid.
YOKE_API yoke_tensor *yoke_bce_logits(yoke_tensor *x, yoke_tensor *y);
// p and q logarithms of probabilities [..,V] -> []: sum of exp(p) (p - q) over the last axis, mean over
// the others.  PyTorch's kl_div has q first, and its batchmean divides by the first axis alone.
YOKE_API yoke_tensor *yoke_kl(yoke_tensor *p, yoke_tensor *q);

// ---- windows, convolutions, pools: of floating point, but for windows ----

// Windows of `size` elements of an axis, `dilation` apart, one begins every `stride`: the axis of n elements becomes one
// of floor((n - dilation (size - 1) - 1) / stride) + 1, and a new last axis has the window's elements.  A view, of
// any dtype; its gradient adds what windows have in common, in a fixed order.  ERANGE: there is none.
YOKE_API yoke_tensor *yoke_window(yoke_tensor *x, int axis, int64_t size, int64_t stride, int64_t dilation);

struct yoke_conv_options {
	size_t size;                    // sizeof, set by the caller
	int64_t groups;                 // 0: 1
	int64_t stride[2], dilation[2]; // of each axis behind the channels, 0: 1
	int64_t lo[2], hi[2];           // zeros before and behind each axis
	int64_t more[2];                // conv_transposed: elements more of each axis, less than its stride
};
// x [B,C,S] or [B,C,S,S], w [O,C/groups,K..] -> [B,O,Q..]: the cross-correlation, as PyTorch has it; Q is as many as a
// window of K has places along lo + S + hi.  Each number of the options is 65535 at most.  NULL: all as 0.
// No copy of all windows is made.  Sums are of f32, or f64 for f64.
YOKE_API yoke_tensor *yoke_conv(yoke_tensor *x, yoke_tensor *w, const struct yoke_conv_options *);
// x [B,C,Q..], w [C,O/groups,K..] -> [B,O,S..]: what the gradient of such a convolution by its operand is, of
// S = (Q - 1) stride + dilation (K - 1) + 1 - lo - hi + more elements.
YOKE_API yoke_tensor *yoke_conv_transposed(yoke_tensor *x, yoke_tensor *w, const struct yoke_conv_options *);

struct yoke_pool_options {
	size_t size;                    // sizeof, set by the caller
	int64_t window[2], stride[2];   // of each axis behind the channels; stride 0: as the window
	int64_t dilation[2];            // 0: 1
	int64_t lo[2], hi[2];           // elements before and behind each axis that do not count
};
// x [B,C,S..] -> [B,C,Q..]: the maximum of each window, or the mean of its elements.  Equal maxima share the gradient.
// A window of none but those that do not count gives -inf, and a mean of NaN.
YOKE_API yoke_tensor *yoke_max_pool(yoke_tensor *x, const struct yoke_pool_options *);
YOKE_API yoke_tensor *yoke_mean_pool(yoke_tensor *x, const struct yoke_pool_options *);
// The same of to[0] windows along the first axis behind the channels, to[1] along the second: window i of n elements
// goes from floor(i n / to) to ceil((i + 1) n / to) - 1.
YOKE_API yoke_tensor *yoke_adaptive_max_pool(yoke_tensor *x, const int64_t *to);
YOKE_API yoke_tensor *yoke_adaptive_mean_pool(yoke_tensor *x, const int64_t *to);
// x [B,C,S..] -> [B,C,to..]: smooth 0: output i is element floor(i S / to); 1: linear along each axis between the two
// elements around (i + 1/2) S / to - 1/2, the first and the last beyond them.
YOKE_API yoke_tensor *yoke_resize(yoke_tensor *x, const int64_t *to, int smooth);

// ---- groups of rows ----

// Rows of x [T,K] times the matrix of their group: w [E,K,N], first [E+1] i64 -> [T,N]; rows first[e] .. first[e+1] - 1
// are of group e, rows of no group give 0.  The shape of the computation does not depend on how large groups are.
// Gradients by x and w.  ERANGE when it is evaluated: first falls, or leaves 0 .. T.
YOKE_API yoke_tensor *yoke_grouped_matmul(yoke_tensor *x, yoke_tensor *w, yoke_tensor *first);

// ---- tridiagonal matrices ----

// The diagonal of (H - z)^-1 of tridiagonal real matrices: a [..,N] is H_ii, b and c [..,N-1] are H_i,i+1 and
// H_i+1,i, or YOKE_NONE: ones; z [..,2] is x + iy, and y may be 0.  Leading axes broadcast: one matrix at many z.
// -> G [..,N,2], real and imaginary parts, of the operands' dtype.  N may be 0.
// With alpha_i = a_i - z, k_i = b_i c_i, L_0 = alpha_0, L_i = alpha_i - k_(i-1) / L_(i-1), and R alike from the other end:
// side BOTH gives G_i = 1 / (L_i + R_i - alpha_i), the diagonal; LEFT gives 1 / L_i, the last diagonal element for the
// leading block 0..i, which depends on nothing behind i.  Where no k is negative, |G| <= 1/|y|.
// ERANGE when it is evaluated: an operand is not finite, or, with y = 0 or a k < 0, z is an eigenvalue of H (side LEFT: of
// a leading block) to rounding.  Rows of f32 whose numbers are beyond 1e8, with |y| up to 1e-8 or a k < 0, are computed in f64;
// with y = 0 or a k < 0 G has the error of a matrix that differs from H by roundings.
enum yoke_resolvent_side { YOKE_SIDE_BOTH, YOKE_SIDE_LEFT };
// What it is computed in.  F32 is AUTO for f32, f16 and bf16 operands: error at most 1e-6 / min(|y|,1)^2 for N to 4096,
// |a| <= 8 and k >= 0.  F64 is AUTO for f64: 2e-15 for 1e-6.  MIXED: L and R in f32, the last division in f64.  HALF:
// L and R at first in f16 or bf16, then improved by `sweeps` rounds in f32 of all i at once; a bound of each row's error
// follows from the last round's changes and the rounding of f32 (Ward's identity), and rows whose bound is above `tolerance`
// or that have a negative k or y = 0 are computed again in F32 and counted in yoke_stats.  It costs more than F32: it is there to find out what
// half precision can do.  Operands may not be f64.
enum yoke_tier { YOKE_TIER_AUTO, YOKE_TIER_F64, YOKE_TIER_F32, YOKE_TIER_MIXED, YOKE_TIER_HALF };
// EXACT: the adjoint, by a, b, c and z.  It keeps nothing but the operands, and is computed in f64 for tier F64, for
// MIXED and HALF in rows of which the largest |cotangent| is below `adaptive`, else in f32.  The others stand in for the
// gradient by a where training may do without the exact one; those by b, c and z are 0.  With g the cotangent, g~ its
// conjugate, F = G^2: DIAG -Re(g~ F), INVERSE -Re(g / (F + 1e-6)) with an F of modulus below 1e-3 made 1e-3 long, HYBRID
// (1 - blend) DIAG + blend INVERSE, STEP5 the same with g for g~; within +-1000, and 0 where that is not finite.
enum yoke_resolvent_gradient {
	YOKE_GRADIENT_EXACT, YOKE_GRADIENT_DIAG, YOKE_GRADIENT_INVERSE, YOKE_GRADIENT_HYBRID, YOKE_GRADIENT_STEP5
};
#define YOKE_SWEEPS (-1) // as many as `half` wants: 6 of f16, 8 of bf16
struct yoke_resolvent {
	size_t size;
	int side, tier;
	int half, sweeps; // tier HALF: yoke_f16 or yoke_bf16; 0 to 64, or YOKE_SWEEPS; with 0 nothing bounds the error
	int gradient;
	double tolerance; // above 0; INFINITY: only rows with a negative k or a real z are computed again
	double blend, adaptive;
	yoke_tensor **bound; // NULL, or where each row's bound of tier HALF goes [..], 0 of other tiers; f32, of f64 f64
};
#define YOKE_RESOLVENT_INIT \
	{ .size = sizeof(struct yoke_resolvent), .half = yoke_f16, .sweeps = YOKE_SWEEPS, .tolerance = 1e-4, .blend = 0.5, \
	  .adaptive = 1e-2 }
// how: NULL, or YOKE_RESOLVENT_INIT with what is to differ.
YOKE_API yoke_tensor *yoke_resolvent(yoke_tensor *a, yoke_tensor *b, yoke_tensor *c, yoke_tensor *z,
				     const struct yoke_resolvent *how);

// Chains with complex elements on the diagonal, such as self-energies of leads: H_ii = a_i + i a_im_i, where a and a_im
// are [..,N], b and c [..,N-1] as above, and z [..,2] is any complex number.  a_im, b and c may be YOKE_NONE: 0, ones and
// ones.  Operands have one dtype, and the leading axes of all five broadcast.
// Everything is computed in f64 by recurrences from both ends, as exactly as by elimination with pivots, and rounded
// once to the operands' dtype.  Gradients are by all five operands, and can be differentiated again; second gradients by the
// diagonal lose digits where z is close to an eigenvalue of a leading or trailing block.
// ERANGE when it is evaluated: an operand is not finite, or z is an eigenvalue of H to rounding.  ESHAPE, EDTYPE: operands do
// not fit.
//
// The diagonal of (H - z)^-1: G [..,N,2]; side: of enum yoke_resolvent_side.
YOKE_API yoke_tensor *yoke_resolvent_complex(yoke_tensor *a, yoke_tensor *a_im, yoke_tensor *b, yoke_tensor *c, yoke_tensor *z,
					     int side);
// The corner [(H - z)^-1]_1N = -b_1 .. b_(N-1) / det(z - H): [..,2]; N is at least 1.  With b and c exchanged it is the
// element N, 1.  A chain between two leads of self-energies S_L and S_R, which are added to its first and last element,
// transmits T = G_L G_R |corner|^2 at z = E, with G = -2 Im S (Fisher and Lee 1981); examples/transmission.c.
YOKE_API yoke_tensor *yoke_resolvent_corner(yoke_tensor *a, yoke_tensor *a_im, yoke_tensor *b, yoke_tensor *c, yoke_tensor *z);
// log det(z - H): [..,2], log |det| and the phase; N may be 0.  Its derivative by z is the trace of (z - H)^-1, the negative sum
// of the diagonal above.  The phase is the sum of the arguments, each in (-pi, pi], of the N ratios of leading minors of
// z - H; it is not reduced to one turn.  Where no b c is negative and no a_im positive, it is continuous in the half-plane
// Im z > 0 and goes from N pi to 0 along it.  Of real H and z it is pi times the number of eigenvalues above z.
YOKE_API yoke_tensor *yoke_resolvent_log_det(yoke_tensor *a, yoke_tensor *a_im, yoke_tensor *b, yoke_tensor *c, yoke_tensor *z);

// ---- order ----

// to[i] = x[i], for readers that must not be launched before the m values `after` are.  Costs nothing
// but the order.  Gradients pass through.  After an error each to[i] is NULL.
YOKE_API int yoke_barrier(int n, yoke_tensor *const *x, int m, yoke_tensor *const *after,
			  yoke_tensor **to);

// ---- gradients, optimizer steps ----
// Optimizers with states, groups and schedules of their own are in yoke-optim.h.

// g[i] = d y / d p[i] for a y of one element; zeros where y does not depend on p[i].  Gradients are
// ordinary values: they can be differentiated again.  sign, floor, round, ceil, comparisons and casts to
// integers have the gradient 0; EUNSUPPORTED for what has none.  A variable means its current version:
// ERELEASED when y depends on an earlier one alone, or on p[i] through a value of which it is forgotten how it
// was computed.  After an error each g[i] is NULL.
YOKE_API int yoke_grad(yoke_tensor *y, int n, yoke_tensor *const *p, yoke_tensor **g);
// The same of m values of any shapes, given the gradient of something with respect to each of them (cotangents, of
// the same shapes and dtypes): of that with respect to p.  So gradients go on where another rank, or an earlier
// evaluation, had come to.
YOKE_API int yoke_grad_from(int m, yoke_tensor *const *y, yoke_tensor *const *cotangent, int n,
			    yoke_tensor *const *p, yoke_tensor **g);
// Steps over lists of n tensors, as assignments to p, m, v (b): AdamW of Loshchilov and Hutter 2019,
// SGD with momentum as PyTorch's.  scale multiplies the gradients first (a value or scalar of one
// element, or YOKE_NONE).  No gradient goes through a step: later ones take the new p, m and v for leaves.
// EINVAL: a variable is listed twice.
struct yoke_adamw {
	size_t size;               // sizeof, set by the caller, here and below
	yoke_tensor *lr, *c1, *c2; // learning rate, 1 - beta1^t, 1 - beta2^t: scalars
	yoke_tensor *scale;
	double beta1, beta2, eps, weight_decay;
	yoke_tensor *skip; // a number: where it is not 0, the step changes no bit; or YOKE_NONE,
			   // and so is NULL that no error gave
};
YOKE_API int yoke_adamw_step(int n, yoke_tensor *const *p, yoke_tensor *const *g,
			     yoke_tensor *const *m, yoke_tensor *const *v, const struct yoke_adamw *);
// LAMB of You et al. 2020: Adam's step r with decay, times phi(|p|)/|r| of each tensor, 1 where a norm
// is 0; phi keeps the norm in least .. most (0: no bound).
struct yoke_lamb {
	size_t size;
	yoke_tensor *lr, *c1, *c2; // as AdamW's
	yoke_tensor *scale;
	double beta1, beta2, eps, weight_decay, least, most;
	int plain; // not 0: the ratio is 1 (biases, norms)
	yoke_tensor *skip; // as AdamW's
};
YOKE_API int yoke_lamb_step(int n, yoke_tensor *const *p, yoke_tensor *const *g,
			    yoke_tensor *const *m, yoke_tensor *const *v, const struct yoke_lamb *);
struct yoke_sgd {
	size_t size;
	yoke_tensor *lr, *first; // first: scalar, 1 at the first step, then 0; YOKE_NONE without momentum
	yoke_tensor *scale;
	double momentum, dampening, weight_decay;
	int nesterov;
	yoke_tensor *skip; // as AdamW's
};
// b: NULL without momentum.
YOKE_API int yoke_sgd_step(int n, yoke_tensor *const *p, yoke_tensor *const *g, yoke_tensor *const *b,
			   const struct yoke_sgd *);
// to[i] = g[i] times scale, in f32 (f64 for f64): gradients of a scaled loss, with 1 over its scale.
// overflow, bool []: is any of them infinite or NaN?  For a select in the update.  After an error all
// are NULL.
YOKE_API int yoke_unscale_check(int n, yoke_tensor *const *g, yoke_tensor *scale, yoke_tensor **to,
				yoke_tensor **overflow);
// The 2-norm of all tensors together, f32 []; its gradient at 0 is 0.
YOKE_API yoke_tensor *yoke_global_norm(int n, yoke_tensor *const *x);

// Dynamic loss scale, for gradients that f16 would flush to 0 (Micikevicius et al. 2018).  A step with it:
//
//	yoke_grad(yoke_scaler_scale(s, loss), n, p, g);
//	yoke_scaler_update(s);                     // of the step before; at the first one nothing
//	yoke_scaler_check(s, n, p, g, &norm, &skip);
//	o.scale = yoke_scaler_inverse(s);          // times a factor that clips by norm, for one
//	o.skip = skip;
//	yoke_adamw_step(n, p, g, m, v, &o);
//	yoke_eval(0, NULL);
//
// Whether gradients overflowed is found on the device, and there the step is skipped, bit for bit, so that a step
// is one evaluation.  The scale is a host scalar: update waits for the flag of the step before, 4 bytes, when the
// next one's gradients are recorded and nothing of it is launched, since its scale, learning rate and bias
// corrections depend on that flag.
typedef struct yoke_scaler yoke_scaler;
struct yoke_scaler_options { // a member that is 0 has the default in brackets
	size_t size;
	double scale, growth, backoff; // [65536] at first, [2] times it after `interval` steps, [0.5] times it
				       // after an overflow
	double least, most;            // the scale stays within [1] .. [8388608]
	int64_t interval;              // steps in a row without an overflow [2000]
	int64_t hysteresis;            // overflows it takes, since the scale grew last, until each of them
				       // lowers it [1], as in Megatron-LM's DynamicGradScaler
};
// For the current context; NULL: all defaults.  EINVAL names the value and its rule.
YOKE_API yoke_scaler *yoke_scaler_new(const struct yoke_scaler_options *);
YOKE_API void yoke_scaler_free(yoke_scaler *); // NULL is fine
// loss times the scale, f32 at least.
YOKE_API yoke_tensor *yoke_scaler_scale(yoke_scaler *, yoke_tensor *loss);
// 1 over the scale: a host scalar that the scaler owns.
YOKE_API yoke_tensor *yoke_scaler_inverse(yoke_scaler *);
// Looks at the gradients of a scaled loss, in one launch: *norm is the 2-norm of all of them over the scale, f32
// [], *skip 1 where that is infinite or NaN, else 0, f32 [].  p: NULL, or the variables that they are of,
// for their names.  n stays the same from check to check.  After an error both are NULL.
YOKE_API int yoke_scaler_check(yoke_scaler *, int n, yoke_tensor *const *p, yoke_tensor *const *g,
			       yoke_tensor **norm, yoke_tensor **skip);
#define YOKE_STEPPED 0
#define YOKE_SKIPPED 1
// What became of the step that was checked last, for which it waits, and sets the scale of the next one: YOKE_STEPPED,
// also where none was checked since the last update, or YOKE_SKIPPED.  ERANGE: the scale was at its least
// already; the error names the first tensor that was not finite.
YOKE_API int yoke_scaler_update(yoke_scaler *);
struct yoke_scaler_stats {
	size_t size;
	double scale;            // of the next step
	double rate;             // overflows / steps
	uint64_t steps, overflows; // of the last 100 steps
	uint64_t all_steps, skipped; // since the scaler was new
	int64_t first;           // the first tensor that was not finite, at the last overflow; -1: there was none
	const char *name;        // of its variable, "" where that is not known
};
YOKE_API int yoke_scaler_stats(const yoke_scaler *, struct yoke_scaler_stats *);
// All that a scaler's next steps depend on but its options.  load checks it: EINVAL names what is wrong.
struct yoke_scaler_state {
	size_t size;
	double scale;
	int64_t clean, left;     // steps since the last change; overflows until the scale falls
	uint64_t steps, skipped; // in all
	uint64_t recent[2];      // bit k: the step 100 q + k of the last 100 overflowed
};
YOKE_API int yoke_scaler_save(const yoke_scaler *, struct yoke_scaler_state *);
YOKE_API int yoke_scaler_load(yoke_scaler *, const struct yoke_scaler_state *);

// ---- evaluation ----

// Computes all roots: new versions of variables, kept values, and the n given.  Does not wait.
// An error before the first launch (a shape, a plan, memory) leaves everything as it was, and still
// pending.  When a launch fails, at once or as the device reports later, what it should have written
// is lost: using it is EFAILED, and says where it failed, until yoke_put gives a variable a new value.
// A value larger than the device's largest allocation lies in the host's memory and is computed by pieces
// where their bits are those of the whole, else on the CPU, which a warning says once.
YOKE_API int yoke_eval(int n, yoke_tensor *const *t);
// Evaluates, waits, copies the value's elements, row major, to the host; bytes must be its size.
// ERELEASED: it was interior to an earlier evaluation, and a variable it needs has been overwritten since; keep
// it, or pass it to yoke_eval.
YOKE_API int yoke_read(yoke_tensor *t, void *to, size_t bytes);
// The same without a copy, on the CPU: evaluates, waits, and gives a value of the caller's with the same bytes, which are
// at *at, row major.  They stay there, and as they are, whatever becomes of t, until that value is freed, and are not to
// be written.  EUNSUPPORTED: the device's memory has no address on the host, or t is a variable in a pack.
YOKE_API yoke_tensor *yoke_share(yoke_tensor *t, const void **at);
// Waits for everything launched in the current context; returns a failure that no call has returned yet.
YOKE_API int yoke_sync(void);

// Why the current context's last evaluation that had no plan had none: in which field it differs from
// the most similar plan ("node 812 reshape in step: dim 0: 32 -> 17"), or "".  Good until the next call
// that evaluates.
YOKE_API const char *yoke_plan_miss(void);

struct yoke_stats {
	size_t size;                 // set by the caller to sizeof
	uint64_t evals, plan_hits, plan_misses;
	uint64_t launches;           // steps launched
	uint64_t fallbacks;          // steps run on the CPU because the device does not take them
	uint64_t fallback_bytes;     // moved between devices for them
	uint64_t bytes_up, bytes_down; // by put, from and read
	uint64_t assign_copies, assign_copy_bytes;
	uint64_t predicted_peak;     // of the last plan: bytes of device memory at its highest
	uint64_t pool_allocated, pool_allocated_peak, pool_reserved, pool_reserved_peak;
	uint64_t pool_hits, pool_misses, pool_retries, pool_ooms;
	uint64_t pending_nodes, live_handles, plans;
	uint64_t pool_compactions, pool_moved_bytes; // values moved together when memory was in pieces
	uint64_t programs_compiled, programs_found; // by all backends of this process: kernels' texts
						    // compiled, and found compiled in the cache
	uint64_t repeated; // operations computed again for a later evaluation, their results not being kept
	uint64_t pack_copies, pack_copy_bytes; // new versions of packed variables that were copied to their places
	uint64_t unpacked; // variables that left their pack: there was no memory for such a copy, or their value
			   // is another's that was lost
	uint64_t activations; // bytes, of the plan with the most: results that gradients need, where the most of
			      // them wait at once
	uint64_t workspace;   // bytes of the largest workspace of a step
	uint64_t replays;     // launches of a plan as one, by a graph that the device's driver recorded of it
	uint64_t promoted_rows; // rows of yoke_resolvent's tier half that were computed again in f32, by all backends of
				// this process
};
// Of the current context and its device; peaks, these two among them, since yoke_stats_reset_peaks.
YOKE_API int yoke_stats(struct yoke_stats *);
YOKE_API int yoke_stats_reset_peaks(void);

// One op that the context's device does not take, for results of one dtype and shape: what it costs to
// run it on the CPU.
struct yoke_fallback {
	size_t size;     // sizeof, of all in an array; set by the caller in the first of them
	const char *op;  // "sort"; good for ever
	int dtype, rank; // of its first result; rank -1: of many shapes, which are told apart no more
	int64_t dims[YOKE_MAX_RANK];
	uint64_t count;  // launches on the CPU
	uint64_t bytes;  // moved between the devices for them
};
// What fell back in the current context, most bytes first: fills the first `most` of to (NULL for none) and
// returns how many there are.  Together they are the fallbacks and fallback_bytes of yoke_stats.
YOKE_API int yoke_fallbacks(int most, struct yoke_fallback *to);

#ifdef __cplusplus
}
#endif
#endif
