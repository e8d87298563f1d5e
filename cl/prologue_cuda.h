// SPDX-License-Identifier: Apache-2.0
// The kernel dialect for CUDA C++ and HIP (NVRTC, hiprtc): defines the same names as
// prologue_opencl.h, on hosts with 64-bit long. Compile with -fmad=false. Vectors have width 1 or
// 4; vectors of 4 are aligned to 16 bytes in memory (8 for halves). Processor instructions are
// guarded by CUDA_ARCH and __AMDGCN__; other C++ compilers see portable code.
// WARP: the number of items that can exchange registers; undefined: none.
#if defined __CUDACC__ && !defined __clang__
#pragma nv_diag_suppress 177 // not every kernel uses all functions
#endif
// Compute capability x 100 whose instructions may be used. A test may define it, and with it models
// of the instructions: COPY_QUAD, COPIES_COMMIT, COPIES_WAIT, MATRIX_LOAD, MATRIX_PAIR, MATRIX_TF32 and
// MATRIX_MMA.
#if defined __CUDA_ARCH__ && !defined CUDA_ARCH
#define CUDA_ARCH __CUDA_ARCH__
#endif
typedef signed char schar;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

#define KERNEL extern "C" __global__
#define GLOBAL
#define LOCAL __shared__ __attribute__((aligned(16)))
// Declares an array of which the launch assigns SIZED bytes, see `sized` of struct yk_gpu_build; or, if
// SIZED is not defined, an array of n elements.
#if !defined SIZED
#define LOCAL_SIZED(type, name, n) LOCAL type name[n]
#elif defined __CUDA_ARCH__ // declared arrays have at most 48 KiB
#define LOCAL_SIZED(type, name, n) \
	static_assert((n) * sizeof(type) <= SIZED, "the launch assigns too little local memory"); \
	extern __shared__ __attribute__((aligned(1024))) type name[]
#else
#define LOCAL_SIZED(type, name, n) \
	static_assert((n) * sizeof(type) <= SIZED, "the launch assigns too little local memory"); \
	LOCAL type name[n]
#endif
#define LOCAL_POINTER
#define FN static __device__ __forceinline__
#define UNROLL _Pragma("unroll")
#define WORK_GROUP(x, y) __launch_bounds__((x) * (y))
#ifdef __CUDA_ARCH__ // keep arrays in registers rather than fit more groups per unit
#define WORK_GROUP_REGISTERS(x, y) __launch_bounds__((x) * (y), 1)
#else
#define WORK_GROUP_REGISTERS(x, y) WORK_GROUP(x, y)
#endif
// keep the loop rolled: each unrolled iteration would take more registers
#define ROLLED _Pragma("unroll 1")
// UNROLL_READS goes before a loop that reads local memory into registers: AMD's compiler would
// hoist the reads of all iterations. In a loop that has to be unrolled, reads are not hoisted
// across READS_END.
#ifdef __HIP__
#define UNROLL_READS _Pragma("unroll 1")
#define READS_END() asm volatile("" ::: "memory")
#else
#define UNROLL_READS _Pragma("unroll")
#define READS_END()
#endif

#ifndef INFINITY
#define INFINITY __uint_as_float(0x7f800000u)
#endif
#ifndef NAN
#define NAN __uint_as_float(0x7fc00000u)
#endif

FN ulong work_global(int d)
{
	if (d == 0)
		return (ulong)blockIdx.x * blockDim.x + threadIdx.x;
	// A grid's y is limited to 65535; larger values continue along z, so a few items may be
	// past the end.
	return ((ulong)blockIdx.z * gridDim.y + blockIdx.y) * blockDim.y + threadIdx.y;
}

#define GLOBAL_ID(d) work_global(d)
#define GROUP_ID(d) ((ulong)((d) == 0 ? blockIdx.x : (d) == 1 ? blockIdx.y : blockIdx.z))
#define GROUPS(d) ((ulong)((d) == 0 ? gridDim.x : (d) == 1 ? gridDim.y : gridDim.z))
// The group's number along the second of two axes. It may be past the last, because y * z may
// exceed the number of groups.
#define GROUP_LINE() (blockIdx.z * gridDim.y + blockIdx.y)
#define LOCAL_ID(d) ((int)((d) == 0 ? threadIdx.x : threadIdx.y))
#define BARRIER() __syncthreads()
#define BARRIER_ALL() __syncthreads() // also for global memory that only this group uses
// on uint in global memory, also the next; returns the old value
#define ATOMIC_MIN(to, x) atomicMin(to, x)
#define ATOMIC_ADD(to, x) atomicAdd(to, x)

