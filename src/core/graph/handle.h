// SPDX-License-Identifier: Apache-2.0
// Handles: what a yoke_tensor * is.  It is not an address but a number: a slot of one table for all
// contexts, whose memory is never given back, and a generation that says which of the slot's tensors
// is meant.  So a handle of a tensor that is gone is recognised, and never means another tensor.
#ifndef YK_HANDLE_H
#define YK_HANDLE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "graph/graph.h"

struct yk_storage;

enum yk_kind { YK_VALUE, YK_VARIABLE, YK_HOST_SCALAR, YK_LITERAL };

// How a slot's last tensor ended.
enum yk_end { YK_END_FREED, YK_END_SCOPE, YK_END_CONTEXT };

// Which value a tensor means: its own, or that of the tensor which a variable was assigned.
struct yk_origin {
	uint64_t handle;  // of the first tensor that meant the value, 0: the tensor itself
	uint32_t version; // of that, where it is a variable
};

enum { YK_LINE = 64 }; // bytes of a line of a cache
struct yk_tensor { // a slot, and what the handle it is for means
	// the first line: what operands and the end of a scope ask for
	struct yoke_context *ctx; // that has the slot; changes under the table's lock
	atomic_uint generation;   // odd while there is a tensor
	uint32_t index;
	// from here on set anew for a new tensor, up to dims
	yk_id id;                   // its value in the context's graph, or YK_NIL: see yk_take_id
	yk_id leaf;                 // leaf standing for storage ..
	uint32_t leaf_epoch;        // .. in this graph
	uint32_t root;              // its place among the pending roots, YK_NIL: none
	struct yk_storage *storage; // its bytes; of a variable that has an id, the version before
	struct yk_tensor *next;     // in its scope's list, or the context's
	uint16_t op;
	uint8_t kind, dtype, rank;
	uint8_t end;    // how the tensor ended
	bool host;      // of a variable: it is placed in the host's memory
	uint32_t path;  // scope it was recorded in, for messages
	// the second
	struct yk_tensor *prev;
	struct yk_scope *scope; // that owns it; NULL: the caller
	const char *name;       // of variables
	double scalar;
	uint32_t outermost; // of a variable: the context's when it was last assigned in a scope
	uint32_t chain; // the newest of its leaves, by index; counts as leaf does
	uint32_t version;        // of a variable: how many versions it had before
	struct yk_origin origin; // of variables
	_Alignas(YK_LINE) int64_t dims[YOKE_MAX_RANK];
};

// Is there a tensor of this handle?
bool yk_is_alive(const yoke_tensor *);
// The tensor of a handle that is neither NULL nor YOKE_NONE; NULL, with an error of the public function
// `call` that says what the handle was (EINVAL; ECONTEXT when its context is gone), when there is none.
struct yk_tensor *yk_tensor(const yoke_tensor *, const char *call);
// The same if it is the context's, else NULL without an error.
struct yk_tensor *yk_tensor_in(const struct yoke_context *, const yoke_tensor *);
// The handle of a tensor.
yoke_tensor *yk_handle(const struct yk_tensor *);

// A new tensor in a slot of the context's, zeroed but for ctx, kind, op and what is YK_NIL; in no list.  NULL: no memory.
struct yk_tensor *yk_slot_take(struct yoke_context *, int kind, int op);
// Its handle means nothing from now on.
void yk_slot_leave(struct yk_tensor *, enum yk_end);
// All slots of a context that goes; those of the lists have tensors.
void yk_slots_return(struct yoke_context *);

// Leaves a handle of another thread's context, or of one that is busy, to be freed by the next call
// on that context.
void yk_free_later(yoke_tensor *);
// Does so, from inside the context.
void yk_free_deferred(struct yoke_context *);

#endif
