// SPDX-License-Identifier: Apache-2.0
// Selects the usable implementations of an op on a device: those that the backend reports, without
// known faults, that passed their self-test.
#ifndef YK_USABLE_H
#define YK_USABLE_H

#include <stdbool.h>

#include "device/device.h"
#include "device/trust.h"

// yk_device_can without implementations that failed their self-test. The implementation that
// yk_tuning_pick chooses from the result has been tested on other operands of its dtype. A failure
// is warned about once and disables the implementation permanently (trust.h). Does not change the
// thread's error.
uint64_t yk_device_usable(struct yk_device *, const struct yoke_op *);
// EDEVICE if too many ops failed for the device to be usable.
int yk_device_verdict(const struct yk_device *);

// ---- for the self-test ----

// The subject of a test (trust.h), and the dtype under which its finding is kept.
int yk_usable_subject(const struct yoke_op *);
int yk_usable_dtype(const struct yoke_op *);

// The self-test.  lib/conform defines it; the core knows only this interface.
struct yk_tester {
	// Are there cases of this op and dtype?
	bool (*covers)(int code, int dtype);
	// Tests what f names (op NULL: memory), unless it has a finding, and stores the finding
	// with yk_trust_set.
	void (*test)(struct yk_device *, const struct yoke_op *, struct yk_finding *f);
};
extern const struct yk_tester yk_tester;

#endif
