// SPDX-License-Identifier: Apache-2.0
// Opens cube files of all formats and selects bands.
#include "config.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/kind.h"
#include "base/number.h"
#include "base/sized.h"
#include "data/cube.h"
#include "data/part.h"

// ---- which bands ----

static bool number(const char **at, int64_t *to)
{
	char *end;
	errno = 0;
	*to = isdigit((unsigned char)**at) ? strtoll(*at, &end, 10) : -1;
	if (*to < 0 || errno)
		return false;
	*at = end;
	return true;
}

// Nanometres per unit of the header's wavelengths.  Without a unit, values below 100 are taken as
// micrometres.
static double nanometres(const struct yk_envi *e)
{
	static const struct {
		const char *name;
		double nm;
	} unit[] = { { "nanometers", 1 },     { "nanometer", 1 },     { "nm", 1 },
		     { "micrometers", 1000 }, { "micrometer", 1000 }, { "microns", 1000 },
		     { "micron", 1000 },      { "um", 1000 },         { "\xc2\xb5m", 1000 },
		     { "\xce\xbcm", 1000 } };
	double max = 0;
	for (size_t i = 0; i < sizeof unit / sizeof *unit; i++)
		if (yk_same_word(e->units, unit[i].name))
			return unit[i].nm;
	for (int64_t i = 0; i < e->bands; i++)
		max = fmax(max, e->wavelength[i]);
	return max >= 100 ? 1 : 1000;
}

// Parses "450nm", "0.45um", or a number whose unit follows later: then factor is 0.
static bool length(const char **at, double *to, double *factor)
{
	char *end;
	if (!isdigit((unsigned char)**at))
		return false;
	*to = yk_strtod(*at, &end);
	if (end > *at + 1 && end[-1] == '.' && *end == '.') // "450..900nm"
		end--;
	*factor = !strncmp(end, "nm", 2) ? 1 : !strncmp(end, "um", 2) ? 1000 : 0;
	*at = end + (*factor != 0 ? 2 : 0);
	return true;
}

// Selects the bands within a range of wavelengths, or the nearest band to a single wavelength;
// false: the item is neither.
static bool choose_wave(yoke_cube *c, const char **item, const char *list, int *err)
{
	const struct yk_envi *e = &c->envi;
	const char *at = *item;
	double from, to, unit, last;
	if (!length(&at, &from, &unit))
		return false;
	to = from;
	last = unit;
	const bool range = !strncmp(at, "..", 2);
	if (range && (at += 2, !length(&at, &to, &last)))
		return false;
	if (last == 0 || (*at && *at != ','))
		return false;
	*item = at;
	from *= unit != 0 ? unit : last;
	to *= last;
	if (!e->wavelength) {
		*err = yk_fail(YOKE_EINVAL, "%s: bands=%s: its header has no wavelengths", c->path,
			       list);
		return true;
	}
	const double scale = nanometres(e), slack = 1e-9 * to;
	int64_t near = 0, before = c->bands;
	for (int64_t i = 0; i < e->bands; i++) {
		const double w = e->wavelength[i] * scale;
		near = fabs(w - from) < fabs(e->wavelength[near] * scale - from) ? i : near;
		if (range && w >= from - slack && w <= to + slack && c->bands < YK_ENVI_BANDS)
			c->band[c->bands++] = i;
	}
	if (!range && c->bands < YK_ENVI_BANDS)
		c->band[c->bands++] = near;
	if (c->bands == before)
		*err = yk_fail(
			YOKE_EINVAL,
			"%s: bands=%s: no band is between %g and %g nm; the bands are from %g to %g nm",
			c->path, list, from, to, e->wavelength[0] * scale,
			e->wavelength[e->bands - 1] * scale);
	return true;
}

static int choose_listed(yoke_cube *c, const char *list)
{
	const char *at = list;
	int err = 0;
	do {
		int64_t from, to;
		if (choose_wave(c, &at, list, &err)) {
			if (err)
				return err;
			continue;
		}
		if (!number(&at, &from))
			break;
		to = from;
		if (*at == '-' && (at++, !number(&at, &to)))
			break;
		if (to < from || to >= c->envi.bands || c->bands + to - from >= YK_ENVI_BANDS)
			return yk_fail(YOKE_EINVAL, "%s: bands=%s: it has bands 0 to %lld", c->path,
				       list, (long long)c->envi.bands - 1);
		for (; from <= to; from++)
			c->band[c->bands++] = from;
	} while (*at == ',' && *++at);
	return *at || !c->bands ?
		       yk_fail(YOKE_EINVAL,
			       "%s: bands=%s: must be all, good, band numbers (0-9,20) or wavelengths (450nm..900nm)",
			       c->path, list) :
		       0;
}

