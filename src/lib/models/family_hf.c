// SPDX-License-Identifier: Apache-2.0
// Reads the config.json of Hugging Face's folders.
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "models/family.h"
#include "nn/decoder.h"

// The configuration being read; after an error all reads return the default.
struct reader {
	const json_t *o;
	const char *path;
	int error;
	int64_t context; // max tokens that will be used; 0: what the file says
};

// Keys that are absent or null have the default.
static bool has(const struct reader *r, const char *key)
{
	const json_t *v = json_object_get(r->o, key);
	return !r->error && v && !json_is_null(v);
}

static int64_t integer(struct reader *r, const char *key, int64_t min, int64_t max, int64_t otherwise)
{
	int64_t v = otherwise;
	if (has(r, key))
		r->error = yk_json_int(r->o, r->path, key, min, max, &v);
	return v;
}

static int64_t required(struct reader *r, const char *key, int64_t min, int64_t max)
{
	int64_t v = min;
	if (!r->error)
		r->error = yk_json_int(r->o, r->path, key, min, max, &v);
	return v;
}

static double real(struct reader *r, const char *key, double otherwise)
{
	double v = otherwise;
	if (has(r, key))
		r->error = yk_json_real(r->o, r->path, key, &v);
	return v;
}

static bool flag(struct reader *r, const char *key, bool otherwise)
{
	const json_t *v = has(r, key) ? json_object_get(r->o, key) : NULL;
	if (v && !json_is_boolean(v))
		r->error = yk_fail(YOKE_EFORMAT, "%s: '%s' is neither true nor false", r->path, key);
	return v ? json_is_true(v) : otherwise;
}

static const char *word(struct reader *r, const char *key, const char *otherwise)
{
	const char *v = otherwise;
	if (has(r, key))
		r->error = yk_json_str(r->o, r->path, key, &v);
	return v;
}

// A limit that null switches off.
static double cap(struct reader *r, const char *key, double otherwise)
{
	return json_is_null(json_object_get(r->o, key)) ? 0 : real(r, key, otherwise);
}

// ---- rotary embedding ----

static void read_yarn(struct reader *s, struct yk_rope *to, double context)
{
	to->scaling = YK_ROPE_YARN;
	to->original = real(s, "original_max_position_embeddings", context);
	to->high = real(s, "beta_fast", 32);
	to->low = real(s, "beta_slow", 1);
	to->magnitude = real(s, "attention_factor", to->factor > 1 ? 0.1 * log(to->factor) + 1 : 1);
	if (has(s, "mscale") || has(s, "mscale_all_dim"))
		s->error = yk_fail(YOKE_EFORMAT, "%s: yarn with 'mscale' is not supported", s->path);
}

// Long and short factors; which apply depends on the context.
static void read_divisors(struct reader *s, struct yk_rope *to, const struct yk_model_shape *shape, double original)
{
	original = real(s, "original_max_position_embeddings", original);
	const double factor = real(s, "factor", (double)shape->context / original);
	const bool extended = (double)(s->context ? s->context : shape->context) > original;
	const char *key = extended ? "long_factor" : "short_factor";
	const json_t *list = json_object_get(s->o, key);
	const int64_t n = shape->decoder.head_dim / 2;
	if (s->error)
		return;
	if (!json_is_array(list) || (int64_t)json_array_size(list) != n || n > YK_ROPE_COLUMNS) {
		s->error = yk_fail(YOKE_EFORMAT, "%s: '%s' must be a list of %" PRId64 " numbers", s->path, key, n);
		return;
	}
	to->scaling = YK_ROPE_DIVIDED;
	for (int64_t i = 0; i < n; i++)
		to->divisor[i] = (float)json_number_value(json_array_get(list, (size_t)i));
	to->magnitude = real(s, "attention_factor", factor > 1 ? sqrt(1 + log(factor) / log(original)) : 1);
}

