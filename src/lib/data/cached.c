// SPDX-License-Identifier: Apache-2.0
// A set whose samples stay in memory once they were read, as far as there is room.
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/set.h"

// What was read of a sample: the dims of its fields, and behind them their elements.
struct kept {
	int64_t dims[1][YOKE_MAX_RANK]; // [fields]
};

struct cache {
	yoke_dataset *set;
	_Atomic(struct kept *) *sample; // [count]
	uint64_t each;                  // bytes of one
	atomic_int_fast64_t left;       // bytes
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

static void copy_out(const struct cache *c, const struct kept *k, struct yoke_item *s)
{
	const char *from = (const char *)k + head(c);
	for (int f = 0; f < c->set->fields; from += c->set->field[f++].bytes)
		memcpy(s->to[f], from, c->set->field[f].bytes);
	memcpy(s->dims, k, head(c));
}

static void keep(struct cache *c, const struct yoke_item *s)
{
	struct kept *none = NULL, *k = NULL;
	if (atomic_fetch_sub(&c->left, (int64_t)c->each) >= (int64_t)c->each)
		k = malloc(c->each);
	char *to = k ? (char *)k + head(c) : NULL;
	for (int f = 0; k && f < c->set->fields; to += c->set->field[f++].bytes)
		memcpy(to, s->to[f], c->set->field[f].bytes);
	if (k)
		memcpy(k, s->dims, head(c));
	if (k && atomic_compare_exchange_strong(&c->sample[s->number], &none, k))
		return;
	free(k); // no room, or another thread was first
	atomic_fetch_add(&c->left, (int64_t)c->each);
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
	if (yk_given(set, "data set"))
		return NULL;
	struct cache *c = calloc(1, sizeof *c);
	const struct yoke_dataset_options o = { .size = sizeof o, .name = set->name, .count = set->count, .read = read_cached,
						.arg = c, .free_fn = cache_free, .chunk = set->chunk,
						.fingerprint = yoke_dataset_fingerprint(set) };
	yoke_dataset *d = NULL;
	if (c && (c->sample = calloc((size_t)set->count, sizeof *c->sample))) {
		c->set = yk_dataset_ref(set);
		c->each = head(c);
		for (int f = 0; f < set->fields; f++)
			c->each += set->field[f].bytes;
		atomic_init(&c->left, bytes > INT64_MAX / 2 ? INT64_MAX / 2 : (int64_t)bytes);
		d = yk_dataset_like(set, &o);
		if (!d)
			cache_free(c);
	} else {
		free(c);
		yk_fail(YOKE_ENOMEM, "dataset_cache: no memory for %" PRId64 " samples", set->count);
	}
	return d;
}
