// SPDX-License-Identifier: Apache-2.0
// Observing a program: profiles over cycles of steps, ranges, counters, memory, device limits and
// telemetry.
//
// Observation does not change results: with or without it they have the same bits.  Features that
// are not used cost nothing.  All functions apply to the calling thread's current context
// (yoke_use) unless stated otherwise.  They return 0 or a negative YOKE_E*, or NULL, as in yoke.h,
// and structs begin with their size, which the caller sets.  An unknown value is never reported as
// 0; each struct documents how it marks unknown values (n/a).
//
//	struct yoke_profile_options o = { .size = sizeof o, .wait = 1, .warmup = 1, .active = 3,
//					  .repeat = 2, .flags = YOKE_PROFILE_SHAPES,
//					  .folder = "trace" };
//	yoke_profile *p = yoke_profile_new(&o);
//	for (int i = 0; i < 10; i++) {
//		train(i);
//		// steps 2 3 4 and 7 8 9 are in trace/cycle0.json and cycle1.json
//		yoke_profile_step(p);
//	}
//	yoke_profile_free(p);
#ifndef YOKE_OBSERVE_H
#define YOKE_OBSERVE_H

#include <yoke-dist.h>
#include <yoke.h>

#ifdef __cplusplus
extern "C" {
#endif

// ---- profiles ----
//
// A table row aggregates intervals of work: kernel launches, copies, planning, waits.  On the CPU,
// times are measured by the host; on other devices they come from device events between the
// intervals of each queue, if the device records them: yoke_profile_prepare.

// Selects the steps to profile, by k = step - skip_first.  A cycle consists of `wait` steps without
// profiling, `warmup` steps that are profiled and discarded, and `active` steps.  skip_first_wait:
// the first cycle has no wait.  repeat 0: forever.  EINVAL: a number below 0, or active 0.
enum yoke_profile_state { YOKE_PROFILE_OFF, YOKE_PROFILE_WARMUP, YOKE_PROFILE_ACTIVE };
struct yoke_profile_schedule {
	size_t size;
	int64_t skip_first, wait, warmup, active, repeat;
	int skip_first_wait;
};
YOKE_API int yoke_profile_state(const struct yoke_profile_schedule *, int64_t step);

// What distinguishes rows in addition to the op and the device.
#define YOKE_PROFILE_IMPLEMENTATIONS 1u
#define YOKE_PROFILE_SHAPES 2u
#define YOKE_PROFILE_RANGES 4u
#define YOKE_PROFILE_SITES 8u   // source position of the recording, file:line if libdw finds it
#define YOKE_PROFILE_SCOPES 16u // all scopes of the fused nodes
#define YOKE_PROFILE_MEMORY 32u // live bytes of each step, and the values alive at the peak

typedef struct yoke_profile yoke_profile;
// Step counts as in yoke_profile_schedule; all members except active may be 0 or NULL.
struct yoke_profile_options {
	size_t size;
	unsigned flags;
	int64_t skip_first, wait, warmup, active, repeat;
	int skip_first_wait;
	// Called at the end of a cycle, by yoke_profile_step, or by yoke_profile_free for an
	// unfinished cycle, with partial = 1.  It may call the functions below on the profile;
	// yoke_profile_step returns its negative result.
	int (*cycle)(yoke_profile *, int64_t cycle, int partial, void *arg);
	void *arg;
	const char *folder;  // directory for cycleN.json of each cycle, in Chrome's trace format,
			     // created if needed; NULL: none
	uint64_t max_bytes; // size limit of such a file, 0: 256 000 000; events beyond it are
			    // dropped and counted
};
// Profiles the current context from now on; after that context is freed, calls with the profile are
// ECONTEXT.  EINVAL: the schedule is invalid.
YOKE_API yoke_profile *yoke_profile_new(const struct yoke_profile_options *);
// Marks the end of a step of the program.
YOKE_API int yoke_profile_step(yoke_profile *);
// Delivers an unfinished cycle, and stops profiling.  Warns if a cycle contained no step.  NULL is
// fine.
YOKE_API void yoke_profile_free(yoke_profile *);
// Call before creating the context: enables timing on the queues of its device.
YOKE_API void yoke_profile_prepare(void);

// A row of the table.  Unknown numbers are NaN; strings are valid until the next cycle begins.
struct yoke_profile_row {
	size_t size;
	const char *op, *device;
	const char *implementation, *shapes, *range, *site, *scopes; // "" unless requested by flags
	uint64_t calls;
	double total, mean, min, max; // total, mean, minimum, maximum seconds on its device;
					 // NaN: no device times
	double share;                    // of all rows' totals, in percent
	double host;                     // host seconds to enqueue it; on the CPU, to execute it
	double bytes;                    // bytes read and written by all calls, counting each
					 // distinct operand once
	double flops;                    // by all calls: 2 M N K for products; 4 D per visible pair
					 // of query and key for attention, 10 D backward;
					 // instructions times elements for maps, plus one for each
					 // reduced element; NaN: not counted
	double gbs, gflops;              // 1e9 bytes and 1e9 operations per second
	double roofline;                 // achieved rate over the bound, min(P, W flops / bytes);
					 // see yoke_limits
	int bound;                       // limiting resource, enum yoke_bound
	int64_t memory;                  // growth of live bytes over all calls
					 // (YOKE_PROFILE_MEMORY)
	double occupancy;                // 0..1: resident warps over the maximum
};
enum yoke_bound { YOKE_BOUND_UNKNOWN, YOKE_BOUND_COMPUTE, YOKE_BOUND_MEMORY, YOKE_BOUND_LAUNCH };
// The rows of the current cycle, longest first: fills the first `max` elements of `to` (NULL for
// none) and returns the total number.  Waits until all work is done.
YOKE_API int yoke_profile_rows(yoke_profile *, int max, struct yoke_profile_row *to);
// The rows as a text table of at most `rows` rows (0: all), sorted by a column, "total" if NULL;
// omitted rows are summed up in one row, "others".  Works like snprintf: writes at most cap bytes
// including the terminating NUL and returns the length without it.  EINVAL lists the columns.
YOKE_API int64_t yoke_profile_table(yoke_profile *, int rows, const char *column, char *to,
				    size_t cap);
// Writes the current cycle in Chrome's trace format: a track for each host thread and each device
// queue; a counter of the pool's bytes; arrows from enqueueing to each interval of work, and from
// an upload to its first reader.
YOKE_API int yoke_profile_trace(yoke_profile *, const char *path);

struct yoke_profile_range {
	size_t size;
	const char *name;    // with enclosing ranges: "validate/forward"
	uint64_t calls;
	double host, device; // host seconds between push and pop; device seconds of intervals whose
			     // operations were recorded inside.  An interval recorded in several
			     // ranges counts for their common enclosing range
};
// The ranges, as in yoke_profile_rows, in the order in which they were first pushed.
YOKE_API int yoke_profile_ranges(yoke_profile *, int max, struct yoke_profile_range *to);

// Memory at the peak of the plan with the largest arena, grouped by op, range and site; largest
// first.
struct yoke_profile_holder {
	size_t size;
	const char *op, *range, *site;
	uint64_t bytes, values;
};
// The holders, as in yoke_profile_rows (needs YOKE_PROFILE_MEMORY).  They sum up to the arena's
// bytes: bytes that belong to no value are "between values".
YOKE_API int yoke_profile_peak(yoke_profile *, int max, struct yoke_profile_holder *to);

// Accuracy of a profile's times.
struct yoke_profile_quality {
	size_t size;
	double clock_error; // uncertainty in seconds of device times relative to the host's; 0 on
			    // the CPU
	uint64_t shifted;   // intervals whose device time was before they were enqueued, and which
			    // were moved there
	uint64_t dropped;   // events that did not fit the trace
};
YOKE_API int yoke_profile_quality(yoke_profile *, struct yoke_profile_quality *);

// ---- limits ----

// Measured maximum rates of the current context's device, measured at the first call:
// floating-point operations per second in f32, f64, f16 and bf16, bytes per second of a copy,
// nanoseconds of an empty launch and of a launch with a wait.  They are measured by kernels of the
// device's backend; for CPUs by loops; otherwise by the backend's product of 2048 x 2048 x 2048 and
// copy of 256 MiB.  0: n/a.  The struct is declared in yoke-plugin.h.
YOKE_API int yoke_limits(struct yoke_limits *);

// ---- ranges ----

// Names all work recorded and executed until the pop, in profiles and memory histories.  A range
// owns no handles and is not part of scope paths: plans and random numbers do not change.  Ranges
// nest; a pop without a push is EINVAL.
YOKE_API int yoke_range_push(const char *name);
YOKE_API int yoke_range_pop(void);

// ---- counters ----

// Counters of the current context, since it was created.
struct yoke_counters {
	size_t size;
	uint64_t ns;                     // a monotonic clock
	uint64_t bytes_up, bytes_down, copies_up, copies_down;
	uint64_t launches, fallbacks, fallback_bytes, evals, plan_hits, plan_misses;
	uint64_t waits, wait_ns;         // waits of the host for a device; YOKE_SYNC=warn logs each
					 // place
	uint64_t programs_compiled, programs_found;
	int64_t idle_ns;                 // time without work in progress, while a profile was
					 // active; -1: n/a
};
YOKE_API int yoke_counters(struct yoke_counters *);
// later - former, member by member.
YOKE_API int yoke_counters_between(const struct yoke_counters *former,
				   const struct yoke_counters *later, struct yoke_counters *to);

// ---- memory ----

// Starts (1) or stops (0) recording the memory history of the current context's device: a ring of
// the last 65536 events (the setting memory.events), plus tables of all blocks and segments.  The
// setting memory.history starts it from the beginning; memory.snapshot names a file to which it is
// written when an allocation fails.
YOKE_API int yoke_memory_record(int on);
// Writes the history in JSON: `first`, the blocks before the first event of the ring; `events`,
// [ns, kind, segment, offset, bytes, who], for moves also the new segment and offset; `live`, the
// current state: blocks as [segment, offset, bytes, who, ns].  who is an index into the list of
// that name, of op, range and site.  Kinds: alloc, free, segment, release, trim, move, oom.  `yoke
// memory FILE` displays it.  EINVAL: no history is recorded.
YOKE_API int yoke_memory_snapshot(const char *path);

// Leak detection.  A check reports by how much the device's allocated memory has grown since the
// beginning; from 100 MB (1e8 bytes) it logs a warning and lists blocks of more than 1 MB allocated
// since then, largest first.
typedef struct yoke_leaks yoke_leaks;
struct yoke_leak {
	size_t size;
	uint64_t begin, current, peak; // allocated bytes; peak: since yoke_stats_reset_peaks
	int64_t diff;                  // current - begin
	int warned;
};
YOKE_API yoke_leaks *yoke_leaks_begin(void); // of the current context's device; records its history
YOKE_API int yoke_leaks_check(yoke_leaks *, const char *name,
			      struct yoke_leak *to); // name and to may be NULL
YOKE_API void yoke_leaks_end(yoke_leaks *);  // NULL is fine

// ---- telemetry ----

// The current state of a device, from its backend, from another backend that offers the same
// hardware, or from system files: struct yoke_sample of yoke-plugin.h, whose `known` marks valid
// members.  id: "opencl:0", NULL: the current context's device.  A source that reports impossible
// values (not a number, more used than total, a counter that decreases) or does not answer within a
// second is disabled, with one log line.  From any thread.  ENODEV: no such device; EUNSUPPORTED:
// no source is available.
YOKE_API int yoke_telemetry(const char *id, struct yoke_sample *to);

// State of the host and this process.  Unknown values are NaN.
struct yoke_host_sample {
	size_t size;
	double cpu;         // 0..1, over all processors, since the previous sample; NaN in the
			    // first
	double process_cpu; // number of processors kept busy by this process since then
	double threads, rss, rss_peak, read_bytes, written_bytes; // of this process
	double pressure_cpu, pressure_memory, pressure_io; // 0..1: share of the last 10 s with
							   // tasks stalled on it
	double temp_c, clock_hz, clock_max_hz;             // hottest processor sensor; mean and
							   // maximum clock
	double memory_total, memory_available;
	double memory_limit, memory_used, cpu_limit;       // of the process's control group; the
							   // tightest limit up the tree, in bytes
							   // and processors
	double oom_kills, throttled_s;
	double energy_j;     // of the processor packages since the first sample (RAPL)
	char energy_why[64]; // why energy_j is unknown
	double packages, cores, processors, numa_nodes; // of the machine, from hwloc
	double processors_allowed; // processors that the control group permits
};
// Samples the host; "since the previous sample" means since the process's last call.
YOKE_API int yoke_host_telemetry(struct yoke_host_sample *to);

// Samples every `seconds` on a separate thread and appends JSON lines to the file.  After the first
// minutes lines become less frequent, so that a day takes at most as many bytes as the setting
// telemetry.day, 5 MB by default.  A line that cannot be written is logged once as a warning and is
// otherwise ignored.
typedef struct yoke_recorder yoke_recorder;
struct yoke_recorder_options {
	size_t size;
	const char *path;    // of the file, usually telemetry.jsonl
	double seconds;      // interval [1] of the first lines
	const char *run;     // the run's name, written in each line, or NULL
	int rank;
	const yoke_group *group; // its state (yoke_group_state) is written in each line; NULL:
				 // none.  Must exist until yoke_recorder_free
};
// Creates a recorder for the current context's device.
YOKE_API yoke_recorder *yoke_recorder_new(const struct yoke_recorder_options *);
// Sets the program's progress for later lines: steps done, and seconds spent waiting for data.
// From any thread.
YOKE_API void yoke_recorder_progress(yoke_recorder *, int64_t step, double data_wait);
// Takes a last sample and stops.  NULL is fine.
YOKE_API void yoke_recorder_free(yoke_recorder *);

#ifdef __cplusplus
}
#endif
#endif
