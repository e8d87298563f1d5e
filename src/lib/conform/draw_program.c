// SPDX-License-Identifier: Apache-2.0
// Draws random map programs (each instruction of a dtype in turn, or a mixture) and values for
// their inputs.
#include "config.h"

#include <math.h>

#include "conform/draw_program.h"

static uint16_t append(struct yoke_map *m, int op, int dtype, int a, int b, int k)
{
	m->insn[m->ninsn] = (struct yoke_insn){ .op = (uint16_t)op,
						.dtype = (uint8_t)dtype,
						.a = (uint16_t)a,
						.b = (uint16_t)b,
						.c = (uint16_t)k };
	return m->ninsn++;
}

uint16_t yk_program_input(struct yoke_map *m, int dtype)
{
	return append(m, YOKE_MAP_INPUT, dtype, m->nin++, 0, 0);
}

static uint16_t constant(struct yoke_map *m, int dtype, struct yk_num x)
{
	m->konst[m->nconst] = yk_num_bits(x, dtype);
	return append(m, YOKE_MAP_CONST, dtype, m->nconst++, 0, 0);
}

// ---- numbers ----

struct yk_num yk_draw_tame(struct yk_case *c, int dtype, int64_t index)
{
	static const double odd[] = {
		0, -0.0, 1, -1, 0.5, 2.5, -3.5, 1e-4, 20, -20, 100
	};
	static const double never[] = { NAN, INFINITY, -INFINITY };
	(void)index;
	if (!yk_num_real(dtype))
		return yk_draw_wild(c, dtype, index);
	double x = yk_draw_real(c, -8, 8);
	if (yk_draw_one_in(c, 6))
		x = odd[yk_draw(c) % (sizeof odd / sizeof *odd)];
	else if (yk_draw_one_in(c, 40))
		x = never[yk_draw(c) % 3];
	return (struct yk_num){ .f = yk_num_round(x, dtype) };
}

struct yk_num yk_draw_wild(struct yk_case *c, int dtype, int64_t index)
{
	static const double odd[] = { 0,       -0.0,    1,        -1,        0.5,  2.5,
				      -3.5,    NAN,     INFINITY, -INFINITY, 1e-7, -1e-6,
				      65519.9, 65520,   300,      -129,      3e9,  -1e19,
				      1e30,    0x1p-24, 0x1.8p-15 };
	static const int64_t whole[] = { 0,         1,         -1,
					 127,       128,       -128,
					 255,       INT32_MAX, INT32_MIN,
					 INT64_MAX, INT64_MIN, ((int64_t)1 << 54) + 3,
					 65519,     16777217 };
	(void)index;
	if (yk_num_real(dtype)) {
		double x = yk_draw_real(c, -8, 8);
		if (yk_draw_one_in(c, 4))
			x = odd[yk_draw(c) % (sizeof odd / sizeof *odd)];
		if (!c->flushes && yk_draw_one_in(c, 60))
			x = -1e-41;
		return (struct yk_num){ .f = yk_num_round(x, dtype) };
	}
	int64_t i = yk_draw_int(c, -9, 9);
	if (yk_draw_one_in(c, 4))
		i = whole[yk_draw(c) % (sizeof whole / sizeof *whole)];
	return (struct yk_num){ .i = yk_num_wrap((uint64_t)i, dtype) };
}

// ---- every instruction in turn ----

// Ways to use an instruction; those of a dtype are grouped into programs of four.
static const uint8_t exact[] = {
	YOKE_MAP_ADD,  YOKE_MAP_SUB,    YOKE_MAP_MUL,  YOKE_MAP_MIN,   YOKE_MAP_MAX,
	YOKE_MAP_NEG,  YOKE_MAP_ABS,    YOKE_MAP_SIGN, YOKE_MAP_FLOOR, YOKE_MAP_ROUND,
	YOKE_MAP_CEIL, YOKE_MAP_SQUARE, YOKE_MAP_MOD,  YOKE_MAP_EQ,    YOKE_MAP_NE,
	YOKE_MAP_LT,   YOKE_MAP_LE,     YOKE_MAP_GT,   YOKE_MAP_GE,    YOKE_MAP_SELECT
};
// For integers only.
static const uint8_t whole[] = { YOKE_MAP_DIV, YOKE_MAP_AND, YOKE_MAP_OR, YOKE_MAP_XOR,
				 YOKE_MAP_NOT, YOKE_MAP_SHL, YOKE_MAP_SHR };
static const uint8_t functions[] = { YOKE_MAP_DIV,   YOKE_MAP_RECIP, YOKE_MAP_SQRT,
				     YOKE_MAP_RSQRT, YOKE_MAP_EXP,   YOKE_MAP_LOG,
				     YOKE_MAP_LOG1P, YOKE_MAP_EXPM1, YOKE_MAP_SIN,
				     YOKE_MAP_COS,   YOKE_MAP_TANH,  YOKE_MAP_SIGMOID,
				     YOKE_MAP_ERF,   YOKE_MAP_POW,   YOKE_MAP_ISFINITE,
				     YOKE_MAP_NORMAL };
