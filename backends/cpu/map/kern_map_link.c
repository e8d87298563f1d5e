// SPDX-License-Identifier: Apache-2.0
// Divides a prepared program into chains: determines which steps run as links, and which of their
// values must be stored to memory.
#include "config.h"

#include "kern_map_chain.h"

struct builder {
	struct yk_prog *prog;
	const int *reader;
	int in_registers; // the value held in registers; -1: none
	bool narrow[YOKE_MAP_MAX_INSNS], local[YOKE_MAP_MAX_INSNS];
};

static int dtype_of(const struct yk_prog *p, int value)
{
	return p->map->insn[value].dtype;
}

static bool in_f32(const struct yk_prog *p, int value)
{
	return yk_reg(dtype_of(p, value)) == yoke_f32;
}

// The links of the value's opcode, by the dtype of its operands.
static struct yk_links op_of(const struct yk_prog *p, int value, enum yk_link_way way)
{
	const struct yoke_insn *i = &p->map->insn[value];
	// UNIFORM takes the bits of an i32
	const int dtype = i->op == YOKE_MAP_UNIFORM ? yoke_f32 : yk_reg(dtype_of(p, i->a));
	return ISA(yk_link_op)(i->op, dtype, way);
}

static bool has_op(const struct yk_prog *p, int value, enum yk_link_way way)
{
	return yk_is_link(op_of(p, value, way));
}

static bool can_link(const struct yk_prog *p, int value)
{
	const struct yoke_insn *i = &p->map->insn[value];
	const int dtype = yk_reg(i->dtype);
	if (p->uniform[value])
		return false;
	switch (i->op) {
	case YOKE_MAP_INPUT:
	case YOKE_MAP_INDEX:
	case YOKE_MAP_RAND: return false;
	case YOKE_MAP_UNIFORM: return dtype == yoke_f32;
	case YOKE_MAP_SELECT: return dtype == yoke_f32 || dtype == yoke_i32;
	case YOKE_MAP_CAST: // to half precision, integers are not rounded twice
		return (dtype == yoke_f32 && in_f32(p, i->a)) ||
		       (!yk_is_half(i->dtype) &&
			yk_is_link(ISA(yk_link_cast)(dtype, yk_reg(dtype_of(p, i->a)), true)));
	default: return has_op(p, value, YK_LINK_A) || has_op(p, value, YK_LINK_AM);
	}
}

// ---- products computed by the instruction that reads them ----

// True for the product of a uniform value and a value in memory.
static bool is_scaled(const struct yk_prog *p, int value)
{
	const struct yoke_insn *i = &p->map->insn[value];
	return i->op == YOKE_MAP_MUL && i->dtype == yoke_f32 && !p->uniform[value] &&
	       p->uniform[i->a] != p->uniform[i->b];
}

// True if the value is computed for each element.
static bool is_step(const struct yk_prog *p, const uint8_t *reads, int value)
{
	return reads[value] && !p->uniform[value] && p->map->insn[value].op != YOKE_MAP_INPUT;
}

// The value that a chain holds in registers before instruction k: the last one computed, ignoring
// `but` and values computed by other links. -1: none.
static int before(const struct yk_prog *p, const uint8_t *reads, int k, int but)
{
	int at = k - 1;

	while (at >= 0 && (at == but || !is_step(p, reads, at) || p->fold[at]))
		at--;
	return at >= 0 && can_link(p, at) ? at : -1;
}

static int scaled_of(const struct yk_prog *p, int value)
{
	const struct yoke_insn *i = &p->map->insn[value];
	return p->uniform[i->a] ? i->b : i->a;
}

// True if k's link can compute y, an operand of k, from memory, while the other operand is in
// registers.
static bool can_fold(const struct yk_prog *p, const uint8_t *reads, int y, int k)
{
	const struct yoke_insn *i = &p->map->insn[k];
	const int other = i->a == y ? i->b : i->a;

	for (int at = y + 1; at < k; at++) // must be within one chain
		if (is_step(p, reads, at) && !can_link(p, at))
			return false;
	return yk_is_link(ISA(yk_link_fold)(i->op, i->a == y)) && reads[y] == 1 &&
	       is_scaled(p, y) && scaled_of(p, y) != other && before(p, reads, k, y) == other;
}

