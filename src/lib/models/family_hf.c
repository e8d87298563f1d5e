// SPDX-License-Identifier: Apache-2.0
// Reads the config.json of Hugging Face's folders.
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "models/hf_reader.h"
#include "nn/decoder.h"

// Defaults of absent keys by model_type, as in transformers' configuration classes (5.24).
struct defaults {
	const char *type;
	int64_t vocab, embed, layers, heads;
	int64_t kv_heads; // 0: as many as heads
	int64_t head_dim; // 0: embed / heads
	int64_t hidden;   // 0: 4 embed
	int64_t context, window;
	double norm_eps, rope_base;
};

static const struct defaults defaults[] = {
	{ "llama", 32000, 4096, 32, 32, 0, 0, 11008, 2048, 0, 1e-6, 1e4 },
	{ "mistral", 32000, 4096, 32, 32, 8, 0, 14336, 131072, 4096, 1e-6, 1e4 },
	{ "qwen2", 151936, 4096, 32, 32, 32, 0, 22016, 32768, 4096, 1e-6, 1e4 },
	{ "qwen3", 151936, 4096, 32, 32, 32, 128, 22016, 32768, 4096, 1e-6, 1e4 },
	{ "phi3", 32064, 3072, 32, 32, 0, 0, 8192, 4096, 0, 1e-5, 1e4 },
	{ "gemma2", 256000, 2304, 26, 8, 4, 256, 9216, 8192, 4096, 1e-6, 1e4 },
	{ "gemma3_text", 262208, 2304, 26, 8, 4, 256, 9216, 131072, 4096, 1e-6, 1e6 },
	{ "gpt2", 50257, 768, 12, 12, 0, 0, 0, 1024, 0, 1e-5, 0 },
	{ "bert", 30522, 768, 12, 12, 0, 0, 3072, 512, 0, 1e-12, 0 },
};

static const struct defaults *defaults_of(const char *type)
{
	for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++)
		if (!strcmp(defaults[i].type, type))
			return &defaults[i];
	return NULL;
}

// A key whose absence and null mean different things.
static int64_t present(struct yk_hf_reader *r, const char *key, int64_t min, int64_t max,
		       int64_t absent, int64_t null)
{
	return yk_hf_integer(r, key, min, max, json_object_get(r->o, key) ? null : absent);
}

// ---- windows ----

// layer_types lists "full_attention" or "sliding_attention" for each layer.
static void read_layer_types(struct yk_hf_reader *r, int64_t layers, bool *local)
{
	const json_t *types = json_object_get(r->o, "layer_types"), *type;
	size_t i;
	if (!json_is_array(types) || (int64_t)json_array_size(types) != layers) {
		r->error = yk_fail(YOKE_EFORMAT, "%s: 'layer_types' must list %" PRId64 " layers",
				   r->path, layers);
		return;
	}
	json_array_foreach (types, i, type) {
		const char *name = json_is_string(type) ? json_string_value(type) : "";
		local[i] = !strcmp(name, "sliding_attention");
		if (!local[i] && strcmp(name, "full_attention") && strcmp(name, "attention")) {
			r->error = yk_fail(YOKE_EFORMAT,
					   "%s: 'layer_types' has '%.40s' for layer %zu; known are "
					   "full_attention and "
					   "sliding_attention",
					   r->path, name, i);
			return;
		}
	}
}

static void read_window(struct yk_hf_reader *r, const struct yk_family *f,
			const struct defaults *is, struct yk_model_shape *s)
{
	struct yk_decoder *d = &s->decoder;
	const bool qwen = !strcmp(is->type, "qwen2") || !strcmp(is->type, "qwen3"),
		   gemma = f->names == YK_NAMES_GEMMA;
	const bool listed =
		(qwen || gemma) &&
		yk_hf_has(r, "layer_types"); // transformers ignores it for other families
	bool local[YK_DECODER_LAYERS];
	d->window = strcmp(is->type, "llama") ?
			    present(r, "sliding_window", 0, INT32_MAX, is->window, 0) :
			    0;
	if (qwen && !yk_hf_flag(r, "use_sliding_window", false))
		d->window = 0;
	if (!strcmp(is->type, "gemma3_text"))
		d->window_period =
			yk_hf_integer(r, "sliding_window_pattern", 1, 1000, d->window_period);
	d->window_period = d->window ? d->window_period : 0;
	if (!d->window || (!listed && !qwen))
		return;
	const int64_t first = yk_hf_integer(r, "max_window_layers", 0, INT32_MAX, 28);
	for (int64_t i = 0; i < s->layers; i++)
		local[i] = i >= first;
	if (listed)
		read_layer_types(r, s->layers, local);
	if (!r->error)
		yk_decoder_set_local(d, s->layers, local);
}

