// SPDX-License-Identifier: Apache-2.0
// Tests the generator of map kernels: what its text depends on, what it refuses, and the
// arguments of a launch.
#include "config.h"

#include "kernel/kerneltext.h"
#include "kernel/mapsrc.h"
#include "tap.h"

static char texts[2][1 << 17];
static struct yoke_map_call calls[2];

struct op {
	struct yoke_map map;
	struct yoke_view out[1], in[2];
	struct yoke_op op;
};

// y = (x0 + x1) * c over dims, all dense.
static void make(struct op *o, int dtype, int rank, const int64_t *dims)
{
	*o = (struct op){ .map = { .size = sizeof o->map,
				   .ninsn = 5,
				   .nconst = 1,
				   .nin = 2,
				   .nout = 1,
				   .out = { 4 } } };
	const uint8_t d = (uint8_t)dtype;
	const struct yoke_insn insn[] = {
		{ YOKE_MAP_INPUT, d, 0, 0, 0, 0 }, { YOKE_MAP_INPUT, d, 0, 1, 0, 0 },
		{ YOKE_MAP_CONST, d, 0, 0, 0, 0 }, { YOKE_MAP_ADD, d, 0, 0, 1, 0 },
		{ YOKE_MAP_MUL, d, 0, 3, 2, 0 },
	};
	memcpy(o->map.insn, insn, sizeof insn);
	struct yoke_view v = { .dtype = d,
			       .rank = (uint8_t)rank,
			       .kind = YOKE_VIEW_BUFFER };
	int64_t n = 1;
	for (int i = rank - 1; i >= 0; i--) {
		v.dims[i] = dims[i];
		v.strides[i] = n;
		n *= dims[i];
	}
	o->out[0] = o->in[0] = o->in[1] = v;
	o->op = (struct yoke_op){ .size = sizeof o->op,
				  .code = YOKE_OP_MAP,
				  .rank = (uint8_t)rank,
				  .nout = 1,
				  .nin = 2,
				  .out = o->out,
				  .in = o->in,
				  .map = &o->map };
	memcpy(o->op.dims, v.dims, sizeof v.dims);
}

static int64_t source(const struct op *o, int which)
{
	calls[which].size = sizeof calls[which];
	int err = yk_map_call(&o->op, &calls[which]);
	return err ? err : yk_map_source(&o->op, texts[which], sizeof texts[which]);
}

// Two ops: are their texts equal exactly if their keys are?
static bool alike(const struct op *a, const struct op *b)
{
	if (source(a, 0) <= 0 || source(b, 1) <= 0) {
		diag("refused");
		return false;
	}
	bool keys = calls[0].key_bytes == calls[1].key_bytes &&
		    !memcmp(calls[0].key, calls[1].key, calls[0].key_bytes);
	bool same = !strcmp(texts[0], texts[1]);
	if (keys != same)
		diag("keys %s, texts %s", keys ? "equal" : "differ",
		     same ? "equal" : "differ");
	return keys && same;
}

static void test_sameness(void)
{
	const int64_t small[] = { 3, 4 }, large[] = { 500, 600 }, three[] = { 2, 3, 4 };
	struct op a, b;

	make(&a, yoke_f32, 2, small);
	make(&b, yoke_f32, 2, large);
	b.map.konst[0] = 0x40000000;
	b.in[0].offset = 128;
	ok(alike(&a, &b), "dims, constants and offsets are not in the text");
	make(&b, yoke_f32, 3, three);
	ok(alike(&a, &b), "dense operands have rank 1, whatever their shape");
	make(&b, yoke_f64, 2, small);
	ok(!alike(&a, &b), "a dtype is in the text");
	make(&b, yoke_f32, 2, small);
	b.in[1].kind = YOKE_VIEW_SCALAR;
	ok(!alike(&a, &b), "a value instead of a buffer is in the text");
	make(&b, yoke_f32, 2, small);
	b.map.insn[3].op = YOKE_MAP_SUB;
	ok(!alike(&a, &b), "an instruction is in the text");
}

