// SPDX-License-Identifier: Apache-2.0
// Leaves: variables, values from the host, scalars, literals and random numbers; and the conversion
// of handles to operands.

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/hash.h"
#include "graph/context.h"
#include "graph/handle.h"

static int check_shape(const char *what, int dtype, int rank, const int64_t *dims,
		       uint64_t *bytes)
{
	uint64_t n = yoke_dtype_size(dtype);
	if (!n)
		return yk_fail(YOKE_EDTYPE, "%s: no dtype has the number %d", what,
			       dtype);
	if (rank < 0 || rank > YOKE_MAX_RANK)
		return yk_fail(YOKE_ESHAPE, "%s: rank %d; 0 to %d are possible", what,
			       rank, YOKE_MAX_RANK);
	if (rank && !dims)
		return yk_fail(YOKE_EINVAL, "%s: dims is NULL", what);
	bool empty = false;
	for (int i = 0; i < rank; i++) {
		empty |= dims[i] == 0;
		if (dims[i] < 0 ||
		    (dims[i] && __builtin_mul_overflow(n, (uint64_t)dims[i], &n)) || n > INT64_MAX)
			return yk_fail(YOKE_ESHAPE,
				       "%s: dim %d is %lld: negative, or too many bytes",
				       what, i, (long long)dims[i]);
	}
	*bytes = empty ? 0 : n;
	return 0;
}

static void set_shape(struct yk_tensor *t, int dtype, int rank, const int64_t *dims)
{
	t->dtype = (uint8_t)dtype;
	t->rank = (uint8_t)rank;
	if (rank)
		memcpy(t->dims, dims, (size_t)rank * sizeof *dims);
}

// ---- copies to the device ----

// On unified memory, from this size in bytes a second copy costs more than waiting for the first.
enum { DIRECT = 4 << 20 };

// Pinned memory is scarce: larger uploads are split into chunks of this many bytes.
enum { CHUNK = 32 << 20 };

struct bytes { // a location in a segment
	void *segment;
	uint64_t offset;
};

static struct bytes bytes_of(const struct yk_storage *s, uint64_t at)
{
	return (struct bytes){ s->buffer->block->segment, yk_storage_at(s) + at };
}

static int put(struct yk_queue *q, struct bytes to, const void *from, uint64_t bytes)
{
	return q->device->ops->put(q->handle, to.segment, to.offset, from, bytes);
}

// Copies a chunk into pinned memory and uploads it from there, without waiting.
static int upload_chunk(struct yoke_context *ctx, struct yk_queue *q, struct bytes to,
			const void *from, uint64_t bytes, struct yk_event **done)
{
	struct yk_staging *s = &ctx->uploads.staging[ctx->uploads.staged % 4];
	int err = 0;
	if (yk_event_sync(s->event) < 0 && !yk_event_done(s->event))
		return yk_event_wait(s->event); // the earlier copy from it may still be running
	yk_upload_poll(ctx);
	ctx->uploads.staged++;
	yk_event_unref(s->event);
	s->event = NULL;
	if (!s->block || s->block->bytes < bytes) {
		yk_pool_free(s->block, ctx->queues.up, NULL);
		s->block = NULL;
		err = yk_pool_alloc(ctx->device->pinned, bytes, ctx->queues.up, &s->block);
	}
	if (err)
		return err;
	memcpy(s->block->host, from, bytes);
	err = put(q, to, s->block->host, bytes);
	if (!err)
		err = yk_event_mark(q, &s->event);
	s->marks = ctx->queues.steps->marks;
	yk_event_unref(*done);
	*done = err ? NULL : yk_event_ref(s->event);
	return err;
}

static int upload_staged(struct yoke_context *ctx, struct yk_queue *q, const struct yk_storage *to,
			 const void *from, uint64_t bytes, struct yk_event **done)
{
	int err = 0;
	for (uint64_t at = 0; at < bytes && !err; at += CHUNK)
		err = upload_chunk(ctx, q, bytes_of(to, at), (const char *)from + at,
				   bytes - at < CHUNK ? bytes - at : CHUNK, done);
	return err;
}

