// SPDX-License-Identifier: Apache-2.0
// The host and this process at a moment, by /proc, /sys and control groups.
#ifndef YK_MACHINE_H
#define YK_MACHINE_H

#include <jansson.h>
#include <stdbool.h>

#include "observe/topology.h"
#include "yoke-observe.h"

enum { YK_RAPL_MAX = 16 };

// What differences are taken from.
struct yk_host_state {
	double busy, all, process, ns; // of processors, by the sample before
	bool seen;
	struct yk_rapl {
		char path[96];
		double last, joules;
	} rapl[YK_RAPL_MAX];
	int rapls;
	struct yk_topology count;
};

// On a thread of the application: what hwloc finds stays as it is, and to look changes the environment for a moment.
void yk_host_begin(struct yk_host_state *);
void yk_host_sample(struct yk_host_state *, struct yoke_host_sample *to);
// Bytes that control groups allow this process; NAN: all there are.
double yk_host_memory_limit(void);
// As an object, null where it is not known; NULL: no memory.
json_t *yk_host_json(const struct yoke_host_sample *);

#endif
