// SPDX-License-Identifier: Apache-2.0
// Cubes in files: reads blocks of lines as pixels of f32, and writes cubes.
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/endian.h"
#include "base/error.h"
#include "base/file.h"
#include "base/number.h"
#include "base/sized.h"
#include "data/cube.h"
#include "data/elements.h"
#include "data/part.h"

enum { BLOCK = 1 << 18, BANDS_BLOCK = 1 << 22 }; // bytes per read; for BSQ, whose bands are apart,
						 // bytes of a block of lines over all bands

// ---- reading ----

static struct yk_taken taken(const yoke_cube *c, bool packed, int64_t far, int64_t line,
			     int64_t sample)
{
	return (struct yk_taken){ .number = c->envi.type->number,
				  .far = far,
				  .line = line,
				  .sample = sample,
				  .samples = c->envi.samples,
				  .bands = c->bands,
				  .band = c->band,
				  .packed = packed,
				  .scale = c->envi.scale,
				  .ignored = c->envi.ignores ? &c->envi.ignored : NULL,
				  .gain = c->gain,
				  .shift = c->shift };
}

// Bytes between bands of a BSQ block: an odd number of cache lines, so that bands do not compete
// for the same cache sets.
static int64_t slab_of(const yoke_cube *c, int64_t lines)
{
	return ((lines * c->envi.samples * c->envi.type->width + 63) / 64 | 1) * 64;
}

// Reads lines first .. first + lines - 1 into the block; for BSQ only the selected bands.
static int fetch(const yoke_cube *c, int64_t first, int64_t lines, unsigned char *block)
{
	const struct yk_envi *e = &c->envi;
	const uint64_t line = (uint64_t)(e->samples * e->type->width);
	if (e->interleave != YK_BSQ)
		return yk_file_read_at(c->fd, c->data,
				       e->offset + (uint64_t)(first * e->bands) * line, block,
				       (uint64_t)(lines * e->bands) * line);
	int err = 0;
	for (int64_t k = 0; k < c->bands && !err; k++)
		err = yk_file_read_at(c->fd, c->data,
				      e->offset + (uint64_t)(c->band[k] * e->lines + first) * line,
				      block + k * slab_of(c, lines), (uint64_t)lines * line);
	return err;
}

// Reads a whole cube; of a column-major file only the selected bands.
static int read_columns(const yoke_cube *c, float *x, float *weight)
{
	const struct yk_envi *e = &c->envi;
	const int64_t pixels = e->lines * e->samples, bands = c->variable ? e->bands : c->bands;
	const uint64_t slab = (uint64_t)(pixels * e->type->width);
	const struct yk_taken t = taken(c, !c->variable || c->all, pixels, 1, e->lines);
	unsigned char *block = malloc((size_t)bands * slab);
	int err = !block      ? yk_fail(YOKE_ENOMEM, "%s: no memory for %llu bytes", c->path,
					(unsigned long long)bands * slab) :
		  c->variable ? yk_mat_read(c, block) :
				0;
	for (int64_t k = 0; !c->variable && k < bands && !err; k++)
		err = yk_file_read_at(c->fd, c->data, e->offset + (uint64_t)c->band[k] * slab,
				      block + (uint64_t)k * slab, slab);
	if (!err && yk_envi_swapped(e))
		yk_swap_bytes(block, (size_t)e->type->width, (size_t)(bands * pixels));
	if (!err)
		yk_convert_elements(&t, block, 0, e->lines, x, weight);
	free(block);
	return err;
}

