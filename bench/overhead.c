// SPDX-License-Identifier: Apache-2.0
// Measures the core's overhead per op: recording, keying and launching a planned step on a
// backend with empty kernels (the fault backend with fault.null=1). Prints median and spread over
// 101 steps in nanoseconds per recorded op, after 5 warm-up steps.
//
//	YOKE_PLUGIN_PATH=.../tests/fault/.libs YOKE_BACKEND=fault YOKE_FAULT_NULL=1 bench/overhead

#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "rounds.h"
#include "yoke.h"

enum { LAYERS = 100, STEPS = 101, WARM = 5 };

// A multilayer perceptron's forward pass: 5 ops a layer.
static int step(yoke_tensor *x, yoke_tensor *const *w, yoke_tensor *const *b, double *at)
{
	at[0] = yk_seconds() * 1e9;
	yoke_scope *s = yoke_scope_begin("step");
	yoke_tensor *h = x;
	for (int i = 0; i < LAYERS; i++) {
		h = yoke_add(yoke_matmul(h, w[i], 0), b[i]);
		h = yoke_mul(yoke_tanh(h), yoke_sigmoid(h));
	}
	at[1] = yk_seconds() * 1e9;
	yoke_eval(1, &h);
	at[2] = yk_seconds() * 1e9;
	int err = yoke_scope_end(s);
	at[3] = yk_seconds() * 1e9;
	return err;
}

int main(void)
{
	static double total[STEPS], part[3][STEPS];
	static yoke_tensor *w[LAYERS], *b[LAYERS];
	int64_t square[2] = { 8, 8 }, row[1] = { 8 };
	// kernels that compute nothing would fail the self-test
	if (yoke_setting_set("selftest", "0") < 0) {
		fprintf(stderr, "%s\n", yoke_error());
		return 1;
	}
	yoke_tensor *x = yoke_variable("x", yoke_f32, 2, square);
	for (int i = 0; i < LAYERS; i++) {
		w[i] = yoke_variable("w", yoke_f32, 2, square);
		b[i] = yoke_variable("b", yoke_f32, 1, row);
	}
	const double ops = 5.0 * LAYERS;
	for (int t = -WARM; t < STEPS; t++) {
		double at[4];
		if (step(x, w, b, at) < 0) {
			fprintf(stderr, "%s\n", yoke_error());
			return 1;
		}
		if (t < 0)
			continue;
		total[t] = (at[3] - at[0]) / ops;
		for (int k = 0; k < 3; k++)
			part[k][t] = (at[k + 1] - at[k]) / ops;
	}
	qsort(total, STEPS, sizeof *total, by_value);
	for (int k = 0; k < 3; k++)
		qsort(part[k], STEPS, sizeof *part[k], by_value);
	struct yoke_stats s = { .size = sizeof s };
	yoke_stats(&s);
	printf("%.0f ops a step, %.0f launches, %llu plans made\n", ops,
	       (double)s.launches / (STEPS + WARM), (unsigned long long)s.plan_misses);
	printf("ns an op: median %.0f (10 %% %.0f, 90 %% %.0f): record %.0f, key and launch %.0f, close %.0f\n",
	       total[STEPS / 2], total[STEPS / 10], total[STEPS * 9 / 10], part[0][STEPS / 2],
	       part[1][STEPS / 2], part[2][STEPS / 2]);
	return 0;
}
