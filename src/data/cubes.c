// SPDX-License-Identifier: Apache-2.0
// Sets of cubes: files, opened when they are read, and drawn ones.
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/param.h"
#include "conform/program.h"
#include "data/set.h"
#include "yoke-cube.h"

// ---- files ----

struct files {
	int n;
	char **path, **label; // label NULL: there are none
	char *settings;       // NULL: none
	int64_t lines, samples, bands;
};

static void files_free(void *arg)
{
	struct files *f = arg;
	for (int i = 0; f->path && i < f->n; i++)
		free(f->path[i]);
	for (int i = 0; f->label && i < f->n; i++)
		free(f->label[i]);
	free(f->path);
	free(f->label);
	free(f->settings);
	free(f);
}

// A cube of the set's shape; bands 1: a label's.
static yoke_cube *open_same(const struct files *f, const char *path, int64_t bands)
{
	struct yoke_cube_info i = { .size = sizeof i };
	yoke_cube *c = yoke_cube_open(path, bands == f->bands ? f->settings : NULL);
	if (!c)
		return NULL;
	yoke_cube_info(c, &i);
	if (i.lines == f->lines && i.samples == f->samples && i.bands == bands)
		return c;
	yk_fail(YOKE_ESHAPE, "%s: is %lld x %lld x %lld, not %lld x %lld x %lld as the first cube", path, (long long)i.lines,
		(long long)i.samples, (long long)i.bands, (long long)f->lines, (long long)f->samples, (long long)bands);
	yoke_cube_free(c);
	return NULL;
}

static int read_label(const struct files *f, const char *path, uint8_t *to)
{
	const int64_t n = f->lines * f->samples;
	yoke_cube *c = open_same(f, path, 1);
	float *x = malloc((size_t)n * sizeof *x);
	int err = !c ? yk_error_last() : x ? yoke_cube_read(c, x, NULL) : yk_fail(YOKE_ENOMEM, "%s: no memory", path);
	for (int64_t i = 0; i < n && !err; i++)
		to[i] = x[i] != 0;
	free(x);
	yoke_cube_free(c);
	return err;
}

static int read_files(void *arg, int64_t n, struct yoke_item *const *item)
{
	const struct files *f = arg;
	for (int64_t i = 0; i < n; i++) {
		struct yoke_item *s = item[i];
		yoke_cube *c = open_same(f, f->path[s->number], f->bands);
		int err = c ? yoke_cube_read(c, s->to[0], s->to[1]) : yk_error_last();
		if (!err && f->label)
			err = read_label(f, f->label[s->number], s->to[2]);
		yoke_cube_free(c);
		if (err)
			yk_sample_failed(s, err);
	}
	return 0;
}

static yoke_dataset *set_of(const char *name, int64_t count, int64_t lines, int64_t samples, int64_t bands, bool label,
			    yoke_read_fn *read, void *arg, void (*free_fn)(void *), uint64_t fingerprint)
{
	const struct yoke_field field[3] = {
		{ .size = sizeof *field, .name = "x", .dtype = yoke_f32, .rank = 3, .dims = { lines, samples, bands } },
		{ .size = sizeof *field, .name = "weight", .dtype = yoke_f32, .rank = 2, .dims = { lines, samples } },
		{ .size = sizeof *field, .name = "label", .dtype = yoke_u8, .rank = 2, .dims = { lines, samples } },
	};
	const struct yoke_dataset_options o = { .size = sizeof o, .name = name, .count = count, .fields = label ? 3 : 2,
						.field = field, .read = read, .arg = arg, .free_fn = free_fn,
						.fingerprint = fingerprint };
	return yoke_dataset_new(&o);
}

static char **copies(int n, const char *const *text)
{
	char **to = calloc((size_t)n + 1, sizeof *to);
	for (int i = 0; to && i < n; i++)
		if (!(to[i] = strdup(text[i])))
			return to; // the caller looks at the last one
	return to;
}

