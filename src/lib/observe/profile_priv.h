// SPDX-License-Identifier: Apache-2.0
// What the files of the profiler share.
#ifndef YK_PROFILE_PRIV_H
#define YK_PROFILE_PRIV_H

#include <pthread.h>

#include "observe/profile.h"
#include "observe/rows.h"

struct yk_traced { // a piece of a trace
	uint64_t begin, ns; // begin: of the host's clock, since the start; of the device's, while `mapped` is not set
	uint64_t host;      // when its enqueueing began, since the start
	uint32_t host_ns;
	uint32_t row, number; // number: among all pieces, as they were begun
	uint32_t from;        // number + 1 of the upload that it is the first to read, 0: none
	uint8_t slot, thread;
	bool apart;  // it ran behind the host
	bool mapped;
};

enum { YK_HOST_PIECE = UINT8_MAX }; // in place of a slot: the host alone was at work

struct yk_traced_reading { // .. of a thread of a loader, -1: the caller's
	uint64_t begin, ns;
	int worker;
};

struct yk_traced_range { // .. and of the application's
	uint64_t begin, ns;
	uint32_t path;
	uint8_t thread;
};

struct yk_traced_count { // a counter at a moment: bytes of the pool, or what the device said of itself
	uint64_t at, allocated, reserved;
	float util, power_w; // NaN: not known
	bool said;
};

struct yk_range_sum { // by path
	uint64_t calls, host_ns, ns; // ns: of pieces that are in it and in none inside
};

struct yk_profile {
	struct yk_observer observer; // first
	struct yoke_context *ctx;
	bool details, failed; // failed: no memory for details, which are left out from then on
	bool watching;
	bool timed[2];
	uint64_t started, opened; // ns: the start; of the piece that is going on
	uint64_t worked;          // .. and the processor time of all threads by then
	uint64_t launch, launched_plan; // number of the launch that is going on, and its plan
	uint32_t number;          // of pieces begun
	struct yoke_stats before;
	uint64_t (*fell)[2]; // launches and bytes of each kind of fallback before
	size_t nfell;
	struct yk_busy_sum sum[2][YK_BUSY_KINDS];
	struct yk_rows rows;
	struct yk_traced *trace;
	size_t traced, trace_cap;
	struct yk_traced_reading *reading;
	size_t readings, reading_cap;
	struct yk_traced_range *range;
	size_t ranges, range_cap;
	struct yk_traced_count *counted;
	size_t counts, count_cap;
	uint64_t allocated, reserved; // .. as counted last
	uint64_t said; // when the device said the last of them
	size_t most;      // events of a trace
	int rank, ranks;  // whose it is
	uint64_t later;   // nanoseconds that it began behind the first of those
	uint64_t dropped; // events that a full trace has not
	struct yk_range_sum *by_range;
	size_t by_ranges, by_range_cap;
	struct yk_open_range { // those that are open, outermost first
		uint32_t path;
		uint64_t begin;
	} *open;
	size_t opens, open_cap;
	pthread_t thread[UINT8_MAX];
	size_t threads;
	struct yk_brought { // uploads that nobody has read
		const struct yk_storage *storage; // NULL: of a step of the plan
		uint64_t plan;
		struct yk_ref ref;
		uint32_t number;
	} brought[16];
	unsigned brings; // so far, taken in turn
	// Pieces of a queue with events, not resolved yet, oldest first.  What the host did between two
	// events counts as far as the device waited for it, and has its own times.
	struct yk_pending {
		struct yk_event *from, *to; // to: NULL until the next piece begins, of the host's
		uint64_t ns;                // of the host's
		struct yk_traced piece;
		uint32_t range;
		uint8_t kind;
	} *pending;
	size_t npending;
	struct yk_event *anchor; // the first event, ..
	uint64_t anchored, anchor_error; // .. when it was over, and by how much that may be off
	double drift;            // the host's nanoseconds for each of the device's, once the end is known
	uint64_t clock_error, shifted;
	struct yk_between { // of each slot
		struct yk_event *last; // in front of the piece that is going on, or behind the one before
		bool follows;          // is the next piece the next step of a launch, with nothing between?
	} between[YK_SLOTS];
	struct yk_peak { // what was alive in the largest arena
		uint64_t bytes;
		struct yk_peak_holder {
			const char *op, *range, *site;
			uint64_t bytes, values;
		} *holder;
		size_t holders, cap;
		struct yk_arena text;
	} peak;
};

// Looks at a plan that is launched: is its arena the largest so far?
void yk_peak_note(struct yk_profile *, const struct yk_plan *);
void yk_peak_clear(struct yk_peak *);
void yk_peak_fini(struct yk_peak *);
// Times of all pieces, on the host's clock, in the order of their lanes; waits for them.
void yk_profile_settle(struct yk_profile *);
// Begins and ends watching; what was seen stays.
void yk_profile_watch(struct yk_profile *, bool on);
// The last byte that a trace may have; more than its pieces need is not kept either.
void yk_profile_bound(struct yk_profile *, uint64_t max_bytes);
uint64_t yk_profile_trace_bytes(void); // the setting profile.trace
// other: texts of yk_profile_events.
int yk_profile_trace_max(struct yk_profile *, const char *path, uint64_t max_bytes, int others, char *const *other);

#endif
