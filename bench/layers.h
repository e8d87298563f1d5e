// SPDX-License-Identifier: Apache-2.0
// The training step that bench/launches and bench/native_launches measure: layers of softmax,
// product, bias and tanh.
#ifndef BENCH_LAYERS_H
#define BENCH_LAYERS_H

#include "yoke.h"

enum { LAYERS = 40 };

struct layers {
	yoke_tensor *x, *w[LAYERS], *b[LAYERS];
};

static inline int layers_fill(yoke_tensor *v, int rank, const int64_t *dims)
{
	return yoke_assign(v, yoke_uniform(yoke_f32, rank, dims));
}

// Makes layers of n x n matrices with random elements.
static inline int layers_make(struct layers *l, int64_t n)
{
	const int64_t square[2] = { n, n };
	yoke_scope *s = yoke_scope_begin("values");

	l->x = yoke_keep(yoke_variable("x", yoke_f32, 2, square));
	int err = layers_fill(l->x, 2, square);
	for (int i = 0; i < LAYERS && !err; i++) {
		l->w[i] = yoke_keep(yoke_variable("w", yoke_f32, 2, square));
		l->b[i] = yoke_keep(yoke_variable("b", yoke_f32, 1, square));
		if (!(err = layers_fill(l->w[i], 2, square)))
			err = layers_fill(l->b[i], 1, square);
	}
	err = err ? err : yoke_eval(0, NULL);
	int closed = yoke_scope_end(s);
	return err ? err : closed;
}

static inline void layers_free(const struct layers *l)
{
	for (int i = 0; i < LAYERS; i++) {
		yoke_free(l->w[i]);
		yoke_free(l->b[i]);
	}
	yoke_free(l->x);
}

// Records and launches a step; wait: also waits for it.
static inline int layers_step(const struct layers *l, int wait)
{
	yoke_scope *s = yoke_scope_begin("step");
	yoke_tensor *h = l->x;

	for (int i = 0; i < LAYERS; i++)
		h = yoke_tanh(yoke_add(yoke_matmul(yoke_softmax(h, -1), l->w[i], 0), l->b[i]));
	int err = yoke_eval(1, &h);
	if (!err && wait)
		err = yoke_sync();
	int closed = yoke_scope_end(s);
	return err ? err : closed;
}
#endif
