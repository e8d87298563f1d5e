// SPDX-License-Identifier: Apache-2.0
// The source generator: writes a map program as functions in the dialect common to OpenCL C and
// CUDA C++, from its form, and includes the helpers it needs from cl/.  Each instruction becomes
// one variable v0, v1, .. in single assignment.  f16 and bf16 values are floats that each
// instruction rounds.
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "kernel/kerneltext.h"
#include "kernel/mapsrc.h"
#include "kernel/mapsrc_priv.h"
#include "yoke.h"

static const struct {
	const char *unsigned_type, *min, *max;
} integers[] = {
	[yoke_i8] = { "uchar", "(-128)", "127" },
	[yoke_u8] = { "uchar", "0", "255" },
	[yoke_i32] = { "uint", "(-2147483647 - 1)", "2147483647" },
	[yoke_i64] = { "ulong", "(-9223372036854775807L - 1)", "9223372036854775807L" },
};

// ---- before the kernel ----

static void put_real(struct yk_text *t, const char *type, const char *suffix)
{
	yk_put(t, "#define REAL %s\n#define R(name) name##_%s\n%s#undef REAL\n#undef R\n", type,
	       suffix, yk_kernel_text("map_real.cl"));
}

static void put_integer(struct yk_text *t, int dtype)
{
	yk_put(t,
	    "#define INT %s\n#define UINT %s\n#define INT_LOWEST %s\n#define INT_HIGHEST %s\n"
	    "#define I(name) name##_%s\n%s"
	    "#undef INT\n#undef UINT\n#undef INT_LOWEST\n#undef INT_HIGHEST\n#undef I\n",
	    yk_map_dtypes[dtype].type, integers[dtype].unsigned_type, integers[dtype].min,
	    integers[dtype].max, yk_map_dtypes[dtype].suffix, yk_kernel_text("map_int.cl"));
}

static void put_helpers(struct yk_text *t, const struct yk_map_form *f)
{
	const uint32_t floats = 1u << yoke_f32 | 1u << yoke_f16 | 1u << yoke_bf16;
	bool random = false;

	if (f->dtypes & 1u << yoke_f64)
		yk_put(t, "#define USE_F64\n");
	yk_put(t, "#include \"half.cl\"\n");
	if (f->dtypes & (floats | 1u << yoke_f64))
		yk_put(t, "#include \"math.cl\"\n");
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
		yk_put(t, "#include \"philox.cl\"\n");
}

// ---- parameters ----

// Is operand k a list?
static bool is_listed(const struct yk_map_form *f, unsigned k)
{
	return f->list && f->operand[k].class == YK_MAP_LINEAR;
}

// Is operand k read or written four elements at a time: contiguous, 2 or 4 bytes each?
static bool is_quad(const struct yk_map_form *f, unsigned k)
{
	const size_t size = yoke_dtype_size(f->operand[k].dtype);

	return f->operand[k].class == YK_MAP_LINEAR && (size == 2 || size == 4);
}

// In an op over lists: is the instruction's value the same for all elements of a tensor?
static bool is_given(const struct yk_map_form *f, unsigned insn)
{
	return f->list && f->given >> insn & 1;
}

// The list of parameters, or of the arguments that pass them on.  numbers: for ops over lists, the
// parameters from which the numbers are computed, instead of the computed numbers.
static void put_list(struct yk_text *t, const struct yk_map_form *f, bool types, bool numbers)
{
	const char *pointer = types ? "GLOBAL uchar *" : "", *word = types ? "ulong " : "";
	const char *stride = types ? "long " : "";

	for (unsigned k = 0; k < f->noperand; k++)
		if (yk_map_in_memory(&f->operand[k]) && (!f->list || numbers != is_listed(f, k)))
			yk_put(t, ", %ss%u, %sat%u", pointer, k, word, k);
	if (f->list && !numbers) {
		yk_put(t, ", %su\n", types ? "struct list_numbers " : "");
		return;
	}
	for (unsigned k = 0; k < f->noperand; k++)
		if (f->operand[k].class == YK_MAP_VALUE)
			yk_put(t, ", %sw%u", word, k);
	for (unsigned k = 0; k < f->map->nconst; k++)
		yk_put(t, ", %sc%u", word, k);
	if (!f->flat && !f->split)
		yk_put(t, ", %swidth", word);
	for (int i = 0; i < f->rank; i++)
		if (yk_map_length(f, i))
			yk_put(t, ", %sd%d", word, i);
	for (unsigned k = 0; k <= f->noperand; k++)
		for (int i = 0; i < f->rank && f->operand[k].class == YK_MAP_STRIDED; i++)
			if (f->operand[k].step[i] == YK_MAP_ANY)
				yk_put(t, ", %st%u_%d", stride, k, i);
	yk_put(t, "\n");
}

