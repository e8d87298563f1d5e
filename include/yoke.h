// SPDX-License-Identifier: Apache-2.0
// yoke: train and run neural networks on whatever compute a machine has.
//
// An operation on tensors checks shapes and dtypes immediately and is recorded; nothing runs until
// a value is read or yoke_eval is called.  Then the library plans the operations that the value
// depends on, launches them, and caches the plan, so that the next step with the same structure
// needs no planning.
//
// An evaluation computes its roots and everything that they depend on; all other operations stay
// pending.  The roots are new versions of variables, kept values (yoke_keep), and the tensors given
// to yoke_eval or yoke_read.  Roots keep their memory after the evaluation.  Intermediate values do
// not: if one is read or differentiated later, it is computed again, with the same bits; yoke_stats
// counts this and a warning is logged once.  The recomputation fails with ERELEASED when it needs a
// version of a variable that an assignment has overwritten since.  The following order puts a step
// into one plan and needs the least memory:
//
//	loss = yoke_mse(model(x), y);
//	yoke_grad(loss, n, p, g);                      // before the loss is read
//	for (int i = 0; i < n; i++)
//		yoke_assign(p[i], yoke_sub(p[i], yoke_mul(lr, g[i])));
//	yoke_read(loss, &value, sizeof value);         // computes all of it
//
// The recording of how a value was computed is kept as long as handles refer to it, and discarded
// when it grows long: call yoke_stop_grad on values that are carried from step to step.
//
// When an evaluation happens does not affect gradients.  A variable stands for the value that was
// assigned to it, before and after its evaluation, so gradients flow through the assignment.  This
// ends when the outermost scope in which the variable was assigned closes: in a gradient recorded
// later, the variable is a leaf.  So a training step in its own scope depends only on its
// variables' values.  While the scope is open, or without a scope, a gradient through overwritten
// versions is either correct or ERELEASED, and a loop keeps the history of a few steps.
//
// Differences from the PyTorch function of the same name are documented at each function.  In
// general: dtypes are not promoted, so the operands of a call have the same dtype; sums and
// products of integers keep their dtype and wrap; a call that takes one axis does not accept a
// tensor of rank 0.
//
// Conventions.  Functions return 0 or a negative YOKE_E* (yoke-plugin.h), or NULL for a handle;
// yoke_error() returns the reason.  NULL given as an operand, an object (a scaler, a module, a
// group) or a list means that an earlier call failed: the call fails with the same error code, or
// returns NULL, so a chain of calls is checked once at its end.  If there was no earlier error,
// NULL is EINVAL.  Declarations state where NULL is allowed.  An operation's result belongs to the
// innermost open scope; without an open scope the caller owns the handle and frees it with
// yoke_free.  Sizes are bytes, dims are elements, row-major, with a contiguous last axis.  Axes
// count from 0, or from the end as -1, -2, ...  A set of axes is a mask with bit k for axis k:
// YOKE_AXIS(1) | YOKE_AXIS(2), or YOKE_ALL.
//
// Every struct that a call reads or fills begins with its size, which the caller sets:
//
//	struct yoke_stats s = { .size = sizeof s };
//
// Structs grow at their end in later versions; a function uses the members that caller and library
// both know.  Members beyond the caller's size have their defaults: YOKE_NONE for tensors, 0 for
// numbers.  A size that no version has is EINVAL: less than two words (of a size_t), not a multiple
// of a word, or above 64 KiB.
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

// Marks an optional operand as absent.
#define YOKE_NONE ((yoke_tensor *)(intptr_t)-1)

#define YOKE_AXIS(k) (1u << (k))
#define YOKE_ALL 0xffu
#define YOKE_KEEP 0x100u // or'ed into a mask of axes: keeps reduced axes with 1 element

// ---- library, errors, settings ----

// "0.1.0"
YOKE_API const char *yoke_version(void);
// The message of this thread's first error since the last yoke_error_clear, or "".
YOKE_API const char *yoke_error(void);
// The code of that error; 0 when there is none.
YOKE_API int yoke_error_code(void);
YOKE_API void yoke_error_clear(void);
// The name of an error or a dtype: "YOKE_ESHAPE", "f32"; "?" for an unknown number.
YOKE_API const char *yoke_error_name(int code);
YOKE_API const char *yoke_dtype_name(int dtype);
// Bytes of one element, 0 for an unknown dtype.
YOKE_API size_t yoke_dtype_size(int dtype);
// Sets a setting ("plan.max"); takes precedence over the environment.  Contexts and plans made
// later use it.  yoke-settings(7) lists the settings that are read once, most of them when devices
// are listed, which is at the latest for the first context.  EINVAL: the value is invalid or out of
// range, or differs from the current one after the setting was read once; ENOENT: there is no such
// setting.  For a plugin's setting ("opencl.preset") the plugin is loaded from the directories
// configured at that time.
YOKE_API int yoke_setting_set(const char *name, const char *value);
// Copies the current text of a setting like snprintf: writes at most cap bytes including the
// terminating NUL and returns the length without it.  ENOENT: there is no such setting.
YOKE_API int yoke_setting_get(const char *name, char *to, size_t cap);
// Sets the callback that names the source position of each recorded operation for error messages,
// when the setting trace.ops is on.  A language binding returns its own position, "train.py:12 in
// step", which is copied, or NULL for the default, the C call chain.  The callback runs on the
// recording thread, once per recording call, and must not call yoke.  NULL: removes the callback.
YOKE_API void yoke_site_hook(const char *(*where)(void));

// ---- contexts ----

// Creates a context on the device chosen by YOKE_BACKEND and YOKE_DEVICE, or by `backend` ("cpu",
// "opencl,cpu") when that is not NULL.  Returns NULL with ENODEV when the device cannot be used.  A
// context may be used by one thread at a time (otherwise EBUSY) and not by a process forked later
// (EFORK).  Each thread creates a context on first use if yoke_use has set none.
YOKE_API yoke_context *yoke_context_new(const char *backend);
// Creates a context on a named device, in the syntax of YOKE_DEVICE: "opencl:1",
// "pci:0000:01:00.0".
YOKE_API yoke_context *yoke_context_new_on(const char *device);
// This thread's context on a named device: its current one, or the one that it used last there, or
// a new one, which ends with the thread.  yoke_use makes it current.  Contexts of yoke_to are
// these.
YOKE_API yoke_context *yoke_context_on(const char *device);
// The name of device i of the backends that YOKE_BACKEND lists, best first, in the form that
// yoke_context_new_on takes; NULL, without an error, after the last device.
YOKE_API const char *yoke_device_name(int i);
// Creates a context that measures memory without computing.  Everything is recorded, planned and
// launched as in a real run and counted to the byte in yoke_stats, but no device memory is
// allocated and nothing is computed, so the memory of models that exceed this machine can be
// measured.  Reads return zeros.  A memory limit (YOKE_MEMORY) is enforced: an allocation that
// would fail in a run fails here with ENOMEM.  Memory given to yoke_wrap is counted as a copy.  All
// dry contexts share the same dry devices and their peaks.
YOKE_API yoke_context *yoke_context_dry(const char *backend);
// Frees the context and everything recorded in it.  Later uses of its handles are ECONTEXT.  NULL
// is fine.
YOKE_API void yoke_context_free(yoke_context *);
// Makes a context the calling thread's current one; returns the previous one (NULL: none).
YOKE_API yoke_context *yoke_use(yoke_context *);
// Sets the seed and step of random numbers from now on; neither is part of the plan.  Numbers
// follow from both, the scope's path, the number of the call in it since the outermost scope was
// opened, and how often the path drew in earlier openings since this call: a loop draws new numbers
// in each round; after the same seed and step were set again it repeats them.
YOKE_API int yoke_random_set(uint64_t seed, int64_t step);

// ---- scopes ----

