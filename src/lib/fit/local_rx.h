// SPDX-License-Identifier: Apache-2.0
// Local RX detector: for each pixel of a scene's lines, the distance to the background in a ring
// around it.
#ifndef YK_FIT_LOCAL_RX_H
#define YK_FIT_LOCAL_RX_H

#include <stdbool.h>
#include <stdint.h>

// A scene whose lines may be padded: pixel (i, j) is number i * stride + j.
struct yk_rx_scene {
	const float *x, *weight; // x [lines,stride,channels]; weight [lines,stride], NULL: all 1
	int64_t lines, samples, stride, channels;
};

struct yk_rx_keys {
	int64_t inner, outer; // widths of the windows, odd
	double eps;
	bool relative;
	int64_t pixels;       // min pixels of positive weight in a ring, 2 or more; 0: channels + 1
};

// Lines or columns from .. to - 1.
struct yk_rx_range {
	int64_t from, to;
};
// The window of `width` around position `at` of an axis of length n: shifted to stay inside, and no
// wider than the axis.
struct yk_rx_range yk_rx_window(int64_t at, int64_t width, int64_t n);
int64_t yk_rx_pixels(const struct yk_rx_keys *, int64_t channels);

// Results for all pixels of a scene.  y = 0 and n = 0 if the pixel's weight is 0, or its ring has
// too few pixels or a total weight of 1 or less.
struct yk_rx_result {
	float *y;        // [lines,stride], or NULL
// Values for the gradient, or NULL: (covariance + e)^-1 (x - mean) and mean,
// [lines,stride,channels]; the ring's weight n and the derivative of y with respect to the trace of
// the covariance (through e), [lines,stride,2].
	double *z, *mean, *facts;
};

// Sets the results of pixel `at` to 0.
void yk_rx_clear(const struct yk_rx_result *, int64_t at, int64_t channels);

struct yk_rx_work;
// NULL: out of memory
struct yk_rx_work *yk_rx_new(const struct yk_rx_scene *, const struct yk_rx_keys *);
void yk_rx_free(struct yk_rx_work *);
// Computes line i.  -1: a covariance is singular; *failed is its sample number.
int yk_rx_line(struct yk_rx_work *, int64_t i, const struct yk_rx_result *, int64_t *failed);

#endif
