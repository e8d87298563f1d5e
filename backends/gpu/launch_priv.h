// SPDX-License-Identifier: Apache-2.0
// The recorded launches of an op, as launch.c builds them and record.c runs them.
#ifndef YK_GPU_LAUNCH_PRIV_H
#define YK_GPU_LAUNCH_PRIV_H

#include "launch.h"

enum yk_gpu_arg_kind {
	YK_GPU_ARG_BYTES,   // bytes stored in `data`
	YK_GPU_ARG_SEGMENT, // buffer of an operand's segment
	YK_GPU_ARG_OFFSET,  // offset of an operand, plus `word`
	YK_GPU_ARG_SLOTS,   // the buffer of the queue's reports
	YK_GPU_ARG_SLOT     // the op's slot number in that buffer
};

// An argument that differs between runs. Constant arguments are set in the kernel when its launch
// is recorded.
struct yk_gpu_arg {
	uint8_t kind;
	bool set;         // the kernel's argument currently is `now`
	uint32_t index;
	uint32_t operand; // YK_GPU_ARG_BYTES: number of bytes
	uint64_t word;    // YK_GPU_ARG_BYTES: their offset in `data`
	uint64_t now;
};

// Each launch owns a kernel object, because setting an argument of a driver's kernel takes longer
// than finding that it is unchanged.
struct yk_gpu_launch {
	const struct yk_gpu_entry *entry;
	void *kernel;
	yk_gpu_call_fn *call; // called instead of a kernel; its data are at offset `arg`
	const char *name;
	size_t arg, args;
	uint32_t dims;
	size_t items[3], group[3];
};

// A struct yk_gpu_number in `data` that holds the value of a SCALAR operand.
struct yk_gpu_number_at {
	size_t at;
	uint32_t operand;
};

struct yk_gpu_list {
	void *at;
	size_t n, cap;
};

struct yk_gpu_launches {
	struct yk_gpu_list launch, arg, number, data, table;
	struct yk_gpu_list spare; // launches of the previous recording, whose kernels are reused
	uint64_t released; // the device's count when segments were last set
	// Addresses of the operands that the launches were recorded for, if they depend on them.
	struct yk_gpu_position {
		const void *segment;
		uint64_t offset;
	} *place;
};

// The marker segment that an operand's views have during recording; encodes the operand's number.
static inline void *yk_gpu_mark_of(uint32_t operand)
{
	return (void *)(uintptr_t)(operand + 1);
}

// Frees the kernel of a launch that was begun but not completed.
void yk_gpu_abort_launch(struct yk_gpu_record *);
// The error of setting an argument of the kernel `name`.
int yk_gpu_arg_failed(const struct yk_gpu_device *, uint32_t index, const char *name, int code);

#endif
