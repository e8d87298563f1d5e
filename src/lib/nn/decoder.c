// SPDX-License-Identifier: Apache-2.0
// The decoder as a model: embedding, blocks, norm and head, with a cache of keys and values for
// generation.
//
//     x = embed_scale embed[ids] (+ positions)              [B,T,E]
//     x = block(x)                                          `layers` times (decoder_block.c)
//     logits = logit_cap tanh(norm(x) head' / logit_cap)    [B,T,V]
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "nn/decoder.h"
#include "nn/model.h"
#include "nn/shard_layers.h"

// Indices of layers; norm and head follow the blocks, and after them the learned positions.
enum { EMBED, BLOCKS };
enum { NORM, HEAD, POSITIONS }; // + BLOCKS + number of blocks

static int check_rope(const struct yk_decoder *d, const struct yk_rope *r, const char *which)
{
	if (d->learned_positions)
		return 0;
	if (!(r->magnitude >= 0 && r->magnitude < 1e3))
		return yk_fail(YOKE_EINVAL, "%s: cosine and sine times %g; must be from 0 to 1000",
			       which, r->magnitude);
	if (!(r->base > 1) || isinf(r->base) || d->head_dim % 2 ||
	    d->head_dim > 2 * YK_ROPE_COLUMNS)
		return yk_fail(YOKE_EINVAL,
			       "%s: base %g with heads of %" PRId64
			       " columns; the base must be above 1, and the columns "
			       "an even number of at most %d",
			       which, r->base, d->head_dim, 2 * YK_ROPE_COLUMNS);
	const bool scaled = r->scaling == YK_ROPE_LINEAR || r->scaling == YK_ROPE_LLAMA3 ||
			    r->scaling == YK_ROPE_YARN;
	if (scaled && (!(r->factor > 0) || isinf(r->factor)))
		return yk_fail(YOKE_EINVAL, "%s: factor %g must be positive and finite", which,
			       r->factor);
	if (scaled && r->scaling != YK_ROPE_LINEAR &&
	    !(r->original > 0 && r->high > r->low && r->low > 0))
		return yk_fail(
			YOKE_EINVAL,
			"%s: original context %g, low %g, high %g: must be positive, and high above low",
			which, r->original, r->low, r->high);
	for (int64_t i = 0; r->scaling == YK_ROPE_DIVIDED && i < d->head_dim / 2; i++)
		if (!(r->divisor[i] > 0) || isinf(r->divisor[i]))
			return yk_fail(YOKE_EINVAL,
				       "%s: divisor %" PRId64
				       " is %g; it must be positive and finite",
				       which, i, (double)r->divisor[i]);
	return 0;
}

static int check(const struct yk_model_shape *s)
{
	const struct yk_decoder *d = &s->decoder;
	const int64_t limit = INT64_C(1) << 24;
	if (d->kv_heads < 1 || s->heads % d->kv_heads)
		return yk_fail(YOKE_EINVAL,
			       "%" PRId64 " heads of keys and values do not divide %" PRId64
			       " heads",
			       d->kv_heads, s->heads);
	if (d->head_dim < 1 || d->head_dim > 4096 || d->hidden < 1 || d->hidden > limit)
		return yk_fail(YOKE_EINVAL,
			       "heads of %" PRId64 " columns, mlp of width %" PRId64
			       ": out of bounds",
			       d->head_dim, d->hidden);
	const double sum =
		d->norm_eps + d->embed_scale + d->attention_scale + d->attention_cap + d->logit_cap;
	if (!isfinite(sum) || !(d->norm_eps >= 0) || !(d->embed_scale > 0) ||
	    !(d->attention_scale > 0) || !(d->attention_cap >= 0) || !(d->logit_cap >= 0))
		return yk_fail(
			YOKE_EINVAL,
			"norm_eps %g, embed_scale %g, attention_scale %g, caps %g and %g: out of bounds",
			d->norm_eps, d->embed_scale, d->attention_scale, d->attention_cap,
			d->logit_cap);
	if (s->context > d->positions)
		return yk_fail(YOKE_EINVAL,
			       "context=%" PRId64 " is more than the %" PRId64
			       " tokens that the model was made for",
			       s->context, d->positions);
	if (d->window < 0 || d->window_period < 0)
		return yk_fail(YOKE_EINVAL,
			       "window %" PRId64 " of every %" PRId64
			       " layers: must not be negative",
			       d->window, d->window_period);
	const int e = check_rope(d, &d->rope, "rope");
	return e || !d->window ? e : check_rope(d, &d->rope_local, "rope of layers with a window");
}

