// SPDX-License-Identifier: Apache-2.0
// Tests hyperspectral cubes of every type, interleave and byte order: the library reads files
// that this test writes with plain loops, and this test reads files that the library writes. Also
// hostile headers, sets, and generated cubes in which a pipeline finds the anomalies.
#include "config.h"

#include <dlfcn.h>
#include <float.h>
#include <sys/stat.h>
#ifdef MATIO_LIBRARY
#include <matio.h>
#endif

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
	double min, max;
} types[] = {
	{ 1, "u8", 1, 0, 255 },
	{ 2, "i16", 2, -32768, 32767 },
	{ 3, "i32", 4, -2147483648., 2147483647 },
	{ 4, "f32", 4, -1e6, 1e6 },
	{ 5, "f64", 8, -1e6, 1e6 },
	{ 12, "u16", 2, 0, 65535 },
	{ 13, "u32", 4, 0, 4294967295. },
	{ 14, "i64", 8, -1e15, 1e15 },
	{ 15, "u64", 8, 0, 1e15 },
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
	return (size_t)(order == 0 ? (b * L + l) * S + s :
			order == 1 ? (l * B + b) * S + s :
				     (l * S + s) * B + b);
}

// The bytes of a number, low or high byte first.
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
	return t->number == 4 ? f :
	       t->number == 5 ? v :
	       sign           ? (double)((int64_t)(u << unused) >> unused) :
				(double)u;
}

static double number[L][S][B];

static void draw(const struct type *t)
{
	for (int i = 0; i < L * S * B; i++) {
		double v = rnd_int(0, 9) ? rnd_real(t->min, t->max) :
			   rnd_int(0, 1) ? t->min :
			   t->max;
		number[i / (S * B)][i / B % S][i % B] = t->number == 4 ? (float)v :
							t->number == 5 ? v :
							trunc(v);
	}
}

// A file from another program, with other header spellings.
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
				put(bytes + OFFSET + place(order, l, s, b) * (size_t)t->width, t,
				    number[l][s][b], big);
	write_text("in.dat", bytes, OFFSET + (size_t)(L * S * B * t->width));
	snprintf(
		head, sizeof head,
		"ENVI\n; a comment = 3\nDescription = {\n  two lines, bands = 99 }\nSAMPLES=%d\nlines   = %d\nbands = %d\n"
		"header offset = %d\nData  Type = %d\ninterleave = %s\nbyte order = %d\nwavelength = { 400.5,\n 500 , 601e0}\nbbl = {1, 1, 0}\n"
		"data ignore value = %.17g\nreflectance scale factor = %g\n",
		S, L, B, OFFSET, t->number, order == 1 ? "BIL" : orders[order], big, ignore, scale);
	write_text("in.hdr", head, strlen(head));
	struct yoke_cube_info i = { .size = sizeof i };
	yoke_cube *c = yoke_cube_open("in.hdr", "bands=good");
	if (c)
		yoke_cube_info(c, &i);
	memset(x, 0xff, sizeof x);
	memset(weight, 0xff, sizeof weight);
	const bool good = c && !yoke_cube_read(c, &x[0][0][0], &weight[0][0]) && i.lines == L &&
			  i.samples == S && i.bands == 2 && !strcmp(i.type, t->name) &&
			  i.wavelength && i.wavelength[0] == 400.5 && i.wavelength[1] == 500;
	bool right = good;
	for (int l = 0; l < L; l++)
		for (int s = 0; s < S; s++) {
			const bool out = number[l][s][0] == ignore || number[l][s][1] == ignore;
			right &= weight[l][s] == !out;
			ignored += out;
			for (int b = 0; b < 2; b++) {
				got[(l * S + s) * 2 + b] = x[l][s][b];
				want[(l * S + s) * 2 + b] =
					(float)(scale == 1 ? number[l][s][b] :
							     number[l][s][b] / scale);
			}
		}
	ok(right, "%s %s, %s: %d ignored %s", t->name, orders[order], big ? "big" : "little",
	   ignored, yoke_error());
	near(got, want, L * S * 2, 0, 1, "its numbers");
	yoke_error_clear();
	yoke_cube_free(c);
}

