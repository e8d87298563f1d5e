// SPDX-License-Identifier: Apache-2.0
// Lists of token ids of 1, 2 or 4 bytes.
#include "config.h"

#include "text/tokens.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

int yk_tokens_width(int32_t size)
{
	return size <= 256 ? 1 : size <= 65536 ? 2 : 4;
}

int yk_tokens_reserve(struct yk_tokens *t, int32_t size, size_t more)
{
	size_t need, bytes, capacity;
	int width = t->count ? t->width : yk_tokens_width(size);
	void *ids;

	if (__builtin_add_overflow(t->count, more, &need) || need > SIZE_MAX / 8)
		return yk_fail(YOKE_ENOMEM, "out of memory for %zu more tokens", more);
	if (width == t->width && need <= t->capacity)
		return 0;
	// Growing by half keeps appends linear without doubling the peak memory of a large text.
	capacity = t->count ? t->count + t->count / 2 : 0;
	if (capacity < need)
		capacity = need;
	if (__builtin_mul_overflow(capacity, (size_t)width, &bytes))
		return yk_fail(YOKE_ENOMEM, "out of memory for %zu tokens", capacity);
	ids = realloc(t->ids, bytes ? bytes : 1);
	if (!ids)
		return yk_fail(YOKE_ENOMEM, "out of memory for %zu tokens", capacity);
	t->ids = ids;
	t->width = width;
	t->capacity = capacity;
	return 0;
}

static void put(void *ids, int width, size_t i, int32_t id)
{
	switch (width) {
	case 1: ((uint8_t *)ids)[i] = (uint8_t)id; return;
	case 2: ((uint16_t *)ids)[i] = (uint16_t)id; return;
	default: ((int32_t *)ids)[i] = id;
	}
}

void yk_tokens_add(struct yk_tokens *t, int32_t id)
{
	put(t->ids, t->width, t->count++, id);
}

int32_t yk_tokens_get(const struct yk_tokens *t, size_t i)
{
	switch (t->width) {
	case 1: return ((const uint8_t *)t->ids)[i];
	case 2: return ((const uint16_t *)t->ids)[i];
	default: return ((const int32_t *)t->ids)[i];
	}
}

void yk_tokens_copy(const struct yk_tokens *t, size_t first, size_t n, int32_t *to)
{
	for (size_t i = 0; i < n; i++)
		to[i] = yk_tokens_get(t, first + i);
}

void yk_tokens_renumber(struct yk_tokens *t, const int32_t *to, int32_t size)
{
	// In place: the write position never passes the read position.
	int width = yk_tokens_width(size);
	for (size_t i = 0; i < t->count; i++)
		put(t->ids, width, i, to[yk_tokens_get(t, i)]);
	void *less = realloc(t->ids, t->count * (size_t)width + 1);
	t->capacity = less ? t->count : t->capacity * (size_t)t->width / (size_t)width;
	t->ids = less ? less : t->ids;
	t->width = width;
}

void yk_tokens_fini(struct yk_tokens *t)
{
	free(t->ids);
	memset(t, 0, sizeof *t);
}
