// SPDX-License-Identifier: Apache-2.0
// Running cases on a device through its backend's table alone.
#ifndef YK_CONFORM_RUN_H
#define YK_CONFORM_RUN_H

#include "conform/case.h"
#include "device/device.h"

// What became of a case.
struct yk_verdict {
	bool good;
	bool silent;   // a value out of range was not reported (nothing was hurt)
	int code;      // of a call that failed; 0: results are wrong, or all is good
	double worst;  // largest error, as a part of the tolerance
	uint64_t bits; // of all results, as they lie in memory
	char why[400]; // when not good
};

// Two segments for operands and results, and their images in host memory.
struct yk_runner {
	struct yk_device *device;
	struct yk_queue *queue;
	void *segment[2];
	uint64_t room[2], used[2];  // bytes
	char *before[2], *after[2]; // what was put and what came back
	unsigned char *writable[2]; // 1: a byte that the op may write
};

int yk_runner_init(struct yk_runner *, struct yk_device *); // an error is recorded
void yk_runner_fini(struct yk_runner *);
// Room for at least these bytes in both segments.
int yk_runner_reserve(struct yk_runner *, uint64_t bytes0, uint64_t bytes1);
// Implementations that take the case.
uint64_t yk_runner_can(struct yk_runner *, const struct yk_case *);
// Runs one; twice: once more, for the same bits, and by a graph where the backend has those.
struct yk_verdict yk_runner_run(struct yk_runner *, struct yk_case *, uint32_t impl,
				bool twice);
// Behind a good run of a case that has a part: that, by all that take it, with results that follow from the run's.
void yk_runner_part(struct yk_runner *, struct yk_case *, struct yk_verdict *);
// Puts, gets, copies and fills, at odd places.
struct yk_verdict yk_runner_memory(struct yk_runner *, uint64_t seed);
// A fill and a copy recorded and replayed; false: the backend has no graphs.
bool yk_runner_graph(struct yk_runner *, uint64_t seed, struct yk_verdict *);
// "f32 [3,65] strides [65,1], .." of all views; for people.
void yk_case_describe(const struct yk_case *, char *to, size_t cap);

#endif
