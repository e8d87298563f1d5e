// SPDX-License-Identifier: Apache-2.0
// Compiler from formulas to map programs: recursive descent, one instruction per operation.
#include "config.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/number.h"
#include "kernel/formula.h"
#include "kernel/mapform.h"

enum { NAMES = 48 };

// The value of an expression: a known number, or the result of an instruction.
struct value {
	bool known;
	double number;
	uint16_t insn;
};

struct name {
	const char *text;
	size_t length;
	bool input; // an input that has not been read yet
	uint8_t dtype;
	uint16_t place; // index among the program's inputs
	struct value value;
	bool read;        // was the input's original value read?
	struct value old; // its original value, if it was read
};

struct compiler {
	struct yoke_map *map;
	int dtype; // of the arithmetic
	const char *at;
	struct name name[NAMES];
	int names, lists; // lists: how many of the first names are lists
	int err;
};

static const struct {
	const char *name;
	uint16_t code;
} instructions[] = {
#define X(name, number) { #name, number },
	YOKE_MAP_CODES(X)
#undef X
};

static struct value bad(struct compiler *c, int err)
{
	c->err = c->err ? c->err : err;
	return (struct value){ .known = true };
}

// ---- instructions ----

static struct value append(struct compiler *c, int op, int dtype, unsigned x, unsigned y,
			   unsigned z)
{
	struct yoke_map *m = c->map;

	if (m->ninsn == YOKE_MAP_MAX_INSNS)
		return bad(c, YOKE_EUNSUPPORTED);
	m->insn[m->ninsn] = (struct yoke_insn){ .op = (uint16_t)op,
						.dtype = (uint8_t)dtype,
						.a = (uint16_t)x,
						.b = (uint16_t)y,
						.c = (uint16_t)z };
	return (struct value){ .insn = m->ninsn++ };
}

static uint64_t bits_of(double x, int dtype)
{
	const float narrow = (float)x;
	uint64_t bits = 0;

	if (dtype == yoke_f64)
		memcpy(&bits, &x, sizeof x);
	else
		memcpy(&bits, &narrow, sizeof narrow);
	return bits;
}

static struct value constant(struct compiler *c, double x)
{
	struct yoke_map *m = c->map;
	const uint64_t bits = bits_of(x, c->dtype);

	for (uint16_t k = 0; k < m->ninsn; k++)
		if (m->insn[k].op == YOKE_MAP_CONST && m->konst[m->insn[k].a] == bits)
			return (struct value){ .insn = k };
	if (m->nconst == YOKE_MAP_MAX_CONSTS)
		return bad(c, YOKE_EUNSUPPORTED);
	m->konst[m->nconst] = bits;
	return append(c, YOKE_MAP_CONST, c->dtype, m->nconst++, 0, 0);
}

static uint16_t insn(struct compiler *c, struct value v)
{
	return (v.known ? constant(c, v.number) : v).insn;
}

static uint16_t insn_of(struct compiler *c, struct value v, int dtype)
{
	const uint16_t k = insn(c, v);

	return c->err || c->map->insn[k].dtype == dtype ?
		       k :
		       append(c, YOKE_MAP_CAST, dtype, k, 0, 0).insn;
}

static bool is(struct value v, double x)
{
	return v.known && v.number == x;
}

static struct value known(double x)
{
	return (struct value){ .known = true, .number = x };
}

static struct value arithmetic(struct compiler *c, int op, struct value a, struct value b)
{
	const double x = a.number, y = b.number;

	if (a.known && b.known)
		return known(op == YOKE_MAP_ADD ? x + y : op == YOKE_MAP_SUB ? x - y :
			     op == YOKE_MAP_MUL ? x * y : x / y);
	if (op == YOKE_MAP_MUL && (is(a, 0) || is(b, 0)))
		return known(0);
	if (is(a, op == YOKE_MAP_MUL) && (op == YOKE_MAP_MUL || op == YOKE_MAP_ADD))
		return b;
	if (is(b, op == YOKE_MAP_MUL || op == YOKE_MAP_DIV))
		return a;
	const uint16_t p = insn(c, a), q = insn(c, b);
	return append(c, op, c->dtype, p, q, 0);
}

