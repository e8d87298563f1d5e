// SPDX-License-Identifier: Apache-2.0
// Results of nodes for cubes, as files.
#ifndef YK_TOOL_FIT_MAPS_H
#define YK_TOOL_FIT_MAPS_H

#include "tool/fit_config.h"

// Into the folder, for one sample: of each of comma-separated nodes ("": the last) a file NAME_NODE in each of comma-separated
// formats (hdr, npy, png).  made, unless NULL: is told of each file.
int yk_fit_maps(const struct yk_fit_config *, yoke_pipeline *, int64_t sample, const char *folder, const char *nodes,
		const char *formats, int (*made)(void *arg, const char *path), void *arg);

#endif
