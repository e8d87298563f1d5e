// SPDX-License-Identifier: Apache-2.0
// What the files of the profiler share.
#ifndef YK_PROFILE_PRIV_H
#define YK_PROFILE_PRIV_H

#include "observe/profile.h"
#include "observe/rows.h"

struct yk_traced { // a piece of a trace
	uint64_t begin, ns; // begin: since the start
	uint32_t row;
	uint16_t slot; // YK_SLOTS and more: a lane of a thread that reads data, the caller's first
};

struct yk_profile {
	struct yk_observer observer; // first
	struct yoke_context *ctx;
	bool details, failed; // failed: no memory for details, which are left out from then on
	bool timed[2];
	uint64_t started, opened; // ns: the start; of the piece that is going on
	struct yoke_stats before;
	uint64_t (*fell)[2]; // launches and bytes of each kind of fallback before
	size_t nfell;
	struct yk_busy_sum sum[2][YK_BUSY_KINDS];
	struct yk_rows rows;
	struct yk_traced *trace;
	size_t traced, trace_cap;
	int readers; // lanes behind the slots'
	uint64_t dropped; // pieces that a full trace has not
	// Pieces of a queue with events, not resolved yet, oldest first.  What the host did between two
	// events counts as far as the device waited for it, and has its own times.
	struct yk_pending {
		struct yk_event *from, *to; // to: NULL until the next piece begins, of the host's
		uint64_t begin, ns;         // of the host's, since the start
		uint32_t row;
		uint8_t slot, kind;
	} *pending;
	size_t npending;
	struct yk_event *anchor; // the first event, and when it was over
	uint64_t anchored;
	struct yk_between { // of each slot
		struct yk_event *last; // in front of the piece that is going on, or behind the one before
		bool follows;          // is the next piece the next step of a launch, with nothing between?
	} between[YK_SLOTS];
};

#endif
