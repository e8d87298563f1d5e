// SPDX-License-Identifier: Apache-2.0
// Kernel tables of processors other than x86, whose tables are in cpu.h.
#ifndef YK_CPU_ISA_H
#define YK_CPU_ISA_H

#include "../cpu.h"

extern const struct yk_isa yk_isa_rvv; // RISC-V with vectors of 128 bits or more

#endif
