// SPDX-License-Identifier: Apache-2.0
// Handles: a yoke_tensor * is a number, not an address.  It names a slot in a table shared by all
// contexts, whose memory is never freed, and a generation that distinguishes the slot's tensors. So
// a stale handle is recognized and never refers to another tensor.
#ifndef YK_HANDLE_H
#define YK_HANDLE_H

#include "graph/slot.h"

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
static inline struct yk_origin yk_origin_of(const struct yk_tensor *t)
{
	return t->origin.handle ? t->origin : (struct yk_origin){ (uintptr_t)yk_handle(t), t->version };
}

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
