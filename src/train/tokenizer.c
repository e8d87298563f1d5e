// SPDX-License-Identifier: Apache-2.0
// Tokenizers: a table of kinds, and the list of ids they append to.
// A kind that needs state beyond its name keeps it behind struct yk_tokenizer and in its
// JSON.
#include "config.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/param.h"
#include "train/tokenizer.h"

struct yk_kind {
	const char *name;
	int32_t size;
	int (*encode)(const struct yk_tokenizer *, const char *text, size_t bytes,
		      struct yk_tokens *to);
	const char *(*decode)(const struct yk_tokenizer *, int32_t id, size_t *bytes);
};

struct yk_tokenizer {
	const struct yk_kind *kind;
	char bytes[256]; // what ids of single bytes stand for
};

// ---- lists of ids ----

// Room for `more` ids in a list of a vocabulary of `size`.
static int tokens_reserve(struct yk_tokens *t, int32_t size, size_t more)
{
	size_t need, bytes, capacity;
	int width = t->count ? t->width : size <= 256 ? 1 : size <= 65536 ? 2 : 4;
	void *ids;

	if (__builtin_add_overflow(t->count, more, &need) || need > SIZE_MAX / 8)
		return yk_fail(YOKE_ENOMEM, "out of memory for %zu more tokens", more);
	if (width == t->width && need <= t->capacity)
		return 0;
	// Growing by half keeps appends linear without doubling the peak of a large text.
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

void yk_tokens_fini(struct yk_tokens *t)
{
	free(t->ids);
	memset(t, 0, sizeof *t);
}

// ---- byte ----

static int byte_encode(const struct yk_tokenizer *t, const char *text, size_t bytes,
		       struct yk_tokens *to)
{
	int e = tokens_reserve(to, t->kind->size, bytes);

	if (e < 0)
		return e;
	if (bytes)
		memcpy((uint8_t *)to->ids + to->count, text, bytes);
	to->count += bytes;
	return 0;
}

static const char *byte_decode(const struct yk_tokenizer *t, int32_t id, size_t *bytes)
{
	*bytes = 1;
	return &t->bytes[id];
}

static const struct yk_kind kinds[] = {
	{ "byte", 256, byte_encode, byte_decode },
};
#define KINDS ((int)(sizeof kinds / sizeof *kinds))

// ---- entry points ----

struct yk_tokenizer *yk_tokenizer_new(const char *name)
{
	const char *names[KINDS], *nearest;

	for (int i = 0; i < KINDS; i++) {
		struct yk_tokenizer *t;
		names[i] = kinds[i].name;
		if (strcmp(name, kinds[i].name))
			continue;
		t = calloc(1, sizeof *t);
		if (!t) {
			yk_fail(YOKE_ENOMEM, "out of memory for a tokenizer");
			return NULL;
		}
		t->kind = &kinds[i];
		for (int b = 0; b < 256; b++)
			t->bytes[b] = (char)b;
		return t;
	}
	nearest = yk_nearest(name, names, KINDS);
	yk_fail(YOKE_ENOENT, "no tokenizer '%s'; there is '%s'", name,
		nearest ? nearest : kinds[0].name);
	return NULL;
}

void yk_tokenizer_free(struct yk_tokenizer *t)
{
	free(t);
}

const char *yk_tokenizer_name(const struct yk_tokenizer *t)
{
	return t->kind->name;
}

int32_t yk_tokenizer_size(const struct yk_tokenizer *t)
{
	return t->kind->size;
}

int yk_tokenizer_encode(const struct yk_tokenizer *t, const char *text, size_t bytes,
			struct yk_tokens *to)
{
	return t->kind->encode(t, text, bytes, to);
}

const char *yk_tokenizer_decode(const struct yk_tokenizer *t, int32_t id, size_t *bytes)
{
	if (id < 0 || id >= t->kind->size)
		return NULL;
	return t->kind->decode(t, id, bytes);
}

json_t *yk_tokenizer_save(const struct yk_tokenizer *t)
{
	json_t *o = json_pack("{s:s, s:i}", "name", t->kind->name, "size",
			      (int)t->kind->size);

	if (!o)
		yk_fail(YOKE_ENOMEM, "out of memory for a tokenizer's JSON");
	return o;
}

struct yk_tokenizer *yk_tokenizer_load(const json_t *o, const char *what)
{
	struct yk_tokenizer *t;
	const char *name;
	int64_t size;

	if (yk_json_str(o, what, "name", &name) < 0 ||
	    yk_json_int(o, what, "size", 1, INT32_MAX, &size) < 0)
		return NULL;
	t = yk_tokenizer_new(name);
	if (t && size != t->kind->size) {
		yk_fail(YOKE_EFORMAT, "%s: tokenizer '%s' has %d ids, not %lld", what,
			name, (int)t->kind->size, (long long)size);
		yk_tokenizer_free(t);
		return NULL;
	}
	return t;
}
