// SPDX-License-Identifier: Apache-2.0
// Watching what a program does with yoke: profiles by cycles of steps, ranges, counters, memory, limits and
// telemetry of devices.
//
// Nothing here changes what is computed: watched or not, results have the same bits.  What nobody asked for
// costs nothing.  All is of the calling thread's current context (yoke_use) unless it says otherwise; functions
// return 0 or a negative YOKE_E*, or NULL, as in yoke.h, and structs begin with their size, which the caller
// sets.  A value that is not known is n/a, never 0: how each struct says so stands beside it.
//
//	struct yoke_profile_options o = { .size = sizeof o, .wait = 1, .warmup = 1, .active = 3, .repeat = 2,
//					  .flags = YOKE_PROFILE_SHAPES, .folder = "trace" };
//	yoke_profile *p = yoke_profile_new(&o);
//	for (int i = 0; i < 10; i++) {
//		train(i);
//		yoke_profile_step(p); // steps 2 3 4 and 7 8 9 are in trace/cycle0.json and cycle1.json
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
// Each piece of work is in one row of a table: a launch of a kernel, a copy, a plan that is made, a wait.
// On the CPU times are the host's; elsewhere those of the device, from events between the pieces of each queue,
// where the device keeps them: yoke_profile_prepare.

// Which steps are watched, by k = step - skip_first.  A cycle is wait steps that are not, warmup that are and
// are dropped, and active ones.  skip_first_wait: the first cycle has no wait.  repeat 0: for ever.
// EINVAL: a number below 0, or active 0.
enum yoke_profile_state { YOKE_PROFILE_OFF, YOKE_PROFILE_WARMUP, YOKE_PROFILE_ACTIVE };
struct yoke_profile_schedule {
	size_t size;
	int64_t skip_first, wait, warmup, active, repeat;
	int skip_first_wait;
};
YOKE_API int yoke_profile_state(const struct yoke_profile_schedule *, int64_t step);

// What tells rows apart beside the op and the device.
#define YOKE_PROFILE_IMPLEMENTATIONS 1u
#define YOKE_PROFILE_SHAPES 2u
#define YOKE_PROFILE_RANGES 4u
#define YOKE_PROFILE_SITES 8u   // where the program recorded it, as file:line where libdw knows it
#define YOKE_PROFILE_SCOPES 16u // all scopes of the fused nodes
#define YOKE_PROFILE_MEMORY 32u // live bytes of each step, and what is alive at the peak

typedef struct yoke_profile yoke_profile;
// Numbers of steps as in a schedule; what is 0 or NULL but active is as said.
struct yoke_profile_options {
	size_t size;
	unsigned flags;
	int64_t skip_first, wait, warmup, active, repeat;
	int skip_first_wait;
	// Called when a cycle is over, by yoke_profile_step, or by yoke_profile_free for one that is not, which is
	// partial.  The functions below may be called for it; a negative result is yoke_profile_step's.
	int (*cycle)(yoke_profile *, int64_t cycle, int partial, void *arg);
	void *arg;
	const char *folder;  // made if need be; cycleN.json of each cycle, in Chrome's trace format; NULL: none
	uint64_t max_bytes; // of such a file, 0: 256 000 000; what would be beyond is left out, and counted
};
// Watches the current context from now on; once that context is freed, calls with the profile are ECONTEXT.  EINVAL: the
// schedule is invalid.
YOKE_API yoke_profile *yoke_profile_new(const struct yoke_profile_options *);
// A step of the program is over.
YOKE_API int yoke_profile_step(yoke_profile *);
// Hands over a cycle that is not over, and stops.  One that saw no step warns.  NULL is fine.
YOKE_API void yoke_profile_free(yoke_profile *);
// Before the context is made: has the device that will be used keep times of its queues.
YOKE_API void yoke_profile_prepare(void);

