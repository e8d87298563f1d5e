// SPDX-License-Identifier: Apache-2.0
// Distributed computing: groups of ranks, one device each, and their collectives.
//
//	static int rank(yoke_group *world, void *arg)
//	{
//		.. the current context is on this rank's device ..
//		yoke_grad(loss, n, p, g);                          // of this rank's samples
//		yoke_all_reduce_list(world, YOKE_REDUCE_SUM, n, g, g); // of all ranks' samples
//		yoke_optim_step(o, n, g, NULL);
//		return yoke_eval(0, NULL);
//	}
//
//	yoke_setting_set("cpu.devices", "2");
//	yoke_group_run(2, NULL, rank, NULL);
//
// A rank is a thread with one context on one device.  A group is an ordered set of ranks.  Each
// rank has its own handle of a group, a yoke_group, which belongs to the context that was current
// when it was created and is used by that context's thread.  It lives until yoke_group_free, or as
// long as its context.
//
// All ranks of a group run the same program: they record the same collectives of the group, in the
// same order, with the same shapes and dtypes, and evaluate at the same points.  A collective is
// recorded like any operation.  The next evaluation of its context executes it, whatever that
// evaluation computes (yoke_eval, yoke_read), exactly once and in the order of recording.  Its
// result is kept after that if it is a root (yoke.h); otherwise it is ERELEASED to later
// evaluations, since a rank cannot repeat a collective alone.  Collectives run on a separate queue,
// concurrently with the device's other work: each starts as soon as its operands are ready, and
// only operations that read its result wait for it.
//
// Sums have a fixed order, the same on all ranks and in all runs: x_i <- x_i + x_{i+d} for d = 1,
// 2, 4, ... and each i divisible by 2d.  f64 is added in f64, f32 in f32, f16 and bf16 in f32 with
// one rounding at the end; integers wrap.  All ranks get the same bits.  The settings
// dist.algorithm=ring and, on GPUs, dist.order=fast use other orders.
//
// Errors.  If ranks disagree about a collective, all of them get EMISMATCH, with the calls of two
// ranks in the message, and no data is transferred.  If a rank fails, exits, leaves the group or is
// more than dist.timeout seconds late, the others get ERANK from the call in which they wait, with
// the same message.  Both errors are returned by the call that evaluates, or by the next call that
// detects them, like a device failure; the values to be computed are lost (EFAILED), and no later
// collective of the group succeeds.  An error on one rank that concerns no collective (a shape,
// memory) is returned on that rank only; the others detect it when the rank's function returns it,
// or when an evaluation in progress fails.
#ifndef YOKE_DIST_H
#define YOKE_DIST_H

#include <yoke.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct yoke_group yoke_group;

// ---- groups ----

// Runs fn on n ranks, each a thread whose current context is on its own device and is freed after
// fn; the calling thread waits.  devices: comma-separated ("opencl:0,opencl:1"), one per rank;
// NULL: the first n devices of the same kind as the best one.  ENODEV: there are fewer (with
// dist.share=1 they are shared instead).  cpu.devices=n divides the CPU's cores into n devices.  fn
// returns 0 or an error, which breaks all groups of its rank: the others get ERANK.  Returns 0, or
// the error of the rank that failed first, which yoke_error names.
YOKE_API int yoke_group_run(int n, const char *devices, int (*fn)(yoke_group *world, void *arg),
			    void *arg);
// Runs ranks as processes: starts n processes that run argv (argv[0] is searched in PATH), with the
// settings of this process, and waits for them.  In each, yoke_group_world of the first context is
// a world of all n; they communicate through shared memory, which is removed at the end.  A process
// that ends by a signal, or with a nonzero exit status, is detected at once: the others get ERANK,
// and processes still running dist.timeout seconds later are killed.  All are killed when the
// calling process ends.  Returns 0, or ERANK with the exit status of the first process that failed,
// or the error it failed with.
YOKE_API int yoke_group_spawn(int n, char *const argv[]);
// All ranks, for the calling thread's context: those of yoke_group_run or yoke_group_spawn, else
// this rank alone.  It need not be freed.  NULL after an error; calls with that group then fail
// with the error's code.
YOKE_API yoke_group *yoke_group_world(void);
// Called by all ranks of a group: creates a group of the ranks with the same color, ordered by key,
// then by rank.  A negative color: no group, NULL, for which all group calls fail with EINVAL.
// Waits for all ranks.  ENOMEM: the memory shared by processes has room for about 20 groups of the
// size of the world in total, or more smaller ones, including freed groups.
YOKE_API yoke_group *yoke_group_split(yoke_group *, int color, int key);
YOKE_API int yoke_group_rank(const yoke_group *); // 0 .. size - 1
YOKE_API int yoke_group_size(const yoke_group *);
// Progress of a rank in a group's collectives; callable from any thread, while the group exists.
struct yoke_group_state {
	size_t size;
	uint64_t seq; // number of the group's collectives that the rank has reached
	char op[96];  // the last of them, "all_reduce sum f32 [1000]"; "": none so far
	int open;     // 1: it is not complete, e.g. because other ranks have not reached it
	double since; // time when the rank reached or completed it, in seconds since 1970
	uint64_t sent; // bytes of tensors sent to other ranks of the group; with shared memory,
		       // bytes that others read from it
	double waited; // seconds that the rank has waited for other ranks, in all its groups
};
YOKE_API int yoke_group_state(const yoke_group *, struct yoke_group_state *to);
// Waits until all ranks have called it, and for work of the group launched before.
YOKE_API int yoke_group_barrier(yoke_group *);
// Called by all ranks: each contributes the same number of bytes of host memory and gets all
// contributions in the order of ranks.  Waits.
YOKE_API int yoke_group_exchange(yoke_group *, const void *mine, size_t bytes, void *all);
// Leaves a group; other ranks that continue to use it get ERANK.  NULL and the world are fine.
YOKE_API void yoke_group_free(yoke_group *);

