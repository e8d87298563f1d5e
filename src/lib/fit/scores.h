// SPDX-License-Identifier: Apache-2.0
// Labelled scores that arrive in batches: the area under their ROC curve, and their quantiles.
#ifndef YK_FIT_SCORES_H
#define YK_FIT_SCORES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { YK_SCORES_EXACT = 1 << 24, YK_SCORES_BINS = 1 << 16 };

struct yk_scores {
	uint32_t *key;  // each score's bits, mapped so that integer order equals float order
	uint8_t *label;
	size_t n, room;
	size_t max;     // limit of scores kept; beyond it they are binned by the upper 16 bits of
			// their keys
	uint64_t (*bin)[2]; // negatives, positives; NULL: all scores are kept
};

void yk_scores_init(struct yk_scores *, size_t max);
void yk_scores_fini(struct yk_scores *);
// Adds n scores with labels 0 and 1; weight 0 excludes a score (NULL: all have 1).  ENOMEM; ERANGE
// for a NaN.
int yk_scores_add(struct yk_scores *, size_t n, const float *score, const uint8_t *label,
		  const float *weight);
// (sum of the ranks of positives - P (P + 1) / 2) / (P Q), ties by their mean rank; NaN without
// positives or negatives.  bound: maximum error, 0 while all scores are kept.
double yk_scores_area(struct yk_scores *, double *bound);
// Quantiles 0 <= q <= 1 of all scores (Hyndman and Fan 1996, definition 7); with binned scores, the
// lower end of the bin.  NaN without scores.  ENOMEM.
int yk_scores_quantiles(struct yk_scores *, int n, const double *q, double *to);

#endif
