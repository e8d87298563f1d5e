// SPDX-License-Identifier: Apache-2.0
// The self-test: an implementation's first use on a device waits until it was right on a few cases.
#ifndef YK_SELFTEST_H
#define YK_SELFTEST_H

#include <stdbool.h>

#include "device/device.h"
#include "device/trust.h"

// yk_device_can without what is wrong; the one of them to be used (yk_tuning_pick) has been tested
// with other operands of its dtype.  What fails is warned of once and taken out for good
// (device/trust.h).  The thread's error is left alone.
uint64_t yk_selftest_can(struct yk_device *, const struct yoke_op *);
// Runs two cases of an op in a dtype by what is used for them: is there an implementation, and does it give the
// right results?  Remembers nothing, and the thread's error is left alone.
bool yk_selftest_runs(struct yk_device *, int code, int dtype);
// "`yoke conform opencl:0 --ops sort.f32`": the command that shows more of a finding.
const char *yk_selftest_command(const struct yk_device *, const struct yk_finding *, char to[128]);
// EDEVICE when too much is wrong for the device to be used at all.
int yk_selftest_verdict(const struct yk_device *);

#endif
