// SPDX-License-Identifier: Apache-2.0
// Hyperspectral cubes (images with many bands) in ENVI, .npy and MAT files, and datasets of them.
#ifndef YOKE_CUBE_H
#define YOKE_CUBE_H

#include <yoke-data.h>

#ifdef __cplusplus
extern "C" {
#endif

// ---- cubes ----

// A file that contains a cube of lines x samples x bands.
typedef struct yoke_cube yoke_cube;

struct yoke_cube_info {
	size_t size;
	int64_t lines, samples, bands; // bands: only the selected ones
	const char *type;       // element type in the file: u8 i16 i32 f32 f64 u16 u32 i64 u64
	const char *interleave; // bsq: band by band; bil: line by line, within a line band by band;
				// bip: pixel by pixel; columns: band by band, within a band sample
				// by sample, as in Fortran and MATLAB
	int big_endian;
	uint64_t offset;        // byte offset of the first element in the data file
	double scale;           // numbers in the file are divided by it when read
	double ignore;          // the header's ignore value, rounded to the type: a pixel with it
				// in any band has weight 0; NaN: none, or NaNs are ignored
	const double *wavelength; // [bands], or NULL
	const char *data;       // path of the data file
	int64_t items;          // number of cubes in the file
	int stack;              // the first axis of the .npy file counts cubes
	const char *units;      // unit of the wavelengths as named in the header: "Nanometers";
				// NULL: not given
	const char *scene;      // the header's georeferencing lines (map info, projection info,
				// coordinate system string, geo points, rpc info, x start, y start,
				// pixel size), unchanged; NULL: none
	int gains;              // the header has data gain or offset values, which are applied when
				// reading
	const char *variable;   // the array read from a MAT file; NULL for other files
};

// Opens a cube: an ENVI header (.hdr), whose data are in the file of that name without .hdr or with
// .img, .dat, .raw, .bin, .bsq, .bil or .bip, in upper or lower case, or else in the only file with
// another suffix that is large enough; a .npy file [lines,samples,bands] or
// [cubes,lines,samples,bands]; or a MAT file (.mat, versions 5 and 7.3, with libmatio) with a real
// array [lines,samples,bands] or [lines,samples].  A version 7.3 array without a class, as written
// by h5py, is read as f64.
// A header must have samples, lines, bands, data type and interleave.  Header offset, byte order,
// wavelength, wavelength units, bbl, data ignore value, reflectance scale factor, data gain values
// and data offset values are used; other keys are ignored.  yoke_cube_read returns number / scale,
// or gain * number + offset in f64; a header that has both a scale other than 1 and gains other
// than 1 or offsets other than 0 is EUNSUPPORTED.  The ignore value, rounded to the file's type, is
// compared with the number in the file.  An empty value counts as missing.  A wavelength or bbl
// list whose length is not the number of bands is ignored with a warning.
// settings, separated by spaces, or NULL:
//   bands=all    all; good: the bands with nonzero bbl; or a list of band numbers from 0 (0-9,20),
//                wavelength ranges (450nm..900nm, 0.9..2.5um) and single wavelengths (550nm), which
//                select the nearest band.  If the header has no unit, wavelengths are nanometres,
//                or micrometres if all are below 100
//   variable=V   array of a MAT file; by default the first with three axes, else the first with
//                two, else the first vector
//   item=0       index of the cube in a .npy file with several
//   stack=0      1: a .npy file with three axes is [cubes,lines,samples], with one band
// NULL with ENOENT, EIO, EFORMAT, EUNSUPPORTED (complex numbers, compressed data, frame offsets),
// EINVAL.
YOKE_API yoke_cube *yoke_cube_open(const char *path, const char *settings);
YOKE_API void yoke_cube_free(yoke_cube *); // NULL is fine
// Describes a cube.  Strings and arrays are valid as long as the cube.
YOKE_API int yoke_cube_info(const yoke_cube *, struct yoke_cube_info *);
// Reads all pixels, [lines,samples,bands], with scale, gains and offsets applied; callable from any
// thread.  Data stored as f32, bip and in the host's byte order are read directly into x.  weight
// [lines,samples], 1 or 0; may be NULL.
YOKE_API int yoke_cube_read(const yoke_cube *, float *x, float *weight);
// Writes x [lines,samples,bands] to an ENVI header at path (.hdr) with a data file beside it
// (.img), or to a .npy file of f32.  Uses these members of info: lines, samples, bands, type,
// interleave (NULL and columns: bip), big_endian, scale (0: 1), ignore, wavelength, units and
// scene.  Numbers are rounded for integer types.  ERANGE names the first number that the type
// cannot represent; EINVAL: a member of info cannot be represented in a header.
YOKE_API int yoke_cube_write(const char *path, const struct yoke_cube_info *, const float *x);

// ---- datasets of cubes ----

struct yoke_cube_files {
	size_t size;
	int n;
	const char *const *path, *const *label, *const *mask; // [n]; label, mask: NULL for none
	const char *settings;
};
// Creates a dataset of the cubes of n files, which must have the same number of bands.  Fields: "x"
// f32 [lines,samples,bands]; "weight" f32 [lines,samples], 0 where a band, the mask or the label
// has its file's ignore value or the mask is 0, else 1; and, if label is not NULL, "label" u8
// [lines,samples], 1 where the label is not 0.  If cubes have different sizes, the fields' dims are
// the maximum, samples have their own dims, and the last field is "size" i32 [2], lines and
// samples: a batch has the size of its largest cube, and smaller cubes are padded with 0 and weight
// 0.  Reading a sample fails if its mask has a negative number, or if its mask or label is NaN or
// infinite in a pixel of weight 1.
// Labels and masks are .npy files [lines,samples], with a first axis if the cube files have one, or
// cubes of one band.  settings are those of yoke_cube_open except item, and
//   nonfinite=error   reading a sample fails if a pixel of weight 1 has an infinite number or a
//                     NaN, with the pixel's position; skip: the pixel gets weight 0.  In pixels of
//                     weight 0 such numbers are read as 0
// ESHAPE: two files, which are named, differ in their number of bands, or a label or mask differs
// in size from its cube; reading a sample fails if its file has changed since.
YOKE_API yoke_dataset *yoke_dataset_cube_files(const struct yoke_cube_files *);
// yoke_dataset_cube_files without masks.
YOKE_API yoke_dataset *yoke_dataset_cubes(int n, const char *const *path, const char *const *label,
					  const char *settings);
// The number of pixels excluded by nonfinite=skip in the cubes read so far, each counted once; 0
// for other datasets.
YOKE_API int64_t yoke_dataset_cubes_skipped(const yoke_dataset *);
// Creates a dataset of synthetic cubes with anomalies, with the same fields, which depend only on
// seed and position:
//   count=200 lines=128 samples=128 bands=50 seed=42
// With w = 0 .. 1 along the bands, the background is 100 exp(-(w - .5)^2 / .1) (1 + .2 sin 2 pi
// i/lines) (1 + .2 cos 2 pi j/samples).  Discs of radius 2 .. 5 at random centres are added until
// they cover 5 % of the pixels; pixels in a disc have 300 (exp(-(w - .3)^2 / .05) + exp(-(w - .7)^2
// / .05)) / 2 instead and label 1.  All pixels get noise N(0, 10^2) (Philox, key seed).
YOKE_API yoke_dataset *yoke_dataset_synthetic(const char *settings);

#ifdef __cplusplus
}
#endif
#endif
