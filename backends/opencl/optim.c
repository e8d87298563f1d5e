// SPDX-License-Identifier: Apache-2.0
// MULTI_ADAMW, MULTI_SGD, MULTI_LAMB, MULTI_NORM and MULTI_UNSCALE: cl/optim.cl, lists of any length
// in one launch as long as they lie in SEGMENTS segments, else in as few as tensors in order allow.
#include "config.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "rows.h"

#define FILES "half.cl vexp.cl rows.cl optim.cl"
#define ITEMS 256
#define CHUNK_LOOPS 16384
#define CHUNK 4096
#define SEGMENTS 8
// As in cl/optim.cl.
enum { LISTS = 7, ENTRY = 2 + LISTS, MOMENTUM = 1, NESTEROV = 2, ADAPT = 4 };

struct optim_args {
	int64_t tensors, chunks, first_tensor, first_chunk, all_chunks;
	struct yk_cl_number number[4];
	float beta1, beta2, rest1, rest2, eps, decay, least, most;
	int32_t flags, kind[LISTS];
};

// An op: its lists, those of the operands first, and its numbers.
struct lists {
	const struct yoke_view *list[LISTS], *number[4];
	int lists, numbers;
	uint32_t count; // tensors in a list
	int64_t chunk;
};

static struct lists lists_of(const struct yk_cl_device *d, const struct yoke_op *op)
{
	struct lists l = { .count = op->list, .chunk = d->loops ? CHUNK_LOOPS : CHUNK };

	for (int k = 0; k < op->lists_in && l.lists < LISTS; k++)
		l.list[l.lists++] = op->in + (uint32_t)k * op->list;
	if (op->code == YOKE_OP_MULTI_SGD && l.lists < 3) // so that outputs have their places
		l.list[l.lists++] = NULL;
	for (int k = 0; k < op->lists_out && l.lists < LISTS; k++)
		l.list[l.lists++] = op->out + (uint32_t)k * op->list;
	for (uint32_t k = op->lists_in * op->list; k < op->nin && l.numbers < 4; k++)
		l.number[l.numbers++] = &op->in[k];
	return l;
}

static bool absent(const struct lists *l, int k)
{
	return !l->list[k] || !l->count || !yk_cl_present(&l->list[k][0]);
}

static bool lists_fit(const struct lists *l)
{
	for (int k = 0; k < l->lists; k++)
		for (uint32_t i = 0; !absent(l, k) && i < l->count; i++) {
			const struct yoke_view *v = &l->list[k][i];
			if (!yk_cl_dense(v) || !yk_cl_float(v->dtype) ||
			    v->dtype != l->list[k][0].dtype)
				return false;
		}
	return true;
}

static bool list_is(const struct lists *l, int k, int dtype)
{
	return absent(l, k) || l->list[k][0].dtype == dtype;
}

static uint64_t can(struct yk_cl_device *d, const struct yoke_op *op)
{
	static const struct { uint8_t in, out, numbers, absent; } form[YOKE_OP_LIMIT] = {
		[YOKE_OP_MULTI_ADAMW] = { 4, 3, 4, 1 << 3 },
		[YOKE_OP_MULTI_LAMB] = { 4, 3, 4, 1 << 3 },
		[YOKE_OP_MULTI_SGD] = { 3, 2, 3, 1 << 1 | 1 << 2 },
		[YOKE_OP_MULTI_NORM] = { 1, 0, 0, 0 },
		[YOKE_OP_MULTI_UNSCALE] = { 1, 1, 1, 0 },
	};
	const struct lists l = lists_of(d, op);
	const int code = op->code, in = form[code].in, out = form[code].out;
	const bool bare = code == YOKE_OP_MULTI_SGD && op->lists_in == 2 && op->lists_out == 1;

	if (!(bare || (op->lists_in == in && op->lists_out == out)) ||
	    l.numbers != form[code].numbers || !lists_fit(&l) ||
	    d->info.max_args < sizeof(struct optim_args) + 8 * 12 + 8 * SEGMENTS)
		return 0;
	for (int k = 0; k < l.lists; k++)
		if (absent(&l, k) && l.count && code != YOKE_OP_MULTI_SGD)
			return 0;
	if (code == YOKE_OP_MULTI_SGD && l.count &&
	    (absent(&l, 0) || absent(&l, 1) || absent(&l, 3) ||
	     absent(&l, 2) != (l.lists < 5 || absent(&l, 4))))
		return 0;
	for (int k = 0; k < l.numbers; k++)
		if (!(yk_cl_present(l.number[k]) ? yk_cl_is_value(l.number[k]) :
						  form[code].absent >> k & 1))
			return 0;
	switch (code) {
	case YOKE_OP_MULTI_NORM:
		return yk_cl_dense_of(&op->out[0], yoke_f32);
	case YOKE_OP_MULTI_UNSCALE:
		return list_is(&l, 1, yoke_f32) && yk_cl_dense_of(&op->out[op->list], yoke_bool);
	default:
		return 1;
	}
}

