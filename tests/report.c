// SPDX-License-Identifier: Apache-2.0
// Tests reading runs and plotting them: lines against jansson's parse, incremental against
// complete reads, pixels against the formula of an axis.
#include "config.h"

#include <jansson.h>
#include <sys/stat.h>

#include "report/plots.h"
#include "report/svg.h"
#include "runs/flat.h"
#include "runs/read.h"
#include "tap.h"
#include "yoke.h"

// ---- lines ----

static void numbers(void)
{
	int n = tap_cases(20000, 2000000), bad = 0;
	for (int i = 0; i < n; i++) {
		char text[64];
		uint64_t bits = rnd();
		double want;
		memcpy(&want, &bits, 8);
		if (i % 3 == 0)
			want = rnd_real(-1, 1) * pow(10, (double)rnd_int(-30, 30));
		if (!isfinite(want))
			continue;
		snprintf(text, sizeof text, i % 2 ? "%.17g," : "%.9g,", want);
		want = strtod(text, NULL);
		const char *at = text;
		double got = yk_flat_number(&at, text + strlen(text));
		if ((memcmp(&got, &want, 8) || *at != ',') && bad++ < 3)
			diag("%s got %.17g", text, got);
	}
	ok(!bad, "%d numbers have strtod's bits", n);
}

static json_t *random_value(int depth)
{
	switch (rnd_int(0, depth > 3 ? 4 : 6)) {
	case 0: return json_integer(rnd_int(-1000000, 1000000));
	case 1: return json_real(rnd_real(-1e9, 1e9));
	case 2: return json_string("a \"text\" \\ with \n ü {[");
	case 3: return json_null();
	case 4: return rnd_int(0, 1) ? json_true() : json_false();
	case 5: {
		json_t *o = json_object();
		for (int64_t n = rnd_int(0, 4); n; n--) {
			char key[24];
			snprintf(key, sizeof key, rnd_int(0, 9) ? "k%d" : "q\"%dé",
				 (int)rnd_int(0, 99));
			json_object_set_new(o, key, random_value(depth + 1));
		}
		return o;
	}
	}
	json_t *a = json_array();
	for (int64_t n = rnd_int(0, 3); n; n--)
		json_array_append_new(a, random_value(depth + 1));
	return a;
}

// All numbers of a tree in order, with their paths.
static void walk(const json_t *v, const char *path, struct yk_flat *f, int *next, int *bad)
{
	char longer[256];
	const char *key;
	json_t *m;
	size_t i;
	if (json_is_object(v)) {
		json_object_foreach ((json_t *)(uintptr_t)v, key, m) {
			snprintf(longer, sizeof longer, "%s%s%s", path, *path ? "." : "", key);
			walk(m, longer, f, next, bad);
		}
	} else if (json_is_array(v)) {
		json_array_foreach (v, i, m) {
			snprintf(longer, sizeof longer, "%s%s%zu", path, *path ? "." : "", i);
			walk(m, longer, f, next, bad);
		}
	} else if (!json_is_string(v)) {
		double want = json_is_number(v) ? json_number_value(v) :
			      json_is_true(v)   ? 1 :
			      json_is_false(v)  ? 0 :
						  NAN;
		const struct yk_flat_pair *p = &f->pair[(*next)++];
		if (*next > f->n || p->bytes != strlen(path) || memcmp(p->name, path, p->bytes) ||
		    (isnan(want) ? !isnan(p->value) : p->value != want))
			++*bad;
	}
}

