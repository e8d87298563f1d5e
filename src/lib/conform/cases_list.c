// SPDX-License-Identifier: Apache-2.0
// Cases of LIST_MAP and LIST_REDUCE: random programs and the optimizers' programs.
#include "config.h"

#include <math.h>
#include <string.h>

#include "conform/draw_program.h"
#include "conform/program.h"
#include "kernel/formula.h"

// Number and shapes of a list's tensors.
struct list {
	uint32_t n;
	int rank[6];
	int64_t dims[6][3];
};

// large: elements of the first tensor of a large case.
static struct list draw_list(struct yk_case *c, int64_t large)
{
	struct list l = { .n = (uint32_t)yk_draw_int(c, 1, 6) };
	for (uint32_t i = 0; i < l.n; i++) {
		int64_t left = 9001;
		l.rank[i] = (int)yk_draw_int(c, 0, 3);
		for (int d = l.rank[i] - 1; d >= 0; d--) {
			l.dims[i][d] = yk_draw_size(c, left);
			left /= l.dims[i][d];
		}
		if (l.rank[i] && !yk_case_plain(c) && yk_draw_one_in(c, 16))
			l.dims[i][0] = 0;
	}
	if (yk_case_large(c))
		l.rank[0] = 1, l.dims[0][0] = yk_draw_int(c, large, large + 9999);
	c->op.list = l.n;
	c->op.map = &c->map;
	return l;
}

// Values for an input: for a random program chosen by dtype alone, for a formula also by name.
static struct yk_num draw(struct yk_case *c, int dtype, const char *name)
{
	static const char *const positive[] = { "v", "lr", "c1", "c2", "pp", "rr" };
	double min = -1;
	if (!name)
		return yk_draw_tame(c, dtype, 0);
	for (size_t k = 0; k < sizeof positive / sizeof *positive; k++)
		if (!strncmp(name, positive[k], strlen(positive[k])))
			min = 0.01;
	return (struct yk_num){ .f = yk_num_round(yk_draw_real(c, min, 1), dtype) };
}

static int input_dtype(const struct yoke_map *m, unsigned input, int unread)
{
	for (int k = 0; k < m->ninsn; k++)
		if (m->insn[k].op == YOKE_MAP_INPUT && m->insn[k].a == input)
			return m->insn[k].dtype;
	return unread;
}

// Adds input k of the program as a list, or as a scalar.
static void add_input(struct yk_case *c, const struct list *l, unsigned k, bool number, int unread,
		      const char *name)
{
	const int dtype = input_dtype(&c->map, k, unread);
	const int64_t each = l->n;
	struct yk_num *x;
	if (number && yk_draw_one_in(c, 2)) {
		x = yk_case_alloc(c, l->n * sizeof *x);
		for (uint32_t i = 0; i < l->n; i++)
			x[i] = draw(c, dtype, name);
		yk_case_in_of(c, dtype, 1, &each, YK_DENSE, x);
	} else if (number) {
		yk_case_value(c, dtype, draw(c, dtype, name));
	}
	for (uint32_t i = 0; i < l->n && !number; i++) {
		const int64_t n = yk_count_of(l->rank[i], l->dims[i]);
		x = yk_case_alloc(c, (uint64_t)n * sizeof *x);
		for (int64_t e = 0; e < n; e++)
			x[e] = draw(c, dtype, name);
		yk_case_in_of(c, dtype, l->rank[i], l->dims[i], YK_DENSE, x);
	}
}

static void add_outputs(struct yk_case *c, const struct list *l)
{
	c->op.lists_out = (uint8_t)c->map.nout;
	for (int k = 0; k < c->map.nout; k++)
		for (uint32_t i = 0; i < l->n; i++)
			yk_case_out(c, c->map.insn[c->map.out[k]].dtype, l->rank[i], l->dims[i],
				    YK_DENSE);
}

// The program's inputs at element e of tensor i.
static void inputs_at(const struct yk_case *c, uint32_t i, int64_t e, struct yk_expected *in)
{
	const uint32_t lists = c->op.lists_in, n = c->op.list;
	for (uint32_t k = 0; k < c->map.nin; k++) {
		const struct yk_array *a =
			&c->array[c->op.nout + (k < lists ? k * n + i : lists * n + k - lists)];
		const struct yk_num x = a->num[k < lists ? e : a->n == 1 ? 0 : i];
		in[k] = (struct yk_expected){ .f = x.f, .i = x.i };
	}
}

