// SPDX-License-Identifier: Apache-2.0
// Creates tensors of any floating-point dtype from arrays of doubles, and reads them back as
// doubles.
#ifndef YK_TEST_DTYPES_H
#define YK_TEST_DTYPES_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "yoke.h"

// The dtype's epsilon: the relative distance of neighbours.
static inline double ulp(int dtype)
{
	return 2 * yk_num_unit(dtype);
}

// x rounded to the nearest number of the dtype, ties to even, with subnormals.
static inline double rounded(int dtype, double x)
{
	return yk_num_round(x, dtype);
}

static inline double number_of(int dtype, uint64_t bits)
{
	return yk_num_load(&bits, dtype).f;
}

// n numbers, rounded, as elements of the dtype; the caller frees them.
static inline void *encode(int dtype, const double *x, int64_t n)
{
	size_t size = yoke_dtype_size(dtype);
	char *to = malloc((size_t)n * size + 1);
	for (int64_t i = 0; i < n; i++)
		yk_num_store(to + (size_t)i * size, (struct yk_num){ .f = rounded(dtype, x[i]) },
			     dtype);
	return to;
}
// Makes a value, or a new version of a variable, from doubles.
static inline yoke_tensor *from(int dtype, int rank, const int64_t *dims, const double *x)
{
	int64_t n = 1;
	for (int i = 0; i < rank; i++)
		n *= dims[i];
	void *data = encode(dtype, x, n);
	yoke_tensor *t = yoke_from(dtype, rank, dims, data);
	free(data);
	return t;
}

static inline int put(yoke_tensor *t, const double *x)
{
	void *data = encode(yoke_dtype(t), x, yoke_count(t));
	int err = yoke_put(t, data, yoke_bytes(t));
	free(data);
	return err;
}

// Returns its elements, NaN where the read failed.
static inline int get(yoke_tensor *t, double *to)
{
	if (!t)
		return yoke_error_code();
	size_t size = yoke_dtype_size(yoke_dtype(t)), n = (size_t)yoke_count(t);
	char *data = malloc(n * size + 1);
	memset(data, 0xff, n * size);
	int err = yoke_read(t, data, n * size);
	for (size_t i = 0; i < n; i++) {
		uint64_t bits = 0;
		memcpy(&bits, data + i * size, size);
		to[i] = err ? NAN : number_of(yoke_dtype(t), bits);
	}
	free(data);
	return err;
}

#endif