// A row.  Numbers that are not known are NaN; strings last until the next cycle begins.
struct yoke_profile_row {
	size_t size;
	const char *op, *device;
	const char *implementation, *shapes, *range, *site, *scopes; // "" where flags do not ask
	uint64_t calls;
	double total, mean, least, most; // seconds on its device; NaN: the device keeps no times
	double share;                    // of all rows' totals, in percent
	double host;                     // seconds in which the host enqueued it; on the CPU, did it
	double bytes;                    // read and written, those of distinct operands, by all calls
	double flops;                    // by all calls: 2 M N K of products; 4 D a pair of query and key seen of
					 // attention, 10 D backward; instructions times elements of maps, and one
					 // more for each that is reduced; NaN: not counted
	double gbs, gflops;              // 1e9 a second
	double roofline;                 // achieved rate over the bound, min(P, W flops / bytes); see yoke_limits
	int bound;                       // what bounds it
	int64_t memory;                  // growth of live bytes over all calls (YOKE_PROFILE_MEMORY)
	double occupancy;                // 0..1: warps that fit at once over the most there can be
};
enum yoke_bound { YOKE_BOUND_UNKNOWN, YOKE_BOUND_COMPUTE, YOKE_BOUND_MEMORY, YOKE_BOUND_LAUNCH };
// The rows of the cycle at hand, longest first: fills the first `most` of to (NULL for none) and returns how many
// there are.  After all is done: it waits.
YOKE_API int yoke_profile_rows(yoke_profile *, int most, struct yoke_profile_row *to);
// The same as text, at most `rows` (0: all) sorted by a column, "total" if NULL; what is cut off is one row, "others".
// In the manner of snprintf: at most cap bytes with the closing NUL, and returns the length without it.
// EINVAL names the columns there are.
YOKE_API int64_t yoke_profile_table(yoke_profile *, int rows, const char *column, char *to, size_t cap);
// The cycle at hand as a file of Chrome's trace format: a lane for each thread of the host and each queue of a
// device; the counter of the pool's bytes; arrows from enqueueing to each piece, and from an upload to who first
// reads it.
YOKE_API int yoke_profile_trace(yoke_profile *, const char *path);

struct yoke_profile_range {
	size_t size;
	const char *name;    // with those around it: "validate/forward"
	uint64_t calls;
	double host, device; // seconds between push and pop; of pieces whose operations were recorded inside.  What
			     // was recorded in several counts for the range that is around them
};
// As yoke_profile_rows: in the order in which they were first pushed.
YOKE_API int yoke_profile_ranges(yoke_profile *, int most, struct yoke_profile_range *to);

// What was alive when the plan with the largest arena had most bytes in it, by op, range and site; largest first.
struct yoke_profile_holder {
	size_t size;
	const char *op, *range, *site;
	uint64_t bytes, values;
};
// As yoke_profile_rows (YOKE_PROFILE_MEMORY).  All of them are the arena's bytes: those in no value are
// "between values".
YOKE_API int yoke_profile_peak(yoke_profile *, int most, struct yoke_profile_holder *to);

// How well the profile knows its times.
struct yoke_profile_quality {
	size_t size;
	double clock_error; // seconds by which the device's times may be off the host's; 0 on the CPU
	uint64_t shifted;   // pieces that the device's clock had before they were enqueued: moved there
	uint64_t dropped;   // events that the trace has no room for
};
YOKE_API int yoke_profile_quality(yoke_profile *, struct yoke_profile_quality *);

// ---- limits ----

// What the current context's device reaches at most, measured at the first call: floating-point operations a second
// in f32, f64, f16 and bf16, bytes a second of a copy, nanoseconds of an empty launch and of one that is waited for.
// By kernels of its backend; of processors by loops; else by its own product of 2048 x 2048 x 2048 and copy of 256
// MiB.  0: n/a.  The struct is the plugins'.
YOKE_API int yoke_limits(struct yoke_limits *);

// ---- ranges ----

// Names what is recorded and done until the pop, for profiles and histories of memory.  A range owns no handles
// and is in no path: plans and random numbers stay as they are.  Ranges nest; EINVAL of a pop without push.
YOKE_API int yoke_range_push(const char *name);
YOKE_API int yoke_range_pop(void);

// ---- counters ----

// Of the current context, since it was made.
struct yoke_counters {
	size_t size;
	uint64_t ns;                     // of a clock that never goes back
	uint64_t bytes_up, bytes_down, copies_up, copies_down;
	uint64_t launches, fallbacks, fallback_bytes, evals, plan_hits, plan_misses;
	uint64_t waits, wait_ns;         // the host waited for a device; YOKE_SYNC=warn names each place
	uint64_t programs_compiled, programs_found;
	int64_t idle_ns;                 // no piece of work was under way, as far as a profile watched; -1: n/a
};
YOKE_API int yoke_counters(struct yoke_counters *);
// later - former, member by member.
YOKE_API int yoke_counters_between(const struct yoke_counters *former, const struct yoke_counters *later,
				   struct yoke_counters *to);

