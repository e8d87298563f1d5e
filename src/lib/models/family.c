// SPDX-License-Identifier: Apache-2.0
// The table of families, and what is the same for configurations of both kinds of files.
#include "config.h"

#include "models/family.h"

#include <string.h>

#include "base/number.h"

static const struct yk_family families[] = {
	{
		.name = "llama",
		.hf = { "llama", "mistral" },
		.names = YK_NAMES_LLAMA,
		.is = { .gated = true },
		.swapped = true,
		.activation = "silu",
	},
	{
		.name = "qwen2",
		.hf = { "qwen2" },
		.names = YK_NAMES_LLAMA,
		.is = { .gated = true, .qkv_bias = true },
		.activation = "silu",
	},
	{
		.name = "qwen3",
		.hf = { "qwen3" },
		.names = YK_NAMES_LLAMA,
		.is = { .gated = true, .qk_norm = true },
		.activation = "silu",
	},
	{
		.name = "phi3",
		.hf = { "phi3" },
		.names = YK_NAMES_PHI3,
		.is = { .gated = true },
		.activation = "silu",
	},
	{
		.name = "gemma2",
		.hf = { "gemma2" },
		.names = YK_NAMES_GEMMA,
		.is = { .gated = true,
			.post_norm = true,
			.tied = true,
			.window_period = 2,
			.attention_cap = 50,
			.logit_cap = 30 },
		.norm_offset = true,
		.scales_embedding = true,
		.activation = "gelu_pytorch_tanh",
		.large_layers = 46,
	},
	{
		.name = "gemma3",
		.hf = { "gemma3_text" },
		.names = YK_NAMES_GEMMA,
		.is = { .gated = true,
			.post_norm = true,
			.qk_norm = true,
			.tied = true,
			.window_period = 6 },
		.norm_offset = true,
		.scales_embedding = true,
		.activation = "gelu_pytorch_tanh",
		.large_layers = 62,
	},
	{
		.name = "gpt2",
		.hf = { "gpt2" },
		.names = YK_NAMES_GPT2,
		.is = { .layer_norm = true,
			.qkv_bias = true,
			.out_bias = true,
			.mlp_bias = true,
			.tied = true,
			.learned_positions = true },
		.transposed = true,
		.activation = "gelu_new",
	},
	{
		.name = "bert",
		.hf = { "bert" },
		.names = YK_NAMES_BERT,
		.encoder = true,
		.is = { .layer_norm = true,
			.qkv_bias = true,
			.out_bias = true,
			.mlp_bias = true,
			.tied = true,
			.learned_positions = true },
		.activation = "gelu",
	},
};

const struct yk_family *yk_family_at(int i)
{
	return i >= 0 && (size_t)i < sizeof families / sizeof *families ? &families[i] : NULL;
}

const struct yk_family *yk_family_named(const char *name)
{
	for (size_t i = 0; i < sizeof families / sizeof *families; i++)
		if (!strcmp(families[i].name, name))
			return &families[i];
	return NULL;
}

const char *yk_family_list(void)
{
	return "llama, mistral, qwen2, qwen3, phi3, gemma2, gemma3_text, gpt2, bert";
}

bool yk_family_ignores(const struct yk_model_shape *s, const char *name)
{
	static const char *const ends[] = {
		".rotary_emb.inv_freq",     ".attn.bias",
		".attn.masked_bias",        "rope_freqs.weight",
		"rope_factors_long.weight", "rope_factors_short.weight"
	};
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		if (yk_ends_with(name, ends[i]))
			return true;
	// the pooler and the head of masked tokens come after the hidden states
	if (s->decoder.token_types && (!strncmp(name, "pooler.", 7) || !strncmp(name, "cls.", 4) ||
				       !strcmp(name, "embeddings.position_ids")))
		return true;
	return s->decoder.tied &&
	       (!strcmp(name, "lm_head.weight") || !strcmp(name, "output.weight"));
}