// Opens a scope inside the innermost one.  Its name is appended to the path ("step/layer3/attn")
// that errors, plans and random numbers use; NULL: no name.
YOKE_API yoke_scope *yoke_scope_begin(const char *name);
// Closes a scope of the current context and frees the handles it owns, except kept ones.  Returns
// 0, or the code of this thread's first error that was not cleared.  Scopes close in reverse order,
// each once (otherwise EINVAL).
YOKE_API int yoke_scope_end(yoke_scope *);
// Moves a handle out of its scope to the caller and makes its value a root of the next evaluation.
// Returns its argument, or NULL after an error.
YOKE_API yoke_tensor *yoke_keep(yoke_tensor *);
// Moves a handle to the enclosing scope (or to the caller, if there is none), so that it outlives
// its scope without becoming a root, like the result of a layer.  Returns its argument, or NULL
// after an error.
YOKE_API yoke_tensor *yoke_lift(yoke_tensor *);
// Enables mixed precision until the innermost open scope ends, or permanently if none is open:
// calls cast their operands.  dtype is f16 or bf16; YOKE_DTYPE_NONE disables it again.
// Contractions (matmul, linear, attention's q, k, v) compute in and return `dtype`.  exp, log,
// log1p, expm1, pow, sums and other reductions, cumulative sums and products, statistics, and the
// losses composed of them compute in and return f32.  Other elementwise operations, concat and
// updates of slices use the dtype that can hold all of their operands, which is f32 for f16 with
// bf16.  softmax, norms, cross_entropy and rope compute in f32 internally, without a converted
// copy.  Operands of f64, integers and bool are not cast, nor are operands of operations that only
// move elements.  Scalars and literals take the dtype to which the neighboring tensors are cast.
// Casts are ordinary operations: the gradient of an f32 variable is f32, and a variable is cast
// once per evaluation however often it is used.  An f32 variable saturates when cast to f16: |x|
// above 65504 becomes 65504, and its gradient is multiplied by 65504 / |x|.
// keep_f32, or NULL: comma-separated patterns of scopes ("norm*,head"), each matched as by fnmatch
// against one name of the path, or against several if it contains /.  In matching scopes, and in
// scopes inside them, everything above happens in f32.  The scope's end fails with EINVAL if a
// pattern matched no scope in which something was recorded.
YOKE_API int yoke_autocast(int dtype, const char *keep_f32);
// Frees a handle that the caller owns.  NULL and YOKE_NONE are fine.  Using or freeing a freed
// handle, or one whose scope has ended, is EINVAL with a description of the former tensor, even
// after its memory has been reused for another tensor.  If the context is not the calling thread's
// current one, or is busy, the free is queued and done by the next call on that context, so garbage
// collectors may call it.
YOKE_API void yoke_free(yoke_tensor *);

// ---- variables, values, random numbers ----

// Creates a variable filled with zeros, owned by the caller.  The name is for messages; NULL: none.
YOKE_API yoke_tensor *yoke_variable(const char *name, int dtype, int rank, const int64_t *dims);
// Assigns a new version of a variable from host memory, which is copied before the call returns.
// bytes must be the variable's size.
YOKE_API int yoke_put(yoke_tensor *variable, const void *data, size_t bytes);
// Assigns a new version of a variable; value must have its shape and dtype, nothing is cast.
// Operations recorded earlier continue to read the old version.  The evaluation may overwrite the
// old version with the new one, unless a gradient through this assignment needs the old bytes.
// Gradients through operations that yoke_grad recorded do not protect the old bytes: such a
// gradient, and one through another variable, is ERELEASED if the old bytes are gone.
YOKE_API int yoke_assign(yoke_tensor *variable, yoke_tensor *value);
// Moves n evaluated variables of the current context into one block of memory, in this order, each
// at a multiple of 256 bytes with zeros between.  Handles and recorded operations remain valid, and
// each variable is freed individually.  A variable keeps its offset until it is freed or packed
// again: new versions are written there, by yoke_put after the operations that read the old
// version; a version that cannot be computed in place is copied there, which yoke_stats counts.
// Both the old and the new block are held until the copies are done.  EINVAL: a variable has a
// pending value or is listed twice; ERANGE: together they exceed the device's largest allocation.
YOKE_API int yoke_pack(int n, yoke_tensor *const *variables);
// Sets the residency of a variable of the current context, for this version and later ones: on the
// context's device (the default), or in host memory, so that it takes no device memory.  Operations
// on lists of tensors (the optimizers' steps) with at least one host-resident tensor run on the
// CPU, and their other operands are copied there.  For any other operation the variable is copied
// to the device for as long as it is needed.  Waits for the variable's value.  No effect on the CPU
// backend.  EINVAL: not a variable, or one in a pack.
enum { YOKE_ON_DEVICE, YOKE_ON_HOST };
YOKE_API int yoke_place(yoke_tensor *variable, int where);
// Creates a tensor from host memory, copied before the call returns.
YOKE_API yoke_tensor *yoke_from(int dtype, int rank, const int64_t *dims, const void *data);
// Creates a tensor from host memory that the caller leaves unchanged and allocated until
// free_fn(arg) is called (NULL: forever).  The memory is used directly if the device supports it
// and the alignment suffices (on the CPU, the alignment of the elements); otherwise it is copied.
// free_fn is called once, inside a yoke_ call of the thread that uses the context: in this call if
// the memory is copied or NULL is returned, at the latest in yoke_context_free.  It must not call
// yoke.  The memory is never written.
YOKE_API yoke_tensor *yoke_wrap(int dtype, int rank, const int64_t *dims, void *data,
				void (*free_fn)(void *), void *arg);
// Copies a tensor to a device, named as for yoke_context_new_on ("cuda:0") or by its backend
// ("cuda": the best one): into the context of yoke_context_on, where the result belongs to the
// innermost scope.  If the tensor is in that context already, nothing is copied and the result is a
// view.  Evaluates and waits, like yoke_read; in a plan the copy is a leaf, as yoke_from's, so
// repeated steps need no new plan.  All dtypes, bit for bit.  Gradients flow through: yoke_grad
// takes p of any context that y depends on through copies, and returns each gradient in the context
// of its p.  It then evaluates the gradients by the copies.  A tensor that was computed stays in
// memory as long as gradients can reach it through a copy (yoke_stop_grad before the copy prevents
// this); other tensors may be freed.  ENODEV: no such device; EINVAL: a host scalar or literal;
// errors of yoke_read.
YOKE_API yoke_tensor *yoke_to(yoke_tensor *t, const char *device);
// Creates a number on the host that is read when the step is evaluated: changing it needs no new
// plan.  It takes the dtype of the other operand and has no shape.  An evaluation that uses it as
// an integer or bool is ERANGE if that dtype cannot represent it.
YOKE_API yoke_tensor *yoke_scalar(double value);
YOKE_API int yoke_scalar_set(yoke_tensor *scalar, double value);
// Creates a literal, which is part of the plan.  It takes the dtype of the other operand; ERANGE
// when that is an integer or bool and cannot represent the value.
YOKE_API yoke_tensor *yoke_const(double value);
// All elements equal to a literal; ERANGE as for yoke_const.
YOKE_API yoke_tensor *yoke_full(int dtype, int rank, const int64_t *dims, double value);
// 0, 1, 2, ... along an axis.
YOKE_API yoke_tensor *yoke_iota(int dtype, int rank, const int64_t *dims, int axis);
// Counter-based random numbers (Salmon et al. 2011, Philox 4x32-10).  The key is the context's seed
// xor a hash of the scope's path and the number of the call there (yoke_random_set); the counter is
// the element's index and the step.  Bits are i32; uniform is in [0, 1) in steps of 2^-24; normal
// uses Box-Muller.
YOKE_API yoke_tensor *yoke_rand_bits(int rank, const int64_t *dims);
YOKE_API yoke_tensor *yoke_uniform(int dtype, int rank, const int64_t *dims);
YOKE_API yoke_tensor *yoke_normal(int dtype, int rank, const int64_t *dims);

// ---- shapes ----

YOKE_API int yoke_rank(const yoke_tensor *);
YOKE_API int yoke_dtype(const yoke_tensor *);
// The size of an axis; a negative YOKE_E* when the axis is out of range.
YOKE_API int64_t yoke_dim(const yoke_tensor *, int axis);
YOKE_API int64_t yoke_count(const yoke_tensor *); // elements
YOKE_API size_t yoke_bytes(const yoke_tensor *);
// 1 for a variable, which yoke_put and yoke_assign take; 0 for other tensors.
YOKE_API int yoke_is_variable(const yoke_tensor *);
// The device of a tensor's context, as yoke_context_new_on takes it: "cpu:0".  NULL after an error.
YOKE_API const char *yoke_device_of(const yoke_tensor *);
// The context that a tensor belongs to.  NULL after an error.
YOKE_API yoke_context *yoke_context_of(const yoke_tensor *);

