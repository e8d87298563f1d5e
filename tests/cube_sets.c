// SPDX-License-Identifier: Apache-2.0
// Tests sets of hyperspectral cubes: non-finite pixels, masks, several cubes in a .npy file,
// column-major arrays, MAT files that the test writes byte by byte, samples kept in memory, and
// zero-copy reads on the CPU.
#include "config.h"

#include <stdatomic.h>

#include "formats/image.h"
#include "tap.h"
#include "yoke-cube.h"

enum { L = 5, S = 7, B = 3, N = 4 };

static void write_bytes(const char *path, const void *data, size_t bytes)
{
	FILE *f = fopen(path, "wb");
	fwrite(data, 1, bytes, f);
	fclose(f);
}

// Writes an f32 array as NumPy saves it.
static void write_npy(const char *path, const char *shape, bool fortran, const char *descr,
		      const void *data, size_t bytes)
{
	unsigned char file[128 + N * L * S * B * 8] = "\x93NUMPY\x01";
	memset(file + 10, ' ', 117);
	file[127] = '\n';
	file[8] = 118;
	const int n = snprintf((char *)file + 10, 117,
			       "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }", descr,
			       fortran ? "True" : "False", shape);
	file[10 + n] = ' ';
	memcpy(file + 128, data, bytes);
	write_bytes(path, file, 128 + bytes);
}

static float x[N][L][S][B];

static void draw(void)
{
	for (int i = 0; i < N * L * S * B; i++)
		(&x[0][0][0][0])[i] = (float)rnd_int(0, 1000);
}

// Does a cube hold sample k?
static void holds(const char *path, const char *settings, int k, const char *what)
{
	float got[L][S][B];
	yoke_cube *c = yoke_cube_open(path, settings);
	memset(got, 0xff, sizeof got);
	const int err = c ? yoke_cube_read(c, &got[0][0][0], NULL) : -1;
	ok(!err && !memcmp(got, x[k], sizeof got), "%s %s", what, yoke_error());
	yoke_error_clear();
	yoke_cube_free(c);
}

static int read_sample(const yoke_dataset *d, int64_t i, float *to, float *weight, uint8_t *label)
{
	return d ? yoke_dataset_read(d, i, 0, 0, i, (void *[]){ to, weight, label }, NULL) :
		   yoke_error_code();
}

// ---- .npy ----

static void arrays(void)
{
	static double columns[B][S][L];
	for (int l = 0; l < L; l++)
		for (int s = 0; s < S; s++)
			for (int b = 0; b < B; b++)
				columns[b][s][l] = x[2][l][s][b];
	write_npy("fortran.npy", "(5, 7, 3)", true, "<f8", columns, sizeof columns);
	holds("fortran.npy", NULL, 2, "an array in Fortran's order");
	yoke_cube *c = yoke_cube_open("fortran.npy", "bands=2,0");
	float two[L][S][2];
	bool right = c && !yoke_cube_read(c, &two[0][0][0], NULL);
	for (int i = 0; i < L * S && right; i++)
		right = two[i / S][i % S][0] == x[2][i / S][i % S][2] &&
			two[i / S][i % S][1] == x[2][i / S][i % S][0];
	ok(right, "a selection of two bands %s", yoke_error());
	yoke_cube_free(c);

	// several cubes in a file, with several sets of labels and masks
	static uint8_t label[N][L][S], mask[N][L][S];
	for (int i = 0; i < N * L * S; i++) {
		label[i / (L * S)][i / S % L][i % S] = (uint8_t)rnd_int(0, 1);
		mask[i / (L * S)][i / S % L][i % S] = (uint8_t)rnd_int(0, 1);
	}
	write_npy("four.npy", "(4, 5, 7, 3)", false, "<f4", x, sizeof x);
	write_npy("labels.npy", "(4, 5, 7)", false, "|u1", label, sizeof label);
	write_npy("masks.npy", "(4, 5, 7, 1)", false, "|b1", mask, sizeof mask);
	holds("four.npy", "item=3", 3, "one of four");
	c = yoke_cube_open("four.npy", "item=4");
	ok(!c && yoke_error_code() == YOKE_EINVAL && strstr(yoke_error(), "it has 4"),
	   "a fifth cube does not exist: %s", yoke_error());
	yoke_error_clear();
	const struct yoke_cube_files o = { .size = sizeof o,
					   .n = 1,
					   .path = (const char *[]){ "four.npy" },
					   .label = (const char *[]){ "labels.npy" },
					   .mask = (const char *[]){ "masks.npy" } };
	yoke_dataset *d = yoke_dataset_cube_files(&o);
	right = d && yoke_dataset_count(d) == N;
	for (int k = 0; k < N && right; k++) {
		float got[L][S][B], weight[L][S];
		uint8_t l[L][S];
		right = !read_sample(d, k, &got[0][0][0], &weight[0][0], &l[0][0]) &&
			!memcmp(got, x[k], sizeof got) && !memcmp(l, label[k], sizeof l);
		for (int i = 0; i < L * S && right; i++)
			right = weight[i / S][i % S] == (float)(mask[k][i / S][i % S] != 0);
	}
	ok(right, "a set of four cubes, with labels, and weights from masks %s", yoke_error());
	yoke_error_clear();
	yoke_dataset_free(d);
}

