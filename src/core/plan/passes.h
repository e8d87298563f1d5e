// SPDX-License-Identifier: Apache-2.0
// The passes that make a plan, in the order in which passes.c runs them, and the few functions that
// one pass calls of another.
#ifndef YK_PASSES_H
#define YK_PASSES_H

#include "plan/work.h"

// Builds work.g from the recorded nodes that the roots need.  Each is placed on a device,
// decomposed if the device has no kernel for it, padded if matrix units gain from it (align.c),
// split if a value is too large, and merged with an equal node.
int yk_lower(struct yk_work *);
// Marks the nodes that the roots need as live and builds the lists of readers.
int yk_live(struct yk_work *);
// Duplicates random nodes (setting plan.clones), to test the passes below.
int yk_clones(struct yk_work *);
// Recomputes the activations of work.recompute segments in the backward pass instead of keeping
// them.
int yk_recompute(struct yk_work *);
// Gathers sharded parameters where they are read, and again for the backward pass (ZeRO stage 3).
int yk_regather(struct yk_work *);
// Computes operands of a concatenation directly at their position in its result.
int yk_concat_in_place(struct yk_work *);
// Groups nodes into launches.
int yk_fuse(struct yk_work *);
// Recomputes a value in each launch that reads it, if that saves memory traffic.
int yk_remat(struct yk_work *);
// Copies work.spill values to host memory until they are read.
int yk_spill(struct yk_work *);
// Chooses the order of launches.
int yk_order(struct yk_work *);
// Moves the bits of host scalars into device memory, if the plan can be recorded and replayed.
int yk_replay_prepare(struct yk_work *);
// Turns each group into ops of the plugin ABI: the steps of the plan.
int yk_emit(struct yk_work *);
// Assigns each step the fallback statistics it counts for.
int yk_fallbacks_note(struct yk_work *);
// Determines which steps of other streams each step waits for.
int yk_waits(struct yk_work *);
// Assigns memory: an arena, a root block, or the block of an old version that is no longer needed.
int yk_layout(struct yk_work *);
// Lists the nodes that no step computes, with reasons.
int yk_omitted_nodes(struct yk_work *);

// YOKE_LOG=plan: logs one line per step.
void yk_plan_print(const struct yk_work *, const struct yk_plan *);

// ---- settings and calls between passes ----

enum yk_recompute { YK_RECOMPUTE_NONE, YK_RECOMPUTE_BLOCK, YK_RECOMPUTE_AUTO };
// EINVAL: the setting "recompute" has no such value.
int yk_recompute_setting(enum yk_recompute *);
bool yk_fuse_enabled(void); // the setting "fuse"
extern const char yk_spilled[]; // the cause of copies that yk_spill makes
// Records the nodes of a group as computed by the steps from `first` on (yk_emit).
int yk_parts(struct yk_work *, const struct yk_group *, size_t first);
// For two steps of the ranks queue, which keeps the order within a process group and within one
// direction to one peer: may the second begin before the first is done?
bool yk_may_overtake(const struct yk_step *first, const struct yk_step *second);
// If a value is too large for the device, requests that its recorded node be lowered in slices next
// time; false: it already is.
bool yk_note_large(struct yk_work *, yk_id);
void yk_work_fini(struct yk_work *);

#endif
