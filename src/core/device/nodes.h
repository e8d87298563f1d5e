// SPDX-License-Identifier: Apache-2.0
// The device nodes under /dev through which drivers reach GPUs, and whether this user may open
// them.
#ifndef YK_NODES_H
#define YK_NODES_H

#include <stdbool.h>
#include <stddef.h>

struct yk_device_node {
	char path[280];
	char group[64]; // group with access, "" if no group has it
	int error;      // 0 if it can be opened, else errno
};

// The existing nodes, sorted, at most cap; each is opened briefly.
size_t yk_nodes(const char *dev, struct yk_device_node *to, size_t cap);
// Calls fn with each node's path until it returns false; opens none.
void yk_nodes_each(const char *dev, bool (*fn)(const char *path, void *arg), void *arg);
// The first node that this user has no permission to open; opens none.
bool yk_node_denied(const char *dev, struct yk_device_node *to);

#endif