// ---- the whole ----

// The name of a size in files of gpt2, or, if they have it by the name of all families, that.
static const char *key_of(const struct yk_hf_reader *r, const char *name, const char *usual)
{
	return yk_hf_has(r, usual) && !yk_hf_has(r, name) ? usual : name;
}

static void read_gpt2(struct yk_hf_reader *r, const struct defaults *is, struct yk_model_shape *s)
{
	struct yk_decoder *d = &s->decoder;
	s->embed = yk_hf_integer(r, key_of(r, "n_embd", "hidden_size"), 1, 65536, is->embed);
	s->layers =
		yk_hf_integer(r, key_of(r, "n_layer", "num_hidden_layers"), 1, 1000, is->layers);
	s->heads = yk_hf_integer(r, key_of(r, "n_head", "num_attention_heads"), 1, 1024, is->heads);
	s->context = yk_hf_integer(r, key_of(r, "n_positions", "max_position_embeddings"), 1,
				   INT32_MAX, is->context);
	d->kv_heads = s->heads;
	d->head_dim = s->embed / s->heads;
	d->hidden = yk_hf_integer(r, "n_inner", 1, 1 << 24, 4 * s->embed);
	d->norm_eps = yk_hf_real(r, "layer_norm_epsilon", is->norm_eps);
	if (!yk_hf_flag(r, "scale_attn_weights", true) ||
	    yk_hf_flag(r, "scale_attn_by_inverse_layer_idx", false))
		r->error =
			yk_fail(YOKE_EFORMAT,
				"%s: scores that are scaled by layer are not supported", r->path);
}

static void read_sizes(struct yk_hf_reader *r, const struct defaults *is, struct yk_model_shape *s)
{
	s->embed = yk_hf_integer(r, "hidden_size", 1, 65536, is->embed);
	s->layers = yk_hf_integer(r, "num_hidden_layers", 1, 1000, is->layers);
	s->heads = yk_hf_integer(r, "num_attention_heads", 1, 1024, is->heads);
	s->context = yk_hf_integer(r, "max_position_embeddings", 1, INT32_MAX, is->context);
	s->decoder.hidden = yk_hf_integer(r, "intermediate_size", 1, 1 << 24, is->hidden);
}

static void read_gemma(struct yk_hf_reader *r, const struct yk_family *f, struct yk_decoder *d)
{
	d->attention_cap = yk_hf_limit(r, "attn_logit_softcapping", f->is.attention_cap);
	d->logit_cap = yk_hf_limit(r, "final_logit_softcapping", f->is.logit_cap);
	d->attention_scale = 1 / sqrt(yk_hf_real(r, "query_pre_attn_scalar", 256));
	if (yk_hf_flag(r, "use_bidirectional_attention", false))
		r->error = yk_fail(YOKE_EFORMAT,
				   "%s: 'use_bidirectional_attention' is not supported", r->path);
}

static void read_llama(struct yk_hf_reader *r, const struct yk_family *f, const struct defaults *is,
		       struct yk_model_shape *s)
{
	struct yk_decoder *d = &s->decoder;
	read_sizes(r, is, s);
	d->kv_heads = present(r, "num_key_value_heads", 1, 1024,
			      is->kv_heads ? is->kv_heads : s->heads, s->heads);
	d->head_dim = yk_hf_integer(r, "head_dim", 1, 4096,
				    is->head_dim ? is->head_dim : s->embed / s->heads);
	d->attention_scale = 1 / sqrt((double)d->head_dim);
	d->norm_eps = yk_hf_real(r, "rms_norm_eps", is->norm_eps);
	// the others have fixed biases
	if (!strcmp(is->type, "llama") || !strcmp(is->type, "qwen3") || f->names == YK_NAMES_GEMMA)
		d->qkv_bias = d->out_bias = yk_hf_flag(r, "attention_bias", false);
	if (!strcmp(is->type, "llama"))
		d->mlp_bias = yk_hf_flag(r, "mlp_bias", false);
	if (f->names == YK_NAMES_GEMMA)
		read_gemma(r, f, d);
	read_window(r, f, is, s);
	yk_hf_read_rope(r, f, is->rope_base, s);
}

