// SPDX-License-Identifier: Apache-2.0
// Families of pretrained models: what their configurations say about the decoder, and the names of
// their weights.
//
// A family is an entry of the table in family.c.  A new one that the decoder can compute takes an
// entry there and, if its files have other names, a column in names.c.
#ifndef YK_FAMILY_H
#define YK_FAMILY_H

#include <jansson.h>

#include "formats/gguf.h"
#include "nn/model.h"

// Conventions of files for the names of weights (names.c).
enum yk_model_names {
	YK_NAMES_LLAMA,
	YK_NAMES_GEMMA,
	YK_NAMES_PHI3,
	YK_NAMES_GPT2,
	YK_NAMES_YOKE,
	YK_NAMES_BERT,
	YK_NAMES_COUNT,
	YK_NAMES_DECODER
}; // DECODER: those of the decoder itself

struct yk_family {
	const char *name;      // of the architecture in GGUF files; "llama"
	const char *hf[3];     // model_type in config.json
	enum yk_model_names names;
	struct yk_decoder is;  // the switches that all its models share
	bool encoder;          // computed by nn/encoder.c instead of nn/decoder.c
	bool norm_offset;      // Hugging Face's files store the norms' weights less 1
	bool swapped;          // GGUF files pair neighboring columns of q and k for RoPE
	bool transposed;       // Hugging Face's files store products' weights as [in,out]
	bool scales_embedding; // by the square root of its width
	const char *activation; // the only one its models have
	int64_t large_layers;  // models with that many layers scale scores by embed / heads, not by
			       // the columns of a head; GGUF files do not say so
};

// The family of a config.json and the shape of its model.  EFORMAT names what is missing, unknown
// or contradictory.  context: max tokens that will be used, which may select the frequencies of
// RoPE; 0: as in the file.
int yk_family_of_hf(const json_t *config, const char *path, int64_t context,
		    const struct yk_family **, struct yk_model_shape *);
// The same for the metadata of a GGUF file.
int yk_family_of_gguf(const struct yk_gguf *, int64_t context, const struct yk_family **,
		      struct yk_model_shape *);
// "llama, qwen2, ..": for messages.
const char *yk_family_list(void);
// The family of that name in GGUF files, or NULL.
const struct yk_family *yk_family_named(const char *name);
// Entry i of the table; NULL after the last.
const struct yk_family *yk_family_at(int i);

// Where a parameter's values are in a file.
struct yk_weight_location {
	char name[160];            // of the tensor in the file
	const char *shared[3]; // layers of the block whose rows follow each other in the tensor,
			       // "attn.q"; [0] NULL: it has only this parameter
	int segment;               // index of the parameter's layer among these
};
// The place of the parameter `name` ("layer3.attn.q.weight") in files of the family.
void yk_family_locate(const struct yk_family *, bool gguf, const char *name,
		      struct yk_weight_location *);
// The same with the name that Hugging Face's files of the whole model have; those of gpt2's decoder
// alone lack "transformer.".
void yk_family_locate_full(const struct yk_family *, const char *name, struct yk_weight_location *);
// May a tensor of a file be left out, since it is no parameter (tables of rotary embeddings,
// causal masks) or the tied head?
bool yk_family_ignores(const struct yk_model_shape *, const char *name);

#endif
