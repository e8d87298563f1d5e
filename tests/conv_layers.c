// SPDX-License-Identifier: Apache-2.0
// Tests convolution and pooling layers against float64 loops, and folding, which must not change
// a network's results.
#include "config.h"

#include "tap.h"
#include "yoke-nn.h"

enum { LIMIT = 1 << 14 };

static int shake(void *arg, const char *path, yoke_tensor *t, unsigned flags)
{
	float x[LIMIT];
	const int64_t n = yoke_count(t);
	(void)arg;
	(void)path;
	for (int64_t i = 0; i < n && i < LIMIT; i++)
		x[i] = (float)rnd_real(flags & YOKE_MODULE_BUFFER ? 0.5 : -1, 1.5);
	return yoke_put(t, x, yoke_bytes(t));
}

static void values(yoke_tensor *t, double *to)
{
	float x[LIMIT];
	const int64_t n = yoke_count(t);
	if (yoke_read(t, x, yoke_bytes(t)) < 0)
		memset(x, 0xff, sizeof x);
	for (int64_t i = 0; i < n; i++)
		to[i] = x[i];
}

static yoke_tensor *random_x(int rank, const int64_t *dims, double *to)
{
	float x[LIMIT];
	int64_t n = 1;
	for (int i = 0; i < rank; i++)
		n *= dims[i];
	for (int64_t i = 0; i < n; i++)
		to[i] = x[i] = (float)rnd_real(-2, 2);
	return yoke_from(yoke_f32, rank, dims, x);
}

// Within 1e-5 of the largest element: a sum with cancellation is as exact as its terms.
static bool same(const double *got, const double *want, int64_t n, const char *what)
{
	double max = 0;
	for (int64_t i = 0; i < n; i++)
		max = fmax(max, fabs(want[i]));
	for (int64_t i = 0; i < n; i++)
		if (!(fabs(got[i] - want[i]) <= 1e-5 * max)) {
			diag("%s: element %lld is %.9g, not %.9g", what, (long long)i, got[i],
			     want[i]);
			return false;
		}
	return true;
}

// x [2,4,7,6] -> [2,6,4,3]: 2 groups, kernel 3 x 2, stride 2, padding 1 and 1, 0 and 1.
static void test_conv(void)
{
	const struct yoke_conv_options how = {
		.size = sizeof how, .groups = 2, .stride = { 2, 2 }, .lo = { 1, 0 }, .hi = { 1, 1 }
	};
	static double x[LIMIT], w[LIMIT], b[6], want[LIMIT], got[LIMIT];
	yoke_module *m = yoke_nn_conv(2, 4, 6, (int64_t[]){ 3, 2 }, &how, 1);
	yoke_module_each(m, shake, NULL);
	yoke_scope *s = yoke_scope_begin("conv");
	yoke_tensor *in = random_x(4, (int64_t[]){ 2, 4, 7, 6 }, x), *y = yoke_call(m, in);
	values(yoke_module_find(m, "weight"), w);
	values(yoke_module_find(m, "bias"), b);
	for (int i = 0; i < 2 * 6 * 4 * 3; i++) {
		const int batch = i / 72, o = i / 12 % 6, r = i / 3 % 4, c = i % 3;
		want[i] = b[o];
		for (int k = 0; k < 2 * 3 * 2; k++) {
			const int channel = k / 6, row = r * 2 + k / 2 % 3 - 1, col = c * 2 + k % 2;
			if (row >= 0 && row < 7 && col < 6)
				want[i] +=
					w[o * 12 + k] *
					x[((batch * 4 + o / 3 * 2 + channel) * 7 + row) * 6 + col];
		}
	}
	bool good = yoke_count(y) == 144;
	values(y, got);
	ok(good && same(got, want, 144, "conv"), "a convolution with groups and bias: %s",
	   yoke_error());
	yoke_scope_end(s);
	yoke_module_free(m);
}

