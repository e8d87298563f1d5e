// SPDX-License-Identifier: Apache-2.0
// Image classification datasets: one folder per class.
#ifndef YK_DATA_IMAGES_H
#define YK_DATA_IMAGES_H

#include "yoke-data.h"

// The settings' strings; NULL: not given.
struct yk_image_settings {
	const char *size, *crop, *zoom, *flip, *mean, *std;
};

// EINVAL: a bad setting; EFORMAT: no class folders, or one without images; ENOENT, EIO, ENOMEM.
yoke_dataset *yk_images_open(const char *path, const struct yk_image_settings *);

#endif
