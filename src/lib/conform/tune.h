// SPDX-License-Identifier: Apache-2.0
// Measuring the implementations of a class of ops on a device, right ones only.
#ifndef YK_TUNE_H
#define YK_TUNE_H

#include <stdio.h>

#include "device/tuning.h"

// How many implementations the device has for the class.
int yk_tune_offered(struct yk_device *, const struct yk_tuning_class *);
// Checks each of them, but those in `without` ("a,b"), against the definition of the op, in awkward
// cases and at the class's extents, and times the right ones in turn.  Writes lines "try NAME" before
// it meets one, "wrong NAME WHY", "time NAME NANOSECONDS", and "done" at the end.
int yk_tune_class(struct yk_device *, const struct yk_tuning_class *, const char *without,
		  FILE *to);

#endif
