// SPDX-License-Identifier: Apache-2.0
// A network of two layers that learns exclusive or. This is the example of README.md, word for
// word.
#include <stdio.h>
#include <yoke.h>

int main(void)
{
	const float in[] = { 0, 0, 0, 1, 1, 0, 1, 1 }, out[] = { 0, 1, 1, 0 };
	yoke_tensor *x = yoke_from(yoke_f32, 2, (int64_t[]){ 4, 2 }, in);
	yoke_tensor *y = yoke_from(yoke_f32, 2, (int64_t[]){ 4, 1 }, out);
	yoke_tensor *w = yoke_variable("w", yoke_f32, 2, (int64_t[]){ 8, 2 });
	yoke_tensor *v = yoke_variable("v", yoke_f32, 2, (int64_t[]){ 1, 8 });
	yoke_tensor *p[] = { w, v }, *g[2];
	yoke_assign(w, yoke_normal(yoke_f32, 2, (int64_t[]){ 8, 2 }));
	yoke_assign(v, yoke_normal(yoke_f32, 2, (int64_t[]){ 1, 8 }));

	for (int t = 0; t <= 100; t++) {
		float loss;
		yoke_scope *step = yoke_scope_begin("step");
		yoke_tensor *h = yoke_tanh(yoke_linear(x, w, YOKE_NONE));
		yoke_tensor *e = yoke_mse(yoke_linear(h, v, YOKE_NONE), y);
		yoke_grad(e, 2, p, g);
		for (int i = 0; i < 2; i++)
			yoke_assign(p[i], yoke_sub(p[i], yoke_mul(g[i], yoke_const(.2))));
		yoke_read(e, &loss, sizeof loss); // forward, backward, update: one plan
		if (yoke_scope_end(step) < 0)
			return fprintf(stderr, "%s\n", yoke_error()), 1;
		if (t % 20 == 0)
			printf("step %3d  loss %.6f\n", t, loss);
	}
	return 0;
}