static int64_t chunks_of(const struct lists *l, uint32_t tensor)
{
	return yk_cl_pieces(yk_cl_elements(&l->list[0][tensor]), l->chunk);
}

static int64_t all_chunks(const struct lists *l)
{
	int64_t n = 0;
	for (uint32_t i = 0; i < l->count; i++)
		n += chunks_of(l, i);
	return n;
}

static size_t items_of(const struct yk_cl_device *d)
{
	size_t items = d->loops ? 1 : ITEMS;
	while (items > 1 && (items > d->max_group || items > d->max_items[0]))
		items /= 2;
	return items;
}

static int kernel_of(struct yk_cl_device *d, const struct lists *l, const char *name,
		     struct yk_cl_entry **to)
{
	struct yk_cl_build b = { .files = FILES, .name = name };
	bool halves = false;

	for (int k = 0; k < l->lists; k++)
		halves |= !list_is(l, k, yoke_f32);
	yk_cl_row_defines(&b, d, items_of(d), yoke_f32);
	yk_cl_define(&b, "CHUNK", l->chunk);
	yk_cl_define(&b, "HALVES", halves);
	return yk_cl_kernel_file(d, &b, to);
}

// The kernels of an op in the order of their launches; join comes last, once.
static const char *const *kernels_of(const struct yoke_op *op)
{
	static const char *const adamw[] = { "adamw", NULL }, *const sgd[] = { "sgd", NULL },
		*const norm[] = { "squares", NULL }, *const unscale[] = { "unscale", NULL },
		*const lamb[] = { "lamb_squares", "lamb_ratio", "lamb_apply", NULL };

	switch (op->code) {
	case YOKE_OP_MULTI_ADAMW: return adamw;
	case YOKE_OP_MULTI_SGD: return sgd;
	case YOKE_OP_MULTI_LAMB: return lamb;
	case YOKE_OP_MULTI_NORM: return norm;
	default: return unscale;
	}
}

static bool joins(const struct yoke_op *op)
{
	return op->code == YOKE_OP_MULTI_NORM || op->code == YOKE_OP_MULTI_UNSCALE;
}

static struct optim_args args_of(const struct yoke_op *op, const struct lists *l)
{
	struct optim_args a = { .all_chunks = all_chunks(l) };

	for (int k = 0; k < l->numbers; k++)
		a.number[k] = yk_cl_number_of(l->number[k], k == 0 || op->code != YOKE_OP_MULTI_SGD ||
							    k == 2);
	for (int k = 0; k < l->lists; k++)
		a.kind[k] = absent(l, k) || list_is(l, k, yoke_f32) ? 0 :
			    list_is(l, k, yoke_f16)		    ? 1 : 2;
	a.beta1 = (float)op->attr[0].f;
	a.beta2 = (float)op->attr[1].f;
	a.rest1 = (float)(1 - op->attr[0].f);
	a.rest2 = (float)(1 - op->attr[1].f);
	if (op->code == YOKE_OP_MULTI_SGD) {
		a.decay = (float)op->attr[2].f;
		a.flags = (absent(l, 2) ? 0 : MOMENTUM) | (op->attr[3].i ? NESTEROV : 0);
		return a;
	}
	a.eps = (float)op->attr[2].f;
	a.decay = (float)op->attr[3].f;
	if (op->code == YOKE_OP_MULTI_LAMB) {
		a.least = (float)op->attr[4].f;
		a.most = (float)op->attr[5].f;
		a.flags = op->attr[6].i ? ADAPT : 0;
	}
	return a;
}

// One launch's worth: a table, and the segments it names.
struct batch {
	uint64_t *words;
	const struct yoke_view *segment[SEGMENTS]; // a view in it
	int segments;
	struct optim_args args;
};

// Where the launches are for; in prepare any place will do.
static struct yoke_view place_of(const struct yk_cl_record *r, const struct yoke_view *v)
{
	return r->bound ? *yk_cl_bound(r, v) : (struct yoke_view){ .segment = NULL };
}

// The number of v's segment in a batch, a new one if there is room; -1: there is none.
static int segment_number(const struct yk_cl_record *r, struct batch *b, const struct yoke_view *v)
{
	for (int i = 0; i < b->segments; i++)
		if (place_of(r, b->segment[i]).segment == place_of(r, v).segment)
			return i;
	if (b->segments == SEGMENTS)
		return -1;
	b->segment[b->segments] = v;
	return b->segments++;
}

