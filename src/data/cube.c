// SPDX-License-Identifier: Apache-2.0
// Cubes in files: opened, read some lines at a time into pixels of f32, and written.
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "data/envi.h"
#include "data/part.h"
#include "yoke-cube.h"

enum { BLOCK = 4 << 20, TILE = 64 }; // bytes read at a time; pixels put in order together

struct yoke_cube {
	char *path, *data;
	int fd;
	struct yk_envi envi;
	int64_t bands;      // that are read
	int64_t *band;      // their places in the file
	double *wavelength; // theirs, or NULL
};

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

static int choose_listed(yoke_cube *c, const char *list)
{
	const char *at = list;
	do {
		int64_t from, to;
		if (!number(&at, &from))
			break;
		to = from;
		if (*at == '-' && (at++, !number(&at, &to)))
			break;
		if (to < from || to >= c->envi.bands || c->bands + to - from >= YK_ENVI_BANDS)
			return yk_fail(YOKE_EINVAL, "%s: bands=%s: it has bands 0 to %lld", c->path, list, (long long)c->envi.bands - 1);
		for (; from <= to; from++)
			c->band[c->bands++] = from;
	} while (*at == ',' && *++at);
	return *at || !c->bands ? yk_fail(YOKE_EINVAL, "%s: bands=%s: must be all, good or places, as 0-9,20", c->path, list) : 0;
}

static int choose(yoke_cube *c, const char *settings)
{
	const char *bands = settings ? settings : "bands=all";
	char key[200];
	if (sscanf(bands, "bands=%199s", key) != 1 || strlen(bands) != strlen(key) + 6)
		return yk_fail(YOKE_EINVAL, "cube_open: '%s' is none of its settings: bands=all, good or places, as 0-9,20", bands);
	const bool good = !strcmp(key, "good");
	if (!good && strcmp(key, "all"))
		return choose_listed(c, key);
	for (int64_t i = 0; i < c->envi.bands; i++)
		if (!good || !c->envi.good || c->envi.good[i])
			c->band[c->bands++] = i;
	return c->bands ? 0 : yk_fail(YOKE_EINVAL, "%s: bands=good: its bbl has none", c->path);
}

// ---- opening ----

static bool ends(const char *path, const char *end)
{
	const size_t n = strlen(path), m = strlen(end);
	return n >= m && !strcmp(path + n - m, end);
}

static int open_data(yoke_cube *c)
{
	static const char *const suffix[] = { "", ".img", ".dat", ".raw", ".bin", ".bsq", ".bil", ".bip" };
	const size_t n = strlen(c->path) - 4;
	uint64_t bytes;
	for (size_t i = 0; i < sizeof suffix / sizeof *suffix; i++) {
		free(c->data);
		if (asprintf(&c->data, "%.*s%s", (int)n, c->path, suffix[i]) < 0) {
			c->data = NULL;
			return yk_fail(YOKE_ENOMEM, "cube_open: no memory");
		}
		if (access(c->data, F_OK))
			continue;
		c->fd = yk_file_open(c->data, &bytes);
		if (c->fd < 0)
			return c->fd;
		if (bytes < c->envi.offset || bytes - c->envi.offset < c->envi.bytes)
			return yk_fail(YOKE_EFORMAT, "%s: its header says %llu bytes from byte %llu on, the file has %llu", c->data,
				       (unsigned long long)c->envi.bytes, (unsigned long long)c->envi.offset, (unsigned long long)bytes);
		return 0;
	}
	return yk_fail(YOKE_ENOENT, "%s: its data are not there: no file of that name without .hdr, or with .img, .dat, .raw, .bin, "
		       ".bsq, .bil or .bip", c->path);
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
	err = yk_envi_parse(&c->envi, c->path, text, bytes);
	free(text);
	return err ? err : open_data(c);
}

