// SPDX-License-Identifier: Apache-2.0
// Datasets of images in one folder per class: files are listed once, sorted by name, and decoded
// when read.
#include "config.h"

#include "data/images.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/number.h"
#include "data/resize.h"
#include "data/set.h"
#include "data/walk.h"

enum { MAX_SIDE = 4096, MAX_BYTES = 256 << 20, MAX_CLASSES = 1 << 20, TRIES = 10, FLIP = 1000 };
enum crop { CENTER, RANDOM, NONE };

struct file {
	char *name;
	int32_t class;
};

struct images {
	char *path;
	struct yk_arena names;
	char **class;
	struct file *file;
	size_t classes, class_cap, files, file_cap;
	uint64_t hash;
	struct yk_resize resize; // the rectangle is set per image
	enum crop crop;
	double zoom;
	bool flip;
};

static void images_free(void *arg)
{
	struct images *m = arg;
	yk_arena_fini(&m->names);
	free(m->class);
	free(m->file);
	free(m->path);
	free(m);
}

// ---- crop ----

static void middle(const struct images *m, struct yk_resize *r, int width, int height)
{
	const double x = (double)width / r->to_width, y = (double)height / r->to_height,
		     s = (x < y ? x : y) * m->zoom;
	r->width = s * r->to_width;
	r->height = s * r->to_height;
	r->left = (width - r->width) / 2;
	r->top = (height - r->height) / 2;
}

// Random crop: 0.08 to 1 of the image's area, with an aspect ratio of 3/4 to 4/3 times that of the
// size; the centre if none of ten attempts fits.
static void anywhere(const struct images *m, struct yk_resize *r, int width, int height,
		     const struct yoke_item *s)
{
	for (uint32_t n = 0; n < 4 * TRIES; n += 4) {
		const double area =
			(double)width * height * (0.08 + 0.92 * yoke_item_uniform(s, n));
		const double ratio = exp(log(4.0 / 3) * (2 * yoke_item_uniform(s, n + 1) - 1)) *
				     r->to_width / r->to_height;
		const double w = floor(sqrt(area * ratio) + 0.5),
			     h = floor(sqrt(area / ratio) + 0.5);
		if (w < 1 || h < 1 || w > width || h > height)
			continue;
		r->width = w;
		r->height = h;
		r->left = floor(yoke_item_uniform(s, n + 2) * (width - w + 1));
		r->top = floor(yoke_item_uniform(s, n + 3) * (height - h + 1));
		return;
	}
	middle(m, r, width, height);
}

// ---- reading ----

static int load(const char *path, struct yk_image *to)
{
	uint64_t bytes;
	const int fd = yk_file_open(path, &bytes);
	if (fd < 0)
		return fd;
	int e = bytes <= MAX_BYTES ?
			0 :
			yk_fail(YOKE_ERANGE, "%s: has more than %d MiB", path, MAX_BYTES >> 20);
	unsigned char *data = e == 0 ? malloc(bytes + 1) : NULL;
	if (e == 0 && !data)
		e = yk_fail(YOKE_ENOMEM, "%s: no memory to read it", path);
	if (e == 0)
		e = yk_file_read_at(fd, path, 0, data, bytes);
	close(fd);
	if (e == 0)
		e = yk_image_decode(to, path, data, bytes);
	free(data);
	return e;
}

static char *path_of(const struct images *m, const char *class, const char *name)
{
	char *path;
	if (asprintf(&path, "%s/%s%s%s", m->path, class, name ? "/" : "", name ? name : "") >= 0)
		return path;
	yk_fail(YOKE_ENOMEM, "%s: no memory for a path", m->path);
	return NULL;
}

static int read_image(const struct images *m, struct yoke_item *s)
{
	const struct file *f = &m->file[s->number];
	char *path = path_of(m, m->class[f->class], f->name);
	struct yk_resize r = m->resize;
	struct yk_image im;
	int e = path ? load(path, &im) : yoke_error_code();
	free(path);
	if (e < 0)
		return e;
	if (m->crop == RANDOM)
		anywhere(m, &r, im.width, im.height, s);
	else if (m->crop == CENTER)
		middle(m, &r, im.width, im.height);
	else
		r.left = r.top = 0, r.width = im.width, r.height = im.height;
	r.mirror = m->flip && yoke_item_uniform(s, FLIP) < 0.5;
	e = yk_resize(&im, &r, s->to[0]);
	*(int32_t *)s->to[1] = f->class;
	free(im.rgb);
	return e;
}

