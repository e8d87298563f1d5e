// SPDX-License-Identifier: Apache-2.0
// Settings of the stand-ins, YOKE_STANDIN_NAME of the environment, and the hash of texts and binaries.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "exec.h"

// NULL where it is not set, or is empty.
const char *standin_setting(const char *name)
{
	char whole[64];

	snprintf(whole, sizeof whole, "YOKE_STANDIN_%s", name);
	const char *value = getenv(whole);
	return value && *value ? value : NULL;
}

long standin_number(const char *name, long otherwise)
{
	const char *value = standin_setting(name);

	return value ? strtol(value, NULL, 0) : otherwise;
}

// FNV-1a
uint64_t standin_hash(uint64_t seed, const void *data, size_t bytes)
{
	uint64_t h = seed ^ 0xcbf29ce484222325u;

	for (const unsigned char *p = data; bytes; bytes--)
		h = (h ^ *p++) * 0x100000001b3u;
	return h;
}
