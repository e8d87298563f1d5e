// SPDX-License-Identifier: Apache-2.0
// The CUDA C++ dialect (HIP's too): the names of prologue_opencl.h for NVRTC and hiprtc
// on hosts whose long has 64 bits.  Compile with -fmad=false.  Vectors have width 1: the
// compiler joins loads.
typedef signed char schar;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

#define KERNEL extern "C" __global__
#define GLOBAL
#define LOCAL __shared__
#define LOCAL_POINTER
#define FN static __device__ __forceinline__
#define UNROLL _Pragma("unroll")
#define WORK_GROUP(x, y) __launch_bounds__((x) * (y))

FN ulong work_global(int d)
{
	if (d == 0)
		return (ulong)blockIdx.x * blockDim.x + threadIdx.x;
	// A grid's y ends at 65535; what is above goes on along z.
	return ((ulong)blockIdx.z * gridDim.y + blockIdx.y) * blockDim.y + threadIdx.y;
}

#define GLOBAL_ID(d) work_global(d)
#define GROUP_ID(d) ((ulong)((d) == 0 ? blockIdx.x : (d) == 1 ? blockIdx.y : blockIdx.z))
#define GROUPS(d) ((ulong)((d) == 0 ? gridDim.x : (d) == 1 ? gridDim.y : gridDim.z))
#define LOCAL_ID(d) ((int)((d) == 0 ? threadIdx.x : threadIdx.y))
#define BARRIER() __syncthreads()
#define ATOMIC_MIN(to, x) atomicMin(to, x) // uint in global memory, as the next; give what was there
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

#define VEC_WIDTH 1
#define VEC float
#define VEC_LOAD(from) (*(from))
#define VEC_STORE(v, to) (*(to) = (v))
#define VEC_SPLAT(x) (x)
#define VEC_LOAD_F16(from) f32_of_f16(*(from)) // of half.cl, as the next
#define VEC_LOAD_BF16(from) f32_of_bf16(*(from))
#define VEC_SUM(v) (v)
#define VEC_MAX(v) (v)
#define VEC_STREAM(v, to) (*(to) = (v))
#define FMA(a, b, c) fmaf(a, b, c)
#define VEC_FMA(a, b, c) FMA(a, b, c)
