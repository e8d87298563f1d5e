// SPDX-License-Identifier: Apache-2.0
// Checkpoints: a folder with manifest.json and the files listed in it.
//
//     manifest.json                       format, versions, model, tokenizer, keys, step,
//                                         schedule, random state, data position; name,
//                                         size and XXH64 of each file; XXH64 of itself
//     model.<generation>.safetensors      weights
//     optimizer.<generation>.safetensors  states of the optimizer
//
// Generations never repeat, and the manifest is replaced last, by one rename: at any
// moment the folder holds a complete checkpoint, the old or the new one, even after a crash.
// Other files are not touched.
#ifndef YK_CHECKPOINT_H
#define YK_CHECKPOINT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "formats/safetensors.h"

#define YK_CHECKPOINT_FORMAT 1

enum yk_checkpoint_part {
	YK_CHECKPOINT_MODEL, YK_CHECKPOINT_OPTIMIZER, YK_CHECKPOINT_PARTS
};

struct yk_checkpoint_file {
	char name[64]; // in the folder
	uint64_t bytes, hash;
};

// Everything except the arrays.  The struct owns references to the JSON objects
// (use json_incref for an object that is kept elsewhere).
struct yk_checkpoint {
	json_t *model;     // description from which the model is rebuilt: kind, layers, heads, ..
	json_t *tokenizer; // description from which the tokenizer is rebuilt
	json_t *config;    // the keys of `yoke train`
	json_t *schedule;  // state of the learning-rate schedule, an object
	json_t *adapter;   // base model and layers of adapters (models/adapter.h); the model
			   // file then has the adapters only.  NULL: it has the whole model
	// the lowest validation loss so far (train/best.h), an object; NULL: none
	json_t *best;
	json_t *scaler;    // state of the loss scaler, an object; NULL: none
	int64_t step;      // optimizer steps done, including skipped ones
	int64_t skipped;   // skipped steps, which changed nothing
	uint64_t seed;     // of the random generator
	int64_t random_step;
	struct {
		int64_t epoch, index;
		int64_t failed; // failed samples of that epoch
	} data;        // the position in the text
	uint64_t text; // fingerprint of the text; 0: unknown
	json_t *sources; // files that the data was read from, an array; NULL: unknown
	// Set by save and open.
	int64_t generation;
	struct yk_checkpoint_file file[YK_CHECKPOINT_PARTS];
};

// Is there a manifest in the folder?
bool yk_checkpoint_exists(const char *folder);
// Writes a checkpoint into the folder (created if missing), then removes the previous one.  On
// failure (EIO: disk full, not writable) the previous one stays intact.
int yk_checkpoint_save(const char *folder, struct yk_checkpoint *, int nmodel,
		       const struct yk_host_tensor *model, int noptimizer,
		       const struct yk_host_tensor *optimizer);
// The same with arrays whose data a callback provides during the write, as in
// yk_safetensors_write_by.
struct yk_checkpoint_arrays {
	int n;
	const struct yk_host_tensor *tensor;
};
typedef int yk_checkpoint_source_fn(void *arg, int part, int i, uint64_t from, size_t bytes,
				    void *to);
int yk_checkpoint_save_by(const char *folder, struct yk_checkpoint *,
			  const struct yk_checkpoint_arrays[YK_CHECKPOINT_PARTS],
			  yk_checkpoint_source_fn *, void *arg);
// Reads the manifest; *to is unchanged on failure.  ENOENT, EFORMAT.
int yk_checkpoint_open(const char *folder, struct yk_checkpoint *to);
// Fills *to from a parsed manifest; `path` is for messages.
int yk_checkpoint_parse(json_t *manifest, const char *path, struct yk_checkpoint *to);
void yk_checkpoint_fini(struct yk_checkpoint *);
// Checks that the part's file has the size in the manifest and can hold arrays of `bytes`
// in total.  Call it before allocating memory for shapes that only a manifest describes.
// ENOENT, EIO, EFORMAT.
int yk_checkpoint_holds(const char *folder, const struct yk_checkpoint *, int part,
			uint64_t bytes);
// Verifies the part's size and checksum.  ENOENT, EIO, EFORMAT.
int yk_checkpoint_verify(const char *folder, const struct yk_checkpoint *, int part);
// Receives requested array i; `data` is reused for the next array.  Returns 0, or an error
// that ends the load.
typedef int yk_checkpoint_sink_fn(void *arg, int i, const void *data, uint64_t bytes);
// Loads the arrays of one part and passes them to `take` in the requested order.  The file's size
// and checksum must match the manifest, and it must contain exactly these names, dtypes and shapes.
// EFORMAT (truncated, altered), ESHAPE or EDTYPE (of another model).  Everything is checked before
// the first array is passed on; only EIO, ENOMEM and errors of `take` can occur later.
int yk_checkpoint_load(const char *folder, const struct yk_checkpoint *, int part, int n,
		       const struct yk_host_tensor *, yk_checkpoint_sink_fn *take, void *arg);

#endif
