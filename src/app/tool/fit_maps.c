// SPDX-License-Identifier: Apache-2.0
// Writes the results of nodes for cubes: ENVI and .npy with all channels, PNG with one channel.
// Results are computed and written in blocks of lines. If a valid result equals the value chosen
// for pixels without a result, everything is written again with another value.
#include "config.h"

#include "tool/fit_maps.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/cube.h"
#include "fit/node.h"
#include "formats/image.h"

// BLOCK: numbers of the cube per computed block
enum { PATH = 4096, LIST = 600, FIELDS = 4, BLOCK = 1 << 20 };

// ---- which files ----

static const char *name_of(const yoke_pipeline *p, const char *node)
{
	return *node ? node : p->node[p->last].name;
}

static int stem_of(const struct yk_fit_config *c, const yoke_pipeline *p, int64_t sample,
		   const char *folder, const char *node, char to[PATH])
{
	const int n = snprintf(to, PATH, "%s/%s_%s", folder, c->name[sample], name_of(p, node));
	return n < PATH - 8 ? 0 : yk_fail(YOKE_EINVAL, "out: the path %.200s.. is too long", to);
}

int yk_fit_maps_paths(const struct yk_fit_config *c, const yoke_pipeline *p, int64_t sample,
		      const char *folder, const char *nodes, const char *formats,
		      struct yk_file_list *to)
{
	char list[LIST], *rest = list, *node, stem[PATH], path[PATH + 8];
	int err = 0, at;
	snprintf(list, sizeof list, "%s", nodes);
	while (!err && (node = strsep(&rest, ","))) {
		char types[100], *others = types, *format;
		if (*node && (err = yk_node_find(p, node, false, "apply", &at)) < 0)
			break;
		err = stem_of(c, p, sample, folder, node, stem);
		snprintf(types, sizeof types, "%s", formats);
		while (!err && (format = strsep(&others, ","))) {
			snprintf(path, sizeof path, "%s.%s", stem, format);
			err = yk_file_list_add(to, path);
			snprintf(path, sizeof path, "%s.img", stem);
			if (!err && !strcmp(format, "hdr"))
				err = yk_file_list_add(to, path);
		}
	}
	return err;
}

// ---- a cube ----

// A cube's numbers, and the properties in its header that results inherit.
struct scene {
	void *field[FIELDS]; // x, weight and other fields
	int64_t lines, samples, bands;
	int64_t ignored; // number of pixels with weight 0
	yoke_cube *file; // NULL: synthetic
	struct yoke_cube_info info;
};

static void close_scene(struct scene *s)
{
	for (int k = 0; k < FIELDS; k++)
		free(s->field[k]);
	yoke_cube_free(s->file);
}

static int open_scene(const struct yk_fit_config *c, int64_t sample, struct scene *s)
{
	struct yoke_field f[FIELDS] = { { .size = sizeof *f } };
	int64_t dims[FIELDS][YOKE_MAX_RANK];
	const int n = yoke_dataset_fields(c->set, FIELDS, f);
	*s = (struct scene){ .info = { .size = sizeof s->info, .ignore = NAN } };
	for (int k = 0; k < n; k++) {
		size_t bytes = yoke_dtype_size(f[k].dtype);
		for (int d = 0; d < f[k].rank; d++) {
			dims[k][d] = f[k].dims[d];
			bytes *= (size_t)f[k].dims[d];
		}
		if (!(s->field[k] = malloc(bytes)))
			return yk_fail(YOKE_ENOMEM, "out of memory for a cube");
	}
	int err = yoke_dataset_read(c->set, sample, 0, 0, sample, s->field, dims);
	if (err)
		return err;
	s->lines = dims[0][0];
	s->samples = dims[0][1];
	s->bands = dims[0][2];
	for (int64_t i = 0; i < s->lines * s->samples; i++)
		s->ignored += ((const float *)s->field[1])[i] == 0;
	if (!c->file)
		return 0;
	s->file = yoke_cube_open(c->file[sample], c->settings);
	return s->file ? yoke_cube_info(s->file, &s->info) : yk_error_last();
}

// ---- a result ----

enum { FORMATS = 3 };

