// SPDX-License-Identifier: Apache-2.0
// Settings of the backend's frame; those of the team and of products are with them.
#include "config.h"

#include <stdlib.h>

#include "frame.h"

static const struct yoke_setting isa = {
	sizeof isa, "cpu.isa", "string", "",
	"instruction set of the CPU backend: base, avx2, avx512, avx512_bf16, amx; "
	"empty: the best",
};

static const struct yoke_setting stream = {
	sizeof stream, "cpu.stream", "int 0..9223372036854775807", "104857600",
	"results of this many bytes and more are written past the caches",
};

int64_t yk_stream_bytes = 104857600;

const char *yk_cpu_setting(const struct yoke_setting *s)
{
	const char *value = yk_cpu_host && yk_cpu_host->setting ? yk_cpu_host->setting(s) : NULL;

	return value ? value : s->def;
}

void yk_cpu_settings_declare(void)
{
	yk_cpu_setting(&isa);
	yk_cpu_setting(&stream);
}

const char *yk_cpu_settings_read(void)
{
	yk_stream_bytes = strtoll(yk_cpu_setting(&stream), NULL, 10);
	return yk_cpu_setting(&isa);
}
