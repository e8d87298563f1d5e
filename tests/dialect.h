// SPDX-License-Identifier: Apache-2.0
// Declares the NVRTC built-ins that kernel texts use, for clang without a CUDA toolkit.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
struct three { unsigned x, y, z; };
extern const __device__ three blockIdx, threadIdx, blockDim, gridDim;
__device__ void __syncthreads();
__device__ float __uint_as_float(unsigned);
__device__ unsigned __float_as_uint(float);
__device__ double __longlong_as_double(long long);
__device__ float fabs(float), sqrt(float), exp(float), log(float), tanh(float),
	fmaf(float, float, float);
__device__ double fma(double, double, double);
__device__ float fmax(float, float), fmin(float, float), rint(float);
__device__ double fabs(double), sqrt(double), exp(double), log(double), tanh(double);
__device__ unsigned atomicMin(unsigned *, unsigned), atomicAdd(unsigned *, unsigned);
__device__ float __shfl_xor_sync(unsigned, float, int);
__device__ int __shfl_sync(unsigned, int, int);
__device__ unsigned long __cvta_generic_to_shared(const void *);
__device__ void __syncwarp(unsigned);
