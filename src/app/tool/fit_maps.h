// SPDX-License-Identifier: Apache-2.0
// Result maps of a pipeline: the results of its nodes for every pixel of a cube, as files.
#ifndef YK_TOOL_FIT_MAPS_H
#define YK_TOOL_FIT_MAPS_H

#include "tool/fit_config.h"
#include "tool/fit_out.h"

// Paths of the files FOLDER/CUBE_NODE.FORMAT that yk_fit_maps writes for one sample: one for each
// of the comma-separated nodes ("": the last node) and formats (hdr, which includes .img; npy;
// png). EINVAL: no such node.
int yk_fit_maps_paths(const struct yk_fit_config *, const yoke_pipeline *, int64_t sample,
		      const char *folder, const char *nodes, const char *formats,
		      struct yk_file_list *to);

// Writes these files in blocks of lines; memory holds the cube and the results of one block. made,
// unless NULL, is called with the path of each file.
// Pixels of weight 0 have no result. They get the ignore value of the cube's header. If it has
// none, or if the result of another pixel equals it, they get -9999 in ENVI files, declared in the
// header, and NaN in .npy files. In pictures they are black and excluded from the range.
// Headers inherit the cube's map info, and its wavelengths if the node's channels are the bands.
int yk_fit_maps(const struct yk_fit_config *, yoke_pipeline *, int64_t sample, const char *folder,
		const char *nodes, const char *formats, int (*made)(void *arg, const char *path),
		void *arg);

#endif
