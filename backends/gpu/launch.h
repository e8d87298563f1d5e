// SPDX-License-Identifier: Apache-2.0
// How an op runs: prepare records its launches, with kernels, sizes and arguments, and each run sends
// them off.  What only a run knows stands in the record by the operand's number: segments, offsets and
// values.  So views have, while launches are recorded, a mark for a segment and the offset from where
// they will begin; a view made of another one may begin further on.
#ifndef YK_GPU_LAUNCH_H
#define YK_GPU_LAUNCH_H

#include "gpu.h"

enum yk_gpu_report_kind {
	YK_GPU_INDEX,  // the index at a position is not in 0..most
	YK_GPU_FINITE, // the element at a position, of `most`, is infinite or no number
	YK_GPU_START,  // the kernel's value, of the axis that is the position, is not in 0..its most
	YK_GPU_LENGTH, // the same, of no axis
	YK_GPU_CHAIN,  // z or an element of the row at a position is refused; counts rows computed again
	YK_GPU_GROUPS  // the group at a position begins at the kernel's value, which is not in `its most`..most
};

// What an op has to complain of, if a kernel says so.
struct yk_gpu_report {
	int kind;
	const char *op; // static
	uint64_t step;
	int64_t most;
};

struct yk_gpu_record {
	struct yk_gpu_device *device;
	const struct yk_gpu_op *kind;
	uint32_t impl;
	struct yoke_op op;           // with marks
	const struct yoke_op *bound; // the op that is run, where launches are recorded for it; else NULL
	uint64_t workspace;
	// Set by who records: the launches hold only for the operands' places in `bound`, and are recorded
	// again when those change.
	bool placed;
	// At every run, before the launches: sets the part, see yk_gpu_part, or refuses.
	int (*bind)(const struct yoke_op *, struct yoke_view *part);
	struct yk_gpu_report report; // .op is NULL: none
	int err; // of recording
	// The launch that is being recorded: its kernel, the next argument, the first error and whose it is,
	// where those of runs begin, and the last struct.
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

// Says what workspace is wanted, of which op->workspace then is a view.
void yk_gpu_workspace(struct yk_gpu_record *, uint64_t bytes);
// A launch of the kernel begins: its arguments follow, then yk_gpu_launch, or nothing is launched.
void yk_gpu_begin(struct yk_gpu_record *, const struct yk_gpu_entry *kernel);
void yk_gpu_arg_word(struct yk_gpu_record *, uint64_t word);
// Of a BUFFER view.
void yk_gpu_arg_segment(struct yk_gpu_record *, const struct yoke_view *);
// Of a BUFFER view, or the bits of a SCALAR one.
void yk_gpu_arg_offset(struct yk_gpu_record *, const struct yoke_view *);
// Both of them, of a BUFFER.
void yk_gpu_arg_view(struct yk_gpu_record *, const struct yoke_view *);
// The same, or, when it is absent, of one that stands in and is not read.
void yk_gpu_arg_view_or(struct yk_gpu_record *, const struct yoke_view *, const struct yoke_view *stand_in);
void yk_gpu_arg_mem(struct yk_gpu_record *, void *);
// A buffer of the record's own that holds these words, for kernels to read.
int yk_gpu_table(struct yk_gpu_record *, const uint64_t *words, size_t n, void **to);
// A struct of the kernel's, with the layout of C.
void yk_gpu_arg_struct(struct yk_gpu_record *, const void *from, size_t bytes);
// In the struct that is the last argument, at `at`, is a struct yk_gpu_number: the view's value, if it is a
// SCALAR.
void yk_gpu_arg_number(struct yk_gpu_record *, size_t at, const struct yoke_view *);
// What MAP_PARAMS stands for.
void yk_gpu_arg_map(struct yk_gpu_record *, const struct yoke_map_call *);
// The two parameters REPORT_PARAMS of cl/report.cl; the op's report is said by yk_gpu_reports.
void yk_gpu_arg_slot(struct yk_gpu_record *);
void yk_gpu_reports(struct yk_gpu_record *, int kind, const char *op, int64_t most);
// Items in whole groups; groups of 0: as the driver likes.
int yk_gpu_launch(struct yk_gpu_record *, uint32_t dims, const size_t *items, const size_t *group,
		  const char *name);
// In place of a kernel, a function that is called with a copy of data.
typedef int yk_gpu_call_fn(struct yk_gpu_queue *, const struct yoke_op *, const void *data);
int yk_gpu_call(struct yk_gpu_record *, yk_gpu_call_fn *, const void *data, size_t bytes);
// A view of the record's part, whose segment and offset `bind` sets, shaped as another.
struct yoke_view yk_gpu_part(const struct yk_gpu_record *, const struct yoke_view *of);
// The view of `bound` that a view stands for.
const struct yoke_view *yk_gpu_bound(const struct yk_gpu_record *, const struct yoke_view *);

// ---- handles; with the device open and its lock held ----

int yk_gpu_record_new(struct yk_gpu_device *, const struct yk_gpu_op *, const struct yoke_op *,
		      uint32_t impl, struct yk_gpu_record **);
int yk_gpu_record_run(struct yk_gpu_queue *, struct yk_gpu_record *, const struct yoke_op *);
void yk_gpu_record_free(struct yk_gpu_record *);

#endif