static int open_npy(yoke_cube *c)
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
	c->envi = (struct yk_envi){ .lines = n.dims[0], .samples = n.dims[1], .bands = n.rank == 3 ? n.dims[2] : 1,
				    .type = yk_envi_type_named(n.element->name), .interleave = YK_BIP, .big = n.swap,
				    .offset = n.offset, .scale = 1, .ignore = NAN };
	if ((n.rank != 3 && n.rank != 2) || n.fortran)
		return yk_fail(YOKE_EUNSUPPORTED, "%s: a cube is [lines,samples,bands] in C's order", c->path);
	if (!c->envi.type && n.element->kind == 'b')
		c->envi.type = yk_envi_type_named("u8");
	if (!c->envi.type || c->envi.bands > YK_ENVI_BANDS || c->envi.lines > INT32_MAX || c->envi.samples > INT32_MAX)
		return yk_fail(YOKE_EUNSUPPORTED, "%s: elements are %s, with %lld bands; cubes are u8 i16 i32 f32 f64 u16 u32 i64 or u64 and "
			       "have up to %d", c->path, n.element->name, (long long)c->envi.bands, YK_ENVI_BANDS);
	c->envi.bytes = (uint64_t)(c->envi.lines * c->envi.samples * c->envi.bands) * (uint64_t)c->envi.type->width;
	return 0;
}

yoke_cube *yoke_cube_open(const char *path, const char *settings)
{
	yoke_cube *c = calloc(1, sizeof *c);
	int err = 0;
	if (!c || !(c->path = strdup(path))) {
		yk_fail(YOKE_ENOMEM, "cube_open: no memory");
		free(c);
		return NULL;
	}
	c->fd = -1;
	if (ends(path, ".hdr"))
		err = open_envi(c);
	else if (ends(path, ".npy"))
		err = open_npy(c);
	else
		err = yk_fail(YOKE_EINVAL, "%s: a cube is an ENVI header, .hdr, or a .npy file", path);
	if (!err && !(c->band = malloc((size_t)YK_ENVI_BANDS * sizeof *c->band)))
		err = yk_fail(YOKE_ENOMEM, "cube_open: no memory");
	if (!err)
		err = choose(c, settings);
	if (!err && c->envi.wavelength && !(c->wavelength = malloc((size_t)c->bands * sizeof *c->wavelength)))
		err = yk_fail(YOKE_ENOMEM, "cube_open: no memory");
	for (int64_t i = 0; !err && c->wavelength && i < c->bands; i++)
		c->wavelength[i] = c->envi.wavelength[c->band[i]];
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
	free(c->band);
	free(c->data);
	free(c->path);
	free(c);
}

int yoke_cube_info(const yoke_cube *c, struct yoke_cube_info *to)
{
	const struct yk_envi *e = &c->envi;
	if (!to || !to->size)
		return yk_fail(YOKE_EINVAL, "cube_info: set size to sizeof(struct yoke_cube_info)");
	struct yoke_cube_info i = { to->size < sizeof i ? to->size : sizeof i, e->lines, e->samples, c->bands, e->type->name,
				    yk_interleave_names[e->interleave], e->big, e->offset, e->scale, e->ignore, c->wavelength,
				    c->data };
	memcpy(to, &i, i.size);
	return 0;
}

// ---- elements ----

static void swap(unsigned char *p, int width, size_t n)
{
	for (; n; n--, p += width)
		for (int a = 0, b = width - 1; a < b; a++, b--) {
			const unsigned char t = p[a];
			p[a] = p[b];
			p[b] = t;
		}
}

// X(number of ENVI, C type, least, most)
#define ELEMENTS(X) \
	X(1, uint8_t, 0, UINT8_MAX) X(2, int16_t, INT16_MIN, INT16_MAX) X(3, int32_t, INT32_MIN, INT32_MAX) \
	X(4, float, -HUGE_VAL, HUGE_VAL) X(5, double, -HUGE_VAL, HUGE_VAL) X(12, uint16_t, 0, UINT16_MAX) \
	X(13, uint32_t, 0, UINT32_MAX) X(14, int64_t, -0x1p63, 0x1.fffffffffffffp62) X(15, uint64_t, 0, 0x1.fffffffffffffp63)

// Pixels of a block of lines, which begin at line `first`: from[band * bs + line * ls + sample * ss].
struct place {
	int64_t bs, ls, ss;
};

#define TAKE(id, T, lo, hi) \
	static void take_##id(const yoke_cube *c, const void *block, const struct place *p, int64_t first, int64_t lines, \
			      bool packed, float *x, float *weight) \
	{ \
		const double scale = c->envi.scale, ignore = c->envi.ignore; \
		const int64_t n = c->bands, samples = c->envi.samples; \
		for (int64_t l = 0; l < lines; l++) \
			for (int64_t s0 = 0; s0 < samples; s0 += TILE) { \
				const int64_t end = s0 + TILE < samples ? s0 + TILE : samples; \
				for (int64_t k = 0; k < n; k++) { \
					const T *from = (const T *)block + (packed ? k : c->band[k]) * p->bs + l * p->ls; \
					float *to = x + ((first + l) * samples) * n + k; \
					for (int64_t s = s0; s < end; s++) { \
						const T v = from[s * p->ss]; \
						to[s * n] = scale == 1 ? (float)v : (float)((double)v / scale); \
						if ((double)v == ignore && weight) \
							weight[(first + l) * samples + s] = 0; \
					} \
				} \
			} \
	}
