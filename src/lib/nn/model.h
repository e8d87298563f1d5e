// SPDX-License-Identifier: Apache-2.0
// Models, which predict each token of a window from the tokens before it.  A model is a table of
// functions, a network an instance of it.  Training, saving, evaluation and generation know the
// table only: a new model takes a file here, its name in YK_MODELS, and entries in YK_SIZES for
// sizes that no other model has.
#ifndef YK_MODEL_H
#define YK_MODEL_H

#include <jansson.h>

#include "nn/decoder_config.h"
#include "nn/layer.h"
#include "nn/params.h"

#define YK_MODELS(X, BETWEEN) X(gpt) BETWEEN X(mlp) BETWEEN X(bk)

#define YK_HISTORY 64 // maximum of `history`

// X(key, level, default, max, help): the sizes of models, at least 1.  Each is a key of
// `yoke train`, in the group MODEL of its help; levels as in train/conf.h.  Products of the largest
// values are still far below 2^63.
#define YK_SIZES(X) \
	X(layers, BASIC, "4", 1000, "blocks; for mlp, hidden layers") \
	X(heads, BASIC, "4", 1024, "for gpt: attention heads; a divisor of embed") \
	X(embed, BASIC, "128", 65536, "width of the embedding") \
	X(history, ADVANCED, "8", YK_HISTORY, \
	  "for mlp: tokens from which the next one is predicted") \
	X(experts, ADVANCED, "4", 64, "for bk: experts per layer") \
	X(active_experts, ADVANCED, "1", 64, "for bk: experts per token")

// X(key, group, level, type, commands, default, min, max, choices, help), as in YK_CONFIG_KEYS:
// options of models other than sizes.  Types: REAL; INT, which may be "auto", -1; CHOICE, the index
// of one of the words.
#define YK_TRAITS(X, commands) \
	X(tied, MODEL, ADVANCED, CHOICE, commands, "1", 0, 0, "1 0", \
	  "for gpt: 1: the head uses the embedding's matrix; 0: it has its own") \
	X(gate, MODEL, ADVANCED, CHOICE, commands, "p", 0, 0, "p none", \
	  "for bk: p: multiply an expert's output by its probability; none: do not, and the router does not learn " \
	  "from it") \
	X(balance, MODEL, ADVANCED, REAL, commands, "0.01", 0, 1e3, NULL, \
	  "for bk: weight of the loss that spreads tokens over experts") \
	X(eta, MODEL, ADVANCED, REAL, commands, "1", 1e-4, 1e4, NULL, \
	  "for bk: imaginary part of the energy") \
	X(v_max, MODEL, ADVANCED, REAL, commands, "3", 1e-3, 1e4, NULL, \
	  "for bk: potentials are limited to +- this") \
	X(feature_clamp, MODEL, ADVANCED, REAL, commands, "10", 1e-3, 1e6, NULL, \
	  "for bk: features are limited to +- this") \
	X(bk_side, MODEL, ADVANCED, CHOICE, commands, "left", 0, 0, "left both", \
	  "for bk: left: a token sees the tokens before it; both: also those after it, including the token to " \
	  "predict") \
	X(bk_tier, MODEL, ADVANCED, CHOICE, commands, "f32", 0, 0, "f32 f64 mixed f16 bf16", \
	  "for bk: precision of the resolvent") \
	X(bk_sweeps, MODEL, ADVANCED, INT, commands, "auto", 0, 64, "auto", \
	  "for bk: f32 sweeps after bk_tier=f16 or bf16") \
	X(bk_gradient, MODEL, ADVANCED, CHOICE, commands, "exact", 0, 0, \
	  "exact diag inverse hybrid step5", \
	  "for bk: gradient by the potential") \
	X(bk_blend, MODEL, ADVANCED, REAL, commands, "0.5", 0, 1, NULL, \
	  "for bk: share of inverse in hybrid and step5")

enum {
#define X(key, ...) YK_SIZE_##key,
	YK_SIZES(X)
#undef X
	YK_SIZE_COUNT
};
#define YK_HAS(key) (1u << YK_SIZE_##key)