static void test_others(void)
{
	static double x[LIMIT], got[LIMIT];
	yoke_module *list[] = {
		yoke_nn_conv_transposed(
			1, 4, 6, (int64_t[]){ 3 },
			&(struct yoke_conv_options){ .size = sizeof(struct yoke_conv_options),
						     .groups = 2,
						     .stride = { 2 },
						     .more = { 1 } },
			1),
		yoke_nn_max_pool(
			&(struct yoke_pool_options){ .size = sizeof(struct yoke_pool_options),
						     .window = { 3 },
						     .stride = { 2 } }),
		yoke_nn_mean_pool(&(struct yoke_pool_options){
			.size = sizeof(struct yoke_pool_options), .window = { 2 } }),
		yoke_nn_resize(1, (int64_t[]){ 7 }, 1),
		yoke_nn_adaptive_max_pool(1, (int64_t[]){ 3 }),
		yoke_nn_adaptive_mean_pool(1, (int64_t[]){ 2 }),
		yoke_nn_flatten(),
	};
	yoke_module *m = yoke_nn_sequential(7, list);
	yoke_module_each(m, shake, NULL);
	yoke_scope *s = yoke_scope_begin("others");
	yoke_tensor *in = random_x(3, (int64_t[]){ 2, 4, 8 }, x), *y = yoke_call(m, in);
	// (8 - 1) 2 + 3 + 1 = 18 -> 8 -> 4 -> 7 -> 3 -> 2
	ok(y && yoke_rank(y) == 2 && yoke_dim(y, 0) == 2 && yoke_dim(y, 1) == 12,
	   "a sequence of all layers: %s", yoke_error());
	values(y, got);
	yoke_tensor *w = yoke_module_find(m, "0.weight"), *b = yoke_module_find(m, "0.bias");
	static double plain[LIMIT];
	yoke_tensor *z = yoke_conv_transposed(
		in, w,
		&(struct yoke_conv_options){ .size = sizeof(struct yoke_conv_options),
					     .groups = 2,
					     .stride = { 2 },
					     .more = { 1 } });
	z = yoke_add(z, yoke_reshape(b, 3, (int64_t[]){ 1, 6, 1 }));
	z = yoke_max_pool(z, &(struct yoke_pool_options){ .size = sizeof(struct yoke_pool_options),
							  .window = { 3 },
							  .stride = { 2 } });
	z = yoke_mean_pool(z, &(struct yoke_pool_options){ .size = sizeof(struct yoke_pool_options),
							   .window = { 2 } });
	z = yoke_resize(z, (int64_t[]){ 7 }, 1);
	z = yoke_adaptive_mean_pool(yoke_adaptive_max_pool(z, (int64_t[]){ 3 }), (int64_t[]){ 2 });
	values(z, plain);
	ok(y && same(got, plain, 24, "sequence"), "layers compute what the operations compute");
	yoke_scope_end(s);
	yoke_module_free(m);
}

// ---- folding ----

static char names[512];

static int name(void *arg, const char *path, yoke_tensor *t, unsigned flags)
{
	(void)arg, (void)t, (void)flags;
	strncat(names, path, sizeof names - strlen(names) - 1);
	strncat(names, " ", sizeof names - strlen(names) - 1);
	return 0;
}

static void folded(yoke_module *m, int rank, const int64_t *dims, const char *left,
		   const char *what)
{
	static double x[LIMIT], before[LIMIT], after[LIMIT];
	yoke_module_each(m, shake, NULL);
	yoke_module_mode(m, 0);
	yoke_scope *s = yoke_scope_begin("fold");
	yoke_tensor *in = random_x(rank, dims, x), *y = yoke_call(m, in);
	const int64_t n = yoke_count(y);
	values(y, before);
	int err = yoke_module_fold(m);
	y = yoke_call(m, in);
	values(y, after);
	names[0] = 0;
	yoke_module_each(m, name, NULL);
	ok(!err && n > 0 && same(after, before, n, what), "%s folded computes the same: %s", what,
	   yoke_error());
	ok(!strcmp(names, left), "layers left after folding: %s", names);
	err = yoke_module_fold(m);
	values(yoke_call(m, in), before);
	ok(!err && same(before, after, n, what), "folding again changes nothing");
	yoke_scope_end(s);
	yoke_module_free(m);
}

