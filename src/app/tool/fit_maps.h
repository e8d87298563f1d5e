// SPDX-License-Identifier: Apache-2.0
// Results of nodes for cubes, as files.
#ifndef YK_TOOL_FIT_MAPS_H
#define YK_TOOL_FIT_MAPS_H

#include "tool/fit_config.h"
#include "tool/fit_out.h"

// The files FOLDER/CUBE_NODE.FORMAT that yk_fit_maps writes for one sample: of each of comma-separated nodes ("": the last) one in
// each of comma-separated formats (hdr, with .img beside it, npy, png).  EINVAL: there is no such node.
int yk_fit_maps_paths(const struct yk_fit_config *, const yoke_pipeline *, int64_t sample, const char *folder, const char *nodes,
		      const char *formats, struct yk_file_list *to);

// Writes them, a block of lines at a time: memory holds the cube, and a block's results.  made, unless NULL, is called with the path
// of each file.
// Pixels of weight 0 have no result.  They hold the ignore value of the cube's header, or, where it has none or another pixel's result
// equals it, -9999 in ENVI files, whose header says so, and NaN in .npy files; in pictures they are black, and do not count for the
// range.  Headers have the map info of the cube's, and the wavelengths where the node's channels are the bands.
int yk_fit_maps(const struct yk_fit_config *, yoke_pipeline *, int64_t sample, const char *folder, const char *nodes,
		const char *formats, int (*made)(void *arg, const char *path), void *arg);

#endif
