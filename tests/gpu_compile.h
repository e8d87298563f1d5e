// SPDX-License-Identifier: Apache-2.0
// Interface to the GPU compilers available on this machine, and to their resource reports about
// kernels.
#ifndef YK_GPU_COMPILE_H
#define YK_GPU_COMPILE_H

#include <stdbool.h>
#include <stddef.h>

// What a kernel takes of a compute unit.
struct usage {
	char kernel[64];
	int registers; // of an item
	int spilled;   // registers or bytes that went to memory, as the compiler counts
	int stack;     // bytes of an item's own memory, arrays that are indexed among them
	int local;     // bytes of local memory of a group
	int items;     // of a group at most, as the text says; 0: it does not
	int wide;      // NVIDIA's: loads of 16 bytes of global memory, as its PTX has them; -1: not known
};

enum { TARGETS = 8 };
struct target {
	const char *name; // "sm_80"
	bool amd;
	int warp;     // items
	int products; // bits of dtypes, as in struct yoke_device_info
	// Of a compute unit, or, where registers is per SIMD, of one of `simds`:
	int registers, warps, simds; // registers: of 32 bits an item, times the items of a warp on NVIDIA's
	int granule;                 // registers are given out in so many
	int local, local_granule, local_group; // bytes; local_group: taken by the system for each group
	int groups;
};
extern const struct target targets[TARGETS];

// Can it be compiled for here?  *how: by what, or why not.
bool target_ready(const struct target *, const char **how);
// Compiles; returns how many kernels there are, the first of which are in `to`, or -1, with *log, to be freed, that
// is set to what the compiler said either way.
int target_compile(const struct target *, const char *text, const char *options, struct usage *to, int room,
		   char **log);
// Warps of groups of `items` that fit on a compute unit, in percent of what it takes.
int target_occupancy(const struct target *, const struct usage *, int items);

#endif
