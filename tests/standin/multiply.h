// SPDX-License-Identifier: Apache-2.0
// Products of the stand-ins for libraries of such: matrices that lie by columns.
#ifndef STANDIN_MULTIPLY_H
#define STANDIN_MULTIPLY_H

#include "vendor.h"

#define TYPE TWIN(cudaDataType_t, hipDataType)

struct desc {
	TYPE scale;
	int transpose[2], epilogue;
	const void *bias;
};

struct layout {
	TYPE type;
	uint64_t rows, cols;
	int64_t ld, stride;
	int32_t batch;
};

struct product {
	struct desc desc;
	struct layout a, b, c, d;
	double alpha, beta;
	const void *a_at, *b_at, *c_at;
	void *d_at;
};

double standin_number_at(const void *at, TYPE, int64_t i);
// Do the matrices' shapes go together?
bool standin_fits(const struct product *);
enum standin_multiplied { MULTIPLIED, NO_DRIVER, BAD_PRODUCT, NOT_ENQUEUED };
// In a stream of the driver's stand-in, which is there already; p is freed by free().
enum standin_multiplied standin_multiply(struct product *p, void *stream);

#endif
