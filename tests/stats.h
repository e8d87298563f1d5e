// SPDX-License-Identifier: Apache-2.0
// The current context's statistics as a value.
#ifndef TESTS_STATS_H
#define TESTS_STATS_H

#include "yoke.h"

static inline struct yoke_stats stats(void)
{
	struct yoke_stats s = { .size = sizeof s };
	yoke_stats(&s);
	return s;
}

#endif
