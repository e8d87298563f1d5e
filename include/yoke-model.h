// SPDX-License-Identifier: Apache-2.0
// Language models: opening the files that people have, and computing with them.
//
//	yoke_model *m = yoke_model_open("SmolLM2-135M-Instruct", NULL);
//	int32_t ids[] = { 504, 3575, 282 };
//	yoke_tensor *logits =
//		yoke_model_logits(m, yoke_from(yoke_i32, 2, (int64_t[]){ 1, 3 }, ids));
//	yoke_read(logits, host, bytes);                      // [1,3,vocabulary]
//	yoke_model_free(m);
//
// A path is a folder with config.json and safetensors files, as the Hugging Face libraries write
// it; a GGUF file, of a split model the first; or the folder of a run of `yoke train` with
// model=gpt, which is of the family gpt2, or with init=, also with adapters.  Families: llama (also
// Mistral, SmolLM, TinyLlama), qwen2, qwen3, phi3, gemma2, gemma3 (text), gpt2, bert.  Nothing is
// downloaded, and nothing in a file is trusted.
//
// Conventions are those of yoke.h.  A model belongs to the context that was current when it was
// opened, and to the thread that uses it.
#ifndef YOKE_MODEL_H
#define YOKE_MODEL_H

#include <yoke-data.h>
#include <yoke-nn.h>
#include <yoke-tokenizer.h>
#include <yoke.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct yoke_model yoke_model;

struct yoke_model_options {
	size_t size;       // sizeof, set by the caller
	int64_t context;   // max tokens of a sequence; 0: what the file says, or the run's
			   // context=.  Models with two sets of RoPE factors (longrope) use the set
			   // for this length.
	const char *dtype; // "f32", "f16", "bf16": converts the matrices to it; NULL: does not
	const char *quant; // "q8_0", "q4_0", "q4_1", "q5_0", "q5_1": quantizes them; NULL: does not
	const char *kv;    // "f16", "f32": dtype of keys and values in caches; NULL: f32 if all
			   // matrices are, otherwise f16
};
// Opens a model.  options may be NULL.  ENOENT: no such file; EFORMAT: the file is damaged, of an
// unknown family, or contradicts itself; EDTYPE: weights of a format that cannot be read; EINVAL:
// an option with an unknown value, or dtype and quant; EUNSUPPORTED: a run of another model;
// ERANGE: values that dtype or quant does not have; ENOMEM.
//
// Matrices stay in the format of the file (yoke-quant.h): Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K,
// Q6_K, F16, BF16 and F32; other formats become F16.  On the CPU the mapped file is used in place,
// so it must not change; other devices hold a copy.  Vectors become f32.  With dtype f32 all
// weights are variables, which can be trained; otherwise they cannot.  A run's last checkpoint is
// opened, whose checksum is verified; its frozen model, if it has adapters, has the run's dtype=
// and quant= unless one of the options is given.
YOKE_API yoke_model *yoke_model_open(const char *path, const struct yoke_model_options *options);
YOKE_API void yoke_model_free(yoke_model *); // NULL is fine

struct yoke_model_info {
	size_t size;         // sizeof, set by the caller
	const char *family;  // "llama"; valid until the model is freed
	int64_t vocabulary, context, layers;
	int64_t width;       // of the embedding
	int64_t heads, kv_heads, head_dim;
	int64_t hidden;      // width of the mlp
	int64_t parameters;  // elements of all weights, tied ones once
};
// Describes a model.
YOKE_API int yoke_model_info(const yoke_model *, struct yoke_model_info *);

// ids [B,T] i32 -> logits [B,T,vocabulary] f32 of the next token after each.  ESHAPE: T exceeds the
// context.
YOKE_API yoke_tensor *yoke_model_logits(yoke_model *, yoke_tensor *ids);
// Lists the weights, as yoke_module_parameters: fills the first `max` elements of `to` and of
// names, unless NULL, and returns their number.  The model owns them.  A matrix that is not f32 is
// a u8 tensor with its rows in one of the formats of yoke-quant.h.
YOKE_API int yoke_model_parameters(yoke_model *, int max, yoke_tensor **to, const char **names);
// The tokenizer beside the weights, which the model owns.  That of a run encodes texts as its
// training did, byte and word as a byte-level BPE without merges and as WordLevel: texts are UTF-8.
// NULL: ENOENT if the files have none, or the run was trained on ids; otherwise as
// yoke_tokenizer_open.
YOKE_API const yoke_tokenizer *yoke_model_tokenizer(yoke_model *);