// Uploads from the caller's memory and waits: one copy instead of two.
static int upload_direct(struct yoke_context *ctx, const struct yk_storage *to, const void *from,
			 uint64_t bytes)
{
	struct yk_queue_failure f;
	int err = put(ctx->queues.up, bytes_of(to, 0), from, bytes);
	int waited = yk_queue_drain(ctx->queues.up); // even a failed copy is over then
	if (!err && waited < 0 && yk_queue_take(ctx->queues.up, &f))
		err = yk_fail(f.code, "%s", f.why);
	return err ? err : waited;
}

// The caller may reuse the memory on return; *done is the copy's event, or NULL if it is complete.
static int upload(struct yoke_context *ctx, struct yk_queue *q, const struct yk_storage *to,
		  const void *from, uint64_t bytes, struct yk_event **done)
{
	*done = NULL;
	if (!bytes)
		return 0;
	ctx->stats.bytes_up += bytes;
	if (q->device == ctx->cpu) // complete on return
		return put(q, bytes_of(to, 0), from, bytes);
	if (bytes >= DIRECT && ctx->device->info.flags & YOKE_DEVICE_UNIFIED && q == ctx->queues.up)
		return upload_direct(ctx, to, from, bytes);
	return upload_staged(ctx, q, to, from, bytes, done);
}

int yk_upload_to(struct yoke_context *ctx, void *segment, uint64_t offset, const void *from,
		 uint64_t bytes)
{
	struct yk_event *done = NULL;
	int err = upload_chunk(ctx, ctx->queues.steps, (struct bytes){ segment, offset }, from,
			       bytes, &done);
	yk_event_unref(done);
	ctx->stats.bytes_up += bytes;
	return err;
}

// ---- variables and values from the host ----

static int write_storage(struct yk_storage *s, struct yk_queue *q, const void *data)
{
	struct yoke_context *ctx = s->ctx;
	if (!data && !s->bytes)
		return 0;
	if (!data)
		return yk_queue_fill(q, s->buffer->block->segment, yk_storage_at(s), s->bytes, "",
				     1);
	struct yk_event *done;
	yk_work_begin(ctx, q);
	int err = upload(ctx, q, s, data, s->bytes, &done);
	ctx->uploads.moved = s;
	yk_work_end(ctx, q, YK_WORK_UP, NULL, s->bytes);
	ctx->uploads.moved = NULL;
	ctx->counts.copies_up++;
	if (err && q != ctx->queues.steps)
		yk_queue_drain(q); // it may still write memory that is about to be reused
	if (done && !err && q != ctx->queues.steps) {
		s->up = done;
		s->written[YK_STREAM_UP] = done->serial;
	} else {
		yk_event_unref(done);
	}
	return err;
}

// A storage filled with zeros (data NULL), or with data.
static int make_storage(struct yoke_context *ctx, uint64_t bytes, bool host, const void *data,
			struct yk_storage **to)
{
	struct yk_queue *q = data ? ctx->queues.up : ctx->queues.steps;
	struct yk_storage *s = NULL;
	char why[400];
	yk_settle(ctx); // earlier failures do not concern this value
	bool had = yoke_error_code() != 0;
	int err = yk_storage_new(ctx, bytes, host, q, &s);
	if (!err && s->buffer->host)
		q = ctx->queues.cpu;
	if (!err && (err = write_storage(s, q, data)) == YOKE_ENOMEM &&
	    yk_pool_make_room(ctx->device)) {
		yk_backend_detail(had, err, why, sizeof why);
		err = write_storage(s, q, data);
	}
	if (err) {
		yk_backend_detail(had, err, why, sizeof why);
		yk_storage_unref(s);
		if (yk_settle(ctx))
			ctx->failure.reported = true; // by the error of this call
		return yk_fail(err, "%llu bytes could not be copied to %s: %s",
			       (unsigned long long)bytes, ctx->device->id, why);
	}
	if (q == ctx->queues.steps)
		s->written[YK_STREAM_DEVICE] = q->marks + 1;
	*to = s;
	return 0;
}

