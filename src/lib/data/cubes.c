// SPDX-License-Identifier: Apache-2.0
// Datasets of cube files.  Each file is opened once to learn its shape, and again whenever it is
// read.
#include "config.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/sized.h"
#include "data/cube.h"
#include "data/set.h"

// ---- files ----

enum { MAX_CUBES = 1 << 24 };

// One cube of a file.
struct source {
	char *path, *label, *mask; // NULL: none
	int64_t item;              // index in its file
	bool stack;                // the file has several cubes
	int64_t lines, samples;
};

struct files {
	int64_t n;
	struct source *source;
	char *settings;    // of yoke_cube_open
	bool labels, skip; // skip: pixels with non-finite values get weight 0
	int64_t lines, samples, bands; // lines, samples: the largest of all cubes
	bool varies;       // cubes have different sizes
	atomic_int_least64_t *skipped; // [n]: pixels skipped
};

static void files_free(void *arg)
{
	struct files *f = arg;
	for (int64_t i = 0; f->source && i < f->n; i++) {
		free(f->source[i].path);
		free(f->source[i].label);
		free(f->source[i].mask);
	}
	free(f->source);
	free(f->skipped);
	free(f->settings);
	free(f);
}

// Opens the file of a cube, a label or a mask; bands is 1 for the latter two.  ESHAPE: its size has
// changed since the set was opened.
static yoke_cube *open_same(const struct source *s, const char *path, const char *settings,
			    int64_t bands)
{
	struct yoke_cube_info i = { .size = sizeof i };
	const bool cube = path == s->path;
	char *words;
	if (asprintf(&words, "%s%s item=%lld", settings, !cube && s->stack ? " stack=1" : "",
		     (long long)s->item) < 0) {
		yk_fail(YOKE_ENOMEM, "%s: no memory", path);
		return NULL;
	}
	yoke_cube *c = yoke_cube_open(path, words);
	free(words);
	if (!c)
		return NULL;
	yoke_cube_info(c, &i);
	if (i.lines == s->lines && i.samples == s->samples && i.bands == bands)
		return c;
	if (cube)
		yk_fail(YOKE_ESHAPE,
			"%s: has changed: it is now %lld x %lld x %lld and was %lld x %lld x %lld",
			path, (long long)i.lines, (long long)i.samples, (long long)i.bands,
			(long long)s->lines, (long long)s->samples, (long long)bands);
	else
		yk_fail(YOKE_ESHAPE,
			"%s: is %lld x %lld x %lld; must be %lld x %lld x 1, as %s has %lld lines and %lld samples",
			path, (long long)i.lines, (long long)i.samples, (long long)i.bands,
			(long long)s->lines, (long long)s->samples, s->path, (long long)s->lines,
			(long long)s->samples);
	yoke_cube_free(c);
	return NULL;
}

// Are all numbers finite?  Tests the exponent bits, so that the loop vectorizes.
static bool all_finite(const float *x, int64_t n)
{
	uint32_t odd = 0, u;
	for (int64_t i = 0; i < n; i++) {
		memcpy(&u, x + i, sizeof u);
		odd |= (u & 0x7f800000u) == 0x7f800000u;
	}
	return !odd;
}

// Reads a one-band image: flags pixels that are nonzero, and pixels that are not the ignore value.
// ERANGE: a pixel with weight is NaN or infinite or, in a mask, negative.
static int read_picture(const struct source *s, const char *path, bool mask, const float *weight,
			uint8_t *to, uint8_t *known)
{
	const int64_t n = s->lines * s->samples;
	yoke_cube *c = open_same(s, path, "", 1);
	float *x = c ? malloc(2 * (size_t)n * sizeof *x) : NULL;
	int err = !c ? yk_error_last() :
		  x  ? yoke_cube_read(c, x, x + n) :
		       yk_fail(YOKE_ENOMEM, "%s: no memory", path);
	for (int64_t i = 0; i < n && !err; i++) {
		known[i] = x[n + i] != 0;
		to[i] = known[i] && all_finite(x + i, 1) && x[i] != 0;
		if (known[i] && weight[i] != 0 && (!all_finite(x + i, 1) || (mask && x[i] < 0)))
			err = yk_fail(
				YOKE_ERANGE, "%s: line %lld, sample %lld is %g: a %s", path,
				(long long)(i / s->samples), (long long)(i % s->samples),
				(double)x[i],
				mask ? "mask has numbers from 0 on, 0 for pixels that do not count" :
				       "label is a finite number, 0 for the background; pixels without a known label may have the file's ignore value");
	}
	free(x);
	yoke_cube_free(c);
	return err;
}