// o: the members of rope_scaling, or of rope_parameters, which also has rope_theta; NULL: there are
// none.
static void read_rope(struct reader *r, const json_t *o, struct yk_model_shape *shape, struct yk_rope *to)
{
	struct reader s = { .o = o, .path = r->path, .error = r->error, .context = r->context };
	const double context = (double)shape->context;
	if (!o || json_is_null(o) || s.error)
		return;
	if (!json_is_object(o)) {
		r->error = yk_fail(YOKE_EFORMAT, "%s: the scaling of RoPE is not an object", r->path);
		return;
	}
	const char *type = word(&s, "rope_type", NULL);
	if (!type)
		type = word(&s, "type", "default");
	to->base = real(&s, "rope_theta", to->base);
	to->factor = real(&s, "factor", 0);
	if (real(&s, "partial_rotary_factor", 1) != 1)
		s.error = yk_fail(YOKE_EFORMAT, "%s: 'partial_rotary_factor' is not 1, which is not supported", r->path);
	const bool scaled = !strcmp(type, "linear") || !strcmp(type, "llama3") || !strcmp(type, "yarn");
	if (s.error == 0 && to->factor <= 0 && scaled)
		s.error = yk_fail(YOKE_EFORMAT, "%s: RoPE of type %s lacks a positive 'factor'", r->path, type);
	if (!strcmp(type, "linear")) {
		to->scaling = YK_ROPE_LINEAR;
	} else if (!strcmp(type, "llama3")) {
		to->scaling = YK_ROPE_LLAMA3;
		to->low = real(&s, "low_freq_factor", 1);
		to->high = real(&s, "high_freq_factor", 4);
		to->original = real(&s, "original_max_position_embeddings", 8192);
	} else if (!strcmp(type, "yarn")) {
		read_yarn(&s, to, context);
	} else if (!strcmp(type, "longrope") || !strcmp(type, "su")) {
		read_divisors(&s, to, shape, real(r, "original_max_position_embeddings", context));
	} else if (strcmp(type, "default")) {
		s.error = yk_fail(YOKE_EFORMAT, "%s: unknown RoPE type '%.40s'; known are default, linear, llama3, yarn, longrope", r->path,
				  type);
	}
	if (r->error == 0)
		r->error = s.error;
}

static void read_ropes(struct reader *r, const struct yk_family *f, struct yk_model_shape *s)
{
	struct yk_decoder *d = &s->decoder;
	const json_t *parameters = json_object_get(r->o, "rope_parameters"), *full = json_object_get(parameters, "full_attention");
	if (f->is.learned_positions)
		return;
	if (json_is_null(parameters))
		parameters = NULL;
	if (real(r, "partial_rotary_factor", 1) != 1)
		r->error = yk_fail(YOKE_EFORMAT, "%s: 'partial_rotary_factor' is not 1, which is not supported", r->path);
	d->rope.base = d->rope_local.base = real(r, "rope_theta", 1e4);
	read_rope(r, parameters ? full ? full : parameters : json_object_get(r->o, "rope_scaling"), s, &d->rope);
	if (!d->window)
		return;
	if (full) {
		read_rope(r, json_object_get(parameters, "sliding_attention"), s, &d->rope_local);
	} else if (f->names == YK_NAMES_GEMMA && f->is.qk_norm) {
		d->rope_local.base = real(r, "rope_local_base_freq", 1e4); // never scaled
	} else {
		d->rope_local = d->rope;
	}
}

// ---- window ----

// layer_types lists "full_attention" or "sliding_attention" for each layer; the decoder has a period.
static void read_layer_types(struct reader *r, struct yk_model_shape *s)
{
	struct yk_decoder *d = &s->decoder;
	const json_t *types = json_object_get(r->o, "layer_types"), *type;
	size_t i;
	if (r->error || !types || json_is_null(types))
		return;
	if (!json_is_array(types) || (int64_t)json_array_size(types) != s->layers) {
		r->error = yk_fail(YOKE_EFORMAT, "%s: 'layer_types' must list %" PRId64 " layers", r->path, s->layers);
		return;
	}
	d->window_period = 0;
	json_array_foreach(types, i, type) {
		const char *name = json_is_string(type) ? json_string_value(type) : "";
		const bool full = !strcmp(name, "full_attention");
		if (full && d->window_period == 0)
			d->window_period = (int64_t)i + 1;
		if (!full && strcmp(name, "sliding_attention"))
			r->error = yk_fail(YOKE_EFORMAT, "%s: 'layer_types' has '%.40s' for layer %zu; known are full_attention and "
					   "sliding_attention", r->path, name, i);
		else if (full == yk_decoder_is_local(d, (int64_t)i))
			r->error = yk_fail(YOKE_EFORMAT, "%s: 'layer_types' does not repeat with a period at layer %zu, which is not "
					   "supported", r->path, i);
		if (r->error)
			return;
	}
}

