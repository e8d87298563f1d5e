// SPDX-License-Identifier: Apache-2.0
// Names of weights in files: of Hugging Face's folders and of GGUF, by family.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/family.h"

// A row per layer that has parameters; "weight" or "bias" follows.  NULL in a column: as llama's.
// Layers with the same name in a column share one tensor: their rows follow each other there.
struct name_row {
	const char *layer, *hf[YK_NAMES_COUNT], *gguf[YK_NAMES_COUNT];
};
enum { LLAMA = YK_NAMES_LLAMA, GEMMA = YK_NAMES_GEMMA, PHI3 = YK_NAMES_PHI3, GPT2 = YK_NAMES_GPT2,
       YOKE = YK_NAMES_YOKE, BERT = YK_NAMES_BERT };

static const struct name_row network[] = {
	{ "embed",
	  { [LLAMA] = "model.embed_tokens",
	    [GPT2] = "wte",
	    [YOKE] = "wte",
	    [BERT] = "embeddings.word_embeddings" },
	  { "token_embd" } },
	{ "positions",
	  { [GPT2] = "wpe", [YOKE] = "wpe", [BERT] = "embeddings.position_embeddings" },
	  { "position_embd" } },
	{ "types", { [BERT] = "embeddings.token_type_embeddings" }, { "token_types" } },
	{ "norm",
	  { [LLAMA] = "model.norm",
	    [GPT2] = "ln_f",
	    [YOKE] = "norm",
	    [BERT] = "embeddings.LayerNorm" },
	  { [LLAMA] = "output_norm", [BERT] = "token_embd_norm" } },
	{ "head", { [LLAMA] = "lm_head", [YOKE] = "head" }, { "output" } },
};

// Names in a block come after this and "N.", in GGUF files after "blk.N.".
static const char *const prefixes[YK_NAMES_COUNT] = {
	[LLAMA] = "model.layers.", [GEMMA] = "model.layers.",
	[PHI3] = "model.layers.",  [GPT2] = "h.",
	[YOKE] = "layer",          [BERT] = "encoder.layer.",
};

static const struct name_row block[] = {
	{ "norm1",
	  { [LLAMA] = "input_layernorm",
	    [GPT2] = "ln_1",
	    [YOKE] = "norm1",
	    [BERT] = "attention.output.LayerNorm" },
	  { [LLAMA] = "attn_norm", [BERT] = "attn_output_norm" } },
	{ "attn.q",
	  { [LLAMA] = "self_attn.q_proj",
	    [PHI3] = "self_attn.qkv_proj",
	    [GPT2] = "attn.c_attn",
	    [YOKE] = "attn.qkv",
	    [BERT] = "attention.self.query" },
	  { [LLAMA] = "attn_q", [PHI3] = "attn_qkv", [GPT2] = "attn_qkv" } },
	{ "attn.k",
	  { [LLAMA] = "self_attn.k_proj",
	    [PHI3] = "self_attn.qkv_proj",
	    [GPT2] = "attn.c_attn",
	    [YOKE] = "attn.qkv",
	    [BERT] = "attention.self.key" },
	  { [LLAMA] = "attn_k", [PHI3] = "attn_qkv", [GPT2] = "attn_qkv" } },
	{ "attn.v",
	  { [LLAMA] = "self_attn.v_proj",
	    [PHI3] = "self_attn.qkv_proj",
	    [GPT2] = "attn.c_attn",
	    [YOKE] = "attn.qkv",
	    [BERT] = "attention.self.value" },
	  { [LLAMA] = "attn_v", [PHI3] = "attn_qkv", [GPT2] = "attn_qkv" } },
	{ "attn.out",
	  { [LLAMA] = "self_attn.o_proj",
	    [GPT2] = "attn.c_proj",
	    [YOKE] = "attn.proj",
	    [BERT] = "attention.output.dense" },
	  { "attn_output" } },
	{ "attn.q_norm", { "self_attn.q_norm" }, { "attn_q_norm" } },
	{ "attn.k_norm", { "self_attn.k_norm" }, { "attn_k_norm" } },
	{ "post1", { "post_attention_layernorm" }, { "post_attention_norm" } },
	{ "norm2",
	  { [LLAMA] = "post_attention_layernorm",
	    [GEMMA] = "pre_feedforward_layernorm",
	    [GPT2] = "ln_2",
	    [YOKE] = "norm2",
	    [BERT] = "output.LayerNorm" },
	  { [LLAMA] = "ffn_norm", [BERT] = "layer_output_norm" } },
	{ "mlp.gate",
	  { [LLAMA] = "mlp.gate_proj", [PHI3] = "mlp.gate_up_proj" },
	  { [LLAMA] = "ffn_gate", [PHI3] = "ffn_up" } },
	{ "mlp.up",
	  { [LLAMA] = "mlp.up_proj",
	    [PHI3] = "mlp.gate_up_proj",
	    [GPT2] = "mlp.c_fc",
	    [YOKE] = "mlp.up",
	    [BERT] = "intermediate.dense" },
	  { "ffn_up" } },
	{ "mlp.down",
	  { [LLAMA] = "mlp.down_proj",
	    [GPT2] = "mlp.c_proj",
	    [YOKE] = "mlp.down",
	    [BERT] = "output.dense" },
	  { "ffn_down" } },
	{ "post2", { "post_feedforward_layernorm" }, { "post_ffw_norm" } },
};

