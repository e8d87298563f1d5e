// SPDX-License-Identifier: Apache-2.0
// Layers that consist of a few operations each: their module classes and constructors.
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "nn/layer.h"
#include "nn/shard_layers.h"
#include "yoke-quant.h"

yoke_module *yk_layer_new(const struct yoke_module_class *class, const void *state, size_t bytes)
{
	void *copy = malloc(bytes);
	if (!copy) {
		yk_fail(YOKE_ENOMEM, "%s: no memory", class->name);
		return NULL;
	}
	memcpy(copy, state, bytes);
	return yoke_module_new(class, copy);
}

yoke_module *yk_layer_done(yoke_module *m, bool good)
{
	if (good)
		return m;
	yoke_module_free(m);
	return NULL;
}

bool yk_layer_size(const char *layer, const char *what, int64_t n)
{
	if (n > 0)
		return true;
	yk_fail(YOKE_EINVAL, "%s: %s is %lld; must be at least 1", layer, what, (long long)n);
	return false;
}

int yk_layer_one(const yoke_module *m, int n, int k)
{
	return n == 1 && k == 1 ?
		       0 :
		       yk_fail(YOKE_EINVAL, "%s: computes one value of one, not %d of %d",
			       m->class->name, k, n);
}

static bool vector(yoke_module *m, bool declared, const char *name, int64_t n, double value)
{
	return yk_module_parameter(m, declared, name, 1, &n, YOKE_FIRST_VALUE, value);
}

// ---- linear, embedding ----

// x w' + b for a matrix w in a format of yoke-quant.h; only layers of networks have such weights.
static yoke_tensor *quantized_product(const yoke_module *m, yoke_tensor *x, yoke_tensor *b)
{
	const struct yk_module_own *w = &m->own[0];
	yoke_tensor *y =
		yoke_qlinear(x, w->tensor, w->format | (m->net->by_row ? YOKE_QUANT_BY_ROW : 0));
	return b == YOKE_NONE ? y : yoke_add(y, b);
}

static yoke_tensor *product(const yoke_module *m, yoke_tensor *x)
{
	yoke_tensor *w = m->own[0].tensor, *b = m->n > 1 ? m->own[1].tensor : YOKE_NONE;
	if (m->own[0].format != YOKE_QUANT_F32)
		return quantized_product(m, x, b);
	return !m->net ? yoke_linear(x, w, b) :
			 (m->inputs_sharded ? yk_shard_row : yk_shard_column)(m->net, x, w, b);
}

static int linear_forward(yoke_module *m, void *state, int n, yoke_tensor *const *in, int k,
			  yoke_tensor **out)
{
	(void)state;
	int err = yk_layer_one(m, n, k);
	if (err)
		return err;
	out[0] = product(m, in[0]);
	if (m->lora) {
		const double dropout = m->net && m->net->trains ? m->net->adapter_dropout : 0;
		yoke_tensor *x = dropout > 0 ? yoke_dropout(in[0], dropout) : in[0];
		yoke_tensor *y =
			yoke_add(out[0], yk_low_rank_product(m->lora, x, m->net && m->net->by_row));
		out[0] = m->lora->chosen ? yoke_select(m->lora->chosen, y, out[0]) : y;
	}
	return 0;
}

const struct yoke_module_class yk_linear_class = {
	.size = sizeof yk_linear_class, .name = "linear", .forward = linear_forward,
};

yoke_module *yk_nn_linear(bool declared, int64_t in, int64_t out, bool bias)
{
	if (!yk_layer_size("nn_linear", "in", in) || !yk_layer_size("nn_linear", "out", out))
		return NULL;
	const double bound = 1 / sqrt((double)in);
	const int64_t dims[] = { out, in };
	yoke_module *m = yoke_module_new(&yk_linear_class, NULL);
	return yk_layer_done(m, m &&
					yk_module_parameter(m, declared, "weight", 2, dims,
							    YOKE_FIRST_UNIFORM, bound) &&
					(!bias || yk_module_parameter(m, declared, "bias", 1, dims,
								      YOKE_FIRST_UNIFORM, bound)));
}

yoke_module *yoke_nn_linear(int64_t in, int64_t out, int bias)
{
	return yk_nn_linear(false, in, out, bias);
}

yoke_module *yk_nn_linear_tied(const yoke_module *with)
{
	yoke_module *m = yoke_module_new(&yk_linear_class, NULL);
	return yk_layer_done(m, m && yk_module_tie(m, "weight", with));
}

static int embedding_forward(yoke_module *m, void *state, int n, yoke_tensor *const *in, int k,
			     yoke_tensor **out)
{
	(void)state;
	const struct yk_module_own *w = &m->own[0];
	int err = yk_layer_one(m, n, k);
	if (err)
		return err;
	if (w->format != YOKE_QUANT_F32)
		out[0] = yoke_qgather(w->tensor, in[0], w->format, w->dims[1], yoke_f32);
	else
		out[0] = m->net ? yk_shard_embedding(m->net, w->tensor, in[0]) :
				  yoke_embedding(w->tensor, in[0]);
	return 0;
}

