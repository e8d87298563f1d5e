// SPDX-License-Identifier: Apache-2.0
// HTML page of the results of `yoke bench`: times over sizes, and the speed of each device relative
// to the first.
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "report/html.h"
#include "report/svg.h"
#include "tool/bench.h"

enum { DEVICES = 24, SIZES = 64 }; // max plotted; `yoke bench resolvent` compares up to 19

static const char *string_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));
	return s ? s : "";
}

static double real_of(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

// Collects the cases of a suite and a device that have a size; returns their number.
static int sizes(const json_t *results, const char *suite, const char *device, double *x, double *seconds)
{
	const json_t *r;
	size_t i;
	int n = 0;
	json_array_foreach (results, i, r)
		if (n < SIZES && !strcmp(string_of(r, "suite"), suite) && !strcmp(string_of(r, "device"), device) &&
		    real_of(r, "size") > 0) {
			x[n] = real_of(r, "size");
			seconds[n++] = real_of(r, "median_s");
		}
	return n;
}

static void plots(FILE *to, const json_t *devices, const json_t *results, const char *suite)
{
	double x[DEVICES][SIZES], seconds[DEVICES][SIZES], times[DEVICES][SIZES];
	struct yk_curve time[DEVICES], ratio[DEVICES];
	const int n = json_array_size(devices) < DEVICES ? (int)json_array_size(devices) : DEVICES;
	int first = 0;
	char title[64];
	for (int d = 0; d < n; d++) {
		const char *name = string_of(json_array_get(devices, (size_t)d), "device");
		int found = sizes(results, suite, name, x[d], seconds[d]);
		first = d ? first : found;
		int both = found < first ? found : first;
		for (int i = 0; i < both; i++)
			times[d][i] = seconds[0][i] / seconds[d][i];
		time[d] = (struct yk_curve){ .name = name, .color = d, .n = (size_t)found, .x = x[d], .y = seconds[d] };
		ratio[d] = (struct yk_curve){ .name = name, .color = d, .n = (size_t)both, .x = x[d], .y = times[d] };
	}
	if (first < 2)
		return;
	fprintf(to, "<div class=\"plots\">\n");
	snprintf(title, sizeof title, "%s: time by size", suite);
	struct yk_plot p = { .name = title, .title = title, .x_label = "size", .y_label = "seconds", .x = YK_SCALE_LOG2,
			     .y = YK_SCALE_LOG10, .curves = n, .curve = time, .target = NAN };
	yk_svg_plot(to, &p);
	if (n > 1) {
		char faster[80];
		snprintf(faster, sizeof faster, "%s: speedup over %s", suite, ratio[0].name);
		p = (struct yk_plot){ .name = faster,
				      .title = faster,
				      .x_label = "size",
				      .y_label = "speedup",
				      .x = YK_SCALE_LOG2,
				      .curves = n - 1,
				      .curve = ratio + 1,
				      .target = 1 };
		yk_svg_plot(to, &p);
	}
	fprintf(to, "</div>\n");
}

// Prints the columns that have a value in at least one row.
static void cases(FILE *to, const json_t *results)
{
	static const struct {
		const char *key, *title;
	} all[] = { { "device", "device" }, { "suite", "suite" }, { "case", "case" }, { "median_s", "median, s" },
		    { "spread_s", "spread, s" }, { "samples", "timed" }, { "flops", "FLOP" }, { "bytes", "bytes" },
		    { "bytes_per_s", "bytes/s" }, { "roofline", "of copy" }, { "of_f32", "of f32's time" }, { "occupancy", "occupancy" },
		    { "apart", "apart" }, { "tokens", "tokens" }, { "samples_per_s", "samples/s" }, { "peak_bytes", "peak, bytes" } };
	const char *key[sizeof all / sizeof *all], *title[sizeof all / sizeof *all];
	const json_t *r;
	size_t i;
	int n = 0;
	for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
		bool some = false;
		json_array_foreach (results, i, r) {
			const json_t *v = json_object_get(r, all[k].key);
			some |= v && !json_is_null(v);
		}
		if (some) {
			key[n] = all[k].key;
			title[n++] = all[k].title;
		}
	}
	yk_html_table(to, results, n, key, title);
}

static void page(FILE *to, const json_t *devices, const json_t *ratios, const json_t *results)
{
	static const char *const device[] = { "device", "name", "units", "flops_per_s", "copy_bytes_per_s" };
	static const char *const device_title[] = { "device", "name", "units", "peak, FLOP/s", "copy, bytes/s" };
	static const char *const ratio[] = { "name",    "average", "minimum",
					     "maximum", "target",  "met" };
	static const char *const ratio_title[] = {
		"time ratio", "average", "minimum", "maximum", "target, all devices", "met"
	};
	const char *suite = "";
	const json_t *r;
	size_t i;
	yk_html_begin(to, "yoke bench");
	fprintf(to, "<h2>Devices and their limits, measured in the same run</h2>\n");
	yk_html_table(to, devices, 5, device, device_title);
	if (json_array_size(ratios)) {
		fprintf(to, "<h2>Targets</h2>\n");
		yk_html_table(to, ratios, 6, ratio, ratio_title);
	}
	json_array_foreach (results, i, r)
		if (strcmp(suite, string_of(r, "suite"))) {
			suite = string_of(r, "suite");
			plots(to, devices, results, suite);
		}
	fprintf(to, "<h2>Cases</h2>\n");
	cases(to, results);
	yk_html_end(to);
}

int yk_bench_page(const char *path, const json_t *devices, const json_t *ratios, const json_t *results)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *f = open_memstream(&text, &bytes);
	if (!f)
		return yk_fail(YOKE_ENOMEM, "out of memory for the page");
	page(f, devices, ratios, results);
	int e = fclose(f) < 0 ? yk_fail(YOKE_ENOMEM, "out of memory for the page") : yk_file_write(path, text, bytes);
	free(text);
	return e;
}