#if defined NATIVE_F16 && defined __HIP__
FN ushort native_f16_of_f32(float x) { return __builtin_bit_cast(ushort, (_Float16)x); }
FN float native_f32_of_f16(ushort h) { return (float)__builtin_bit_cast(_Float16, h); }
#elif defined NATIVE_F16 && defined __CUDA_ARCH__
FN ushort native_f16_of_f32(float x)
{
	ushort h;
	asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
	return h;
}
FN float native_f32_of_f16(ushort h)
{
	float x;
	asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
	return x;
}
#endif

#define EACH
#define WIDE()
#define FETCH(from)

#define AS_FLOAT(bits) __uint_as_float((uint)(bits))
#define AS_UINT(x) __float_as_uint(x)
#define AS_DOUBLE(bits) __longlong_as_double((long long)(bits))

// ---- warp shuffles ----

// x of the item whose number differs in the bits of `mask` (mask < WARP). All items of the warp, or
// of a smaller group, must call it together.
#ifdef WARP
#ifdef __HIP__
FN int shuffle_word(int x, int mask)
{
	int item = (int)__builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
	return __builtin_amdgcn_ds_bpermute((item ^ mask) << 2, x);
}
FN float shuffle_xor(float x, int mask)
{
	return __uint_as_float((uint)shuffle_word((int)__float_as_uint(x), mask));
}
FN long shuffle_xor(long x, int mask)
{
	ulong low = (uint)shuffle_word((int)x, mask), high = (uint)shuffle_word((int)(x >> 32), mask);
	return (long)(high << 32 | low);
}
FN double shuffle_xor(double x, int mask)
{
	return __builtin_bit_cast(double, shuffle_xor(__builtin_bit_cast(long, x), mask));
}
#define SHUFFLE_XOR(x, mask) shuffle_xor(x, mask)
// Local memory written by a wave before this call is visible to all its items after it.
FN void warp_sync(void)
{
	__builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
	__builtin_amdgcn_wave_barrier();
	__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}
#define WARP_SYNC() warp_sync()
#else
#define WARP_ITEMS (ITEMS < 32 ? (1u << (ITEMS & 31)) - 1u : 0xffffffffu)
#define SHUFFLE_XOR(x, mask) __shfl_xor_sync(WARP_ITEMS, x, mask)
#define WARP_SYNC() __syncwarp(WARP_ITEMS)
#endif
#endif

// ---- vectors ----

#ifndef VEC_WIDTH
#define VEC_WIDTH 1
#endif
// One overload per type: fmaf() silently rounds doubles to f32.
FN float FMA(float a, float b, float c)
{
	return fmaf(a, b, c);
}
FN double FMA(double a, double b, double c)
{
	return fma(a, b, c);
}
// 2^x with a relative error of about 2^-22
#ifdef __CUDA_ARCH__
FN float EXP2(float x)
{
	float y;
	asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
}
#else
#define EXP2(x) exp2(x)
#endif
// 16 bytes as four words; source and destination are aligned to 16.
struct __attribute__((aligned(16))) quad {
	uint w[4];
};
FN void quad_load(const void *from, uint *to)
{
	quad q = *(const quad *)from;
	UNROLL
	for (int i = 0; i < 4; i++)
		to[i] = q.w[i];
}
FN void quad_store(const uint *from, void *to)
{
	quad q;
	UNROLL
	for (int i = 0; i < 4; i++)
		q.w[i] = from[i];
	*(quad *)to = q;
}
// from local memory
FN void quad_move(const void *from, void *to) { *(quad *)to = *(const quad *)from; }
// Copies to local memory that may run while the items compute. quad_copy copies the first `bytes`
// (0..16) bytes of a quad and fills the rest with zeros; both addresses are aligned to 16.
// COPIES_COMMIT closes a group of the item's copies, COPIES_WAIT(n) waits until at most n of its
// latest groups are in flight; the other items see the copies after a BARRIER. Without
// ASYNC_COPIES, quad_copy has copied when it returns.
#if defined CUDA_ARCH && CUDA_ARCH >= 800
#define ASYNC_COPIES
#ifndef COPY_QUAD
#define COPY_QUAD(from, to, bytes) \
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" \
	    :: "r"((uint)__cvta_generic_to_shared(to)), "l"(from), "r"(bytes) : "memory")
