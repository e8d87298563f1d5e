// SPDX-License-Identifier: Apache-2.0
// A block of the decoder: attention and mlp, each with a norm before it and a residual connection.
//
//     x = x + post1(out(attention(rope(q), rope(k), v)))    q, k, v: products of norm1(x)
//     x = x + post2(down(act(gate y) * up y))               y = norm2(x)
#include "config.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "nn/decoder.h"
#include "nn/layer.h"
#include "nn/model.h"

// Children of a block; the last two only with post_norm.
enum { NORM1, ATTN, NORM2, MLP, POST1, POST2 };
// Children of the attention; the last two only with qk_norm.
enum { Q, K, V, OUT, Q_NORM, K_NORM };
// Children of the mlp; the gate only if gated.
enum { UP, DOWN, GATE };

// ---- construction ----

// Groups of layers are computed by the decoder, not through yoke_forward.
static int group_forward(yoke_module *m, void *state, int n, yoke_tensor *const *in, int k,
			 yoke_tensor **out)
{
	(void)state;
	(void)n;
	(void)in;
	(void)k;
	(void)out;
	return yk_fail(YOKE_EINVAL, "%s: is a submodule of a decoder; call the whole decoder",
		       m->class->name);
}

static yoke_module *group_new(void)
{
	static const struct yoke_module_class class = {
		.size = sizeof class, .name = "decoder_group", .forward = group_forward,
	};
	return yoke_module_new(&class, NULL);
}

yoke_module *yk_decoder_norm(const struct yk_decoder *d, int64_t width)
{
	return d->layer_norm ? yk_nn_layer_norm(true, width, d->norm_eps) :
			       yk_nn_rms_norm(true, width, d->norm_eps);
}

static yoke_module *attention_new(const struct yk_decoder *d, int64_t width, int64_t heads)
{
	const int64_t q = heads * d->head_dim, kv = d->kv_heads * d->head_dim;
	yoke_module *m = group_new();
	bool good = m && !yoke_module_child(m, "q", yk_nn_linear(true, width, q, d->qkv_bias)) &&
		    !yoke_module_child(m, "k", yk_nn_linear(true, width, kv, d->qkv_bias)) &&
		    !yoke_module_child(m, "v", yk_nn_linear(true, width, kv, d->qkv_bias)) &&
		    !yoke_module_child(m, "out", yk_nn_linear(true, q, width, d->out_bias));
	if (good && d->qk_norm)
		good = !yoke_module_child(m, "q_norm", yk_decoder_norm(d, d->head_dim)) &&
		       !yoke_module_child(m, "k_norm", yk_decoder_norm(d, d->head_dim));
	return yk_layer_done(m, good);
}

static yoke_module *mlp_new(const struct yk_decoder *d, int64_t width)
{
	yoke_module *m = group_new();
	return yk_layer_done(
		m, m &&
			   !yoke_module_child(m, "up",
					      yk_nn_linear(true, width, d->hidden, d->mlp_bias)) &&
			   !yoke_module_child(m, "down",
					      yk_nn_linear(true, d->hidden, width, d->mlp_bias)) &&
			   (!d->gated ||
			    !yoke_module_child(m, "gate",
					       yk_nn_linear(true, width, d->hidden, d->mlp_bias))));
}

yoke_module *yk_decoder_block(const struct yk_decoder *d, int64_t width, int64_t heads)
{
	yoke_module *m = group_new();
	bool good = m && !yoke_module_child(m, "norm1", yk_decoder_norm(d, width)) &&
		    !yoke_module_child(m, "attn", attention_new(d, width, heads)) &&
		    !yoke_module_child(m, "norm2", yk_decoder_norm(d, width)) &&
		    !yoke_module_child(m, "mlp", mlp_new(d, width));
	if (good && d->post_norm)
		good = !yoke_module_child(m, "post1", yk_decoder_norm(d, width)) &&
		       !yoke_module_child(m, "post2", yk_decoder_norm(d, width));
	return yk_layer_done(m, good);
}

