// SPDX-License-Identifier: Apache-2.0
// Byte order. Files hold little-endian numbers, as their formats say; hosts may be big-endian.
#ifndef YK_ENDIAN_H
#define YK_ENDIAN_H

#include <stddef.h>
#include <stdint.h>

#define YK_HOST_BIG (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

// A little-endian number of a file as one of the host, and the reverse.
static inline uint32_t yk_le32(uint32_t x)
{
	return YK_HOST_BIG ? __builtin_bswap32(x) : x;
}

static inline uint64_t yk_le64(uint64_t x)
{
	return YK_HOST_BIG ? __builtin_bswap64(x) : x;
}

// Reverses the bytes of each of n elements of `width` bytes: 2, 4 or 8; others stay.
void yk_swap_bytes(void *, size_t width, size_t n);

// Turns n little-endian elements into the host's, or the reverse, in place.
static inline void yk_le(void *p, size_t width, size_t n)
{
	if (YK_HOST_BIG)
		yk_swap_bytes(p, width, n);
}

// EUNSUPPORTED on a big-endian host: for formats whose blocks are computed with as they are in the
// file.
int yk_only_little(const char *path, const char *format);

#endif
