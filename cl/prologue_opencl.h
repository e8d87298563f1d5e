// SPDX-License-Identifier: Apache-2.0
// The kernel dialect for OpenCL C 1.2 compilers. The kernel texts are written in the names defined
// here; prologue_cuda.h defines the same ones. VEC_WIDTH is the width of VEC in floats.
#pragma OPENCL FP_CONTRACT OFF
#ifdef USE_F64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

#define KERNEL __kernel
#define GLOBAL __global
#define LOCAL __local
#define LOCAL_SIZED(type, name, n) LOCAL type name[n]
#define LOCAL_POINTER __local // address space of pointers to local memory, in parameters
// forced inline: otherwise the compiler does not vectorize over calls
#define FN static inline __attribute__((always_inline))
#define WORK_GROUP(x, y) __attribute__((reqd_work_group_size(x, y, 1)))

#define UNROLL _Pragma("unroll")
#define WORK_GROUP_REGISTERS(x, y) WORK_GROUP(x, y)
#define READS_END()
#define ROLLED // keep the loop rolled: each unrolled iteration would take more registers
#define UNROLL_READS // before a loop that reads local memory into registers

typedef char schar;
typedef char16 schar16;

#define GLOBAL_ID(d) ((ulong)get_global_id(d))
#define GROUP_ID(d) ((ulong)get_group_id(d))
#define GROUPS(d) ((ulong)get_num_groups(d))
#define GROUP_LINE() ((uint)get_group_id(1)) // see prologue_cuda.h
#define LOCAL_ID(d) ((int)get_local_id(d))
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
// also for global memory that only this group uses
#define BARRIER_ALL() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
// on uint in global memory, also the next; returns the old value
#define ATOMIC_MIN(to, x) atomic_min(to, x)
#define ATOMIC_ADD(to, x) atomic_add(to, x)

#ifdef NATIVE_F16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
FN ushort native_f16_of_f32(float x) { return as_ushort(convert_half_rte(x)); }
FN float native_f32_of_f16(ushort h) { return convert_float(as_half(h)); }
#endif

// EACH goes before a loop with independent iterations (operands may overlap exactly). clang
// vectorizes it, up to the device's width if something in the kernel is that wide; WIDE provides
// that. EACH_PAIR is for loops over a multiple of 32: it interleaves two vectors, because the
// processor does not look far enough ahead to overlap long dependency chains.
#ifdef __clang__
#define EACH _Pragma("clang loop vectorize(assume_safety) vectorize_width(16)")
#define EACH_PAIR \
	_Pragma("clang loop vectorize(assume_safety) vectorize_width(16) interleave_count(2)")
#pragma clang diagnostic ignored "-Wpass-failed" // no warning where a loop is not vectorized
FN float16 wide(float16 v) { return v; }
#define WIDE() wide((float16)(0.0f))
#else
#define EACH
#define EACH_PAIR
#define WIDE()
#endif

#define AS_FLOAT(bits) as_float((uint)(bits))
#define AS_UINT(x) as_uint(x)
#define AS_DOUBLE(bits) as_double((ulong)(bits))

