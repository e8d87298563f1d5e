// SPDX-License-Identifier: Apache-2.0
// Results of nodes for cubes: ENVI and .npy with all channels, PNG of one, from its least to its greatest.
#include "config.h"

#include "tool/fit_maps.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "formats/image.h"
#include "yoke-cube.h"

static int write_png(const char *path, const int64_t dims[3], const float *x)
{
	const int64_t n = dims[0] * dims[1];
	float low = INFINITY, high = -INFINITY;
	if (dims[2] != 1)
		return yk_fail(YOKE_EINVAL, "%s: a picture is of one channel, the node has %lld", path, (long long)dims[2]);
	unsigned char *grey = malloc((size_t)n + 1);
	if (!grey)
		return yk_fail(YOKE_ENOMEM, "no memory for a picture");
	for (int64_t i = 0; i < n; i++)
		if (isfinite(x[i])) {
			low = fminf(low, x[i]);
			high = fmaxf(high, x[i]);
		}
	for (int64_t i = 0; i < n; i++)
		grey[i] = !isfinite(x[i]) || !(high > low) ? 0 : (unsigned char)lrintf((x[i] - low) / (high - low) * 255);
	int err = yk_png_write(path, (int)dims[1], (int)dims[0], grey);
	free(grey);
	return err;
}

static int write_as(const char *path, const char *format, const int64_t dims[3], const float *x)
{
	const struct yoke_cube_info i = { .size = sizeof i, .lines = dims[0], .samples = dims[1], .bands = dims[2], .type = "f32",
					  .interleave = "bip", .scale = 1, .ignore = NAN };
	return strcmp(format, "png") ? yoke_cube_write(path, &i, x) : write_png(path, dims, x);
}

static int write_node(yoke_pipeline *p, const char *node, yoke_tensor *x, const char *stem, const char *formats,
		      int (*made)(void *arg, const char *path), void *arg)
{
	yoke_tensor *y = yoke_pipeline_apply(p, *node ? node : NULL, x);
	const int64_t n = y ? yoke_count(y) : 0, dims[3] = { y ? yoke_dim(y, 0) : 0, y ? yoke_dim(y, 1) : 0, y ? yoke_dim(y, 2) : 0 };
	float *to = malloc(((size_t)n + 1) * sizeof *to);
	char path[4600], list[100], *rest = list, *format;
	int err = !y ? yk_error_last() : to ? yoke_read(y, to, (size_t)n * sizeof *to) : yk_fail(YOKE_ENOMEM, "no memory for a result");
	snprintf(list, sizeof list, "%s", formats);
	while (!err && (format = strsep(&rest, ","))) {
		snprintf(path, sizeof path, "%s%s%s.%s", stem, *node ? "_" : "", node, format);
		err = write_as(path, format, dims, to);
		if (!err && made)
			err = made(arg, path);
	}
	free(to);
	return err;
}

int yk_fit_maps(const struct yk_fit_config *c, yoke_pipeline *p, int64_t sample, const char *folder, const char *nodes,
		const char *formats, int (*made)(void *arg, const char *path), void *arg)
{
	struct yoke_field f[3] = { { .size = sizeof *f } };
	const int n = yoke_dataset_fields(c->set, 3, f);
	void *to[3] = { NULL };
	char stem[4096], list[600];
	int err = 0;
	for (int k = 0; k < n; k++) {
		size_t bytes = yoke_dtype_size(f[k].dtype);
		for (int d = 0; d < f[k].rank; d++)
			bytes *= (size_t)f[k].dims[d];
		if (!(to[k] = malloc(bytes)))
			err = yk_fail(YOKE_ENOMEM, "no memory for a cube");
	}
	if (!err)
		err = yoke_dataset_read(c->set, sample, 0, 0, sample, to, NULL);
	snprintf(list, sizeof list, "%s", nodes);
	snprintf(stem, sizeof stem, "%.3000s/%.400s", folder, c->name[sample]);
	char *rest = list, *node;
	yoke_scope *s = yoke_scope_begin("apply");
	yoke_tensor *x = err ? NULL : yoke_from(yoke_f32, 3, f[0].dims, to[0]);
	while (!err && (node = strsep(&rest, ",")))
		err = write_node(p, node, x, stem, formats, made, arg);
	yoke_scope_end(s);
	for (int k = 0; k < n; k++)
		free(to[k]);
	return err;
}
