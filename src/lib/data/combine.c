// SPDX-License-Identifier: Apache-2.0
// Datasets made from other datasets: concatenation, mixing, subset, map.
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "data/permute.h"
#include "data/set.h"

enum { RUN = 32 }; // samples of one set that one call reads

// ---- several sets as one ----

struct parts {
	int n;
	yoke_dataset **set;
	int64_t *first; // [n + 1]: first sample of each set; for a mix, first position in the epoch
	uint64_t seed;  // for a mix
	int64_t *number; // for a subset, or NULL
	// returns the set of a sample and its index in that set
	int (*place)(const struct parts *, const struct yoke_item *, int64_t *number);
};

static void parts_free(void *arg)
{
	struct parts *p = arg;
	for (int i = 0; i < p->n; i++)
		yoke_dataset_free(p->set[i]);
	free(p->set);
	free(p->first);
	free(p->number);
	free(p);
}

static int parts_read(void *arg, int64_t n, struct yoke_item *const *s)
{
	const struct parts *p = arg;
	struct yoke_item in[RUN], *list[RUN];
	int64_t number;
	for (int64_t i = 0; i < n;) {
		const int set = p->place(p, s[i], &number);
		int k = 0;
		for (; k < RUN && i + k < n && p->place(p, s[i + k], &number) == set; k++) {
			in[k] = *s[i + k];
			in[k].number = number;
			list[k] = &in[k];
		}
		yk_dataset_read(p->set[set], k, list);
		for (int j = 0; j < k; j++)
			s[i + j]->code = in[j].code;
		i += k;
	}
	return 0;
}