// ---- positions ----

void yk_rope_frequencies(const struct yk_rope *r, int64_t head_dim, float *to)
{
	const double turns = 2 * acos(-1), n = (double)head_dim;
	// yarn: columns below `first` keep their frequency; columns above `last` are interpolated
	double first = 0, last = 0;
	if (r->scaling == YK_ROPE_YARN) {
		first = floor(n * log(r->original / (turns * r->high)) / (2 * log(r->base)));
		last = ceil(n * log(r->original / (turns * r->low)) / (2 * log(r->base)));
		first = fmax(first, 0);
		last = fmin(last, n - 1);
		if (last <= first)
			last = first + 0.001;
	}
	for (int64_t i = 0; i < head_dim / 2; i++) {
		double f = pow(r->base, -2 * (double)i / n), share = 1; // share of interpolation
		if (r->scaling == YK_ROPE_PLAIN)
			share = 0;
		else if (r->scaling == YK_ROPE_LLAMA3) // by wavelength; Dubey et al. 2024
			share = 1 -
				fmin(fmax((r->original * f / turns - r->low) / (r->high - r->low),
					  0),
				     1);
		else if (r->scaling == YK_ROPE_YARN) // Peng et al. 2023
			share = fmin(fmax(((double)i - first) / (last - first), 0), 1);
		else if (r->scaling == YK_ROPE_DIVIDED) {
			f /= r->divisor[i];
			share = 0;
		}
		to[i] = (float)((1 - share) * f + (share > 0 ? share * f / r->factor : 0));
	}
}

bool yk_decoder_is_local(const struct yk_decoder *d, int64_t i)
{
	const bool full = i < YK_DECODER_LAYERS && d->full[i / 64] >> i % 64 & 1;
	return d->window && !full && !(d->window_period && (i + 1) % d->window_period == 0);
}

void yk_decoder_set_local(struct yk_decoder *d, int64_t layers, const bool *local)
{
	bool regular = true, any = false;
	int64_t period = 0;
	for (int64_t i = 0; i < layers; i++) {
		any |= local[i];
		period = period || local[i] ? period : i + 1;
	}
	for (int64_t i = 0; i < layers && period; i++)
		regular = regular && local[i] == ((i + 1) % period != 0);
	d->window = any ? d->window : 0;
	d->window_period = d->window && regular ? period : 0;
	memset(d->full, 0, sizeof d->full);
	for (int64_t i = 0; i < layers && d->window && !regular; i++)
		if (!local[i])
			d->full[i / 64] |= UINT64_C(1) << i % 64;
}

// ---- attention ----

static yoke_tensor *rotated(const struct yk_decoder_view *view, yoke_tensor *x)
{
	const int64_t b = yoke_dim(x, 0), t = yoke_dim(x, 1), h = yoke_dim(x, 2),
		      d = yoke_dim(x, 3);
	if (!view->cosine)
		return x;
	if (yoke_dim(view->cosine, 0) == t)
		return yoke_rope(x, view->cosine, view->sine);
	// each row has its own positions: one long row for the op
	x = yoke_rope(yoke_reshape(x, 4, (int64_t[]){ 1, b * t, h, d }), view->cosine, view->sine);
	return yoke_reshape(x, 4, (int64_t[]){ b, t, h, d });
}

// [B,T,G R,D] -> [B,G,R T,D]: heads that share keys become additional query rows of these keys
static yoke_tensor *by_group(yoke_tensor *x, int64_t groups)
{
	const int64_t b = yoke_dim(x, 0), t = yoke_dim(x, 1), r = yoke_dim(x, 2) / groups,
		      n = yoke_dim(x, 3);
	x = yoke_permute(yoke_reshape(x, 5, (int64_t[]){ b, t, groups, r, n }),
			 (int[]){ 0, 2, 3, 1, 4 });
	return yoke_reshape(x, 4, (int64_t[]){ b, groups, r * t, n });
}

