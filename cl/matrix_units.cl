// SPDX-License-Identifier: Apache-2.0
// The functions of matrix.cl by instructions of matrix units, for processors and dtypes that have
// them: NVIDIA's from sm_70 on, AMD's MFMA and WMMA. CUDA C++ and HIP; MATRIX_UNITS: defined here.
#include "prologue.h"

#if defined MATRIX && defined CUDA_ARCH
#if MATRIX == 3 ? CUDA_ARCH >= 700 : MATRIX >= 5 ? CUDA_ARCH >= 750 : CUDA_ARCH >= 800
#define MATRIX_UNITS
#endif
#elif defined MATRIX && defined __AMDGCN__ && defined __cplusplus // not in OpenCL C
#if MATRIX != 1 && \
	(defined __gfx90a__ || defined __gfx940__ || defined __gfx942__ || defined __gfx950__)
#define MATRIX_UNITS
#define MATRIX_MFMA
#elif MATRIX != 1 && \
	(defined __gfx1100__ || defined __gfx1101__ || defined __gfx1102__ || defined __gfx1103__)
#define MATRIX_UNITS
#define MATRIX_WMMA
#endif
#endif

#ifdef MATRIX_UNITS
#if MATRIX >= 5
typedef int matrix_sum;
#else
typedef float matrix_sum;
#endif
struct matrix_sums {
	matrix_sum x[256 / WARP];
};
// Elements along k are packed into words.
#if MATRIX == 1
typedef float matrix_unit;
#elif MATRIX >= 5
typedef uchar matrix_unit;
FN uint matrix_word(const uchar *at, int stride)
{
	return at[0] | (uint)at[stride] << 8 | (uint)at[2 * stride] << 16 |
	       (uint)at[3 * stride] << 24;
}
#else
typedef ushort matrix_unit;
FN uint matrix_word(const ushort *at, int stride) { return at[0] | (uint)at[stride] << 16; }
#endif
#define MATRIX_EACH (4 / (int)sizeof(matrix_unit)) // elements per word

