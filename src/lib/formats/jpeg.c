// SPDX-License-Identifier: Apache-2.0
// Decodes JPEG with libjpeg-turbo.
#include "config.h"

#include "formats/image.h"

#ifdef HAVE_JPEG

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

#include "base/error.h"

enum { MAX_SCANS = 100 }; // each costs the time of a full decode, but a few bytes in the file

struct decoder {
	struct jpeg_decompress_struct jpeg;
	struct jpeg_error_mgr error;
	struct jpeg_progress_mgr progress;
	jmp_buf back;
	char why[JMSG_LENGTH_MAX];
};

static void give_up(j_common_ptr j)
{
	struct decoder *d = j->client_data;
	j->err->format_message(j, d->why);
	longjmp(d->back, 1);
}

// Warnings count as damage, except for extra bytes between markers, which many writers produce.
static void on_message(j_common_ptr j, int level)
{
	if (level < 0 && j->err->msg_code != JWRN_EXTRANEOUS_DATA)
		give_up(j);
}

static void on_progress(j_common_ptr j)
{
	struct decoder *d = j->client_data;
	if (d->jpeg.input_scan_number <= MAX_SCANS)
		return;
	snprintf(d->why, sizeof d->why, "it has more than %d scans", MAX_SCANS);
	longjmp(d->back, 1);
}

// The function that longjmp returns to; the image is in the caller's memory.
static int decode(struct decoder *d, struct yk_image *to, const char *path,
		  const unsigned char *data, size_t bytes)
{
	struct jpeg_decompress_struct *j = &d->jpeg;
	jpeg_mem_src(j, data, bytes);
	jpeg_read_header(j, TRUE);
	if (j->jpeg_color_space == JCS_CMYK || j->jpeg_color_space == JCS_YCCK)
		return yk_fail(YOKE_EUNSUPPORTED, "%s: is CMYK; convert it to RGB", path);
	const int e = yk_image_alloc(to, path, j->image_width, j->image_height);
	if (e < 0)
		return e;
	j->out_color_space = JCS_RGB;
	j->mem->max_memory_to_use = (long)YK_IMAGE_PIXELS * 8;
	jpeg_start_decompress(j);
	while (j->output_scanline < j->output_height) {
		JSAMPROW row = to->rgb + (size_t)3 * (size_t)to->width * j->output_scanline;
		jpeg_read_scanlines(j, &row, 1);
	}
	jpeg_finish_decompress(j);
	return 0;
}

int yk_jpeg_decode(struct yk_image *to, const char *path, const unsigned char *data, size_t bytes)
{
	struct decoder *d = calloc(1, sizeof *d);
	int e;
	if (!d)
		return yk_fail(YOKE_ENOMEM, "%s: no memory to decode it", path);
	d->jpeg.err = jpeg_std_error(&d->error);
	d->error.error_exit = give_up;
	d->error.emit_message = on_message;
	d->progress.progress_monitor = on_progress;
	d->jpeg.client_data = d;
	if (setjmp(d->back) == 0) {
		jpeg_create_decompress(&d->jpeg);
		d->jpeg.progress = &d->progress;
		e = decode(d, to, path, data, bytes);
	} else {
		e = yk_fail(YOKE_EFORMAT, "%s: a JPEG that cannot be decoded: %s", path, d->why);
	}
	jpeg_destroy_decompress(&d->jpeg);
	free(d);
	return e;
}

#endif