// Attention whose scores are limited by tanh (Gemma 2). The mask also enforces causality.
static yoke_tensor *capped(const struct yk_decoder *d, yoke_tensor *q, yoke_tensor *k,
			   yoke_tensor *v, yoke_tensor *mask)
{
	const int64_t b = yoke_dim(q, 0), t = yoke_dim(q, 1), h = yoke_dim(q, 2),
		      g = yoke_dim(k, 2), s = yoke_dim(k, 1);
	const int64_t dims[] = { b, g, h / g, t, s };
	q = by_group(q, g);
	k = by_group(k, g);
	v = by_group(v, g);
	yoke_tensor *y = yoke_matmul(q, k, YOKE_TB);
	y = yoke_mul(yoke_tanh(yoke_mul(y, yoke_const(d->attention_scale / d->attention_cap))),
		     yoke_const(d->attention_cap));
	mask = yoke_reshape(mask, 5, (int64_t[]){ yoke_dim(mask, 0), 1, 1, t, s });
	y = yoke_select(mask, yoke_reshape(y, 5, dims), yoke_const(-INFINITY));
	y = yoke_reshape(yoke_softmax(y, -1), 4, (int64_t[]){ b, g, h / g * t, s });
	y = yoke_reshape(yoke_matmul(y, v, 0), 5, (int64_t[]){ b, g, h / g, t, d->head_dim });
	return yoke_reshape(yoke_permute(y, (int[]){ 0, 3, 1, 2, 4 }), 4,
			    (int64_t[]){ b, t, h, d->head_dim });
}

// Attention over a paged cache, to which k and v are added: q [1,T,H,D], k and v [1,T,G,D].
static yoke_tensor *paged(const struct yk_decoder *d, int64_t window,
			  const struct yk_network_step *step, const struct yk_decoder_kv *kv,
			  yoke_tensor *q, yoke_tensor *k, yoke_tensor *v)
{
	const int64_t t = yoke_dim(q, 1), dims[] = { t, d->kv_heads, d->head_dim },
		      heads[] = { t, -1, d->head_dim },
		      pages[] = { -1, YK_PAGE, d->kv_heads, d->head_dim };
	yoke_tensor *to[] = { kv->keys, kv->values }, *from[] = { k, v };
	for (int i = 0; i < 2; i++)
		yoke_assign(to[i], yoke_scatter_set(to[i], step->slot,
						    yoke_cast(yoke_reshape(from[i], 3, dims),
							      yoke_dtype(to[i]))));
	yoke_tensor *y =
		yoke_paged_attention(yoke_reshape(q, 3, heads), yoke_reshape(kv->keys, 4, pages),
				     yoke_reshape(kv->values, 4, pages), step->table, step->row,
				     step->pos, d->attention_scale, window, d->attention_cap);
	return yoke_reshape(y, 4, (int64_t[]){ 1, t, -1, d->head_dim });
}

static yoke_tensor *attend(const struct yk_decoder *d, bool local,
			   const struct yk_decoder_view *view, const struct yk_decoder_positions *p,
			   const struct yk_decoder_kv *kv, yoke_tensor *q, yoke_tensor *k,
			   yoke_tensor *v)
{
	q = rotated(view, q);
	k = rotated(view, k);
	if (p->step)
		return paged(d, local ? d->window : 0, p->step, kv, q, k, v);
	if (p->at) {
		yk_attention_store(kv->keys, kv->values, p->at, k, v);
		k = kv->keys;
		v = kv->values;
	}
	if (d->attention_cap > 0)
		return capped(d, q, yoke_cast(k, yoke_dtype(q)), yoke_cast(v, yoke_dtype(q)),
			      view->mask);
	yoke_tensor *mask = view->mask ? view->mask : YOKE_NONE;
	return p->at ? yk_attention_cached(q, k, v, p->seen, mask, 1, d->attention_scale) :
		       yoke_attention(q, k, v, mask, 1, d->attention_scale, 0);
}

// Row r of x, or x itself if it is the only one.
static yoke_tensor *row_of(yoke_tensor *x, int64_t rows, int64_t r)
{
	return rows == 1 ? x : yoke_slice(x, 0, r, r + 1, 1);
}