#define COPIES_COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define COPIES_WAIT(n) asm volatile("cp.async.wait_group %0;" :: "n"(n) : "memory")
#endif
FN void quad_copy(const void *from, void *to, int bytes) { COPY_QUAD(from, to, bytes); }
#else
FN void quad_copy(const void *from, void *to, int bytes)
{
	uint w[4] = { 0u, 0u, 0u, 0u };
	if (bytes == 16) {
		quad_load(from, w);
	} else {
		UNROLL
		for (int i = 0; i < 16; i++)
			if (i < bytes)
				w[i / 4] |= (uint)((const uchar *)from)[i] << 8 * (i % 4);
	}
	quad_store(w, to);
}
#define COPIES_COMMIT()
#define COPIES_WAIT(n)
#endif
// Four consecutive elements, aligned to their total size.
template <typename T> struct __attribute__((aligned(4 * sizeof(T)))) four {
	T x[4];
};
template <typename T> FN void FOUR_LOAD(const uchar *from, T *to)
{
	four<T> f = *(const four<T> *)from;
	UNROLL
	for (int i = 0; i < 4; i++)
		to[i] = f.x[i];
}
template <typename T> FN void FOUR_STORE(const T *from, uchar *to)
{
	four<T> f;
	UNROLL
	for (int i = 0; i < 4; i++)
		f.x[i] = from[i];
	*(four<T> *)to = f;
}
#if VEC_WIDTH == 1
#define VEC float
#define VEC_LOAD(from) (*(from))
#define VEC_STORE(v, to) (*(to) = (v))
#define VEC_OF(from) (*(from)) // from an item's private array, also the next
#define VEC_TO(v, to) (*(to) = (v))
#define VEC_SPLAT(x) (x)
#define VEC_LOAD_F16(from) f32_of_f16(*(from)) // from half.cl, also the next
#define VEC_LOAD_BF16(from) f32_of_bf16(*(from))
#define VEC_SUM(v) (v)
#define VEC_MAX(v) (v)
#define VEC_GREATER(x, y) ((x) > (y) ? (x) : (y))
#define VEC_EXP(x) exp(x)
#define VEC_FMA(a, b, c) FMA(a, b, c)
#else
struct __attribute__((aligned(16))) vec4 {
	float x, y, z, w;
};
struct __attribute__((aligned(8))) halves4 {
	ushort s[4];
};
#define VEC vec4
#define VEC_OPERATOR(op) \
	FN vec4 operator op(vec4 a, vec4 b) \
	{ \
		vec4 r; \
		r.x = a.x op b.x, r.y = a.y op b.y, r.z = a.z op b.z, r.w = a.w op b.w; \
		return r; \
	} \
	FN vec4 &operator op##=(vec4 &a, vec4 b) { return a = a op b; }
VEC_OPERATOR(+)
VEC_OPERATOR(-)
VEC_OPERATOR(*)
VEC_OPERATOR(/)
FN vec4 vec_of(float x, float y, float z, float w)
{
	vec4 r;
	r.x = x, r.y = y, r.z = z, r.w = w;
	return r;
}
FN vec4 VEC_OF(const float *p) { return vec_of(p[0], p[1], p[2], p[3]); }
FN void VEC_TO(vec4 v, float *p) { p[0] = v.x, p[1] = v.y, p[2] = v.z, p[3] = v.w; }
FN vec4 VEC_LOAD(const float *p) { return *(const vec4 *)p; }
FN void VEC_STORE(vec4 v, float *p) { *(vec4 *)p = v; }
FN vec4 VEC_SPLAT(float x) { return vec_of(x, x, x, x); }
FN float VEC_SUM(vec4 v) { return (v.x + v.z) + (v.y + v.w); } // same order as in OpenCL C
FN float VEC_MAX(vec4 v) { return fmax(fmax(v.x, v.z), fmax(v.y, v.w)); }
FN vec4 VEC_GREATER(vec4 a, vec4 b)
{
	return vec_of(a.x > b.x ? a.x : b.x, a.y > b.y ? a.y : b.y, a.z > b.z ? a.z : b.z,
		a.w > b.w ? a.w : b.w);
}
#define VEC_EXP(v) vec_exp(v)
FN vec4 vec_exp(vec4 v) { return vec_of(exp(v.x), exp(v.y), exp(v.z), exp(v.w)); }
FN vec4 VEC_FMA(vec4 a, vec4 b, vec4 c)
{
	return vec_of(FMA(a.x, b.x, c.x), FMA(a.y, b.y, c.y), FMA(a.z, b.z, c.z), FMA(a.w, b.w, c.w));
}
#define VEC_HALVES // loads and stores four 16-bit values at once
FN void halves_load(const ushort *from, ushort *to)
{
	halves4 h = *(const halves4 *)from;
	UNROLL
	for (int i = 0; i < 4; i++)
		to[i] = h.s[i];
}
FN void halves_store(const ushort *from, ushort *to)
{
	halves4 h;
	UNROLL
	for (int i = 0; i < 4; i++)
		h.s[i] = from[i];
	*(halves4 *)to = h;
}
#endif
#define VEC_STREAM(v, to) VEC_STORE(v, to)