// ---- what is not finite ----

static void nonfinite(void)
{
	float bad[L][S][B], got[L][S][B], weight[L][S];
	const char *const paths[] = { "nan.npy", "good.npy" },
		   *const masks[] = { "out.npy", "all.npy" };
	uint8_t mask[L][S];
	memcpy(bad, x[0], sizeof bad);
	bad[3][4][1] = NAN;
	bad[3][4][2] = -INFINITY;
	bad[0][6][0] = INFINITY;
	write_npy(paths[0], "(5, 7, 3)", false, "<f4", bad, sizeof bad);
	write_npy(paths[1], "(5, 7, 3)", false, "<f4", x[1], sizeof bad);
	yoke_dataset *d = yoke_dataset_cubes(2, paths, NULL, NULL);
	ok(read_sample(d, 0, &got[0][0][0], &weight[0][0], NULL) == YOKE_ERANGE &&
		   strstr(yoke_error(), "nan.npy: line 0, sample 6: band 0 is inf"),
	   "a non-finite pixel is named: %s", yoke_error());
	yoke_error_clear();
	ok(!read_sample(d, 1, &got[0][0][0], &weight[0][0], NULL), "the other cube is read %s",
	   yoke_error());
	yoke_dataset_free(d);
	d = yoke_dataset_cubes(2, paths, NULL, "bands=0-2 nonfinite=skip");
	for (int i = 0; i < 4; i++) // twice
		read_sample(d, i % 2, &got[0][0][0], &weight[0][0], NULL);
	ok(yoke_dataset_cubes_skipped(d) == 2,
	   "%d non-finite pixels are masked %s", (int)yoke_dataset_cubes_skipped(d), yoke_error());
	read_sample(d, 0, &got[0][0][0], &weight[0][0], NULL);
	bool right = true;
	for (int i = 0; i < L * S; i++) {
		const int l = i / S, s = i % S;
		const bool out = (l == 3 && s == 4) || (l == 0 && s == 6);
		right &= weight[l][s] == !out && got[l][s][0] == (out ? 0 : bad[l][s][0]) &&
			 got[l][s][2] == (out ? 0 : bad[l][s][2]);
	}
	ok(right, "masked pixels have weight 0 and value 0");
	yoke_dataset_free(d);
	memset(mask, 1, sizeof mask);
	write_npy(masks[1], "(5, 7)", false, "|u1", mask, sizeof mask);
	mask[3][4] = mask[0][6] = 0;
	write_npy(masks[0], "(5, 7)", false, "|u1", mask, sizeof mask);
	const struct yoke_cube_files o = { .size = sizeof o, .n = 2, .path = paths, .mask = masks };
	d = yoke_dataset_cube_files(&o);
	ok(!read_sample(d, 0, &got[0][0][0], &weight[0][0], NULL) && got[3][4][1] == 0 &&
		   !yoke_dataset_cubes_skipped(d),
	   "masked pixels may be non-finite %s", yoke_error());
	yoke_error_clear();
	yoke_dataset_free(d);
	d = yoke_dataset_cubes(2, paths, NULL, "nonfinite=no");
	ok(!d && yoke_error_code() == YOKE_EINVAL, "an unknown value of the key: %s", yoke_error());
	yoke_error_clear();
}