yoke_dataset *yoke_dataset_cubes(int n, const char *const *path, const char *const *label, const char *settings)
{
	struct yoke_cube_info info = { .size = sizeof info };
	struct files *f = calloc(1, sizeof *f);
	yoke_dataset *d = NULL;
	uint64_t hash = 0;
	if (n < 1) {
		yk_fail(YOKE_EINVAL, "dataset_cubes: there are no cubes");
		free(f);
		return NULL;
	}
	if (!f || !(f->path = copies(n, path)) || !f->path[n - 1] || (label && (!(f->label = copies(n, label)) || !f->label[n - 1])) ||
	    (settings && !(f->settings = strdup(settings)))) {
		yk_fail(YOKE_ENOMEM, "dataset_cubes: no memory for %d paths", n);
	} else {
		f->n = n;
		yoke_cube *c = yoke_cube_open(path[0], settings);
		if (c) {
			yoke_cube_info(c, &info);
			f->lines = info.lines;
			f->samples = info.samples;
			f->bands = info.bands;
			for (int i = 0; i < n; i++)
				hash = yk_hash(path[i], strlen(path[i]), hash);
			d = set_of(path[0], n, info.lines, info.samples, info.bands, label, read_files, f, files_free, hash);
		}
		yoke_cube_free(c);
	}
	if (!d && f) {
		f->n = n;
		files_free(f);
	}
	return d;
}

// ---- drawn ----

struct drawn {
	int64_t count, lines, samples, bands, seed;
	double *normal, *anomaly; // [bands]
};

static void drawn_free(void *arg)
{
	struct drawn *d = arg;
	free(d->normal);
	free(d);
}

static double uniform(uint32_t bits)
{
	return ((double)(bits >> 8) + 0.5) * 0x1p-24; // never 0
}

// Two normal numbers of two words (Box and Muller 1958).
static void normals(uint32_t a, uint32_t b, double to[2])
{
	const double r = sqrt(-2 * log(uniform(a))), t = 2 * M_PI * uniform(b);
	to[0] = r * cos(t);
	to[1] = r * sin(t);
}

// Marks discs until a twentieth of the pixels is in one.
static void discs(const struct drawn *d, int64_t cube, uint8_t *label)
{
	const int64_t pixels = d->lines * d->samples;
	const uint64_t step = (uint64_t)cube | (uint64_t)1 << 63;
	int64_t marked = 0;
	memset(label, 0, (size_t)pixels);
	for (uint64_t n = 0; marked < (pixels + 19) / 20; n++) {
		const double y = uniform(yk_philox(4 * n, (uint64_t)d->seed, step)) * (double)d->lines,
			     x = uniform(yk_philox(4 * n + 1, (uint64_t)d->seed, step)) * (double)d->samples,
			     r = 2 + 3 * uniform(yk_philox(4 * n + 2, (uint64_t)d->seed, step));
		for (int64_t i = (int64_t)fmax(0, floor(y - r)); i <= (int64_t)(y + r) && i < d->lines; i++)
			for (int64_t j = (int64_t)fmax(0, floor(x - r)); j <= (int64_t)(x + r) && j < d->samples; j++) {
				const double di = (double)i + 0.5 - y, dj = (double)j + 0.5 - x;
				uint8_t *to = &label[i * d->samples + j];
				if (di * di + dj * dj > r * r || *to)
					continue;
				*to = 1;
				marked++;
			}
	}
}

