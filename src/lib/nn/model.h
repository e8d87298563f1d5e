// SPDX-License-Identifier: Apache-2.0
// Models: each predicts the tokens of a window from those before them.  A model is a row of
// functions, a network one of its instances.  Who trains, saves, evaluates or generates knows rows
// only: a new model is a file here, its name in YK_MODELS, and lines in YK_SIZES for sizes that no
// other model has.
#ifndef YK_MODEL_H
#define YK_MODEL_H

#include <jansson.h>

#include "nn/layer.h"
#include "nn/params.h"
#include "nn/stage.h"

#define YK_MODELS(X, BETWEEN) X(gpt) BETWEEN X(mlp) BETWEEN X(bk)

#define YK_HISTORY 64 // the most there is

// X(key, level, default, most, help): the sizes of models.  Each is a key of `yoke train`, at least 1, in
// the group MODEL of its help; levels as in train/conf.h.
// Products of the largest ones are still far below 2^63.
#define YK_SIZES(X) \
	X(layers, BASIC, "4", 1000, "blocks; for mlp, hidden layers") \
	X(heads, BASIC, "4", 1024, "for gpt: attention heads; a divisor of embed") \
	X(embed, BASIC, "128", 65536, "width of the embedding") \
	X(history, ADVANCED, "8", YK_HISTORY, \
	  "for mlp: tokens from which the next one is predicted") \
	X(experts, ADVANCED, "4", 64, "for bk: experts per layer") \
	X(top_k, ADVANCED, "1", 64, "for bk: experts per token")

// X(key, group, level, type, commands, default, least, most, choices, help), as in YK_CONFIG_KEYS: the
// properties of a model besides its sizes.  Types: REAL; INT, which may be "auto", -1; CHOICE, the number of one of the words.
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
		int64_t size[YK_SIZE_COUNT]; // 0 where the model has no such size
		struct {                     // the same by name
#define X(key, ...) int64_t key;
			YK_SIZES(X)
#undef X
		};
	};
	union {
		double trait[YK_TRAIT_COUNT]; // 0 where the model has none
		struct {
#define X(key, ...) double key;
			YK_TRAITS(X, )
#undef X
		};
	};
};

struct yk_network {
	const struct yk_model *model;
	struct yk_model_shape shape;
	struct yk_parameters params;
	struct yk_shard shard; // of how many ranks this is one; of such a network there is no cache
	struct yk_stage stage; // which of its blocks are here, likewise
	// Of one of several stages: all parameters of the network, in order.
	struct yk_network_parameter {
		char *name;
		int rank, here;   // here: its place in `params`, -1: it is another stage's
		int64_t dims[2];  // of the whole
		int64_t elements; // of the cut that this rank has, or would have
		bool cut, twice, copied; // twice: another stage has it, too; copied: whose place counts
	} *all;
	size_t alls;
	// NULL, or its layers: a module whose children the model knows.  Their parameters are those of the list, as
	// of the last yk_network_take_up.
	yoke_module *layers;
	struct yk_network_place *place;
	size_t places;
	// Products go by row (YOKE_BY_ROW): what is computed of a sequence has the same bits
	// whatever else is computed with it.  Slower for few sequences.
	bool by_row;
	// NULL, or a variable [layers, experts] of the caller's, which the network frees: each recorded loss leaves there
	// which share of its tokens went to each expert.
	yoke_tensor *shares;
};

// What a network remembers of the tokens of a sequence, so that each is computed once.
struct yk_network_cache {
	int64_t length;             // tokens in it; set it to 0 to begin anew
	yoke_tensor *at, *seen;     // scalars: place of the first new token; tokens with those
	struct yk_parameters state; // as the model's `state` made them
};
enum { YK_SEQUENCES = YK_CACHES }; // that are extended at once, at most

