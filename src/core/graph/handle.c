// SPDX-License-Identifier: Apache-2.0
// The table of handles.  A context takes slots in batches, so recording needs no lock; data shared
// with other threads (the owner of a slot, handles to be freed later) is protected by one.

#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "graph/context.h"
#include "graph/handle.h"

enum { // bit fields of a handle above those of handle.h
	OP_BITS = YK_HANDLE_WIDE ? 8 : 0,
	KIND_BITS = YK_HANDLE_WIDE ? 2 : 0,
	OP_AT = YK_INDEX_BITS + YK_GENERATION_BITS,
	KIND_AT = OP_AT + OP_BITS,
	BATCH = 64 // slots that a context takes at a time
};
_Static_assert(YK_OPS < 255, "an op fits, and YOKE_NONE is no handle");

struct yk_tensor *_Atomic yk_slot_chunk[YK_SLOT_CHUNKS];
static struct {
	pthread_mutex_t lock;
	uint32_t used;           // slots ever taken
	struct yk_tensor *spare; // returned by contexts that were freed
} table = { .lock = PTHREAD_MUTEX_INITIALIZER };

yoke_tensor *yk_handle(const struct yk_tensor *t)
{
	uint64_t g = atomic_load_explicit(&t->generation, memory_order_relaxed);
	uint64_t n = t->index | (g & ((1u << YK_GENERATION_BITS) - 1)) << YK_INDEX_BITS;
	if (YK_HANDLE_WIDE)
		n |= (uint64_t)(t->op < YK_OPS ? t->op : YK_OPS) << OP_AT |
		     (uint64_t)t->kind << KIND_AT;
	return (yoke_tensor *)(uintptr_t)n;
}

// ---- stale handles ----

// Describes a handle from its own bits; name: of a variable, or NULL.
static void describe(const yoke_tensor *t, const char *name, char *to, size_t cap)
{
	int op = (int)yk_handle_field(t, OP_AT, OP_BITS);
	if (!YK_HANDLE_WIDE)
		snprintf(to, cap, "a tensor");
	else if (yk_handle_field(t, KIND_AT, KIND_BITS) == YK_VARIABLE)
		snprintf(to, cap, name ? "variable %s" : "a variable", name);
	else if (yk_handle_field(t, KIND_AT, KIND_BITS) != YK_VALUE)
		snprintf(to, cap, "a number on the host");
	else if (op == YK_OPS)
		snprintf(to, cap, "a result of a custom op");
	else if (op == YK_LEAF || op > YK_OPS)
		snprintf(to, cap, "a value from the host");
	else
		snprintf(to, cap, "a result of %s", yk_op_def(op)->name);
}

int yk_fail_handle(const yoke_tensor *t, const char *call)
{
	static const char *const how[] = {
		[YK_END_FREED] = "after it was freed",
		[YK_END_SCOPE] = "after its scope ended; yoke_keep or yoke_lift it before that",
		[YK_END_CONTEXT] = "after its context was freed",
	};
	struct yk_tensor *s = yk_slot_of(t);
	unsigned g = s ? atomic_load(&s->generation) : 0;
	if (!s || !yk_handle_field(t, YK_INDEX_BITS, 1) || !g)
		return yk_fail(YOKE_EINVAL, "%s: %p is no tensor", call, (const void *)t);
	pthread_mutex_lock(&table.lock);
	struct yoke_context *ctx = s->ctx;
	bool last = !(g & 1) && yk_is_generation(t, g - 1); // the slot was not reused
	pthread_mutex_unlock(&table.lock);
	// members of another thread's context may not be read
	bool ours = last && ctx && ctx == yk_current_or_null();
	enum yk_end end = last && !ctx ? YK_END_CONTEXT : ours ? s->end : YK_END_FREED;
	const char *scope = ours ? yk_path_name(&ctx->scopes.paths, s->path) : "";
	char what[120];
	describe(t, ours ? s->name : NULL, what, sizeof what);
	return yk_fail(end == YK_END_CONTEXT ? YOKE_ECONTEXT : YOKE_EINVAL,
		       "%s: %s%s%s%s was used %s", call, what, *scope ? " in scope \"" : "", scope,
		       *scope ? "\"" : "", how[end]);
}

struct yk_tensor *yk_tensor_in(const struct yoke_context *ctx, const yoke_tensor *t)
{
	pthread_mutex_lock(&table.lock);
	struct yk_tensor *s = yk_tensor_or_null(t);
	if (s && s->ctx != ctx)
		s = NULL;
	pthread_mutex_unlock(&table.lock);
	return s;
}

// ---- slots ----

