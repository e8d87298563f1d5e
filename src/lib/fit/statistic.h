// SPDX-License-Identifier: Apache-2.0
// A statistic in host memory: the result of MOMENTS, which ranks and processes can merge.
#ifndef YK_FIT_STATISTIC_H
#define YK_FIT_STATISTIC_H

#include <stdbool.h>
#include <stdint.h>

#include "yoke-pipeline.h"

struct yoke_statistic {
	int64_t channels;
	bool diagonal;
	double count;
	double *mean, *square, *min, *max; // one allocation, starting at mean; square: sums
						  // of products of deviations
};

// Number of elements of `square`.
static inline int64_t yk_statistic_squares(const yoke_statistic *s)
{
	return s->diagonal ? s->channels : s->channels * s->channels;
}

#endif