struct yk_model {
	const char *name; // model=NAME, and the manifest's "kind"
	unsigned sizes;   // YK_HAS(..) of each that it has
	unsigned traits;  // YK_HAS_TRAIT(..), likewise
	// NULL, or: does it see tokens that it has to predict?
	bool (*leaks)(const struct yk_model_shape *);
	// Sizes that do not fit each other: EINVAL.
	int (*check)(const struct yk_model_shape *);
	// Adds its layers, whose parameters are declared, to a module; and says which first values one of them has, and
	// whether it decays.  NULL: it has `parameters` instead, which adds them to a list.
	int (*layers)(const struct yk_model_shape *, yoke_module *to);
	void (*first)(const struct yk_model_shape *, const char *name, struct yk_parameter *);
	void (*parameters)(const struct yk_model_shape *, struct yk_parameters *);
	// How ranks that compute it together cut the parameters, and the sizes that their number has to divide (YK_HAS);
	// NULL: they cannot.
	const struct yk_shard_rule *(*rules)(const struct yk_model_shape *);
	unsigned cuts;
	// How ranks have its blocks one behind another (nn/stage.h), which are `layers` of its layers behind `before` others:
	// W of what goes into a block; NULL: they cannot.  And the multiply-adds of a token in one, or, i = layers, behind them.
	int64_t (*width)(const struct yk_network *, int64_t block);
	double (*work)(const struct yk_model_shape *, int64_t i);
	int64_t before;
	bool choices; // its gradient jumps where a number crosses a threshold: relu, the choice of experts
	// Elements that a token of a training step leaves for the way back, at least.
	double (*kept)(const struct yk_model_shape *);
	// ids [B,T] i32, or [B,T,W] of the stage before -> [B,T,..]: what logits takes, or the next stage.  `dropout` is a share.
	yoke_tensor *(*forward)(const struct yk_network *, yoke_tensor *x, double dropout);
	// [..,W] -> [..,V]
	yoke_tensor *(*logits)(const struct yk_network *, yoke_tensor *hidden);
	// ids and targets [B,T] -> []: what training makes small
	yoke_tensor *(*loss)(const struct yk_network *, yoke_tensor *ids, yoke_tensor *targets,
			     double dropout);
	// A cache's variables; and, as forward without dropout, tokens that follow those in
	// caches, one a row: all of the caches are empty or none is.
	void (*state)(const struct yk_model_shape *, struct yk_parameters *);
	yoke_tensor *(*extend)(const struct yk_network *, struct yk_network_cache *const *,
			       yoke_tensor *ids);
};

#define X(name) extern const struct yk_model yk_model_##name;
YK_MODELS(X, )
#undef X

// By name; NULL when there is none.
const struct yk_model *yk_model_find(const char *name);
// EINVAL: a size is out of bounds, or does not fit the others.
int yk_model_check(const struct yk_model *, const struct yk_model_shape *);
// EINVAL: so many ranks cannot compute such a network together.
int yk_model_check_ranks(const struct yk_model *, const struct yk_model_shape *, int64_t ranks);
// Elements of all parameters, without making them; of a shape that was checked.
int64_t yk_model_elements(const struct yk_model *, const struct yk_model_shape *);
// Those of a stage alone.
int64_t yk_model_elements_in(const struct yk_stage *, const struct yk_model *, const struct yk_model_shape *);
// "model=gpt layers=4 .. context=128", as its keys are given.
void yk_model_text(const struct yk_model *, const struct yk_model_shape *, char *to, size_t room);
// { "kind": "gpt", "vocab": .., "context": .., and each size }; and back: `what` is for messages.
// EFORMAT, also for a kind that is not known.
json_t *yk_model_describe(const struct yk_model *, const struct yk_model_shape *);
int yk_model_parse(const json_t *, const char *what, const struct yk_model **,
		   struct yk_model_shape *);

// All parameters zero.  EINVAL as yk_model_check.
int yk_network_new(const struct yk_model *, const struct yk_model_shape *, struct yk_network **);
// The same as one of the ranks of a group that compute it together; NULL: alone.  EINVAL as yk_model_check_ranks.
int yk_network_new_on(yoke_group *, const struct yk_model *, const struct yk_model_shape *, struct yk_network **);
// The same with some of its blocks, as a stage that yk_stage_split allows.
int yk_network_new_part(yoke_group *, const struct yk_stage *, const struct yk_model *, const struct yk_model_shape *,
			struct yk_network **);
void yk_network_free(struct yk_network *); // NULL is fine
// Layer i, as it was added.
yoke_module *yk_network_layer(const struct yk_network *, int64_t i);
// To be called before something is recorded of layers: they compute of the variables that the list has now.
void yk_network_take_up(const struct yk_network *);
// x w' + b, as yoke_linear, by rows where the network is.
yoke_tensor *yk_network_linear(const struct yk_network *, yoke_tensor *x, yoke_tensor *w, yoke_tensor *b);
// The model's forward and extend.  ESHAPE when the tokens do not fit the window.  dropout 0 is
// evaluation: nothing is random then, nothing is drawn, and random numbers that others draw stay
// what they were.  So is extend, of ids [B,T] for B caches, B 1 .. YK_SEQUENCES, whose sequences
// may have any lengths, all 0 or none.  What it gives is to be evaluated before the next call,
// and has one plan for each B and T, wherever behind the first tokens these stand.
yoke_tensor *yk_network_forward(const struct yk_network *, yoke_tensor *x, double dropout);
yoke_tensor *yk_network_extend(const struct yk_network *, struct yk_network_cache *const *, yoke_tensor *ids);
// Does a model of that shape see what it has to predict?
bool yk_model_leaks(const struct yk_model *, const struct yk_model_shape *);
// Most rows' loss: the mean of -log p(target).
yoke_tensor *yk_network_loss(const struct yk_network *, yoke_tensor *ids, yoke_tensor *targets,
			     double dropout);
int yk_network_cache_new(const struct yk_network *, struct yk_network_cache **);
void yk_network_cache_free(struct yk_network_cache *); // NULL is fine

#endif
