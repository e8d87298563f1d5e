// SPDX-License-Identifier: Apache-2.0
// Schedules: the work of each rank of a group in a collective, as a list of actions on chunks. They
// are independent of tensors, dtypes and transports; the transports and the simulator both execute
// them.
//
// Order T of a sum of N terms (used by every algorithm but the ring): for d = 1, 2, 4, ... < N:
//     x_i <- x_i + x_{i+d}  for each i that is a multiple of 2d, if i + d < N
// The result is x_0.
#ifndef YK_DIST_SCHEDULE_H
#define YK_DIST_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum yk_collective {
	YK_DO_ALL_REDUCE,
	YK_DO_REDUCE_SCATTER, // rank r receives chunk r
	YK_DO_ALL_GATHER,     // rank r contributes chunk r
	YK_DO_BROADCAST,
	YK_DO_REDUCE,         // to the root
	YK_DO_ALL_TO_ALL,     // chunk c goes to rank c
	YK_DO_BARRIER,
	YK_DO_SEND,           // point-to-point: no schedule
	YK_DO_RECV,           // point-to-point: no schedule
	YK_DO_GATHER_SHARDS,  // as all_gather, with chunks of different lengths
	YK_DO_REDUCE_SHARDS,  // as reduce_scatter, with chunks of different lengths
	YK_COLLECTIVES
};

enum yk_algorithm {
	YK_BY_TREE,     // binomial tree
	YK_BY_DOUBLING, // recursive doubling of the whole array; powers of two only
	YK_BY_HALVING,  // recursive halving and doubling (Rabenseifner 2004); powers of two only
	YK_BY_PAIRWISE, // each chunk goes to its owner, which adds and sends the sum back
	YK_BY_RING,     // sums are not in order T
	YK_BY_2D,       // within machines of `node` ranks, then between them
	YK_BY_SHARED,   // shared memory: each rank reads all others; no schedule
	YK_ALGORITHMS
};
extern const char *const yk_collective_name[YK_COLLECTIVES];
extern const char *const yk_algorithm_name[YK_ALGORITHMS];

enum yk_action_kind {
	YK_ACT_SEND,     // send chunks of `place` (or the slot) to peer
	YK_ACT_RECV,     // receive from peer; messages between two ranks match in order
	YK_ACT_RECV_ADD, // place <- source + received, or received + source if `first`
	YK_ACT_ADD,      // place <- source + slot, or slot + source if `first`
	YK_ACT_COPY,     // place <- source
	// OUT <- sum of `terms` in order T: this rank's term (index `own`) is in `place`, the
	// others are in consecutive slots from `slot`
	YK_ACT_SUM
};

// The buffer that holds chunks. IN is never written; OUT may be the same memory. WORK holds all
// chunks: in OUT if OUT is large enough, otherwise in scratch memory. A slot holds the chunks of
// one action, packed from its start.
enum yk_action_buffer { YK_IN, YK_OUT, YK_WORK, YK_SLOT };

struct yk_action {
	uint8_t kind, place, source;
	bool first;
	uint16_t slot, terms, own;
	uint32_t peer;
	uint32_t chunk, step, chunks; // chunk, chunk + step, ...: this many
};

// Do two actions on the same buffer share a chunk?
static inline bool yk_actions_meet(const struct yk_action *a, const struct yk_action *b)
{
	for (uint32_t k = 0; k < a->chunks; k++) {
		const uint32_t chunk = a->chunk + k * a->step;
		if (chunk >= b->chunk && (chunk - b->chunk) % b->step == 0 &&
		    (chunk - b->chunk) / b->step < b->chunks)
			return true;
	}
	return false;
}

struct yk_schedule {
	struct yk_action *action;
	size_t n, cap;
	// number of chunks; chunk c has elements [c n / chunks, (c + 1) n / chunks)
	uint32_t chunks;
	uint32_t slots;  // number of slots used
	uint32_t room;   // chunks per slot
	bool work;       // WORK needs scratch memory
	uint64_t messages, sent; // by this rank; sent: in chunks
};

struct yk_schedule_request {
	uint8_t what, how;
	uint32_t ranks, rank;
	uint32_t root; // of broadcast and reduce
	uint32_t node; // 2d: ranks per machine; the last machine may have fewer
};

// Whether such a schedule exists.
bool yk_schedule_exists(const struct yk_schedule_request *);
// Whether its sums are in order T.
bool yk_schedule_in_order(const struct yk_schedule_request *);
// Whether each sum is computed in one place from all its terms, so that half precision is rounded
// only once.
bool yk_schedule_rounds_once(const struct yk_schedule_request *);
// Sets `how` to the default algorithm for this size, with `node` ranks per machine, unless a
// setting or tuning file chooses one: 2d between machines, few messages for small sizes, few bytes
// sent for large ones. once: only algorithms that round once.
void yk_schedule_usual(struct yk_schedule_request *, double bytes, bool once);
// Generates one rank's schedule, which must exist; free it with yk_schedule_fini. Returns ENOMEM
// without setting the error.
int yk_schedule_make(const struct yk_schedule_request *, struct yk_schedule *);
void yk_schedule_fini(struct yk_schedule *);

#endif
