// SPDX-License-Identifier: Apache-2.0
// Neural network modules: predefined layers, custom modules and their composition into networks.
//
//	yoke_module *net = yoke_nn_sequential(3, (yoke_module *[]){ yoke_nn_linear(64, 128, 1),
//		yoke_nn_activation("relu"), yoke_nn_linear(128, 10, 1) });
//	yoke_tensor *p[4], *g[4];
//	const char *names[4];
//	// "0.weight", "0.bias", "2.weight", "2.bias"
//	int n = yoke_module_parameters(net, 4, p, names);
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
// A module has a class (a few functions), a state private to these functions, trainable parameters,
// buffers, which are saved but not trained (the running statistics of a batch norm), and children.
// A parameter's name is its path, "layers.0.attn.q.weight".  A module is traversed in this order:
// parameters, buffers, children, each in the order in which they were added.  A tensor shared by
// several modules is visited once, by its first name.  A pattern is a comma-separated list as for
// fnmatch(3); it selects the names that match an entry and match no entry that begins with '!':
// "*.weight,!head.*".
//
// Parameters are created in the current context and belong to their module.  Random initial values
// depend on the context's seed and on the order in which modules were created since
// yoke_random_set; the next evaluation computes them.  Only the thread that uses the module's
// context may use the module.
//
// The conventions are those of yoke.h: functions return 0 or a negative YOKE_E*, or NULL; NULL as
// an operand or module means that an earlier call failed, and returns NULL or that error's code.
#ifndef YOKE_NN_H
#define YOKE_NN_H

#include <yoke-op.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct yoke_module yoke_module;

// ---- modules ----

struct yoke_module_class {
	size_t size;      // sizeof, set by the author of the class
	const char *name; // "linear", for messages
	// Records the module's computation from n inputs to m outputs; calls with any other n or m
	// fail with EINVAL.  Runs in a scope of the module; its outputs are lifted out of it.
	// Returns 0 or an error.
	int (*forward)(yoke_module *, void *state, int n, yoke_tensor *const *in, int m,
		       yoke_tensor **out);
	void (*release)(void *state); // called once, when the module is freed; NULL: does nothing
};

// Creates a module without parameters.  The class must outlive it.  On failure the state is
// released.
YOKE_API yoke_module *yoke_module_new(const struct yoke_module_class *, void *state);
// Frees a module with its parameters, buffers and children.  EINVAL for a child, which its parent
// frees.  NULL is fine.
YOKE_API int yoke_module_free(yoke_module *);
// The state that yoke_module_new was given.
YOKE_API void *yoke_module_state(const yoke_module *);

// Initialization of a parameter: constant `value`, uniform in -value .. value, or normal with
// standard deviation `value`.
enum { YOKE_FIRST_VALUE, YOKE_FIRST_UNIFORM, YOKE_FIRST_NORMAL };
// Adds a parameter, a floating-point variable, or a buffer of any dtype filled with a value.
// EINVAL: the name contains '.' or is used by another parameter, buffer or child of the module.
// The module owns the tensor; query it again (yoke_module_own) after the module may have been cast,
// moved or shared.
YOKE_API yoke_tensor *yoke_module_parameter(yoke_module *, const char *name, int dtype, int rank,
					    const int64_t *dims, int first, double value);
YOKE_API yoke_tensor *yoke_module_buffer(yoke_module *, const char *name, int dtype, int rank,
					 const int64_t *dims, double value);
