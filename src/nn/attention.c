// SPDX-License-Identifier: Apache-2.0
// Attention, the block built on it, and LoRA.
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "nn/layer.h"

// ---- attention ----

enum { Q, K, V, OUT }; // children

// [B,T,heads D] -> [B,T,heads,D]
static yoke_tensor *heads(yoke_tensor *x, int64_t n)
{
	return yoke_reshape(x, 4, (int64_t[]){ yoke_dim(x, 0), yoke_dim(x, 1), n, yoke_dim(x, 2) / n });
}

// Angles of positions 0 .. T-1, columns k: position / base^(2k/D).
static yoke_tensor *turned(yoke_tensor *x, double base)
{
	const int64_t dims[] = { yoke_dim(x, 1), yoke_dim(x, 3) / 2 };
	yoke_tensor *power = yoke_mul(yoke_iota(yoke_f32, 2, dims, 1), yoke_const(-log(base) / (double)dims[1]));
	yoke_tensor *angle = yoke_mul(yoke_iota(yoke_f32, 2, dims, 0), yoke_exp(power));
	yoke_tensor *cosine = yoke_cos(angle), *sine = yoke_sin(angle);
	if (yoke_dtype(x) == yoke_f64) {
		cosine = yoke_cast(cosine, yoke_f64);
		sine = yoke_cast(sine, yoke_f64);
	}
	return yoke_rope(x, cosine, sine);
}

static int attention_forward(yoke_module *m, void *state, int n, yoke_tensor *const *in, int k, yoke_tensor **out)
{
	const struct yoke_nn_attention_options *o = state;
	if (k != 1 || n < 1 || n > 2)
		return yk_fail(YOKE_EINVAL, "attention: computes one value of x, or of x and a context");
	yoke_tensor *q = yoke_call(m->child[Q], in[0]), *keys = yoke_call(m->child[K], in[n - 1]),
		    *values = yoke_call(m->child[V], in[n - 1]);
	if (!values || !q || !keys)
		return yoke_error_code();
	if (yoke_rank(in[0]) != 3 || yoke_rank(in[n - 1]) != 3)
		return yk_fail(YOKE_ESHAPE, "attention: x and context are [B,T,width]");
	q = heads(q, o->heads);
	keys = heads(keys, o->kv_heads);
	values = heads(values, o->kv_heads);
	if (o->rope > 0) {
		q = turned(q, o->rope);
		keys = turned(keys, o->rope);
	}
	yoke_tensor *y = yoke_attention(q, keys, values, YOKE_NONE, o->causal, 0,
					yoke_module_training(m) ? o->dropout : 0);
	y = yoke_reshape(y, 3, (int64_t[]){ yoke_dim(in[0], 0), yoke_dim(in[0], 1), o->width });
	out[0] = yoke_call(m->child[OUT], y);
	return 0;
}

// Options as they are meant, checked.
static bool options_take(const struct yoke_nn_attention_options *from, struct yoke_nn_attention_options *to)
{
	if (!from || from->size < sizeof *from) {
		yk_fail(YOKE_EINVAL, "nn_attention: options without their size");
		return false;
	}
	*to = *from;
	if (to->kv_heads == 0)
		to->kv_heads = to->heads;
	if (!yk_layer_size("nn_attention", "width", to->width) || !yk_layer_size("nn_attention", "heads", to->heads) ||
	    !yk_layer_size("nn_attention", "kv_heads", to->kv_heads))
		return false;
	if (to->width % to->heads || to->heads % to->kv_heads)
		yk_fail(YOKE_EINVAL, "nn_attention: heads %lld do not divide width %lld, or kv_heads %lld not heads",
			(long long)to->heads, (long long)to->width, (long long)to->kv_heads);
	else if (to->rope != 0 && (!(to->rope > 1) || to->width / to->heads % 2))
		yk_fail(YOKE_EINVAL, "nn_attention: rope %g; it is 0 or above 1, and turns heads of an even width",
			to->rope);
	else if (!(to->dropout >= 0 && to->dropout < 1))
		yk_fail(YOKE_EINVAL, "nn_attention: dropout is %g; it is at least 0 and below 1", to->dropout);
	else
		return true;
	return false;
}

