// SPDX-License-Identifier: Apache-2.0
// Handles: a yoke_tensor * is a number, not an address.  It names a slot in a table shared by all
// contexts, whose memory is never freed, and a generation that distinguishes the slot's tensors. So
// a stale handle is recognized and never refers to another tensor.
#ifndef YK_HANDLE_H
#define YK_HANDLE_H

#include "graph/slot.h"

// Bit fields of a handle, from the lowest.  On 32-bit systems it holds neither op nor kind.
enum {
	YK_HANDLE_WIDE = sizeof(uintptr_t) > 4,
	YK_INDEX_BITS = YK_HANDLE_WIDE ? 28 : 20,
	YK_GENERATION_BITS = YK_HANDLE_WIDE ? 26 : 12,
	YK_SLOT_CHUNK = 1024, // slots that are allocated together
	YK_SLOT_CHUNKS = (1 << YK_INDEX_BITS) / YK_SLOT_CHUNK
};
// The slots; chunks are allocated as needed and never freed.
extern struct yk_tensor *_Atomic yk_slot_chunk[YK_SLOT_CHUNKS];

static inline uint64_t yk_handle_field(const yoke_tensor *t, int at, int bits)
{
	return (uint64_t)(uintptr_t)t >> at & (((uint64_t)1 << bits) - 1);
}

static inline bool yk_is_generation(const yoke_tensor *t, unsigned generation)
{
	return yk_handle_field(t, YK_INDEX_BITS, YK_GENERATION_BITS) ==
	       (generation & ((1u << YK_GENERATION_BITS) - 1));
}

// The slot that a handle names; NULL if it is no handle.
static inline struct yk_tensor *yk_slot_of(const yoke_tensor *t)
{
	const uint64_t i = yk_handle_field(t, 0, YK_INDEX_BITS);
	struct yk_tensor *chunk =
		atomic_load_explicit(&yk_slot_chunk[i / YK_SLOT_CHUNK], memory_order_acquire);
	return chunk ? &chunk[i % YK_SLOT_CHUNK] : NULL;
}

// The tensor of a handle, or NULL if it is gone.  Inline, because each call does it for each
// operand.
static inline struct yk_tensor *yk_tensor_or_null(const yoke_tensor *t)
{
	struct yk_tensor *s = yk_slot_of(t);
	const unsigned g = s ? atomic_load_explicit(&s->generation, memory_order_relaxed) : 0;
	return g & 1 && yk_is_generation(t, g) ? s : NULL;
}

// Does this handle refer to a live tensor?
static inline bool yk_is_alive(const yoke_tensor *t)
{
	return yk_tensor_or_null(t);
}

// Records an error of the public function `call` that describes a handle without a tensor: EINVAL;
// ECONTEXT when its context is gone.
int yk_fail_handle(const yoke_tensor *, const char *call);
// The tensor of a handle that is neither NULL nor YOKE_NONE; NULL with that error if there is none.
static inline struct yk_tensor *yk_tensor(const yoke_tensor *t, const char *call)
{
	struct yk_tensor *s = yk_tensor_or_null(t);
	if (!s)
		yk_fail_handle(t, call);
	return s;
}
// The same if the tensor belongs to this context, else NULL without an error.
struct yk_tensor *yk_tensor_in(const struct yoke_context *, const yoke_tensor *);
// The handle of a tensor.
yoke_tensor *yk_handle(const struct yk_tensor *);
static inline struct yk_origin yk_origin_of(const struct yk_tensor *t)
{
	return t->origin.handle ? t->origin :
				  (struct yk_origin){ (uintptr_t)yk_handle(t), t->version };
}

// A new tensor in a slot of the context, in no list; zero except ctx, kind, op and the ids, which
// are YK_NIL.  NULL: no memory.
struct yk_tensor *yk_slot_alloc(struct yoke_context *, int kind, int op);
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
