// SPDX-License-Identifier: Apache-2.0
// Networks of modules: layers with parameters, made of each other, of one's own and of the operations of yoke.h.
//
//	yoke_module *net = yoke_nn_sequential(3, (yoke_module *[]){ yoke_nn_linear(64, 128, 1),
//		yoke_nn_activation("relu"), yoke_nn_linear(128, 10, 1) });
//	yoke_tensor *p[4], *g[4];
//	const char *names[4];
//	int n = yoke_module_parameters(net, 4, p, names);      // "0.weight", "0.bias", "2.weight", "2.bias"
//	yoke_optim_add(o, n, p, names, NULL);
//	for (..) {
//		yoke_scope *s = yoke_scope_begin("step");
//		yoke_grad(yoke_cross_entropy(yoke_call(net, x), y, -1, 0), n, p, g);
//		yoke_optim_step(o, n, g, NULL);
//		yoke_eval(0, NULL);
//		yoke_scope_end(s);
//	}
//	yoke_module_save(net, "net.safetensors");
//	yoke_module_free(net);
//
// A module is a class, which is a few functions, and a state that these know; it has parameters, which are trained,
// buffers, which are saved and not trained (the running statistics of a batch norm), and children.  A name is the
// path to it, "layers.0.attn.q.weight": parameters first, then buffers, then children, each in the order in which
// they were added.  A walk through a module goes in that order, and comes to a tensor that several share once, by its
// first name.  Patterns of names are those of fnmatch(3), with commas between them; a name is meant that matches one,
// unless it matches one behind a '!': "*.weight,!head.*".
//
// Parameters are made in the current context and belong to their module; random first values depend on the context's
// seed and on the order in which modules are made since yoke_random_set said it, and are computed by the next evaluation.
// A module is used by the thread whose context it is in.
//
// Conventions are those of yoke.h: 0 or a negative YOKE_E*, or NULL; NULL as an operand, or as a module, means an
// earlier error and gives NULL again, or the error's code.
#ifndef YOKE_NN_H
#define YOKE_NN_H

#include <yoke-op.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct yoke_module yoke_module;

// ---- modules ----

struct yoke_module_class {
	size_t size;      // sizeof, set by who defines it
	const char *name; // "linear", for messages
	// Records what the module computes: n values in, m values out, as many as it has (else it fails with EINVAL).
	// Runs in a scope of the module's own; what it gives is lifted out of it.  0, or an error.
	int (*forward)(yoke_module *, void *state, int n, yoke_tensor *const *in, int m, yoke_tensor **out);
	void (*release)(void *state); // once, with the module; NULL: the state is not the module's
};

// A module without parameters.  The class has to stay.  When it fails, the state is released.
YOKE_API yoke_module *yoke_module_new(const struct yoke_module_class *, void *state);
// Frees it with its parameters, buffers and children; EINVAL for a child, which its parent frees.  NULL is fine.
YOKE_API int yoke_module_free(yoke_module *);
// The state that yoke_module_new was given.
YOKE_API void *yoke_module_state(const yoke_module *);

// First values of a parameter: all `value`, uniform in -value .. value, or normal of that deviation.
enum { YOKE_FIRST_VALUE, YOKE_FIRST_UNIFORM, YOKE_FIRST_NORMAL };
// Adds a parameter, a variable of floating point; or a buffer, of any dtype, filled with a value.  The name has no
// '.', and no other parameter, buffer or child of the module has it (EINVAL).  The tensor is the module's; ask for it
// anew (yoke_module_own) where the module may have been cast, moved or shared since.
YOKE_API yoke_tensor *yoke_module_parameter(yoke_module *, const char *name, int dtype, int rank,
					    const int64_t *dims, int first, double value);
YOKE_API yoke_tensor *yoke_module_buffer(yoke_module *, const char *name, int dtype, int rank, const int64_t *dims,
					 double value);
// A parameter or buffer of this module alone, by the order of adding, from 0 on.
YOKE_API yoke_tensor *yoke_module_own(const yoke_module *, int i);
// Adds a child, which belongs to the module from then on, after an error too.  EINVAL: the name is there already, the
// child has a parent, or the module is part of it.
YOKE_API int yoke_module_child(yoke_module *, const char *name, yoke_module *child);
// Child i, from 0 on; NULL, without an error, when there are no more.
YOKE_API yoke_module *yoke_module_at(const yoke_module *, int i);
// Ties weights: the parameter at `path` becomes the one at `with`, below the same module.  The parameter that was at `path`
// is freed, unless it is tied elsewhere.  ENOENT; ESHAPE or EDTYPE when they differ.
YOKE_API int yoke_module_share(yoke_module *, const char *path, const char *with);
// The same with a parameter of another module, which need not be part of the same network.  The tensor is freed with the
// last module that holds it.  yoke_module_cast and yoke_module_move of one network leave the other network's tensor as it is.
YOKE_API int yoke_module_tie(yoke_module *, const char *path, yoke_module *other, const char *with);

