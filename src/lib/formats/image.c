// SPDX-License-Identifier: Apache-2.0
// Detects the format of an image by its first bytes and allocates its pixels.
#include "config.h"

#include "formats/image.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/kind.h"

int yk_image_alloc(struct yk_image *to, const char *path, unsigned long width, unsigned long height)
{
	if (width < 1 || height < 1 || width > YK_IMAGE_SIDE || height > YK_IMAGE_SIDE ||
	    width * height > YK_IMAGE_PIXELS)
		return yk_fail(YOKE_ERANGE,
			       "%s: is %lu x %lu; sides may have 1 to %d pixels, and an image %d",
			       path, width, height, YK_IMAGE_SIDE, YK_IMAGE_PIXELS);
	to->rgb = malloc(3 * width * height);
	if (!to->rgb)
		return yk_fail(YOKE_ENOMEM, "%s: no memory for %lu x %lu pixels", path, width,
			       height);
	to->width = (int)width;
	to->height = (int)height;
	return 0;
}

#ifndef HAVE_JPEG
int yk_jpeg_decode(struct yk_image *to, const char *path, const unsigned char *data, size_t bytes)
{
	(void)to, (void)data, (void)bytes;
	return yk_fail(YOKE_EUNSUPPORTED, "%s: is JPEG, and yoke was built without libjpeg", path);
}
#endif

#ifndef HAVE_PNG
int yk_png_decode(struct yk_image *to, const char *path, const unsigned char *data, size_t bytes)
{
	(void)to, (void)data, (void)bytes;
	return yk_fail(YOKE_EUNSUPPORTED, "%s: is PNG, and yoke was built without libpng", path);
}
#endif

int yk_image_decode(struct yk_image *to, const char *path, const unsigned char *data, size_t bytes)
{
	struct yk_image x = { 0 };
	int e;
	if (bytes >= 3 && !memcmp(data, "\xff\xd8\xff", 3))
		e = yk_jpeg_decode(&x, path, data, bytes);
	else if (bytes >= 8 && !memcmp(data, "\x89PNG\r\n\x1a\n", 8))
		e = yk_png_decode(&x, path, data, bytes);
	else
		e = yk_file_refused(path, data, bytes, "a JPEG or PNG image",
				    "it begins as neither");
	if (e < 0)
		free(x.rgb);
	else
		*to = x;
	return e;
}
