// SPDX-License-Identifier: Apache-2.0
// Tests images: resizing against a float64 loop, PNG and JPEG files that the test writes,
// directories of classes, random crops, and files that are truncated, damaged or inconsistent.
// With an argument FOLDER it writes hostile files there, as seeds for tests/fuzz.
#include "config.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "data/resize.h"
#include "formats/image.h"
#include "fuzz/targets.h"
#include "hostile.h"
#include "tap.h"
#include "yoke-data.h"

#ifdef HAVE_PNG
#include <png.h>
#endif
#ifdef HAVE_JPEG
#include <jpeglib.h>
#endif

// ---- resizing ----

static double triangle(double x)
{
	return fabs(x) < 1 ? 1 - fabs(x) : 0;
}

// Weight of pixel i of n for pixel k of `to` pixels along an axis.
static double weight(int i, int n, int k, int to, double begin, double length)
{
	const double step = length / to, wide = step > 1 ? step : 1,
		     center = begin + (k + 0.5) * step;
	double sum = 0;
	for (int j = 0; j < n; j++)
		sum += triangle((j + 0.5 - center) / wide);
	return triangle((i + 0.5 - center) / wide) / sum;
}

static void test_resize(void)
{
	double worst = 0;
	const int cases = tap_cases(40, 1000);
	for (int k = 0; k < cases; k++) {
		struct yk_image im = { .width = (int)rnd_int(1, 40),
				       .height = (int)rnd_int(1, 30) };
		unsigned char rgb[3 * 40 * 30];
		struct yk_resize r = { .to_width = (int)rnd_int(1, 30),
				       .to_height = (int)rnd_int(1, 30),
				       .mirror = rnd_int(0, 1),
				       .scale = { 1, 0.5f, 2 },
				       .shift = { 0, 3, -1 } };
		static float got[3 * 30 * 30];
		im.rgb = rgb;
		for (int i = 0; i < 3 * im.width * im.height; i++)
			rgb[i] = (unsigned char)rnd();
		r.left = rnd_real(0, im.width * 0.5);
		r.width = rnd_real(0.3, im.width - r.left);
		r.top = rnd_real(0, im.height * 0.5);
		r.height = rnd_real(0.3, im.height - r.top);
		for (int i = 0; i < 2700; i++)
			got[i] = NAN;
		if (yk_resize(&im, &r, got) < 0)
			worst = INFINITY;
		for (int c = 0; c < 3; c++)
			for (int y = 0; y < r.to_height; y++)
				for (int x = 0; x < r.to_width; x++) {
					double want = 0;
					const int from = r.mirror ? r.to_width - 1 - x : x;
					for (int j = 0; j < im.height; j++) {
						const double w =
							weight(j, im.height, y, r.to_height, r.top,
							       r.height);
						for (int i = 0; i < im.width && w > 0; i++)
							want += w *
								weight(i, im.width, from,
								       r.to_width, r.left,
								       r.width) *
								rgb[3 * (j * im.width + i) + c];
					}
					want = (double)r.scale[c] * want + (double)r.shift[c];
					const double off = fabs(
						(double)got[(c * r.to_height + y) * r.to_width +
							    x] -
						want);
					worst = off > worst || isnan(off) ? off : worst;
				}
	}
	ok(worst < 2e-3, "%d parts of images at other sizes: within %.2g of 255", cases, worst);
}

// ---- files ----

static struct yk_image draw_image(int width, int height)
{
	struct yk_image im = { width, height, malloc((size_t)(3 * width * height)) };
	const int a = (int)rnd_int(0, 255), b = (int)rnd_int(1, 9);
	for (int y = 0; y < height; y++)
		for (int x = 0; x < width; x++)
			for (int c = 0; c < 3; c++)
				im.rgb[3 * (y * width + x) + c] =
					(unsigned char)(127 +
							100 * sin((a + b * (x + 2 * y) + 40 * c) *
								  0.02));
	return im;
}

#ifdef HAVE_PNG
enum kind { RGB, RGBA, GREY, RGB16, INTERLACED, KINDS };