// ---- matrix units: see matrix.cl ----

#if defined MATRIX && defined CUDA_ARCH
#if MATRIX == 3 ? CUDA_ARCH >= 700 : MATRIX >= 5 ? CUDA_ARCH >= 750 : CUDA_ARCH >= 800
#define MATRIX_UNITS
#endif
#elif defined MATRIX && defined __AMDGCN__
#if MATRIX != 1 && (defined __gfx90a__ || defined __gfx940__ || defined __gfx942__ || defined __gfx950__)
#define MATRIX_UNITS
#define MATRIX_MFMA
#elif MATRIX != 1 && (defined __gfx1100__ || defined __gfx1101__ || defined __gfx1102__ || defined __gfx1103__)
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
	return at[0] | (uint)at[stride] << 8 | (uint)at[2 * stride] << 16 | (uint)at[3 * stride] << 24;
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
	return __builtin_bit_cast(matrix_halves, __builtin_bit_cast(ulong, *p) ^ 0x8080808080808080ul);
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
FN matrix_part matrix_b(const matrix_unit *from, int stride, int lane) { return matrix_a(from, stride, lane); }
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
	matrix_halves x = matrix_signed(a), y = matrix_signed(b), all = __builtin_bit_cast(matrix_halves, 0x4040404040404040ul);
	const int last = 4 * MATRIX_STEPS * 128 * 128 / 2; // the constant term over all steps
	matrix_sums4 half = { last, last, last, last };
	half = MATRIX_MULTIPLY(all, y, half, 0, 0, 0); // the same for all rows of tiles
	half = MATRIX_MULTIPLY(x, all, half, 0, 0, 0);
	c = MATRIX_MULTIPLY(x, y, c, 0, 0, 0);
	UNROLL
	for (int i = 0; i < 4; i++)
		c[i] = (int)((uint)c[i] + 2u * (uint)half[i]);
#else
	c = MATRIX_MULTIPLY(__builtin_bit_cast(matrix_halves, *a), __builtin_bit_cast(matrix_halves, *b), c, 0, 0, 0);
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
	c = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(MATRIX == 5, a.x[0], MATRIX == 5, b.x[0], c, false);
	return __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(MATRIX == 5, a.x[1], MATRIX == 5, b.x[1], c, false);
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
FN matrix_part matrix_b(const matrix_unit *from, int stride, int lane) { return matrix_a(from, stride, lane); }
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
	c = MATRIX_MULTIPLY(__builtin_bit_cast(matrix_halves, *a), __builtin_bit_cast(matrix_halves, *b), c);
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
	return matrix_lines(from + (lane / 16 * 8 + lane % 8) * stride + lane / 8 % 2 * 4 * MATRIX_EACH);
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
		p.x[i] = MATRIX_TURNED(at + (i >> step_bit & 1) * 4 * MATRIX_EACH * stride + (i >> (1 - step_bit) & 1) * 8, stride);
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
	asm volatile(MATRIX_NAME " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
	    : MATRIX_REGISTER((c)[0]), MATRIX_REGISTER((c)[1]), MATRIX_REGISTER((c)[2]), MATRIX_REGISTER((c)[3]) \
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
			    : "+r"(c[k % 2 * 2]), "+r"(c[k % 2 * 2 + 1]) : "r"(a->x[k]), "r"(b->x[2 * h + k / 2]));
#else // half of the steps at a time
		UNROLL
		for (int k = 0; k < 2; k++)
			asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
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
		asm volatile("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9}, "
		    "{%10, %11}, {%0, %1, %2, %3, %4, %5, %6, %7};"
		    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7])
		    : "r"(a->x[2 * k]), "r"(a->x[2 * k + 1]), "r"(b->x[2 * k]), "r"(b->x[2 * k + 1]));
}
#endif
#endif
