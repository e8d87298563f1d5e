// SPDX-License-Identifier: Apache-2.0
// The files under /dev by which drivers reach GPUs: a user who may not open them has none.
#ifndef YK_NODES_H
#define YK_NODES_H

#include <stdbool.h>
#include <stddef.h>

struct yk_node {
	char path[280];
	char group[64]; // that may open it, "" when no group may
	int error;      // 0: it can be opened; else errno
};

// The nodes that are there, sorted, at most cap of them; each is opened for a moment.
size_t yk_nodes(const char *dev, struct yk_node *to, size_t cap);
// Calls fn with each node's path until it returns false; opens none.
void yk_nodes_each(const char *dev, bool (*fn)(const char *path, void *arg), void *arg);
// The first one that permissions keep this user from; opens none.
bool yk_node_denied(const char *dev, struct yk_node *to);

#endif