// Gains and offsets of selected bands, and the georeference lines, which a written cube keeps.
static void gained(const struct type *t, int order, bool big)
{
	static const char place_lines[] =
		"map info = {UTM, 1, 1, 5e5, 4e6, 30, 30, 11, North}\ncoordinate system string = {PROJCS[\"a\",\n 1]}\n"
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
				put(bytes + place(order, l, s, b) * (size_t)t->width, t,
				    number[l][s][b], big);
	write_text("gain.img", bytes, (size_t)(L * S * B * t->width));
	snprintf(
		head, sizeof head,
		"ENVI\nsamples=%d\nlines=%d\nbands=%d\ndata type=%d\ninterleave=%s\nbyte order=%d\n"
		"data gain values={0.5, -3, 0.01}\ndata offset values = {-1.25,1e9,7}\ndata ignore value=%.17g\nwavelength={1,2,3}\n"
		"wavelength units = Micrometers\n%s",
		S, L, B, t->number, orders[order], big, number[4][1][2], place_lines);
	write_text("gain.hdr", head, strlen(head));
	struct yoke_cube_info i = { .size = sizeof i };
	yoke_cube *c = yoke_cube_open("gain.hdr", "bands=2,1");
	bool right = c && !yoke_cube_info(c, &i) && i.gains && i.scene &&
		     !strcmp(i.scene, place_lines) && !strcmp(i.units, "Micrometers") &&
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
	ok(right, "gains of %s %s, %s %s", t->name, orders[order], big ? "big" : "little",
	   yoke_error());
	near(got, want, L * S * 2, 1.2e-7, 1, "the numbers");
	i.type = "f32";
	right = right && !yoke_cube_write("placed.hdr", &i, x);
	yoke_cube_free(c);
	i = (struct yoke_cube_info){ .size = sizeof i };
	c = right ? yoke_cube_open("placed.hdr", NULL) : NULL;
	right = c && !yoke_cube_info(c, &i) && !i.gains && i.scene &&
		!strcmp(i.scene, place_lines) && !strcmp(i.units, "Micrometers") &&
		i.wavelength[0] == 3 && i.wavelength[1] == 2;
	ok(right, "a written cube has the same georeference %s", yoke_error());
	yoke_error_clear();
	yoke_cube_free(c);
}

// Bands by wavelength, of headers in both units and without unit.
static void waves(void)
{
	static const struct {
		const char *bands, *units;
		double scale;
		int n, band[6]; // n 0: refused
	} cases[] = {
		{ "450nm..600nm", "wavelength units = Nanometers\n", 1, 4, { 1, 2, 3, 4 } },
		{ "450nm..600nm", "wavelength units = Micrometers\n", 1e-3, 4, { 1, 2, 3, 4 } },
		{ "0.45..0.6um", "", 1e-3, 4, { 1, 2, 3, 4 } },
		{ "450..600nm", "", 1, 4, { 1, 2, 3, 4 } },
		{ "0.45um..600nm,5,0-0", "", 1, 6, { 1, 2, 3, 4, 5, 0 } },
		{ "551nm,499nm", "wavelength units = um\n", 1e-3, 2, { 3, 2 } },
		{ "700nm..900nm", "", 1, 1, { 5 } },
		{ "701nm..900nm", "", 1, 0, { 0 } },
		{ "450..600", "", 1, 0, { 0 } },
		{ "450nm..", "", 1, 0, { 0 } },
		{ "450nm..600nmx", "", 1, 0, { 0 } },
	};
	char head[600], what[100];
	for (size_t k = 0; k <= sizeof cases / sizeof *cases; k++) {
		const bool none = k == sizeof cases / sizeof *cases; // no wavelengths
		double got[6] = { 0 }, want[6] = { 0 };
		int n = snprintf(
			head, sizeof head,
			"ENVI\nsamples=1\nlines=1\nbands=6\ndata type=1\ninterleave=bip\n%s",
			none ? "" : cases[k].units);
		for (int i = 0; i < 6 && !none; i++)
			n += snprintf(head + n, sizeof head - (size_t)n, "%s%.9g%s",
				      i ? "," : "wavelength = {",
				      (400 + 50 * i + 50 * (i > 4)) * cases[k].scale,
				      i == 5 ? "}\n" : "");
		write_text("waves.hdr", head, strlen(head));
		write_text("waves.img", "\0\1\2\3\4\5", 6);
		snprintf(what, sizeof what, "bands=%s", none ? "1,450nm..600nm" : cases[k].bands);
		yoke_cube *c = yoke_cube_open("waves.hdr", what);
		struct yoke_cube_info i = { .size = sizeof i };
		float x[6] = { 0 };
		const bool right =
			c && !yoke_cube_info(c, &i) && i.bands <= 6 && !yoke_cube_read(c, x, NULL);
		for (int b = 0; b < 6 && !none; b++) {
			got[b] = x[b];
			want[b] = b < cases[k].n ? cases[k].band[b] : 0;
		}
		const int code = yoke_error_code();
		if (none || !cases[k].n)
			ok(!c && code == YOKE_EINVAL, "%s: refused: %s", what, yoke_error());
		else
			ok(right && i.bands == cases[k].n && !memcmp(got, want, sizeof got),
			   "%s of %s: %d bands %s", what, cases[k].units, (int)i.bands,
			   yoke_error());
		yoke_error_clear();
		yoke_cube_free(c);
	}
}