yoke_module *yk_nn_embedding(bool declared, int64_t count, int64_t width)
{
	static const struct yoke_module_class class = {
		.size = sizeof class, .name = "embedding", .forward = embedding_forward,
	};
	if (!yk_layer_size("nn_embedding", "count", count) ||
	    !yk_layer_size("nn_embedding", "width", width))
		return NULL;
	const int64_t dims[] = { count, width };
	yoke_module *m = yoke_module_new(&class, NULL);
	return yk_layer_done(
		m, m && yk_module_parameter(m, declared, "weight", 2, dims, YOKE_FIRST_NORMAL, 1));
}

yoke_module *yoke_nn_embedding(int64_t count, int64_t width)
{
	return yk_nn_embedding(false, count, width);
}

// ---- norms ----

struct norm {
	double eps, momentum;
	int64_t groups;
};

static int layer_norm_forward(yoke_module *m, void *state, int n, yoke_tensor *const *in, int k,
			      yoke_tensor **out)
{
	const struct norm *s = state;
	int err = yk_layer_one(m, n, k);
	yoke_tensor *w = m->n ? m->own[0].tensor : YOKE_NONE,
		    *b = m->n > 1 ? m->own[1].tensor : YOKE_NONE;
	if (!err)
		out[0] = m->class == &yk_layer_norm_class ? yoke_layer_norm(in[0], w, b, s->eps) :
							    yoke_rms_norm(in[0], w, s->eps);
	return err;
}

const struct yoke_module_class yk_layer_norm_class = {
	.size = sizeof yk_layer_norm_class,
	.name = "layer_norm",
	.forward = layer_norm_forward,
	.release = free,
};
const struct yoke_module_class yk_rms_norm_class = {
	.size = sizeof yk_rms_norm_class,
	.name = "rms_norm",
	.forward = layer_norm_forward,
	.release = free,
};

static yoke_module *norm_new(const struct yoke_module_class *class, bool declared, const char *what,
			     int64_t width, const struct norm *norm, bool bias)
{
	if (!yk_layer_size(class->name, what, width))
		return NULL;
	if (!(norm->eps >= 0)) {
		yk_fail(YOKE_EINVAL, "%s: eps is %g; must not be negative", class->name, norm->eps);
		return NULL;
	}
	yoke_module *m = yk_layer_new(class, norm, sizeof *norm);
	return yk_layer_done(m, m && vector(m, declared, "weight", width, 1) &&
					(!bias || vector(m, declared, "bias", width, 0)));
}

yoke_module *yk_nn_layer_norm(bool declared, int64_t width, double eps)
{
	return norm_new(&yk_layer_norm_class, declared, "width", width,
			&(struct norm){ .eps = eps }, true);
}

yoke_module *yoke_nn_layer_norm(int64_t width, double eps)
{
	return yk_nn_layer_norm(false, width, eps);
}

yoke_module *yk_nn_rms_norm(bool declared, int64_t width, double eps)
{
	return norm_new(&yk_rms_norm_class, declared, "width", width, &(struct norm){ .eps = eps },
			false);
}

yoke_module *yoke_nn_rms_norm(int64_t width, double eps)
{
	return yk_nn_rms_norm(false, width, eps);
}

static int dims_of(const yoke_tensor *x, int64_t *dims)
{
	for (int i = 0; i < yoke_rank(x); i++)
		dims[i] = yoke_dim(x, i);
	return yoke_rank(x);
}

yoke_tensor *yk_by_channel(yoke_tensor *x, yoke_tensor *v)
{
	int64_t dims[YOKE_MAX_RANK];
	const int rank = yoke_rank(x);
	for (int i = 0; i < rank; i++)
		dims[i] = i == 1 ? -1 : 1;
	return yoke_reshape(v, rank, dims);
}

static int check_channels(const yoke_module *m, const yoke_tensor *x)
{
	const int64_t channels = yoke_count(m->own[0].tensor);
	if (yoke_rank(x) >= 2 && yoke_dim(x, 1) == channels)
		return 0;
	return yk_fail(YOKE_ESHAPE, "%s: x has %lld channels on its second axis, not %lld",
		       m->class->name, yoke_rank(x) >= 2 ? (long long)yoke_dim(x, 1) : 0LL,
		       (long long)channels);
}

