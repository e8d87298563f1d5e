// SPDX-License-Identifier: Apache-2.0
// Reads the metadata of GGUF files, whose keys are "ARCHITECTURE.name".
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/half.h"
#include "models/family.h"

// The metadata being read; after an error all reads return the default.
struct reader {
	const struct yk_gguf *g;
	const struct yk_family *f;
	char key[128]; // of the last read
	int error;
	int64_t context; // max tokens that will be used; 0: as in the file
};

static const char *key_of(struct reader *r, const char *name)
{
	snprintf(r->key, sizeof r->key, "%s.%s", r->f->name, name);
	return r->key;
}

static int64_t integer(struct reader *r, const char *name, int64_t min, int64_t max,
		       int64_t otherwise)
{
	int64_t v = otherwise;
	const int e = r->error ? 0 : yk_gguf_int(r->g, key_of(r, name), min, max, &v);
	r->error = e < 0 ? e : r->error;
	return v;
}

static int64_t required(struct reader *r, const char *name, int64_t min, int64_t max)
{
	if (!r->error && !yk_gguf_key(r->g, key_of(r, name)))
		r->error = yk_fail(YOKE_EFORMAT, "%s: lacks the key '%s'", r->g->path, r->key);
	return integer(r, name, min, max, min);
}

static double real(struct reader *r, const char *name, double otherwise)
{
	double v = otherwise;
	const int e = r->error ? 0 : yk_gguf_real(r->g, key_of(r, name), &v);
	r->error = e < 0 ? e : r->error;
	return v;
}

static bool word_is(struct reader *r, const char *key, const char *word)
{
	const char *text;
	size_t bytes;
	const int e = r->error ? 0 : yk_gguf_string(r->g, key, &text, &bytes);
	r->error = e < 0 ? e : r->error;
	return e > 0 && bytes == strlen(word) && !memcmp(text, word, bytes);
}

// Divisors of the frequencies, as a tensor.
static void read_divisors(struct reader *r, const char *name, int64_t n, struct yk_rope *to)
{
	const struct yk_gguf_tensor *t = yk_gguf_tensor(r->g, name);
	if (r->error || !t)
		return;
	if (t->format != YK_GGUF_F32 || t->rank != 1 || t->dims[0] != n || n > YK_ROPE_COLUMNS) {
		r->error =
			yk_fail(YOKE_EFORMAT, "%s: tensor '%s' must be %" PRId64 " numbers in F32",
				r->g->path, name, n);
		return;
	}
	to->scaling = YK_ROPE_DIVIDED;
	memcpy(to->divisor, t->data, (size_t)n * sizeof *to->divisor);
}

static void read_rope(struct reader *r, struct yk_model_shape *s)
{
	struct yk_decoder *d = &s->decoder;
	const int64_t turned = integer(r, "rope.dimension_count", 1, 4096, d->head_dim);
	struct yk_rope *to = &d->rope;
	if (r->f->is.learned_positions)
		return;
	if (!r->error && turned != d->head_dim)
		r->error = yk_fail(YOKE_EFORMAT,
				   "%s: '%s' is %" PRId64 ", but heads have %" PRId64
				   " columns, which is not supported",
				   r->g->path, r->key, turned, d->head_dim);
	to->base = real(r, "rope.freq_base", 1e4);
	to->factor = real(r, "rope.scaling.factor", real(r, "rope.scale_linear", 1));
	if (to->factor == 0)
		to->factor = 1;
	to->original = (double)integer(r, "rope.scaling.original_context_length", 1, INT32_MAX,
				       s->context);
	char type[128];
	snprintf(type, sizeof type, "%s", key_of(r, "rope.scaling.type"));
	if (word_is(r, type, "linear") || (!yk_gguf_key(r->g, type) && to->factor != 1)) {
		to->scaling = YK_ROPE_LINEAR;
	} else if (word_is(r, type, "yarn")) {
		to->scaling = YK_ROPE_YARN;
		to->high = real(r, "rope.scaling.yarn_beta_fast", 32);
		to->low = real(r, "rope.scaling.yarn_beta_slow", 1);
		to->magnitude = (to->factor > 1 ? 0.1 * log(to->factor) + 1 : 1) *
				real(r, "rope.scaling.attn_factor", 1);
	} else if (!r->error && yk_gguf_key(r->g, type) && !word_is(r, type, "none") &&
		   !word_is(r, type, "longrope")) {
		r->error = yk_fail(YOKE_EFORMAT,
				   "%s: '%s' is not supported; none, linear, yarn and longrope are",
				   r->g->path, type);
	}
	read_divisors(r, "rope_freqs.weight", d->head_dim / 2, to);
	const bool extended = (double)(r->context ? r->context : s->context) > to->original;
	const bool factors = yk_gguf_tensor(r->g, "rope_factors_long.weight");
	if (factors && !yk_gguf_tensor(r->g, "rope_factors_short.weight") && !r->error)
		r->error = yk_fail(
			YOKE_EFORMAT,
			"%s: has rope_factors_long.weight without rope_factors_short.weight",
			r->g->path);
	if (factors) {
		read_divisors(r,
			      extended ? "rope_factors_long.weight" : "rope_factors_short.weight",
			      d->head_dim / 2, to);
		const double scale = (double)s->context / to->original;
		to->magnitude = real(r, "rope.scaling.attn_factor",
				     scale > 1 ? sqrt(1 + log(scale) / log(to->original)) : 1);
	}
	d->rope_local = *to;
	if (r->f->names == YK_NAMES_GEMMA && r->f->is.qk_norm)
		d->rope_local = (struct yk_rope){ .base = real(r, "rope.freq_base_swa", 1e4) };
}

