// SPDX-License-Identifier: Apache-2.0
// SCAN_MAP: runs a map program step by step along one axis, with some inputs carried over from the
// previous step.
//
// Positions along the other axes are independent: the program's strip functions process strips of
// positions, step after step. Operands that are not contiguous across a strip are transposed in
// blocks of steps, position by position, so that each cache line is read once.
#include "config.h"

#include <stdatomic.h>
#include <string.h>

#include "../host/scalar.h"
#include "../move/walk.h"
#include "kern_map.h"

enum {
	WIDE = 256, NARROW = 64, // positions per strip ...
	MANY = 24, // ... for programs with fewer instructions than this, and with more
	COLUMNS = 32,            // min positions of the last axis for strips along it
	BLOCK = 16,              // steps per block
	PER_ITEM = 1 << 18          // approximate additions per work item
};

enum { OPERANDS = YOKE_MAP_MAX_OUTPUTS + YOKE_MAP_MAX_INPUTS };

struct operand {
	char *base; // at the first step; NULL: an absent output, or a SCALAR
	uint64_t bits;
	int64_t along;                // stride between steps
	int64_t stride[YOKE_MAX_RANK]; // strides along the axes of positions
	int64_t size;
	bool apart;   // transposed in blocks
	size_t block; // offset of the block in the thread's memory, one row per step
};

struct job {
	const struct yoke_map *map;
	yk_strip_fn *fn[YOKE_MAP_MAX_INSNS], *round[YOKE_MAP_MAX_INSNS];
	bool result[YOKE_MAP_MAX_INSNS]; // its memory may be overwritten before it is stored
	struct operand out[YOKE_MAP_MAX_OUTPUTS], in[YOKE_MAP_MAX_INPUTS];
	int carried, rank; // rank: number of position axes; strips are along the last
	int64_t dims[YOKE_MAX_RANK], steps, width, strips, units, each;
	size_t bytes; // bytes of a thread's registers
	atomic_bool no_memory;
};

static uint64_t can(const struct yoke_op *op)
{
	const struct yoke_map *m = op->map;

	if (!ISA(yk_map_check)(op) || op->nattr < 3 || op->attr[0].i < 0 ||
	    op->attr[0].i >= op->rank || op->attr[2].i < 0 || op->attr[2].i > m->nin ||
	    op->attr[2].i > m->nout || op->nin != m->nin || op->nout != m->nout)
		return 0;
	for (int k = 0; k < m->ninsn; k++)
		if (m->insn[k].op == YOKE_MAP_INDEX || m->insn[k].op == YOKE_MAP_RAND)
			return 0;
	for (int k = 0; k < m->nout; k++) {
		const struct yoke_view *o = &op->out[k];
		const int first = k - m->nout + m->nin, dtype = m->insn[m->out[k]].dtype;
		if (k + op->attr[2].i >= m->nout && op->in[first].dtype != dtype)
			return 0;
		if (o->kind != YOKE_VIEW_NONE &&
		    (o->kind != YOKE_VIEW_BUFFER || o->rank != op->rank || o->dtype != dtype))
			return 0;
	}
	return 1;
}

// ---- operands ----

static void operand_init(struct operand *o, const struct yoke_op *op, const struct yoke_view *v)
{
	const int axis = (int)op->attr[0].i;

	*o = (struct operand){ .size = (int64_t)yk_esize(v->dtype) };
	if (v->kind == YOKE_VIEW_SCALAR)
		o->bits = v->offset;
	if (v->kind != YOKE_VIEW_BUFFER)
		return;
	const int64_t last = op->attr[1].i ? v->dims[axis] - 1 : 0;
	o->along = v->dims[axis] == 1 ? 0 : v->strides[axis];
	o->base = (char *)yk_ptr(v) + (v->dims[axis] ? last * o->along * o->size : 0);
	o->along = op->attr[1].i ? -o->along : o->along;
	for (int d = 0, k = 0; d < op->rank; d++)
		if (d != axis)
			o->stride[k++] = v->strides[d];
}

