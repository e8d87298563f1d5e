// SPDX-License-Identifier: Apache-2.0
// Reports the current memory use of the current context's device and of this process.
#ifndef YK_MEMORY_H
#define YK_MEMORY_H

#include <stdint.h>

struct yk_memory { // bytes
	uint64_t allocated, peak, reserved; // of the device's pool
	uint64_t resident;                  // of the process; 0 where the system does not report it
	uint64_t retries, pending; // allocations that were retried; operations recorded and not
				   // evaluated
};

int yk_memory_read(struct yk_memory *);
// "12.3 MiB"; returns `to`.
const char *yk_bytes_text(char to[32], uint64_t bytes);

#endif
