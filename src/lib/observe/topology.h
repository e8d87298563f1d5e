// SPDX-License-Identifier: Apache-2.0
// Counts the machine's packages, cores and memory nodes through hwloc.
#ifndef YK_TOPOLOGY_H
#define YK_TOPOLOGY_H

struct yk_topology { // NaN: unknown
	double packages, cores, processors, nodes;
	double allowed; // processors that the control group of the process allows it
};

// With a recorded tree (telemetry.root), reads hwloc's topology.xml beside it instead of this
// machine.
void yk_topology_count(struct yk_topology *to);

#endif
