// SPDX-License-Identifier: Apache-2.0
// Prepares a map program for execution: collapses axes, classifies operands, and assigns registers
// by liveness.
#include "config.h"

#include <string.h>

#include "kern_map.h"

enum { OPERANDS = YOKE_MAP_MAX_INPUTS + YOKE_MAP_MAX_OUTPUTS + 1 };
enum { SHORT_ROW = 8 }; // a row of fewer elements may be part of a tile

// Registers are spaced one cache line more than their size apart, so that they do not all start at
// the same set of L1.
enum { UNIFORM_BYTES = YK_BLOCK * 8, PAD = 64 };

// ---- operands ----

static bool uses_index(const struct yoke_map *m)
{
	for (int k = 0; k < m->ninsn; k++)
		if (m->insn[k].op == YOKE_MAP_INDEX)
			return true;
	return false;
}

static void operand_init(struct yk_operand *o, const struct yoke_view *v, const int *perm,
			 int rank)
{
	*o = (struct yk_operand){ .dtype = v->dtype,
				  .size = (uint8_t)yk_esize(v->dtype),
				  .scalar = v->kind == YOKE_VIEW_SCALAR };
	if (o->scalar)
		return;
	for (int d = 0; d < rank; d++)
		o->strides[d] = v->strides[perm[d]];
}

// Drops axes of size 1 and merges neighbours that are contiguous for every operand.
static void collapse(struct yk_prog *p, struct yk_operand **o, int count)
{
	int rank = 0;
	for (int d = 0; d < p->rank; d++) {
		int64_t dim = p->dims[d];
		if (dim == 1)
			continue;
		bool merge = rank > 0;
		for (int k = 0; k < count && merge; k++)
			merge = o[k]->strides[rank - 1] == o[k]->strides[d] * dim;
		if (!merge)
			rank++;
		p->dims[rank - 1] = merge ? p->dims[rank - 1] * dim : dim;
		for (int k = 0; k < count; k++)
			o[k]->strides[rank - 1] = o[k]->strides[d];
	}
	if (rank == 0) {
		p->dims[0] = 1;
		for (int k = 0; k < count; k++)
			o[k]->strides[0] = 1;
		rank = 1;
	}
	p->rank = rank;
}

static void classify(const struct yk_prog *p, struct yk_operand *o)
{
	int64_t dense = 1;
	o->uniform = true, o->linear = !o->scalar;
	for (int d = p->rank - 1; d >= 0; d--) {
		o->uniform &= o->scalar || o->strides[d] == 0 || p->dims[d] == 1;
		o->linear &= o->strides[d] == dense;
		dense *= p->dims[d];
	}
	o->low = 0, o->high = o->size;
	for (int d = 0; d < p->rank; d++) {
		const int64_t x = o->strides[d] * (p->dims[d] - 1) * o->size;
		*(x < 0 ? &o->low : &o->high) += x;
	}
}

static void operands_init(struct yk_prog *p, const struct yoke_op *op, const int *perm,
			  int nout)
{
	static const int as_is[YOKE_MAX_RANK] = { 0, 1, 2, 3, 4, 5, 6, 7 };
	struct yk_operand *o[OPERANDS];
	int count = 0;
	int64_t row_major[YOKE_MAX_RANK], n = 1;

	perm = perm ? perm : as_is;
	for (int d = op->rank - 1; d >= 0; d--) {
		row_major[d] = n;
		n *= op->dims[d];
	}
	p->rank = op->rank, p->n = n, p->nout = nout;
	for (int d = 0; d < op->rank; d++)
		p->dims[d] = op->dims[perm[d]];
	for (int k = 0; k < nout; k++) {
		operand_init(&p->out[k], &op->out[k], perm, op->rank);
		o[count++] = &p->out[k];
	}
	for (int k = 0; k < p->map->nin; k++) {
		operand_init(&p->in[k], &op->in[k], perm, op->rank);
		if (!p->in[k].scalar)
			o[count++] = &p->in[k];
	}
	p->index = (struct yk_operand){ .dtype = yoke_i64, .size = 8 };
	for (int d = 0; d < op->rank; d++)
		p->index.strides[d] = row_major[perm[d]];
	if (uses_index(p->map))
		o[count++] = &p->index;
	if (n == 0)
		return;
	collapse(p, o, count);
	for (int k = 0; k < nout; k++)
		classify(p, &p->out[k]);
	for (int k = 0; k < p->map->nin; k++)
		classify(p, &p->in[k]);
	classify(p, &p->index);
	p->index.uniform = false;
	p->row = p->dims[p->rank - 1];
	p->tile = p->row < SHORT_ROW ? 1 : 0;
	for (p->tile_axis = p->rank - 1; p->tile && p->tile_axis > 0; p->tile_axis--) {
		if (p->tile * p->dims[p->tile_axis] > YK_MAX_TILE)
			break;
		p->tile *= p->dims[p->tile_axis];
	}
	if (p->tile_axis == p->rank - 1)
		p->tile = 0;
}