// The same for x, computed from the value in registers.
static bool can_scale(const struct yk_prog *p, const uint8_t *reads, int x, int y)
{
	return reads[x] == 1 && is_scaled(p, x) && before(p, reads, x, y) == scaled_of(p, x) &&
	       (p->uniform[y] || scaled_of(p, y) != scaled_of(p, x));
}

void ISA(yk_prog_fold)(struct yk_prog *p, const uint8_t *reads)
{
	for (int k = 0; k < p->map->ninsn; k++) {
		const struct yoke_insn *i = &p->map->insn[k];
		if (!reads[k] || p->uniform[k] || i->dtype != yoke_f32 || !can_link(p, k) ||
		    !has_op(p, k, YK_LINK_MM))
			continue;
		const int y = p->uniform[i->a] || can_fold(p, reads, i->a, k) ? i->a :
			      p->uniform[i->b] || can_fold(p, reads, i->b, k) ? i->b :
										-1;
		if (y < 0)
			continue;
		const int x = i->a == y ? i->b : i->a;
		if (i->op == YOKE_MAP_ADD && x != y && can_scale(p, reads, x, y))
			p->fold[x] = (uint8_t)k;
		if (!p->uniform[y])
			p->fold[y] = (uint8_t)k;
	}
}

// ---- chains ----

// Number of steps from `first` that form one chain; 0: no chain begins there.
static int chain_length(const struct yk_prog *p, int first)
{
	int end = first;

	for (int k = first; k < p->nstep; k++) {
		if (can_link(p, p->step[k].value))
			end = k + 1;
		else if (end == first || !p->uniform[p->step[k].value])
			break;
	}
	return end - first;
}

static bool is_read(const struct yk_prog *p, int value, int first, int end)
{
	for (int k = first; k < end; k++) {
		int used[3], n = ISA(yk_map_operands)(&p->map->insn[p->step[k].value], used);
		for (int i = 0; i < n; i++)
			if (used[i] == value)
				return true;
	}
	return false;
}

void ISA(yk_prog_local)(struct yk_prog *p)
{
	for (int k = 0, end; k < p->nstep; k = end) {
		const int length = chain_length(p, k);
		end = k + (length ? length : 1);
		for (int i = k; i < k + length; i++) {
			struct yk_step *s = &p->step[i];
			s->local = !p->uniform[s->value] && !is_read(p, s->value, end, p->nstep);
			for (int o = 0; o < p->map->nout; o++)
				s->local &= p->map->out[o] != s->value;
		}
	}
}

// Finds 16-bit inputs that all readers can convert themselves.
static void find_narrow(struct builder *b)
{
	struct yk_prog *p = b->prog;

	for (int k = 0; k < p->nstep; k++) {
		struct yk_step *s = &p->step[k];
		const int v = s->value;
		s->narrow =
			s->kind == YK_STEP_INPUT && yk_is_half(dtype_of(p, v)) && !p->uniform[v];
		for (int o = 0; o < p->map->nout; o++)
			s->narrow &= p->map->out[o] != v;
		for (int j = 0; j < p->nstep && s->narrow; j++) {
			const struct yk_step *r = &p->step[j];
			int used[3], n = ISA(yk_map_operands)(&p->map->insn[r->value], used);
			for (int i = 0; i < n; i++)
				s->narrow &= used[i] != v ||
					     (can_link(p, r->value) &&
					      p->map->insn[r->value].op != YOKE_MAP_SELECT);
		}
		b->narrow[v] = s->narrow;
	}
}

static struct yk_form *append(struct builder *b, struct yk_links links, int v0, int v1, int v2)
{
	struct yk_form *f = &b->prog->form[b->prog->nform++];
	*f = (struct yk_form){
		.links = links,
		.value = { (int8_t)v0, (int8_t)v1, (int8_t)v2 },
		.out = -1,
	};
	return f;
}

static void append_load(struct builder *b, int value)
{
	const int dtype = dtype_of(b->prog, value);
	const int from = b->local[value] ? yoke_f32 : yk_reg(dtype); // a local bool is a mask
	struct yk_form *f = append(b, ISA(yk_link_load)(from), value, -1, -1);
	if (b->narrow[value])
		f->narrow = ISA(yk_link_load)(dtype);
	b->in_registers = value;
}

