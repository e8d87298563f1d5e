// SPDX-License-Identifier: Apache-2.0
// Area under the ROC curve from ranks (Mann and Whitney 1947), and quantiles of scores.

#include "config.h"

#include "fit/scores.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "yoke-pipeline.h"

void yk_scores_init(struct yk_scores *a, size_t max)
{
	*a = (struct yk_scores){ .max = max };
}

void yk_scores_fini(struct yk_scores *a)
{
	free(a->key);
	free(a->label);
	free(a->bin);
}

// Maps a float to an integer with the same order; -0 maps like 0.
static uint32_t ordered(float x)
{
	uint32_t u;
	x += 0;
	memcpy(&u, &x, sizeof u);
	return u >> 31 ? ~u : u | 0x80000000u;
}

static float number(uint32_t key)
{
	const uint32_t u = key >> 31 ? key & 0x7fffffffu : ~key;
	float x;
	memcpy(&x, &u, sizeof x);
	return x;
}

// Switches from keeping scores to counting them in bins.
static int count(struct yk_scores *a)
{
	a->bin = calloc(YK_SCORES_BINS, sizeof *a->bin);
	if (!a->bin)
		return yk_fail(YOKE_ENOMEM, "scores: no memory");
	for (size_t i = 0; i < a->n; i++)
		a->bin[a->key[i] >> 16][a->label[i]]++;
	free(a->key);
	free(a->label);
	a->key = NULL;
	a->label = NULL;
	a->n = a->room = 0;
	return 0;
}

static int grow(struct yk_scores *a, size_t n)
{
	const size_t room = a->n + n < 2 * a->room ? 2 * a->room : a->n + n;
	if (a->n + n <= a->room)
		return 0;
	uint32_t *key = realloc(a->key, room * sizeof *key);
	a->key = key ? key : a->key;
	uint8_t *label = key ? realloc(a->label, room) : NULL;
	a->label = label ? label : a->label;
	if (!label)
		return yk_fail(YOKE_ENOMEM, "scores: no memory for %zu", room);
	a->room = room;
	return 0;
}

int yk_scores_add(struct yk_scores *a, size_t n, const float *score, const uint8_t *label,
		  const float *weight)
{
	int err = 0;
	if (!a->bin)
		err = a->n + n > a->max ? count(a) : grow(a, n);
	for (size_t i = 0; i < n && !err; i++) {
		if (weight && weight[i] == 0)
			continue;
		if (isnan(score[i]))
			return yk_fail(YOKE_ERANGE, "a score is NaN");
		const uint32_t key = ordered(score[i]);
		if (a->bin) {
			a->bin[key >> 16][label[i] != 0]++;
		} else {
			a->key[a->n] = key;
			a->label[a->n++] = label[i] != 0;
		}
	}
	return err;
}

// Radix sort of n words by bits 1 .. 32, 11 bits per pass; `room` is scratch memory of the same
// size.
static void sort(uint64_t *word, uint64_t *room, size_t n)
{
	enum { BITS = 11, DIGITS = 1 << BITS };
	uint64_t *from = word, *to = room;
	for (int shift = 1; shift < 33; shift += BITS) {
		size_t place[DIGITS] = { 0 }, next = 0;
		for (size_t i = 0; i < n; i++)
			place[from[i] >> shift & (DIGITS - 1)]++;
		for (int k = 0; k < DIGITS; k++) {
			const size_t count = place[k];
			place[k] = next;
			next += count;
		}
		for (size_t i = 0; i < n; i++)
			to[place[from[i] >> shift & (DIGITS - 1)]++] = from[i];
		uint64_t *const was = from;
		from = to;
		to = was;
	}
	memcpy(word, from, n * sizeof *word); // three passes: the result is in the other buffer
}

// The kept scores in order, as 2 * key + label; the caller frees them.  NULL: out of memory.
static uint64_t *sorted(const struct yk_scores *a)
{
	uint64_t *word = malloc((2 * a->n + 1) * sizeof *word);
	for (size_t i = 0; word && i < a->n; i++)
		word[i] = (uint64_t)a->key[i] << 1 | a->label[i];
	if (word)
		sort(word, word + a->n, a->n);
	return word;
}

// Counts pairs with the positive above the negative (ties half), fed with groups of equal scores in
// order.
struct sum {
	double below, pairs, ties, positives;
};

static void group(struct sum *s, double negatives, double positives)
{
	s->pairs += positives * (s->below + negatives / 2);
	s->ties += positives * negatives;
	s->below += negatives;
	s->positives += positives;
}

double yk_scores_area(struct yk_scores *a, double *bound)
{
	struct sum s = { 0 };
	uint64_t *p = a->bin ? NULL : sorted(a);
	*bound = 0;
	if (!a->bin && !p)
		return NAN;
	for (size_t i = 0; a->bin && i < YK_SCORES_BINS; i++)
		group(&s, (double)a->bin[i][0], (double)a->bin[i][1]);
	for (size_t i = 0, k; p && i < a->n; i = k) {
		double of[2] = { 0, 0 };
		for (k = i; k < a->n && p[k] >> 1 == p[i] >> 1; k++)
			of[p[k] & 1]++;
		group(&s, of[0], of[1]);
	}
	free(p);
	if (a->bin)
		*bound = s.ties / 2 / (s.below * s.positives);
	return s.below > 0 && s.positives > 0 ? s.pairs / (s.below * s.positives) : NAN;
}

// The score at a rank.
static double at_rank(const struct yk_scores *a, const uint64_t *in_order, uint64_t rank)
{
	if (in_order)
		return number((uint32_t)(in_order[rank] >> 1));
	uint32_t bin = 0;
	for (; rank >= a->bin[bin][0] + a->bin[bin][1]; bin++)
		rank -= a->bin[bin][0] + a->bin[bin][1];
	return number(bin << 16);
}

int yk_scores_quantiles(struct yk_scores *a, int n, const double *q, double *to)
{
	uint64_t *in_order = a->bin ? NULL : sorted(a);
	uint64_t all = a->n;
	if (!a->bin && !in_order)
		return yk_fail(YOKE_ENOMEM, "scores: no memory");
	for (size_t i = 0; a->bin && i < YK_SCORES_BINS; i++)
		all += a->bin[i][0] + a->bin[i][1];
	for (int i = 0; i < n; i++) {
		const double at = q[i] * (double)(all - 1);
		const uint64_t below = all ? (uint64_t)at : 0;
		const double low = all ? at_rank(a, in_order, below) : NAN;
		to[i] = all && below + 1 < all ?
				low + (at - (double)below) *
						(at_rank(a, in_order, below + 1) - low) :
				low;
	}
	free(in_order);
	return 0;
}

int yoke_roc_auc(size_t n, const float *score, const unsigned char *label, double *to)
{
	struct yk_scores a;
	double bound;
	int err = yk_require(to, "place of the area");
	if (!err && n && !(err = yk_require(score, "list of scores")))
		err = yk_require(label, "list of labels");
	if (err)
		return err;
	yk_scores_init(&a, SIZE_MAX);
	err = yk_scores_add(&a, n, score, label, NULL);
	if (!err)
		*to = yk_scores_area(&a, &bound);
	yk_scores_fini(&a);
	return err;
}
