// SPDX-License-Identifier: Apache-2.0
// Formats numbers with units for people.
#include "config.h"

#include "report/quantity.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"

json_t *yk_summary_real(double x)
{
	char text[32];
	if (!isfinite(x))
		return json_null();
	yk_snprintf(text, sizeof text, "%.6g", x);
	return json_real(yk_strtod(text, NULL));
}

const char *yk_summary_number(const json_t *j, char to[32])
{
	if (json_is_integer(j))
		snprintf(to, 32, "%lld", (long long)json_integer_value(j));
	else if (json_is_real(j))
		yk_snprintf(to, 32, "%.9g", json_real_value(j));
	else
		snprintf(to, 32, "n/a");
	return to;
}

struct scale {
	double from, size; // used from this value on; divides the value
	const char *unit;
};

// Digits after the point: three significant digits in all, at most two after the point.
static int digits_of(double x)
{
	x = fabs(x);
	return x >= 99.95 || x == 0 ? 0 : x >= 9.995 ? 1 : 2;
}

// scale: from the largest unit to the smallest.
static const char *scaled(double x, const struct scale *s, char to[YK_QUANTITY_TEXT])
{
	while (s[1].unit && fabs(x) < s->from)
		s++;
	const double v = x / s->size;
	// small integers, such as 2 B, have no digits after the point
	const int digits = v == floor(v) && s->size == 1 && fabs(v) < 1e4 ? 0 : digits_of(v);
	const char *blank = *s->unit ? " " : "";
	if (v != 0 && fabs(v) < 0.0995)
		yk_snprintf(to, YK_QUANTITY_TEXT, "%.2g%s%s", v, blank, s->unit);
	else
		yk_snprintf(to, YK_QUANTITY_TEXT, "%.*f%s%s", digits, v, blank, s->unit);
	return to;
}

static const char *plain(double x, char to[YK_QUANTITY_TEXT])
{
	const bool whole = x == floor(x) && fabs(x) < 1e15;
	yk_snprintf(to, YK_QUANTITY_TEXT, whole ? "%.0f" : "%.4g", x);
	return to;
}

static const char *duration(double s, char to[YK_QUANTITY_TEXT])
{
	static const struct scale short_time[] = { { 1, 1, "s" },
						   { 1e-4, 1e-3, "ms" },
						   { 1e-7, 1e-6, "µs" },
						   { 0, 1e-9, "ns" },
						   { 0, 0, NULL } };
	const long long whole = (long long)(s + 0.5);
	if (s == 0)
		snprintf(to, YK_QUANTITY_TEXT, "0 s");
	else if (!(s >= 119.5 && s < 1e15))
		return scaled(s, short_time, to);
	else if (whole < 3600)
		snprintf(to, YK_QUANTITY_TEXT, "%lld min %lld s", whole / 60, whole % 60);
	else if (whole < 172800)
		snprintf(to, YK_QUANTITY_TEXT, "%lld h %lld min", whole / 3600, whole % 3600 / 60);
	else
		snprintf(to, YK_QUANTITY_TEXT, "%lld d %lld h", whole / 86400,
			 whole % 86400 / 3600);
	return to;
}

