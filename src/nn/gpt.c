// SPDX-License-Identifier: Apache-2.0
// GPT: a decoder of pre-norm blocks with learned positions and a tied head (Radford et
// al. 2019).
//
//     h = wte[ids] + wpe                                        [B,T,E]
//     h = h + proj(attention(qkv(norm(h))));  h = h + down(gelu(up(norm(h))))    `layers` times
//     logits = norm(h) wte'                                     [B,T,V]
//
// Scopes are "embed", "layer0/attn" and "layer0/mlp" with "norm" in them, "norm", "head".
// Linear weights are [out,in].  Dropped are shares of the embedding, of attention weights and of what
// each half of a block adds.
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "nn/model.h"

#define NORM_EPS 1e-5 // GPT-2's

// ---- parameters ----

// By place: the two embeddings, the layers with so many each, the last norm.
enum { WTE, WPE, LAYERS };
enum {
	NORM1_W, NORM1_B, QKV_W, QKV_B, PROJ_W, PROJ_B,
	NORM2_W, NORM2_B, UP_W, UP_B, DOWN_W, DOWN_B, IN_LAYER
};

static yoke_tensor *const *layer_of(const struct yk_network *n, int64_t layer)
{
	return n->params.var + LAYERS + IN_LAYER * layer;
}

static int check(const struct yk_model_shape *s)
{
	if (s->embed % s->heads == 0)
		return 0;
	return yk_fail(YOKE_EINVAL, "heads=%" PRId64 " does not divide embed=%" PRId64 "; choose "
		       "heads that do", s->heads, s->embed);
}

static void norm(struct yk_parameters *to, int64_t e, const char *at, const char *name)
{
	yk_parameters_vector(to, e, 1, "%s%s.weight", at, name);
	yk_parameters_vector(to, e, 0, "%s%s.bias", at, name);
}

static void linear(struct yk_parameters *to, int64_t out, int64_t in, double deviation,
		   const char *at, const char *name)
{
	yk_parameters_matrix(to, out, in, deviation, "%s%s.weight", at, name);
	yk_parameters_vector(to, out, 0, "%s%s.bias", at, name);
}

static void parameters(const struct yk_model_shape *s, struct yk_parameters *to)
{
	// Radford et al. 2019, as is the scale of the projections back into the residual stream
	const double deviation = 0.02, residual = deviation / sqrt(2 * (double)s->layers);
	int64_t e = s->embed;
	yk_parameters_matrix(to, s->vocab, e, deviation, "wte.weight");
	yk_parameters_matrix(to, s->context, e, deviation, "wpe.weight");
	for (int64_t i = 0; i < s->layers; i++) {
		char at[40];
		snprintf(at, sizeof at, "layer%" PRId64 ".", i);
		norm(to, e, at, "norm1");
		linear(to, 3 * e, e, deviation, at, "attn.qkv");
		linear(to, e, e, residual, at, "attn.proj");
		norm(to, e, at, "norm2");
		linear(to, 4 * e, e, deviation, at, "mlp.up");
		linear(to, e, 4 * e, residual, at, "mlp.down");
	}
	norm(to, e, "", "norm");
}

static const struct yk_shard_rule *rules(const struct yk_model_shape *s)
{
	static const struct yk_shard_rule table[] = {
		{ "wte.weight", YK_VOCAB, 0 },
		{ "layer*.attn.qkv.*", YK_COLUMN, 3 }, // some heads of each third
		{ "layer*.attn.proj.weight", YK_ROW, 0 },
		{ "layer*.mlp.up.*", YK_COLUMN, 0 },
		{ "layer*.mlp.down.weight", YK_ROW, 0 },
		{ 0 },
	};
	(void)s;
	return table;
}

// Its logits, and in each layer the inputs of four products.
static double kept(const struct yk_model_shape *s)
{
	return (double)s->vocab + 4 * (double)s->embed * (double)s->layers;
}

// ---- forward ----

// Heads of one third of qkv [B,T,3E], or a cut of that by heads: a view [B,T,H,D].
static yoke_tensor *heads(const struct yk_network *n, yoke_tensor *qkv, int third)
{
	int64_t e = yoke_dim(qkv, 2) / 3, h = n->shape.heads * e / n->shape.embed;
	yoke_tensor *x = yoke_slice(qkv, -1, third * e, (third + 1) * e, 1);
	const int64_t dims[] = { yoke_dim(qkv, 0), yoke_dim(qkv, 1), h, e / h };
	return yoke_reshape(x, 4, dims);
}

// Row i of x, which is x itself where there is no other.
static yoke_tensor *row_of(yoke_tensor *x, int64_t i)
{
	return yoke_dim(x, 0) == 1 ? x : yoke_slice(x, 0, i, i + 1, 1);
}

// q [1,T,H,D] over the keys and values in a layer's cache, which k and v [1,T,H,D] join.
static yoke_tensor *cached(const struct yk_network_cache *c, int64_t layer, yoke_tensor *q,
			   yoke_tensor *k, yoke_tensor *v)
{
	yoke_tensor *start[] = { YOKE_NONE, c->at, YOKE_NONE, YOKE_NONE };
	yoke_tensor *keys = c->state.var[2 * layer], *values = c->state.var[2 * layer + 1];
	yoke_assign_at(keys, start, k);
	yoke_assign_at(values, start, v);
	return yoke_attention_keys(q, keys, values, c->seen, YOKE_NONE, 1, 0, 0);
}

