// SPDX-License-Identifier: Apache-2.0
// How products with quantized weights round activations: what the settings and the processor decide
// outside of the kernels.
#ifndef YK_ACTIVATIONS_H
#define YK_ACTIVATIONS_H

#include <stdbool.h>

extern bool yk_int8_activations; // 8-bit integers instead of 16-bit ones: the setting qmatmul
// The processor multiplies four bytes at once, with vectors of 256 bits in AVX2's encoding and of
// 512 bits. Found once, because the instruction that tells is slow in virtual machines.
extern bool yk_vnni_256, yk_vnni_512;

#endif
