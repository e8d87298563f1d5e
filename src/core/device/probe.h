// SPDX-License-Identifier: Apache-2.0
// First contact with a plugin, in a child process: a driver that crashes or hangs takes
// only that one along.
#ifndef YK_PROBE_H
#define YK_PROBE_H

#include <stddef.h>

// Has the helper program load the file and ask it for its devices, unless that is known
// from before for the same file and the same drivers.  0: it came through, or it could
// not be tried (no helper); EPLUGIN: it did not, and why.
int yk_probe(const char *file, char *why, size_t cap);

#endif
