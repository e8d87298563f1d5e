// SPDX-License-Identifier: Apache-2.0
// ENVI headers: text of `key = value` lines that describes the layout of a cube in a separate data
// file.
#ifndef YK_DATA_ENVI_H
#define YK_DATA_ENVI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/endian.h"

enum yk_interleave { YK_BSQ, YK_BIL, YK_BIP };
extern const char *const yk_interleave_names[]; // indexed by yk_interleave

struct yk_envi_type {
	int number;       // ENVI type number
	const char *name; // "u16"
	char kind;        // 'u', 'i', 'f'
	int width;        // bytes
};
// NULL if there is no such type.
const struct yk_envi_type *yk_envi_type(int number);
const struct yk_envi_type *yk_envi_type_named(const char *name);

// limits: bands; bytes of a header; bytes of a stored entry
enum { YK_ENVI_BANDS = 1 << 15, YK_ENVI_HEADER = 16 << 20, YK_ENVI_LINE = 1 << 16 };

struct yk_envi {
	int64_t lines, samples, bands;
	const struct yk_envi_type *type;
	enum yk_interleave interleave;
	bool big;
	uint64_t offset, bytes;   // bytes: size of all elements
	double scale;
	double ignore;            // data ignore value, rounded to the type; NaN: none, or the value
				  // is NaN
	bool ignores;             // there is an ignore value that the type can represent
	uint64_t ignored;         // its first bytes hold that value as an element of the type, in
				  // host byte order
	double *wavelength;       // [bands], or NULL; owned
	double *gain, *shift;     // [bands]: data gain values, data offset values, or NULL; owned
	char units[32];           // unit of the wavelengths: "Nanometers"; "": not given
	char *scene;              // the lines of map info and similar keys, unchanged, or NULL;
				  // owned
	unsigned char *good;      // [bands]: bbl, or NULL; owned
	bool odd_bbl;             // the bbl does not have one flag per band
};

// Are the bytes of an element in the opposite of the host's order?
static inline bool yk_envi_swapped(const struct yk_envi *e)
{
	return e->big != YK_HOST_BIG && e->type->width > 1;
}

// Parses a header.  EFORMAT and EUNSUPPORTED name the path and the key.
int yk_envi_parse(struct yk_envi *, const char *path, const char *text, size_t length);
void yk_envi_fini(struct yk_envi *);
// Returns the text of a header, which the caller frees; NULL: out of memory.
char *yk_envi_text(const struct yk_envi *);

#endif