// ---- liveness ----

struct life {
	// the last instruction that uses it; ninsn: stored at the end
	int last[YOKE_MAP_MAX_INSNS];
	int reader[YOKE_MAP_MAX_INSNS]; // the same, counting instructions only; 0: none
	bool used[YOKE_MAP_MAX_INSNS]; // used by a computed value, or an output
	bool kept[YOKE_MAP_MAX_INSNS]; // used by instructions, not only stored
	uint8_t reads[YOKE_MAP_MAX_INSNS]; // number of uses
};

// True for RAND with INDEX as index and uniform key and step: the counters are consecutive.
static bool random_run(const struct yk_prog *p, const struct yoke_insn *i)
{
	return i->op == YOKE_MAP_RAND && p->map->insn[i->a].op == YOKE_MAP_INDEX &&
	       p->index.linear && p->uniform[i->b] && p->uniform[i->c];
}

static void life_init(struct life *l, const struct yk_prog *p)
{
	const struct yoke_map *m = p->map;
	int used[3];

	memset(l, 0, sizeof *l);
	for (int k = 0; k < m->nout; k++) {
		l->used[m->out[k]] = true;
		l->last[m->out[k]] = m->ninsn;
		l->kept[m->out[k]] |= p->nout == 0;
		l->reads[m->out[k]]++;
	}
	for (int k = m->ninsn - 1; k >= 0; k--) {
		int n = l->used[k] ? ISA(yk_map_operands)(&m->insn[k], used) : 0;
		const int at = p->fold[k] ? p->fold[k] : k; // where it is read
		for (int j = random_run(p, &m->insn[k]) ? 1 : 0; j < n; j++) {
			l->used[used[j]] = l->kept[used[j]] = true;
			l->reads[used[j]]++;
			if (l->last[used[j]] < at)
				l->last[used[j]] = at;
			if (l->reader[used[j]] < at)
				l->reader[used[j]] = at;
		}
	}
}

static void find_uniform(struct yk_prog *p)
{
	const struct yoke_map *m = p->map;
	for (int k = 0; k < m->ninsn; k++) {
		const struct yoke_insn *i = &m->insn[k];
		int used[3], n = ISA(yk_map_operands)(i, used);
		bool u = i->op == YOKE_MAP_INPUT ? p->in[i->a].uniform :
						   i->op != YOKE_MAP_INDEX;
		for (int j = 0; j < n; j++)
			u &= p->uniform[used[j]];
		p->uniform[k] = u;
	}
}

// ---- outputs in place ----

static bool overlap(const struct yk_operand *a, const struct yk_operand *b)
{
	const uintptr_t pa = (uintptr_t)a->base, pb = (uintptr_t)b->base;

	return pa + (uintptr_t)a->low < pb + (uintptr_t)b->high &&
	       pb + (uintptr_t)b->low < pa + (uintptr_t)a->high;
}

// True if value k may be written to output o as soon as it is computed: no input in the same memory
// may be read later.
static bool may_write(const struct yk_prog *p, const struct life *l, int k, int o)
{
	const struct yoke_map *m = p->map;
	for (int j = 0; j < m->ninsn; j++) {
		const struct yoke_insn *i = &m->insn[j];
		if (i->op == YOKE_MAP_INPUT && l->used[j] && !p->uniform[j] &&
		    (l->last[j] > k || j > k) && p->over[o] >> i->a & 1)
			return false;
	}
	return true;
}