static void read_window(struct reader *r, const struct yk_family *f, const char *type, struct yk_model_shape *s)
{
	struct yk_decoder *d = &s->decoder;
	const bool has_windows = !strcmp(type, "mistral") || f->names == YK_NAMES_PHI3 || f->names == YK_NAMES_GEMMA ||
				 !strcmp(f->name, "qwen2") || !strcmp(f->name, "qwen3");
	const int64_t otherwise = !strcmp(f->name, "gemma2") && !json_object_get(r->o, "sliding_window") ? 4096 : 0;
	if (!has_windows)
		return;
	d->window = integer(r, "sliding_window", 0, INT32_MAX, otherwise);
	if (!strcmp(f->name, "qwen2") || !strcmp(f->name, "qwen3"))
		d->window = flag(r, "use_sliding_window", false) ? d->window : 0;
	d->window_period = integer(r, "sliding_window_pattern", 1, 1000, f->is.window_period);
	if (d->window && !has(r, "layer_types") && integer(r, "max_window_layers", 0, INT32_MAX, 0) >= s->layers)
		d->window = 0; // no layer has one
	if (d->window && (!strcmp(f->name, "qwen2") || !strcmp(f->name, "qwen3")) && !has(r, "layer_types"))
		r->error = yk_fail(YOKE_EFORMAT, "%s: 'use_sliding_window' without 'layer_types' is not supported", r->path);
	if (d->window)
		read_layer_types(r, s);
	if (!d->window)
		d->window_period = 0;
}

// ---- the whole ----

static void read_gpt2(struct reader *r, struct yk_model_shape *s)
{
	struct yk_decoder *d = &s->decoder;
	s->embed = required(r, "n_embd", 1, 65536);
	s->layers = required(r, "n_layer", 1, 1000);
	s->heads = required(r, "n_head", 1, 1024);
	s->context = required(r, "n_positions", 1, INT32_MAX);
	d->kv_heads = s->heads;
	d->head_dim = s->embed / s->heads;
	d->hidden = integer(r, "n_inner", 1, 1 << 24, 4 * s->embed);
	d->norm_eps = real(r, "layer_norm_epsilon", 1e-5);
	if (!flag(r, "scale_attn_weights", true) || flag(r, "scale_attn_by_inverse_layer_idx", false))
		r->error = yk_fail(YOKE_EFORMAT, "%s: scores that are scaled by layer are not supported", r->path);
}

static void read_llama(struct reader *r, const struct yk_family *f, const char *type, struct yk_model_shape *s)
{
	struct yk_decoder *d = &s->decoder;
	s->embed = required(r, "hidden_size", 1, 65536);
	s->layers = required(r, "num_hidden_layers", 1, 1000);
	s->heads = required(r, "num_attention_heads", 1, 1024);
	s->context = required(r, "max_position_embeddings", 1, INT32_MAX);
	d->kv_heads = integer(r, "num_key_value_heads", 1, 1024, s->heads);
	d->head_dim = integer(r, "head_dim", 1, 4096, s->embed / s->heads);
	d->hidden = required(r, "intermediate_size", 1, 1 << 24);
	d->norm_eps = real(r, "rms_norm_eps", 1e-6);
	const bool bias = flag(r, "attention_bias", false);
	d->qkv_bias |= bias;
	d->out_bias = bias;
	d->mlp_bias = flag(r, "mlp_bias", false);
	if (f->names == YK_NAMES_GEMMA) {
		d->attention_cap = cap(r, "attn_logit_softcapping", f->is.attention_cap);
		d->logit_cap = cap(r, "final_logit_softcapping", f->is.logit_cap);
		if (flag(r, "use_bidirectional_attention", false))
			r->error = yk_fail(YOKE_EFORMAT, "%s: 'use_bidirectional_attention' is not supported", r->path);
	}
	read_window(r, f, type, s);
	read_ropes(r, f, s);
}

