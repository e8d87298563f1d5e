// SPDX-License-Identifier: Apache-2.0
// Trains custom networks with the loop of `yoke train`: gradient accumulation, clipping, schedules,
// mixed precision, validation, checkpoints, bitwise-exact resumption, and a clean end at Ctrl-C.
// A run with a directory keeps the records of a run (yoke-run.h), which `yoke dashboard`, `yoke
// report` and `yoke doctor` read.
//
//	static int next(void *arg, int64_t part, int max, yoke_tensor **in) // a batch: two tensors
//	{
//		return yoke_loader_next(arg, 2, in, NULL) > 0 ? 2 : YOKE_EIO;
//	}
//	static yoke_tensor *loss(void *arg, yoke_module *net, int n, yoke_tensor *const *in)
//	{
//		return yoke_cross_entropy(yoke_call(net, in[0]), in[1], -1, 0);
//	}
//	struct yoke_fit f = { .size = sizeof f, .net = net,
//		.optim = yoke_optim_new("adamw", "lr=3e-4 clip=1 schedule=cosine "
//			"steps=1000 warmup=50"), .steps = 1000,
//		.next = next, .loss = loss, .arg = loader, .data = loader,
//		.out = "run", .save_every = 100 };
//	yoke_fit(&f, NULL);
//
// A step requests `accumulate` batches from `next` and sums the gradients of their losses, each
// divided by `accumulate`, in the order given by accumulate_order.  Operations recorded by `next`
// and `loss` lie in a scope of the step; random numbers depend on the seed and the batch number.
// Steps with the same structure are planned once.
//
// Distributed training.  Ranks are processes started by mpirun, srun, torchrun or yoke_group_spawn,
// or threads of yoke_group_run.  Each rank calls yoke_fit with its own copy of the network;
// together they train one network.  Each rank trains on the device of its network's context.
// yoke_group_run gives each thread a context on its own device.  A process chooses its device
// itself before it creates the network (yoke_use of yoke_context_new_on, or YOKE_DEVICE); otherwise
// all processes of a machine train on the best device.  A step has `accumulate` batches per rank.
// On every rank `next` is called for all batches of the step, in order, and must return the same
// batches on all ranks; each rank computes the losses of its share.  All ranks start with the
// parameters and buffers of rank 0.  Gradients and the loss cover the batches of all ranks; buffers
// that training changes stay local to each rank.  `valid` and `log` are called on all ranks; `log`
// or a signal on any rank ends the run on all, at most two steps later.  Rank 0 locks and writes
// `out`, which all ranks read.  With accumulate_order "tree", N ranks compute the same bits as one
// rank with N times `accumulate` if `accumulate` is a power of 2 (with zero=2: if N is a power of 2
// or `accumulate` is 1), unless a setting changes the order of sums over ranks (yoke-dist.h).  An
// error on one rank is ERANK on the others.
#ifndef YOKE_FIT_H
#define YOKE_FIT_H

#include <yoke-data.h>
#include <yoke-nn.h>
#include <yoke-optim.h>
#include <yoke-run.h>