// ---- elementwise operations ----
// All operands have the same dtype and broadcast as in NumPy.  Results have the operands' dtype;
// comparisons return bool.

YOKE_API yoke_tensor *yoke_add(yoke_tensor *a, yoke_tensor *b);
YOKE_API yoke_tensor *yoke_sub(yoke_tensor *a, yoke_tensor *b);
YOKE_API yoke_tensor *yoke_mul(yoke_tensor *a, yoke_tensor *b);
// Integers: truncates; x/0 = 0 (PyTorch returns floating point).
YOKE_API yoke_tensor *yoke_div(yoke_tensor *a, yoke_tensor *b);
// The exact remainder of the truncated quotient, with the sign of a, like C's % and fmod (NumPy's
// mod has the sign of b).  Integers: x mod 0 = 0.  The gradient by b is minus the truncated
// quotient.
YOKE_API yoke_tensor *yoke_mod(yoke_tensor *a, yoke_tensor *b);
// Floating point only.  The gradient by a is 0 where b is 0.  The gradient by b is y log a; for a <
// 0 it is 0 (NaN in JAX and PyTorch); at a = 0 it is 0, or -inf for b < 0.
YOKE_API yoke_tensor *yoke_pow(yoke_tensor *a, yoke_tensor *b);
// NaN if either operand is NaN.  Equal operands get half of the gradient each; if one is NaN,
// neither gets any (in PyTorch both get all of it).
YOKE_API yoke_tensor *yoke_min(yoke_tensor *a, yoke_tensor *b);
YOKE_API yoke_tensor *yoke_max(yoke_tensor *a, yoke_tensor *b);
YOKE_API yoke_tensor *yoke_neg(yoke_tensor *x);
YOKE_API yoke_tensor *yoke_abs(yoke_tensor *x); // the gradient at 0 is 0 (1 in JAX)
YOKE_API yoke_tensor *yoke_sign(yoke_tensor *x); // NaN for NaN (0 in PyTorch)
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
// Logical for bool, bitwise for integers.
YOKE_API yoke_tensor *yoke_and(yoke_tensor *a, yoke_tensor *b);
YOKE_API yoke_tensor *yoke_or(yoke_tensor *a, yoke_tensor *b);
YOKE_API yoke_tensor *yoke_xor(yoke_tensor *a, yoke_tensor *b);
YOKE_API yoke_tensor *yoke_not(yoke_tensor *x);
// Shifts integers by b bits; shr is arithmetic (copies the sign).  For b outside 0 .. bits - 1, shl
// gives 0 and shr gives 0, or -1 for a negative a.
YOKE_API yoke_tensor *yoke_shl(yoke_tensor *a, yoke_tensor *b);
YOKE_API yoke_tensor *yoke_shr(yoke_tensor *a, yoke_tensor *b);
YOKE_API yoke_tensor *yoke_isfinite(yoke_tensor *x);
YOKE_API yoke_tensor *yoke_select(yoke_tensor *c, yoke_tensor *a,
				  yoke_tensor *b); // c bool: c ? a : b
// To an integer: truncates and saturates; NaN becomes 0.  To f16 and bf16: rounds to nearest even.
YOKE_API yoke_tensor *yoke_cast(yoke_tensor *x, int dtype);
YOKE_API yoke_tensor *yoke_relu(yoke_tensor *x); // the gradient at 0 is 0
// For half precision, the following and their gradients are computed in f32 and rounded once.
YOKE_API yoke_tensor *yoke_gelu(yoke_tensor *x); // x/2 (1 + erf(x / sqrt 2))
// x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
YOKE_API yoke_tensor *yoke_gelu_tanh(yoke_tensor *x);
YOKE_API yoke_tensor *yoke_silu(yoke_tensor *x); // x sigmoid(x)
YOKE_API yoke_tensor *yoke_swiglu(yoke_tensor *gate, yoke_tensor *x); // silu(gate) x: Shazeer 2020
// x [u >= p] / (1 - p) with uniform u, p in [0, 1); returns x if p is 0.  There is no evaluation
// mode: pass p = 0, which draws no random numbers and does not affect those that other calls draw.
YOKE_API yoke_tensor *yoke_dropout(yoke_tensor *x, double p);
// Limits x to lo .. hi; either may be YOKE_NONE; returns hi where lo > hi.  NaN stays NaN.  Where x
// equals a bound, it gets half of the gradient (all of it in PyTorch).
YOKE_API yoke_tensor *yoke_clamp(yoke_tensor *x, yoke_tensor *lo, yoke_tensor *hi);
// Returns x, floating point; its evaluation fails with ERANGE, naming the scope, if an element is
// infinite or NaN.  As after any failed launch, the values that the launch should have computed are
// lost, including new versions of variables: it locates numerical errors but does not guard a
// training step.
YOKE_API yoke_tensor *yoke_check_finite(yoke_tensor *x);
// Returns x with gradient 0.
YOKE_API yoke_tensor *yoke_stop_grad(yoke_tensor *x);

// ---- reductions ----
// For numbers; cast bool first.  Bits of `axes` that are neither an axis nor YOKE_KEEP are EINVAL.

YOKE_API yoke_tensor *yoke_sum(yoke_tensor *x, unsigned axes);
YOKE_API yoke_tensor *yoke_mean(yoke_tensor *x, unsigned axes);
YOKE_API yoke_tensor *yoke_prod(yoke_tensor *x, unsigned axes);
// NaN if an element is NaN, and then no element gets a gradient (NaN in PyTorch); equal maxima
// share it.
YOKE_API yoke_tensor *yoke_reduce_max(yoke_tensor *x, unsigned axes);
YOKE_API yoke_tensor *yoke_reduce_min(yoke_tensor *x, unsigned axes);
// The i64 index of the first largest (smallest) element along an axis; NaN counts as largest
// (smallest).  An empty axis is ESHAPE, as for reduce_max and reduce_min.
YOKE_API yoke_tensor *yoke_argmax(yoke_tensor *x, int axis);
YOKE_API yoke_tensor *yoke_argmin(yoke_tensor *x, int axis);

// Whether any or all of the elements are true (bool).  Without elements: false for any, true for
// all.
YOKE_API yoke_tensor *yoke_any(yoke_tensor *x, unsigned axes);
YOKE_API yoke_tensor *yoke_all(yoke_tensor *x, unsigned axes);
// Inclusive cumulative sum and product along an axis, starting at its end if `reverse` is set.
// Floating point accumulates in f64 on the CPU; integers wrap.
YOKE_API yoke_tensor *yoke_cumsum(yoke_tensor *x, int axis, int reverse);
YOKE_API yoke_tensor *yoke_cumprod(yoke_tensor *x, int axis, int reverse);

// ---- statistics ----
// For floating point, computed in at least f32.