static void put_parameters(struct yk_text *t, const struct yk_map_form *f)
{
	yk_put(t, "\n#define MAP_PARAMS ");
	put_list(t, f, true, false);
	yk_put(t, "#define MAP_ARGS ");
	put_list(t, f, false, false);
}

// ---- random bits ahead ----

// Is the instruction's value the same for all elements, and known before the program runs?
static bool is_seed(const struct yk_map_form *f, unsigned insn)
{
	const struct yoke_insn *n = &f->map->insn[insn];
	if (n->op != YOKE_MAP_INPUT)
		return n->op == YOKE_MAP_CONST;
	int class = f->operand[f->map->nout + n->a].class;
	return class == YK_MAP_VALUE || class == YK_MAP_ONE;
}

// If a map draws random bits by its element's index, they are drawn before the program runs: four
// elements share one Philox block.
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

// A parameter or an argument for each instruction drawn in advance: before, its number, after.
static void put_drawn(struct yk_text *t, const struct yk_map_form *f, const char *before,
		      const char *after)
{
	for (unsigned k = 0; k < f->map->ninsn; k++)
		if (is_drawn(f, &f->map->insn[k]))
			yk_put(t, "%s%u%s, ", before, k, after);
}

// Key and step of instruction k.
static void put_seed(struct yk_text *t, const struct yk_map_form *f, unsigned k)
{
	const uint16_t seed[] = { f->map->insn[k].b, f->map->insn[k].c };

	for (int i = 0; i < 2; i++) {
		const struct yoke_insn *n = &f->map->insn[seed[i]];
		const unsigned operand = f->map->nout + n->a;
		if (n->op == YOKE_MAP_CONST)
			yk_put(t, ", (long)c%u", n->a);
		else if (f->operand[operand].class == YK_MAP_VALUE)
			yk_put(t, ", (long)w%u", operand);
		else
			yk_put(t, ", *(GLOBAL const long *)(s%u + at%u)", operand, operand);
	}
}

// ---- functions ----

// Writes one instruction as a variable, or as two: bits and value.
static int put_insn(struct yk_text *t, const struct yk_map_form *f, unsigned k)
{
	const struct yoke_insn *n = &f->map->insn[k];
	const bool bits = yk_map_as_bits(f, n);

	if (bits)
		yk_put(t, "\tushort h%u = ", k);
	else
		yk_put(t, "\t%s v%u = ", yk_map_dtypes[n->dtype].type, k);
	int err = yk_put_value(t, f, n);
	yk_put(t, ";\n");
	if (bits)
		yk_put(t, "\tfloat v%u = f32_of_%s(h%u);\n", k, yk_map_dtypes[n->dtype].name, k);
	return err;
}

// fours: operands that are read four at a time are parameters.
static int put_program(struct yk_text *t, const struct yk_map_form *f, bool fours)
{
	int err = 0;

	for (unsigned k = f->map->nout; k + f->carried < f->noperand; k++)
		if (fours && is_quad(f, k))
			yk_put(t, "\tconst %s *p%u = &q%u;\n\tconst ulong e%u = 0;\n",
			       yk_map_dtypes[f->operand[k].dtype].stored, k, k, k);
		else if (!f->list || is_listed(f, k))
			yk_put_operand(t, f, k);
	for (unsigned k = 0; k < f->map->ninsn && !err; k++) {
		const struct yoke_insn *n = &f->map->insn[k];
		if (is_drawn(f, n)) // it is a parameter
			continue;
		if (is_given(f, k))
			yk_put(t, "\t%s v%u = u.v%u;\n", yk_map_dtypes[n->dtype].type, k, k);
		else
			err = put_insn(t, f, k);
		if (is_given(f, k) && yk_map_as_bits(f, n))
			yk_put(t, "\tushort h%u = %s_of_f32(v%u);\n", k,
			       yk_map_dtypes[n->dtype].name, k);
	}
	return err;
}