static void test_classes(void)
{
	const int64_t dims[] = { 5, 7 };
	const int64_t strides[][2] = { { 7, 1 }, { 0, 0 }, { 0, 1 }, { 1, 0 }, { 1, 5 } };
	const char *names[] = { "linear", "one", "row", "column", "general" };
	struct op a, b;

	for (int i = 0; i < 5; i++)
		for (int j = 0; j < i; j++) {
			make(&a, yoke_f32, 2, dims);
			make(&b, yoke_f32, 2, dims);
			memcpy(a.in[1].strides, strides[i], sizeof strides[i]);
			memcpy(b.in[1].strides, strides[j], sizeof strides[j]);
			ok(!alike(&a, &b), "%s and %s strides differ", names[i],
			   names[j]);
		}
	make(&a, yoke_f32, 2, dims);
	make(&b, yoke_f32, 2, dims);
	memcpy(a.in[1].strides, (int64_t[]){ 3, 9 }, 16);
	memcpy(b.in[1].strides, (int64_t[]){ 1, 5 }, 16);
	ok(alike(&a, &b), "two general strides do not");
}

static void test_arguments(void)
{
	const int64_t dims[] = { 2, 1, 3, 5 };
	struct op a;

	make(&a, yoke_f32, 4, dims);
	a.map.konst[0] = 77;
	source(&a, 0);
	// 3 x (segment, offset), constant
	ok(calls[0].narg == 7 && calls[0].count[1] == 30 && calls[0].count[0] == 1 &&
		   calls[0].arg[2].operand == 1 && calls[0].arg[3].operand == 1 &&
		   calls[0].arg[6].word == 77,
	   "flat: %u arguments", calls[0].narg);
	memcpy(a.in[1].strides, (int64_t[]){ 40, 9, 2, 6 }, 32);
	source(&a, 0);
	// .. and the width, one dim between the first and the last, three strides
	ok(calls[0].narg == 12 && calls[0].count[1] == 5 && calls[0].count[0] == 6 &&
		   calls[0].arg[7].word == 5 && calls[0].arg[8].word == 3 &&
		   calls[0].arg[9].word == 40 && calls[0].arg[11].word == 6,
	   "strided: %u arguments", calls[0].narg);
	a.op.dims[0] = a.out[0].dims[0] = a.in[0].dims[0] = a.in[1].dims[0] = 0;
	ok(source(&a, 0) > 0 && !calls[0].count[0] && !calls[0].count[1],
	   "an empty launch has no work items");
	ok(calls[0].dtypes == 1u << yoke_f32, "the dtypes that occur are listed");
}

// y (5,4,1,6) = the map of x (5,4,3,6) over axis 2.
static void make_reduction(struct op *o, int64_t mask)
{
	static const int64_t dims[] = { 5, 4, 3, 6 };
	static union yoke_attr attr[2];
	int64_t n = 1;

	make(o, yoke_f32, 4, dims);
	o->op.code = YOKE_OP_REDUCE;
	attr[0].i = YOKE_REDUCE_SUM;
	attr[1].i = mask;
	memcpy(o->op.attr, attr, sizeof attr);
	o->op.nattr = 2;
	for (int i = 3; i >= 0; i--) {
		o->out[0].dims[i] = mask >> i & 1 ? 1 : dims[i];
		o->out[0].strides[i] = n;
		n *= o->out[0].dims[i];
	}
}

static void test_reductions(void)
{
	struct op a, b;

	make_reduction(&a, 4);
	ok(source(&a, 0) > 0 && strstr(texts[0], "map_load(") &&
		   strstr(texts[0], "map_place("), "functions of a reduction");
	ok(calls[0].count[0] == 20 && calls[0].count[1] == 6 && calls[0].count[2] == 1 &&
		   calls[0].count[3] == 3, "a reduction over a middle axis");
	make_reduction(&a, 5);
	source(&a, 0);
	ok(calls[0].count[0] == 4 && calls[0].count[1] == 6 && calls[0].count[2] == 5 &&
		   calls[0].count[3] == 3, "a reduction over two axes that do not merge");
	make_reduction(&a, 15);
	source(&a, 0);
	ok(calls[0].count[0] == 1 && calls[0].count[1] == 1 && calls[0].count[2] == 1 &&
		   calls[0].count[3] == 360, "a reduction over all axes, which merge");
	make_reduction(&a, 8);
	make_reduction(&b, 12);
	ok(alike(&a, &b), "the merged form decides");
	make_reduction(&b, 4);
	ok(!alike(&a, &b), "which end is contiguous is in the text");
	a.op.attr[1].i = 16;
	ok(source(&a, 0) == YOKE_EINVAL, "an axis out of range is refused");
}

