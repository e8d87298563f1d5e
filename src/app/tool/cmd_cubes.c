// SPDX-License-Identifier: Apache-2.0
// yoke cubes: describes hyperspectral cubes, checks that they are readable, converts them, and
// creates synthetic ones.
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/number.h"
#include "tool/fit_out.h"
#include "tool/table.h"
#include "tool/tool.h"
#include "yoke-cube.h"

static const char name[] = "cubes";

// A cube with its numbers in memory.
struct whole {
	yoke_cube *cube;
	struct yoke_cube_info info;
	float *x, *weight;
};

// If the word is a setting of yoke_cube_open, appends it to the settings and returns true.
static bool take_setting(const char *word, char *settings, size_t cap)
{
	static const char *const key[] = { "bands=", "variable=", "item=", "stack=" };
	const size_t at = strlen(settings);
	for (size_t i = 0; i < sizeof key / sizeof *key; i++)
		if (!strncmp(word, key[i], strlen(key[i])) && at + strlen(word) + 2 <= cap) {
			snprintf(settings + at, cap - at, "%s%s", at ? " " : "", word);
			return true;
		}
	return false;
}

// Removes those words from the n words; returns the number of remaining words.
static int take_settings(int n, char **word, char *settings, size_t cap)
{
	int left = 0;
	for (int i = 0; i < n; i++)
		if (!take_setting(word[i], settings, cap))
			word[left++] = word[i];
	return left;
}

static int load(struct whole *w, const char *path, const char *settings)
{
	*w = (struct whole){ .info = { .size = sizeof w->info } };
	w->cube = yoke_cube_open(path, settings);
	if (!w->cube)
		return yk_error_last();
	yoke_cube_info(w->cube, &w->info);
	const size_t pixels = (size_t)(w->info.lines * w->info.samples);
	w->x = malloc(pixels * (size_t)w->info.bands * sizeof *w->x);
	w->weight = malloc(pixels * sizeof *w->weight);
	if (!w->x || !w->weight)
		return yk_fail(YOKE_ENOMEM,
			       "%s: out of memory for %" PRId64 " x %" PRId64 " x %" PRId64, path,
			       w->info.lines, w->info.samples, w->info.bands);
	return yoke_cube_read(w->cube, w->x, w->weight);
}

static void cube_free(struct whole *w)
{
	free(w->x);
	free(w->weight);
	yoke_cube_free(w->cube);
}

// ---- info, check ----

static int info(int n, char **path, const char *settings)
{
	static const char *const keys[] = { "lines", "samples", "bands", "type", "interleave",
					    "order", "nm",      "data",  "array" };
	int columns = 8;
	json_t *rows = json_array();
	int err = 0;
	for (int i = 0; i < n && !err; i++) {
		struct yoke_cube_info c = { .size = sizeof c };
		yoke_cube *cube = yoke_cube_open(path[i], settings);
		char cell[3][32], wavelengths[64] = "";
		if (!cube) {
			err = yk_error_last();
			break;
		}
		yoke_cube_info(cube, &c);
		const int64_t number[3] = { c.lines, c.samples, c.bands };
		for (int k = 0; k < 3; k++)
			snprintf(cell[k], sizeof *cell, "%" PRId64, number[k]);
		if (c.wavelength)
			snprintf(wavelengths, sizeof wavelengths, "%g..%g", c.wavelength[0],
				 c.wavelength[c.bands - 1]);
		json_array_append_new(
			rows, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "lines",
					cell[0], "samples", cell[1], "bands", cell[2], "type",
					c.type, "interleave", c.interleave, "order",
					c.big_endian ? "big" : "little", "nm", wavelengths, "data",
					c.data, "array", c.variable ? c.variable : ""));
		columns = c.variable ? 9 : columns;
		yoke_cube_free(cube);
	}
	if (!err)
		yk_table(rows, "", columns, keys, keys);
	json_decref(rows);
	return err;
}