static int group_norm_forward(yoke_module *m, void *state, int n, yoke_tensor *const *in, int k,
			      yoke_tensor **out)
{
	const struct norm *s = state;
	int64_t dims[YOKE_MAX_RANK];
	int err = yk_layer_one(m, n, k);
	if (!err)
		err = check_channels(m, in[0]);
	if (err)
		return err;
	const int rank = dims_of(in[0], dims);
	const int64_t parts[] = { dims[0], s->groups, -1 };
	yoke_tensor *x = yoke_reshape(
		yoke_layer_norm(yoke_reshape(in[0], 3, parts), YOKE_NONE, YOKE_NONE, s->eps), rank,
		dims);
	out[0] = yoke_add(yoke_mul(x, yk_by_channel(in[0], m->own[0].tensor)),
			  yk_by_channel(in[0], m->own[1].tensor));
	return 0;
}

yoke_module *yoke_nn_group_norm(int64_t groups, int64_t channels, double eps)
{
	static const struct yoke_module_class class = {
		.size = sizeof class,
		.name = "group_norm",
		.forward = group_norm_forward,
		.release = free,
	};
	if (!yk_layer_size("nn_group_norm", "groups", groups))
		return NULL;
	if (channels % groups) {
		yk_fail(YOKE_EINVAL, "nn_group_norm: groups %lld do not divide channels %lld",
			(long long)groups, (long long)channels);
		return NULL;
	}
	return norm_new(&class, false, "channels", channels,
			&(struct norm){ .eps = eps, .groups = groups }, true);
}

// Moving average: held = (1 - share) held + share x.
static int blend(yoke_tensor *held, yoke_tensor *x, double share)
{
	return yoke_assign(held, yoke_add(yoke_mul(held, yoke_const(1 - share)),
					  yoke_mul(x, yoke_const(share))));
}

static int batch_norm_forward(yoke_module *m, void *state, int n, yoke_tensor *const *in, int k,
			      yoke_tensor **out)
{
	const struct norm *s = state;
	int err = yk_layer_one(m, n, k);
	if (!err && !m->n) { // folded into another layer
		out[0] = in[0];
		return 0;
	}
	if (!err)
		err = check_channels(m, in[0]);
	if (err)
		return err;
	yoke_tensor *x = in[0], *mean = m->own[2].tensor, *var = m->own[3].tensor;
	if (yoke_module_training(m)) {
		const double each = (double)yoke_count(x) / (double)yoke_dim(x, 1);
		yoke_tensor *now, *around;
		if (each < 2) // the unbiased variance of one value is NaN and would stay in the
			      // running one
			return yk_fail(
				YOKE_ESHAPE,
				"batch_norm: x has too few elements of each channel, %g; training takes two or more",
				each);
		out[0] = yoke_batch_norm(x, m->own[0].tensor, m->own[1].tensor, s->eps, &now,
					 &around);
		err = blend(mean, yoke_stop_grad(now), s->momentum);
		return err ? err :
			     blend(var,
				   yoke_mul(yoke_stop_grad(around), yoke_const(each / (each - 1))),
				   s->momentum);
	}
	yoke_tensor *scale =
		yoke_mul(yoke_rsqrt(yoke_add(var, yoke_const(s->eps))), m->own[0].tensor);
	out[0] = yoke_add(yoke_mul(yoke_sub(x, yk_by_channel(x, mean)), yk_by_channel(x, scale)),
			  yk_by_channel(x, m->own[1].tensor));
	return 0;
}

const struct yoke_module_class yk_batch_norm_class = {
	.size = sizeof yk_batch_norm_class,
	.name = "batch_norm",
	.forward = batch_norm_forward,
	.release = free,
};

double yk_norm_eps(const yoke_module *m)
{
	return ((const struct norm *)m->state)->eps;
}

yoke_module *yoke_nn_batch_norm(int64_t channels, double eps, double momentum)
{
	if (!(momentum >= 0 && momentum <= 1)) {
		yk_fail(YOKE_EINVAL, "nn_batch_norm: momentum is %g; must be from 0 to 1",
			momentum);
		return NULL;
	}
	yoke_module *m = norm_new(&yk_batch_norm_class, false, "channels", channels,
				  &(struct norm){ .eps = eps, .momentum = momentum }, true);
	return yk_layer_done(
		m, m && yoke_module_buffer(m, "running_mean", yoke_f32, 1, &channels, 0) &&
			   yoke_module_buffer(m, "running_var", yoke_f32, 1, &channels, 1));
}

// ---- dropout, activations ----

static int dropout_forward(yoke_module *m, void *state, int n, yoke_tensor *const *in, int k,
			   yoke_tensor **out)
{
	int err = yk_layer_one(m, n, k);
	if (!err)
		out[0] = yoke_dropout(in[0], yoke_module_training(m) ? *(const double *)state : 0);
	return err;
}

