// SPDX-License-Identifier: Apache-2.0
// Cursors: which samples of an epoch this rank reads, in which order and batches.
#include "config.h"

#include "data/cursor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/param.h"
#include "data/permute.h"

// ---- settings ----

// A key accepts its words, which stand for numbers, or numbers within min .. max.
static const struct key {
	const char *name;
	size_t offset;
	int64_t min, max, standard;
	const char *words[5];
	int64_t first; // the first word's number
} keys[] = {
#define KEY(name, ...) { #name, offsetof(struct yk_feed, name), __VA_ARGS__ }
	KEY(batch, 1, INT64_MAX, 1, { NULL }, 0),
	KEY(workers, 0, 1024, YK_DATA_AUTO, { "auto" }, YK_DATA_AUTO),
	KEY(prefetch, 0, 4096, 2, { NULL }, 0),
	KEY(shuffle, 0, INT64_MAX, 1, { NULL }, 0),
	KEY(last, 1, 0, YK_LAST_WRAP, { "wrap", "drop", "keep", "pad" }, YK_LAST_WRAP),
	KEY(seed, INT64_MIN, INT64_MAX, 0, { NULL }, 0),
	KEY(rank, 0, INT64_MAX, 0, { NULL }, 0),
	KEY(world, 1, (int64_t)1 << 32, 1, { NULL }, 0),
	KEY(on_error, 1, INT64_MAX, YK_ERROR_STOP, { "skip", "stop" }, YK_ERROR_SKIP),
	KEY(epochs, 0, INT64_MAX, 0, { NULL }, 0),
	KEY(split, 1, 1048576, 1, { NULL }, 0),
	KEY(part, 0, 1048575, 0, { NULL }, 0),
	KEY(parts, 0, 1048576, 0, { NULL }, 0),
	KEY(stride, 1, 1048576, 1, { NULL }, 0),
	KEY(held, 0, 4096, 2, { NULL }, 0),
#undef KEY
};
#define KEYS ((int)(sizeof keys / sizeof *keys))

static int refuse(const struct key *k, const char *value)
{
	char rule[160] = "must be";
	for (int i = 0; i < 4 && k->words[i]; i++)
		snprintf(rule + strlen(rule), sizeof rule - strlen(rule), "%s %s", i ? " or" : "",
			 k->words[i]);
	if (k->min <= k->max)
		snprintf(rule + strlen(rule), sizeof rule - strlen(rule),
			 "%s a whole number from %lld to %lld", k->words[0] ? " or" : "",
			 (long long)k->min, (long long)k->max);
	return yk_fail(YOKE_EINVAL, "loader: %s=%s: %s", k->name, value, rule);
}

static int take(struct yk_feed *f, const struct key *k, const char *value)
{
	int64_t *to = (int64_t *)(void *)((char *)f + k->offset);
	char *end;
	for (int i = 0; i < 4 && k->words[i]; i++)
		if (!strcmp(value, k->words[i])) {
			*to = k->first + i;
			return 0;
		}
	errno = 0;
	const long long n = strtoll(value, &end, 10);
	if (errno || !*value || *end || *value == ' ' || *value == '+' || n < k->min || n > k->max)
		return refuse(k, value);
	*to = n;
	return 0;
}

static int take_word(struct yk_feed *f, char *word)
{
	const char *names[KEYS];
	char hint[256], *value = strchr(word, '=');
	if (!value)
		return yk_fail(YOKE_EINVAL, "loader: '%s' is not key=value", word);
	*value++ = 0;
	for (int i = 0; i < KEYS; i++) {
		names[i] = keys[i].name;
		if (!strcmp(word, names[i]))
			return take(f, &keys[i], value);
	}
	return yk_fail(YOKE_EINVAL, "loader: there is no key '%s'; %s", word,
		       yk_hint(word, names, KEYS, hint, sizeof hint));
}