// Result of a node, written in several formats at once.
struct result {
	const struct scene *scene;
	yoke_pipeline *p;
	const char *node, *stem; // node "": the last
	int64_t channels;
	int formats;
	char format[FORMATS][8];
	struct yk_cube_writer writer[FORMATS];
	bool open[FORMATS];
	float *score;  // values of all pixels, for a picture; NULL: no picture
	float fill;    // value of pixels without a result; NaN: no such pixels
	bool declared; // fill is the ignore value in the cube's header
	bool clash;    // the result of another pixel equals fill
};

static void path_of(const struct result *r, int format, char to[PATH + 8])
{
	snprintf(to, PATH + 8, "%s.%s", r->stem, r->format[format]);
}

static int node_of(const struct result *r)
{
	return *r->node ? yk_node_named(r->p, r->node) : r->p->last;
}

static bool picture(const struct result *r, int format)
{
	return !strcmp(r->format[format], "png");
}

static int begin_files(struct result *r)
{
	const struct yoke_cube_info *from = &r->scene->info;
	const int node = node_of(r);
	const struct yoke_cube_info i = { .size = sizeof i,
					  .lines = r->scene->lines,
					  .samples = r->scene->samples,
					  .bands = r->channels,
					  .type = "f32",
					  .interleave = "bip",
					  .scale = 1,
					  .ignore = (double)r->fill,
					  .wavelength = yk_node_keeps_bands(r->p, node) ?
								from->wavelength :
								NULL,
					  .units = from->units,
					  .scene = from->scene };
	char path[PATH + 8];
	int err = 0;
	for (int k = 0; k < r->formats && !err; k++) {
		path_of(r, k, path);
		if (picture(r, k) && r->channels != 1)
			err = yk_fail(YOKE_EINVAL,
				      "%s: a picture shows one channel, but the node has %lld",
				      path, (long long)r->channels);
		else if (picture(r, k))
			r->score = malloc((size_t)(r->scene->lines * r->scene->samples + 1) *
					  sizeof *r->score);
		else if ((err = yk_cube_begin(&r->writer[k], path, &i)) == 0)
			r->open[k] = true;
		if (!err && picture(r, k) && !r->score)
			err = yk_fail(YOKE_ENOMEM, "%s: out of memory for a picture", path);
	}
	return err;
}

// Writes the value to all pixels of weight 0.
static void fill_in(const struct result *r, const float *weight, int64_t pixels, float value,
		    float *y)
{
	for (int64_t i = 0; i < pixels; i++)
		for (int64_t k = 0; weight[i] == 0 && k < r->channels; k++)
			y[i * r->channels + k] = value;
}

static int add_lines(struct result *r, int64_t first, int64_t lines, float *y)
{
	const int64_t at = first * r->scene->samples, pixels = lines * r->scene->samples;
	const float *weight = (const float *)r->scene->field[1] + at;
	int err = 0;
	for (int64_t i = 0; i < pixels && !r->clash; i++)
		for (int64_t k = 0; weight[i] != 0 && k < r->channels; k++)
			r->clash |= y[i * r->channels + k] == r->fill;
	for (int k = 0; k < r->formats && !err && !r->clash; k++) {
		const bool none = picture(r, k) || (r->writer[k].npy && !r->declared);
		fill_in(r, weight, pixels, none ? NAN : r->fill, y);
		if (picture(r, k))
			memcpy(r->score + at, y, (size_t)pixels * sizeof *y);
		else
			err = yk_cube_add(&r->writer[k], y, lines);
	}
	return err;
}

// Computes the results of some lines; y must have room for them.
static int compute(struct result *r, int64_t first, int64_t lines, float *y)
{
	const struct scene *c = r->scene;
	const int64_t dims[3] = { lines, c->samples, c->bands }, at = first * c->samples;
	yoke_scope *s = yoke_scope_begin("apply");
	yoke_tensor *x = yoke_wrap(yoke_f32, 3, dims, (float *)c->field[0] + at * c->bands, NULL,
				   NULL),
		    *weight = yoke_wrap(yoke_f32, 2, dims, (float *)c->field[1] + at, NULL, NULL),
		    *t = x && weight ? yk_pipeline_value(r->p, node_of(r), x, weight) : NULL;
	int err = t ? yoke_read(t, y, (size_t)(lines * c->samples * r->channels) * sizeof *y) :
		      yk_error_last();
	yoke_scope_end(s);
	return err;
}

