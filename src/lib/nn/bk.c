// SPDX-License-Identifier: Apache-2.0
// BK: layers of experts, with the resolvent of a tridiagonal matrix instead of attention.
//
//     h = tok[ids] + pos                                               [B,T,E]
//     x = norm(h), f = moe(x), v = clamp(f.w + w0, +-v_max),
//     e = clamp(resolvent(v - 2, i eta), +-feature_clamp)
//     h = h + f + s (e W' + u)                                         repeated `layers` times
//     logits = norm(h) U' + u'                                         [B,T,V]
//
// The matrix has v - 2 on its diagonal and ones next to it. With bk_side=left a token sees only the
// tokens before it, and generation carries one complex number per layer: 1/L of the last token.
// Scopes are "embed", "layer0/moe" and "layer0/bk", "norm", "head".
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "nn/moe.h"

#define NORM_EPS 1e-5

// Indices of parameters: the two embeddings, the parameters of each layer, the last norm, the head.
enum { TOK, POS, LAYERS };
enum {
	NORM_W,
	NORM_B,
	MOE,
	V_W = MOE + YK_MOE_PARAMETERS,
	V_B,
	FEATURE_W,
	FEATURE_B,
	SCALE,
	IN_LAYER
};
enum { LAST_W, LAST_B, HEAD_W, HEAD_B };

static yoke_tensor *const *layer_of(const struct yk_network *n, int64_t layer)
{
	return n->params.var + LAYERS + IN_LAYER * layer;
}

static int check(const struct yk_model_shape *s)
{
	if (s->active_experts > s->experts)
		return yk_fail(YOKE_EINVAL,
			       "active_experts=%" PRId64 " is more than experts=%" PRId64
			       "; choose less",
			       s->active_experts, s->experts);
	if (s->gate != 0 && s->active_experts != 1)
		return yk_fail(YOKE_EINVAL,
			       "gate=none takes active_experts=1, not %" PRId64
			       "; several experts are weighed by gate=p",
			       s->active_experts);
	return 0;
}

static bool leaks(const struct yk_model_shape *s)
{
	return s->bk_side != 0;
}

static void parameters(const struct yk_model_shape *s, struct yk_parameters *to)
{
	// the branch is initialized like a linear layer, uniform in +-1/sqrt(n) for n inputs, so
	// that it matters at once
	const double deviation = 0.02, branch = 1 / sqrt(3);
	const int64_t e = s->embed;
	yk_parameters_matrix(to, s->vocab, e, deviation, "tok.weight");
	yk_parameters_matrix(to, s->context, e, deviation, "pos.weight");
	for (int64_t i = 0; i < s->layers; i++) {
		char at[40];
		snprintf(at, sizeof at, "layer%" PRId64 ".", i);
		yk_parameters_vector(to, e, 1, "%snorm.weight", at);
		yk_parameters_vector(to, e, 0, "%snorm.bias", at);
		yk_moe_parameters(to, e, s->experts, at);
		yk_parameters_matrix(to, 1, e, branch / sqrt((double)e), "%spotential.weight", at);
		yk_parameters_vector(to, 1, 0, "%spotential.bias", at);
		yk_parameters_matrix(to, e, 2, branch / sqrt(2), "%sfeature.weight", at);
		yk_parameters_vector(to, e, 0, "%sfeature.bias", at);
		yk_parameters_vector(to, 1, 1, "%sscale", at);
	}
	yk_parameters_vector(to, e, 1, "norm.weight");
	yk_parameters_vector(to, e, 0, "norm.bias");
	yk_parameters_matrix(to, s->vocab, e, deviation, "head.weight");
	yk_parameters_vector(to, s->vocab, 0, "head.bias");
}

// Elements kept per token: the logits, and in each layer the inputs of the experts' two products.
static double kept(const struct yk_model_shape *s)
{
	return (double)s->vocab + 3 * (double)(s->embed * s->layers) * (double)s->active_experts;
}