// Lane l holds row or column l % 16, steps from MATRIX_STEPS (l / 16) on, and the sums of rows from
// 4 (l / 16) on.
#if defined MATRIX_MFMA
typedef matrix_sum matrix_sums4 __attribute__((ext_vector_type(4)));
#define MATRIX_STEPS (2 * MATRIX_EACH)
struct __attribute__((aligned(8))) matrix_part {
	matrix_unit x[MATRIX_STEPS];
};
#if MATRIX == 3
typedef _Float16 matrix_halves __attribute__((ext_vector_type(4)));
#define MATRIX_MULTIPLY __builtin_amdgcn_mfma_f32_16x16x16f16
#elif MATRIX == 4
typedef short matrix_halves __attribute__((ext_vector_type(4)));
#define MATRIX_MULTIPLY __builtin_amdgcn_mfma_f32_16x16x16bf16_1k
#elif defined __gfx90a__
// half of the steps at a time; either half works if it is the same for a and b
struct matrix_halves {
	int x[2];
};
FN matrix_sums4 MATRIX_MULTIPLY(matrix_halves a, matrix_halves b, matrix_sums4 c, int, int, int)
{
	c = __builtin_amdgcn_mfma_i32_16x16x16i8(a.x[0], b.x[0], c, 0, 0, 0);
	return __builtin_amdgcn_mfma_i32_16x16x16i8(a.x[1], b.x[1], c, 0, 0, 0);
}
#else
typedef long matrix_halves;
#define MATRIX_MULTIPLY __builtin_amdgcn_mfma_i32_16x16x32_i8
#endif
#if MATRIX == 6
// MFMA's bytes are signed: x y = (x - 128) (y - 128) + 128 (x - 128) + 128 (y - 128) + 128 * 128
FN matrix_halves matrix_signed(const matrix_part *p)
{
	return __builtin_bit_cast(matrix_halves,
				  __builtin_bit_cast(ulong, *p) ^ 0x8080808080808080ul);
}
#endif
#define MATRIX_ROWS 4
#define MATRIX_PEERS 15
FN int matrix_row(int i, int lane) { return lane / 16 * 4 + i; }
FN int matrix_column(int, int lane) { return lane % 16; }
FN int matrix_slot(int i) { return i; }
FN matrix_part matrix_a(const matrix_unit *from, int stride, int lane)
{
	return *(const matrix_part *)(from + lane % 16 * stride + lane / 16 * MATRIX_STEPS);
}
FN matrix_part matrix_b(const matrix_unit *from, int stride, int lane)
{
	return matrix_a(from, stride, lane);
}
FN matrix_part matrix_b_turned(const matrix_unit *from, int stride, int lane)
{
	matrix_part p;
	UNROLL
	for (int k = 0; k < MATRIX_STEPS; k++)
		p.x[k] = from[(lane / 16 * MATRIX_STEPS + k) * stride + lane % 16];
	return p;
}
FN matrix_part matrix_a_turned(const matrix_unit *from, int stride, int lane)
{
	return matrix_b_turned(from, stride, lane);
}
FN void matrix_multiply(matrix_sums *s, const matrix_part *a, const matrix_part *b, int)
{
	matrix_sums4 c = { s->x[0], s->x[1], s->x[2], s->x[3] };
#if MATRIX == 6
	matrix_halves x = matrix_signed(a), y = matrix_signed(b),
		      all = __builtin_bit_cast(matrix_halves, 0x4040404040404040ul);
	const int last = 4 * MATRIX_STEPS * 128 * 128 / 2; // the constant term over all steps
	matrix_sums4 half = { last, last, last, last };
	half = MATRIX_MULTIPLY(all, y, half, 0, 0, 0); // the same for all rows of tiles
	half = MATRIX_MULTIPLY(x, all, half, 0, 0, 0);
	c = MATRIX_MULTIPLY(x, y, c, 0, 0, 0);
	UNROLL
	for (int i = 0; i < 4; i++)
		c[i] = (int)((uint)c[i] + 2u * (uint)half[i]);
#else
	c = MATRIX_MULTIPLY(__builtin_bit_cast(matrix_halves, *a),
			    __builtin_bit_cast(matrix_halves, *b), c, 0, 0, 0);
#endif
	s->x[0] = c[0], s->x[1] = c[1], s->x[2] = c[2], s->x[3] = c[3];
}

#elif defined MATRIX_WMMA
// lane l holds all steps of row or column l % 16, and the sums of rows 2 i + l / 16
typedef matrix_sum matrix_sums8 __attribute__((ext_vector_type(8)));
#if MATRIX == 3
typedef _Float16 matrix_halves __attribute__((ext_vector_type(16)));
#define MATRIX_MULTIPLY __builtin_amdgcn_wmma_f32_16x16x16_f16_w32
#elif MATRIX >= 5
typedef int matrix_bytes __attribute__((ext_vector_type(4)));
struct matrix_halves {
	matrix_bytes x[2];
};
FN matrix_sums8 MATRIX_MULTIPLY(matrix_halves a, matrix_halves b, matrix_sums8 c)
{
	c = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(MATRIX == 5, a.x[0], MATRIX == 5, b.x[0], c,
						       false);
	return __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(MATRIX == 5, a.x[1], MATRIX == 5, b.x[1],
							  c, false);
}
#else
typedef short matrix_halves __attribute__((ext_vector_type(16)));
#define MATRIX_MULTIPLY __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32
#endif
struct matrix_part {
	uint x[8];
};
#define MATRIX_ROWS 8
#define MATRIX_PEERS 15
FN int matrix_row(int i, int lane) { return 2 * i + lane / 16; }
FN int matrix_column(int, int lane) { return lane % 16; }
FN int matrix_slot(int i) { return i; }
FN matrix_part matrix_a(const matrix_unit *from, int stride, int lane)
{
	matrix_part p;
	quad_load(from + lane % 16 * stride, p.x);
	quad_load(from + lane % 16 * stride + 4 * MATRIX_EACH, p.x + 4);
	return p;
}
FN matrix_part matrix_b(const matrix_unit *from, int stride, int lane)
{
	return matrix_a(from, stride, lane);
}
FN matrix_part matrix_b_turned(const matrix_unit *from, int stride, int lane)
{
	matrix_part p;
	UNROLL
	for (int k = 0; k < 8; k++)
		p.x[k] = matrix_word(from + MATRIX_EACH * k * stride + lane % 16, stride);
	return p;
}
FN matrix_part matrix_a_turned(const matrix_unit *from, int stride, int lane)
{
	return matrix_b_turned(from, stride, lane);
}
FN void matrix_multiply(matrix_sums *s, const matrix_part *a, const matrix_part *b, int)
{
	matrix_sums8 c;
	UNROLL
	for (int i = 0; i < 8; i++)
		c[i] = s->x[i];
	c = MATRIX_MULTIPLY(__builtin_bit_cast(matrix_halves, *a),
			    __builtin_bit_cast(matrix_halves, *b), c);
	UNROLL
	for (int i = 0; i < 8; i++)
		s->x[i] = c[i];
}

