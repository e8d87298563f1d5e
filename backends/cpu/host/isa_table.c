// SPDX-License-Identifier: Apache-2.0
// The kernel table of one instruction set: compiled once per set, like its kernels, and once per
// level above one.
#include "config.h"

#include "../cpu.h"

#define NAME_OF(isa) #isa
#define NAME(isa) NAME_OF(isa)
#if defined __aarch64__ && !defined YK_LEVEL && !defined __ARM_FEATURE_SVE
#undef NAME
#define NAME(isa) "neon" // base: available on every such processor
#endif

#ifdef YK_LEVEL
#define YK_LEVEL_OF_BF16 // every level has its own bf16 products
#else
#define YK_LEVEL YK_ISA
#endif

#define X(code, kernel) extern const struct yk_kernel ISA(yk_##kernel);
#include "backends/cpu/kernel_list.inc"
#undef X

const struct yk_isa LEVEL(yk_isa) = {
	.name = NAME(YK_LEVEL),
#ifdef YK_LEVEL_OF_BF16
	.products = 1u << yoke_bf16,
#endif
	.op = {
		[YOKE_OP_CONTRACT] = &LEVEL(yk_contract),
		[YOKE_OP_QLINEAR] = &QLINEAR(yk_qlinear),
		[YOKE_OP_ATTENTION] = &LEVEL(yk_attention),
		[YOKE_OP_ATTENTION_BACKWARD] = &LEVEL(yk_attention_backward),
#define X(code, kernel) [YOKE_OP_##code] = &ISA(yk_##kernel),
#include "backends/cpu/kernel_list.inc"
#undef X
	},
};
