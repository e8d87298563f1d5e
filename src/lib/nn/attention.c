// SPDX-License-Identifier: Apache-2.0
// Attention, the block built on it, and LoRA.
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sized.h"
#include "nn/layer.h"
#include "nn/shard_layers.h"

// ---- attention ----

// Children: one product that gives q, k and v together, and the output projection; or separate
// products.
enum { QKV, PROJ };
enum { Q, K, V, OUT };
// Operands with a cache per row, or one cache for all rows: x, then for each cache:
enum { KEYS, VALUES, AT, SEEN, IN_CACHE };

// [B,T,..] -> [B,T,n,D], taking the columns from `first` on
static yoke_tensor *heads(yoke_tensor *x, int64_t first, int64_t n, int64_t d)
{
	if (yoke_dim(x, 2) != n * d)
		x = yoke_slice(x, -1, first, first + n * d, 1);
	return yoke_reshape(x, 4, (int64_t[]){ yoke_dim(x, 0), yoke_dim(x, 1), n, d });
}

// Rotary embedding (RoPE) of positions at .. at + T-1; angle of column pair k: position /
// base^(2k/D).
static yoke_tensor *turned(yoke_tensor *x, double base, yoke_tensor *at)
{
	const int64_t dims[] = { yoke_dim(x, 1), yoke_dim(x, 3) / 2 };
	yoke_tensor *power =
		yoke_mul(yoke_iota(yoke_f32, 2, dims, 1), yoke_const(-log(base) / (double)dims[1]));
	yoke_tensor *position = yoke_iota(yoke_f32, 2, dims, 0);
	if (at != YOKE_NONE)
		position = yoke_add(position, at);
	yoke_tensor *angle = yoke_mul(position, yoke_exp(power));
	yoke_tensor *cosine = yoke_cos(angle), *sine = yoke_sin(angle);
	if (yoke_dtype(x) == yoke_f64) {
		cosine = yoke_cast(cosine, yoke_f64);
		sine = yoke_cast(sine, yoke_f64);
	}
	return yoke_rope(x, cosine, sine);
}

// Row i of x, or x itself if one cache serves all rows.
static yoke_tensor *row_of(yoke_tensor *x, int64_t rows, int64_t i)
{
	return rows == 1 ? x : yoke_slice(x, 0, i, i + 1, 1);
}

void yk_attention_store(yoke_tensor *keys, yoke_tensor *values, yoke_tensor *at, yoke_tensor *k,
			yoke_tensor *v)
{
	yoke_tensor *start[] = { YOKE_NONE, at, YOKE_NONE, YOKE_NONE };
	yoke_assign_at(keys, start, yoke_cast(k, yoke_dtype(keys)));
	yoke_assign_at(values, start, yoke_cast(v, yoke_dtype(values)));
}

yoke_tensor *yk_attention_cached(yoke_tensor *q, yoke_tensor *keys, yoke_tensor *values,
				 yoke_tensor *seen, yoke_tensor *mask, int causal, double scale)
{
	yoke_tensor *y = yoke_attention_keys(yoke_cast(q, yoke_dtype(keys)), keys, values, seen,
					     mask, causal, scale, 0);
	return yoke_cast(y, yoke_dtype(q));
}

// Attention of q [1,T,H,D] over the keys and values of a cache, to which k and v [1,T,G,D] are
// added.
static yoke_tensor *cached(const struct yoke_nn_attention_options *o, yoke_tensor *const *c,
			   yoke_tensor *q, yoke_tensor *k, yoke_tensor *v)
{
	if (o->rope > 0) {
		q = turned(q, o->rope, c[AT]);
		k = turned(k, o->rope, c[AT]);
	}
	yk_attention_store(c[KEYS], c[VALUES], c[AT], k, v);
	return yk_attention_cached(q, c[KEYS], c[VALUES], c[SEEN], YOKE_NONE, o->causal, 0);
}

static yoke_tensor *cached_rows(const struct yoke_nn_attention_options *o, int caches,
				yoke_tensor *const *c, yoke_tensor *q, yoke_tensor *k,
				yoke_tensor *v)
{
	yoke_tensor *y[YK_CACHES];
	for (int i = 0; i < caches; i++)
		y[i] = cached(o, c + IN_CACHE * i, row_of(q, caches, i), row_of(k, caches, i),
			      row_of(v, caches, i));
	return caches == 1 ? y[0] : yoke_concat(caches, y, 0);
}

