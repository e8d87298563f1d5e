// SPDX-License-Identifier: Apache-2.0
// GPT: a decoder of pre-norm blocks with learned positions and a tied head (Radford et al. 2019).
//
//     h = wte[ids] + wpe                                        [B,T,E]
//     h = h + proj(attention(qkv(norm(h))));  h = h + down(gelu(up(norm(h))))    `layers` times
//     logits = norm(h) wte'                                     [B,T,V]
//
// Scopes are "embed", "layer0/attn" and "layer0/mlp" with "norm" in them, "norm", "head".
// With tied=0 the head has its own matrix.  Linear weights are [out,in].  Dropout applies to the
// embedding, to attention weights and to the output of each half of a block.
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "nn/model.h"
#include "nn/shard_layers.h"

#define NORM_EPS 1e-5 // GPT-2's

// ---- layers ----

// Indices of layers; the last norm and the head follow the blocks.
enum { WTE, WPE, BLOCKS };

static int check(const struct yk_model_shape *s)
{
	if (s->embed % s->heads == 0)
		return 0;
	return yk_fail(YOKE_EINVAL, "heads=%" PRId64 " does not divide embed=%" PRId64 "; choose "
		       "heads that do", s->heads, s->embed);
}

// The first word of the key's choices.
static bool is_tied(const struct yk_model_shape *s)
{
	return s->tied == 0;
}

static int layers(const struct yk_model_shape *s, yoke_module *to)
{
	const struct yoke_nn_attention_options o = {
		.size = sizeof o,
		.width = s->embed,
		.heads = s->heads,
		.causal = 1,
		.bias = 1,
		.fused = 1,
		.activation = "gelu_tanh",
	};
	int e = yoke_module_child(to, "wte", yk_nn_embedding(true, s->vocab, s->embed));
	if (!e)
		e = yoke_module_child(to, "wpe", yk_nn_embedding(true, s->context, s->embed));
	for (int64_t i = 0; i < s->layers && !e; i++) {
		char name[40];
		snprintf(name, sizeof name, "layer%" PRId64, i);
		e = yoke_module_child(to, name, yk_nn_block(true, &o));
	}
	if (!e)
		e = yoke_module_child(to, "norm", yk_nn_layer_norm(true, s->embed, NORM_EPS));
	return e ? e :
		   yoke_module_child(to, "head",
				     is_tied(s) ? yk_nn_linear_tied(yoke_module_at(to, WTE)) :
						  yk_nn_linear(true, s->embed, s->vocab, false));
}

static void first(const struct yk_model_shape *s, const char *name, struct yk_parameter *to)
{
	// Radford et al. 2019, as is the scale of the projections back into the residual stream
	const double deviation = 0.02, residual = deviation / sqrt(2 * (double)s->layers);
	const bool norm = yk_ends_with(name, "norm.weight") || yk_ends_with(name, "norm1.weight") ||
			  yk_ends_with(name, "norm2.weight");
	if (yk_ends_with(name, ".bias") || norm) {
		to->value = norm;
		return;
	}
	to->decay = true;
	to->deviation =
		yk_ends_with(name, "attn.proj.weight") || yk_ends_with(name, "mlp.down.weight") ?
			residual :
			deviation;
}

static const struct yk_shard_rule *rules(const struct yk_model_shape *s)
{
	static const struct yk_shard_rule table[] = {
		{ "wte.weight", YK_VOCAB, 0 },
		{ "layer*.attn.qkv.*", YK_COLUMN, 3 }, // some heads of each of q, k and v
		{ "layer*.attn.proj.weight", YK_ROW, 0 },
		{ "layer*.mlp.up.*", YK_COLUMN, 0 },
		{ "layer*.mlp.down.weight", YK_ROW, 0 },
		{ "head.weight", YK_VOCAB, 0 },
		{ 0 },
	};
	(void)s;
	return table;
}

// Elements kept per token: the logits, and in each layer the inputs of four products.
static double kept(const struct yk_model_shape *s)
{
	return (double)s->vocab + 4 * (double)s->embed * (double)s->layers;
}

static int64_t width(const struct yk_network *n, int64_t block)
{
	(void)block;
	return n->shape.embed;
}

// Multiply-adds per token. For a block: its products, and on average half of a window's keys and
// values.
static double work(const struct yk_model_shape *s, int64_t i)
{
	const double e = (double)s->embed;
	return i < s->layers ? 12 * e * e + e * (double)s->context : e * (double)s->vocab;
}

// ---- forward ----

static yoke_tensor *weight_of(const struct yk_network *n, int layer)
{
	return yoke_module_own(yk_network_layer(n, layer), 0);
}