// ---- all of a network ----

enum { YOKE_MODULE_BUFFER = 1, YOKE_MODULE_FROZEN = 2 };
// Calls fn for each parameter and buffer; what it returns, unless 0, ends the walk and is returned.
YOKE_API int yoke_module_each(yoke_module *, int (*fn)(void *arg, const char *path, yoke_tensor *, unsigned flags),
			      void *arg);
// Its parameters that are not frozen: fills the first `most` of to, and of names unless NULL, and returns how many
// there are.  Names stay until the module, or one that it is part of, is changed or freed.
YOKE_API int yoke_module_parameters(yoke_module *, int most, yoke_tensor **to, const char **names);
// By path; ENOENT.
YOKE_API yoke_tensor *yoke_module_find(yoke_module *, const char *path);
// Freezes the parameters whose names match (on: 1), or lets them be trained again (0): no gradient is recorded for
// those that yoke_module_parameters does not give.  ENOENT: none matches.
YOKE_API int yoke_module_freeze(yoke_module *, const char *pattern, int on);
// Training (1, as it is made) or evaluation (0): what dropout and batch norm do.  For the module and all below.
YOKE_API int yoke_module_mode(yoke_module *, int training);
YOKE_API int yoke_module_training(const yoke_module *);
// Parameters and buffers of floating point become of that dtype, rounded; their tensors are new ones.
YOKE_API int yoke_module_cast(yoke_module *, int dtype);
// All of them become variables of another context, with the same bits.
YOKE_API int yoke_module_move(yoke_module *, yoke_context *to);

// ---- computing ----

// Records what the module computes, of n values m.  After an error each out[i] is NULL.
YOKE_API int yoke_forward(yoke_module *, int n, yoke_tensor *const *in, int m, yoke_tensor **out);
// Of one value one.
YOKE_API yoke_tensor *yoke_call(yoke_module *, yoke_tensor *x);

// ---- files ----

// Parameters and buffers by their names, into a safetensors file; written atomically.  Waits for them.
YOKE_API int yoke_module_save(yoke_module *, const char *path);
// Into several files of `most` bytes of tensors each (a larger tensor has one alone), beside an index of which is where, as
// Hugging Face's libraries have them: path is NAME.safetensors.index.json, files are NAME-00001-of-00003.safetensors.  The
// index is written last; then the files of the index before it go.  So whoever is killed leaves the old set or the new one.
YOKE_API int yoke_module_save_split(yoke_module *, const char *path, uint64_t most);
struct yoke_module_load {
	size_t size;  // sizeof, set by the caller
	int partial;  // 0: the file has exactly the module's names; else what only one of them has is left out
	int exact;    // 0: floating point is cast to the parameter's dtype; else EDTYPE
	// The module's name of a name in the file: writes it to `to`, of that room; NULL: they are the same.
	void (*rename)(void *arg, const char *name, char *to, size_t room);
	void *arg;
};
// From a safetensors file, or, of a path that ends in .index.json, the files that it names, which lie beside it; they are
// mapped, and read where they are needed.  EFORMAT says what an index has that its files have not; it names what is missing,
// what is not known, and what has another shape or dtype, all together; then nothing is changed.  NULL: all as 0.
YOKE_API int yoke_module_load(yoke_module *, const char *path, const struct yoke_module_load *);

// ---- layers ----
// Their parameters are f32 and have the names and layouts of PyTorch's.

// x [..,in] -> [..,out]: weight [out,in], bias [out], both U(-1/sqrt(in), 1/sqrt(in)).
YOKE_API yoke_module *yoke_nn_linear(int64_t in, int64_t out, int bias);
// ids [..] -> [..,width]: weight [count,width], N(0, 1).
YOKE_API yoke_module *yoke_nn_embedding(int64_t count, int64_t width);
// x [..,width]: weight [width] 1, bias 0; rms_norm has no bias.
YOKE_API yoke_module *yoke_nn_layer_norm(int64_t width, double eps);
YOKE_API yoke_module *yoke_nn_rms_norm(int64_t width, double eps);
// x [B,channels,..]: over each of `groups` parts of the channels, with what lies behind.  Wu and He 2018.
YOKE_API yoke_module *yoke_nn_group_norm(int64_t groups, int64_t channels, double eps);
// x [B,channels,..]: over all but the channels.  Ioffe and Szegedy 2015.  In training by the batch's statistics, and
// running_mean and running_var take a share `momentum` of them, the variance with Bessel's correction, for which x has two
// elements of each channel or more (ESHAPE); in evaluation by these.
YOKE_API yoke_module *yoke_nn_batch_norm(int64_t channels, double eps, double momentum);
// x [B,in,S..] -> [B,out,Q..], 1 or 2 axes behind, as yoke_conv: weight [out,in/groups,K..], bias [out], both
// U(-1/sqrt(n), 1/sqrt(n)), n = in/groups times the kernel's elements.  kernel: of each axis.  Options may be NULL.
YOKE_API yoke_module *yoke_nn_conv(int axes, int64_t in, int64_t out, const int64_t *kernel,
				   const struct yoke_conv_options *, int bias);
