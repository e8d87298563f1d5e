// SPDX-License-Identifier: Apache-2.0
// Counter-based normal random numbers: the same bits on every processor, however a request is
// split.
#ifndef YK_DATA_NOISE_H
#define YK_DATA_NOISE_H

#include <stdint.h>

// Writes numbers first .. first + n - 1 of the N(0, 1) stream that key and step select.  Numbers 4
// i .. 4 i + 3 come from the Philox 4x32-10 block of counter (i, step): words 0 and 1 give the
// first two, words 2 and 3 the others (Box and Muller 1958).  No magnitude exceeds 5.8.
void yk_noise(float *to, int64_t n, uint64_t first, uint64_t key, uint64_t step);

#endif