// Drops axes of size 1 and merges neighbours that are contiguous for all operands. Strips are along
// the last axis, or along the longest if the last is short.
static void axes_init(struct job *j, const struct yoke_op *op, struct operand **o, int count)
{
	int n = 0, kept = 0, longest = 0;

	for (int d = 0; d < op->rank; d++) {
		if (d == op->attr[0].i)
			continue;
		const int from = n++;
		if (op->dims[d] == 1)
			continue;
		bool merge = kept > 0;
		for (int k = 0; k < count && merge; k++)
			merge = o[k]->stride[kept - 1] == o[k]->stride[from] * op->dims[d];
		kept += !merge;
		j->dims[kept - 1] = merge ? j->dims[kept - 1] * op->dims[d] : op->dims[d];
		for (int k = 0; k < count; k++)
			o[k]->stride[kept - 1] = o[k]->stride[from];
	}
	if (!kept) {
		j->dims[kept++] = 1;
		for (int k = 0; k < count; k++)
			o[k]->stride[0] = 0;
	}
	j->rank = kept;
	for (int d = 1; d < kept; d++)
		longest = j->dims[d] > j->dims[longest] ? d : longest;
	if (j->dims[kept - 1] >= COLUMNS)
		return;
	const int64_t t = j->dims[kept - 1];
	j->dims[kept - 1] = j->dims[longest];
	j->dims[longest] = t;
	for (int k = 0; k < count; k++) {
		const int64_t s = o[k]->stride[kept - 1];
		o[k]->stride[kept - 1] = o[k]->stride[longest];
		o[k]->stride[longest] = s;
	}
}

// One cache line more than the content, so that registers do not all start at the same set of L1.
static size_t register_bytes(const struct job *j)
{
	return (size_t)j->width * 8 + 64;
}

static void init(struct job *j, const struct yoke_op *op)
{
	const struct yoke_map *m = j->map = op->map;
	struct operand *o[OPERANDS];
	int count = 0;

	for (int k = 0; k < m->nout; k++) {
		operand_init(&j->out[k], op, &op->out[k]);
		o[count++] = &j->out[k];
	}
	for (int k = 0; k < m->nin; k++) {
		operand_init(&j->in[k], op, &op->in[k]);
		o[count++] = &j->in[k];
	}
	axes_init(j, op, o, count);
	j->carried = (int)op->attr[2].i;
	j->steps = op->dims[op->attr[0].i];
	j->width = m->ninsn < MANY ? WIDE : NARROW;
	for (int k = 0; k < count; k++) {
		const bool carried = k < m->nout ? k + j->carried >= m->nout :
						   k - m->nout + j->carried >= m->nin;
		const int64_t across = o[k]->stride[j->rank - 1];
		o[k]->apart = !carried && o[k]->base && across != 0 && across != 1;
		j->width = o[k]->apart ? NARROW : j->width;
	}
	for (int k = 0; k < m->ninsn; k++) {
		const struct yoke_insn *i = &m->insn[k];
		const bool computed = i->op != YOKE_MAP_INPUT && i->op != YOKE_MAP_CONST;
		j->fn[k] = computed ? ISA(yk_map_strip)(m, i) : NULL;
		j->round[k] = computed ? ISA(yk_strip_round)(i->dtype) : NULL;
	}
	for (int k = 0; k < m->nout; k++)
		j->result[m->out[k]] = true;
	j->bytes = (size_t)(m->ninsn + 2 * j->carried) * register_bytes(j);
	for (int k = 0; k < count; k++)
		if (o[k]->apart) {
			o[k]->block = j->bytes;
			j->bytes += (size_t)(BLOCK * j->width * o[k]->size) + 64;
		}
	j->strips = (j->dims[j->rank - 1] + j->width - 1) / j->width;
	j->units = j->strips;
	for (int d = 0; d < j->rank - 1; d++)
		j->units *= j->dims[d];
	const int64_t columns = j->strips > 1 ? j->width : j->dims[j->rank - 1];
	j->each = PER_ITEM / ((columns + 16) * (j->steps + 1) * m->ninsn) + 1;
}

// ---- a strip ----

struct strip {
	const struct job *job;
	int64_t n;
	// element offset of each operand's first position: outputs, then inputs
	int64_t at[OPERANDS];
	char *memory;
	char *reg[YOKE_MAP_MAX_INSNS], *state[2][YOKE_MAP_MAX_INPUTS];
	struct yk_arg value[YOKE_MAP_MAX_INSNS];
};

