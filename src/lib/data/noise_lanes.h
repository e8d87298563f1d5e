// SPDX-License-Identifier: Apache-2.0
// Normal random numbers in vectors of LANES floats; noise.c includes this file once per vector
// width and defines NAME (suffixes the identifiers), MULTIPLY (product of the lower halves of
// 64-bit lanes), ROOT (square root), ORDER (counter offset of each lane), FIRST and SECOND (lane
// orders that interleave the vector of numbers 0 and 2 with that of 1 and 3 for storing) and
// TARGET.

typedef uint64_t NAME(u64) __attribute__((vector_size(LANES * 4)));
typedef uint32_t NAME(u32) __attribute__((vector_size(LANES * 4)));
typedef int32_t NAME(i32) __attribute__((vector_size(LANES * 4)));
typedef float NAME(f32) __attribute__((vector_size(LANES * 4)));

// Writes the 64 numbers of 16 counters, starting at `counter`.
TARGET static void NAME(run)(float *to, uint64_t counter, uint64_t key, uint64_t step)
{
	enum { GROUPS = 16 / (LANES / 2) }; // vectors of counters
	typedef NAME(u64) U64;
	typedef NAME(u32) U32;
	typedef NAME(i32) I32;
	typedef NAME(f32) F32;
	const U64 none = { 0 }, m0 = none + 0xd2511f53u, m1 = none + 0xcd9e8d57u,
		  low = none + 0xffffffffu;
	for (int g0 = 0; g0 < GROUPS; g0 += SOME) {
		uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
		U64 x0[SOME], x1[SOME], x2[SOME], x3[SOME]; // the Philox words, later the numbers
		EACH(v) {
			x0[v] = (U64){ ORDER } + (counter + (uint64_t)((g0 + v) * (LANES / 2)));
			x1[v] = x0[v] >> 32;
			x2[v] = none + (step & 0xffffffff);
			x3[v] = none + (step >> 32);
		}
		for (int round = 0; round < 10; round++) {
			const U64 key0 = none + k0, key1 = none + k1;
			EACH(v) {
				const U64 p = MULTIPLY(x0[v], m0), q = MULTIPLY(x2[v], m1);
				x0[v] = (q >> 32) ^ x1[v] ^ key0;
				x1[v] = q;
				x2[v] = (p >> 32) ^ x3[v] ^ key1;
				x3[v] = p;
			}
			k0 += 0x9e3779b9u;
			k1 += 0xbb67ae85u;
		}
		EACH(v) {
			const U32 a = (U32)((x0[v] & low) | x2[v] << 32),
				  b = (U32)((x1[v] & low) | x3[v] << 32);
			// r = sqrt(-2 log u); u has 23 bits plus half a unit, never 0 or 1, and is
			// split as 2^e (1 + f) with 1 + f >= sqrt(1/2)
			const F32 u =
				(__builtin_convertvector((I32)(a >> 9), F32) + 0.5f) * 0x1p-23f;
			const I32 e = ((I32)u - 0x3f3504f3) >> 23;
			const F32 f = (F32)((I32)u - (e << 23)) - 1.f, z = f * f;
			F32 p = f * -0.0830523968f + 0.127988413f;
			p = p * f + -0.129434407f;
			p = p * f + 0.141902462f;
			p = p * f + -0.166434869f;
			p = p * f + 0.200018793f;
			p = p * f + -0.250002801f;
			p = p * f + 0.333333254f;
			const F32 log_u = (f - (z * 0.5f - p * (z * f))) +
					  __builtin_convertvector(e, F32) * 0.693147182f;
			const F32 r = ROOT(log_u * -2.f);
// 23 bits give the angle within a quadrant; the upper two bits choose the quadrant
			const F32 t = (__builtin_convertvector((I32)(b << 2 >> 9), F32) -
				       4194303.5f) *
				      (1.57079637f * 0x1p-23f),
				  y = t * t;
			const F32 sine =
				t +
				t * y * ((y * -0.00019588011f + 0.0083327489f) * y + -0.166666642f);
			const F32 cosine = 1.f - y * 0.5f +
					   y * y *
						   ((y * 2.4548046e-05f + -0.00138883037f) * y +
						    0.0416666642f);
			const I32 odd = (I32)(b << 1) >> 31;
			const I32 across = (odd & (I32)sine) | (~odd & (I32)cosine),
				  up = (odd & (I32)cosine) | (~odd & (I32)sine);
			const F32 even_numbers =
					  r * (F32)(across ^ (I32)((b ^ b << 1) & 0x80000000u)),
				  odd_numbers = r * (F32)(up ^ (I32)(b & 0x80000000u));
			const F32 first = PICK(even_numbers, odd_numbers, I32, FIRST),
				  second = PICK(even_numbers, odd_numbers, I32, SECOND);
			memcpy(to + (g0 + v) * 2 * LANES, &first, sizeof first);
			memcpy(to + (g0 + v) * 2 * LANES + LANES, &second, sizeof second);
		}
	}
}