static void write_png(const char *path, const struct yk_image *im, enum kind kind)
{
	FILE *f = fopen(path, "wb");
	png_structp p = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
	png_infop info = png_create_info_struct(p);
	const int channels = kind == GREY ? 1 : kind == RGBA ? 4 : 3, deep = kind == RGB16 ? 2 : 1;
	unsigned char *row = malloc((size_t)(im->width * channels * deep));
	png_init_io(p, f);
	png_set_IHDR(p, info, (png_uint_32)im->width, (png_uint_32)im->height, 8 * deep,
		     kind == GREY ? PNG_COLOR_TYPE_GRAY :
		     kind == RGBA ? PNG_COLOR_TYPE_RGBA :
				    PNG_COLOR_TYPE_RGB,
		     kind == INTERLACED ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
		     PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
	png_write_info(p, info);
	const int passes = png_set_interlace_handling(p);
	for (int pass = 0; pass < passes; pass++)
		for (int y = 0; y < im->height; y++) {
			for (int x = 0; x < im->width; x++)
				for (int c = 0; c < channels; c++) {
					const unsigned char v =
						c == 3 ? 7 : im->rgb[3 * (y * im->width + x) + c];
					row[(x * channels + c) * deep] = v;
					if (deep == 2)
						row[(x * channels + c) * 2 + 1] = 200;
				}
			png_write_row(p, row);
		}
	png_write_end(p, info);
	png_destroy_write_struct(&p, &info);
	free(row);
	fclose(f);
}
#endif

#ifdef HAVE_JPEG
static void write_jpeg(const char *path, const struct yk_image *im, bool progressive,
		       J_COLOR_SPACE space)
{
	struct jpeg_compress_struct j;
	struct jpeg_error_mgr error;
	FILE *f = fopen(path, "wb");
	unsigned char *wide = malloc((size_t)(4 * im->width));
	j.err = jpeg_std_error(&error);
	jpeg_create_compress(&j);
	jpeg_stdio_dest(&j, f);
	j.image_width = (JDIMENSION)im->width;
	j.image_height = (JDIMENSION)im->height;
	j.input_components = space == JCS_CMYK ? 4 : 3;
	j.in_color_space = space == JCS_CMYK ? JCS_CMYK : JCS_RGB;
	jpeg_set_defaults(&j);
	jpeg_set_quality(&j, 95, TRUE);
	if (space != JCS_YCbCr)
		jpeg_set_colorspace(&j, space);
	if (progressive)
		jpeg_simple_progression(&j);
	jpeg_start_compress(&j, TRUE);
	while (j.next_scanline < j.image_height) {
		JSAMPROW row = im->rgb + (size_t)3 * (size_t)im->width * j.next_scanline;
		memset(wide, 9, (size_t)(4 * im->width));
		if (space == JCS_CMYK)
			row = wide;
		jpeg_write_scanlines(&j, &row, 1);
	}
	jpeg_finish_compress(&j);
	jpeg_destroy_compress(&j);
	free(wide);
	fclose(f);
}
#endif

#if defined HAVE_PNG || defined HAVE_JPEG
static int read_file(const char *path, struct yk_image *to)
{
	char *data;
	size_t n;
	if (yk_file_read(path, 1 << 24, &data, &n) < 0)
		return -1;
	const int e = yk_image_decode(to, path, (unsigned char *)data, n);
	free(data);
	return e;
}
#endif

static void test_formats(void)
{
#ifdef HAVE_PNG
	static const char *const name[KINDS] = { "RGB", "RGBA", "grey", "16 bits", "interlaced" };
	for (int k = 0; k < KINDS; k++) {
		bool good = true;
		for (int i = 0; i < 5 && good; i++) {
			struct yk_image im = draw_image((int)rnd_int(1, 40), (int)rnd_int(1, 40)),
					got;
			write_png("x.png", &im, (enum kind)k);
			good = read_file("x.png", &got) == 0 && got.width == im.width &&
			       got.height == im.height;
			for (int p = 0; p < im.width * im.height && good; p++)
				for (int c = 0; c < 3; c++)
					good = good && got.rgb[3 * p + c] ==
							       im.rgb[3 * p + (k == GREY ? 0 : c)];
			free(im.rgb);
			if (good)
				free(got.rgb);
		}
		ok(good, "PNG, %s: %s", name[k], yoke_error());
	}
#else
	skip("PNG", "built without libpng");
#endif
#ifdef HAVE_JPEG
	static const J_COLOR_SPACE space[] = { JCS_YCbCr, JCS_YCbCr, JCS_GRAYSCALE, JCS_RGB };
	for (int k = 0; k < 4; k++) {
		struct yk_image im = draw_image((int)rnd_int(20, 60), (int)rnd_int(20, 60)), got;
		double off = 0;
		write_jpeg("x.jpg", &im, k == 1, space[k]);
		const bool good = read_file("x.jpg", &got) == 0 && got.width == im.width &&
				  got.height == im.height;
		for (int p = 0; p < im.width * im.height && good; p++) {
			const unsigned char *c = &im.rgb[3 * p];
			for (int i = 0; i < 3; i++)
				off += fabs(got.rgb[3 * p + i] -
					    (k == 2 ? 0.299 * c[0] + 0.587 * c[1] + 0.114 * c[2] :
						      c[i]));
		}
		off /= 3.0 * im.width * im.height;
		ok(good && off < 4, "decoded JPEG %d equals the original to %.2g of 255: %s", k,
		   off, yoke_error());
		free(im.rgb);
		if (good)
			free(got.rgb);
	}
#else
	skip("JPEG", "built without libjpeg");
#endif
}

// ---- folders ----

#ifdef HAVE_PNG
enum { W = 12, H = 8 };
static struct yk_image picture[6];

static void make_folder(void)
{
	static const char *const path[] = { "f/b/1.png",   "f/b/2.PNG", "f/a c/0.png",
					    "f/a c/x.png", "f/z/1.png", "f/z/2.png" };
	tap_need(
		"rm -rf f && mkdir -p f/b 'f/a c' f/z f/.hidden && echo no >f/z/README && ln -s ../b f/z/link");
	for (int i = 0; i < 6; i++) {
		free(picture[i].rgb);
		picture[i] = draw_image(W, H);
		write_png(path[i], &picture[i], RGB);
	}
}

static void test_folder(void)
{
	static const int order[] = { 2, 3, 0, 1, 4, 5 }, class[] = { 0, 0, 1, 1, 2, 2 };
	float got[3 * H * W], mean[] = { 0.1f, 0.2f, 0.3f }, std[] = { 0.5f, 1, 2 };
	int32_t label;
	void *to[] = { got, &label };
	make_folder();
	yoke_dataset *d =
		yoke_dataset_open("f", "size=8x12 crop=none mean=0.1,0.2,0.3 std=0.5,1,2");
	struct yoke_field f[2] = { { .size = sizeof *f } };
	ok(d && yoke_dataset_count(d) == 6 && yoke_dataset_fields(d, 2, f) == 2 && f[0].rank == 3 &&
		   f[0].dims[0] == 3 && f[0].dims[1] == H && f[0].dims[2] == W &&
		   f[1].dtype == yoke_i32 && f[1].rank == 0,
	   "a folder of classes: %s", yoke_error());
	double worst = 0;
	bool good = d != NULL;
	for (int i = 0; i < 6 && good; i++) {
		good = yoke_dataset_read(d, i, 0, 0, i, to, NULL) == 0 && label == class[i];
		for (int k = 0; k < 3 * H * W && good; k++) {
			const int c = k / (H * W), p = k % (H * W);
			const double want =
				(picture[order[i]].rgb[3 * p + c] / 255.0 - (double)mean[c]) /
				(double)std[c];
			worst = fmax(worst, fabs(want - (double)got[k]));
		}
	}
	ok(good && worst < 1e-6,
	   "images in original size, normalized, with classes in the order of their names: %g %s",
	   worst, yoke_error());
	ok(good && !strcmp(yoke_dataset_label(d, "class", 0), "a c") &&
		   !yoke_dataset_label(d, "class", 3) && !yoke_dataset_label(d, "image", 0),
	   "classes are named");
	unlink("f/z/1.png");
	ok(yoke_dataset_read(d, 4, 0, 0, 4, to, NULL) == YOKE_ENOENT &&
		   strstr(yoke_error(), "f/z/1.png"),
	   "%s", yoke_error());
	yoke_error_clear();
	yoke_dataset_free(d);
	make_folder();
}

// Random crops depend on seed, epoch and sample, not on the reading thread.
static void test_random(void)
{
	enum { N = 6, SIZE = 3 * 5 * 5 };
	yoke_dataset *d = yoke_dataset_open("f", "size=5 crop=random flip=1");
	float first[3 * N][SIZE];
	bool same = d != NULL, moved = false;
	for (int workers = 0; workers < 4 && same; workers += 3) {
		char settings[80];
		void *data[2];
		int at = 0;
		snprintf(settings, sizeof settings,
			 "batch=4 workers=%d shuffle=0 last=keep epochs=3 seed=5", workers);
		yoke_loader *l = yoke_loader_new(d, settings);
		for (int64_t rows; (rows = yoke_loader_host(l, 2, data, NULL)) > 0; at += (int)rows)
			if (workers == 0)
				memcpy(first[at], data[0], (size_t)rows * sizeof *first);
			else
				same = same &&
				       !memcmp(first[at], data[0], (size_t)rows * sizeof *first);
		same = same && at == 3 * N;
		yoke_loader_free(l);
	}
	for (int i = 0; i < N && same; i++)
		moved |= memcmp(first[i], first[N + i], sizeof *first) != 0;
	ok(same && moved, "random crops are the same for any threads, different in each epoch: %s",
	   yoke_error());
	// an image whose pixels encode their positions: half are mirrored, all crops are inside
	struct yk_image im = { 40, 30, malloc(3600) };
	for (int i = 0; i < 1200; i++)
		im.rgb[3 * i] = (unsigned char)(5 * (i % 40)),
			   im.rgb[3 * i + 1] = (unsigned char)(5 * (i / 40)), im.rgb[3 * i + 2] = 0;
	yoke_dataset_free(d);
	tap_need("rm -rf g && mkdir -p g/a");
	write_png("g/a/x.png", &im, RGB);
	d = yoke_dataset_open("g", "size=4x6 crop=random flip=1");
	int mirrored = 0;
	double min = INFINITY, max = 0;
	bool good = d != NULL;
	for (int i = 0; i < 200 && good; i++) {
		float got[3][4][6];
		int32_t label;
		void *to[] = { got, &label };
		good = yoke_dataset_read(d, 0, 9, i, 0, to, NULL) == 0;
		// a pixel's red is 5/255 of its position, so the slope is the width of the crop
		// over 6
		const double slope =
			((double)got[0][0][4] - (double)got[0][0][1]) / 3 * 255 / 5 * 6;
		const double tall = ((double)got[1][2][0] - (double)got[1][1][0]) * 255 / 5 * 4;
		mirrored += slope < 0;
		min = fmin(min, fabs(slope) * tall);
		max = fmax(max, fabs(slope) * tall);
		good = good && fabs(slope) <= 40.5 && tall <= 30.5 && tall > 0;
	}
	ok(good && mirrored > 60 && mirrored < 140 && min > 0.04 * 1200 && min < 0.2 * 1200 &&
		   max > 0.7 * 1200,
	   "crops of %.0f to %.0f of 1200 pixels, %d of 200 mirrored", min, max, mirrored);
	yoke_dataset_free(d);
	d = yoke_dataset_open("g", "size=30 zoom=0.5");
	float got[3][30][30];
	int32_t label;
	void *to[] = { got, &label };
	good = d && yoke_dataset_read(d, 0, 0, 0, 0, to, NULL) == 0;
	// the middle 15 x 15 of 40 x 30: red from about 12.5 on, green from 7.5
	ok(good && fabs((double)got[0][15][15] * 255 / 5 - 19.75) < 0.3 &&
		   fabs((double)got[0][15][2] * 255 / 5 - 13.25) < 0.3 &&
		   fabs((double)got[1][2][15] * 255 / 5 - 8.25) < 0.3,
	   "the center crop: %g %g %g", (double)got[0][15][15] * 51, (double)got[0][15][2] * 51,
	   (double)got[1][2][15] * 51);
	yoke_dataset_free(d);
	free(im.rgb);
}

static void test_settings(void)
{
	static const struct {
		const char *path, *settings, *say;
	} row[] = {
		{ "f", NULL, "images take size=" },
		{ "f", "size=0", "1 to 4096" },
		{ "f", "size=5x5x5", "size=5x5x5" },
		{ "f", "size=5 crop=left", "center, random or none" },
		{ "f", "size=5 flip=2", "0 or 1" },
		{ "f", "size=5 mean=1,2", "one for each channel" },
		{ "f", "size=5 std=0", "above 0" },
		{ "f", "size=5 mean=x", "mean=x" },
		{ "f", "size=5 zoom=2", "zoom=2" },
		{ "f", "size=5 dims=2", "images take no" },
		{ "none", "size=5 format=images", "none" },
		{ "empty", "size=5", "no folders of images" },
		{ "lacking", "size=5", "class b has no images" },
	};
	tap_need(
		"mkdir -p empty lacking/a lacking/b && cp f/b/1.png lacking/a && touch lacking/b/readme.txt");
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		yoke_dataset *d = yoke_dataset_open(row[i].path, row[i].settings);
		ok(!d && strstr(yoke_error(), row[i].say), "%s %s: %s", row[i].path,
		   row[i].settings ? row[i].settings : "", yoke_error());
		yoke_error_clear();
		yoke_dataset_free(d);
	}
}
#endif

