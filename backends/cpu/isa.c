// SPDX-License-Identifier: Apache-2.0
// The instruction sets: which builds of the kernels this processor can run, which is taken.
#include "config.h"

#include <stdio.h>
#include <string.h>

#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "frame.h"

#ifdef __x86_64__
// What the builds are compiled for; the builtin asks for the system's part (XCR0) as well.
static bool runs_avx2(void)
{
	unsigned a, b, c, d;
	// some compilers' builtin does not know F16C
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
	       __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
}

static bool runs_avx512(void)
{
	return runs_avx2() && __builtin_cpu_supports("avx512f") &&
	       __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
	       __builtin_cpu_supports("avx512vl");
}
#endif

static bool runs_base(void)
{
	return true;
}

static const struct {
	const struct yk_isa *table;
	const char *needs;
	bool (*runs)(void);
} builds[] = {
	{ &yk_isa_base, "", runs_base },
#ifdef __x86_64__
	{ &yk_isa_avx2, "AVX2, FMA and F16C", runs_avx2 },
	{ &yk_isa_avx512, "AVX-512 F, BW, DQ and VL", runs_avx512 },
#endif
};

enum { BUILDS = sizeof builds / sizeof *builds };

int yk_isa_usable(const struct yk_isa *list[3])
{
	int n = 0;

#ifdef __x86_64__
	__builtin_cpu_init();
#endif
	for (int i = 0; i < BUILDS; i++)
		if (builds[i].runs())
			list[n++] = builds[i].table;
	return n;
}

const struct yk_isa *yk_isa_choose(const char *wish)
{
	const struct yk_isa *list[3];
	int n = yk_isa_usable(list);

	if (!*wish)
		return list[n - 1];
	if (!strcmp(wish, "base")) // whatever it is called on this architecture
		return list[0];
	for (int i = 0; i < n; i++)
		if (!strcmp(wish, list[i]->name))
			return list[i];
	for (int i = 0; i < BUILDS; i++) {
		if (strcmp(wish, builds[i].table->name))
			continue;
		yk_cpu_fail(YOKE_EUNSUPPORTED,
			    "cpu.isa=%s: this processor or its system does not "
			    "run %s; %s is the best it has",
			    wish, builds[i].needs, list[n - 1]->name);
		return NULL;
	}
	yk_cpu_fail(YOKE_EINVAL, "cpu.isa=%s: no such instruction set here; it is base%s",
		    wish, BUILDS > 1 ? ", avx2 or avx512" : "");
	return NULL;
}