// ---- Embeddings of texts ----

struct yoke_embed_options {
	size_t size;             // sizeof, set by the caller
	const char *pooling;     // how hidden states of tokens become a vector: "mean", "cls" (the
				 // first token's), "max", "last"; NULL: as the model's files say,
				 // else mean
	int normalize;           // to length 1: 1 yes, -1 no; 0: as the model's files say.  GGUF
				 // files do not say it: yes
	const char *prompt_name; // of texts: which of the "prompts" in
				 // config_sentence_transformers.json to put before each; "": none;
				 // NULL: "default_prompt_name", if it is given
};
// ids [B,T] i32 and the number of tokens of each text, lengths [B] i32 in 1 .. T, the rest being
// padding -> [B,width] f32.  The padding has no influence.  Families of encoders (bert), whose
// 1_Pooling and 2_Normalize folders are applied, and decoders, whose hidden states after the last
// norm are pooled.  ESHAPE: other shapes, or T exceeds the context; EINVAL: unknown pooling;
// ENOENT: unknown prompt; EFORMAT: the model's files demand what is not supported.  options may be
// NULL.
YOKE_API yoke_tensor *yoke_model_embed(yoke_model *, yoke_tensor *ids, yoke_tensor *lengths,
				       const struct yoke_embed_options *);
// The same for n texts in UTF-8, which end with NUL, with the model's tokenizer and its special
// tokens: writes n x width numbers to `to`.  Texts are cut to the length that the files name, or to
// the context.
YOKE_API int yoke_model_embed_texts(yoke_model *, int64_t n, const char *const *texts,
				    const struct yoke_embed_options *, float *to);

// ---- Generation ----

// Texts that a model continues, one token per step:
//
//	yoke_generation *g = yoke_generation_new(m, 1, (const int32_t *[]){ ids },
//						 (int64_t[]){ 3 }, &options);
//	for (int32_t id; yoke_generation_next(g, &id) > 0;)
//		printf("%d ", id);
//	yoke_generation_free(g);
typedef struct yoke_generation yoke_generation;

struct yoke_generation_options {
	size_t size;        // sizeof, set by the caller
	int64_t tokens;     // max new tokens of each text
	double temperature; // 0: always the most likely token, the first among equals
	int64_t top_k;      // sample from that many of the most likely tokens; 0: from all
	double top_p;       // then from the fewest of these with this total probability; 0 and 1:
			    // all
	double min_p;       // then from those with at least this share of the largest probability
	// For tokens that occur in the text so far, prompt included: a positive logit is divided by
	// `repetition`, a negative one multiplied (0 and 1: neither); `frequency` for each
	// occurrence and `presence` once are subtracted.
	double repetition, frequency, presence;
	uint64_t seed;      // a token depends on the seed and its index, not on other texts
	int past_end;       // 1: tokens that end a text, by the model's tokenizer, are like others
};
// Begins with n prompts, 1 .. 64, of count[i] tokens each.  The last tokens that fit the context
// are used; when a text fills the context, it continues from its last half.  The model must remain
// until yoke_generation_free.  EINVAL: an empty prompt, or options out of range; ERANGE: an id
// outside of the vocabulary; EUNSUPPORTED: an encoder; ENOMEM.
YOKE_API yoke_generation *yoke_generation_new(yoke_model *, int n, const int32_t *const *prompt,
					      const int64_t *count,
					      const struct yoke_generation_options *);
// Begins again with other prompts, as many as before, for instance with the next question of a
// conversation.  Tokens at the start of a prompt that are those of the text so far, prompt and
// continuation, are not computed again.  Errors as yoke_generation_new; after ENOMEM all texts are
// finished.
YOKE_API int yoke_generation_again(yoke_generation *, const int32_t *const *prompt,
				   const int64_t *count, const struct yoke_generation_options *);