#define TURN(name, T) \
	static void name(void *block, int64_t width, void *buffer, int64_t along, int64_t across, \
			 int64_t steps, int64_t n, bool out) \
	{ \
		T *row = block, *at = buffer; \
		for (int64_t c = 0; c < n; c++, row++, at += across) \
			for (int64_t t = 0; t < steps; t++) \
				if (out) \
					at[t * along] = row[t * width]; \
				else \
					row[t * width] = at[t * along]; \
	}
TURN(turn_1, uint8_t)
TURN(turn_2, uint16_t)
TURN(turn_4, uint32_t)
TURN(turn_8, uint64_t)

// Transposes a block of steps from `step` on, into its rows or back.
static void turn(const struct strip *s, const struct operand *o, int64_t at, int64_t step, bool out)
{
	const struct job *j = s->job;
	const int64_t steps = j->steps - step < BLOCK ? j->steps - step : BLOCK;

	(o->size == 1 ? turn_1 :
	 o->size == 2 ? turn_2 :
	 o->size == 4 ? turn_4 :
			turn_8)(s->memory + o->block, j->width,
				o->base + (at + step * o->along) * o->size, o->along,
				o->stride[j->rank - 1], steps, s->n, out);
}

// Address of n elements of an operand at a step, and their stride.
static char *place(const struct strip *s, const struct operand *o, int64_t at, int64_t step,
		   int64_t *across)
{
	*across = o->apart ? 1 : o->stride[s->job->rank - 1];
	return o->apart ? s->memory + o->block + step % BLOCK * s->job->width * o->size :
			  o->base + (at + step * o->along) * o->size;
}

// n elements of an operand at a step: in place, or copied to `to`.
static struct yk_arg load(const struct strip *s, const struct operand *o, int64_t at, int dtype,
			  int64_t step, bool copy, char *to)
{
	int64_t across = 0;
	const char *from =
		o->base ? place(s, o, at, step, &across) : yk_low_bytes(&o->bits, yk_esize(dtype));

	if (o->apart && step % BLOCK == 0)
		turn(s, o, at, step, false);
	if (o->base && across == 1 && !yk_is_half(dtype) && !copy)
		return (struct yk_arg){ from, YK_BLOCK };
	if (o->base && across) {
		ISA(yk_load)(dtype)(to, from, across, s->n);
		return (struct yk_arg){ to, YK_BLOCK };
	}
	ISA(yk_load)(dtype)(to, from, 0, s->n < YK_BLOCK ? s->n : YK_BLOCK);
	return (struct yk_arg){ to, 0 };
}

static void store(const struct strip *s, const struct operand *o, int64_t at, int dtype,
		  int64_t step, const struct yk_arg *v)
{
	const int64_t some = v->step ? s->n : YK_BLOCK;
	int64_t across;

	if (!o->base)
		return;
	char *to = place(s, o, at, step, &across);
	for (int64_t i = 0; i < s->n; i += some)
		ISA(yk_store)
		(dtype)(to + i * across * o->size, v->at, across,
			s->n - i < some ? s->n - i : some);
	if (o->apart && (step % BLOCK == BLOCK - 1 || step == s->job->steps - 1))
		turn(s, o, at, step - step % BLOCK, true);
}

// Expands a value to one per element in `to`.
static void spread(const struct strip *s, int dtype, const struct yk_arg *v, char *to)
{
	const int64_t size = (int64_t)yk_esize(yk_reg(dtype)), some = v->step ? s->n : YK_BLOCK;

	for (int64_t i = 0; i < s->n; i += some)
		memcpy(to + i * size, v->at, (size_t)((s->n - i < some ? s->n - i : some) * size));
}

