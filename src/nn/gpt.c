// SPDX-License-Identifier: Apache-2.0
// The GPT decoder, built of operations.
#include "config.h"

#include "nn/gpt.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "nn/init.h"

#define NORM_EPS 1e-5 // GPT-2's

// ---- parameters ----

static yoke_tensor *matrix(struct yk_gpt *m, int64_t rows, int64_t columns, const char *layer,
			   const char *name)
{
	const int64_t dims[] = { rows, columns };
	return yk_parameters_add(&m->params, true, 2, dims, "%s%s.weight", layer, name);
}

static yoke_tensor *vector(struct yk_gpt *m, int64_t n, const char *layer, const char *name,
			   const char *kind)
{
	return yk_parameters_add(&m->params, false, 1, &n, "%s%s.%s", layer, name, kind);
}

static bool layer_new(struct yk_gpt *m, struct yk_gpt_layer *l, int64_t index)
{
	int64_t e = m->shape.embed;
	char at[40];
	snprintf(at, sizeof at, "layer%" PRId64 ".", index);
	return (l->norm1_w = vector(m, e, at, "norm1", "weight")) &&
	       (l->norm1_b = vector(m, e, at, "norm1", "bias")) &&
	       (l->qkv_w = matrix(m, 3 * e, e, at, "attn.qkv")) &&
	       (l->qkv_b = vector(m, 3 * e, at, "attn.qkv", "bias")) &&
	       (l->proj_w = matrix(m, e, e, at, "attn.proj")) &&
	       (l->proj_b = vector(m, e, at, "attn.proj", "bias")) &&
	       (l->norm2_w = vector(m, e, at, "norm2", "weight")) &&
	       (l->norm2_b = vector(m, e, at, "norm2", "bias")) &&
	       (l->up_w = matrix(m, 4 * e, e, at, "mlp.up")) &&
	       (l->up_b = vector(m, 4 * e, at, "mlp.up", "bias")) &&
	       (l->down_w = matrix(m, e, 4 * e, at, "mlp.down")) &&
	       (l->down_b = vector(m, e, at, "mlp.down", "bias"));
}

static int check_shape(const struct yk_gpt_shape *shape)
{
	const int64_t most = INT64_C(1) << 31; // 4 * embed and the like cannot overflow
	const int64_t v[] = { shape->vocab, shape->context, shape->layers, shape->heads,
			      shape->embed };
	for (size_t i = 0; i < sizeof v / sizeof *v; i++)
		if (v[i] < 1 || v[i] > most)
			return yk_fail(YOKE_EINVAL, "gpt: size %lld is not in 1 .. %lld",
				       (long long)v[i], (long long)most);
	if (shape->embed % shape->heads)
		return yk_fail(YOKE_EINVAL, "heads=%lld does not divide embed=%lld; choose "
			       "heads that do", (long long)shape->heads, (long long)shape->embed);
	return 0;
}

int yk_gpt_elements(const struct yk_gpt_shape *s, int64_t *to)
{
	int64_t layer, all, e = s->embed;
	int error = check_shape(s);
	if (error < 0)
		return error;
	// matrices of a block: 3 + 1 + 4 + 4 times e*e; its vectors: 3 + 1 + 4 + 1 and four of
	// norms times e; outside: both embeddings and the last norm
	if (!__builtin_mul_overflow(12 * e + 13, e, &layer) &&
	    !__builtin_mul_overflow(layer, s->layers, &layer) &&
	    !__builtin_mul_overflow(s->vocab + s->context + 2, e, &all) &&
	    !__builtin_add_overflow(all, layer, &all)) {
		*to = all;
		return 0;
	}
	return yk_fail(YOKE_EINVAL, "gpt: too large: vocab=%lld context=%lld layers=%lld "
		       "embed=%lld", (long long)s->vocab, (long long)s->context,
		       (long long)s->layers, (long long)s->embed);
}

int yk_gpt_new(const struct yk_gpt_shape *shape, struct yk_gpt **to)
{
	int e = check_shape(shape);
	if (e < 0)
		return e;
	struct yk_gpt *m = calloc(1, sizeof *m);
	if (!m)
		goto no_memory;
	m->shape = *shape;
	m->layer = calloc((size_t)shape->layers, sizeof *m->layer);
	if (!m->layer)
		goto no_memory;
	bool good = (m->wte = matrix(m, shape->vocab, shape->embed, "", "wte")) &&
		    (m->wpe = matrix(m, shape->context, shape->embed, "", "wpe"));
	for (int64_t i = 0; good && i < shape->layers; i++)
		good = layer_new(m, &m->layer[i], i);
	good = good && (m->norm_w = vector(m, shape->embed, "", "norm", "weight")) &&
	       (m->norm_b = vector(m, shape->embed, "", "norm", "bias"));
	if (!good) {
		yk_gpt_free(m);
		return yoke_error_code();
	}
	*to = m;
	return 0;
no_memory:
	yk_gpt_free(m);
	return yk_fail(YOKE_ENOMEM, "gpt: no memory for %" PRId64 " layers", shape->layers);
}

