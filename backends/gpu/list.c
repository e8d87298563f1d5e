// SPDX-License-Identifier: Apache-2.0
// LIST_MAP and LIST_REDUCE: generated map functions inside the kernels of cl/list_*.cl. A list of
// any length takes one launch if its tensors lie in at most SEGMENTS segments; otherwise as few
// launches as keeping the tensors' order allows.
#include "config.h"

#include <stdlib.h>

#include "rows.h"

#define ITEMS 256
#define CHUNK_CPU_LIKE 16384
#define CHUNK 4096
#define SEGMENTS 10 // as in cl/list.cl
#define LANES 128 // as in cl/reduction.cl

// Matches struct list of cl/list.cl.
struct list_args {
	int64_t tensors, chunks, first_tensor, first_chunk, each;
};

struct job {
	const struct yoke_op *op;
	struct yoke_map_call call;
	const struct yoke_view *list[SEGMENTS]; // results first
	int lists;
	bool reduces;
	int64_t chunk;
	size_t items; // items per group
};

static bool job_of(const struct yk_gpu_device *d, const struct yoke_op *op, struct job *j)
{
	*j = (struct job){ .op = op,
			   .reduces = op->code == YOKE_OP_LIST_REDUCE,
			   .chunk = d->cpu_like ? CHUNK_CPU_LIKE : CHUNK,
			   .items = d->cpu_like ? 1 : ITEMS };
	if (yk_gpu_map_call(op, &j->call) < 0 || op->lists_in + op->lists_out > SEGMENTS)
		return false;
	while (j->items > 1 && (j->items > d->max_group || j->items > d->max_items[0]))
		j->items /= 2;
	for (uint32_t k = 0; k < op->lists_out; k++)
		j->list[j->lists++] = op->out + k * op->list;
	for (uint32_t k = 0; k < op->lists_in; k++)
		j->list[j->lists++] = op->in + k * op->list;
	return true;
}

static bool is_number(const struct yoke_op *op, const struct yoke_view *v)
{
	return v->kind == YOKE_VIEW_SCALAR ||
	       (yk_gpu_dense(v) &&
		(yk_gpu_elements(v) == 1 || (v->rank == 1 && v->dims[0] == op->list)));
}

static uint64_t can(struct yk_gpu_device *d, const struct yoke_op *op)
{
	struct job j;

	if (!op->map || !job_of(d, op, &j))
		return 0;
	for (int k = 0; k < j.lists; k++)
		for (uint32_t i = 0; i < op->list; i++)
			if (!yk_gpu_dense_of(&j.list[k][i], j.list[k]->dtype) ||
			    yk_gpu_elements(&j.list[k][i]) != yk_gpu_elements(&op->in[i]))
				return 0;
	for (uint32_t k = op->lists_in * op->list; k < op->nin; k++)
		if (!is_number(op, &op->in[k]))
			return 0;
	if (j.call.dtypes & 1u << yoke_f64 && !yk_gpu_f64(d))
		return 0;
	if (8 * (j.call.narg + 4 + SEGMENTS) + sizeof(struct list_args) > d->info.max_args)
		return 0;
	if (!j.reduces)
		return 1;
	const int dtype = op->map->insn[op->map->out[0]].dtype;
	return op->nattr >= 2 && op->attr[0].i >= YOKE_REDUCE_SUM &&
	       op->attr[0].i <= YOKE_REDUCE_MIN && yk_gpu_real(dtype) &&
	       yk_gpu_dense_of(&op->out[0], dtype) && op->attr[1].i >= 0 && op->attr[1].i <= 2 &&
	       yk_gpu_elements(&op->out[0]) ==
		       (op->attr[1].i ? op->list + (op->attr[1].i == 2) : 1) &&
	       (d->cpu_like || d->local_bytes >= ITEMS * 16);
}

static int64_t chunks_of(const struct job *j, uint32_t tensor)
{
	return yk_gpu_ceil_div(yk_gpu_elements(&j->op->in[tensor]), j->chunk);
}

static int kernel_of(struct yk_gpu_device *d, const struct job *j, const char *name,
		     struct yk_gpu_entry **to)
{
	struct yk_gpu_build b = { .file = j->reduces ? "list_reduce.cl" : "list_map.cl",
				  .name = name };
	size_t min = 4;

	yk_gpu_define(&b, "CHUNK", j->chunk);
	yk_gpu_define(&b, "ITEMS", (int64_t)j->items);
	yk_gpu_flag(&b, "OWN_MATH", d->cpu_like);
	if (j->reduces) {
		const int dtype = j->op->out[0].dtype;
		yk_gpu_define(&b, "KIND", j->op->attr[0].i);
		yk_gpu_define(&b, "OUT", dtype);
		yk_gpu_define(&b, "LANES", LANES);
		yk_gpu_define_warp(&b, d);
		yk_gpu_flag(&b, "WIDE_ACC", dtype == yoke_f64);
		yk_gpu_flag(&b, "MAP_QUAD", yk_gpu_fours(d, j->op->map));
	} else if (d->cpu_like) {
		for (uint32_t k = 0; k < j->op->lists_out; k++)
			if (yk_gpu_bytes(j->list[k]->dtype) < min)
				min = yk_gpu_bytes(j->list[k]->dtype);
		// a few cache lines of each output at a time
		yk_gpu_define(&b, "MAP_BLOCK", 256 / (int)min);
	} else {
		yk_gpu_flag(&b, "MAP_QUAD", yk_gpu_fours(d, j->op->map));
	}
	return yk_gpu_kernel_map(d, j->op, &j->call, &b, to);
}