static int layers(const struct yk_model_shape *s, yoke_module *to)
{
	const struct yk_decoder *d = &s->decoder;
	int e = yoke_module_child(to, "embed", yk_nn_embedding(true, s->vocab, s->embed));
	for (int64_t i = 0; i < s->layers && !e; i++) {
		char name[40];
		snprintf(name, sizeof name, "layer%" PRId64, i);
		e = yoke_module_child(to, name, yk_decoder_block(d, s->embed, s->heads));
	}
	if (!e)
		e = yoke_module_child(to, "norm", yk_decoder_norm(d, s->embed));
	if (!e)
		e = yoke_module_child(to, "head",
				      d->tied ? yk_nn_linear_tied(yoke_module_at(to, EMBED)) :
						yk_nn_linear(true, s->embed, s->vocab, false));
	if (!e && d->learned_positions)
		e = yoke_module_child(to, "positions",
				      yk_nn_embedding(true, d->positions, s->embed));
	return e;
}

// Initial values for training from scratch, as GPT-2's.
static void first(const struct yk_model_shape *s, const char *name, struct yk_parameter *to)
{
	const double deviation = 0.02, residual = deviation / sqrt(2 * (double)s->layers);
	const char *norms[] = { "norm.weight", "norm1.weight", "norm2.weight", "post1.weight",
				"post2.weight" };
	for (size_t i = 0; i < sizeof norms / sizeof *norms; i++)
		to->value = to->value != 0 || yk_ends_with(name, norms[i]);
	if (to->value != 0 || yk_ends_with(name, ".bias"))
		return;
	to->decay = true;
	to->deviation =
		yk_ends_with(name, "attn.out.weight") || yk_ends_with(name, "mlp.down.weight") ?
			residual :
			deviation;
}

// Elements kept per token: the logits, and in each block the inputs of its products.
static double kept(const struct yk_model_shape *s)
{
	return (double)s->vocab +
	       (3 * (double)s->embed + (double)s->decoder.hidden) * (double)s->layers;
}

// ---- forward ----

// Positions [N,1] f32 of the rows of x: from `packed` [B,T], or at .. at + T - 1; at NULL: 0 .. T -
// 1.
static yoke_tensor *position_of(int64_t t, yoke_tensor *at, yoke_tensor *packed)
{
	const int64_t dims[] = { t, 1 };
	if (packed)
		return yoke_cast(yoke_reshape(packed, 2, (int64_t[]){ -1, 1 }), yoke_f32);
	yoke_tensor *position = yoke_iota(yoke_f32, 2, dims, 0);
	return at ? yoke_add(position, at) : position;
}

// cosine and sine [N,D/2] of positions [N,1]
static void add_rope(const struct yk_rope *r, int64_t head_dim, yoke_tensor *position,
		     struct yk_decoder_view *to)
{
	const int64_t half[] = { 1, head_dim / 2 };
	float frequency[YK_ROPE_COLUMNS];
	if (r->base == 0)
		return;
	yk_rope_frequencies(r, head_dim, frequency);
	yoke_tensor *angle = yoke_mul(position, yoke_from(yoke_f32, 2, half, frequency));
	to->cosine = yoke_cos(angle);
	to->sine = yoke_sin(angle);
	if (r->magnitude != 0 && r->magnitude != 1) {
		to->cosine = yoke_mul(to->cosine, yoke_const(r->magnitude));
		to->sine = yoke_mul(to->sine, yoke_const(r->magnitude));
	}
}

// bool [1|B,1,T,S]: may query t see key s? Not if the key is later or, with a window, too early, or
// if it belongs to another text than the query (`packed` [B,T]; NULL: there is one text).
static yoke_tensor *visible(int64_t t, int64_t s, yoke_tensor *at, int64_t window,
			    yoke_tensor *packed)
{
	const int64_t dims[] = { 1, 1, t, s };
	yoke_tensor *query = yoke_iota(yoke_i32, 4, dims, 2),
		    *key = yoke_iota(yoke_i32, 4, dims, 3);
	if (at)
		query = yoke_add(query, at);
	yoke_tensor *ok = yoke_le(key, query), *before = yoke_sub(query, key);
	if (window)
		ok = yoke_and(ok, yoke_lt(before, yoke_const((double)window)));
	if (packed)
		ok = yoke_and(ok,
			      yoke_le(before, yoke_reshape(packed, 4, (int64_t[]){ -1, 1, t, 1 })));
	return ok;
}

