// SPDX-License-Identifier: Apache-2.0
// Statistics of streams that need not fit memory, and pipelines of nodes that are fitted by them.
#ifndef YOKE_PIPELINE_H
#define YOKE_PIPELINE_H

#include <yoke-data.h>
#include <yoke-run.h>

#ifdef __cplusplus
extern "C" {
#endif

// ---- statistics ----

// What is known of a stream of observations of C channels: how many there were, by weight, their mean, covariance and
// extremes, in f64 on the host.  It takes C * C numbers, however long the stream; those of parts of a stream, made
// anywhere in any order, merge to that of the whole (Chan, Golub and LeVeque 1979).
typedef struct yoke_statistic yoke_statistic;

// Of nothing yet.  diagonal: variances alone, C numbers.  NULL with EINVAL, ENOMEM.
YOKE_API yoke_statistic *yoke_statistic_new(int64_t channels, int diagonal);
YOKE_API void yoke_statistic_free(yoke_statistic *); // NULL is fine
// Adds x [..,C], floating point, with weights [..] of its dtype, not negative, or YOKE_NONE: yoke_moments on the current
// context's device, or the CPU where that has no f64, for which it waits.  An observation of weight 0 is not read.  ERANGE
// names the first channel with an element that is not finite, and nothing is added then.
YOKE_API int yoke_statistic_add(yoke_statistic *, yoke_tensor *x, yoke_tensor *weight);
// Adds what `from` knows.  ESHAPE: other channels, or a diagonal one to one that is not.
YOKE_API int yoke_statistic_merge(yoke_statistic *, const yoke_statistic *from);

enum yoke_statistic_what {
	YOKE_STATISTIC_COUNT = 1,   // 1: the sum of weights
	YOKE_STATISTIC_MEAN,        // C
	YOKE_STATISTIC_VARIANCE,    // C: by count - 1
	YOKE_STATISTIC_COVARIANCE,  // C * C, row major; by count - 1
	YOKE_STATISTIC_CORRELATION, // C * C; 0 beside the diagonal for a channel that does not vary
	YOKE_STATISTIC_MIN,       // C
	YOKE_STATISTIC_GREATEST     // C
};
// One of these into room for n numbers.  EINVAL: it has another size, or is not known of a diagonal one; ERANGE: a count of
// 1 or less has no variance.
YOKE_API int yoke_statistic_read(const yoke_statistic *, int what, double *to, size_t n);
YOKE_API int64_t yoke_statistic_channels(const yoke_statistic *);
// A safetensors file with `count`, `mean`, `square`, `least` and `greatest` in f64, and back, bit for bit.
YOKE_API int yoke_statistic_save(const yoke_statistic *, const char *path);
YOKE_API yoke_statistic *yoke_statistic_load(const char *path);

// ---- nodes ----

// What a node wants to know of its input, or'ed.
enum { YOKE_WANTS_EXTREMES = 1, YOKE_WANTS_VARIANCE = 2, YOKE_WANTS_COVARIANCE = 4 };

// Values of a key's `words`: the key is a whole number; the key is a list of numbers, and its value is their count.  A type has
// at most one list.
#define YOKE_NODE_WHOLE ""
#define YOKE_NODE_LIST "[]"

// A key of a node, in a pipeline's JSON.
struct yoke_node_key {
	const char *name;
	const char *words; // space-separated: the key is one of these, its value the place among them; NULL: a number ..
	double def, least, most; // .. in least .. most
};

// What a node is fitted with: its keys' values, in the order of the type's, and the statistics of its own input of `in` channels.
struct yoke_node_fit {
	size_t size;
	const char *node;  // its name, for messages
	const double *key;
	int64_t in;
	double count;
	const double *mean, *variance, *least, *greatest; // [in]; NULL: not asked for
	const double *covariance;                         // [in,in]
	uint64_t seed;     // of the pipeline's and the node's name
	const double *list; // the numbers of the list key; NULL: the type has no list
};

// How a node runs.
struct yoke_node_call {
	size_t size;
	const double *key;
	yoke_tensor *const *state;
	int64_t epoch;  // of training, from 0 on
	int training;   // else: as in use
	yoke_tensor *weight; // f32 [..], of x [..,in]: 0 for pixels that do not count, whose numbers have no meaning; NULL: all count
	yoke_tensor *extent; // i32 [scenes,2]: lines and samples of each scene of x [scenes,lines,samples,in], past which x is padding;
			     // NULL: all are as large as x
};

enum { YOKE_NODE_STATES = 4, YOKE_NODE_KEYS = 8 };

// A type of node: what it is called, takes and does, in yoke's operations.  Those that yoke has are a table of these.
struct yoke_node_type {
	size_t size;
	const char *name;
	int keys;
	struct yoke_node_key key[YOKE_NODE_KEYS];
	int wants;
	int states;
	const char *state[YOKE_NODE_STATES]; // names of the numbers that it holds
	unsigned trained;                    // bit s: training may change state s
	// Channels of the result of `in` channels; 0 with a reason in why: the keys do not allow it.
	int64_t (*channels)(const double *key, int64_t in, char *why, size_t why_size);
	// The rank and dims of a state.
	int (*dims)(const double *key, int64_t in, int state, int64_t *dims);
	// Fills the states, row major; 0 or an error, by yoke's calls or with none recorded.
	int (*fit)(const struct yoke_node_fit *, double *const *state, char *why, size_t why_size);
	// Records the result [..,channels] of x [..,in].
	yoke_tensor *(*forward)(const struct yoke_node_call *, yoke_tensor *x);
	// a [channels,in] and t [channels] such that the result in use is a x + t; NULL: there are none.  Nodes behind one
	// that has it are fitted by the statistics of its own input, without a pass over the stream.
	void (*affine)(const double *key, int64_t in, const double *const *state, double *a, double *t);
	int diagonal; // a is zero beside its diagonal
	int spatial;  // not 0: forward relates pixels to each other, and x is one or more whole scenes [..,lines,samples,in]; else x may
		      // be any pixels
};
// Adds a type, whose strings stay, for pipelines made from now on, in all threads.  EINVAL: the name is taken, or a function is
// missing; ENOMEM.
YOKE_API int yoke_node_register(const struct yoke_node_type *);

// Types, with their keys [defaults]; x [..,C].  For standard and min_max, eps [1e-6] is a deviation or a width.  For pca, rx, ace
// and select, e below is a variance: eps [1e-11] times the mean variance of the input, so that results do not depend on the data's
// unit, or with relative=0 [1] eps itself.  e is logged, as a warning if it is above 1e-3 of the mean variance:
//   standard  eps                                (x - mean) / max(deviation, eps)
//   min_max   scope=channel|global eps [global]  (x - least) / max(greatest - least, eps), one pair for all channels
//                                                or one each
//   pca       k whiten [0] eps relative          (x - mean) W', W the k vectors of largest variance; whiten=1: over
//                                                sqrt(variance + e)
//   rx        eps relative                       |U (x - mean)|^2, U the inverse of the Cholesky factor of
//                                                covariance + e (Reed and Yu 1990); 1 channel
//   logit                                        s (x - t); s [1], t [mean + 2 deviations]
//   select    n eps relative                     x w, w = n softmax(l / temperature), l [log(variance + e)]; the
//                                                temperature is max(0.1, 5 * 0.9^epoch) while training; in use w is
//                                                1 for the n largest l, else 0
//   linear    k                                  x W' + b, drawn
//   sam       target                             the angle between x and the list target, of as many numbers as x has
//                                                channels, in radians (Kruse et al. 1993); pi/2 for x = 0; 1 channel
//   ace       eps relative target                (s'z)^2 / (s's z'z), z = U (x - mean), s = U (target - mean), U as of rx: the
//                                                adaptive coherence estimator (Kraut and Scharf 1999); 0 for x = mean; 1 channel
//   local_rx  inner [5] outer [21] eps relative pixels [0]
//                                                (x - m)' (S + e)^-1 (x - m), m and S the mean and covariance of the ring of pixels in
//                                                the outer x outer window around x but not in the inner x inner one; 1 channel
//   sigmoid                                      1 / (1 + exp(-x))
//   unit                                         x / |x|
//   decide    t                                  1 where x > t, else 0
//
// local_rx: the background is estimated for each pixel (Reed and Yu 1990 with a dual window), so nothing is fitted or kept.  inner and
// outer are odd, inner < outer.  At the edges of a scene a window is moved inside, so that it keeps its size, as in Spectral Python's
// rx(window=(inner, outer)); a window wider than the scene is as wide as the scene.  Pixels of weight 0 (ignore value, masks,
// nonfinite=skip) are in no background and have the score 0; so have pixels whose ring has fewer than `pixels` pixels of weight above 0,
// by default one more than channels.  e is as for rx, of the mean variance of the ring.  m, S (over the ring's weight - 1) and the
// score are computed in f64 on the CPU, on other devices by way of the host; gradients reach the node's input.  ERANGE, with line and
// sample: S + e has no inverse, as without eps where a ring does not vary.  With C channels a pixel takes about
// C^2 (outer / 2 + 6) + C^3 / 6 multiplications and a thread 20 C^2 outer bytes; a scene of 512 x 512 pixels, 100 bands and outer=21
// takes about 20 s of one AVX2 core, and 2 s behind a pca node of 20 channels.  Its input must be
// scenes [..,lines,samples,C]: sets of cubes, or tensors of 3 axes or more.

// ---- pipelines ----

typedef struct yoke_pipeline yoke_pipeline;

// A pipeline of JSON:
//
//	{ "nodes": [ {"name": "scale", "type": "min_max"}, {"name": "pca", "type": "pca", "k": 20},
//	             {"name": "rx", "type": "rx"}, {"name": "both", "type": "linear", "k": 1, "in": ["pca", "rx"]} ],
//	  "losses": [ {"type": "orthogonality", "of": "pca", "weight": 0.1}, {"type": "bce", "of": "both"} ],
//	  "metrics": ["roc_auc"], "trainer": {"max_epochs": 20}, "optimizer": {"lr": 1e-3}, "seed": 42 }
//
// `in` is what a node reads: the node before it, unless named; "input" is the stream; several are concatenated along their
// channels.  "train": true lets training change the node's states, as far as its type has such: of pca w, of select l, of
// others all.  Then freeze, a pattern of nodes or of states ("pca*", "*.w"; as fnmatch has them) or a list of those, takes
// states out, and unfreeze takes some in again.
//
// losses, weighted by `weight` [1]: orthogonality |W W' - 1|^2 of a node's w; bce, of a node's logits and the labels, positives
// by `pos_weight` [1] (mean over pixels, by their weights); mse between `of` and `node`; entropy of a select's softmax.
// trainer, as PyTorch Lightning has these keys:
//   max_epochs [1]                0: phase 1 only
//   accelerator ["cpu"]           "gpu": the best one, or with a warning the CPU (ENODEV under YOKE_STRICT=1); "auto"; or a
//                                 backend or device, as YOKE_BACKEND and YOKE_DEVICE name them, which are the default where
//                                 they are set.  Of yoke_pipeline_context
//   devices [1]                   1, "auto": the best one; [N]: the accelerator's number N
//   precision ["32-true"]         "16-mixed", "bf16-mixed": products of phase 2 in that half (yoke_autocast), f16 with a scale
//                                 of the loss; orthogonality, and phase 1, stay in f32 and f64
//   accumulate_grad_batches [1]   batches whose gradients are one step's, as if they were one batch; the last step of an epoch may
//                                 have fewer
//   gradient_clip_val [null]      the largest norm of all gradients together
//   enable_progress_bar [true]    false: the function `progress` is not called
//   enable_checkpointing [false]  with a folder: behind each epoch, and of phase 1 behind each pass and each YOKE_FIT_SAVE seconds
//   log_every_n_steps [50]        between lines of losses; the first step has one
//   val_check_interval [1.0]      between validations: a share of an epoch, or a whole number of batches
//   check_val_every_n_epoch [1]   only behind, and within, each n-th epoch; the last has one in any case
//   deterministic [false]         refuses what changes bits from run to run: benchmark, accelerator "auto", cpu.gemm, cpu.lapack
//   benchmark [false]             measures the products of a step, where there are several kernels for them, before training
//   statistics ["cpu"]            "device": phase 1 works on the context's device, where that has f64
//   passes ["one"]                what nodes want is taken of as few passes over the stream as can be; "each": every node that
//                                 wants statistics takes a pass of its own
// optimizer: name ["adam"] adamw sgd, lr [1e-3], weight_decay [0], betas [null: the optimizer's], momentum [0].  seed [42].
// metrics, of a validation, each a word or an object with `type` and `of`, a node [the last]: roc_auc; precision, recall, f1, iou,
// accuracy of scores above `threshold` [0]; quantiles of scores, `q` [0.5, 0.9, 0.99]; of a node with w [the last of those]
// explained_variance, that of x W' over that of x, and orthogonality |W W' - 1|^2, recorded as orthogonality.NODE.
// monitors ["metrics"]: of `yoke fit`: metrics: metrics.jsonl; tensorboard; maps: the last node's results as files.
//
// NULL with EINVAL: an unknown key, type or node, with the nearest, a cycle, a node that nothing reads but the last, a loss that
// reaches nothing that is trained.  The states are of the current context.
YOKE_API yoke_pipeline *yoke_pipeline_new(const char *json);
YOKE_API void yoke_pipeline_free(yoke_pipeline *); // NULL is fine
// The JSON with all keys that are in force; lives as long as the pipeline.
YOKE_API const char *yoke_pipeline_config(const yoke_pipeline *);
// A context as the JSON's trainer.accelerator and trainer.devices say, to be made current before the pipeline is made.
YOKE_API yoke_context *yoke_pipeline_context(const char *json);
// How far it is, told now and then from the thread that fits or trains.
struct yoke_fitting_progress {
	size_t size;
	const char *stage;     // fit, train, valid, test
	int64_t round, rounds; // which pass or epoch, from 1 on; of how many, 0: not known
	int64_t done, all;     // samples of the pass or validation, batches of the epoch
	double loss;           // of the last step, updated every 0.2 s; NaN: none yet
};
typedef void yoke_fitting_fn(void *arg, const struct yoke_fitting_progress *);
// Called after each batch: a result other than 0 ends the phase, which returns 1.  With a folder a checkpoint is written first,
// even with trainer.enable_checkpointing=false; a run resumed from it has the bits of an unbroken run.
typedef int yoke_fitting_stop_fn(void *arg);
// Called with each line of losses and metrics, with the arguments of yoke_run_log; NaN: no value.
typedef void yoke_fitting_log_fn(void *arg, const char *stage, int64_t step, int n, const char *const *name, const double *value);
struct yoke_fitting {
	size_t size;
	yoke_dataset *set;
	const char *loader;    // settings of loaders, or NULL
	const char *folder;    // for checkpoints, with trainer.enable_checkpointing; NULL: none
	int resume;            // go on from the folder's, to the bits of an unbroken run; without one from the beginning
	yoke_fitting_fn *progress; // or NULL
	void *arg;
	yoke_fitting_stop_fn *stop; // or NULL
};
// Fits all nodes by the set's field "x" [..,C] of f32 or f64 and, where it has one, "weight" [..] of the same dtype.  Nothing of
// the stream is kept.  Errors name the node.  1: `stop` ended it.  ERANGE: a weight is negative or NaN.
// Where statistics are collected on another device than the pipeline's, its states are new variables afterwards.
YOKE_API int yoke_pipeline_fit(yoke_pipeline *, yoke_dataset *, const char *loader);
YOKE_API int yoke_pipeline_fit_as(yoke_pipeline *, const struct yoke_fitting *);
enum { YOKE_PIPELINE_PASSES = 16 };
struct yoke_pipeline_stats {
	size_t size;
	int passes;       // over the stream
	int statistics;   // collected in them
	int64_t samples;  // read, in all passes
	double loading;   // seconds that phases waited for batches
	double collecting, pass[YOKE_PIPELINE_PASSES]; // of passes without that, in all and of each
	double solving;   // of fitting nodes by statistics
	double training, validating; // of phase 2, the first with its share of loading
};
YOKE_API int yoke_pipeline_stats(const yoke_pipeline *, struct yoke_pipeline_stats *);

struct yoke_training {
	size_t size;
	yoke_dataset *train, *valid; // fields x, weight, label u8 [..]; valid NULL: none
	const char *loader;          // settings of loaders, or NULL: batch, workers ..
	yoke_run *run;               // gets each loss, and metrics of validations; or NULL
	const char *folder;          // for checkpoints, behind each epoch, with trainer.enable_checkpointing; NULL: none
	int resume;                  // go on from the folder's, where yoke_pipeline_resume found one
	yoke_dataset *test;          // what is left for the end, or NULL
	yoke_fitting_fn *progress;   // or NULL
	void *arg;
	yoke_fitting_stop_fn *stop;  // or NULL; the batches of a step, and a validation, are finished first
	yoke_fitting_log_fn *logged; // or NULL
};
// Phase 2, of a fitted pipeline: max_epochs over the training set, in orders that follow from the seed, with validations as the
// trainer says.  Without losses only validates.  The loss of a split or a step is the weighted mean over all its pixels, in
// whichever batches they are; without pixels of positive weight it has no value (NaN).  1: `stop` ended it.  EINVAL: nothing is
// to be trained, a set lacks labels that a loss or a metric wants; ERANGE: a loss is not finite, a weight is negative or NaN.
YOKE_API int yoke_pipeline_train(yoke_pipeline *, const struct yoke_training *);
// Takes the states of a folder's last checkpoint, with which the pipeline is fitted, and says which steps were done; then
// training with `resume` goes on to the bits of an unbroken run.  0: there is none.  EFORMAT: it is of another pipeline.
YOKE_API int64_t yoke_pipeline_resume(yoke_pipeline *, const char *folder);
// The area under the ROC curve of n scores and labels (0 or not), ties by their mean rank (Mann and Whitney 1947); NaN where
// all labels are alike.  ERANGE for a NaN.
YOKE_API int yoke_roc_auc(size_t n, const float *score, const unsigned char *label, double *to);
// The result of a node, or with NULL of the last one, for x [..,C], in use.  EINVAL: it is not fitted.
YOKE_API yoke_tensor *yoke_pipeline_apply(yoke_pipeline *, const char *node, yoke_tensor *x);
// A state as a variable f32 that the pipeline owns: ("pca", "w").  NULL with ENOENT.
YOKE_API yoke_tensor *yoke_pipeline_state(const yoke_pipeline *, const char *node, const char *state);
// The states, named node.state, in a safetensors file; and back into a pipeline of the same nodes, which is fitted then.
// EFORMAT: the file has others.  ESHAPE: the pipeline is of another number of channels already.
YOKE_API int yoke_pipeline_save(const yoke_pipeline *, const char *path);
YOKE_API int yoke_pipeline_load(yoke_pipeline *, const char *path);

#ifdef __cplusplus
}
#endif
#endif