// Number of tokens that the model has computed for all texts so far: those of the prompts that no
// cache had, and the continuations.
YOKE_API int64_t yoke_generation_computed(const yoke_generation *);
// Samples the next token of each unfinished text into ids[n]; -1 for texts that are finished or end
// with this step.  Returns the number of tokens; 0: all texts are finished.  EFORMAT: no logit is
// finite.
YOKE_API int yoke_generation_next(yoke_generation *, int32_t *ids);
// Finishes text number `text`, counted from 0.
YOKE_API int yoke_generation_end(yoke_generation *, int text);
YOKE_API void yoke_generation_free(yoke_generation *); // NULL is fine

// ---- Fine-tuning ----

// Trains a model's low-rank adapters, or all of its weights, with yoke_fit or a loop of one's own:
//
//	struct yoke_lora_options lora = { .size = sizeof lora, .rank = 8, .alpha = 16,
//					  .targets = "q,v" };
//	struct yoke_text_options text = { .size = sizeof text, .context = 256 };
//	yoke_model_adapt(m, &lora);
//	yoke_module *net = yoke_model_module(m);    // its parameters are the adapters
//	yoke_dataset *set = yoke_model_dataset(m, "text.txt", &text);
//	yoke_loader *loader = yoke_loader_new(set, "batch=8 seed=1");
//	..                                          // yoke_fit, whose loss is yoke_model_loss
//	yoke_model_save_adapter(m, "adapter", 0);
//
// With the same settings the losses have the bits of those of `yoke train init= lora=`, if a model
// with two sets of RoPE factors (longrope) is opened with the context of the run.

// Low-rank adapters (LoRA, Hu et al. 2021): the weights W of chosen matrices are frozen, and may be
// quantized; the model computes y = W x + alpha/rank B (A x).
struct yoke_lora_options {
	size_t size;         // sizeof, set by the caller
	int64_t rank;        // 1 .. 65536
	double alpha;
	const char *targets; // comma-separated: q, k, v, o, gate, up, down, or all; NULL: q,v
	uint64_t seed;       // of A's initial values, uniform in -1/sqrt(in) .. 1/sqrt(in); B is 0
	double dropout;      // of the inputs of A in training, 0 .. below 1: see yoke_model_mode
};
// Adds adapters, which change no logits before they are trained.  EINVAL: the model has adapters,
// or lacks one of the matrices, or an option is out of range; EUNSUPPORTED: an encoder; the model
// is unchanged.
YOKE_API int yoke_model_adapt(yoke_model *, const struct yoke_lora_options *);
// Adds adapters with the values of a folder that PEFT or yoke_model_save_adapter wrote, or of a run
// of `yoke train lora=` on the same model.  ENOENT; EFORMAT: damaged; EINVAL: for another model, or
// the model has adapters; EUNSUPPORTED: of a kind that yoke does not compute, which is named.
YOKE_API int yoke_model_load_adapter(yoke_model *, const char *folder);
// Writes the adapters as PEFT does: adapter_config.json and adapter_model.safetensors.  EINVAL: the
// model has none, or the folder exists; with overwrite, a folder with only the files of an adapter
// is replaced.
YOKE_API int yoke_model_save_adapter(const yoke_model *, const char *folder, int overwrite);
// Adds the adapters to the weights, which keep their format, and removes them.  EINVAL: the model
// has none; EUNSUPPORTED: a quantized weight; ERANGE: a sum beyond f16: the model is unchanged
// then.  After ENOMEM some weights may have their adapters twice: free the model.
YOKE_API int yoke_model_merge_adapter(yoke_model *);
// A module whose parameters are those that can be trained: the adapters' A and B, or, without
// adapters, all weights of a model that was opened with dtype f32 (otherwise EINVAL).  It computes
// logits, as yoke_model_logits.  The caller frees it; it is valid until the model is freed, adapted
// or merged.
YOKE_API yoke_module *yoke_model_module(yoke_model *);