int yk_feed_parse(struct yk_feed *to, const char *settings)
{
	struct yk_feed f = { .count = to->count };
	for (int i = 0; i < KEYS; i++)
		*(int64_t *)(void *)((char *)&f + keys[i].offset) = keys[i].standard;
	char *copy = strdup(settings ? settings : ""), *rest = copy, *word;
	int e = copy ? 0 : yk_fail(YOKE_ENOMEM, "loader: no memory");
	while (e == 0 && (word = strsep(&rest, " ")))
		if (*word)
			e = take_word(&f, word);
	free(copy);
	if (e == 0 && f.rank >= f.world)
		e = yk_fail(YOKE_EINVAL, "loader: rank=%lld: must be below world=%lld",
			    (long long)f.rank, (long long)f.world);
	if (e == 0 && (f.batch % f.split || (f.split > 1 && f.last == YK_LAST_KEEP)))
		e = yk_fail(
			YOKE_EINVAL,
			"loader: split=%lld: must divide batch=%lld, and each batch, so that last=keep does "
			"not go with it",
			(long long)f.split, (long long)f.batch);
	f.parts = f.parts ? f.parts : (f.split - f.part + f.stride - 1) / f.stride;
	if (e == 0 && (f.part >= f.split || (f.parts - 1) * f.stride >= f.split - f.part ||
		       (f.parts < f.split && f.last == YK_LAST_PAD)))
		e = yk_fail(
			YOKE_EINVAL,
			"loader: part=%lld parts=%lld stride=%lld: must be among those of split=%lld, and last=pad "
			"does not go with them",
			(long long)f.part, (long long)f.parts, (long long)f.stride,
			(long long)f.split);
	if (e == 0 && f.count > INT64_MAX / 4)
		e = yk_fail(YOKE_ERANGE, "loader: %lld samples are too many", (long long)f.count);
	const struct yk_cursor begin = { 0 };
	if (e == 0 && f.last == YK_LAST_DROP && yk_feed_samples(&f, &begin) < f.batch)
		e = yk_fail(
			YOKE_ERANGE,
			"loader: last=drop leaves no batch: an epoch has %lld samples%s, batch=%lld; make "
			"the batch smaller or choose another last",
			(long long)yk_feed_samples(&f, &begin), f.world > 1 ? " for each rank" : "",
			(long long)f.batch);
	if (e == 0)
		*to = f;
	return e;
}

// ---- positions ----

int64_t yk_feed_samples(const struct yk_feed *f, const struct yk_cursor *c)
{
	return (f->count - c->base + f->world - 1) / f->world;
}

int yk_cursor_from(const struct yk_feed *f, const struct yoke_position *p, struct yk_cursor *to)
{
	if (p->epoch < 0 || p->index < 0 || p->epoch > INT32_MAX || p->failed < 0 ||
	    p->index > f->count)
		return yk_fail(
			YOKE_EINVAL,
			"loader: sample %lld of epoch %lld: the set has %lld samples; continue with the "
			"data that the position is of",
			(long long)p->index, (long long)p->epoch, (long long)f->count);
	if (p->index == f->count)
		*to = (struct yk_cursor){ .epoch = p->epoch + 1 };
	else
		*to = (struct yk_cursor){ p->epoch, p->index % f->world, p->index / f->world };
	return 0;
}

int64_t yk_cursor_index(const struct yk_feed *f, const struct yk_cursor *c)
{
	return c->base + c->at * f->world;
}

struct yk_cursor yk_cursor_on(const struct yk_feed *f, const struct yk_cursor *c, int64_t n)
{
	const struct yk_cursor next = { .epoch = c->epoch + 1 };
	const int64_t left = yk_feed_samples(f, c) - c->at, whole = yk_feed_samples(f, &next);
	if (n < left)
		return (struct yk_cursor){ c->epoch, c->base, c->at + n };
	n -= left;
	return (struct yk_cursor){ next.epoch + n / whole, 0, n % whole };
}

int64_t yk_cursor_batch(const struct yk_feed *f, struct yk_cursor *c)
{
	int64_t left = yk_feed_samples(f, c) - c->at;
	if (f->last == YK_LAST_DROP && left < f->batch) {
		*c = yk_cursor_on(f, c, left);
		left = f->batch; // a whole epoch has at least one batch, which yk_feed_parse checks
	}
	if (f->epochs && c->epoch >= f->epochs)
		return 0;
	return f->last == YK_LAST_WRAP || left > f->batch ? f->batch : left;
}

void yk_cursor_turn(const struct yk_feed *f, struct yk_cursor *c)
{
	if (++c->at >= yk_feed_samples(f, c))
		c->at = 0;
}

int64_t yk_cursor_sample(const struct yk_feed *f, const struct yk_cursor *c)
{
	const int64_t index = (yk_cursor_index(f, c) + f->rank) % f->count;
	return yk_order_at(index, f->count, f->shuffle, (uint64_t)f->seed, c->epoch);
}