#ifndef VEC_WIDTH
#define VEC_WIDTH 1
#endif
#if VEC_WIDTH == 1
#define VEC float
#define VEC_LOAD(from) (*(from))
#define VEC_STORE(v, to) (*(to) = (v))
#define VEC_SPLAT(x) (x)
#define VEC_LOAD_F16(from) f32_of_f16(*(from)) // from half.cl, also the next
#define VEC_LOAD_BF16(from) f32_of_bf16(*(from))
#define VEC_SUM(v) (v)
#define VEC_MAX(v) (v)
#define VEC_EXP(x) exp(x)
#else
#define VEC_PASTE2(a, b) a##b
#define VEC_PASTE(a, b) VEC_PASTE2(a, b)
#define VEC VEC_PASTE(float, VEC_WIDTH)
// vload and vstore may be compiled to several narrow accesses.
#ifdef __clang__
typedef VEC any_vec __attribute__((aligned(4)));
#define OVERLOADED FN __attribute__((overloadable))
OVERLOADED VEC VEC_LOAD(__global const float *p) { return *(__global const any_vec *)p; }
OVERLOADED VEC VEC_LOAD(__local const float *p) { return *(__local const any_vec *)p; }
OVERLOADED VEC VEC_LOAD(__private const float *p) { return *(__private const any_vec *)p; }
OVERLOADED void VEC_STORE(VEC v, __global float *p) { *(__global any_vec *)p = v; }
OVERLOADED void VEC_STORE(VEC v, __local float *p) { *(__local any_vec *)p = v; }
OVERLOADED void VEC_STORE(VEC v, __private float *p) { *(__private any_vec *)p = v; }
#else
#define VEC_LOAD(from) VEC_PASTE(vload, VEC_WIDTH)(0, from)
#define VEC_STORE(v, to) VEC_PASTE(vstore, VEC_WIDTH)(v, 0, to)
#endif
#define VEC_SPLAT(x) ((VEC)(x))
#define VEC_LOAD_F16(from) VEC_PASTE(vload_half, VEC_WIDTH)(0, (__global const half *)(from))
#define VEC_LOAD_BF16(from) VEC_PASTE(as_float, VEC_WIDTH)( \
	VEC_PASTE(convert_uint, VEC_WIDTH)(VEC_PASTE(vload, VEC_WIDTH)(0, from)) << 16)
// Reductions over all lanes, in a fixed order.
#define VEC_SUM VEC_PASTE(sum_of_, VEC_WIDTH)
#define VEC_MAX VEC_PASTE(max_of_, VEC_WIDTH)
FN float sum_of_2(float2 v) { return v.x + v.y; }
FN float sum_of_4(float4 v) { return sum_of_2(v.lo + v.hi); }
FN float sum_of_8(float8 v) { return sum_of_4(v.lo + v.hi); }
FN float sum_of_16(float16 v) { return sum_of_8(v.lo + v.hi); }
FN float max_of_2(float2 v) { return fmax(v.x, v.y); }
FN float max_of_4(float4 v) { return max_of_2(fmax(v.lo, v.hi)); }
FN float max_of_8(float8 v) { return max_of_4(fmax(v.lo, v.hi)); }
FN float max_of_16(float16 v) { return max_of_8(fmax(v.lo, v.hi)); }
#endif
#define VEC_OF(from) VEC_LOAD(from) // from an item's private array, also the next
#define VEC_TO(v, to) VEC_STORE(v, to)
#define VEC_GREATER(x, y) ((x) > (y) ? (x) : (y))
// 16 bytes as four words
FN void quad_load(__global const void *from, uint *to)
{
	vstore4(vload4(0, (__global const uint *)from), 0, to);
}
FN void quad_store(const uint *from, __local void *to)
{
	vstore4(vload4(0, from), 0, (__local uint *)to);
}
FN void quad_move(__local const void *from, __global void *to)
{
	vstore4(vload4(0, (__local const uint *)from), 0, (__global uint *)to);
}
#define EXP2(x) exp2(x)
// see prologue_cuda.h; here quad_copy has copied when it returns
FN void quad_copy(__global const void *from, __local void *to, int bytes)
{
	uint w[4] = { 0u, 0u, 0u, 0u };
	if (bytes == 16) {
		quad_load(from, w);
	} else {
		UNROLL
		for (int i = 0; i < 16; i++)
			if (i < bytes)
				w[i / 4] |= (uint)((__global const uchar *)from)[i] << 8 * (i % 4);
	}
	quad_store(w, to);
}
#define COPIES_COMMIT()
#define COPIES_WAIT(n)
// turn_float (TURN(float, 16)) transposes: lane k of n vectors (n = 8 or 16) becomes vector k. Each
// step moves the element at (vector, lane), read as one number of 2 log2(n) bits, to that number
// rotated left by one bit; log2(n) steps exchange vectors and lanes. ZIP interleaves the lanes of a
// and b, from lane i on.
#ifdef __has_builtin
#if __has_builtin(__builtin_shufflevector)
#define ZIP8(a, b, i) \
	__builtin_shufflevector(a, b, i, i + 8, i + 1, i + 9, i + 2, i + 10, i + 3, i + 11)