// For ops over lists: the values common to all elements of tensor i, and where each list's tensor
// begins.
static int put_tensor(struct yk_text *t, const struct yk_map_form *f)
{
	unsigned lists = 0;
	int err = 0;

	yk_put(t, "struct list_numbers {\n\tulong i;\n");
	for (unsigned k = 0; k < f->map->ninsn; k++)
		if (is_given(f, k))
			yk_put(t, "\t%s v%u;\n", yk_map_dtypes[f->map->insn[k].dtype].type, k);
	yk_put(t, "};\n#define LIST_PARAMS ");
	put_list(t, f, true, true);
	yk_put(t, "#define LIST_ARGS ");
	put_list(t, f, false, true);
	yk_put(t,
	       "FN struct list_numbers list_numbers(ulong i LIST_PARAMS)\n{\n\tstruct list_numbers u;\n\tu.i = i;\n");
	for (unsigned k = f->map->nout; k < f->noperand; k++)
		if (!is_listed(f, k))
			yk_put_operand(t, f, k);
	for (unsigned k = 0; k < f->map->ninsn && !err; k++)
		if (is_given(f, k)) {
			err = put_insn(t, f, k);
			yk_put(t, "\tu.v%u = v%u;\n", k, k);
		}
	yk_put(t,
	       "\treturn u;\n}\n#define LIST_TENSOR(i) struct list_numbers u = list_numbers(i LIST_ARGS);");
	for (unsigned k = 0; k < f->noperand; k++)
		if (is_listed(f, k)) {
			yk_put(t,
			       " GLOBAL uchar *s%u = LIST_SEGMENT(%u); ulong at%u = LIST_OFFSET(%u);",
			       k, lists, k, lists);
			lists++;
		}
	yk_put(t, "\n#define LISTS %u\n#define LIST_FOURS (!(0", lists); // all aligned to 4?
	for (unsigned k = 0; k < f->noperand; k++)
		if (is_quad(f, k))
			yk_put(t, " | (at%u & %d)", k,
			       4 * (int)yoke_dtype_size(f->operand[k].dtype) - 1);
	yk_put(t, "))\n");
	return err;
}

// The value of output k in its storage type.
static void put_stored(struct yk_text *t, const struct yk_map_form *f, unsigned k)
{
	const unsigned out = f->map->out[k];
	int d = f->operand[k].dtype;
	if (yk_map_as_bits(f, &f->map->insn[out]))
		yk_put(t, "h%u", out);
	else if (yk_map_half(d))
		yk_put(t, "%s_of_f32(v%u)", yk_map_dtypes[d].name, out);
	else
		yk_put(t, "v%u", out);
}

static int put_store(struct yk_text *t, const struct yk_map_form *f)
{
	yk_put(t, "FN void map_store(%s product, ulong r, ulong j MAP_PARAMS)\n{\n",
	    yk_map_dtypes[f->operand[f->map->nout].dtype].type);
	yk_put_axes(t, f, 0, f->rank, "r", "j");
	for (unsigned k = 0; k < f->map->nout; k++)
		yk_put_operand(t, f, k);
	int err = put_program(t, f, false);
	for (unsigned k = 0; k < f->map->nout; k++) {
		yk_put(t, "\tp%u[e%u] = ", k, k);
		put_stored(t, f, k);
		yk_put(t, ";\n");
	}
	yk_put(t, "}\n");
	return err;
}

// A parameter or an argument for each operand that is read four elements at a time.
static void put_fours(struct yk_text *t, const struct yk_map_form *f, bool types)
{
	for (unsigned k = f->map->nout; k < f->noperand; k++)
		if (is_quad(f, k) && types)
			yk_put(t, "%s q%u, ", yk_map_dtypes[f->operand[k].dtype].stored, k);
		else if (is_quad(f, k))
			yk_put(t, "q%u[l], ", k);
}

