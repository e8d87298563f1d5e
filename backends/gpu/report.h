// SPDX-License-Identifier: Apache-2.0
// Reports of kernels: values that an op refuses are found on the device, and make the event that
// stands for the op fail with ERANGE.
#ifndef YK_GPU_REPORT_H
#define YK_GPU_REPORT_H

#include "launch.h"

// A place of the queue's for what one op has to complain of, clear when its kernels start.
int yk_gpu_report_slot(struct yk_gpu_queue *, const struct yk_gpu_report *, uint64_t *slot);
// The buffer of those places, when there is one.
void *yk_gpu_report_slots(const struct yk_gpu_queue *);
// Records a launch that reports, as YK_GPU_LENGTH, what of a BUFFER of i64, of rank 0 or 1, is not in 0..most.
int yk_gpu_report_length(struct yk_gpu_record *, const char *op, const struct yoke_view *, int64_t most);

// ---- for queues and events ----

int yk_gpu_reports_new(struct yk_gpu_device *, struct yk_gpu_reports **);
void yk_gpu_reports_free(struct yk_gpu_reports *);
// Makes room for those of a graph, before it is recorded; they are the queue's until it is.
int yk_gpu_reports_ready(struct yk_gpu_queue *, struct yk_gpu_reports *of_graph);
// Behind a run of the graph: has its reports read, as the queue's.
int yk_gpu_reports_replay(struct yk_gpu_queue *, struct yk_gpu_reports *of_graph);
// Has all reports so far read; their number goes with the event marked next.
int yk_gpu_reports_mark(struct yk_gpu_queue *, uint64_t *number);
// The first complaint up to a number whose event is over; each is made once.
int yk_gpu_reports_check(struct yk_gpu_reports *, uint64_t number);

#endif