yoke_module *yoke_nn_dropout(double p)
{
	static const struct yoke_module_class class = {
		.size = sizeof class,
		.name = "dropout",
		.forward = dropout_forward,
		.release = free,
	};
	if (p >= 0 && p < 1)
		return yk_layer_new(&class, &p, sizeof p);
	yk_fail(YOKE_EINVAL, "nn_dropout: p is %g; must be at least 0 and below 1", p);
	return NULL;
}

static const struct activation {
	const char *name;
	yoke_tensor *(*fn)(yoke_tensor *);
} activations[] = {
	{ "relu", yoke_relu }, { "gelu", yoke_gelu }, { "gelu_tanh", yoke_gelu_tanh },
	{ "silu", yoke_silu }, { "tanh", yoke_tanh }, { "sigmoid", yoke_sigmoid },
};

static int activation_forward(yoke_module *m, void *state, int n, yoke_tensor *const *in, int k,
			      yoke_tensor **out)
{
	const struct activation *a = state;
	int err = yk_layer_one(m, n, k);
	if (!err)
		out[0] = a->fn(in[0]);
	return err;
}

yoke_module *yoke_nn_activation(const char *name)
{
	static const struct yoke_module_class class = {
		.size = sizeof class,
		.name = "activation",
		.forward = activation_forward,
		.release = free,
	};
	char all[128] = "";
	for (size_t i = 0; i < sizeof activations / sizeof *activations; i++) {
		if (name && !strcmp(activations[i].name, name))
			return yk_layer_new(&class, &activations[i], sizeof activations[i]);
		snprintf(all + strlen(all), sizeof all - strlen(all), " %s", activations[i].name);
	}
	yk_fail(YOKE_ENOENT, "nn_activation: there is no '%s'; there are%s", name ? name : "", all);
	return NULL;
}

// ---- containers ----

static int sequential_forward(yoke_module *m, void *state, int n, yoke_tensor *const *in, int k,
			      yoke_tensor **out)
{
	(void)state;
	if (k != 1 || (m->children == 0 && n != 1))
		return yk_layer_one(m, n, k);
	out[0] = in[0];
	for (size_t i = 0; i < m->children; i++) // only the first layer may take several inputs
		if (yoke_forward(m->child[i], i ? 1 : n, i ? (yoke_tensor *[]){ out[0] } : in, 1,
				 out) < 0)
			return yoke_error_code();
	return 0;
}

const struct yoke_module_class yk_sequential_class = {
	.size = sizeof yk_sequential_class, .name = "sequential", .forward = sequential_forward,
};

yoke_module *yoke_nn_sequential(int n, yoke_module *const *modules)
{
	yoke_module *m = yoke_module_new(&yk_sequential_class, NULL);
	return yk_layer_done(m, !yk_module_children(m, n, modules));
}

static int residual_forward(yoke_module *m, void *state, int n, yoke_tensor *const *in, int k,
			    yoke_tensor **out)
{
	(void)state;
	int err = yk_layer_one(m, n, k);
	if (!err)
		out[0] = yoke_add(in[0], yoke_call(m->child[0], in[0]));
	return err;
}

yoke_module *yoke_nn_residual(yoke_module *inner)
{
	static const struct yoke_module_class class = {
		.size = sizeof class, .name = "residual", .forward = residual_forward,
	};
	yoke_module *m = yoke_module_new(&class, NULL);
	if (!m)
		yoke_module_free(inner);
	return yk_layer_done(m, m && yoke_module_child(m, "inner", inner) == 0);
}

// Opens one scope for the whole perceptron, not one per layer.
static int mlp_forward(yoke_module *m, void *state, int n, yoke_tensor *const *in, int k,
		       yoke_tensor **out)
{
	(void)state;
	int err = yk_layer_one(m, n, k);
	if (err)
		return err;
	out[0] = in[0];
	for (size_t i = 0; i < m->children && out[0]; i++)
		out[0] = yk_call_inside(m->child[i], 1, out);
	return 0;
}

yoke_module *yk_nn_mlp(bool declared, int64_t in, int64_t hidden, int64_t out,
		       const char *activation, double dropout)
{
	static const struct yoke_module_class class = {
		.size = sizeof class, .name = "mlp", .forward = mlp_forward,
	};
	yoke_module *m = yoke_module_new(&class, NULL);
	return yk_layer_done(
		m, m && yoke_module_child(m, "up", yk_nn_linear(declared, in, hidden, true)) == 0 &&
			   yoke_module_child(m, "act", yoke_nn_activation(activation)) == 0 &&
			   yoke_module_child(m, "drop", yoke_nn_dropout(dropout)) == 0 &&
			   yoke_module_child(m, "down",
					     yk_nn_linear(declared, hidden, out, true)) == 0);
}

yoke_module *yoke_nn_mlp(int64_t in, int64_t hidden, int64_t out, const char *activation,
			 double dropout)
{
	return yk_nn_mlp(false, in, hidden, out, activation, dropout);
}
