// SPDX-License-Identifier: Apache-2.0
// Cubes as the room sees them.
#ifndef YK_DATA_CUBE_H
#define YK_DATA_CUBE_H

#include "base/file.h"
#include "data/envi.h"
#include "yoke-cube.h"

struct yoke_cube {
	char *path, *data;
	int fd;
	struct yk_envi envi; // how it lies; its bytes are one cube's
	bool columns;        // it lies as [bands][samples][lines], as Fortran and MATLAB have it; the interleave does not count
	int64_t items;       // cubes of the file
	bool stack;          // the first axis of the .npy file counts them
	char *variable;      // of a MAT file; NULL: of none
	int64_t bands;       // that are read
	int64_t *band;       // their places in the file
	bool all;            // they are all of it, in its order
	double *wavelength;  // theirs, or NULL
	double *gain, *shift; // theirs, or NULL
};

// Writes a cube some lines at a time: begin, add until all lines are there, then commit, or abort, which keeps the old file.
// A failed begin needs no abort; a failed commit has aborted.  bsq takes all lines at once.
struct yk_cube_writer {
	struct yk_envi envi;
	struct yk_file_writer file;
	char *path, *text;   // text: of an ENVI header at path; NULL: of a .npy file
	bool npy;
	int64_t lines;       // that are added
};
int yk_cube_begin(struct yk_cube_writer *, const char *path, const struct yoke_cube_info *);
int yk_cube_add(struct yk_cube_writer *, const float *x, int64_t lines);
int yk_cube_commit(struct yk_cube_writer *);
void yk_cube_abort(struct yk_cube_writer *);

// Opens an array of a MAT file (mat.c); variable NULL: the first with three axes, else the first with two, else the first vector.
// Fills envi, columns, variable.  EFORMAT, ENOENT;
// EUNSUPPORTED: complex numbers, other types, or built without libmatio.
int yk_mat_open(yoke_cube *, const char *variable);
// All its elements.
int yk_mat_read(const yoke_cube *, void *to);

// Size of the cubes of a set; varies: the largest of each axis, and cubes may have fewer lines and samples.
struct yk_cube_shape {
	int64_t lines, samples, bands;
	bool varies;
};
// A set of fields x [lines, samples, bands] and weight [lines, samples] of f32, label of u8 and, if sizes differ, size [2] of i32, as read
// gives them; arg is the set's.  On failure it stays the caller's.
yoke_dataset *yk_cube_set(const char *name, int64_t count, const struct yk_cube_shape *, bool label, yoke_read_fn *read, void *arg,
			  void (*free_fn)(void *), uint64_t fingerprint);

#endif