int yk_family_of_gguf(const struct yk_gguf *g, int64_t context, const struct yk_family **family,
		      struct yk_model_shape *to)
{
	struct reader r = { .g = g, .context = context };
	struct yk_model_shape s = { 0 };
	struct yk_decoder *d = &s.decoder;
	const char *name;
	size_t bytes;
	int e = yk_gguf_string(g, "general.architecture", &name, &bytes);
	if (e <= 0)
		return e < 0 ? e :
			       yk_fail(YOKE_EFORMAT, "%s: lacks the key 'general.architecture'",
				       g->path);
	for (int i = 0; (r.f = yk_family_at(i)); i++)
		if (bytes == strlen(r.f->name) && !memcmp(r.f->name, name, bytes))
			break;
	if (!r.f)
		return yk_fail(YOKE_EFORMAT,
			       "%s: architecture '%.*s' is not supported; supported are %s",
			       g->path, (int)(bytes < 40 ? bytes : 40), name, yk_family_list());
	const struct yk_gguf_tensor *embed = yk_gguf_tensor(g, "token_embd.weight");
	if (!embed || embed->rank != 2)
		return yk_fail(YOKE_EFORMAT, "%s: %s the tensor 'token_embd.weight'", g->path,
			       embed ? "has not two dims of" : "lacks");
	*d = r.f->is;
	s.vocab = embed->dims[0];
	s.layers = required(&r, "block_count", 1, 1000);
	s.embed = required(&r, "embedding_length", 1, 65536);
	s.heads = required(&r, "attention.head_count", 1, 1024);
	s.context = required(&r, "context_length", 1, INT32_MAX);
	d->hidden = required(&r, "feed_forward_length", 1, 1 << 24);
	d->kv_heads = integer(&r, "attention.head_count_kv", 1, 1024, s.heads);
	d->head_dim = integer(&r, "attention.key_length", 1, 4096, s.embed / s.heads);
	if (!r.error && integer(&r, "attention.value_length", 1, 4096, d->head_dim) != d->head_dim)
		r.error = yk_fail(YOKE_EFORMAT,
				  "%s: values have another width than keys, which is not supported",
				  g->path);
	d->norm_eps = real(&r,
			   d->layer_norm ? "attention.layer_norm_epsilon" :
					   "attention.layer_norm_rms_epsilon",
			   1e-5);
	if (r.f->encoder) {
		const struct yk_gguf_tensor *types = yk_gguf_tensor(g, "token_types.weight");
		d->token_types = types && types->rank == 2 ? types->dims[0] : 1;
	}
	d->window = r.f->is.window_period || r.f->names == YK_NAMES_PHI3 ?
			    integer(&r, "attention.sliding_window", 0, INT32_MAX,
				    strcmp(r.f->name, "gemma2") ? 0 : 4096) :
			    0;
	d->window_period = d->window ? d->window_period : 0;
	d->attention_cap = real(&r, "attn_logit_softcapping", d->attention_cap);
	d->logit_cap = real(&r, "final_logit_softcapping", d->logit_cap);
	d->activation = strcmp(r.f->activation, "silu") ? YK_DECODER_GELU_TANH : YK_DECODER_SILU;
	d->tied = !yk_gguf_tensor(g, "output.weight");
	d->qkv_bias |= yk_gguf_tensor(g, "blk.0.attn_q.bias") != NULL;
	d->out_bias |= yk_gguf_tensor(g, "blk.0.attn_output.bias") != NULL;
	d->mlp_bias |= yk_gguf_tensor(g, "blk.0.ffn_up.bias") != NULL;
	d->embed_scale = r.f->scales_embedding ? sqrt((double)s.embed) : 1;
	const bool large = s.layers == r.f->large_layers;
	d->attention_scale =
		1 / sqrt(large ? (double)s.embed / (double)s.heads : (double)d->head_dim);
	read_rope(&r, &s);
	if (r.error)
		return r.error;
	*family = r.f;
	*to = s;
	return 0;
}
