// SPDX-License-Identifier: Apache-2.0
// MLP: predicts the next token from the last `history` tokens with a perceptron on their
// concatenated embeddings (Bengio et al. 2003).
//
//     x[t] = wte[ids[t-n+1]], .., wte[ids[t]]      [B,T,nE], zeros for tokens before the window
//     h = relu(layer(x)), repeated `layers` times  [B,T,4E]
//     logits = out(h)                              [B,T,V]
//
// Scopes are "layer0", .. and "head".  Linear weights are [out,in].  Dropout applies to the
// embedding and to each hidden layer.
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "nn/model.h"
#include "nn/shard_layers.h"

// Indices of layers; the output layer follows the hidden ones.
enum { WTE, LAYERS };

static int check(const struct yk_model_shape *s)
{
	if (s->history <= s->context)
		return 0;
	return yk_fail(YOKE_EINVAL, "history=%" PRId64 " is more than the context=%" PRId64 " of a "
		       "window; choose less", s->history, s->context);
}

static int layers(const struct yk_model_shape *s, yoke_module *to)
{
	const int64_t hidden = 4 * s->embed;
	int e = yoke_module_child(to, "wte", yk_nn_embedding(true, s->vocab, s->embed));
	for (int64_t i = 0; i < s->layers && !e; i++) {
		char name[40];
		snprintf(name, sizeof name, "layer%" PRId64, i);
		e = yoke_module_child(
			to, name,
			yk_nn_linear(true, i ? hidden : s->history * s->embed, hidden, true));
	}
	return e ? e : yoke_module_child(to, "out", yk_nn_linear(true, hidden, s->vocab, true));
}

static void first(const struct yk_model_shape *s, const char *name, struct yk_parameter *to)
{
	const bool hidden = !strncmp(name, "layer", 5), one = !strcmp(name, "layer0.weight");
	to->decay = !strstr(name, ".bias");
	if (to->decay) // He et al. 2015: relu keeps the variance; small: an untrained model is near
		       // chance
		to->deviation = hidden ? sqrt(2 / (double)((one ? s->history : 4) * s->embed)) :
				*name == 'o' ? 0.02 :
					       1;
}

// Counted from the last, every second layer is sharded by inputs, so that logits depend on a
// complete layer output.
static const struct yk_shard_rule *rules(const struct yk_model_shape *s)
{
	static const struct yk_shard_rule even[] = {
		{ "wte.weight", YK_VOCAB, 0 },
		{ "layer*[02468].*", YK_COLUMN, 0 },
		{ "layer*[13579].weight", YK_ROW, 0 },
		{ "out.*", YK_VOCAB, 0 },
		{ 0 },
	};
	static const struct yk_shard_rule odd[] = {
		{ "wte.weight", YK_VOCAB, 0 },
		{ "layer*[02468].weight", YK_ROW, 0 },
		{ "layer*[13579].*", YK_COLUMN, 0 },
		{ "out.*", YK_VOCAB, 0 },
		{ 0 },
	};
	return s->layers % 2 ? odd : even;
}

// Elements kept per token: the logits, and the inputs of all products.
static double kept(const struct yk_model_shape *s)
{
	return (double)s->vocab + (double)s->embed * (double)(s->history + 4 * s->layers);
}

// With tensor parallelism, is the input of a hidden layer sharded?
static bool is_sharded(const struct yk_network *n, int64_t layer)
{
	return n->shard.group && (n->shape.layers - layer) % 2;
}

static int64_t width(const struct yk_network *n, int64_t layer)
{
	return 4 * n->shape.embed / (is_sharded(n, layer) ? n->shard.ranks : 1);
}

static double work(const struct yk_model_shape *s, int64_t i)
{
	const double e = (double)s->embed;
	return i == s->layers ? 4 * e * (double)s->vocab :
	       i              ? 16 * e * e :
				4 * e * e * (double)s->history;
}