static void read_bert(struct reader *r, struct yk_model_shape *s)
{
	struct yk_decoder *d = &s->decoder;
	s->embed = required(r, "hidden_size", 1, 65536);
	s->layers = required(r, "num_hidden_layers", 1, 1000);
	s->heads = required(r, "num_attention_heads", 1, 1024);
	s->context = required(r, "max_position_embeddings", 1, INT32_MAX);
	d->kv_heads = s->heads;
	d->head_dim = s->embed / s->heads;
	d->hidden = required(r, "intermediate_size", 1, 1 << 24);
	d->token_types = integer(r, "type_vocab_size", 1, 65536, 2);
	d->norm_eps = real(r, "layer_norm_eps", 1e-12);
	const char *positions = word(r, "position_embedding_type", "absolute");
	if (!r->error && strcmp(positions, "absolute"))
		r->error = yk_fail(YOKE_EFORMAT, "%s: 'position_embedding_type' is '%.40s'; absolute is supported", r->path, positions);
	if (flag(r, "is_decoder", false) || flag(r, "add_cross_attention", false))
		r->error = yk_fail(YOKE_EFORMAT, "%s: a bert with 'is_decoder' or 'add_cross_attention' is not supported", r->path);
}

static void check_activation(struct reader *r, const struct yk_family *f)
{
	const char *key = f->names == YK_NAMES_GPT2 ? "activation_function" : has(r, "hidden_activation") ? "hidden_activation" : "hidden_act";
	const char *act = word(r, key, f->activation);
	if (!r->error && strcmp(act, f->activation))
		r->error = yk_fail(YOKE_EFORMAT, "%s: '%s' is '%.40s'; models of %s have %s", r->path, key, act, f->name, f->activation);
}

int yk_family_of_hf(const json_t *config, const char *path, int64_t context, const struct yk_family **family,
		    struct yk_model_shape *to)
{
	struct reader r = { .o = config, .path = path, .context = context };
	struct yk_model_shape s = { 0 };
	const struct yk_family *f = NULL;
	const char *type = NULL;
	r.error = yk_json_str(config, path, "model_type", &type);
	for (int i = 0; !r.error && (f = yk_family_at(i)); i++)
		if (!strcmp(f->hf[0], type) || (f->hf[1] && !strcmp(f->hf[1], type)))
			break;
	if (!r.error && !f)
		return yk_fail(YOKE_EFORMAT, "%s: model_type '%.40s' is not supported; supported are %s", path, type, yk_family_list());
	if (has(&r, "quantization_config"))
		return yk_fail(YOKE_EFORMAT, "%s: has a 'quantization_config'; open the model without quantization, or a GGUF file of it", path);
	if (r.error)
		return r.error;
	s.decoder = f->is;
	s.decoder.embed_scale = 1;
	s.vocab = required(&r, "vocab_size", 1, INT32_MAX);
	if (f->names == YK_NAMES_GPT2)
		read_gpt2(&r, &s);
	else if (f->names == YK_NAMES_BERT)
		read_bert(&r, &s);
	else
		read_llama(&r, f, type, &s);
	check_activation(&r, f);
	s.decoder.activation = strcmp(f->activation, "silu") ? YK_DECODER_GELU_TANH : YK_DECODER_SILU;
	s.decoder.tied = flag(&r, "tie_word_embeddings", f->is.tied);
	const double scaled_by = real(&r, "query_pre_attn_scalar", (double)s.decoder.head_dim);
	s.decoder.attention_scale = 1 / sqrt(scaled_by);
	if (f->scales_embedding)
		s.decoder.embed_scale = sqrt((double)s.embed);
	if (r.error)
		return r.error;
	*family = f;
	*to = s;
	return 0;
}
