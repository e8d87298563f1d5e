// SPDX-License-Identifier: Apache-2.0
// The tables of a report: which members of its objects are columns, and how they are printed.
#include "config.h"

#include "report/columns.h"

#define COLUMNS(name, title, ...) \
	static const struct yk_column name##_columns[] = { __VA_ARGS__ }; \
	const struct yk_report_columns yk_columns_##name = { \
		title, (int)(sizeof name##_columns / sizeof *name##_columns), name##_columns \
	}

COLUMNS(numbers, "Numbers", { "stage", "stage", YK_PLAIN }, { "name", "number", YK_PLAIN },
	{ "count", "lines", YK_COUNT }, { "first", "first", YK_BY_NAME },
	{ "last", "last", YK_BY_NAME }, { "min", "min", YK_BY_NAME }, { "max", "max", YK_BY_NAME },
	{ "min_step", "min at step", YK_PLAIN });
COLUMNS(phases, "Where the time went", { "phase", "phase", YK_PLAIN },
	{ "device", "device", YK_PLAIN }, { "seconds", "time", YK_SECONDS_OF },
	{ "share", "share", YK_SHARE_OF }, { "intervals", "intervals", YK_COUNT },
	{ "bytes", "bytes", YK_BYTES_OF }, { "bytes_per_s", "GB/s", YK_GB_PER_S },
	{ "flops", "GFLOP", YK_GFLOP }, { "flops_per_s", "GFLOP/s", YK_GFLOP_PER_S });
COLUMNS(bounds, "Maximum speedup if a phase took no time (Amdahl)", { "phase", "phase", YK_PLAIN },
	{ "at_best", "speedup", YK_PLAIN });
COLUMNS(kernels, "Kernels", { "op", "op", YK_PLAIN },
	{ "implementation", "implementation", YK_PLAIN }, { "device", "device", YK_PLAIN },
	{ "scope", "scope", YK_PLAIN }, { "calls", "calls", YK_COUNT },
	{ "seconds", "time", YK_SECONDS_OF }, { "share", "share", YK_SHARE_OF },
	{ "bytes", "bytes", YK_BYTES_OF }, { "bytes_per_s", "GB/s", YK_GB_PER_S },
	{ "flops", "GFLOP", YK_GFLOP }, { "flops_per_s", "GFLOP/s", YK_GFLOP_PER_S },
	{ "intensity", "FLOP/byte", YK_PLAIN });
COLUMNS(events, "Events", { "time", "time", YK_PLAIN }, { "step", "step", YK_PLAIN },
	{ "event", "event", YK_PLAIN }, { "text", "text", YK_PLAIN });
COLUMNS(changed, "Keys that differ from their defaults", { "key", "key", YK_PLAIN },
	{ "value", "value", YK_PLAIN }, { "default", "default", YK_PLAIN });

const char *yk_string_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));
	return s ? s : "";
}