static const uint8_t logic[] = { YOKE_MAP_AND, YOKE_MAP_OR, YOKE_MAP_XOR, YOKE_MAP_NOT,
				 YOKE_MAP_EQ,  YOKE_MAP_NE, YOKE_MAP_SELECT };
enum {
	EXACT = sizeof exact,
	FUNCTIONS = sizeof functions,
	WHOLE = sizeof whole,
	LOGIC = sizeof logic,
	ARITHMETIC = 13, // leading entries of exact[] that are arithmetic
	CASTS = 9
};

// A uniform random number for each element.
static uint16_t uniform(struct yk_case *c, int dtype)
{
	struct yoke_map *m = &c->map;
	int index = append(m, YOKE_MAP_INDEX, yoke_i64, 0, 0, 0);
	int key = constant(m, yoke_i64, (struct yk_num){ .i = (int64_t)yk_draw(c) });
	int step = constant(m, yoke_i64, (struct yk_num){ .i = yk_draw_int(c, 0, 9) });
	int bits = append(m, YOKE_MAP_RAND, yoke_i32, index, key, step);
	return append(m, YOKE_MAP_UNIFORM, dtype, bits, 0, 0);
}

// Instruction `way` of a dtype, on values a and b of it and the condition; 0: there is none.
static int way_of(int dtype, uint32_t way, int *cast)
{
	const bool real = yk_num_real(dtype);
	const uint32_t plain = dtype == yoke_bool ? LOGIC : EXACT;
	*cast = 0;
	if (way < plain)
		return dtype == yoke_bool ? logic[way] : exact[way];
	way -= plain;
	if (way < CASTS) {
		*cast = yoke_f32 + (int)way;
		return YOKE_MAP_CAST;
	}
	way -= CASTS;
	// half precision rounds a uniform number up to 1, which has no normal one
	if (real && way + (dtype == yoke_f16 || dtype == yoke_bf16) < FUNCTIONS)
		return functions[way];
	return !real && dtype != yoke_bool && way < WHOLE ? whole[way] : 0;
}

static uint32_t ways_of(int dtype)
{
	uint32_t n = 0;
	int cast;
	while (way_of(dtype, n, &cast))
		n++;
	return n;
}

static bool answers_bool(int op)
{
	return op >= YOKE_MAP_EQ && op <= YOKE_MAP_ISFINITE;
}

bool yk_draw_each(struct yk_case *c, int dtype)
{
	struct yoke_map *m = &c->map;
	const uint32_t ways = ways_of(dtype), sets = (ways + 3) / 4,
		       first = c->number % sets * 4;
	bool tame = false;
	int cast;

	*m = (struct yoke_map){ .size = sizeof *m };
	int a = yk_program_input(m, dtype), b = yk_program_input(m, dtype);
	int cond = dtype == yoke_bool ? a : yk_program_input(m, yoke_bool);
	for (uint32_t way = first; way < first + 4 && way < ways; way++) {
		int op = way_of(dtype, way, &cast),
		    to = answers_bool(op) ? yoke_bool : dtype;
		for (size_t i = 0; i < FUNCTIONS; i++)
			tame |= op == functions[i] && yk_num_real(dtype);
		if (op == YOKE_MAP_SELECT)
			m->out[m->nout++] = append(m, op, dtype, cond, a, b);
		else if (op == YOKE_MAP_CAST)
			m->out[m->nout++] = append(m, op, cast, a, 0, 0);
		else if (op == YOKE_MAP_NORMAL)
			m->out[m->nout++] = append(m, op, dtype, uniform(c, dtype),
						   uniform(c, dtype), 0);
		else
			m->out[m->nout++] = append(m, op, to, a, b, 0);
	}
	return tame;
}

void yk_draw_one(struct yk_case *c, int dtype, uint32_t which)
{
	struct yoke_map *m = &c->map;
	int op = dtype == yoke_bool ? logic[which % 2] : exact[which % (EXACT - 1)];

	*m = (struct yoke_map){ .size = sizeof *m, .nout = 1 };
	int a = yk_program_input(m, dtype), b = yk_program_input(m, dtype);
	m->out[0] = append(m, op, answers_bool(op) ? yoke_bool : dtype, a, b, 0);
}

// ---- a mixture ----

static int pick(struct yk_case *c, int dtype)
{
	const struct yoke_map *m = &c->map;
	int start = (int)yk_draw_int(c, 0, m->ninsn - 1);
	for (int k = 0; k < m->ninsn; k++)
		if (m->insn[(start + k) % m->ninsn].dtype == dtype)
			return (start + k) % m->ninsn;
	return -1;
}