static const char *column(const struct name_row *r, bool gguf, enum yk_model_names names)
{
	const char *const *all = gguf ? r->gguf : r->hf;
	return all[names] ? all[names] : all[LLAMA];
}

static const struct name_row *row_of(const struct name_row *rows, size_t n, const char *layer,
				     size_t bytes)
{
	for (size_t i = 0; i < n; i++)
		if (strlen(rows[i].layer) == bytes && !memcmp(rows[i].layer, layer, bytes))
			return &rows[i];
	return NULL;
}

// Layers whose weights some families store as one tensor, in this order of rows.
static const char *const fusible[][3] = { { "attn.q", "attn.k", "attn.v" },
					  { "mlp.gate", "mlp.up" } };

// Fills in which layers share the tensor of row r.
static void add_shared(const struct yk_family *f, bool gguf, const struct name_row *r,
		       struct yk_weight_location *to)
{
	for (size_t g = 0; g < sizeof fusible / sizeof *fusible; g++) {
		int shared = 0, segment = -1;
		for (int i = 0; i < 3 && fusible[g][i]; i++) {
			const struct name_row *other = row_of(block, sizeof block / sizeof *block,
							      fusible[g][i], strlen(fusible[g][i]));
			if (other == r)
				segment = shared;
			if (!strcmp(column(other, gguf, f->names), column(r, gguf, f->names)))
				to->shared[shared++] = other->layer;
		}
		if (segment >= 0 && shared > 1) {
			to->segment = segment;
			return;
		}
		memset(to->shared, 0, sizeof to->shared);
	}
}

void yk_family_locate(const struct yk_family *f, bool gguf, const char *name,
		      struct yk_weight_location *to)
{
	const char *kind = strrchr(name, '.'), *layer = name; // kind: ".weight"
	*to = (struct yk_weight_location){ 0 };
	if (f->names == YK_NAMES_DECODER) {
		snprintf(to->name, sizeof to->name, "%s", name);
		return;
	}
	const bool in_block = !strncmp(name, "layer", 5);
	const struct name_row *rows = in_block ? block : network;
	const size_t n = in_block ? sizeof block / sizeof *block : sizeof network / sizeof *network;
	char before[64] = "";
	if (in_block) {
		layer = strchr(name, '.') + 1;
		snprintf(before, sizeof before, "%s%d.", gguf ? "blk." : prefixes[f->names],
			 atoi(name + 5));
	}
	const struct name_row *r = row_of(rows, n, layer, (size_t)(kind - layer));
	snprintf(to->name, sizeof to->name, "%s%s%s", before, column(r, gguf, f->names), kind);
	if (in_block)
		add_shared(f, gguf, r, to);
}

void yk_family_locate_full(const struct yk_family *f, const char *name,
			   struct yk_weight_location *to)
{
	yk_family_locate(f, false, name, to);
	const bool in_decoder = f->names == YK_NAMES_GPT2 && strcmp(to->name, "lm_head.weight");
	char short_name[sizeof to->name];
	memcpy(short_name, to->name, sizeof short_name);
	snprintf(to->name, sizeof to->name, "%s%.140s", in_decoder ? "transformer." : "",
		 short_name);
}