static int check_operands(const struct yoke_nn_attention_options *o, int n, yoke_tensor *const *in,
			  int k)
{
	const int caches = n > 2 ? (n - 1) / IN_CACHE : 0;
	if (k != 1 || n < 1 || (n > 2 && (n - 1) % IN_CACHE))
		return yk_fail(
			YOKE_EINVAL,
			"attention: computes one value of x, of x and a context, or of x and keys, values, "
			"at and seen of each cache");
	if (yoke_rank(in[0]) != 3 || yoke_rank(in[n == 2]) != 3)
		return yk_fail(YOKE_ESHAPE, "attention: x and context are [B,T,width]");
	if (n == 2 && o->fused)
		return yk_fail(
			YOKE_EINVAL,
			"attention: to a context, q is of another product than k and v: not with fused");
	if (caches > 1 && (caches > YK_CACHES || caches != yoke_dim(in[0], 0)))
		return yk_fail(
			YOKE_ESHAPE,
			"attention: there are %d caches for %lld rows; there may be one of all rows, or one for "
			"each of %d rows at most",
			caches, (long long)yoke_dim(in[0], 0), YK_CACHES);
	return 0;
}

// q, k and v, split into heads; with tensor parallelism, this rank's heads.
static void products(const yoke_module *m, const struct yoke_nn_attention_options *o,
		     yoke_tensor *const *in, yoke_tensor *context, yoke_tensor *to[3])
{
	const int64_t d = o->width / o->heads;
	yoke_tensor *p[3];
	for (int i = Q; i <= V; i++)
		p[i] = !o->fused ? yk_call_inside(m->child[i], 1, i == Q ? in : &context) :
		       i == Q	 ? yk_call_inside(m->child[QKV], 1, in) : p[Q];
	const int64_t all = o->heads + (o->fused ? 2 * o->kv_heads : 0),
		      here = yoke_dim(p[Q], -1) / d;
	const int64_t h = o->heads * here / all, kv = o->kv_heads * here / all;
	to[Q] = heads(p[Q], 0, h, d);
	to[K] = heads(p[K], h * d, kv, d);
	to[V] = heads(p[V], (h + kv) * d, kv, d);
}

static int attention_forward(yoke_module *m, void *state, int n, yoke_tensor *const *in, int k,
			     yoke_tensor **out)
{
	const struct yoke_nn_attention_options *o = state;
	yoke_tensor *part[3], *y;
	const int err = check_operands(o, n, in, k);
	if (err)
		return err;
	products(m, o, in, in[n == 2], part);
	const int64_t width = yoke_dim(part[Q], 2) * yoke_dim(part[Q], 3);
	yoke_scope *own = m->net ? yk_shard_begin(m->net) : NULL;
	if (n > 2) {
		y = cached_rows(o, (n - 1) / IN_CACHE, in + 1, part[Q], part[K], part[V]);
	} else {
		for (int i = Q; i <= K && o->rope > 0; i++)
			part[i] = turned(part[i], o->rope, YOKE_NONE);
		y = yoke_attention(part[Q], part[K], part[V], YOKE_NONE, o->causal, 0,
				   yoke_module_training(m) ? o->dropout : 0);
	}
	y = yk_shard_end(own, y);
	y = yoke_reshape(y, 3, (int64_t[]){ yoke_dim(in[0], 0), yoke_dim(in[0], 1), width });
	out[0] = yk_call_inside(m->child[o->fused ? PROJ : OUT], 1, &y);
	return 0;
}