static void test_fold(void)
{
	const int64_t kernel[] = { 3, 3 };
	folded(yoke_nn_sequential(4, (yoke_module *[]){ yoke_nn_conv(2, 3, 5, kernel, NULL, 0),
							yoke_nn_batch_norm(5, 1e-5, 0.1),
							yoke_nn_activation("relu"),
							yoke_nn_batch_norm(5, 1e-5, 0.1) }),
	       4, (int64_t[]){ 2, 3, 6, 5 },
	       "0.weight 0.bias 3.weight 3.bias 3.running_mean 3.running_var ",
	       "a batch norm after a convolution");
	const struct yoke_conv_options two = { .size = sizeof two, .groups = 2 };
	folded(yoke_nn_sequential(
		       2, (yoke_module *[]){ yoke_nn_conv_transposed(2, 4, 6, kernel, &two, 1),
					     yoke_nn_batch_norm(6, 1e-5, 0.1) }),
	       4, (int64_t[]){ 2, 4, 5, 4 }, "0.weight 0.bias ",
	       "a batch norm after a transposed convolution");
	folded(yoke_nn_sequential(3, (yoke_module *[]){ yoke_nn_layer_norm(6, 1e-5),
							yoke_nn_linear(6, 4, 0),
							yoke_nn_batch_norm(4, 1e-5, 0.1) }),
	       2, (int64_t[]){ 5, 6 }, "1.weight 1.bias ",
	       "a layer norm before, a batch norm after a linear layer");
	folded(yoke_nn_block(&(struct yoke_nn_attention_options){
		       .size = sizeof(struct yoke_nn_attention_options),
		       .width = 8,
		       .heads = 2,
		       .bias = 1 }),
	       3, (int64_t[]){ 2, 3, 8 },
	       "attn.q.weight attn.q.bias attn.k.weight attn.k.bias attn.v.weight attn.v.bias attn.out.weight attn.out.bias "
	       "mlp.up.weight mlp.up.bias mlp.down.weight mlp.down.bias ",
	       "a block");
	// a tied weight stays unchanged
	yoke_module *tied = yoke_nn_sequential(
		3, (yoke_module *[]){ yoke_nn_linear(4, 4, 0), yoke_nn_batch_norm(4, 1e-5, 0.1),
				      yoke_nn_linear(4, 4, 0) });
	yoke_module_share(tied, "2.weight", "0.weight");
	folded(tied, 2, (int64_t[]){ 5, 4 },
	       "0.weight 1.weight 1.bias 1.running_mean 1.running_var ", "a tied layer");
}

static void refused(int code, yoke_module *m, const char *word)
{
	ok(!m && yoke_error_code() == code && strstr(yoke_error(), word), "'%s': %s", word,
	   yoke_error());
	yoke_error_clear();
}

int main(void)
{
	tap_seed();
	yoke_random_set(rnd(), 0);
	test_conv();
	test_others();
	test_fold();
	const int64_t three[] = { 3, 3 };
	refused(YOKE_EINVAL, yoke_nn_conv(4, 4, 4, three, NULL, 0), "1 to 3 axes");
	refused(YOKE_EINVAL,
		yoke_nn_conv(2, 4, 6, three,
			     &(struct yoke_conv_options){ .size = sizeof(struct yoke_conv_options),
							  .groups = 4 },
			     0),
		"groups that divide");
	refused(YOKE_EINVAL, yoke_nn_conv(2, 4, 6, (int64_t[]){ 3, 0 }, NULL, 0), "kernel is 0");
	refused(YOKE_EINVAL, yoke_nn_resize(1, (int64_t[]){ 0 }, 0), "size is 0");
	return done();
}