enum {
#define X(key, ...) YK_TRAIT_##key,
	YK_TRAITS(X, )
#undef X
	YK_TRAIT_COUNT
};
#define YK_HAS_TRAIT(key) (1u << YK_TRAIT_##key)

struct yk_model_shape {
	int64_t vocab, context;
	union {
		int64_t size[YK_SIZE_COUNT]; // 0 if the model has no such size
		struct {                     // the same by name
#define X(key, ...) int64_t key;
			YK_SIZES(X)
#undef X
		};
	};
	union {
		double trait[YK_TRAIT_COUNT]; // 0 if the model has no such trait
		struct {
#define X(key, ...) double key;
			YK_TRAITS(X, )
#undef X
		};
	};
	struct yk_decoder decoder; // of a model that was opened from a file
};

// A rank's stage of a network in pipeline parallelism (stage.h).
struct yk_stage {
	yoke_group *group; // all stages in order; NULL: there is only one
	int64_t at, of;    // index of this stage, number of stages
	int64_t from, to;  // its blocks, from .. to - 1
};

// A layer with a low-rank adapter (lora.h).
struct yk_lora_layer {
	char name[48]; // "layer3.attn.q"
	int64_t rank;
	double alpha;
};

struct yk_network {
	const struct yk_model *model;
	struct yk_model_shape shape;
	struct yk_parameters params;
	struct yk_parameters frozen; // with adapters (lora.h): the base weights
	struct yk_network_adapter {
		yoke_module *module; // the linear layer
		struct yk_low_rank is;
		int a; // index of A in `params`; B follows
		struct yk_lora_layer as;
	} *adapter;
	size_t adapters;
	double adapter_dropout; // of the inputs of A, in losses that are recorded while `trains`
	bool trains;
	struct yk_shard shard; // its position if several ranks compute it together (tensor
			       // parallelism); then it has no cache
	struct yk_stage stage; // the blocks it holds (pipeline parallelism), with the same
			       // restriction
	// For one of several stages: all parameters of the network, in order.
	struct yk_network_parameter {
		char *name;
		int rank, here;   // here: index in `params`, -1: on another stage
		int64_t dims[2];  // of the whole parameter
		int64_t elements; // of the shard of this rank, or of its peer in the other stage
		bool sharded, twice, copied; // twice: another stage has it, too; copied: the other
					 // stage's copy counts
	} *all;
	size_t alls;
	// NULL, or its layers: a module whose children the model knows.  Their parameters are those
	// of `params` as of the last yk_network_refresh.
	yoke_module *layers;
	struct yk_network_place *place;
	size_t places;
	// Products use YOKE_BY_ROW: results for a sequence have the same bits whatever else is in
	// the batch.  Slower for few sequences.
	bool by_row;
	int cache_dtype; // of keys and values in caches: f16, or YOKE_DTYPE_NONE for f32
	// NULL, or a variable [layers, experts] of the caller's, which the network frees: each
	// recorded loss assigns to it the fraction of tokens that went to each expert.
	yoke_tensor *shares;
};

// State kept for the tokens of a sequence so far (keys and values, for example), so that each is
// computed only once.
struct yk_network_cache {
	int64_t length;             // tokens in it; 0 restarts.  If reduced, the last tokens are
				    // forgotten, unless the model is `recurrent`
	int64_t capacity;           // tokens that it has space for
	yoke_tensor *at, *seen;     // scalars: position of the first new token; number of tokens
				    // including the new ones
	struct yk_parameters state; // created by the model's `state`
};
enum { YK_SEQUENCES = YK_CACHES }; // maximum number of sequences extended at once

// One step of many sequences over a paged cache.
enum { YK_PAGE = 16 }; // tokens of a page
struct yk_network_step {
	yoke_tensor *ids;       // [1,T] i32
	yoke_tensor *table;     // i32 [rows,M]: the pages of each sequence
	// i32 [T]: sequence and position of each token; row -1: padding, at position 0
	yoke_tensor *row, *pos;
	// i32 [T]: page * YK_PAGE + offset that its key and value go to; -1: none
	yoke_tensor *slot;
};

