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

enum {
	DEVICES = 24,
	SIZES = 64,
	WIDTH = 380,
	HEIGHT = 250
}; // max plotted; `yoke bench resolvent` compares up to 19

static double real_of(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

// Collects the cases of a suite and a device that have a size; returns their number.
static int sizes(const json_t *results, const char *suite, const char *device, double *x,
		 double *seconds)
{
	const json_t *r;
	size_t i;
	int n = 0;
	json_array_foreach (results, i, r)
		if (n < SIZES && !strcmp(yk_string_of(r, "suite"), suite) &&
		    !strcmp(yk_string_of(r, "device"), device) && real_of(r, "size") > 0) {
			x[n] = real_of(r, "size");
			seconds[n++] = real_of(r, "median_s");
		}
	return n;
}

// What the sizes of a suite count.
static const char *x_label(const char *suite)
{
	static const char *const labels[][2] = { { "contract", "n (n x n x n)" },
						 { "scaling", "batch" },
						 { "batch", "batch" },
						 { "resolvent", "length" } };
	for (size_t i = 0; i < sizeof labels / sizeof *labels; i++)
		if (!strcmp(suite, labels[i][0]))
			return labels[i][1];
	return "size";
}

static void plots(FILE *to, const json_t *devices, const json_t *results, const char *suite)
{
	double x[DEVICES][SIZES], seconds[DEVICES][SIZES], times[DEVICES][SIZES];
	struct yk_curve time[DEVICES], ratio[DEVICES];
	const int n = json_array_size(devices) < DEVICES ? (int)json_array_size(devices) : DEVICES;
	int first = 0;
	char title[64];
	for (int d = 0; d < n; d++) {
		const char *name = yk_string_of(json_array_get(devices, (size_t)d), "device");
		int found = sizes(results, suite, name, x[d], seconds[d]);
		first = d ? first : found;
		int both = found < first ? found : first;
		for (int i = 0; i < both; i++)
			times[d][i] = seconds[0][i] / seconds[d][i];
		time[d] = (struct yk_curve){
			.name = name, .color = d, .n = (size_t)found, .x = x[d], .y = seconds[d]
		};
		ratio[d] = (struct yk_curve){
			.name = name, .color = d, .n = (size_t)both, .x = x[d], .y = times[d]
		};
	}
	if (first < 2)
		return;
	fprintf(to, "<div class=\"plots\">\n");
	snprintf(title, sizeof title, "%s: time by size", suite);
	struct yk_plot p = { .name = title,
			     .title = title,
			     .x_label = x_label(suite),
			     .y_label = "time",
			     .y_unit = YK_UNIT_SECONDS,
			     .x = YK_SCALE_LOG2,
			     .y = YK_SCALE_LOG10,
			     .curves = n,
			     .curve = time,
			     .target = NAN,
			     .width = WIDTH,
			     .height = HEIGHT };
	yk_svg_plot(to, &p);
	if (n > 1) {
		char faster[80];
		snprintf(faster, sizeof faster, "%s: speedup over %s", suite, ratio[0].name);
		p = (struct yk_plot){ .name = faster,
				      .title = faster,
				      .x_label = x_label(suite),
				      .y_label = faster,
				      .x = YK_SCALE_LOG2,
				      .curves = n - 1,
				      .curve = ratio + 1,
				      .target = 1,
				      .width = WIDTH,
				      .height = HEIGHT };
		yk_svg_plot(to, &p);
	}
	fprintf(to, "</div>\n");
}

// Whether a value of a column is known in at least one row. A count of 0 is unknown.
static bool is_known(const json_t *results, const char *key)
{
	const json_t *r;
	size_t i;
	json_array_foreach (results, i, r) {
		const json_t *v = json_object_get(r, key);
		if (json_is_string(v) || json_is_boolean(v) || json_number_value(v) != 0)
			return true;
	}
	return false;
}

// Prints the columns that have a value in at least one row.
static void cases(FILE *to, const json_t *results)
{
	static const struct yk_column all[] = {
		{ "device", "device", YK_PLAIN },
		{ "suite", "suite", YK_PLAIN },
		{ "case", "case", YK_PLAIN },
		{ "median_s", "median", YK_SECONDS_OF },
		{ "spread_s", "spread", YK_SECONDS_OF },
		{ "samples", "timed", YK_PLAIN },
		{ "flops_per_s", "GFLOP/s", YK_GFLOP_PER_S },
		{ "of_peak", "of peak", YK_SHARE_OF },
		{ "bytes_per_s", "GB/s", YK_GB_PER_S },
		{ "of_copy", "of copy", YK_SHARE_OF },
		{ "roofline", "of copy", YK_SHARE_OF },
		{ "flops", "GFLOP", YK_GFLOP },
		{ "bytes", "bytes", YK_BYTES_OF },
		{ "of_f32", "of f32's time", YK_SHARE_OF },
		{ "occupancy", "occupancy", YK_SHARE_OF },
		{ "apart", "apart", YK_PLAIN },
		{ "tokens", "tokens", YK_COUNT },
		{ "samples_per_s", "samples/s", YK_COUNT },
		{ "peak_bytes", "peak memory", YK_BYTES_OF },
	};
	struct yk_column known[sizeof all / sizeof *all];
	int n = 0;
	for (size_t k = 0; k < sizeof all / sizeof *all; k++)
		if (is_known(results, all[k].key))
			known[n++] = all[k];
	yk_html_table(to, "Cases", results, n, known);
}

// A suite's plots and its cases.
static void suite_of(FILE *to, const json_t *devices, const json_t *results, const char *suite)
{
	json_t *list = json_array(), *r;
	size_t i;
	json_array_foreach (results, i, r)
		if (!strcmp(yk_string_of(r, "suite"), suite))
			json_array_append(list, r);
	fprintf(to, "<h2>");
	yk_xml_text(to, suite);
	fprintf(to, "</h2>\n");
	plots(to, devices, results, suite);
	cases(to, list);
	json_decref(list);
}

// The results with the rates and their shares of the limits of their devices, which the caller
// releases. A case of which no flops or bytes are counted has no such rate.
static json_t *with_rates(const json_t *devices, const json_t *results, bool *above)
{
	static const struct {
		const char *count, *rate, *limit, *share;
	} rates[] = { { "flops", "flops_per_s", "flops_per_s", "of_peak" },
		      { "bytes", "bytes_per_s", "copy_bytes_per_s", "of_copy" } };
	json_t *list = json_deep_copy(results), *r;
	const json_t *d;
	size_t i, k;
	*above = false;
	json_array_foreach (list, i, r) {
		if (real_of(r, "tokens") == 0)
			json_object_del(r, "tokens");
		for (int j = 0; j < 2; j++) {
			const double per_s = real_of(r, rates[j].count) / real_of(r, "median_s");
			if (real_of(r, rates[j].count) == 0) // not counted for this case
				json_object_del(r, rates[j].count);
			if (!(per_s > 0) || !isfinite(per_s))
				continue;
			json_object_set_new(r, rates[j].rate, json_real(per_s));
			json_array_foreach (devices, k, d) {
				const double share = per_s / real_of(d, rates[j].limit);
				if (strcmp(yk_string_of(d, "device"), yk_string_of(r, "device")) ||
				    !isfinite(share) || json_object_get(r, "roofline"))
					continue;
				json_object_set_new(r, rates[j].share, json_real(share));
			}
			*above |= j == 1 &&
				  fmax(real_of(r, rates[j].share), real_of(r, "roofline")) > 1;
		}
	}
	return list;
}

static void page(FILE *to, const json_t *devices, const json_t *ratios, const json_t *plain)
{
	static const struct yk_column device[] = {
		{ "device", "device", YK_PLAIN },
		{ "name", "name", YK_PLAIN },
		{ "units", "units", YK_PLAIN },
		{ "flops_per_s", "peak, GFLOP/s", YK_GFLOP_PER_S },
		{ "copy_bytes_per_s", "copy, GB/s", YK_GB_PER_S }
	};
	static const struct yk_column ratio[] = { { "name", "time ratio", YK_PLAIN },
						  { "average", "average", YK_PLAIN },
						  { "minimum", "minimum", YK_PLAIN },
						  { "maximum", "maximum", YK_PLAIN },
						  { "target", "target, all devices", YK_PLAIN },
						  { "met", "met", YK_PLAIN } };
	const char *suite = "";
	const json_t *r;
	size_t i;
	bool above;
	json_t *results = with_rates(devices, plain, &above);
	yk_html_begin(to, "yoke bench");
	fprintf(to, "<h1>yoke bench</h1>\n<h2>Devices and their limits, measured in the same "
		    "run</h2>\n");
	yk_html_table(to, "Devices", devices, 5, device);
	fprintf(to, "<p class=\"soft\">Peak: fp32 multiply-adds, two operations each. Copy: bytes "
		    "read and written by a copy in "
		    "memory.</p>\n");
	if (json_array_size(ratios)) {
		fprintf(to, "<h2>Targets</h2>\n");
		yk_html_table(to, "Targets", ratios, 6, ratio);
	}
	json_array_foreach (results, i, r)
		if (strcmp(suite, yk_string_of(r, "suite"))) {
			suite = yk_string_of(r, "suite");
			suite_of(to, devices, results, suite);
		}
	if (above)
		fprintf(to, "<p class=\"soft\">Rates above 100 %% of the copy come from caches, "
			    "which are faster than the memory "
			    "that the copy measures.</p>\n");
	yk_html_end(to);
	json_decref(results);
}

int yk_bench_page(const char *path, const json_t *devices, const json_t *ratios,
		  const json_t *results)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *f = open_memstream(&text, &bytes);
	if (!f)
		return yk_fail(YOKE_ENOMEM, "out of memory for the page");
	page(f, devices, ratios, results);
	int e = fclose(f) < 0 ? yk_fail(YOKE_ENOMEM, "out of memory for the page") :
				yk_file_write(path, text, bytes);
	free(text);
	return e;
}
