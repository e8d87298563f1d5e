// SPDX-License-Identifier: Apache-2.0
// Cases by op and number.
#ifndef YK_SAMPLE_H
#define YK_SAMPLE_H

#include "conform/case.h"

const struct yk_case_row *yk_case_row(int code); // NULL: none
// Makes a case of a row, for a device with these flags; its memory is good until the next.  False when there was none.
bool yk_case_make(struct yk_case *, const struct yk_case_row *, int dtype,
		  uint32_t number, uint64_t seed, uint32_t flags, struct yk_arena *memory);
// Is a case in the sample?
static inline bool yk_case_sampled(uint32_t number, bool quick)
{
	return !quick || number < 4 || number % 12 == 10;
}

#endif
