// SPDX-License-Identifier: Apache-2.0
// Records an op's kernel launches once, so that each run only patches addresses and values and
// launches.
// During recording the segment of each operand's view is a marker that holds the operand's number,
// and offsets count from the operand's start. A run replaces them by its segments, offsets and
// scalar values. Views derived from an operand keep the marker with a larger offset.
#ifndef YK_GPU_LAUNCH_H
#define YK_GPU_LAUNCH_H

#include "gpu.h"

enum yk_gpu_report_kind {
	YK_GPU_INDEX,  // the index at a position is not in 0..max
	YK_GPU_FINITE, // the element at a position, of `max`, is infinite or NaN
	// a start index reported by the kernel, for the axis `position`, is not in 0..the kernel's
	// max
	YK_GPU_START,
	YK_GPU_LENGTH, // the same, for a length without an axis
	// z or an element of the row at a position was rejected; counts rows computed again
	YK_GPU_CHAIN,
	// the group at a position begins at an offset, reported by the kernel, outside [kernel's
	// limit, max]
	YK_GPU_GROUPS,
	// the row of the table of the query at a position, or one of its pages, does not exist
	YK_GPU_PAGES,
	// the length or a target of the sequence at a position, of `max`, is out of range
	YK_GPU_SEQUENCES
};

// The error that an op raises if one of its kernels reports a bad value.
struct yk_gpu_report {
	int kind;
	const char *op; // static
	uint64_t step;
	int64_t max;
};

struct yk_gpu_record {
	struct yk_gpu_device *device;
	const struct yk_gpu_op *kind;
	uint32_t impl;
	struct yoke_op op;           // its views hold markers
	// the op that is run, while launches are recorded for it; otherwise NULL
	const struct yoke_op *bound;
	uint64_t workspace;
	// Set by an op's record function: the launches depend on the operands' layout in `bound`
	// and are recorded again if it changes.
	bool placed;
	// Called at every run before the launches: sets the view returned by yk_gpu_part, or
	// refuses the op.
	int (*bind)(const struct yoke_op *, struct yoke_view *part);
	struct yk_gpu_report report; // .op is NULL: reports nothing
	int err; // error of recording
	// State of the launch being recorded: kernel, next argument, the first error (code) and its
	// argument (bad), where its per-run arguments begin, and the last struct argument.
	const struct yk_gpu_entry *entry;
	void *kernel;
	uint32_t args, bad;
	int code;
	size_t args_at;
	const void *from;
	size_t bytes, bytes_at;
	struct yk_gpu_launches *launches;
};

// ---- recording ----

// Requests workspace; op->workspace then is a view of it.
void yk_gpu_workspace(struct yk_gpu_record *, uint64_t bytes);
// Begins a launch of the kernel. Its arguments follow, then yk_gpu_launch; without that nothing is
// launched.
void yk_gpu_begin(struct yk_gpu_record *, const struct yk_gpu_entry *kernel);
void yk_gpu_arg_word(struct yk_gpu_record *, uint64_t word);
// The segment of a BUFFER view.
void yk_gpu_arg_segment(struct yk_gpu_record *, const struct yoke_view *);
// The offset of a BUFFER view, or the bits of a SCALAR one.
void yk_gpu_arg_offset(struct yk_gpu_record *, const struct yoke_view *);
// Both segment and offset of a BUFFER view.
void yk_gpu_arg_view(struct yk_gpu_record *, const struct yoke_view *);
// The same, but if the view is absent, passes `dummy`, which the kernel does not read.
void yk_gpu_arg_view_or(struct yk_gpu_record *, const struct yoke_view *,
			const struct yoke_view *dummy);
void yk_gpu_arg_mem(struct yk_gpu_record *, void *);
// Records a MAP op, alone or as part of another op.
int yk_gpu_map_record(struct yk_gpu_record *, const struct yoke_op *);
// Records a copy of a view to one of the same dims, as part of another op.
int yk_gpu_move_record(struct yk_gpu_record *, const struct yoke_op *, const struct yoke_view *from,
		       const struct yoke_view *to);
// Creates a buffer, owned by the record, that holds these words for kernels to read.
int yk_gpu_table(struct yk_gpu_record *, const uint64_t *words, size_t n, void **to);
// Passes a struct by value, in C layout.
void yk_gpu_arg_struct(struct yk_gpu_record *, const void *from, size_t bytes);
// Marks that the last struct argument contains, at offset `at`, a struct yk_gpu_number, which each
// run sets to the view's value if the view is a SCALAR.
void yk_gpu_arg_number(struct yk_gpu_record *, size_t at, const struct yoke_view *);
// Passes the arguments declared by MAP_PARAMS; the op's views hold markers.
void yk_gpu_arg_map(struct yk_gpu_record *, const struct yoke_op *, const struct yoke_map_call *);
// Passes the two arguments declared by REPORT_PARAMS (cl/report.cl). yk_gpu_reports declares the
// op's report.
void yk_gpu_arg_slot(struct yk_gpu_record *);
void yk_gpu_reports(struct yk_gpu_record *, int kind, const char *op, int64_t max);
// `items` must be a multiple of `group`; group 0: driver's choice.
int yk_gpu_launch(struct yk_gpu_record *, uint32_t dims, const size_t *items, const size_t *group,
		  const char *name);
// Records a call of a host function, with a copy of data, instead of a kernel launch.
typedef int yk_gpu_call_fn(struct yk_gpu_queue *, const struct yoke_op *, const void *data);
int yk_gpu_call(struct yk_gpu_record *, yk_gpu_call_fn *, const void *data, size_t bytes);
// Returns a view shaped like `of`, whose segment and offset `bind` sets at every run.
struct yoke_view yk_gpu_part(const struct yk_gpu_record *, const struct yoke_view *of);
// Maps a view with a marker to the matching view of `bound`.
const struct yoke_view *yk_gpu_bound(const struct yk_gpu_record *, const struct yoke_view *);

// ---- handles; with the device open and its lock held ----

int yk_gpu_record_new(struct yk_gpu_device *, const struct yk_gpu_op *, const struct yoke_op *,
		      uint32_t impl, struct yk_gpu_record **);
int yk_gpu_record_run(struct yk_gpu_queue *, struct yk_gpu_record *, const struct yoke_op *);
void yk_gpu_record_free(struct yk_gpu_record *);

#endif
