// SPDX-License-Identifier: Apache-2.0
// Tries a plugin in a child process first, so that a driver that crashes or hangs takes only the
// child down.
#ifndef YK_PROBE_H
#define YK_PROBE_H

#include <stddef.h>

// Has the helper program load the file and list its devices, unless the result for the same file
// and drivers is cached.  0: it succeeded, or no helper is available; EPLUGIN: it failed, and why.
int yk_probe(const char *file, char *why, size_t cap);

#endif
