// SPDX-License-Identifier: Apache-2.0
// Samples the load of the host and of this process from /proc, /sys and control groups.
#ifndef YK_MACHINE_H
#define YK_MACHINE_H

#include <jansson.h>
#include <stdbool.h>

#include "observe/topology.h"
#include "yoke-observe.h"

enum { YK_RAPL_MAX = 16 };

// The previous sample, from which differences are computed.
struct yk_host_state {
	double busy, all, process, ns; // processor times in the previous sample
	bool seen;
	struct yk_rapl {
		char path[96];
		double last, joules;
	} rapl[YK_RAPL_MAX];
	int rapls;
	struct yk_topology count;
};

// Call it on an application thread: hwloc's discovery changes the environment briefly; its result
// is kept.
void yk_host_begin(struct yk_host_state *);
void yk_host_sample(struct yk_host_state *, struct yoke_host_sample *to);
// Memory limit of the control groups of this process, in bytes; NAN: unlimited.
double yk_host_memory_limit(void);
// A sample as JSON; unknown values are null.  NULL: out of memory.
json_t *yk_host_json(const struct yoke_host_sample *);

#endif
