// SPDX-License-Identifier: Apache-2.0
// The table of one instruction set: compiled once for each, like the kernels in it.
#include "config.h"

#include "cpu.h"

#ifdef __aarch64__
#define NAME(isa) "neon" // what every such processor has
#else
#define NAME_OF(isa) #isa
#define NAME(isa) NAME_OF(isa)
#endif

const struct yk_isa ISA(yk_isa) = {
	.name = NAME(YK_ISA),
	.op = {
#define X(code, kernel) [YOKE_OP_##code] = &ISA(yk_##kernel),
		YK_KERNELS(X)
#undef X
	},
};
