// SPDX-License-Identifier: Apache-2.0
// Column-major matrix products for the fake vendor libraries.
#ifndef FAKE_MULTIPLY_H
#define FAKE_MULTIPLY_H

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

double fake_number_at(const void *at, TYPE, int64_t i);
// Are the matrices' shapes compatible?
bool fake_fits(const struct product *);
enum fake_multiplied { MULTIPLIED, NO_DRIVER, BAD_PRODUCT, NOT_ENQUEUED };
// Enqueues in a stream of the fake driver, which must be loaded; p is freed by free().
enum fake_multiplied fake_multiply(struct product *p, void *stream);

#endif
