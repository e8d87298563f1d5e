// SPDX-License-Identifier: Apache-2.0
// What NVRTC and hiprtc know by themselves, for the host's C++ compiler.  One item of a group runs at a time, and
// one launch at a time of a shared object, so that what CUDA keeps for each thread, and for each group, is static.
// compile.c lists the kernels behind the text.
#define STANDIN 1
#include "abi.h"

static struct standin_state standin_state = {};

#define threadIdx standin_state.thread
#define blockIdx standin_state.block
#define blockDim standin_state.threads
#define gridDim standin_state.blocks
#define warpSize ((int)standin_state.warp)

#define __device__
#define __host__
#define __constant__ static
#define __shared__ static __attribute__((section("standin_shared")))
#define __global__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __forceinline__ inline // to inline all of it takes the compiler four times as long
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define __restrict__ __restrict
#define __grid_constant__
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")

typedef __SIZE_TYPE__ size_t;

// ---- vectors ----

#define STANDIN_VECTORS(type, name, bytes) \
	struct __align__(2 * bytes) name##2 { type x, y; }; \
	struct name##3 { type x, y, z; }; \
	struct __align__(4 * bytes < 16 ? 4 * bytes : 16) name##4 { type x, y, z, w; }; \
	static inline name##2 make_##name##2(type x, type y) { return name##2{ x, y }; } \
	static inline name##3 make_##name##3(type x, type y, type z) { return name##3{ x, y, z }; } \
	static inline name##4 make_##name##4(type x, type y, type z, type w) { return name##4{ x, y, z, w }; }
STANDIN_VECTORS(float, float, 4)
STANDIN_VECTORS(double, double, 8)
STANDIN_VECTORS(int, int, 4)
STANDIN_VECTORS(unsigned, uint, 4)
STANDIN_VECTORS(short, short, 2)
STANDIN_VECTORS(unsigned short, ushort, 2)
STANDIN_VECTORS(signed char, char, 1)
STANDIN_VECTORS(unsigned char, uchar, 1)
STANDIN_VECTORS(long long, longlong, 8)
STANDIN_VECTORS(unsigned long long, ulonglong, 8)

// ---- groups and warps ----

#define __syncthreads() standin_state.barrier(standin_state.group, __LINE__)
#define __threadfence() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define __threadfence_block() __atomic_thread_fence(__ATOMIC_SEQ_CST)

