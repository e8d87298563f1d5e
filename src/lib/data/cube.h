// SPDX-License-Identifier: Apache-2.0
// Hyperspectral cubes in files: the handle behind yoke_cube, a writer, and datasets of cubes.
#ifndef YK_DATA_CUBE_H
#define YK_DATA_CUBE_H

#include "base/file.h"
#include "data/envi.h"
#include "yoke-cube.h"

struct yoke_cube {
	char *path, *data;
	int fd;
	struct yk_envi envi; // layout of the file; its byte count is that of one cube
	bool columns;        // stored as [bands][samples][lines], as Fortran and MATLAB do; the
			     // interleave is then unused
	int64_t items;       // number of cubes in the file
	bool stack;          // the first axis of the .npy file is the number of cubes
	char *variable;      // name of the variable in a MAT file; NULL for other files
	int64_t bands;       // number of bands that are read
	int64_t *band;       // [bands]: indices of these bands in the file
	bool all;            // all bands are read, in file order
	double *wavelength;  // [bands], or NULL
	double *gain, *shift; // [bands], or NULL
};

// Writes a cube in blocks of lines: begin, add until all lines are written, then commit, or abort,
// which keeps the old file.  A failed begin needs no abort; a failed commit has already aborted.
// With bsq, one call must add all lines.
struct yk_cube_writer {
	struct yk_envi envi;
	struct yk_file_writer file;
	char *path, *text;   // text: the ENVI header, written to path; NULL for a .npy file
	bool npy;
	int64_t lines;       // lines added so far
};
int yk_cube_begin(struct yk_cube_writer *, const char *path, const struct yoke_cube_info *);
int yk_cube_add(struct yk_cube_writer *, const float *x, int64_t lines);
int yk_cube_commit(struct yk_cube_writer *);
void yk_cube_abort(struct yk_cube_writer *);

// Opens an array of a MAT file (mat.c).  With variable NULL: the first with three axes, else the
// first with two, else the first vector.  Fills envi, columns, variable.  EFORMAT, ENOENT;
// EUNSUPPORTED: complex numbers, unsupported types, or a build without libmatio.
int yk_mat_open(yoke_cube *, const char *variable);
// Reads all elements of the array.
int yk_mat_read(const yoke_cube *, void *to);

// Shape of the cubes of a dataset.  varies: these are the maxima of each axis; cubes may have fewer
// lines and samples.
struct yk_cube_shape {
	int64_t lines, samples, bands;
	bool varies;
};
// Makes a dataset with fields x [lines, samples, bands] and weight [lines, samples] of f32, label
// of u8 and, if sizes differ, size [2] of i32; `read` fills them.  The dataset takes ownership of
// arg; on failure the caller keeps it.
yoke_dataset *yk_cube_set(const char *name, int64_t count, const struct yk_cube_shape *, bool label,
			  yoke_read_fn *read, void *arg, void (*free_fn)(void *),
			  uint64_t fingerprint);

#endif