// ---- the branch ----

static struct yoke_resolvent how_of(const struct yk_model_shape *s)
{
	static const struct {
		int tier, half;
	} tiers[] = { { YOKE_TIER_F32, yoke_f16 },
		      { YOKE_TIER_F64, yoke_f16 },
		      { YOKE_TIER_MIXED, yoke_f16 },
		      { YOKE_TIER_HALF, yoke_f16 },
		      { YOKE_TIER_HALF, yoke_bf16 } };
	struct yoke_resolvent how = YOKE_RESOLVENT_INIT;
	how.side = s->bk_side != 0 ? YOKE_SIDE_BOTH : YOKE_SIDE_LEFT;
	how.tier = tiers[(int)s->bk_tier].tier;
	how.half = tiers[(int)s->bk_tier].half;
	how.sweeps = (int)s->bk_sweeps;
	how.gradient = YOKE_GRADIENT_EXACT + (int)s->bk_gradient;
	how.blend = s->bk_blend;
	return how;
}

// i eta as a complex number, in a dtype
static yoke_tensor *energy(const struct yk_network *n, int dtype)
{
	const int64_t one = 1;
	return yoke_concat(2,
			   (yoke_tensor *[]){ yoke_full(dtype, 1, &one, 0),
					      yoke_full(dtype, 1, &one, n->shape.eta) },
			   0);
}

// One recurrence step for a new token: G = 1 / (a - i eta - was), a [1,1], was and G [1,1,2]
static yoke_tensor *stepped(const struct yk_network *n, yoke_tensor *a, yoke_tensor *was)
{
	const int64_t dims[] = { 1, 1, 1 };
	yoke_tensor *re = yoke_sub(yoke_reshape(a, 3, dims), yoke_slice(was, 2, 0, 1, 1));
	yoke_tensor *im = yoke_sub(yoke_const(-n->shape.eta), yoke_slice(was, 2, 1, 2, 1));
	yoke_tensor *square = yoke_add(yoke_square(re), yoke_square(im));
	return yoke_concat(
		2, (yoke_tensor *[]){ yoke_div(re, square), yoke_div(yoke_neg(im), square) }, 2);
}

// The tokens a [1,T] of a sequence: all of it, or those after the cached ones.
static yoke_tensor *carried(const struct yk_network *n, const struct yk_network_cache *c,
			    int64_t layer, yoke_tensor *a, const struct yoke_resolvent *how)
{
	const int64_t t = yoke_dim(a, 1);
	yoke_tensor *last = c->state.var[layer], *y, *g = last;
	if (!c->length) {
		y = yoke_resolvent(a, YOKE_NONE, YOKE_NONE, energy(n, yoke_dtype(a)), how);
		g = yoke_slice(y, 1, t - 1, t, 1);
	} else {
		y = NULL;
		for (int64_t i = 0; i < t; i++) {
			g = stepped(n, yoke_slice(a, 1, i, i + 1, 1), g);
			y = i ? yoke_concat(2, (yoke_tensor *[]){ y, g }, 1) : g;
		}
	}
	yoke_assign(last, g);
	return y;
}