// ---- expressions ----

static void blanks(struct compiler *c)
{
	while (isspace((unsigned char)*c->at))
		c->at++;
}

static bool take(struct compiler *c, char what)
{
	blanks(c);
	const bool there = *c->at == what;
	c->at += there;
	return there;
}

static size_t word(struct compiler *c)
{
	size_t n = 0;

	blanks(c);
	while (isalnum((unsigned char)c->at[n]) || c->at[n] == '_')
		n++;
	return n;
}

static struct name *find(struct compiler *c, const char *text, size_t n)
{
	for (int k = 0; k < c->names; k++)
		if (c->name[k].length == n && !memcmp(c->name[k].text, text, n))
			return &c->name[k];
	return NULL;
}

static struct value expression(struct compiler *c);

static struct value read_name(struct compiler *c, struct name *name)
{
	if (name->input) {
		name->input = false;
		name->value = append(c, YOKE_MAP_INPUT, name->dtype, name->place, 0, 0);
		name->value.insn = insn_of(c, name->value, c->dtype);
		name->old = name->value;
		name->read = true;
	}
	return name->value;
}

// The value that a list had before the formula; reads the input if that was not done yet.
static struct value read_old(struct compiler *c, struct name *name)
{
	if (!name->read) {
		const struct value now = name->value;
		name->input = true;
		read_name(c, name);
		name->value = now;
	}
	return name->old;
}

static struct value call(struct compiler *c, const char *text, size_t n)
{
	uint16_t x[3] = { 0 };
	int given = 0, op = 0;

	for (size_t k = 0; k < sizeof instructions / sizeof *instructions; k++)
		if (strlen(instructions[k].name) == n &&
		    yk_same_words(instructions[k].name, text, n))
			op = instructions[k].code;
	do {
		if (given == 3)
			return bad(c, YOKE_EINVAL);
		x[given++] = insn(c, expression(c));
	} while (!c->err && take(c, ','));
	if (!take(c, ')') || op < YOKE_MAP_ADD || op == YOKE_MAP_CAST ||
	    given != yk_map_operands(op))
		return bad(c, YOKE_EINVAL);
	const bool logic = op == YOKE_MAP_NOT || (op >= YOKE_MAP_AND && op <= YOKE_MAP_XOR);
	const bool test = logic || (op >= YOKE_MAP_EQ && op < YOKE_MAP_SELECT);
	return append(c, op, test ? yoke_bool : c->dtype, x[0], x[1], x[2]);
}

static struct value primary(struct compiler *c)
{
	const size_t n = word(c);
	const char *text = c->at;
	struct name *name;
	struct value v;
	char *end;

	if (take(c, '(')) {
		v = expression(c);
		return take(c, ')') ? v : bad(c, YOKE_EINVAL);
	}
	if (isdigit((unsigned char)*text)) {
		v = known(yk_strtod(text, &end));
		c->at = end;
		return v;
	}
	c->at += n;
	if (n && take(c, '('))
		return call(c, text, n);
	return (name = find(c, text, n)) ? read_name(c, name) : bad(c, YOKE_EINVAL);
}

static struct value term(struct compiler *c)
{
	struct value v = primary(c);

	while (!c->err) {
		int op = take(c, '*') ? YOKE_MAP_MUL : take(c, '/') ? YOKE_MAP_DIV : 0;
		if (!op)
			break;
		v = arithmetic(c, op, v, primary(c));
	}
	return v;
}

static struct value expression(struct compiler *c)
{
	struct value v = term(c);

	while (!c->err) {
		int op = take(c, '+') ? YOKE_MAP_ADD : take(c, '-') ? YOKE_MAP_SUB : 0;
		if (!op)
			break;
		v = arithmetic(c, op, v, term(c));
	}
	return v;
}

// ---- names ----

static struct name *add_name(struct compiler *c, const char *text, size_t n)
{
	if (c->names == NAMES) {
		bad(c, YOKE_EUNSUPPORTED);
		return &c->name[0];
	}
	c->name[c->names] = (struct name){ .text = text, .length = n };
	return &c->name[c->names++];
}

// The length of the next name in a list of names; 0 at the end.
static size_t next_name(const char **names)
{
	*names += strspn(*names, " ");
	return strcspn(*names, " ");
}