// y (5,4,3,6) of x (5,4,3,6) and a carried value (5,4,1,6) along axis 2, whose last value is not
// stored.
static void make_recurrence(struct op *o, int64_t carried)
{
	static struct yoke_view out[2];

	make(o, yoke_f32, 4, (int64_t[]){ 5, 4, 3, 6 });
	out[0] = o->out[0];
	out[1] = (struct yoke_view){ .kind = YOKE_VIEW_NONE };
	o->map.out[o->map.nout++] = 4;
	o->op.out = out;
	o->op.nout = 2;
	o->op.code = YOKE_OP_SCAN_MAP;
	o->op.nattr = 3;
	o->op.attr[0].i = 2;
	o->op.attr[2].i = carried;
	if (!carried)
		return;
	o->in[1].dims[2] = 1;
	o->in[1].strides[1] = 6, o->in[1].strides[0] = 24;
}

static void test_recurrences(void)
{
	struct op a, b;

	make_recurrence(&a, 1);
	ok(source(&a, 0) > 0 && strstr(texts[0], "map_scan("), "the function of a recurrence");
	ok(calls[0].count[0] == 20 && calls[0].count[1] == 6 && calls[0].count[3] == 3,
	   "the axis it runs along is not merged");
	make_recurrence(&b, 0);
	ok(!alike(&a, &b), "how many values are carried is in the text");
	make_recurrence(&b, 1);
	b.op.attr[1].i = 1;
	ok(alike(&a, &b), "its direction is not in the text");
	b.op.attr[0].i = 1;
	ok(source(&b, 0) == YOKE_EINVAL, "a first value with the axis");
	make_recurrence(&b, 1);
	b.map.insn[0] = (struct yoke_insn){ YOKE_MAP_INDEX, yoke_i64, 0, 0, 0, 0 };
	ok(source(&b, 0) == YOKE_EUNSUPPORTED, "no index is permitted");
	make_recurrence(&b, 3);
	ok(source(&b, 0) == YOKE_EINVAL, "more carried values than inputs are refused");
}

// The map fused after a product: its second input is `in[2]`, after both factors.
static void make_product(struct op *o, int rank, const int64_t *dims, struct yoke_view in[3])
{
	make(o, yoke_f32, rank, dims);
	o->op.code = YOKE_OP_CONTRACT;
	o->op.rank = 0; // its dims are those of the result
	o->op.attr[0].i = yoke_f32;
	o->op.nattr = 1;
	for (int i = 0; i < 3; i++)
		in[i] = o->out[0];
	in[0].dims[rank - 1] = in[1].dims[rank - 2] = 77;
	o->op.in = in;
	o->op.nin = 3;
}

static void test_products(void)
{
	const int64_t dims[] = { 3, 4, 5 };
	struct yoke_view in[3];
	struct op a;

	make_product(&a, 3, dims, in);
	ok(source(&a, 0) > 0 && strstr(texts[0], "map_store(float product, ulong r, ulong j"),
	   "a product is a parameter");
	ok(calls[0].count[0] == 12 && calls[0].count[1] == 5, "rows and columns are not merged");
	ok(calls[0].narg == 6 && calls[0].arg[2].operand == 3 && calls[0].arg[5].word == 5,
	   "its inputs follow both factors: %u arguments", calls[0].narg);
	a.op.attr[0].i = yoke_f16;
	ok(source(&a, 0) == YOKE_EINVAL, "a product of another dtype than the program's");
	a.op.attr[0].i = yoke_f32;
	a.op.nin = 2;
	ok(source(&a, 0) == YOKE_EINVAL, "a missing input is refused");
}