// map_put stores an element whose random bits are given; map_at draws them first.
static void put_at(struct yk_text *t, const struct yk_map_form *f)
{
	yk_put(t, "FN void map_put(");
	put_drawn(t, f, "int v", "");
	yk_put(t, "ulong r, ulong j MAP_PARAMS)\n{\n");
	yk_put_axes(t, f, 0, f->rank, "r", "j");
	for (unsigned k = 0; k < f->map->nout; k++) {
		yk_put_operand(t, f, k);
		yk_put(t, "\t%s y%u;\n", yk_map_dtypes[f->operand[k].dtype].stored, k);
	}
	yk_put(t, "\tmap_values(");
	for (unsigned k = 0; k < f->map->nout; k++)
		yk_put(t, "&y%u, ", k);
	put_drawn(t, f, "v", "");
	yk_put(t, "r, j MAP_ARGS);\n");
	for (unsigned k = 0; k < f->map->nout; k++)
		yk_put(t, "\tp%u[e%u] = y%u;\n", k, k, k);
	yk_put(t, "}\nFN void map_at(ulong r, ulong j MAP_PARAMS)\n{\n");
	for (unsigned k = 0; k < f->map->ninsn; k++)
		if (is_drawn(f, &f->map->insn[k])) {
			yk_put(t, "\tint v%u = rand_bits(", k);
			yk_put_index(t, f, f->noperand, f->rank);
			put_seed(t, f, k);
			yk_put(t, ");\n");
		}
	yk_put(t, "\tmap_put(");
	put_drawn(t, f, "v", "");
	yk_put(t, "r, j MAP_ARGS);\n}\n");
}

// map_block: MAP_BLOCK elements of a row, a multiple of 32; random bits are drawn four at a time
// first.  With MAP_STREAM the outputs, contiguous and aligned to cache lines, are written with
// non-temporal stores.
static void put_block(struct yk_text *t, const struct yk_map_form *f)
{
	yk_put(t, "#ifdef MAP_BLOCK\nFN void map_block(ulong r, ulong j0 MAP_PARAMS)\n{\n");
	if (draws(f)) {
		yk_put(t, "\tulong j = j0;\n\tulong index = (ulong)");
		yk_put_index(t, f, f->noperand, f->rank);
		yk_put(t, ", first = index & 3;\n");
	}
	for (unsigned k = 0; k < f->map->ninsn; k++)
		if (is_drawn(f, &f->map->insn[k])) {
			yk_put(t, "\tuint b%u[MAP_BLOCK + 4];\n"
			    "\tEACH\n\tfor (ulong l = 0; l < MAP_BLOCK / 4; l++)\n"
			    "\t\trand_four((index >> 2) + l", k);
			put_seed(t, f, k);
			yk_put(t, ", b%u + 4 * l);\n\tif (first)\n"
			    "\t\trand_four((index >> 2) + MAP_BLOCK / 4", k);
			put_seed(t, f, k);
			yk_put(t, ", b%u + MAP_BLOCK);\n", k);
		}
	yk_put(t, "#ifdef MAP_STREAM\n");
	for (unsigned k = 0; k < f->map->nout; k++)
		yk_put(t, "\t%s y%u[MAP_BLOCK] __attribute__((aligned(64)));\n",
		    yk_map_dtypes[f->operand[k].dtype].stored, k);
	yk_put(t, "\tEACH_PAIR\n\tfor (ulong l = 0; l < MAP_BLOCK; l++)\n\t\tmap_values(");
	for (unsigned k = 0; k < f->map->nout; k++)
		yk_put(t, "y%u + l, ", k);
	put_drawn(t, f, "(int)b", "[first + l]");
	yk_put(t, "r, j0 + l MAP_ARGS);\n");
	for (unsigned k = 0; k < f->map->nout; k++) {
		const size_t size = yoke_dtype_size(f->operand[k].dtype);
		const unsigned vector = size < 4 ? 16 * (unsigned)size : 64; // bytes per vector
		yk_put(t,
		       "\tfor (ulong l = 0; l < sizeof y%u; l += %u)\n"
		       "\t\tstream_%u((const uchar *)y%u + l, s%u + at%u + (%sj0) * sizeof *y%u + l);\n",
		       k, vector, vector, k, k, k, f->flat ? "" : "r * width + ", k);
	}
	yk_put(t, "#else\n\tEACH_PAIR\n\tfor (ulong l = 0; l < MAP_BLOCK; l++)\n\t\tmap_put(");
	put_drawn(t, f, "(int)b", "[first + l]");
	yk_put(t, "r, j0 + l MAP_ARGS);\n#endif\n}\n#endif\n");
}

