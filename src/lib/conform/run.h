// SPDX-License-Identifier: Apache-2.0
// Runs cases on a device using only the function table of its backend.
#ifndef YK_CONFORM_RUN_H
#define YK_CONFORM_RUN_H

#include "conform/case.h"
#include "device/device.h"

// The outcome of a case.
struct yk_case_verdict {
	bool good;
	bool silent;   // an out-of-range value was not reported (no other harm)
	int code;      // error code of a failed call; 0: results are wrong, or all is good
	double worst;  // largest error, as a fraction of the tolerance
	uint64_t bits; // checksum of all results as stored in memory
	char why[400]; // the reason, if not good
};

// Two device segments for operands and results, and copies of them in host memory.
struct yk_runner {
	struct yk_device *device;
	struct yk_queue *queue;
	void *segment[2];
	uint64_t room[2], used[2];  // bytes
	char *before[2], *after[2]; // contents uploaded, contents downloaded
	unsigned char *writable[2]; // 1: the op may write this byte
};

int yk_runner_init(struct yk_runner *, struct yk_device *); // on failure an error is recorded
void yk_runner_fini(struct yk_runner *);
// Bit mask of the implementations that accept the case. Sets its operands' alignments, which a run
// requires.
uint64_t yk_runner_can(struct yk_runner *, struct yk_case *);
// Runs one implementation.  twice: runs it again, expecting the same bits, and through a graph if
// the backend supports graphs.
struct yk_case_verdict yk_runner_run(struct yk_runner *, struct yk_case *, uint32_t impl,
				bool twice);
// After a good run of a case with a `part`: runs the part with every implementation that accepts
// it, and compares its results with that run's.
void yk_runner_part(struct yk_runner *, struct yk_case *, struct yk_case_verdict *);
// Tests puts, gets, copies and fills at unaligned offsets and sizes.
struct yk_case_verdict yk_runner_memory(struct yk_runner *, uint64_t seed);
// Records and replays a fill and a copy; false: the backend does not support graphs.
bool yk_runner_graph(struct yk_runner *, uint64_t seed, struct yk_case_verdict *);
// Describes all views for people: "f32 [3,65] strides [65,1], ..".
void yk_case_describe(const struct yk_case *, char *to, size_t cap);

#endif
