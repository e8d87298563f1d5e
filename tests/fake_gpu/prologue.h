// SPDX-License-Identifier: Apache-2.0
// Defines the built-ins of NVRTC and hiprtc for the host's C++ compiler. One item of a group runs
// at a time, and one launch of a shared object at a time, so per-thread and per-group state can
// be static. compile.c appends the list of kernels to the text.
#define FAKE 1
#include "abi.h"

static struct fake_state fake_state = {};

#define threadIdx fake_state.thread
#define blockIdx fake_state.block
#define blockDim fake_state.threads
#define gridDim fake_state.blocks
#define warpSize ((int)fake_state.warp)

#define __device__
#define __host__
#define __constant__ static
#define __shared__ static __attribute__((section("fake_shared")))
#define __global__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __forceinline__ inline // inlining everything takes the compiler four times as long
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define __restrict__ __restrict
#define __grid_constant__
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")

typedef __SIZE_TYPE__ size_t;

// ---- vectors ----

#define FAKE_VECTORS(type, name, bytes) \
	struct __align__(2 * bytes) name##2 { type x, y; }; \
	struct name##3 { type x, y, z; }; \
	struct __align__(4 * bytes < 16 ? 4 * bytes : 16) name##4 { type x, y, z, w; }; \
	static inline name##2 make_##name##2(type x, type y) { return name##2{ x, y }; } \
	static inline name##3 make_##name##3(type x, type y, type z) \
	{ \
		return name##3{ x, y, z }; \
	} \
	static inline name##4 make_##name##4(type x, type y, type z, type w) \
	{ \
		return name##4{ x, y, z, w }; \
	}
FAKE_VECTORS(float, float, 4)
FAKE_VECTORS(double, double, 8)
FAKE_VECTORS(int, int, 4)
FAKE_VECTORS(unsigned, uint, 4)
FAKE_VECTORS(short, short, 2)
FAKE_VECTORS(unsigned short, ushort, 2)
FAKE_VECTORS(signed char, char, 1)
FAKE_VECTORS(unsigned char, uchar, 1)
FAKE_VECTORS(long long, longlong, 8)
FAKE_VECTORS(unsigned long long, ulonglong, 8)

// ---- groups and warps ----

#define __syncthreads() fake_state.barrier(fake_state.group, __LINE__)
#define __threadfence() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define __threadfence_block() __atomic_thread_fence(__ATOMIC_SEQ_CST)

