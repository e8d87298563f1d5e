// SPDX-License-Identifier: Apache-2.0
// SIMD vectors of the instruction set that the file is compiled for: VF floats, unaligned loads.
// Sums over lanes have a fixed order. vf_fma rounds once where the instruction set has FMA.
#ifndef YK_VEC_H
#define YK_VEC_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined __x86_64__ || defined __i386__
#include <immintrin.h>
#else
#include "fused.h"
#endif

#if defined __AVX512F__
#define VF 16
#elif defined __AVX2__ && defined __FMA__
#define VF 8
#elif defined YK_SVE
#define VF (YK_SVE / 32)
#elif defined __riscv_vector && !defined YK_VECTORS_128
#define VF (__riscv_v_min_vlen / 32)
#else
#define VF 4
#endif

typedef float vf __attribute__((vector_size(VF * 4)));
typedef int32_t vi __attribute__((vector_size(VF * 4)));

static inline vf vf_load(const float *p)
{
	vf v;
	memcpy(&v, p, sizeof v);
	return v;
}

static inline void vf_store(float *p, vf v)
{
	memcpy(p, &v, sizeof v);
}

// Non-temporal store, where the processor supports it; p is aligned to the vector. A thread that
// has used it calls vf_fence before others may read the data.
static inline void vf_stream(float *p, vf v)
{
#if defined __AVX512F__
	_mm512_stream_ps(p, (__m512)v);
#elif defined __AVX2__
	_mm256_stream_ps(p, (__m256)v);
#elif defined __SSE__
	_mm_stream_ps(p, (__m128)v);
#else
	vf_store(p, v);
#endif
}

static inline void vf_fence(void)
{
#if defined __SSE__
	_mm_sfence();
#endif
}

// memcpy for runs of any length. The instruction that memcpy uses for long ones (rep movsb) takes
// ten times as long on Zen 4 if the destination begins within 64 bytes after the source, modulo
// 4096.
static inline void vf_copy(void *to, const void *from, size_t bytes)
{
	enum { LONG = 1024, LINE = 64, STEP = 4 };
	char *y = to;
	const char *x = from;
	size_t at = -(uintptr_t)y % LINE;

	if (bytes < LONG) {
		memcpy(y, x, bytes);
		return;
	}
	memcpy(y, x, LINE);
	for (; at + STEP * sizeof(vf) <= bytes; at += STEP * sizeof(vf)) {
		vf v[STEP];
		memcpy(v, x + at, sizeof v);
		memcpy(y + at, v, sizeof v);
	}
	memcpy(y + at, x + at, bytes - at);
}

// memcpy with non-temporal stores, except for partial cache lines at the ends.
static inline void vf_stream_copy(void *to, const void *from, size_t bytes)
{
	enum { LINE = 64 };
	char *y = to;
	const char *x = from;
	const size_t ahead = -(uintptr_t)y % LINE, head = ahead < bytes ? ahead : bytes;
	size_t at = head;

	memcpy(y, x, head);
	for (; at + LINE <= bytes; at += LINE)
		for (size_t i = at; i < at + LINE; i += sizeof(vf)) {
			vf v;
			memcpy(&v, x + i, sizeof v);
			vf_stream((float *)(void *)(y + i), v);
		}
	memcpy(y + at, x + at, bytes - at);
}

#if defined __AVX2__ && !defined __AVX512F__
static inline __m256i vi_first(int64_t n)
{
	return (__m256i)((vi){ 0, 1, 2, 3, 4, 5, 6, 7 } < (vi){ 0 } + (int32_t)n);
}
#endif

// Loads the first n < VF lanes; the others are 0 and their memory is not read.
static inline vf vf_load_n(const float *p, int64_t n)
{
#if defined __AVX512F__
	return (vf)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
#elif defined __AVX2__
	return (vf)_mm256_maskload_ps(p, vi_first(n));
#else
	vf v = { 0 };
	for (int i = 0; i < VF - 1; i++)
		v[i] = i < n ? p[i] : 0;
	return v;
#endif
}

static inline void vf_store_n(float *p, vf v, int64_t n)
{
#if defined __AVX512F__
	_mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)v);
#elif defined __AVX2__
	_mm256_maskstore_ps(p, vi_first(n), (__m256)v);
#else
	for (int i = 0; i < VF - 1 && i < n; i++)
		p[i] = v[i];
#endif
}

#if defined __AVX2__
// Lane i is lane at[i] of v, which is in [0, VF).
static inline vf vf_pick(vf v, vi at)
{
#if defined __AVX512F__
	return (vf)_mm512_permutexvar_ps((__m512i)at, (__m512)v);
#else
	return (vf)_mm256_permutevar8x32_ps((__m256)v, (__m256i)at);
#endif
}
#endif

