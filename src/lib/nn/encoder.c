// SPDX-License-Identifier: Apache-2.0
// The encoder of the BERT family (Devlin et al. 2018): learned positions and token types, a norm
// after each half of a block, GELU with erf.
//
//     x = norm(embed[ids] + positions + types[0])                  [B,T,E]
//     x = norm1(x + out(attention(q x, k x, v x)));
//         x = norm2(x + down(gelu(up x)))                          `layers` times
#include "config.h"

#include "nn/encoder.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "base/number.h"

// Indices of layers; the blocks follow.
enum { EMBED, POSITIONS, TYPES, NORM, BLOCKS };
// Children of a block, of its attention and of its mlp.
enum { ATTN, NORM1, MLP, NORM2 };
enum { Q, K, V, OUT };
enum { UP, DOWN };

static int check(const struct yk_model_shape *s)
{
	const struct yk_decoder *d = &s->decoder;
	if (s->embed % s->heads || d->head_dim != s->embed / s->heads)
		return yk_fail(YOKE_EINVAL, "%" PRId64 " heads do not divide the width %" PRId64,
			       s->heads, s->embed);
	if (d->hidden < 1 || d->hidden > INT64_C(1) << 24 || d->token_types < 1 ||
	    d->token_types > 65536 || !(d->norm_eps >= 0))
		return yk_fail(YOKE_EINVAL,
			       "mlp of width %" PRId64 ", %" PRId64
			       " token types, norm_eps %g: out of bounds",
			       d->hidden, d->token_types, d->norm_eps);
	if (s->context > d->positions)
		return yk_fail(YOKE_EINVAL,
			       "context=%" PRId64 " is more than the %" PRId64
			       " positions of the model",
			       s->context, d->positions);
	return 0;
}

static yoke_module *attention_new(int64_t width)
{
	static const char *const names[] = { "q", "k", "v", "out" };
	yoke_module *m = yoke_nn_sequential(0, NULL);
	bool good = m;
	for (int i = 0; i < 4 && good; i++)
		good = !yoke_module_child(m, names[i], yk_nn_linear(true, width, width, true));
	return yk_layer_done(m, good);
}

static yoke_module *mlp_new(int64_t width, int64_t hidden)
{
	yoke_module *m = yoke_nn_sequential(0, NULL);
	return yk_layer_done(
		m, m && !yoke_module_child(m, "up", yk_nn_linear(true, width, hidden, true)) &&
			   !yoke_module_child(m, "down", yk_nn_linear(true, hidden, width, true)));
}

static yoke_module *block_new(const struct yk_model_shape *s)
{
	const struct yk_decoder *d = &s->decoder;
	yoke_module *m = yoke_nn_sequential(0, NULL);
	return yk_layer_done(
		m, m && !yoke_module_child(m, "attn", attention_new(s->embed)) &&
			   !yoke_module_child(m, "norm1",
					      yk_nn_layer_norm(true, s->embed, d->norm_eps)) &&
			   !yoke_module_child(m, "mlp", mlp_new(s->embed, d->hidden)) &&
			   !yoke_module_child(m, "norm2",
					      yk_nn_layer_norm(true, s->embed, d->norm_eps)));
}

static int layers(const struct yk_model_shape *s, yoke_module *to)
{
	int e = yoke_module_child(to, "embed", yk_nn_embedding(true, s->vocab, s->embed));
	if (!e)
		e = yoke_module_child(to, "positions",
				      yk_nn_embedding(true, s->decoder.positions, s->embed));
	if (!e)
		e = yoke_module_child(to, "types",
				      yk_nn_embedding(true, s->decoder.token_types, s->embed));
	if (!e)
		e = yoke_module_child(to, "norm",
				      yk_nn_layer_norm(true, s->embed, s->decoder.norm_eps));
	for (int64_t i = 0; i < s->layers && !e; i++) {
		char name[40];
		snprintf(name, sizeof name, "layer%" PRId64, i);
		e = yoke_module_child(to, name, block_new(s));
	}
	return e;
}

// Initial values for training from scratch, as BERT's.
static void first(const struct yk_model_shape *s, const char *name, struct yk_parameter *to)
{
	(void)s;
	to->value = yk_ends_with(name, "norm.weight") || yk_ends_with(name, "norm1.weight") ||
		    yk_ends_with(name, "norm2.weight");
	to->decay = to->value == 0 && !yk_ends_with(name, ".bias");
	to->deviation = to->decay ? 0.02 : 0;
}

// ---- forward ----

static yoke_tensor *called(yoke_module *m, yoke_tensor *x)
{
	return yk_call_inside(m, 1, &x);
}

static yoke_tensor *embedded(const struct yk_network *n, yoke_tensor *ids)
{
	yoke_tensor *position = yoke_iota(yoke_i32, 2, (int64_t[]){ 1, yoke_dim(ids, 1) }, 1);
	yoke_tensor *type = yoke_iota(yoke_i32, 2, (int64_t[]){ 1, 1 }, 1);
	yoke_tensor *x = yoke_add(called(yk_network_layer(n, EMBED), ids),
				  called(yk_network_layer(n, POSITIONS), position));
	return called(yk_network_layer(n, NORM),
		      yoke_add(x, called(yk_network_layer(n, TYPES), type)));
}

static yoke_tensor *attention(yoke_module *m, int64_t heads, yoke_tensor *mask, yoke_tensor *x)
{
	const int64_t split[] = { yoke_dim(x, 0), yoke_dim(x, 1), heads, yoke_dim(x, 2) / heads };
	yoke_tensor *q = yoke_reshape(called(m->child[Q], x), 4, split),
		    *k = yoke_reshape(called(m->child[K], x), 4, split);
	yoke_tensor *v = yoke_reshape(called(m->child[V], x), 4, split);
	yoke_tensor *y =
		yoke_attention(q, k, v, mask ? mask : YOKE_NONE, 0, 1 / sqrt((double)split[3]), 0);
	return called(m->child[OUT],
		      yoke_reshape(y, 3, (int64_t[]){ split[0], split[1], split[2] * split[3] }));
}

static yoke_tensor *block(yoke_module *m, int64_t heads, yoke_tensor *mask, yoke_tensor *x)
{
	yoke_scope *s = yoke_scope_begin(m->name);
	x = called(m->child[NORM1], yoke_add(x, attention(m->child[ATTN], heads, mask, x)));
	yoke_tensor *y =
		called(m->child[MLP]->child[DOWN], yoke_gelu(called(m->child[MLP]->child[UP], x)));
	x = yoke_lift(called(m->child[NORM2], yoke_add(x, y)));
	yoke_scope_end(s);
	return x;
}

yoke_tensor *yk_encoder_forward(const struct yk_network *n, yoke_tensor *ids, yoke_tensor *mask)
{
	yk_network_refresh(n);
	yoke_tensor *x = embedded(n, ids);
	for (int64_t i = 0; i < n->shape.layers && x; i++)
		x = block(yk_network_layer(n, BLOCKS + i), n->shape.heads, mask, x);
	return x;
}

static yoke_tensor *forward(const struct yk_network *n, yoke_tensor *ids, double dropout)
{
	(void)dropout; // not used: the encoder cannot be trained
	return yk_encoder_forward(n, ids, NULL);
}

const struct yk_model yk_model_encoder = {
	.name = "encoder", .sizes = YK_HAS(layers) | YK_HAS(heads) | YK_HAS(embed),
	.check = check, .layers = layers, .first = first, .before = BLOCKS, .forward = forward,
};