// Adds tensor i; false, and the batch as it was, when it needs too many segments.
static bool batch_add(const struct yk_cl_record *r, struct batch *b, const struct lists *l,
		      uint32_t i)
{
	uint64_t *entry = b->words + b->args.tensors * ENTRY;
	const int had = b->segments;

	entry[0] = (uint64_t)b->args.chunks;
	entry[1] = (uint64_t)yk_cl_elements(&l->list[0][i]);
	for (int k = 0; k < LISTS; k++) {
		int s = 0;
		entry[2 + k] = 0;
		if (k >= l->lists || absent(l, k))
			continue;
		s = segment_number(r, b, &l->list[k][i]);
		if (s < 0) {
			b->segments = had;
			return false;
		}
		entry[2 + k] = (uint64_t)s << 56 | place_of(r, &l->list[k][i]).offset;
	}
	b->args.tensors++;
	b->args.chunks += chunks_of(l, i);
	return true;
}

static int launch(struct yk_cl_record *r, const struct yoke_op *op, const struct lists *l,
		  const struct batch *b, cl_mem table, const char *name)
{
	const bool by_tensor = !strcmp(name, "lamb_ratio");
	struct yk_cl_entry *kernel;
	int err = kernel_of(r->device, l, name, &kernel);

	if (err)
		return err;
	yk_cl_begin(r, kernel);
	yk_cl_arg_mem(r, table);
	yk_cl_arg_word(r, 0);
	yk_cl_arg_view(r, &op->workspace);
	for (int k = 0; k < 4; k++)
		yk_cl_arg_view(r, k < l->numbers && l->number[k]->kind == YOKE_VIEW_BUFFER ?
					      l->number[k] : &op->workspace);
	for (int k = 0; k < SEGMENTS; k++)
		yk_cl_arg_segment(r, b->segment[k < b->segments ? k : 0]);
	yk_cl_arg_struct(r, &b->args, sizeof b->args);
	for (int k = 0; k < l->numbers; k++)
		yk_cl_arg_number(r, offsetof(struct optim_args, number) +
				    (size_t)k * sizeof *b->args.number, l->number[k]);
	return by_tensor ?
		       yk_cl_launch_groups(r, b->args.tensors, items_of(r->device), name) :
		       yk_cl_launch_pieces(r, b->args.chunks, items_of(r->device), name);
}

// All kernels of a batch, which is empty afterwards.
static int batch_record(struct yk_cl_record *r, const struct yoke_op *op, const struct lists *l,
		     struct batch *b)
{
	cl_mem table = NULL;
	int err = 0;

	if (!b->args.tensors)
		return 0;
	if (r->bound)
		err = yk_cl_table(r, b->words, (size_t)b->args.tensors * ENTRY, &table);
	for (const char *const *name = kernels_of(op); !err && *name; name++)
		if (strcmp(*name, "lamb_ratio") || b->args.flags & ADAPT)
			err = launch(r, op, l, b, table, *name);
	b->args.first_tensor += b->args.tensors;
	b->args.first_chunk += b->args.chunks;
	b->args.tensors = b->args.chunks = 0;
	b->segments = 0;
	return err;
}

static int record_join(struct yk_cl_record *r, const struct yoke_op *op, const struct lists *l)
{
	const bool any = op->code == YOKE_OP_MULTI_UNSCALE;
	struct yk_cl_entry *kernel;
	int err = kernel_of(r->device, l, "join", &kernel);

	if (err)
		return err;
	yk_cl_begin(r, kernel);
	yk_cl_arg_view(r, &op->out[any ? op->list : 0]);
	yk_cl_arg_view(r, &op->workspace);
	yk_cl_arg_word(r, (uint64_t)all_chunks(l));
	yk_cl_arg_word(r, any);
	return yk_cl_launch_groups(r, 1, items_of(r->device), "join");
}

static int record(struct yk_cl_record *r, const struct yoke_op *op, uint32_t impl)
{
	const struct lists l = lists_of(r->device, op);
	struct batch b = { .args = args_of(op, &l) };
	int err = 0;

	(void)impl;
	r->placed = true;
	yk_cl_workspace(r, ((uint64_t)all_chunks(&l) * 2 + l.count + 1) * sizeof(float));
	b.words = malloc(((size_t)l.count + 1) * ENTRY * sizeof *b.words);
	if (!b.words)
		return yk_cl_error(YOKE_ENOMEM, "no memory for a table of %u tensors", l.count);
	for (uint32_t i = 0; !err && i < l.count; i++) {
		if (!chunks_of(&l, i) || batch_add(r, &b, &l, i))
			continue;
		err = batch_record(r, op, &l, &b);
		batch_add(r, &b, &l, i); // SEGMENTS are enough for one tensor
	}
	if (!err)
		err = batch_record(r, op, &l, &b);
	free(b.words);
	return err || !joins(op) ? err : record_join(r, op, &l);
}

static const char *const names[] = { "chunks" };
const struct yk_cl_op yk_cl_optim = { names, 1, can, record };