static void take_step(struct strip *s, int64_t step)
{
	const struct job *j = s->job;
	const struct yoke_map *m = j->map;
	const int first = m->nin - j->carried;

	for (int k = 0; k < m->ninsn; k++) {
		const struct yoke_insn *i = &m->insn[k];
		int used[3];
		if (i->op == YOKE_MAP_CONST)
			continue;
		if (i->op == YOKE_MAP_INPUT && i->a >= first) {
			s->value[k] = (struct yk_arg){ s->state[step & 1][i->a], YK_BLOCK };
			continue;
		}
		if (i->op == YOKE_MAP_INPUT) {
			s->value[k] = load(s, &j->in[i->a], s->at[m->nout + i->a], i->dtype, step,
					   j->result[k], s->reg[k]);
			continue;
		}
		const int n = ISA(yk_map_operands)(i, used);
		const struct yk_arg *a = &s->value[used[0]], *b = n > 1 ? &s->value[used[1]] : a,
				    *c = n > 2 ? &s->value[used[2]] : a;
		s->value[k] = (struct yk_arg){ s->reg[k], YK_BLOCK };
		j->fn[k](s->reg[k], a, b, c, s->n);
		if (j->round[k])
			j->round[k](s->reg[k], &s->value[k], NULL, NULL, s->n);
	}
	for (int k = 0; k < m->nout; k++) {
		const int dtype = m->insn[m->out[k]].dtype, input = k - m->nout + m->nin;
		if (k + j->carried >= m->nout)
			spread(s, dtype, &s->value[m->out[k]], s->state[(step + 1) & 1][input]);
		else
			store(s, &j->out[k], s->at[k], dtype, step, &s->value[m->out[k]]);
	}
}

static void run_strip(struct strip *s)
{
	const struct job *j = s->job;
	const struct yoke_map *m = j->map;

	for (int k = m->nin - j->carried; k < m->nin; k++) {
		const int dtype = m->insn[m->out[k - m->nin + m->nout]].dtype;
		const struct yk_arg v =
			load(s, &j->in[k], s->at[m->nout + k], dtype, 0, true, s->state[1][k]);
		spread(s, dtype, &v, s->state[0][k]);
	}
	for (int64_t step = 0; step < j->steps; step++)
		take_step(s, step);
	for (int k = m->nout - j->carried; k < m->nout; k++) {
		const struct yk_arg last = { s->state[j->steps & 1][k - m->nout + m->nin],
					     YK_BLOCK };
		store(s, &j->out[k], s->at[k], m->insn[m->out[k]].dtype, 0, &last);
	}
}

// ---- work items ----

static void strip_init(struct strip *s, const struct job *j, char *memory)
{
	const struct yoke_map *m = j->map;
	const size_t each = register_bytes(j);

	s->job = j;
	s->memory = memory;
	for (int k = 0; k < m->ninsn; k++, memory += each) {
		struct operand constant = { .bits = m->insn[k].op == YOKE_MAP_CONST ?
							    m->konst[m->insn[k].a] :
							    0 };
		s->reg[k] = memory;
		s->n = j->width;
		if (m->insn[k].op == YOKE_MAP_CONST)
			s->value[k] = load(s, &constant, 0, m->insn[k].dtype, 0, true, memory);
	}
	for (int k = m->nin - j->carried; k < m->nin; k++)
		for (int i = 0; i < 2; i++, memory += each)
			s->state[i][k] = memory;
}

static void item(void *arg, int64_t index)
{
	struct job *j = arg;
	const struct yoke_map *m = j->map;
	const int64_t end = (index + 1) * j->each < j->units ? (index + 1) * j->each : j->units;
	const int inner = j->rank - 1;
	char *memory = yk_team_scratch(j->bytes);
	struct strip s;

	if (!memory) {
		atomic_store(&j->no_memory, true);
		return;
	}
	strip_init(&s, j, memory);
	for (int64_t unit = index * j->each; unit < end; unit++) {
		const int64_t outer = unit / j->strips, column = unit % j->strips * j->width;
		const int64_t left = j->dims[inner] - column;
		s.n = left < j->width ? left : j->width;
		for (int k = 0; k < m->nout + m->nin; k++) {
			const struct operand *o = k < m->nout ? &j->out[k] : &j->in[k - m->nout];
			s.at[k] = offset_of(j->dims, o->stride, inner, outer) +
				  column * o->stride[inner];
		}
		run_strip(&s);
	}
}

static int run(const struct yoke_op *op, uint32_t impl, void *prepared)
{
	struct job j = { .steps = 0 };

	(void)impl, (void)prepared;
	init(&j, op);
	atomic_init(&j.no_memory, false);
	yk_team_run((j.units + j.each - 1) / j.each, item, &j);
	return atomic_load(&j.no_memory) ?
		       yk_cpu_fail(YOKE_ENOMEM, "scan_map: no memory for registers") : 0;
}

YK_KERNEL(scan_map, SCAN_MAP) = { .can = can, .run = run, .impl = { "strips" } };
