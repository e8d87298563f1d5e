// SPDX-License-Identifier: Apache-2.0
// The generator: writes a map program as functions, from its form.  The text includes the
// helpers the program needs from cl/, and has functions in the common dialect: each
// instruction one variable v0, v1, .. in single assignment.  f16 and bf16 values are floats
// rounded by each instruction.
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kernel/kerneltext.h"
#include "kernel/mapform.h"
#include "kernel/mapsrc.h"
#include "yoke.h"

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

static void put_real(struct text *t, const char *type, const char *suffix)
{
	put(t, "#define REAL %s\n#define R(name) name##_%s\n%s#undef REAL\n#undef R\n", type, suffix,
	    yk_kernel_text("map_real.cl"));
}

static void put_integer(struct text *t, int dtype)
{
	put(t,
	    "#define INT %s\n#define UINT %s\n#define INT_LEAST %s\n#define INT_MOST %s\n"
	    "#define I(name) name##_%s\n%s"
	    "#undef INT\n#undef UINT\n#undef INT_LEAST\n#undef INT_MOST\n#undef I\n",
	    dtypes[dtype].type, integers[dtype].unsigned_type, integers[dtype].least,
	    integers[dtype].most, dtypes[dtype].suffix, yk_kernel_text("map_int.cl"));
}

static void put_helpers(struct text *t, const struct yk_map_form *f)
{
	const uint32_t floats = 1u << yoke_f32 | 1u << yoke_f16 | 1u << yoke_bf16;
	bool random = false;

	if (f->dtypes & 1u << yoke_f64)
		put(t, "#define USE_F64\n");
	put(t, "#include \"half.cl\"\n");
	if (f->dtypes & (floats | 1u << yoke_f64))
		put(t, "#include \"math.cl\"\n");
	if (f->dtypes & floats)
		put_real(t, "float", "f32");
	if (f->dtypes & 1u << yoke_f64)
		put_real(t, "double", "f64");
	for (int d = yoke_i8; d <= yoke_i64; d++)
		if (f->dtypes & 1u << d)
			put_integer(t, d);
	for (unsigned k = 0; k < f->map->ninsn; k++)
		random = random || f->map->insn[k].op == YOKE_MAP_RAND;
	if (random)
		put(t, "#include \"philox.cl\"\n");
}

// ---- parameters ----

static bool in_memory(const struct yk_map_operand *o)
{
	return o->view && o->class >= YK_MAP_LINEAR;
}

// Is operand k a list?
static bool is_listed(const struct yk_map_form *f, unsigned k)
{
	return f->list && f->operand[k].class == YK_MAP_LINEAR;
}

// Is the instruction's value the same for all elements of a tensor of lists?
static bool is_given(const struct yk_map_form *f, unsigned insn)
{
	return f->list && f->given >> insn & 1;
}

// The list of parameters, or of the arguments that pass them on.  numbers: of lists, what finds their
// numbers, instead of what comes from them.
static void put_list(struct text *t, const struct yk_map_form *f, bool types, bool numbers)
{
	const char *pointer = types ? "GLOBAL uchar *" : "", *word = types ? "ulong " : "";
	const char *stride = types ? "long " : "";

	for (unsigned k = 0; k < f->noperand; k++)
		if (in_memory(&f->operand[k]) && (!f->list || numbers != is_listed(f, k)))
			put(t, ", %ss%u, %sat%u", pointer, k, word, k);
	if (f->list && !numbers) {
		put(t, ", %su\n", types ? "struct list_numbers " : "");
		return;
	}
	for (unsigned k = 0; k < f->noperand; k++)
		if (f->operand[k].class == YK_MAP_VALUE)
			put(t, ", %sw%u", word, k);
	for (unsigned k = 0; k < f->map->nconst; k++)
		put(t, ", %sc%u", word, k);
	if (!f->flat && !f->split)
		put(t, ", %swidth", word);
	for (int i = 0; i < f->rank; i++)
		if (yk_map_length(f, i))
			put(t, ", %sd%d", word, i);
	for (unsigned k = 0; k <= f->noperand; k++)
		for (int i = 0; i < f->rank && f->operand[k].class == YK_MAP_STRIDED; i++)
			if (f->operand[k].step[i] == YK_MAP_ANY)
				put(t, ", %st%u_%d", stride, k, i);
	put(t, "\n");
}

