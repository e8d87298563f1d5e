// SPDX-License-Identifier: Apache-2.0
// Ranks: many devices that work on one model, and what they do together.
//
//	static int rank(yoke_group *world, void *arg)
//	{
//		.. a context is current, on a device of this rank's own ..
//		yoke_grad(loss, n, p, g);                          // of this rank's samples
//		yoke_all_reduce_list(world, YOKE_REDUCE_SUM, n, g, g); // of all ranks' samples
//		yoke_optim_step(o, n, g, NULL);
//		return yoke_eval(0, NULL);
//	}
//
//	yoke_setting_set("cpu.devices", "2");
//	yoke_group_run(2, NULL, rank, NULL);
//
// A rank is a thread with one context on one device.  A group is an ordered set of ranks; each of them has a handle
// of its own of it, a yoke_group, which belongs to the context that was current where it was made, and is used by
// the thread that uses that context.  It lives until yoke_group_free, or with its context.
//
// All ranks of a group run one program: they record the same collectives of it, in the same order, with the same
// shapes and dtypes, and evaluate at the same places.  A collective is recorded like any operation.  The next
// evaluation of its context does it, whatever that is asked for (yoke_eval, yoke_read), once and in the order of
// recording; its result is kept then if it is a root, as any other (yoke.h), and is otherwise ERELEASED to later
// evaluations: a rank may not do it again by itself.  Collectives run on a queue of their own, beside the device's
// steps: one begins as soon as what it needs is there, and only who reads its result waits.
//
// Sums are in a fixed order, the same on all ranks and in all runs: x_i <- x_i + x_{i+d} for d = 1, 2, 4, .. and
// each i that 2d divides; f64 is added in f64, f32 in f32, f16 and bf16 in f32 and rounded once, integers wrap.
// All ranks get the same bits.  The settings dist.algorithm=ring and, on GPUs, dist.order=fast add in other orders.
//
// Errors.  Where ranks disagree about a collective, all of them get EMISMATCH, with what two of them do, and
// nothing is moved.  Where a rank fails, ends, leaves the group or does not come within dist.timeout seconds, the
// others get ERANK from what they wait in, with the same text.  Either comes from the call that evaluates, or that
// hears of it next, as a failure of the device would; what was to be computed is lost (EFAILED).  No collective of
// that group succeeds any more.  An error on one rank that concerns no collective (a shape, memory) is that
// rank's alone; others hear of it when its function returns it, or when an evaluation that has begun fails.
#ifndef YOKE_DIST_H
#define YOKE_DIST_H

#include <yoke.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct yoke_group yoke_group;

// ---- groups ----

// Runs fn on n ranks, each a thread with a context on a device of its own, which is current there and freed
// behind fn; the calling thread waits.  devices: comma-separated ("opencl:0,opencl:1"), as many as ranks; NULL: the
// first n of those that are like the best one.  ENODEV: there are fewer (dist.share=1: then they are shared).
// cpu.devices=n makes n devices of the CPU's cores.  fn returns 0 or an error, which breaks all groups of its rank:
// the others get ERANK.  Returns 0, or the error of the rank that failed first, which yoke_error names.
YOKE_API int yoke_group_run(int n, const char *devices, int (*fn)(yoke_group *world, void *arg), void *arg);
// The same with processes: starts n that run argv (argv[0] is looked for as a shell does), with the settings of
// this one, and waits for them.  In each of them yoke_group_world of the first context is a world of all n; what
// passes between them goes through memory that they share, of which nothing is left behind.  A process that ends by
// a signal, or with another exit status than 0, is noticed at once: the others get ERANK, and
// dist.timeout seconds later those that have not ended are killed; so are all when the calling process ends.
// Returns 0, or ERANK with the reason: how the first one ended that did not end well, or what it had failed with.
YOKE_API int yoke_group_spawn(int n, char *const argv[]);
// All ranks, as the calling thread's context has them: those of yoke_group_run or yoke_group_spawn, else itself
// alone.  It need not be freed.  NULL after an error; calls on that group then fail with the code of this error.
YOKE_API yoke_group *yoke_group_world(void);
// By all ranks of a group: a group of those of the same color, in the order of key, then of rank.  A negative
// color: no group, NULL, with which all calls on groups fail with EINVAL.  Waits for all.  ENOMEM: the memory that processes
// share has room for some 20 groups as large as the world in all, or more smaller ones, those that were freed among them.
YOKE_API yoke_group *yoke_group_split(yoke_group *, int color, int key);
YOKE_API int yoke_group_rank(const yoke_group *); // 0 .. size - 1
YOKE_API int yoke_group_size(const yoke_group *);
// How far a rank has come with the others: from any thread, while the group is there.
struct yoke_group_state {
	size_t size;
	uint64_t seq; // collectives of the group that it has come to
	char op[96];  // the last of them, "all_reduce sum f32 [1000]"; "": none so far
	int open;     // 1: that is not over yet, as where others have not come
	double since; // when it came to it or was done with it, in seconds since 1970
	uint64_t sent; // bytes of tensors sent to others of the group; in one memory, those that others read or got of it
	double waited; // seconds that the rank has waited for what ranks do together, of all its groups
};
YOKE_API int yoke_group_state(const yoke_group *, struct yoke_group_state *to);
// Waits until all ranks have called it, and for what was launched of the group before.
YOKE_API int yoke_group_barrier(yoke_group *);
// By all ranks: each gives as many bytes of host memory, and gets those of all, in the order of ranks.  Waits.
YOKE_API int yoke_group_exchange(yoke_group *, const void *mine, size_t bytes, void *all);
// The rank leaves; others that use the group any further get ERANK.  NULL, and the world, are fine.
YOKE_API void yoke_group_free(yoke_group *);