// As yoke_conv_transposed: weight [in,out/groups,K..], n = out/groups times the kernel's elements.
YOKE_API yoke_module *yoke_nn_conv_transposed(int axes, int64_t in, int64_t out, const int64_t *kernel,
					      const struct yoke_conv_options *, int bias);
// yoke_max_pool and its like; to: elements of each axis.
YOKE_API yoke_module *yoke_nn_max_pool(const struct yoke_pool_options *);
YOKE_API yoke_module *yoke_nn_mean_pool(const struct yoke_pool_options *);
YOKE_API yoke_module *yoke_nn_adaptive_max_pool(int axes, const int64_t *to);
YOKE_API yoke_module *yoke_nn_adaptive_mean_pool(int axes, const int64_t *to);
YOKE_API yoke_module *yoke_nn_resize(int axes, const int64_t *to, int smooth);
// x [B,..] -> [B,all of it].
YOKE_API yoke_module *yoke_nn_flatten(void);
// As yoke_dropout in training, nothing in evaluation.
YOKE_API yoke_module *yoke_nn_dropout(double p);
// "relu", "gelu", "gelu_tanh", "silu", "tanh", "sigmoid"; ENOENT names them.
YOKE_API yoke_module *yoke_nn_activation(const char *name);
// Each is given what the one before gives; children "0", "1", ..  They belong to the module, after an error too.
YOKE_API yoke_module *yoke_nn_sequential(int n, yoke_module *const *modules);
// x + inner(x); child "inner".
YOKE_API yoke_module *yoke_nn_residual(yoke_module *inner);
// linear, activation, dropout, linear: children up, act, drop, down.
YOKE_API yoke_module *yoke_nn_mlp(int64_t in, int64_t hidden, int64_t out, const char *activation, double dropout);

struct yoke_nn_attention_options {
	size_t size;           // sizeof, set by the caller
	int64_t width;         // of x and of the result
	int64_t heads;         // they divide width
	int64_t kv_heads;      // of keys and values, which divide heads; 0: as many
	int causal, bias;      // bias: of the four products
	double dropout;        // of the weights, in training
	double rope;           // base of the angles (10000), 0: positions are not turned
	int fused;             // q, k and v are parts of one product, in that order
	const char *activation; // of a block's mlp; NULL: "gelu"
};
// x [B,T,width], or x and context [B,S,width] for attention to another sequence -> [B,T,width]: children q, k, v,
// out; fused: qkv, proj.  Tokens that follow others: yoke_forward of x, keys, values, at, seen.  keys and values are
// variables [B,S,kv_heads,D] of the caller's with those of the tokens before, which those of x join at `at`, and `seen`
// is how many there are with them: host scalars (yoke_scalar).  Sequences of other lengths have caches of their own,
// [1,S,kv_heads,D]: keys, values, at, seen of row 0, then those of row 1, .., of 64 rows at most.
YOKE_API yoke_module *yoke_nn_attention(const struct yoke_nn_attention_options *);
// A pre-norm block: x + attention(norm(x)), then that plus mlp(norm(..)) of four times the width, gelu: children
// norm1, attn, norm2, mlp.  dropout: also of what each half adds.  It takes what its attention takes.
YOKE_API yoke_module *yoke_nn_block(const struct yoke_nn_attention_options *);
// inner(x) + alpha/rank (x a') b' around a linear layer, whose parameters are frozen: a [rank,in] as a linear's
// weight, b [out,rank] 0.  Hu et al. 2021.  Child "inner".  What is refused (EINVAL) stays the caller's.
YOKE_API yoke_module *yoke_nn_lora(yoke_module *linear, int64_t rank, double alpha);
// What was added for training is put where it costs nothing: LoRA into its matrix; a batch norm, as it evaluates, into
// the linear layer or convolution before it in a sequence; the weight and bias of a layer or RMS norm into the linear
// layer behind it in a sequence, and into those that read it in a block.  What is tied to another stays as it is.
// For the module and all below, which is for evaluation then; the names of what is left stay, and a layer may get
// a bias.  Waits for the values.
YOKE_API int yoke_module_fold(yoke_module *);

#ifdef __cplusplus
}
#endif
#endif