// sum (x - mean)^2 / (n - correction), in two passes; correction 1 is Bessel's.  NaN or infinite if
// n does not exceed the correction.  The gradient of std is 0 where std is 0.
YOKE_API yoke_tensor *yoke_var(yoke_tensor *x, unsigned axes, double correction);
YOKE_API yoke_tensor *yoke_std(yoke_tensor *x, unsigned axes, double correction);
// x [..,V,N]: N observations of V variables -> [..,V,V].  corr is Pearson's correlation, within -1
// .. 1, and NaN for a constant variable.
YOKE_API yoke_tensor *yoke_cov(yoke_tensor *x, double correction);
YOKE_API yoke_tensor *yoke_corr(yoke_tensor *x);
// (sum |x|^p)^(1/p).  Infinite p: the largest (or, for -inf, the smallest) |x|; p 0: the number of
// nonzero elements.  The gradient is 0 where the norm is 0 (NaN in JAX and PyTorch), for p < 0
// wherever an element is 0, and for elements that are 0 (infinite in JAX for 0 < p < 1).
YOKE_API yoke_tensor *yoke_norm(yoke_tensor *x, double p, unsigned axes);
// The q-quantile, q in [0, 1], with linear interpolation between neighbors (Hyndman and Fan 1996,
// definition 7).  q is a number, or [Q], which gives [Q,..].  NaN where an element is NaN.  q out
// of range is ERANGE: from this call for a literal, otherwise from the evaluation.
YOKE_API yoke_tensor *yoke_quantile(yoke_tensor *x, yoke_tensor *q, int axis);
// Weighted moments in one pass over x [M,C], M observations of C channels.  The weights [M] are not
// negative and have x's dtype, or YOKE_NONE.  Observations of weight 0 are not read.  The
// covariance is square / (weight - 1).
struct yoke_moments {
	size_t size;
	yoke_tensor *weight, *mean;     // f64: sum of the weights [], means [C]
	yoke_tensor *square; // f64 [C,C], with `diagonal` [C]: summed products of deviations from
			     // the means, accurate to 1e-12 sqrt(square_ii square_kk)
	yoke_tensor *min, *max;  // minimum and maximum of each channel [C], of x's dtype
};
// Fills *to with tensors of the innermost scope.  After an error all are NULL.
YOKE_API int yoke_moments(yoke_tensor *x, yoke_tensor *weight, int diagonal,
			  struct yoke_moments *to);
// Counts elements in `bins` intervals of equal width between lo and hi, i64 [bins].  An interval
// includes its lower end; the last one also includes hi.  Elements outside, and NaN, are not
// counted.  Any number type.
YOKE_API yoke_tensor *yoke_histogram(yoke_tensor *x, int64_t bins, double lo, double hi);

// ---- contractions ----

#define YOKE_TA 1u // a is [..,K,M]
#define YOKE_TB 2u // b is [..,N,K]
// Makes each row of the result bitwise independent of the number of rows and matrices in the call
// and of its position; slower for few rows.  For NaN, only NaN-ness is reproducible, not the
// payload bits.
#define YOKE_BY_ROW 4u
// a [..,M,K], b [..,K,N] -> [..,M,N]; leading axes broadcast; sums in f32 for f16, bf16 and f32.
// Both operands need at least two axes; vectors are not accepted.
YOKE_API yoke_tensor *yoke_matmul(yoke_tensor *a, yoke_tensor *b, unsigned flags);
// matmul with a result dtype: that of a and b, or f32 for f16 and bf16 operands, rounded once, or
// i32 for i8 and u8 operands, exact up to 2^31 and wrapping beyond.  Gradients are computed in f32
// and rounded to the operands' dtype.
YOKE_API yoke_tensor *yoke_matmul_to(yoke_tensor *a, yoke_tensor *b, unsigned flags, int dtype);
// x [..,K], w [N,K], b [N] or YOKE_NONE -> [..,N]: x w' + b.  In half precision the product is
// rounded before b is added.
YOKE_API yoke_tensor *yoke_linear(yoke_tensor *x, yoke_tensor *w, yoke_tensor *b);

// ---- linear algebra ----
// For matrices [..,n,n] of f32 or f64, computed in f64 and rounded once; leading axes are a batch.
// Only the CPU has kernels for these; other devices fall back to it (yoke_fallbacks).

// The eigenvalues [..,n] of a symmetric matrix in ascending order; only the lower triangle is read.
// Unless NULL, *vectors gets unit eigenvectors [..,n,n], one per column, with the sign chosen so
// that the element of largest modulus is positive.  For f64, ||A V - V L|| / ||A|| and ||V'V - 1||
// are below 50 n 2^-53.  The gradient is that of a symmetric matrix.  Eigenvalues closer than 4 n
// times the dtype's precision times the largest modulus count as equal; their gradient contains
// only the terms that do not depend on the choice of eigenvectors, so it is finite (infinite in
// PyTorch).  NaN if the matrix is not finite.
YOKE_API yoke_tensor *yoke_eigh(yoke_tensor *a, yoke_tensor **vectors);
// The lower triangular L with L L' = a, for symmetric a, of which only the lower triangle is read.
// The evaluation fails with ERANGE, naming matrix and row, if a pivot is not positive.  The
// gradient is that of a symmetric matrix.
YOKE_API yoke_tensor *yoke_cholesky(yoke_tensor *a);
#define YOKE_TRANSPOSED 1u // solves t' x = b
#define YOKE_UPPER 2u      // t is upper triangular, else lower; the other triangle is not read
#define YOKE_UNIT 4u       // the diagonal of t is taken as 1 and not read
// Solves t x = b for x [..,n,k], with triangular t [..,n,n] and b [..,n,k]; leading axes broadcast.
// A 0 on the diagonal gives the results of a division by 0.
YOKE_API yoke_tensor *yoke_solve_triangular(yoke_tensor *t, yoke_tensor *b, unsigned flags);

// ---- reshaping, indexing, sorting ----
// reshape, permute, slice and broadcast_to return views; bitcast copies only where noted.

// One dim may be -1: it is inferred.
YOKE_API yoke_tensor *yoke_reshape(yoke_tensor *x, int rank, const int64_t *dims);
// Reinterprets the bytes as elements of another dtype except bool, in little-endian order.  If the
// sizes differ, the length of the last axis changes: f32 [..,N] gives u8 [..,4N], which gives f32
// [..,N].  The bytes are copied first if they are not contiguous along that axis or not aligned to
// the new size.  It is not differentiable: a gradient through it is EUNSUPPORTED.
YOKE_API yoke_tensor *yoke_bitcast(yoke_tensor *x, int dtype);
// Axis k of the result is axis order[k] of x.
YOKE_API yoke_tensor *yoke_permute(yoke_tensor *x, const int *order);
YOKE_API yoke_tensor *yoke_broadcast_to(yoke_tensor *x, int rank, const int64_t *dims);
// Elements start, start + step, ... before stop along one axis; negative values count from the end.
YOKE_API yoke_tensor *yoke_slice(yoke_tensor *x, int axis, int64_t start, int64_t stop,
				 int64_t step);
// Pads each axis with lo elements before and hi elements after, all equal to value.
YOKE_API yoke_tensor *yoke_pad(yoke_tensor *x, const int64_t *lo, const int64_t *hi, double value);
YOKE_API yoke_tensor *yoke_concat(int n, yoke_tensor *const *x, int axis);
YOKE_API yoke_tensor *yoke_flip(yoke_tensor *x, unsigned axes);
// A copy of x with v in place of x[starts .. starts + dims of v].
YOKE_API yoke_tensor *yoke_slice_update(yoke_tensor *x, const int64_t *starts, yoke_tensor *v);
// slice and slice_update with starts that are values: for each axis of x an i64 of rank 0 or a host
// scalar; YOKE_NONE is 0.  Sizes are part of the plan, starts are not.  ERANGE if the slice exceeds
// x: for a start on the host the evaluation has no effect; a start on the device is checked while
// the operation runs.
YOKE_API yoke_tensor *yoke_slice_at(yoke_tensor *x, yoke_tensor *const *starts,
				    const int64_t *sizes);
YOKE_API yoke_tensor *yoke_slice_update_at(yoke_tensor *x, yoke_tensor *const *starts,
					   yoke_tensor *v);
// Writes v into the variable at starts: in place if nothing else uses the old version.
YOKE_API int yoke_assign_at(yoke_tensor *variable, yoke_tensor *const *starts, yoke_tensor *v);
// Indexes an axis: x [..,N,..], idx [I..] i32 or i64 -> [..,I..,..].  ERANGE for an index out of
// range.
YOKE_API yoke_tensor *yoke_gather(yoke_tensor *x, yoke_tensor *idx, int axis);
// x [N,R..] with v [I..,R..] added at rows idx [I..], in a deterministic order.
YOKE_API yoke_tensor *yoke_scatter_add(yoke_tensor *x, yoke_tensor *idx, yoke_tensor *v);
// x [N,R..] with its rows idx [I..] replaced by those of v [I..,R..]; of equal indices the last
// counts, -1 is skipped.  ERANGE for another index out of range.
YOKE_API yoke_tensor *yoke_scatter_set(yoke_tensor *x, yoke_tensor *idx, yoke_tensor *v);
// Indexes along an axis: x [..,N,..], idx [..,I,..], which broadcasts to x along the other axes ->
// y[..,i,..] = x[..,idx[..,i,..],..].  ERANGE for an index out of range.
YOKE_API yoke_tensor *yoke_take_along(yoke_tensor *x, yoke_tensor *idx, int axis);
// x with v [..,I,..] added at idx [..,I,..] along an axis, in a deterministic order.
YOKE_API yoke_tensor *yoke_scatter_add_along(yoke_tensor *x, yoke_tensor *idx, yoke_tensor *v,
					     int axis);
