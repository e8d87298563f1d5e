// SPDX-License-Identifier: Apache-2.0
// Reports: how a kernel records that it found a value which its op rejects. The host side is
// report.c of backends/gpu.
#include "prologue.h"

struct report {
	// first: smallest position, all bits set: no report; count: number counted - 1
	uint first, count;
	long value, limit;         // written only by kernels that report from a single item
};

#define REPORT_PARAMS , GLOBAL uchar *reports, ulong report_slot
#define REPORT_AT ((GLOBAL struct report *)reports + report_slot)

FN void report_bad(GLOBAL struct report *to, ulong position)
{
	ATOMIC_MIN(&to->first, position < 0xffffffffu ? (uint)position : 0xfffffffeu);
}

FN bool has_report(GLOBAL const struct report *of)
{
	return of->first != 0xffffffffu;
}
