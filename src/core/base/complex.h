// SPDX-License-Identifier: Apache-2.0
// <complex.h> plus the macros CMPLX, which glibc does not define for clang.
#ifndef YK_COMPLEX_H
#define YK_COMPLEX_H

#include <complex.h>

#ifndef CMPLX
#define CMPLX(re, im) __builtin_complex((double)(re), (double)(im))
#define CMPLXF(re, im) __builtin_complex((float)(re), (float)(im))
#define CMPLXL(re, im) __builtin_complex((long double)(re), (long double)(im))
#endif

#endif