int yoke_cube_read(const yoke_cube *c, float *x, float *weight)
{
	int err = yk_require(c, "cube");
	if (!err)
		err = yk_require(x, "room for pixels");
	if (err)
		return err;
	const struct yk_envi *e = &c->envi;
	const bool swapped = yk_envi_swapped(e), bsq = e->interleave == YK_BSQ,
		   bip = e->interleave == YK_BIP;
	for (int64_t i = 0; weight && i < e->lines * e->samples; i++)
		weight[i] = 1;
	if (c->columns)
		return read_columns(c, x, weight);
	// no conversion
	if (bip && e->type->number == 4 && !swapped && e->scale == 1 && !c->gain && !c->shift &&
	    (!weight || !e->ignores) && c->all)
		return yk_file_read_at(c->fd, c->data, e->offset, x, e->bytes);
	const int64_t bands = bsq ? c->bands : e->bands, line = e->samples * bands * e->type->width;
	const int64_t room = bsq ? BANDS_BLOCK : BLOCK,
		      max = line > room ? 1 : room / line < e->lines ? room / line : e->lines;
	const size_t bytes = (size_t)(bsq ? bands * slab_of(c, max) : max * line);
	unsigned char *block = malloc(bytes);
	err = block ? 0 : yk_fail(YOKE_ENOMEM, "%s: no memory for %zu bytes", c->path, bytes);
	for (int64_t first = 0; first < e->lines && !err; first += max) {
		const int64_t lines = first + max < e->lines ? max : e->lines - first;
		const int64_t slab = slab_of(c, lines);
		const struct yk_taken t =
			taken(c, bsq || c->all,
			      bsq ? slab / e->type->width :
			      bip ? 1 :
				    e->samples,
			      bsq ? e->samples : bands * e->samples, bip ? bands : 1);
		err = fetch(c, first, lines, block);
		for (int64_t k = 0; !err && swapped && k < (bsq ? bands : 1); k++)
			yk_swap_bytes(block + k * slab, (size_t)e->type->width,
				      (size_t)(lines * e->samples * (bsq ? 1 : bands)));
		if (!err)
			yk_convert_elements(&t, block, first, lines, x, weight);
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
YK_ELEMENTS(GIVE)

static bool give(int number_of, double v, void *to)
{
	switch (number_of) {
#define GIVEN(id, T, lo, hi) case id: return give_##id(v, to);
		YK_ELEMENTS(GIVEN)
	}
	return false;
}

// Writes lines of x; the first is line `first` of the file.
static int write_elements(struct yk_file_writer *w, const char *path, const struct yk_envi *e,
			  int64_t first, int64_t lines, const float *x)
{
	const bool swapped = yk_envi_swapped(e);
	const int64_t outer = e->interleave == YK_BSQ ? e->bands : lines,
		      middle = e->interleave == YK_BIL ? e->bands :
			       e->interleave == YK_BSQ ? lines :
							 e->samples,
		      inner = e->interleave == YK_BIP ? e->bands : e->samples;
	// lines per write
	const int64_t line = inner * e->type->width, max = line > BLOCK ? 1 : BLOCK / line;
	// no conversion
	if (e->interleave == YK_BIP && e->type->number == 4 && !swapped && e->scale == 1)
		return yk_file_add(w, x, (size_t)(lines * e->samples * e->bands) * sizeof *x);
	unsigned char *block = malloc((size_t)(max * line));
	int err = block ? 0 : yk_fail(YOKE_ENOMEM, "%s: no memory", path);
	int64_t rows = 0;
	for (int64_t o = 0; o < outer && !err; o++)
		for (int64_t m = 0; m < middle && !err; m++) {
			unsigned char *row = block + rows * line;
			for (int64_t i = 0; i < inner && !err; i++) {
				const int64_t l = e->interleave == YK_BSQ ? m : o,
					      s = e->interleave == YK_BIP ? m : i,
					      b = e->interleave == YK_BSQ ? o :
						  e->interleave == YK_BIL ? m :
						  i;
				const double v =
					(double)x[(l * e->samples + s) * e->bands + b] * e->scale;
				if (!give(e->type->number, v, row + i * e->type->width))
					err = yk_fail(
						YOKE_ERANGE,
						"%s: line %lld, sample %lld, band %lld is %g, which %s does not hold",
						path, (long long)(first + l), (long long)s,
						(long long)b, v, e->type->name);
			}
			if (!err && swapped)
				yk_swap_bytes(row, (size_t)e->type->width, (size_t)inner);
			rows++;
			if (!err && (rows == max || (o + 1 == outer && m + 1 == middle))) {
				err = yk_file_add(w, block, (size_t)(rows * line));
				rows = 0;
			}
		}
	free(block);
	return err;
}

static int npy_head(const struct yk_envi *e, struct yk_file_writer *w)
{
	char head[YK_NPY_BYTES];
	const int64_t dims[] = { e->lines, e->samples, e->bands };
	return yk_file_add(w, head, yk_npy_head(head, "<f4", 3, dims));
}

// Fills the header for a new file, or fails if it cannot be expressed.  Interleave "columns"
// becomes bip.
static int describe(const char *path, const struct yoke_cube_info *info, bool npy,
		    struct yk_envi *e)
{
	*e = (struct yk_envi){ .lines = info->lines,
			       .samples = info->samples,
			       .bands = info->bands,
			       .interleave = YK_BIP,
			       .big = info->big_endian,
			       .scale = info->scale != 0 ? info->scale : 1,
			       .ignore = info->ignore,
			       .wavelength = (double *)info->wavelength,
			       .scene = (char *)info->scene,
			       .type = yk_envi_type_named(npy ? "f32" : info->type) };
	snprintf(e->units, sizeof e->units, "%s", info->units ? info->units : "");
	if (e->lines < 1 || e->lines > INT32_MAX || e->samples < 1 || e->samples > INT32_MAX ||
	    e->bands < 1 || e->bands > YK_ENVI_BANDS)
		return yk_fail(
			YOKE_EINVAL,
			"cube_write: %s: %lld x %lld x %lld: must be 1 to %d lines and samples, and 1 to %d bands",
			path, (long long)e->lines, (long long)e->samples, (long long)e->bands,
			INT32_MAX, YK_ENVI_BANDS);
	if (npy) {
		e->big = false;
		e->scale = 1;
		return 0;
	}
	if (!e->type)
		return yk_fail(
			YOKE_EINVAL,
			"cube_write: %s: type %s; it is u8 i16 i32 f32 f64 u16 u32 i64 or u64",
			path, info->type ? info->type : "(none)");
	if (!isfinite(e->scale) || e->scale < 0)
		return yk_fail(YOKE_EINVAL, "cube_write: %s: scale %g: must be above 0", path,
			       e->scale);
	for (int64_t i = 0; e->wavelength && i < e->bands; i++)
		if (!isfinite(e->wavelength[i]))
			return yk_fail(YOKE_EINVAL,
				       "cube_write: %s: the wavelength of band %lld is %g", path,
				       (long long)i, e->wavelength[i]);
	if (!info->interleave || !strcmp(info->interleave, "columns"))
		return 0;
	for (int i = 0; i < 3; i++)
		if (!strcmp(info->interleave, yk_interleave_names[i])) {
			e->interleave = (enum yk_interleave)i;
			return 0;
		}
	return yk_fail(YOKE_EINVAL, "cube_write: %s: interleave %s: must be bsq, bil or bip", path,
		       info->interleave);
}

static int begin(struct yk_cube_writer *w, const char *path, const struct yoke_cube_info *info)
{
	char *data = NULL;
	int err = describe(path, info, w->npy, &w->envi);
	if (err)
		return err;
	if (!(w->path = strdup(path)) ||
	    (!w->npy && asprintf(&data, "%.*s.img", (int)strlen(path) - 4, path) < 0))
		return yk_fail(YOKE_ENOMEM, "cube_write: no memory");
	if (!w->npy && !(w->text = yk_envi_text(&w->envi)))
		err = yk_fail(YOKE_ENOMEM, "cube_write: no memory");
	if (!err)
		err = yk_file_begin(&w->file, w->npy ? path : data);
	free(data);
	return !err && w->npy ? npy_head(&w->envi, &w->file) : err;
}

int yk_cube_begin(struct yk_cube_writer *w, const char *path, const struct yoke_cube_info *info)
{
	struct yoke_cube_info known = { .ignore = NAN };
	*w = (struct yk_cube_writer){ .file = { .fd = -1 }, .npy = yk_ends_with(path, ".npy") };
	if (!w->npy && !yk_ends_with(path, ".hdr"))
		return yk_fail(
			YOKE_EINVAL,
			"cube_write: %s: a cube is written as .hdr, with .img beside it, or .npy",
			path);
	int err = yk_sized_read(&known, sizeof known, info, "cube_write", "yoke_cube_info");
	if (!err)
		err = begin(w, path, &known);
	if (err)
		yk_cube_abort(w);
	return err;
}

int yk_cube_add(struct yk_cube_writer *w, const float *x, int64_t lines)
{
	int err = write_elements(&w->file, w->path, &w->envi, w->lines, lines, x);
	w->lines += lines;
	return err;
}

int yk_cube_commit(struct yk_cube_writer *w)
{
	int err = yk_file_commit(&w->file);
	if (!err && w->text)
		err = yk_file_write(w->path, w->text, strlen(w->text));
	yk_cube_abort(w);
	return err;
}

void yk_cube_abort(struct yk_cube_writer *w)
{
	yk_file_abort(&w->file);
	free(w->path);
	free(w->text);
	w->path = w->text = NULL;
}

int yoke_cube_write(const char *path, const struct yoke_cube_info *info, const float *x)
{
	struct yk_cube_writer w;
	int err = yk_require(path, "path");
	if (!err && !(err = yk_require(x, "list of pixels")))
		err = yk_cube_begin(&w, path, info);
	if (err)
		return err;
	if ((err = yk_cube_add(&w, x, info->lines)) == 0)
		return yk_cube_commit(&w);
	yk_cube_abort(&w);
	return err;
}