// Operands of layer i: x, and for each row's cache its keys, values, the position of the first new
// token and the number of tokens including the new ones.
static int operands(struct yk_network_cache *const *c, int64_t rows, int64_t i, yoke_tensor **in)
{
	int n = 1;
	for (int64_t r = 0; c && r < rows; r++) {
		in[n++] = c[r]->state.var[2 * i];
		in[n++] = c[r]->state.var[2 * i + 1];
		in[n++] = c[r]->at;
		in[n++] = c[r]->seen;
	}
	return n;
}

// ids [B,T], rows of wpe for their positions [T,E] or [B,T,E] -> [B,T,E]
static yoke_tensor *embedded(const struct yk_network *n, yoke_tensor *ids, yoke_tensor *wpe)
{
	yoke_scope *s = yoke_scope_begin("embed");
	yoke_tensor *x =
		yoke_lift(yoke_add(yk_call_inside(yk_network_layer(n, WTE), 1, &ids), wpe));
	yoke_scope_end(s);
	return x;
}

// Passes x [B,T,E] through this stage's blocks and, on the last stage, the norm; cache: NULL, or
// the caches with the keys of each row's earlier tokens
static yoke_tensor *blocks(const struct yk_network *n, struct yk_network_cache *const *cache,
			   yoke_tensor *x, double dropout)
{
	yoke_tensor *in[1 + 4 * YK_SEQUENCES];
	for (int64_t i = n->stage.from; i < n->stage.to; i++) {
		yoke_module *block = yk_network_layer(n, BLOCKS + i);
		const int operand = operands(cache, yoke_dim(x, 0), i, in);
		in[0] = x;
		yk_block_dropout(block, dropout);
		yoke_forward(block, operand, in, 1, &x);
	}
	return n->stage.to < n->shape.layers ?
		       x :
		       yoke_call(yk_network_layer(n, BLOCKS + n->shape.layers), x);
}

static yoke_tensor *forward(const struct yk_network *n, yoke_tensor *x, double dropout)
{
	int64_t t = yoke_dim(x, 1);
	yk_network_refresh(n);
	if (n->stage.from > 0)
		return blocks(n, NULL, x, dropout);
	yoke_tensor *wpe = weight_of(n, WPE);
	if (t < n->shape.context)
		wpe = yoke_slice(wpe, 0, 0, t, 1);
	return blocks(n, NULL, yoke_dropout(embedded(n, x, wpe), dropout), dropout);
}

static yoke_tensor *logits(const struct yk_network *n, yoke_tensor *hidden)
{
	yk_network_refresh(n);
	return yoke_call(yk_network_layer(n, BLOCKS + n->shape.layers + 1), hidden);
}

// ---- generation with a cache ----

// Keys and values of each layer: [1,C,H,D].
static void state(const struct yk_model_shape *s, struct yk_parameters *to)
{
	const int64_t dims[] = { 1, s->context, s->heads, s->embed / s->heads };
	for (int64_t i = 0; i < s->layers; i++) {
		yk_parameters_add(to, 4, dims, "cache.key");
		yk_parameters_add(to, 4, dims, "cache.value");
	}
}

static yoke_tensor *extend(const struct yk_network *n, struct yk_network_cache *const *c,
			   yoke_tensor *ids)
{
	yoke_tensor *wpe[YK_SEQUENCES];
	const int64_t size[] = { yoke_dim(ids, 1), n->shape.embed },
		      row[] = { 1, size[0], size[1] };
	int rows = (int)yoke_dim(ids, 0);
	yk_network_refresh(n);
	for (int i = 0; i < rows; i++) {
		wpe[i] = yoke_slice_at(weight_of(n, WPE), (yoke_tensor *[]){ c[i]->at, YOKE_NONE },
				       size);
		if (rows > 1)
			wpe[i] = yoke_reshape(wpe[i], 3, row);
	}
	return blocks(n, c, embedded(n, ids, rows == 1 ? wpe[0] : yoke_concat(rows, wpe, 0)), 0);
}

const struct yk_model yk_model_gpt = {
	.name = "gpt",
	.sizes = YK_HAS(layers) | YK_HAS(heads) | YK_HAS(embed),
	.traits = YK_HAS_TRAIT(tied),
	.check = check,
	.layers = layers,
	.first = first,
	.rules = rules,
	.sharded = YK_HAS(heads),
	.kept = kept,
	.width = width,
	.work = work,
	.before = BLOCKS,
	.forward = forward,
	.logits = logits,
	.loss = yk_network_loss,
	.state = state,
	.extend = extend,
};
