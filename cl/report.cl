// SPDX-License-Identifier: Apache-2.0
// Reports: how a kernel says that it met a value which its op refuses.  The host half is report.c of
// backends/gpu.
#include "prologue.h"

struct report {
	uint first, count; // the least position; all bits set: no complaint.  One less than what is counted
	long value, most;       // of a kernel's one item, where there is but one
};

#define REPORT_PARAMS , GLOBAL uchar *reports, ulong report_slot
#define REPORT_AT ((GLOBAL struct report *)reports + report_slot)

FN void complain(GLOBAL struct report *to, ulong position)
{
	ATOMIC_MIN(&to->first, position < 0xffffffffu ? (uint)position : 0xfffffffeu);
}

FN bool complained(GLOBAL const struct report *of)
{
	return of->first != 0xffffffffu;
}