static void draw(const struct drawn *d, int64_t cube, float *x, uint8_t *label)
{
	const int64_t quads = (d->bands + 3) / 4;
	discs(d, cube, label);
	for (int64_t i = 0; i < d->lines; i++)
		for (int64_t j = 0; j < d->samples; j++) {
			const int64_t pixel = i * d->samples + j;
			const double light = (1 + 0.2 * sin(2 * M_PI * (double)i / (double)d->lines)) *
					     (1 + 0.2 * cos(2 * M_PI * (double)j / (double)d->samples));
			for (int64_t q = 0; q < quads; q++) {
				uint32_t word[4];
				double noise[4];
				for (uint64_t k = 0; k < 4; k++)
					word[k] = yk_philox(4 * (uint64_t)(pixel * quads + q) + k, (uint64_t)d->seed, (uint64_t)cube);
				normals(word[0], word[1], noise);
				normals(word[2], word[3], noise + 2);
				for (int64_t k = 0; k < 4 && 4 * q + k < d->bands; k++) {
					const int64_t b = 4 * q + k;
					const double v = label[pixel] ? d->anomaly[b] : d->normal[b] * light;
					x[pixel * d->bands + b] = (float)(v + 10 * noise[k]);
				}
			}
		}
}

static int read_drawn(void *arg, int64_t n, struct yoke_item *const *item)
{
	const struct drawn *d = arg;
	for (int64_t i = 0; i < n; i++) {
		float *weight = item[i]->to[1];
		draw(d, item[i]->number, item[i]->to[0], item[i]->to[2]);
		for (int64_t k = 0; k < d->lines * d->samples; k++)
			weight[k] = 1;
	}
	return 0;
}

static int take(struct drawn *d, char *word)
{
	static const char *const names[] = { "count", "lines", "samples", "bands", "seed" };
	static const int64_t most[] = { INT32_MAX, 16384, 16384, 4096, INT64_MAX };
	int64_t *const to[] = { &d->count, &d->lines, &d->samples, &d->bands, &d->seed };
	char hint[200], *value = strchr(word, '='), *end;
	if (value)
		*value++ = 0;
	for (int i = 0; i < 5; i++) {
		if (strcmp(word, names[i]))
			continue;
		errno = 0;
		*to[i] = value ? strtoll(value, &end, 10) : -1;
		if (value && *value && !*end && !errno && *to[i] >= (i < 4) && *to[i] <= most[i])
			return 0;
		return yk_fail(YOKE_EINVAL, "dataset_synthetic: %s=%s: must be a whole number from %d to %lld", word, value ? value : "",
			       i < 4, (long long)most[i]);
	}
	return yk_fail(YOKE_EINVAL, "dataset_synthetic: there is no key '%s'; %s", word, yk_hint(word, names, 5, hint, sizeof hint));
}

yoke_dataset *yoke_dataset_synthetic(const char *settings)
{
	struct drawn *d = calloc(1, sizeof *d);
	char *copy = strdup(settings ? settings : ""), *rest = copy, *word;
	yoke_dataset *set = NULL;
	int err = d && copy ? 0 : yk_fail(YOKE_ENOMEM, "dataset_synthetic: no memory");
	if (d)
		*d = (struct drawn){ 200, 128, 128, 50, 42, NULL, NULL };
	while (!err && (word = strsep(&rest, " ")))
		if (*word)
			err = take(d, word);
	free(copy);
	if (!err && !(d->normal = calloc((size_t)d->bands * 2, sizeof *d->normal)))
		err = yk_fail(YOKE_ENOMEM, "dataset_synthetic: no memory");
	for (int64_t b = 0; !err && b < d->bands; b++) {
		const double w = d->bands > 1 ? (double)b / (double)(d->bands - 1) : 0;
		d->anomaly = d->normal + d->bands;
		d->normal[b] = 100 * exp(-(w - 0.5) * (w - 0.5) / 0.1);
		d->anomaly[b] = 150 * (exp(-(w - 0.3) * (w - 0.3) / 0.05) + exp(-(w - 0.7) * (w - 0.7) / 0.05));
	}
	if (!err)
		set = set_of("synthetic", d->count, d->lines, d->samples, d->bands, true, read_drawn, d, drawn_free,
			     yk_hash(d, offsetof(struct drawn, normal), 1));
	if (!set && d)
		drawn_free(d);
	return set;
}