// map_values, or four_values: computes the outputs of one element.
static int put_values(struct yk_text *t, const struct yk_map_form *f, bool fours)
{
	yk_put(t, "FN void %s_values(", fours ? "four" : "map");
	for (unsigned k = 0; k < f->map->nout; k++)
		yk_put(t, "%s *y%u, ", yk_map_dtypes[f->operand[k].dtype].stored, k);
	put_drawn(t, f, "int v", "");
	if (fours)
		put_fours(t, f, true);
	yk_put(t, "ulong r, ulong j MAP_PARAMS)\n{\n");
	yk_put_axes(t, f, 0, f->rank, "r", "j");
	int err = put_program(t, f, fours);
	for (unsigned k = 0; k < f->map->nout; k++) {
		yk_put(t, "\t*y%u = ", k);
		put_stored(t, f, k);
		yk_put(t, ";\n");
	}
	yk_put(t, "}\n");
	return err;
}

// Loads the operands of four elements of a row, from j on, into registers.
static void put_four_loads(struct yk_text *t, const struct yk_map_form *f)
{
	for (unsigned k = f->map->nout; k < f->noperand; k++)
		if (is_quad(f, k))
			yk_put(t,
			       "\t%s q%u[4];\n\tFOUR_LOAD(s%u + at%u + (%sj) * sizeof *q%u, q%u);\n",
			       yk_map_dtypes[f->operand[k].dtype].stored, k, k, k,
			       f->flat ? "" : "r * width + ", k, k);
}

// map_quad: four elements of a row from j on.  j is a multiple of 4 and contiguous operands are
// aligned to four elements, so that these are loaded and stored with one access.
static int put_quad(struct yk_text *t, const struct yk_map_form *f)
{
	yk_put(t, "#ifdef MAP_QUAD\n");
	int err = put_values(t, f, true);
	yk_put(t, "FN void map_quad(ulong r, ulong j MAP_PARAMS)\n{\n");
	put_four_loads(t, f);
	if (draws(f))
		yk_put(t, "\tulong index = (ulong)");
	if (draws(f))
		yk_put_index(t, f, f->noperand, f->rank);
	if (draws(f))
		yk_put(t, ";\n");
	for (unsigned k = 0; k < f->map->ninsn; k++)
		if (is_drawn(f, &f->map->insn[k])) {
			yk_put(t, "\tuint b%u[4];\n\trand_four(index >> 2", k);
			put_seed(t, f, k);
			yk_put(t, ", b%u);\n", k);
		}
	for (unsigned k = 0; k < f->map->nout; k++)
		yk_put(t, "\t%s y%u[4];\n", yk_map_dtypes[f->operand[k].dtype].stored, k);
	yk_put(t, "\tUNROLL\n\tfor (int l = 0; l < 4; l++)\n\t\tfour_values(");
	for (unsigned k = 0; k < f->map->nout; k++)
		yk_put(t, "y%u + l, ", k);
	put_drawn(t, f, "(int)b", "[l]");
	put_fours(t, f, false);
	yk_put(t, "r, j + (ulong)l MAP_ARGS);\n");
	for (unsigned k = 0; k < f->map->nout; k++)
		if (is_quad(f, k))
			yk_put(t, "\tFOUR_STORE(y%u, s%u + at%u + (%sj) * sizeof *y%u);\n", k, k, k,
			       f->flat ? "" : "r * width + ", k);
	bool rest = false;
	for (unsigned k = 0; k < f->map->nout; k++)
		rest |= !is_quad(f, k);
	if (rest) {
		yk_put(t,
		       "\tulong j0 = j;\n\tUNROLL\n\tfor (int l = 0; l < 4; l++) {\n\tulong j = j0 + (ulong)l;\n");
		yk_put_axes(t, f, 0, f->rank, "r", "j");
		for (unsigned k = 0; k < f->map->nout; k++)
			if (!is_quad(f, k)) {
				yk_put_operand(t, f, k);
				yk_put(t, "\tp%u[e%u] = y%u[l];\n", k, k, k);
			}
		yk_put(t, "\t}\n");
	}
	yk_put(t, "}\n#endif\n");
	return err;
}

static int put_element(struct yk_text *t, const struct yk_map_form *f)
{
	int err = put_values(t, f, false);

	put_at(t, f);
	put_block(t, f);
	return err ? err : put_quad(t, f);
}

// The value to be reduced for one element; with `fours`, operands that are read four at a time are
// parameters.
static int put_loaded(struct yk_text *t, const struct yk_map_form *f, bool fours)
{
	yk_put(t, "FN MAP_TYPE %s_load(", fours ? "four" : "map");
	if (fours)
		put_fours(t, f, true);
	yk_put(t, "ulong r, ulong c, ulong q, ulong j MAP_PARAMS)\n{\n");
	if (f->split)
		yk_put_axes(t, f, 0, f->split, "r", "c");
	yk_put_axes(t, f, f->split, f->rank, "q", "j");
	int err = put_program(t, f, fours);
	yk_put(t, "\treturn v%u;\n}\n", f->map->out[0]);
	return err;
}

