// SPDX-License-Identifier: Apache-2.0
// VPDPBUSD in plain C, for tests on processors without it. A test compiles kernels with this header
// included first.
#ifndef YK_VNNI_EMULATED
#define YK_VNNI_EMULATED

#include "config.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Each 32 bits of `to` += the products of four unsigned bytes of q with signed ones of x.
static inline void yk_vnni_add(void *to, const void *q, const void *x, size_t bytes)
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

#endif
