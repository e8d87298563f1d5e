// SPDX-License-Identifier: Apache-2.0
// Layers on images and sequences: convolution, pooling, resizing, flattening.
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sized.h"
#include "nn/layer.h"

enum { MAX_AXES = 3 };

// ---- convolutions ----

struct conv {
	struct yoke_conv_options how;
};

static int conv_forward(yoke_module *m, void *state, int n, yoke_tensor *const *in, int k,
			yoke_tensor **out)
{
	const struct conv *c = state;
	int err = yk_layer_one(m, n, k);
	if (err)
		return err;
	yoke_tensor *w = m->own[0].tensor;
	out[0] = m->class == &yk_conv_class ? yoke_conv(in[0], w, &c->how) :
					      yoke_conv_transposed(in[0], w, &c->how);
	if (m->n > 1)
		out[0] = yoke_add(
			out[0],
			yk_by_channel(w, m->own[1].tensor)); // as w, but for a missing batch
	return 0;
}

const struct yoke_module_class yk_conv_class = {
	.size = sizeof yk_conv_class, .name = "conv", .forward = conv_forward, .release = free,
};
const struct yoke_module_class yk_conv_transposed_class = {
	.size = sizeof yk_conv_transposed_class,
	.name = "conv_transposed",
	.forward = conv_forward,
	.release = free,
};

int64_t yk_conv_groups(const yoke_module *m)
{
	const struct conv *c = m->state;
	return c->how.groups;
}

static yoke_module *conv_new(const struct yoke_module_class *class, int axes, int64_t in,
			     int64_t out, const int64_t *kernel,
			     const struct yoke_conv_options *options, int bias)
{
	struct conv c = { 0 };
	if (options &&
	    yk_sized_read(&c.how, sizeof c.how, options, class->name, "yoke_conv_options"))
		return NULL;
	c.how.size = sizeof c.how;
	c.how.groups = c.how.groups ? c.how.groups : 1;
	const int64_t groups = c.how.groups;
	const bool transposed = class == &yk_conv_transposed_class;
	bool good = yk_layer_size(class->name, "in", in) &&
		    yk_layer_size(class->name, "out", out) &&
		    yk_layer_size(class->name, "groups", groups) &&
		    !yk_require_as(kernel, class->name, "kernel");
	if (good && (axes < 1 || axes > MAX_AXES || in % groups || out % groups)) {
		yk_fail(YOKE_EINVAL,
			"%s: 1 to 3 axes, not %d, and groups that divide in %lld and out %lld, not %lld",
			class->name, axes, (long long)in, (long long)out, (long long)groups);
		return NULL;
	}
	for (int i = 0; good && i < axes; i++)
		good = yk_layer_size(class->name, "kernel", kernel[i]);
	if (!good)
		return NULL;
	int64_t dims[2 + MAX_AXES] = { transposed ? in : out, (transposed ? out : in) / groups };
	double fan = (double)dims[1];
	for (int i = 0; i < axes; i++)
		fan *= (double)(dims[2 + i] = kernel[i]);
	yoke_module *m = yk_layer_new(class, &c, sizeof c);
	const double bound = 1 / sqrt(fan);
	return yk_layer_done(m,
			     m &&
				     yoke_module_parameter(m, "weight", yoke_f32, 2 + axes, dims,
							   YOKE_FIRST_UNIFORM, bound) &&
				     (!bias || yoke_module_parameter(m, "bias", yoke_f32, 1, &out,
								     YOKE_FIRST_UNIFORM, bound)));
}

yoke_module *yoke_nn_conv(int axes, int64_t in, int64_t out, const int64_t *kernel,
			  const struct yoke_conv_options *options, int bias)
{
	return conv_new(&yk_conv_class, axes, in, out, kernel, options, bias);
}

yoke_module *yoke_nn_conv_transposed(int axes, int64_t in, int64_t out, const int64_t *kernel,
				     const struct yoke_conv_options *options, int bias)
{
	return conv_new(&yk_conv_transposed_class, axes, in, out, kernel, options, bias);
}

// ---- pools, resizing ----

struct pool {
	struct yoke_pool_options how;
	yoke_tensor *(*fn)(yoke_tensor *, const struct yoke_pool_options *);
};

static int pool_forward(yoke_module *m, void *state, int n, yoke_tensor *const *in, int k,
			yoke_tensor **out)
{
	const struct pool *p = state;
	int err = yk_layer_one(m, n, k);
	if (!err)
		out[0] = p->fn(in[0], &p->how);
	return err;
}