void yk_gpt_free(struct yk_gpt *m)
{
	if (!m)
		return;
	yk_parameters_fini(&m->params);
	free(m->layer);
	free(m);
}

int yk_gpt_init(struct yk_gpt *m, uint64_t seed)
{
	// Radford et al. 2019, as is the scale of the projections
	const double deviation = 0.02, layers = (double)m->shape.layers;
	yoke_random_set(seed, 0);
	yoke_scope *s = yoke_scope_begin("init");
	for (int i = 0; i < m->params.count; i++) {
		yoke_tensor *var = m->params.var[i];
		const char *name = m->params.row[i].name;
		bool residual = strstr(name, ".proj.") || strstr(name, ".down.");
		bool scale = strstr(name, "norm") && strstr(name, ".weight");
		if (yoke_rank(var) == 2)
			yk_init_normal(var, name, residual ? deviation / sqrt(2 * layers) : deviation);
		else
			yk_init_fill(var, scale);
	}
	yoke_eval(0, NULL);
	return yoke_scope_end(s);
}

// ---- forward ----

// Heads of one third of qkv [B,T,3E]: a view [B,T,H,D].
static yoke_tensor *heads(const struct yk_gpt *m, yoke_tensor *qkv, int third)
{
	int64_t e = m->shape.embed, h = m->shape.heads;
	yoke_tensor *x = yoke_slice(qkv, -1, third * e, (third + 1) * e, 1);
	const int64_t dims[] = { yoke_dim(qkv, 0), yoke_dim(qkv, 1), h, e / h };
	return yoke_reshape(x, 4, dims);
}

// q [B,T,H,D] over the keys and values in a layer's cache, which k and v [B,T,H,D] join.
static yoke_tensor *cached(const struct yk_gpt_cache *c, int64_t layer, yoke_tensor *q,
			   yoke_tensor *k, yoke_tensor *v)
{
	yoke_tensor *start[] = { YOKE_NONE, c->at, YOKE_NONE, YOKE_NONE };
	yoke_assign_at(c->key[layer], start, k);
	yoke_assign_at(c->value[layer], start, v);
	return yoke_attention_keys(q, c->key[layer], c->value[layer], c->seen, YOKE_NONE, 1, 0,
				   0);
}

// x [B,T,E] -> [B,T,E]; cache: NULL, or where the keys of earlier tokens are
static yoke_tensor *attention(const struct yk_gpt *m, int64_t layer,
			      const struct yk_gpt_cache *cache, yoke_tensor *x, double dropout)
{
	const struct yk_gpt_layer *l = &m->layer[layer];
	yoke_tensor *qkv = yoke_linear(yoke_layer_norm(x, l->norm1_w, l->norm1_b, NORM_EPS),
				       l->qkv_w, l->qkv_b);
	yoke_tensor *q = heads(m, qkv, 0), *k = heads(m, qkv, 1), *v = heads(m, qkv, 2);
	yoke_tensor *y = cache ? cached(cache, layer, q, k, v) :
				 yoke_attention(q, k, v, YOKE_NONE, 1, 0, dropout);
	y = yoke_reshape(y, 3, (int64_t[]){ yoke_dim(x, 0), yoke_dim(x, 1), m->shape.embed });
	return yoke_linear(y, l->proj_w, l->proj_b);
}

// x [B,T,E] -> [B,T,E]
static yoke_tensor *perceptron(const struct yk_gpt_layer *l, yoke_tensor *x)
{
	yoke_tensor *h = yoke_linear(yoke_layer_norm(x, l->norm2_w, l->norm2_b, NORM_EPS),
				     l->up_w, l->up_b);
	return yoke_linear(yoke_gelu_tanh(h), l->down_w, l->down_b);
}

// What one half of a block adds to x, recorded in a scope of its own ("layer3/attn").
static yoke_tensor *half(const struct yk_gpt *m, int64_t layer, bool attn,
			 const struct yk_gpt_cache *cache, yoke_tensor *x, double dropout)
{
	char name[40];
	snprintf(name, sizeof name, "layer%" PRId64 "/%s", layer, attn ? "attn" : "mlp");
	yoke_scope *s = yoke_scope_begin(name);
	yoke_tensor *y = attn ? attention(m, layer, cache, x, dropout) :
				perceptron(&m->layer[layer], x);
	y = yoke_lift(yoke_dropout(y, dropout));
	yoke_scope_end(s);
	return y;
}

