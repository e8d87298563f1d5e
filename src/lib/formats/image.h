// SPDX-License-Identifier: Apache-2.0
// Images: JPEG (libjpeg-turbo) and PNG (libpng) files in memory, decoded to rows of RGB.
// A file is taken as hostile: its header is read first, and no memory is taken for more than the limits.
#ifndef YK_IMAGE_H
#define YK_IMAGE_H

#include <stdbool.h>
#include <stddef.h>

enum { YK_IMAGE_SIDE = 16384, YK_IMAGE_PIXELS = 1 << 26 }; // at most

struct yk_image {
	int width, height;
	unsigned char *rgb; // [height][width][3], for free()
};

// By its first bytes.  Grey becomes RGB, 16 bits become 8, transparency is dropped, orientation is as stored.
// EFORMAT: neither of both, cut, damaged; ERANGE: larger than the limits; EUNSUPPORTED: CMYK, or no library for it in
// this build; ENOMEM.  `path` is for messages.
int yk_image_decode(struct yk_image *, const char *path, const unsigned char *data, size_t bytes);

// A PNG file of grey pixels [height][width], where this build has libpng (yk_png_writes).
int yk_png_write(const char *path, int width, int height, const unsigned char *grey);
bool yk_png_writes(void);

// ---- jpeg.c, png.c ----

int yk_jpeg_decode(struct yk_image *, const char *path, const unsigned char *data, size_t bytes);
int yk_png_decode(struct yk_image *, const char *path, const unsigned char *data, size_t bytes);
// Memory for what a header says: width, height, rgb.  ERANGE, ENOMEM.
int yk_image_room(struct yk_image *, const char *path, unsigned long width, unsigned long height);

#endif