static void append_store(struct builder *b, int dtype, int value, int out)
{
	struct yk_form *f = append(b, ISA(yk_link_store)(dtype, false), value, -1, -1);
	f->store = true;
	f->out = (int8_t)out;
}

static int uniform_of(const struct yk_prog *p, int value)
{
	const struct yoke_insn *i = &p->map->insn[value];
	return p->uniform[i->a] ? i->a : i->b;
}

// Emits a step whose link also computes operands; false: this step's does not.
static bool fold(struct builder *b, const struct yk_step *s, int op)
{
	const struct yk_prog *p = b->prog;
	const bool a = p->fold[s->a] == s->value, c = p->fold[s->b] == s->value;
	// x: computed from the value in registers, y: from memory
	int x = a && scaled_of(p, s->a) == b->in_registers ? s->a : s->b;
	x = s->a == b->in_registers || s->b == b->in_registers ? -1 : x;
	const int y = x == s->a ? s->b : x == s->b ? s->a : a ? s->a : s->b;

	if (!a && !c)
		return false;
	if (x < 0)
		append(b, ISA(yk_link_fold)(op, s->a == y), scaled_of(p, y), uniform_of(p, y), -1);
	else if (p->uniform[y])
		append(b, ISA(yk_link_scale_add), y, uniform_of(p, x), -1);
	else
		append(b, ISA(yk_link_blend), scaled_of(p, y), uniform_of(p, y), uniform_of(p, x));
	return true;
}

// Emits an instruction on masks, of which one is in registers.
static void logic(struct builder *b, const struct yk_step *s, int op)
{
	if (s->a != b->in_registers && s->b != b->in_registers)
		append_load(b, s->a);
	const int other = s->a == b->in_registers ? s->b : s->a;
	if (other == b->in_registers)
		append(b, op_of(b->prog, s->value, YK_LINK_AA), -1, -1, -1);
	else
		append(b,
		       b->local[other] ? op_of(b->prog, s->value, YK_LINK_AM) :
					 ISA(yk_link_op_narrow)(op, YK_LINK_AM, yoke_bool),
		       other, -1, -1);
}

static void binary(struct builder *b, const struct yk_step *s, int op)
{
	const struct yk_prog *p = b->prog;
	const bool *uniform = p->uniform;

	if (dtype_of(p, s->a) == yoke_bool) {
		logic(b, s, op);
		return;
	}
	if (fold(b, s, op))
		return;
	if (s->a != b->in_registers && s->b != b->in_registers &&
	    (b->narrow[s->a] || b->narrow[s->b]))
		append_load(b, s->a);
	const bool a = s->a == b->in_registers, both = a && s->b == b->in_registers;
	if (!a && s->b != b->in_registers) {
		const enum yk_link_way way = uniform[s->a] ? YK_LINK_UM :
					     uniform[s->b] ? YK_LINK_MU :
							     YK_LINK_MM;
		append(b, op_of(p, s->value, way), s->a, s->b, -1);
		return;
	}
	const int other = a ? s->b : s->a;
	const enum yk_link_way way = both           ? YK_LINK_AA :
				     uniform[other] ? (a ? YK_LINK_AU : YK_LINK_UA) :
				     a              ? YK_LINK_AM :
						      YK_LINK_MA;
	struct yk_form *f = append(b, op_of(p, s->value, way), other, -1, -1);
	if (!both && b->narrow[other])
		f->narrow = ISA(yk_link_op_narrow)(op, way, dtype_of(p, other));
}

static void cast(struct builder *b, const struct yk_step *s)
{
	const int to = yk_reg(dtype_of(b->prog, s->value)), from = yk_reg(dtype_of(b->prog, s->a));
	const bool loads =
		s->a != b->in_registers && (to == from || b->narrow[s->a] ||
					    !yk_is_link(ISA(yk_link_cast)(to, from, false)));

	if (loads)
		append_load(b, s->a);
	if (to != from)
		append(b, ISA(yk_link_cast)(to, from, s->a == b->in_registers), s->a, -1, -1);
}