const char *yk_quantity_text(enum yk_quantity q, double x, char to[YK_QUANTITY_TEXT])
{
	static const struct scale count[] = { { 1e12, 1e12, "T" }, { 1e9, 1e9, "G" },
					      { 1e6, 1e6, "M" },   { 1e4, 1e3, "k" },
					      { 0, 1, "" },        { 0, 0, NULL } };
	static const struct scale bytes[] = { { 0x1p40, 0x1p40, "TiB" },
					      { 0x1p30, 0x1p30, "GiB" },
					      { 0x1p20, 0x1p20, "MiB" },
					      { 0x1p10, 0x1p10, "KiB" },
					      { 0, 1, "B" },
					      { 0, 0, NULL } };
	static const struct scale rate[] = { { 1e12, 1e12, "T/s" }, { 1e9, 1e9, "G/s" },
					     { 1e6, 1e6, "M/s" },   { 1e4, 1e3, "k/s" },
					     { 0, 1, "/s" },        { 0, 0, NULL } };
	static const struct scale hertz[] = {
		{ 1e9, 1e9, "GHz" }, { 1e6, 1e6, "MHz" }, { 0, 1, "Hz" }, { 0, 0, NULL }
	};
	static const struct scale percent[] = { { 0, 0.01, "%" }, { 0, 0, NULL } };
	static const struct scale giga[] = { { 0, 1e9, "" }, { 0, 0, NULL } };
	static const struct scale watts[] = { { 0, 1, "W" }, { 0, 0, NULL } };
	static const struct scale celsius[] = { { 0, 1, "°C" }, { 0, 0, NULL } };
	if (!isfinite(x)) {
		snprintf(to, YK_QUANTITY_TEXT, "n/a");
		return to;
	}
	switch (q) {
	case YK_COUNT: return scaled(x, count, to);
	case YK_BYTES_OF: return scaled(x, bytes, to);
	case YK_SECONDS_OF: return duration(x, to);
	case YK_SHARE_OF: return scaled(x, percent, to);
	case YK_RATE: return scaled(x, rate, to);
	case YK_GB_PER_S:
	case YK_GFLOP_PER_S:
	case YK_GFLOP: return scaled(x, giga, to);
	case YK_WATTS: return scaled(x, watts, to);
	case YK_CELSIUS: return scaled(x, celsius, to);
	case YK_HERTZ: return scaled(x, hertz, to);
	case YK_PLAIN:
	case YK_BY_NAME: break;
	}
	return plain(x, to);
}

enum yk_quantity yk_quantity_of(const char *name)
{
	static const struct {
		const char *end;
		enum yk_quantity quantity;
	} ends[] = {
		{ "_per_s", YK_RATE },
		{ "_bytes", YK_BYTES_OF },
		{ "_s", YK_SECONDS_OF },
		{ "_hz", YK_HERTZ },
		{ "_w", YK_WATTS },
		{ "temp_c", YK_CELSIUS },
		{ "util", YK_SHARE_OF },
		{ "rss", YK_BYTES_OF },
		{ "rss_peak", YK_BYTES_OF },
		{ "pool_allocated", YK_BYTES_OF },
		{ "pool_peak", YK_BYTES_OF },
		{ "pool_reserved", YK_BYTES_OF },
		{ "mem_used", YK_BYTES_OF },
		{ "mem_total", YK_BYTES_OF },
		{ "memory_total", YK_BYTES_OF },
		{ "memory_available", YK_BYTES_OF },
		{ "memory_limit", YK_BYTES_OF },
		{ "memory_used", YK_BYTES_OF },
		{ "seconds", YK_SECONDS_OF },
		{ "wall", YK_SECONDS_OF },
		{ "waited", YK_SECONDS_OF },
		{ "bytes", YK_BYTES_OF },
		{ "bytes_up", YK_BYTES_OF },
		{ "bytes_down", YK_BYTES_OF },
		{ "fan", YK_SHARE_OF },
		{ "tokens", YK_COUNT },
		{ "parameters", YK_COUNT },
		{ "throttled", YK_SECONDS_OF },
	};
	const size_t n = strlen(name);
	if (!strcmp(name, "cpu") || !strcmp(name, "host.cpu") ||
	    !strncmp(name, "host.pressure_", 14))
		return YK_SHARE_OF;
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		const size_t m = strlen(ends[i].end);
		// the end of a word: after a dot or from the beginning, unless it is a suffix
		if (n >= m && !strcmp(name + n - m, ends[i].end) &&
		    (*ends[i].end == '_' || n == m || strchr("._", name[n - m - 1])))
			return ends[i].quantity;
	}
	return YK_PLAIN;
}
