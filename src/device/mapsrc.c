// SPDX-License-Identifier: Apache-2.0
// The generator: writes the kernel of a MAP op from its form.  The text is the dialect's
// prologue, the helpers the program needs from cl/, and one function in the common
// dialect: each instruction one variable v0, v1, .. in single assignment.  f16 and bf16
// values are floats rounded by each instruction.
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "device/kerneltext.h"
#include "device/mapform.h"
#include "device/mapsrc.h"

// What a dtype is called: in a buffer, in a variable, as the suffix of functions (f16 and
// bf16 use those of f32), and as itself.
static const struct {
	const char *stored, *type, *suffix, *name;
} dtypes[] = {
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

static const struct {
	const char *unsigned_type, *least, *most;
} integers[] = {
	[yoke_i8] = { "uchar", "(-128)", "127" },
	[yoke_u8] = { "uchar", "0", "255" },
	[yoke_i32] = { "uint", "(-2147483647 - 1)", "2147483647" },
	[yoke_i64] = { "ulong", "(-9223372036854775807L - 1)", "9223372036854775807L" },
};

struct text {
	char *to;
	size_t cap, length; // length goes on counting beyond cap
};

__attribute__((format(printf, 2, 3)))
static void put(struct text *t, const char *fmt, ...)
{
	va_list ap;
	size_t room = t->length < t->cap ? t->cap - t->length : 0;

	va_start(ap, fmt);
	int n = vsnprintf(room ? t->to + t->length : NULL, room, fmt, ap);
	va_end(ap);
	t->length += n > 0 ? (size_t)n : 0;
}

// ---- before the kernel ----

static int put_file(struct text *t, const char *name)
{
	const char *text = yk_kernel_text(name);
	if (!text)
		return YOKE_ENOENT;
	put(t, "%s", text);
	return 0;
}

static int put_real(struct text *t, const char *type, const char *suffix)
{
	put(t, "#define REAL %s\n#define R(name) name##_%s\n", type, suffix);
	int err = put_file(t, "map_real.cl");
	put(t, "#undef REAL\n#undef R\n");
	return err;
}

static int put_integer(struct text *t, int dtype)
{
	put(t,
	    "#define INT %s\n#define UINT %s\n#define INT_LEAST %s\n#define INT_MOST %s\n"
	    "#define I(name) name##_%s\n",
	    dtypes[dtype].type, integers[dtype].unsigned_type, integers[dtype].least,
	    integers[dtype].most, dtypes[dtype].suffix);
	int err = put_file(t, "map_int.cl");
	put(t, "#undef INT\n#undef UINT\n#undef INT_LEAST\n#undef INT_MOST\n#undef I\n");
	return err;
}

static int put_helpers(struct text *t, int dialect, const struct yk_map_form *f)
{
	const uint32_t floats = 1u << yoke_f32 | 1u << yoke_f16 | 1u << yoke_bf16;
	bool random = false;
	int err;

	if (f->dtypes & 1u << yoke_f64)
		put(t, "#define USE_F64\n");
	err = put_file(t, dialect == YOKE_DIALECT_CUDA ? "prologue_cuda.h" :
							 "prologue_opencl.h");
	if (!err)
		err = put_file(t, "half.cl");
	if (!err && f->dtypes & floats)
		err = put_real(t, "float", "f32");
	if (!err && f->dtypes & 1u << yoke_f64)
		err = put_real(t, "double", "f64");
	for (int d = yoke_i8; d <= yoke_i64 && !err; d++)
		if (f->dtypes & 1u << d)
			err = put_integer(t, d);
	for (unsigned k = 0; k < f->map->ninsn; k++)
		random = random || f->map->insn[k].op == YOKE_MAP_RAND;
	return err || !random ? err : put_file(t, "philox.cl");
}

// ---- the kernel's head ----

static void put_parameters(struct text *t, const struct yk_map_form *f, const char *name)
{
	const char *comma = "";
	put(t, "\nKERNEL void %s(", name);
	for (unsigned k = 0; k < f->noperand; k++)
		if (f->operand[k].class != YK_MAP_VALUE) {
			put(t, "%sGLOBAL uchar *s%u, ulong at%u", comma, k, k);
			comma = ",\n\t";
		}
	for (unsigned k = 0; k < f->noperand; k++)
		if (f->operand[k].class == YK_MAP_VALUE)
			put(t, ",\n\tulong w%u", k);
	for (unsigned k = 0; k < f->map->nconst; k++)
		put(t, ",\n\tulong c%u", k);
	put(t, ",\n\tulong cols");
	if (!f->flat)
		put(t, ",\n\tulong rows");
	for (int i = 1; i < f->rank - 1; i++)
		put(t, ",\n\tulong d%d", i);
	for (unsigned k = 0; k < f->noperand; k++)
		for (int i = 0; i < yk_map_strides(f, &f->operand[k]); i++)
			put(t, ",\n\tlong t%u_%d", k, i);
	put(t, ")\n{\n");
}

// i: row-major index of the element; j: in its row; j0, j1, ..: along the axes before the
// last.
static void put_indices(struct text *t, const struct yk_map_form *f)
{
	put(t, "\tulong j = GLOBAL_ID(0);\n");
	if (f->flat) {
		put(t, "\tif (j >= cols)\n\t\treturn;\n\tulong i = j;\n");
		return;
	}
	put(t, "\tulong r = GLOBAL_ID(1);\n\tif (j >= cols || r >= rows)\n\t\treturn;\n"
	    "\tulong i = r * cols + j;\n");
	for (int axis = f->rank - 2; axis > 0; axis--)
		put(t, "\tlong j%d = (long)(r %% d%d);\n\tr /= d%d;\n", axis, axis, axis);
	put(t, "\tlong j0 = (long)r;\n");
}

// p0, p1, ..: where operand k's elements are; e0, e1, ..: the index of the one at hand.
static void put_operands(struct text *t, const struct yk_map_form *f)
{
	for (unsigned k = 0; k < f->noperand; k++) {
		const struct yk_map_operand *o = &f->operand[k];
		const char *type = dtypes[o->view->dtype].stored;

		if (o->class == YK_MAP_VALUE)
			continue;
		put(t, "\tGLOBAL %s *p%u = (GLOBAL %s *)(s%u + at%u);\n", type, k, type,
		    k, k);
		if (o->class == YK_MAP_LINEAR || o->class == YK_MAP_ONE) {
			put(t, "\tlong e%u = %s;\n", k,
			    o->class == YK_MAP_ONE ? "0" : "(long)i");
			continue;
		}
		put(t, "\tlong e%u = ", k);
		for (int i = 0; i < f->rank - 1; i++)
			put(t, "%sj%d * t%u_%d", i ? " + " : "", i, k, i);
		if (o->class == YK_MAP_ROW)
			put(t, " + (long)j");
		if (o->class == YK_MAP_GENERAL)
			put(t, "%s(long)j * t%u_%d", f->rank > 1 ? " + " : "", k,
			    f->rank - 1);
		put(t, ";\n");
	}
}

// ---- instructions ----

// The value that 64 bits hold, low bytes first.
static void put_word(struct text *t, int dtype, const char *word)
{
	switch (dtype) {
	case yoke_f32:
		put(t, "AS_FLOAT(%s)", word);
		break;
	case yoke_f64:
		put(t, "AS_DOUBLE(%s)", word);
		break;
	case yoke_f16: case yoke_bf16:
		put(t, "f32_of_%s((ushort)%s)", dtypes[dtype].name, word);
		break;
	case yoke_bool:
		put(t, "(uchar)((uchar)%s != 0)", word);
		break;
	default:
		put(t, "(%s)%s", dtypes[dtype].type, word);
	}
}

static void put_input(struct text *t, const struct yk_map_form *f, unsigned input)
{
	unsigned k = f->map->nout + input;
	int d = f->operand[k].view->dtype;
	char word[16];

	snprintf(word, sizeof word, "w%u", k);
	if (f->operand[k].class == YK_MAP_VALUE)
		put_word(t, d, word);
	else if (d == yoke_f16 || d == yoke_bf16)
		put(t, "f32_of_%s(p%u[e%u])", dtypes[d].name, k, k);
	else
		put(t, "%sp%u[e%u]%s", d == yoke_bool ? "(uchar)(" : "", k, k,
		    d == yoke_bool ? " != 0)" : "");
}

static bool is_half(int dtype)
{
	return dtype == yoke_f16 || dtype == yoke_bf16;
}

// Between any two dtypes, rounded once.
static void put_cast(struct text *t, int from, int to, unsigned a)
{
	if (from == to || (is_half(from) && to == yoke_f32))
		put(t, "v%u", a);
	else if (to == yoke_bool)
		put(t, "(uchar)(v%u != 0)", a);
	else if (is_half(to) && from == yoke_f64)
		put(t, "round_%s(odd_of_f64(v%u))", dtypes[to].name, a);
	else if (is_half(to) && yk_map_integer(from))
		put(t, "round_%s(odd_of_i64((long)v%u))", dtypes[to].name, a);
	else if (is_half(to))
		put(t, "round_%s((float)v%u)", dtypes[to].name, a);
	else if (yk_map_real(from) && yk_map_integer(to))
		put(t, "of_%s_%s(v%u)", dtypes[from].suffix, dtypes[to].suffix, a);
	else
		put(t, "(%s)v%u", dtypes[to].type, a);
}

// Formulas: $a, $b, $c are operands, $T the type, $S its suffix.
static const char *const reals[YOKE_MAP_ERF + 1] = {
	[YOKE_MAP_UNIFORM] = "($T)((uint)$a >> 8) * ($T)5.9604644775390625e-8f", // 2^-24
	[YOKE_MAP_NORMAL] = "normal_$S($a, $b)",
	[YOKE_MAP_ADD] = "$a + $b",
	[YOKE_MAP_SUB] = "$a - $b",
	[YOKE_MAP_MUL] = "$a * $b",
	[YOKE_MAP_DIV] = "$a / $b",
	[YOKE_MAP_POW] = "pow($a, $b)",
	[YOKE_MAP_MIN] = "min_$S($a, $b)",
	[YOKE_MAP_MAX] = "max_$S($a, $b)",
	[YOKE_MAP_NEG] = "-$a",
	[YOKE_MAP_ABS] = "fabs($a)",
	[YOKE_MAP_SIGN] = "sign_$S($a)",
	[YOKE_MAP_FLOOR] = "floor($a)",
	[YOKE_MAP_ROUND] = "rint($a)",
	[YOKE_MAP_CEIL] = "ceil($a)",
	[YOKE_MAP_EXP] = "exp($a)",
	[YOKE_MAP_LOG] = "log($a)",
	[YOKE_MAP_LOG1P] = "log1p($a)",
	[YOKE_MAP_EXPM1] = "expm1($a)",
	[YOKE_MAP_SQRT] = "sqrt($a)",
	[YOKE_MAP_RSQRT] = "($T)1 / sqrt($a)",
	[YOKE_MAP_RECIP] = "($T)1 / $a",
	[YOKE_MAP_SQUARE] = "$a * $a",
	[YOKE_MAP_SIN] = "sin($a)",
	[YOKE_MAP_COS] = "cos($a)",
	[YOKE_MAP_TANH] = "tanh($a)",
	[YOKE_MAP_SIGMOID] = "sigmoid_$S($a)",
	[YOKE_MAP_ERF] = "erf($a)",
};

static const char *const whole[YOKE_MAP_SQUARE + 1] = {
	[YOKE_MAP_ADD] = "add_$S($a, $b)",
	[YOKE_MAP_SUB] = "sub_$S($a, $b)",
	[YOKE_MAP_MUL] = "mul_$S($a, $b)",
	[YOKE_MAP_DIV] = "div_$S($a, $b)",
	[YOKE_MAP_POW] = "pow_$S($a, $b)",
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

static const char *const booleans[YOKE_MAP_ISFINITE + 1] = {
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
	[YOKE_MAP_NOT] = "!$a",
};

static void put_formula(struct text *t, const struct yoke_insn *n, const char *formula)
{
	for (const char *c = formula; *c; c++) {
		if (*c != '$') {
			put(t, "%c", *c);
			continue;
		}
		switch (*++c) {
		case 'T':
			put(t, "%s", dtypes[n->dtype].type);
			break;
		case 'S':
			put(t, "%s", dtypes[n->dtype].suffix);
			break;
		default:
			put(t, "v%u", *c == 'a' ? n->a : *c == 'b' ? n->b : n->c);
		}
	}
}

static int put_arithmetic(struct text *t, const struct yoke_insn *n)
{
	const char *formula = NULL;
	const char *open = n->dtype == yoke_f16 ? "round_f16(" :
			   n->dtype == yoke_bf16 ? "round_bf16(" : "";

	if (yk_map_real(n->dtype) && n->op <= YOKE_MAP_ERF)
		formula = reals[n->op];
	else if (yk_map_integer(n->dtype) && n->op <= YOKE_MAP_SQUARE)
		formula = whole[n->op];
	else if (n->dtype == yoke_bool && n->op <= YOKE_MAP_ISFINITE)
		formula = booleans[n->op], open = "(uchar)(";
	if (!formula)
		return YOKE_EUNSUPPORTED;
	put(t, "%s", open);
	put_formula(t, n, formula);
	put(t, "%s", *open ? ")" : "");
	return 0;
}

static int put_value(struct text *t, const struct yk_map_form *f,
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
		put(t, "(long)i");
		return 0;
	case YOKE_MAP_RAND:
		put(t, "rand_bits(v%u, v%u, v%u)", n->a, n->b, n->c);
		return 0;
	case YOKE_MAP_ISFINITE:
		if (yk_map_real(from))
			put(t, "(uchar)(isfinite(v%u) != 0)", n->a);
		else
			put(t, "(uchar)1");
		return 0;
	case YOKE_MAP_SELECT:
		put(t, "v%u ? v%u : v%u", n->a, n->b, n->c);
		return 0;
	case YOKE_MAP_CAST:
		put_cast(t, from, n->dtype, n->a);
		return 0;
	default:
		return put_arithmetic(t, n);
	}
}

static int put_kernel(struct text *t, const struct yk_map_form *f, const char *name)
{
	put_parameters(t, f, name);
	put_indices(t, f);
	put_operands(t, f);
	for (unsigned k = 0; k < f->map->ninsn; k++) {
		const struct yoke_insn *n = &f->map->insn[k];
		put(t, "\t%s v%u = ", dtypes[n->dtype].type, k);
		int err = put_value(t, f, n);
		if (err)
			return err;
		put(t, ";\n");
	}
	for (unsigned k = 0; k < f->map->nout; k++) {
		int d = f->operand[k].view->dtype;
		if (is_half(d))
			put(t, "\tp%u[e%u] = %s_of_f32(v%u);\n", k, k, dtypes[d].name,
			    f->map->out[k]);
		else
			put(t, "\tp%u[e%u] = v%u;\n", k, k, f->map->out[k]);
	}
	put(t, "}\n");
	return 0;
}

int64_t yk_map_source(int dialect, const struct yoke_op *op, const char *name, char *to,
		      size_t cap)
{
	struct yk_map_form f;
	struct text t = { .to = to, .cap = cap };

	if (dialect != YOKE_DIALECT_OPENCL && dialect != YOKE_DIALECT_CUDA)
		return YOKE_EUNSUPPORTED;
	int err = yk_map_form(op, &f);
	if (!err)
		err = put_helpers(&t, dialect, &f);
	if (!err)
		err = put_kernel(&t, &f, name);
	return err ? err : (int64_t)t.length;
}