// bands: all, good, or a list of band numbers and wavelengths.
static int choose(yoke_cube *c, const char *bands)
{
	const bool good = !strcmp(bands, "good");
	if (good && c->envi.odd_bbl)
		return yk_fail(YOKE_EINVAL,
			       "%s: bands=good: its bbl does not have one number per band",
			       c->path);
	if (!good && strcmp(bands, "all"))
		return choose_listed(c, bands);
	for (int64_t i = 0; i < c->envi.bands; i++)
		if (!good || !c->envi.good || c->envi.good[i])
			c->band[c->bands++] = i;
	return c->bands ? 0 :
			  yk_fail(YOKE_EINVAL, "%s: bands=good: its bbl marks no band as good",
				  c->path);
}

// ---- settings ----

struct settings {
	char *text; // owns the strings
	const char *bands, *variable;
	int64_t item;
	bool stack;
};

static int take(struct settings *to, const char *word)
{
	const char *at = word + 5;
	if (!strncmp(word, "bands=", 6) && word[6])
		to->bands = word + 6;
	else if (!strncmp(word, "variable=", 9) && word[9])
		to->variable = word + 9;
	else if (!strcmp(word, "stack=1") || !strcmp(word, "stack=0"))
		to->stack = word[6] == '1';
	else if (strncmp(word, "item=", 5) || !number(&at, &to->item) || *at)
		return yk_fail(
			YOKE_EINVAL,
			"cube_open: '%s' is not a setting; settings are bands=all, good, band numbers (0-9,20) or wavelengths; variable=; item=; "
			"stack=",
			word);
	return 0;
}

static int parse(struct settings *to, const char *text)
{
	*to = (struct settings){ .text = strdup(text ? text : ""), .bands = "all" };
	char *rest = to->text, *word;
	int err = rest ? 0 : yk_fail(YOKE_ENOMEM, "cube_open: no memory");
	while (!err && (word = strsep(&rest, " ")))
		if (*word)
			err = take(to, word);
	return err;
}

// ---- opening ----

// Checks that the file has all elements.  An existing file stays open as the cube's; it is an error
// if it is too short.
static int try_data(yoke_cube *c, const char *path)
{
	struct stat st;
	uint64_t bytes;
	if (stat(path, &st) || !S_ISREG(st.st_mode))
		return 0;
	free(c->data);
	if (!(c->data = strdup(path)))
		return yk_fail(YOKE_ENOMEM, "cube_open: no memory");
	c->fd = yk_file_open(path, &bytes);
	if (c->fd >= 0 && (bytes < c->envi.offset || bytes - c->envi.offset < c->envi.bytes))
		return yk_fail(
			YOKE_EFORMAT,
			"%s: its header describes %llu bytes from byte %llu, but the file has %llu bytes",
			path, (unsigned long long)c->envi.bytes, (unsigned long long)c->envi.offset,
			(unsigned long long)bytes);
	return c->fd < 0 ? c->fd : 1;
}

static const char *const data_suffix[] = { "",     ".img", ".dat", ".raw",
					   ".bin", ".bsq", ".bil", ".bip" };
#define SUFFIXES (sizeof data_suffix / sizeof *data_suffix)

static bool is_known(const char *suffix)
{
	for (size_t i = 0; i < SUFFIXES; i++)
		if (yk_same_word(suffix, data_suffix[i]))
			return true;
	return false;
}

