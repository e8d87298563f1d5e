// SPDX-License-Identifier: Apache-2.0
// Makes chains of a prepared program: which steps run as links, and which of their values
// have to be in memory.
#include "config.h"

#include "kern_map_chain.h"

struct builder {
	struct yk_prog *prog;
	const int *reader;
	int in_registers; // the value, -1: none
};

static int dtype_of(const struct yk_prog *p, int value)
{
	return p->map->insn[value].dtype;
}

static bool in_f32(const struct yk_prog *p, int value)
{
	return yk_reg(dtype_of(p, value)) == yoke_f32;
}

static bool can_link(const struct yk_prog *p, const struct yk_step *s)
{
	const struct yoke_insn *i = &p->map->insn[s->value];
	if (s->kind != YK_STEP_FN || p->uniform[s->value])
		return false;
	switch (i->op) {
	case YOKE_MAP_UNIFORM: return in_f32(p, s->value);
	case YOKE_MAP_CAST: return in_f32(p, s->value) && in_f32(p, s->a);
	case YOKE_MAP_SELECT: return in_f32(p, s->value);
	default:
		return in_f32(p, s->a) && (ISA(yk_link_op)(i->op, YK_LINK_M) ||
					   ISA(yk_link_op)(i->op, YK_LINK_MM));
	}
}

static void append(struct builder *b, yk_link_fn *fn, int v0, int v1, int v2)
{
	b->prog->form[b->prog->nform++] = (struct yk_form){
		.fn = (void (*)(void))fn,
		.value = { (int8_t)v0, (int8_t)v1, (int8_t)v2 },
		.out = -1,
	};
}

static void append_store(struct builder *b, int dtype, int value, int out)
{
	append(b, ISA(yk_link_store)(dtype, false), value, -1, -1);
	b->prog->form[b->prog->nform - 1].store = true;
	b->prog->form[b->prog->nform - 1].out = (int8_t)out;
}

// The instruction; what is in registers is taken from there.
static void instruction(struct builder *b, const struct yk_step *s)
{
	const int op = b->prog->map->insn[s->value].op, have = b->in_registers;
	enum yk_link_way way;

	if (op == YOKE_MAP_SELECT) {
		int k = s->a == have ? 0 : s->b == have ? 1 : s->c == have ? 2 : -1;
		append(b, ISA(yk_link_select)(k), s->a, s->b, s->c);
	} else if (op == YOKE_MAP_CAST) {
		if (s->a != have)
			append(b, ISA(yk_link_load), s->a, -1, -1);
	} else if (ISA(yk_link_op)(op, YK_LINK_M)) {
		way = s->a == have ? YK_LINK_A : YK_LINK_M;
		append(b, ISA(yk_link_op)(op, way), s->a, -1, -1);
	} else {
		way = s->a != have ? s->b == have ? YK_LINK_MA : YK_LINK_MM :
		      s->b == have ? YK_LINK_AA :
				     YK_LINK_AM;
		append(b, ISA(yk_link_op)(op, way), way == YK_LINK_AM ? s->b : s->a, s->b,
		       -1);
	}
	b->in_registers = s->value;
}

// Does the step find all it reads of the value in registers?
static bool takes(const struct yk_prog *p, const struct yk_step *s, int value)
{
	int times = (s->a == value) + (s->b == value) + (s->c == value);
	return p->map->insn[s->value].op != YOKE_MAP_SELECT || times == 1;
}

// Stores what the step has computed, if it is wanted in memory; next: the following link's
// step or NULL.
static void keep(struct builder *b, const struct yk_step *s, const struct yk_step *next)
{
	struct yk_prog *p = b->prog;
	const int v = s->value, dtype = dtype_of(p, v);
	const bool half = yk_is_half(dtype);
	bool read = b->reader[v] && !(next && b->reader[v] == next->value &&
				      takes(p, next, v));
	bool output = false; // to be stored from the register at the end

	for (int o = 0; o < p->map->nout; o++)
		output |= p->map->out[o] == v && (p->nout == 0 || p->direct[o] != v);
	if (s->out >= 0 && !read && !output)
		p->once[s->out] = dtype != yoke_bool;
	if (s->out >= 0)
		append_store(b, dtype, v, s->out);
	if ((read || output) && (half || s->out < 0))
		append_store(b, dtype == yoke_bool ? YK_LINK_MASK : yoke_f32, v, -1);
}

static int chain(struct builder *b, int first)
{
	struct yk_prog *p = b->prog;
	int at = first, after;

	b->in_registers = -1;
	for (; at < p->nstep && can_link(p, &p->step[at]); at = after) {
		const struct yk_step *s = &p->step[at];
		for (after = at + 1; after < p->nstep && p->uniform[p->step[after].value];)
			after++;
		bool last = after == p->nstep || !can_link(p, &p->step[after]);
		instruction(b, s);
		if (s->round)
			append(b, ISA(yk_link_round)(dtype_of(p, s->value)), -1, -1, -1);
		keep(b, s, last ? NULL : &p->step[after]);
	}
	append(b, ISA(yk_link_end), -1, -1, -1);
	return at;
}

void ISA(yk_prog_link)(struct yk_prog *p, const int *reader)
{
	struct builder b = { .prog = p, .reader = reader };

	for (int o = 0; o < p->nout; o++)
		p->once[o] = p->stream[o] = false;
	for (int k = 0; k < p->nstep;) {
		struct yk_step *s = &p->step[k];
		if (!can_link(p, s)) {
			k++;
			continue;
		}
		s->form = (uint16_t)p->nform;
		int end = chain(&b, k);
		s->chain = (uint8_t)(end - k);
		k = end;
	}
	p->links = (p->frame + 63) / 64 * 64;
	p->frame = p->links + (size_t)p->nform * sizeof(struct yk_link);
}