// ---- formulas ----

static const struct {
	const char *name;
	double value, other;
} constants[] = {
	{ "beta1", 0.9, 0.8 },    { "beta2", 0.98, 0.9 },  { "eps", 1e-6, 1e-3 },
	{ "decay", 0.1, 0 },      { "low", 0.3, 0 },       { "high", 0.8, INFINITY },
	{ "momentum", 0.9, 0.5 }, { "dampening", 0.5, 0 }, { "nesterov", 0, 1 },
};

// Copies name k of a list into a string.
static const char *name_of(const char *names, int k, char to[16])
{
	names += strspn(names, " ");
	for (; k; k--) {
		names += strcspn(names, " ");
		names += strspn(names, " ");
	}
	const size_t n = strcspn(names, " ");
	memcpy(to, names, n < 15 ? n : 15);
	to[n < 15 ? n : 15] = '\0';
	return to;
}

// The program of a formula, with its operands after its results.
static bool draw_formula(struct yk_case *c, const struct yk_formula *f, int dtype,
			 const struct list *l)
{
	const int wide = dtype == yoke_f64 ? yoke_f64 : yoke_f32,
		  state = yk_draw_one_in(c, 2) ? wide : dtype;
	const int lists = yk_formula_count(f->lists), numbers = yk_formula_count(f->numbers);
	uint8_t in[2 * YOKE_MAP_MAX_INPUTS];
	double value[YOKE_MAP_MAX_CONSTS];
	char name[16];

	for (int k = 0; k < lists; k++) // moments may be f32 for half-precision operands
		in[k] = (uint8_t)(k < 2 ? dtype : state);
	for (int k = 0; k < numbers; k++)
		in[lists + k] = (uint8_t)(!strcmp(name_of(f->numbers, k, name), "scale") &&
							  yk_draw_one_in(c, 3) ?
						  0 :
						  wide);
	for (int k = 0; k < yk_formula_count(f->constants); k++)
		for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
			if (!strcmp(name_of(f->constants, k, name), constants[i].name))
				value[k] = yk_draw_one_in(c, 2) ? constants[i].value :
								  constants[i].other;
	if (yk_formula_map(f, wide, in, value, &c->map) < 0)
		return false;
	c->op.lists_in = (uint8_t)lists;
	if (c->op.code == YOKE_OP_LIST_MAP)
		add_outputs(c, l);
	else
		yk_case_out(c, c->number % 8 == 4 ? yoke_f64 : wide, c->op.attr[1].i != 0,
			    (int64_t[]){ l->n + (c->op.attr[1].i == 2) }, YK_DENSE);
	for (int k = 0, at = 0; k < lists + numbers; k++)
		if (in[k]) {
			const bool number = k >= lists;
			name_of(number ? f->numbers : f->lists, number ? k - lists : k, name);
			add_input(c, l, (unsigned)at++, number, in[k], name);
		}
	yk_case_note(c, "%s", f->name);
	return true;
}

// ---- the two ops ----

// A random program of any instructions except those that use element indices.
static void draw_any(struct yk_case *c, int dtype, const struct list *l)
{
	const struct yoke_map *m = &c->map;
	const int other = yk_draw_one_in(c, 2) ? yoke_f32 : dtype;
	bool counts = c->number % 8 != 1;

	if (!counts) {
		yk_draw_each(c, dtype);
		for (int k = 0; k < m->ninsn; k++)
			counts |= m->insn[k].op == YOKE_MAP_INDEX;
	}
	if (counts)
		yk_draw_mixture(c, (int)yk_draw_int(c, 1, 4), (int[]){ dtype, dtype, other, other },
				(int)yk_draw_int(c, 1, 20), (int)yk_draw_int(c, 1, 3));
	c->op.lists_in = (uint8_t)yk_draw_int(c, 1, m->nin);
	add_outputs(c, l);
	for (unsigned k = 0; k < m->nin; k++)
		add_input(c, l, k, k >= c->op.lists_in, dtype, NULL);
}