// Parameter or buffer i of this module without its children, in the order of adding, from 0.
YOKE_API yoke_tensor *yoke_module_own(const yoke_module *, int i);
// Adds a child, which then belongs to the module, even after an error.  EINVAL: the name is in use,
// the child has a parent, or the child contains the module.
YOKE_API int yoke_module_child(yoke_module *, const char *name, yoke_module *child);
// Child i, from 0; NULL, without an error, after the last one.
YOKE_API yoke_module *yoke_module_at(const yoke_module *, int i);
// Ties weights: replaces the parameter at `path` by the one at `with`, both below the module.  The
// replaced parameter is freed unless it is tied elsewhere.  ENOENT: no such parameter; ESHAPE or
// EDTYPE when they differ.
YOKE_API int yoke_module_share(yoke_module *, const char *path, const char *with);
// Ties a parameter to one of another module, which may belong to a different network.  The tensor
// is freed with the last module that holds it.  yoke_module_cast and yoke_module_move of one
// network do not change the other network's tensor.
YOKE_API int yoke_module_tie(yoke_module *, const char *path, yoke_module *other, const char *with);

// ---- whole networks ----

enum { YOKE_MODULE_BUFFER = 1, YOKE_MODULE_FROZEN = 2 };
// Calls fn for each parameter and buffer.  A nonzero result of fn ends the traversal and is
// returned.
YOKE_API int yoke_module_each(yoke_module *,
			      int (*fn)(void *arg, const char *path, yoke_tensor *, unsigned flags),
			      void *arg);
// Lists the parameters that are not frozen: fills the first `max` elements of `to`, and of names
// unless NULL, and returns their total number.  The names are valid until the module, or one that
// contains it, is changed or freed.
YOKE_API int yoke_module_parameters(yoke_module *, int max, yoke_tensor **to, const char **names);
// Finds a parameter or buffer by its path; ENOENT: there is none.
YOKE_API yoke_tensor *yoke_module_find(yoke_module *, const char *path);
// Freezes the parameters whose names match (on = 1), or makes them trainable again (0).  No
// gradient is recorded for frozen parameters, since yoke_module_parameters omits them.  ENOENT:
// none matches.
YOKE_API int yoke_module_freeze(yoke_module *, const char *pattern, int on);
// Selects training (1, the default) or evaluation (0), which dropout and batch norm depend on, for
// the module and all modules below it.
YOKE_API int yoke_module_mode(yoke_module *, int training);
YOKE_API int yoke_module_training(const yoke_module *);
// Converts floating-point parameters and buffers to dtype, with rounding, into new tensors.
YOKE_API int yoke_module_cast(yoke_module *, int dtype);
// Moves all parameters and buffers to another context, as new variables with the same bits.
YOKE_API int yoke_module_move(yoke_module *, yoke_context *to);

// ---- forward pass ----

// Records the module's computation from n inputs to m outputs.  After an error each out[i] is NULL.
YOKE_API int yoke_forward(yoke_module *, int n, yoke_tensor *const *in, int m, yoke_tensor **out);
// yoke_forward with one input and one output.
YOKE_API yoke_tensor *yoke_call(yoke_module *, yoke_tensor *x);

// ---- files ----

// Saves parameters and buffers by name to a safetensors file, written atomically.  Waits for their
// values.
YOKE_API int yoke_module_save(yoke_module *, const char *path);
// Saves to several files with at most `max` bytes of tensors each (a larger tensor gets its own
// file) and an index, in the sharded format of the Hugging Face libraries: path is
// NAME.safetensors.index.json, the files are NAME-00001-of-00003.safetensors.  The index is written
// last, and then the files of the previous index are deleted, so a process killed at any time
// leaves the complete old or new set.
YOKE_API int yoke_module_save_split(yoke_module *, const char *path, uint64_t max);
struct yoke_module_load {
	size_t size;  // sizeof, set by the caller
	int partial;  // 0: names in the file and the module must be identical; else unmatched ones
		      // are skipped
	int exact;    // 0: floating point is cast to the parameter's dtype; else a difference is
		      // EDTYPE Maps a name in the file to the module's name, written to `to` of
		      // size `room`; NULL: the same names.
	void (*rename)(void *arg, const char *name, char *to, size_t room);
	void *arg;
};
// Loads a safetensors file or, for a path ending in .index.json, the files that it lists, which lie
// in the same directory.  Files are mapped and read on demand.  EFORMAT: the index lists a tensor
// that its files lack.  Errors list all missing names, unknown names and differences in shape or
// dtype, and change nothing.  NULL: all options 0.
YOKE_API int yoke_module_load(yoke_module *, const char *path, const struct yoke_module_load *);