// Pixels that a mask excludes, or that have no known label, get weight 0.
static int read_weights(const struct source *s, const char *path, bool mask, uint8_t *to,
			float *weight)
{
	const int64_t n = s->lines * s->samples;
	uint8_t *known = malloc((size_t)n);
	int err = known ? read_picture(s, path, mask, weight, to, known) :
			  yk_fail(YOKE_ENOMEM, "%s: no memory", path);
	for (int64_t i = 0; i < n && !err; i++)
		if (!known[i] || (mask && !to[i]))
			weight[i] = 0;
	free(known);
	return err;
}

static int read_mask(const struct source *s, float *weight)
{
	uint8_t *in = malloc((size_t)(s->lines * s->samples));
	int err = in ? read_weights(s, s->mask, true, in, weight) :
		       yk_fail(YOKE_ENOMEM, "%s: no memory", s->mask);
	free(in);
	return err;
}

// Sets pixels with a non-finite value to 0.  If they have weight, it becomes 0 if the settings
// allow that; otherwise it is an error.
static int look(const struct files *f, const struct source *s, float *x, float *weight,
		int64_t *skipped)
{
	for (int64_t l = 0; l < s->lines; l++) {
		float *line = x + l * s->samples * f->bands;
		if (all_finite(line, s->samples * f->bands))
			continue;
		for (int64_t i = 0; i < s->samples; i++) {
			float *pixel = line + i * f->bands, *w = weight + l * s->samples + i;
			if (all_finite(pixel, f->bands))
				continue;
			int64_t band = 0;
			while (all_finite(pixel + band, 1))
				band++;
			if (*w != 0 && !f->skip)
				return yk_fail(
					YOKE_ERANGE,
					"%s: line %lld, sample %lld: band %lld is %g; nonfinite=skip omits such pixels",
					s->path, (long long)l, (long long)i, (long long)band,
					(double)pixel[band]);
			*skipped += *w != 0;
			*w = 0;
			memset(pixel, 0, (size_t)f->bands * sizeof *pixel);
		}
	}
	return 0;
}

// If sizes differ, the last field is the size.
static void set_size(const struct files *f, const struct source *s, struct yoke_item *to)
{
	const int size = f->labels ? 3 : 2;
	int32_t *pair = to->to[size];
	for (int k = 0; k < size; k++) {
		to->dims[k][0] = s->lines;
		to->dims[k][1] = s->samples;
	}
	pair[0] = (int32_t)s->lines;
	pair[1] = (int32_t)s->samples;
}

static int read_one(const struct files *f, struct yoke_item *to)
{
	const struct source *s = &f->source[to->number];
	float *x = to->to[0], *weight = to->to[1];
	int64_t skipped = 0;
	yoke_cube *c = open_same(s, s->path, f->settings, f->bands);
	int err = c ? yoke_cube_read(c, x, weight) : yk_error_last();
	yoke_cube_free(c);
	if (!err && s->mask)
		err = read_mask(s, weight);
	if (!err && f->labels)
		err = read_weights(s, s->label, false, to->to[2], weight);
	if (!err)
		err = look(f, s, x, weight, &skipped);
	if (!err)
		atomic_store(&f->skipped[to->number], skipped);
	if (!err && f->varies)
		set_size(f, s, to);
	return err;
}

static int read_files(void *arg, int64_t n, struct yoke_item *const *item)
{
	const struct files *f = arg;
	for (int64_t i = 0; i < n; i++) {
		int err = read_one(f, item[i]);
		if (err)
			yk_sample_failed(item[i], err);
	}
	return 0;
}