// ids [B,T], their positions' rows of wpe [T,E] -> [B,T,E]
static yoke_tensor *blocks(const struct yk_gpt *m, const struct yk_gpt_cache *cache,
			   yoke_tensor *ids, yoke_tensor *wpe, double dropout)
{
	yoke_tensor *x = yoke_dropout(yoke_add(yoke_embedding(m->wte, ids), wpe), dropout);
	for (int64_t i = 0; i < 2 * m->shape.layers; i++)
		x = yoke_add(x, half(m, i / 2, i % 2 == 0, cache, x, dropout));
	return yoke_layer_norm(x, m->norm_w, m->norm_b, NORM_EPS);
}

yoke_tensor *yk_gpt_hidden(const struct yk_gpt *m, yoke_tensor *ids, double dropout)
{
	int64_t t = yoke_dim(ids, 1);
	if (t > m->shape.context) {
		yk_fail(YOKE_ESHAPE, "gpt: %" PRId64 " tokens, but a window holds %" PRId64, t,
			m->shape.context);
		return NULL;
	}
	yoke_tensor *wpe = t < m->shape.context ? yoke_slice(m->wpe, 0, 0, t, 1) : m->wpe;
	return blocks(m, NULL, ids, wpe, dropout);
}

// ---- one token after another ----

int yk_gpt_cache_new(const struct yk_gpt *m, int64_t batch, struct yk_gpt_cache **to)
{
	const struct yk_gpt_shape *s = &m->shape;
	const int64_t dims[] = { batch, s->context, s->heads, s->embed / s->heads };
	size_t layers = (size_t)s->layers;
	struct yk_gpt_cache *c = calloc(1, sizeof *c);
	bool good = c && (c->key = calloc(layers, sizeof *c->key)) &&
		    (c->value = calloc(layers, sizeof *c->value));
	if (!good) {
		yk_gpt_cache_free(m, c);
		return yk_fail(YOKE_ENOMEM, "gpt: no memory for a cache");
	}
	c->batch = batch;
	good = (c->at = yoke_keep(yoke_scalar(0))) && (c->seen = yoke_keep(yoke_scalar(0)));
	for (size_t i = 0; i < layers && good; i++)
		good = (c->key[i] = yoke_variable("cache.key", yoke_f32, 4, dims)) &&
		       (c->value[i] = yoke_variable("cache.value", yoke_f32, 4, dims));
	if (!good) {
		yk_gpt_cache_free(m, c);
		return yoke_error_code();
	}
	*to = c;
	return 0;
}

void yk_gpt_cache_free(const struct yk_gpt *m, struct yk_gpt_cache *c)
{
	if (!c)
		return;
	for (int64_t i = 0; i < m->shape.layers; i++) {
		if (c->key)
			yoke_free(c->key[i]);
		if (c->value)
			yoke_free(c->value[i]);
	}
	yoke_free(c->at);
	yoke_free(c->seen);
	free(c->key);
	free(c->value);
	free(c);
}

yoke_tensor *yk_gpt_extend(const struct yk_gpt *m, struct yk_gpt_cache *c, yoke_tensor *ids)
{
	int64_t t = yoke_dim(ids, 1);
	if (t < 1 || t > m->shape.context - c->length || yoke_dim(ids, 0) != c->batch) {
		yk_fail(YOKE_ESHAPE,
			"gpt: %" PRId64 " rows of %" PRId64 " tokens behind %" PRId64
			" rows of %" PRId64 " in a window of %" PRId64,
			yoke_dim(ids, 0), t, c->batch, c->length, m->shape.context);
		return NULL;
	}
	yoke_scalar_set(c->at, (double)c->length);
	yoke_scalar_set(c->seen, (double)(c->length += t));
	yoke_tensor *wpe = yoke_slice_at(m->wpe, (yoke_tensor *[]){ c->at, YOKE_NONE },
					 (int64_t[]){ t, m->shape.embed });
	return blocks(m, c, ids, wpe, 0);
}

yoke_tensor *yk_gpt_logits(const struct yk_gpt *m, yoke_tensor *hidden)
{
	return yoke_linear(hidden, m->wte, YOKE_NONE);
}

yoke_tensor *yk_gpt_loss(const struct yk_gpt *m, yoke_tensor *ids, yoke_tensor *targets,
			 double dropout)
{
	yoke_tensor *logits = yk_gpt_logits(m, yk_gpt_hidden(m, ids, dropout));
	return yoke_cross_entropy(logits, targets, -1, 0);
}
