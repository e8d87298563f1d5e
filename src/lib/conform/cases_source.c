// SPDX-License-Identifier: Apache-2.0
// Cases of SOURCE: small kernels in both dialects, with a fixed work-group size and with any size.
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "conform/case.h"

static const char prologue[] =
	"#ifdef __OPENCL_VERSION__\n"
	"#define KERNEL __kernel\n"
	"#define GLOBAL __global\n"
	"#define LOCAL __local\n"
	"#define ITEM(k) get_global_id(k)\n"
	"#define ITEMS(k) get_global_size(k)\n"
	"#define PLACE get_local_id(0)\n"
	"#define SYNC barrier(CLK_LOCAL_MEM_FENCE)\n"
	"#else\n"
	"#define KERNEL extern \"C\" __global__\n"
	"#define GLOBAL\n"
	"#define LOCAL __shared__\n"
	"typedef unsigned char uchar;\n"
	"typedef unsigned long ulong;\n"
	"#define AXIS(of, k) ((ulong)(k == 0 ? of.x : k == 1 ? of.y : of.z))\n"
	"#define ITEM(k) (AXIS(blockIdx, k) * AXIS(blockDim, k) + AXIS(threadIdx, k))\n"
	"#define ITEMS(k) (AXIS(gridDim, k) * AXIS(blockDim, k))\n"
	"#define PLACE threadIdx.x\n"
	"#define SYNC __syncthreads()\n"
	"#endif\n";

// y = a * factor + b; z is a in reverse order; b may be absent
static const char scale_text[] =
	"KERNEL void scale(GLOBAL uchar *y, ulong y0, GLOBAL uchar *z, ulong z0, GLOBAL uchar *a, ulong a0,\n"
	"\tGLOBAL uchar *b, ulong b0, long factor, long n)\n"
	"{\n"
	"\tlong i = (long)((ITEM(2) * ITEMS(1) + ITEM(1)) * ITEMS(0) + ITEM(0));\n"
	"\tif (i >= n)\n"
	"\t\treturn;\n"
	"\tT other = b ? ((GLOBAL T *)(b + b0))[i] : (T)0;\n"
	"\t((GLOBAL T *)(y + y0))[i] = ((GLOBAL T *)(a + a0))[i] * (T)factor + other;\n"
	"\t((GLOBAL T *)(z + z0))[i] = ((GLOBAL T *)(a + a0))[n - 1 - i];\n"
	"}\n";

// Reverses the elements of each group.
static const char turn_text[] =
	"KERNEL void turn(GLOBAL uchar *y, ulong y0, GLOBAL uchar *a, ulong a0)\n"
	"{\n"
	"\tLOCAL T part[GROUP];\n"
	"\tpart[PLACE] = ((GLOBAL T *)(a + a0))[ITEM(0)];\n"
	"\tSYNC;\n"
	"\t((GLOBAL T *)(y + y0))[ITEM(0)] = part[GROUP - 1 - PLACE];\n"
	"}\n";

static void set_source(struct yk_case *c, int dtype, int group, const char *entry, const char *body)
{
	const size_t cap = sizeof prologue + strlen(body) + 100;
	char *text = yk_case_alloc(c, cap);
	snprintf(text, cap, "#define T %s\n#define GROUP %d\n%s%s",
		 dtype == yoke_f32 ? "float" : "int", group, prologue, body);
	c->source = (struct yoke_source){ .size = sizeof c->source, .text = text, .entry = entry };
	c->source.dialect = c->number % 2 ? YOKE_DIALECT_CUDA : YOKE_DIALECT_OPENCL;
	c->source.hash =
		yk_hash(entry, strlen(entry), yk_hash(text, strlen(text), c->source.dialect));
	c->op.source = &c->source;
}

static bool make_turn(struct yk_case *c, int dtype)
{
	const int64_t group = yk_draw_int(c, 1, 16), n = group * yk_draw_int(c, 1, 90);
	uint32_t y = yk_case_out(c, dtype, 1, &n, YK_DENSE);
	uint32_t a = yk_case_in(c, dtype, 1, &n, YK_DENSE, -1000, 1000);

	set_source(c, dtype, (int)group, "turn", turn_text);
	c->source.global[0] = (uint64_t)n;
	c->source.local[0] = (uint64_t)group;
	for (int k = 1; k < 3; k++)
		c->source.global[k] = c->source.local[k] = 1;
	for (int64_t i = 0; i < n; i++) {
		const struct yk_num x = c->array[a].num[i / group * group + group - 1 - i % group];
		c->array[y].want[i] = (struct yk_expected){ .f = x.f, .i = x.i };
	}
	yk_case_note(c, "groups of %lld", (long long)group);
	return true;
}

bool yk_make_source(struct yk_case *c, int dtype)
{
	int64_t dims[3], items[3];
	const int64_t factor = yk_draw_int(c, -9, 9);

	yk_case_op(c, YOKE_OP_SOURCE);
	if (c->number / 2 % 3 == 2)
		return make_turn(c, dtype);
	const int rank = (int)yk_draw_int(c, 0, 3);
	for (int k = 0; k < rank; k++)
		dims[k] = yk_draw_size(c, 17);
	const int64_t n = yk_count_of(rank, dims);
	uint32_t y = yk_case_out(c, dtype, rank, dims, YK_DENSE);
	uint32_t z = yk_case_out(c, dtype, rank, dims, YK_DENSE);
	uint32_t a = yk_case_in(c, dtype, rank, dims, YK_DENSE, -1000, 1000);
	uint32_t b = yk_draw_one_in(c, 3) ? yk_case_none(c) :
					    yk_case_in(c, dtype, rank, dims, YK_DENSE, -1000, 1000);
	set_source(c, dtype, 1, "scale", scale_text);
	c->op.nattr = 2;
	c->op.attr[0].i = factor;
	c->op.attr[1].i = n;
	items[0] = yk_draw_int(c, 1, 40);
	items[1] = yk_draw_int(c, 1, 8);
	items[2] = (n + items[0] * items[1] - 1) / (items[0] * items[1]);
	for (int k = 0; k < 3; k++)
		c->source.global[k] = (uint64_t)items[k];
	for (int64_t i = 0; i < n; i++) {
		const struct yk_num x = c->array[a].num[i], last = c->array[a].num[n - 1 - i],
				    other = c->array[b].num ? c->array[b].num[i] :
							      (struct yk_num){ 0, 0 };
		c->array[z].want[i] = (struct yk_expected){ .f = last.f, .i = last.i };
		if (yk_num_real(dtype))
			yk_expect_real(&c->array[y].want[i], dtype, x.f * (double)factor + other.f,
				       2 * yk_num_unit(dtype) *
					       (fabs(x.f * (double)factor) + fabs(other.f)));
		else
			yk_expect_int(&c->array[y].want[i], x.i * factor + other.i);
	}
	yk_case_note(c, "%lld x %lld x %lld items", (long long)items[0], (long long)items[1],
		     (long long)items[2]);
	return true;
}
