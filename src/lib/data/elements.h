// SPDX-License-Identifier: Apache-2.0
// Conversion of a cube file's elements to pixels of f32.
#ifndef YK_DATA_ELEMENTS_H
#define YK_DATA_ELEMENTS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

// X(ENVI type number, C type, min, max)
#define YK_ELEMENTS(X) \
	X(1, uint8_t, 0, UINT8_MAX) X(2, int16_t, INT16_MIN, INT16_MAX) \
	X(3, int32_t, INT32_MIN, INT32_MAX) X(4, float, -HUGE_VAL, HUGE_VAL) \
	X(5, double, -HUGE_VAL, HUGE_VAL) X(12, uint16_t, 0, UINT16_MAX) \
	X(13, uint32_t, 0, UINT32_MAX) X(14, int64_t, -0x1p63, 0x1.fffffffffffffp62) \
	X(15, uint64_t, 0, 0x1.fffffffffffffp63)

// Layout of a block of lines: element index is band * far + line * .line + sample * .sample.
struct yk_taken {
	int number;             // ENVI type number
	int64_t far, line, sample;
	int64_t samples, bands; // bands: the number that is read
	const int64_t *band;    // [bands]: their indices, in any order
	bool packed;            // the block holds only these bands, in this order
	double scale;           // divisor of the elements
	const void *ignored;    // an element of that type, aligned, that marks missing data; NULL:
				// none
	const double *gain, *shift; // [bands], or NULL; the result is gain * element + shift,
				    // without the scale
};
// Converts `lines` lines, starting at line `first`, to x [.., samples, bands].  weight, unless
// NULL, is set to 0 where a band is the ignored element, or NaN if the ignored element is NaN.  One
// of bands, samples or lines must be contiguous.
void yk_convert_elements(const struct yk_taken *, const void *block, int64_t first, int64_t lines,
			 float *x, float *weight);

#endif
