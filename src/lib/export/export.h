// SPDX-License-Identifier: Apache-2.0
// Writes models in the formats of other programs: Hugging Face's folders, GGUF files and ONNX
// files.
//
// For the first two a model is read from its files tensor by tensor, in windows, and never as a
// whole; for ONNX it is opened and its graph recorded.
#ifndef YK_EXPORT_H
#define YK_EXPORT_H

#include <jansson.h>

#include "base/file.h"
#include "models/adapter.h"
#include "models/weights.h"
#include "yoke-tokenizer.h"

struct yk_export_options {
	// weights: enum yoke_quant; -1: as they are stored, quantized ones as f32
	int format;
	uint64_t shard;    // bytes of weights in a file of a folder
	bool overwrite;    // an existing target is replaced
	const char *pre;   // tokenizer.ggml.pre; NULL: found by comparing tokenizers
	// low-rank adapters of the model, a folder of PEFT or of a run, or NULL
	const char *adapter;
	bool merge;        // adds them to the weights
};

// Writes the model `path`: a folder with config.json, a GGUF file, or a folder that `yoke train`
// wrote. EINVAL: the format cannot express it, or the target exists; EFORMAT, EIO.  Nothing is left
// of what was written before an error.
int yk_export_hf(const char *path, const char *to, const struct yk_export_options *);
int yk_export_gguf(const char *path, const char *to, const struct yk_export_options *);
// Writes a folder of PEFT with the adapters of a run, or of options.adapter for a model.
int yk_export_peft(const char *path, const char *to, const struct yk_export_options *);

struct yk_network;
struct yk_onnx_export {
	int64_t batch, context; // shape of input_ids; 0: 1 and the model's context, at most 1024
	uint64_t external;      // as in struct yoke_onnx_options
	bool overwrite;
};
// Writes a language model, opened from `path`, as an ONNX file.
int yk_export_onnx(const struct yk_network *, const char *path, const char *to,
		   const struct yk_onnx_export *);

// ---- shared by hf and gguf ----

// A model whose files are open.
struct yk_export {
	const char *path;
	// the names in its files; the family that is written
	const struct yk_family *read, *written;
	struct yk_model_shape shape;
	struct yk_weights *weights;
	json_t *config;            // of a folder of Hugging Face; otherwise NULL
	// the manifest's tokenizer of a model that yoke trained; otherwise NULL
	json_t *words;
	char *base;                // path of a run's frozen model; NULL: not a run with adapters
	struct yk_adapter adapter; // added to the weights; no layers: none
	yoke_tokenizer *tokenizer; // NULL: it has no published tokenizer
	struct yk_export_tensor *tensor; // of the written files, in the order of the network
	size_t tensors, cap;
};

// A tensor of the written files.
struct yk_export_tensor {
	char name[160];
	int rank;
	int64_t dims[2];                    // in the written file
	int segments;                       // parameters that it consists of, in the order of rows
	struct yk_weight_source segment[3];
	const struct yk_adapter_layer *added[3]; // to the segment; NULL: nothing
	bool transposed, swapped;           // as in struct yk_weight_source, of the written file
	bool decrement;                     // the written file has the weight less 1
};

// Opens the files and lists the tensors of files with Hugging Face's or GGUF's names.
// Options: adapter and merge.
int yk_export_open(const char *path, bool gguf, const struct yk_export_options *,
		   struct yk_export *);
// The same without listing tensors.
int yk_export_files(const char *path, const struct yk_export_options *, struct yk_export *);
void yk_export_close(struct yk_export *);
// Writes a folder under a temporary name and renames it; an earlier one that has the file `marker`
// is replaced.
int yk_export_folder(const char *to, const char *marker,
		     int (*write)(const struct yk_export *, const struct yk_export_options *,
				  const char *folder),
		     const struct yk_export *, const struct yk_export_options *);
// Reads rows from .. from + rows - 1 of a tensor as they are to be written.
int yk_export_rows(const struct yk_export_tensor *, int64_t from, int64_t rows, float *to);
// Appends all rows in a format of yoke_quantize; errors name the tensor.
int yk_export_write_tensor(const struct yk_export_tensor *, int format, struct yk_file_writer *);
// The format that the first parameter of a tensor is stored in.
enum yk_gguf_format yk_export_stored(const struct yk_export_tensor *);
// Refuses a target that exists, unless it may be replaced, or that is the source itself.
int yk_export_target(const char *path, const char *to, bool overwrite);

// config.json of a model that no config.json describes; NULL with the error set.
json_t *yk_export_config(const struct yk_export *);
// Writes tokenizer files into a folder.
int yk_export_tokenizer_hf(const struct yk_export *, const char *folder);
// Adds the tokenizer's keys.
struct yk_gguf_writer;
int yk_export_tokenizer_gguf(const struct yk_export *, const char *pre, struct yk_gguf_writer *);

// The folder or GGUF file in which a checkpoint keeps the tokenizer of a published model.
const char *yk_export_tokenizer_files(const struct yk_export *, char path[4096]);

#endif