yoke_dataset *yk_cube_set(const char *name, int64_t count, const struct yk_cube_shape *s,
			  bool label, yoke_read_fn *read, void *arg, void (*free_fn)(void *),
			  uint64_t fingerprint)
{
	const int64_t any = s->varies; // sizes are multiples of 1: any size up to the largest
	const struct yoke_field field[3] = {
		{ .size = sizeof *field, .name = "x", .dtype = yoke_f32, .rank = 3, .dims = { s->lines, s->samples, s->bands },
		  .multiple = { any, any } },
		{ .size = sizeof *field, .name = "weight", .dtype = yoke_f32, .rank = 2, .dims = { s->lines, s->samples },
		  .multiple = { any, any } },
		{ .size = sizeof *field, .name = "label", .dtype = yoke_u8, .rank = 2, .dims = { s->lines, s->samples },
		  .multiple = { any, any } },
	}, size = { .size = sizeof size, .name = "size", .dtype = yoke_i32, .rank = 1, .dims = { 2 } };
	struct yoke_field all[4];
	const int n = label ? 3 : 2;
	memcpy(all, field, (size_t)n * sizeof *field);
	all[n] = size;
	const struct yoke_dataset_options o = { .size = sizeof o,
						.name = name,
						.count = count,
						.fields = n + s->varies,
						.field = all,
						.read = read,
						.arg = arg,
						.free_fn = free_fn,
						.fingerprint = fingerprint };
	return yoke_dataset_new(&o);
}

// ---- settings ----

// Removes nonfinite= from the settings; the rest is for yoke_cube_open.
static int take_settings(struct files *f, const char *settings)
{
	char *copy = strdup(settings ? settings : ""), *rest = copy, *word;
	size_t at = 0;
	int err = copy && (f->settings = calloc(1, strlen(copy) + 2)) ?
			  0 :
			  yk_fail(YOKE_ENOMEM, "dataset_cubes: no memory");
	while (!err && (word = strsep(&rest, " "))) {
		if (!strcmp(word, "nonfinite=skip"))
			f->skip = true;
		else if (!strncmp(word, "nonfinite=", 10) && strcmp(word, "nonfinite=error"))
			err = yk_fail(YOKE_EINVAL, "dataset_cubes: %s: must be error or skip",
				      word);
		else if (strncmp(word, "nonfinite=", 10) && *word)
			at += (size_t)sprintf(f->settings + at, "%s%s", at ? " " : "", word);
	}
	free(copy);
	return err;
}

// Reads the description of a file of cubes.  The first file determines the bands of the dataset.
static int look_at(struct files *f, const char *path, struct yoke_cube_info *to)
{
	yoke_cube *c = yoke_cube_open(path, f->settings);
	if (!c)
		return yk_error_last();
	yoke_cube_info(c, to);
	yoke_cube_free(c);
	if (!f->n) {
		f->lines = to->lines;
		f->samples = to->samples;
		f->bands = to->bands;
	}
	if (to->bands != f->bands)
		return yk_fail(
			YOKE_ESHAPE,
			"%s has %lld bands, %s has %lld; cubes of a set must have the same number of bands, as bands= may "
			"select them by number or wavelength",
			path, (long long)to->bands, f->source[0].path, (long long)f->bands);
	f->varies |= to->lines != f->lines || to->samples != f->samples;
	f->lines = to->lines > f->lines ? to->lines : f->lines;
	f->samples = to->samples > f->samples ? to->samples : f->samples;
	return 0;
}

// Appends the cubes of file i.
static int add_file(struct files *f, const struct yoke_cube_files *o, int i)
{
	struct yoke_cube_info info = { .size = sizeof info };
	int err = look_at(f, o->path[i], &info);
	if (err)
		return err;
	if (info.items > MAX_CUBES - f->n) // the count of an empty file is arbitrary
		return yk_fail(YOKE_ERANGE, "%s: has %lld cubes, but a dataset holds at most %d",
			       o->path[i], (long long)info.items, MAX_CUBES);
	struct source *more = realloc(f->source, (size_t)(f->n + info.items) * sizeof *more);
	if (!more)
		return yk_fail(YOKE_ENOMEM, "dataset_cubes: no memory for %lld cubes",
			       (long long)info.items);
	f->source = more;
	for (int64_t k = 0; k < info.items; k++) {
		struct source *s = &f->source[f->n++];
		*s = (struct source){ .path = strdup(o->path[i]),
				      .label = o->label ? strdup(o->label[i]) : NULL,
				      .mask = o->mask ? strdup(o->mask[i]) : NULL,
				      .item = k,
				      .stack = info.stack,
				      .lines = info.lines,
				      .samples = info.samples };
		if (!s->path || !s->label != !o->label || !s->mask != !o->mask)
			return yk_fail(YOKE_ENOMEM, "dataset_cubes: no memory for paths");
	}
	return 0;
}

