// SPDX-License-Identifier: Apache-2.0
// A pretrained model that was opened: its family and its network.
#ifndef YK_PRETRAINED_H
#define YK_PRETRAINED_H

#include "models/weights.h"
#include "yoke-model.h"
#include "yoke-tokenizer.h"

struct yk_gguf_tokenizer;

struct yk_pretrained {
	const struct yk_family *family;
	struct yk_network *net;
	bool run;   // of `yoke train`
	char *base; // path of a run's frozen model; NULL: not a run with adapters
	bool variables; // the weights are f32 variables, which can be trained
};

struct yoke_model {
	struct yk_pretrained is;
	char *path;
	yoke_tokenizer *tokenizer; // NULL: not opened yet
	bool trains;               // losses apply the dropout of adapters
};

// Settings of sentence-transformers' folders, and of GGUF files.
enum yk_pooling { YK_POOLING_MEAN, YK_POOLING_CLS, YK_POOLING_MAX, YK_POOLING_LAST };
struct yk_embedding {
	enum yk_pooling pooling;
	bool normalize;
	bool without_prompt; // pooling leaves out the prompt
	int64_t max_tokens;  // of a text; 0: the context
	char prompt[4096];   // put before each text
};
// Reads them; defaults if the files have none.  prompt: as prompt_name of yoke_embed_options.
int yk_embedding_of(const char *path, const char *prompt, struct yk_embedding *);
struct yk_embed_text {
	int32_t *ids;
	size_t n;
	int64_t index; // of its vector
};
// Encodes a text after the prompt, with special tokens; beyond `max` tokens it is cut.  The caller
// frees the ids.
int yk_embed_encode(const yoke_tokenizer *, const char *prompt, const char *text, size_t max,
		    struct yk_embed_text *);
// Computes the vectors of texts, which it sorts by length: to [texts, width].
int yk_embed_texts(yoke_model *, const struct yk_embedding *, int64_t n, struct yk_embed_text *,
		   float *to);

// Can the model be trained?  EINVAL: it is NULL; EUNSUPPORTED: an encoder.
int yk_pretrained_trains(const yoke_model *, const char *call);
// Is this a GGUF file, or a folder with a config.json?
bool yk_pretrained_is(const char *path);
// The shape of its network, from the configuration alone.  context as in yoke_model_options.
int yk_pretrained_shape(const char *path, int64_t context, struct yk_model_shape *);
int yk_pretrained_open(const char *path, const struct yoke_model_options *, struct yk_pretrained *);
// Opens the files without reading weights: the family, and the shape that the configuration
// describes. *config: config.json of a folder, NULL for GGUF; the caller releases it, and closes
// the weights, also after an error.  context: as in struct yoke_model_options, 0: what the files
// say.
int yk_pretrained_files(const char *path, int64_t context, struct yk_weights *,
			const struct yk_family **, struct yk_model_shape *, json_t **config);
// The model that computes a family.
const struct yk_model *yk_pretrained_model(const struct yk_family *);
// EFORMAT: the shape is that of no model, or of one with far more weights than the files have, for
// which nothing should be allocated; a few missing tensors are named when weights are loaded.
int yk_pretrained_check(const char *path, const struct yk_weights *, const struct yk_family *,
			const struct yk_model_shape *);
// A checksum of all tensors, with their names, formats and shapes, whatever their order in the
// files; and yk_weights_state.  Either may be NULL.
int yk_pretrained_hash(const char *path, uint64_t *hash, uint64_t *state);
void yk_pretrained_close(struct yk_pretrained *);

#endif
