// SPDX-License-Identifier: Apache-2.0
// Writes operand addresses and the values of a map program's instructions as source text.
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "kernel/mapsrc_priv.h"
#include "yoke.h"

const struct yk_map_dtype yk_map_dtypes[] = {
	[yoke_f32] = { "float", "float", "f32", "f32" },
	[yoke_f64] = { "double", "double", "f64", "f64" },
	[yoke_f16] = { "ushort", "float", "f32", "f16" },
	[yoke_bf16] = { "ushort", "float", "f32", "bf16" },
	[yoke_i8] = { "schar", "schar", "i8", "i8" },
	[yoke_u8] = { "uchar", "uchar", "u8", "u8" },
	[yoke_i32] = { "int", "int", "i32", "i32" },
	[yoke_i64] = { "long", "long", "i64", "i64" },
	[yoke_bool] = { "uchar", "uchar", "bool", "bool" },
};

void yk_put(struct yk_text *t, const char *fmt, ...)
{
	va_list ap;
	size_t room = t->length < t->cap ? t->cap - t->length : 0;

	va_start(ap, fmt);
	int n = yk_vsnprintf(room ? t->to + t->length : NULL, room, fmt, ap);
	va_end(ap);
	t->length += n > 0 ? (size_t)n : 0;
}

// ---- operand addresses ----

bool yk_map_in_memory(const struct yk_map_operand *o)
{
	return o->view && o->class >= YK_MAP_LINEAR;
}

void yk_put_axes(struct yk_text *t, const struct yk_map_form *f, int first, int end,
		 const char *row, const char *last)
{
	const char *type = f->narrow ? "int" : "long", *word = f->narrow ? "uint" : "ulong";

	yk_put(t, "\t%s x%d = (%s)%s;\n", type, end - 1, type, last);
	if (end - first < 2)
		return;
	yk_put(t, "\t%s rest%d = (%s)%s;\n", word, first, word, row);
	for (int i = end - 2; i > first; i--)
		yk_put(t, "\t%s x%d = (%s)(rest%d %% (%s)d%d);\n\trest%d /= (%s)d%d;\n", type, i,
		    type, first, word, i, first, word, i);
	yk_put(t, "\t%s x%d = (%s)rest%d;\n", type, first, type, first);
}

static void put_stride(struct yk_text *t, const struct yk_map_form *f, unsigned k, int axis,
		       const char *plus)
{
	switch (f->operand[k].step[axis]) {
	case YK_MAP_STILL:
		break;
	case YK_MAP_UNIT:
		yk_put(t, "%sx%d", plus, axis);
		break;
	default:
		yk_put(t, "%sx%d * %st%u_%d", plus, axis, f->narrow ? "(int)" : "", k, axis);
	}
}

void yk_put_index(struct yk_text *t, const struct yk_map_form *f, unsigned k, int end)
{
	const struct yk_map_operand *o = &f->operand[k];

	if (o->class == YK_MAP_LINEAR)
		yk_put(t, "%s", f->flat ? "(long)j" : "(long)(r * width + j)");
	else if (o->class == YK_MAP_ONE)
		yk_put(t, o->each ? "(long)i" : "0");
	else
		yk_put(t, "(long)(0");
	for (int i = 0; i < end && o->class == YK_MAP_STRIDED; i++)
		put_stride(t, f, k, i, " + ");
	if (o->class == YK_MAP_STRIDED)
		yk_put(t, ")");
}

void yk_put_operand(struct yk_text *t, const struct yk_map_form *f, unsigned k)
{
	const struct yk_map_operand *o = &f->operand[k];
	const char *type = yk_map_dtypes[o->dtype].stored;

	if (!yk_map_in_memory(o))
		return;
	yk_put(t, "\tGLOBAL %s *p%u = (GLOBAL %s *)(s%u + at%u);\n", type, k, type, k, k);
	yk_put(t, "\tlong e%u = ", k);
	yk_put_index(t, f, k, f->rank);
	yk_put(t, ";\n");
}

// ---- instructions ----

// The value stored in a 64-bit word, low bytes first.
static void put_word(struct yk_text *t, int dtype, const char *word)
{
	switch (dtype) {
	case yoke_f32:
		yk_put(t, "AS_FLOAT(%s)", word);
		break;
	case yoke_f64:
		yk_put(t, "AS_DOUBLE(%s)", word);
		break;
	case yoke_f16: case yoke_bf16:
		yk_put(t, "f32_of_%s((ushort)%s)", yk_map_dtypes[dtype].name, word);
		break;
	case yoke_bool:
		yk_put(t, "(uchar)((uchar)%s != 0)", word);
		break;
	default:
		yk_put(t, "(%s)%s", yk_map_dtypes[dtype].type, word);
	}
}

// Is the input carried over from the step before?
static bool is_carried(const struct yk_map_form *f, unsigned input)
{
	return input + f->carried >= f->map->nin;
}

