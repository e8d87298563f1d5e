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
	double ignore;          // the header's ignore value, rounded to the type: a pixel with it in any band has weight 0; NaN: none,
				// or NaNs are ignored
	const double *wavelength; // [bands], or NULL
	const char *data;       // the file with the numbers
	int64_t items;          // cubes of the file
	int stack;              // the first axis of the .npy file counts them
	const char *units;      // of the wavelengths, as the header names them: "Nanometers"; NULL: not given
	const char *scene;      // the header's lines on where the scene lies (map info, projection info, coordinate system string,
				// geo points, rpc info, x start, y start, pixel size), as they are; NULL: none
	int gains;              // the header has data gain or offset values, which are applied to what is read
	const char *variable;   // the array of a MAT file that is read; NULL for other files
};

// A cube of an ENVI header (.hdr), whose data lie in the file of that name without .hdr or with .img, .dat, .raw, .bin, .bsq, .bil
// or .bip, in upper or lower case, or else in the only file of another suffix that is large enough; of a .npy file
// [lines,samples,bands] or [cubes,lines,samples,bands]; or of a MAT file (.mat, versions 5 and 7.3, by libmatio) with a real array
// [lines,samples,bands] or [lines,samples].  An array of version 7.3 without a class, as h5py writes it, is read as f64.
// A header must have samples, lines, bands, data type and interleave.  Header offset, byte order, wavelength, wavelength units,
// bbl, data ignore value, reflectance scale factor, data gain values and data offset values are used; other keys are ignored.
// yoke_cube_read returns number / scale, or gain * number + offset in f64; a header with a scale other than 1 and also gains
// other than 1 or offsets other than 0 is EUNSUPPORTED.  The ignore value, rounded to the file's type, is compared with the number
// in the file.  An empty value counts as missing.  A wavelength or bbl list whose length is not the number of bands is ignored with
// a warning.
// settings, NULL for none, separated by spaces:
//   bands=all    all; good: those whose bbl is not 0; or a list of band numbers from 0 on (0-9,20), ranges of wavelengths
//                (450nm..900nm, 0.9..2.5um) and single wavelengths (550nm), which select the nearest band.  Without a unit in
//                the header wavelengths are nanometres, or micrometres if all are below 100
//   variable=V   array of a MAT file; by default the first with three axes, else the first with two, else the first vector
//   item=0       number of the cube in a .npy file with several
//   stack=0      1: a .npy file with three axes is [cubes,lines,samples], of one band
// NULL with ENOENT, EIO, EFORMAT, EUNSUPPORTED (complex numbers, compressed data, frame offsets), EINVAL.
YOKE_API yoke_cube *yoke_cube_open(const char *path, const char *settings);
YOKE_API void yoke_cube_free(yoke_cube *); // NULL is fine
// Texts and numbers live as long as the cube.
YOKE_API int yoke_cube_info(const yoke_cube *, struct yoke_cube_info *);
// Reads all pixels, [lines,samples,bands], with scale, gains and offsets applied; may be called from any thread.  Data that are
// f32, bip and of the host's byte order are read directly into x.  weight [lines,samples], 1 or 0; may be NULL.
YOKE_API int yoke_cube_read(const yoke_cube *, float *x, float *weight);
// Writes x [lines,samples,bands] into an ENVI header at path (.hdr) with its data beside it (.img), or a .npy file of f32.  Of info
// it uses lines, samples, bands, type, interleave (NULL and columns: bip), big_endian, scale (0: 1), ignore, wavelength, units and
// scene.  Integer types get rounded numbers.  ERANGE names the first number that the type cannot hold; EINVAL: a value of info that
// a header cannot hold.
YOKE_API int yoke_cube_write(const char *path, const struct yoke_cube_info *, const float *x);

// ---- sets of cubes ----

struct yoke_cube_files {
	size_t size;
	int n;
	const char *const *path, *const *label, *const *mask; // [n]; label, mask: NULL for none
	const char *settings;
};
// A set of the cubes of n files, with one number of bands.  Fields: "x" f32 [lines,samples,bands]; "weight" f32 [lines,samples], 0
// where a band, the mask or the label has its file's ignore value or the mask is 0, else 1; and, if label is not NULL, "label" u8
// [lines,samples], 1 where the label is not 0.  If cubes have different sizes, the dims are the largest, samples have their own, and
// the last field is "size" i32 [2], lines and samples: a batch is as large as its largest cube, and what it adds to smaller ones is 0,
// with weight 0.  Reading a sample fails if its mask has a negative number, or if its mask or label is NaN or infinite
// in a pixel of weight 1.
// Labels and masks are .npy files [lines,samples], with a first axis where the cubes' files have one, or cubes of one band.
// settings as of yoke_cube_open without item, and
//   nonfinite=error   a pixel of weight 1 with an infinite number or a NaN fails its sample, with its place; skip: it has weight 0.
//                     Such pixels of weight 0 are read as 0
// ESHAPE: two files, which are named, differ in their number of bands, or a label or mask has another size than its cube; a file that
// changed later fails its sample.
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