// A header with a scale, and gains that change a value or not.
static void scale_and_gain(const char *lines, int want)
{
	char head[400];
	float x[2];
	write_text("both.img", &(uint16_t[]){ 10, 20 }, 4);
	snprintf(
		head, sizeof head,
		"ENVI\nsamples=1\nlines=1\nbands=2\ndata type=12\ninterleave=bip\nreflectance scale factor=10\n%s\n",
		lines);
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
	const struct yoke_cube_info i = { .size = sizeof i,
					  .lines = L,
					  .samples = S,
					  .bands = B,
					  .type = t->name,
					  .interleave = orders[order],
					  .big_endian = big,
					  .scale = 1,
					  .ignore = NAN,
					  .wavelength = nm };
	double got[L * S * B], want[L * S * B];
	for (int k = 0; k < L * S * B; k++)
		x[k / (S * B)][k / B % S][k % B] = (float)rnd_real(t->min / 2, t->max / 2);
	int err = yoke_cube_write("out.hdr", &i, &x[0][0][0]);
	FILE *f = fopen("out.img", "rb");
	const size_t n = f ? fread(bytes, 1, sizeof bytes, f) : 0;
	if (f)
		fclose(f);
	for (int l = 0; l < L; l++)
		for (int s = 0; s < S; s++)
			for (int b = 0; b < B; b++) {
				got[(l * S + s) * B + b] = get(
					bytes + place(order, l, s, b) * (size_t)t->width, t, big);
				want[(l * S + s) * B + b] = t->number == 4 || t->number == 5 ?
								    x[l][s][b] :
								    rint((double)x[l][s][b]);
			}
	ok(!err && n == (size_t)(L * S * B * t->width), "written as %s %s, %s %s", t->name,
	   orders[order], big ? "big" : "little", yoke_error());
	near(got, want, L * S * B, 0, 1, "its numbers");
	yoke_cube *c = yoke_cube_open("out.hdr", NULL);
	float again[L][S][B];
	ok(c && !yoke_cube_read(c, &again[0][0][0], NULL) &&
		   (t->number != 4 || !memcmp(again, x, sizeof x)),
	   "a written cube is read back %s", yoke_error());
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
	{ "empty", "", YOKE_EFORMAT, "empty" },
	{ "another first line", "ENVY\n", YOKE_EFORMAT, "first line" },
	{ "no samples", "ENVI\nlines = 3\nbands = 4\ndata type = 1\ninterleave = bsq\n",
	  YOKE_EFORMAT, "samples" },
	{ "no interleave", "ENVI\nsamples = 2\nlines = 3\nbands = 4\ndata type = 1\n", YOKE_EFORMAT,
	  "interleave" },
	{ "negative lines", "ENVI\nlines = -3\n", YOKE_EFORMAT, "lines" },
	{ "lines of more than 64 bits", "ENVI\nlines = 99999999999999999999\n", YOKE_EFORMAT,
	  "lines" },
	{ "no number", "ENVI\nlines = three\n", YOKE_EFORMAT, "lines" },
	{ "a number with more behind", "ENVI\nlines = 3 4\n", YOKE_EFORMAT, "lines" },
	{ "0 bands", "ENVI\nbands = 0\n", YOKE_EFORMAT, "bands" },
	{ "too many bands", "ENVI\nbands = 40000\n", YOKE_EFORMAT, "bands" },
	{ "twice", HEAD "lines = 3\n", YOKE_EFORMAT, "twice" },
	{ "sizes that overflow",
	  "ENVI\nsamples = 2147483647\nlines = 2147483647\nbands = 32768\ndata type = 5\ninterleave = bsq\n",
	  YOKE_EFORMAT, "too large" },
	{ "an offset that overflows", HEAD "header offset = 9223372036854775807\n", YOKE_EFORMAT,
	  "too large" },
	{ "a negative offset", HEAD "header offset = -1\n", YOKE_EFORMAT, "header offset" },
	{ "complex", "ENVI\ndata type = 6\n", YOKE_EUNSUPPORTED, "complex" },
	{ "an unknown type", "ENVI\ndata type = 7\n", YOKE_EFORMAT, "data type" },
	{ "another interleave", "ENVI\ninterleave = bop\n", YOKE_EFORMAT, "interleave" },
	{ "compressed", HEAD "file compression = 1\n", YOKE_EUNSUPPORTED, "compress" },
	{ "frame offsets", HEAD "major frame offsets = {0, 5}\n", YOKE_EUNSUPPORTED, "frame" },
	{ "frame offsets of 0", HEAD "major frame offsets = {0,\n 0}\nminor frame offsets = 0",
	  YOKE_EFORMAT, "24 bytes" },
	{ "an open brace", HEAD "wavelength = {1, 2,\n", YOKE_EFORMAT, "never closed" },
	{ "too few wavelengths", HEAD "wavelength = {1, 2, 3}\n", YOKE_EFORMAT, "24 bytes" },
	{ "too many", HEAD "wavelength = {1, 2, 3, 4, 5}\n", YOKE_EFORMAT, "24 bytes" },
	{ "a wavelength that is none", HEAD "wavelength = {1, 2, nan, 4}\n", YOKE_EFORMAT,
	  "24 bytes" },
	{ "braces that are no pairs", HEAD "description = {a {b}\nwavelength = {1, 2, 3, 4}\n",
	  YOKE_EFORMAT, "24 bytes" },
	{ "braces that open", HEAD "a = {\nb = {\nc = {\n", YOKE_EFORMAT, "never closed" },
	{ "a needed value that is empty",
	  "ENVI\nsamples =\nlines = 3\nbands = 4\ndata type = 1\ninterleave = bsq\n", YOKE_EFORMAT,
	  "samples" },
	{ "an ignored value that is none", HEAD "data ignore value = none\n", YOKE_EFORMAT,
	  "data ignore value" },
	{ "a hexadecimal scale", HEAD "reflectance scale factor = 0x10\n", YOKE_EFORMAT,
	  "reflectance" },
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
		ok(!c && yoke_error_code() == hostile[i].code &&
			   strstr(yoke_error(), hostile[i].word) && !strchr(yoke_error(), '\n'),
		   "%s: %s", hostile[i].what, yoke_error());
		yoke_error_clear();
		yoke_cube_free(c);
		yk_fuzz_envi((const uint8_t *)text, strlen(text));
		snprintf(path, sizeof path, "%s/envi/%zu", seeds ? seeds : "", i);
		if (seeds)
			write_text(path, text, strlen(text));
	}
	// any prefix of a valid header, and any changed byte of it
	static const char good[] =
		HEAD "wavelength = {1, 2, 3, 4}\nbbl = {1,0,1,1}\ndata ignore value = -1\n";
	for (size_t n = 0; n < sizeof good; n++) {
		char copy[sizeof good];
		memcpy(copy, good, sizeof good);
		yk_fuzz_envi((const uint8_t *)copy, n);
		copy[n] = (char)rnd();
		yk_fuzz_envi((const uint8_t *)copy, sizeof copy - 1);
	}
	ok(true, "truncated headers, and headers with a changed byte");
}

