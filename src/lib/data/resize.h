// SPDX-License-Identifier: Apache-2.0
// Resamples a rectangle of an image to another size: bilinear, antialiased.
#ifndef YK_DATA_RESIZE_H
#define YK_DATA_RESIZE_H

#include <stdbool.h>

#include "formats/image.h"

struct yk_resize {
	double left, top, width, height; // the rectangle, in pixels, inside the image
	int to_width, to_height;
	bool mirror;                     // flip horizontally
	float scale[3], shift[3];        // per channel: output is scale * (0 .. 255) + shift
};

// to: [3][to_height][to_width]. Each output pixel is a weighted mean of the image's pixels around
// its position. Along each axis the weights form a triangle whose half width is one output pixel,
// or one image pixel if that is wider. Weights are computed in double precision, sums in single.
// ENOMEM.
int yk_resize(const struct yk_image *, const struct yk_resize *, float *to);

#endif
