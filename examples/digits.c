// SPDX-License-Identifier: Apache-2.0
// Trains a custom convolutional network on the digits of scikit-learn: digits.c FILE. FILE is a
// NumPy archive written by python/examples/digits.py, with `image` f32 [n,1,8,8] and `label` i64
// [n]; both programs have the same losses, bit for bit.
#include <stdio.h>
#include <yoke-fit.h>

enum { TRAIN = 1440, BATCH = 32, EPOCHS = 12 };

static int next(void *arg, int64_t part, int max, yoke_tensor **in)
{
	(void)part, (void)max;
	const int64_t rows = yoke_loader_next(arg, 2, in, NULL);
	return rows > 0 ? 2 : (int)rows;
}

static yoke_tensor *loss(void *arg, yoke_module *net, int n, yoke_tensor *const *in)
{
	(void)arg, (void)n;
	return yoke_cross_entropy(yoke_call(net, in[0]), in[1], -1, 0);
}

static int note(void *arg, const struct yoke_fit_step *s)
{
	(void)arg;
	return printf("step %lld loss %.9g\n", (long long)s->step, s->loss) < 0;
}

int main(int argc, char **argv)
{
	const int64_t three[] = { 3, 3 };
	const struct yoke_conv_options same = { .size = sizeof same,
						.lo = { 1, 1 },
						.hi = { 1, 1 } };
	const struct yoke_pool_options half = { .size = sizeof half, .window = { 2, 2 } };
	char settings[64], rest[64];
	yoke_dataset *all = yoke_dataset_open(argc > 1 ? argv[1] : "digits.npz", NULL);
	const int64_t tests = yoke_dataset_count(all) - TRAIN;
	yoke_dataset *train = yoke_dataset_subset(all, 0, TRAIN, NULL),
		     *test = yoke_dataset_subset(all, TRAIN, tests, NULL);
	snprintf(settings, sizeof settings, "batch=%d epochs=%d seed=1", BATCH, EPOCHS);
	snprintf(rest, sizeof rest, "batch=%lld shuffle=0", (long long)tests);
	yoke_loader *batches = yoke_loader_new(train, settings),
		    *unseen = yoke_loader_new(test, rest);
	yoke_random_set(1, 0);
	yoke_module *net = yoke_nn_sequential(
		7, (yoke_module *[]){ yoke_nn_conv(2, 1, 16, three, &same, 1),
				      yoke_nn_activation("relu"), yoke_nn_max_pool(&half),
				      yoke_nn_conv(2, 16, 32, three, &same, 1),
				      yoke_nn_activation("relu"), yoke_nn_flatten(),
				      yoke_nn_linear(32 * 4 * 4, 10, 1) });
	yoke_optim *o = yoke_optim_new("adamw", "lr=3e-3 schedule=cosine warmup=20 steps=540");
	const struct yoke_fit f = { .size = sizeof f,
				    .net = net,
				    .optim = o,
				    .next = next,
				    .loss = loss,
				    .log = note,
				    .arg = batches,
				    .data = batches,
				    .log_every = 1 };
	int bad = !all || !batches || !unseen || yoke_fit(&f, NULL) < 0;
	if (!bad) {
		float right;
		yoke_tensor *in[2] = { NULL };
		yoke_scope *s = yoke_scope_begin("test");
		yoke_module_mode(net, 0);
		yoke_loader_next(unseen, 2, in, NULL);
		yoke_tensor *same_class = yoke_eq(yoke_argmax(yoke_call(net, in[0]), 1), in[1]);
		yoke_read(yoke_mean(yoke_cast(same_class, yoke_f32), YOKE_ALL), &right,
			  sizeof right);
		bad = yoke_scope_end(s) < 0 || printf("right %.1f %%\n", 100 * right) < 0;
	}
	if (bad)
		fprintf(stderr, "%s\n", yoke_error());
	yoke_optim_free(o);
	yoke_module_free(net);
	yoke_loader_free(batches);
	yoke_loader_free(unseen);
	yoke_dataset_free(train);
	yoke_dataset_free(test);
	yoke_dataset_free(all);
	return bad;
}
