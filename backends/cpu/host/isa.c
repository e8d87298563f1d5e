// SPDX-License-Identifier: Apache-2.0
// Selects the kernel build: lists those that this processor can run, and chooses one.
#include "config.h"

#include <stdio.h>
#include <string.h>

#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "../quant/activations.h"
#include "frame.h"

#if defined __x86_64__ && !defined YK_NO_AVX2
// Matches the builds' compiler flags; the builtin also checks operating system support (XCR0).
static bool runs_avx2(void)
{
	unsigned a, b, c, d;
	// the builtin of some compilers does not know F16C
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
	       __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
}

#ifdef HAVE_AVX512
static bool runs_avx512(void)
{
	return runs_avx2() && __builtin_cpu_supports("avx512f") &&
	       __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
	       __builtin_cpu_supports("avx512vl");
}
#endif

#ifdef HAVE_AVX512_BF16
static bool runs_bf16(void)
{
	return runs_avx512() && __builtin_cpu_supports("avx512bf16");
}

// AMD processors execute as many vdpbf16ps per cycle as f32 multiply-adds, which is twice the
// products; Intel's execute half as many.
static bool bf16_is_fast(void)
{
	unsigned max, b = 0, c = 0, d = 0;

	return __get_cpuid(0, &max, &b, &c, &d) && b == signature_AMD_ebx &&
	       c == signature_AMD_ecx && d == signature_AMD_edx;
}
#endif

#ifdef HAVE_AMX
// True if the processor has tiles, the operating system saves their registers and permits their
// use, and test products are correct.
static bool runs_amx(void)
{
	enum { TILES = 3 << 17 };
	enum { OSXSAVE = 1 << 27, AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24, AMX_INT8 = 1 << 25 };
	unsigned a, b, c, d, low, high;
	static int works = -1; // cached result

	if (!runs_avx512() || !__builtin_cpu_supports("avx512bf16") ||
	    !__get_cpuid(1, &a, &b, &c, &d) || !(c & OSXSAVE) ||
	    !__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & AMX_BF16) ||
	    !(d & AMX_TILE) || !(d & AMX_INT8))
		return false;
	__asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	if ((low & TILES) != TILES || !yk_permits_tiles())
		return false;
	if (works < 0) {
		works = yk_amx_works_amx() && yk_amx_bytes_work_amx();
		if (!works)
			yk_cpu_warn(
				"the processor reports AMX, but a test product is wrong; AMX is not "
				"used");
	}
	return works;
}
#endif
#endif

#ifdef __aarch64__
#ifdef HAVE_ARM_BF16
static bool runs_bf16(void)
{
	return yk_arm_features().bf16;
}
#endif

#ifdef HAVE_SVE
// The builds are for vectors of that length, no shorter and no longer.
static bool runs_sve256(void)
{
	return yk_arm_features().sve_bits == 256;
}

static bool runs_sve512(void)
{
	return yk_arm_features().sve_bits == 512;
}

#ifdef HAVE_ARM_BF16
static bool runs_sve256_bf16(void)
{
	return runs_sve256() && runs_bf16();
}

static bool runs_sve512_bf16(void)
{
	return runs_sve512() && runs_bf16();
}
#endif
#endif
#endif

bool yk_vnni_256, yk_vnni_512, yk_arm_dot, yk_arm_i8mm;

static void find_products_of_bytes(void)
{
#ifdef __aarch64__
	yk_arm_dot = yk_arm_features().dot;
	yk_arm_i8mm = yk_arm_features().i8mm;
#endif
#ifdef __x86_64__
	enum { AVX512_VNNI = 1 << 11, AVX_VNNI = 1 << 4 };
	unsigned a, b, c, d;

	yk_vnni_512 = __get_cpuid_count(7, 0, &a, &b, &c, &d) && c & AVX512_VNNI;
	yk_vnni_256 = __get_cpuid_count(7, 1, &a, &b, &c, &d) && a & AVX_VNNI;
#endif
}

static bool runs_base(void)
{
	return true;
}

#ifdef YK_RVV
static bool runs_rvv(void)
{
	return yk_rvv_bits() >= 128;
}

