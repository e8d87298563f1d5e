// SPDX-License-Identifier: Apache-2.0
// Cubes: files made by loops here are read, files that yoke writes are read by loops here, of every type, interleave and byte
// order; hostile headers; sets; drawn cubes, in which a pipeline finds the anomalies.
#include "config.h"

#include "fuzz/targets.h"
#include "tap.h"
#include "yoke-cube.h"
#include "yoke-pipeline.h"

#define DIMS(...) (int64_t[]){ __VA_ARGS__ }

enum { L = 5, S = 7, B = 3, OFFSET = 13 };

static const struct type {
	int number;
	const char *name;
	int width;
	double least, most;
} types[] = {
	{ 1, "u8", 1, 0, 255 }, { 2, "i16", 2, -32768, 32767 }, { 3, "i32", 4, -2147483648., 2147483647 },
	{ 4, "f32", 4, -1e6, 1e6 }, { 5, "f64", 8, -1e6, 1e6 }, { 12, "u16", 2, 0, 65535 },
	{ 13, "u32", 4, 0, 4294967295. }, { 14, "i64", 8, -1e15, 1e15 }, { 15, "u64", 8, 0, 1e15 },
};
static const char *const orders[] = { "bsq", "bil", "bip" };

static void write_text(const char *path, const void *text, size_t bytes)
{
	FILE *f = fopen(path, "wb");
	fwrite(text, 1, bytes, f);
	fclose(f);
}

static size_t place(int order, int l, int s, int b)
{
	return (size_t)(order == 0 ? (b * L + l) * S + s : order == 1 ? (l * B + b) * S + s : (l * S + s) * B + b);
}

// The bytes of a number, low or high ones first.
static void put(unsigned char *to, const struct type *t, double v, bool big)
{
	unsigned char raw[8] = { 0 };
	if (t->number == 4) {
		float f = (float)v;
		memcpy(raw, &f, 4);
	} else if (t->number == 5) {
		memcpy(raw, &v, 8);
	} else {
		uint64_t u = v < 0 ? (uint64_t)(int64_t)v : (uint64_t)v;
		for (int i = 0; i < 8; i++)
			raw[i] = (unsigned char)(u >> 8 * i);
	}
	for (int i = 0; i < t->width; i++)
		to[i] = raw[big ? t->width - 1 - i : i];
}

static double get(const unsigned char *from, const struct type *t, bool big)
{
	unsigned char raw[8] = { 0 };
	uint64_t u = 0;
	float f;
	double v;
	for (int i = 0; i < t->width; i++)
		raw[i] = from[big ? t->width - 1 - i : i];
	memcpy(&f, raw, 4);
	memcpy(&v, raw, 8);
	for (int i = 7; i >= 0; i--)
		u = u << 8 | raw[i];
	const int unused = 64 - 8 * t->width;
	const bool sign = t->number == 2 || t->number == 3 || t->number == 14;
	return t->number == 4 ? f : t->number == 5 ? v : sign ? (double)((int64_t)(u << unused) >> unused) : (double)u;
}

static double number[L][S][B];

static void draw(const struct type *t)
{
	for (int i = 0; i < L * S * B; i++) {
		double v = rnd_int(0, 9) ? rnd_real(t->least, t->most) : rnd_int(0, 1) ? t->least : t->most;
		number[i / (S * B)][i / B % S][i % B] = t->number == 4 ? (float)v : t->number == 5 ? v : trunc(v);
	}
}