// Checks options and fills in defaults.
static bool options_take(const struct yoke_nn_attention_options *from,
			 struct yoke_nn_attention_options *to)
{
	*to = (struct yoke_nn_attention_options){ 0 };
	if (yk_sized_read(to, sizeof *to, from, "nn_attention", "yoke_nn_attention_options") < 0)
		return false;
	if (to->kv_heads == 0)
		to->kv_heads = to->heads;
	if (!yk_layer_size("nn_attention", "width", to->width) ||
	    !yk_layer_size("nn_attention", "heads", to->heads) ||
	    !yk_layer_size("nn_attention", "kv_heads", to->kv_heads))
		return false;
	if (to->width % to->heads || to->heads % to->kv_heads)
		yk_fail(YOKE_EINVAL,
			"nn_attention: heads %lld do not divide width %lld, or kv_heads %lld not heads",
			(long long)to->heads, (long long)to->width, (long long)to->kv_heads);
	else if (to->rope != 0 && (!(to->rope > 1) || to->width / to->heads % 2))
		yk_fail(YOKE_EINVAL,
			"nn_attention: rope %g; it is 0 or above 1, and turns heads of an even width",
			to->rope);
	else if (!(to->dropout >= 0 && to->dropout < 1))
		yk_fail(YOKE_EINVAL, "nn_attention: dropout is %g; it is at least 0 and below 1",
			to->dropout);
	else
		return true;
	return false;
}

static yoke_module *attention_new(bool declared, const struct yoke_nn_attention_options *o)
{
	static const struct yoke_module_class class = {
		.size = sizeof class,
		.name = "attention",
		.forward = attention_forward,
		.release = free,
	};
	const int64_t e = o->width, kv = o->width / o->heads * o->kv_heads;
	yoke_module *m = yk_layer_new(&class, o, sizeof *o);
	if (o->fused)
		return yk_layer_done(
			m, m &&
				   yoke_module_child(
					   m, "qkv",
					   yk_nn_linear(declared, e, e + 2 * kv, o->bias)) == 0 &&
				   yoke_module_child(m, "proj",
						     yk_nn_linear(declared, e, e, o->bias)) == 0);
	return yk_layer_done(
		m, m && yoke_module_child(m, "q", yk_nn_linear(declared, e, e, o->bias)) == 0 &&
			   yoke_module_child(m, "k", yk_nn_linear(declared, e, kv, o->bias)) == 0 &&
			   yoke_module_child(m, "v", yk_nn_linear(declared, e, kv, o->bias)) == 0 &&
			   yoke_module_child(m, "out", yk_nn_linear(declared, e, e, o->bias)) == 0);
}

yoke_module *yoke_nn_attention(const struct yoke_nn_attention_options *options)
{
	struct yoke_nn_attention_options o;
	return options_take(options, &o) ? attention_new(false, &o) : NULL;
}

// ---- a block ----

enum { NORM1, ATTN, NORM2, MLP }; // children

static yoke_tensor *normed(yoke_module *norm, yoke_tensor *x)
{
	yoke_scope *s = yoke_scope_begin("norm");
	yoke_tensor *y = yoke_lift(yk_call_inside(norm, 1, &x));
	yoke_scope_end(s);
	return y;
}

// The branch of one half of the block, to be added to in[0], in its own scope.
static yoke_tensor *half_of(yoke_module *m, int norm, int n, yoke_tensor *const *in, double dropout)
{
	yoke_module *inner = m->child[norm + 1];
	yoke_tensor *with[1 + IN_CACHE * YK_CACHES];
	yoke_scope *s = yoke_scope_begin(inner->name);
	memcpy(with, in, (size_t)n * sizeof *with);
	with[0] = normed(m->child[norm], in[0]);
	yoke_tensor *y = yoke_lift(yoke_dropout(yk_call_inside(inner, n, with), dropout));
	yoke_scope_end(s);
	return y;
}

static int block_forward(yoke_module *m, void *state, int n, yoke_tensor *const *in, int k,
			 yoke_tensor **out)
{
	const double dropout = yoke_module_training(m) ? *(const double *)state : 0;
	if (k != 1 || n < 1 || n > 1 + IN_CACHE * YK_CACHES)
		return yk_fail(YOKE_EINVAL,
			       "block: computes one value of what its attention takes");
	yoke_tensor *x = yoke_add(in[0], half_of(m, NORM1, n, in, dropout));
	out[0] = x ? yoke_add(x, half_of(m, NORM2, 1, &x, dropout)) : NULL;
	return 0;
}

const struct yoke_module_class yk_block_class = {
	.size = sizeof yk_block_class, .name = "block", .forward = block_forward, .release = free,
};

void yk_block_dropout(yoke_module *m, double share)
{
	struct yoke_nn_attention_options *o = m->child[ATTN]->state;
	*(double *)m->state = o->dropout = share;
}

