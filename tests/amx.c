// SPDX-License-Identifier: Apache-2.0
// Tests products by AMX on machines without it: AMX tiles are emulated in C, and the conformance
// cases of contractions, attention and products with quantized weights run on them instead of on
// the CPU backend's chosen instruction set (by the linker's --wrap).

#include "config.h"

#include "../backends/cpu/host/frame.h"
#include "base/error.h"
#include "conform/conform.h"
#include "tap.h"

extern const struct yk_isa yk_isa_amx_emulated;
bool yk_amx_works_amx_emulated(void);
bool yk_amx_bytes_work_amx_emulated(void);
const struct yk_isa *__wrap_yk_isa_choose(const char *request);

const struct yk_isa *__wrap_yk_isa_choose(const char *request)
{
	(void)request;
	return &yk_isa_amx_emulated;
}

// The conformance test's TAP, which must have a line; of failures, the lines.
static void cases(struct yk_device *cpu, const char *ops, const char *want, uint64_t seed)
{
	char *text = NULL, *line, *rest;
	size_t bytes = 0;
	struct yk_conform_options o = { .ops = ops, .seed = seed };
	FILE *to = open_memstream(&text, &bytes);
	int failed = to ? yk_conform(cpu, &o, to) : -1;
	if (to)
		fclose(to);
	ok(!failed && text && strstr(text, want), "%s, seed %llu: %s",
	   ops, (unsigned long long)seed, failed < 0 ? yoke_error() : "all cases");
	for (rest = text; failed && rest && (line = strsep(&rest, "\n"));)
		diag("%s", line);
	free(text);
}

int main(void)
{
	tap_seed();
	ok(yk_amx_works_amx_emulated(),
	   "the emulated product has the result that AMX is checked with");
	ok(yk_amx_bytes_work_amx_emulated(), "and the emulated products of bytes");
	struct yk_device *cpu = yk_device_cpu();
	if (!ok(cpu && strstr(cpu->info.driver, "amx_emulated"),
		"the CPU backend computes with emulated AMX: %s",
		cpu ? cpu->info.driver : yoke_error()))
		return done();
	for (int i = 0; i < tap_cases(2, 60); i++) {
		cases(cpu, "contract.bf16", "contract bf16 packed: 48 of 48",
		      tap_seed_value() + (uint64_t)i);
		cases(cpu, "attention.bf16", "attention bf16 tiles: 36 of 36",
		      tap_seed_value() + (uint64_t)i);
		cases(cpu, "attention_backward.bf16", "attention_backward bf16 tiles: 36 of 36",
		      tap_seed_value() + (uint64_t)i);
		cases(cpu, "qlinear", "qlinear f32 blocks: 30 of 30",
		      tap_seed_value() + (uint64_t)i);
	}
	return done();
}