void yk_put_operand_value(struct yk_text *t, const struct yk_map_form *f, unsigned input)
{
	unsigned k = f->map->nout + input;
	int d = f->operand[k].dtype;
	char word[16];

	snprintf(word, sizeof word, "w%u", k);
	if (f->operand[k].class == YK_MAP_VALUE)
		put_word(t, d, word);
	else if (f->operand[k].class == YK_MAP_PRODUCT)
		yk_put(t, "product");
	else if (d == yoke_f16 || d == yoke_bf16)
		yk_put(t, "p%u[e%u]", k, k);
	else
		yk_put(t, "%sp%u[e%u]%s", d == yoke_bool ? "(uchar)(" : "", k, k,
		    d == yoke_bool ? " != 0)" : "");
}

static void put_input(struct yk_text *t, const struct yk_map_form *f, unsigned input)
{
	if (is_carried(f, input))
		yk_put(t, "u%u", input);
	else
		yk_put_operand_value(t, f, input);
}

bool yk_map_half(int dtype)
{
	return dtype == yoke_f16 || dtype == yoke_bf16;
}

bool yk_map_as_bits(const struct yk_map_form *f, const struct yoke_insn *n)
{
	if (!yk_map_half(n->dtype))
		return false;
	switch (n->op) {
	case YOKE_MAP_INPUT:
		return f->operand[f->map->nout + n->a].class >= YK_MAP_LINEAR &&
		       !is_carried(f, n->a);
	case YOKE_MAP_CAST:
		return f->map->insn[n->a].dtype != n->dtype;
	case YOKE_MAP_CONST: case YOKE_MAP_SELECT:
		return false;
	}
	return true;
}

// A cast between any two dtypes, rounded once; a half result is given as bits.
static void put_cast(struct yk_text *t, int from, int to, unsigned a)
{
	if (from == to || (yk_map_half(from) && to == yoke_f32))
		yk_put(t, "v%u", a);
	else if (to == yoke_bool)
		yk_put(t, "(uchar)(v%u != 0)", a);
	else if (yk_map_half(to) && from == yoke_f64)
		yk_put(t, "%s_of_f32(odd_of_f64(v%u))", yk_map_dtypes[to].name, a);
	else if (yk_map_half(to) && yk_map_integer(from))
		yk_put(t, "%s_of_f32(odd_of_i64((long)v%u))", yk_map_dtypes[to].name, a);
	else if (yk_map_half(to))
		yk_put(t, "%s_of_f32((float)v%u)", yk_map_dtypes[to].name, a);
	else if (yk_map_real(from) && yk_map_integer(to))
		yk_put(t, "of_%s_%s(v%u)", yk_map_dtypes[from].suffix, yk_map_dtypes[to].suffix, a);
	else
		yk_put(t, "(%s)v%u", yk_map_dtypes[to].type, a);
}

// Templates: $a, $b, $c are operands, $T the type, $S its suffix.
static const char *const reals[YOKE_MAP_ERF + 1] = {
	[YOKE_MAP_UNIFORM] = "($T)((uint)$a >> 8) * ($T)5.9604644775390625e-8f", // 2^-24
	[YOKE_MAP_NORMAL] = "normal_$S($a, $b)",
	[YOKE_MAP_ADD] = "$a + $b",
	[YOKE_MAP_SUB] = "$a - $b",
	[YOKE_MAP_MUL] = "$a * $b",
	[YOKE_MAP_DIV] = "$a / $b",
	[YOKE_MAP_POW] = "pow($a, $b)",
	[YOKE_MAP_MOD] = "fmod($a, $b)",
	[YOKE_MAP_MIN] = "min_$S($a, $b)",
	[YOKE_MAP_MAX] = "max_$S($a, $b)",
	[YOKE_MAP_NEG] = "-$a",
	[YOKE_MAP_ABS] = "fabs($a)",
	[YOKE_MAP_SIGN] = "sign_$S($a)",
	[YOKE_MAP_FLOOR] = "floor($a)",
	[YOKE_MAP_ROUND] = "rint($a)",
	[YOKE_MAP_CEIL] = "ceil($a)",
	[YOKE_MAP_EXP] = "exp_$S($a)",
	[YOKE_MAP_LOG] = "log_$S($a)",
	[YOKE_MAP_LOG1P] = "log1p($a)",
	[YOKE_MAP_EXPM1] = "expm1_$S($a)",
	[YOKE_MAP_SQRT] = "sqrt($a)",
	[YOKE_MAP_RSQRT] = "($T)1 / sqrt($a)",
	[YOKE_MAP_RECIP] = "($T)1 / $a",
	[YOKE_MAP_SQUARE] = "$a * $a",
	[YOKE_MAP_SIN] = "sin($a)",
	[YOKE_MAP_COS] = "cos($a)",
	[YOKE_MAP_TANH] = "tanh_$S($a)",
	[YOKE_MAP_SIGMOID] = "sigmoid_$S($a)",
	[YOKE_MAP_ERF] = "erf_$S($a)",
};

