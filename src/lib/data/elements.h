// SPDX-License-Identifier: Apache-2.0
// Elements of cubes as files have them.
#ifndef YK_DATA_ELEMENTS_H
#define YK_DATA_ELEMENTS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

// X(number of ENVI, C type, least, most)
#define YK_ELEMENTS(X) \
	X(1, uint8_t, 0, UINT8_MAX) X(2, int16_t, INT16_MIN, INT16_MAX) X(3, int32_t, INT32_MIN, INT32_MAX) \
	X(4, float, -HUGE_VAL, HUGE_VAL) X(5, double, -HUGE_VAL, HUGE_VAL) X(12, uint16_t, 0, UINT16_MAX) \
	X(13, uint32_t, 0, UINT32_MAX) X(14, int64_t, -0x1p63, 0x1.fffffffffffffp62) X(15, uint64_t, 0, 0x1.fffffffffffffp63)

// How a block of lines lies: element band * far + line * .line + sample * .sample.
struct yk_taken {
	int number;             // ENVI's, of the type
	int64_t far, line, sample;
	int64_t samples, bands; // bands: that are taken
	const int64_t *band;    // their places, in any order
	bool packed;            // the block has those alone, in that order
	double scale;           // divides
	const void *ignored;    // an element of that type, aligned; NULL: nothing is ignored
	const double *gain, *shift; // [bands], or NULL: what is read is gain * number + shift, in place of the scale
};
// Pixels of so many lines, from line `first` of x [.., samples, bands] on.  weight, unless NULL, becomes 0 where a band is the
// ignored element, or a NaN where that is one.  Either bands, samples or lines are neighbours.
void yk_take_elements(const struct yk_taken *, const void *block, int64_t first, int64_t lines, float *x, float *weight);

#endif
