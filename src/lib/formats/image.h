// SPDX-License-Identifier: Apache-2.0
// Decodes JPEG (libjpeg-turbo) and PNG (libpng) images in memory to RGB.
// Files are untrusted: the header is read first, and no memory beyond the limits is allocated.
#ifndef YK_IMAGE_H
#define YK_IMAGE_H

#include <stdbool.h>
#include <stddef.h>

enum { YK_IMAGE_SIDE = 16384, YK_IMAGE_PIXELS = 1 << 26 }; // max

struct yk_image {
	int width, height;
	unsigned char *rgb; // [height][width][3], which the caller frees
};

// Detects the format by the first bytes.  Grey becomes RGB, 16 bits become 8, transparency is
// dropped, the orientation tag is ignored.  EFORMAT: neither JPEG nor PNG, truncated, damaged;
// ERANGE: exceeds the limits; EUNSUPPORTED: CMYK, or this build lacks the library; ENOMEM.  `path`
// is for messages.
int yk_image_decode(struct yk_image *, const char *path, const unsigned char *data, size_t bytes);

// Writes a PNG file of grey pixels [height][width]; needs libpng (yk_png_writes).
int yk_png_write(const char *path, int width, int height, const unsigned char *grey);
bool yk_png_writes(void);

// ---- jpeg.c, png.c ----

int yk_jpeg_decode(struct yk_image *, const char *path, const unsigned char *data, size_t bytes);
int yk_png_decode(struct yk_image *, const char *path, const unsigned char *data, size_t bytes);
// Allocates rgb for the size in a header and sets width and height.  ERANGE, ENOMEM.
int yk_image_alloc(struct yk_image *, const char *path, unsigned long width, unsigned long height);

#endif