ELEMENTS(TAKE)

static void take_block(const yoke_cube *c, const void *block, const struct place *p, int64_t first, int64_t lines, bool packed,
		       float *x, float *weight)
{
	switch (c->envi.type->number) {
#define CASE(id, T, lo, hi) case id: take_##id(c, block, p, first, lines, packed, x, weight); break;
		ELEMENTS(CASE)
	}
}

// ---- reading ----

// Lines first .. first + lines - 1 into the block; of BSQ the bands that are read alone, one behind another.
static int fetch(const yoke_cube *c, int64_t first, int64_t lines, unsigned char *block)
{
	const struct yk_envi *e = &c->envi;
	const uint64_t line = (uint64_t)(e->samples * e->type->width);
	if (e->interleave != YK_BSQ)
		return yk_file_read_at(c->fd, c->data, e->offset + (uint64_t)(first * e->bands) * line, block,
				       (uint64_t)(lines * e->bands) * line);
	int err = 0;
	for (int64_t k = 0; k < c->bands && !err; k++)
		err = yk_file_read_at(c->fd, c->data, e->offset + (uint64_t)(c->band[k] * e->lines + first) * line,
				      block + (uint64_t)(k * lines) * line, (uint64_t)lines * line);
	return err;
}

int yoke_cube_read(const yoke_cube *c, float *x, float *weight)
{
	const struct yk_envi *e = &c->envi;
	const uint16_t one = 1;
	const bool host_big = *(const unsigned char *)&one == 0, swapped = e->big != host_big && e->type->width > 1;
	const bool bsq = e->interleave == YK_BSQ, bip = e->interleave == YK_BIP;
	for (int64_t i = 0; weight && i < e->lines * e->samples; i++)
		weight[i] = 1;
	if (bip && e->type->number == 4 && !swapped && e->scale == 1 && isnan(e->ignore) && c->bands == e->bands &&
	    c->band[0] == 0 && c->band[c->bands - 1] == c->bands - 1) // as they are
		return yk_file_read_at(c->fd, c->data, e->offset, x, e->bytes);
	const int64_t bands = bsq ? c->bands : e->bands, line = e->samples * bands * e->type->width;
	const int64_t most = line > BLOCK ? 1 : BLOCK / line < e->lines ? BLOCK / line : e->lines;
	unsigned char *block = malloc((size_t)(most * line));
	int err = block ? 0 : yk_fail(YOKE_ENOMEM, "%s: no memory for %lld bytes", c->path, (long long)(most * line));
	for (int64_t first = 0; first < e->lines && !err; first += most) {
		const int64_t lines = first + most < e->lines ? most : e->lines - first;
		const struct place p = { bsq ? lines * e->samples : bip ? 1 : e->samples, bsq ? e->samples : bands * e->samples,
					 bip ? bands : 1 };
		err = fetch(c, first, lines, block);
		if (!err && swapped)
			swap(block, e->type->width, (size_t)(lines * e->samples * bands));
		if (!err)
			take_block(c, block, &p, first, lines, bsq, x, weight);
	}
	free(block);
	return err;
}

// ---- writing ----

#define GIVE(id, T, lo, hi) \
	static bool give_##id(double v, void *to) \
	{ \
		const bool whole = id != 4 && id != 5; \
		v = whole ? rint(v) : v; \
		if (whole && !(v >= (double)(lo) && v <= (double)(hi))) \
			return false; \
		const T t = (T)v; \
		memcpy(to, &t, sizeof t); \
		return true; \
	}
ELEMENTS(GIVE)

static bool give(int number_of, double v, void *to)
{
	switch (number_of) {
#define GIVEN(id, T, lo, hi) case id: return give_##id(v, to);
		ELEMENTS(GIVEN)
	}
	return false;
}