static yoke_module *pool_new(const struct yoke_pool_options *options,
			     yoke_tensor *(*fn)(yoke_tensor *, const struct yoke_pool_options *))
{
	static const struct yoke_module_class class = {
		.size = sizeof class, .name = "pool", .forward = pool_forward, .release = free,
	};
	struct pool p = { .fn = fn };
	if (yk_sized_read(&p.how, sizeof p.how, options, class.name, "yoke_pool_options"))
		return NULL;
	p.how.size = sizeof p.how;
	return yk_layer_new(&class, &p, sizeof p);
}

yoke_module *yoke_nn_max_pool(const struct yoke_pool_options *options)
{
	return pool_new(options, yoke_max_pool);
}

yoke_module *yoke_nn_mean_pool(const struct yoke_pool_options *options)
{
	return pool_new(options, yoke_mean_pool);
}

// The output size of a layer along each axis.
struct sized {
	int axes;
	int64_t to[MAX_AXES];
	yoke_tensor *(*fn)(yoke_tensor *, const int64_t *to);
};

static int sized_forward(yoke_module *m, void *state, int n, yoke_tensor *const *in, int k,
			 yoke_tensor **out)
{
	const struct sized *s = state;
	int err = yk_layer_one(m, n, k);
	const int rank = yoke_rank(in[0]);
	if (!err && rank != 2 + s->axes && rank != 1 + s->axes)
		err = yk_fail(YOKE_ESHAPE, "%s: x has %d axes, not [B,C] or [C] and %d more",
			      m->class->name, rank, s->axes);
	if (err)
		return err;
	const bool single = rank == 1 + s->axes; // no batch
	int64_t dims[YOKE_MAX_RANK] = { 1 };
	for (int i = 0; i < rank; i++)
		dims[i + single] = yoke_dim(in[0], i);
	out[0] = s->fn(single ? yoke_reshape(in[0], rank + 1, dims) : in[0], s->to);
	for (int i = 0; i < s->axes; i++)
		dims[2 + i] = s->to[i];
	if (single)
		out[0] = yoke_reshape(out[0], rank, dims + 1);
	return 0;
}

static yoke_module *sized_new(int axes, const int64_t *to,
			      yoke_tensor *(*fn)(yoke_tensor *, const int64_t *))
{
	static const struct yoke_module_class class = {
		.size = sizeof class, .name = "to_size", .forward = sized_forward, .release = free,
	};
	struct sized s = { .axes = axes, .fn = fn };
	if (axes < 1 || axes > MAX_AXES) {
		yk_fail(YOKE_EINVAL, "to_size: 1 to 3 axes, not %d", axes);
		return NULL;
	}
	if (yk_require_as(to, class.name, "list of sizes"))
		return NULL;
	for (int i = 0; i < axes; i++)
		if (!yk_layer_size(class.name, "size", s.to[i] = to[i]))
			return NULL;
	return yk_layer_new(&class, &s, sizeof s);
}

yoke_module *yoke_nn_adaptive_max_pool(int axes, const int64_t *to)
{
	return sized_new(axes, to, yoke_adaptive_max_pool);
}

yoke_module *yoke_nn_adaptive_mean_pool(int axes, const int64_t *to)
{
	return sized_new(axes, to, yoke_adaptive_mean_pool);
}

static yoke_tensor *nearest(yoke_tensor *x, const int64_t *to)
{
	return yoke_resize(x, to, 0);
}

static yoke_tensor *smooth(yoke_tensor *x, const int64_t *to)
{
	return yoke_resize(x, to, 1);
}

yoke_module *yoke_nn_resize(int axes, const int64_t *to, int bilinear)
{
	return sized_new(axes, to, bilinear ? smooth : nearest);
}

static int flatten_forward(yoke_module *m, void *state, int n, yoke_tensor *const *in, int k,
			   yoke_tensor **out)
{
	(void)state;
	int err = yk_layer_one(m, n, k);
	if (!err && yoke_rank(in[0]) < 1)
		err = yk_fail(YOKE_ESHAPE, "flatten: x has no batch");
	if (err)
		return err;
	int64_t dims[2] = { yoke_dim(in[0], 0), 1 };
	for (int i = 1; i < yoke_rank(in[0]); i++)
		dims[1] *= yoke_dim(in[0], i);
	out[0] = yoke_reshape(in[0], 2, dims);
	return 0;
}

yoke_module *yoke_nn_flatten(void)
{
	static const struct yoke_module_class class = {
		.size = sizeof class, .name = "flatten", .forward = flatten_forward,
	};
	return yoke_module_new(&class, NULL);
}