// Headers of other programs, for one line of two pixels with the bands 1 2 3 and 4 5 6.
#define SIZES "samples = 2\nlines = 1\nbands = 3\ndata type = 12\ninterleave = bip\n"
static const struct {
	const char *what, *text;
	const char *bands;    // the key as a setting, and its number of values
	int count;
	double wavelength[3]; // 0: none
} written_by_others[] = {
	{ "empty lists", "ENVI\n" SIZES "wavelength = {}\nbbl = { }\n", "good", 3, { 0 } },
	{ "empty values",
	  "ENVI\n" SIZES
	  "data ignore value =\nbyte order = \nheader offset =\nwavelength =\nreflectance scale factor =\n",
	  "all",
	  3,
	  { 0 } },
	{ "a comma after the last",
	  "ENVI\n" SIZES "wavelength = {1, 2, 3,}\nbbl = {1,0,1, }\n",
	  "good",
	  2,
	  { 1, 3 } },
	{ "braces on the next line",
	  "ENVI\n" SIZES
	  "description =\n{ of lines = 99 }\nwavelength =\n\n  {1,\n2, 3}\nbbl = \n{0,\n0,1\n}\n",
	  "good",
	  1,
	  { 3 } },
	{ "braces in a description",
	  "ENVI\ndescription = { made by {x}\n lines = 99 }\n" SIZES "wavelength = {1,2,3}\n",
	  "all",
	  3,
	  { 1, 2, 3 } },
	{ "a brace in a description that none closes",
	  "ENVI\ndescription = {made { by x}\n" SIZES "wavelength = {1,2,3}\n",
	  "all",
	  3,
	  { 1, 2, 3 } },
	{ "booleans", "ENVI\n" SIZES "bbl = {True, FALSE, true}\n", "good", 2, { 0 } },
	{ "flags with points", "ENVI\n" SIZES "bbl = {1.0, 0.0, 1.}\n", "good", 2, { 0 } },
	{ "fewer wavelengths", "ENVI\n" SIZES "wavelength = {400.1, 410.2}\n", "all", 3, { 0 } },
	{ "more wavelengths", "ENVI\n" SIZES "wavelength = {1,2,3,4}\n", "all", 3, { 0 } },
	{ "words for wavelengths",
	  "ENVI\n" SIZES "wavelength = {red, green, blue}\n",
	  "all",
	  3,
	  { 0 } },
	{ "a bbl of other length, not asked for",
	  "ENVI\n" SIZES "bbl = {1, 1}\n",
	  "all",
	  3,
	  { 0 } },
	{ "comments within a list",
	  "ENVI\n" SIZES "wavelength = {\n; nanometres, all of them\n1, 2,\n; the last\n3}\n",
	  "all",
	  3,
	  { 1, 2, 3 } },
	{ "large letters",
	  "ENVI\nSAMPLES = 2\nLINES=1\nBands = 3\nDATA  TYPE = 12\nINTERLEAVE = BIP\nWAVELENGTH = {1,2,3}\n",
	  "all",
	  3,
	  { 1, 2, 3 } },
	{ "ends of lines of Windows",
	  "ENVI\r\nsamples = 2\r\nlines = 1\r\nbands = 3\r\ndata type = 12\r\ninterleave = bip\r\n"
	  "wavelength = {1,\r\n2,3}\r\n",
	  "all",
	  3,
	  { 1, 2, 3 } },
	{ "ends of lines of old Macs",
	  "ENVI\rsamples = 2\rlines = 1\rbands = 3\rdata type = 12\rinterleave = bip\rwavelength = {1,\r2,3}\r",
	  "all",
	  3,
	  { 1, 2, 3 } },
	{ "a mark of UTF-8",
	  "\xef\xbb\xbf"
	  "ENVI\n" SIZES,
	  "all",
	  3,
	  { 0 } },
};

