// SPDX-License-Identifier: Apache-2.0
// What the machine is made of, as hwloc counts it.
#ifndef YK_TOPOLOGY_H
#define YK_TOPOLOGY_H

struct yk_topology { // NaN: not known
	double packages, cores, processors, nodes;
	double allowed; // processors that the process's control group leaves it
};

// Where trees are recorded (telemetry.root), of hwloc's own record of a machine, topology.xml beside them.
void yk_topology_count(struct yk_topology *to);

#endif
