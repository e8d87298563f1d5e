// SPDX-License-Identifier: Apache-2.0
// Resizes images in two passes: vertically first, which leaves only the output's rows, then
// horizontally.
#include "config.h"

#include "data/resize.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

typedef float v4 __attribute__((vector_size(16)));
typedef int32_t i4 __attribute__((vector_size(16)));

// Filter of one axis: output pixel i is the sum of weight[i * room + k] times pixel first[i] + k, k
// < count[i].
struct taps {
	int *first, *count;
	float *weight;
	int room;
};

static void taps_free(struct taps *t)
{
	free(t->first);
	free(t->count);
	free(t->weight);
}

static bool taps_make(struct taps *t, int pixels, double begin, double length, int n)
{
	const double step = length / n, wide = step > 1 ? step : 1;
	t->room = (int)ceil(wide) * 2 + 1;
	t->first = malloc(sizeof *t->first * (size_t)n);
	t->count = malloc(sizeof *t->count * (size_t)n);
	t->weight = calloc((size_t)n * (size_t)t->room, sizeof *t->weight);
	double *w = malloc(sizeof *w * (size_t)t->room);
	const bool good = t->first && t->count && t->weight && w;
	for (int i = 0; i < n && good; i++) {
		const double center = begin + (i + 0.5) * step;
		int first = (int)floor(center - wide + 0.5), end = (int)floor(center + wide + 0.5);
		first = first < 0 ? 0 : first;
		end = end > pixels ? pixels : end;
		end = end - first > t->room ? first + t->room : end;
		double sum = 0;
		for (int k = 0; k < end - first; k++) {
			const double far = fabs((first + k + 0.5 - center) / wide);
			sum += w[k] = far < 1 ? 1 - far : 0;
		}
		t->first[i] = first;
		t->count[i] = end - first;
		for (int k = 0; k < end - first; k++)
			t->weight[i * t->room + k] = (float)(w[k] / sum);
	}
	free(w);
	return good;
}

// Computes output row i at the image's width: [width][3].  Processes four bytes at a time, the last
// ones singly.
static void along_columns(const struct yk_image *im, const struct taps *t, int i, float *to)
{
	const size_t n = (size_t)3 * (size_t)im->width;
	const unsigned char *first = im->rgb + n * (size_t)t->first[i];
	const float *w = t->weight + (size_t)i * (size_t)t->room;
	size_t x = 0;
	for (; x + 4 <= n; x += 4) {
		v4 sum = { 0 };
		for (int k = 0; k < t->count[i]; k++) {
			uint32_t b; // bytes are masked, not shifted, and the last one takes the
				    // third's position: values are scaled by powers of two
			memcpy(&b, first + n * (size_t)k + x, sizeof b);
			const i4 at = { (int32_t)b, (int32_t)b, (int32_t)b, (int32_t)(b >> 8) };
			sum += w[k] * __builtin_convertvector(
					      at & (i4){ 0xff, 0xff00, 0xff0000, 0xff0000 }, v4);
		}
		sum *= (v4){ 1, 0x1p-8f, 0x1p-16f, 0x1p-16f };
		memcpy(to + x, &sum, sizeof sum);
	}
	for (; x < n; x++) {
		to[x] = 0;
		for (int k = 0; k < t->count[i]; k++)
			to[x] += w[k] * (float)first[n * (size_t)k + x];
	}
}

// Resamples that row to the output width and writes each channel to its plane.  Reads one float
// past the row and ignores it.
static void along_row(const float *row, const struct taps *t, const struct yk_resize *r, int i,
		      float *to)
{
	const size_t plane = (size_t)r->to_height * (size_t)r->to_width;
	to += (size_t)i * (size_t)r->to_width;
	for (int x = 0; x < r->to_width; x++) {
		const float *w = t->weight + (size_t)x * (size_t)t->room,
			    *p = row + 3 * t->first[x];
		const int at = r->mirror ? r->to_width - 1 - x : x;
		v4 sum = { 0 };
		for (int k = 0; k < t->count[x]; k++, p += 3) {
			v4 pixel;
			memcpy(&pixel, p, sizeof pixel);
			sum += w[k] * pixel;
		}
		for (int c = 0; c < 3; c++)
			to[(size_t)c * plane + (size_t)at] = r->scale[c] * sum[c] + r->shift[c];
	}
}

int yk_resize(const struct yk_image *im, const struct yk_resize *r, float *to)
{
	struct taps x = { 0 }, y = { 0 };
	float *row = calloc((size_t)3 * (size_t)im->width + 1, sizeof *row);
	const bool good = row && taps_make(&x, im->width, r->left, r->width, r->to_width) &&
			  taps_make(&y, im->height, r->top, r->height, r->to_height);
	for (int i = 0; i < r->to_height && good; i++) {
		along_columns(im, &y, i, row);
		along_row(row, &x, r, i, to);
	}
	free(row);
	taps_free(&x);
	taps_free(&y);
	return good ? 0 :
		      yk_fail(YOKE_ENOMEM, "no memory to resize an image to %d x %d", r->to_width,
			      r->to_height);
}