// ---- collectives ----
// kind: YOKE_REDUCE_SUM, YOKE_REDUCE_MAX or YOKE_REDUCE_MIN (NaN if an operand is NaN), for
// numbers.  For gradients the loss is the sum of the losses of all ranks, each of which calls
// yoke_grad; the loss must depend on the results in the same way on all ranks.  max and min have no
// gradient.

// The reduction over all ranks, with the shape of x.
YOKE_API yoke_tensor *yoke_all_reduce(yoke_group *, int kind, yoke_tensor *x);
// All-reduce of n tensors of the same dtype, in one message per rank and step: to[i], which may be
// x[i].  After an error all are NULL.
YOKE_API int yoke_all_reduce_list(yoke_group *, int kind, int n, yoke_tensor *const *x,
				  yoke_tensor **to);
// x [N a,..] -> [a,..]: rank r gets part r of the reduction.  ESHAPE: N does not divide the first
// axis.
YOKE_API yoke_tensor *yoke_reduce_scatter(yoke_group *, int kind, yoke_tensor *x);
// x [a,..] -> [N a,..]: part r comes from rank r.
YOKE_API yoke_tensor *yoke_all_gather(yoke_group *, yoke_tensor *x);
// The root's x, on all ranks; on the other ranks x gives the shape and dtype.
YOKE_API yoke_tensor *yoke_broadcast(yoke_group *, int root, yoke_tensor *x);
// Broadcast of n tensors, of any dtypes, at once.
YOKE_API int yoke_broadcast_list(yoke_group *, int root, int n, yoke_tensor *const *x,
				 yoke_tensor **to);
// The reduction on the root; zeros on the others.
YOKE_API yoke_tensor *yoke_reduce(yoke_group *, int kind, int root, yoke_tensor *x);
// x [N a,..] -> [N a,..]: part s of the result on rank r is part r of x on rank s.
YOKE_API yoke_tensor *yoke_all_to_all(yoke_group *, yoke_tensor *x);
// Sends x to another rank, which receives it with yoke_recv; sends to a rank arrive in order.  The
// sending evaluation may wait at its end until x is received: put two ranks' sends to each other
// into one evaluation, or take turns.  Returns 0, f32 []: add it to the sender's loss so that the
// gradient of x comes back from the receiver.
YOKE_API yoke_tensor *yoke_send(yoke_group *, int to, yoke_tensor *x);
// Receives a tensor of this dtype and shape from another rank.  behind: YOKE_NONE, or f32 []: when
// its gradient is computed, the gradient of the received tensor is sent back.
YOKE_API yoke_tensor *yoke_recv(yoke_group *, int from, int dtype, int rank, const int64_t *dims,
				yoke_tensor *behind);
// Tensor parallelism, with a loss that is the same on all ranks and parameters sharded over them
// (Shoeybi et al. 2019).  tensor_in returns x, and its gradient is summed over the ranks.
YOKE_API yoke_tensor *yoke_tensor_in(yoke_group *, yoke_tensor *x);
// tensor_out returns the sum of x over the ranks, and its gradient is passed through unchanged.
YOKE_API yoke_tensor *yoke_tensor_out(yoke_group *, yoke_tensor *x);

// ---- samples ----
// Assigns the n samples of an epoch to ranks.  order[0 .. n - 1] is the epoch's permutation, the
// same as that of a single-rank loader with shuffle=1 (yoke-data.h); sample i of rank r of N is
// order[iN + r].  If N does not divide n: PAD wraps around, order[(iN + r) mod n], so that all
// ranks have the same number and some samples occur twice; EXACT uses each sample once, so that
// some ranks have one less; DROP omits the last ones.

enum { YOKE_SAMPLER_PAD, YOKE_SAMPLER_EXACT, YOKE_SAMPLER_DROP };
// The number of this rank's samples.  EINVAL: no such kind, or n < 0.
YOKE_API int64_t yoke_sampler_count(const yoke_group *, int kind, int64_t n);
// Sample i of this rank, as an index 0 .. n - 1.  ERANGE: there is no sample i.
YOKE_API int64_t yoke_sampler(const yoke_group *, int kind, int64_t n, uint64_t seed, int64_t epoch,
			      int64_t i);

#ifdef __cplusplus
}
#endif
#endif
