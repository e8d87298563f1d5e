// SPDX-License-Identifier: Apache-2.0
// Training a network of one's own by the loop of `yoke train`: micro-batches that add up, clipping, schedules, mixed
// precision, validation, checkpoints, runs that are resumed bit for bit, and an end at Ctrl-C.
//
//	static int next(void *arg, int64_t part, int most, yoke_tensor **in) // a batch: two tensors
//	{
//		return yoke_loader_next(arg, 2, in, NULL) > 0 ? 2 : YOKE_EIO;
//	}
//	static yoke_tensor *loss(void *arg, yoke_module *net, int n, yoke_tensor *const *in)
//	{
//		return yoke_cross_entropy(yoke_call(net, in[0]), in[1], -1, 0);
//	}
//	struct yoke_fit f = { .size = sizeof f, .net = net, .optim = yoke_optim_new("adamw", "lr=3e-4 clip=1 schedule=cosine "
//		"steps=1000 warmup=50"), .steps = 1000, .next = next, .loss = loss, .arg = loader, .data = loader,
//		.out = "run", .save_every = 100 };
//	yoke_fit(&f, NULL);
//
// A step asks `next` for a batch as often as `accumulate` says and adds the gradients of their losses up, each over
// `accumulate`, in the order that accumulate_order names.  What `next` and `loss` record lies in a scope of the step; the numbers of
// random operations follow from seed and part.  Equal steps are planned once.
//
// Ranks.  Processes that mpirun, srun, torchrun or yoke_group_spawn started, and threads of yoke_group_run, each of which
// calls yoke_fit with its own copy of the network, train one network together.  Each trains on the device of the context
// that its network is in.  yoke_group_run gives each thread a context on a device of its own; a process chooses its device
// itself before it makes the network (yoke_use of yoke_context_new_on, or YOKE_DEVICE), else all processes of a machine
// train on the best one.  A step then has `accumulate` batches of
// each rank.  On every rank `next` is called for all batches of the step, in order, and has to give the same ones; the
// rank computes the losses of its share.  All ranks start with the parameters and buffers of rank 0.  Gradients and the
// loss cover the batches of all ranks; buffers that training changes stay local to each rank.  `valid` and `log` are called on all
// ranks; `log` or a signal on any of them ends the run on all, at most two steps later.  Rank 0 locks and writes `out`, which all
// read.  With accumulate_order "tree", N ranks have the bits of one rank with N times `accumulate` if `accumulate` is a power
// of 2 (with zero=2: if N is a power of 2 or `accumulate` is 1), unless a setting changes the order of sums over ranks
// (yoke-dist.h).  An error on one rank is ERANK on the others.
#ifndef YOKE_FIT_H
#define YOKE_FIT_H

#include <yoke-data.h>
#include <yoke-nn.h>
#include <yoke-optim.h>

#ifdef __cplusplus
extern "C" {
#endif

#define YOKE_FIT_MAX 16 // tensors of a batch

// What became of a step.
struct yoke_fit_step {
	size_t size;
	int64_t step, skipped;   // done; of those, steps that changed nothing, since gradients overflowed
	double loss, grad_norm;  // of its batches; of all gradients, before clipping.  Those of a step that is skipped may
				 // be infinite or NaN
	double lr;               // of the first parameter
	double scale;            // of the loss, 1 where it has none
	double valid;            // NaN, or, in a call of its own, what the validation behind this step came to
	double seconds;          // since the last call, without validation and saving
};

struct yoke_fit { // 0 or NULL where nothing else is said: not
	size_t size;           // sizeof, set by the caller
	yoke_module *net;      // its parameters that are not frozen are trained, f32 or f64; it is put into training mode
	yoke_optim *optim;     // stays the caller's; parameters are added to it if it has none, else they have to be these
	int64_t steps;         // in all, with those of a run that is resumed; 0: until `next` has no more
	int64_t accumulate;    // batches of a step; 0: 1
	// Gives the next batch, of at most `most` tensors, and returns how many they are; 0 when there are no more, which
	// ends the run behind the last step that had all of its batches; or an error, which ends it at once.  part: counts
	// batches from 0 on, in all.
	int (*next)(void *arg, int64_t part, int most, yoke_tensor **in);
	// Records the loss of a batch, one number.
	yoke_tensor *(*loss)(void *arg, yoke_module *net, int n, yoke_tensor *const *in);
	// As next: batch number 0, 1, .. of a validation, and 0 behind the last one.  The net is in evaluation mode then.  The
	// result is the mean of the batches' losses, each weighted by the size of the first axis of the batch's first tensor.
	int (*valid)(void *arg, int64_t number, int most, yoke_tensor **in);
	// Told of a step; another result than 0 ends the run behind it, saved, as a signal does.
	int (*log)(void *arg, const struct yoke_fit_step *);
	void *arg;             // handed to all of them
	yoke_loader *data;     // that `next` reads: its position is saved, and gone on from
	int64_t log_every;     // steps, 0: 10; the first and last ones are told of anyway
	int64_t valid_every;   // steps; and behind the last one
	int64_t save_every;    // steps; and behind the last one
	const char *out;       // folder of the checkpoint: parameters, buffers, states of the optimizer, scale, positions
	int resume;            // 1: goes on from the checkpoint in out, if there is one
	const char *precision; // "fp32", "bf16-mixed", "fp16-mixed" with a scale of the loss; NULL: fp32
	const char *keep_f32;  // patterns of scopes, as yoke_autocast
	int allow_emulated;    // also where half precision is no faster
	uint64_t seed;         // of random numbers
	int signals;           // 1: SIGINT and SIGTERM end the run behind the step, saved; a second one ends the process.
			       // Signals within half a second count as one.  They are blocked in this thread and in those
			       // that it makes meanwhile; a program whose ranks are threads blocks them before yoke_group_run
	int ranks;             // how many train together, see above; 0: as many as were started.  yoke_fit starts none:
			       // EINVAL, if another number was
	int zero;              // 1: each rank updates a shard of the parameters and keeps the optimizer states of that shard;
			       // 2: gradients are sharded, too (Rajbhandari et al. 2020).  Needs f32 parameters and an optimizer
			       // that has made no steps; its states are freed after the run: they are in `out`.  3, which shards the
			       // parameters as well, is EINVAL: only `yoke train` has it, since `net` holds whole parameters
	const char *accumulate_order; // "tree" or NULL: as a binary tree, with log2(accumulate) copies of the gradients;
			       // "fast": one batch after the other into one copy, with other bits
};

struct yoke_fit_end {
	size_t size;
	int64_t step;          // done
	double loss, valid;    // of the last step that was told of; of the last validation, NaN: none
	int signal;            // that ended it; 0: none
};

// Trains.  end: filled, also after an error; or NULL.  EINVAL names what is missing or does not go together, with
// nothing done; ERANGE: loss or gradients are not finite; else what a function, or a file, failed with.  What was done
// stays done.  EINVAL: there is a checkpoint in out, and resume is 0.  EBUSY: another run trains into out.
YOKE_API int yoke_fit(const struct yoke_fit *, struct yoke_fit_end *end);

#ifdef __cplusplus
}
#endif
#endif
