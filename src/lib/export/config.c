// SPDX-License-Identifier: Apache-2.0
// config.json of a model from a GGUF file or from a checkpoint, and what of it other formats cannot
// express.
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/number.h"
#include "export/export.h"
#include "nn/decoder.h"

// The class of transformers that loads a family.
static const struct {
	const char *family, *class;
} classes[] = {
	{ "llama", "LlamaForCausalLM" },   { "qwen2", "Qwen2ForCausalLM" },
	{ "qwen3", "Qwen3ForCausalLM" },   { "phi3", "Phi3ForCausalLM" },
	{ "gemma2", "Gemma2ForCausalLM" }, { "gemma3", "Gemma3ForCausalLM" },
	{ "gpt2", "GPT2LMHeadModel" },
};

// The decimal number with the fewest digits that is read back as the same f32: GGUF files store
// f32.
static json_t *short_real(double v)
{
	char text[40];
	for (int digits = 1; digits < 10; digits++) {
		yk_snprintf(text, sizeof text, "%.*g", digits, v);
		if ((float)yk_strtod(text, NULL) == (float)v)
			return json_real(yk_strtod(text, NULL));
	}
	return json_real(v);
}

static void set_int(json_t *o, const char *key, int64_t v)
{
	json_object_set_new(o, key, json_integer(v));
}

static void set_bool(json_t *o, const char *key, bool v)
{
	json_object_set_new(o, key, json_boolean(v));
}

static void set_real(json_t *o, const char *key, double v)
{
	json_object_set_new(o, key, short_real(v));
}

// A real key that is null if v is 0.
static void set_limit(json_t *o, const char *key, double v)
{
	json_object_set_new(o, key, v != 0 ? short_real(v) : json_null());
}

// ---- rotary embedding ----

static json_t *divisors(const float *v, int64_t n)
{
	json_t *list = json_array();
	for (int64_t i = 0; i < n; i++)
		json_array_append_new(list, short_real((double)v[i]));
	return list;
}

// The parameters of Llama 3 whose divisors are these; GGUF files have only the divisors.
static bool is_llama3(const struct yk_rope *r, int64_t head_dim, struct yk_rope *to)
{
	const double factors[] = { 8, 32 };
	float frequency[YK_ROPE_COLUMNS], wanted[YK_ROPE_COLUMNS];
	yk_rope_frequencies(r, head_dim, wanted);
	for (int k = 0; k < 2; k++) {
		bool same = true;
		*to = (struct yk_rope){ .base = r->base,
					.scaling = YK_ROPE_LLAMA3,
					.factor = factors[k],
					.low = 1,
					.high = 4,
					.original = 8192 };
		yk_rope_frequencies(to, head_dim, frequency);
		for (int64_t i = 0; i < head_dim / 2; i++)
			same = same && fabsf(frequency[i] - wanted[i]) <= 1e-6f * wanted[i];
		if (same)
			return true;
	}
	return false;
}

// One of the two tables of a model with long and short divisors.
static json_t *table_of(const struct yk_export *x, const char *name)
{
	const struct yk_gguf_tensor *t =
		x->weights->is_gguf ? yk_gguf_tensor(&x->weights->gguf, name) : NULL;
	float v[YK_ROPE_COLUMNS];
	const int64_t n = x->shape.decoder.head_dim / 2;
	if (!t || t->format != YK_GGUF_F32 || t->rank != 1 || t->dims[0] != n)
		return NULL;
	memcpy(v, t->data, (size_t)n * sizeof *v);
	return divisors(v, n);
}

static json_t *divided(const struct yk_export *x, json_t *config)
{
	const struct yk_rope *r = &x->shape.decoder.rope;
	struct yk_rope llama3;
	json_t *lengthy = table_of(x, "rope_factors_long.weight"),
	       *brief = table_of(x, "rope_factors_short.weight");
	if (!lengthy && is_llama3(r, x->shape.decoder.head_dim, &llama3))
		return json_pack("{s:s, s:f, s:f, s:f, s:i}", "rope_type", "llama3", "factor",
				 llama3.factor, "low_freq_factor", llama3.low, "high_freq_factor",
				 llama3.high, "original_max_position_embeddings", 8192);
	lengthy = lengthy ? lengthy : divisors(r->divisor, x->shape.decoder.head_dim / 2);
	brief = brief ? brief : json_deep_copy(lengthy);
	const int64_t original = r->original > 0 ? (int64_t)r->original : x->shape.context;
	set_int(config, "original_max_position_embeddings", original);
	json_t *o = json_pack("{s:s, s:o, s:o}",
			      x->written->names == YK_NAMES_PHI3 ? "type" : "rope_type", "longrope",
			      "short_factor", brief, "long_factor", lengthy);
	if (x->written->names != YK_NAMES_PHI3) {
		set_real(o, "attention_factor", r->magnitude != 0 ? r->magnitude : 1);
		set_int(o, "original_max_position_embeddings", original);
	}
	return o;
}

