// SPDX-License-Identifier: Apache-2.0
// Chooses the next token from the logits of a position.
#ifndef YK_SAMPLING_H
#define YK_SAMPLING_H

#include <stdint.h>

struct yk_sampling {
	double temperature; // 0: always the most likely token, the first among equals
	// Sample from the smallest set of most likely tokens with this total probability (nucleus
	// sampling, Holtzman et al. 2020), after top_k; before min_p.
	double top_p;
	uint64_t seed;
	const uint64_t *seeds; // of each of several texts instead of `seed`; NULL: all have `seed`
	int64_t top_k;      // sample from that many of the most likely tokens; 0: from all
	double min_p;       // only tokens with at least this share of the largest probability
	// For tokens that occur in the text so far: a positive logit is divided by `repetition`, a
	// negative one multiplied (Keskar et al. 2019; 0 and 1: neither); `frequency` for each
	// occurrence and `presence` once are subtracted.
	double repetition, frequency, presence;
};

// Samples token k of a text whose tokens so far are before[count]; depends only on the arguments.
// The tokens that remain are sorted by probability, equal ones by id; the first one whose
// cumulative probability exceeds u is taken.  u has the upper 53 of 64 bits, which are words 0
// (low) and 1 of the Philox block of counter k, key `seed`. The logits are changed.  EFORMAT if no
// logit is finite, ENOMEM.
int yk_sample(float *logits, int32_t n, const struct yk_sampling *, const int32_t *before,
	      int64_t count, uint64_t k, int32_t *to);

#endif
