// SPDX-License-Identifier: Apache-2.0
// Area under the ROC curve of scores and labels that come in parts.
#ifndef YK_FIT_AUC_H
#define YK_FIT_AUC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { YK_AUC_EXACT = 1 << 24, YK_AUC_BINS = 1 << 16 };

struct yk_auc {
	uint32_t *key;  // of each score: its ordered pattern
	uint8_t *label;
	size_t n, room;
	size_t most;    // scores that are kept; more are counted by the upper 16 bits of their patterns
	uint64_t (*bin)[2]; // negatives, positives; NULL: all are kept
};

void yk_auc_init(struct yk_auc *, size_t most);
void yk_auc_fini(struct yk_auc *);
// n scores of labels 0 and 1; those of weight 0 do not count (NULL: all have 1).  ENOMEM; ERANGE for a NaN.
int yk_auc_add(struct yk_auc *, size_t n, const float *score, const uint8_t *label, const float *weight);
// (sum of the ranks of positives - P (P + 1) / 2) / (P Q), ties by their mean rank; NaN without positives or
// negatives.  bound: how far off it is at most, 0 while all scores are kept.
double yk_auc_value(struct yk_auc *, double *bound);

#endif
