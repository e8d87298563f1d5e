// SPDX-License-Identifier: Apache-2.0
// The profiler's state, shared by its files.
#ifndef YK_PROFILE_STATE_H
#define YK_PROFILE_STATE_H

#include <pthread.h>

#include "observe/report.h"
#include "observe/rows.h"

struct yk_traced { // an activity of a trace
	uint64_t begin, ns; // begin: host clock since the start; device clock while `mapped` is not
			    // set
	uint64_t host;      // when its enqueueing began, since the start
	uint32_t host_ns;
	uint32_t row, number; // number: sequence number among all activities, in the order of their
			      // begin
	uint32_t from;        // number + 1 of the upload that this activity reads first; 0: none
	uint8_t stream, thread;
	bool apart;  // it ran asynchronously to the host
	bool mapped;
};

enum { YK_HOST_ACTIVITY = UINT8_MAX }; // instead of a stream: only the host was at work

struct yk_traced_reading { // a read by a loader thread, -1: the caller's
	uint64_t begin, ns;
	int worker;
};

struct yk_traced_range { // a range of the application
	uint64_t begin, ns;
	uint32_t path;
	uint8_t thread;
};

struct yk_traced_count { // a counter sample: bytes of the pool, or the device's telemetry
	uint64_t at, allocated, reserved;
	float util, power_w; // NaN: unknown
	bool sampled;
};

struct yk_range_sum { // indexed by path
	uint64_t calls, host_ns, ns; // ns: of activities in this range and in no nested range
};

// The events of a trace, at most `max` of all kinds together; each kind has an array.
struct yk_profile_trace {
	struct yk_traced *event;
	size_t events, event_cap;
	struct yk_traced_reading *reading;
	size_t readings, reading_cap;
	struct yk_traced_range *range;
	size_t ranges, range_cap;
	struct yk_traced_count *count;
	size_t counts, count_cap;
	size_t max;
	uint64_t dropped; // events dropped because the trace was full
	int rank, ranks;  // the rank that this profile belongs to
	uint64_t later;   // nanoseconds that it began after the first rank
};

// From the device's clock to the host's.
struct yk_profile_clock {
	struct yk_event *anchor;         // the first event
	uint64_t anchored, anchor_error; // its completion time on the host's clock, and the error
					 // bound of that
	// host nanoseconds per device nanosecond, once the end is known
	double drift;
	uint64_t error, shifted;
};

// Ranges of the application, by path.
struct yk_profile_paths {
	struct yk_range_sum *sum;
	size_t sums, sum_cap;
	struct yk_open_range { // open ranges, outermost first
		uint32_t path;
		uint64_t begin;
	} *open;
	size_t opens, open_cap;
};

// Uploads that no activity has read yet.
struct yk_profile_uploads {
	struct yk_brought {
		const struct yk_storage *storage; // NULL: uploaded by a step of the plan
		uint64_t plan;
		struct yk_ref ref;
		uint32_t number;
	} unread[16];
	unsigned n; // uploads so far; unread[] is a ring
};

// The contents of the largest arena at its peak.
struct yk_peak {
	uint64_t bytes;
	struct yk_peak_holder {
		const char *op, *range, *site;
		uint64_t bytes, values;
	} *holder;
	size_t holders, cap;
	struct yk_arena text;
};

// An interval of a queue whose events are not resolved yet.  Host work between two events counts
// only while the device waited for it, and is timed by the host.
struct yk_pending {
	struct yk_event *from, *to; // to: for host work, NULL until the next one begins
	uint64_t ns;                // for host work
	struct yk_traced activity;
	uint32_t range;
	uint8_t kind;
};

struct yk_profile {
	struct yk_observer observer; // must be the first member
	struct yoke_context *ctx;
	bool details, failed; // failed: out of memory for details, which are no longer kept
	bool watching;
	bool timed[2];
	uint64_t started, opened;       // ns: the start; the begin of the current activity
	uint64_t worked;                // processor time of all threads at `opened`
	uint64_t launch, launched_plan; // number and plan of the current launch
	uint32_t number;                // activities begun so far
	struct yoke_stats before;
	uint64_t (*fallback)[2]; // launches and bytes of each kind of fallback at the start
	size_t fallbacks;
	struct yk_busy_sum sum[2][YK_BUSY_KINDS];
	struct yk_rows rows;
	struct yk_profile_trace trace;
	struct {
		uint64_t allocated, reserved; // values of the last counter sample
		uint64_t at;                  // time of the last telemetry sample
	} sample;
	struct yk_profile_paths path;
	pthread_t thread[UINT8_MAX];
	size_t threads;
	struct yk_profile_uploads upload;
	struct yk_pending *pending; // oldest first
	size_t npending;
	struct yk_profile_clock clock;
	struct yk_between { // state of each stream
		struct yk_event *last; // the event before the current activity, or after the last
				       // one
		bool follows;          // the next activity is the next step of the launch, with
				       // nothing in between
	} between[YK_STREAMS];
	struct yk_peak peak;
};

// Called for each launched plan; records the arena's contents if it is the largest so far.
void yk_peak_note(struct yk_profile *, const struct yk_plan *);
void yk_peak_clear(struct yk_peak *);
void yk_peak_fini(struct yk_peak *);
// Resolves the times of all activities on the host's clock and orders them by lane; waits for their
// completion.
void yk_profile_settle(struct yk_profile *);
// Starts or stops watching; collected data stays.
void yk_profile_watch(struct yk_profile *, bool on);
// Limits a trace to max_bytes; events beyond that are not stored either.
void yk_profile_bound(struct yk_profile *, uint64_t max_bytes);
uint64_t yk_profile_trace_bytes(void); // the setting profile.trace
// other: texts from yk_profile_events.
int yk_profile_trace_max(struct yk_profile *, const char *path, uint64_t max_bytes, int others,
			 char *const *other);

#endif