// ---- hostile ----

static void refused(const char *what, const void *data, size_t n, int code, const char *say)
{
	struct yk_image im;
	const int e = yk_image_decode(&im, "bad", data, n);
	ok(e < 0 && is_error(e, code, say), "%s: %s", what, yoke_error());
	yoke_error_clear();
	if (e == 0)
		free(im.rgb);
}

#if defined HAVE_PNG || defined HAVE_JPEG
// Truncated everywhere, and with altered bytes: an image, or one line.
static void try_all(const char *path, const char *name)
{
	char *data;
	size_t n;
	bool good = yk_file_read(path, 1 << 20, &data, &n) == 0;
	const int open = open_files();
	for (size_t k = 0; k < n && good; k += 1 + n / 300) {
		struct yk_image im;
		unsigned char *part = malloc(k + 1); // so that an access past the end shows
		memcpy(part, data, k);
		const int e = yk_image_decode(&im, path, part, k);
		good = e == YOKE_EFORMAT && strstr(yoke_error(), path) &&
		       !strchr(yoke_error(), '\n');
		yoke_error_clear();
		free(part);
	}
	ok(good && open_files() == open, "%s, truncated anywhere, is refused: %s", name,
	   yoke_error());
	yoke_error_clear();
	for (int k = 0; k < tap_cases(300, 20000) && n; k++) {
		const size_t at = (size_t)rnd_int(0, (int64_t)n - 1);
		const char was = data[at];
		data[at] = (char)rnd();
		yk_fuzz_image((uint8_t *)data, n);
		data[at] = was;
	}
	ok(true, "%s with altered bytes", name);
	free(data);
}
#endif

