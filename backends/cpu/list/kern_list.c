// SPDX-License-Identifier: Apache-2.0
// LIST_MAP and LIST_REDUCE: a map program over lists of tensors, each treated as one row of
// elements. The program is prepared once for all tensors and then pointed at one after another. The
// division of work depends only on the tensors' sizes, and results are the same bits as those of
// MAP and REDUCE on each tensor.
#include "config.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "../reduce/kern_reduce.h"
#include "../vector/vec.h"

// Min elements per work item (except the last); larger tensors are divided. The fixed cost of a
// map's work item, about that of a few strips, is spread over more elements if enough items remain
// for all cores.
enum {
	MAP_ITEM = 16 * YK_STRIP,
	MAP_ITEM_MAX = 64 * YK_STRIP,
	MAP_ITEMS = 512,
	REDUCE_ITEM = YK_SEGMENT
};

struct position {
	uint32_t tensor;
	int64_t from; // element
};

struct job {
	struct yk_prog prog; // not pointed at a tensor
	const struct yoke_op *op;
	const struct yk_reducer *reducer; // NULL for LIST_MAP
	// tensors per list; lists among the inputs; outputs that are lists
	uint32_t list, lists, outs;
	bool per_tensor;                 // an input has one number per tensor
	int64_t per_item, items;
	struct position *begin;        // of each work item, and the end
	int64_t *unit; // LIST_REDUCE: first segment and number of segments of each tensor
	atomic_bool no_memory;
};

// ---- operands ----

static bool is_number(const struct yoke_op *op, const struct yoke_view *v)
{
	return v->kind == YOKE_VIEW_SCALAR ||
	       (v->kind == YOKE_VIEW_BUFFER &&
		(yk_elements(v) == 1 || (v->rank == 1 && v->dims[0] == op->list && yk_dense(v))));
}

// Builds a MAP of one row over the views `v`; false: not possible.
static bool flatten(const struct yoke_op *op, struct yoke_view *v, struct yoke_op *to)
{
	const uint32_t list = op->list, lists = op->lists_in;
	const uint32_t outs = op->code == YOKE_OP_LIST_MAP ? op->lists_out : 0;
	int64_t n = 0;

	*to = (struct yoke_op){ .size = sizeof *to, .code = YOKE_OP_MAP, .rank = 1, .map = op->map,
				.out = v, .in = v + outs, .nout = outs };
	if (!op->map || !list || !lists || op->nin < lists * list || op->lists_out != outs ||
	    op->nout != (outs ? outs * list : 1) || (outs && op->map->nout != outs) ||
	    op->map->nin != lists + op->nin - lists * list ||
	    op->map->nout > YOKE_MAP_MAX_OUTPUTS || op->map->nin > YOKE_MAP_MAX_INPUTS)
		return false;
	for (uint32_t i = 0; i < list; i++)
		n += yk_elements(&op->in[i]);
	to->dims[0] = n;
	for (uint32_t k = 0; k < outs + op->map->nin; k++) {
		const uint32_t input = k - outs;
		const bool number = k >= outs && input >= lists;
		const struct yoke_view *from = k < outs ? &op->out[k * list] :
					       number	? &op->in[lists * list + input - lists] :
							  &op->in[input * list];
		v[k] = *from;
		v[k].rank = 1, v[k].dims[0] = n, v[k].strides[0] = !number;
		if (number && !is_number(op, from))
			return false;
		for (uint32_t i = 0; !number && i < list; i++)
			if (from[i].kind != YOKE_VIEW_BUFFER || from[i].dtype != from->dtype ||
			    !yk_dense(&from[i]) || yk_elements(&from[i]) != yk_elements(&op->in[i]))
				return false;
	}
	to->nin = op->map->nin;
	return true;
}

enum { VIEWS = YOKE_MAP_MAX_INPUTS + YOKE_MAP_MAX_OUTPUTS };

