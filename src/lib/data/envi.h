// SPDX-License-Identifier: Apache-2.0
// ENVI headers: text of `key = value` lines that says how a cube lies in another file.
#ifndef YK_DATA_ENVI_H
#define YK_DATA_ENVI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum yk_interleave { YK_BSQ, YK_BIL, YK_BIP };
extern const char *const yk_interleave_names[]; // in that order

struct yk_envi_type {
	int number;       // ENVI's
	const char *name; // "u16"
	char kind;        // 'u', 'i', 'f'
	int width;        // bytes
};
// NULL: there is none.
const struct yk_envi_type *yk_envi_type(int number);
const struct yk_envi_type *yk_envi_type_named(const char *name);

enum { YK_ENVI_BANDS = 1 << 15, YK_ENVI_HEADER = 16 << 20, YK_ENVI_LINE = 1 << 16 }; // limits: bands; bytes of a header; bytes of an entry that is kept

struct yk_envi {
	int64_t lines, samples, bands;
	const struct yk_envi_type *type;
	enum yk_interleave interleave;
	bool big;
	uint64_t offset, bytes;   // bytes: of all elements
	double scale;
	double ignore;            // data ignore value, rounded to the type; NaN: none, or NaNs
	bool ignores;             // there is an ignore value that the type can hold:
	uint64_t ignored;         // an element of the type, which begins here, as the host has it
	double *wavelength;       // [bands], or NULL; to be freed
	double *gain, *shift;     // [bands]: data gain values, data offset values, or NULL; to be freed
	char units[32];           // of wavelengths: "Nanometers"; "": not given
	char *scene;              // lines of map info and the like as they are, or NULL; to be freed
	unsigned char *good;      // [bands]: bbl, or NULL; to be freed
	bool odd_bbl;             // the bbl does not have one flag per band
};
// Reads a header.  EFORMAT, EUNSUPPORTED name path and key.
int yk_envi_parse(struct yk_envi *, const char *path, const char *text, size_t length);
void yk_envi_fini(struct yk_envi *);
// The text of a header, to be freed; NULL: no memory.
char *yk_envi_text(const struct yk_envi *);

#endif