static bool runs_rvv256(void)
{
	return yk_rvv_bits() >= 256;
}
#endif

static const struct {
	const struct yk_isa *table;
	const char *needs;
	bool (*runs)(void);
	bool (*fast)(void); // NULL: always chosen where it runs
	bool level;         // a level above the previous build
} builds[] = {
	{ &yk_isa_base, "", runs_base, NULL, false },
#if defined __x86_64__ && !defined YK_NO_AVX2
	{ &yk_isa_avx2, "AVX2, FMA and F16C", runs_avx2, NULL, false },
#ifdef HAVE_AVX512
	{ &yk_isa_avx512, "AVX-512 F, BW, DQ and VL", runs_avx512, NULL, false },
#endif
#ifdef HAVE_AVX512_BF16
	{ &yk_isa_avx512_bf16, "AVX-512 BF16", runs_bf16, bf16_is_fast, true },
#endif
#ifdef HAVE_AMX
	{ &yk_isa_amx, "AMX with BF16 and INT8", runs_amx, NULL, true },
#endif
#endif
#ifdef __aarch64__
#ifdef HAVE_ARM_BF16
	{ &yk_isa_neon_bf16, "BF16", runs_bf16, NULL, true },
#endif
#ifdef HAVE_SVE
	{ &yk_isa_sve256, "SVE with vectors of 256 bits", runs_sve256, NULL, false },
#ifdef HAVE_ARM_BF16
	{ &yk_isa_sve256_bf16, "SVE with vectors of 256 bits and BF16", runs_sve256_bf16, NULL,
	  true },
#endif
	{ &yk_isa_sve512, "SVE with vectors of 512 bits", runs_sve512, NULL, false },
#ifdef HAVE_ARM_BF16
	{ &yk_isa_sve512_bf16, "SVE with vectors of 512 bits and BF16", runs_sve512_bf16, NULL,
	  true },
#endif
#endif
#endif
#ifdef YK_RVV
	{ &yk_isa_rvv, "the vector extension (V 1.0)", runs_rvv, NULL, false },
	{ &yk_isa_rvv256, "the vector extension (V 1.0) with vectors of 256 bits", runs_rvv256,
	  NULL, false },
#endif
};

enum { BUILDS = sizeof builds / sizeof *builds };

static int usable(const struct yk_isa **list, bool levels)
{
	int n = 0;

#ifdef __x86_64__
	__builtin_cpu_init();
#endif
	for (int i = 0; i < BUILDS; i++)
		if ((levels || !builds[i].level) && builds[i].runs())
			list[n++] = builds[i].table;
	return n;
}

int yk_isa_usable(const struct yk_isa *list[3])
{
	return usable(list, false);
}

int yk_isa_levels(const struct yk_isa *list[YK_ISA_LEVELS])
{
	return usable(list, true);
}

const struct yk_isa *yk_isa_choose(const char *wanted)
{
	const struct yk_isa *list[YK_ISA_LEVELS], *best = NULL;
	int n = yk_isa_levels(list);
	char names[128] = "";

	find_products_of_bytes();
	for (int i = 0; i < BUILDS; i++)
		if (builds[i].runs() && (!builds[i].fast || builds[i].fast()))
			best = builds[i].table;
	if (!*wanted)
		return best;
	if (!strcmp(wanted, "base")) // "base" is accepted on every architecture
		return list[0];
	for (int i = 0; i < n; i++)
		if (!strcmp(wanted, list[i]->name))
			return list[i];
	for (int i = 0; i < BUILDS; i++) {
		if (strcmp(wanted, builds[i].table->name))
			continue;
		yk_cpu_fail(YOKE_EUNSUPPORTED,
			    "cpu.isa=%s: the processor or the operating system does not "
			    "support %s; the best supported set is %s",
			    wanted, builds[i].needs, best->name);
		return NULL;
	}
	for (int i = 1; i < BUILDS; i++)
		snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s",
			 i == BUILDS - 1 ? " or " : ", ", builds[i].table->name);
	yk_cpu_fail(YOKE_EINVAL, "cpu.isa=%s: unknown instruction set; valid are base%s",
		    wanted, names);
	return NULL;
}