static int read_images(void *arg, int64_t n, struct yoke_item *const *s)
{
	for (int64_t i = 0; i < n; i++) {
		const int e = read_image(arg, s[i]);
		if (e < 0)
			yk_sample_failed(s[i], e);
	}
	return 0;
}

static const char *label_of(const void *arg, int field, int64_t i)
{
	const struct images *m = arg;
	return field == 1 && i >= 0 && (size_t)i < m->classes ? m->class[i] : NULL;
}

// ---- listing ----

static bool is_image(const char *name)
{
	const char *end = strrchr(name, '.');
	return end && (yk_same_word(end, ".jpg") || yk_same_word(end, ".jpeg") ||
		       yk_same_word(end, ".png"));
}

// Adds an image file to the last class; at the top level, adds a folder as a class.
static int add_entry(struct images *m, const char *class, const char *name, bool *folder)
{
	char *path = path_of(m, class ? class : name, class ? name : NULL);
	struct stat st;
	if (!path)
		return yoke_error_code();
	const int e = lstat(path, &st) < 0 ? yk_fail(YOKE_EIO, "%s: %s", path, strerror(errno)) : 0;
	free(path);
	*folder = S_ISDIR(st.st_mode);
	if (e < 0 || !class || !S_ISREG(st.st_mode) || !is_image(name))
		return e;
	char *copy = yk_arena_strdup(&m->names, name);
	if (!copy || yk_grow(&m->file, &m->file_cap, m->files + 1, sizeof *m->file) < 0)
		return yk_fail(YOKE_ENOMEM, "%s: no memory for the list of images", m->path);
	m->file[m->files++] = (struct file){ copy, (int32_t)m->classes - 1 };
	m->hash = yk_hash(name, strlen(name), m->hash);
	m->hash = yk_hash_numbers(&(int64_t){ st.st_size }, 8, 1, m->hash);
	return 0;
}

static int list_class(struct images *m, const char *name);