static int put_load(struct yk_text *t, const struct yk_map_form *f)
{
	const char *type = yk_map_dtypes[f->map->insn[f->map->out[0]].dtype].type;

	yk_put(t, "#define MAP_TYPE %s\n", type);
	if (!f->list) {
		yk_put(t, "FN ulong map_place(ulong r, ulong c MAP_PARAMS)\n{\n");
		yk_put_axes(t, f, 0, f->split, "r", "c");
		yk_put(t, "\treturn (ulong)");
		yk_put_index(t, f, 0, f->split);
		yk_put(t, ";\n}\n");
	}
	int err = put_loaded(t, f, false);
	if (err || !f->list)
		return err;
	yk_put(t, "#ifdef MAP_QUAD\n");
	err = put_loaded(t, f, true);
	yk_put(t, "FN void quad_values(MAP_TYPE *to, ulong j MAP_PARAMS)\n{\n");
	put_four_loads(t, f);
	yk_put(t, "\tUNROLL\n\tfor (int l = 0; l < 4; l++)\n\t\tto[l] = four_load(");
	put_fours(t, f, false);
	yk_put(t, "0, 0, 0, j + (ulong)l MAP_ARGS);\n}\n#endif\n");
	return err;
}

// u0, u1, ..: the carried values, numbered by input.
static void put_firsts(struct yk_text *t, const struct yk_map_form *f)
{
	for (unsigned i = f->map->nin - f->carried; i < f->map->nin; i++) {
		const struct yk_map_operand *o = &f->operand[f->map->nout + i];
		const bool bits = yk_map_half(o->dtype) && yk_map_in_memory(o);
		yk_put_operand(t, f, f->map->nout + i);
		yk_put(t, "\t%s u%u = ", yk_map_dtypes[o->dtype].type, i);
		if (bits)
			yk_put(t, "f32_of_%s(", yk_map_dtypes[o->dtype].name);
		yk_put_operand_value(t, f, i);
		yk_put(t, "%s;\n", bits ? ")" : "");
	}
}

// Stores one output if it is requested: the named value, or an instruction's.
static void put_output(struct yk_text *t, const struct yk_map_form *f, unsigned k,
		       const char *value)
{
	const struct yk_map_operand *o = &f->operand[k];
	if (!yk_map_in_memory(o))
		return;
	yk_put_operand(t, f, k);
	yk_put(t, "\tp%u[e%u] = ", k, k);
	if (!value)
		put_stored(t, f, k);
	else if (yk_map_half(o->dtype))
		yk_put(t, "%s_of_f32(%s)", yk_map_dtypes[o->dtype].name, value);
	else
		yk_put(t, "%s", value);
	yk_put(t, ";\n");
}

static int put_scan(struct yk_text *t, const struct yk_map_form *f)
{
	const unsigned firsts = f->map->nin - f->carried, lasts = f->map->nout - f->carried;
	char name[16];

	yk_put(t, "FN void map_scan(ulong r, ulong c, ulong steps, ulong back MAP_PARAMS)\n{\n");
	yk_put_axes(t, f, 0, f->split, "r", "c");
	put_firsts(t, f);
	yk_put(t, "\tfor (ulong step = 0; step < steps; step++) {\n");
	yk_put_axes(t, f, f->split, f->rank, "0", "(back ? steps - 1 - step : step)");
	int err = put_program(t, f, false);
	for (unsigned k = 0; k < lasts; k++)
		put_output(t, f, k, NULL);
	for (unsigned i = 0; i < f->carried; i++)
		yk_put(t, "\tu%u = v%u;\n", firsts + i, f->map->out[lasts + i]);
	yk_put(t, "\t}\n");
	for (unsigned i = 0; i < f->carried; i++) {
		snprintf(name, sizeof name, "u%u", firsts + i);
		put_output(t, f, lasts + i, name);
	}
	yk_put(t, "}\n");
	return err;
}

int64_t yk_map_source(const struct yoke_op *op, char *to, size_t cap)
{
	struct yk_map_form f;
	struct yk_text t = { .to = to, .cap = cap };
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
