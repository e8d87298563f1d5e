// SPDX-License-Identifier: Apache-2.0
// Settings of the fake drivers (environment variables YOKE_FAKE_NAME), and the hash of texts and
// binaries.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "exec.h"

// NULL if it is unset or empty.
const char *fake_setting(const char *name)
{
	char whole[64];

	snprintf(whole, sizeof whole, "YOKE_FAKE_%s", name);
	const char *value = getenv(whole);
	return value && *value ? value : NULL;
}

long fake_number(const char *name, long otherwise)
{
	const char *value = fake_setting(name);

	return value ? strtol(value, NULL, 0) : otherwise;
}

// FNV-1a
uint64_t fake_hash(uint64_t seed, const void *data, size_t bytes)
{
	uint64_t h = seed ^ 0xcbf29ce484222325u;

	for (const unsigned char *p = data; bytes; bytes--)
		h = (h ^ *p++) * 0x100000001b3u;
	return h;
}
