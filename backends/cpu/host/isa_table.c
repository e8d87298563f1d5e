// SPDX-License-Identifier: Apache-2.0
// The table of one instruction set: compiled once for each, like the kernels in it, and once
// for each level above one.
#include "config.h"

#include "../cpu.h"

#ifdef __aarch64__
#define NAME(isa) "neon" // what every such processor has
#else
#define NAME_OF(isa) #isa
#define NAME(isa) NAME_OF(isa)
#endif

#ifndef YK_LEVEL
#define YK_LEVEL YK_ISA
#endif

const struct yk_isa LEVEL(yk_isa) = {
	.name = NAME(YK_LEVEL),
	.op = {
		[YOKE_OP_CONTRACT] = &LEVEL(yk_contract),
#define X(code, kernel) [YOKE_OP_##code] = &ISA(yk_##kernel),
		YK_KERNELS(X)
#undef X
	},
};