static json_t *scaling_of(const struct yk_export *x, json_t *config)
{
	const struct yk_rope *r = &x->shape.decoder.rope;
	switch (r->scaling) {
	case YK_ROPE_LINEAR:
		return json_pack("{s:s, s:o}", "rope_type", "linear", "factor",
				 short_real(r->factor));
	case YK_ROPE_LLAMA3:
		return json_pack("{s:s, s:o, s:o, s:o, s:I}", "rope_type", "llama3", "factor",
				 short_real(r->factor), "low_freq_factor", short_real(r->low),
				 "high_freq_factor", short_real(r->high),
				 "original_max_position_embeddings", (json_int_t)r->original);
	case YK_ROPE_YARN:
		return json_pack("{s:s, s:o, s:I, s:o, s:o, s:o}", "rope_type", "yarn", "factor",
				 short_real(r->factor), "original_max_position_embeddings",
				 (json_int_t)r->original, "beta_fast", short_real(r->high),
				 "beta_slow", short_real(r->low), "attention_factor",
				 short_real(r->magnitude));
	case YK_ROPE_DIVIDED: return divided(x, config);
	default: return json_null();
	}
}

// ---- families ----

static void add_gpt2(const struct yk_model_shape *s, json_t *o)
{
	const struct yk_decoder *d = &s->decoder;
	set_int(o, "n_embd", s->embed);
	set_int(o, "n_layer", s->layers);
	set_int(o, "n_head", s->heads);
	set_int(o, "n_positions", s->context);
	set_int(o, "n_ctx", s->context);
	set_int(o, "n_inner", d->hidden);
	json_object_set_new(o, "activation_function", json_string("gelu_new"));
	set_real(o, "layer_norm_epsilon", d->norm_eps);
}

static void add_gemma(const struct yk_export *x, json_t *o)
{
	const struct yk_decoder *d = &x->shape.decoder;
	json_object_set_new(o, "hidden_activation", json_string(x->written->activation));
	set_real(o, "query_pre_attn_scalar", round(1 / (d->attention_scale * d->attention_scale)));
	set_limit(o, "attn_logit_softcapping", d->attention_cap);
	set_limit(o, "final_logit_softcapping", d->logit_cap);
	if (d->qk_norm)
		set_real(o, "rope_local_base_freq", d->rope_local.base);
	json_t *types = json_array();
	for (int64_t i = 0; i < x->shape.layers; i++)
		json_array_append_new(types, json_string(yk_decoder_is_local(d, i) ?
							 "sliding_attention" :
							 "full_attention"));
	json_object_set_new(o, "layer_types", types);
}

static void add_llama(const struct yk_export *x, json_t *o)
{
	const struct yk_model_shape *s = &x->shape;
	const struct yk_decoder *d = &s->decoder;
	set_int(o, "hidden_size", s->embed);
	set_int(o, "intermediate_size", d->hidden);
	set_int(o, "num_hidden_layers", s->layers);
	set_int(o, "num_attention_heads", s->heads);
	set_int(o, "num_key_value_heads", d->kv_heads);
	set_int(o, "head_dim", d->head_dim);
	set_int(o, "max_position_embeddings", s->context);
	set_real(o, "rms_norm_eps", d->norm_eps);
	set_real(o, "rope_theta", d->rope.base);
	json_object_set_new(o, "rope_scaling", scaling_of(x, o));
	json_object_set_new(o, "hidden_act", json_string(x->written->activation));
	if (d->out_bias)
		set_bool(o, "attention_bias", true);
	if (d->mlp_bias)
		set_bool(o, "mlp_bias", true);
	if (d->window)
		set_int(o, "sliding_window", d->window);
	else if (x->written->names == YK_NAMES_PHI3)
		json_object_set_new(o, "sliding_window", json_null());
	if (x->written->names == YK_NAMES_GEMMA)
		add_gemma(x, o);
}

// Special ids; those of a tokenizer that has none are null, since the families' defaults are
// others.
static void add_ids(const struct yk_export *x, json_t *o)
{
	const int32_t *eos = NULL;
	const yoke_tokenizer *t = x->tokenizer;
	const int n = t ? yoke_tokenizer_eos(t, &eos) : 0, bos = t ? yoke_tokenizer_bos(t) : -1,
		  pad = t ? yoke_tokenizer_pad(t) : -1;
	json_t *ends = n > 1 ? json_array() : n == 1 ? json_integer(eos[0]) : json_null();
	for (int i = 0; i < n && n > 1; i++)
		json_array_append_new(ends, json_integer(eos[i]));
	json_object_set_new(o, "bos_token_id", bos >= 0 ? json_integer(bos) : json_null());
	json_object_set_new(o, "eos_token_id", ends);
	json_object_set_new(o, "pad_token_id", pad >= 0 ? json_integer(pad) : json_null());
}

json_t *yk_export_config(const struct yk_export *x)
{
	const char *class = "";
	for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
		if (!strcmp(classes[i].family, x->written->name))
			class = classes[i].class;
	json_t *o = json_pack("{s:[s], s:s, s:I, s:b}", "architectures", class, "model_type",
			      x->written->hf[0], "vocab_size", (json_int_t)x->shape.vocab,
			      "tie_word_embeddings", x->shape.decoder.tied);
	if (o && x->written->names == YK_NAMES_GPT2)
		add_gpt2(&x->shape, o);
	else if (o)
		add_llama(x, o);
	if (o)
		add_ids(x, o);
	else
		yk_fail(YOKE_ENOMEM, "%s: no memory for a configuration", x->path);
	return o;
}
