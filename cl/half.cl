// SPDX-License-Identifier: Apache-2.0
// f16 and bf16 as bits: values are held in f32, rounded to nearest even, and stored in 16 bits.
// Uses integer arithmetic only, so that devices that flush subnormals give the same bits. NaN stays
// NaN.
#include "prologue.h"

// clang for an x86 with a conversion instruction. (vload_half may be a library function.)
#if defined __F16C__ && defined __has_builtin
#if __has_builtin(__builtin_load_halff) && __has_builtin(__builtin_store_halff)
#define BUILTIN_F16
#endif
#endif

// NATIVE_F16=1: the prologue's conversions give the same bits as those below (tested by f16.cl).
#ifndef NATIVE_F16
#define NATIVE_F16 0
#endif
#if NATIVE_F16
FN ushort f16_of_f32(float x)
{
	return native_f16_of_f32(x);
}

FN float f32_of_f16(ushort h)
{
	return native_f32_of_f16(h);
}
#elif defined BUILTIN_F16
FN ushort f16_of_f32(float x)
{
	ushort h;
	__builtin_store_halff(x, (half *)&h);
	return h;
}

FN float f32_of_f16(ushort h)
{
	return __builtin_load_halff((const half *)&h);
}
#else
FN ushort f16_of_f32(float x)
{
	uint b = AS_UINT(x), sign = b >> 16 & 0x8000u;
	b &= 0x7fffffffu;
	if (b > 0x7f800000u)
		return (ushort)(sign | 0x7e00u | (b >> 13 & 0x3ffu));
	if (b >= 0x477ff000u) // 65520, halfway between the largest f16 and 65536
		return (ushort)(sign | 0x7c00u);
	if (b >= 0x38800000u) // 2^-14, the smallest normal f16
		return (ushort)(sign | (b - 0x38000000u + 0xfffu + (b >> 13 & 1u)) >> 13);
	// In units of 2^-24: the 24-bit significand shifted right by 2 .. 24.
	uint shift = 126u - (b >> 23);
	if (shift > 24u)
		return (ushort)sign;
	uint m = (b & 0x7fffffu) | 0x800000u;
	uint q = m >> shift, rest = m & ((1u << shift) - 1u);
	uint half_ulp = 1u << (shift - 1u);
	q += rest > half_ulp || (rest == half_ulp && (q & 1u)) ? 1u : 0u;
	return (ushort)(sign | q);
}

FN float f32_of_f16(ushort h)
{
	uint sign = (uint)(h & 0x8000u) << 16, e = h >> 10 & 31u, m = h & 0x3ffu;
	if (e == 31u)
		return AS_FLOAT(sign | 0x7f800000u | m << 13);
	if (e)
		return AS_FLOAT(sign | (e + 112u) << 23 | m << 13);
	float x = (float)(int)m * 5.9604644775390625e-8f; // 2^-24, exact
	return sign ? -x : x;
}

#endif

FN ushort bf16_of_f32(float x)
{
	uint b = AS_UINT(x);
	if (x != x)
		return (ushort)(b >> 16 | 0x40u);
	return (ushort)((b + 0x7fffu + (b >> 16 & 1u)) >> 16);
}

FN float f32_of_bf16(ushort h)
{
	return AS_FLOAT((uint)h << 16);
}

FN float round_f16(float x)
{
	return f32_of_f16(f16_of_f32(x));
}

FN float round_bf16(float x)
{
	return f32_of_bf16(bf16_of_f32(x));
}

// Rounds to odd: an inexact result gets an odd last bit, so that rounding it again to fewer bits
// equals a single rounding (Boldo and Melquiond 2008).
FN float odd_of_i64(long x)
{
	ulong a = x < 0 ? 0ul - (ulong)x : (ulong)x, lost = 0ul;
	float unit = 1.0f;
	while (a >> 24) {
		lost |= a & 0xfful;
		a >>= 8;
		unit *= 256.0f;
	}
	float y = (float)(uint)(a | (lost ? 1ul : 0ul)) * unit;
	return x < 0 ? -y : y;
}

#ifdef USE_F64
FN float odd_of_f64(double x)
{
	float y = (float)x;
	if (x != x || (double)y == x)
		return y;
	uint b = AS_UINT(y);
	if (fabs((double)y) > fabs(x))
		b -= 1u;
	return AS_FLOAT(b | 1u);
}
#endif