// ---- collectives ----
// kind: YOKE_REDUCE_SUM, YOKE_REDUCE_MAX or YOKE_REDUCE_MIN (NaN where one is) of numbers.  Gradients: the loss is
// the sum of the losses of all ranks, on each of which yoke_grad is called; it has to depend on the results on all
// ranks alike.  Of max and min there is none.

// The sum over all ranks, of the shape of x.
YOKE_API yoke_tensor *yoke_all_reduce(yoke_group *, int kind, yoke_tensor *x);
// The same of n tensors of one dtype at once, in one message a rank and step: to[i], which may be x.  After an
// error all are NULL.
YOKE_API int yoke_all_reduce_list(yoke_group *, int kind, int n, yoke_tensor *const *x, yoke_tensor **to);
// x [N a,..] -> [a,..]: part r of the sum to rank r.  ESHAPE: N does not divide the first axis.
YOKE_API yoke_tensor *yoke_reduce_scatter(yoke_group *, int kind, yoke_tensor *x);
// x [a,..] -> [N a,..]: rank r's is part r.
YOKE_API yoke_tensor *yoke_all_gather(yoke_group *, yoke_tensor *x);
// The root's x, on all ranks; others' give the shape.
YOKE_API yoke_tensor *yoke_broadcast(yoke_group *, int root, yoke_tensor *x);
// The same of n tensors, of any dtypes, at once.
YOKE_API int yoke_broadcast_list(yoke_group *, int root, int n, yoke_tensor *const *x, yoke_tensor **to);
// The sum on the root; zeros on the others.
YOKE_API yoke_tensor *yoke_reduce(yoke_group *, int kind, int root, yoke_tensor *x);
// x [N a,..] -> [N a,..]: part s of rank r is part r of rank s.
YOKE_API yoke_tensor *yoke_all_to_all(yoke_group *, yoke_tensor *x);
// x to another rank, which receives it; sends to a rank arrive in their order.  The evaluation that sends may wait
// at its end until it is received: what two ranks send each other belongs into one, or in turn.  Returns 0, f32 []: where that is
// added to the sender's loss, the gradient of x comes back from the receiver.
YOKE_API yoke_tensor *yoke_send(yoke_group *, int to, yoke_tensor *x);
// What another rank sends, of this dtype and shape.  behind: YOKE_NONE, or f32 []: when its gradient is asked for,
// what was received sends its own back.
YOKE_API yoke_tensor *yoke_recv(yoke_group *, int from, int dtype, int rank, const int64_t *dims,
				yoke_tensor *behind);
// For a loss that all ranks hold, each of them computing with a part of the parameters (Shoeybi et al. 2019): x
// itself, whose gradient is summed over the ranks ..
YOKE_API yoke_tensor *yoke_tensor_in(yoke_group *, yoke_tensor *x);
// .. and the sum of x over the ranks, whose gradient is itself.
YOKE_API yoke_tensor *yoke_tensor_out(yoke_group *, yoke_tensor *x);

// ---- samples ----
// Which samples a rank takes of an epoch of n, order[0 .. n - 1] being the epoch's permutation, which is that of a
// loader of one rank with shuffle=1 (yoke-data.h): number i of rank r of N is order[iN + r].  Where N does not
// divide n: PAD begins anew, order[(iN + r) mod n], so that ranks have as many, some samples twice; EXACT takes each
// sample once, so that some ranks have one less; DROP leaves out the last ones.

enum { YOKE_SAMPLER_PAD, YOKE_SAMPLER_EXACT, YOKE_SAMPLER_DROP };
// How many are this rank's.  EINVAL: no such kind, or n < 0.
YOKE_API int64_t yoke_sampler_count(const yoke_group *, int kind, int64_t n);
// Number i of them, 0 .. n - 1.  ERANGE: there is none.
YOKE_API int64_t yoke_sampler(const yoke_group *, int kind, int64_t n, uint64_t seed, int64_t epoch, int64_t i);

#ifdef __cplusplus
}
#endif
#endif