// ---- layers ----
// Parameters are f32 and have PyTorch's names and layouts.

// x [..,in] -> [..,out]: weight [out,in], bias [out], both U(-1/sqrt(in), 1/sqrt(in)).
YOKE_API yoke_module *yoke_nn_linear(int64_t in, int64_t out, int bias);
// ids [..] -> [..,width]: weight [count,width], N(0, 1).
YOKE_API yoke_module *yoke_nn_embedding(int64_t count, int64_t width);
// x [..,width]: weight [width] initialized to 1, bias to 0; rms_norm has no bias.
YOKE_API yoke_module *yoke_nn_layer_norm(int64_t width, double eps);
YOKE_API yoke_module *yoke_nn_rms_norm(int64_t width, double eps);
// x [B,channels,..]: normalizes over each of `groups` groups of channels and all later axes.  Wu
// and He 2018.
YOKE_API yoke_module *yoke_nn_group_norm(int64_t groups, int64_t channels, double eps);
// x [B,channels,..]: normalizes over all axes except the channels.  Ioffe and Szegedy 2015.
// Training uses the batch's statistics and updates running_mean and running_var with weight
// `momentum` for the batch, the variance with Bessel's correction, which needs at least two
// elements per channel (ESHAPE).  Evaluation uses the running statistics.
YOKE_API yoke_module *yoke_nn_batch_norm(int64_t channels, double eps, double momentum);
// x [B,in,S..] -> [B,out,Q..] with 1 to 3 spatial axes, as yoke_conv: weight [out,in/groups,K..],
// bias [out], both U(-1/sqrt(n), 1/sqrt(n)), n = in/groups times the kernel's elements.  kernel:
// its size along each axis.  The options may be NULL.
YOKE_API yoke_module *yoke_nn_conv(int axes, int64_t in, int64_t out, const int64_t *kernel,
				   const struct yoke_conv_options *, int bias);
// As yoke_conv_transposed: weight [in,out/groups,K..], n = out/groups times the kernel's elements.
YOKE_API yoke_module *yoke_nn_conv_transposed(int axes, int64_t in, int64_t out,
					      const int64_t *kernel,
					      const struct yoke_conv_options *, int bias);
// yoke_max_pool, yoke_resize and so on as modules; to: output elements of each axis.
YOKE_API yoke_module *yoke_nn_max_pool(const struct yoke_pool_options *);
YOKE_API yoke_module *yoke_nn_mean_pool(const struct yoke_pool_options *);
YOKE_API yoke_module *yoke_nn_adaptive_max_pool(int axes, const int64_t *to);
YOKE_API yoke_module *yoke_nn_adaptive_mean_pool(int axes, const int64_t *to);
YOKE_API yoke_module *yoke_nn_resize(int axes, const int64_t *to, int smooth);
// x [B,..] -> [B,product of the other dims].
YOKE_API yoke_module *yoke_nn_flatten(void);
// yoke_dropout in training, the identity in evaluation.
YOKE_API yoke_module *yoke_nn_dropout(double p);
// "relu", "gelu", "gelu_tanh", "silu", "tanh", "sigmoid"; ENOENT, listing these, for any other
// name.
YOKE_API yoke_module *yoke_nn_activation(const char *name);
// Applies modules in sequence; children "0", "1", ...  They belong to the module, even after an
// error.
YOKE_API yoke_module *yoke_nn_sequential(int n, yoke_module *const *modules);
// x + inner(x); child "inner".
YOKE_API yoke_module *yoke_nn_residual(yoke_module *inner);
// linear, activation, dropout, linear: children up, act, drop, down.
YOKE_API yoke_module *yoke_nn_mlp(int64_t in, int64_t hidden, int64_t out, const char *activation,
				  double dropout);