static void put_parameters(struct text *t, const struct yk_map_form *f)
{
	put(t, "\n#define MAP_PARAMS ");
	put_list(t, f, true, false);
	put(t, "#define MAP_ARGS ");
	put_list(t, f, false, false);
}

// ---- where operands are ----

// x0, x1, ..: indices along merged axes first .. end-1, of which `row` counts all but the
// last and `last` that.
static void put_axes(struct text *t, const struct yk_map_form *f, int first, int end,
		     const char *row, const char *last)
{
	const char *type = f->narrow ? "int" : "long", *word = f->narrow ? "uint" : "ulong";

	put(t, "\t%s x%d = (%s)%s;\n", type, end - 1, type, last);
	if (end - first < 2)
		return;
	put(t, "\t%s rest%d = (%s)%s;\n", word, first, word, row);
	for (int i = end - 2; i > first; i--)
		put(t, "\t%s x%d = (%s)(rest%d %% (%s)d%d);\n\trest%d /= (%s)d%d;\n", type, i,
		    type, first, word, i, first, word, i);
	put(t, "\t%s x%d = (%s)rest%d;\n", type, first, type, first);
}

static void put_stride(struct text *t, const struct yk_map_form *f, unsigned k, int axis,
		       const char *plus)
{
	switch (f->operand[k].step[axis]) {
	case YK_MAP_STILL:
		break;
	case YK_MAP_UNIT:
		put(t, "%sx%d", plus, axis);
		break;
	default:
		put(t, "%sx%d * %st%u_%d", plus, axis, f->narrow ? "(int)" : "", k, axis);
	}
}

// The index of operand k's element along merged axes 0 .. end-1.
static void put_place(struct text *t, const struct yk_map_form *f, unsigned k, int end)
{
	const struct yk_map_operand *o = &f->operand[k];

	if (o->class == YK_MAP_LINEAR)
		put(t, "%s", f->flat ? "(long)j" : "(long)(r * width + j)");
	else if (o->class == YK_MAP_ONE)
		put(t, o->each ? "(long)i" : "0");
	else
		put(t, "(long)(0");
	for (int i = 0; i < end && o->class == YK_MAP_STRIDED; i++)
		put_stride(t, f, k, i, " + ");
	if (o->class == YK_MAP_STRIDED)
		put(t, ")");
}