// A file from elsewhere, with a header in other words.
static void read_one(const struct type *t, int order, bool big)
{
	unsigned char bytes[OFFSET + L * S * B * 8] = { 0 };
	char head[1000];
	float x[L][S][2], weight[L][S];
	const double scale = t->number % 2 ? 1 : 4;
	double got[L * S * 2], want[L * S * 2];
	int ignored = 0;
	draw(t);
	const double ignore = number[2][3][1];
	for (int l = 0; l < L; l++)
		for (int s = 0; s < S; s++)
			for (int b = 0; b < B; b++)
				put(bytes + OFFSET + place(order, l, s, b) * (size_t)t->width, t, number[l][s][b], big);
	write_text("in.dat", bytes, OFFSET + (size_t)(L * S * B * t->width));
	snprintf(head, sizeof head, "ENVI\n; a comment = 3\nDescription = {\n  two lines, bands = 99 }\nSAMPLES=%d\nlines   = %d\nbands = %d\n"
		 "header offset = %d\nData  Type = %d\ninterleave = %s\nbyte order = %d\nwavelength = { 400.5,\n 500 , 601e0}\nbbl = {1, 1, 0}\n"
		 "data ignore value = %.17g\nreflectance scale factor = %g\n", S, L, B, OFFSET, t->number, order == 1 ? "BIL" : orders[order], big,
		 ignore, scale);
	write_text("in.hdr", head, strlen(head));
	struct yoke_cube_info i = { .size = sizeof i };
	yoke_cube *c = yoke_cube_open("in.hdr", "bands=good");
	if (c)
		yoke_cube_info(c, &i);
	memset(x, 0xff, sizeof x);
	memset(weight, 0xff, sizeof weight);
	const bool good = c && !yoke_cube_read(c, &x[0][0][0], &weight[0][0]) && i.lines == L && i.samples == S && i.bands == 2 &&
			  !strcmp(i.type, t->name) && i.wavelength && i.wavelength[0] == 400.5 && i.wavelength[1] == 500;
	bool right = good;
	for (int l = 0; l < L; l++)
		for (int s = 0; s < S; s++) {
			const bool out = number[l][s][0] == ignore || number[l][s][1] == ignore;
			right &= weight[l][s] == !out;
			ignored += out;
			for (int b = 0; b < 2; b++) {
				got[(l * S + s) * 2 + b] = x[l][s][b];
				want[(l * S + s) * 2 + b] = (float)(scale == 1 ? number[l][s][b] : number[l][s][b] / scale);
			}
		}
	ok(right, "%s %s, %s: %d ignored %s", t->name, orders[order], big ? "big" : "little", ignored, yoke_error());
	near(got, want, L * S * 2, 0, 1, "its numbers");
	yoke_error_clear();
	yoke_cube_free(c);
}

// Gains and offsets of chosen bands, and the lines on the scene's place, which a cube that is written has again.
static void gained(const struct type *t, int order, bool big)
{
	static const char place_lines[] = "map info = {UTM, 1, 1, 5e5, 4e6, 30, 30, 11, North}\ncoordinate system string = {PROJCS[\"a\",\n 1]}\n"
					  "x start = 3\n";
	static const double gain[B] = { 0.5, -3, 0.01 }, shift[B] = { -1.25, 1e9, 7 };
	unsigned char bytes[L * S * B * 8];
	float x[L * S * 2], weight[L * S];
	double got[L * S * 2], want[L * S * 2];
	char head[1000];
	draw(t);
	for (int l = 0; l < L; l++)
		for (int s = 0; s < S; s++)
			for (int b = 0; b < B; b++)
				put(bytes + place(order, l, s, b) * (size_t)t->width, t, number[l][s][b], big);
	write_text("gain.img", bytes, (size_t)(L * S * B * t->width));
	snprintf(head, sizeof head, "ENVI\nsamples=%d\nlines=%d\nbands=%d\ndata type=%d\ninterleave=%s\nbyte order=%d\n"
		 "data gain values={0.5, -3, 0.01}\ndata offset values = {-1.25,1e9,7}\ndata ignore value=%.17g\nwavelength={1,2,3}\n"
		 "wavelength units = Micrometers\n%s", S, L, B, t->number, orders[order], big, number[4][1][2], place_lines);
	write_text("gain.hdr", head, strlen(head));
	struct yoke_cube_info i = { .size = sizeof i };
	yoke_cube *c = yoke_cube_open("gain.hdr", "bands=2,1");
	bool right = c && !yoke_cube_info(c, &i) && i.gains && i.scene && !strcmp(i.scene, place_lines) && !strcmp(i.units, "Micrometers") &&
		     !yoke_cube_read(c, x, weight);
	for (int q = 0; q < L * S; q++) {
		const double *at = number[q / S][q % S];
		right &= weight[q] == (at[2] != number[4][1][2] && at[1] != number[4][1][2]);
		for (int b = 0; b < 2; b++) {
			const int k = 2 - b;
			got[2 * q + b] = x[2 * q + b];
			want[2 * q + b] = (float)(gain[k] * at[k] + shift[k]);
		}
	}
	ok(right, "gains of %s %s, %s %s", t->name, orders[order], big ? "big" : "little", yoke_error());
	near(got, want, L * S * 2, 1.2e-7, 1, "the numbers");
	i.type = "f32";
	right = right && !yoke_cube_write("placed.hdr", &i, x);
	yoke_cube_free(c);
	i = (struct yoke_cube_info){ .size = sizeof i };
	c = right ? yoke_cube_open("placed.hdr", NULL) : NULL;
	right = c && !yoke_cube_info(c, &i) && !i.gains && i.scene && !strcmp(i.scene, place_lines) && !strcmp(i.units, "Micrometers") &&
		i.wavelength[0] == 3 && i.wavelength[1] == 2;
	ok(right, "what is written names the same place %s", yoke_error());
	yoke_error_clear();
	yoke_cube_free(c);
}