static yoke_tensor *normed(yoke_tensor *x, yoke_tensor *w, yoke_tensor *b)
{
	yoke_scope *s = yoke_scope_begin("norm");
	yoke_tensor *y = yoke_lift(yoke_layer_norm(x, w, b, NORM_EPS));
	yoke_scope_end(s);
	return y;
}

// The same for B sequences, each with a cache: [B,T,H,D].
static yoke_tensor *cached_rows(struct yk_network_cache *const *c, int64_t layer, yoke_tensor *q,
				yoke_tensor *k, yoke_tensor *v)
{
	yoke_tensor *y[YK_SEQUENCES];
	int rows = (int)yoke_dim(q, 0);
	for (int i = 0; i < rows; i++)
		y[i] = cached(c[i], layer, row_of(q, i), row_of(k, i), row_of(v, i));
	return rows == 1 ? y[0] : yoke_concat(rows, y, 0);
}

// x [B,T,E] -> [B,T,E]; cache: NULL, or where the keys of each row's earlier tokens are
static yoke_tensor *attention(const struct yk_network *n, int64_t layer,
			      struct yk_network_cache *const *cache, yoke_tensor *x, double dropout)
{
	yoke_tensor *const *l = layer_of(n, layer);
	yoke_tensor *h = normed(x, l[NORM1_W], l[NORM1_B]);
	yoke_tensor *qkv = yk_shard_column(n, h, l[QKV_W], l[QKV_B]);
	yoke_tensor *q = heads(n, qkv, 0), *k = heads(n, qkv, 1), *v = heads(n, qkv, 2);
	yoke_scope *own = yk_shard_begin(n);
	yoke_tensor *y = cache ? cached_rows(cache, layer, q, k, v) :
				 yoke_attention(q, k, v, YOKE_NONE, 1, 0, dropout);
	y = yk_shard_end(own, y);
	y = yoke_reshape(y, 3, (int64_t[]){ yoke_dim(x, 0), yoke_dim(x, 1), yoke_dim(qkv, 2) / 3 });
	return yk_shard_row(n, y, l[PROJ_W], l[PROJ_B]);
}

// x [B,T,E] -> [B,T,E]
static yoke_tensor *perceptron(const struct yk_network *n, yoke_tensor *const *l, yoke_tensor *x)
{
	yoke_tensor *h = normed(x, l[NORM2_W], l[NORM2_B]);
	h = yoke_gelu_tanh(yk_shard_column(n, h, l[UP_W], l[UP_B]));
	return yk_shard_row(n, h, l[DOWN_W], l[DOWN_B]);
}

// What one half of a block adds to x, recorded in a scope of its own ("layer3/attn").
static yoke_tensor *half(const struct yk_network *n, int64_t layer, bool attn,
			 struct yk_network_cache *const *cache, yoke_tensor *x, double dropout)
{
	char name[40];
	snprintf(name, sizeof name, "layer%" PRId64 "/%s", layer, attn ? "attn" : "mlp");
	yoke_scope *s = yoke_scope_begin(name);
	yoke_tensor *y = attn ? attention(n, layer, cache, x, dropout) :
				perceptron(n, layer_of(n, layer), x);
	y = yoke_lift(yoke_dropout(y, dropout));
	yoke_scope_end(s);
	return y;
}

// ids [B,T], their positions' rows of wpe [T,E] or [B,T,E] -> [B,T,E]
static yoke_tensor *blocks(const struct yk_network *n, struct yk_network_cache *const *cache,
			   yoke_tensor *ids, yoke_tensor *wpe, double dropout)
{
	yoke_tensor *const *last = layer_of(n, n->shape.layers);
	yoke_scope *s = yoke_scope_begin("embed");
	yoke_tensor *x = yoke_lift(yoke_add(yk_shard_embedding(n, n->params.var[WTE], ids), wpe));
	yoke_scope_end(s);
	x = yoke_dropout(x, dropout);
	for (int64_t i = 0; i < 2 * n->shape.layers; i++)
		x = yoke_add(x, half(n, i / 2, i % 2 == 0, cache, x, dropout));
	return normed(x, last[0], last[1]);
}

static yoke_tensor *forward(const struct yk_network *n, yoke_tensor *ids, double dropout)
{
	int64_t t = yoke_dim(ids, 1);
	yoke_tensor *wpe = n->params.var[WPE];
	if (t < n->shape.context)
		wpe = yoke_slice(wpe, 0, 0, t, 1);
	return blocks(n, NULL, ids, wpe, dropout);
}

static yoke_tensor *logits(const struct yk_network *n, yoke_tensor *hidden)
{
	yoke_scope *s = yoke_scope_begin("head");
	yoke_tensor *y = yoke_lift(yk_shard_column(n, hidden, n->params.var[WTE], YOKE_NONE));
	yoke_scope_end(s);
	return y;
}

// ---- one token after another ----

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
	for (int i = 0; i < rows; i++) {
		wpe[i] = yoke_slice_at(n->params.var[WPE], (yoke_tensor *[]){ c[i]->at, YOKE_NONE },
				       size);
		if (rows > 1)
			wpe[i] = yoke_reshape(wpe[i], 3, row);
	}
	return blocks(n, c, ids, rows == 1 ? wpe[0] : yoke_concat(rows, wpe, 0), 0);
}

const struct yk_model yk_model_gpt = {
	.name = "gpt", .sizes = YK_HAS(layers) | YK_HAS(heads) | YK_HAS(embed),
	.check = check, .parameters = parameters, .rules = rules, .cuts = YK_HAS(heads), .kept = kept,
	.forward = forward, .logits = logits, .loss = yk_network_loss,
	.state = state, .extend = extend,
};