// Emits the instruction, which takes an operand from registers if possible.
static void instruction(struct builder *b, const struct yk_step *s)
{
	const int op = b->prog->map->insn[s->value].op, have = b->in_registers;

	if (op == YOKE_MAP_SELECT) {
		int k = s->a == have ? 0 : s->b == have ? 1 : s->c == have ? 2 : -1;
		append(b, ISA(yk_link_select)(k, b->local[s->a]), s->a, s->b, s->c);
	} else if (op == YOKE_MAP_CAST) {
		cast(b, s);
	} else if (has_op(b->prog, s->value, YK_LINK_A)) {
		if (s->a != have && (b->narrow[s->a] || !has_op(b->prog, s->value, YK_LINK_M)))
			append_load(b, s->a);
		append(b, op_of(b->prog, s->value, s->a == b->in_registers ? YK_LINK_A : YK_LINK_M),
		       s->a, -1, -1);
	} else {
		binary(b, s, op);
	}
	b->in_registers = s->value;
}

// True if the step can take all its uses of the value from registers.
static bool takes(const struct yk_prog *p, const struct yk_step *s, int value)
{
	int times = (s->a == value) + (s->b == value) + (s->c == value);
	return p->map->insn[s->value].op != YOKE_MAP_SELECT || times == 1;
}

// Stores the step's value if it is needed in memory. next: the step of the following link, or NULL.
static void store_to_register(struct builder *b, const struct yk_step *s,
			      const struct yk_step *next)
{
	struct yk_prog *p = b->prog;
	const int v = s->value, dtype = dtype_of(p, v);
	const bool half = yk_is_half(dtype);
	bool read = b->reader[v] && !(next && b->reader[v] == next->value && takes(p, next, v));
	bool output = false; // true if it must be stored from the register at the end

	for (int o = 0; o < p->map->nout; o++)
		output |= p->map->out[o] == v && (p->nout == 0 || p->direct[o] != v);
	if (s->out >= 0 && !read && !output)
		p->once[s->out] = dtype != yoke_bool;
	if (s->out >= 0)
		append_store(b, dtype, v, s->out);
	if ((read || output) && (half || s->out < 0))
		append_store(b, dtype == yoke_bool && !s->local ? YK_LINK_MASK : yoke_f32, v, -1);
}

static int chain(struct builder *b, int first)
{
	struct yk_prog *p = b->prog;
	int at = first, after;

	b->in_registers = -1;
	for (; at < p->nstep && can_link(p, p->step[at].value); at = after) {
		const struct yk_step *s = &p->step[at];
		for (after = at + 1; after < p->nstep && (p->uniform[p->step[after].value] ||
							  p->fold[p->step[after].value]);)
			after++;
		if (p->fold[s->value])
			continue;
		bool last = after == p->nstep || !can_link(p, p->step[after].value);
		instruction(b, s);
		if (s->round)
			append(b, ISA(yk_link_round)(dtype_of(p, s->value)), -1, -1, -1);
		store_to_register(b, s, last ? NULL : &p->step[after]);
	}
	append(b, ISA(yk_link_end), -1, -1, -1);
	return at;
}

void ISA(yk_prog_link)(struct yk_prog *p, const int *reader)
{
	struct builder b = { .prog = p, .reader = reader };

	for (int o = 0; o < p->nout; o++)
		p->once[o] = p->stream[o] = false;
	find_narrow(&b);
	for (int k = 0; k < p->nstep; k++)
		b.local[p->step[k].value] = p->step[k].local;
	for (int k = 0; k < p->nstep;) {
		struct yk_step *s = &p->step[k];
		if (!can_link(p, s->value)) {
			if (s->out >= 0) // later steps read the register
				p->once[s->out] = !yk_is_half(p->out[s->out].dtype);
			k++;
			continue;
		}
		s->form = (uint16_t)p->nform;
		int end = chain(&b, k);
		s->chain = (uint8_t)(end - k);
		k = end;
	}
	p->links = (p->frame + 63) / 64 * 64;
	const size_t each = sizeof(struct yk_link) + 3 * sizeof(struct yk_move) +
			    sizeof(struct yk_was);
	p->frame = p->links + (size_t)p->nform * each;
}
