// SPDX-License-Identifier: Apache-2.0
// Statistics of data streams larger than memory, and pipelines of processing nodes that are fitted
// to them.
#ifndef YOKE_PIPELINE_H
#define YOKE_PIPELINE_H

#include <yoke-data.h>
#include <yoke-run.h>

#ifdef __cplusplus
extern "C" {
#endif

// ---- statistics ----

// Statistics of a stream of observations of C channels: their number (sum of weights), mean,
// covariance and extremes, in f64 on the host.  Memory is C * C numbers, independent of the
// stream's length.  Statistics of parts of a stream, computed anywhere in any order, merge to those
// of the whole (Chan, Golub and LeVeque 1979).
typedef struct yoke_statistic yoke_statistic;

// Creates empty statistics.  diagonal: variances only, C numbers.  NULL with EINVAL, ENOMEM.
YOKE_API yoke_statistic *yoke_statistic_new(int64_t channels, int diagonal);
YOKE_API void yoke_statistic_free(yoke_statistic *); // NULL is fine
// Adds x [..,C], floating point, with weights [..] of its dtype, not negative, or YOKE_NONE.
// Computes yoke_moments on the current context's device, or on the CPU if the device has no f64,
// and waits for it.  An observation of weight 0 is not read.  ERANGE names the first channel with
// an element that is not finite; then nothing is added.
YOKE_API int yoke_statistic_add(yoke_statistic *, yoke_tensor *x, yoke_tensor *weight);
// Adds the observations of `from`.  ESHAPE: the numbers of channels differ, or only one is
// diagonal.
YOKE_API int yoke_statistic_merge(yoke_statistic *, const yoke_statistic *from);

enum yoke_statistic_what {
	YOKE_STATISTIC_COUNT = 1,   // 1: the sum of weights
	YOKE_STATISTIC_MEAN,        // C
	YOKE_STATISTIC_VARIANCE,    // C: divided by count - 1
	YOKE_STATISTIC_COVARIANCE,  // C * C, row-major; divided by count - 1
	YOKE_STATISTIC_CORRELATION, // C * C; 0 off the diagonal for a constant channel
	YOKE_STATISTIC_MIN,       // C
	YOKE_STATISTIC_MAX     // C
};
// Reads one of these into a buffer of n numbers.  EINVAL: its size is not n, or it is unavailable
// for diagonal statistics; ERANGE: no variance for a count of 1 or less.
YOKE_API int yoke_statistic_read(const yoke_statistic *, int what, double *to, size_t n);
YOKE_API int64_t yoke_statistic_channels(const yoke_statistic *);
// Saves and loads a safetensors file with `count`, `mean`, `square`, `min` and `max` in f64,
// bit for bit.
YOKE_API int yoke_statistic_save(const yoke_statistic *, const char *path);
YOKE_API yoke_statistic *yoke_statistic_load(const char *path);

// ---- nodes ----

// The statistics of its input that a node requires, or'ed.
enum { YOKE_WANTS_EXTREMES = 1, YOKE_WANTS_VARIANCE = 2, YOKE_WANTS_COVARIANCE = 4 };

// Special values of a key's `words`: the key is an integer; the key is a list of numbers, and its
// value is their count.  A type has at most one list.
#define YOKE_NODE_WHOLE ""
#define YOKE_NODE_LIST "[]"

// A key of a node in a pipeline's JSON.
struct yoke_node_key {
	const char *name;
	const char *words; // space-separated: the key is one of these words, its value the index
			   // among them; NULL: a number
	double def, min, max; // default, and range of a number
};

// Input of a node's fit: the values of its keys, in the type's order, and the statistics of its
// `in` channels.
struct yoke_node_fit {
	size_t size;
	const char *node;  // the node's name, for messages
	const double *key;
	int64_t in;
	double count;
	const double *mean, *variance, *min, *max; // [in]; NULL: not requested
	const double *covariance;                         // [in,in]
	uint64_t seed;     // derived from the pipeline's seed and the node's name
	const double *list; // the numbers of the list key; NULL: the type has no list
};

// Context of a node's forward call.
struct yoke_node_call {
	size_t size;
	const double *key;
	yoke_tensor *const *state;
	int64_t epoch;  // of training, from 0
	int training;   // 0: inference
	yoke_tensor *weight; // f32 [..], for x [..,in]: 0 for pixels to be ignored, whose numbers
			     // are meaningless; NULL: all pixels count
	yoke_tensor *extent; // i32 [scenes,2]: lines and samples of each scene in x
			     // [scenes,lines,samples,in]; the rest of x is padding; NULL: all
			     // scenes have the size of x
};

enum { YOKE_NODE_STATES = 4, YOKE_NODE_KEYS = 8 };

// A type of node, implemented with yoke's operations.  The built-in types are a table of these.
struct yoke_node_type {
	size_t size;
	const char *name;
	int keys;
	struct yoke_node_key key[YOKE_NODE_KEYS];
	int wants;
	int states;
	const char *state[YOKE_NODE_STATES]; // names of its state tensors
	unsigned trained;                    // bit s: training may change state s
	// The number of output channels for `in` input channels; 0, with a reason in why, if the
	// keys are invalid.
	int64_t (*channels)(const double *key, int64_t in, char *why, size_t why_size);
	// Returns the rank of a state and sets its dims.
	int (*dims)(const double *key, int64_t in, int state, int64_t *dims);
	// Computes the states, row-major.  Returns 0 or an error, recorded by a yoke call or not.
	int (*fit)(const struct yoke_node_fit *, double *const *state, char *why, size_t why_size);
	// Records the result [..,channels] for x [..,in].
	yoke_tensor *(*forward)(const struct yoke_node_call *, yoke_tensor *x);
	// Sets a [channels,in] and t [channels] such that inference computes a x + t; NULL: not
	// affine.  The nodes after an affine node are fitted from the statistics of its input,
	// without another pass over the stream.
	void (*affine)(const double *key, int64_t in, const double *const *state, double *a,
		       double *t);
	int diagonal; // a is a diagonal matrix
	int spatial;  // not 0: forward relates pixels to each other and needs whole scenes x
		      // [..,lines,samples,in]; 0: x may be any pixels
};
// Adds a type, whose strings must stay valid, for pipelines created later, in all threads.  EINVAL:
// the name is in use, or a function is missing; ENOMEM.
YOKE_API int yoke_node_register(const struct yoke_node_type *);

// Built-in types with their keys [defaults]; x [..,C].  For standard and min_max, eps [1e-6] is a
// deviation or a width.  For pca, rx, ace and select, e below is a variance: eps [1e-11] times the
// mean variance of the input, so that results do not depend on the data's unit, or, with relative=0
// [1], eps itself.  e is logged, as a warning if it exceeds 1e-3 of the mean variance:
//   standard  eps                                (x - mean) / max(deviation, eps)
//   min_max   scope=channel|global eps [global]  (x - min) / width, the larger of max - min
//                                                and eps, with one
//                                                pair for all channels or one per channel
//   pca       k whiten [0] eps relative          (x - mean) W', W the k eigenvectors of largest
//                                                variance; whiten=1: divided by sqrt(variance + e)
//   rx        eps relative                       |U (x - mean)|^2, U the inverse of the Cholesky
//                                                factor of covariance + e (Reed and Yu 1990); 1
//                                                channel
//   logit                                        s (x - t); s [1], t [mean + 2 deviations]
//   select    n eps relative                     x w, w = n softmax(l / temperature), l
//                                                [log(variance + e)]; the temperature is max(0.1, 5
//                                                * 0.9^epoch) in training; in inference w is 1 for
//                                                the n largest l, else 0
//   linear    k                                  x W' + b, randomly initialized
//   sam       target                             the angle between x and the list target, which has
//                                                one number per channel, in radians (Kruse et al.
//                                                1993); pi/2 for x = 0; 1 channel
//   ace       eps relative target                (s'z)^2 / (s's z'z), z = U (x - mean), s = U
//                                                (target - mean), U as for rx: the adaptive
//                                                coherence estimator (Kraut and Scharf 1999); 0 for
//                                                x = mean; 1 channel
//   local_rx  inner outer eps relative pixels    (x - m)' (S + e)^-1 (x - m), m and S mean and
//                                                covariance of the pixels in the outer [21] x outer
//                                                window around x but not in the inner [5] x inner
//                                                one; pixels [0] is described below; 1 channel
//   sigmoid                                      1 / (1 + exp(-x))
//   unit                                         x / |x|
//   decide    t                                  1 where x > t, else 0
//
// local_rx estimates the background for each pixel (Reed and Yu 1990 with a dual window), so it has
// no fit and no state.  inner and outer are odd, inner < outer.  At the edges of a scene the window
// is shifted inside and keeps its size, as in Spectral Python's rx(window=(inner, outer)); a window
// wider than the scene is reduced to the scene's width.  Pixels of weight 0 (ignore value, masks,
// nonfinite=skip) belong to no background and have score 0; so do pixels whose ring has fewer than
// `pixels` pixels of positive weight, by default the number of channels plus one.  e is as for rx,
// from the mean variance of the ring.  m, S (divided by the ring's weight - 1) and the score are
// computed in f64 on the CPU, for other devices by copying to the host; gradients flow to the
// node's input.  ERANGE, with line and sample: S + e is singular, as with a constant ring without
// eps.  With C channels a pixel takes about C^2 (outer / 2 + 6) + C^3 / 6 multiplications, and a
// thread takes 20 C^2 outer bytes.  A scene of 512 x 512 pixels, 100 bands and outer=21 takes about
// 20 s on one AVX2 core, and 2 s after a pca node of 20 channels.  The input must be scenes
// [..,lines,samples,C]: datasets of cubes, or tensors of 3 axes or more.

// ---- pipelines ----

typedef struct yoke_pipeline yoke_pipeline;

// Creates a pipeline from JSON:
//
//	{ "nodes": [ {"name": "scale", "type": "min_max"}, {"name": "pca", "type": "pca", "k": 20},
//	             {"name": "rx", "type": "rx"},
//	             {"name": "both", "type": "linear", "k": 1, "in": ["pca", "rx"]} ],
//	  "losses": [ {"type": "orthogonality", "of": "pca", "weight": 0.1},
//	              {"type": "bce", "of": "both"} ],
//	  "metrics": ["roc_auc"], "trainer": {"max_epochs": 20}, "optimizer": {"lr": 1e-3},
//	  "seed": 42 }
//
// `in` is a node's input: by default the previous node; "input" is the stream; several are
// concatenated along their channels.  "train": true lets training change the node's trainable
// states: w of pca, l of select, all states of other types.  freeze, a pattern of nodes or states
// ("pca*", "*.w"; as in fnmatch) or a list of patterns, excludes states from training, and unfreeze
// includes some of them again.
//
// losses, weighted by `weight` [1]: orthogonality: |W W' - 1|^2 of a node's w; bce: of a node's
// logits and the labels, positives weighted by `pos_weight` [1] (mean over pixels, by their
// weights); mse: between `of` and `node`; entropy: of a select's softmax.
// The keys of trainer are named after PyTorch Lightning's. The names of `yoke train` are accepted
// too: epochs, accumulate, clip, progress, log_every; and fp32, fp16-mixed as precision.
//   max_epochs [1]                0: phase 1 only
//   accelerator ["cpu"]           "gpu": the best GPU, or the CPU with a warning (ENODEV under
//                                 YOKE_STRICT=1); "auto"; or a backend or device as in YOKE_BACKEND
//                                 and YOKE_DEVICE, which are the default if set.  Used by
//                                 yoke_pipeline_context
//   devices [1]                   1, "auto": the best device; [N]: device N of the accelerator
//   precision ["32-true"]         "16-mixed", "bf16-mixed": contractions of phase 2 in half
//                                 precision (yoke_autocast), f16 with loss scaling; orthogonality
//                                 and phase 1 stay in f32 and f64
//   accumulate_grad_batches [1]   batches whose gradients are accumulated into one step, as if they
//                                 were one batch; the last step of an epoch may have fewer
//   gradient_clip_val [null]      maximum norm of all gradients together; null, 0: no limit
//   enable_progress_bar [true]    false: the function `progress` is not called
//   enable_checkpointing [false]  with a folder: saves after each epoch; in phase 1 after each pass
//                                 and every YOKE_FIT_SAVE seconds
//   log_every_n_steps [50]        interval of logged losses; the first step is logged
//   val_check_interval [1.0]      interval of validations: a fraction of an epoch, or an integer
//                                 number of batches
//   check_val_every_n_epoch [1]   validates only in and after every n-th epoch, and always in the
//                                 last
//   deterministic [false]         rejects settings that change bits from run to run: benchmark,
//                                 accelerator "auto", cpu.gemm, cpu.lapack
//   benchmark [false]             before training, measures the available kernels for the
//                                 contractions of a step
//   statistics ["cpu"]            "device": phase 1 computes on the context's device, if it has f64
//   passes ["one"]                collects the statistics of all nodes in as few passes over the
//                                 stream as possible; "each": one pass per node that requires
//                                 statistics
// optimizer: name ["adam"] adamw sgd, lr [1e-3], weight_decay [0], betas [null: the optimizer's],
// momentum [0].  seed [42].
// metrics, computed in validations, are words or objects with `type` and `of`, a node [the last]:
// roc_auc; precision, recall, f1, iou, accuracy of scores above `threshold` [0]; quantiles of
// scores, `q` [0.5, 0.9, 0.99]; for a node with w [the last such node] explained_variance, the
// ratio of the variances of x W' and x, and orthogonality |W W' - 1|^2, recorded as
// orthogonality.NODE.
// monitors ["metrics"], used by `yoke fit`: metrics: metrics.jsonl; tensorboard; maps: the last
// node's results as files.
//
// NULL with EINVAL: an unknown key, type or node (the error suggests the nearest), a cycle, a node
// other than the last that nothing reads, a loss that reaches nothing trainable.  The states belong
// to the current context.
YOKE_API yoke_pipeline *yoke_pipeline_new(const char *json);
YOKE_API void yoke_pipeline_free(yoke_pipeline *); // NULL is fine
// The JSON with the effective values of all keys; valid as long as the pipeline.
YOKE_API const char *yoke_pipeline_config(const yoke_pipeline *);
// Creates a context as specified by the JSON's trainer.accelerator and trainer.devices; make it
// current before creating the pipeline.
YOKE_API yoke_context *yoke_pipeline_context(const char *json);
// Progress, reported from time to time by the thread that fits or trains.
struct yoke_fitting_progress {
	size_t size;
	const char *stage;     // fit, train, valid, test
	int64_t round, rounds; // number of the pass or epoch, from 1, and their total, 0: unknown
	int64_t done, all;     // samples of the pass or validation, batches of the epoch
	double loss;           // of the last step, updated every 0.2 s; NaN: none yet
};
typedef void yoke_fitting_fn(void *arg, const struct yoke_fitting_progress *);
// Called after each batch: a nonzero result ends the phase, which returns 1.  If there is a folder,
// a checkpoint is written first, even with trainer.enable_checkpointing=false; a run resumed from
// it computes the same bits as an uninterrupted run.
typedef int yoke_fitting_stop_fn(void *arg);
// Called for each record of losses and metrics, with the arguments of yoke_run_log; NaN: no value.
typedef void yoke_fitting_log_fn(void *arg, const char *stage, int64_t step, int n,
				 const char *const *name, const double *value);
struct yoke_fitting {
	size_t size;
	yoke_dataset *set;
	const char *loader;    // loader settings, or NULL
	const char *folder;    // for checkpoints, with trainer.enable_checkpointing; NULL: none
	int resume;            // resumes from the folder's checkpoint, with the bits of an
			       // uninterrupted run; starts from the beginning if there is none
	yoke_fitting_fn *progress; // or NULL
	void *arg;
	yoke_fitting_stop_fn *stop; // or NULL
};
// Fits all nodes to the dataset's field "x" [..,C] of f32 or f64, weighted by "weight" [..] of the
// same dtype if it has that field.  If x is scenes [lines,samples,C] of variable size, a field
// "size" i32 [2] gives the lines and samples of each, as in yoke-cube.h.  The stream is not stored.
// Errors name the node.  1: `stop` ended it.  ERANGE: a weight is negative or NaN.  If statistics
// are collected on another device than the pipeline's, its states are new variables afterwards.
YOKE_API int yoke_pipeline_fit(yoke_pipeline *, yoke_dataset *, const char *loader);
YOKE_API int yoke_pipeline_fit_as(yoke_pipeline *, const struct yoke_fitting *);
enum { YOKE_PIPELINE_PASSES = 16 };
struct yoke_pipeline_stats {
	size_t size;
	int passes;       // over the stream
	int statistics;   // collected in these passes
	int64_t samples;  // read, in all passes
	double loading;   // seconds that phases waited for batches
	double collecting, pass[YOKE_PIPELINE_PASSES]; // seconds of passes without loading, total
						       // and of each
	double solving;   // seconds of fitting nodes from statistics
	double training, validating; // seconds of phase 2; training includes its loading
};
YOKE_API int yoke_pipeline_stats(const yoke_pipeline *, struct yoke_pipeline_stats *);

struct yoke_training {
	size_t size;
	yoke_dataset *train, *valid; // fields x, weight, label u8 [..]; valid may be NULL
	const char *loader;          // loader settings (batch, workers, ...), or NULL
	yoke_run *run;               // records losses and validation metrics; or NULL
	const char *folder;          // for checkpoints after each epoch, with
				     // trainer.enable_checkpointing; NULL: none
	int resume;                  // resumes from the folder's checkpoint that
				     // yoke_pipeline_resume found
	yoke_dataset *test;          // held-out data evaluated at the end, or NULL
	yoke_fitting_fn *progress;   // or NULL
	void *arg;
	yoke_fitting_stop_fn *stop;  // or NULL; the batches of a step, and a validation, are
				     // finished first
	yoke_fitting_log_fn *logged; // or NULL
};
// Phase 2: trains a fitted pipeline for max_epochs over the training set, in orders that depend on
// the seed, with validations as configured by the trainer.  Without losses it only validates.  The
// loss of a split or a step is the weighted mean over all its pixels, whatever the batches; without
// pixels of positive weight it is NaN.  1: `stop` ended it.  EINVAL: nothing is trainable, or a set
// lacks labels required by a loss or metric; ERANGE: a loss is not finite, a weight is negative or
// NaN.
YOKE_API int yoke_pipeline_train(yoke_pipeline *, const struct yoke_training *);
// Loads the states of a folder's last checkpoint, after which the pipeline is fitted, and returns
// the number of completed steps; training with `resume` then continues with the bits of an
// uninterrupted run.  0: there is no checkpoint.  EFORMAT: it belongs to another pipeline.
YOKE_API int64_t yoke_pipeline_resume(yoke_pipeline *, const char *folder);
// The area under the ROC curve of n scores and labels (0 or nonzero), ties by their mean rank (Mann
// and Whitney 1947); NaN if all labels are equal.  ERANGE for a NaN score.
YOKE_API int yoke_roc_auc(size_t n, const float *score, const unsigned char *label, double *to);
// The result of a node, or with NULL of the last one, for x [..,C] in inference.  EINVAL: it is not
// fitted.
YOKE_API yoke_tensor *yoke_pipeline_apply(yoke_pipeline *, const char *node, yoke_tensor *x);
// A state as an f32 variable that the pipeline owns: ("pca", "w").  NULL with ENOENT.
YOKE_API yoke_tensor *yoke_pipeline_state(const yoke_pipeline *, const char *node,
					  const char *state);
// Saves the states, named node.state, to a safetensors file, and loads them into a pipeline of the
// same nodes, which is fitted afterwards.  EFORMAT: the file has other states.  ESHAPE: the
// pipeline already has another number of channels.
YOKE_API int yoke_pipeline_save(const yoke_pipeline *, const char *path);
YOKE_API int yoke_pipeline_load(yoke_pipeline *, const char *path);

#ifdef __cplusplus
}
#endif
#endif