// A header with a scale, and gains that change something or nothing.
static void scale_and_gain(const char *lines, int want)
{
	char head[400];
	float x[2];
	write_text("both.img", &(uint16_t[]){ 10, 20 }, 4);
	snprintf(head, sizeof head, "ENVI\nsamples=1\nlines=1\nbands=2\ndata type=12\ninterleave=bip\nreflectance scale factor=10\n%s\n", lines);
	write_text("both.hdr", head, strlen(head));
	yoke_cube *c = yoke_cube_open("both.hdr", NULL);
	const int err = c ? yoke_cube_read(c, x, NULL) : yoke_error_code();
	ok(err == want && (err || (x[0] == 1 && x[1] == 2)), "a scale and %s: %d", lines, err);
	yoke_error_clear();
	yoke_cube_free(c);
}

static void write_one(const struct type *t, int order, bool big)
{
	static float x[L][S][B];
	unsigned char bytes[L * S * B * 8];
	const double nm[B] = { 400, 500.25, 600 };
	const struct yoke_cube_info i = { .size = sizeof i, .lines = L, .samples = S, .bands = B, .type = t->name,
					  .interleave = orders[order], .big_endian = big, .scale = 1, .ignore = NAN, .wavelength = nm };
	double got[L * S * B], want[L * S * B];
	for (int k = 0; k < L * S * B; k++)
		x[k / (S * B)][k / B % S][k % B] = (float)rnd_real(t->least / 2, t->most / 2);
	int err = yoke_cube_write("out.hdr", &i, &x[0][0][0]);
	FILE *f = fopen("out.img", "rb");
	const size_t n = f ? fread(bytes, 1, sizeof bytes, f) : 0;
	if (f)
		fclose(f);
	for (int l = 0; l < L; l++)
		for (int s = 0; s < S; s++)
			for (int b = 0; b < B; b++) {
				got[(l * S + s) * B + b] = get(bytes + place(order, l, s, b) * (size_t)t->width, t, big);
				want[(l * S + s) * B + b] = t->number == 4 || t->number == 5 ? x[l][s][b] : rint((double)x[l][s][b]);
			}
	ok(!err && n == (size_t)(L * S * B * t->width), "written as %s %s, %s %s", t->name, orders[order], big ? "big" : "little", yoke_error());
	near(got, want, L * S * B, 0, 1, "its numbers");
	yoke_cube *c = yoke_cube_open("out.hdr", NULL);
	float again[L][S][B];
	ok(c && !yoke_cube_read(c, &again[0][0][0], NULL) && (t->number != 4 || !memcmp(again, x, sizeof x)), "and read %s", yoke_error());
	yoke_cube_free(c);
	yoke_error_clear();
}

