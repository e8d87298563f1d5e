// SPDX-License-Identifier: Apache-2.0
// Changes of the plan's graph after lowering.  They keep the facts and the lists of readers in
// struct yk_work up to date, and can be undone.
#ifndef YK_EDIT_H
#define YK_EDIT_H

#include "plan/work.h"

// Builds the lists of readers of each base value, for operands of nodes that compute; edits keep
// them up to date.
int yk_uses_list(struct yk_work *);
// Begins an edit: yk_edit_undo can revert all changes since, until the next edit begins.
void yk_edit_begin(struct yk_work *);
void yk_edit_undo(struct yk_work *);
// The nodes in creation order, clones after their originals; the caller frees the array.  NULL: no
// memory.
uint32_t *yk_in_time(const struct yk_work *);
// Replaces an operand, given by its number among the graph's arguments, by another value.
int yk_edit_replace(struct yk_work *, uint32_t arg, yk_id v);
// Clones a node with these operands, at the same position in time.  Random numbers are equal,
// because their seeds are operands.
int yk_edit_clone(struct yk_work *, uint32_t node, const yk_id *in, yk_id *out);
// Adds a node of one result, at the position in time of node `like`.
int yk_edit_add(struct yk_work *, const struct yk_call *, const struct yk_value *, int stream,
		const char *cause, uint32_t like, yk_id *out);
// Marks a node as dead.
void yk_edit_drop(struct yk_work *, uint32_t node);
// Drops all nodes without readers.
int yk_edit_sweep(struct yk_work *);
// Applies to another base the view through which v sees its own base; gives `base` if v is a base.
int yk_edit_view(struct yk_work *, yk_id v, yk_id base, yk_id *out);

#endif