// The set that contains index `at`.
static int part_of(const struct parts *p, int64_t at)
{
	int low = 0, high = p->n - 1;
	while (low < high) {
		const int middle = (low + high + 1) / 2;
		if (p->first[middle] <= at)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

static int place_concat(const struct parts *p, const struct yoke_item *s, int64_t *number)
{
	const int set = part_of(p, s->number);
	*number = s->number - p->first[set];
	return set;
}

static int place_subset(const struct parts *p, const struct yoke_item *s, int64_t *number)
{
	*number = p->number ? p->number[s->number] : p->first[0] + s->number;
	return 0;
}

// Divides a * b by c, which is above a and below 2^62, without overflow.
static int64_t divide_product(int64_t a, int64_t b, int64_t c, int64_t *remainder)
{
	int64_t product;
	uint64_t quotient = 0, r = 0;
	if (!__builtin_mul_overflow(a, b, &product)) {
		*remainder = product % c;
		return product / c;
	}
	for (int bit = 62; bit >= 0; bit--) {
		quotient *= 2;
		r = 2 * r + (b >> bit & 1 ? (uint64_t)a : 0);
		for (; r >= (uint64_t)c; r -= (uint64_t)c)
			quotient++;
	}
	*remainder = (int64_t)r;
	return (int64_t)quotient;
}

// Each set has a contiguous range of positions, which is permuted into the epoch.  A set's samples
// are traversed in an order that changes with each traversal, and a traversal continues across
// epochs.
static int place_mix(const struct parts *p, const struct yoke_item *s, int64_t *number)
{
	const int64_t all = p->first[p->n];
	const int64_t at = yk_order_at(s->number, all, 1, p->seed, -1);
	const int set = part_of(p, at);
	const int64_t quota = p->first[set + 1] - p->first[set], count = p->set[set]->count;
	// epoch * quota + at of the set's quota, split into full rounds of `count` and a remainder,
	// without overflow
	const int64_t whole = s->epoch / count, rest = s->epoch % count;
	int64_t use;
	int64_t round = whole * quota + divide_product(rest, quota, count, &use);
	use += at - p->first[set];
	round += use / count;
	*number = yk_order_at(use % count, count, 1, p->seed + (uint64_t)set, round);
	return set;
}

static struct parts *parts_new(int n, const char *call)
{
	struct parts *p = n < 1 ? NULL : calloc(1, sizeof *p);
	if (p) {
		p->set = calloc((size_t)n, sizeof *p->set);
		p->first = calloc((size_t)n + 1, sizeof *p->first);
	}
	if (p && p->set && p->first)
		return p;
	yk_fail(n < 1 ? YOKE_EINVAL : YOKE_ENOMEM,
		n < 1 ? "%s: needs at least one dataset" : "%s: no memory", call);
	if (p)
		parts_free(p);
	return NULL;
}

static int same_fields(const yoke_dataset *a, const yoke_dataset *b, const char *call)
{
	if (a->fields != b->fields)
		return yk_fail(YOKE_EINVAL, "%s: %s has %d fields, %s %d", call, a->name, a->fields,
			       b->name, b->fields);
	for (int i = 0; i < a->fields; i++) {
		const struct yk_field *x = &a->field[i], *y = &b->field[i];
		const size_t bytes = sizeof x->dims[0] * (size_t)x->rank;
		if (strcmp(x->name, y->name))
			return yk_fail(YOKE_EINVAL, "%s: field %d of %s is %s, of %s %s", call, i,
				       a->name, x->name, b->name, y->name);
		if (x->dtype != y->dtype)
			return yk_fail(YOKE_EDTYPE, "%s: field %s is %s in %s and %s in %s", call,
				       x->name, yoke_dtype_name(x->dtype), a->name,
				       yoke_dtype_name(y->dtype), b->name);
		if (x->rank != y->rank || memcmp(x->dims, y->dims, bytes) ||
		    memcmp(x->multiple, y->multiple, bytes) ||
		    !(x->pad == y->pad || (isnan(x->pad) && isnan(y->pad))))
			return yk_fail(
				YOKE_ESHAPE,
				"%s: field %s has other dims, multiples or pad in %s than in %s",
				call, x->name, a->name, b->name);
	}
	return 0;
}

static int parts_take(struct parts *p, int n, yoke_dataset *const *set, const char *call)
{
	for (int i = 0; i < n; i++) {
		if (!set || !set[i])
			return yk_fail(YOKE_EINVAL, "%s: set %d is NULL", call, i);
		int e = i ? same_fields(set[0], set[i], call) : 0;
		if (e < 0)
			return e;
		p->set[p->n++] = yk_dataset_ref(set[i]);
	}
	return 0;
}

// Makes the set of these parts; on failure returns NULL and frees them.
static yoke_dataset *parts_set(struct parts *p, int64_t count, int64_t chunk, uint64_t hash)
{
	yoke_dataset *d = NULL;
	for (int i = 0; i < p->n; i++)
		hash = yk_hash_numbers(&p->set[i]->fingerprint, sizeof hash, 1, hash);
	d = yk_dataset_like(p->set[0], &(struct yoke_dataset_options){ .name = p->set[0]->name,
								       .count = count,
								       .read = parts_read,
								       .chunk = chunk,
								       .arg = p,
								       .free_fn = parts_free,
								       .fingerprint = hash });
	if (!d)
		parts_free(p);
	return d;
}

yoke_dataset *yoke_dataset_concat(int n, yoke_dataset *const *set)
{
	struct parts *p = parts_new(n, "dataset_concat");
	if (!p)
		return NULL;
	int e = parts_take(p, n, set, "dataset_concat");
	for (int i = 0; e == 0 && i < n; i++)
		if (__builtin_add_overflow(p->first[i], set[i]->count, &p->first[i + 1]))
			e = yk_fail(YOKE_ERANGE, "dataset_concat: more than 2^63 - 1 samples");
	if (e < 0) {
		parts_free(p);
		return NULL;
	}
	p->place = place_concat;
	return parts_set(p, p->first[n], p->set[0]->chunk, 1);
}

// Divides `count` by weight: shares are rounded down, and the remainder goes to the largest
// fractions.
static int shares(struct parts *p, size_t n, const double *weight, int64_t count)
{
	double sum = 0;
	int64_t left = count;
	for (int i = 0; i < p->n; i++) {
		if (!weight || !(weight[i] > 0) || isinf(weight[i]))
			return yk_fail(YOKE_EINVAL,
				       "dataset_mix: %s: its weight must be positive and finite",
				       p->set[i]->name);
		sum += weight[i];
	}
	double *lost = calloc(n, sizeof *lost);
	if (!lost)
		return yk_fail(YOKE_ENOMEM, "dataset_mix: no memory");
	for (int i = 0; i < p->n; i++) {
		const double part = (double)count * (weight[i] / sum);
		p->first[i + 1] = (int64_t)fmin(floor(part), (double)left);
		lost[i] = part - floor(part);
		left -= p->first[i + 1];
	}
	while (left > 0) {
		int max = 0;
		for (int i = 1; i < p->n; i++)
			if (lost[i] > lost[max])
				max = i;
		lost[max] -= 1;
		p->first[max + 1]++;
		left--;
	}
	free(lost);
	for (int i = 0; i < p->n; i++)
		p->first[i + 1] += p->first[i];
	return 0;
}

yoke_dataset *yoke_dataset_mix(int n, yoke_dataset *const *set, const double *weight, int64_t count,
			       uint64_t seed)
{
	struct parts *p = parts_new(n, "dataset_mix");
	if (!p)
		return NULL;
	p->seed = seed;
	p->place = place_mix;
	int e = parts_take(p, n, set, "dataset_mix");
	if (e == 0 && (count < 1 || count > (int64_t)1 << 53))
		e = yk_fail(YOKE_EINVAL, "dataset_mix: count %lld: must be 1 to 2^53",
			    (long long)count);
	if (e == 0)
		e = shares(p, (size_t)n, weight, count);
	if (e < 0) {
		parts_free(p);
		return NULL;
	}
	return parts_set(p, count, 1,
			 yk_hash_numbers(p->first, sizeof *p->first, (size_t)n + 1, seed));
}

static int subset_take(struct parts *p, int64_t first, int64_t count, const int64_t *number)
{
	const yoke_dataset *d = p->set[0];
	if (count < 1 || count > INT64_MAX / 8)
		return yk_fail(YOKE_EINVAL, "dataset_subset: %s: %lld samples; must be 1 or more",
			       d->name, (long long)count);
	if (!number && (first < 0 || first > d->count - count))
		return yk_fail(YOKE_ERANGE, "dataset_subset: %s: samples %lld to %lld of %lld",
			       d->name, (long long)first, (long long)(first + count - 1),
			       (long long)d->count);
	for (int64_t i = 0; number && i < count; i++)
		if (number[i] < 0 || number[i] >= d->count)
			return yk_fail(YOKE_ERANGE,
				       "dataset_subset: %s: there is no sample %lld of %lld",
				       d->name, (long long)number[i], (long long)d->count);
	p->first[0] = number ? 0 : first;
	if (!number)
		return 0;
	p->number = malloc(sizeof *number * (size_t)count);
	if (!p->number)
		return yk_fail(YOKE_ENOMEM, "dataset_subset: %s: no memory for %lld numbers",
			       d->name, (long long)count);
	memcpy(p->number, number, sizeof *number * (size_t)count);
	return 0;
}

yoke_dataset *yoke_dataset_subset(yoke_dataset *d, int64_t first, int64_t count,
				  const int64_t *number)
{
	struct parts *p = parts_new(1, "dataset_subset");
	if (!p)
		return NULL;
	p->place = place_subset;
	int e = parts_take(p, 1, &d, "dataset_subset");
	if (e == 0)
		e = subset_take(p, first, count, number);
	if (e < 0) {
		parts_free(p);
		return NULL;
	}
	const uint64_t hash = yk_hash_numbers(p->first, sizeof *p->first, 1, 2);
	return parts_set(p, count, d->chunk,
			 number ? yk_hash_numbers(number, sizeof *number, (size_t)count, hash) :
				  hash);
}

// ---- map ----

struct map {
	yoke_dataset *from;
	yoke_map_fn *fn;
	void *arg;
	void (*free_fn)(void *);
	size_t room; // bytes of a sample of `from`, each field aligned to 64; 0: in place
};

static size_t rounded(size_t bytes)
{
	return (bytes + 63) & ~(size_t)63;
}

static void map_free(void *arg)
{
	struct map *m = arg;
	yoke_dataset_free(m->from);
	if (m->free_fn)
		m->free_fn(m->arg);
	free(m);
}

static void map_one(const struct map *m, struct yoke_item *from, struct yoke_item *s)
{
	if (yk_dataset_read(m->from, 1, &from)) {
		s->code = from->code;
		return;
	}
	const int e = m->fn(m->arg, m->room ? from : NULL, s);
	if (e < 0 && !s->code)
		yk_sample_failed(s, e);
}

static int map_read(void *arg, int64_t n, struct yoke_item *const *s)
{
	const struct map *m = arg;
	const int fields = m->from->fields;
	unsigned char *room = NULL;
	void **to = calloc((size_t)fields, sizeof *to);
	int64_t (*dims)[YOKE_MAX_RANK] = calloc((size_t)fields, sizeof *dims);
	int e = to && dims && (!m->room || posix_memalign((void **)&room, 64, m->room) == 0) ?
			0 :
			YOKE_ENOMEM;
	size_t at = 0;
	for (int f = 0; f < fields && room && e == 0; f++) {
		to[f] = room + at;
		at += rounded(m->from->field[f].bytes);
	}
	for (int64_t i = 0; i < n && e == 0; i++) {
		struct yoke_item from = *s[i];
		if (m->room) {
			from.to = to;
			from.dims = dims;
		}
		map_one(m, &from, s[i]);
	}
	free(room);
	free(to);
	free(dims);
	return e;
}

static int map_room(struct map *m)
{
	for (int f = 0; f < m->from->fields; f++)
		if (__builtin_add_overflow(m->room, rounded(m->from->field[f].bytes), &m->room))
			return yk_fail(YOKE_ERANGE,
				       "dataset_map: %s: a sample does not fit in memory",
				       m->from->name);
	return 0;
}

yoke_dataset *yoke_dataset_map(yoke_dataset *d, int fields, const struct yoke_field *field,
			       yoke_map_fn *fn, void *arg, void (*free_fn)(void *arg))
{
	struct map *m = d && fn ? calloc(1, sizeof *m) : NULL;
	if (!m) {
		yk_fail(d && fn ? YOKE_ENOMEM : YOKE_EINVAL, "dataset_map: %s",
			d && fn ? "no memory" : "needs a dataset and a function");
		return NULL;
	}
	*m = (struct map){ .from = yk_dataset_ref(d), .fn = fn, .arg = arg };
	struct yoke_dataset_options o = { .size = sizeof o,
					  .name = d->name,
					  .count = d->count,
					  .read = map_read,
					  .chunk = d->chunk,
					  .arg = m,
					  .free_fn = map_free,
					  .fields = fields,
					  .field = field,
					  .fingerprint =
						  yk_hash_numbers(&d->fingerprint, 8, 1, 3) };
	yoke_dataset *to = NULL;
	if (fields == 0)
		to = yk_dataset_like(d, &o);
	else if (map_room(m) == 0)
		to = yoke_dataset_new(&o);
	if (to)
		m->free_fn = free_fn;
	else
		map_free(m);
	return to;
}
