// SPDX-License-Identifier: Apache-2.0
// Runs the conformance tests: every op, implementation and dtype of a device on awkward shapes;
// output is TAP.
#ifndef YK_CONFORM_H
#define YK_CONFORM_H

#include <stdio.h>

#include "device/device.h"

struct yk_conform_options {
	const char *ops; // "map,contract.f32,sort.i64.7": op, op.dtype, op.dtype.case; NULL: all
	uint64_t seed;
	bool quick;   // only a sample of the cases
	bool skipped; // also print lines for cases that the device does not support
	bool bits;    // end each line with a checksum of the bits of all results
// Sharding: every shards-th pair of op and dtype starting at `shard`, and of their cases every
// passes-th starting at `pass`.  Memory and graphs are checked by shard 0, pass 0.  shards and
// passes 0: no sharding.
	uint64_t shard, shards, pass, passes;
};

// Checks that each name in the list matches a case; EINVAL suggests the nearest name.
int yk_conform_check(const char *ops);
// Writes a line for each op, dtype and implementation, one for memory, and the totals.  Returns the
// number of "not ok" lines, or a negative error.
int yk_conform(struct yk_device *, const struct yk_conform_options *, FILE *to);

#endif