// Sorts along an axis: stable, -0 equals 0, NaN last in either direction (in PyTorch first when
// descending).  Unless NULL, *indices gets the original position of each element, i64.
YOKE_API yoke_tensor *yoke_sort(yoke_tensor *x, int axis, int descending, yoke_tensor **indices);
// The k largest elements in descending order, or the k smallest in ascending order; NaN only if
// there are fewer than k numbers.
YOKE_API yoke_tensor *yoke_topk(yoke_tensor *x, int64_t k, int axis, int largest,
				yoke_tensor **indices);
// Top-k sparsification for gradient compression (Stich et al. 2018).  x is f32 with fewer than 2^31
// elements.  Returns the k elements of largest modulus in row-major order [k]; *places gets their
// flat indices, i32 [k], ascending; *rest gets x with 0 at those indices.  Ties go to the first;
// NaN ranks above all.  carried: YOKE_NONE, or a tensor of x's shape that is added to x first, such
// as the previous call's rest (error feedback).  places and rest may be NULL.
YOKE_API yoke_tensor *yoke_largest(yoke_tensor *x, yoke_tensor *carried, int64_t k,
				   yoke_tensor **places, yoke_tensor **rest);
// A copy whose elements are contiguous in row-major order.
YOKE_API yoke_tensor *yoke_contiguous(yoke_tensor *x);

// ---- neural networks ----

// Over one axis; -1 is the last.  logsumexp removes the axis; where its result is infinite, the
// elements equal to it share the gradient (NaN in JAX).
YOKE_API yoke_tensor *yoke_softmax(yoke_tensor *x, int axis);
YOKE_API yoke_tensor *yoke_log_softmax(yoke_tensor *x, int axis);
YOKE_API yoke_tensor *yoke_logsumexp(yoke_tensor *x, int axis);
// x [..,C]; w and b [C] or YOKE_NONE, of the dtype of x, or f32 with half-precision x.  Ba et al.
// 2016; Zhang and Sennrich 2019.
YOKE_API yoke_tensor *yoke_layer_norm(yoke_tensor *x, yoke_tensor *w, yoke_tensor *b, double eps);
YOKE_API yoke_tensor *yoke_rms_norm(yoke_tensor *x, yoke_tensor *w, double eps);
// Normalizes x [B,C,..] by each channel's mean and (biased) variance over all other axes.  Unless
// NULL, mean and var get these statistics, [C], in f32 for half precision.  w and b [C] or
// YOKE_NONE, as above.  Ioffe and Szegedy 2015.
YOKE_API yoke_tensor *yoke_batch_norm(yoke_tensor *x, yoke_tensor *w, yoke_tensor *b, double eps,
				      yoke_tensor **mean, yoke_tensor **var);
// x [B,T,H,D], cosine and sine [T,D/2]: rotates elements k and k + D/2 of a head by the angle of
// column k, (x0 cos - x1 sin, x1 cos + x0 sin).  The tables may be f32 with half-precision x.  Su
// et al. 2021, pairing the two halves of a head instead of neighboring elements.
YOKE_API yoke_tensor *yoke_rope(yoke_tensor *x, yoke_tensor *cosine, yoke_tensor *sine);
// w [N,C], ids [I..] i32 or i64 -> [I..,C].  ERANGE for an id out of range.
YOKE_API yoke_tensor *yoke_embedding(yoke_tensor *w, yoke_tensor *ids);
// q [B,T,H,D], k [B,S,G,D], v [B,S,G,E], G divides H, mask [B|1,H|1,T|1,S|1] or YOKE_NONE ->
// [B,T,H,E]: softmax(scale q k' + mask) v; the smaller of D and E is padded.  causal: query t
// attends to keys up to t + S - T, so the last query attends to all (PyTorch aligns to the first).
// A query without visible keys gives 0.  Keys masked by `causal`, by a mask that is false or -inf,
// or with weight 0 do not contribute to results and gradients, even where k or v is NaN (NaN in
// PyTorch).  The mask has the dtype of q, or f32 with half-precision q, or bool (true: visible).
// The gradient by the mask uses attention's decomposition, with [B,H,T,S] in memory.  scale 0 means
// 1/sqrt(D).
YOKE_API yoke_tensor *yoke_attention(yoke_tensor *q, yoke_tensor *k, yoke_tensor *v,
				     yoke_tensor *mask, int causal, double scale, double dropout);
// attention that uses only the first `keys` of the S keys: a key-value cache that fills.  keys is
// an i64 of rank 0 or a host scalar, or i64 [B] with one number for each batch row, for sequences
// of different lengths.  causal: query t attends to keys up to t + keys - T.  ERANGE for keys
// outside 0 .. S.
YOKE_API yoke_tensor *yoke_attention_keys(yoke_tensor *q, yoke_tensor *k, yoke_tensor *v,
					  yoke_tensor *keys, yoke_tensor *mask, int causal,
					  double scale, double dropout);
// Attention over a paged cache: q [T,H,D], k and v [pages,N,G,D] in f32, f16 or bf16 whatever q is,
// G divides H, table i32 [rows,M], row and pos i32 [T] -> [T,H,D].  Position s of sequence r is
// element s % N of page table[r,s / N].  Query t sees positions 0 .. pos[t] of the sequence row[t],
// with a window > 0 only the last `window` of them; row -1: the result is 0.  Scores x become cap
// tanh(x / cap); cap 0: they do not. scale 0 means 1/sqrt(D).  A query's result has the same bits
// whatever the other queries are.  It has no gradient of its own.  ERANGE for a row or a page that
// does not exist.
YOKE_API yoke_tensor *yoke_paged_attention(yoke_tensor *q, yoke_tensor *k, yoke_tensor *v,
					   yoke_tensor *table, yoke_tensor *row, yoke_tensor *pos,
					   double scale, int64_t window, double cap);
// logits [..,V], ids [..] i32 or i64 -> []: mean of -log softmax(logits)[id] over the ids that
// differ from `ignore`, NaN if there are none; label smoothing in [0, 1).  For half precision the
// loss is f32 (the logits' dtype in PyTorch); the other losses have the dtype of their operands.
YOKE_API yoke_tensor *yoke_cross_entropy(yoke_tensor *logits, yoke_tensor *ids, int64_t ignore,
					 double smooth);
YOKE_API yoke_tensor *yoke_mse(yoke_tensor *x, yoke_tensor *y); // mean (x - y)^2; broadcasts
// x logits and y targets in [0, 1] of the same shape -> []: mean of -y log s(x) - (1 - y) log(1 -
// s(x)), where s is the sigmoid.
YOKE_API yoke_tensor *yoke_bce_logits(yoke_tensor *x, yoke_tensor *y);
// p and q are log-probabilities [..,V] -> []: the sum of exp(p) (p - q) over the last axis,
// averaged over the others.  PyTorch's kl_div takes q first, and its batchmean divides by the first
// axis alone.
YOKE_API yoke_tensor *yoke_kl(yoke_tensor *p, yoke_tensor *q);

// ---- windows, convolutions, pooling ----
// For floating point; windows for any dtype.

// Sliding windows of `size` elements along an axis, `dilation` apart, starting every `stride`
// elements.  The axis of n elements becomes floor((n - dilation (size - 1) - 1) / stride) + 1
// windows, and a new last axis holds each window's elements.  A view, of any dtype; the gradient
// sums overlapping windows in a deterministic order.  ERANGE: no window fits.
YOKE_API yoke_tensor *yoke_window(yoke_tensor *x, int axis, int64_t size, int64_t stride,
				  int64_t dilation);

