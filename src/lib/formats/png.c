// SPDX-License-Identifier: Apache-2.0
// Decodes and writes PNG with libpng.
#include "config.h"

#include "formats/image.h"

#ifdef HAVE_PNG

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

#include "base/error.h"
#include "base/file.h"

enum { MAX_CHUNKS = 1000, MAX_CHUNK = 8 << 20 };

struct decoder {
	png_structp png;
	png_infop info;
	const unsigned char *at;
	size_t left;
	unsigned char **row;
	char why[200];
};

static void on_error(png_structp p, png_const_charp why)
{
	struct decoder *d = png_get_error_ptr(p);
	snprintf(d->why, sizeof d->why, "%s", why);
	png_longjmp(p, 1);
}

static void on_warning(png_structp p, png_const_charp why)
{
	(void)p, (void)why;
}

static void on_read(png_structp p, png_bytep to, size_t n)
{
	struct decoder *d = png_get_io_ptr(p);
	if (n > d->left)
		png_error(p, "it is cut");
	memcpy(to, d->at, n);
	d->at += n;
	d->left -= n;
}

// The function that longjmp returns to; the caller owns all memory.
static int decode(struct decoder *d, struct yk_image *to, const char *path)
{
	png_set_user_limits(d->png, YK_IMAGE_SIDE, YK_IMAGE_SIDE);
	png_set_chunk_cache_max(d->png, MAX_CHUNKS);
	png_set_chunk_malloc_max(d->png, MAX_CHUNK);
	png_set_read_fn(d->png, d, on_read);
	png_read_info(d->png, d->info);
	const int e = yk_image_alloc(to, path, png_get_image_width(d->png, d->info),
				     png_get_image_height(d->png, d->info));
	if (e < 0)
		return e;
	png_set_expand(d->png);
	png_set_strip_16(d->png);
	png_set_gray_to_rgb(d->png);
	png_set_strip_alpha(d->png);
	png_set_interlace_handling(d->png);
	png_read_update_info(d->png, d->info);
	if (png_get_rowbytes(d->png, d->info) != 3 * (size_t)to->width)
		png_error(d->png, "its rows are not RGB");
	d->row = malloc(sizeof *d->row * (size_t)to->height);
	if (!d->row)
		return yk_fail(YOKE_ENOMEM, "%s: no memory to decode it", path);
	for (int y = 0; y < to->height; y++)
		d->row[y] = to->rgb + (size_t)3 * (size_t)to->width * (size_t)y;
	png_read_image(d->png, d->row);
	png_read_end(d->png, NULL);
	return 0;
}

int yk_png_decode(struct yk_image *to, const char *path, const unsigned char *data, size_t bytes)
{
	struct decoder *d = calloc(1, sizeof *d);
	int e;
	if (d) {
		d->at = data;
		d->left = bytes;
		d->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, d, on_error, on_warning);
		d->info = d->png ? png_create_info_struct(d->png) : NULL;
	}
	if (!d || !d->info)
		e = yk_fail(YOKE_ENOMEM, "%s: no memory to decode it", path);
	else if (setjmp(png_jmpbuf(d->png)) == 0)
		e = decode(d, to, path);
	else
		e = yk_fail(YOKE_EFORMAT, "%s: a PNG that cannot be decoded: %s", path, d->why);
	if (d && d->png)
		png_destroy_read_struct(&d->png, &d->info, NULL);
	if (d)
		free(d->row);
	free(d);
	return e;
}

bool yk_png_writes(void)
{
	return true;
}

int yk_png_write(const char *path, int width, int height, const unsigned char *grey)
{
	png_image image = { .version = PNG_IMAGE_VERSION,
			    .width = (png_uint_32)width,
			    .height = (png_uint_32)height,
			    .format = PNG_FORMAT_GRAY };
	png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(image);
	void *to = malloc(bytes);
	int e = !to ? yk_fail(YOKE_ENOMEM, "%s: no memory", path) :
		png_image_write_to_memory(&image, to, &bytes, 0, grey, width, NULL) ?
		      yk_file_write(path, to, bytes) :
		      yk_fail(YOKE_EIO, "%s: libpng: %s", path, image.message);
	png_image_free(&image);
	free(to);
	return e;
}

#else

#include "base/error.h"

bool yk_png_writes(void)
{
	return false;
}

int yk_png_write(const char *path, int width, int height, const unsigned char *grey)
{
	(void)width, (void)height, (void)grey;
	return yk_fail(YOKE_EUNSUPPORTED, "%s: this yoke was built without libpng", path);
}

#endif