static bool can_run(const struct yoke_op *op)
{
	struct yoke_view v[VIEWS];
	struct yoke_op flat;

	if (!flatten(op, v, &flat) || !ISA(yk_map_check)(&flat))
		return false;
	for (int k = 0; k < op->map->ninsn; k++)
		if (op->map->insn[k].op == YOKE_MAP_INDEX || op->map->insn[k].op == YOKE_MAP_RAND)
			return false;
	for (uint32_t k = 0; k < flat.nout; k++)
		if (v[k].dtype != op->map->insn[op->map->out[k]].dtype)
			return false;
	return true;
}

static uint64_t can_map(const struct yoke_op *op)
{
	return op->lists_out && can_run(op);
}

static uint64_t can_reduce(const struct yoke_op *op)
{
	if (op->nattr < 2 || op->lists_out || !can_run(op) || op->map->nout != 1)
		return 0;
	const int64_t kind = op->attr[0].i;
	const struct yoke_view *y = &op->out[0];
	const int dtype = op->map->insn[op->map->out[0]].dtype;
	return kind >= YOKE_REDUCE_SUM && kind <= YOKE_REDUCE_MIN && yk_is_float(dtype) &&
	       (y->dtype == dtype || (y->dtype == yoke_f64 && dtype == yoke_f32)) &&
	       y->kind == YOKE_VIEW_BUFFER && yk_dense(y) && op->attr[1].i >= 0 &&
	       op->attr[1].i <= 2 &&
	       yk_elements(y) == (op->attr[1].i ? op->list + (op->attr[1].i == 2) : 1);
}

// ---- division of work ----

static int64_t segments_of(const struct yoke_view *v)
{
	return (yk_elements(v) + YK_SEGMENT - 1) / YK_SEGMENT;
}

static uint64_t workspace(const struct yoke_op *op, uint32_t impl)
{
	uint64_t units = 0;

	(void)impl;
	for (uint32_t i = 0; i < op->list; i++)
		units += (uint64_t)segments_of(&op->in[i]);
	return units * sizeof(struct yk_acc);
}

// Sets where work items begin, as far as `begin` has room; returns their number.
static int64_t divide(const struct yoke_op *op, int64_t per_item, struct position *begin)
{
	int64_t items = 0, got = per_item; // got: elements in the current item

	for (uint32_t i = 0; i < op->list; i++) {
		const int64_t n = yk_elements(&op->in[i]);
		for (int64_t at = 0; at < n; at += per_item) {
			if (got >= per_item) {
				if (begin)
					begin[items] = (struct position){ i, at };
				items++;
				got = 0;
			}
			got += n - at < per_item ? n - at : per_item;
		}
	}
	if (begin)
		begin[items] = (struct position){ op->list, 0 };
	return items;
}

static void *prepare(const struct yoke_op *op, int64_t per_item, const struct yk_reducer *reducer)
{
	const size_t program = ISA(yk_prog_bytes)(op->map), list = op->list;
	const int64_t items = divide(op, per_item, NULL);
	const size_t positions = ((size_t)items + 1) * sizeof(struct position);
	struct yoke_view v[VIEWS];
	struct yoke_op flat;
	struct job *j = calloc(1, sizeof *j + positions + (list + 1) * sizeof *j->unit + program);

	if (!j || !flatten(op, v, &flat))
		return j;
	j->list = op->list, j->lists = op->lists_in, j->outs = flat.nout;
	j->per_item = per_item, j->items = items;
	j->reducer = reducer;
	j->begin = (struct position *)(j + 1);
	j->unit = (int64_t *)(j->begin + items + 1);
	divide(op, per_item, j->begin);
	for (uint32_t i = 0; i < op->list; i++)
		j->unit[i + 1] = j->unit[i] + segments_of(&op->in[i]);
	for (uint32_t k = j->lists; k < flat.nin; k++)
		j->per_tensor |= v[j->outs + k].kind == YOKE_VIEW_BUFFER &&
			   yk_elements(&op->in[j->lists * j->list + k - j->lists]) != 1;
	ISA(yk_prog_init)(&j->prog, j->unit + list + 1, &flat, NULL, (int)flat.nout);
	ISA(yk_prog_stream)(&j->prog);
	return j;
}

