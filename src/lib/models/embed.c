// SPDX-License-Identifier: Apache-2.0
// A vector for a text: the hidden states of its tokens, pooled.
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sized.h"
#include "models/pretrained.h"
#include "nn/encoder.h"

enum { BATCH = 32, STEP = 16 }; // texts computed at once; lengths are rounded up, for fewer plans

static int settings_of(yoke_model *m, const struct yoke_embed_options *options,
		       struct yk_embedding *to)
{
	static const char *const names[] = { [YK_POOLING_MEAN] = "mean",
					     [YK_POOLING_CLS] = "cls",
					     [YK_POOLING_MAX] = "max",
					     [YK_POOLING_LAST] = "last" };
	struct yoke_embed_options o = { 0 };
	if (options &&
	    yk_sized_read(&o, sizeof o, options, "model_embed", "yoke_embed_options") < 0)
		return yoke_error_code();
	const int e = yk_embedding_of(m->path, o.prompt_name, to);
	if (e < 0)
		return e;
	if (o.normalize)
		to->normalize = o.normalize > 0;
	if (!o.pooling)
		return 0;
	for (int i = YK_POOLING_MEAN; i <= YK_POOLING_LAST; i++)
		if (!strcmp(names[i], o.pooling)) {
			to->pooling = (enum yk_pooling)i;
			return 0;
		}
	return yk_fail(YOKE_EINVAL, "model_embed: pooling '%.40s' is not mean, cls, max or last",
		       o.pooling);
}

// hidden [B,T,E], mask and last bool [B,T,1] -> [B,E]
static yoke_tensor *pooled(const struct yk_embedding *s, yoke_tensor *hidden, yoke_tensor *mask,
			   yoke_tensor *last, yoke_tensor *length)
{
	yoke_tensor *zero = yoke_const(0), *y = NULL;
	switch (s->pooling) {
	case YK_POOLING_CLS: y = yoke_sum(yoke_slice(hidden, 1, 0, 1, 1), 1u << 1); break;
	case YK_POOLING_MAX:
		y = yoke_reduce_max(yoke_select(mask, hidden, yoke_const(-INFINITY)), 1u << 1);
		break;
	case YK_POOLING_LAST: y = yoke_sum(yoke_select(last, hidden, zero), 1u << 1); break;
	case YK_POOLING_MEAN:
		y = yoke_div(yoke_sum(yoke_select(mask, hidden, zero), 1u << 1), length);
		break;
	}
	if (!s->normalize)
		return y;
	yoke_tensor *norm = yoke_sqrt(yoke_sum(yoke_square(y), 1u << 1 | YOKE_KEEP));
	return yoke_div(y, yoke_max(norm, yoke_const(1e-12)));
}

static yoke_tensor *embed(yoke_model *m, const struct yk_embedding *s, yoke_tensor *ids,
			  yoke_tensor *lengths)
{
	const int64_t b = yoke_dim(ids, 0), t = yoke_dim(ids, 1),
		      context = m->is.net->shape.context;
	if (t > context) {
		yk_fail(YOKE_ESHAPE, "model_embed: %" PRId64 " tokens exceed the context, %" PRId64,
			t, context);
		return NULL;
	}
	yoke_tensor *at = yoke_iota(yoke_i32, 3, (int64_t[]){ 1, t, 1 }, 1),
		    *n = yoke_reshape(lengths, 3, (int64_t[]){ b, 1, 1 });
	yoke_tensor *mask = yoke_lt(at, n);
	yoke_tensor *last = yoke_eq(at, yoke_sub(n, yoke_const(1)));
	// later tokens do not change a decoder's earlier ones
	yoke_tensor *hidden =
		m->is.family->encoder ?
			yk_encoder_forward(m->is.net, ids,
					   yoke_reshape(mask, 4, (int64_t[]){ b, 1, 1, t })) :
			yk_network_forward(m->is.net, ids, 0);
	return pooled(s, hidden, mask, last,
		      yoke_cast(yoke_reshape(lengths, 2, (int64_t[]){ b, 1 }), yoke_f32));
}

yoke_tensor *yoke_model_embed(yoke_model *m, yoke_tensor *ids, yoke_tensor *lengths,
			      const struct yoke_embed_options *options)
{
	struct yk_embedding s;
	if (!m)
		yk_fail(YOKE_EINVAL, "model_embed: the model is NULL");
	if (!m || !ids || !lengths || settings_of(m, options, &s) < 0)
		return NULL;
	if (yoke_rank(ids) != 2 || yoke_rank(lengths) != 1 ||
	    yoke_dim(lengths, 0) != yoke_dim(ids, 0)) {
		yk_fail(YOKE_ESHAPE, "model_embed: ids are [B,T] and lengths [B]");
		return NULL;
	}
	return embed(m, &s, ids, lengths);
}

// ---- texts ----

static int by_length(const void *a, const void *b)
{
	const struct yk_embed_text *x = a, *y = b;
	return x->n != y->n ? (x->n > y->n) - (x->n < y->n) :
			      (x->index > y->index) - (x->index < y->index);
}

