// SPDX-License-Identifier: Apache-2.0
// Labelled scores that arrive in batches: the area under their ROC curve, and their quantiles.
#ifndef YK_FIT_SCORES_H
#define YK_FIT_SCORES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { YK_SCORES_EXACT = 1 << 24, YK_SCORES_BINS = 1 << 16 };

struct yk_scores {
	uint32_t *key;  // of each score: its ordered pattern
	uint8_t *label;
	size_t n, room;
	size_t most;    // scores that are kept; more are counted by the upper 16 bits of their patterns
	uint64_t (*bin)[2]; // negatives, positives; NULL: all are kept
};

void yk_scores_init(struct yk_scores *, size_t most);
void yk_scores_fini(struct yk_scores *);
// n scores of labels 0 and 1; those of weight 0 do not count (NULL: all have 1).  ENOMEM; ERANGE for a NaN.
int yk_scores_add(struct yk_scores *, size_t n, const float *score, const uint8_t *label, const float *weight);
// (sum of the ranks of positives - P (P + 1) / 2) / (P Q), ties by their mean rank; NaN without positives or
// negatives.  bound: how far off it is at most, 0 while all scores are kept.
double yk_scores_area(struct yk_scores *, double *bound);
// Quantiles 0 <= q <= 1 of all scores (Hyndman and Fan 1996, definition 7), once they are counted the lower end of a bin;
// NaN of no scores.  ENOMEM.
int yk_scores_quantiles(struct yk_scores *, int n, const double *q, double *to);

#endif
