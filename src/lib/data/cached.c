// SPDX-License-Identifier: Apache-2.0
// A dataset that keeps samples of another one in memory after their first read, up to a size limit.
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/set.h"

// A cached sample: the dims of its fields, then their elements.
struct kept {
	int64_t dims[1][YOKE_MAX_RANK]; // [fields]
};

struct cache {
	yoke_dataset *set;
	_Atomic(struct kept *) *sample; // [count]
	atomic_int_fast64_t left;       // bytes left in the cache
};

static void cache_free(void *arg)
{
	struct cache *c = arg;
	for (int64_t i = 0; c->sample && i < c->set->count; i++)
		free(atomic_load(&c->sample[i]));
	free(c->sample);
	yoke_dataset_free(c->set);
	free(c);
}

static size_t head(const struct cache *c)
{
	return (size_t)c->set->fields * sizeof(int64_t[YOKE_MAX_RANK]);
}

// Bytes of a field with these dims.
static size_t field_bytes(const struct cache *c, int f, const int64_t *dims)
{
	size_t n = yoke_dtype_size(c->set->field[f].dtype);
	for (int k = 0; k < c->set->field[f].rank; k++)
		n *= (size_t)dims[k];
	return n;
}

static void copy_out(const struct cache *c, const struct kept *k, struct yoke_item *s)
{
	const int64_t(*dims)[YOKE_MAX_RANK] = k->dims;
	const char *from = (const char *)k + head(c);
	for (int f = 0; f < c->set->fields; f++) {
		const size_t n = field_bytes(c, f, dims[f]);
		memcpy(s->to[f], from, n);
		from += n;
	}
	memcpy(s->dims, k, head(c));
}

static void keep(struct cache *c, const struct yoke_item *s)
{
	struct kept *none = NULL, *k = NULL;
	int64_t bytes = (int64_t)head(c);
	for (int f = 0; f < c->set->fields; f++)
		bytes += (int64_t)field_bytes(c, f, s->dims[f]);
	if (atomic_fetch_sub(&c->left, bytes) >= bytes)
		k = malloc((size_t)bytes);
	char *to = k ? (char *)k + head(c) : NULL;
	for (int f = 0; k && f < c->set->fields; f++) {
		const size_t n = field_bytes(c, f, s->dims[f]);
		memcpy(to, s->to[f], n);
		to += n;
	}
	if (k)
		memcpy(k, s->dims, head(c));
	if (k && atomic_compare_exchange_strong(&c->sample[s->number], &none, k))
		return;
	free(k); // the cache is full, or another thread stored it first
	atomic_fetch_add(&c->left, bytes);
}

static int read_cached(void *arg, int64_t n, struct yoke_item *const *s)
{
	struct cache *c = arg;
	for (int64_t i = 0; i < n; i++) {
		const struct kept *k = atomic_load(&c->sample[s[i]->number]);
		if (k)
			copy_out(c, k, s[i]);
		else if (!yk_dataset_read(c->set, 1, &s[i]))
			keep(c, s[i]);
	}
	return 0;
}

yoke_dataset *yoke_dataset_cache(yoke_dataset *set, uint64_t bytes)
{
	if (yk_require(set, "data set"))
		return NULL;
	struct cache *c = calloc(1, sizeof *c);
	const struct yoke_dataset_options o = { .size = sizeof o,
						.name = set->name,
						.count = set->count,
						.read = read_cached,
						.arg = c,
						.free_fn = cache_free,
						.chunk = set->chunk,
						.fingerprint = yoke_dataset_fingerprint(set) };
	yoke_dataset *d = NULL;
	if (c && (c->sample = calloc((size_t)set->count, sizeof *c->sample))) {
		c->set = yk_dataset_ref(set);
		atomic_init(&c->left, bytes > INT64_MAX / 2 ? INT64_MAX / 2 : (int64_t)bytes);
		d = yk_dataset_like(set, &o);
		if (!d)
			cache_free(c);
	} else {
		free(c);
		yk_fail(YOKE_ENOMEM, "dataset_cache: no memory for %" PRId64 " samples",
			set->count);
	}
	return d;
}