// ---- what is no cube ----

#define HEAD "ENVI\nsamples = 2\nlines = 3\nbands = 4\ndata type = 1\ninterleave = bsq\n"
static const struct {
	const char *what, *text;
	int code;
	const char *word;
} hostile[] = {
	{ "empty", "", YOKE_EFORMAT, "first line" },
	{ "another first line", "ENVY\n", YOKE_EFORMAT, "first line" },
	{ "no samples", "ENVI\nlines = 3\nbands = 4\ndata type = 1\ninterleave = bsq\n", YOKE_EFORMAT, "samples" },
	{ "no interleave", "ENVI\nsamples = 2\nlines = 3\nbands = 4\ndata type = 1\n", YOKE_EFORMAT, "interleave" },
	{ "negative lines", "ENVI\nlines = -3\n", YOKE_EFORMAT, "lines" },
	{ "lines of more than 64 bits", "ENVI\nlines = 99999999999999999999\n", YOKE_EFORMAT, "lines" },
	{ "no number", "ENVI\nlines = three\n", YOKE_EFORMAT, "lines" },
	{ "a number with more behind", "ENVI\nlines = 3 4\n", YOKE_EFORMAT, "lines" },
	{ "0 bands", "ENVI\nbands = 0\n", YOKE_EFORMAT, "bands" },
	{ "too many bands", "ENVI\nbands = 40000\n", YOKE_EFORMAT, "bands" },
	{ "twice", HEAD "lines = 3\n", YOKE_EFORMAT, "twice" },
	{ "sizes that overflow", "ENVI\nsamples = 2147483647\nlines = 2147483647\nbands = 32768\ndata type = 5\ninterleave = bsq\n",
	  YOKE_EFORMAT, "too large" },
	{ "an offset that overflows", HEAD "header offset = 9223372036854775807\n", YOKE_EFORMAT, "too large" },
	{ "a negative offset", HEAD "header offset = -1\n", YOKE_EFORMAT, "header offset" },
	{ "complex", "ENVI\ndata type = 6\n", YOKE_EUNSUPPORTED, "complex" },
	{ "an unknown type", "ENVI\ndata type = 7\n", YOKE_EFORMAT, "data type" },
	{ "another interleave", "ENVI\ninterleave = bop\n", YOKE_EFORMAT, "interleave" },
	{ "compressed", HEAD "file compression = 1\n", YOKE_EUNSUPPORTED, "compress" },
	{ "frame offsets", HEAD "major frame offsets = {0, 5}\n", YOKE_EUNSUPPORTED, "frame" },
	{ "frame offsets of 0", HEAD "major frame offsets = {0,\n 0}\nminor frame offsets = 0", YOKE_EFORMAT, "24 bytes" },
	{ "an open brace", HEAD "wavelength = {1, 2,\n", YOKE_EFORMAT, "never closed" },
	{ "too few wavelengths", HEAD "wavelength = {1, 2, 3}\n", YOKE_EFORMAT, "wavelength" },
	{ "too many", HEAD "wavelength = {1, 2, 3, 4, 5}\n", YOKE_EFORMAT, "wavelength" },
	{ "a wavelength that is none", HEAD "wavelength = {1, 2, nan, 4}\n", YOKE_EFORMAT, "wavelength" },
	{ "a scale of 0", HEAD "reflectance scale factor = 0\n", YOKE_EFORMAT, "above 0" },
	{ "a byte order", HEAD "byte order = 2\n", YOKE_EFORMAT, "byte order" },
	{ "data that are short", HEAD, YOKE_EFORMAT, "24 bytes" },
	{ "a key that never ends", HEAD "= = = = =\n=\n", YOKE_EFORMAT, "24 bytes" },
};