static int write_elements(struct yk_file_writer *w, const char *path, const struct yk_envi *e, const float *x)
{
	const uint16_t one = 1;
	const bool host_big = *(const unsigned char *)&one == 0;
	const int64_t outer = e->interleave == YK_BSQ ? e->bands : e->lines,
		      middle = e->interleave == YK_BIL ? e->bands : e->interleave == YK_BSQ ? e->lines : e->samples,
		      inner = e->interleave == YK_BIP ? e->bands : e->samples;
	unsigned char *row = malloc((size_t)(inner * e->type->width));
	int err = row ? 0 : yk_fail(YOKE_ENOMEM, "%s: no memory", path);
	for (int64_t o = 0; o < outer && !err; o++)
		for (int64_t m = 0; m < middle && !err; m++) {
			for (int64_t i = 0; i < inner && !err; i++) {
				const int64_t l = e->interleave == YK_BSQ ? m : o,
					      s = e->interleave == YK_BIP ? m : i,
					      b = e->interleave == YK_BSQ ? o : e->interleave == YK_BIL ? m : i;
				const double v = (double)x[(l * e->samples + s) * e->bands + b] * e->scale;
				if (!give(e->type->number, v, row + i * e->type->width))
					err = yk_fail(YOKE_ERANGE, "%s: line %lld, sample %lld, band %lld is %g, which %s does not hold", path,
						      (long long)l, (long long)s, (long long)b, v, e->type->name);
			}
			if (!err && e->big != host_big && e->type->width > 1)
				swap(row, e->type->width, (size_t)inner);
			if (!err)
				err = yk_file_add(w, row, (size_t)(inner * e->type->width));
		}
	free(row);
	return err;
}

static int npy_head(const struct yk_envi *e, struct yk_file_writer *w)
{
	char head[256], text[200];
	int n = snprintf(text, sizeof text, "{'descr': '<f4', 'fortran_order': False, 'shape': (%lld, %lld, %lld), }", (long long)e->lines,
			 (long long)e->samples, (long long)e->bands);
	const int pad = (64 - (10 + n + 1) % 64) % 64;
	const int length = n + pad + 1;
	memcpy(head, "\x93NUMPY\x01\x00", 8);
	head[8] = (char)(length & 255);
	head[9] = (char)(length >> 8);
	snprintf(head + 10, sizeof head - 10, "%s%*s\n", text, pad, "");
	return yk_file_add(w, head, (size_t)(10 + length));
}

static int write_file(const char *path, const struct yk_envi *e, const float *x, bool npy)
{
	struct yk_file_writer w;
	int err = yk_file_begin(&w, path);
	if (err)
		return err;
	if (npy)
		err = npy_head(e, &w);
	if (!err)
		err = write_elements(&w, path, e, x);
	if (err) {
		yk_file_abort(&w);
		return err;
	}
	return yk_file_commit(&w);
}

int yoke_cube_write(const char *path, const struct yoke_cube_info *info, const float *x)
{
	const bool npy = ends(path, ".npy");
	struct yk_envi e = { .lines = info->lines, .samples = info->samples, .bands = info->bands, .interleave = YK_BIP,
			     .big = info->big_endian, .scale = info->scale != 0 ? info->scale : 1, .ignore = info->ignore,
			     .wavelength = (double *)info->wavelength, .type = yk_envi_type_named(npy ? "f32" : info->type) };
	char *text, *data;
	if (!npy && !ends(path, ".hdr"))
		return yk_fail(YOKE_EINVAL, "cube_write: %s: a cube is written as .hdr, with .img beside it, or .npy", path);
	if (!e.type)
		return yk_fail(YOKE_EINVAL, "cube_write: %s: type %s; it is u8 i16 i32 f32 f64 u16 u32 i64 or u64", path,
			       info->type ? info->type : "(none)");
	for (int i = 0; !npy && info->interleave && i < 3; i++)
		if (!strcmp(info->interleave, yk_interleave_names[i]))
			e.interleave = (enum yk_interleave)i;
	if (npy) {
		e.big = false;
		e.scale = 1;
		return write_file(path, &e, x, true);
	}
	if (asprintf(&data, "%.*s.img", (int)strlen(path) - 4, path) < 0)
		return yk_fail(YOKE_ENOMEM, "cube_write: no memory");
	text = yk_envi_text(&e);
	int err = text ? write_file(data, &e, x, false) : yk_fail(YOKE_ENOMEM, "cube_write: no memory");
	if (!err)
		err = yk_file_write(path, text, strlen(text));
	free(text);
	free(data);
	return err;
}