#define ZIP16(a, b, i) \
	__builtin_shufflevector(a, b, i, i + 16, i + 1, i + 17, i + 2, i + 18, i + 3, i + 19, \
		i + 4, i + 20, i + 5, i + 21, i + 6, i + 22, i + 7, i + 23)
#define TURN(type, n) \
	FN void turn_##type(type##n *v) \
	{ \
		type##n t[n]; \
		UNROLL \
		for (int step = 1; step < n; step *= 2) { \
			UNROLL \
			for (int k = 0; k < n / 2; k++) { \
				t[2 * k] = ZIP##n(v[k], v[k + n / 2], 0); \
				t[2 * k + 1] = ZIP##n(v[k], v[k + n / 2], n / 2); \
			} \
			UNROLL \
			for (int k = 0; k < n; k++) \
				v[k] = t[k]; \
		} \
	}
#endif
#endif
// Reinterprets lanes as bits, and back.
#if VEC_WIDTH > 1
#define VEC_BITS VEC_PASTE(uint, VEC_WIDTH)
#define VEC_AS_BITS(v) VEC_PASTE(as_uint, VEC_WIDTH)(v)
#define VEC_OF_BITS(v) VEC_PASTE(as_float, VEC_WIDTH)(v)
#endif
// v 2^k in one instruction, where the processor has it
#if VEC_WIDTH == 16 && defined __AVX512F__ && defined __has_builtin
#if __has_builtin(__builtin_ia32_scalefps512_mask)
#define VEC_SCALE(v, k) __builtin_ia32_scalefps512_mask(v, k, v, (ushort)0xffff, 4)
#endif
#endif
// Prefetches a cache line. Only for groups of one item, which run on a CPU: its hardware prefetcher
// stops at page boundaries.
#if defined __has_builtin && ITEMS == 1
#if __has_builtin(__builtin_prefetch)
#define FETCH(from) __builtin_prefetch(from, 0, 2)
#endif
#endif
#ifndef FETCH
#define FETCH(from)
#endif
// Non-temporal store, where the compiler supports it, of a VEC or of 16, 32 or 64 bytes. `vector`
// is the type with which the 16 elements were last stored: a load that spans two stores would wait
// for both. `to` must be aligned to the whole size.
#if defined __has_builtin
#if __has_builtin(__builtin_nontemporal_store) && __has_builtin(__builtin_memcpy)
#define VECTOR_STREAM(vector, v, to) __builtin_nontemporal_store(v, (GLOBAL vector *)(to))
#define STREAM(bytes, vector) \
	FN void stream_##bytes(const uchar *from, GLOBAL uchar *to) \
	{ \
		vector v; \
		__builtin_memcpy(&v, from, bytes); \
		VECTOR_STREAM(vector, v, to); \
	}
#endif
#endif
#ifndef VECTOR_STREAM
#define VECTOR_STREAM(vector, v, to) (*(GLOBAL vector *)(to) = (v))
#define STREAM(bytes, vector) \
	FN void stream_##bytes(const uchar *from, GLOBAL uchar *to) \
	{ \
		for (int i = 0; i < bytes; i++) \
			to[i] = from[i]; \
	}
#endif
#define VEC_STREAM(v, to) VECTOR_STREAM(VEC, v, to)
STREAM(16, uint4)
STREAM(32, uint8)
STREAM(64, uint16)
// fma() is emulated and slow unless the device or clang, for its processor, defines one of these
// macros. PoCL defines only clang's.
#if defined FP_FAST_FMAF || defined __FMA__ || defined __ARM_FEATURE_FMA
#define FMA(a, b, c) fma(a, b, c)
#else
#define FMA(a, b, c) ((a) * (b) + (c))
#endif
#define VEC_FMA(a, b, c) FMA(a, b, c)