static void read_bert(struct yk_hf_reader *r, const struct defaults *is, struct yk_model_shape *s)
{
	struct yk_decoder *d = &s->decoder;
	read_sizes(r, is, s);
	d->kv_heads = s->heads;
	d->head_dim = s->embed / s->heads;
	d->token_types = yk_hf_integer(r, "type_vocab_size", 1, 65536, 2);
	d->norm_eps = yk_hf_real(r, "layer_norm_eps", is->norm_eps);
	const char *positions = yk_hf_word(r, "position_embedding_type", "absolute");
	if (!r->error && strcmp(positions, "absolute"))
		r->error =
			yk_fail(YOKE_EFORMAT,
				"%s: 'position_embedding_type' is '%.40s'; absolute is supported",
				r->path, positions);
	if (yk_hf_flag(r, "is_decoder", false) || yk_hf_flag(r, "add_cross_attention", false))
		r->error = yk_fail(
			YOKE_EFORMAT,
			"%s: a bert with 'is_decoder' or 'add_cross_attention' is not supported",
			r->path);
}

// Other names of the same functions.
static const char *const activations[][2] = {
	{ "swish", "silu" },
	{ "gelu_python", "gelu" },
	{ "gelu_new", "gelu_pytorch_tanh" },
	{ "gelu_fast", "gelu_pytorch_tanh" },
	{ "gelu_accurate", "gelu_pytorch_tanh" },
};

static const char *usual_activation(const char *name)
{
	for (size_t i = 0; i < sizeof activations / sizeof *activations; i++)
		if (!strcmp(activations[i][0], name))
			return activations[i][1];
	return name;
}

static void check_activation(struct yk_hf_reader *r, const struct yk_family *f)
{
	const char *key = f->names == YK_NAMES_GPT2  ? "activation_function" :
			  f->names == YK_NAMES_GEMMA ? "hidden_activation" :
						       "hidden_act";
	const char *act = yk_hf_word(r, key, f->activation);
	if (!r->error && strcmp(usual_activation(act), usual_activation(f->activation)))
		r->error = yk_fail(YOKE_EFORMAT, "%s: '%s' is '%.40s'; models of %s have %s",
				   r->path, key, act, f->name, f->activation);
}

int yk_family_of_hf(const json_t *config, const char *path, int64_t context,
		    const struct yk_family **family, struct yk_model_shape *to)
{
	struct yk_hf_reader r = { .o = config, .path = path, .context = context };
	struct yk_model_shape s = { 0 };
	const struct yk_family *f = NULL;
	const char *type = NULL;
	r.error = yk_json_str(config, path, "model_type", &type);
	for (int i = 0; !r.error && (f = yk_family_at(i)); i++)
		if (!strcmp(f->hf[0], type) || (f->hf[1] && !strcmp(f->hf[1], type)))
			break;
	const struct defaults *is = f ? defaults_of(type) : NULL;
	if (!r.error && !is)
		return yk_fail(YOKE_EFORMAT,
			       "%s: model_type '%.40s' is not supported; supported are %s", path,
			       type, yk_family_list());
	if (yk_hf_has(&r, "quantization_config"))
		return yk_fail(YOKE_EFORMAT,
			       "%s: has a 'quantization_config'; open the model without "
			       "quantization, or a GGUF file of it",
			       path);
	if (r.error)
		return r.error;
	s.decoder = f->is;
	s.decoder.embed_scale = 1;
	s.vocab = yk_hf_integer(&r, "vocab_size", 1, INT32_MAX, is->vocab);
	if (f->names == YK_NAMES_GPT2)
		read_gpt2(&r, is, &s);
	else if (f->names == YK_NAMES_BERT)
		read_bert(&r, is, &s);
	else
		read_llama(&r, f, is, &s);
	check_activation(&r, f);
	s.decoder.activation =
		strcmp(f->activation, "silu") ? YK_DECODER_GELU_TANH : YK_DECODER_SILU;
	s.decoder.tied = yk_hf_flag(&r, "tie_word_embeddings", f->is.tied);
	if (f->is.learned_positions)
		s.decoder.attention_scale = 1 / sqrt((double)s.decoder.head_dim);
	if (f->scales_embedding)
		s.decoder.embed_scale = sqrt((double)s.embed);
	if (r.error)
		return r.error;
	*family = f;
	*to = s;
	return 0;
}