static void test_hostile(void)
{
	refused("no image", "GIF89a..", 8, YOKE_EFORMAT, "not a JPEG or PNG");
	refused("nothing", "", 0, YOKE_EFORMAT, "not a JPEG or PNG");
	struct yk_image im = draw_image(20, 10);
	char *data;
	size_t n;
	(void)data, (void)n;
#ifdef HAVE_PNG
	for (int k = 0; k < KINDS; k++) {
		write_png("bad.png", &im, (enum kind)k);
		if (k == RGB || k == INTERLACED)
			try_all("bad.png", k == RGB ? "PNG" : "interlaced PNG");
	}
	write_png("bad.png", &im, RGB);
	yk_file_read("bad.png", 1 << 20, &data, &n);
	memcpy(data + 16, "\0\0\x40\x01", 4); // a side of 16385, and the checksum of it
	refused("a header that is altered", data, n, YOKE_EFORMAT, "CRC");
	free(data);
#endif
#ifdef HAVE_JPEG
	write_jpeg("bad.jpg", &im, false, JCS_YCbCr);
	try_all("bad.jpg", "JPEG");
	yk_file_read("bad.jpg", 1 << 20, &data, &n);
	char *sof = memmem(data, n, "\xff\xc0", 2);
	memcpy(sof + 5, "\xfd\xe8\xfd\xe8", 4);
	refused("65000 x 65000 pixels", data, n, YOKE_ERANGE, "sides may have");
	memcpy(sof + 5, "\x40\x00\x20\x00", 4); // 16384 x 8192 = 2^27
	refused("too many pixels", data, n, YOKE_ERANGE, "8192 x 16384");
	free(data);
	write_jpeg("bad.jpg", &im, true, JCS_YCbCr);
	try_all("bad.jpg", "progressive JPEG");
	// repeated scans: decoding ends after the first 100
	yk_file_read("bad.jpg", 1 << 20, &data, &n);
	char *end = data + n - 2, *scan = data, *next;
	while ((next = memmem(scan + 2, (size_t)(end - scan - 2), "\xff\xda", 2)))
		scan = next;
	const size_t piece = (size_t)(end - scan);
	char *bomb = malloc(n + 200 * piece);
	memcpy(bomb, data, n - 2);
	for (int k = 0; k < 200; k++)
		memcpy(bomb + n - 2 + (size_t)k * piece, scan, piece);
	memcpy(bomb + n - 2 + 200 * piece, "\xff\xd9", 2);
	struct yk_image got;
	const int e = yk_image_decode(&got, "bad", (unsigned char *)bomb, n + 200 * piece);
	ok(e == YOKE_EFORMAT, "a JPEG of 200 scans: %s", yoke_error());
	yoke_error_clear();
	free(bomb);
	free(data);
	write_jpeg("bad.jpg", &im, false, JCS_CMYK);
	ok(read_file("bad.jpg", &got) == YOKE_EUNSUPPORTED && strstr(yoke_error(), "CMYK"), "%s",
	   yoke_error());
	yoke_error_clear();
#endif
	free(im.rgb);
}