// Sets a model to training (1), in which yoke_model_loss applies the dropout of adapters, or to
// evaluation (0), as which it is opened.  A loss function of yoke_fit calls it with
// yoke_module_training(net).
YOKE_API int yoke_model_mode(yoke_model *, int training);

struct yoke_text_options {
	size_t size;      // sizeof, set by the caller
	int64_t context;  // tokens of a window; 0: the model's context
	int separate;     // of conversations: 1: one per window, padded; 0: several, packed, which
			  // do not see each other
	// Data in memory instead of files: a text in UTF-8, or JSON lines if the name in `paths`
	// ends with .jsonl; or ids.
	const char *text;
	size_t bytes;
	const int32_t *ids;
	int64_t count;
};
// Windows of text for yoke_model_loss, as `yoke train init=` reads them with valid=0: files of
// text, token files, or folders, which are split into windows of context + 1 tokens; or .jsonl
// files of conversations {"messages": [..]}, {"prompt": .., "completion": ..} or {"text": ..}, to
// which the model's chat template is applied, and of which only the assistant's tokens are learned.
// One field, "ids" i32 [context + 1], or of conversations [3,context]: ids, targets (-1: none),
// positions in each text.  `paths` is comma-separated; for data in memory it is a name for
// messages, or NULL.  ENOENT, EIO; EFORMAT names file and line; ERANGE: less than one window, or an
// id that the model does not have; EINVAL: context out of range; EUNSUPPORTED: an encoder.
YOKE_API yoke_dataset *yoke_model_dataset(yoke_model *, const char *paths,
					  const struct yoke_text_options *);
// The mean loss of windows i32 [B,T + 1] or [B,3,T] of such a dataset over their targets: a scalar.
// ESHAPE: another shape, or T exceeds the context; EUNSUPPORTED: an encoder.
YOKE_API yoke_tensor *yoke_model_loss(yoke_model *, yoke_tensor *windows);

// ---- ONNX ----

struct yoke_onnx_options {
	size_t size;       // sizeof, set by the caller
	const char *name;  // of the graph; NULL: "yoke"
	// Names of inputs and outputs; NULL, also as an element: input0, input1, .. and output0, ..
	const char *const *inputs;
	const char *const *outputs;
	// Names of weights: those of tensors that are no variables, which have names of their own.
	int weights;
	yoke_tensor *const *weight;
	const char *const *weight_names;
	uint64_t external; // max bytes of constants in the file itself; more of them are external
			   // data, in PATH.data; 0: 2 GB, the limit of the format, less 64 MB for
			   // the rest
};
// Writes how m recorded values are computed from n inputs as an ONNX model: opset 20, all shapes
// static. Inputs are tensors that the outputs were recorded from, with any numbers; what else these
// depend on is written as constants, with its present numbers.  The file and PATH.data are replaced
// together: after an error both are as before.  Names are made valid and unique: what is not UTF-8,
// white space and control characters become '_', bytes from the 301st on are cut off, and equal
// names get numbers.
//
// An output may be an input, and be given twice.  Values keep their dtypes.  f16 and bf16 are
// computed in f32, and rounded after each operation as by yoke, i8 and u8 in i32; so the model
// needs few operators and runs on the CPU of onnxruntime.  Quantized weights become f32.  Results
// differ from yoke's by rounding, except: erf of f64 has the precision of f32; an index out of
// range is not reported, and a negative one counts from the end; check_finite checks nothing; a
// value of v that is not finite spreads to queries that do not see it in attention.
//
// EUNSUPPORTED names an operation that ONNX has no operators for, and nothing is written: random
// numbers, bitcast between dtypes, largest, eigh, cholesky, solve_triangular, recurrences of more
// than 64 steps, collectives, and custom ops without a decomposition.  options may be NULL.
YOKE_API int yoke_onnx_write(const char *path, int n, yoke_tensor *const *in, int m,
			     yoke_tensor *const *out, const struct yoke_onnx_options *options);

#ifdef __cplusplus
}
#endif
#endif
