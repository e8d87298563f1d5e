// SPDX-License-Identifier: Apache-2.0
// The table of one instruction set: compiled once for each, like the kernels in it.
#include "config.h"

#include "cpu.h"

#define NAME_OF(isa) #isa
#define NAME(isa) NAME_OF(isa)

const struct yk_isa ISA(yk_isa) = {
	.name = NAME(YK_ISA),
	.op = {
#define X(code, kernel) [YOKE_OP_##code] = &ISA(yk_##kernel),
		YK_KERNELS(X)
#undef X
	},
};