// PTX ISA, "Matrix multiply-accumulate operation using mma instruction".
#elif CUDA_ARCH >= 750 // m16n8: sums 0..3 belong to columns 0..7, the others to 8..15
struct matrix_part {
	uint x[4];
};
#define MATRIX_ROWS 2
#define MATRIX_PEERS 3
FN int matrix_row(int i, int lane) { return i / 2 % 2 * 8 + lane / 4; }
FN int matrix_column(int i, int lane) { return i / 4 * 8 + lane % 4 * 2 + i % 2; }
FN int matrix_slot(int i) { return i / 2 % 2; }
#if MATRIX == 1
#ifndef MATRIX_TF32
#define MATRIX_TF32(to, x) asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(to) : "f"(x))
#endif
FN uint matrix_tf32(float x)
{
	uint r;
	MATRIX_TF32(r, x);
	return r;
}
#define MATRIX_TURNED(at, stride) matrix_tf32(*(at))
#else
#define MATRIX_TURNED(at, stride) matrix_word(at, stride)
#endif
// Loads four matrices of 8 lines of 16 bytes. Lane l passes the address of line l % 8 of matrix
// l / 8, and receives word l % 4 of line l / 4 of each; with ".trans", elements 2 (l % 4) and
// 2 (l % 4) + 1 of column l / 4, of 16 bits.
#ifndef MATRIX_LOAD
#define MATRIX_LOAD(to, at, form) \
	asm volatile("ldmatrix.sync.aligned.m8n8.x4" form ".shared.b16 {%0, %1, %2, %3}, [%4];" \
	    : "=r"((to)[0]), "=r"((to)[1]), "=r"((to)[2]), "=r"((to)[3]) \
	    : "r"((uint)__cvta_generic_to_shared(at)) : "memory")
