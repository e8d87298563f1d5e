// SPDX-License-Identifier: Apache-2.0
// Reports of kernels: values that an op refuses are found on the device, and make the event that
// stands for the op fail with ERANGE.
#ifndef YK_OPENCL_REPORT_H
#define YK_OPENCL_REPORT_H

#include "opencl.h"

enum yk_cl_report_kind {
	YK_CL_INDEX,  // the index at a position is not in 0..most
	YK_CL_FINITE, // the element at a position, of `most`, is infinite or no number
	YK_CL_START,  // the kernel's value, of the axis that is the position, is not in 0..its most
	YK_CL_LENGTH  // the same, of no axis
};

struct yk_cl_report {
	int kind;
	const char *op; // static
	uint64_t step;
	int64_t most;
};

// A place of the queue's for what one op has to complain of, clear when its kernels start.
int yk_cl_report_slot(struct yk_cl_queue *, const struct yk_cl_report *, uint64_t *slot);
// The two parameters REPORT_PARAMS of cl/report.cl.
void yk_cl_arg_slot(struct yk_cl_args *, const struct yk_cl_queue *, uint64_t slot);

// Builds what the next one launches.
int yk_cl_report_prepare(struct yk_cl_device *);
// Reports, as YK_CL_LENGTH, a BUFFER of one i64 that is not in 0..most.
int yk_cl_report_length(struct yk_cl_queue *, const char *op, uint64_t step,
			const struct yoke_view *, int64_t most);

// ---- for queues and events ----

int yk_cl_reports_new(struct yk_cl_device *, struct yk_cl_reports **);
struct yk_cl_reports *yk_cl_reports_ref(struct yk_cl_reports *);
void yk_cl_reports_unref(struct yk_cl_reports *);
// Has all reports so far read; their number goes with the event marked next.
int yk_cl_reports_mark(struct yk_cl_queue *, uint64_t *number);
// The first complaint up to a number whose event is over; each is made once.
int yk_cl_reports_check(struct yk_cl_reports *, uint64_t number);

#endif
