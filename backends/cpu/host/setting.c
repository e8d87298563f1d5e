// SPDX-License-Identifier: Apache-2.0
// Settings of the CPU backend; those of the team and of products are declared in their own files.
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "../quant/activations.h"
#include "frame.h"

static const struct yoke_setting isa = {
	sizeof isa,
	"cpu.isa",
	"string",
	"",
	"instruction set of the CPU backend: base, avx2, avx512, avx512_bf16, amx, neon_bf16, sve256, sve512, rvv, rvv256; "
	"empty: the best",
};

static const struct yoke_setting stream = {
	sizeof stream, "cpu.stream", "int 0..9223372036854775807", "104857600",
	"results of at least this many bytes are written with non-temporal stores",
};

static const struct yoke_setting entry = {
	sizeof entry,
	"cpu.resolvent_entry",
	"string",
	"auto",
	"how values entering chunks of a resolvent's row are found: auto, disc (a bound, where it suffices), "
	"matrices (products over all chunks)",
};

static const struct yoke_setting chunk = {
	sizeof chunk, "cpu.resolvent_chunk", "int 0..1073741824", "0",
	"elements per chunk of a resolvent's row; 0: chosen by shape",
};

static const struct yoke_setting qmatmul = {
	sizeof qmatmul,
	"qmatmul",
	"string",
	"int16",
	"activations in the CPU's products with quantized weights: int16; or int8, faster and less exact",
};

bool yk_int8_activations;
int64_t yk_stream_bytes = 104857600, yk_chain_length;
int yk_chain_entry;

const char *yk_cpu_setting(const struct yoke_setting *s)
{
	const char *value = yk_cpu_host && yk_cpu_host->setting ? yk_cpu_host->setting(s) : NULL;

	return value ? value : s->def;
}

void yk_cpu_settings_declare(void)
{
	yk_cpu_setting(&isa);
	yk_cpu_setting(&stream);
	yk_cpu_setting(&entry);
	yk_cpu_setting(&chunk);
	yk_cpu_setting(&qmatmul);
}

// int16 or int8; anything else is an error.
static int read_activations(void)
{
	const char *value = yk_cpu_setting(&qmatmul);

	yk_int8_activations = !strcmp(value, "int8");
	if (yk_int8_activations || !strcmp(value, "int16"))
		return 0;
	return yk_cpu_fail(YOKE_EINVAL, "qmatmul=%s: unknown activations; valid are int16 or int8",
			   value);
}

const char *yk_cpu_settings_read(void)
{
	const char *how = yk_cpu_setting(&entry);

	yk_stream_bytes = strtoll(yk_cpu_setting(&stream), NULL, 10);
	yk_chain_length = strtoll(yk_cpu_setting(&chunk), NULL, 10);
	yk_chain_entry = *how == 'd' ? YK_ENTRY_DISC :
			 *how == 'm' ? YK_ENTRY_MATRICES :
				       YK_ENTRY_AUTO;
	return read_activations() < 0 ? NULL : yk_cpu_setting(&isa);
}