struct yoke_conv_options {
	size_t size;                    // sizeof, set by the caller
	int64_t groups;                 // 0: 1
	int64_t stride[3], dilation[3]; // of each spatial axis, 0: 1
	int64_t lo[3], hi[3];           // zero padding before and after each axis
	int64_t more[3];                // conv_transposed: additional elements of each axis, below
					// its stride
};
// x [B,C,S..] with 1 to 3 spatial axes, w [O,C/groups,K..] -> [B,O,Q..]: cross-correlation, as in
// PyTorch.  Q is the number of positions of a window of K along lo + S + hi.  Each option is at
// most 65535.  NULL: all 0.  x [C,S..], one axis less than w, has no batch, nor has the result.
// Does not materialize all windows (no im2col copy).  Sums in f32, or in f64 for f64.
YOKE_API yoke_tensor *yoke_conv(yoke_tensor *x, yoke_tensor *w, const struct yoke_conv_options *);
// x [B,C,Q..] or [C,Q..], w [C,O/groups,K..] -> [B,O,S..]: the gradient of such a convolution by
// its input, with S = (Q - 1) stride + dilation (K - 1) + 1 - lo - hi + more elements.
YOKE_API yoke_tensor *yoke_conv_transposed(yoke_tensor *x, yoke_tensor *w,
					   const struct yoke_conv_options *);

struct yoke_pool_options {
	size_t size;                    // sizeof, set by the caller
	int64_t window[3], stride[3];   // of each spatial axis; stride 0: as the window
	int64_t dilation[3];            // 0: 1
	int64_t lo[3], hi[3];           // padding before and after each axis
	int axes;                       // number of spatial axes; 0: all after [B,C]; with a
					// number, x may be [C,S..]
	int ceil_mode;                  // nonzero: the last window may reach beyond the padding, if
					// it begins before the padding after the axis
	int count_include_pad;          // mean_pool: nonzero: lo and hi count as zeros; ceil_mode's
					// elements do not
};
// x [B,C,S..] with 1 to 3 spatial axes -> [B,C,Q..]: the maximum or the mean of each window.  Equal
// maxima share the gradient.  A window that contains only padding gives -inf for the maximum and
// NaN for the mean.
YOKE_API yoke_tensor *yoke_max_pool(yoke_tensor *x, const struct yoke_pool_options *);
YOKE_API yoke_tensor *yoke_mean_pool(yoke_tensor *x, const struct yoke_pool_options *);
// Pooling of x [B,C,S..] with to[i] windows along spatial axis i: window k of n elements covers
// floor(k n / to) to ceil((k + 1) n / to) - 1.
YOKE_API yoke_tensor *yoke_adaptive_max_pool(yoke_tensor *x, const int64_t *to);
YOKE_API yoke_tensor *yoke_adaptive_mean_pool(yoke_tensor *x, const int64_t *to);
// x [B,C,S..] -> [B,C,to..].  smooth 0: output i is element floor(i S / to).  smooth 1: linear
// interpolation along each axis at (i + 1/2) S / to - 1/2, clamped to the first and last element.
YOKE_API yoke_tensor *yoke_resize(yoke_tensor *x, const int64_t *to, int smooth);

// ---- grouped matrix products ----

// Multiplies each row of x [T,K] by the matrix of its group: w [E,K,N], first [E+1] i64 -> [T,N].
// Rows first[e] .. first[e+1] - 1 belong to group e; rows of no group give 0.  The plan does not
// depend on the group sizes.  Differentiable by x and w.  The evaluation fails with ERANGE if first
// decreases or leaves 0 .. T.
YOKE_API yoke_tensor *yoke_grouped_matmul(yoke_tensor *x, yoke_tensor *w, yoke_tensor *first);

// ---- tridiagonal matrices ----

// The diagonal of (H - z)^-1 of tridiagonal real matrices: a [..,N] is H_ii, b and c [..,N-1] are
// H_i,i+1 and H_i+1,i, or YOKE_NONE: ones; z [..,2] is x + iy, and y may be 0.  Leading axes
// broadcast: one matrix at many z.  -> G [..,N,2], real and imaginary parts, of the operands'
// dtype.  N may be 0.
// With alpha_i = a_i - z, k_i = b_i c_i, L_0 = alpha_0, L_i = alpha_i - k_(i-1) / L_(i-1), and R
// defined likewise from the other end: side BOTH gives G_i = 1 / (L_i + R_i - alpha_i), the
// diagonal; LEFT gives 1 / L_i, the last diagonal element for the leading block 0..i, which does
// not depend on indices above i.  If no k is negative, |G| <= 1/|y|.
// The evaluation fails with ERANGE if an operand is not finite, or, with y = 0 or a k < 0, if z
// equals an eigenvalue of H (side LEFT: of a leading block) to rounding.  Rows of f32 with numbers
// beyond 1e8, with |y| up to 1e-8 or with a k < 0 are computed in f64.  With y = 0 or a k < 0, G is
// as accurate as the result for a matrix that differs from H by roundings.
enum yoke_resolvent_side { YOKE_SIDE_BOTH, YOKE_SIDE_LEFT };
// The arithmetic.  AUTO is F32 for f32, f16 and bf16 operands, with an error of at most 1e-6 /
// min(|y|,1)^2 for N up to 4096, |a| <= 8 and k >= 0; for f64 operands AUTO is F64, with 2e-15 in
// place of 1e-6.  MIXED: L and R in f32, the last division in f64.  HALF: L and R first in f16 or
// bf16, then refined by `sweeps` rounds in f32 over all i at once.  Each row's error bound is
// derived from the last round's changes and the rounding of f32 (Ward's identity).  Rows whose
// bound exceeds `tolerance`, or with a negative k or y = 0, are recomputed in F32 and counted in
// yoke_stats.  HALF costs more than F32: its purpose is to study what half precision can achieve.
// HALF does not accept f64 operands.
enum yoke_tier { YOKE_TIER_AUTO, YOKE_TIER_F64, YOKE_TIER_F32, YOKE_TIER_MIXED, YOKE_TIER_HALF };
// EXACT: the adjoint, by a, b, c and z.  It stores only the operands.  It is computed in f64 for
// tier F64 and, for MIXED and HALF, in rows whose largest |cotangent| is below `adaptive`;
// otherwise in f32.  The other kinds approximate the gradient by a; their gradients by b, c and z
// are 0.  With g the cotangent, g~ its conjugate and F = G^2: DIAG -Re(g~ F); INVERSE -Re(g / (F +
// 1e-6)), where an F of modulus below 1e-3 is scaled to modulus 1e-3; HYBRID (1 - blend) DIAG +
// blend INVERSE; STEP5 as HYBRID with g for g~.  They are clamped to +-1000, and are 0 where not
// finite.
enum yoke_resolvent_gradient {
	YOKE_GRADIENT_EXACT,
	YOKE_GRADIENT_DIAG,
	YOKE_GRADIENT_INVERSE,
	YOKE_GRADIENT_HYBRID,
	YOKE_GRADIENT_STEP5
};
#define YOKE_SWEEPS (-1) // the default for `half`: 6 for f16, 8 for bf16
struct yoke_resolvent {
	size_t size;
	int side, tier;
	int half, sweeps; // tier HALF: yoke_f16 or yoke_bf16; 0 to 64, or YOKE_SWEEPS; 0 gives no
			  // error bound
	int gradient;
	double tolerance; // above 0; INFINITY: only rows with a negative k or real z are recomputed
	double blend, adaptive;
	yoke_tensor **bound; // NULL, or gets each row's error bound [..] of tier HALF, 0 for other
			     // tiers; f32, or f64 for f64
};
#define YOKE_RESOLVENT_INIT \
	{ .size = sizeof(struct yoke_resolvent), .half = yoke_f16, .sweeps = YOKE_SWEEPS, \
	  .tolerance = 1e-4, .blend = 0.5, .adaptive = 1e-2 }
// how: NULL, or YOKE_RESOLVENT_INIT with changes.
YOKE_API yoke_tensor *yoke_resolvent(yoke_tensor *a, yoke_tensor *b, yoke_tensor *c, yoke_tensor *z,
				     const struct yoke_resolvent *how);

