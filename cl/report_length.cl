// SPDX-License-Identifier: Apache-2.0
// A length on the device that an op takes: reported when it is not in 0..most.  One item.  Behind
// report.cl.
KERNEL void report_length(GLOBAL const uchar *from, ulong from_at, long most REPORT_PARAMS)
{
	long value = *(GLOBAL const long *)(from + from_at);

	if (GLOBAL_ID(0) || (value >= 0 && value <= most))
		return;
	REPORT_AT->value = value;
	REPORT_AT->most = most;
	complain(REPORT_AT, 0);
}