#ifdef __cplusplus
extern "C" {
#endif

#define YOKE_FIT_MAX 16 // maximum number of tensors in a batch

// The outcome of a step.
struct yoke_fit_step {
	size_t size;
	int64_t step, skipped;   // steps done; of these, steps that changed nothing because
				 // gradients overflowed
	double loss, grad_norm;  // mean loss of its batches; norm of all gradients before clipping.
				 // May be infinite or NaN for a skipped step
	double lr;               // of the first parameter
	double scale;            // loss scale, 1 if there is none
	double valid;            // the validation loss, in a separate call for a validation after
				 // this step; else NaN
	double seconds;          // since the last call, without validation and saving
	yoke_run *run;           // the run's records, to which `log` may add values with
				 // yoke_run_log; NULL: there is no `out`, or this is not rank 0
};

struct yoke_fit { // 0 or NULL means "not used" unless stated otherwise
	size_t size;           // sizeof, set by the caller
	yoke_module *net;      // its parameters that are not frozen are trained, f32 or f64; it is
			       // set to training mode
	yoke_optim *optim;     // owned by the caller; the parameters are added if it has none, else
			       // it must have exactly these
	int64_t steps;         // total, including those of a resumed run; 0: until `next` has no
			       // more batches
	int64_t accumulate;    // batches per step; 0: 1
	// Returns the number of tensors, at most `max`, of the next batch, which it stores in
	// `in`; 0 if there are no more, which ends the run after the last step that had all of its
	// batches; or an error, which ends it immediately.  part: number of the batch in the run,
	// from 0.
	int (*next)(void *arg, int64_t part, int max, yoke_tensor **in);
	// Records the loss of a batch, a single number.
	yoke_tensor *(*loss)(void *arg, yoke_module *net, int n, yoke_tensor *const *in);
	// Like next, for validation: receives the batch number 0, 1, ... and returns 0 after the
	// last batch.  The net is in evaluation mode.  The result is the mean of the batches'
	// losses, each weighted by the size of the first axis of the batch's first tensor.
	int (*valid)(void *arg, int64_t number, int max, yoke_tensor **in);
	// Receives the outcome of a step; a nonzero result saves and ends the run after it, as a
	// signal does.
	int (*log)(void *arg, const struct yoke_fit_step *);
	void *arg;             // passed to all of these functions
	yoke_loader *data;     // read by `next`: its position is saved and restored
	int64_t log_every;     // interval of `log` in steps, 0: 10; it is always called for the
			       // first and last step
	int64_t valid_every;   // interval in steps; also validates after the last step
	int64_t save_every;    // interval in steps; also saves after the last step
	const char *out;       // directory of checkpoints (parameters, buffers, optimizer states,
			       // loss scale, positions) and records: run.json, metrics.jsonl with a
			       // line for each step that `log` receives and each validation,
			       // events.jsonl and telemetry.jsonl.  run.json ends with how the run
			       // ended: done, stopped (by `log`), the name of a signal, or failed
	int resume;            // 1: resumes from the checkpoint in out, if there is one
	const char *precision; // "fp32", "bf16-mixed", "fp16-mixed" with loss scaling; NULL: fp32
	const char *keep_f32;  // patterns of scopes, as in yoke_autocast
	int allow_emulated;    // 1: allows half precision where it is not faster
	uint64_t seed;         // of random numbers
	int signals;           // 1: SIGINT, SIGTERM and, unless the process ignores it, SIGHUP save
			       // and end the run after the current step; a second one ends the
			       // process.  Signals within half a second count
			       // as one.  They are blocked in this thread and in threads it creates
			       // meanwhile; a program whose ranks are threads blocks them before
			       // yoke_group_run
	int ranks;             // expected number of ranks, see above; 0: as many as were started.
			       // yoke_fit starts none itself: EINVAL if another number was started
	int zero;              // ZeRO stage (Rajbhandari et al. 2020).  1: each rank updates a
			       // shard of the parameters and holds the optimizer states of that
			       // shard; 2: gradients are sharded, too.  Needs f32 parameters and an
			       // optimizer that has made no steps; its states are freed after the
			       // run and remain in `out`.  3, which also shards the parameters, is
			       // EINVAL: only `yoke train` supports it, since `net` holds whole
			       // parameters
	const char *accumulate_order; // "tree" or NULL: sums as a binary tree, with
				      // log2(accumulate) copies of the gradients; "fast": one batch
				      // after the other into one copy, with other bits
	const char *config; // settings of the program for run.json, a JSON object.  yoke_fit adds
			    // its own and those of the optimizer and of `data`, unless the
			    // program has given other values
	int64_t steps_expected; // steps for the display of progress if `steps` is 0 and the number
			       // is known
	double telemetry; // seconds between samples of host and device in telemetry.jsonl; 0: 1;
			  // below 0: none
	int tensorboard;       // 1: also writes the records as TensorBoard's events
	const volatile int *stop; // a variable in which the program's own signal handler stores the
			       // number of a signal: it then ends the run as with signals=1.  0
			       // until then
};

struct yoke_fit_end {
	size_t size;
	int64_t step;          // steps done
	double loss, valid;    // of the last logged step; of the last validation, NaN: none
	int signal;            // the signal that ended the run; 0: none
};

// Trains a network.  end: NULL, or filled, also after an error.  EINVAL names missing or
// incompatible members, before anything is done, or means that out has a checkpoint and resume is
// 0, or config is not a JSON object; ERANGE: loss or gradients are not finite; EBUSY: another run
// trains into out; otherwise the error of a function or file.  Completed steps remain in effect.
YOKE_API int yoke_fit(const struct yoke_fit *, struct yoke_fit_end *end);

#ifdef __cplusplus
}
#endif
#endif