static inline unsigned fake_lane()
{
	return ((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x) %
	       fake_state.warp;
}

// A value of up to 8 bytes from another lane.
template <class T>
static inline T fake_shuffle(int site, unsigned long mask, T value, unsigned source)
{
	static_assert(sizeof(T) <= 8, "what is shuffled has at most 8 bytes");
	unsigned long bits = 0;
	__builtin_memcpy(&bits, &value, sizeof value);
	bits = fake_state.exchange(fake_state.group, site, FAKE_SHUFFLE, mask, bits, source);
	__builtin_memcpy(&value, &bits, sizeof value);
	return value;
}

template <class T>
static inline T fake_shfl(int site, unsigned long mask, T value, int from, int width = 0)
{
	unsigned lane = fake_lane(), n = width ? (unsigned)width : fake_state.warp;
	return fake_shuffle(site, mask, value, (lane & ~(n - 1)) | ((unsigned)from & (n - 1)));
}

template <class T>
static inline T fake_shfl_up(int site, unsigned long mask, T value, unsigned by, int width = 0)
{
	unsigned lane = fake_lane(), n = width ? (unsigned)width : fake_state.warp;
	return fake_shuffle(site, mask, value, (lane & (n - 1)) < by ? lane : lane - by);
}

template <class T>
static inline T fake_shfl_down(int site, unsigned long mask, T value, unsigned by, int width = 0)
{
	unsigned lane = fake_lane(), n = width ? (unsigned)width : fake_state.warp;
	return fake_shuffle(site, mask, value, (lane & (n - 1)) + by >= n ? lane : lane + by);
}

template <class T>
static inline T fake_shfl_xor(int site, unsigned long mask, T value, int by, int width = 0)
{
	unsigned lane = fake_lane(), n = width ? (unsigned)width : fake_state.warp;
	unsigned from = lane ^ (unsigned)by;
	return fake_shuffle(site, mask, value, from / n > lane / n ? lane : from);
}

static inline unsigned long fake_ballot(int site, unsigned long mask, bool yes)
{
	return fake_state.exchange(fake_state.group, site, FAKE_BALLOT, mask, yes, 0);
}

static inline bool fake_all(int site, unsigned long mask, bool yes)
{
	return !fake_ballot(site, mask, !yes);
}

#ifdef __HIP__
// Built-ins of AMD's compiler: the number of lanes below this one in the low and the high half of a
// mask, and the value of x in a lane, times 4.
static inline unsigned __builtin_amdgcn_mbcnt_lo(unsigned mask, unsigned more)
{
	unsigned lane = fake_lane();
	return more + (unsigned)__builtin_popcount(lane < 32 ? mask & ((1u << lane) - 1) : mask);
}
static inline unsigned __builtin_amdgcn_mbcnt_hi(unsigned mask, unsigned more)
{
	unsigned lane = fake_lane();
	return more +
	       (unsigned)__builtin_popcount(lane > 32 ? mask & ((1u << (lane - 32)) - 1) : 0);
}
#define __builtin_amdgcn_ds_bpermute(at, x) \
	fake_shuffle(__LINE__, 0, (int)(x), (unsigned)(at) / 4 % fake_state.warp)
#define __builtin_amdgcn_fence(order, scope) ((void)0) // stores of a wave are visible immediately
#define __builtin_amdgcn_wave_barrier() \
	fake_state.exchange(fake_state.group, __LINE__, FAKE_SYNC, 0, 0, 0)
#define __shfl(...) fake_shfl(__LINE__, 0, __VA_ARGS__)
#define __shfl_up(...) fake_shfl_up(__LINE__, 0, __VA_ARGS__)
#define __shfl_down(...) fake_shfl_down(__LINE__, 0, __VA_ARGS__)
#define __shfl_xor(...) fake_shfl_xor(__LINE__, 0, __VA_ARGS__)
#define __ballot(yes) fake_ballot(__LINE__, 0, yes)
#define __any(yes) (fake_ballot(__LINE__, 0, yes) != 0)
#define __all(yes) fake_all(__LINE__, 0, yes)
#else
#define __shfl_sync(mask, ...) fake_shfl(__LINE__, mask, __VA_ARGS__)
#define __shfl_up_sync(mask, ...) fake_shfl_up(__LINE__, mask, __VA_ARGS__)
#define __shfl_down_sync(mask, ...) fake_shfl_down(__LINE__, mask, __VA_ARGS__)
#define __shfl_xor_sync(mask, ...) fake_shfl_xor(__LINE__, mask, __VA_ARGS__)
#define __ballot_sync(mask, yes) ((unsigned)fake_ballot(__LINE__, mask, yes))
#define __any_sync(mask, yes) (fake_ballot(__LINE__, mask, yes) != 0)
#define __all_sync(mask, yes) fake_all(__LINE__, mask, yes)
#define __syncwarp(...) fake_syncwarp(__LINE__, ##__VA_ARGS__)
static inline void fake_syncwarp(int site, unsigned mask = 0xffffffffu)
{
	fake_state.exchange(fake_state.group, site, FAKE_SYNC, mask, 0, 0);
}
#endif

// ---- atomics: give what was there ----

template <class T, class F>
static inline T fake_atomic(T *to, F change)
{
	T was, next;
	__atomic_load(to, &was, __ATOMIC_RELAXED);
	do
		next = change(was);
	while (!__atomic_compare_exchange(to, &was, &next, false, __ATOMIC_SEQ_CST,
					  __ATOMIC_RELAXED));
	return was;
}
template <class T> static inline T atomicAdd(T *to, T x)
{
	return fake_atomic(to, [=](T a) { return a + x; });
}
template <class T> static inline T atomicMin(T *to, T x)
{
	return fake_atomic(to, [=](T a) { return x < a ? x : a; });
}
template <class T> static inline T atomicMax(T *to, T x)
{
	return fake_atomic(to, [=](T a) { return x > a ? x : a; });
}
template <class T> static inline T atomicOr(T *to, T x)
{
	return fake_atomic(to, [=](T a) { return a | x; });
}
template <class T> static inline T atomicAnd(T *to, T x)
{
	return fake_atomic(to, [=](T a) { return a & x; });
}
template <class T> static inline T atomicExch(T *to, T x)
{
	return fake_atomic(to, [=](T) { return x; });
}
template <class T> static inline T atomicCAS(T *to, T if_it_is, T x)
{
	return fake_atomic(to, [=](T a) { return a == if_it_is ? x : a; });
}

// ---- numbers ----

#define FAKE_CAST(name, from, to) \
	static inline to name(from x) { return __builtin_bit_cast(to, x); }
FAKE_CAST(__uint_as_float, unsigned, float)
FAKE_CAST(__int_as_float, int, float)
FAKE_CAST(__float_as_uint, float, unsigned)
FAKE_CAST(__float_as_int, float, int)
FAKE_CAST(__longlong_as_double, long long, double)
FAKE_CAST(__double_as_longlong, double, long long)

// In C++ the float overloads have the same names as the double functions.
#define FAKE_MATH1(name) \
	extern "C" double name(double) noexcept; \
	extern "C" float name##f(float) noexcept; \
	static inline float name(float x) { return __builtin_##name##f(x); }
#define FAKE_MATH2(name) \
	extern "C" double name(double, double) noexcept; \
	extern "C" float name##f(float, float) noexcept; \
	static inline float name(float x, float y) { return __builtin_##name##f(x, y); }
FAKE_MATH1(fabs)
FAKE_MATH1(sqrt)
FAKE_MATH1(exp)
FAKE_MATH1(exp2)
FAKE_MATH1(expm1)
FAKE_MATH1(log)
FAKE_MATH1(log2)
FAKE_MATH1(log1p)
FAKE_MATH1(sin)
FAKE_MATH1(cos)
FAKE_MATH1(tan)
FAKE_MATH1(sinh)
FAKE_MATH1(cosh)
FAKE_MATH1(tanh)
FAKE_MATH1(erf)
FAKE_MATH1(rint)
FAKE_MATH1(floor)
FAKE_MATH1(ceil)
FAKE_MATH1(trunc)
FAKE_MATH1(round)
FAKE_MATH2(pow)
FAKE_MATH2(fmax)
FAKE_MATH2(fmin)
FAKE_MATH2(fmod)
FAKE_MATH2(copysign)
extern "C" double fma(double, double, double) noexcept, ldexp(double, int) noexcept;
extern "C" float fmaf(float, float, float) noexcept, ldexpf(float, int) noexcept;
static inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline float ldexp(float x, int n) { return __builtin_ldexpf(x, n); }
static inline float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
static inline double cospi(double x)
{
	return __builtin_cos(3.14159265358979323846 * __builtin_fmod(x, 2.0));
}
static inline double sinpi(double x)
{
	return __builtin_sin(3.14159265358979323846 * __builtin_fmod(x, 2.0));
}
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

// The 16-bit float, which not all host compilers have in C++.
static inline unsigned short fake_f16_of_f32(float x)
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
	return (unsigned short)(sign | (__float_as_uint(__uint_as_float(b) + 0.5f) -
					__float_as_uint(0.5f)));
}
static inline float fake_f32_of_f16(unsigned short h)
{
	unsigned sign = (h & 0x8000u) << 16, e = h >> 10 & 31u, m = h & 0x3ffu;
	if (e == 31u)
		return __uint_as_float(sign | 0x7f800000u | m << 13);
	if (e)
		return __uint_as_float(sign | (e + 112u) << 23 | m << 13);
	return (sign ? -(float)m : (float)m) * 5.9604644775390625e-8f; // 2^-24
}
#ifdef __HIP__
struct fake_f16 {
	unsigned short bits;
	fake_f16() = default;
	explicit fake_f16(float x) : bits(fake_f16_of_f32(x)) {}
	operator float() const { return fake_f32_of_f16(bits); }
};
#define _Float16 fake_f16
#else
// Replaces the NVIDIA instructions of prologue_cuda.h.
static inline unsigned short native_f16_of_f32(float x) { return fake_f16_of_f32(x); }
static inline float native_f32_of_f16(unsigned short h) { return fake_f32_of_f16(h); }
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
extern char __start_fake_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_fake_shared[] __attribute__((weak, visibility("hidden")));
extern char __ehdr_start[] __attribute__((visibility("hidden")));
extern char _end[] __attribute__((visibility("hidden")));
}

// ---- checks: each load and store calls one of these when compiled for it ----

#ifdef FAKE_CHECK
#define FAKE_BARE __attribute__((no_sanitize("kernel-address", "alignment"), visibility("hidden")))

FAKE_BARE static void fake_check(const void *at, unsigned long bytes, int store)
{
	struct fake_state *s = &fake_state;
	unsigned long a = (unsigned long)at;

	if (!s->check ||
	    (a - s->stacks.from < s->stacks.bytes && a + bytes - s->stacks.from <= s->stacks.bytes))
		return;
	for (int i = 0; i < FAKE_LIVE; i++) {
		unsigned long offset = a - s->live[i].from;
		if (offset < s->live[i].bytes && bytes <= s->live[i].bytes - offset)
			return;
	}
	s->access(s->group, a, bytes, store);
}

#define FAKE_ACCESS(bytes) \
	extern "C" FAKE_BARE void __asan_load##bytes##_noabort(void *at) { fake_check(at, bytes, 0); } \
	extern "C" FAKE_BARE void __asan_store##bytes##_noabort(void *at) { fake_check(at, bytes, 1); }
FAKE_ACCESS(1)
FAKE_ACCESS(2)
FAKE_ACCESS(4)
FAKE_ACCESS(8)
FAKE_ACCESS(16)
extern "C" FAKE_BARE void __asan_loadN_noabort(void *at, long bytes)
{
	fake_check(at, (unsigned long)bytes, 0);
}
extern "C" FAKE_BARE void __asan_storeN_noabort(void *at, long bytes)
{
	fake_check(at, (unsigned long)bytes, 1);
}
extern "C" FAKE_BARE void __asan_handle_no_return() {}
extern "C" FAKE_BARE void __asan_init() {}

// A pointer to a type with weaker alignment.
struct fake_mismatch {
	const char *file;
	unsigned line, column;
	const void *type;
	unsigned char log_align, kind;
};
extern "C" FAKE_BARE void __ubsan_handle_type_mismatch_v1(void *data, void *at)
{
	const fake_mismatch *m = (const fake_mismatch *)data;
	if (fake_state.check)
		fake_state.misaligned(fake_state.group, (unsigned long)at, 1ul << m->log_align,
				      m->line);
}

// GCC emits the list of __shared__ variables, with padding after each; clang does not.
static struct fake_shared fake_shared_vars[64];
static unsigned fake_shared_count;
struct fake_global {
	unsigned long from, bytes, with_room;
	const char *name;
	unsigned long more[4];
};
extern "C" FAKE_BARE void __asan_register_globals(void *all, long n)
{
	for (struct fake_global *g = (struct fake_global *)all; n-- > 0; g++)
		if (g->from >= (unsigned long)__start_fake_shared &&
		    g->from < (unsigned long)__stop_fake_shared && fake_shared_count < 64)
			fake_shared_vars[fake_shared_count++] = { g->from, g->bytes, g->name };
}
extern "C" FAKE_BARE void __asan_unregister_globals(void *, long) {}
#else
#define FAKE_BARE
static const struct fake_shared *const fake_shared_vars = nullptr;
static const unsigned fake_shared_count = 0;
#endif

// ---- kernels, as compile.c lists them behind the text ----

template <unsigned...> struct fake_places {};
template <unsigned n, unsigned... i> struct fake_up_to : fake_up_to<n - 1, n - 1, i...> {};
template <unsigned... i> struct fake_up_to<0, i...> {
	typedef fake_places<i...> list;
};

template <class F> struct fake_entry;
template <class... A> struct fake_entry<void(A...)> {
	enum { count = sizeof...(A) };
	static const unsigned bytes[sizeof...(A) + 1];
	template <unsigned... i>
	FAKE_BARE static inline void at(void (*kernel)(A...), void **params, fake_places<i...>)
	{
		kernel(*(A *)params[i]...);
	}
	FAKE_BARE static inline void call(void (*kernel)(A...), void **params)
	{
		at(kernel, params, typename fake_up_to<sizeof...(A)>::list());
	}
};
template <class... A>
const unsigned fake_entry<void(A...)>::bytes[] = { (unsigned)sizeof(A)..., 0 };
