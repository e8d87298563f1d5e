// SPDX-License-Identifier: Apache-2.0
// Reads current memory use of the device's pool and of the process.
#include "config.h"

#include "observe/memory.h"

#include <stdio.h>
#include <unistd.h>

#include "base/number.h"
#include "yoke.h"

// proc(5): statm has sizes in pages; the second is the resident size.
static uint64_t resident(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	unsigned long long pages = 0;
	long page = sysconf(_SC_PAGESIZE);
	if (!f)
		return 0;
	if (fscanf(f, "%*u %llu", &pages) != 1 || page < 0)
		pages = 0;
	fclose(f);
	return pages * (uint64_t)page;
}

int yk_memory_read(struct yk_memory *to)
{
	struct yoke_stats s = { .size = sizeof s };
	int e = yoke_stats(&s);
	if (e < 0)
		return e;
	*to = (struct yk_memory){ .allocated = s.pool_allocated,
				  .peak = s.pool_allocated_peak,
				  .reserved = s.pool_reserved,
				  .resident = resident(),
				  .retries = s.pool_retries,
				  .pending = s.pending_nodes };
	return 0;
}

const char *yk_bytes_text(char to[32], uint64_t bytes)
{
	static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
	double x = (double)bytes;
	int k = 0;
	for (; x >= 1024 && k < 5; k++)
		x /= 1024;
	yk_snprintf(to, 32, "%.*f %s", k && x < 100, x, unit[k]);
	return to;
}
