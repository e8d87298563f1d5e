// SPDX-License-Identifier: Apache-2.0
// Tests whether the device converts f16 like half.cl (compiled with NATIVE_F16=0). One item per f16
// value h: writes 1 if h itself, and f32 values at, below, between and above h and the next value,
// convert to the same bits; any NaN equals any NaN.
#include "half.cl"

FN bool same_f32(float a, float b)
{
	return AS_UINT(a) == AS_UINT(b) || (a != a && b != b);
}

FN bool same_f16(float x)
{
	ushort a = f16_of_f32(x), b = native_f16_of_f32(x);
	return a == b || (x != x && (a & 0x7fffu) > 0x7c00u && (b & 0x7fffu) > 0x7c00u);
}

KERNEL void f16_same(GLOBAL uchar *same)
{
	ushort h = (ushort)GLOBAL_ID(0);
	float x = f32_of_f16(h);
	bool good = same_f32(x, native_f32_of_f16(h)) && same_f16(x);
	// halfway to the next value away from 0; for the largest value, to where infinity would be
	uint half_ulp = (h & 0x7c00u) ? 0x1000u : 0u;
	if (x == x && (h & 0x7fffu) != 0x7c00u) {
		float middle = half_ulp ? AS_FLOAT(AS_UINT(x) + half_ulp) :
					  x + ((h & 0x8000u) ? -2.98023223876953125e-8f : // 2^-25
							       2.98023223876953125e-8f);
		good = good && same_f16(middle) && same_f16(AS_FLOAT(AS_UINT(middle) - 1u)) &&
		       same_f16(AS_FLOAT(AS_UINT(middle) + 1u));
	}
	same[h] = good ? (uchar)1 : (uchar)0;
}