static inline unsigned standin_lane()
{
	return ((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x) % standin_state.warp;
}

// A value of up to 8 bytes from another lane.
template <class T>
static inline T standin_shuffle(int site, unsigned long mask, T value, unsigned source)
{
	static_assert(sizeof(T) <= 8, "what is shuffled has at most 8 bytes");
	unsigned long bits = 0;
	__builtin_memcpy(&bits, &value, sizeof value);
	bits = standin_state.exchange(standin_state.group, site, STANDIN_SHUFFLE, mask, bits, source);
	__builtin_memcpy(&value, &bits, sizeof value);
	return value;
}

template <class T>
static inline T standin_shfl(int site, unsigned long mask, T value, int from, int width = 0)
{
	unsigned lane = standin_lane(), n = width ? (unsigned)width : standin_state.warp;
	return standin_shuffle(site, mask, value, (lane & ~(n - 1)) | ((unsigned)from & (n - 1)));
}

template <class T>
static inline T standin_shfl_up(int site, unsigned long mask, T value, unsigned by, int width = 0)
{
	unsigned lane = standin_lane(), n = width ? (unsigned)width : standin_state.warp;
	return standin_shuffle(site, mask, value, (lane & (n - 1)) < by ? lane : lane - by);
}

template <class T>
static inline T standin_shfl_down(int site, unsigned long mask, T value, unsigned by, int width = 0)
{
	unsigned lane = standin_lane(), n = width ? (unsigned)width : standin_state.warp;
	return standin_shuffle(site, mask, value, (lane & (n - 1)) + by >= n ? lane : lane + by);
}

template <class T>
static inline T standin_shfl_xor(int site, unsigned long mask, T value, int by, int width = 0)
{
	unsigned lane = standin_lane(), n = width ? (unsigned)width : standin_state.warp;
	unsigned from = lane ^ (unsigned)by;
	return standin_shuffle(site, mask, value, from / n > lane / n ? lane : from);
}

static inline unsigned long standin_ballot(int site, unsigned long mask, bool yes)
{
	return standin_state.exchange(standin_state.group, site, STANDIN_BALLOT, mask, yes, 0);
}

static inline bool standin_all(int site, unsigned long mask, bool yes)
{
	return !standin_ballot(site, mask, !yes);
}

#ifdef __HIP__
// AMD's compiler knows these of the processor's: lanes below this one among the low and the high half of a mask,
// and what a lane, times 4, has for x.
static inline unsigned __builtin_amdgcn_mbcnt_lo(unsigned mask, unsigned more)
{
	unsigned lane = standin_lane();
	return more + (unsigned)__builtin_popcount(lane < 32 ? mask & ((1u << lane) - 1) : mask);
}
static inline unsigned __builtin_amdgcn_mbcnt_hi(unsigned mask, unsigned more)
{
	unsigned lane = standin_lane();
	return more + (unsigned)__builtin_popcount(lane > 32 ? mask & ((1u << (lane - 32)) - 1) : 0);
}
#define __builtin_amdgcn_ds_bpermute(at, x) \
	standin_shuffle(__LINE__, 0, (int)(x), (unsigned)(at) / 4 % standin_state.warp)
#define __builtin_amdgcn_fence(order, scope) ((void)0) // what a wave stores is there
#define __builtin_amdgcn_wave_barrier() \
	standin_state.exchange(standin_state.group, __LINE__, STANDIN_SYNC, 0, 0, 0)
#define __shfl(...) standin_shfl(__LINE__, 0, __VA_ARGS__)
#define __shfl_up(...) standin_shfl_up(__LINE__, 0, __VA_ARGS__)
#define __shfl_down(...) standin_shfl_down(__LINE__, 0, __VA_ARGS__)
#define __shfl_xor(...) standin_shfl_xor(__LINE__, 0, __VA_ARGS__)
#define __ballot(yes) standin_ballot(__LINE__, 0, yes)
#define __any(yes) (standin_ballot(__LINE__, 0, yes) != 0)
#define __all(yes) standin_all(__LINE__, 0, yes)
#else
#define __shfl_sync(mask, ...) standin_shfl(__LINE__, mask, __VA_ARGS__)
#define __shfl_up_sync(mask, ...) standin_shfl_up(__LINE__, mask, __VA_ARGS__)
#define __shfl_down_sync(mask, ...) standin_shfl_down(__LINE__, mask, __VA_ARGS__)
#define __shfl_xor_sync(mask, ...) standin_shfl_xor(__LINE__, mask, __VA_ARGS__)
#define __ballot_sync(mask, yes) ((unsigned)standin_ballot(__LINE__, mask, yes))
#define __any_sync(mask, yes) (standin_ballot(__LINE__, mask, yes) != 0)
#define __all_sync(mask, yes) standin_all(__LINE__, mask, yes)
#define __syncwarp(...) standin_syncwarp(__LINE__, ##__VA_ARGS__)
static inline void standin_syncwarp(int site, unsigned mask = 0xffffffffu)
{
	standin_state.exchange(standin_state.group, site, STANDIN_SYNC, mask, 0, 0);
}
#endif

// ---- atomics: give what was there ----

template <class T, class F>
static inline T standin_atomic(T *to, F change)
{
	T was, next;
	__atomic_load(to, &was, __ATOMIC_RELAXED);
	do
		next = change(was);
	while (!__atomic_compare_exchange(to, &was, &next, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
	return was;
}
template <class T> static inline T atomicAdd(T *to, T x) { return standin_atomic(to, [=](T a) { return a + x; }); }
template <class T> static inline T atomicMin(T *to, T x) { return standin_atomic(to, [=](T a) { return x < a ? x : a; }); }
template <class T> static inline T atomicMax(T *to, T x) { return standin_atomic(to, [=](T a) { return x > a ? x : a; }); }
template <class T> static inline T atomicOr(T *to, T x) { return standin_atomic(to, [=](T a) { return a | x; }); }
template <class T> static inline T atomicAnd(T *to, T x) { return standin_atomic(to, [=](T a) { return a & x; }); }
template <class T> static inline T atomicExch(T *to, T x) { return standin_atomic(to, [=](T) { return x; }); }
template <class T> static inline T atomicCAS(T *to, T if_it_is, T x)
{
	return standin_atomic(to, [=](T a) { return a == if_it_is ? x : a; });
}

// ---- numbers ----

#define STANDIN_CAST(name, from, to) \
	static inline to name(from x) { return __builtin_bit_cast(to, x); }
STANDIN_CAST(__uint_as_float, unsigned, float)
STANDIN_CAST(__int_as_float, int, float)
STANDIN_CAST(__float_as_uint, float, unsigned)
STANDIN_CAST(__float_as_int, float, int)
STANDIN_CAST(__longlong_as_double, long long, double)
STANDIN_CAST(__double_as_longlong, double, long long)

// In C++ a function of float has the same name as that of double.
#define STANDIN_MATH1(name) \
	extern "C" double name(double) noexcept; \
	extern "C" float name##f(float) noexcept; \
	static inline float name(float x) { return __builtin_##name##f(x); }
#define STANDIN_MATH2(name) \
	extern "C" double name(double, double) noexcept; \
	extern "C" float name##f(float, float) noexcept; \
	static inline float name(float x, float y) { return __builtin_##name##f(x, y); }
STANDIN_MATH1(fabs)
STANDIN_MATH1(sqrt)
STANDIN_MATH1(exp)
STANDIN_MATH1(exp2)
STANDIN_MATH1(expm1)
STANDIN_MATH1(log)
STANDIN_MATH1(log2)
STANDIN_MATH1(log1p)
STANDIN_MATH1(sin)
STANDIN_MATH1(cos)
STANDIN_MATH1(tan)
STANDIN_MATH1(sinh)
STANDIN_MATH1(cosh)
STANDIN_MATH1(tanh)
STANDIN_MATH1(erf)
STANDIN_MATH1(rint)
STANDIN_MATH1(floor)
STANDIN_MATH1(ceil)
STANDIN_MATH1(trunc)
STANDIN_MATH1(round)
STANDIN_MATH2(pow)
STANDIN_MATH2(fmax)
STANDIN_MATH2(fmin)
STANDIN_MATH2(fmod)
STANDIN_MATH2(copysign)
extern "C" double fma(double, double, double) noexcept, ldexp(double, int) noexcept;
extern "C" float fmaf(float, float, float) noexcept, ldexpf(float, int) noexcept;
static inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline float ldexp(float x, int n) { return __builtin_ldexpf(x, n); }
static inline float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
static inline double cospi(double x) { return __builtin_cos(3.14159265358979323846 * __builtin_fmod(x, 2.0)); }
static inline double sinpi(double x) { return __builtin_sin(3.14159265358979323846 * __builtin_fmod(x, 2.0)); }
static inline float cospi(float x) { return (float)cospi((double)x); }
static inline float sinpi(float x) { return (float)sinpi((double)x); }
static inline float __expf(float x) { return __builtin_expf(x); }
static inline float __logf(float x) { return __builtin_logf(x); }
static inline float __fdividef(float x, float y) { return x / y; }
static inline float __frcp_rn(float x) { return 1.0f / x; }
static inline float __fsqrt_rn(float x) { return __builtin_sqrtf(x); }
static inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#define isnan(x) __builtin_isnan(x)
#define isinf(x) __builtin_isinf(x)
#define isfinite(x) __builtin_isfinite(x)

// Of 16 bits, which not all compilers for the host have in C++.
static inline unsigned short standin_f16_of_f32(float x)
{
	unsigned b = __float_as_uint(x), sign = b >> 16 & 0x8000u;
	b &= 0x7fffffffu;
	if (b > 0x7f800000u)
		return (unsigned short)(sign | 0x7e00u | (b >> 13 & 0x3ffu));
	if (b >= 0x477ff000u)
		return (unsigned short)(sign | 0x7c00u);
	if (b >= 0x38800000u)
		return (unsigned short)(sign | (b - 0x38000000u + 0xfffu + (b >> 13 & 1u)) >> 13);
	// a multiple of 2^-24: the sum with 1/2 rounds to one
	return (unsigned short)(sign | (__float_as_uint(__uint_as_float(b) + 0.5f) - __float_as_uint(0.5f)));
}
static inline float standin_f32_of_f16(unsigned short h)
{
	unsigned sign = (h & 0x8000u) << 16, e = h >> 10 & 31u, m = h & 0x3ffu;
	if (e == 31u)
		return __uint_as_float(sign | 0x7f800000u | m << 13);
	if (e)
		return __uint_as_float(sign | (e + 112u) << 23 | m << 13);
	return (sign ? -(float)m : (float)m) * 5.9604644775390625e-8f; // 2^-24
}
#ifdef __HIP__
struct standin_f16 {
	unsigned short bits;
	standin_f16() = default;
	explicit standin_f16(float x) : bits(standin_f16_of_f32(x)) {}
	operator float() const { return standin_f32_of_f16(bits); }
};
#define _Float16 standin_f16
#else
// What prologue_cuda.h has in NVIDIA's instructions.
static inline unsigned short native_f16_of_f32(float x) { return standin_f16_of_f32(x); }
static inline float native_f32_of_f16(unsigned short h) { return standin_f32_of_f16(h); }
#endif

template <class T> static inline T min(T a, T b) { return b < a ? b : a; }
template <class T> static inline T max(T a, T b) { return b > a ? b : a; }
static inline int abs(int x) { return x < 0 ? -x : x; }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline unsigned __umulhi(unsigned a, unsigned b)
{
	return (unsigned)((unsigned long long)a * b >> 32);
}
template <class T> static inline T __ldg(const T *from) { return *from; }

// The section of __shared__ variables, and the whole object.
extern "C" {
extern char __start_standin_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_standin_shared[] __attribute__((weak, visibility("hidden")));
extern char __ehdr_start[] __attribute__((visibility("hidden")));
extern char _end[] __attribute__((visibility("hidden")));
}

// ---- checks: each load and store calls one of these when compiled for it ----

#ifdef STANDIN_CHECK
#define STANDIN_BARE __attribute__((no_sanitize("kernel-address", "alignment"), visibility("hidden")))

STANDIN_BARE static void standin_check(const void *at, unsigned long bytes, int store)
{
	struct standin_state *s = &standin_state;
	unsigned long a = (unsigned long)at;

	if (!s->check || (a - s->stacks.from < s->stacks.bytes && a + bytes - s->stacks.from <= s->stacks.bytes))
		return;
	for (int i = 0; i < STANDIN_LIVE; i++) {
		unsigned long offset = a - s->live[i].from;
		if (offset < s->live[i].bytes && bytes <= s->live[i].bytes - offset)
			return;
	}
	s->access(s->group, a, bytes, store);
}

#define STANDIN_ACCESS(bytes) \
	extern "C" STANDIN_BARE void __asan_load##bytes##_noabort(void *at) { standin_check(at, bytes, 0); } \
	extern "C" STANDIN_BARE void __asan_store##bytes##_noabort(void *at) { standin_check(at, bytes, 1); }
STANDIN_ACCESS(1)
STANDIN_ACCESS(2)
STANDIN_ACCESS(4)
STANDIN_ACCESS(8)
STANDIN_ACCESS(16)
extern "C" STANDIN_BARE void __asan_loadN_noabort(void *at, long bytes)
{
	standin_check(at, (unsigned long)bytes, 0);
}
extern "C" STANDIN_BARE void __asan_storeN_noabort(void *at, long bytes)
{
	standin_check(at, (unsigned long)bytes, 1);
}
extern "C" STANDIN_BARE void __asan_handle_no_return() {}
extern "C" STANDIN_BARE void __asan_init() {}

// A pointer to a type whose alignment it has not.
struct standin_mismatch {
	const char *file;
	unsigned line, column;
	const void *type;
	unsigned char log_align, kind;
};
extern "C" STANDIN_BARE void __ubsan_handle_type_mismatch_v1(void *data, void *at)
{
	const standin_mismatch *m = (const standin_mismatch *)data;
	if (standin_state.check)
		standin_state.misaligned(standin_state.group, (unsigned long)at, 1ul << m->log_align, m->line);
}

// GCC says which __shared__ variables there are, with room behind each; clang does not.
static struct standin_shared standin_shared_vars[64];
static unsigned standin_shared_count;
struct standin_global {
	unsigned long from, bytes, with_room;
	const char *name;
	unsigned long more[4];
};
extern "C" STANDIN_BARE void __asan_register_globals(void *all, long n)
{
	for (struct standin_global *g = (struct standin_global *)all; n-- > 0; g++)
		if (g->from >= (unsigned long)__start_standin_shared && g->from < (unsigned long)__stop_standin_shared &&
		    standin_shared_count < 64)
			standin_shared_vars[standin_shared_count++] = { g->from, g->bytes, g->name };
}
extern "C" STANDIN_BARE void __asan_unregister_globals(void *, long) {}
#else
#define STANDIN_BARE
static const struct standin_shared *const standin_shared_vars = nullptr;
static const unsigned standin_shared_count = 0;
#endif

// ---- kernels, as compile.c lists them behind the text ----

template <unsigned...> struct standin_places {};
template <unsigned n, unsigned... i> struct standin_up_to : standin_up_to<n - 1, n - 1, i...> {};
template <unsigned... i> struct standin_up_to<0, i...> {
	typedef standin_places<i...> list;
};

template <class F> struct standin_entry;
template <class... A> struct standin_entry<void(A...)> {
	enum { count = sizeof...(A) };
	static const unsigned bytes[sizeof...(A) + 1];
	template <unsigned... i> STANDIN_BARE static inline void at(void (*kernel)(A...), void **params, standin_places<i...>)
	{
		kernel(*(A *)params[i]...);
	}
	STANDIN_BARE static inline void call(void (*kernel)(A...), void **params)
	{
		at(kernel, params, typename standin_up_to<sizeof...(A)>::list());
	}
};
template <class... A> const unsigned standin_entry<void(A...)>::bytes[] = { (unsigned)sizeof(A)..., 0 };
