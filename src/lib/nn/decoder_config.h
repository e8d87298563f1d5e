// SPDX-License-Identifier: Apache-2.0
// Switches of the decoder that distinguish Llama, Mistral, Qwen, Gemma, Phi-3 and GPT-2;
// models/family.h maps files to them.
#ifndef YK_DECODER_CONFIG_H
#define YK_DECODER_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

// How the frequencies of rotary position embeddings are changed for contexts longer than the
// pretraining context.
enum yk_rope_scaling {
	YK_ROPE_PLAIN,
	YK_ROPE_LINEAR,
	YK_ROPE_LLAMA3,
	YK_ROPE_YARN,
	YK_ROPE_DIVIDED
};
enum { YK_ROPE_COLUMNS = 256 }; // max pairs of columns in a head
struct yk_rope {
	double base; // 0: no rotary embedding
	enum yk_rope_scaling scaling;
	double factor;    // of the extension
	double low, high; // llama3: low_freq_factor, high_freq_factor; yarn: beta_slow, beta_fast
	double original;  // tokens of the pretraining context (llama3, yarn)
	double magnitude; // factor of cosine and sine
	float divisor[YK_ROPE_COLUMNS]; // DIVIDED: divisor of each frequency
};

enum yk_decoder_activation { YK_DECODER_SILU, YK_DECODER_GELU_TANH, YK_DECODER_GELU };

enum { YK_DECODER_LAYERS = 1024 }; // max blocks
struct yk_decoder {
	char family[24];          // family in models/family.h, which names the weights in files
	int64_t positions;        // maximum context of the model; rows of the learned positions
	int64_t kv_heads, head_dim;
	int64_t hidden;           // width of the mlp
	double norm_eps;
	bool layer_norm;          // LayerNorm with bias instead of RMSNorm
	bool post_norm;           // norms also after the attention and after the mlp (Gemma 2, 3)
	bool qk_norm;             // RMSNorm of each head's queries and keys
	bool qkv_bias, out_bias, mlp_bias;
	bool gated;               // down(act(gate x) * up x) instead of down(act(up x))
	bool tied;                // the head uses the embedding's matrix
	bool learned_positions;   // added to the embedding, as in GPT-2
	enum yk_decoder_activation activation;
	double embed_scale;       // factor of the embedding
	double attention_scale;   // factor of the scores
	double attention_cap;     // scores become cap tanh(score / cap); 0: no cap
	double logit_cap;         // the same for logits
	int64_t window;           // tokens that a layer sees, including the current one; 0: all
	int64_t window_period;    // layers period - 1, 2 period - 1, .. have no window; 0: all have
	uint64_t full[YK_DECODER_LAYERS / 64]; // further layers without a window, a bit each
	int64_t token_types;      // of an encoder, which also uses hidden, norm_eps, head_dim
	struct yk_rope rope;
	struct yk_rope rope_local; // for layers with the window
};

#endif
