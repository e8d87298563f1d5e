// SPDX-License-Identifier: Apache-2.0
// Normal numbers by counters: the same bits on every processor, in whatever pieces they are asked for.
#ifndef YK_DATA_NOISE_H
#define YK_DATA_NOISE_H

#include <stdint.h>

// Numbers first .. first + n - 1 of a stream of N(0, 1), which key and step name.  Number 4 i + k is made of the block that Philox
// 4x32-10 gives for counter (i, step): words 0 and 1 are numbers 0 and 1, words 2 and 3 the others (Box and Muller 1958).  None is
// larger than 5.8.
void yk_noise(float *to, int64_t n, uint64_t first, uint64_t key, uint64_t step);

#endif