// Loads the first n lanes, or all if n >= VF.
static inline vf vf_get(const float *p, int64_t n)
{
	return n >= VF ? vf_load(p) : vf_load_n(p, n);
}

static inline void vf_put(float *p, vf v, int64_t n)
{
	if (n >= VF)
		vf_store(p, v);
	else
		vf_store_n(p, v, n);
}

// Writes all lanes, non-temporally if `stream`; or the first n as vf_put does.
static inline void vf_write(float *p, vf v, int64_t n, bool stream)
{
	if (stream)
		vf_stream(p, v);
	else
		vf_put(p, v, n);
}

static inline vf vf_splat(float x)
{
#if defined __AVX512F__
	return (vf)_mm512_set1_ps(x);
#elif defined __AVX2__
	return (vf)_mm256_set1_ps(x);
#else
	return x - (vf){ 0 };
#endif
}

static inline vi vi_splat(int32_t x)
{
	return (vi){ 0 } + x;
}

// 0, 1, 2, ..
static inline vi vi_iota(void)
{
#if VF == 16
	return (vi){ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
#elif VF == 8
	return (vi){ 0, 1, 2, 3, 4, 5, 6, 7 };
#else
	return (vi){ 0, 1, 2, 3 };
#endif
}

// a * b + c
static inline vf vf_fma(vf a, vf b, vf c)
{
#if defined __AVX512F__
	return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined __AVX2__
	return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined VECTOR_FMA
	return VECTOR_FMA(vf, VF, __builtin_fmaf, a, b, c);
#else
	return a * b + c;
#endif
}

// mask (all bits or none in each lane) ? a : b
static inline vf vf_select(vi mask, vf a, vf b)
{
#if defined __AVX512F__
	return (vf)_mm512_ternarylogic_epi32((__m512i)mask, (__m512i)a, (__m512i)b, 0xca);
#elif defined __AVX2__
	return (vf)_mm256_blendv_ps((__m256)b, (__m256)a, (__m256)mask);
#else
	return (vf)((mask & (vi)a) | (~mask & (vi)b));
#endif
}

// The larger value; b if either is NaN.
static inline vf vf_max(vf a, vf b)
{
#if defined __AVX512F__
	return (vf)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined __AVX2__
	return (vf)_mm256_max_ps((__m256)a, (__m256)b);
#elif defined __SSE__
	return (vf)_mm_max_ps((__m128)a, (__m128)b);
#else
	return vf_select(a > b, a, b);
#endif
}

// The smaller value; b if either is NaN.
static inline vf vf_min(vf a, vf b)
{
#if defined __AVX512F__
	return (vf)_mm512_min_ps((__m512)a, (__m512)b);
#elif defined __AVX2__
	return (vf)_mm256_min_ps((__m256)a, (__m256)b);
#elif defined __SSE__
	return (vf)_mm_min_ps((__m128)a, (__m128)b);
#else
	return vf_select(a < b, a, b);
#endif
}

// Maximum and minimum that propagate NaN: a's if both are NaN.
static inline vf vf_max_nan(vf a, vf b)
{
	return vf_select(a != a, a, vf_max(a, b));
}

static inline vf vf_min_nan(vf a, vf b)
{
	return vf_select(a != a, a, vf_min(a, b));
}

static inline vf vf_sqrt(vf a)
{
#if defined __AVX512F__
	return (vf)_mm512_sqrt_ps((__m512)a);
#elif defined __AVX2__
	return (vf)_mm256_sqrt_ps((__m256)a);
#elif defined __SSE__
	return (vf)_mm_sqrt_ps((__m128)a);
#elif defined YK_SVE
	yk_sv s;
	memcpy(&s, &a, sizeof s);
	s = svsqrt_f32_x(svptrue_b32(), s);
	memcpy(&a, &s, sizeof a);
	return a;
#elif defined __aarch64__
	return (vf)vsqrtq_f32((float32x4_t)a);
#else
	for (int i = 0; i < VF; i++)
		a[i] = __builtin_sqrtf(a[i]);
	return a;
#endif
}

// Sum and maximum over the lanes, by halving.
static inline float vf_sum(vf v)
{
#if defined __AVX512F__
	return _mm512_reduce_add_ps((__m512)v);
#else
	float a[VF];
	vf_store(a, v);
	for (int n = VF / 2; n; n /= 2)
		for (int i = 0; i < n; i++)
			a[i] += a[i + n];
	return a[0];
#endif
}

static inline float vf_hmax(vf v)
{
#if defined __AVX512F__
	return _mm512_reduce_max_ps((__m512)v);
#else
	float a[VF];
	vf_store(a, v);
	for (int n = VF / 2; n; n /= 2)
		for (int i = 0; i < n; i++)
			a[i] = a[i] > a[i + n] ? a[i] : a[i + n];
	return a[0];
#endif
}

#endif
