// SPDX-License-Identifier: Apache-2.0
// An MLP that learns exclusive or.
#include <stdio.h>
#include <yoke.h>

int main(void)
{
	const float in[] = { 0, 0,  0, 1,  1, 0,  1, 1 }, out[] = { 0, 1, 1, 0 };
	yoke_tensor *x = yoke_from(yoke_f32, 2, (int64_t[]){ 4, 2 }, in);
	yoke_tensor *y = yoke_from(yoke_f32, 2, (int64_t[]){ 4, 1 }, out), *g[4], *p[4] = {
		yoke_variable("w1", yoke_f32, 2, (int64_t[]){ 8, 2 }),
		yoke_variable("b1", yoke_f32, 1, (int64_t[]){ 8 }),
		yoke_variable("w2", yoke_f32, 2, (int64_t[]){ 1, 8 }),
		yoke_variable("b2", yoke_f32, 1, (int64_t[]){ 1 }) };
	yoke_assign(p[0], yoke_normal(yoke_f32, 2, (int64_t[]){ 8, 2 }));
	yoke_assign(p[2], yoke_normal(yoke_f32, 2, (int64_t[]){ 1, 8 }));

	float loss = 1;
	for (int t = 0; t <= 1000; t++) {
		yoke_scope *step = yoke_scope_begin("step");
		yoke_tensor *h = yoke_tanh(yoke_linear(x, p[0], p[1]));
		yoke_tensor *error = yoke_mse(yoke_linear(h, p[2], p[3]), y);
		yoke_grad(error, 4, p, g);
		for (int i = 0; i < 4; i++)
			yoke_assign(p[i], yoke_sub(p[i], yoke_mul(g[i], yoke_const(0.2))));
		yoke_read(error, &loss, sizeof loss); // runs forward, backward, update: one plan
		if (yoke_scope_end(step) < 0)
			return fprintf(stderr, "%s\n", yoke_error()), 1;
		if (t % 200 == 0)
			printf("step %4d  loss %.6f\n", t, loss);
	}
	return loss > 1e-3f;
}