struct lent { // memory of the caller
	void *data;
	void (*free_fn)(void *);
	void *arg;
	bool taken; // its storage calls free_fn
};

// A storage on the memory itself, or a copy.
static int take_storage(struct yoke_context *ctx, int dtype, uint64_t bytes, struct lent *l,
			struct yk_storage **to)
{
	l->taken = !yk_wrap(ctx, dtype, l->data, bytes, l->free_fn, l->arg, to);
	return l->taken ? 0 : make_storage(ctx, bytes, false, l->data, to);
}

static yoke_tensor *materialised(int kind, const char *what, const char *name, int dtype,
				 int rank, const int64_t *dims, const void *data,
				 struct lent *lent)
{
	struct yoke_context *ctx = yk_current();
	uint64_t bytes = 0;
	if (!ctx || yk_enter(ctx) < 0)
		return NULL;
	struct yk_tensor *t = NULL;
	yoke_tensor *handle = NULL;
	struct yk_storage *s = NULL;
	if (!check_shape(what, dtype, rank, dims, &bytes) &&
	    !(lent ? take_storage(ctx, dtype, bytes, lent, &s) :
		     make_storage(ctx, bytes, false, data, &s))) {
		struct yk_scope *scope = ctx->scopes.innermost;
		if (kind == YK_VARIABLE) // the caller owns it, whatever scope is open
			ctx->scopes.innermost = NULL;
		t = yk_tensor_new(ctx, kind, YK_LEAF);
		ctx->scopes.innermost = scope;
		if (t) {
			t->storage = s;
			t->name = name ? yk_arena_strdup(&ctx->handles.names, name) : NULL;
			set_shape(t, dtype, rank, dims);
			handle = yk_handle(t);
		} else {
			yk_storage_unref(s);
		}
	}
	yk_leave(ctx);
	return handle;
}

yoke_tensor *yoke_variable(const char *name, int dtype, int rank, const int64_t *dims)
{
	return materialised(YK_VARIABLE, "variable", name, dtype, rank, dims, NULL, NULL);
}

yoke_tensor *yoke_from(int dtype, int rank, const int64_t *dims, const void *data)
{
	if (!data) {
		yk_fail(YOKE_EINVAL, "from: no data");
		return NULL;
	}
	return materialised(YK_VALUE, "from", NULL, dtype, rank, dims, data, NULL);
}

yoke_tensor *yk_value_from(int dtype, int rank, const int64_t *dims, const void *data)
{
	return materialised(YK_VALUE, "to", NULL, dtype, rank, dims, data, NULL);
}

yoke_tensor *yoke_wrap(int dtype, int rank, const int64_t *dims, void *data,
		       void (*free_fn)(void *), void *arg)
{
	struct lent lent = { .data = data, .free_fn = free_fn, .arg = arg };
	yoke_tensor *t = NULL;
	if (data)
		t = materialised(YK_VALUE, "wrap", NULL, dtype, rank, dims, NULL, &lent);
	else
		yk_fail(YOKE_EINVAL, "wrap: no data");
	if (!lent.taken && free_fn) // copied, or never used
		free_fn(arg);
	return t;
}

static const char *name_of(const struct yk_tensor *t)
{
	return t->name ? t->name : "unnamed";
}

// The tensor, if it has this kind and its context could be entered; else NULL with *err.
static struct yk_tensor *enter_kind(const yoke_tensor *handle, int kind, const char *what, int *err)
{
	static const char *const word[] = { "value", "variable", "scalar", "literal" };
	struct yk_tensor *t = NULL;
	if (!handle) {
		*err = yoke_error_code() ? yoke_error_code() :
					   yk_fail(YOKE_EINVAL, "%s: NULL", what);
		return NULL;
	}
	if (handle != YOKE_NONE && !(t = yk_enter_of(handle, what))) {
		*err = yk_error_last();
		return NULL;
	}
	if (t && t->kind == kind)
		return t;
	if (t)
		yk_leave(t->ctx);
	*err = yk_fail(YOKE_EINVAL, "%s: takes a %s", what, word[kind]);
	return NULL;
}

