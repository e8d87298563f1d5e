// SPDX-License-Identifier: Apache-2.0
// Device-side error reports: a kernel that finds a value its op rejects writes a report, and the
// event after the op then fails with ERANGE.
#ifndef YK_GPU_REPORT_H
#define YK_GPU_REPORT_H

#include "launch.h"

// Reserves a report slot of the queue for one op; it is cleared before the op's kernels start.
int yk_gpu_report_slot(struct yk_gpu_queue *, const struct yk_gpu_report *, uint64_t *slot);
// The buffer that holds the queue's slots; NULL if none exists yet.
void *yk_gpu_report_slots(const struct yk_gpu_queue *);
// Records a launch that reports, as YK_GPU_LENGTH, a value outside 0..max in a BUFFER of i64 of
// rank 0 or 1.
int yk_gpu_report_length(struct yk_gpu_record *, const char *op, const struct yoke_view *,
			 int64_t max);

// ---- for queues and events ----

int yk_gpu_reports_new(struct yk_gpu_device *, struct yk_gpu_reports **);
void yk_gpu_reports_free(struct yk_gpu_reports *);
// Prepares the report slots of a graph before it is recorded. The queue uses them until the
// recording ends.
int yk_gpu_reports_ready(struct yk_gpu_queue *, struct yk_gpu_reports *of_graph);
// After a run of the graph: schedules reading the graph's reports along with the queue's.
int yk_gpu_reports_replay(struct yk_gpu_queue *, struct yk_gpu_reports *of_graph);
// Schedules reading all reports made so far; `number` is stored with the next event.
int yk_gpu_reports_mark(struct yk_gpu_queue *, uint64_t *number);
// Returns the first error among the reports up to `number`, whose event has completed. Each report
// is returned once.
int yk_gpu_reports_check(struct yk_gpu_reports *, uint64_t number);

#endif