yoke_module *yoke_nn_attention(const struct yoke_nn_attention_options *options)
{
	static const struct yoke_module_class class = {
		.size = sizeof class, .name = "attention", .forward = attention_forward, .release = free,
	};
	struct yoke_nn_attention_options o;
	if (!options_take(options, &o))
		return NULL;
	const int64_t e = o.width, kv = o.width / o.heads * o.kv_heads;
	yoke_module *m = yk_layer_new(&class, &o, sizeof o);
	return yk_layer_done(m, m && yoke_module_child(m, "q", yoke_nn_linear(e, e, o.bias)) == 0 &&
			     yoke_module_child(m, "k", yoke_nn_linear(e, kv, o.bias)) == 0 &&
			     yoke_module_child(m, "v", yoke_nn_linear(e, kv, o.bias)) == 0 &&
			     yoke_module_child(m, "out", yoke_nn_linear(e, e, o.bias)) == 0);
}

// ---- a block ----

enum { NORM1, ATTN, NORM2, MLP }; // children

static int block_forward(yoke_module *m, void *state, int n, yoke_tensor *const *in, int k, yoke_tensor **out)
{
	const double dropout = yoke_module_training(m) ? *(const double *)state : 0;
	int err = yk_layer_one(m, n, k);
	if (err)
		return err;
	yoke_tensor *x = in[0];
	for (int half = NORM1; half <= NORM2; half += 2) {
		yoke_tensor *y = yoke_call(m->child[half + 1], yoke_call(m->child[half], x));
		x = yoke_add(x, yoke_dropout(y, dropout));
	}
	out[0] = x;
	return 0;
}

const struct yoke_module_class yk_block_class = {
	.size = sizeof yk_block_class, .name = "block", .forward = block_forward, .release = free,
};

yoke_module *yoke_nn_block(const struct yoke_nn_attention_options *options)
{
	struct yoke_nn_attention_options o;
	const double eps = 1e-5;
	if (!options_take(options, &o))
		return NULL;
	yoke_module *m = yk_layer_new(&yk_block_class, &o.dropout, sizeof o.dropout);
	return yk_layer_done(m, m && yoke_module_child(m, "norm1", yoke_nn_layer_norm(o.width, eps)) == 0 &&
			     yoke_module_child(m, "attn", yoke_nn_attention(&o)) == 0 &&
			     yoke_module_child(m, "norm2", yoke_nn_layer_norm(o.width, eps)) == 0 &&
			     yoke_module_child(m, "mlp", yoke_nn_mlp(o.width, 4 * o.width, o.width, "gelu", 0)) == 0);
}

// ---- LoRA ----

enum { A, B };

static int lora_forward(yoke_module *m, void *state, int n, yoke_tensor *const *in, int k, yoke_tensor **out)
{
	const double *scale = state;
	int err = yk_layer_one(m, n, k);
	if (err)
		return err;
	out[0] = yoke_call(m->child[0], in[0]);
	if (m->n) { // not folded
		yoke_tensor *y = yoke_linear(yoke_linear(in[0], m->own[A].tensor, YOKE_NONE), m->own[B].tensor, YOKE_NONE);
		out[0] = yoke_add(out[0], yoke_mul(y, yoke_const(*scale)));
	}
	return 0;
}

const struct yoke_module_class yk_lora_class = {
	.size = sizeof yk_lora_class, .name = "lora", .forward = lora_forward, .release = free,
};

yoke_module *yoke_nn_lora(yoke_module *linear, int64_t rank, double alpha)
{
	const double scale = alpha / (double)rank;
	if (!yk_module_given(linear, "nn_lora") || !yk_layer_size("nn_lora", "rank", rank))
		return NULL;
	if (linear->class != &yk_linear_class) {
		yk_fail(YOKE_EINVAL, "nn_lora: goes around a linear layer, not a %s", linear->class->name);
		return NULL;
	}
	const int64_t out = yoke_dim(linear->own[0].tensor, 0), in = yoke_dim(linear->own[0].tensor, 1);
	yoke_module *m = yk_layer_new(&yk_lora_class, &scale, sizeof scale);
	return yk_layer_done(m, m && yoke_module_child(m, "inner", linear) == 0 &&
			     yoke_module_freeze(m, "*", 1) == 0 &&
			     yoke_module_parameter(m, "a", yoke_f32, 2, (int64_t[]){ rank, in }, YOKE_FIRST_UNIFORM,
						   1 / sqrt((double)in)) &&
			     yoke_module_parameter(m, "b", yoke_f32, 2, (int64_t[]){ out, rank }, YOKE_FIRST_VALUE, 0));
}

int yk_lora_join(yoke_module *m)
{
	const double *scale = m->state;
	yoke_tensor *w = m->child[0]->own[0].tensor, *added = yoke_matmul(m->own[B].tensor, m->own[A].tensor, 0);
	return yoke_assign(w, yoke_add(w, yoke_mul(added, yoke_const(*scale))));
}
