// SPDX-License-Identifier: Apache-2.0
// REDUCE: a map program followed by a sum, product, maximum, minimum or the position of an extreme
// over any axes.
//
// The iteration space is treated as K x N x C: K kept, N reduced, C kept axes after the last
// reduced one. C = 1: each output reduces a run of N elements. Otherwise columns: rows of C
// elements are accumulated. N is divided into segments by shape alone; with several segments, each
// writes its accumulators to the workspace, and a second pass merges them in order.
// kern_reduce_windows.c computes sums of few elements of an operand.
#include "config.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "../vector/half.h"
#include "kern_reduce.h"

enum {
	SEGMENT = YK_SEGMENT,
	PER_ITEM = 1 << 16, // min elements per work item
	// For columns a segment writes one accumulator per column, so segments are longer and their
	// number is limited.
	COLUMN_SEGMENT = 1 << 18,
	COLUMN_UNITS = 256
};

struct shape {
	int kind, value; // value: dtype of the map's output
	int perm[YOKE_MAX_RANK], rank;
	int64_t K, N, C;
	int64_t tile, tiles;       // columns per tile, tiles in C
	int64_t segment, segments; // elements of N per segment, number of segments
};

struct job {
	struct shape s;
	struct yk_prog prog;
	const struct yk_reducer *r;
	yk_strip_fn *cast; // to i64, if values are integers
	const struct yoke_view *out;
	bool dense;
	bool even;         // strips of a run or tile are equally spaced
	// the input that is used directly as values, dense unless `few`; -1: the program does more
	int plain;
	// the dense f16 or bf16 input whose columns are summed without a program; -1: none
	int half;
	const char *values;     // the address of `plain`, or NULL
	struct yk_acc *partial; // [segments][K*C]; NULL: one segment
	int64_t units, each;    // units: K * segments * tiles; each: units per work item
	atomic_bool no_memory;
	bool few; // an output has few elements: `windows` computes their sums
	struct yk_reduce_windows windows;
};

// ---- shape ----