// Searches the header's directory for files with its stem and another suffix: the first by name
// with a known suffix, in upper or lower case, or else the only one that is large enough.
static int find_data(yoke_cube *c)
{
	const char *slash = strrchr(c->path, '/'), *name = slash ? slash + 1 : c->path;
	const size_t stem = strlen(name) - 4;
	char *folder = slash ? strndup(c->path, (size_t)(slash - c->path) + 1) : strdup(""),
	     *found[2] = { NULL, NULL };
	DIR *dir = folder ? opendir(*folder ? folder : ".") : NULL;
	int known = 0, other = 0, err = folder ? 0 : yk_fail(YOKE_ENOMEM, "cube_open: no memory");
	for (struct dirent *d; dir && !err && (d = readdir(dir));) {
		const char *suffix = d->d_name + stem;
		struct stat st;
		if (strlen(d->d_name) < stem || !yk_same_words(d->d_name, name, stem) ||
		    (*suffix && *suffix != '.') || (*suffix && strchr(suffix + 1, '.')) ||
		    yk_same_word(suffix, ".hdr") || fstatat(dirfd(dir), d->d_name, &st, 0) ||
		    !S_ISREG(st.st_mode))
			continue;
		const bool is = is_known(suffix);
		if (!is && (uint64_t)st.st_size < c->envi.offset + c->envi.bytes)
			continue;
		*(is ? &known : &other) += 1;
		if (found[is] && strcmp(found[is] + strlen(folder), d->d_name) < 0)
			continue;
		free(found[is]);
		if (asprintf(&found[is], "%s%s", folder, d->d_name) < 0) {
			found[is] = NULL;
			err = yk_fail(YOKE_ENOMEM, "cube_open: no memory");
		}
	}
	if (dir)
		closedir(dir);
	if (!err && !known && other > 1)
		err = yk_fail(
			YOKE_ENOENT,
			"%s: %s and %d other files could be its data; name the right one .img",
			c->path, found[0], other - 1);
	else if (!err && known + other)
		err = try_data(c, found[known > 0]);
	free(found[0]);
	free(found[1]);
	free(folder);
	return err;
}

// Opens the header's name without .hdr, or with another suffix instead.
static int open_data(yoke_cube *c)
{
	const size_t n = strlen(c->path) - 4;
	int there = 0;
	for (size_t i = 0; i < SUFFIXES && !there; i++) {
		char *path;
		if (asprintf(&path, "%.*s%s", (int)n, c->path, data_suffix[i]) < 0)
			return yk_fail(YOKE_ENOMEM, "cube_open: no memory");
		there = try_data(c, path);
		free(path);
	}
	if (!there)
		there = find_data(c);
	if (there)
		return there < 0 ? there : 0;
	return yk_fail(YOKE_ENOENT, "%s: its data file was not found: no file of that name "
		"without .hdr, or with .img, .dat, .raw, .bin, .bsq, .bil or .bip, or with "
		"another suffix and large enough", c->path);
}

static int open_envi(yoke_cube *c)
{
	char *text;
	size_t bytes;
	if (strlen(c->path) > 1 << 16)
		return yk_fail(YOKE_EINVAL, "cube_open: the path is too long");
	int err = yk_file_read(c->path, YK_ENVI_HEADER, &text, &bytes);
	if (err)
		return err;
	err = yk_text_begin(c->path, text, &bytes);
	if (!err)
		err = yk_envi_parse(&c->envi, c->path, text, bytes);
	free(text);
	return err ? err : open_data(c);
}

static int open_npy(yoke_cube *c, const struct settings *s)
{
	struct yk_npy n;
	char *head = malloc(YK_NPY_HEADER);
	uint64_t bytes;
	int err = 0;
	c->fd = yk_file_open(c->path, &bytes);
	c->data = strdup(c->path);
	if (!head || !c->data || c->fd < 0)
		err = c->fd < 0 ? c->fd : yk_fail(YOKE_ENOMEM, "cube_open: no memory");
	const size_t length = bytes < YK_NPY_HEADER ? bytes : YK_NPY_HEADER;
	if (!err)
		err = yk_file_read_at(c->fd, c->path, 0, head, length);
	if (!err)
		err = yk_npy_header(&n, c->path, head, length, bytes);
	free(head);
	if (err)
		return err;
	const bool stack = n.rank == 4 || (s->stack && n.rank == 3);
	const int64_t *dims = n.dims + stack;
	const int rank = n.rank - stack;
	if ((rank != 3 && rank != 2) || (stack && n.fortran))
		return yk_fail(
			YOKE_EUNSUPPORTED,
			"%s: a cube is [lines,samples,bands] or [cubes,lines,samples,bands], the latter in C's order",
			c->path);
	c->envi = (struct yk_envi){ .lines = dims[0],
				    .samples = dims[1],
				    .bands = rank == 3 ? dims[2] : 1,
				    .type = yk_envi_type_named(n.element->name),
				    .interleave = YK_BIP,
				    .big = n.big,
				    .offset = n.offset,
				    .scale = 1,
				    .ignore = NAN };
	c->columns = n.fortran;
	c->stack = stack;
	c->items = stack ? n.dims[0] : 1;
	if (!c->envi.type && n.element->kind == 'b')
		c->envi.type = yk_envi_type_named("u8");
	if (!c->envi.type || c->envi.bands > YK_ENVI_BANDS || c->envi.lines > INT32_MAX ||
	    c->envi.samples > INT32_MAX)
		return yk_fail(
			YOKE_EUNSUPPORTED,
			"%s: elements are %s, with %lld bands; cubes are u8 i16 i32 f32 f64 u16 u32 i64 or u64 and "
			"have up to %d",
			c->path, n.element->name, (long long)c->envi.bands, YK_ENVI_BANDS);
	c->envi.bytes = (uint64_t)(c->envi.lines * c->envi.samples * c->envi.bands) *
			(uint64_t)c->envi.type->width;
	return 0;
}