bool yk_make_list_map(struct yk_case *c, int dtype)
{
	struct yk_expected in[YOKE_MAP_MAX_INPUTS], reg[YOKE_MAP_MAX_INSNS];

	yk_case_op(c, YOKE_OP_LIST_MAP);
	const struct list l = draw_list(c, 33000);
	const uint32_t which = c->number / 2 % YK_FORMULAS;
	if (c->number % 2)
		draw_any(c, dtype, &l);
	else if (!draw_formula(c, &yk_formulas[which], dtype, &l))
		return false;
	const uint32_t lists = c->op.lists_in, n = l.n;
	for (uint32_t i = 0; i < n; i++)
		for (int64_t e = 0; e < c->array[i].n; e++) {
			inputs_at(c, i, e, in);
			yk_program_at(&c->map, in, e, c->flushes, reg);
			for (uint32_t k = 0; k < c->map.nout; k++)
				c->array[k * n + i].want[e] = reg[c->map.out[k]];
		}
	uint32_t taken = 0; // operand lists that results alias
	for (uint32_t o = 0; o < c->map.nout; o++)
		for (uint32_t k = 0; k < lists; k++) {
			const uint32_t first = c->op.nout + k * n;
			if (taken >> k & 1 || c->view[o * n].dtype != c->view[first].dtype ||
			    yk_draw_one_in(c, 2))
				continue;
			taken |= 1u << k;
			for (uint32_t i = 0; i < n; i++)
				yk_case_alias(c, o * n + i, first + i, (int)k);
			break;
		}
	yk_case_note(c, "%u tensors, %u lists, %d instructions", n, lists, c->map.ninsn);
	return true;
}

bool yk_make_list_reduce(struct yk_case *c, int dtype)
{
	struct yk_expected in[YOKE_MAP_MAX_INPUTS], reg[YOKE_MAP_MAX_INSNS];
	const int kind = YOKE_REDUCE_SUM + (int)(c->number / 2 % 3);

	yk_case_op(c, YOKE_OP_LIST_REDUCE);
	const struct list l = draw_list(c, 140000);
	const int each = (int)yk_draw_int(c, 0, 2);
	const uint32_t results = each ? l.n + (each == 2) : 1;
	c->op.nattr = 2;
	c->op.attr[0].i = kind;
	c->op.attr[1].i = each;
	if (c->number % 4 == 0) {
		if (!draw_formula(c, &yk_formulas[YK_FORMULA_SQUARE], dtype, &l))
			return false;
	} else {
		yk_draw_front(c, dtype, false);
		c->op.lists_in = (uint8_t)yk_draw_int(c, 1, c->map.nin);
		yk_case_out(c, dtype, each != 0, (int64_t[]){ results }, YK_DENSE);
		for (unsigned k = 0; k < c->map.nin; k++)
			add_input(c, &l, k, k >= c->op.lists_in, dtype, "x");
	}
	// an f64 result may have the error of f64 sums
	const int out = c->map.insn[c->map.out[0]].dtype;
	struct yk_fold *sum = yk_case_alloc(c, (l.n + 1) * sizeof *sum);
	for (uint32_t i = 0; i < l.n; i++) {
		struct yk_fold *to = &sum[each ? i : 0];
		for (int64_t e = 0; e < c->array[c->op.nout + i].n; e++) {
			inputs_at(c, i, e, in);
			yk_program_at(&c->map, in, e, c->flushes, reg);
			yk_fold(to, kind, true, &reg[c->map.out[0]]);
			if (each == 2)
				yk_fold(&sum[l.n], kind, true, &reg[c->map.out[0]]);
		}
	}
	for (uint32_t i = 0; i < results; i++) {
		if (!sum[i].n && kind != YOKE_REDUCE_SUM) // empty reduction
			sum[i].f = kind == YOKE_REDUCE_MAX ? -INFINITY : INFINITY;
		yk_fold_expect(&c->array[0].want[i], &sum[i], kind, out, false);
	}
	yk_case_note(c, "%u tensors, kind %d%s", l.n, kind,
		     each ? each == 2 ? ", of each and of all" : ", of each" : "");
	return true;
}