// f [B,T,E] -> the branch to be added to h
static yoke_tensor *branch(const struct yk_network *n, int64_t layer,
			   struct yk_network_cache *const *cache, yoke_tensor *f)
{
	yoke_tensor *const *l = layer_of(n, layer);
	const struct yk_model_shape *s = &n->shape;
	const struct yoke_resolvent how = how_of(s);
	const int64_t rows = yoke_dim(f, 0), t = yoke_dim(f, 1);
	yoke_tensor *v =
		yoke_reshape(yk_network_linear(n, f, l[V_W], l[V_B]), 2, (int64_t[]){ rows, t });
	v = yoke_clamp(yoke_cast(v, yoke_f32), yoke_const(-s->v_max), yoke_const(s->v_max));
	yoke_tensor *a = yoke_sub(v, yoke_const(2)), *e, *each[YK_SEQUENCES];
	if (cache) {
		for (int64_t i = 0; i < rows; i++)
			each[i] = carried(n, cache[i], layer,
					  rows == 1 ? a : yoke_slice(a, 0, i, i + 1, 1), &how);
		e = rows == 1 ? each[0] : yoke_concat((int)rows, each, 0);
	} else {
		e = yoke_resolvent(a, YOKE_NONE, YOKE_NONE, energy(n, yoke_dtype(a)), &how);
	}
	e = yoke_clamp(e, yoke_const(-s->feature_clamp), yoke_const(s->feature_clamp));
	return yoke_mul(yk_network_linear(n, e, l[FEATURE_W], l[FEATURE_B]), l[SCALE]);
}

// ---- layers ----

static yoke_tensor *normed(yoke_tensor *x, yoke_tensor *w, yoke_tensor *b)
{
	yoke_scope *s = yoke_scope_begin("norm");
	yoke_tensor *y = yoke_lift(yoke_layer_norm(x, w, b, NORM_EPS));
	yoke_scope_end(s);
	return y;
}

static yoke_tensor *layer(const struct yk_network *n, int64_t i,
			  struct yk_network_cache *const *cache, yoke_tensor *h, double dropout,
			  yoke_tensor **balance, yoke_tensor **share)
{
	yoke_tensor *const *l = layer_of(n, i);
	char name[40];
	snprintf(name, sizeof name, "layer%" PRId64 "/moe", i);
	yoke_scope *s = yoke_scope_begin(name);
	const struct yk_moe moe = { .embed = n->shape.embed,
				    .experts = n->shape.experts,
				    .active_experts = n->shape.active_experts,
				    .gated = n->shape.gate == 0,
				    .dropout = dropout,
				    .var = l + MOE };
	yoke_tensor *f =
		yoke_lift(yk_moe(n, &moe, normed(h, l[NORM_W], l[NORM_B]), balance, share));
	yoke_scope_end(s);
	snprintf(name, sizeof name, "layer%" PRId64 "/bk", i);
	s = yoke_scope_begin(name);
	yoke_tensor *y = yoke_lift(yoke_add(yoke_add(h, f), branch(n, i, cache, f)));
	yoke_scope_end(s);
	return y;
}

// Assigns the fractions of tokens of all layers, [experts] each, to the network's variable.
static void note(const struct yk_network *n, yoke_tensor *const *share)
{
	yoke_tensor *all = share[0];
	for (int64_t i = 1; i < n->shape.layers; i++)
		all = yoke_concat(2, (yoke_tensor *[]){ all, share[i] }, 0);
	yoke_assign(n->shares,
		    yoke_reshape(all, 2, (int64_t[]){ n->shape.layers, n->shape.experts }));
}

// ids [B,T], rows of pos [T,E] or [B,T,E] -> [B,T,E]; balance: NULL, or the sum over layers
static yoke_tensor *blocks(const struct yk_network *n, struct yk_network_cache *const *cache,
			   yoke_tensor *ids, yoke_tensor *pos, double dropout,
			   yoke_tensor **balance)
{
	yoke_tensor *const *last = layer_of(n, n->shape.layers);
	yoke_tensor *each = NULL, *sum = NULL,
		    **share = calloc((size_t)n->shape.layers, sizeof *share);
	if (!share) {
		yk_fail(YOKE_ENOMEM, "bk: no memory");
		return NULL;
	}
	yoke_scope *s = yoke_scope_begin("embed");
	yoke_tensor *h = yoke_lift(yoke_add(yoke_embedding(n->params.var[TOK], ids), pos));
	yoke_scope_end(s);
	for (int64_t i = 0; i < n->shape.layers; i++) {
		h = layer(n, i, cache, h, dropout, &each, &share[i]);
		sum = i ? yoke_add(sum, each) : each;
	}
	if (balance)
		*balance = sum;
	if (balance && n->shares)
		note(n, share);
	free(share);
	return normed(h, last[LAST_W], last[LAST_B]);
}

