// SPDX-License-Identifier: Apache-2.0
// Reads current memory use of the device's pool and of the process.
#include "config.h"

#include "observe/memory.h"

#include <math.h>
#include <unistd.h>

#include "base/number.h"
#include "base/system.h"
#include "yoke.h"

int yk_memory_read(struct yk_memory *to)
{
	struct yoke_stats s = { .size = sizeof s };
	int e = yoke_stats(&s);
	if (e < 0)
		return e;
	const double resident = yk_process_memory(getpid());
	*to = (struct yk_memory){ .allocated = s.pool_allocated,
				  .peak = s.pool_allocated_peak,
				  .reserved = s.pool_reserved,
				  .resident = isnan(resident) ? 0 : (uint64_t)resident,
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
