// SPDX-License-Identifier: Apache-2.0
// Classes of ops for tuning: contractions grouped by dtype, transposition and magnitude of extents.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/tuning.h"
#include "yoke.h"

// A class contains extents up to `max` and is measured at `at`.
static const struct magnitude {
	int64_t max, at;
} magnitudes[] = {
	{ 1, 1 }, { 16, 8 }, { 128, 64 }, { 1024, 384 }, { INT64_MAX, 1536 },
};
enum {
	MAGNITUDES = sizeof magnitudes / sizeof *magnitudes,
	LIMIT = YK_TUNING_CLASSES,
	BATCH = 16,  // batch size at which batched products are measured
	LARGE = 1536, // from this extent on, a single product fills a device
	FAR = 1 << 20, MUCH = INT32_MAX // limits of a name's extents and of an operand's elements
};
static const int dtypes[] = { yoke_f32, yoke_bf16, yoke_f16 };
enum { DTYPES = sizeof dtypes / sizeof *dtypes };
static const struct {
	const char *name;
	bool ta, tb;
} layouts[] = { { "nn", false, false }, { "nt", false, true }, { "tn", true, false } };
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

static int64_t round_to_class(int64_t n)
{
	int i = 0;

	while (n > magnitudes[i].max)
		i++;
	return magnitudes[i].at;
}

static bool is_large(const struct yk_tuning_class *c)
{
	return c->m == LARGE || c->n == LARGE || c->k == LARGE;
}

bool yk_tuning_class_of(const struct yoke_op *op, struct yk_tuning_class *to)
{
	struct yk_tuning_class c = { .batch = 1 };
	const struct yoke_view *a, *b, *y;
	bool known = false, one_b = true;

	if (op->code != YOKE_OP_CONTRACT || op->nout < 1 || op->nin < 2)
		return false;
	y = &op->out[0], a = &op->in[0], b = &op->in[1];
	int r = y->rank - 2;
	if (r < 0 || a->rank != y->rank || b->rank != y->rank)
		return false;
	for (int i = 0; i < r; i++) {
		one_b &= b->strides[i] == 0 || y->dims[i] == 1;
		if (__builtin_mul_overflow(c.batch, y->dims[i], &c.batch))
			return false;
	}
	c.dtype = a->dtype;
	c.m = y->dims[r];
	c.n = y->dims[r + 1];
	c.k = a->dims[r + 1];
	if (one_b) { // all share b: the batch counts as rows of a
		if (__builtin_mul_overflow(c.m, c.batch, &c.m))
			return false;
		c.batch = 1;
	}
	if (c.m < 1 || c.n < 1 || c.k < 1 || c.batch < 1)
		return false;
	c.ta = a->strides[r + 1] != 1 && c.k > 1 && c.m > 1;
	c.tb = b->strides[r + 1] != 1 && c.k > 1 && c.n > 1;
	c.m = round_to_class(c.m);
	c.n = round_to_class(c.n);
	c.k = round_to_class(c.k);
	c.batch = c.batch > 1 && !is_large(&c) ? BATCH : 1;
	for (int i = 0; i < DTYPES; i++)
		known |= c.dtype == dtypes[i];
	*to = c;
	return known && !(c.ta && c.tb);
}

void yk_tuning_class_name(const struct yk_tuning_class *c, char to[YK_TUNING_NAME])
{
	snprintf(to, YK_TUNING_NAME, "contract.%s.%c%c.%lldx%lldx%lldx%lld",
		 yoke_dtype_name(c->dtype), "nt"[c->ta], "nt"[c->tb], (long long)c->m,
		 (long long)c->n, (long long)c->k, (long long)c->batch);
}

// ---- enumeration ----

// Combination i of extents, layouts and dtypes, in no particular order; some are not valid classes.
static bool combine(size_t i, struct yk_tuning_class *c)
{
	*c = (struct yk_tuning_class){ .batch = 1 };
	c->dtype = dtypes[i % DTYPES];
	i /= DTYPES;
	c->ta = layouts[i % LAYOUTS].ta;
	c->tb = layouts[i % LAYOUTS].tb;
	i /= LAYOUTS;
	c->batch = i % 2 ? BATCH : 1;
	i /= 2;
	c->k = magnitudes[i % MAGNITUDES].at;
	i /= MAGNITUDES;
	c->n = magnitudes[i % MAGNITUDES].at;
	i /= MAGNITUDES;
	c->m = magnitudes[i % MAGNITUDES].at;
	return !(c->batch > 1 && is_large(c)) && !(c->ta && (c->k == 1 || c->m == 1)) &&
	       !(c->tb && (c->k == 1 || c->n == 1));
}

_Static_assert(LIMIT == DTYPES * LAYOUTS * 2 * MAGNITUDES * MAGNITUDES * MAGNITUDES,
	       "room for all combinations");

static int place_of(int dtype)
{
	int i = 0;

	while (dtypes[i] != dtype)
		i++;
	return i;
}

static int by_cost(const void *x, const void *y)
{
	const struct yk_tuning_class *a = x, *b = y;
	int64_t p = a->m * a->n * a->k * a->batch, q = b->m * b->n * b->k * b->batch;
	char name[2][YK_TUNING_NAME];

	if (a->dtype != b->dtype)
		return place_of(a->dtype) < place_of(b->dtype) ? -1 : 1;
	if (p != q)
		return p > q ? -1 : 1;
	yk_tuning_class_name(a, name[0]);
	yk_tuning_class_name(b, name[1]);
	return strcmp(name[0], name[1]);
}

size_t yk_tuning_classes(struct yk_tuning_class to[YK_TUNING_CLASSES])
{
	size_t n = 0;

	for (size_t i = 0; i < LIMIT; i++)
		n += combine(i, &to[n]);
	qsort(to, n, sizeof *to, by_cost);
	return n;
}

bool yk_tuning_class_parse(const char *name, struct yk_tuning_class *to)
{
	char other[YK_TUNING_NAME];

	for (size_t i = 0; i < DTYPES * LAYOUTS; i++) {
		long long m, n, k, batch;
		*to = (struct yk_tuning_class){ .dtype = dtypes[i % DTYPES],
						.ta = layouts[i / DTYPES].ta,
						.tb = layouts[i / DTYPES].tb,
						.m = 1,
						.n = 1,
						.k = 1,
						.batch = 1 };
		yk_tuning_class_name(to, other);
		char *extents = strrchr(other, '.') + 1;
		if (strncmp(name, other, (size_t)(extents - other)) ||
		    sscanf(name + (extents - other), "%lldx%lldx%lldx%lld", &m, &n, &k, &batch) !=
			    4)
			continue;
		to->m = m, to->n = n, to->k = k, to->batch = batch;
		yk_tuning_class_name(to, other); // reject trailing text
		return m > 0 && n > 0 && k > 0 && batch > 0 && m <= FAR && n <= FAR && k <= FAR &&
		       batch <= FAR && m * n <= MUCH / batch && m * k <= MUCH / batch &&
		       k * n <= MUCH / batch && !strcmp(name, other);
	}
	return false;
}