// Chains with complex diagonal elements, such as self-energies of leads: H_ii = a_i + i a_im_i,
// with a and a_im [..,N], b and c [..,N-1] as above, and any complex z [..,2].  a_im, b and c may
// be YOKE_NONE: 0, ones and ones.  All operands have the same dtype, and their leading axes
// broadcast.  Everything is computed in f64 by recurrences from both ends, with the accuracy of
// elimination with pivoting, and rounded once to the operands' dtype.  Differentiable by all five
// operands, repeatedly; second derivatives by the diagonal lose digits if z is close to an
// eigenvalue of a leading or trailing block.
// The evaluation fails with ERANGE if an operand is not finite or z equals an eigenvalue of H to
// rounding.  ESHAPE, EDTYPE: the operands do not match.
//
// yoke_resolvent_complex: the diagonal of (H - z)^-1, G [..,N,2]; side: enum yoke_resolvent_side.
YOKE_API yoke_tensor *yoke_resolvent_complex(yoke_tensor *a, yoke_tensor *a_im, yoke_tensor *b,
					     yoke_tensor *c, yoke_tensor *z, int side);
// The corner element [(H - z)^-1]_1N = -b_1 .. b_(N-1) / det(z - H): [..,2]; N is at least 1.
// Exchanging b and c gives element N, 1.  A chain between two leads, whose self-energies S_L and
// S_R are added to its first and last element, has the transmission T = G_L G_R |corner|^2 at z =
// E, with G = -2 Im S (Fisher and Lee 1981); examples/transmission.c.
YOKE_API yoke_tensor *yoke_resolvent_corner(yoke_tensor *a, yoke_tensor *a_im, yoke_tensor *b,
					    yoke_tensor *c, yoke_tensor *z);
// log det(z - H): [..,2], log |det| and the phase; N may be 0.  Its derivative by z is the trace of
// (z - H)^-1, the negative sum of the diagonal above.  The phase is the sum of the arguments, each
// in (-pi, pi], of the N ratios of leading minors of z - H; it is not reduced to one turn.  If no b
// c is negative and no a_im positive, the phase is continuous in the half-plane Im z > 0, where it
// goes from N pi to 0 with increasing Re z; for real H and z with no b c negative it is pi times
// the number of eigenvalues above z.  If a b c is negative, the phase is only an argument of det:
// it is defined up to whole turns.
YOKE_API yoke_tensor *yoke_resolvent_log_det(yoke_tensor *a, yoke_tensor *a_im, yoke_tensor *b,
					     yoke_tensor *c, yoke_tensor *z);

// ---- ordering ----

// to[i] = x[i], such that operations that read to[i] are launched only after the m values `after`.
// Adds no cost except the ordering.  Gradients pass through.  After an error each to[i] is NULL.
YOKE_API int yoke_barrier(int n, yoke_tensor *const *x, int m, yoke_tensor *const *after,
			  yoke_tensor **to);

// ---- gradients, optimizer steps ----
// yoke-optim.h has optimizers with states, parameter groups and schedules.

// g[i] = d y / d p[i] for a y of one element; zeros if y does not depend on p[i].  ECONTEXT: p[i]
// belongs to another context, from which y depends on nothing (see yoke_to).  Gradients are
// ordinary values and can be differentiated again.  sign, floor, round, ceil, comparisons and casts
// to integers have gradient 0; operations without a gradient are EUNSUPPORTED.  A variable stands
// for its current version: ERELEASED if y depends only on an earlier version, or depends on p[i]
// through a value whose recording has been discarded.  After an error each g[i] is NULL.
YOKE_API int yoke_grad(yoke_tensor *y, int n, yoke_tensor *const *p, yoke_tensor **g);
// The vector-Jacobian product of m values of any shapes: given the gradient of some quantity by
// each y[i] (cotangents, with the shapes and dtypes of y), g gets the gradient of that quantity by
// p.  It continues a backward pass that another rank or an earlier evaluation has started.
YOKE_API int yoke_grad_from(int m, yoke_tensor *const *y, yoke_tensor *const *cotangent, int n,
			    yoke_tensor *const *p, yoke_tensor **g);
// Optimizer steps over lists of n tensors, as assignments to p, m, v (b): AdamW (Loshchilov and
// Hutter 2019), SGD with momentum as in PyTorch.  scale multiplies the gradients first (a value or
// scalar of one element, or YOKE_NONE).  Gradients do not flow through a step: afterwards the new
// p, m and v are leaves.  EINVAL: a variable is listed twice.
struct yoke_adamw {
	size_t size;               // sizeof, set by the caller, here and below
	yoke_tensor *lr, *c1, *c2; // learning rate, 1 - beta1^t, 1 - beta2^t: scalars
	yoke_tensor *scale;
	double beta1, beta2, eps, weight_decay;
	yoke_tensor *skip; // a number: if it is not 0, the step changes nothing, bit for bit.
			   // Optional: YOKE_NONE, or NULL unless an earlier call failed
};
YOKE_API int yoke_adamw_step(int n, yoke_tensor *const *p, yoke_tensor *const *g,
			     yoke_tensor *const *m, yoke_tensor *const *v,
			     const struct yoke_adamw *);
// LAMB (You et al. 2020): Adam's step r with decay, times phi(|p|)/|r| of each tensor, or 1 if a
// norm is 0; phi clamps the norm to min .. max (0: no bound).
struct yoke_lamb {
	size_t size;
	yoke_tensor *lr, *c1, *c2; // as AdamW's
	yoke_tensor *scale;
	double beta1, beta2, eps, weight_decay, min, max;
	int plain; // not 0: uses the ratio 1 (for biases, norms)
	yoke_tensor *skip; // as AdamW's
};
YOKE_API int yoke_lamb_step(int n, yoke_tensor *const *p, yoke_tensor *const *g,
			    yoke_tensor *const *m, yoke_tensor *const *v, const struct yoke_lamb *);
struct yoke_sgd {
	size_t size;
	yoke_tensor *lr, *first; // first: scalar, 1 in the first step, then 0; YOKE_NONE without
				 // momentum
	yoke_tensor *scale;
	double momentum, dampening, weight_decay;
	int nesterov;
	yoke_tensor *skip; // as AdamW's
};
// b: NULL without momentum.
YOKE_API int yoke_sgd_step(int n, yoke_tensor *const *p, yoke_tensor *const *g,
			   yoke_tensor *const *b, const struct yoke_sgd *);
// to[i] = g[i] times scale, in f32 (f64 for f64): unscales gradients, with scale = 1 / loss scale.
// overflow, bool []: whether any gradient is infinite or NaN; use it in a select in the update.
// After an error all are NULL.
YOKE_API int yoke_unscale_check(int n, yoke_tensor *const *g, yoke_tensor *scale, yoke_tensor **to,
				yoke_tensor **overflow);
// The 2-norm over all tensors, f32 []; its gradient at 0 is 0.
YOKE_API yoke_tensor *yoke_global_norm(int n, yoke_tensor *const *x);