static void others(void)
{
	static const uint16_t data[6] = { 1, 2, 3, 4, 5, 6 };
	write_text("o.img", data, sizeof data);
	for (size_t i = 0; i < sizeof written_by_others / sizeof *written_by_others; i++) {
		const struct yoke_cube_info none = { .size = sizeof none };
		struct yoke_cube_info info = none;
		char settings[40];
		float x[6] = { NAN };
		write_text("o.hdr", written_by_others[i].text, strlen(written_by_others[i].text));
		snprintf(settings, sizeof settings, "bands=%s", written_by_others[i].bands);
		yoke_cube *c = yoke_cube_open("o.hdr", settings);
		const int n = written_by_others[i].count;
		bool good =
			c && !yoke_cube_info(c, &info) && info.bands == n &&
			!yoke_cube_read(c, x, NULL) &&
			(info.wavelength != NULL) == (written_by_others[i].wavelength[0] != 0) &&
			x[2 * n - 1] == 6;
		for (int b = 0; good && info.wavelength && b < n; b++)
			good = info.wavelength[b] == written_by_others[i].wavelength[b] &&
			       x[b] == (float)info.wavelength[b];
		ok(good, "%s %s", written_by_others[i].what, yoke_error());
		yoke_error_clear();
		yoke_cube_free(c);
	}
	write_text("o.hdr", "ENVI\n" SIZES "bbl = {1, 1}\n",
		   strlen("ENVI\n" SIZES "bbl = {1, 1}\n"));
	yoke_cube *c = yoke_cube_open("o.hdr", "bands=good");
	ok(!c && yoke_error_code() == YOKE_EINVAL, "good bands of a bbl of other length: %s",
	   yoke_error());
	yoke_error_clear();
	yoke_cube_free(c);
}

// The data file for a header: its name, or an error.
static void data_files(void)
{
	static const struct {
		// is: the file that is used, NULL: none
		const char *folder, *header, *files[3], *is;
	} table[] = {
		{ "d1", "x.hdr", { "x.img", "x.dat" }, "x.img" },
		{ "d2", "x.hdr", { "x.rfl" }, "x.rfl" },
		{ "d3", "X.HDR", { "X.IMG" }, "X.IMG" },
		{ "d4", "X.HDR", { "x.img" }, "x.img" },
		{ "d5", "x.hdr", { "x.rfl", "x.glt" }, NULL },
		{ "d6", "x.hdr", { "x.rfl", "-x.txt" }, "x.rfl" }, // -: a short file
		{ "d7", "x.hdr", { "/x", "x.raw" }, "x.raw" },     // /: a directory
		{ "d8", "x.bil.hdr", { "x.bil" }, "x.bil" },
		{ "d9", "x.hdr", { "xy.img", "x.aux.xml" }, NULL },
		{ "d10", "x.hdr", { "x.Raw", "x.other" }, "x.Raw" },
	};
	static const char header[] = "ENVI\n" SIZES, data[12] = { 0 };
	char path[64], want[64];
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		struct yoke_cube_info info = { .size = sizeof info };
		mkdir(table[i].folder, 0777);
		for (int k = 0; k < 3 && table[i].files[k]; k++) {
			const char *name = table[i].files[k];
			const bool folder = *name == '/', brief = *name == '-';
			snprintf(path, sizeof path, "%s/%s", table[i].folder,
				 name + (folder || brief));
			if (folder)
				mkdir(path, 0777);
			else
				write_text(path, data, brief ? 11 : sizeof data);
		}
		snprintf(path, sizeof path, "%s/%s", table[i].folder, table[i].header);
		snprintf(want, sizeof want, "%s/%s", table[i].folder,
			 table[i].is ? table[i].is : "");
		write_text(path, header, sizeof header - 1);
		yoke_cube *c = yoke_cube_open(path, NULL);
		ok(table[i].is ? c && !yoke_cube_info(c, &info) && !strcmp(info.data, want) :
				 !c && yoke_error_code() == YOKE_ENOENT,
		   "%s of %s: %s", table[i].header, table[i].files[0],
		   c ? info.data : yoke_error());
		yoke_error_clear();
		yoke_cube_free(c);
	}
}