struct yoke_nn_attention_options {
	size_t size;           // sizeof, set by the caller
	int64_t width;         // last dim of x and of the result
	int64_t heads;         // must divide width
	int64_t kv_heads;      // heads of keys and values, must divide heads; 0: the same number
	int causal, bias;      // bias: adds biases to the four projections
	double dropout;        // of the attention weights, in training
	double rope;           // base of the rotary embedding (10000), 0: none
	int fused;             // computes q, k and v in one product, in that order
	const char *activation; // activation of a block's mlp; NULL: "gelu"
};
// x [B,T,width], or x and context [B,S,width] for cross-attention -> [B,T,width]: children q, k, v,
// out; fused: qkv, proj.  For incremental decoding, call yoke_forward with x, keys, values, at,
// seen.  keys and values are the caller's variables [B,S,kv_heads,D] that cache the previous
// tokens.  The tokens of x are written at index `at`, and `seen` is the number of cached tokens
// including them: host scalars (yoke_scalar).  For sequences of different lengths pass one cache
// [1,S,kv_heads,D] per row: keys, values, at, seen of row 0, then those of row 1, ..., at most 64
// rows.
YOKE_API yoke_module *yoke_nn_attention(const struct yoke_nn_attention_options *);
// A pre-norm transformer block: y = x + attention(norm(x)), then y + mlp(norm(y)), with an mlp of
// four times the width and gelu: children norm1, attn, norm2, mlp.  dropout also applies to both
// residual branches.  Takes the same inputs as its attention.
YOKE_API yoke_module *yoke_nn_block(const struct yoke_nn_attention_options *);
struct yoke_nn_recurrent_options {
	size_t size;             // sizeof, set by the caller
	int64_t in, units;       // elements of an input and of a state
	int64_t layers;          // each reads the results of the one before [1]
	int cell;                // enum yoke_cell of yoke-math.h
	int bidirectional;       // the results are those of both directions, [..,2 units]
	int no_bias, batch_first; // batch_first: inputs and results are [B,T,..]
	double dropout;          // of the results between layers, in training
	int64_t proj; // LSTM: elements that states are projected to, below units; 0: no projection
};
// x [T,B,in], lengths, h0, c0 -> y [T,B,units], h, c, as yoke_recurrent; 1 to 4 inputs, which after
// x may be YOKE_NONE, and 1 to 3 results.  States are [layers,B,units], or of both directions
// [2 layers,B,units]: layer 0, its reverse, layer 1, ... Parameters weight_ih_l0, weight_hh_l0,
// bias_ih_l0, bias_hh_l0, those of the reverse with _reverse, then of layer 1, ...: all
// U(-1/sqrt(units), 1/sqrt(units)).  With proj each bias_hh is followed by weight_hr, y and h have
// `proj` elements for `units`.
YOKE_API yoke_module *yoke_nn_recurrent(const struct yoke_nn_recurrent_options *);
// LoRA (Hu et al. 2021): inner(x) + alpha/rank (x a') b' around a linear layer, whose parameters
// are frozen: a [rank,in] initialized as a linear's weight, b [out,rank] to 0.  Child "inner".
// After EINVAL the caller still owns `linear`.
YOKE_API yoke_module *yoke_nn_lora(yoke_module *linear, int64_t rank, double alpha);
// Folds training-time modules into adjacent layers, where they cost nothing: LoRA into its weight
// matrix; a batch norm in evaluation mode into the linear layer or convolution before it in a
// sequence; the weight and bias of a layer or RMS norm into the linear layer after it in a
// sequence, and into the linear layers that read it in a block.  Tied parameters are not changed.
// Applies to the module and all below it, which can then only be used for evaluation; the remaining
// parameters keep their names, and a layer may gain a bias.  Waits for the values.
YOKE_API int yoke_module_fold(yoke_module *);

#ifdef __cplusplus
}
#endif
#endif