static void append_any(struct yk_case *c)
{
	static const uint8_t smooth[] = { YOKE_MAP_EXP,   YOKE_MAP_TANH, YOKE_MAP_SIGMOID,
					  YOKE_MAP_SQRT,  YOKE_MAP_SIN,  YOKE_MAP_ERF,
					  YOKE_MAP_LOG1P, YOKE_MAP_DIV };
	struct yoke_map *m = &c->map;
	int a = (int)yk_draw_int(c, 0, m->ninsn - 1), dtype = m->insn[a].dtype;
	int b = pick(c, dtype), cond = pick(c, yoke_bool);
	bool real = yk_num_real(dtype);

	switch (yk_draw_int(c, 0, 7)) {
	case 0:
		append(m, YOKE_MAP_CAST, yk_draw_one_in(c, 2) ? yoke_f32 : dtype, a, 0,
		       0);
		return;
	case 1:
		append(m, (int)yk_draw_int(c, YOKE_MAP_EQ, YOKE_MAP_GE), yoke_bool, a, b,
		       0);
		return;
	case 2:
		if (cond >= 0)
			append(m, YOKE_MAP_SELECT, dtype, cond, a, b);
		return;
	case 3:
	case 4:
		if (real)
			append(m, smooth[yk_draw(c) % sizeof smooth], dtype, a, b, 0);
		return;
	}
	if (dtype == yoke_bool)
		append(m, YOKE_MAP_AND + (int)(yk_draw(c) % 3), dtype, a, b, 0);
	else if (!real && yk_draw_one_in(c, 3))
		append(m, whole[yk_draw(c) % WHOLE], dtype, a, b, 0);
	else
		append(m, exact[yk_draw(c) % ARITHMETIC], dtype, a, b, 0);
}

void yk_draw_mixture(struct yk_case *c, int nin, const int *dtypes, int count, int nout)
{
	struct yoke_map *m = &c->map;

	*m = (struct yoke_map){ .size = sizeof *m };
	for (int i = 0; i < nin; i++)
		yk_program_input(m, dtypes[i]);
	for (int i = 0; i < 2; i++)
		constant(m, dtypes[0], yk_draw_tame(c, dtypes[0], 0));
	if (!yk_case_plain(c) && !c->op.list && yk_draw_one_in(c, 3))
		uniform(c, yoke_f32);
	for (int i = 0; i < count; i++)
		append_any(c);
	for (m->nout = 0; m->nout < nout; m->nout++)
		m->out[m->nout] = (uint16_t)(m->ninsn - 1 - m->nout);
}

void yk_draw_front(struct yk_case *c, int dtype, bool near_one)
{
	struct yoke_map *m = &c->map;
	bool is_bool = dtype == yoke_bool;

	*m = (struct yoke_map){ .size = sizeof *m, .nout = 1 };
	int a = yk_program_input(m, is_bool && yk_draw_one_in(c, 2) ? yoke_f32 : dtype);
	int kind = c->number < 2 || near_one ? 0 : (int)yk_draw_int(c, 0, 3);
	m->out[0] = (uint16_t)a;
	if (is_bool && m->insn[a].dtype == yoke_f32) {
		int b = yk_program_input(m, yoke_f32);
		m->out[0] = append(m, YOKE_MAP_LT, yoke_bool, a, b, 0);
	} else if (!is_bool && kind == 1) {
		m->out[0] = append(m, YOKE_MAP_SQUARE, dtype, a, 0, 0);
	} else if (!is_bool && kind > 1) {
		int b = yk_program_input(m, dtype);
		int op = kind == 2 ? YOKE_MAP_MUL : YOKE_MAP_SUB;
		m->out[0] = append(m, op, dtype, a, b, 0);
	}
}

void yk_draw_epilogue(struct yk_case *c, int dtype)
{
	struct yoke_map *m = &c->map;

	if (c->number % 8 == 5) {
		const int other = yk_draw_one_in(c, 2) ? yoke_bool : yoke_i64;
		yk_draw_mixture(c, 3, (int[]){ dtype, dtype, other }, (int)yk_draw_int(c, 1, 12),
				(int)yk_draw_int(c, 1, 3));
		return;
	}
	*m = (struct yoke_map){ .size = sizeof *m, .nout = 1 };
	int product = yk_program_input(m, dtype), bias = yk_program_input(m, dtype);
	int sum = append(m, YOKE_MAP_ADD, dtype, product, bias, 0);
	switch (yk_draw_int(c, 0, 2)) {
	case 0: m->out[0] = (uint16_t)sum; break;
	case 1: {
		int zero = constant(m, dtype, (struct yk_num){ 0, 0 });
		m->out[0] = append(m, YOKE_MAP_MAX, dtype, sum, zero, 0);
		break;
	}
	default: m->out[0] = append(m, YOKE_MAP_TANH, dtype, sum, 0, 0);
	}
	if (yk_draw_one_in(c, 3)) // the sum is read by others, too
		m->out[m->nout++] = (uint16_t)sum;
}