// How a header's ignore value compares with elements of each type: two pixels of the elements `is`
// and `other`.
static void ignored(void)
{
	const float f[] = { -9999.9f, -3.4e38f, -FLT_MAX, FLT_MAX, 1e-3f, 0, NAN, -INFINITY };
	const struct {
		int number;
		const char *text;
		const void *is, *other; // elements; is NULL: no element is ignored
	} table[] = {
		{ 4, "-9999.9", &f[0], &f[4] },
		{ 4, "-9999.89999999999964", &f[0], &f[4] },
		{ 4, "-3.4e+38", &f[1], &f[2] },
		{ 4, "-3.40282347e+38", &f[2], &f[1] },
		{ 4, "-3.402824e+38", &f[2], &f[1] },
		{ 4, "3.4028234663852886e+38", &f[3], &f[1] },
		{ 4, "0.001", &f[4], &f[5] },
		{ 4, "-0", &f[5], &f[4] },
		{ 4, "NaN", &f[6], &f[4] },
		{ 4, "-inf", &f[7], &f[2] },
		{ 4, "-1.7976931348623157e+308", &f[7], &f[2] },
		{ 5, "-9999.9", &(double){ -9999.9 }, &(double){ (double)-9999.9f } },
		{ 5, "nan", &(double){ NAN }, &(double){ 0 } },
		{ 1, "255", &(uint8_t){ 255 }, &(uint8_t){ 254 } },
		{ 1, "255.0", &(uint8_t){ 255 }, &(uint8_t){ 0 } },
		{ 1, "256", NULL, &(uint8_t){ 0 } },
		{ 1, "-1", NULL, &(uint8_t){ 255 } },
		{ 1, "0.5", NULL, &(uint8_t){ 0 } },
		{ 1, "nan", NULL, &(uint8_t){ 0 } },
		{ 1, "1e30", NULL, &(uint8_t){ 0 } },
		{ 2, "-32768", &(int16_t){ -32768 }, &(int16_t){ 32767 } },
		{ 2, "-9.999e3", &(int16_t){ -9999 }, &(int16_t){ 9999 } },
		{ 2, "32768", NULL, &(int16_t){ -32768 } },
		{ 12, "65535", &(uint16_t){ 65535 }, &(uint16_t){ 65534 } },
		{ 12, "-9999", NULL, &(uint16_t){ 55537 } },
		{ 3, "-2147483648", &(int32_t){ INT32_MIN }, &(int32_t){ INT32_MAX } },
		{ 13, "4294967295", &(uint32_t){ UINT32_MAX }, &(uint32_t){ UINT32_MAX - 1 } },
		{ 14, "9007199254740993", &(int64_t){ 9007199254740993 },
		  &(int64_t){ 9007199254740992 } },
		{ 14, "-9223372036854775808", &(int64_t){ INT64_MIN },
		  &(int64_t){ INT64_MIN + 1 } },
		{ 15, "18446744073709551615", &(uint64_t){ UINT64_MAX },
		  &(uint64_t){ UINT64_MAX - 1 } },
		{ 15, "18446744073709551616", NULL, &(uint64_t){ UINT64_MAX } },
	};
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		for (int order = 0; order < 3; order++) {
			const struct type *t = types;
			unsigned char data[16];
			char text[300];
			float x[2], weight[2] = { NAN, NAN };
			while (t->number != table[i].number)
				t++;
			memcpy(data, table[i].is ? table[i].is : table[i].other, (size_t)t->width);
			memcpy(data + t->width, table[i].other, (size_t)t->width);
			write_text("i.img", data, 2 * (size_t)t->width);
			snprintf(
				text, sizeof text,
				"ENVI\ndata ignore value = %s\nsamples = %d\nlines = %d\nbands = 1\ndata type = %d\n"
				"interleave = %s\n",
				table[i].text, 1 + (order < 2), 1 + (order == 2), t->number,
				orders[order]);
			write_text("i.hdr", text, strlen(text));
			yoke_cube *c = yoke_cube_open("i.hdr", NULL);
			ok(c && !yoke_cube_read(c, x, weight) &&
				   weight[0] == (table[i].is == NULL) && weight[1] == 1,
			   "%s ignored in %s, %s: weights %g and %g %s", table[i].text, t->name,
			   orders[order], weight[0], weight[1], yoke_error());
			yoke_error_clear();
			yoke_cube_free(c);
		}
}