// Returns the number of cubes that are unreadable or contain non-finite numbers.
static int check(int n, char **path, const char *settings)
{
	char text[2][64];
	int failed = 0;
	for (int i = 0; i < n; i++) {
		struct whole w;
		int64_t odd = 0, ignored = 0;
		double low = INFINITY, high = -INFINITY;
		if (load(&w, path[i], settings) < 0) {
			printf("%s\n", yoke_error());
			yoke_error_clear();
			cube_free(&w);
			failed++;
			continue;
		}
		for (int64_t p = 0; p < w.info.lines * w.info.samples; p++) {
			ignored += w.weight[p] == 0;
			for (int64_t b = 0; b < w.info.bands && w.weight[p] != 0; b++) {
				const double v = w.x[p * w.info.bands + b];
				odd += !isfinite(v);
				low = fmin(low, v);
				high = fmax(high, v);
			}
		}
		printf("%s: %g .. %g, %" PRId64 " of %s ignored, %s not finite\n", path[i], low,
		       high, ignored, yk_counted(text[0], w.info.lines * w.info.samples, "pixel"),
		       yk_counted(text[1], odd, "number"));
		failed += odd > 0;
		cube_free(&w);
	}
	return failed;
}

// ---- convert ----

// Parses the words key=value after the two files; false: a key is unknown.
static bool convert_words(int argc, char **argv, struct yoke_cube_info *to, bool *overwrite)
{
	for (int i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "type=", 5))
			to->type = argv[i] + 5;
		else if (!strcmp(argv[i], "interleave=bsq") || !strcmp(argv[i], "interleave=bil") ||
			 !strcmp(argv[i], "interleave=bip"))
			to->interleave = argv[i] + 11;
		else if (!strcmp(argv[i], "order=big") || !strcmp(argv[i], "order=little"))
			to->big_endian = argv[i][6] == 'b';
		else if (!strcmp(argv[i], "overwrite=1") || !strcmp(argv[i], "overwrite=0"))
			*overwrite = argv[i][10] == '1';
		else
			return false;
	}
	return true;
}

// Fails if the output cube is one of the input files, or exists although `overwrite` is false.
static int check_target(const char *path, const char *from, const char *data, bool overwrite)
{
	const size_t n = strlen(path);
	struct yk_file_list to = { .path = NULL }, read = { .path = NULL };
	char other[4096];
	snprintf(other, sizeof other, "%.*s.img", n < 4 ? 0 : (int)n - 4, path);
	int err = yk_file_list_add(&to, path);
	if (!err && n > 4 && !strcmp(path + n - 4, ".hdr"))
		err = yk_file_list_add(&to, other);
	if (!err && (err = yk_file_list_add(&read, from)) == 0)
		err = yk_file_list_add(&read, data);
	if (!err)
		err = yk_out_convert(&to, &read, overwrite);
	yk_file_list_fini(&to);
	yk_file_list_fini(&read);
	return err;
}

static int convert(int argc, char **argv, const char *settings)
{
	struct yoke_cube_info want = { .type = "", .interleave = "", .big_endian = -1 };
	struct whole w;
	bool overwrite = false;
	if (argc < 4 || !convert_words(argc - 4, argv + 4, &want, &overwrite))
		return yk_usage(
			name, "convert needs FROM and TO, and accepts type=, "
			      "interleave=bsq|bil|bip, order=big|little, bands=, variable=, item=, "
			      "stack=, overwrite=1");
	int err = load(&w, argv[2], settings);
	if (!err)
		err = check_target(argv[3], argv[2], w.info.data, overwrite);
	if (!err) {
		// values scaled by gains are not integers, so an integer type would round them
		w.info.type = *want.type ? want.type : w.info.gains ? "f32" : w.info.type;
		w.info.interleave = *want.interleave ? want.interleave : w.info.interleave;
		w.info.big_endian = want.big_endian >= 0 ? want.big_endian : w.info.big_endian;
		err = yoke_cube_write(argv[3], &w.info, w.x);
	}
	cube_free(&w);
	return err ? yk_failed(name) : YK_DONE;
}

// ---- make ----

