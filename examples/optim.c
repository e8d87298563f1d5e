// SPDX-License-Identifier: Apache-2.0
// Uses an optimizer without a model: the caller computes gradients in its own memory. Minimizes
// Rosenbrock's function, (1 - x)^2 + 100 (y - x^2)^2, which is 0 at (1, 1).
#include <stdio.h>
#include <yoke-optim.h>

int main(void)
{
	float p[2] = { -1.2f, 1 }, g[2];
	const int64_t n = 2;
	const char *name = "point";
	yoke_tensor *point = yoke_variable(name, yoke_f32, 1, &n),
		    *slope = yoke_variable("slope", yoke_f32, 1, &n);
	yoke_put(point, p, sizeof p);
	yoke_optim *o =
		yoke_optim_new("adam", "lr=0.02 schedule=cosine warmup=10 steps=2000 clip=10");
	yoke_optim_add(o, 1, &point, &name, NULL);

	for (int t = 0; t <= 2000; t++) {
		const float x = p[0], y = p[1], d = y - x * x;
		if (t % 500 == 0)
			printf("step %4d  f %.3g  at %.4f %.4f\n", t,
			       (double)((1 - x) * (1 - x) + 100 * d * d), (double)x, (double)y);
		g[0] = -2 * (1 - x) - 400 * x * d;
		g[1] = 200 * d;
		yoke_scope *step = yoke_scope_begin("step");
		yoke_put(slope, g, sizeof g);
		yoke_optim_step(o, 1, &slope, NULL);
		yoke_read(point, p, sizeof p);
		if (yoke_scope_end(step) < 0)
			return fprintf(stderr, "%s\n", yoke_error()), 1;
	}
	yoke_optim_free(o);
	return 0;
}
