// SPDX-License-Identifier: Apache-2.0
// Schedules: what each rank of a group does in a collective, as a list of actions on chunks.
// Nothing here knows tensors, dtypes or transports; those that run a schedule, and the simulator, share it.
//
// Order T of a sum (every algorithm but the ring): for d = 1, 2, 4, .. < N: x_i <- x_i + x_{i+d} for each i
// that 2d divides, if i + d < N; the result is x_0.
#ifndef YK_DIST_SCHEDULE_H
#define YK_DIST_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum yk_collective {
	YK_DO_ALL_REDUCE,
	YK_DO_REDUCE_SCATTER, // rank r gets chunk r
	YK_DO_ALL_GATHER,     // rank r gives chunk r
	YK_DO_BROADCAST,
	YK_DO_REDUCE,         // to the root
	YK_DO_ALL_TO_ALL,     // chunk c goes to rank c
	YK_DO_BARRIER,
	YK_DO_SEND,           // to one peer and ..
	YK_DO_RECV,           // .. from one: no schedules
	YK_DO_GATHER_SHARES,  // as all_gather, of chunks that differ in length
	YK_DO_REDUCE_SHARES,  // as reduce_scatter, alike
	YK_COLLECTIVES
};

enum yk_algorithm {
	YK_BY_TREE,     // binomial
	YK_BY_DOUBLING, // the whole, with partners at distances 1, 2, 4, ..: powers of two
	YK_BY_HALVING,  // Rabenseifner 2004, at distances 1, 2, 4, ..: powers of two
	YK_BY_PAIRWISE, // each chunk to its owner, who adds; and back
	YK_BY_RING,     // not in order T
	YK_BY_2D,       // within nodes of `node` ranks, then between them
	YK_BY_SHARED,   // one memory, where each rank reads all others': no schedule
	YK_ALGORITHMS
};
extern const char *const yk_collective_name[YK_COLLECTIVES];
extern const char *const yk_algorithm_name[YK_ALGORITHMS];

enum yk_action_kind {
	YK_ACT_SEND,     // chunks of `place`, or the slot, to peer
	YK_ACT_RECV,     // .. from peer; order between two ranks is that of their actions
	YK_ACT_RECV_ADD, // place <- source + what comes, or, if `first`, what comes + source
	YK_ACT_ADD,      // place <- source + slot, or, if `first`, slot + source
	YK_ACT_COPY,     // place <- source
	YK_ACT_SUM       // OUT <- sum, in order T, of `terms`: the own one, number `own`, in `place`, the
			 // others in slots from `slot` on
};

// Where chunks are.  IN is never written; OUT may be the same memory.  WORK holds all chunks, as OUT where
// that does, else scratch.  A slot holds the chunks of one action, from its beginning on.
enum yk_action_place { YK_IN, YK_OUT, YK_WORK, YK_SLOT };

struct yk_action {
	uint8_t kind, place, source;
	bool first;
	uint16_t slot, terms, own;
	uint32_t peer;
	uint32_t chunk, step, chunks; // chunk, chunk + step, ..: so many
};

struct yk_schedule {
	struct yk_action *action;
	size_t n, cap;
	uint32_t chunks; // that the elements are cut into: chunk c is [c n / chunks, (c + 1) n / chunks)
	uint32_t slots;  // that actions use ..
	uint32_t room;   // .. each of so many chunks
	bool work;       // WORK is scratch
	uint64_t messages, sent; // by this rank; sent: chunks
};

struct yk_schedule_want {
	uint8_t what, how;
	uint32_t ranks, rank;
	uint32_t root; // of broadcast and reduce
	uint32_t node; // 2d: ranks of a node, the last node may have fewer
};

// Is there such a schedule?
bool yk_schedule_exists(const struct yk_schedule_want *);
// Are its sums in order T?
bool yk_schedule_in_order(const struct yk_schedule_want *);
// Is every sum made at one place, of all its terms at once, so that half precision is rounded once?
bool yk_schedule_rounds_once(const struct yk_schedule_want *);
// Sets `how` to the one that ranks take of so many bytes, whose machines have `node` each, if no setting and no tuning file
// says which: 2d between machines, of few bytes one of few messages, else one of few bytes sent.  once: of those that
// round once.
void yk_schedule_usual(struct yk_schedule_want *, double bytes, bool once);
// That of one rank, where it exists; it is freed by yk_schedule_fini.  ENOMEM without an error of the thread.
int yk_schedule_make(const struct yk_schedule_want *, struct yk_schedule *);
void yk_schedule_fini(struct yk_schedule *);

#endif