static void lines(void)
{
	int n = tap_cases(300, 100000), bad = 0;
	for (int i = 0; i < n; i++) {
		json_t *o = json_pack("{s:I, s:s}", "step", (json_int_t)i, "stage", "tr\"ain");
		struct yk_flat f;
		int next = 0, wrong = 0;
		for (int64_t k = rnd_int(0, 6); k; k--) {
			char key[24];
			snprintf(key, sizeof key, "m%d", (int)rnd_int(0, 99));
			json_object_set_new(o, key, random_value(1));
		}
		char *text = json_dumps(o, rnd_int(0, 1) ? JSON_COMPACT : JSON_ENSURE_ASCII);
		if (!yk_flat_scan(text, strlen(text), &f) || f.step != i ||
		    strcmp(f.stage, "tr\"ain"))
			wrong = 1;
		json_object_del(o, "step");
		json_object_del(o, "stage");
		walk(o, "", &f, &next, &wrong);
		if ((wrong || next != f.n) && bad++ < 3)
			diag("%s", text);
		// no prefix of it is a valid line
		size_t cut = (size_t)rnd_int(0, (int64_t)strlen(text) - 1);
		char *part = strndup(text, cut);
		bad += yk_flat_scan(part, cut, &f);
		free(part);
		free(text);
		json_decref(o);
	}
	ok(!bad, "%d lines equal jansson's parse, and no prefix of them is accepted", n);
	static const char *const hostile[] = {
		"",
		"{",
		"[]",
		"{}x",
		"{\"a\":}",
		"{\"a\":01}",
		"{\"a\":+1}",
		"{\"a\":1e}",
		"{\"a\":.5}",
		"{\"a\":NaN}",
		"{\"a\":\"\\ud800\",\"stage\":\"\\ud800\"}",
		"{\"a\" 1}",
		"{\"a\":1,}",
		"{\"a\":[[[[[[[[1]]]]]]]]}",
		"{\"stage\":\"\xff\"}",
		"{\"a\":tru}",
		"{\"a\":\"\\\"}",
		"nul",
		"{\"\\u0000\":1}",
		"{a:1}",
		"\x7f",
	};
	bad = 0;
	for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
		struct yk_flat f;
		char *text = strdup(hostile[i]); // so that a sanitizer sees its end
		if (yk_flat_scan(text, strlen(text), &f))
			bad++, diag("taken: %s", text);
		free(text);
	}
	ok(!bad, "an invalid line is refused");
}

// ---- a run, written in pieces ----

static char folder[4096];

static FILE *append(const char *name, const char *mode)
{
	char path[8192];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	return fopen(path, mode);
}

