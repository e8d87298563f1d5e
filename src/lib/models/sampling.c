// SPDX-License-Identifier: Apache-2.0
// Samples in this order: penalties, temperature, top_k, top_p, min_p, draw.
#include "config.h"

#include "models/sampling.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/philox.h"

struct choice {
	double p; // relative to the largest, which is 1
	int32_t id;
};

static int by_probability(const void *a, const void *b)
{
	const struct choice *x = a, *y = b;
	if (x->p != y->p)
		return x->p < y->p ? 1 : -1;
	return (x->id > y->id) - (x->id < y->id);
}

static int penalize(float *logits, int32_t n, const struct yk_sampling *s, const int32_t *before,
		    int64_t count)
{
	const double r = s->repetition == 0 ? 1 : s->repetition;
	if (r == 1 && s->frequency == 0 && s->presence == 0)
		return 0;
	int64_t *times = calloc((size_t)n, sizeof *times);
	if (!times)
		return yk_fail(YOKE_ENOMEM, "sampling: no memory for %d tokens", (int)n);
	for (int64_t i = 0; i < count; i++)
		times[before[i]]++;
	for (int64_t i = 0; i < count; i++) {
		float *l = &logits[before[i]];
		int64_t *c = &times[before[i]];
		if (*c)
			*l = (float)((*l > 0 ? *l / r : *l * r) -
				     (s->frequency * (double)*c + s->presence));
		*c = 0;
	}
	free(times);
	return 0;
}

// In [0, 1), from the first two words of the Philox block of counter k, with the seed as key.
static double uniform(uint64_t seed, uint64_t k)
{
	const uint64_t bits = yk_philox(4 * k, seed, 0) | (uint64_t)yk_philox(4 * k + 1, seed, 0)
								  << 32;
	return (double)(bits >> 11) * 0x1p-53;
}

// Length of the prefix of the n likeliest tokens, sorted, that top_k, top_p and min_p leave; *kept
// is its sum.  all: the sum of the p of all tokens; complete: are these n all tokens?  0: more
// tokens are needed.
static int32_t prefix(const struct choice *c, int32_t n, bool complete, double all,
		      const struct yk_sampling *s, double *kept)
{
	const bool by_count = s->top_k > 0 && s->top_k <= n;
	const int32_t limit = by_count ? (int32_t)s->top_k : n;
	double total = by_count ? 0 : all;
	int32_t m = 0;
	if (!by_count && s->top_k > 0 && !complete)
		return 0;
	for (int32_t i = 0; i < limit && by_count; i++)
		total += c[i].p;
	*kept = 0;
	while (m < limit && (m == 0 || *kept < s->top_p * total))
		*kept += c[m++].p;
	if (m == limit && !by_count && !complete)
		return 0;
	while (m > 1 && c[m - 1].p < s->min_p)
		*kept -= c[--m].p;
	return m;
}

// Collects the tokens with p above `from`, sorted.
static int32_t collect(const float *logits, int32_t n, int32_t best, double temperature,
		       double from, struct choice *to)
{
	int32_t m = 0;
	for (int32_t i = 0; i < n; i++) {
		const double p = isfinite(logits[i]) ?
					 exp(((double)logits[i] - logits[best]) / temperature) :
					 0;
		if (p >= from)
			to[m++] = (struct choice){ p, i };
	}
	qsort(to, (size_t)m, sizeof *to, by_probability);
	return m;
}

int yk_sample(float *logits, int32_t n, const struct yk_sampling *s, const int32_t *before,
	      int64_t count, uint64_t k, int32_t *to)
{
	int32_t best = -1, pick = 0;
	double kept, all = 0;
	const int e = penalize(logits, n, s, before, count);
	if (e < 0)
		return e;
	for (int32_t i = 0; i < n; i++)
		if (isfinite(logits[i]) && (best < 0 || logits[i] > logits[best]))
			best = i;
	if (best < 0)
		return yk_fail(YOKE_EFORMAT,
			       "model: none of its %d logits is finite; it was damaged in training",
			       (int)n);
	if (!(s->temperature > 0) || !(s->top_p > 0)) {
		*to = best;
		return 0;
	}
	struct choice *c = malloc((size_t)n * sizeof *c);
	if (!c)
		return yk_fail(YOKE_ENOMEM, "sampling: no memory for %d tokens", (int)n);
	for (int32_t i = 0; i < n; i++)
		all += isfinite(logits[i]) ?
			       exp(((double)logits[i] - logits[best]) / s->temperature) :
			       0;
	// sorting the likely tokens is nearly always enough
	int32_t m =
		prefix(c, collect(logits, n, best, s->temperature, 1e-4, c), false, all, s, &kept);
	if (m == 0)
		m = prefix(c, collect(logits, n, best, s->temperature, 0, c), true, all, s, &kept);
	double u = uniform(s->seed, k) * kept;
	while (pick < m - 1 && u >= c[pick].p)
		u -= c[pick++].p;
	*to = c[pick].id;
	free(c);
	return 0;
}