// Lists the files of a synthetic cube: header, data, labels.
static int list_sample(const char *folder, int64_t i, struct yk_file_list *to)
{
	static const char *const end[] = { ".hdr", ".img", "_label.npy" };
	char path[4096];
	int err = 0;
	for (int k = 0; k < 3 && !err; k++) {
		snprintf(path, sizeof path, "%.3900s/cube_%05" PRId64 "%s", folder, i, end[k]);
		err = yk_file_list_add(to, path);
	}
	return err;
}

static int write_sample(const yoke_dataset *d, char *const path[3], int64_t i,
			const struct yoke_field *f, void *const *to)
{
	const struct yoke_cube_info cube = { .size = sizeof cube,
					     .lines = f[0].dims[0],
					     .samples = f[0].dims[1],
					     .bands = f[0].dims[2],
					     .type = "f32",
					     .interleave = "bip",
					     .scale = 1,
					     .ignore = NAN };
	struct yoke_cube_info picture = cube;
	const int64_t pixels = cube.lines * cube.samples;
	const uint8_t *label = to[2];
	float *flat = to[1]; // all weights are 1 and are not written
	int err = yoke_dataset_read(d, i, 0, 0, i, to, NULL);
	picture.bands = 1;
	picture.type = "u8";
	for (int64_t p = 0; p < pixels && !err; p++)
		flat[p] = label[p];
	if (!err)
		err = yoke_cube_write(path[0], &cube, to[0]);
	return err ? err : yoke_cube_write(path[2], &picture, flat);
}

static int make(int argc, char **argv)
{
	char settings[400] = "";
	size_t at = 0;
	struct yoke_field f[3] = { { .size = sizeof *f } };
	struct yk_file_list files = { .path = NULL }, none = { .path = NULL };
	bool overwrite = false;
	if (argc < 3)
		return yk_usage(name, "make needs a folder, and accepts count= lines= samples= "
				      "bands= seed= overwrite=1");
	for (int i = 3; i < argc && at < sizeof settings; i++)
		if (!strcmp(argv[i], "overwrite=1"))
			overwrite = true;
		else
			at += (size_t)snprintf(settings + at, sizeof settings - at, "%s ", argv[i]);
	yoke_dataset *d = yoke_dataset_synthetic(settings);
	if (!d)
		return yk_failed(name);
	yoke_dataset_fields(d, 3, f);
	const size_t pixels = (size_t)(f[0].dims[0] * f[0].dims[1]);
	void *to[3] = { malloc(pixels * (size_t)f[0].dims[2] * sizeof(float)),
			malloc(pixels * sizeof(float)), malloc(pixels) };
	int err = to[0] && to[1] && to[2] ? 0 : yk_fail(YOKE_ENOMEM, "out of memory for a cube");
	for (int64_t i = 0; i < yoke_dataset_count(d) && !err; i++)
		err = list_sample(argv[2], i, &files);
	if (!err)
		err = yk_out_check(&files, &none, overwrite);
	if (!err)
		err = yk_dir_make(argv[2]);
	for (int64_t i = 0; i < yoke_dataset_count(d) && !err; i++)
		err = write_sample(d, files.path + 3 * i, i, f, to);
	yk_file_list_fini(&files);
	for (int k = 0; k < 3; k++)
		free(to[k]);
	yoke_dataset_free(d);
	return err ? yk_failed(name) : YK_DONE;
}

int yk_cmd_cubes(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";
	char settings[1 << 14] = "";
	int status;
	if (!strcmp(verb, "make"))
		return make(argc, argv);
	if (argc > 2)
		argc = 2 + take_settings(argc - 2, argv + 2, settings, sizeof settings);
	if (!strcmp(verb, "convert"))
		status = convert(argc, argv, settings);
	else if (argc > 2 && !strcmp(verb, "info"))
		status = info(argc - 2, argv + 2, settings) < 0 ? yk_failed(name) : YK_DONE;
	else if (argc > 2 && !strcmp(verb, "check"))
		status = check(argc - 2, argv + 2, settings) ? YK_FAILED : YK_DONE;
	else
		return yk_usage(
			name,
			"needs one of: info CUBE .., check CUBE .., convert FROM TO, make FOLDER");
	return status;
}