static void run(bool exact)
{
	enum { ROWS = 9000 };
	static double loss[ROWS], lr[ROWS];
	char *text = malloc(ROWS * 100);
	size_t bytes = 0, at = 0;
	struct yk_view *v;
	snprintf(folder, sizeof folder, "%s/report.%ld",
		 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", (long)getpid());
	ok(yk_view_open(folder, exact, &v) == YOKE_ENOENT, "a missing run: %s", yoke_error());
	yoke_error_clear();
	mkdir(folder, 0777);
	for (int i = 0; i < ROWS; i++) {
		loss[i] = (double)(float)rnd_real(0, 9);
		lr[i] = rnd_real(0, 1e-3);
		if (i % 100 == 50)
			bytes += (size_t)sprintf(text + bytes, "%s\n",
						 i % 200 == 50 ? "{\"torn\":" : "no line");
		bytes += (size_t)sprintf(text + bytes, "{\"step\":%d,\"loss\":%.9g", i, loss[i]);
		if (exact) // what was written of it
			loss[i] = strtod(strrchr(text + bytes - 24, 58) + 1, NULL);
		if (i % 2)
			bytes += (size_t)sprintf(text + bytes, ",\"lr\":%.17g", lr[i]);
		bytes += (size_t)sprintf(text + bytes, ",\"time\":%d.5,\"stage\":\"train\"}\n",
					 1000 + i);
	}
	FILE *f = append("metrics.jsonl", "w");
	fclose(f);
	if (!ok(yk_view_open(folder, exact, &v) == 0, "an empty run %s", yoke_error()))
		return;
	f = append("metrics.jsonl", "a");
	while (at < bytes) {
		size_t n = (size_t)rnd_int(1, 60000);
		n = n < bytes - at ? n : bytes - at;
		fwrite(text + at, n, 1, f);
		fflush(f);
		at += n;
		yk_view_poll(v);
	}
	const struct yk_view_table *t = yk_view_table(v, "train");
	int l = yk_view_column(t, "loss"), r = yk_view_column(t, "lr"), bad = 0;
	ok(t && t->rows == ROWS && v->foreign == ROWS / 100, "%zu rows, %llu foreign lines",
	   t ? t->rows : 0, (unsigned long long)v->foreign);
	double min = INFINITY;
	for (size_t i = 0; t && i < t->rows; i++) {
		double want = exact ? lr[i] : (double)(float)lr[i], got = yk_view_value(v, t, r, i);
		bad += yk_view_value(v, t, l, i) != loss[i] || yk_view_step(t, i) != (int64_t)i ||
		       yk_view_time(t, i) != 1000.5 + (double)i ||
		       (i % 2 ? got != want : !isnan(got));
		min = fmin(min, loss[i]);
	}
	ok(!bad && (float)t->column[l].min == (float)min &&
		   (float)t->column[l].last == (float)loss[ROWS - 1] &&
		   t->column[r].count == ROWS / 2,
	   "equal when read while written in parts, %s", exact ? "to the bit" : "as floats");
	// of each range of steps the minimum and the maximum
	enum { POINTS = 100 };
	double x[POINTS], y[POINTS];
	const struct yk_view_range steps = { YK_VIEW_BY_STEP, 1000, 7999, POINTS, 0 };
	const struct yk_view_range seconds = { YK_VIEW_BY_SECONDS, 0, 19, POINTS, 0 };
	size_t n = yk_view_series(v, t, l, &steps, x, y);
	bad = 0;
	for (size_t i = 0; i < n; i++)
		bad += y[i] != loss[(size_t)x[i]] || x[i] < 1000 || x[i] > 7999 ||
		       (i && x[i] < x[i - 1]);
	for (int p = 0; p < POINTS / 2; p++) {
		double low = INFINITY, high = -INFINITY;
		int found = 0;
		for (int i = 1000; i < 8000; i++) {
			int part = (int)((i - 1000) / (6999. / (POINTS / 2)));
			if ((part < POINTS / 2 ? part : POINTS / 2 - 1) != p)
				continue;
			low = fmin(low, loss[i]);
			high = fmax(high, loss[i]);
		}
		for (size_t i = 0; i < n; i++)
			found += y[i] == low || y[i] == high;
		bad += found < 2;
	}
	ok(n <= POINTS && !bad, "%zu points show the minimum and maximum of each range", n);
	n = yk_view_series(v, t, r, &seconds, x, y);
	ok(n == 10 && x[0] == 1 && x[9] == 19, "a short series shows all points");
	// the running mean over all rows from the first one, in any range and at any number of
	// points
	static double mean[ROWS];
	double sum = 0, weight = 0;
	for (int i = 0; i < ROWS; i++) {
		sum = 0.9 * sum + 0.1 * (exact ? loss[i] : (double)(float)loss[i]);
		weight = 0.9 * weight + 0.1;
		mean[i] = sum / weight;
	}
	bad = 0;
	for (int k = 0; k < 3; k++) {
		const struct yk_view_range range = { YK_VIEW_BY_STEP, k ? 5000 : 0,
						     k == 2 ? 5040 : ROWS, POINTS, 0.9 };
		n = yk_view_series(v, t, l, &range, x, y);
		bad += n < 41;
		for (size_t i = 0; i < n; i++)
			bad += fabs(y[i] - mean[(size_t)x[i]]) > 1e-12 * mean[(size_t)x[i]];
	}
	ok(!bad, "smoothing runs over all rows: a part of a curve equals the whole curve there");
	// another file in its place
	uint32_t generation = v->generation;
	fclose(f);
	f = append("metrics.jsonl", "w");
	fputs("{\"step\":1,\"val_loss\":2}\n", f);
	fclose(f);
	yk_view_poll(v);
	t = yk_view_table(v, "valid");
	ok(v->generation != generation && !yk_view_table(v, "train") && t && t->rows == 1,
	   "a truncated file is read anew");
	yk_view_close(v);
	char command[8300];
	snprintf(command, sizeof command, "rm -r '%s'", folder);
	ok(system(command) == 0, "%s", command);
	free(text);
}

// ---- plots ----

static double attribute(const char *svg, const char *name)
{
	char key[32];
	snprintf(key, sizeof key, " %s=\"", name);
	const char *at = strstr(svg, key);
	return at ? strtod(at + strlen(key), NULL) : NAN;
}

static double pixel(const char *svg, char axis, double v, enum yk_scale s)
{
	const bool x = axis == 'x';
	double a = attribute(svg, x ? "data-x0" : "data-y0"),
	       b = attribute(svg, x ? "data-x1" : "data-y1"),
	       from = attribute(svg, x ? "data-left" : "data-bottom"),
	       to = attribute(svg, x ? "data-right" : "data-top");
	if (s != YK_SCALE_LINEAR)
		a = log(a), b = log(b), v = log(v);
	return from + (v - a) / (b - a) * (to - from);
}

static void plot(enum yk_scale sx, enum yk_scale sy)
{
	enum { N = 40 };
	double x[N], y[N];
	for (int i = 0; i < N; i++) {
		x[i] = sx == YK_SCALE_LINEAR ? rnd_real(-5, 1000) : pow(10, rnd_real(-3, 5));
		y[i] = sy == YK_SCALE_LINEAR ? rnd_real(-1e-3, 1e-3) : pow(10, rnd_real(-9, 9));
	}
	y[3] = NAN;
	y[7] = sy == YK_SCALE_LINEAR ? INFINITY : -1;
	struct yk_curve c[2] = { { .name = "a<\"&'\x01\xff>", .n = N, .x = x, .y = y },
				 { .name = "b", .mark = YK_MARK_POINTS, .n = N, .x = x, .y = y } };
	struct yk_plot p = { .name = "n",
			     .title = "<script>",
			     .x_label = "x",
			     .y_label = "y",
			     .x = sx,
			     .y = sy,
			     .curves = 2,
			     .curve = c,
			     .target = NAN };
	char *svg = NULL;
	size_t bytes;
	FILE *f = open_memstream(&svg, &bytes);
	yk_svg_plot(f, &p);
	fclose(f);
	ok(!strstr(svg, "<script") && strstr(svg, "data-name=\"a&lt;&quot;&amp;&#39;??&gt;\""),
	   "names are escaped");
	const char *at = strstr(svg, "data-points=\""), *d = strstr(svg, " d=\"M"),
		   *circle = strstr(svg, "<circle");
	for (const char *q = svg; q && q < at;
	     q = strstr(q + 1, " d=\"M")) // the curve's, behind its points
		d = q;
	d = at ? strstr(at, " d=\"M") : NULL;
	at += strlen("data-points=\"");
	d += 4;
	int bad = !at || !d || !circle;
	for (int i = 0; i < N && !bad; i++) {
		char *end;
		double px = strtod(at, &end), py = strtod(end + 1, &end);
		at = end + 1;
		bad += fabs(px - x[i]) > 1e-8 * fabs(x[i]);
		if (i == 3 || i == 7)
			continue;
		bad += fabs(py - y[i]) > 1e-8 * fabs(y[i]);
		if (d[0] == 'h')
			d += 2;
		bad += (*d == 'M') != (i == 0 || i == 4 || i == 8);
		double gx = strtod(d + 1, &end), gy = strtod(end, &end);
		d = end;
		double wx = pixel(svg, 'x', x[i], sx), wy = pixel(svg, 'y', y[i], sy);
		bad += fabs(gx - wx) > 0.006 || fabs(gy - wy) > 0.006 || wx < 63.9 || wx > 706.1 ||
		       wy < 29.9 || wy > 256.1;
		bad += fabs(attribute(circle, "cx") - wx) > 0.006 ||
		       fabs(attribute(circle, "cy") - wy) > 0.006;
		circle = strstr(circle + 1, "<circle");
		if (bad)
			diag("point %d: (%g, %g) at (%.2f, %.2f), wanted (%.2f, %.2f)", i, x[i],
			     y[i], gx, gy, wx, wy);
	}
	ok(!bad, "scales %d, %d: the points read back, and lie where the axes say", sx, sy);
	free(svg);
}

// ---- curves of devices ----

static void write_to(const char *name, const char *text)
{
	FILE *f = append(name, "w");
	fputs(text, f);
	fclose(f);
}

static struct yk_view *run_with(const char *telemetry, const char *of_rank_1)
{
	struct yk_view *v = NULL;
	snprintf(folder, sizeof folder, "%s/devices.%ld",
		 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", (long)getpid());
	mkdir(folder, 0777);
	write_to("metrics.jsonl", "{\"step\":1,\"loss\":3,\"stage\":\"train\",\"time\":10}\n"
				  "{\"step\":2,\"val_loss\":4,\"stage\":\"valid\",\"time\":12}\n");
	write_to("telemetry.jsonl", telemetry);
	write_to("telemetry.1.jsonl", of_rank_1);
	yk_view_open(folder, false, &v);
	return v;
}

static int curves_of(struct yk_view *const *v, int n, const char *name, struct yk_plot_result *m)
{
	const struct yk_plot_options ask = {
		.from = -INFINITY, .to = INFINITY, .points = 100, .smooth = 0.9
	};
	struct yk_plot_kind kind;
	return yk_plot_find(n, v, name, &kind) && yk_plot_make(n, v, &kind, &ask, m) == 0 ?
		       m->plot.curves :
		       -1;
}

static void devices(void)
{
	static struct yk_plot_result m;
	char command[8300];
	struct yk_view *v = run_with(
		"{\"time\":10,\"cpu\":1,\"process_cpu\":0.5,\"devices\":[{\"util\":0.25},{\"util\":0.5},{\"util\":0.75}],"
		"\"host\":{\"processors_allowed\":4}}\n",
		"{\"time\":11,\"devices\":[{\"util\":0.125}]}\n");
	int n = v ? curves_of(&v, 1, "utilisation", &m) : -1;
	double sum = 0;
	bool same = false;
	for (int i = 0; i < n; i++) {
		sum += m.curve[i].y[0];
		for (int k = 0; k < i; k++)
			same |= m.curve[i].color == m.curve[k].color;
	}
	ok(n == 4 && sum == 1.625 && !same,
	   "a curve for each of three devices and for that of rank 1, not for the host: %d, sum %g",
	   n, sum);
	yk_plot_drop(&m);
	yk_view_close(v);
	v = run_with(
		"{\"time\":10,\"cpu\":1,\"process_cpu\":1.5,\"devices\":[{\"id\":\"cpu:0\"}],\"host\":{\"processors_allowed\":4}}\n",
		"");
	n = v ? curves_of(&v, 1, "utilisation", &m) : -1;
	ok(n == 1 && m.curve[0].y[0] == 0.375,
	   "of a run on the CPU, the share of its processors that the run used");
	yk_plot_drop(&m);
	n = v ? curves_of(&v, 1, "loss", &m) : -1;
	ok(n == 2 && m.curve[0].color == m.curve[1].color && m.curve[0].dash != m.curve[1].dash,
	   "training and validation have one color and different dashes");
	yk_plot_drop(&m);
	struct yk_view *twice[2] = { v, v };
	n = curves_of(twice, 2, "loss", &m);
	ok(n == 4 && m.curve[0].color == m.curve[1].color && m.curve[2].color == m.curve[3].color &&
		   m.curve[0].color != m.curve[2].color && m.curve[0].dash == m.curve[2].dash &&
		   m.curve[0].dash != m.curve[1].dash,
	   "of two runs, too");
	yk_plot_drop(&m);
	yk_view_close(v);
	snprintf(command, sizeof command, "rm -r '%s'", folder);
	ok(system(command) == 0, "%s", command);
}

int main(void)
{
	tap_seed();
	devices();
	numbers();
	lines();
	run(true);
	run(false);
	for (int x = 0; x < 3; x++)
		for (int y = 0; y < 2; y++)
			plot((enum yk_scale)x, (enum yk_scale)y);
	return done();
}