static int open_any(yoke_cube *c, const struct settings *s)
{
	if (yk_ends_with(c->path, ".hdr"))
		return open_envi(c);
	if (yk_ends_with(c->path, ".npy"))
		return open_npy(c, s);
	if (yk_ends_with(c->path, ".mat"))
		return yk_mat_open(c, s->variable);
	return yk_fail(YOKE_EINVAL, "%s: a cube is an ENVI header, .hdr, or a .npy or .mat file",
		       c->path);
}

// Copies the values of the selected bands out of an array of all bands; NULL stays NULL.
static int of_chosen(const yoke_cube *c, const double *all, double **to)
{
	if (!all)
		return 0;
	*to = malloc((size_t)c->bands * sizeof **to);
	for (int64_t i = 0; *to && i < c->bands; i++)
		(*to)[i] = all[c->band[i]];
	return *to ? 0 : yk_fail(YOKE_ENOMEM, "cube_open: no memory");
}

yoke_cube *yoke_cube_open(const char *path, const char *settings)
{
	if (yk_require(path, "path"))
		return NULL;
	yoke_cube *c = calloc(1, sizeof *c);
	struct settings s;
	if (!c || !(c->path = strdup(path))) {
		yk_fail(YOKE_ENOMEM, "cube_open: no memory");
		free(c);
		return NULL;
	}
	c->fd = -1;
	c->items = 1;
	int err = parse(&s, settings);
	if (!err)
		err = open_any(c, &s);
	if (!err && s.item >= c->items)
		err = yk_fail(YOKE_EINVAL, "%s: item=%lld: it has %lld", c->path, (long long)s.item,
			      (long long)c->items);
	if (!err)
		c->envi.offset += (uint64_t)s.item * c->envi.bytes;
	if (!err && !(c->band = malloc((size_t)YK_ENVI_BANDS * sizeof *c->band)))
		err = yk_fail(YOKE_ENOMEM, "cube_open: no memory");
	if (!err)
		err = choose(c, s.bands);
	if (!err)
		err = of_chosen(c, c->envi.wavelength, &c->wavelength);
	if (!err)
		err = of_chosen(c, c->envi.gain, &c->gain);
	if (!err)
		err = of_chosen(c, c->envi.shift, &c->shift);
	c->all = !err && c->bands == c->envi.bands;
	for (int64_t i = 0; c->all && i < c->bands; i++)
		c->all = c->band[i] == i;
	free(s.text);
	if (!err)
		return c;
	yoke_cube_free(c);
	return NULL;
}

void yoke_cube_free(yoke_cube *c)
{
	if (!c)
		return;
	if (c->fd >= 0)
		close(c->fd);
	yk_envi_fini(&c->envi);
	free(c->wavelength);
	free(c->gain);
	free(c->shift);
	free(c->band);
	free(c->data);
	free(c->variable);
	free(c->path);
	free(c);
}

int yoke_cube_info(const yoke_cube *c, struct yoke_cube_info *to)
{
	const int err = yk_require(c, "cube");
	if (err)
		return err;
	const struct yk_envi *e = &c->envi;
	const struct yoke_cube_info i = { sizeof i,
					  e->lines,
					  e->samples,
					  c->bands,
					  e->type->name,
					  c->columns ? "columns" :
						       yk_interleave_names[e->interleave],
					  e->big,
					  e->offset,
					  e->scale,
					  e->ignore,
					  c->wavelength,
					  c->data,
					  c->items,
					  c->stack,
					  *e->units ? e->units : NULL,
					  e->scene,
					  e->gain || e->shift,
					  c->variable };
	return yk_sized_write(to, sizeof i, &i, "cube_info", "yoke_cube_info");
}
