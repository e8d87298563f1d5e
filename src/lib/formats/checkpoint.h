// SPDX-License-Identifier: Apache-2.0
// Checkpoints: a folder with manifest.json and the files it names.
//
//     manifest.json                       format, versions, model, tokenizer, keys, step,
//                                         schedule, random state, data position; name,
//                                         size and XXH64 of each file; XXH64 of itself
//     model.<generation>.safetensors      weights
//     optimizer.<generation>.safetensors  states of the optimizer
//
// Generations never repeat, and the manifest is replaced last, by one rename: at each
// moment the folder holds a whole checkpoint, the old or the new one, whatever is killed.
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

// All but the arrays.  The objects belong to the struct (references are counted:
// json_incref what is kept elsewhere).
struct yk_checkpoint {
	json_t *model;     // what rebuilds the model: kind, layers, heads, ..
	json_t *tokenizer; // what rebuilds the tokenizer
	json_t *config;    // the keys of `yoke train`
	json_t *schedule;  // state of the learning-rate schedule, an object
	json_t *scaler;    // state of the loss scale, an object; NULL: there is none
	int64_t step;      // optimizer steps done ..
	int64_t skipped;   // .. and those of them that changed nothing
	uint64_t seed;     // of random numbers
	int64_t random_step;
	struct {
		int64_t epoch, index;
		int64_t failed; // samples of that epoch
	} data;        // the position in the text
	uint64_t text; // its fingerprint; 0: not known
	json_t *sources; // files it was read from, an array; NULL: not known
	// Set by save and open.
	int64_t generation;
	struct yk_checkpoint_file file[YK_CHECKPOINT_PARTS];
};

// Is there a manifest in the folder?
bool yk_checkpoint_exists(const char *folder);
// Writes a checkpoint into the folder (made if need be), then removes the one before.  On
// failure (EIO: out of disk, not writable) the one before stays as it was.
int yk_checkpoint_save(const char *folder, struct yk_checkpoint *, int nmodel,
		       const struct yk_host_tensor *model, int noptimizer,
		       const struct yk_host_tensor *optimizer);
// The same of arrays whose data is asked for as it is written, as of yk_safetensors_write_by.
struct yk_checkpoint_arrays {
	int n;
	const struct yk_host_tensor *tensor;
};
typedef int yk_checkpoint_give_fn(void *arg, int part, int i, uint64_t from, size_t bytes, void *to);
int yk_checkpoint_save_by(const char *folder, struct yk_checkpoint *, const struct yk_checkpoint_arrays[YK_CHECKPOINT_PARTS],
			  yk_checkpoint_give_fn *, void *arg);
// Reads the manifest; *to is untouched on failure.  ENOENT, EFORMAT.
int yk_checkpoint_open(const char *folder, struct yk_checkpoint *to);
// What open does with a manifest once it is JSON; `path` is for messages.
int yk_checkpoint_parse(json_t *manifest, const char *path, struct yk_checkpoint *to);
void yk_checkpoint_fini(struct yk_checkpoint *);
// Is the part's file there, as long as the manifest says, with room for arrays of `bytes`
// in all?  To be asked before memory is taken for what only a manifest describes.
// ENOENT, EIO, EFORMAT.
int yk_checkpoint_holds(const char *folder, const struct yk_checkpoint *, int part,
			uint64_t bytes);
// Takes array i of those asked for, in memory that is used for the next one as well; 0, or an error
// that ends the load.
typedef int yk_checkpoint_take_fn(void *arg, int i, const void *data, uint64_t bytes);
// Gives the arrays of one part, one at a time and in the order asked for, from its file, whose size
// and checksum must be the manifest's and which must have exactly these names, dtypes and shapes.
// EFORMAT (truncated, altered), ESHAPE or EDTYPE (of another model).  Everything is checked
// before the first array is given; only EIO, ENOMEM and what `take` returns can come later.
int yk_checkpoint_load(const char *folder, const struct yk_checkpoint *, int part, int n,
		       const struct yk_host_tensor *, yk_checkpoint_take_fn *take, void *arg);

#endif