// The tensors of one launch: a table, and the segments that it refers to.
struct batch {
	uint64_t *words;
	const struct yoke_view *segment[SEGMENTS]; // one view of each segment
	int segments;
	struct list_args args;
};

// The address that the launches are recorded for; in prepare it does not matter.
static struct yoke_view place_of(const struct yk_gpu_record *r, const struct yoke_view *v)
{
	return r->bound ? *yk_gpu_bound(r, v) : (struct yoke_view){ .segment = NULL };
}

// The number of v's segment in a batch, added if there is room; -1: no room.
static int segment_number(const struct yk_gpu_record *r, struct batch *b, const struct yoke_view *v)
{
	for (int i = 0; i < b->segments; i++)
		if (place_of(r, b->segment[i]).segment == place_of(r, v).segment)
			return i;
	if (b->segments == SEGMENTS)
		return -1;
	b->segment[b->segments] = v;
	return b->segments++;
}

// Adds tensor i. False: it needs too many segments, and the batch is unchanged.
static bool batch_add(const struct yk_gpu_record *r, struct batch *b, const struct job *j,
		      uint32_t i)
{
	uint64_t *entry = b->words + b->args.tensors * (2 + j->lists);
	const int had = b->segments;

	entry[0] = (uint64_t)b->args.chunks;
	entry[1] = (uint64_t)yk_gpu_elements(&j->op->in[i]);
	for (int k = 0; k < j->lists; k++) {
		const int s = segment_number(r, b, &j->list[k][i]);
		if (s < 0) {
			b->segments = had;
			return false;
		}
		entry[2 + k] = (uint64_t)s << 56 | place_of(r, &j->list[k][i]).offset;
	}
	b->args.tensors++;
	b->args.chunks += chunks_of(j, i);
	return true;
}

static int launch_join(struct yk_gpu_record *r, const struct job *j, const struct list_args *args,
		       void *table)
{
	struct yk_gpu_entry *kernel;
	int err = kernel_of(r->device, j, "list_join", &kernel);

	if (err)
		return err;
	yk_gpu_begin(r, kernel);
	if (args->each)
		yk_gpu_arg_mem(r, table);
	else
		yk_gpu_arg_segment(r, &j->op->workspace);
	yk_gpu_arg_word(r, 0);
	yk_gpu_arg_view(r, &j->op->workspace);
	yk_gpu_arg_view(r, &j->op->out[0]);
	yk_gpu_arg_struct(r, args, sizeof *args);
	return yk_gpu_launch_groups(r, args->each ? args->tensors : 1, j->items, "list_join");
}

// Records all kernels of a batch and empties it.
static int batch_record(struct yk_gpu_record *r, const struct job *j, struct batch *b)
{
	const char *name = j->reduces ? "list_reduce" : "list_map";
	struct yk_gpu_entry *kernel;
	void *table = NULL;

	if (!b->args.tensors)
		return 0;
	int err = kernel_of(r->device, j, name, &kernel);
	if (!err && r->bound)
		err = yk_gpu_table(r, b->words, (size_t)b->args.tensors * (size_t)(2 + j->lists),
				   &table);
	if (err)
		return err;
	yk_gpu_begin(r, kernel);
	yk_gpu_arg_mem(r, table);
	yk_gpu_arg_word(r, 0);
	for (int k = 0; k < SEGMENTS; k++)
		yk_gpu_arg_segment(r, b->segment[k < b->segments ? k : 0]);
	if (j->reduces)
		yk_gpu_arg_view(r, &j->op->workspace);
	yk_gpu_arg_struct(r, &b->args, sizeof b->args);
	yk_gpu_arg_map(r, j->op, &j->call);
	err = yk_gpu_launch_chunks(r, b->args.chunks, j->items, name);
	if (!err && b->args.each)
		err = launch_join(r, j, &b->args, table);
	b->args.first_tensor += b->args.tensors;
	b->args.first_chunk += b->args.chunks;
	b->args.tensors = b->args.chunks = 0;
	b->segments = 0;
	return err;
}

static int record(struct yk_gpu_record *r, const struct yoke_op *op, uint32_t impl)
{
	struct job j;
	struct batch b = { .segments = 0 };
	int64_t chunks = 0;
	int err = 0;

	(void)impl;
	if (!job_of(r->device, op, &j))
		return yk_gpu_error(YOKE_EUNSUPPORTED, "unsupported lists of tensors");
	b.args.each = j.reduces && op->attr[1].i;
	r->placed = true;
	for (uint32_t i = 0; i < op->list; i++)
		chunks += chunks_of(&j, i);
	yk_gpu_workspace(r, j.reduces ? ((uint64_t)chunks + 1) * sizeof(double) : 0);
	b.words = malloc(((size_t)op->list + 1) * (size_t)(2 + j.lists) * sizeof *b.words);
	if (!b.words)
		return yk_gpu_error(YOKE_ENOMEM, "no memory for a table of %u tensors", op->list);
	for (uint32_t i = 0; !err && i < op->list; i++) {
		if (batch_add(r, &b, &j, i))
			continue;
		err = batch_record(r, &j, &b);
		batch_add(r, &b, &j, i); // one tensor always fits in SEGMENTS segments
	}
	if (!err)
		err = batch_record(r, &j, &b);
	free(b.words);
	if (err || !j.reduces || op->attr[1].i == 1)
		return err;
	return launch_join(r, &j, &(struct list_args){ .first_tensor = op->attr[1].i ? op->list : 0,
						       .chunks = chunks }, NULL);
}

static const char *const names[] = { "chunks" };
YK_GPU_OP(list, LIST_MAP,
	  LIST_REDUCE) = { .names = names, .nimpl = 1, .can = can, .record = record };
