// SPDX-License-Identifier: Apache-2.0
// Images in folders of classes, as samples.
#ifndef YK_DATA_IMAGES_H
#define YK_DATA_IMAGES_H

#include "yoke-data.h"

// As they are given; NULL: not.
struct yk_image_settings {
	const char *size, *crop, *zoom, *flip, *mean, *std;
};

// EINVAL: a setting; EFORMAT: no folders, one without images; ENOENT, EIO, ENOMEM.
yoke_dataset *yk_images_open(const char *path, const struct yk_image_settings *);

#endif