// ---- MAT ----

struct bytes {
	unsigned char at[4096];
	size_t n;
};

static void add(struct bytes *to, const void *p, size_t n)
{
	memcpy(to->at + to->n, p, n);
	to->n += n;
}

static void add_element(struct bytes *to, uint32_t type, const void *p, size_t n)
{
	const uint32_t head[2] = { type, (uint32_t)n };
	static const char zeros[8];
	add(to, head, 8);
	add(to, p, n);
	add(to, zeros, (8 - n % 8) % 8);
}

// A variable of a version 5 file: class and element type as in "MAT-File Format".
static void add_variable(struct bytes *to, const char *name, uint32_t class, uint32_t type,
			 int rank, const int32_t *dims, const void *data, size_t bytes)
{
	struct bytes v = { .n = 0 };
	add_element(&v, 6, (uint32_t[]){ class, 0 }, 8);
	add_element(&v, 5, dims, (size_t)rank * 4);
	add_element(&v, 1, name, strlen(name));
	add_element(&v, type, data, bytes);
	add(to, (uint32_t[]){ 14, (uint32_t)v.n }, 8);
	add(to, v.at, v.n);
}

// Labels and masks that are not numeric or unknown.
static void odd_pictures(void)
{
	static float picture[L][S], weight[L][S], got[L][S][B];
	static uint8_t out[L][S];
	struct yoke_cube_info i = { .size = sizeof i,
				    .lines = L,
				    .samples = S,
				    .bands = 1,
				    .type = "f32",
				    .interleave = "bip",
				    .scale = 1,
				    .ignore = -1 };
	const char *const path[] = { "good.npy" }, *const hdr[] = { "picture.hdr" };
	const struct {
		float value;
		bool mask;
		int want; // error of the sample
		float weight;
		uint8_t label;
	} cases[] = { { NAN, false, YOKE_ERANGE, 0, 0 },
		      { INFINITY, false, YOKE_ERANGE, 0, 0 },
		      { -1, false, 0, 0, 0 },
		      { -2, false, 0, 1, 1 },
		      { NAN, true, YOKE_ERANGE, 0, 0 },
		      { -2, true, YOKE_ERANGE, 0, 0 },
		      { -1, true, 0, 0, 0 },
		      { 0.5f, true, 0, 1, 0 } };
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		for (int q = 0; q < L * S; q++)
			picture[q / S][q % S] = 1;
		picture[2][3] = cases[k].value;
		int err = yoke_cube_write(hdr[0], &i, &picture[0][0]);
		const struct yoke_cube_files o = { .size = sizeof o,
						   .n = 1,
						   .path = path,
						   .label = cases[k].mask ? NULL : hdr,
						   .mask = cases[k].mask ? hdr : NULL };
		yoke_dataset *d = err ? NULL : yoke_dataset_cube_files(&o);
		err = d ? yoke_dataset_read(d, 0, 0, 0, 0, (void *[]){ got, weight, out }, NULL) :
			  -1;
		ok(err == cases[k].want &&
			   (err ||
			    (weight[2][3] == cases[k].weight && weight[1][1] == 1 &&
			     (cases[k].mask || (out[2][3] == cases[k].label && out[1][1] == 1)))),
		   "a %s of %g: %d %s", cases[k].mask ? "mask" : "label", (double)cases[k].value,
		   err, yoke_error());
		yoke_error_clear();
		yoke_dataset_free(d);
	}
}

