// SPDX-License-Identifier: Apache-2.0
// Type checks of map programs: which instructions are supported in which dtype.
#include "config.h"

#include "kern_map.h"

static yk_strip_fn *arithmetic(int op, int dtype)
{
	switch (yk_reg(dtype)) {
	case yoke_f32: return ISA(yk_strip_f32)(op);
	case yoke_f64: return ISA(yk_strip_f64)(op);
	case yoke_i8: return ISA(yk_strip_i8)(op);
	case yoke_u8: return ISA(yk_strip_u8)(op);
	case yoke_i32: return ISA(yk_strip_i32)(op);
	case yoke_i64: return ISA(yk_strip_i64)(op);
	case yoke_bool: return ISA(yk_strip_bool)(op);
	default: return NULL;
	}
}

static int operands(int op)
{
	if (op == YOKE_MAP_RAND || op == YOKE_MAP_SELECT)
		return 3;
	if (op == YOKE_MAP_INPUT || op == YOKE_MAP_CONST || op == YOKE_MAP_INDEX)
		return 0;
	if (op == YOKE_MAP_NORMAL || (op >= YOKE_MAP_ADD && op <= YOKE_MAP_SHR) ||
	    (op >= YOKE_MAP_EQ && op <= YOKE_MAP_GE))
		return 2;
	return 1;
}

int ISA(yk_map_operands)(const struct yoke_insn *i, int used[3])
{
	int n = operands(i->op);
	used[0] = i->a, used[1] = i->b, used[2] = i->c;
	return n;
}

yk_strip_fn *ISA(yk_map_strip)(const struct yoke_map *m, const struct yoke_insn *i)
{
	int from = m->insn[i->a].dtype;
	switch (i->op) {
	case YOKE_MAP_SELECT: return ISA(yk_strip_select)(i->dtype);
	case YOKE_MAP_CAST: return ISA(yk_strip_cast)(i->dtype, from);
	case YOKE_MAP_UNIFORM: return arithmetic(i->op, i->dtype);
	default: // instructions with a bool result compute in their operands' dtype
		return arithmetic(i->op, i->dtype == yoke_bool ? from : i->dtype);
	}
}

static bool is_dtype(int dtype)
{
	return dtype >= yoke_f32 && dtype <= yoke_bool;
}

static bool has_dtypes(const struct yoke_map *m, const struct yoke_insn *i,
		  const struct yoke_op *op)
{
	int dtype[3] = { 0 };
	int n = operands(i->op);

	if (!is_dtype(i->dtype))
		return false;
	switch (i->op) {
	case YOKE_MAP_INPUT: return i->a < op->nin && op->in[i->a].dtype == i->dtype;
	case YOKE_MAP_CONST: return i->a < m->nconst;
	case YOKE_MAP_INDEX: return i->dtype == yoke_i64;
	}
	uint16_t arg[3] = { i->a, i->b, i->c };
	for (int k = 0; k < n; k++) {
		if (arg[k] >= i - m->insn)
			return false;
		dtype[k] = m->insn[arg[k]].dtype;
	}
	switch (i->op) {
	case YOKE_MAP_RAND:
		return i->dtype == yoke_i32 && dtype[0] == yoke_i64 &&
		       dtype[1] == yoke_i64 && dtype[2] == yoke_i64;
	case YOKE_MAP_UNIFORM: return dtype[0] == yoke_i32 && yk_is_float(i->dtype);
	case YOKE_MAP_SELECT:
		return dtype[0] == yoke_bool && dtype[1] == i->dtype &&
		       dtype[2] == i->dtype;
	case YOKE_MAP_CAST: return true;
	}
	if (n == 2 && dtype[0] != dtype[1])
		return false;
	// opcodes EQ and up before SELECT return bool, the others their operands' dtype
	bool tests = i->op >= YOKE_MAP_EQ && i->op < YOKE_MAP_SELECT;
	if (tests ? i->dtype != yoke_bool : i->dtype != dtype[0])
		return false;
	return arithmetic(i->op, dtype[0]) != NULL;
}

bool ISA(yk_map_check)(const struct yoke_op *op)
{
	const struct yoke_map *m = op->map;

	if (!m || op->rank > YOKE_MAX_RANK || m->ninsn > YOKE_MAP_MAX_INSNS ||
	    m->nconst > YOKE_MAP_MAX_CONSTS || m->nin > YOKE_MAP_MAX_INPUTS ||
	    m->nin > op->nin || m->nout > YOKE_MAP_MAX_OUTPUTS || m->nout < 1)
		return false;
	for (int k = 0; k < m->ninsn; k++)
		if (!has_dtypes(m, &m->insn[k], op))
			return false;
	for (int k = 0; k < m->nin; k++)
		if (op->in[k].kind == YOKE_VIEW_NONE || !is_dtype(op->in[k].dtype) ||
		    (op->in[k].kind == YOKE_VIEW_BUFFER && op->in[k].rank != op->rank))
			return false;
	for (int k = 0; k < m->nout; k++)
		if (m->out[k] >= m->ninsn)
			return false;
	return true;
}
