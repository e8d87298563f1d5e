// SPDX-License-Identifier: Apache-2.0
// Datasets of NumPy .npz archives.
#ifndef YK_DATA_NPZ_H
#define YK_DATA_NPZ_H

#include "yoke-data.h"

// fields: "a,b"; NULL: all arrays.  EFORMAT: damaged, or an inconsistent header; ERANGE: exceeds
// data.max; ESHAPE, ENOENT, EIO.
yoke_dataset *yk_npz_open(const char *path, const char *fields);

#endif