static void mats(void)
{
	static double f64[B][S][L];
	static uint16_t u16[B][S][L];
	struct bytes file = { .n = 0 };
	char text[116] = "MATLAB 5.0 MAT-file";
	for (int i = 0; i < L * S * B; i++) {
		const int l = i % L, s = i / L % S, b = i / (L * S);
		f64[b][s][l] = x[1][l][s][b];
		u16[b][s][l] = (uint16_t)x[2][l][s][b];
	}
	memset(text + strlen(text), ' ', 116 - strlen(text));
	add(&file, text, 116);
	add(&file, (char[8]){ 0 }, 8);
	add(&file, (uint16_t[]){ 0x0100, 0x4d49 }, 4);
	add_variable(&file, "names", 4, 4, 2, (int32_t[]){ 1, 2 }, (uint16_t[]){ 'h', 'i' }, 4);
	// neither is an array of three axes
	add_variable(&file, "wavelength", 6, 9, 2, (int32_t[]){ 1, B }, f64, B * sizeof(double));
	add_variable(&file, "truth", 6, 9, 2, (int32_t[]){ L, S }, f64, L * S * sizeof(double));
	add_variable(&file, "cube", 6, 9, 3, (int32_t[]){ L, S, B }, f64, sizeof f64);
	add_variable(&file, "other", 11, 4, 3, (int32_t[]){ L, S, B }, u16, sizeof u16);
	write_bytes("two.mat", file.at, file.n);
	yoke_cube *c = yoke_cube_open("two.mat", NULL);
	if (!c && yoke_error_code() == YOKE_EUNSUPPORTED) {
		skip("MAT files", yoke_error());
		yoke_error_clear();
		return;
	}
	struct yoke_cube_info found = { .size = sizeof found };
	ok(c && !yoke_cube_info(c, &found) && found.variable && !strcmp(found.variable, "cube"),
	   "of several arrays the first with three axes is read");
	yoke_cube_free(c);
	holds("two.mat", NULL, 1, "the first array of a MAT file");
	holds("two.mat", "variable=other", 2, "another, of u16");
	const struct {
		const char *settings;
		int code;
		const char *word;
	} bad[] = { { "variable=third", YOKE_ENOENT, "third" },
		    { "variable=names", YOKE_EUNSUPPORTED, "names" } };
	for (size_t i = 0; i < 2; i++) {
		c = yoke_cube_open("two.mat", bad[i].settings);
		ok(!c && yoke_error_code() == bad[i].code && strstr(yoke_error(), bad[i].word),
		   "%s: %s", bad[i].settings, yoke_error());
		yoke_error_clear();
		yoke_cube_free(c);
	}
	// truncated anywhere, and with changed bytes: an error, or numbers
	int read = 0, failed = 0;
	for (int turn = 0; turn < 60; turn++) {
		struct bytes copy = file;
		float got[L][S][B];
		const int64_t where = rnd_int(0, turn % 2 ? (int64_t)file.n - 1 : 400);
		if (turn % 2)
			copy.n = (size_t)where;
		else
			copy.at[where] = (unsigned char)rnd();
		write_bytes("bad.mat", copy.at, copy.n);
		c = yoke_cube_open("bad.mat", turn % 3 ? "variable=cube" : NULL);
		struct yoke_cube_info i = { .size = sizeof i };
		if (c)
			yoke_cube_info(c, &i);
		if (c && i.lines * i.samples * i.bands <= L * S * B &&
		    !yoke_cube_read(c, &got[0][0][0], NULL))
			read++;
		else
			failed += yoke_error_code() != 0;
		yoke_error_clear();
		yoke_cube_free(c);
	}
	ok(read && failed > 10, "damaged MAT files: %d are read, %d are refused", read, failed);
}

// ---- memory ----

static atomic_int reads;

static int count_reads(void *arg, int64_t n, struct yoke_item *const *s)
{
	(void)arg;
	for (int64_t i = 0; i < n; i++) {
		reads++;
		memcpy(s[i]->to[0], x[s[i]->number], sizeof x[0]);
	}
	return 0;
}