// s: keys that attention reads, t without a cache.
static struct yk_decoder_positions positions(const struct yk_decoder *d, int64_t t, int64_t s,
					     const struct yk_network_cache *c, yoke_tensor *packed)
{
	struct yk_decoder_positions p = { .at = c ? c->at : NULL, .seen = c ? c->seen : NULL };
	yoke_tensor *position = position_of(t, p.at, packed);
	add_rope(&d->rope, d->head_dim, position, &p.all);
	if (d->attention_cap > 0 || packed)
		p.all.mask = visible(t, s, p.at, 0, packed);
	if (!d->window)
		return p;
	add_rope(&d->rope_local, d->head_dim, position, &p.local);
	p.local.mask = s > d->window ? visible(t, s, p.at, d->window, packed) : p.all.mask;
	return p;
}

// The same for a step over a paged cache; attention itself hides the other tokens.
static struct yk_decoder_positions paged_positions(const struct yk_decoder *d,
						   const struct yk_network_step *step)
{
	struct yk_decoder_positions p = { .step = step };
	yoke_tensor *position = position_of(0, NULL, step->pos);
	add_rope(&d->rope, d->head_dim, position, &p.all);
	if (d->window)
		add_rope(&d->rope_local, d->head_dim, position, &p.local);
	return p;
}

// Learned positions [1|B,T,E]: of the first T tokens, of the caches' next tokens, or as given in
// `packed`.
static yoke_tensor *learned(const struct yk_network *n, struct yk_network_cache *const *c,
			    yoke_tensor *packed, int64_t b, int64_t t)
{
	const int64_t size[] = { t, n->shape.embed }, row[] = { 1, t, n->shape.embed };
	yoke_module *layer = yk_network_layer(n, BLOCKS + n->shape.layers + POSITIONS);
	yoke_tensor *table = yoke_module_own(layer, 0), *added[YK_SEQUENCES];
	if (packed)
		return yk_call_inside(layer, 1, &packed);
	if (!c)
		return yoke_slice(table, 0, 0, t, 1);
	for (int64_t r = 0; r < b; r++)
		added[r] = yoke_reshape(
			yoke_slice_at(table, (yoke_tensor *[]){ c[r]->at, YOKE_NONE }, size), 3,
			row);
	return b == 1 ? added[0] : yoke_concat((int)b, added, 0);
}

// ids [B,T] -> [B,T,E]
static yoke_tensor *embedded(const struct yk_network *n, struct yk_network_cache *const *c,
			     yoke_tensor *packed, yoke_tensor *ids)
{
	const struct yk_decoder *d = &n->shape.decoder;
	yoke_scope *s = yoke_scope_begin("embed");
	yoke_tensor *x = yk_call_inside(yk_network_layer(n, EMBED), 1, &ids);
	if (d->embed_scale != 1)
		x = yoke_mul(x, yoke_const(d->embed_scale));
	if (d->learned_positions)
		x = yoke_add(x, learned(n, c, packed, yoke_dim(ids, 0), yoke_dim(ids, 1)));
	x = yoke_lift(x);
	yoke_scope_end(s);
	return x;
}

// Passes x [B,T,E] through the blocks and the norm.
static yoke_tensor *blocks(const struct yk_network *n, struct yk_network_cache *const *c,
			   yoke_tensor *packed, yoke_tensor *x, double dropout)
{
	struct yk_decoder_positions p[YK_SEQUENCES];
	struct yk_decoder_kv kv[YK_SEQUENCES] = { 0 };
	const int64_t rows = c ? yoke_dim(x, 0) : 1, t = yoke_dim(x, 1);
	for (int64_t r = 0; r < rows; r++)
		p[r] = positions(&n->shape.decoder, t, c ? c[r]->capacity : t, c ? c[r] : NULL,
				 packed);
	for (int64_t i = 0; i < n->shape.layers; i++) {
		for (int64_t r = 0; c && r < rows; r++)
			kv[r] = (struct yk_decoder_kv){ c[r]->state.var[2 * i],
							c[r]->state.var[2 * i + 1] };
		x = yk_decoder_block_forward(yk_network_layer(n, BLOCKS + i), &n->shape.decoder, i,
					     p, c ? kv : NULL, x, dropout);
	}
	return yoke_call(yk_network_layer(n, BLOCKS + n->shape.layers + NORM), x);
}