int yk_formula_count(const char *names)
{
	int count = 0;

	for (size_t n; (n = next_name(&names)); names += n)
		count++;
	return count;
}

static void add_inputs(struct compiler *c, const char *names, const uint8_t *dtype)
{
	for (size_t n; (n = next_name(&names)); names += n, dtype++) {
		struct name *name = add_name(c, names, n);
		name->dtype = *dtype;
		name->value = known(1);
		name->input = *dtype;
		name->place = c->map->nin;
		c->map->nin += *dtype != 0;
	}
}

static void assignment(struct compiler *c)
{
	const size_t n = word(c);
	const char *text = c->at;
	struct name *name = find(c, text, n);

	c->at += n;
	if (!n || !take(c, '=')) {
		bad(c, YOKE_EINVAL);
		return;
	}
	const struct value v = expression(c);
	name = name ? name : add_name(c, text, n);
	name->input = false;
	name->value = v;
	// A list's new value must be computed after every read of the list, so that kernels can
	// write it in place.  A copy of another list, or of an earlier value, is therefore appended
	// as an instruction of its own.
	if (!c->err && name - c->name < c->lists && !v.known &&
	    (c->map->insn[v.insn].op == YOKE_MAP_INPUT || (name->read && v.insn < name->old.insn)))
		name->value = append(c, YOKE_MAP_CAST, c->dtype, v.insn, 0, 0);
	if (!take(c, ';'))
		bad(c, YOKE_EINVAL);
}

// The bool instruction that is true if the lists are kept: the name skip, compared with 0 unless
// it is a bool.
static uint16_t skipped(struct compiler *c, struct name *name)
{
	const uint16_t skip = insn(c, read_name(c, name));

	if (c->err || c->map->insn[skip].dtype == yoke_bool)
		return skip;
	return append(c, YOKE_MAP_NE, yoke_bool, skip, insn(c, known(0)), 0).insn;
}

static int compile(const struct yk_formula *f, int dtype, const uint8_t *in, const double *value,
		   bool more, struct yoke_map *to)
{
	const int lists = yk_formula_count(f->lists);
	struct compiler c = { .map = to, .dtype = dtype, .at = f->text, .lists = lists };
	const char *names;
	size_t n;

	memset(to, 0, sizeof *to); // padding included: programs are compared as bytes
	to->size = sizeof *to;
	add_inputs(&c, f->lists, in);
	add_inputs(&c, f->numbers, in + lists);
	if (more)
		add_inputs(&c, "skip", &(uint8_t){ (uint8_t)dtype });
	for (names = f->constants; (n = next_name(&names)); names += n)
		add_name(&c, names, n)->value = known(*value++);
	for (blanks(&c); *c.at && !c.err; blanks(&c))
		assignment(&c);
	struct name *skip = find(&c, "skip", 4);
	const uint16_t keep = skip ? skipped(&c, skip) : 0;
	for (names = f->results; (n = next_name(&names)) && !c.err; names += n) {
		struct name *name = find(&c, names, n);
		if (!name || to->nout == YOKE_MAP_MAX_OUTPUTS)
			return name ? YOKE_EUNSUPPORTED : YOKE_EINVAL;
		const bool list = name - c.name < lists;
		struct value v = read_name(&c, name);
		if (skip && list) {
			const uint16_t made = insn(&c, v), old = insn(&c, read_old(&c, name));
			v = append(&c, YOKE_MAP_SELECT, dtype, keep, old, made);
		}
		to->out[to->nout++] = insn_of(&c, v, list ? name->dtype : dtype);
	}
	return c.err ? c.err : to->nin > YOKE_MAP_MAX_INPUTS ? YOKE_EUNSUPPORTED : 0;
}

int yk_formula_map(const struct yk_formula *f, int dtype, const uint8_t *in, const double *value,
		   struct yoke_map *to)
{
	return compile(f, dtype, in, value, false, to);
}

int yk_formula_map_skipped(const struct yk_formula *f, int dtype, const uint8_t *in,
			   const double *value, struct yoke_map *to)
{
	return compile(f, dtype, in, value, true, to);
}
