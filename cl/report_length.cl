// SPDX-License-Identifier: Apache-2.0
// Checks device-side lengths, `count` of them `step` apart: reports the first that is outside
// 0..limit. One item.
#include "report.cl"

KERNEL void report_length(GLOBAL const uchar *from, ulong from_at, long count, long step,
	long limit REPORT_PARAMS)
{
	for (long i = 0; i < count && !GLOBAL_ID(0); i++) {
		long value = ((GLOBAL const long *)(from + from_at))[i * step];
		if (value >= 0 && value <= limit)
			continue;
		REPORT_AT->value = value;
		REPORT_AT->limit = limit;
		report_bad(REPORT_AT, 0);
		return;
	}
}