static yoke_tensor *forward(const struct yk_network *n, yoke_tensor *ids, double dropout)
{
	yk_network_refresh(n);
	return blocks(n, NULL, NULL, yoke_dropout(embedded(n, NULL, NULL, ids), dropout), dropout);
}

static yoke_tensor *packed(const struct yk_network *n, yoke_tensor *ids, yoke_tensor *positions,
			   double dropout)
{
	yk_network_refresh(n);
	return blocks(n, NULL, positions, yoke_dropout(embedded(n, NULL, positions, ids), dropout),
		      dropout);
}

static yoke_tensor *logits(const struct yk_network *n, yoke_tensor *hidden)
{
	const double cap = n->shape.decoder.logit_cap;
	yk_network_refresh(n);
	yoke_tensor *y = yoke_call(yk_network_layer(n, BLOCKS + n->shape.layers + HEAD), hidden);
	return cap > 0 ? yoke_mul(yoke_tanh(yoke_mul(y, yoke_const(1 / cap))), yoke_const(cap)) : y;
}

// Keys and values of each layer: [1,C,G,D].
static void state(const struct yk_model_shape *s, struct yk_parameters *to)
{
	const int64_t dims[] = { 1, s->context, s->decoder.kv_heads, s->decoder.head_dim };
	for (int64_t i = 0; i < s->layers; i++) {
		yk_parameters_add(to, 4, dims, "cache.key");
		yk_parameters_add(to, 4, dims, "cache.value");
	}
}

static yoke_tensor *extend(const struct yk_network *n, struct yk_network_cache *const *c,
			   yoke_tensor *ids)
{
	yk_network_refresh(n);
	return blocks(n, c, NULL, embedded(n, c, NULL, ids), 0);
}

// Keys and values of each layer: [pages 16,G,D].
static void pages(const struct yk_model_shape *s, int64_t count, struct yk_parameters *to)
{
	const int64_t dims[] = { count * YK_PAGE, s->decoder.kv_heads, s->decoder.head_dim };
	for (int64_t i = 0; i < s->layers; i++) {
		yk_parameters_add(to, 3, dims, "pages.key");
		yk_parameters_add(to, 3, dims, "pages.value");
	}
}

static yoke_tensor *step(const struct yk_network *n, const struct yk_parameters *cache,
			 const struct yk_network_step *s)
{
	const struct yk_decoder *d = &n->shape.decoder;
	yk_network_refresh(n);
	const struct yk_decoder_positions p = paged_positions(d, s);
	yoke_tensor *x = embedded(n, NULL, yoke_reshape(s->pos, 2, (int64_t[]){ 1, -1 }), s->ids);
	for (int64_t i = 0; i < n->shape.layers; i++) {
		const struct yk_decoder_kv kv = { cache->var[2 * i], cache->var[2 * i + 1] };
		x = yk_decoder_block_forward(yk_network_layer(n, BLOCKS + i), d, i, &p, &kv, x, 0);
	}
	return yoke_call(yk_network_layer(n, BLOCKS + n->shape.layers + NORM), x);
}

static int describe(const struct yk_model_shape *s, json_t *to)
{
	return yk_decoder_describe(&s->decoder, to);
}

static int parse(const json_t *o, const char *what, struct yk_model_shape *to)
{
	return yk_decoder_parse(o, what, &to->decoder);
}

const struct yk_model yk_model_decoder = {
	.name = "decoder",
	.sizes = YK_HAS(layers) | YK_HAS(heads) | YK_HAS(embed),
	.describe = describe,
	.parse = parse,
	.check = check,
	.layers = layers,
	.first = first,
	.kept = kept,
	.before = BLOCKS,
	.forward = forward,
	.packed = packed,
	.logits = logits,
	.loss = yk_network_loss,
	.state = state,
	.extend = extend,
	.pages = pages,
	.step = step,
};