void yk_materialised(struct yk_tensor *t, struct yk_storage *s)
{
	yk_version_end(t);
	if (t->root != YK_NIL)
		t->ctx->pending.root[t->root] = NULL;
	t->root = t->leaf = YK_NIL;
	yk_take_id(t, YK_NIL);
	if (yk_is_packed(t))
		yk_pack_keep(t, false, &s);
	yk_version_set(t, s);
}

int yoke_put(yoke_tensor *handle, const void *data, size_t bytes)
{
	int err = 0;
	struct yk_tensor *t = enter_kind(handle, YK_VARIABLE, "put", &err);
	if (!t)
		return err;
	struct yk_storage *s;
	if (bytes != yk_bytes_of(t) || !data)
		err = yk_fail(YOKE_ESHAPE, "put: variable %s has %zu bytes, got %zu%s",
			      name_of(t), yk_bytes_of(t), bytes, data ? "" : " at NULL");
	else if (!(err = make_storage(t->ctx, bytes, t->host, data, &s)))
		yk_materialised(t, s);
	yk_leave(t->ctx);
	return err;
}

// Copies through host memory: a variable is placed once, not at every step.
int yoke_place(yoke_tensor *handle, int where)
{
	int err = 0;
	struct yk_tensor *t = enter_kind(handle, YK_VARIABLE, "place", &err);
	if (!t)
		return err;
	const size_t bytes = yk_bytes_of(t);
	void *data = NULL;
	if (where != YOKE_ON_DEVICE && where != YOKE_ON_HOST)
		err = yk_fail(YOKE_EINVAL,
			      "place: variable %s: %d is neither YOKE_ON_DEVICE nor YOKE_ON_HOST",
			      name_of(t), where);
	else if (yk_is_packed(t))
		err = yk_fail(YOKE_EINVAL,
			      "place: variable %s is part of a pack, and packs cannot be moved",
			      name_of(t));
	else if (!(data = malloc(bytes + !bytes)))
		err = yk_fail(YOKE_ENOMEM, "place: no memory for %zu bytes", bytes);
	const bool host = where == YOKE_ON_HOST, moves = !err && host != t->host;
	yk_leave(t->ctx);
	if (moves && !(err = yoke_read(handle, data, bytes))) {
		t->host = host;
		if ((err = yoke_put(handle, data, bytes)))
			t->host = !host;
	}
	free(data);
	return err;
}

static int assign(struct yk_tensor *t, const yoke_tensor *value)
{
	struct yoke_context *ctx = t->ctx;
	char a[160], b[160];
	ctx->graph.call = "assign";
	yk_id id = yk_operand(ctx, value, t->dtype);
	struct yk_value like = { .dtype = t->dtype, .rank = t->rank };
	memcpy(like.dims, t->dims, sizeof like.dims);
	if (id == YK_BAD)
		return yk_error_last();
	if (id == YK_NIL)
		return yk_fail(YOKE_EINVAL, "assign: variable %s: no value", name_of(t));
	if (ctx->graph.value[id].dtype != t->dtype)
		return yk_fail(YOKE_EDTYPE,
			       "assign: variable %s is %s, the value %s; cast it",
			       name_of(t), yk_describe(&like, a),
			       yk_describe(&ctx->graph.value[id], b));
	if (!yk_same_shape(&ctx->graph.value[id], &like))
		return yk_fail(YOKE_ESHAPE, "assign: variable %s is %s, the value %s",
			       name_of(t), yk_describe(&like, a),
			       yk_describe(&ctx->graph.value[id], b));
	return yk_assign_of(t, id, yk_tensor_in(ctx, value));
}

int yoke_assign(yoke_tensor *variable, yoke_tensor *value)
{
	int err = 0;
	struct yk_tensor *t = enter_kind(variable, YK_VARIABLE, "assign", &err);
	if (!t)
		return err;
	err = assign(t, value);
	yk_leave(t->ctx);
	return err;
}

// ---- numbers ----