// Checks that labels and masks have the sizes of their cubes.
static int check_shapes(const struct files *f)
{
	int err = 0;
	for (int64_t i = 0; i < f->n && !err; i++) {
		const struct source *s = &f->source[i];
		const char *const path[2] = { s->label, s->mask };
		for (int k = 0; k < 2 && !err; k++) {
			yoke_cube *c = path[k] ? open_same(s, path[k], "", 1) : NULL;
			err = path[k] && !c ? yk_error_last() : 0;
			yoke_cube_free(c);
		}
	}
	return err;
}

static int begin(struct files *f, const struct yoke_cube_files *o, uint64_t *hash)
{
	int err = take_settings(f, o->settings);
	for (int i = 0; i < o->n && !err; i++) {
		*hash = yk_hash(o->path[i], strlen(o->path[i]), *hash);
		err = add_file(f, o, i);
	}
	// if sizes do not differ, the fields' dims have them
	for (int64_t i = 0; i < f->n && f->varies && !err; i++)
		*hash = yk_hash_numbers((int64_t[]){ f->source[i].lines, f->source[i].samples },
					sizeof(int64_t), 2, *hash);
	if (!err)
		err = check_shapes(f);
	*hash = yk_hash(f->settings ? f->settings : "", f->settings ? strlen(f->settings) : 0,
			*hash + f->skip);
	if (!err && !(f->skipped = calloc((size_t)f->n, sizeof *f->skipped)))
		err = yk_fail(YOKE_ENOMEM, "dataset_cubes: no memory for %lld cubes",
			      (long long)f->n);
	return err;
}

// Checks that the list, if present, has no NULL.
static int check_paths(const struct yoke_cube_files *o)
{
	static const char *const what[] = { "path of a cube", "path of labels", "path of a mask" };
	const char *const *const list[] = { o->path, o->label, o->mask };
	int err = yk_require_as(o->path, "dataset_cubes", "list of paths");
	for (int k = 0; k < 3; k++)
		for (int i = 0; i < o->n && list[k] && !err; i++)
			err = yk_require_as(list[k][i], "dataset_cubes", what[k]);
	return err;
}

yoke_dataset *yoke_dataset_cube_files(const struct yoke_cube_files *options)
{
	struct yoke_cube_files o = { .size = sizeof o };
	if (yk_sized_read(&o, sizeof o, options, "dataset_cubes", "yoke_cube_files"))
		return NULL;
	struct files *f = calloc(1, sizeof *f);
	yoke_dataset *d = NULL;
	uint64_t hash = 0;
	int err = f ? 0 : yk_fail(YOKE_ENOMEM, "dataset_cubes: no memory");
	if (!err && o.n < 1)
		err = yk_fail(YOKE_EINVAL, "dataset_cubes: the list of cubes is empty");
	if (!err)
		err = check_paths(&o);
	if (!err)
		err = begin(f, &o, &hash);
	if (!err) {
		f->labels = o.label;
		const struct yk_cube_shape s = { f->lines, f->samples, f->bands, f->varies };
		d = yk_cube_set(o.path[0], f->n, &s, f->labels, read_files, f, files_free, hash);
	}
	if (!d && f)
		files_free(f);
	return d;
}

yoke_dataset *yoke_dataset_cubes(int n, const char *const *path, const char *const *label,
				 const char *settings)
{
	return yoke_dataset_cube_files(
		&(struct yoke_cube_files){ .size = sizeof(struct yoke_cube_files),
					   .n = n,
					   .path = path,
					   .label = label,
					   .settings = settings });
}

int64_t yoke_dataset_cubes_skipped(const yoke_dataset *d)
{
	const int err = yk_require(d, "data set");
	if (err)
		return err;
	const struct files *f = d->arg;
	int64_t sum = 0;
	if (d->read != read_files)
		return 0;
	for (int64_t i = 0; i < f->n; i++)
		sum += atomic_load(&f->skipped[i]);
	return sum;
}