struct yk_model {
	const char *name; // for model=NAME and "kind" in the manifest
	unsigned sizes;   // mask of YK_HAS(..)
	unsigned traits;  // mask of YK_HAS_TRAIT(..)
	// Does it see the tokens that it has to predict?  NULL: no.
	bool (*leaks)(const struct yk_model_shape *);
	// Members of the manifest beyond sizes and traits; parse reads them back.  NULL: none.
	int (*describe)(const struct yk_model_shape *, json_t *to);
	int (*parse)(const json_t *, const char *what, struct yk_model_shape *);
	// EINVAL: the sizes do not fit each other.
	int (*check)(const struct yk_model_shape *);
	// `layers` adds the model's layers, with declared parameters, to a module; `first` sets the
	// initial values of one parameter and whether it decays.  layers NULL: `parameters` adds
	// parameters to a list instead.
	int (*layers)(const struct yk_model_shape *, yoke_module *to);
	void (*first)(const struct yk_model_shape *, const char *name, struct yk_parameter *);
	void (*parameters)(const struct yk_model_shape *, struct yk_parameters *);
	// Rules for sharding parameters in tensor parallelism, and the sizes that the number of
	// ranks must divide (YK_HAS); NULL: not supported.
	const struct yk_shard_rule *(*rules)(const struct yk_model_shape *);
	unsigned sharded;
	// For pipeline parallelism (nn/stage.h): the blocks are `layers` of its layers, after
	// `before` other layers.  width: W of the input of a block; NULL: not supported.  work:
	// multiply-adds per token in block i, or, for i = layers, after the blocks.
	int64_t (*width)(const struct yk_network *, int64_t block);
	double (*work)(const struct yk_model_shape *, int64_t i);
	int64_t before;
	bool choices; // its gradient is discontinuous at thresholds: relu, choice of experts
	// Minimum number of elements per token that a training step keeps for the backward pass.
	double (*kept)(const struct yk_model_shape *);
	// ids [B,T] i32, or [B,T,W] of the previous stage -> [B,T,..]: input of logits or of the
	// next stage.  `dropout`: rate.
	yoke_tensor *(*forward)(const struct yk_network *, yoke_tensor *x, double dropout);
	// forward for windows of several texts, which do not see each other: positions [B,T] i32
	// start at 0 in each text. NULL: not supported.
	yoke_tensor *(*packed)(const struct yk_network *, yoke_tensor *ids, yoke_tensor *positions,
			       double dropout);
	// [..,W] -> [..,V]
	yoke_tensor *(*logits)(const struct yk_network *, yoke_tensor *hidden);
	// ids and targets [B,T] -> []: the training loss
	yoke_tensor *(*loss)(const struct yk_network *, yoke_tensor *ids, yoke_tensor *targets,
			     double dropout);
	// `state` adds a cache's variables.  `extend` is forward without dropout for tokens that
	// follow those in the caches, one cache per row; either all caches are empty or none is.
	void (*state)(const struct yk_model_shape *, struct yk_parameters *);
	bool recurrent; // a cache holds the state after its last token only, not a value for each
	yoke_tensor *(*extend)(const struct yk_network *, struct yk_network_cache *const *,
			       yoke_tensor *ids);
	// `pages` adds the variables of a paged cache.  `step` is forward without dropout for
	// tokens of many sequences -> [1,T,..], and adds them to the cache.  NULL: not supported.
	void (*pages)(const struct yk_model_shape *, int64_t count, struct yk_parameters *);
	yoke_tensor *(*step)(const struct yk_network *, const struct yk_parameters *pages,
			     const struct yk_network_step *);
};

#define X(name) extern const struct yk_model yk_model_##name;
YK_MODELS(X, )
#undef X
// The models of opened files (models/), which model= cannot select. The encoder predicts no tokens:
// it has no logits, loss or cache.
extern const struct yk_model yk_model_decoder, yk_model_encoder;

