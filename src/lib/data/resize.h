// SPDX-License-Identifier: Apache-2.0
// A part of an image at another size: bilinear, antialiased.
#ifndef YK_DATA_RESIZE_H
#define YK_DATA_RESIZE_H

#include <stdbool.h>

#include "formats/image.h"

struct yk_resize {
	double left, top, width, height; // of the part, in pixels of the image, inside it
	int to_width, to_height;
	bool mirror;                     // left and right
	float scale[3], shift[3];        // of each channel: what comes out is scale * (0 .. 255) + shift
};

// to: [3][to_height][to_width].  Each pixel of `to` is a mean of those of the image near its place, weighted by a
// triangle along each axis, which is as wide to either side as a pixel of `to`, or of the image if that is wider.
// Weights are computed in double precision, sums in single.  ENOMEM.
int yk_resize(const struct yk_image *, const struct yk_resize *, float *to);

#endif
