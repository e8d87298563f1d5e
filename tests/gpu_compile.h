// SPDX-License-Identifier: Apache-2.0
// Interface to the GPU compilers available on this machine, and to their resource reports about
// kernels.
#ifndef YK_GPU_COMPILE_H
#define YK_GPU_COMPILE_H

#include <stdbool.h>
#include <stddef.h>

// Resources of a compute unit that a kernel uses.
struct usage {
	char kernel[64];
	int registers; // registers of an item
	int spilled;   // spilled registers or bytes, as the compiler counts
	int stack;     // bytes of an item's private memory, including indexed arrays
	int local;     // bytes of local memory of a group
	int items;     // maximum items of a group, from the text; 0: not stated
	int wide;      // NVIDIA: 16-byte global loads in its PTX; -1: unknown
};

enum { TARGETS = 8 };
struct target {
	const char *name; // "sm_80"
	bool amd;
	int warp;     // items
	int products; // bits of dtypes, as in struct yoke_device_info
	// Per compute unit or, where registers are per SIMD, for each of `simds`:
	// registers: 32-bit per item, times the items of a warp on NVIDIA's
	int registers, warps, simds;
	int granule;                 // registers are allocated in multiples of this
	// bytes; local_group: reserved by the system for each group
	int local, local_granule, local_group;
	int groups;
};
extern const struct target targets[TARGETS];

// Can this machine compile for it? *how: by which compiler, or why not.
bool target_ready(const struct target *, const char **how);
// Compiles and returns the number of kernels, the first of which are in `to`, or -1; *log, which
// the caller frees, is set in both cases.
int target_compile(const struct target *, const char *text, const char *options, struct usage *to,
		   int room, char **log);
// Resident warps of groups of `items` on a compute unit, in percent of the maximum.
int target_occupancy(const struct target *, const struct usage *, int items);

#endif
