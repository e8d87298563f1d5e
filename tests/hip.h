// SPDX-License-Identifier: Apache-2.0
// Declares the hiprtc built-ins that kernel texts use, for clang without HIP's headers.
#pragma once
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(items) __attribute__((amdgpu_flat_work_group_size(1, items)))
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define isfinite(x) __builtin_isfinite(x)
struct three {
	unsigned x, y, z;
};
#define THREE(f) (three{ (unsigned)f##_x(), (unsigned)f##_y(), (unsigned)f##_z() })
#define threadIdx THREE(__builtin_amdgcn_workitem_id)
#define blockIdx THREE(__builtin_amdgcn_workgroup_id)
#define blockDim THREE(__builtin_amdgcn_workgroup_size)
#define gridDim (three{ __builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x(), \
	__builtin_amdgcn_grid_size_y() / __builtin_amdgcn_workgroup_size_y(), \
	__builtin_amdgcn_grid_size_z() / __builtin_amdgcn_workgroup_size_z() })
#define DEVICE __device__ static inline __attribute__((always_inline))
DEVICE void __syncthreads()
{
	__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
	__builtin_amdgcn_s_barrier();
	__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
DEVICE float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
DEVICE unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
DEVICE double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
DEVICE unsigned atomicMin(unsigned *to, unsigned x)
{
	return __atomic_fetch_min(to, x, __ATOMIC_RELAXED);
}
DEVICE unsigned atomicAdd(unsigned *to, unsigned x)
{
	return __atomic_fetch_add(to, x, __ATOMIC_RELAXED);
}
#define MATH1(name) \
	extern "C" __device__ float __ocml_##name##_f32(float); \
	extern "C" __device__ double __ocml_##name##_f64(double); \
	DEVICE float name(float x) { return __ocml_##name##_f32(x); } \
	DEVICE double name(double x) { return __ocml_##name##_f64(x); }
MATH1(exp)
MATH1(exp2)
MATH1(expm1)
MATH1(log)
MATH1(log1p)
MATH1(tanh)
MATH1(erf)
MATH1(sin)
MATH1(cos)
MATH1(sqrt)
MATH1(cospi)
MATH1(floor)
MATH1(ceil)
MATH1(trunc)
MATH1(rint)
MATH1(fabs)
#define MATH2(name) \
	extern "C" __device__ float __ocml_##name##_f32(float, float); \
	extern "C" __device__ double __ocml_##name##_f64(double, double); \
	DEVICE float name(float x, float y) { return __ocml_##name##_f32(x, y); } \
	DEVICE double name(double x, double y) { return __ocml_##name##_f64(x, y); }
MATH2(pow)
MATH2(fmod)
MATH2(fmax)
MATH2(fmin)
DEVICE float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
DEVICE double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