static void place_outputs(struct yk_prog *p, const struct life *l)
{
	for (int o = 0; o < p->nout; o++) {
		int k = p->map->out[o];
		int op = p->map->insn[k].op;
		bool direct = !p->uniform[k] && op != YOKE_MAP_INPUT &&
			      op != YOKE_MAP_INDEX && may_write(p, l, k, o);
		for (int j = 0; j < o; j++)
			direct &= p->direct[j] != k;
		p->direct[o] = direct ? k : -1;
	}
}

// ---- registers ----

// Rough cost of an instruction in additions; used only to choose the size of work items.
static int cost(const struct yoke_insn *i)
{
	int wide = yk_reg(i->dtype) == yoke_f64 ? 8 : 1;
	if (i->op == YOKE_MAP_RAND)
		return 16;
	if ((i->op >= YOKE_MAP_EXP && i->op <= YOKE_MAP_EXPM1) ||
	    (i->op >= YOKE_MAP_SIN && i->op <= YOKE_MAP_ERF) ||
	    i->op == YOKE_MAP_NORMAL || i->op == YOKE_MAP_POW || i->op == YOKE_MAP_MOD)
		return 8 * wide;
	return 1;
}

static bool rounds(int op)
{
	switch (op) {
	case YOKE_MAP_INPUT:
	case YOKE_MAP_CONST:
	case YOKE_MAP_MIN:
	case YOKE_MAP_MAX:
	case YOKE_MAP_NEG:
	case YOKE_MAP_ABS:
	case YOKE_MAP_SIGN:
	case YOKE_MAP_FLOOR:
	case YOKE_MAP_ROUND:
	case YOKE_MAP_CEIL:
	case YOKE_MAP_SELECT: return false; // exact
	default: return true;
	}
}

struct pool {
	int32_t place[YOKE_MAP_MAX_INSNS];
	// bytes per element; bytes of the register
	size_t size[YOKE_MAP_MAX_INSNS], capacity[YOKE_MAP_MAX_INSNS];
	int owner[YOKE_MAP_MAX_INSNS]; // the value in each register; -1: free
	int count;
	size_t bytes;
};

static int32_t take(struct pool *r, int value, size_t size, size_t capacity)
{
	int k = 0;
	while (k < r->count &&
	       (r->owner[k] >= 0 || r->size[k] != size || r->capacity[k] != capacity))
		k++;
	if (k == r->count) {
		r->count++;
		r->size[k] = size;
		r->capacity[k] = capacity;
		r->place[k] = (int32_t)r->bytes;
		r->bytes += capacity;
	}
	r->owner[k] = value;
	return r->place[k];
}

// Releases registers before instruction `now` gets one: the result may replace an operand block by
// block. A value that is one block, read repeatedly, keeps its register, because a chain reads it
// again for the next block.
static void release_registers(struct pool *r, const struct life *l, const struct yk_prog *p,
		      int now)
{
	for (int k = 0; k < r->count; k++) {
		int value = r->owner[k];
		if (value < 0)
			continue;
		const struct yoke_insn *i = &p->map->insn[value];
		bool repeats =
			i->op == YOKE_MAP_INPUT && p->in[i->a].strides[p->rank - 1] == 0;
		if (l->last[value] <= now && !repeats)
			r->owner[k] = -1;
	}
}

static void step_init(struct yk_prog *p, struct yk_step *s, int k, const struct life *l)
{
	const struct yoke_insn *i = &p->map->insn[k];
	int used[3];
	int n = ISA(yk_map_operands)(i, used);

	*s = (struct yk_step){ .value = (uint8_t)k, .kind = YK_STEP_FN, .out = -1 };
	s->a = (uint8_t)(n > 0 ? used[0] : k);
	s->b = (uint8_t)(n > 1 ? used[1] : s->a);
	s->c = (uint8_t)(n > 2 ? used[2] : s->a);
	if (i->op == YOKE_MAP_INPUT) {
		s->kind = YK_STEP_INPUT;
		s->input = (uint8_t)i->a;
		s->load = ISA(yk_load)(i->dtype);
		// stored at the end, after other outputs that may overwrite the input
		s->copy = l->last[k] == p->map->ninsn && p->nout > 1;
	} else if (i->op == YOKE_MAP_INDEX) {
		s->kind = YK_STEP_INDEX;
	} else if (i->op == YOKE_MAP_RAND) {
		s->kind = YK_STEP_RANDOM;
	} else if (i->op != YOKE_MAP_CONST) {
		s->fn = ISA(yk_map_strip)(p->map, i);
	}
	if (yk_is_half(i->dtype) && rounds(i->op) && (l->kept[k] || p->uniform[k]))
		s->round = ISA(yk_strip_round)(i->dtype);
	for (int o = 0; o < p->nout; o++)
		if (p->direct[o] == k)
			s->out = (int8_t)o;
}