static void headers(const char *seeds)
{
	char path[300];
	write_text("bad.img", "short", 5);
	for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
		const char *text = hostile[i].text;
		write_text("bad.hdr", text, strlen(text));
		yoke_cube *c = yoke_cube_open("bad.hdr", NULL);
		ok(!c && yoke_error_code() == hostile[i].code && strstr(yoke_error(), hostile[i].word) && !strchr(yoke_error(), '\n'),
		   "%s: %s", hostile[i].what, yoke_error());
		yoke_error_clear();
		yoke_cube_free(c);
		yk_fuzz_envi((const uint8_t *)text, strlen(text));
		snprintf(path, sizeof path, "%s/envi/%zu", seeds ? seeds : "", i);
		if (seeds)
			write_text(path, text, strlen(text));
	}
	// any part of a good header, and any byte of it changed
	static const char good[] = HEAD "wavelength = {1, 2, 3, 4}\nbbl = {1,0,1,1}\ndata ignore value = -1\n";
	for (size_t n = 0; n < sizeof good; n++) {
		char copy[sizeof good];
		memcpy(copy, good, sizeof good);
		yk_fuzz_envi((const uint8_t *)copy, n);
		copy[n] = (char)rnd();
		yk_fuzz_envi((const uint8_t *)copy, sizeof copy - 1);
	}
	ok(true, "parts of a header, and headers with a byte changed");
}

static void refused(void)
{
	float x[L * S * B] = { [17] = 300 };
	struct yoke_cube_info i = { .size = sizeof i, .lines = L, .samples = S, .bands = B, .type = "u8", .interleave = "bip", .scale = 1,
				    .ignore = NAN };
	ok(yoke_cube_write("no.hdr", &i, x) == YOKE_ERANGE && access("no.hdr", F_OK) && access("no.img", F_OK), "too large for its type");
	ok(strstr(yoke_error(), "line 0, sample 5, band 2") != NULL, "it is named: %s", yoke_error());
	yoke_error_clear();
	i.type = "c64";
	ok(yoke_cube_write("no.hdr", &i, x) == YOKE_EINVAL, "another type");
	yoke_error_clear();
	x[17] = 0;
	i.type = "u8";
	const double nowhere[B] = { 400, NAN };
	for (int k = 0; k < 6; k++) {
		struct yoke_cube_info odd = i;
		odd.lines = k == 0 ? 0 : L;
		odd.samples = k == 1 ? (int64_t)1 << 40 : S;
		odd.bands = k == 2 ? -1 : B;
		odd.interleave = k == 3 ? "bib" : "bip";
		odd.scale = k == 4 ? -2 : 1;
		odd.wavelength = k == 5 ? nowhere : NULL;
		ok(yoke_cube_write("no.hdr", &odd, x) == YOKE_EINVAL && access("no.hdr", F_OK) && access("no.img", F_OK),
		   "what a header cannot say: %s", yoke_error());
		yoke_error_clear();
	}
	yoke_cube_write("a.hdr", &i, x);
	char many[1200] = "bands=0";
	while (strlen(many) + 3 < sizeof many)
		strcat(many, ",1");
	struct yoke_cube_info all = { .size = sizeof all };
	yoke_cube *far = yoke_cube_open("a.hdr", many);
	ok(far && !yoke_cube_info(far, &all) && all.bands == (int64_t)(strlen(many) - 5) / 2, "a list of %d bands", (int)all.bands);
	yoke_cube_free(far);
	yoke_dataset *same = yoke_dataset_cubes(1, (const char *[]){ "a.hdr" }, NULL, many);
	ok(same != NULL, "and a set of such: %s", yoke_error());
	yoke_dataset_free(same);
	i.bands = 2;
	yoke_cube_write("b.hdr", &i, x);
	yoke_dataset *d = yoke_dataset_cubes(2, (const char *[]){ "a.hdr", "b.hdr" }, NULL, NULL);
	ok(!d && yoke_error_code() == YOKE_ESHAPE && strstr(yoke_error(), "b.hdr"), "bands that differ: %s", yoke_error());
	yoke_error_clear();
	i.bands = 3;
	yoke_cube_write("b.hdr", &i, x);
	d = yoke_dataset_cubes(2, (const char *[]){ "a.hdr", "b.hdr" }, NULL, NULL);
	i.bands = 2;
	yoke_cube_write("b.hdr", &i, x);
	float w[L * S];
	int err = d ? yoke_dataset_read(d, 1, 0, 0, 1, (void *[]){ x, w }, NULL) : 0;
	ok(err == YOKE_ESHAPE && strstr(yoke_error(), "b.hdr"), "and one that was changed: %s", yoke_error());
	yoke_error_clear();
	yoke_dataset_free(d);
	static const char *const settings[] = { "bands=3", "bands=0-", "bands=2-1", "band=1", "bands=", "bands=x" };
	for (size_t k = 0; k < sizeof settings / sizeof *settings; k++) {
		yoke_cube *c = yoke_cube_open("a.hdr", settings[k]);
		ok(!c && yoke_error_code() == YOKE_EINVAL, "%s: %s", settings[k], yoke_error());
		yoke_error_clear();
		yoke_cube_free(c);
	}
}