// Values known only at launch are named in a call, and are not part of the text.
static void test_launches(void)
{
	const int64_t dims[] = { 5, 4, 3, 6 };

	tap_seed();
	for (int kind = 0; kind < 3; kind++) {
		struct yoke_view in[3];
		struct op a;
		int segments = 0, offsets = 0;
		if (kind == 0)
			make(&a, yoke_f32, 4, dims);
		else if (kind == 1)
			make_reduction(&a, 4);
		else
			make_product(&a, 4, dims, in);
		a.in[0].strides[1] = 77;
		if (kind != 1)
			a.in[1].kind = in[2].kind = YOKE_VIEW_SCALAR;
		memset(calls, 0, sizeof calls);
		for (int i = 0; i < 2; i++) {
			calls[i].size = sizeof *calls;
			a.out[0].offset = (uint64_t)rnd_int(0, 1 << 20);
			a.in[0].offset = a.in[1].offset = (uint64_t)rnd_int(0, 1 << 20);
			in[2].offset = (uint64_t)rnd_int(0, 1 << 20);
			ok(!yk_map_call(&a.op, &calls[i]), "op %d has a call", a.op.code);
		}
		ok(!memcmp(&calls[0], &calls[1], sizeof *calls),
		   "op %d: the call is the same at any offset and value", a.op.code);
		for (uint32_t i = 0; i < calls[0].narg; i++) {
			segments += calls[0].arg[i].kind == YOKE_MAP_ARG_SEGMENT;
			offsets += calls[0].arg[i].kind == YOKE_MAP_ARG_OFFSET;
		}
		ok(offsets == segments + (kind != 1) && segments == (kind == 2 ? 1 : kind + 2),
		   "op %d: %d segments, %d offsets and values", a.op.code, segments, offsets);
	}
}

static void test_protocol(void)
{
	const int64_t dims[] = { 3 };
	static char cut[1 << 17];
	struct op a;

	make(&a, yoke_bf16, 1, dims);
	int64_t n = source(&a, 0);
	ok(n > 0 && (int64_t)strlen(texts[0]) == n, "length %d", (int)n);
	ok(yk_map_source(&a.op, NULL, 0) == n,
	   "a length query without a buffer");
	for (int64_t cap = 1; cap <= n + 1; cap += n / 3) {
		memset(cut, '#', sizeof cut);
		bool good = yk_map_source(&a.op, cut, (size_t)cap) == n &&
			    !memcmp(cut, texts[0], (size_t)cap - 1) && !cut[cap - 1] &&
			    cut[cap] == '#';
		ok(good, "%d bytes of room", (int)cap);
	}
	const char *core = strstr(texts[0], "#define MAP_PARAMS");
	ok(core && strstr(core, "void map_at("), "parameters and a function are in the text");
	ok(yk_kernel_source(YOKE_DIALECT_CUDA, &a.op, "", cut, sizeof cut) > 0 &&
		   strstr(cut, "__global__") && core &&
		   !strcmp(strstr(cut, "#define MAP_PARAMS"), core),
	   "dialects differ only in their prologues");
}

// y = (x0 + x1) * c over two tensors: x0 is a list, x1 a number.
static void make_list(struct op *o, struct yoke_view in[3], struct yoke_view out[2])
{
	make(o, yoke_f32, 1, (int64_t[]){ 7 });
	out[0] = out[1] = in[0] = in[1] = in[2] = o->in[0];
	in[1].dims[0] = out[1].dims[0] = 900;
	in[2] = (struct yoke_view){ .kind = YOKE_VIEW_BUFFER, .dtype = yoke_f32, .align = 4 };
	o->op.code = YOKE_OP_LIST_MAP;
	o->op.list = 2, o->op.lists_in = o->op.lists_out = 1;
	o->op.nin = 3, o->op.nout = 2;
	o->op.in = in, o->op.out = out;
}