yoke_module *yk_nn_block(bool declared, const struct yoke_nn_attention_options *options)
{
	struct yoke_nn_attention_options o;
	const double eps = 1e-5;
	if (!options_take(options, &o))
		return NULL;
	const char *act = o.activation ? o.activation : "gelu";
	yoke_module *m = yk_layer_new(&yk_block_class, &o.dropout, sizeof o.dropout);
	return yk_layer_done(
		m,
		m && yoke_module_child(m, "norm1", yk_nn_layer_norm(declared, o.width, eps)) == 0 &&
			yoke_module_child(m, "attn", attention_new(declared, &o)) == 0 &&
			yoke_module_child(m, "norm2", yk_nn_layer_norm(declared, o.width, eps)) ==
				0 &&
			yoke_module_child(
				m, "mlp",
				yk_nn_mlp(declared, o.width, 4 * o.width, o.width, act, 0)) == 0);
}

yoke_module *yoke_nn_block(const struct yoke_nn_attention_options *options)
{
	return yk_nn_block(false, options);
}

// ---- LoRA ----

enum { A, B };

yoke_tensor *yk_low_rank_product(const struct yk_low_rank *l, yoke_tensor *x, bool by_row)
{
	const unsigned flags = YOKE_TB | YOKE_BY_ROW;
	yoke_tensor *y = by_row ? yoke_matmul(x, l->a, flags) : yoke_linear(x, l->a, YOKE_NONE);
	if (l->factor)
		y = yoke_mul(y, l->factor);
	y = by_row ? yoke_matmul(y, l->b, flags) : yoke_linear(y, l->b, YOKE_NONE);
	return yoke_mul(y, yoke_const(l->scale));
}

static int lora_forward(yoke_module *m, void *state, int n, yoke_tensor *const *in, int k,
			yoke_tensor **out)
{
	const double *scale = state;
	int err = yk_layer_one(m, n, k);
	if (err)
		return err;
	out[0] = yoke_call(m->child[0], in[0]);
	const struct yk_low_rank l = { .a = m->n ? m->own[A].tensor : NULL,
				       .b = m->n ? m->own[B].tensor : NULL,
				       .scale = *scale };
	if (m->n) // not merged
		out[0] = yoke_add(out[0], yk_low_rank_product(&l, in[0], false));
	return 0;
}

const struct yoke_module_class yk_lora_class = {
	.size = sizeof yk_lora_class, .name = "lora", .forward = lora_forward, .release = free,
};

yoke_module *yoke_nn_lora(yoke_module *linear, int64_t rank, double alpha)
{
	const double scale = alpha / (double)rank;
	if (!yk_module_require(linear, "nn_lora") || !yk_layer_size("nn_lora", "rank", rank))
		return NULL;
	if (linear->class != &yk_linear_class) {
		yk_fail(YOKE_EINVAL, "nn_lora: goes around a linear layer, not a %s",
			linear->class->name);
		return NULL;
	}
	if (linear->parent) {
		yk_fail(YOKE_EINVAL,
			"nn_lora: '%s' is part of a %s already; put LoRA around it first",
			linear->name, linear->parent->class->name);
		return NULL;
	}
	const int64_t out = yoke_dim(linear->own[0].tensor, 0),
		      in = yoke_dim(linear->own[0].tensor, 1);
	yoke_module *m = yk_layer_new(&yk_lora_class, &scale, sizeof scale);
	return yk_layer_done(
		m, m && yoke_module_child(m, "inner", linear) == 0 &&
			   yoke_module_freeze(m, "*", 1) == 0 &&
			   yoke_module_parameter(m, "a", yoke_f32, 2, (int64_t[]){ rank, in },
						 YOKE_FIRST_UNIFORM, 1 / sqrt((double)in)) &&
			   yoke_module_parameter(m, "b", yoke_f32, 2, (int64_t[]){ out, rank },
						 YOKE_FIRST_VALUE, 0));
}

int yk_lora_join(yoke_module *m)
{
	const double *scale = m->state;
	yoke_tensor *w = m->child[0]->own[0].tensor,
		    *added = yoke_matmul(m->own[B].tensor, m->own[A].tensor, 0);
	return yoke_assign(w, yoke_add(w, yoke_mul(added, yoke_const(*scale))));
}