static int write_picture(const struct result *r, const char *path)
{
	const int64_t n = r->scene->lines * r->scene->samples;
	float low = INFINITY, high = -INFINITY;
	unsigned char *grey = malloc((size_t)n + 1);
	if (!grey)
		return yk_fail(YOKE_ENOMEM, "out of memory for a picture");
	for (int64_t i = 0; i < n; i++)
		if (isfinite(r->score[i])) {
			low = fminf(low, r->score[i]);
			high = fmaxf(high, r->score[i]);
		}
	for (int64_t i = 0; i < n; i++)
		grey[i] = !isfinite(r->score[i]) || !(high > low) ?
				  0 :
				  (unsigned char)lrintf((r->score[i] - low) / (high - low) * 255);
	int err = yk_png_write(path, (int)r->scene->samples, (int)r->scene->lines, grey);
	free(grey);
	return err;
}

static int end_files(struct result *r, int (*made)(void *arg, const char *path), void *arg)
{
	char path[PATH + 8];
	int err = 0;
	for (int k = 0; k < r->formats && !err; k++) {
		path_of(r, k, path);
		r->open[k] = false;
		err = picture(r, k) ? write_picture(r, path) : yk_cube_commit(&r->writer[k]);
		if (!err && made)
			err = made(arg, path);
	}
	return err;
}

// Computes and writes all lines; after a clash, no file remains.
static int write_once(struct result *r, float *y, int64_t block,
		      int (*made)(void *arg, const char *path), void *arg)
{
	int err = begin_files(r);
	r->clash = false;
	for (int64_t first = 0; first < r->scene->lines && !err && !r->clash; first += block) {
		const int64_t lines =
			first + block < r->scene->lines ? block : r->scene->lines - first;
		err = compute(r, first, lines, y);
		if (!err)
			err = add_lines(r, first, lines, y);
	}
	if (!err && !r->clash)
		err = end_files(r, made, arg);
	for (int k = 0; k < r->formats; k++) {
		if (r->open[k])
			yk_cube_abort(&r->writer[k]);
		r->open[k] = false;
	}
	free(r->score);
	r->score = NULL;
	return err;
}

static int write_node(struct result *r, int (*made)(void *arg, const char *path), void *arg)
{
	const struct scene *c = r->scene;
	const int node = node_of(r);
	const float own = (float)c->info.ignore, value[] = { own, -9999, -FLT_MAX };
	int err = yk_pipeline_shape(r->p, c->bands);
	if (err)
		return err;
	r->channels = r->p->node[node].channels;
	const int64_t line = c->samples * (c->bands > r->channels ? c->bands : r->channels),
		      fit = line > BLOCK ? 1 : BLOCK / line;
	const int64_t block = yk_node_spatial(r->p, node) ? c->lines : fit;
	float *y = malloc((size_t)(block * c->samples * r->channels) * sizeof *y);
	err = y ? 0 : yk_fail(YOKE_ENOMEM, "out of memory for a result");
	r->clash = true;
	for (size_t i = isfinite(own) ? 0 : 1; i < sizeof value / sizeof *value && !err && r->clash;
	     i++) {
		r->fill = c->ignored ? value[i] : NAN;
		r->declared = !i;
		err = write_once(r, y, block, made, arg);
	}
	free(y);
	return !err && r->clash ? yk_fail(YOKE_ERANGE,
					  "%s: the results contain every candidate for the value "
					  "that marks ignored pixels",
					  r->stem) :
				  err;
}

int yk_fit_maps(const struct yk_fit_config *c, yoke_pipeline *p, int64_t sample, const char *folder,
		const char *nodes, const char *formats, int (*made)(void *arg, const char *path),
		void *arg)
{
	char list[LIST], types[100], *rest = types, *format, stem[PATH], *node;
	struct scene s;
	struct result r = { .scene = &s, .p = p, .stem = stem };
	snprintf(types, sizeof types, "%s", formats);
	while (r.formats < FORMATS && (format = strsep(&rest, ",")))
		snprintf(r.format[r.formats++], sizeof *r.format, "%s", format);
	int err = open_scene(c, sample, &s);
	snprintf(list, sizeof list, "%s", nodes);
	rest = list;
	while (!err && (node = strsep(&rest, ","))) {
		r.node = node;
		err = stem_of(c, p, sample, folder, node, stem);
		if (!err)
			err = write_node(&r, made, arg);
	}
	close_scene(&s);
	return err;
}