#endif
FN matrix_part matrix_lines(const matrix_unit *at)
{
	matrix_part p;
	MATRIX_LOAD(p.x, at, "");
#if MATRIX == 1
	UNROLL
	for (int i = 0; i < 4; i++)
		p.x[i] = matrix_tf32(__uint_as_float(p.x[i]));
#endif
	return p;
}
// Words of rows lane / 4 and lane / 4 + 8, at words lane % 4 and lane % 4 + 4 along k.
FN matrix_part matrix_a(const matrix_unit *from, int stride, int lane)
{
	return matrix_lines(from + lane % 16 * stride + lane / 16 * 4 * MATRIX_EACH);
}
// The two words of a column are adjacent.
FN matrix_part matrix_b(const matrix_unit *from, int stride, int lane)
{
	return matrix_lines(from + (lane / 16 * 8 + lane % 8) * stride +
			    lane / 8 % 2 * 4 * MATRIX_EACH);
}
#if MATRIX == 3 || MATRIX == 4
FN matrix_part matrix_a_turned(const matrix_unit *from, int stride, int lane)
{
	matrix_part p;
	MATRIX_LOAD(p.x, from + (lane / 16 * 8 + lane % 8) * stride + lane / 8 % 2 * 8, ".trans");
	return p;
}
FN matrix_part matrix_b_turned(const matrix_unit *from, int stride, int lane)
{
	matrix_part p;
	MATRIX_LOAD(p.x, from + lane % 16 * stride + lane / 16 * 8, ".trans");
	return p;
}
#else // ldmatrix exchanges elements of 16 bits only
FN matrix_part matrix_turned(const matrix_unit *from, int stride, int lane, int step_bit)
{
	const matrix_unit *at = from + lane % 4 * MATRIX_EACH * stride + lane / 4;
	matrix_part p;
	UNROLL
	for (int i = 0; i < 4; i++)
		p.x[i] = MATRIX_TURNED(at + (i >> step_bit & 1) * 4 * MATRIX_EACH * stride +
					       (i >> (1 - step_bit) & 1) * 8,
				       stride);
	return p;
}
FN matrix_part matrix_a_turned(const matrix_unit *from, int stride, int lane)
{
	return matrix_turned(from, stride, lane, 1);
}
FN matrix_part matrix_b_turned(const matrix_unit *from, int stride, int lane)
{
	return matrix_turned(from, stride, lane, 0);
}
#endif
#if MATRIX == 3 || MATRIX == 4
// The sums as operand a of another product, rounded to its dtype: columns of the sums are steps of
// k, and an item holds the same elements of both.
#define MATRIX_A_OF_SUMS
#ifndef MATRIX_PAIR
#if CUDA_ARCH >= 800 && MATRIX == 4
#define MATRIX_PAIR(to, low, high) asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(to) : "f"(high), "f"(low))
#elif CUDA_ARCH >= 800
#define MATRIX_PAIR(to, low, high) asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(to) : "f"(high), "f"(low))
#else
#define MATRIX_PAIR(to, low, high) \
	asm("{ .reg .b16 x, y; cvt.rn.f16.f32 x, %1; cvt.rn.f16.f32 y, %2; mov.b32 %0, {x, y}; }" \
	    : "=r"(to) : "f"(low), "f"(high))
