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

#ifdef YK_LEVEL
#define YK_LEVEL_OF_BF16 // each level there is has products of bf16
#else
#define YK_LEVEL YK_ISA
#endif

const struct yk_isa LEVEL(yk_isa) = {
	.name = NAME(YK_LEVEL),
#ifdef YK_LEVEL_OF_BF16
	.products = 1u << yoke_bf16,
#endif
	.op = {
		[YOKE_OP_CONTRACT] = &LEVEL(yk_contract),
#define X(code, kernel) [YOKE_OP_##code] = &ISA(yk_##kernel),
		YK_KERNELS(X)
#undef X
	},
};
