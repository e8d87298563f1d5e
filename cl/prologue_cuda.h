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
// of the instructions: COPY_QUAD, COPIES_COMMIT, COPIES_WAIT, MATRIX_LOAD, MATRIX_PAIR, MATRIX_TF32
// and MATRIX_MMA.
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
// Declares an array of which the launch assigns SIZED bytes, see `sized` of struct yk_gpu_build;
// or, if SIZED is not defined, an array of n elements.
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
	ulong low = (uint)shuffle_word((int)x, mask),
	      high = (uint)shuffle_word((int)(x >> 32), mask);
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
	return vec_of(FMA(a.x, b.x, c.x), FMA(a.y, b.y, c.y), FMA(a.z, b.z, c.z),
		      FMA(a.w, b.w, c.w));
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