// Call with the lock held.
static struct yk_tensor *new_slot(void)
{
	if (table.used == (uint32_t)YK_SLOT_CHUNKS * YK_SLOT_CHUNK)
		return NULL;
	struct yk_tensor *chunk = atomic_load(&yk_slot_chunk[table.used / YK_SLOT_CHUNK]);
	if (!chunk) {
		if (!(chunk = aligned_alloc(YK_LINE, YK_SLOT_CHUNK * sizeof *chunk)))
			return NULL;
		memset(chunk, 0, YK_SLOT_CHUNK * sizeof *chunk);
		atomic_store_explicit(&yk_slot_chunk[table.used / YK_SLOT_CHUNK], chunk,
				      memory_order_release);
	}
	struct yk_tensor *s = &chunk[table.used % YK_SLOT_CHUNK];
	s->index = table.used++;
	return s;
}

static void take_batch(struct yoke_context *ctx)
{
	pthread_mutex_lock(&table.lock);
	for (int i = 0; i < BATCH; i++) {
		struct yk_tensor *s = table.spare;
		if (s)
			table.spare = s->next;
		else if (!(s = new_slot()))
			break;
		s->ctx = ctx;
		s->next = ctx->handles.free;
		ctx->handles.free = s;
	}
	pthread_mutex_unlock(&table.lock);
}

// Only the thread inside the slot's context writes the generation.
static unsigned next_generation(struct yk_tensor *t)
{
	unsigned g = 1 + atomic_load_explicit(&t->generation, memory_order_relaxed);
	atomic_store_explicit(&t->generation, g, memory_order_relaxed);
	return g;
}

// Initial values of the members between id and dims.
static const struct yk_tensor blank = {
	.id = YK_NIL, .leaf = YK_NIL, .root = YK_NIL, .chain = YK_NIL
};

struct yk_tensor *yk_slot_alloc(struct yoke_context *ctx, int kind, int op)
{
	if (!ctx->handles.free)
		take_batch(ctx);
	struct yk_tensor *t = ctx->handles.free;
	if (!t) {
		yk_fail(YOKE_ENOMEM, "no memory for a handle");
		return NULL;
	}
	ctx->handles.free = t->next;
	memcpy(&t->id, &blank.id,
	       offsetof(struct yk_tensor, dims) - offsetof(struct yk_tensor, id));
	t->kind = (uint8_t)kind;
	t->op = (uint16_t)op;
	next_generation(t);
	ctx->handles.live++;
	return t;
}

void yk_slot_leave(struct yk_tensor *t, enum yk_end end)
{
	struct yoke_context *ctx = t->ctx;
	unsigned g = next_generation(t);
	t->end = (uint8_t)end;
	ctx->handles.live--;
	if (g & ((1u << YK_GENERATION_BITS) - 1)) {
		t->next = ctx->handles.free;
		ctx->handles.free = t;
		return;
	}
	// its generations are used up: the slot is retired, since handles would repeat
	pthread_mutex_lock(&table.lock);
	t->ctx = NULL;
	pthread_mutex_unlock(&table.lock);
}

void yk_slots_return(struct yoke_context *ctx)
{
	pthread_mutex_lock(&table.lock);
	for (struct yk_tensor *t = ctx->handles.free, *next; t; t = next) {
		next = t->next;
		t->ctx = NULL;
		t->next = table.spare;
		table.spare = t;
	}
	free(ctx->handles.deferred);
	pthread_mutex_unlock(&table.lock);
}

// ---- freeing from other threads ----

void yk_free_later(yoke_tensor *t)
{
	pthread_mutex_lock(&table.lock);
	struct yk_tensor *s = yk_tensor_or_null(t);
	struct yoke_context *ctx = s ? s->ctx : NULL;
	int err = 0;
	if (ctx) {
		size_t n = atomic_load(&ctx->handles.deferrals);
		if (!(err = yk_grow(&ctx->handles.deferred, &ctx->handles.deferred_cap, n + 1,
				    sizeof t))) {
			ctx->handles.deferred[n] = t;
			atomic_store(&ctx->handles.deferrals, n + 1);
		}
	}
	pthread_mutex_unlock(&table.lock);
	if (!ctx)
		yk_fail_handle(t, "free");
	if (err)
		yk_fail(err, "free: no memory to remember it until its context is idle");
}

void yk_free_deferred(struct yoke_context *ctx)
{
	pthread_mutex_lock(&table.lock);
	yoke_tensor **list = ctx->handles.deferred;
	size_t n = atomic_load(&ctx->handles.deferrals);
	ctx->handles.deferred = NULL;
	ctx->handles.deferred_cap = 0;
	atomic_store(&ctx->handles.deferrals, 0);
	pthread_mutex_unlock(&table.lock);
	for (size_t i = 0; i < n; i++) {
		struct yk_tensor *t = yk_tensor_in(ctx, list[i]);
		if (t) // its scope may have ended meanwhile
			yk_tensor_free(t, YK_END_FREED);
	}
	free(list);
}
