// SPDX-License-Identifier: Apache-2.0
// Times a device's implementations of a class of ops; only correct ones are timed.
#ifndef YK_TUNE_H
#define YK_TUNE_H

#include <stdio.h>

#include "device/tuning.h"

// Number of implementations that the device has for the class.
int yk_tune_offered(struct yk_device *, const struct yk_tuning_class *);
// Checks each implementation not listed in `without` ("a,b") against the op's definition, on
// awkward cases and at the class's extents, then times the correct ones in turn.  Writes a line
// "try NAME" before it runs one, then "wrong NAME WHY" or "time NAME NANOSECONDS", and "done" at
// the end.
int yk_tune_class(struct yk_device *, const struct yk_tuning_class *, const char *without,
		  FILE *to);

#endif
