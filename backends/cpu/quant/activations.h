// SPDX-License-Identifier: Apache-2.0
// How products with quantized weights round activations: the setting `qmatmul` and instructions of
// the processor, determined once for all kernels.
#ifndef YK_ACTIVATIONS_H
#define YK_ACTIVATIONS_H

#include <stdbool.h>

extern bool yk_int8_activations; // round to 8-bit integers instead of 16-bit ones
// The processor has VNNI (sums of four products of bytes, or two of words) for vectors of 256 bits
// in AVX2's encoding, and for 512 bits. Cached, because CPUID is slow in virtual machines.
extern bool yk_vnni_256, yk_vnni_512;
// AArch64: instructions for sums of four products of signed bytes; of unsigned by signed ones.
extern bool yk_arm_dot, yk_arm_i8mm;

#endif
