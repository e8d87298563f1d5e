// SPDX-License-Identifier: Apache-2.0
// The JSON of `yoke fit`: a pipeline and its data, with keys from the command line over those of the file.
#ifndef YK_TOOL_FIT_CONFIG_H
#define YK_TOOL_FIT_CONFIG_H

#include "base/json.h"
#include "tool/fit_out.h"
#include "yoke-pipeline.h"

struct yk_fit_config {
	const char *path;  // of the file
	json_t *root;      // all of it, as it is in force; without "data" it is the pipeline's
	char **name;       // [samples]: of each cube's file, without suffix, and as many folders before it as make it unique
	char **file;       // [samples]: of each cube, the file; NULL: they are drawn
	int64_t *item;     // [samples]: number of the cube in its file
	int64_t samples;
	char *array;       // of the last MAT file that is read; NULL: none
	char settings[1400]; // of yoke_cube_open, for those files
	struct yk_file_list read; // all files that are read
	yoke_dataset *set; // of all samples
	yoke_dataset *files; // what is cached in it; NULL: nothing is
	char loader[200];  // settings of loaders
	double split[3];   // train, valid, test; shares of the samples
};

// Reads a file: ${VAR} in its texts stands for the environment's.
int yk_fit_config_load(struct yk_fit_config *, const char *path);
void yk_fit_config_fini(struct yk_fit_config *);
// "trainer.max_epochs=5", "nodes.pca.k=8": the value as JSON, or as text where it is none.  EINVAL: there is no such place.
// Cubes take the place of drawn ones, and drawn ones that of cubes.
int yk_fit_config_set(struct yk_fit_config *, const char *argument);
// Takes out what training has beside cubes: labels, masks, a cache, before keys are set.
void yk_fit_config_cubes_alone(struct yk_fit_config *);
// Puts the name of the file before an error of its keys; err.
int yk_fit_config_failed(const struct yk_fit_config *, int err);
// Opens what "data" says.
int yk_fit_config_data(struct yk_fit_config *);
// A context as the rest's trainer says.
yoke_context *yk_fit_config_context(const struct yk_fit_config *);
// A pipeline of the rest, which has all keys that are in force from then on.
yoke_pipeline *yk_fit_config_pipeline(struct yk_fit_config *);

#endif
