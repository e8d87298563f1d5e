// SPDX-License-Identifier: Apache-2.0
// The suite `launches` of `yoke bench`: a planned step of layers so small that its time is the
// host's launch overhead. With YOKE_REPLAY=0 kernels are launched one by one, otherwise as a
// device graph where the driver supports graphs.
#include "config.h"

#include <stdlib.h>

#include "base/error.h"
#include "tool/bench.h"

enum { LAYERS = 40 };

struct layers {
	yoke_tensor *x, *w[LAYERS], *b[LAYERS];
};

static yoke_tensor *variable(int rank, const int64_t *dims)
{
	yoke_tensor *v = yoke_variable("x", yoke_f32, rank, dims);

	if (v)
		yoke_assign(v, yoke_uniform(yoke_f32, rank, dims));
	return v;
}

int yk_bench_launches_make(struct yk_bench_case *c)
{
	const int64_t square[2] = { c->size[0], c->size[0] };
	struct layers *l = calloc(1, sizeof *l);
	struct yoke_stats before = { .size = sizeof before }, after = { .size = sizeof after };

	if (!l)
		return yk_fail(YOKE_ENOMEM, "out of memory for a benchmark");
	c->state = l;
	yoke_scope *s = yoke_scope_begin("values");
	l->x = variable(2, square);
	for (int i = 0; i < LAYERS; i++) {
		l->w[i] = variable(2, square);
		l->b[i] = variable(1, square);
	}
	int e = yoke_eval(0, NULL);
	int f = yoke_scope_end(s);
	e = e < 0 ? e : f;
	// the first run launches the kernels one by one
	if (e == 0)
		e = yoke_stats(&before);
	if (e == 0)
		e = yk_bench_launches_run(c);
	if (e == 0)
		e = yoke_stats(&after);
	c->launches = after.launches - before.launches;
	return e;
}

// Softmax, product, bias and tanh, 40 times: recorded, planned, launched and synchronized.
int yk_bench_launches_run(struct yk_bench_case *c)
{
	const struct layers *l = c->state;
	yoke_scope *s = yoke_scope_begin("step");
	yoke_tensor *h = l->x;

	for (int i = 0; i < LAYERS; i++)
		h = yoke_tanh(yoke_add(yoke_matmul(yoke_softmax(h, -1), l->w[i], 0), l->b[i]));
	int e = h ? yoke_eval(1, &h) : yoke_error_code();
	if (e == 0)
		e = yoke_sync();
	int f = yoke_scope_end(s);
	return e < 0 ? e : f;
}

void yk_bench_launches_drop(struct yk_bench_case *c)
{
	struct layers *l = c->state;

	if (!l)
		return;
	for (int i = 0; i < LAYERS; i++) {
		yoke_free(l->w[i]);
		yoke_free(l->b[i]);
	}
	yoke_free(l->x);
	free(l);
	c->state = NULL;
}
