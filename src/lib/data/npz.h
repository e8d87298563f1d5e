// SPDX-License-Identifier: Apache-2.0
// .npz files as sets.
#ifndef YK_DATA_NPZ_H
#define YK_DATA_NPZ_H

#include "yoke-data.h"

// fields: "a,b", NULL: all arrays.  EFORMAT: damaged, a header that lies; ERANGE: more than data.max; ESHAPE, ENOENT, EIO.
yoke_dataset *yk_npz_open(const char *path, const char *fields);

#endif