static yoke_tensor *number(int kind, double value)
{
	struct yoke_context *ctx = yk_current();
	if (!ctx || yk_enter(ctx) < 0)
		return NULL;
	struct yk_tensor *t = yk_tensor_new(ctx, kind, YK_LEAF);
	if (t)
		t->scalar = value;
	yk_leave(ctx);
	return t ? yk_handle(t) : NULL;
}

yoke_tensor *yoke_scalar(double value)
{
	return number(YK_HOST_SCALAR, value);
}

yoke_tensor *yoke_const(double value)
{
	return number(YK_LITERAL, value);
}

int yoke_scalar_set(yoke_tensor *scalar, double value)
{
	int err = 0;
	struct yk_tensor *t = enter_kind(scalar, YK_HOST_SCALAR, "scalar_set", &err);
	if (!t)
		return err;
	t->ctx->mode.stale |= t->leaf_epoch == t->ctx->history.epoch && t->scalar != value;
	t->scalar = value;
	yk_leave(t->ctx);
	return 0;
}

// ---- handles as operands ----

static yk_id leaf_new(struct yoke_context *ctx, int op, const struct yk_leaf *leaf,
		      const struct yk_value *value)
{
	if (yk_grow(&ctx->leaves.at, &ctx->leaves.cap, ctx->leaves.n + 1, sizeof *ctx->leaves.at) <
	    0) {
		yk_fail(YOKE_ENOMEM, "no memory for a leaf");
		return YK_BAD;
	}
	struct yk_call c = { .op = (uint16_t)op,
			     .nattr = 1,
			     .attr = &(union yoke_attr){ .i = (int64_t)ctx->leaves.n } };
	yk_id id;
	if (yk_append_as(&ctx->graph, &c, 1, value, &id) < 0)
		return YK_BAD;
	ctx->leaves.at[ctx->leaves.n] = *leaf;
	ctx->leaves.at[ctx->leaves.n].former = YK_NIL;
	ctx->leaves.at[ctx->leaves.n++].id = id;
	return id;
}

// A new leaf, linked to the tensor's other leaves in this graph.
static yk_id leaf_of(struct yk_tensor *t, int op, const struct yk_leaf *leaf,
		     const struct yk_value *value)
{
	struct yoke_context *ctx = t->ctx;
	yk_id id = leaf_new(ctx, op, leaf, value);
	if (id == YK_BAD)
		return id;
	uint32_t at = (uint32_t)(ctx->leaves.n - 1);
	if (t->leaf_epoch == ctx->history.epoch)
		ctx->leaves.at[at].former = t->chain;
	t->chain = at;
	t->leaf_epoch = ctx->history.epoch;
	return id;
}

// The leaf of a scalar in this dtype, one per evaluation.
static yk_id scalar_leaf(struct yk_tensor *t, int dtype)
{
	struct yoke_context *ctx = t->ctx;
	if (t->leaf_epoch == ctx->history.epoch)
		for (uint32_t i = t->chain; i != YK_NIL; i = ctx->leaves.at[i].former)
			if (ctx->leaves.at[i].dtype == dtype && !ctx->leaves.at[i].frozen)
				return ctx->leaves.at[i].id;
	return leaf_of(t, YK_SCALAR,
		       &(struct yk_leaf){ .kind = YK_LEAF_SCALAR,
					  .dtype = (uint8_t)dtype,
					  .scalar = t },
		       &(struct yk_value){ .dtype = (uint8_t)dtype });
}

static yk_id storage_leaf(struct yk_tensor *t)
{
	struct yk_value v = { .dtype = t->dtype, .rank = t->rank };
	memcpy(v.dims, t->dims, sizeof v.dims);
	yk_id id = leaf_of(t, YK_LEAF,
			   &(struct yk_leaf){ .kind = YK_LEAF_STORAGE,
					      .dtype = t->dtype,
					      .storage = t->storage,
					      .variable = t->kind == YK_VARIABLE ? t : NULL,
					      .handle = yk_handle(t),
					      .op = t->op,
					      .path = t->path },
			   &v);
	if (id == YK_BAD)
		return id;
	t->storage->refs++;
	t->storage->leaves++;
	if (t->kind == YK_VALUE) {
		t->ctx->leaves.at[t->ctx->leaves.n - 1].moved = yk_moved_ref(t->moved);
		t->ctx->leaves.copies += t->moved != NULL;
	}
	t->leaf = id;
	return id;
}

