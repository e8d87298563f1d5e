// SPDX-License-Identifier: Apache-2.0
// VPDPBUSD and VPDPWSSD in plain C, for tests on processors without it. A test compiles kernels
// with this header included first.
#ifndef YK_VNNI_EMULATED
#define YK_VNNI_EMULATED

#include "config.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Each 32 bits of `to` += the products of four unsigned bytes of q with signed ones of x.
static __attribute__((noinline)) void yk_vnni_add(void *to, const void *q, const void *x,
						  size_t bytes)
{
	const uint8_t *a = q;
	const int8_t *b = x;
	for (size_t i = 0; i < bytes; i += 4) {
		uint32_t sum;
		memcpy(&sum, (char *)to + i, sizeof sum);
		for (size_t p = i; p < i + 4; p++)
			sum += (uint32_t)(a[p] * b[p]);
		memcpy((char *)to + i, &sum, sizeof sum);
	}
}

// Each 32 bits of `to` += the sum of the products of two words of a and b.
static __attribute__((noinline)) void yk_vnni_add_pairs(void *to, const void *a, const void *b,
							size_t bytes)
{
	const int16_t *x = a, *y = b;
	for (size_t i = 0; i < bytes; i += 4) {
		uint32_t sum;
		memcpy(&sum, (char *)to + i, sizeof sum);
		for (size_t p = i / 2; p < i / 2 + 2; p++)
			sum += (uint32_t)(x[p] * y[p]);
		memcpy((char *)to + i, &sum, sizeof sum);
	}
}

#endif