static int64_t divide_up(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

static void shape_init(struct shape *s, const struct yoke_op *op)
{
	uint64_t mask = (uint64_t)op->attr[1].i;
	int last = -1, n = 0; // the last reduced axis of size > 1

	s->kind = (int)op->attr[0].i;
	s->value = op->map->insn[op->map->out[0]].dtype;
	s->rank = op->rank;
	s->K = s->N = s->C = 1;
	for (int d = 0; d < op->rank; d++)
		if (mask >> d & 1 && op->dims[d] != 1)
			last = d;
	for (int d = 0; d < op->rank; d++)
		if (!(mask >> d & 1) && d < last)
			s->perm[n++] = d, s->K *= op->dims[d];
	for (int d = 0; d < op->rank; d++)
		if (mask >> d & 1)
			s->perm[n++] = d, s->N *= op->dims[d];
	for (int d = 0; d < op->rank; d++)
		if (!(mask >> d & 1) && d >= last)
			s->perm[n++] = d, s->C *= op->dims[d];
	s->tile = s->C < YK_STRIP ? s->C : YK_STRIP;
	s->tiles = s->tile ? divide_up(s->C, s->tile) : 0;
	s->segment = SEGMENT;
	if (s->C > 1 && s->K > 0) {
		int64_t max = COLUMN_UNITS / s->K / s->tiles;
		int64_t min = divide_up(s->N, max > 1 ? max : 1);
		s->segment = COLUMN_SEGMENT / s->tile;
		s->segment = s->segment > min ? s->segment : min;
	}
	s->segments = s->N ? divide_up(s->N, s->segment) : 1;
}

static uint64_t can(const struct yoke_op *op)
{
	if (op->nattr < 2 || op->nout != 1 || !op->map || op->map->nout != 1 ||
	    !ISA(yk_map_check)(op))
		return 0;
	const struct yoke_view *out = &op->out[0];
	int value = op->map->insn[op->map->out[0]].dtype;
	int64_t kind = op->attr[0].i, mask = op->attr[1].i;
	bool place = kind == YOKE_REDUCE_ARGMAX || kind == YOKE_REDUCE_ARGMIN;
	if (kind < YOKE_REDUCE_SUM || kind > YOKE_REDUCE_ARGMIN || mask < 0 ||
	    mask >> op->rank)
		return 0;
	if (out->kind != YOKE_VIEW_BUFFER || out->rank != op->rank)
		return 0;
	if (place)
		return out->dtype == yoke_i64 && mask && !(mask & (mask - 1));
	return yk_is_float(value) == yk_is_float(out->dtype);
}

static uint64_t workspace(const struct yoke_op *op, uint32_t impl)
{
	struct shape s;
	uint64_t bytes;

	(void)impl;
	shape_init(&s, op);
	if (s.segments == 1)
		return 0;
	if (__builtin_mul_overflow((uint64_t)s.segments, (uint64_t)s.K * (uint64_t)s.C,
				   &bytes) ||
	    __builtin_mul_overflow(bytes, sizeof(struct yk_acc), &bytes))
		return UINT64_MAX;
	return bytes;
}

// ---- results ----

void ISA(yk_reduce_put)(char *to, int dtype, int kind, const struct yk_acc *a)
{
	int64_t i = kind >= YOKE_REDUCE_ARGMAX ? a->at : a->i;
	uint16_t h;
	float f;
	switch (dtype) {
	case yoke_f32: f = (float)a->f, memcpy(to, &f, sizeof f); break;
	case yoke_f64: memcpy(to, &a->f, sizeof a->f); break;
	case yoke_f16:
		h = yk_f16_of_f32(yk_f32_odd_of_f64(a->f)), memcpy(to, &h, sizeof h);
		break;
	case yoke_bf16:
		h = yk_bf16_of_f32(yk_f32_odd_of_f64(a->f)), memcpy(to, &h, sizeof h);
		break;
	case yoke_bool: *to = i != 0; break;
	case yoke_i8:
	case yoke_u8: *(uint8_t *)to = (uint8_t)i; break;
	case yoke_i32: *(int32_t *)to = (int32_t)i; break;
	default: memcpy(to, &i, sizeof i);
	}
}

static void put(const struct job *j, int64_t output, const struct yk_acc *a)
{
	const struct yoke_view *v = j->out;
	int64_t offset = output;
	if (!j->dense) {
		offset = 0;
		for (int d = v->rank - 1; d >= 0; d--) {
			offset += output % v->dims[d] * v->strides[d];
			output /= v->dims[d];
		}
	}
	ISA(yk_reduce_put)
	((char *)yk_ptr(v) + offset * (int64_t)yk_esize(v->dtype), v->dtype, j->s.kind, a);
}

// The accumulator in which a segment leaves an output, if there are several segments.
static struct yk_acc *partial(const struct job *j, int64_t segment, int64_t output)
{
	return j->partial + segment * j->s.K * j->s.C + output;
}

static void finish(const struct job *j, int64_t segment, int64_t output,
		   const struct yk_acc *a)
{
	if (j->partial)
		*partial(j, segment, output) = *a;
	else
		put(j, output, a);
}

// ---- work items ----

// Per-thread state: the program's frame, and memory for converted values.
struct scratch {
	struct yk_frame frame;
	struct yk_columns *columns;
	struct yk_acc *totals; // of a tile of columns
	char *values;
};

static size_t element(const struct job *j)
{
	return j->cast ? 8 : yk_esize(yk_reg(j->s.value));
}

// Values of elements from `first` on of the permuted iteration space, contiguous; `strip` as for
// yk_frame_next.
static const void *values(const struct job *j, struct scratch *t, int64_t strip,
			  int64_t first, int64_t n)
{
	if (j->values)
		return j->values + first * (int64_t)element(j);
	ISA(yk_frame_next)(&t->frame, j->even ? strip : 0, first, n);
	const struct yk_arg *v = &t->frame.value[j->prog.map->out[0]];
	if (j->cast) {
		j->cast(t->values, v, NULL, NULL, n);
		return t->values;
	}
	if (v->step)
		return v->at;
	size_t block = YK_BLOCK * yk_esize(yk_reg(j->s.value));
	for (int64_t i = 0; i < n; i += YK_BLOCK)
		memcpy(t->values + (size_t)(i / YK_BLOCK) * block, v->at, block);
	return t->values;
}

// Reduces one segment of one output.
static void long_run(const struct job *j, struct scratch *t, int64_t output,
		     int64_t segment)
{
	const struct shape *s = &j->s;
	int64_t at = segment * s->segment, strip = 0,
		end = at + s->segment < s->N ? at + s->segment : s->N;
	struct yk_acc a;

	j->r->identity(s->kind, &a);
	for (; at < end; at += YK_STRIP) {
		int64_t n = end - at < YK_STRIP ? end - at : YK_STRIP;
		const void *x =
			values(j, t, n == YK_STRIP ? strip++ : 0, output * s->N + at, n);
		j->r->run(s->kind, &a, x, n, at);
	}
	finish(j, segment, output, &a);
}

// Reduces several outputs whose runs fit in a strip.
static void short_runs(const struct job *j, struct scratch *t, int64_t output,
		       int64_t count)
{
	const struct shape *s = &j->s;
	const char *x = values(j, t, 0, output * s->N, count * s->N);

	for (int64_t k = 0; k < count; k++, x += (size_t)s->N * element(j)) {
		struct yk_acc a;
		j->r->identity(s->kind, &a);
		j->r->run(s->kind, &a, x, s->N, 0);
		finish(j, 0, output + k, &a);
	}
}

// Reduces one segment of one tile of columns.
static void columns(const struct job *j, struct scratch *t, int64_t k, int64_t segment,
		    int64_t tile)
{
	const struct shape *s = &j->s;
	struct yk_columns *c = t->columns;
	int64_t row = segment * s->segment;
	int64_t end = row + s->segment < s->N ? row + s->segment : s->N;
	int64_t col = tile * s->tile;

	c->cols = s->C - col < s->tile ? s->C - col : s->tile;
	j->r->clear(s->kind, c);
	if (j->half >= 0) {
		const struct yk_operand *o = &j->prog.in[j->half];
		ISA(yk_reduce_half_rows)
		(c, o->dtype,
		 (const uint16_t *)(const void *)o->base + (k * s->N + row) * s->C + col, s->C,
		 end - row);
		row = end;
	}
	int64_t step = s->tiles == 1 ? YK_STRIP / s->C : 1, stride = c->cols;
	if (j->values)
		step = end - row, stride = s->C;
	int64_t strip = 0;
	for (int64_t n; row < end; row += n) { // whole rows at a time
		n = end - row < step ? end - row : step;
		int64_t first = (k * s->N + row) * s->C + col;
		const void *x = values(j, t, n == step ? strip++ : 0, first, n * c->cols);
		j->r->rows(s->kind, c, x, stride, n, row);
	}
	j->r->flush(s->kind, c);
	const int64_t output = k * s->C + col;
	struct yk_acc *to = j->partial ? partial(j, segment, output) : t->totals;
	j->r->totals(c, to);
	for (int64_t i = 0; i < c->cols && !j->partial; i++)
		put(j, output + i, &to[i]);
}

static bool scratch_init(struct job *j, struct scratch *t)
{
	size_t frame = (j->prog.frame + 63) / 64 * 64;
	size_t cols = (sizeof(struct yk_columns) + 63) / 64 * 64;
	size_t totals = YK_STRIP * sizeof(struct yk_acc);
	char *memory = yk_team_scratch(frame + cols + totals + YK_STRIP * 8);
	if (!memory) {
		atomic_store(&j->no_memory, true);
		return false;
	}
	ISA(yk_frame_init)(&t->frame, &j->prog, memory);
	t->columns = (struct yk_columns *)(memory + frame);
	t->totals = (struct yk_acc *)(memory + frame + cols);
	t->values = memory + frame + cols + totals;
	return true;
}

static void item(void *arg, int64_t index)
{
	struct job *j = arg;
	const struct shape *s = &j->s;
	struct scratch t;
	int64_t at = index * j->each,
		end = at + j->each < j->units ? at + j->each : j->units;

	if (!scratch_init(j, &t))
		return;
	while (at < end) {
		int64_t tile = at % s->tiles, segment = at / s->tiles % s->segments;
		int64_t k = at / s->tiles / s->segments, count = 1;
		if (s->C > 1) {
			columns(j, &t, k, segment, tile);
		} else if (s->N <= YK_STRIP / 2) {
			count = YK_STRIP / s->N < end - at ? YK_STRIP / s->N : end - at;
			short_runs(j, &t, k, count);
		} else {
			long_run(j, &t, k, segment);
		}
		at += count;
	}
}

enum { JOIN = 256 }; // outputs per work item of the second pass, on its stack

static void join_item(void *arg, int64_t index)
{
	struct job *j = arg;
	const int64_t outputs = j->s.K * j->s.C, first = index * JOIN;
	const int64_t n = outputs - first < JOIN ? outputs - first : JOIN;
	struct yk_acc sums[JOIN];

	memcpy(sums, j->partial + first, (size_t)n * sizeof *sums);
	for (int64_t k = 1; k < j->s.segments; k++)
		j->r->join(j->s.kind, sums, j->partial + k * outputs + first, n);
	for (int64_t i = 0; i < n; i++)
		put(j, first + i, &sums[i]);
}

// The f16 or bf16 input that the program converts to f32 and nothing else; otherwise -1.
static int converted_input(const struct yk_prog *p)
{
	const struct yoke_insn *i = &p->map->insn[p->map->out[0]];
	if (i->op == YOKE_MAP_CAST && i->dtype == yoke_f32)
		i = &p->map->insn[i->a];
	return i->op == YOKE_MAP_INPUT && yk_is_half(i->dtype) && p->in[i->a].linear ? i->a : -1;
}

static void *prepare(const struct yoke_op *op, uint32_t impl)
{
	struct job *j = calloc(1, sizeof *j + ISA(yk_prog_bytes)(op->map));

	(void)impl;
	if (!j)
		return NULL;
	struct shape *s = &j->s;
	shape_init(s, op);
	const int reg = yk_reg(s->value);
	j->dense = yk_dense(&op->out[0]);
	j->r = reg == yoke_f32 ? &ISA(yk_reduce_f32) :
	       reg == yoke_f64 ? &ISA(yk_reduce_f64) :
				 &ISA(yk_reduce_i64);
	j->cast = yk_is_float(s->value) || reg == yoke_i64 ?
			  NULL :
			  ISA(yk_strip_cast)(yoke_i64, reg);
	j->plain = j->half = -1;
	if (!s->N || !s->K || !s->C)
		return j;
	ISA(yk_prog_init)(&j->prog, j + 1, op, s->perm, 0);
	if (j->prog.nstep == 1 && j->prog.step[0].kind == YK_STEP_INPUT && !j->cast &&
	    !yk_is_half(s->value)) {
		const int input = j->prog.step[0].input;
		j->few = s->kind == YOKE_REDUCE_SUM && s->value == yoke_f32 && j->dense &&
			 op->out[0].dtype == yoke_f32 && !j->prog.in[input].scalar &&
			 ISA(yk_reduce_windows_init)(&j->windows, op, &op->in[input]);
		if (j->prog.in[input].linear || j->few)
			j->plain = input;
	}
	if (s->C > 1 && s->kind == YOKE_REDUCE_SUM)
		j->half = converted_input(&j->prog);
	j->even = j->prog.rank == 1 ||
		  (j->prog.rank == 2 && j->prog.row == (s->C > 1 ? s->C : s->N));
	j->units = s->K * s->segments * s->tiles;
	int64_t unit = s->tile * (s->N < s->segment ? s->N : s->segment);
	j->each = unit < PER_ITEM ? PER_ITEM / unit : 1;
	return j;
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	struct job *j = prepared;
	const struct shape *s = &j->s;
	const int64_t outputs = s->K * s->C;

	(void)impl;
	j->out = &op->out[0];
	if (outputs == 0)
		return 0;
	if (s->N == 0) {
		struct yk_acc a;
		j->r->identity(s->kind, &a);
		for (int64_t o = 0; o < outputs; o++)
			put(j, o, &a);
		return 0;
	}
	ISA(yk_prog_bind)(&j->prog, op->map, NULL, op->in, 0);
	j->values = j->plain < 0 ? NULL : j->prog.in[j->plain].base;
	if (j->few) {
		ISA(yk_reduce_windows_run)(&j->windows, yk_ptr(j->out), (const float *)j->values);
		return 0;
	}
	atomic_init(&j->no_memory, false);
	j->partial = s->segments > 1 ? yk_ptr(&op->workspace) : NULL;
	yk_team_run(divide_up(j->units, j->each), item, j);
	if (atomic_load(&j->no_memory))
		return yk_cpu_fail(YOKE_ENOMEM, "reduce: no memory for registers");
	if (j->partial)
		yk_team_run(divide_up(outputs, JOIN), join_item, j);
	return 0;
}

YK_KERNEL(reduce, REDUCE) = {
	.can = can,
	.workspace = workspace,
	.prepare = prepare,
	.run = run,
	.impl = { "two-pass" },
};