// ---- memory ----

// Keeps a history of the current context's device from now on (1), or no more (0): a ring of the last 65536 events
// (the setting memory.events), with tables of all blocks and segments beside it.  The setting memory.history does it
// from the beginning; memory.snapshot names a file that it is written to when an allocation fails.
YOKE_API int yoke_memory_record(int on);
// Writes it, in JSON: `first`, what was there before the first event of the ring; `events`, [ns, kind, segment,
// offset, bytes, who], of moves the new segment and offset besides; `live`, what is there now: blocks as [segment,
// offset, bytes, who, ns].  who is a place in the list of that name, of op, range and site.  Kinds: alloc, free,
// segment, release, trim, move, oom.  `yoke memory FILE` shows it.  EINVAL: none is kept.
YOKE_API int yoke_memory_snapshot(const char *path);

// Looks for memory that stays.  A check says how much more of the device is allocated than when it began; from
// 100 MB (1e8 bytes) on it warns, and lists blocks of more than 1 MB that were made since, largest first.
typedef struct yoke_leaks yoke_leaks;
struct yoke_leak {
	size_t size;
	uint64_t begin, current, peak; // bytes that are allocated; peak: of all times
	int64_t diff;                  // current - begin
	int warned;
};
YOKE_API yoke_leaks *yoke_leaks_begin(void); // for the current context's device; keeps a history meanwhile
YOKE_API int yoke_leaks_check(yoke_leaks *, const char *name, struct yoke_leak *to); // name and to may be NULL
YOKE_API void yoke_leaks_end(yoke_leaks *);  // NULL is fine

// ---- telemetry ----

// A device now, by its backend, another offer of the same hardware, or the system's files: struct yoke_sample of
// yoke-plugin.h, whose `known` says what counts.  id: "opencl:0", NULL: the current context's.  One that lies (no
// number, more used than there is, a counter that runs back) or does not answer within a second is left out from
// then on, which is said once.  From any thread.  ENODEV: no such device; EUNSUPPORTED: nothing is known.
YOKE_API int yoke_telemetry(const char *id, struct yoke_sample *to);

// The host and this process.  What is not known is NaN.
struct yoke_host_sample {
	size_t size;
	double cpu;         // 0..1, of all processors, since the sample before; at the first one NaN
	double process_cpu; // processors that this process kept busy since then
	double threads, rss, rss_peak, read_bytes, written_bytes; // of this process
	double pressure_cpu, pressure_memory, pressure_io; // 0..1: of the last 10 s, in which something waited for it
	double temp_c, clock_hz, clock_max_hz;             // the hottest sensor of processors; the mean clock
	double memory_total, memory_available;
	double memory_limit, memory_used, cpu_limit;       // of its control group; the least up the tree, in bytes
							   // and processors
	double oom_kills, throttled_s;
	double energy_j;     // of the processors' packages since the first sample (RAPL)
	char energy_why[64]; // why there is none
	double packages, cores, processors, numa_nodes; // of the machine, by hwloc
	double processors_allowed; // those that its control group leaves this process
};
// Of the process: what is "since the sample before" is since the last call.
YOKE_API int yoke_host_telemetry(struct yoke_host_sample *to);

// Samples every `seconds` on a thread of its own, and appends a line of JSON to the file. After the first minutes lines
// come less often, so that a day takes at most as many bytes as the setting telemetry.day, 5 MB by default. A line that
// cannot be written is logged once as a warning and is otherwise ignored.
typedef struct yoke_recorder yoke_recorder;
struct yoke_recorder_options {
	size_t size;
	const char *path;    // telemetry.jsonl
	double seconds;      // [1], between the first lines
	const char *run;     // names the run in each line, or NULL
	int rank;
	const yoke_group *group; // what the rank does with others is in each line; NULL: none.  It has to stay until
				 // yoke_recorder_free
};
// Of the current context's device.
YOKE_API yoke_recorder *yoke_recorder_new(const struct yoke_recorder_options *);
// What the lines say of the program: steps done, seconds in which they waited for data.  From any thread.
YOKE_API void yoke_recorder_tell(yoke_recorder *, int64_t step, double data_wait);
// Samples once more, and ends.  NULL is fine.
YOKE_API void yoke_recorder_free(yoke_recorder *);

#ifdef __cplusplus
}
#endif
#endif