static void caches(void)
{
	const struct yoke_field f = {
		.size = sizeof f, .name = "x", .dtype = yoke_f32, .rank = 3, .dims = { L, S, B }
	};
	const struct yoke_dataset_options o = { .size = sizeof o,
						.name = "counted",
						.count = N,
						.fields = 1,
						.field = &f,
						.read = count_reads };
	static const struct {
		uint64_t bytes;
		int reads; // in 3 epochs
	} c[] = { { UINT64_MAX, N }, { 2 * (sizeof x[0] + 64), 2 + 3 * (N - 2) }, { 0, 3 * N } };
	for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
		reads = 0; // before a loader's threads start
		yoke_dataset *inner = yoke_dataset_new(&o),
			     *d = yoke_dataset_cache(inner, c[i].bytes);
		yoke_loader *l = yoke_loader_new(d, i ? "workers=0 shuffle=0 epochs=3 batch=1" :
							"workers=3 shuffle=1 epochs=3 batch=2");
		void *data[1];
		double got = 0, want = 0;
		int64_t rows;
		while ((rows = yoke_loader_host(l, 1, data, NULL)) > 0)
			for (int64_t k = 0; k < rows * L * S * B; k++)
				got += ((const float *)data[0])[k];
		for (int k = 0; k < N * L * S * B; k++)
			want += 3. * (&x[0][0][0][0])[k];
		// two threads may both read the same sample the first time; from then on it is
		// cached
		const int read = reads;
		float again[L][S][B];
		for (int k = 0; k < N && !i; k++)
			got += yoke_dataset_read(d, k, 0, 0, k, (void *[]){ again }, NULL);
		ok(got == want && (i ? read == c[i].reads : read >= N && reads == read),
		   "%d reads with room for %llu bytes %s", read, (unsigned long long)c[i].bytes,
		   yoke_error());
		yoke_error_clear();
		yoke_loader_free(l);
		yoke_dataset_free(d);
		yoke_dataset_free(inner);
	}
}

// Arrays in the CPU's own layout are read without a copy.
static void uncopied(void)
{
	const struct yoke_cube_info i = { .size = sizeof i,
					  .lines = L,
					  .samples = S,
					  .bands = B,
					  .type = "f32",
					  .interleave = "bip",
					  .scale = 1,
					  .ignore = NAN };
	struct yoke_stats before = { .size = sizeof before }, after = before;
	float got[L * S * B];
	yoke_cube_write("bip.hdr", &i, &x[0][0][0][0]);
	yoke_context *ctx = yoke_context_new("cpu"), *former = yoke_use(ctx);
	yoke_dataset *d = yoke_dataset_cubes(1, (const char *[]){ "bip.hdr" }, NULL, NULL);
	yoke_loader *l = yoke_loader_new(d, "workers=0 shuffle=0");
	yoke_scope *s = yoke_scope_begin("uncopied");
	yoke_tensor *t[2];
	yoke_stats(&before);
	int err = yoke_loader_next(l, 2, t, NULL) == 1 ? 0 : -1;
	yoke_stats(&after);
	if (!err)
		err = yoke_read(t[0], got, sizeof got);
	ok(!err && after.bytes_up == before.bytes_up && !memcmp(got, x[0], sizeof got),
	   "a cube in native layout is never copied %s", yoke_error());
	yoke_scope_end(s);
	yoke_loader_free(l);
	yoke_dataset_free(d);
	yoke_use(former);
	yoke_context_free(ctx);
}

static void pictures(void)
{
	unsigned char grey[6] = { 0, 50, 100, 150, 200, 255 }, file[4096];
	if (!yk_png_writes()) {
		skip("pictures", "built without libpng");
		return;
	}
	struct yk_image back = { .rgb = NULL };
	int err = yk_png_write("grey.png", 3, 2, grey);
	FILE *f = err ? NULL : fopen("grey.png", "rb");
	const size_t n = f ? fread(file, 1, sizeof file, f) : 0;
	if (f)
		fclose(f);
	if (!err)
		err = yk_image_decode(&back, "grey.png", file, n);
	bool right = !err && back.width == 3 && back.height == 2;
	for (int i = 0; i < 18 && right; i++)
		right = back.rgb[i] == grey[i / 3];
	ok(right, "an image is read as it was written %s", yoke_error());
	free(back.rgb);
	yoke_error_clear();
}

int main(void)
{
	tap_seed();
	tap_folder();
	draw();
	arrays();
	nonfinite();
	odd_pictures();
	mats();
	caches();
	uncopied();
	pictures();
	return done();
}