yk_id yk_value_of_any(struct yoke_context *ctx, struct yk_tensor *t, int dtype)
{
	if (t->ctx != ctx) {
		yk_op_fail(
			&ctx->graph, YK_LEAF, YOKE_ECONTEXT,
			"an operand on %s belongs to another context than one on %s; copy it with "
			"yoke_to(tensor, \"%s\")",
			t->ctx->device->id, ctx->device->id, ctx->device->id);
		return YK_BAD;
	}
	if (t->kind == YK_LITERAL && yk_check_literal(&ctx->graph, dtype, t->scalar) < 0)
		return YK_BAD;
	if (t->kind == YK_LITERAL)
		return yk_lit(&ctx->graph, dtype, t->scalar);
	if (t->kind == YK_HOST_SCALAR)
		return scalar_leaf(t, dtype);
	if (!yk_is_pending(t) && t->storage->failed) {
		yk_failure_of(t);
		return YK_BAD;
	}
	if (t->id != YK_NIL)
		return t->id;
	if (t->leaf != YK_NIL && t->leaf_epoch == ctx->history.epoch)
		return t->leaf;
	return storage_leaf(t);
}

yk_id yk_operand(struct yoke_context *ctx, const yoke_tensor *handle, int dtype)
{
	if (!handle) // caused by an earlier error, whose code is kept
		yk_op_fail(&ctx->graph, YK_LEAF,
			   yoke_error_code() ? yoke_error_code() : YOKE_EINVAL,
			   "an operand is NULL; optional ones are YOKE_NONE");
	if (!handle)
		return YK_BAD;
	if (handle == YOKE_NONE)
		return YK_NIL;
	struct yk_tensor *t = yk_tensor(handle, ctx->graph.call);
	return t ? yk_value_of(ctx, t, dtype) : YK_BAD;
}

int yk_random_key(struct yoke_context *ctx, yk_id *key, yk_id *step)
{
	// counts the random calls in this path since its outermost scope was opened or the step was
	// set, so that plans are found again; the turn, which is in no plan, makes the numbers new
	struct yk_path *p = &ctx->scopes.paths.path[ctx->graph.scope];
	if (p->opening != ctx->scopes.opening) {
		p->opening = ctx->scopes.opening;
		p->calls = 0;
		p->turn = p->setting == ctx->random.setting ? p->turn + 1 : 0;
		p->setting = ctx->random.setting;
	}
	const uint64_t call = p->calls++, length = strlen(p->name),
		       ordinal = yk_hash(p->name, length, call);
	*key = leaf_new(ctx, YK_SCALAR,
			&(struct yk_leaf){
				.kind = YK_LEAF_SEED,
				.dtype = yoke_i64,
				.ordinal = ordinal,
				.bits = ctx->random.seed ^
					yk_hash(p->name, length, call | (uint64_t)p->turn << 32) },
			&(struct yk_value){ .dtype = yoke_i64 });
	bool there = ctx->random.step_epoch == ctx->history.epoch;
	if (there) // reuse the leaf only if it was not read yet
		there = !ctx->leaves
				 .at[yk_attrs(&ctx->graph,
					      yk_maker(&ctx->graph, ctx->random.step_leaf))[0]
					     .i]
				 .frozen;
	if (!there && *key != YK_BAD) {
		ctx->random.step_leaf = leaf_new(ctx, YK_SCALAR,
					  &(struct yk_leaf){ .kind = YK_LEAF_STEP,
							     .dtype = yoke_i64,
							     .bits = (uint64_t)ctx->random.step },
					  &(struct yk_value){ .dtype = yoke_i64 });
		if (ctx->random.step_leaf != YK_BAD)
			ctx->random.step_epoch = ctx->history.epoch;
	}
	*step = ctx->random.step_leaf;
	return *key == YK_BAD || *step == YK_BAD ? yk_error_last() : 0;
}