// Dynamic loss scaling for gradients that f16 would flush to 0 (Micikevicius et al. 2018).  A step:
//
//	yoke_grad(yoke_scaler_scale(s, loss), n, p, g);
//	yoke_scaler_update(s);                     // of the previous step; no-op at first
//	yoke_scaler_check(s, n, p, g, &norm, &skip);
//	o.scale = yoke_scaler_inverse(s);          // optionally times a factor that clips by norm
//	o.skip = skip;
//	yoke_adamw_step(n, p, g, m, v, &o);
//	yoke_eval(0, NULL);
//
// Overflow is detected on the device, which also skips the step, bit for bit, so that a step is one
// evaluation.  The scale is a host scalar: update waits for the previous step's flag (4 bytes) when
// the next step's gradients are recorded but not launched, since the next step's scale, learning
// rate and bias corrections depend on that flag.
typedef struct yoke_scaler yoke_scaler;
struct yoke_scaler_options { // 0 selects the default, given in brackets
	size_t size;
	double scale, growth, backoff; // initial scale [65536]; factor [2] after `interval` good
				       // steps; factor [0.5] after an overflow
	double min, max;            // bounds of the scale [1] .. [8388608]
	int64_t interval;              // consecutive steps without an overflow [2000]
	int64_t hysteresis;            // number of overflows, since the scale last grew, from which
				       // on each one lowers the scale [1], as in Megatron-LM's
				       // DynamicGradScaler
};
// Creates a scaler for the current context; NULL: all defaults.  EINVAL names the value and its
// rule.
YOKE_API yoke_scaler *yoke_scaler_new(const struct yoke_scaler_options *);
YOKE_API void yoke_scaler_free(yoke_scaler *); // NULL is fine
// loss times the scale, in at least f32.
YOKE_API yoke_tensor *yoke_scaler_scale(yoke_scaler *, yoke_tensor *loss);
// 1 over the scale: a host scalar that the scaler owns.
YOKE_API yoke_tensor *yoke_scaler_inverse(yoke_scaler *);
// Checks the gradients of a scaled loss in one launch: *norm gets their overall 2-norm over the
// scale, f32 [], and *skip gets 1 if that is infinite or NaN, otherwise 0, f32 [].  p: NULL, or the
// variables of the gradients, for their names.  n must be the same in all checks.  After an error
// both are NULL.
YOKE_API int yoke_scaler_check(yoke_scaler *, int n, yoke_tensor *const *p, yoke_tensor *const *g,
			       yoke_tensor **norm, yoke_tensor **skip);
#define YOKE_STEPPED 0
#define YOKE_SKIPPED 1
// Waits for the step checked last, sets the scale of the next one, and returns YOKE_STEPPED (also
// if nothing was checked since the last update) or YOKE_SKIPPED.  ERANGE: the scale was already at
// its minimum; the error names the first tensor that was not finite.
YOKE_API int yoke_scaler_update(yoke_scaler *);
struct yoke_scaler_stats {
	size_t size;
	double scale;            // of the next step
	double rate;             // overflows / steps
	uint64_t steps, overflows; // of the last 100 steps
	uint64_t all_steps, skipped; // since the scaler was new
	int64_t first;           // index of the first nonfinite tensor at the last overflow; -1: no
				 // overflow
	const char *name;        // name of its variable, "" if unknown
};
YOKE_API int yoke_scaler_stats(const yoke_scaler *, struct yoke_scaler_stats *);
// The complete state of a scaler except its options.  load validates it: EINVAL names the wrong
// member.
struct yoke_scaler_state {
	size_t size;
	double scale;
	int64_t clean, left;     // steps since the last change; overflows until the scale falls
	uint64_t steps, skipped; // total
	uint64_t recent[2];      // bit k is set if step 100 q + k of the last 100 overflowed
};
YOKE_API int yoke_scaler_save(const yoke_scaler *, struct yoke_scaler_state *);
YOKE_API int yoke_scaler_load(yoke_scaler *, const struct yoke_scaler_state *);

// ---- evaluation ----

// Computes all roots: new versions of variables, kept values, and the n given tensors.  Does not
// wait.  An error before the first launch (a shape, a plan, memory) leaves everything unchanged and
// pending.  If a launch fails, immediately or as reported later by the device, its outputs are
// lost: using them is EFAILED, with the place of the failure, until yoke_put gives a variable a new
// value.
// A value larger than the device's largest allocation is kept in host memory and computed in tiles
// if tiling does not change the bits, otherwise on the CPU, which a warning reports once.
YOKE_API int yoke_eval(int n, yoke_tensor *const *t);
// Evaluates as yoke_eval does if the device is the CPU and an estimate from the operations and
// shapes is at most about 50 ms.  For threads that must stay responsive.  all = 0: does nothing if
// the n tensors already have their values, like yoke_read.  Returns 1 after the evaluation, 0 if it
// may take longer, when everything stays pending, or an error.
YOKE_API int yoke_eval_brief(int n, yoke_tensor *const *t, int all);
// Evaluates, waits, and copies the value's elements, row-major, to the host; bytes must be its
// size.  ERELEASED: it was an intermediate of an earlier evaluation, and a variable that it needs
// has been overwritten since; keep it, or pass it to yoke_eval.
YOKE_API int yoke_read(yoke_tensor *t, void *to, size_t bytes);
// Reads without a copy, on the CPU: evaluates, waits, and returns a new handle, owned by the
// caller, with the same bytes, row-major at *at.  The bytes stay valid and unchanged until that
// handle is freed, whatever happens to t, and must not be written.  EUNSUPPORTED: the device's
// memory is not addressable by the host, or t is a variable in a pack.
YOKE_API yoke_tensor *yoke_share(yoke_tensor *t, const void **at);
// Waits for all work launched in the current context; returns a failure not yet returned by another
// call.
YOKE_API int yoke_sync(void);

// Why the current context's last evaluation that needed a new plan found none in the cache: the
// field in which it differs from the most similar plan ("node 812 reshape in step: dim 0: 32 ->
// 17"), or "".  Valid until the next call that evaluates.
YOKE_API const char *yoke_plan_miss(void);

struct yoke_stats {
	size_t size;                 // set by the caller to sizeof
	uint64_t evals, plan_hits, plan_misses;
	uint64_t launches;           // plan steps launched
	uint64_t fallbacks;          // steps run on the CPU because the device does not support
				     // them
	uint64_t fallback_bytes;     // bytes copied between devices for them
	uint64_t bytes_up, bytes_down; // bytes copied by put, from and read
	uint64_t assign_copies, assign_copy_bytes;
	uint64_t predicted_peak;     // of the last plan: peak bytes of device memory
	uint64_t pool_allocated, pool_allocated_peak, pool_reserved, pool_reserved_peak;
	uint64_t pool_hits, pool_misses, pool_retries, pool_ooms;
	uint64_t pending_nodes, live_handles, plans;
	uint64_t pool_compactions, pool_moved_bytes; // compactions of fragmented memory, bytes they
						     // moved
	uint64_t programs_compiled, programs_found; // by all backends of this process: kernel
						    // programs compiled, and found in the cache
	uint64_t repeated; // operations recomputed for a later evaluation because their results
			   // were not kept
	uint64_t pack_copies, pack_copy_bytes; // new versions of packed variables copied into their
					       // pack
	uint64_t unpacked; // variables that left their pack: no memory for such a copy, or their
			   // value is shared with another whose value was lost
	uint64_t activations; // bytes of results kept for gradients at their peak, in the plan with
			      // the most
	uint64_t workspace;   // bytes of the largest workspace of a step
	uint64_t replays;     // launches of a whole plan by replaying a graph that the driver
			      // recorded
	uint64_t promoted_rows; // rows of yoke_resolvent's tier HALF recomputed in f32, by all
				// backends of this process
};
// Statistics of the current context and its device.  Peaks, activations and workspace are since
// yoke_stats_reset_peaks.
YOKE_API int yoke_stats(struct yoke_stats *);
YOKE_API int yoke_stats_reset_peaks(void);
// Returns free memory that the pools of the current context's devices (its device and the CPU)
// keep for reuse, after waiting for the context's work: arenas of plans, buffers of uploads, and
// freed values.  Values, plans and compiled kernels stay; the next step allocates anew.  Returns
// the bytes given back, also those of other contexts on these devices; or a negative YOKE_E*.
YOKE_API int64_t yoke_trim(void);

// The fallback of one op, which the context's device does not support, to the CPU, for results of
// one dtype and shape.
struct yoke_fallback {
	size_t size;     // sizeof of an array element; set by the caller in the first one
	const char *op;  // "sort"; never freed
	int dtype, rank; // of its first result; rank -1: many shapes, no longer counted separately
	int64_t dims[YOKE_MAX_RANK];
	uint64_t count;  // launches on the CPU
	uint64_t bytes;  // bytes copied between the devices for them
};
// Lists the fallbacks of the current context, most bytes first: fills the first `max` elements of
// `to` (NULL for none) and returns the total number.  Their sums are fallbacks and fallback_bytes
// of yoke_stats.
YOKE_API int yoke_fallbacks(int max, struct yoke_fallback *to);

#ifdef __cplusplus
}
#endif
#endif