static void test_lists(void)
{
	struct yoke_view in[2][3], out[2][2];
	struct op a, b;

	make_list(&a, in[0], out[0]);
	make_list(&b, in[1], out[1]);
	in[1][0].dims[0] = out[1][0].dims[0] = 3;
	ok(alike(&a, &b), "sizes of tensors are not in the text");
	ok(calls[0].narg == 3 && calls[0].arg[0].operand == 4 &&
		   calls[0].arg[0].kind == YOKE_MAP_ARG_SEGMENT,
	   "arguments are the number of lists and the constant");
	in[1][2].rank = 1, in[1][2].dims[0] = 2, in[1][2].strides[0] = 1;
	ok(!alike(&a, &b), "which numbers are tensors is in the text");
	a.op.code = YOKE_OP_LIST_REDUCE;
	a.op.lists_out = 0, a.op.nout = 1;
	ok(source(&a, 0) > 0 && strstr(texts[0], "map_load") && !strstr(texts[0], "map_place"),
	   "a reduction over lists");
	make_list(&a, in[0], out[0]);
	a.map.insn[0].op = YOKE_MAP_INDEX, a.map.insn[0].dtype = yoke_i64;
	ok(source(&a, 0) == YOKE_EUNSUPPORTED, "no index in lists");
	make_list(&a, in[0], out[0]);
	a.op.nin = 4;
	ok(source(&a, 0) == YOKE_EINVAL, "more operands than inputs");
}

static void test_refusals(void)
{
	const int64_t dims[] = { 3, 3, 3, 3, 3 };
	struct op a;

	make(&a, yoke_f32, 1, dims);
	a.map.insn[3].op = 999;
	ok(source(&a, 0) == YOKE_EUNSUPPORTED, "unknown instruction");
	make(&a, yoke_i32, 1, dims);
	a.map.insn[3].op = YOKE_MAP_EXP;
	ok(source(&a, 0) == YOKE_EUNSUPPORTED, "exp of integers");
	make(&a, yoke_f32, 1, dims);
	a.map.insn[3].b = 3;
	ok(source(&a, 0) == YOKE_EINVAL, "an operand that is defined later");
	make(&a, yoke_f32, 1, dims);
	a.in[1].dtype = yoke_f16;
	ok(source(&a, 0) == YOKE_EINVAL, "an input of another dtype");
	make(&a, yoke_f32, 1, dims);
	a.map.out[0] = 60;
	ok(source(&a, 0) == YOKE_EINVAL, "an output that no instruction defines");
	make(&a, yoke_f32, 1, dims);
	a.map.ninsn = 65;
	ok(source(&a, 0) == YOKE_EINVAL, "too many instructions");
	make(&a, yoke_f32, 5, dims);
	ok(source(&a, 0) > 0, "five axes that merge are accepted");
	for (int i = 0; i < 5; i++)
		a.in[0].strides[i] = (int64_t[]){ 1, 3, 9, 27, 81 }[i];
	ok(source(&a, 0) > 0 && calls[0].count[0] == 81, "five axes that do not merge are refused");
	make(&a, yoke_f32, 8, (int64_t[]){ 3, 3, 3, 3, 3, 3, 3, 3 });
	struct yoke_view in[12];
	for (int k = 0; k < 12; k++) {
		in[k] = a.out[0];
		for (int i = 0; i < 8; i++)
			in[k].strides[i] = a.out[0].strides[7 - i];
	}
	a.op.in = in;
	a.op.nin = a.map.nin = 12;
	ok(source(&a, 0) == YOKE_EUNSUPPORTED, "more strides than arguments");
	make(&a, yoke_f32, 2, dims);
	a.in[0].dims[1] = 4;
	ok(source(&a, 0) == YOKE_EINVAL, "a shape that is not the op's");
	calls[0].size = 8;
	make(&a, yoke_f32, 1, dims);
	ok(yk_map_call(&a.op, &calls[0]) == YOKE_EINVAL, "a call that is too short");
}

int main(void)
{
	test_sameness();
	test_classes();
	test_arguments();
	test_reductions();
	test_recurrences();
	test_products();
	test_launches();
	test_protocol();
	test_lists();
	test_refusals();
	return done();
}