// Encodes a text with special tokens; what is too long loses the end of its text, not the tokens
// after it.
static int encode_whole(const yoke_tokenizer *t, const char *text, size_t max,
			struct yk_embed_text *to)
{
	int32_t *bare = NULL;
	size_t n, first = 0;
	int e = yoke_tokenizer_encode(t, text, strlen(text), YOKE_TOKENIZER_ADD, &to->ids, &to->n);
	if (e < 0 || (to->n <= max && to->n > 0))
		return e;
	if (to->n == 0)
		return yk_fail(YOKE_EINVAL, "model_embed_texts: text %" PRId64 " has no tokens",
			       to->index);
	e = yoke_tokenizer_encode(t, text, strlen(text), 0, &bare, &n);
	if (e < 0)
		return e;
	const size_t added = to->n - n; // before and after the text
	while (first < added && memcmp(to->ids + first, bare, n * sizeof *bare))
		first++;
	free(bare);
	if (added >= max || n + added != to->n)
		return yk_fail(YOKE_EINVAL,
			       "model_embed_texts: %zu tokens are too few for the %zu special ones",
			       max, added);
	const size_t after = added - first;
	memmove(to->ids + max - after, to->ids + to->n - after, after * sizeof *to->ids);
	to->n = max;
	return 0;
}

int yk_embed_encode(const yoke_tokenizer *t, const char *prompt, const char *text, size_t max,
		    struct yk_embed_text *to)
{
	char *both = NULL;
	if (!*prompt)
		return encode_whole(t, text, max, to);
	if (asprintf(&both, "%s%s", prompt, text) < 0)
		return yk_fail(YOKE_ENOMEM, "model_embed_texts: no memory for a text");
	const int e = encode_whole(t, both, max, to);
	free(both);
	return e;
}

// Embeds texts of similar length at once.
static int embed_batch(yoke_model *m, const struct yk_embedding *s, int64_t n,
		       const struct yk_embed_text *text, float *to)
{
	const int64_t width = m->is.net->shape.embed, context = m->is.net->shape.context,
		      longest = (int64_t)text[n - 1].n;
	const int64_t rounded = (longest + STEP - 1) / STEP * STEP,
		      t = rounded < context ? rounded : context;
	int32_t *ids = calloc((size_t)(n * t), sizeof *ids), lengths[BATCH];
	float *host = malloc((size_t)(n * width) * sizeof *host);
	int e = ids && host ? 0 :
			      yk_fail(YOKE_ENOMEM,
				      "model_embed_texts: no memory for %" PRId64 " texts", n);
	for (int64_t i = 0; i < n && e == 0; i++) {
		memcpy(ids + i * t, text[i].ids, text[i].n * sizeof *ids);
		lengths[i] = (int32_t)text[i].n;
	}
	if (e == 0) {
		yoke_scope *scope = yoke_scope_begin("embed");
		yoke_tensor *y = embed(m, s, yoke_from(yoke_i32, 2, (int64_t[]){ n, t }, ids),
				       yoke_from(yoke_i32, 1, &n, lengths));
		yoke_read(y, host, (size_t)(n * width) * sizeof *host);
		e = yoke_scope_end(scope);
	}
	for (int64_t i = 0; i < n && e == 0; i++)
		memcpy(to + text[i].index * width, host + i * width, (size_t)width * sizeof *to);
	free(ids);
	free(host);
	return e;
}

int yk_embed_texts(yoke_model *m, const struct yk_embedding *s, int64_t n,
		   struct yk_embed_text *text, float *to)
{
	int e = 0;
	qsort(text, (size_t)n, sizeof *text, by_length);
	for (int64_t i = 0; i < n && e == 0; i += BATCH)
		e = embed_batch(m, s, n - i < BATCH ? n - i : BATCH, text + i, to);
	return e;
}

int yoke_model_embed_texts(yoke_model *m, int64_t n, const char *const *texts,
			   const struct yoke_embed_options *options, float *to)
{
	struct yk_embedding s;
	if (!m || n < 0 || (n && (!texts || !to)))
		return yk_fail(YOKE_EINVAL,
			       "model_embed_texts: the model, the texts or their place is NULL");
	int e = settings_of(m, options, &s);
	const yoke_tokenizer *t = e == 0 ? yoke_model_tokenizer(m) : NULL;
	if (!t)
		return yoke_error_code();
	const int64_t context = m->is.net->shape.context;
	const size_t max =
		(size_t)(s.max_tokens && s.max_tokens < context ? s.max_tokens : context);
	struct yk_embed_text *all = calloc((size_t)n + 1, sizeof *all);
	if (!all)
		return yk_fail(YOKE_ENOMEM, "model_embed_texts: no memory for %" PRId64 " texts",
			       n);
	for (int64_t i = 0; i < n && e == 0; i++) {
		all[i].index = i;
		e = texts[i] ?
			    yk_embed_encode(t, s.prompt, texts[i], max, &all[i]) :
			    yk_fail(YOKE_EINVAL, "model_embed_texts: text %" PRId64 " is NULL", i);
	}
	if (e == 0)
		e = yk_embed_texts(m, &s, n, all, to);
	for (int64_t i = 0; i < n; i++)
		free(all[i].ids);
	free(all);
	return e;
}
