// SPDX-License-Identifier: Apache-2.0
// Reverses the bytes of elements.
#include "config.h"

#include <string.h>

#include "base/endian.h"
#include "base/error.h"

#define SWAP(bits) \
	for (size_t i = 0; i < n; i++, p += bits / 8) { \
		uint##bits##_t v; \
		memcpy(&v, p, sizeof v); \
		v = __builtin_bswap##bits(v); \
		memcpy(p, &v, sizeof v); \
	}

void yk_swap_bytes(void *at, size_t width, size_t n)
{
	unsigned char *p = at;
	if (width == 2)
		SWAP(16)
	else if (width == 4)
		SWAP(32)
	else if (width == 8)
		SWAP(64)
}

int yk_only_little(const char *path, const char *format)
{
	return YK_HOST_BIG ? yk_fail(YOKE_EUNSUPPORTED,
				     "%s: %s is read and written on little-endian processors only; "
				     "use safetensors",
				     path, format) :
			     0;
}