static yoke_tensor *positions(const struct yk_network *n, yoke_tensor *ids)
{
	const int64_t t = yoke_dim(ids, 1);
	return t < n->shape.context ? yoke_slice(n->params.var[POS], 0, 0, t, 1) :
				      n->params.var[POS];
}

static yoke_tensor *forward(const struct yk_network *n, yoke_tensor *ids, double dropout)
{
	return blocks(n, NULL, ids, positions(n, ids), dropout, NULL);
}

static yoke_tensor *logits(const struct yk_network *n, yoke_tensor *hidden)
{
	yoke_tensor *const *last = layer_of(n, n->shape.layers);
	yoke_scope *s = yoke_scope_begin("head");
	yoke_tensor *y = yoke_lift(yk_network_linear(n, hidden, last[HEAD_W], last[HEAD_B]));
	yoke_scope_end(s);
	return y;
}

// Includes the weighted loss that balances tokens over experts.
static yoke_tensor *loss(const struct yk_network *n, yoke_tensor *ids, yoke_tensor *targets,
			 double dropout)
{
	yoke_tensor *balance = NULL,
		    *h = blocks(n, NULL, ids, positions(n, ids), dropout, &balance);
	yoke_tensor *y = yoke_cross_entropy(logits(n, h), targets, -1, 0);
	return n->shape.balance > 0 ? yoke_add(y, yoke_mul(balance, yoke_const(n->shape.balance))) :
				      y;
}

// ---- generation with a cache ----

// For each layer 1/L of the last token: [1,1,2].
static void state(const struct yk_model_shape *s, struct yk_parameters *to)
{
	for (int64_t i = 0; i < s->layers; i++)
		yk_parameters_add(to, 3, (int64_t[]){ 1, 1, 2 }, "cache.inverse");
}

static yoke_tensor *extend(const struct yk_network *n, struct yk_network_cache *const *c,
			   yoke_tensor *ids)
{
	yoke_tensor *pos[YK_SEQUENCES];
	const int64_t size[] = { yoke_dim(ids, 1), n->shape.embed },
		      row[] = { 1, size[0], size[1] };
	const int rows = (int)yoke_dim(ids, 0);
	if (leaks(&n->shape)) {
		yk_fail(YOKE_EINVAL,
			"bk: with bk_side=both a token depends on later tokens, so text cannot be continued; "
			"train with bk_side=left");
		return NULL;
	}
	for (int i = 0; i < rows; i++)
		pos[i] = yoke_reshape(yoke_slice_at(n->params.var[POS],
						    (yoke_tensor *[]){ c[i]->at, YOKE_NONE }, size),
				      3, row);
	return blocks(n, c, ids, rows == 1 ? pos[0] : yoke_concat(rows, pos, 0), 0, NULL);
}

const struct yk_model yk_model_bk = {
	.name = "bk",
	.sizes = YK_HAS(layers) | YK_HAS(embed) | YK_HAS(experts) | YK_HAS(active_experts),
	.traits = YK_HAS_TRAIT(gate) | YK_HAS_TRAIT(balance) | YK_HAS_TRAIT(eta) |
		  YK_HAS_TRAIT(v_max) | YK_HAS_TRAIT(feature_clamp) | YK_HAS_TRAIT(bk_side) |
		  YK_HAS_TRAIT(bk_tier) | YK_HAS_TRAIT(bk_sweeps) | YK_HAS_TRAIT(bk_gradient) |
		  YK_HAS_TRAIT(bk_blend),
	.check = check,
	.leaks = leaks,
	.choices = true,
	.parameters = parameters,
	.kept = kept,
	.forward = forward,
	.logits = logits,
	.loss = loss,
	.state = state,
	.recurrent = true,
	.extend = extend,
};