static const char *const whole[YOKE_MAP_NOT + 1] = {
	[YOKE_MAP_ADD] = "add_$S($a, $b)",
	[YOKE_MAP_SUB] = "sub_$S($a, $b)",
	[YOKE_MAP_MUL] = "mul_$S($a, $b)",
	[YOKE_MAP_DIV] = "div_$S($a, $b)",
	[YOKE_MAP_POW] = "pow_$S($a, $b)",
	[YOKE_MAP_MOD] = "mod_$S($a, $b)",
	[YOKE_MAP_AND] = "$a & $b",
	[YOKE_MAP_OR] = "$a | $b",
	[YOKE_MAP_XOR] = "$a ^ $b",
	[YOKE_MAP_SHL] = "shl_$S($a, $b)",
	[YOKE_MAP_SHR] = "shr_$S($a, $b)",
	[YOKE_MAP_NOT] = "($T)~$a",
	[YOKE_MAP_MIN] = "min_$S($a, $b)",
	[YOKE_MAP_MAX] = "max_$S($a, $b)",
	[YOKE_MAP_NEG] = "sub_$S(0, $a)",
	[YOKE_MAP_ABS] = "abs_$S($a)",
	[YOKE_MAP_SIGN] = "sign_$S($a)",
	[YOKE_MAP_FLOOR] = "$a",
	[YOKE_MAP_ROUND] = "$a",
	[YOKE_MAP_CEIL] = "$a",
	[YOKE_MAP_SQUARE] = "mul_$S($a, $a)",
};

static const char *const booleans[YOKE_MAP_GE + 1] = {
	[YOKE_MAP_MIN] = "$a & $b",
	[YOKE_MAP_MAX] = "$a | $b",
	[YOKE_MAP_EQ] = "$a == $b",
	[YOKE_MAP_NE] = "$a != $b",
	[YOKE_MAP_LT] = "$a < $b",
	[YOKE_MAP_LE] = "$a <= $b",
	[YOKE_MAP_GT] = "$a > $b",
	[YOKE_MAP_GE] = "$a >= $b",
	[YOKE_MAP_AND] = "$a & $b",
	[YOKE_MAP_OR] = "$a | $b",
	[YOKE_MAP_XOR] = "$a ^ $b",
	[YOKE_MAP_NOT] = "!$a",
};

static void put_formula(struct yk_text *t, const struct yoke_insn *n, const char *formula)
{
	for (const char *c = formula; *c; c++) {
		if (*c != '$') {
			yk_put(t, "%c", *c);
			continue;
		}
		switch (*++c) {
		case 'T':
			yk_put(t, "%s", yk_map_dtypes[n->dtype].type);
			break;
		case 'S':
			yk_put(t, "%s", yk_map_dtypes[n->dtype].suffix);
			break;
		default:
			yk_put(t, "v%u", *c == 'a' ? n->a : *c == 'b' ? n->b : n->c);
		}
	}
}

static int put_arithmetic(struct yk_text *t, const struct yoke_insn *n)
{
	const char *formula = NULL;
	const char *open = n->dtype == yoke_f16 ? "f16_of_f32(" :
			   n->dtype == yoke_bf16 ? "bf16_of_f32(" : "";

	if (yk_map_real(n->dtype) && n->op <= YOKE_MAP_ERF)
		formula = reals[n->op];
	else if (yk_map_integer(n->dtype) && n->op <= YOKE_MAP_NOT)
		formula = whole[n->op];
	else if (n->dtype == yoke_bool && n->op <= YOKE_MAP_GE)
		formula = booleans[n->op], open = "(uchar)(";
	if (!formula)
		return YOKE_EUNSUPPORTED;
	yk_put(t, "%s", open);
	put_formula(t, n, formula);
	yk_put(t, "%s", *open ? ")" : "");
	return 0;
}

int yk_put_value(struct yk_text *t, const struct yk_map_form *f,
		 const struct yoke_insn *n)
{
	int from = f->map->insn[n->a < f->map->ninsn ? n->a : 0].dtype;
	char word[16];

	switch (n->op) {
	case YOKE_MAP_INPUT:
		put_input(t, f, n->a);
		return 0;
	case YOKE_MAP_CONST:
		snprintf(word, sizeof word, "c%u", n->a);
		put_word(t, n->dtype, word);
		return 0;
	case YOKE_MAP_INDEX:
		yk_put_index(t, f, f->noperand, f->rank);
		return 0;
	case YOKE_MAP_RAND:
		yk_put(t, "rand_bits(v%u, v%u, v%u)", n->a, n->b, n->c);
		return 0;
	case YOKE_MAP_ISFINITE:
		if (yk_map_real(from))
			yk_put(t, "(uchar)(isfinite(v%u) != 0)", n->a);
		else
			yk_put(t, "(uchar)1");
		return 0;
	case YOKE_MAP_SELECT:
		yk_put(t, "v%u ? v%u : v%u", n->a, n->b, n->c);
		return 0;
	case YOKE_MAP_CAST:
		put_cast(t, from, n->dtype, n->a);
		return 0;
	default:
		return put_arithmetic(t, n);
	}
}