// x [B,n-1+T,E], embeddings of T tokens and those before them -> [B,T,nE]
static yoke_tensor *joined(const struct yk_network *n, yoke_tensor *x)
{
	int64_t history = n->shape.history, t = yoke_dim(x, 1) - history + 1;
	yoke_tensor *side[YK_HISTORY];
	for (int64_t i = 0; i < history; i++)
		side[i] = yoke_slice(x, 1, i, i + t, 1);
	yoke_tensor *y = yoke_concat((int)history, side, 2);
	return is_sharded(n, 0) ? yk_shard_part(n, y) : y;
}

// Through this stage's hidden layers: [B,T,4E].
static yoke_tensor *hidden(const struct yk_network *n, yoke_tensor *y, double dropout)
{
	for (int64_t i = n->stage.from; i < n->stage.to; i++) {
		char name[40];
		snprintf(name, sizeof name, "layer%" PRId64, i);
		yoke_scope *s = yoke_scope_begin(name);
		y = yoke_relu(yk_call_inside(yk_network_layer(n, LAYERS + i), 1, &y));
		yoke_scope *own = is_sharded(n, i + 1) ? yk_shard_begin(n) : NULL;
		y = yoke_lift(yk_shard_end(own, yoke_dropout(y, dropout)));
		yoke_scope_end(s);
	}
	return y;
}

// Prepends zeros to x [B,T,E], as at the beginning of a window.
static yoke_tensor *begun(const struct yk_network *n, yoke_tensor *x)
{
	return yoke_pad(x, (int64_t[]){ 0, n->shape.history - 1, 0 }, (int64_t[]){ 0, 0, 0 }, 0);
}

static yoke_tensor *forward(const struct yk_network *n, yoke_tensor *x, double dropout)
{
	yk_network_refresh(n);
	if (n->stage.from == 0)
		x = joined(n, begun(n, yoke_dropout(yk_call_inside(yk_network_layer(n, WTE), 1, &x),
						    dropout)));
	return hidden(n, x, dropout);
}

static yoke_tensor *logits(const struct yk_network *n, yoke_tensor *x)
{
	yk_network_refresh(n);
	yoke_scope *s = yoke_scope_begin("head");
	yoke_tensor *y =
		yoke_lift(yk_call_inside(yk_network_layer(n, LAYERS + n->shape.layers), 1, &x));
	yoke_scope_end(s);
	return y;
}

// The embeddings of the last tokens: [1,n-1,E].
static void state(const struct yk_model_shape *s, struct yk_parameters *to)
{
	if (s->history > 1)
		yk_parameters_add(to, 3, (int64_t[]){ 1, s->history - 1, s->embed }, "cache.last");
}

static yoke_tensor *extend(const struct yk_network *n, struct yk_network_cache *const *c,
			   yoke_tensor *ids)
{
	int64_t t = yoke_dim(ids, 1), before = n->shape.history - 1;
	int rows = (int)yoke_dim(ids, 0);
	yk_network_refresh(n);
	yoke_tensor *x = yk_call_inside(yk_network_layer(n, WTE), 1, &ids), *last[YK_SEQUENCES];
	if (before == 0)
		return hidden(n, joined(n, x), 0);
	for (int i = 0; i < rows; i++)
		last[i] = c[i]->state.var[0];
	yoke_tensor *was = rows == 1 ? last[0] : yoke_concat(rows, last, 0);
	x = c[0]->length ? yoke_concat(2, (yoke_tensor *[]){ was, x }, 1) : begun(n, x);
	yoke_tensor *next = yoke_slice(x, 1, t, t + before, 1);
	for (int i = 0; i < rows; i++)
		yoke_assign(last[i], rows == 1 ? next : yoke_slice(next, 0, i, i + 1, 1));
	return hidden(n, joined(n, x), 0);
}

const struct yk_model yk_model_mlp = {
	.name = "mlp", .sizes = YK_HAS(layers) | YK_HAS(embed) | YK_HAS(history),
	.check = check, .layers = layers, .first = first, .rules = rules, .sharded = YK_HAS(embed),
	.choices = true, .kept = kept,
	.width = width, .work = work, .before = LAYERS,
	.forward = forward, .logits = logits, .loss = yk_network_loss,
	.state = state, .recurrent = true, .extend = extend,
};