static void *prepare_map(const struct yoke_op *op, uint32_t impl)
{
	int64_t n = 0;

	(void)impl;
	for (uint32_t i = 0; i < op->list; i++)
		n += yk_elements(&op->in[i]);
	n = n / MAP_ITEMS / YK_STRIP * YK_STRIP;
	return prepare(op, n < MAP_ITEM ? MAP_ITEM : n > MAP_ITEM_MAX ? MAP_ITEM_MAX : n, NULL);
}

static void *prepare_reduce(const struct yoke_op *op, uint32_t impl)
{
	(void)impl;
	return prepare(op, REDUCE_ITEM, op->map->insn[op->map->out[0]].dtype == yoke_f64 ?
						 &ISA(yk_reduce_f64) : &ISA(yk_reduce_f32));
}

// ---- runs ----

static void point_at(struct yk_prog *p, const struct job *j, uint32_t tensor)
{
	const struct yoke_op *op = j->op;

	for (uint32_t k = 0; k < j->outs; k++)
		p->out[k].base = yk_ptr(&op->out[k * j->list + tensor]);
	for (uint32_t k = 0; k < j->lists; k++)
		p->in[k].base = yk_ptr(&op->in[k * j->list + tensor]);
	for (uint32_t k = j->lists; k < p->map->nin; k++) {
		const struct yoke_view *v = &op->in[j->lists * j->list + k - j->lists];
		if (p->in[k].scalar)
			p->in[k].bits = v->offset;
		else
			p->in[k].base = (char *)yk_ptr(v) +
					(yk_elements(v) == 1 ? 0 : tensor * p->in[k].size);
	}
}

// True if inputs overlap outputs, of any tensor, as they did when the program was prepared.
static bool same_positions(struct job *j)
{
	const struct yoke_op *op = j->op;
	struct yk_prog *p = &j->prog;
	bool same = true;

	for (uint32_t o = 0; o < j->outs; o++) {
		uint16_t over = 0;
		for (uint32_t k = 0; k < j->lists; k++)
			for (uint32_t i = 0; i < j->list; i++) {
				const struct yoke_view *x = &op->in[k * j->list + i],
						       *y = &op->out[o * j->list + i];
				const uintptr_t a = (uintptr_t)yk_ptr(x), b = (uintptr_t)yk_ptr(y);
				const uintptr_t n = (uintptr_t)yk_elements(x);
				if (a < b + n * p->out[o].size && b < a + n * p->in[k].size)
					over |= (uint16_t)(1 << k);
			}
		same &= over == p->over[o];
		p->over[o] = over;
	}
	return same;
}

static const void *values(const struct job *j, const struct yk_frame *f, char *buffer, int64_t n)
{
	const struct yk_arg *v = &f->value[j->prog.map->out[0]];
	const size_t block =
		YK_BLOCK * yk_esize(yk_reg(j->prog.map->insn[j->prog.map->out[0]].dtype));

	for (int64_t i = 0; i < n && !v->step; i += YK_BLOCK)
		memcpy(buffer + (size_t)(i / YK_BLOCK) * block, v->at, block);
	return v->step ? v->at : buffer;
}

// Processes elements from .. from + n - 1 of a tensor.
static void run_part(const struct job *j, struct yk_frame *f, char *buffer, uint32_t tensor,
		     int64_t from, int64_t n)
{
	struct yk_acc a, *to = j->reducer ? yk_ptr(&j->op->workspace) : NULL;
	const int kind = j->reducer ? (int)j->op->attr[0].i : 0;

	if (to)
		j->reducer->identity(kind, &a);
	for (int64_t at = 0; at < n; at += YK_STRIP) {
		const int64_t some = n - at < YK_STRIP ? n - at : YK_STRIP;
		ISA(yk_frame_next)(f, some == YK_STRIP ? at / YK_STRIP : 0, from + at, some);
		if (to)
			j->reducer->run(kind, &a, values(j, f, buffer, some), some, from + at);
	}
	if (to)
		to[j->unit[tensor] + from / YK_SEGMENT] = a;
}

