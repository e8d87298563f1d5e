// SPDX-License-Identifier: Apache-2.0
// Looks up cases by op and number; the same number and seed give the same case everywhere.
#ifndef YK_SAMPLE_H
#define YK_SAMPLE_H

#include "conform/case.h"

const struct yk_case_row *yk_case_row(int code); // NULL: none
// Makes a case for a device with these flags; it stays valid until the next call.  False: there is
// no such case.
bool yk_case_make(struct yk_case *, const struct yk_case_row *, int dtype,
		  uint32_t number, uint64_t seed, uint32_t flags, struct yk_arena *memory);
// Whether a case belongs to the sample.
static inline bool yk_case_sampled(uint32_t number, bool quick)
{
	return !quick || number < 4 || number % 12 == 10;
}

#endif
