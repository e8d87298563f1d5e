// SPDX-License-Identifier: Apache-2.0
// The self-test: before an implementation is first used on a device, it must compute a few cases
// correctly.
#ifndef YK_SELFTEST_H
#define YK_SELFTEST_H

#include <stdbool.h>

#include "device/device.h"
#include "device/trust.h"

// yk_device_can without implementations that failed.  The one to be used (yk_tuning_pick) has been
// tested on other operands of its dtype.  A failure is warned about once and disables the
// implementation permanently (device/trust.h).  Does not change the thread's error.
uint64_t yk_selftest_can(struct yk_device *, const struct yoke_op *);
// Runs two cases of an op in a dtype with the implementation that would be used.  Returns whether
// there is one and its results are correct.  Stores nothing and does not change the thread's error.
bool yk_selftest_runs(struct yk_device *, int code, int dtype);
// EDEVICE if too many ops failed for the device to be usable.
int yk_selftest_verdict(const struct yk_device *);

#endif
