// SPDX-License-Identifier: Apache-2.0
// Every second element, as of the real parts of complex numbers and of columns of windows.
#ifndef YK_SECOND_H
#define YK_SECOND_H

#include <stdint.h>

#include "shuffle.h"

// to[i] = from[2 i], i < n, for elements of 4 bytes; reads nothing after from[2 (n - 1)].
static inline void yk_take_second(void *to, const void *from, int64_t n)
{
	typedef uint32_t eight __attribute__((vector_size(32), aligned(4), may_alias));
	typedef uint32_t four __attribute__((vector_size(16), aligned(4), may_alias));
	typedef uint32_t one __attribute__((may_alias));
	one *y = to;
	const one *x = from;
	int64_t i = 0;

	for (; i + 8 <= n; i += 8)
		*(eight *)(y + i) =
			YK_SHUFFLE(*(const eight *)(x + 2 * i), *(const eight *)(x + 2 * i + 7), 0,
				   2, 4, 6, 9, 11, 13, 15);
	for (; i + 4 <= n; i += 4)
		*(four *)(y + i) = YK_SHUFFLE(*(const four *)(x + 2 * i),
					      *(const four *)(x + 2 * i + 3), 0, 2, 5, 7);
	for (; i < n; i++)
		y[i] = x[2 * i];
}

#endif
