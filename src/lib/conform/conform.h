// SPDX-License-Identifier: Apache-2.0
// Conformance: every op, implementation and dtype of a device on awkward shapes, as TAP.
#ifndef YK_CONFORM_H
#define YK_CONFORM_H

#include <stdio.h>

#include "device/device.h"

struct yk_conform_options {
	const char *
		ops; // "map,contract.f32,sort.i64.7": op, op.dtype, op.dtype.case; NULL: all
	uint64_t seed;
	bool quick; // a sample of the cases
	bool skipped; // lines for what the device does not take, too
	bool bits;  // lines end with a number that stands for all results' bits
	// Every shards-th pair of op and dtype from number `shard` on, and of their cases every passes-th from number `pass`
	// on; memory and graphs are checked by 0 of both.  shards and passes 0: all.
	uint64_t shard, shards, pass, passes;
};

// Does each name in the list stand for a case?  EINVAL with the nearest name.
int yk_conform_check(const char *ops);
// Writes a line for each op, dtype and implementation, one for memory, and the totals.  Returns the number of
// lines that say "not ok", or a negative error.
int yk_conform(struct yk_device *, const struct yk_conform_options *, FILE *to);

#endif