// The model with this name, or NULL.
const struct yk_model *yk_model_find(const char *name);
// EINVAL: a size is out of range or does not fit the others.
int yk_model_check(const struct yk_model *, const struct yk_model_shape *);
// EINVAL: the network cannot be sharded over so many ranks.
int yk_model_check_ranks(const struct yk_model *, const struct yk_model_shape *, int64_t ranks);
// The number of elements of all parameters, without creating them; the shape must have been
// checked.
int64_t yk_model_elements(const struct yk_model *, const struct yk_model_shape *);
// Calls fn with each parameter of a model made of layers, in their order, without creating them; a
// nonzero result stops and is returned.
int yk_model_each(const struct yk_model *, const struct yk_model_shape *,
		  int (*fn)(void *arg, const char *name, int rank, const int64_t *dims), void *arg);
// As yk_model_elements, for one stage.
int64_t yk_model_elements_in(const struct yk_stage *, const struct yk_model *,
			     const struct yk_model_shape *);
// "model=gpt layers=4 .. context=128", in the syntax of its keys.
void yk_model_text(const struct yk_model *, const struct yk_model_shape *, char *to, size_t room);
// { "kind": "gpt", "vocab": .., "context": .., and each size }; yk_model_parse reads it back,
// `what` is for messages.  EFORMAT, also for an unknown kind.
json_t *yk_model_describe(const struct yk_model *, const struct yk_model_shape *);
int yk_model_parse(const json_t *, const char *what, const struct yk_model **,
		   struct yk_model_shape *);

// Creates a network with all parameters zero.  EINVAL as yk_model_check.
int yk_network_new(const struct yk_model *, const struct yk_model_shape *, struct yk_network **);
// The same without variables; the caller sets all of them (yk_parameters_set).
int yk_network_new_deferred(const struct yk_model *, const struct yk_model_shape *,
			    struct yk_network **);
// The same, with variables, for one rank of a group that computes it together; NULL: a single rank.
// EINVAL as yk_model_check_ranks.
int yk_network_new_on(yoke_group *, const struct yk_model *, const struct yk_model_shape *,
		      struct yk_network **);
// The same for a stage that yk_stage_split returned.
int yk_network_new_part(yoke_group *, const struct yk_stage *, const struct yk_model *,
			const struct yk_model_shape *, struct yk_network **);
void yk_network_free(struct yk_network *); // NULL is fine
// Layer i in the order of addition.
yoke_module *yk_network_layer(const struct yk_network *, int64_t i);
// The parameters of a network without its adapters, if it has some.
static inline const struct yk_parameters *yk_network_base(const struct yk_network *n)
{
	return n->adapters ? &n->frozen : &n->params;
}
// Gives the layers the current variables of `params`; call it before recording anything with them.
void yk_network_refresh(const struct yk_network *);
// x w' + b, as yoke_linear, with YOKE_BY_ROW if the network has by_row.
yoke_tensor *yk_network_linear(const struct yk_network *, yoke_tensor *x, yoke_tensor *w,
			       yoke_tensor *b);
// The model's forward and extend.  ESHAPE if the tokens do not fit the window.  dropout 0 is
// evaluation: no random numbers are drawn, so other random numbers stay the same.  extend is always
// evaluation: ids [B,T] for B caches, B 1 .. YK_SEQUENCES, whose sequences may have any lengths,
// all 0 or none.  Its result must be evaluated before the next call; it has one plan per B, T and
// capacities, whatever the positions after the first tokens.
yoke_tensor *yk_network_forward(const struct yk_network *, yoke_tensor *x, double dropout);
yoke_tensor *yk_network_extend(const struct yk_network *, struct yk_network_cache *const *,
			       yoke_tensor *ids);
// Does a model of that shape see the tokens that it has to predict?
bool yk_model_leaks(const struct yk_model *, const struct yk_model_shape *);
// A cache with space for `capacity` tokens, 1 .. the network's context.
int yk_network_cache_new(const struct yk_network *, int64_t capacity, struct yk_network_cache **);
// Replaces a cache by one with the same tokens and more space.
int yk_network_cache_grow(const struct yk_network *, struct yk_network_cache **, int64_t capacity);
void yk_network_cache_free(struct yk_network_cache *); // NULL is fine

#endif
