// SPDX-License-Identifier: Apache-2.0
// Configuration of `yoke fit` in JSON: a pipeline and its data. Keys on the command line override
// those of the file.
#ifndef YK_TOOL_FIT_CONFIG_H
#define YK_TOOL_FIT_CONFIG_H

#include "base/json.h"
#include "tool/fit_out.h"
#include "yoke-pipeline.h"

struct yk_fit_config {
	const char *path;  // of the file
	json_t *root;      // the configuration in effect; without "data" it describes the pipeline
	char **name;       // [samples]: unique name, see name_cubes in fit_config.c
	char **file;       // [samples]: file of each cube; NULL: the cubes are synthetic
	int64_t *item;     // [samples]: index of the cube within its file
	int64_t samples;
	char *array;       // variable of the last MAT file that is read; NULL: none
	char settings[1400]; // settings of yoke_cube_open for those files
	struct yk_file_list read; // all files that are read
	yoke_dataset *set; // of all samples
	yoke_dataset *files; // source of the cached samples; NULL: no cache
	char loader[200];  // settings of loaders
	double split[3];   // fractions of the samples: train, valid, test
};

// Reads a file; ${VAR} in strings is replaced by the environment variable.
int yk_fit_config_load(struct yk_fit_config *, const char *path);
void yk_fit_config_fini(struct yk_fit_config *);
// Sets a key, e.g. "trainer.max_epochs=5" or "nodes.pca.k=8"; the value is JSON or, if it does not
// parse, a string. Keys that `yoke train` has too need no section: epochs=5, lr=0.01, batch=2.
// EINVAL: no such key. Setting files of cubes removes the settings of synthetic
// cubes, and vice versa.
int yk_fit_config_set(struct yk_fit_config *, const char *argument);
// Removes data that only training needs (labels, masks, a cache), before keys are set.
void yk_fit_config_cubes_alone(struct yk_fit_config *);
// Prefixes the error message with the file's name; returns err.
int yk_fit_config_failed(const struct yk_fit_config *, int err);
// Opens the data set that "data" describes.
int yk_fit_config_data(struct yk_fit_config *);
// Creates a context with the trainer's settings.
yoke_context *yk_fit_config_context(const struct yk_fit_config *);
// Creates the pipeline from the configuration without "data"; it records all keys in effect.
yoke_pipeline *yk_fit_config_pipeline(struct yk_fit_config *);

#endif
