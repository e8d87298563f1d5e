// SPDX-License-Identifier: Apache-2.0
// Resizing: first along rows, then along columns.
#include "config.h"

#include "data/resize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

// Of one axis: pixel i of what comes out is the sum of weight[i * room + k] times pixel first[i] + k, k < count[i].
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

// Row y of the image, each channel a row of its own: [3][n].
static void along_row(const struct yk_image *im, int y, const struct taps *t, int n, bool mirror, float *to)
{
	const unsigned char *row = im->rgb + (size_t)3 * (size_t)im->width * (size_t)y;
	for (int i = 0; i < n; i++) {
		const float *w = t->weight + (size_t)i * (size_t)t->room;
		const unsigned char *p = row + 3 * t->first[i];
		float r = 0, g = 0, b = 0;
		for (int k = 0; k < t->count[i]; k++, p += 3) {
			r += w[k] * (float)p[0];
			g += w[k] * (float)p[1];
			b += w[k] * (float)p[2];
		}
		const int at = mirror ? n - 1 - i : i;
		to[at] = r;
		to[n + at] = g;
		to[2 * n + at] = b;
	}
}

// Row i of what comes out, of rows that begin with row `first` of the image.
static void along_columns(const float *rows, int first, const struct taps *t, int i, const struct yk_resize *r, float *to)
{
	const int n = r->to_width;
	for (int c = 0; c < 3; c++) {
		float *out = to + ((size_t)c * (size_t)r->to_height + (size_t)i) * (size_t)n;
		memset(out, 0, sizeof *out * (size_t)n);
		for (int k = 0; k < t->count[i]; k++) {
			const float w = t->weight[(size_t)i * (size_t)t->room + (size_t)k];
			const float *row = rows + ((size_t)(t->first[i] + k - first) * 3 + (size_t)c) * (size_t)n;
			for (int x = 0; x < n; x++)
				out[x] += w * row[x];
		}
		for (int x = 0; x < n; x++)
			out[x] = r->scale[c] * out[x] + r->shift[c];
	}
}

int yk_resize(const struct yk_image *im, const struct yk_resize *r, float *to)
{
	struct taps x = { 0 }, y = { 0 };
	float *rows = NULL;
	bool good = taps_make(&x, im->width, r->left, r->width, r->to_width) &&
		    taps_make(&y, im->height, r->top, r->height, r->to_height);
	if (good) {
		const int first = y.first[0], end = y.first[r->to_height - 1] + y.count[r->to_height - 1];
		rows = malloc(sizeof *rows * 3 * (size_t)r->to_width * (size_t)(end - first));
		good = rows != NULL;
		for (int k = first; k < end && good; k++)
			along_row(im, k, &x, r->to_width, r->mirror, rows + (size_t)3 * (size_t)r->to_width * (size_t)(k - first));
		for (int i = 0; i < r->to_height && good; i++)
			along_columns(rows, first, &y, i, r, to);
	}
	free(rows);
	taps_free(&x);
	taps_free(&y);
	return good ? 0 : yk_fail(YOKE_ENOMEM, "no memory to resize an image to %d x %d", r->to_width, r->to_height);
}
