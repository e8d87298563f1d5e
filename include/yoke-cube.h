// SPDX-License-Identifier: Apache-2.0
// Hyperspectral cubes: images with many bands, in ENVI and .npy files, and sets of them.
#ifndef YOKE_CUBE_H
#define YOKE_CUBE_H

#include <yoke-data.h>

#ifdef __cplusplus
extern "C" {
#endif

// ---- cubes ----

// A file with a cube of lines x samples x bands.
typedef struct yoke_cube yoke_cube;

struct yoke_cube_info {
	size_t size;
	int64_t lines, samples, bands; // bands: those that are read
	const char *type;       // of an element in the file: u8 i16 i32 f32 f64 u16 u32 i64 u64
	const char *interleave; // bsq: band by band; bil: line by line, in it band by band; bip: pixel by pixel; columns: band by
				// band, in it sample by sample, as Fortran and MATLAB have it
	int big_endian;
	uint64_t offset;        // of the first element in the data's file
	double scale;           // what is in the file is this times what is read
	double ignore;          // a pixel with this number in a band has weight 0: the header's, rounded to the type; NaN: none, or NaNs
	const double *wavelength; // [bands], or NULL
	const char *data;       // the file with the numbers
	int64_t items;          // cubes of the file
	int stack;              // the first axis of the .npy file counts them
	const char *units;      // of the wavelengths, as the header names them: "Nanometers"; NULL: not given
	const char *scene;      // the header's lines on where the scene lies (map info, projection info, coordinate system string,
				// geo points, rpc info, x start, y start, pixel size), as they are; NULL: none
	int gains;              // the header has data gain or offset values, which are applied to what is read
	const char *variable;   // of a MAT file, the array that is read; NULL: of another file
};

// A cube of an ENVI header (.hdr), whose data lie in the file of that name without .hdr or with .img, .dat, .raw, .bin, .bsq, .bil
// or .bip, in letters of either size, or else in the only file of another suffix that is large enough; of a .npy file
// [lines,samples,bands] or [cubes,lines,samples,bands], or of a MAT file (.mat, 5 and 7.3, by libmatio) with a real array
// [lines,samples,bands] or [lines,samples]; one of version 7.3 whose class is not there, as h5py writes it, is read as f64.
// Of a header samples, lines, bands, data type and interleave are needed; header
// offset, byte order, wavelength, wavelength units, bbl, data ignore value, reflectance scale factor, data gain values and data
// offset values are used, other keys passed over.  What is read is number / scale, or gain * number + offset in f64; a header with a
// scale and gains or offsets that change something is EUNSUPPORTED.  The ignore value, rounded to the file's type, is compared with
// the number in the file.  Values that are empty count as not there; wavelengths and a bbl that are not as many numbers as there are
// bands are passed over with a warning.
// settings, NULL for none, with a space between:
//   bands=all    all; good: those whose bbl is not 0; or a list of places from 0 on, as 0-9,20, ranges of wavelengths, as
//                450nm..900nm or 0.9..2.5um, and single ones, as 550nm, the nearest band.  A header that names no unit has
//                nanometres, or micrometres where all are below 100
//   variable=V   of a MAT file; by default the first array with three axes, else the first with two, else the first vector
//   item=0       of a .npy file with several cubes, which
//   stack=0      1: a .npy file with three axes is [cubes,lines,samples], of one band
// NULL with ENOENT, EIO, EFORMAT, EUNSUPPORTED (complex numbers, compressed data, frame offsets), EINVAL.
YOKE_API yoke_cube *yoke_cube_open(const char *path, const char *settings);
YOKE_API void yoke_cube_free(yoke_cube *); // NULL is fine
// Texts and numbers live as long as the cube.
YOKE_API int yoke_cube_info(const yoke_cube *, struct yoke_cube_info *);
// All pixels, [lines,samples,bands], by scale, gains and offsets; from any thread.  What lies pixel by pixel in f32 of the host's byte order is read
// into x as it is.  weight [lines,samples], 1 or 0, unless NULL.
YOKE_API int yoke_cube_read(const yoke_cube *, float *x, float *weight);
// Writes x [lines,samples,bands] into an ENVI header at path (.hdr) with its data beside it (.img), or a .npy file of f32.  Of info
// lines, samples, bands, type, interleave (NULL and columns: bip), big_endian, scale (0: 1), ignore, wavelength, units and scene
// count; numbers are rounded to integers.  ERANGE names the first one that the type does not hold; EINVAL: what a header cannot say.
YOKE_API int yoke_cube_write(const char *path, const struct yoke_cube_info *, const float *x);

// ---- sets of cubes ----

struct yoke_cube_files {
	size_t size;
	int n;
	const char *const *path, *const *label, *const *mask; // [n]; label, mask: NULL for none
	const char *settings;
};
// A set of the cubes of n files, of one shape: fields "x" f32 [lines,samples,bands], "weight" f32 [lines,samples]: 0 where a band is
// the ignored value, the mask is 0 or its own ignored value, or the label is its ignored value, else 1; and, where label is not NULL,
// "label" u8 [lines,samples]: 1 where the label is not 0.  A mask with a negative number, and a mask or label with a NaN or an infinity where
// the pixel has weight, fail their sample.
// Labels and masks are .npy files [lines,samples], with a first axis where the cubes' files have one, or cubes of one band.
// settings as of yoke_cube_open without item, and
//   nonfinite=error   a pixel of weight 1 with an infinite number or a NaN fails its sample, with its place; skip: it has weight 0.
//                     Such pixels of weight 0 are read as 0
// ESHAPE names the file that is of another shape; that of one which changed later is its sample's.
YOKE_API yoke_dataset *yoke_dataset_cube_files(const struct yoke_cube_files *);
// The same without masks.
YOKE_API yoke_dataset *yoke_dataset_cubes(int n, const char *const *path, const char *const *label, const char *settings);
// Pixels that nonfinite=skip left out of the cubes read so far, each once; 0 of other sets.
YOKE_API int64_t yoke_dataset_cubes_skipped(const yoke_dataset *);
// A set of drawn cubes with anomalies, the same fields, whose numbers follow from seed and place alone:
//   count=200 lines=128 samples=128 bands=50 seed=42
// With w = 0 .. 1 along the bands: 100 exp(-(w - .5)^2 / .1) (1 + .2 sin 2 pi i/lines) (1 + .2 cos 2 pi j/samples); in discs of radius 2 ..
// 5 at drawn centres, until 5 % of the pixels are in one, 300 (exp(-(w - .3)^2 / .05) + exp(-(w - .7)^2 / .05)) / 2, and
// label 1; noise N(0, 10^2) on all (Philox, key seed).
YOKE_API yoke_dataset *yoke_dataset_synthetic(const char *settings);

#ifdef __cplusplus
}
#endif
#endif