static int write_seeds(const char *to)
{
	struct yk_image im = draw_image(9, 7);
	char *data;
	size_t n;
	int i = 0;
	(void)data, (void)n, (void)to, (void)i;
#ifdef HAVE_PNG
	for (int k = 0; k < KINDS; k++) {
		write_png("seed.png", &im, (enum kind)k);
		yk_file_read("seed.png", 1 << 20, &data, &n);
		seed(to, "image", i++, data, n);
		free(data);
	}
	unlink("seed.png");
#endif
#ifdef HAVE_JPEG
	for (int k = 0; k < 3; k++) {
		write_jpeg("seed.jpg", &im, k == 1, k == 2 ? JCS_CMYK : JCS_YCbCr);
		yk_file_read("seed.jpg", 1 << 20, &data, &n);
		seed(to, "image", i++, data, n);
		free(data);
	}
	unlink("seed.jpg");
#endif
	free(im.rgb);
	return 0;
}

int main(int argc, char **argv)
{
	tap_seed();
	setenv("YOKE_LOG", "error", 1);
	if (argc > 1)
		return write_seeds(argv[1]);
	tap_folder();
	test_resize();
	test_formats();
#ifdef HAVE_PNG
	test_folder();
	test_random();
	test_settings();
	for (int i = 0; i < 6; i++)
		free(picture[i].rgb);
#else
	skip("folders of images", "built without libpng");
#endif
	test_hostile();
	return done();
}