// ---- sets, drawn cubes ----

static int by_score(const void *a, const void *b)
{
	const float *x = a, *y = b;
	return x[0] < y[0] ? -1 : x[0] > y[0];
}

static void drawn(void)
{
	enum { N = 3, SIDE = 64, BANDS = 50, PIXELS = SIDE * SIDE };
	static float scores[N * PIXELS][2], rx[N * PIXELS];
	static const char settings[] = "count=3 lines=64 samples=64 bands=50 seed=7";
	yoke_dataset *d = yoke_dataset_synthetic(settings);
	const void *first[2] = { NULL, NULL };
	static unsigned char kept[2][N * PIXELS * BANDS * 4];
	for (int k = 0; k < 2; k++) {
		void *data[3];
		yoke_loader *l = yoke_loader_new(d, k ? "batch=3 shuffle=0 epochs=1 workers=4" : "batch=3 shuffle=0 epochs=1 workers=0");
		if (yoke_loader_host(l, 3, data, NULL) == N) {
			memcpy(kept[k], data[0], sizeof kept[k]);
			first[k] = kept[k];
			const uint8_t *label = data[2];
			for (int i = 0; i < N * PIXELS; i++)
				scores[i][1] = label[i];
		}
		yoke_loader_free(l);
	}
	ok(first[0] && first[1] && !memcmp(kept[0], kept[1], sizeof kept[0]), "drawn cubes have the same bits by 0 and 4 threads");
	// the mean over pixels of the middle band outside of discs: 100 exp(0) times 1 + .2 sin, whose mean is 1
	const float *x = (const float *)(const void *)kept[0];
	double sum = 0, n = 0, noise = 0;
	for (int i = 0; i < N * PIXELS; i++) {
		const double light = (1 + .2 * sin(2 * M_PI * (i / SIDE % SIDE) / SIDE)) * (1 + .2 * cos(2 * M_PI * (i % SIDE) / SIDE));
		const double w = 25. / 49, want = 100 * exp(-(w - .5) * (w - .5) / .1) * light;
		if (scores[i][1] != 0)
			continue;
		const double e = x[i * BANDS + 25] - want;
		n++;
		sum += e;
		noise += e * e;
	}
	ok(fabs(sum / n) < 0.6 && fabs(sqrt(noise / n) - 10) < 0.5, "as the formula says, with noise of %.2f about %.2f", sqrt(noise / n), sum / n);
	ok(1 - n / (N * PIXELS) >= 0.05 && 1 - n / (N * PIXELS) < 0.08, "%.3f of the pixels are in discs", 1 - n / (N * PIXELS));
	yoke_pipeline *p = yoke_pipeline_new("{\"nodes\": [{\"name\": \"scale\", \"type\": \"min_max\"},"
					     "{\"name\": \"pca\", \"type\": \"pca\", \"k\": 10}, {\"name\": \"rx\", \"type\": \"rx\"}]}");
	int err = yoke_pipeline_fit(p, d, "batch=2 workers=2");
	yoke_scope *s = yoke_scope_begin("scores");
	if (!err)
		err = yoke_read(yoke_pipeline_apply(p, NULL, yoke_from(yoke_f32, 2, DIMS(N * PIXELS, BANDS), x)), rx, sizeof rx);
	yoke_scope_end(s);
	double positives = 0, ranks = 0;
	for (int i = 0; i < N * PIXELS; i++)
		scores[i][0] = rx[i];
	qsort(scores, N * PIXELS, sizeof *scores, by_score);
	for (int i = 0; i < N * PIXELS; i++)
		if (scores[i][1] != 0)
			positives++, ranks += i + 1;
	const double auc = (ranks - positives * (positives + 1) / 2) / (positives * (N * PIXELS - positives));
	ok(!err && auc > 0.99, "rx behind pca finds the anomalies: area under the curve %.4f %s", auc, yoke_error());
	yoke_pipeline_free(p);
	yoke_dataset_free(d);
	d = yoke_dataset_synthetic("bandz=3");
	ok(!d && strstr(yoke_error(), "bands"), "another key: %s", yoke_error());
	yoke_error_clear();
}

