// SPDX-License-Identifier: Apache-2.0
// The self-test: runs a few conformance cases with an implementation.  device/usable.c requests it
// before an implementation is first used on a device (yk_tester).
#ifndef YK_SELFTEST_H
#define YK_SELFTEST_H

#include <stdbool.h>

#include "device/device.h"

// Runs two cases of an op in a dtype with the implementation that would be used.  Returns whether
// there is one and its results are correct.  Stores nothing and does not change the thread's error.
bool yk_selftest_runs(struct yk_device *, int code, int dtype);

#endif