// p0, p1, ..: where operand k's elements are; e0, e1, ..: the index of the one at hand.
static void put_operand(struct text *t, const struct yk_map_form *f, unsigned k)
{
	const struct yk_map_operand *o = &f->operand[k];
	const char *type = dtypes[o->dtype].stored;

	if (!in_memory(o))
		return;
	put(t, "\tGLOBAL %s *p%u = (GLOBAL %s *)(s%u + at%u);\n", type, k, type, k, k);
	put(t, "\tlong e%u = ", k);
	put_place(t, f, k, f->rank);
	put(t, ";\n");
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

// Does the input's value come from the step before?
static bool is_carried(const struct yk_map_form *f, unsigned input)
{
	return input + f->carried >= f->map->nin;
}

// What the buffer or the word of an input holds.
static void put_operand_value(struct text *t, const struct yk_map_form *f, unsigned input)
{
	unsigned k = f->map->nout + input;
	int d = f->operand[k].dtype;
	char word[16];

	snprintf(word, sizeof word, "w%u", k);
	if (f->operand[k].class == YK_MAP_VALUE)
		put_word(t, d, word);
	else if (f->operand[k].class == YK_MAP_PRODUCT)
		put(t, "product");
	else if (d == yoke_f16 || d == yoke_bf16)
		put(t, "p%u[e%u]", k, k);
	else
		put(t, "%sp%u[e%u]%s", d == yoke_bool ? "(uchar)(" : "", k, k,
		    d == yoke_bool ? " != 0)" : "");
}

static void put_input(struct text *t, const struct yk_map_form *f, unsigned input)
{
	if (is_carried(f, input))
		put(t, "u%u", input);
	else
		put_operand_value(t, f, input);
}

static bool is_half(int dtype)
{
	return dtype == yoke_f16 || dtype == yoke_bf16;
}

// Does put_value give the bits of a half, and not its value?
static bool as_bits(const struct yk_map_form *f, const struct yoke_insn *n)
{
	if (!is_half(n->dtype))
		return false;
	switch (n->op) {
	case YOKE_MAP_INPUT:
		return f->operand[f->map->nout + n->a].class >= YK_MAP_LINEAR && !is_carried(f, n->a);
	case YOKE_MAP_CAST:
		return f->map->insn[n->a].dtype != n->dtype;
	case YOKE_MAP_CONST: case YOKE_MAP_SELECT:
		return false;
	}
	return true;
}

// Between any two dtypes, rounded once; bits of a half.
static void put_cast(struct text *t, int from, int to, unsigned a)
{
	if (from == to || (is_half(from) && to == yoke_f32))
		put(t, "v%u", a);
	else if (to == yoke_bool)
		put(t, "(uchar)(v%u != 0)", a);
	else if (is_half(to) && from == yoke_f64)
		put(t, "%s_of_f32(odd_of_f64(v%u))", dtypes[to].name, a);
	else if (is_half(to) && yk_map_integer(from))
		put(t, "%s_of_f32(odd_of_i64((long)v%u))", dtypes[to].name, a);
	else if (is_half(to))
		put(t, "%s_of_f32((float)v%u)", dtypes[to].name, a);
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
		put_place(t, f, f->noperand, f->rank);
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

// ---- random bits ahead ----

// One value for all elements, found without the program?
static bool is_seed(const struct yk_map_form *f, unsigned insn)
{
	const struct yoke_insn *n = &f->map->insn[insn];
	if (n->op != YOKE_MAP_INPUT)
		return n->op == YOKE_MAP_CONST;
	int class = f->operand[f->map->nout + n->a].class;
	return class == YK_MAP_VALUE || class == YK_MAP_ONE;
}

// Random bits of a map by the index of its element are drawn ahead of it: four elements have one
// block of Philox.
static bool is_drawn(const struct yk_map_form *f, const struct yoke_insn *n)
{
	return f->code == YOKE_OP_MAP && n->op == YOKE_MAP_RAND &&
	       f->map->insn[n->a].op == YOKE_MAP_INDEX && is_seed(f, n->b) && is_seed(f, n->c);
}

static bool draws(const struct yk_map_form *f)
{
	for (unsigned k = 0; k < f->map->ninsn; k++)
		if (is_drawn(f, &f->map->insn[k]))
			return true;
	return false;
}

// A parameter or an argument for each instruction that is drawn, its number in the middle.
static void put_drawn(struct text *t, const struct yk_map_form *f, const char *before,
		      const char *behind)
{
	for (unsigned k = 0; k < f->map->ninsn; k++)
		if (is_drawn(f, &f->map->insn[k]))
			put(t, "%s%u%s, ", before, k, behind);
}

// Key and step of instruction k.
static void put_seed(struct text *t, const struct yk_map_form *f, unsigned k)
{
	const uint16_t seed[] = { f->map->insn[k].b, f->map->insn[k].c };

	for (int i = 0; i < 2; i++) {
		const struct yoke_insn *n = &f->map->insn[seed[i]];
		const unsigned operand = f->map->nout + n->a;
		if (n->op == YOKE_MAP_CONST)
			put(t, ", (long)c%u", n->a);
		else if (f->operand[operand].class == YK_MAP_VALUE)
			put(t, ", (long)w%u", operand);
		else
			put(t, ", *(GLOBAL const long *)(s%u + at%u)", operand, operand);
	}
}

// ---- functions ----

// One instruction as a variable, or two.
static int put_insn(struct text *t, const struct yk_map_form *f, unsigned k)
{
	const struct yoke_insn *n = &f->map->insn[k];
	const bool bits = as_bits(f, n);

	if (bits)
		put(t, "\tushort h%u = ", k);
	else
		put(t, "\t%s v%u = ", dtypes[n->dtype].type, k);
	int err = put_value(t, f, n);
	put(t, ";\n");
	if (bits)
		put(t, "\tfloat v%u = f32_of_%s(h%u);\n", k, dtypes[n->dtype].name, k);
	return err;
}

static int put_program(struct text *t, const struct yk_map_form *f)
{
	int err = 0;

	for (unsigned k = f->map->nout; k + f->carried < f->noperand; k++)
		if (!f->list || is_listed(f, k))
			put_operand(t, f, k);
	for (unsigned k = 0; k < f->map->ninsn && !err; k++) {
		const struct yoke_insn *n = &f->map->insn[k];
		if (is_drawn(f, n)) // a parameter
			continue;
		if (is_given(f, k))
			put(t, "\t%s v%u = u.v%u;\n", dtypes[n->dtype].type, k, k);
		else
			err = put_insn(t, f, k);
		if (is_given(f, k) && as_bits(f, n))
			put(t, "\tushort h%u = %s_of_f32(v%u);\n", k, dtypes[n->dtype].name, k);
	}
	return err;
}

// Of lists: what is the same for all elements of tensor i, and where its part of each list is.
static int put_tensor(struct text *t, const struct yk_map_form *f)
{
	unsigned lists = 0;
	int err = 0;

	put(t, "struct list_numbers {\n\tulong i;\n");
	for (unsigned k = 0; k < f->map->ninsn; k++)
		if (is_given(f, k))
			put(t, "\t%s v%u;\n", dtypes[f->map->insn[k].dtype].type, k);
	put(t, "};\n#define LIST_PARAMS ");
	put_list(t, f, true, true);
	put(t, "#define LIST_ARGS ");
	put_list(t, f, false, true);
	put(t, "FN struct list_numbers list_numbers(ulong i LIST_PARAMS)\n{\n\tstruct list_numbers u;\n\tu.i = i;\n");
	for (unsigned k = f->map->nout; k < f->noperand; k++)
		if (!is_listed(f, k))
			put_operand(t, f, k);
	for (unsigned k = 0; k < f->map->ninsn && !err; k++)
		if (is_given(f, k)) {
			err = put_insn(t, f, k);
			put(t, "\tu.v%u = v%u;\n", k, k);
		}
	put(t, "\treturn u;\n}\n#define LIST_TENSOR(i) struct list_numbers u = list_numbers(i LIST_ARGS);");
	for (unsigned k = 0; k < f->noperand; k++)
		if (is_listed(f, k)) {
			put(t, " GLOBAL uchar *s%u = LIST_SEGMENT(%u); ulong at%u = LIST_OFFSET(%u);", k, lists, k,
			    lists);
			lists++;
		}
	put(t, "\n#define LISTS %u\n", lists);
	return err;
}

// The value of output k, as it is stored.
static void put_stored(struct text *t, const struct yk_map_form *f, unsigned k)
{
	const unsigned out = f->map->out[k];
	int d = f->operand[k].dtype;
	if (as_bits(f, &f->map->insn[out]))
		put(t, "h%u", out);
	else if (is_half(d))
		put(t, "%s_of_f32(v%u)", dtypes[d].name, out);
	else
		put(t, "v%u", out);
}

static int put_store(struct text *t, const struct yk_map_form *f)
{
	put(t, "FN void map_store(%s product, ulong r, ulong j MAP_PARAMS)\n{\n",
	    dtypes[f->operand[f->map->nout].dtype].type);
	put_axes(t, f, 0, f->rank, "r", "j");
	for (unsigned k = 0; k < f->map->nout; k++)
		put_operand(t, f, k);
	int err = put_program(t, f);
	for (unsigned k = 0; k < f->map->nout; k++) {
		put(t, "\tp%u[e%u] = ", k, k);
		put_stored(t, f, k);
		put(t, ";\n");
	}
	put(t, "}\n");
	return err;
}

// map_put: an element whose random bits are there, to where it belongs; map_at draws them itself.
static void put_at(struct text *t, const struct yk_map_form *f)
{
	put(t, "FN void map_put(");
	put_drawn(t, f, "int v", "");
	put(t, "ulong r, ulong j MAP_PARAMS)\n{\n");
	put_axes(t, f, 0, f->rank, "r", "j");
	for (unsigned k = 0; k < f->map->nout; k++) {
		put_operand(t, f, k);
		put(t, "\t%s y%u;\n", dtypes[f->operand[k].dtype].stored, k);
	}
	put(t, "\tmap_values(");
	for (unsigned k = 0; k < f->map->nout; k++)
		put(t, "&y%u, ", k);
	put_drawn(t, f, "v", "");
	put(t, "r, j MAP_ARGS);\n");
	for (unsigned k = 0; k < f->map->nout; k++)
		put(t, "\tp%u[e%u] = y%u;\n", k, k, k);
	put(t, "}\nFN void map_at(ulong r, ulong j MAP_PARAMS)\n{\n");
	for (unsigned k = 0; k < f->map->ninsn; k++)
		if (is_drawn(f, &f->map->insn[k])) {
			put(t, "\tint v%u = rand_bits(", k);
			put_place(t, f, f->noperand, f->rank);
			put_seed(t, f, k);
			put(t, ");\n");
		}
	put(t, "\tmap_put(");
	put_drawn(t, f, "v", "");
	put(t, "r, j MAP_ARGS);\n}\n");
}

// map_block: MAP_BLOCK elements of a row, a multiple of 32; random bits are drawn in fours first.
// Under MAP_STREAM the outputs, which are linear and begin on lines, are written past the caches.
static void put_block(struct text *t, const struct yk_map_form *f)
{
	put(t, "#ifdef MAP_BLOCK\nFN void map_block(ulong r, ulong j0 MAP_PARAMS)\n{\n");
	if (draws(f)) {
		put(t, "\tulong j = j0;\n\tulong index = (ulong)");
		put_place(t, f, f->noperand, f->rank);
		put(t, ", first = index & 3;\n");
	}
	for (unsigned k = 0; k < f->map->ninsn; k++)
		if (is_drawn(f, &f->map->insn[k])) {
			put(t, "\tuint b%u[MAP_BLOCK + 4];\n"
			    "\tEACH\n\tfor (ulong l = 0; l < MAP_BLOCK / 4; l++)\n"
			    "\t\trand_four((index >> 2) + l", k);
			put_seed(t, f, k);
			put(t, ", b%u + 4 * l);\n\tif (first)\n"
			    "\t\trand_four((index >> 2) + MAP_BLOCK / 4", k);
			put_seed(t, f, k);
			put(t, ", b%u + MAP_BLOCK);\n", k);
		}
	put(t, "#ifdef MAP_STREAM\n");
	for (unsigned k = 0; k < f->map->nout; k++)
		put(t, "\t%s y%u[MAP_BLOCK] __attribute__((aligned(64)));\n",
		    dtypes[f->operand[k].dtype].stored, k);
	put(t, "\tEACH_PAIR\n\tfor (ulong l = 0; l < MAP_BLOCK; l++)\n\t\tmap_values(");
	for (unsigned k = 0; k < f->map->nout; k++)
		put(t, "y%u + l, ", k);
	put_drawn(t, f, "(int)b", "[first + l]");
	put(t, "r, j0 + l MAP_ARGS);\n");
	for (unsigned k = 0; k < f->map->nout; k++) {
		const size_t size = yoke_dtype_size(f->operand[k].dtype);
		const unsigned piece = size < 4 ? 16 * (unsigned)size : 64; // of a vector
		put(t, "\tfor (ulong l = 0; l < sizeof y%u; l += %u)\n"
		    "\t\tstream_%u((const uchar *)y%u + l, s%u + at%u + (%sj0) * sizeof *y%u + l);\n",
		    k, piece, piece, k, k, k, f->flat ? "" : "r * width + ", k);
	}
	put(t, "#else\n\tEACH_PAIR\n\tfor (ulong l = 0; l < MAP_BLOCK; l++)\n\t\tmap_put(");
	put_drawn(t, f, "(int)b", "[first + l]");
	put(t, "r, j0 + l MAP_ARGS);\n#endif\n}\n#endif\n");
}

static int put_element(struct text *t, const struct yk_map_form *f)
{
	put(t, "FN void map_values(");
	for (unsigned k = 0; k < f->map->nout; k++)
		put(t, "%s *y%u, ", dtypes[f->operand[k].dtype].stored, k);
	put_drawn(t, f, "int v", "");
	put(t, "ulong r, ulong j MAP_PARAMS)\n{\n");
	put_axes(t, f, 0, f->rank, "r", "j");
	int err = put_program(t, f);
	for (unsigned k = 0; k < f->map->nout; k++) {
		put(t, "\t*y%u = ", k);
		put_stored(t, f, k);
		put(t, ";\n");
	}
	put(t, "}\n");
	put_at(t, f);
	put_block(t, f);
	return err;
}

static int put_load(struct text *t, const struct yk_map_form *f)
{
	const char *type = dtypes[f->map->insn[f->map->out[0]].dtype].type;

	put(t, "#define MAP_TYPE %s\n", type);
	if (!f->list) {
		put(t, "FN ulong map_place(ulong r, ulong c MAP_PARAMS)\n{\n");
		put_axes(t, f, 0, f->split, "r", "c");
		put(t, "\treturn (ulong)");
		put_place(t, f, 0, f->split);
		put(t, ";\n}\n");
	}
	put(t, "FN MAP_TYPE map_load(ulong r, ulong c, ulong q, ulong j MAP_PARAMS)\n{\n");
	if (f->split)
		put_axes(t, f, 0, f->split, "r", "c");
	put_axes(t, f, f->split, f->rank, "q", "j");
	int err = put_program(t, f);
	put(t, "\treturn v%u;\n}\n", f->map->out[0]);
	return err;
}

// u0, u1, ..: the carried values, by input.
static void put_firsts(struct text *t, const struct yk_map_form *f)
{
	for (unsigned i = f->map->nin - f->carried; i < f->map->nin; i++) {
		const struct yk_map_operand *o = &f->operand[f->map->nout + i];
		const bool bits = is_half(o->dtype) && in_memory(o);
		put_operand(t, f, f->map->nout + i);
		put(t, "\t%s u%u = ", dtypes[o->dtype].type, i);
		if (bits)
			put(t, "f32_of_%s(", dtypes[o->dtype].name);
		put_operand_value(t, f, i);
		put(t, "%s;\n", bits ? ")" : "");
	}
}

// Stores one output, if it is wanted: a value of this name, or an instruction's.
static void put_output(struct text *t, const struct yk_map_form *f, unsigned k, const char *value)
{
	const struct yk_map_operand *o = &f->operand[k];
	if (!in_memory(o))
		return;
	put_operand(t, f, k);
	put(t, "\tp%u[e%u] = ", k, k);
	if (!value)
		put_stored(t, f, k);
	else if (is_half(o->dtype))
		put(t, "%s_of_f32(%s)", dtypes[o->dtype].name, value);
	else
		put(t, "%s", value);
	put(t, ";\n");
}

static int put_scan(struct text *t, const struct yk_map_form *f)
{
	const unsigned firsts = f->map->nin - f->carried, lasts = f->map->nout - f->carried;
	char name[16];

	put(t, "FN void map_scan(ulong r, ulong c, ulong steps, ulong back MAP_PARAMS)\n{\n");
	put_axes(t, f, 0, f->split, "r", "c");
	put_firsts(t, f);
	put(t, "\tfor (ulong step = 0; step < steps; step++) {\n");
	put_axes(t, f, f->split, f->rank, "0", "(back ? steps - 1 - step : step)");
	int err = put_program(t, f);
	for (unsigned k = 0; k < lasts; k++)
		put_output(t, f, k, NULL);
	for (unsigned i = 0; i < f->carried; i++)
		put(t, "\tu%u = v%u;\n", firsts + i, f->map->out[lasts + i]);
	put(t, "\t}\n");
	for (unsigned i = 0; i < f->carried; i++) {
		snprintf(name, sizeof name, "u%u", firsts + i);
		put_output(t, f, lasts + i, name);
	}
	put(t, "}\n");
	return err;
}

int64_t yk_map_source(const struct yoke_op *op, char *to, size_t cap)
{
	struct yk_map_form f;
	struct text t = { .to = to, .cap = cap };
	int err = yk_map_form(op, &f);

	if (!err) {
		put_helpers(&t, &f);
		err = f.list ? put_tensor(&t, &f) : 0;
		put_parameters(&t, &f);
	}
	if (!err) {
		const bool loads = op->code == YOKE_OP_REDUCE || op->code == YOKE_OP_LIST_REDUCE;
		err = loads			     ? put_load(&t, &f) :
		      op->code == YOKE_OP_CONTRACT ? put_store(&t, &f) :
		      op->code == YOKE_OP_SCAN_MAP ? put_scan(&t, &f) :
						     put_element(&t, &f);
	}
	return err ? err : (int64_t)t.length;
}
