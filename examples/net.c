// SPDX-License-Identifier: Apache-2.0
// A custom convolutional network: data, training, a model file, and its accuracy on new images.
#include <stdio.h>
#include <yoke-data.h>
#include <yoke-nn.h>
#include <yoke-optim.h>

enum { SIDE = 12, BATCH = 64, STEPS = 100, TESTS = 4 };

// Images of noise with a line across (class 0), down (1) or along a diagonal (2, 3).
static int draw(void *arg, int64_t n, struct yoke_item *const *s)
{
	for (int64_t i = 0; i < n; i++) {
		const int kind = (int)(s[i]->number % 4);
		const int at = (int)(SIDE * yoke_item_uniform(s[i], 0));
		float *image = s[i]->to[0];
		*(int32_t *)s[i]->to[1] = kind;
		for (int k = 0; k < SIDE * SIDE; k++)
			image[k] = (float)(2 * yoke_item_uniform(s[i], 1 + (uint32_t)k) - 1);
		for (int k = 0; k < SIDE; k++) {
			const int column[] = { k, at, (k + at) % SIDE, (at + SIDE - k) % SIDE };
			image[(kind ? k : at) * SIDE + column[kind]] += 1.5f;
		}
	}
	return arg != NULL;
}

int main(int argc, char **argv)
{
	const int64_t three[] = { 3, 3 }, one[] = { 1, 1 };
	const struct yoke_conv_options pad = { .size = sizeof pad, .lo = { 1, 1 }, .hi = { 1, 1 } };
	const struct yoke_pool_options half = { .size = sizeof half, .window = { 2, 2 } };
	yoke_module *net = yoke_nn_sequential(10, (yoke_module *[]){
		yoke_nn_conv(2, 1, 16, three, &pad, 0), yoke_nn_batch_norm(16, 1e-5, 0.1),
		yoke_nn_activation("relu"), yoke_nn_max_pool(&half),
		yoke_nn_conv(2, 16, 32, three, &pad, 0), yoke_nn_batch_norm(32, 1e-5, 0.1),
		yoke_nn_activation("relu"), yoke_nn_adaptive_mean_pool(2, one), yoke_nn_flatten(),
		yoke_nn_linear(32, 4, 1) });
	const struct yoke_field fields[] = {
		{ .size = sizeof *fields, .name = "image", .dtype = yoke_f32, .rank = 3,
		  .dims = { 1, SIDE, SIDE } }, { .name = "class", .dtype = yoke_i32 } };
	const struct yoke_dataset_options lines = {
		.size = sizeof lines, .name = "lines", .chunk = BATCH,
		.count = BATCH * (STEPS + TESTS), .fields = 2, .field = fields, .read = draw };
	yoke_dataset *set = yoke_dataset_new(&lines);
	yoke_loader *data = yoke_loader_new(set, "batch=64 workers=1");
	yoke_tensor *p[16], *g[16], *in[2] = { 0 }, *out;
	const char *names[16];
	const int n = yoke_module_parameters(net, 16, p, names);
	yoke_optim *o = yoke_optim_new("adamw", "lr=3e-3");
	int bad = !net || !data || yoke_optim_add(o, n, p, names, NULL) < 0;
	double right = 0;
	for (int t = 0; t < STEPS + TESTS && !bad; t++) {
		const int trains = t < STEPS;
		float v;
		yoke_scope *s = yoke_scope_begin("step");
		bad = yoke_module_mode(net, trains) < 0 || yoke_loader_next(data, 2, in, NULL) < 0;
		out = yoke_call(net, in[0]);
		out = trains ? yoke_cross_entropy(out, in[1], -1, 0) :
			       yoke_eq(yoke_argmax(out, 1), yoke_cast(in[1], yoke_i64));
		out = yoke_mean(yoke_cast(out, yoke_f32), YOKE_ALL);
		if (trains)
			bad |= yoke_grad(out, n, p, g) < 0 || yoke_optim_step(o, n, g, NULL) < 0;
		bad |= yoke_read(out, &v, sizeof v) < 0 || yoke_scope_end(s) < 0;
		right += trains ? 0 : v / TESTS;
		if (t % 50 == 0 || t == STEPS - 1)
			printf("step %3d  loss %.4f\n", t, v);
	}
	bad |= yoke_module_save(net, argc > 1 ? argv[1] : "net.safetensors") < 0;
	yoke_optim_free(o);
	yoke_loader_free(data);
	yoke_dataset_free(set);
	yoke_module_free(net);
	return bad ? fprintf(stderr, "%s\n", yoke_error()), 1 : printf("right %.3f\n", right) < 0;
}