#endif
#endif
FN matrix_part matrix_a_of_sums(const matrix_sums *s)
{
	matrix_part p;
	UNROLL
	for (int i = 0; i < 4; i++)
		MATRIX_PAIR(p.x[i], s->x[2 * i], s->x[2 * i + 1]);
	return p;
}
#endif
#if MATRIX == 1
#define MATRIX_WORDS(shape, types) "mma.sync.aligned." shape ".row.col.f32." types ".f32"
#define MATRIX_NAME MATRIX_WORDS("m16n8k8", "tf32.tf32")
#elif MATRIX == 4
#define MATRIX_NAME "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
#elif MATRIX >= 5
#define MATRIX_BYTES(shape, type) "mma.sync.aligned." shape ".row.col.s32." type "." type ".s32"
#if MATRIX == 5
#define MATRIX_SHAPE(shape) MATRIX_BYTES(shape, "s8")
#else
#define MATRIX_SHAPE(shape) MATRIX_BYTES(shape, "u8")
#endif
#if CUDA_ARCH >= 800
#define MATRIX_NAME MATRIX_SHAPE("m16n8k32")
#endif
#elif CUDA_ARCH >= 800
#define MATRIX_NAME "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
#endif
#if MATRIX >= 5
#define MATRIX_REGISTER "+r"
#else
#define MATRIX_REGISTER "+f"
#endif
// c [4] += the product of a [4] and b [2]
#if defined MATRIX_NAME && !defined MATRIX_MMA
#define MATRIX_MMA(c, a, b) \
	asm volatile( \
		MATRIX_NAME " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
		: MATRIX_REGISTER((c)[0]), MATRIX_REGISTER((c)[1]), MATRIX_REGISTER((c)[2]), \
		  MATRIX_REGISTER((c)[3]) \
		: "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "r"((b)[0]), "r"((b)[1]))
#endif
FN void matrix_multiply(matrix_sums *s, const matrix_part *a, const matrix_part *b, int)
{
	UNROLL
	for (int h = 0; h < 2; h++) {
		matrix_sum *c = s->x + 4 * h;
#ifdef MATRIX_MMA
		MATRIX_MMA(c, a->x, b->x + 2 * h);
#elif MATRIX >= 5 // half of the steps and of the rows at a time
		UNROLL
		for (int k = 0; k < 4; k++)
			asm volatile(MATRIX_SHAPE("m8n8k16") " {%0, %1}, {%2}, {%3}, {%0, %1};"
				     : "+r"(c[k % 2 * 2]), "+r"(c[k % 2 * 2 + 1])
				     : "r"(a->x[k]), "r"(b->x[2 * h + k / 2]));
#else // half of the steps at a time
		UNROLL
		for (int k = 0; k < 2; k++)
			asm volatile(
				"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
				"{%0, %1, %2, %3};"
				: "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
				: "r"(a->x[2 * k]), "r"(a->x[2 * k + 1]), "r"(b->x[2 * h + k]));
#endif
	}
}

#else
// sm_70, m8n8k4: a quad is the 8 lanes with equal lane / 4 % 4; each holds a quarter of the sums
struct matrix_part {
	uint x[8];
};
#define MATRIX_ROWS 2
#define MATRIX_PEERS 10
FN int matrix_slot(int i) { return i / 2 % 2; }
// Lanes 0..3 of a quad hold rows 0..3, lanes from 16 on rows 4..7.
FN int matrix_line(int lane) { return lane % 4 + lane / 16 * 4; }
FN int matrix_row(int i, int lane)
{
	return lane / 4 % 2 * 8 + (lane & 1) + (i & 2) + lane / 16 * 4;
}
FN int matrix_column(int i, int lane)
{
	return lane / 8 % 2 * 8 + (i & 4) + (lane & 2) + (i & 1);
}
FN matrix_part matrix_line_at(const ushort *from, int stride, int line)
{
	matrix_part p;
	quad_load(from + line * stride, p.x);
	quad_load(from + line * stride + 8, p.x + 4);
	return p;
}
FN matrix_part matrix_a(const ushort *from, int stride, int lane)
{
	return matrix_line_at(from, stride, lane / 4 % 2 * 8 + matrix_line(lane));
}
FN matrix_part matrix_b(const ushort *from, int stride, int lane)
{
	return matrix_line_at(from, stride, lane / 8 % 2 * 8 + matrix_line(lane));
}
FN matrix_part matrix_turned_at(const ushort *at, int stride)
{
	matrix_part p;
	UNROLL
	for (int k = 0; k < 8; k++)
		p.x[k] = matrix_word(at + 2 * k * stride, stride);
	return p;
}
FN matrix_part matrix_a_turned(const ushort *from, int stride, int lane)
{
	return matrix_turned_at(from + lane / 4 % 2 * 8 + matrix_line(lane), stride);
}
FN matrix_part matrix_b_turned(const ushort *from, int stride, int lane)
{
	return matrix_turned_at(from + lane / 8 % 2 * 8 + matrix_line(lane), stride);
}
FN void matrix_multiply(matrix_sums *s, const matrix_part *a, const matrix_part *b, int)
{
	float *c = s->x;
	UNROLL
	for (int k = 0; k < 4; k++)
		asm volatile(
			"mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9}, "
			"{%10, %11}, {%0, %1, %2, %3, %4, %5, %6, %7};"
			: "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]),
			  "+f"(c[6]), "+f"(c[7])
			: "r"(a->x[2 * k]), "r"(a->x[2 * k + 1]), "r"(b->x[2 * k]),
			  "r"(b->x[2 * k + 1]));
}
#endif
#endif
