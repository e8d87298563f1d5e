// SPDX-License-Identifier: Apache-2.0
// Handles: a yoke_tensor * is a number, not an address.  It names a slot in a table shared by all
// contexts, whose memory is never freed, and a generation that tells the slot's tensors apart.  So
// a stale handle is recognized and never refers to another tensor.
#ifndef YK_HANDLE_H
#define YK_HANDLE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "graph/graph.h"

struct yk_storage;

enum yk_kind { YK_VALUE, YK_VARIABLE, YK_HOST_SCALAR, YK_LITERAL };

// Why a slot's last tensor ended.
enum yk_end { YK_END_FREED, YK_END_SCOPE, YK_END_CONTEXT };

// The tensor whose value this is: for an assigned variable, the tensor that it was assigned.
struct yk_origin {
	uint64_t handle;  // of the first tensor with the value, 0: this tensor
	uint32_t version; // its version, if it is a variable
};

enum { YK_LINE = 64 }; // bytes of a cache line
struct yk_tensor { // a slot, and the tensor that its current handle refers to
	// first cache line: members that operands and the end of a scope use
	struct yoke_context *ctx; // owner of the slot; changes under the table's lock
	atomic_uint generation;   // odd while the slot holds a tensor
	uint32_t index;
	// members from here to dims are reset for a new tensor
	yk_id id;                   // its value in the context's graph, or YK_NIL: see yk_take_id
	yk_id leaf;                 // leaf for the storage, valid ..
	uint32_t leaf_epoch;        // .. while the context's epoch is this
	uint32_t root;              // its index among the pending roots, YK_NIL: none
	struct yk_storage *storage; // its bytes; for a variable with an id, the previous version
	struct yk_tensor *next;     // in the list of its scope or of the context
	uint16_t op;
	uint8_t kind, dtype, rank;
	uint8_t end;    // enum yk_end of the slot's last tensor
	bool host;      // variable placed in host memory
	uint32_t path;  // scope it was recorded in, for messages
	// second cache line
	struct yk_tensor *prev;
	struct yk_scope *scope; // owner; NULL: the caller
	const char *name;       // of variables
	double scalar;
	uint32_t outermost; // variable: `outermost` at the last assignment in a scope
	uint32_t chain; // index of its newest leaf; valid in the same epoch as leaf
	uint32_t version;        // variable: number of earlier versions
	struct yk_origin origin; // of variables
	_Alignas(YK_LINE) int64_t dims[YOKE_MAX_RANK];
};

// Does this handle refer to a live tensor?
bool yk_is_alive(const yoke_tensor *);
// The tensor of a handle that is neither NULL nor YOKE_NONE.  If there is none, NULL with an error
// of the public function `call` that describes the handle (EINVAL; ECONTEXT when its context is
// gone).
struct yk_tensor *yk_tensor(const yoke_tensor *, const char *call);
// The same if the tensor belongs to this context, else NULL without an error.
struct yk_tensor *yk_tensor_in(const struct yoke_context *, const yoke_tensor *);
// The handle of a tensor.
yoke_tensor *yk_handle(const struct yk_tensor *);

// A new tensor in a slot of the context, in no list; zero except ctx, kind, op and the ids, which
// are YK_NIL.  NULL: no memory.
struct yk_tensor *yk_slot_take(struct yoke_context *, int kind, int op);
// Ends the tensor: its handle is stale from now on.
void yk_slot_leave(struct yk_tensor *, enum yk_end);
// Returns a freed context's slots to the table; its tensors must be gone already.
void yk_slots_return(struct yoke_context *);

// Queues a handle of a busy or another thread's context, to be freed by the next call on that
// context.
void yk_free_later(yoke_tensor *);
// Frees the queued handles, from inside the context.
void yk_free_deferred(struct yoke_context *);

#endif