// A MAT file of version 7.3 whose array has no class that MATLAB knows, as h5py writes it: its
// numbers are read as f64.
static void without_class(void)
{
#ifdef MATIO_LIBRARY
	static const char attribute[] = "MATLAB_class";
	float data[L * S * B], got[L * S * B], want[L * S * B];
	void *library = dlopen(MATIO_LIBRARY, RTLD_NOW | RTLD_LOCAL);
	mat_t *(*create)(const char *, const char *, enum mat_ft) = NULL;
	matvar_t *(*variable)(const char *, enum matio_classes, enum matio_types, int, size_t *,
			      const void *, int) = NULL;
	int (*add)(mat_t *, matvar_t *, enum matio_compression) = NULL,
					     (*done_with)(mat_t *) = NULL;
	void (*release)(matvar_t *) = NULL;
	const struct {
		const char *name;
		void *to;
	} call[] = { { "Mat_CreateVer", &create },
		     { "Mat_VarCreate", &variable },
		     { "Mat_VarWrite", &add },
		     { "Mat_Close", &done_with },
		     { "Mat_VarFree", &release } };
	bool there = library != NULL;
	for (int i = 0; there && i < 5; i++) {
		void *symbol = dlsym(library, call[i].name);
		memcpy(call[i].to, &symbol, sizeof symbol);
		there = symbol != NULL;
	}
	for (int i = 0; i < L * S * B; i++) { // column-major
		data[i] = (float)i;
		want[(i % L * S + i / L % S) * B + i / (L * S)] = data[i];
	}
	mat_t *f = there ? create("class.mat", NULL, MAT_FT_MAT73) : NULL;
	if (!f) {
		skip("a MAT file whose array has no class",
		     "no libmatio, or one without version 7.3");
		return;
	}
	matvar_t *v =
		variable("cube", MAT_C_SINGLE, MAT_T_SINGLE, 3, (size_t[]){ L, S, B }, data, 0);
	add(f, v, MAT_COMPRESSION_NONE);
	release(v);
	done_with(f);
	FILE *file = fopen("class.mat", "r+b");
	static char bytes[1 << 16];
	const size_t n = fread(bytes, 1, sizeof bytes, file);
	char *at = memmem(bytes, n, attribute, sizeof attribute);
	if (at)
		memcpy(at, "another_name", sizeof attribute - 1);
	rewind(file);
	fwrite(bytes, 1, n, file);
	fclose(file);
	struct yoke_cube_info info = { .size = sizeof info };
	yoke_cube *c = yoke_cube_open("class.mat", NULL);
	ok(at && c && !yoke_cube_info(c, &info) && !strcmp(info.type, "f64") && info.lines == L &&
		   info.samples == S && info.bands == B && !yoke_cube_read(c, got, NULL) &&
		   !memcmp(got, want, sizeof want),
	   "a MAT file of version 7.3 without a class: %s", yoke_error());
	yoke_error_clear();
	yoke_cube_free(c);
#else
	skip("a MAT file without a class", "built without libmatio");
#endif
}

static void refused(void)
{
	float x[L * S * B] = { [17] = 300 };
	struct yoke_cube_info i = { .size = sizeof i,
				    .lines = L,
				    .samples = S,
				    .bands = B,
				    .type = "u8",
				    .interleave = "bip",
				    .scale = 1,
				    .ignore = NAN };
	ok(yoke_cube_write("no.hdr", &i, x) == YOKE_ERANGE && access("no.hdr", F_OK) &&
		   access("no.img", F_OK),
	   "a number too large for its type is refused");
	ok(strstr(yoke_error(), "line 0, sample 5, band 2") != NULL, "the error names it: %s",
	   yoke_error());
	yoke_error_clear();
	i.type = "c64";
	ok(yoke_cube_write("no.hdr", &i, x) == YOKE_EINVAL, "a change of the type is refused");
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
		ok(yoke_cube_write("no.hdr", &odd, x) == YOKE_EINVAL && access("no.hdr", F_OK) &&
			   access("no.img", F_OK),
		   "a header that cannot be written: %s", yoke_error());
		yoke_error_clear();
	}
	yoke_cube_write("a.hdr", &i, x);
	char many[1200] = "bands=0";
	while (strlen(many) + 3 < sizeof many)
		strcat(many, ",1");
	struct yoke_cube_info all = { .size = sizeof all };
	yoke_cube *far = yoke_cube_open("a.hdr", many);
	ok(far && !yoke_cube_info(far, &all) && all.bands == (int64_t)(strlen(many) - 5) / 2,
	   "a list of %d bands", (int)all.bands);
	yoke_cube_free(far);
	yoke_dataset *same = yoke_dataset_cubes(1, (const char *[]){ "a.hdr" }, NULL, many);
	ok(same != NULL, "and a set of such: %s", yoke_error());
	yoke_dataset_free(same);
	i.bands = 2;
	yoke_cube_write("b.hdr", &i, x);
	yoke_dataset *d = yoke_dataset_cubes(2, (const char *[]){ "a.hdr", "b.hdr" }, NULL, NULL);
	ok(!d && yoke_error_code() == YOKE_ESHAPE && strstr(yoke_error(), "b.hdr"),
	   "cubes with different bands: %s", yoke_error());
	yoke_error_clear();
	i.bands = 3;
	yoke_cube_write("b.hdr", &i, x);
	d = yoke_dataset_cubes(2, (const char *[]){ "a.hdr", "b.hdr" }, NULL, NULL);
	i.bands = 2;
	yoke_cube_write("b.hdr", &i, x);
	float w[L * S];
	int err = d ? yoke_dataset_read(d, 1, 0, 0, 1, (void *[]){ x, w }, NULL) : 0;
	ok(err == YOKE_ESHAPE && strstr(yoke_error(), "b.hdr"), "a changed cube is refused: %s",
	   yoke_error());
	yoke_error_clear();
	yoke_dataset_free(d);
	static const char *const settings[] = { "bands=3", "bands=0-", "bands=2-1",
						"band=1",  "bands=",   "bands=x" };
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
		yoke_loader *l = yoke_loader_new(d, k ? "batch=3 shuffle=0 epochs=1 workers=4" :
							"batch=3 shuffle=0 epochs=1 workers=0");
		if (yoke_loader_host(l, 3, data, NULL) == N) {
			memcpy(kept[k], data[0], sizeof kept[k]);
			first[k] = kept[k];
			const uint8_t *label = data[2];
			for (int i = 0; i < N * PIXELS; i++)
				scores[i][1] = label[i];
		}
		yoke_loader_free(l);
	}
	ok(first[0] && first[1] && !memcmp(kept[0], kept[1], sizeof kept[0]),
	   "generated cubes have the same bits with 0 and 4 threads");
	// the mean over pixels of the middle band outside of discs: 100 exp(0) times 1 + .2 sin,
	// whose mean is 1
	const float *x = (const float *)(const void *)kept[0];
	double sum = 0, n = 0, noise = 0;
	for (int i = 0; i < N * PIXELS; i++) {
		const double light = (1 + .2 * sin(2 * M_PI * (i / SIDE % SIDE) / SIDE)) *
				     (1 + .2 * cos(2 * M_PI * (i % SIDE) / SIDE));
		const double w = 25. / 49, want = 100 * exp(-(w - .5) * (w - .5) / .1) * light;
		if (scores[i][1] != 0)
			continue;
		const double e = x[i * BANDS + 25] - want;
		n++;
		sum += e;
		noise += e * e;
	}
	ok(fabs(sum / n) < 0.6 && fabs(sqrt(noise / n) - 10) < 0.5,
	   "generated cubes follow the formula, with noise of %.2f about %.2f", sqrt(noise / n),
	   sum / n);
	ok(1 - n / (N * PIXELS) >= 0.05 && 1 - n / (N * PIXELS) < 0.08,
	   "%.3f of the pixels are inside discs", 1 - n / (N * PIXELS));
	yoke_pipeline *p = yoke_pipeline_new(
		"{\"nodes\": [{\"name\": \"scale\", \"type\": \"min_max\"},"
		"{\"name\": \"pca\", \"type\": \"pca\", \"k\": 10}, {\"name\": \"rx\", \"type\": \"rx\"}]}");
	int err = yoke_pipeline_fit(p, d, "batch=2 workers=2");
	yoke_scope *s = yoke_scope_begin("scores");
	if (!err)
		err = yoke_read(
			yoke_pipeline_apply(p, NULL,
					    yoke_from(yoke_f32, 2, DIMS(N * PIXELS, BANDS), x)),
			rx, sizeof rx);
	yoke_scope_end(s);
	double positives = 0, ranks = 0;
	for (int i = 0; i < N * PIXELS; i++)
		scores[i][0] = rx[i];
	qsort(scores, N * PIXELS, sizeof *scores, by_score);
	for (int i = 0; i < N * PIXELS; i++)
		if (scores[i][1] != 0)
			positives++, ranks += i + 1;
	const double auc =
		(ranks - positives * (positives + 1) / 2) / (positives * (N * PIXELS - positives));
	ok(!err && auc > 0.99, "rx after pca finds the anomalies: area under the curve %.4f %s",
	   auc, yoke_error());
	yoke_pipeline_free(p);
	yoke_dataset_free(d);
	d = yoke_dataset_synthetic("bandz=3");
	ok(!d && strstr(yoke_error(), "bands"), "an unknown key: %s", yoke_error());
	yoke_error_clear();
}

