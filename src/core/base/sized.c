// SPDX-License-Identifier: Apache-2.0
// Copies structs that begin with their size between the caller and the library.
#include "config.h"

#include "base/sized.h"

#include <stdint.h>
#include <string.h>

#include "base/error.h"

enum { LIMIT = 1 << 16 }; // a larger size member is presumably uninitialized

int yk_sized_check(const void *theirs, size_t word, const char *call, const char *type)
{
	size_t size = 0;
	uint32_t small = 0;

	if (theirs && word == sizeof small) {
		memcpy(&small, theirs, sizeof small);
		size = small;
	} else if (theirs) {
		memcpy(&size, theirs, sizeof size);
	}
	if (!theirs)
		return yk_fail(YOKE_EINVAL, "%s: the struct %s is NULL", call, type);
	if (size < 2 * word || size % word || size > LIMIT)
		return yk_fail(YOKE_EINVAL, "%s: size is %zu; set size to sizeof(struct %s)", call,
			       size, type);
	return (int)size;
}

// The number of bytes that both versions of the struct have; negative: an error.
static int known(const void *theirs, size_t size, const char *call, const char *type)
{
	const int given = yk_sized_check(theirs, sizeof(size_t), call, type);
	return given < 0 || (size_t)given < size ? given : (int)size;
}

int yk_sized_read(void *to, size_t size, const void *from, const char *call, const char *type)
{
	const int n = known(from, size, call, type);

	if (n > 0)
		memcpy(to, from, (size_t)n);
	return n < 0 ? n : 0;
}

int yk_sized_write(void *to, size_t size, const void *from, const char *call, const char *type)
{
	const int n = known(to, size, call, type);

	if (n > 0) // the caller's size member is not changed
		memcpy((char *)to + sizeof(size_t), (const char *)from + sizeof(size_t),
		       (size_t)n - sizeof(size_t));
	return n < 0 ? n : 0;
}

int yk_sized_array(const void *to, int max, const char *call, const char *type)
{
	if (max < 0)
		return yk_fail(YOKE_EINVAL, "%s: the array size %d is negative", call, max);
	const int size = to && max ? yk_sized_check(to, sizeof(size_t), call, type) : 0;
	return size < 0 ? size : 0;
}

int yk_sized_write_at(void *to, int i, size_t size, const void *from, const char *call,
		      const char *type)
{
	const int step = yk_sized_check(to, sizeof(size_t), call, type);
	if (step < 0)
		return step;
	void *at = (char *)to + (size_t)i * (size_t)step;
	memcpy(at, &(size_t){ (size_t)step }, sizeof(size_t));
	return yk_sized_write(at, size, from, call, type);
}
