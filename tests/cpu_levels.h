// SPDX-License-Identifier: Apache-2.0
// What contractions are tested at: each level that runs here, and AMX with its tiles in C.
#ifndef YK_CPU_LEVELS_H
#define YK_CPU_LEVELS_H

#include <string.h>

#include "../backends/cpu/host/frame.h"

extern const struct yk_isa yk_isa_amx_emulated;
bool yk_amx_works_amx_emulated(void);

static inline int levels(const struct yk_isa *list[YK_ISA_LEVELS + 1])
{
	int n = yk_isa_levels(list);

	list[n] = &yk_isa_amx_emulated;
	return n + 1;
}

// Is dtype computed as at the level before?
static inline bool is_repeated(const struct yk_isa *isa, int dtype)
{
	bool level = !strcmp(isa->name, "avx512_bf16") || !strncmp(isa->name, "amx", 3);

	return level && dtype != yoke_bf16;
}

#endif