static void set_of_files(void)
{
	float x[2][L * S * B], label[2][L * S], got[L * S * B], weight[L * S];
	uint8_t mask[L * S];
	struct yoke_cube_info i = { .size = sizeof i,
				    .lines = L,
				    .samples = S,
				    .bands = B,
				    .type = "f32",
				    .interleave = "bil",
				    .scale = 1,
				    .ignore = NAN },
			      m = i;
	const char *const cubes[2] = { "s0.hdr", "s1.npy" },
		   *const labels[2] = { "l0.npy", "l1.hdr" };
	m.bands = 1;
	m.type = "u8";
	for (int k = 0; k < 2; k++) {
		for (int n = 0; n < L * S * B; n++)
			x[k][n] = (float)rnd_real(-1, 1);
		for (int n = 0; n < L * S; n++)
			label[k][n] = (float)rnd_int(0, 2);
		ok(!yoke_cube_write(cubes[k], &i, x[k]) &&
			   !yoke_cube_write(labels[k], &m, label[k]),
		   "%s and %s %s", cubes[k], labels[k], yoke_error());
	}
	yoke_dataset *d = yoke_dataset_cubes(2, cubes, labels, NULL);
	for (int k = 0; k < 2; k++) {
		int err = d ? yoke_dataset_read(d, k, 0, 0, k, (void *[]){ got, weight, mask },
						NULL) :
			      -1;
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
	waves();
	scale_and_gain("data gain values={1, 1.0}", 0);
	scale_and_gain("data offset values={0, 0}", 0);
	scale_and_gain("data gain values={1, 2}", YOKE_EUNSUPPORTED);
	scale_and_gain("data offset values={0, 2}", YOKE_EUNSUPPORTED);
	headers(argc > 1 ? argv[1] : NULL);
	others();
	data_files();
	ignored();
	without_class();
	refused();
	set_of_files();
	drawn();
	return done();
}
