// SPDX-License-Identifier: Apache-2.0
// Declarations shared by the files of bench/map: the arrays, the machine's limits, the measured
// ops.
#ifndef YK_BENCH_MAP_H
#define YK_BENCH_MAP_H

#include "../backends/cpu/host/frame.h"

// Four arrays of `count` floats each in one block; the last is positive.
enum { ARRAYS = 4 };
extern struct yk_segment yk_bench_array[ARRAYS];
extern int64_t yk_bench_count;

static inline float *array_at(int k)
{
	return (float *)yk_bench_array[k].base;
}

// ---- map_limits.c: loops that do nothing else, by the team ----

enum yk_limit { READ, COPY, COPY_NT, TRIAD, TRIAD_NT, SCALE, STEP, LIMITS };

struct yk_limit_loop {
	const char *name;
	int arrays; // read or written: bytes are arrays * count * 4
	void (*run)(void);
};
extern const struct yk_limit_loop yk_limit_loops[LIMITS];

// ---- map_ops.c ----

// An op ready to run, on arrays that it may overwrite.
struct yk_bench_op {
	const char *name;
	// the limit for its traffic; COPY and TRIAD: the better of both store types
	enum yk_limit fit;
	double bytes;      // bytes of its operands, read or written once
	struct yoke_op op;
	struct yoke_view in[8], out[3];
	struct yoke_map map;
	struct yk_prepared *prepared; // for the CPU's kernel
};

// Fills list, at most `room` entries, and returns their number.
int yk_bench_ops(struct yk_bench_op *list, int room);

// ---- map_device.c ----

// Measures the ops whose name contains `only` on the best device of a backend beside the kernels of
// isa; 0, or 1 with a message.
int yk_bench_beside(const struct yk_isa *isa, const char *backend, const char *only);

#endif
