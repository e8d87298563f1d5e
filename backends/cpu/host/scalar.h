// SPDX-License-Identifier: Apache-2.0
// A number that is passed by value lies in the low bytes of a u64, which come last on big-endian
// hosts.
#ifndef YK_CPU_SCALAR_H
#define YK_CPU_SCALAR_H

#include <stddef.h>
#include <stdint.h>

static inline const char *yk_low_bytes(const uint64_t *bits, size_t size)
{
	return (const char *)bits +
	       (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? sizeof *bits - size : 0);
}

#endif
