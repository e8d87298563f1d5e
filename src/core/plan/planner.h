// SPDX-License-Identifier: Apache-2.0
// The scheduler's state of a context: the roots of the evaluation in progress, the cache of plans,
// and scratch memory of launches.
#ifndef YK_PLANNER_H
#define YK_PLANNER_H

#include "plan/plan.h"
#include "plan/replay.h"

enum { YK_BUCKETS = 256 }; // of plans, by hash

#define YK_ANY_RANK 255
struct yk_fallback { // launches on the CPU of one op, by dtype and shape of the result
	uint16_t op;
	uint8_t dtype, rank; // YK_ANY_RANK: several shapes
	int64_t dims[YOKE_MAX_RANK];
	uint64_t count, bytes;
};

struct yk_misaligned { // a product whose sizes are not the multiples that its device prefers
	uint32_t scope;
	uint8_t dtype, to, flags; // dtypes of factors and product; YOKE_TA and the like
	bool padded;
	int64_t matrices[3];       // numbers of matrices in a, b and the product
	int64_t size[3], wants[3]; // m, n, k
};

// The state in which an evaluation leaves a node: not concerned; still pending; computed, and read
// by a node that is still pending.
enum yk_node_outcome { YK_LEFT_NOT, YK_LEFT_LATER, YK_LEFT_READ };

struct yk_plan_cache { // cache.c
	struct yk_plan **bucket; // YK_BUCKETS
	size_t plans;
};

struct yk_plan_misses { // miss.c
	uint32_t vain;  // bit k: the k-th evaluation before this one missed although the cache had
			// a plan of the same operations that was never reused
	bool warned;
	char text[300]; // why the last cache miss happened
};

struct yk_attempt { // findings of earlier attempts at the plan being made (passes.c)
	bool *large;       // by recorded node: lower it in slices
	size_t large_cap;
	bool large_logged; // logged that some of them run on the CPU; kept for later plans
	bool by_value;     // some op cannot read its scalars from memory
	bool unfused;      // a fused kernel did not build, and its form could not be refused
			   // earlier
};

struct yk_launch_scratch { // arrays that launches reuse (launch.c)
	struct yk_block **chunk[YK_STREAMS]; // blocks of arenas
	struct yk_storage **storage;       // of root blocks
	struct yk_storage **root_storage;  // of roots
	struct yk_event **event;           // for other streams
	struct yk_spot *spot;              // locations of blocks
	uint64_t *scalar;                  // bits of scalars
	size_t chunk_cap[YK_STREAMS], storage_cap, root_storage_cap, event_cap, spot_cap,
		scalar_cap;
};

struct yk_fallbacks { // fallback.c
	struct yk_fallback *kind; // in order of first occurrence
	size_t n, cap;
	bool logged;              // the first fallback was logged
};

struct yk_result_check { // check.c
	bool nan;         // results are checked
	bool leaf_logged; // a leaf with NaN was reported
};

struct yk_misalignments { // align.c
	struct yk_misaligned *product; // of all plans, in order of first occurrence
	size_t n, cap;
};

// The scheduler's state of a context.
struct yk_planner {
	struct yoke_context *ctx;
	// the evaluation in progress (roots.c)
	struct yk_marks marks;
	struct yk_key key;
	struct yk_root *root;
	size_t roots, root_cap;
	uint8_t *left; // by node of the context's graph, if some stay pending: enum yk_node_outcome
	size_t left_cap;
	uint64_t evaluations;
	bool plain; // never pad products, whatever the setting is
	// state of one file each
	struct yk_plan_cache cache;
	struct yk_plan_misses miss;
	struct yk_attempt attempt;
	struct yk_launch_scratch launch;
	struct yk_fallbacks fallbacks;
	struct yk_result_check check;
	struct yk_misalignments misaligned;
};

// The context's planner, created if necessary; NULL: no memory.
struct yk_planner *yk_planner_of(struct yoke_context *);
// The plan for the planner's key, cached or new; NULL with the error.
struct yk_plan *yk_plan_for(struct yk_planner *);
struct yk_plan *yk_plan_make(struct yk_planner *);
// Adds a root; tensor NULL: it has no handle.
int yk_root_add(struct yk_planner *, struct yk_tensor *, yk_id);
// Finds which roots may take over the bytes of their variables' old versions (donors.c).
int yk_find_donors(struct yk_planner *);
// Plans and launches the computation of planner->root; *started: the first step was reached.
// brief: if that is brief; otherwise it returns 1 and launches nothing.
int yk_run_roots(struct yk_planner *, bool brief, bool *started);
// Can the marked nodes have a brief plan?
bool yk_may_be_brief(const struct yk_planner *);
// Is a launch of the plan certain to end soon: on the CPU, with little work (brief.c)?
bool yk_plan_is_brief(const struct yk_plan *);
// Describes the first difference between planner->key and an earlier key: "node 812 matmul in step:
// flags: 0 -> 1".
void yk_key_difference(const struct yk_planner *, const struct yk_key *was, char *to, size_t cap);
// Logs, and stores in planner->miss.text, why planner->key has no plan; frequent misses cause one
// warning.
void yk_miss_report(struct yk_planner *);

#endif