// A product of x, split into heads [B,T,n,D], and normalized if there is a norm.
static yoke_tensor *heads(const struct yk_decoder *d, yoke_module *product, yoke_module *norm,
			  yoke_tensor *x)
{
	yoke_tensor *y = yk_call_inside(product, 1, &x);
	y = yoke_reshape(y, 4, (int64_t[]){ yoke_dim(x, 0), yoke_dim(x, 1), -1, d->head_dim });
	return norm ? yk_call_inside(norm, 1, &y) : y;
}

static yoke_tensor *attention(yoke_module *m, const struct yk_decoder *d, bool local,
			      const struct yk_decoder_positions *p, const struct yk_decoder_kv *kv,
			      yoke_tensor *x)
{
	const int64_t b = yoke_dim(x, 0), t = yoke_dim(x, 1);
	yoke_tensor *q = heads(d, m->child[Q], d->qk_norm ? m->child[Q_NORM] : NULL, x);
	yoke_tensor *k = heads(d, m->child[K], d->qk_norm ? m->child[K_NORM] : NULL, x);
	yoke_tensor *v = heads(d, m->child[V], NULL, x), *y[YK_CACHES];
	const int64_t rows = p->at ? b : 1;
	for (int64_t r = 0; r < rows; r++) {
		yoke_tensor *qr = row_of(q, rows, r), *kr = row_of(k, rows, r),
			    *vr = row_of(v, rows, r);
		y[r] = attend(d, local, local ? &p[r].local : &p[r].all, &p[r], kv ? &kv[r] : NULL,
			      qr, kr, vr);
	}
	yoke_tensor *all = rows == 1 ? y[0] : yoke_concat((int)rows, y, 0);
	all = yoke_reshape(all, 3, (int64_t[]){ b, t, -1 });
	return yk_call_inside(m->child[OUT], 1, &all);
}

// ---- the block ----

static yoke_tensor *mlp(yoke_module *m, const struct yk_decoder *d, yoke_tensor *x)
{
	static yoke_tensor *(*const act[])(yoke_tensor *) = {
		[YK_DECODER_SILU] = yoke_silu,
		[YK_DECODER_GELU_TANH] = yoke_gelu_tanh,
		[YK_DECODER_GELU] = yoke_gelu,
	};
	yoke_tensor *up = yk_call_inside(m->child[UP], 1, &x);
	yoke_tensor *y =
		d->gated ? yoke_mul(act[d->activation](yk_call_inside(m->child[GATE], 1, &x)), up) :
			   act[d->activation](up);
	return yk_call_inside(m->child[DOWN], 1, &y);
}

// x plus the output of a half of the block.
static yoke_tensor *added(yoke_module *post, yoke_tensor *x, yoke_tensor *y, double dropout)
{
	if (post)
		y = yk_call_inside(post, 1, &y);
	return yoke_add(x, yoke_dropout(y, dropout));
}

yoke_tensor *yk_decoder_block_forward(yoke_module *m, const struct yk_decoder *d, int64_t i,
				      const struct yk_decoder_positions *p,
				      const struct yk_decoder_kv *kv, yoke_tensor *x,
				      double dropout)
{
	yoke_scope *block = yoke_scope_begin(m->name), *s = yoke_scope_begin("attn");
	yoke_tensor *y = attention(m->child[ATTN], d, yk_decoder_is_local(d, i), p, kv,
				   yk_call_inside(m->child[NORM1], 1, &x));
	x = yoke_lift(added(d->post_norm ? m->child[POST1] : NULL, x, y, dropout));
	yoke_scope_end(s);
	s = yoke_scope_begin("mlp");
	y = mlp(m->child[MLP], d, yk_call_inside(m->child[NORM2], 1, &x));
	x = yoke_lift(yoke_lift(added(d->post_norm ? m->child[POST2] : NULL, x, y, dropout)));
	yoke_scope_end(s);
	yoke_scope_end(block);
	return x;
}