static void run_item(void *arg, int64_t index)
{
	struct job *j = arg;
	const struct position *end = &j->begin[index + 1];
	struct position at = j->begin[index];
	const size_t registers = (j->prog.frame + 63) / 64 * 64;
	struct yk_prog prog = j->prog; // a copy, since each thread points it at other tensors
	struct yk_frame frame;
	char *memory = yk_team_scratch(registers + YK_STRIP * sizeof(double));

	if (!memory) {
		atomic_store(&j->no_memory, true);
		return;
	}
	for (bool first = true; at.tensor < end->tensor || at.from < end->from; first = false) {
		const int64_t n = yk_elements(&j->op->in[at.tensor]);
		const int64_t stop = at.tensor == end->tensor ? end->from : n;
		point_at(&prog, j, at.tensor);
		if (first || j->per_tensor)
			ISA(yk_frame_init)(&frame, &prog, memory);
		for (int64_t some; at.from < stop; at.from += some) {
			some = stop - at.from < j->per_item ? stop - at.from : j->per_item;
			run_part(j, &frame, memory + registers, at.tensor, at.from, some);
		}
		if (at.from == n)
			at = (struct position){ at.tensor + 1, 0 };
	}
	vf_fence();
}

static int run(const struct yoke_op *op, struct job *j)
{
	struct yoke_view v[VIEWS];
	struct yoke_op flat;

	j->op = op;
	j->prog.map = op->map;
	if (!j->items)
		return 0;
	if (!same_positions(j) && flatten(op, v, &flat)) {
		ISA(yk_prog_init)(&j->prog, j->unit + j->list + 1, &flat, NULL, (int)flat.nout);
		ISA(yk_prog_stream)(&j->prog);
	}
	atomic_init(&j->no_memory, false);
	yk_team_run(j->items, run_item, j);
	return atomic_load(&j->no_memory) ?
		       yk_cpu_fail(YOKE_ENOMEM, "lists: no memory for registers") :
		       0;
}

static int run_map(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	(void)impl;
	return run(op, prepared);
}

static int run_reduce(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	struct job *j = prepared;
	const struct yoke_view *y = &op->out[0];
	const int kind = (int)op->attr[0].i;
	const int64_t each = op->attr[1].i;
	struct yk_acc a, all;
	int err = run(op, j);

	(void)impl;
	j->reducer->identity(kind, &all);
	for (uint32_t i = 0; i < j->list && !err; i++) {
		j->reducer->identity(kind, &a);
		for (int64_t u = j->unit[i]; u < j->unit[i + 1]; u++) {
			const struct yk_acc *part = (struct yk_acc *)yk_ptr(&op->workspace) + u;
			if (each)
				j->reducer->join(kind, &a, part, 1);
			if (each != 1)
				j->reducer->join(kind, &all, part, 1);
		}
		if (each)
			ISA(yk_reduce_put)
			((char *)yk_ptr(y) + i * yk_esize(y->dtype), y->dtype, kind, &a);
	}
	if (each != 1 && !err)
		ISA(yk_reduce_put)
		((char *)yk_ptr(y) + (each ? j->list : 0) * yk_esize(y->dtype), y->dtype, kind,
		 &all);
	return err;
}

YK_KERNEL(list_map, LIST_MAP) = {
	.can = can_map, .prepare = prepare_map, .run = run_map, .impl = { "strips" }
};
YK_KERNEL(list_reduce, LIST_REDUCE) = {
	.can = can_reduce,
	.workspace = workspace,
	.prepare = prepare_reduce,
	.run = run_reduce,
	.impl = { "segments" },
};