static void set_of_files(void)
{
	float x[2][L * S * B], label[2][L * S], got[L * S * B], weight[L * S];
	uint8_t mask[L * S];
	struct yoke_cube_info i = { .size = sizeof i, .lines = L, .samples = S, .bands = B, .type = "f32", .interleave = "bil", .scale = 1,
				    .ignore = NAN }, m = i;
	const char *const cubes[2] = { "s0.hdr", "s1.npy" }, *const labels[2] = { "l0.npy", "l1.hdr" };
	m.bands = 1;
	m.type = "u8";
	for (int k = 0; k < 2; k++) {
		for (int n = 0; n < L * S * B; n++)
			x[k][n] = (float)rnd_real(-1, 1);
		for (int n = 0; n < L * S; n++)
			label[k][n] = (float)rnd_int(0, 2);
		ok(!yoke_cube_write(cubes[k], &i, x[k]) && !yoke_cube_write(labels[k], &m, label[k]), "%s and %s %s", cubes[k], labels[k],
		   yoke_error());
	}
	yoke_dataset *d = yoke_dataset_cubes(2, cubes, labels, NULL);
	for (int k = 0; k < 2; k++) {
		int err = d ? yoke_dataset_read(d, k, 0, 0, k, (void *[]){ got, weight, mask }, NULL) : -1;
		bool same = !err && !memcmp(got, x[k], sizeof got);
		for (int n = 0; n < L * S; n++)
			same &= mask[n] == (label[k][n] != 0) && weight[n] == 1;
		ok(same, "sample %d of a set of files %s", k, yoke_error());
	}
	yoke_dataset_free(d);
}

int main(int argc, char **argv)
{
	tap_seed();
	tap_folder();
	for (size_t t = 0; t < sizeof types / sizeof *types; t++)
		for (int order = 0; order < 3; order++)
			for (int big = 0; big < 2; big++) {
				read_one(&types[t], order, big);
				write_one(&types[t], order, big);
				gained(&types[t], order, big);
			}
	scale_and_gain("data gain values={1, 1.0}", 0);
	scale_and_gain("data offset values={0, 0}", 0);
	scale_and_gain("data gain values={1, 2}", YOKE_EUNSUPPORTED);
	scale_and_gain("data offset values={0, 2}", YOKE_EUNSUPPORTED);
	headers(argc > 1 ? argv[1] : NULL);
	refused();
	set_of_files();
	drawn();
	return done();
}