static void registers(struct yk_prog *p, const struct life *life)
{
	const struct yoke_map *m = p->map;
	struct pool pool = { .count = 0 };

	for (int k = 0; k < m->ninsn; k++)
		pool.bytes += p->uniform[k] && life->used[k] ? UNIFORM_BYTES : 0;
	for (int k = 0, uniform = 0; k < p->nstep; k++) {
		struct yk_step *s = &p->step[k];
		if (p->uniform[s->value]) {
			s->place = uniform;
			uniform += UNIFORM_BYTES;
			continue;
		}
		if (s->kind != YK_STEP_INPUT) // inputs come first
			release_registers(&pool, life, p, s->value);
		const size_t size = yk_esize(yk_reg(m->insn[s->value].dtype));
		s->place = take(&pool, s->value, size,
				s->local ? YK_BLOCK * sizeof(float) :
					   size * YK_STRIP + PAD);
		p->cost += cost(&m->insn[s->value]);
	}
	p->frame = pool.bytes;
}

size_t ISA(yk_prog_bytes)(const struct yoke_map *m)
{
	return m->ninsn * (sizeof(struct yk_step) + YK_FORMS * sizeof(struct yk_form));
}

void ISA(yk_prog_init)(struct yk_prog *p, void *memory, const struct yoke_op *op, const int *perm,
		       int nout)
{
	const struct yoke_map *m = op->map;
	struct life life;

	p->map = m;
	p->step = memory;
	p->form = (struct yk_form *)(p->step + m->ninsn);
	p->nstep = 0, p->cost = 0, p->frame = 0, p->nform = 0;
	operands_init(p, op, perm, nout);
	if (p->n == 0)
		return;
	find_uniform(p);
	memset(p->fold, 0, sizeof p->fold);
	life_init(&life, p);
	ISA(yk_prog_fold)(p, life.reads);
	life_init(&life, p);
	place_outputs(p, &life);
	// inputs first, so that they do not interrupt a chain
	for (int input = 1; input >= 0; input--)
		for (int k = 0; k < m->ninsn; k++)
			if (life.used[k] &&
			    (m->insn[k].op == YOKE_MAP_INPUT && !p->uniform[k]) == input)
				step_init(p, &p->step[p->nstep++], k, &life);
	ISA(yk_prog_local)(p);
	registers(p, &life);
	ISA(yk_prog_link)(p, life.reader);
}

void ISA(yk_prog_stream)(struct yk_prog *p)
{
	for (int o = 0; o < p->nout; o++) {
		const struct yk_operand *to = &p->out[o];
		bool stream = p->once[o] && p->n >= yk_stream_bytes / to->size;
		for (int k = 0; k < p->nstep && stream; k++) {
			const struct yk_step *s = &p->step[k];
			stream = s->kind != YK_STEP_INPUT || p->uniform[s->value] ||
				 !(p->over[o] >> s->input & 1);
		}
		p->stream[o] = stream;
	}
}

bool ISA(yk_prog_bind)(struct yk_prog *p, const struct yoke_map *map, const struct yoke_view *out,
		       const struct yoke_view *in, int first)
{
	bool same = true;

	p->map = map;
	for (int k = first; k < map->nin; k++) {
		struct yk_operand *o = &p->in[k];
		if (o->scalar)
			o->bits = in[k].offset;
		else
			o->base = yk_ptr(&in[k]);
	}
	for (int o = 0; o < p->nout; o++) {
		uint16_t over = 0;
		p->out[o].base = yk_ptr(&out[o]);
		for (int k = first; k < map->nin; k++)
			if (!p->in[k].uniform && overlap(&p->in[k], &p->out[o]))
				over |= (uint16_t)(1 << k);
		same &= over == p->over[o];
		p->over[o] = over;
	}
	return same;
}
