// SPDX-License-Identifier: Apache-2.0
// Offsets in an arena: the largest spans first, each at the lowest offset that is free while it
// lives.
#ifndef YK_SPANS_H
#define YK_SPANS_H

#include <stddef.h>
#include <stdint.h>

struct yk_span { // bytes of an arena, used from step born to step dies
	uint32_t born, dies;
	uint64_t bytes;   // not 0
	uint64_t *offset; // receives its offset
};
// Assigns offsets to n spans (and sorts them) such that none crosses a multiple of `largest`; *top
// grows to the end of the last span.  0 or ENOMEM.
int yk_spans_assign(struct yk_span *, size_t n, uint32_t steps, uint64_t largest, uint64_t *top);

#endif
