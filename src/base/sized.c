// SPDX-License-Identifier: Apache-2.0
// Structs that begin with their size.
#include "config.h"

#include "base/sized.h"

#include <string.h>

#include "base/error.h"

// What both sides know of a struct of the caller's; negative: an error.
static long known(const void *theirs, size_t size, const char *call, const char *type)
{
	size_t given = 0;

	if (theirs)
		memcpy(&given, theirs, sizeof given);
	if (given < sizeof given)
		return yk_fail(YOKE_EINVAL, "%s: set size to sizeof(struct %s)", call, type);
	given = given < size ? given : size;
	return (long)(given - given % sizeof(void *)); // half a pointer is none
}

int yk_sized_take(void *to, size_t size, const void *from, const char *call, const char *type)
{
	const long n = known(from, size, call, type);

	if (n > 0)
		memcpy(to, from, (size_t)n);
	return n < 0 ? (int)n : 0;
}

int yk_sized_give(void *to, size_t size, const void *from, const char *call, const char *type)
{
	const long n = known(to, size, call, type);

	if (n > (long)sizeof(size_t)) // the size stays the caller's
		memcpy((char *)to + sizeof(size_t), (const char *)from + sizeof(size_t), (size_t)n - sizeof(size_t));
	return n < 0 ? (int)n : 0;
}