// Lists the classes of the folder (class NULL), or the images of a class.
static int list_folder(struct images *m, const char *class)
{
	struct dirent **entries;
	char *path = class ? path_of(m, class, NULL) : strdup(m->path);
	const int n = path ? yk_walk_entries(path, &entries) :
			     yk_fail(YOKE_ENOMEM, "%s: no memory for a path", m->path);
	int e = n < 0 ? n : 0;
	free(path);
	for (int i = 0; i < n; i++) {
		bool folder = false;
		if (e == 0)
			e = add_entry(m, class, entries[i]->d_name, &folder);
		if (e == 0 && folder && !class)
			e = list_class(m, entries[i]->d_name);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	return e;
}

static int list_class(struct images *m, const char *name)
{
	const size_t before = m->files;
	char *copy = yk_arena_strdup(&m->names, name);
	if (!copy || yk_grow(&m->class, &m->class_cap, m->classes + 1, sizeof *m->class) < 0)
		return yk_fail(YOKE_ENOMEM, "%s: no memory for the list of classes", m->path);
	if (m->classes == MAX_CLASSES)
		return yk_fail(YOKE_ERANGE, "%s: has more than %d folders", m->path, MAX_CLASSES);
	m->class[m->classes++] = copy;
	m->hash = yk_hash(name, strlen(name), m->hash);
	const int e = list_folder(m, name);
	if (e == 0 && m->files == before)
		return yk_fail(YOKE_EFORMAT,
			       "%s: class %.80s has no images: files named .jpg, .jpeg or .png",
			       m->path, name);
	return e;
}

// ---- settings ----

// Parses up to `max` numbers separated by commas, or a single number.
static int numbers(const char *key, const char *text, char between, int max, double *to)
{
	const char *at = text;
	for (int i = 0; i < max; i++) {
		char *end;
		to[i] = yk_strtod(at, &end);
		if (end == at || !isfinite(to[i]) || (*end && (*end != between || i + 1 == max)))
			break;
		if (!*end)
			return i + 1;
		at = end + 1;
	}
	return yk_fail(YOKE_EINVAL,
		       "dataset_open: %s=%s: must be up to %d numbers with %c between them", key,
		       text, max, between);
}

static int refuse(const char *key, const char *value, const char *rule)
{
	return yk_fail(YOKE_EINVAL, "dataset_open: %s=%s: %s", key, value, rule);
}

static int take_size(struct images *m, const char *size)
{
	double side[2] = { 0 };
	if (!size)
		return yk_fail(
			YOKE_EINVAL,
			"dataset_open: %s: images take size=, the height and width of the samples, as 224 "
			"or 224x320",
			m->path);
	const int n = numbers("size", size, 'x', 2, side);
	if (n < 0)
		return n;
	side[1] = n == 2 ? side[1] : side[0];
	for (int i = 0; i < 2; i++)
		if (side[i] < 1 || side[i] > MAX_SIDE || side[i] != floor(side[i]))
			return refuse("size", size, "sides have 1 to 4096 pixels");
	m->resize.to_height = (int)side[0];
	m->resize.to_width = (int)side[1];
	return 0;
}

// Sets scale and shift for (x / 255 - mean) / std; mean and std are given per channel or once for
// all.
static int take_scale(struct images *m, const struct yk_image_settings *o)
{
	double mean[3] = { 0 }, std[3] = { 1 };
	const int n = o->mean ? numbers("mean", o->mean, ',', 3, mean) : 1;
	const int k = n < 0 ? n : o->std ? numbers("std", o->std, ',', 3, std) : 1;
	if (k < 0)
		return k;
	if (n == 2 || k == 2)
		return refuse(n == 2 ? "mean" : "std", n == 2 ? o->mean : o->std,
			      "must be one number, or one for each channel");
	for (int c = 0; c < 3; c++) {
		const double s = std[k == 3 ? c : 0], x = mean[n == 3 ? c : 0];
		if (!(s > 0))
			return refuse("std", o->std, "must be above 0");
		m->resize.scale[c] = (float)(1 / (255 * s));
		m->resize.shift[c] = (float)(-x / s);
	}
	return 0;
}

static int take_settings(struct images *m, const struct yk_image_settings *o)
{
	int e = take_size(m, o->size);
	if (e == 0)
		e = take_scale(m, o);
	m->zoom = 1;
	if (e == 0 && o->zoom)
		e = numbers("zoom", o->zoom, ',', 1, &m->zoom);
	if (e < 0)
		return e;
	if (!(m->zoom > 0 && m->zoom <= 1))
		return refuse("zoom", o->zoom, "must be above 0 and at most 1");
	if (o->flip && strcmp(o->flip, "0") && strcmp(o->flip, "1"))
		return refuse("flip", o->flip, "must be 0 or 1");
	m->flip = o->flip && !strcmp(o->flip, "1");
	if (!o->crop || !strcmp(o->crop, "center"))
		m->crop = CENTER;
	else if (!strcmp(o->crop, "random"))
		m->crop = RANDOM;
	else if (!strcmp(o->crop, "none"))
		m->crop = NONE;
	else
		return refuse("crop", o->crop, "must be center, random or none");
	m->hash = yk_hash_numbers((int64_t[]){ m->resize.to_height, m->resize.to_width }, 8, 2,
				  (uint64_t)m->crop << 1 | m->flip);
	m->hash = yk_hash_numbers(m->resize.scale, sizeof *m->resize.scale, 3, m->hash);
	m->hash = yk_hash_numbers(m->resize.shift, sizeof *m->resize.shift, 3, m->hash);
	m->hash = yk_hash_numbers(&m->zoom, sizeof m->zoom, 1, m->hash);
	return 0;
}

static yoke_dataset *make_set(struct images *m)
{
	const struct yoke_field field[2] = {
		{ .size = sizeof *field, .name = "image", .dtype = yoke_f32, .rank = 3,
		  .dims = { 3, m->resize.to_height, m->resize.to_width } },
		{ .name = "class", .dtype = yoke_i32 },
	};
	yoke_dataset *d = yoke_dataset_new(
		&(struct yoke_dataset_options){ .size = sizeof(struct yoke_dataset_options),
						.name = m->path,
						.count = (int64_t)m->files,
						.fields = 2,
						.field = field,
						.read = read_images,
						.arg = m,
						.free_fn = images_free,
						.fingerprint = m->hash });
	if (d)
		d->label = label_of;
	return d;
}

yoke_dataset *yk_images_open(const char *path, const struct yk_image_settings *o)
{
	struct images *m = calloc(1, sizeof *m);
	yoke_dataset *d = NULL;
	if (!m || !(m->path = strdup(path))) {
		free(m);
		yk_fail(YOKE_ENOMEM, "%s: no memory", path);
		return NULL;
	}
	int e = take_settings(m, o);
	if (e == 0)
		e = list_folder(m, NULL);
	if (e == 0 && m->files == 0)
		e = yk_fail(YOKE_EFORMAT, "%s: has no folders of images, one for each class", path);
	if (e == 0)
		d = make_set(m);
	if (!d)
		images_free(m);
	return d;
}
