// SPDX-License-Identifier: Apache-2.0
// Quirks: what is known to be wrong with devices and drivers, from files that users may edit.
#ifndef YK_QUIRKS_H
#define YK_QUIRKS_H

#include <stdbool.h>
#include <stdint.h>

#include "yoke-plugin.h"

struct yk_device;

// A line of quirks.conf: PLATFORM | DEVICE | DRIVER | AVOID | REASON | SOURCE
struct yk_quirk {
	const char *platform, *device, *driver; // patterns, and a range of versions
	const char *avoid;                      // as it stands there
	const char *reason, *source;
	const char *file;
	int line;
	uint16_t op;      // code; 0: all
	uint8_t dtype;    // 0: all
	const char *impl; // NULL: all
	bool whole;       // the device itself
	struct yk_quirk *next;
	char text[];      // the line, cut up: what most of the above point into
};

// A quirk that was met.
struct yk_quirk_use {
	char device[48]; // "opencl:0"
	const struct yk_quirk *quirk;
	struct yk_quirk_use *next;
};

// Looks for those of a device that was just found, into d->quirks and yk_quirk_uses.  Returns the
// one for which it must not be used at all, or NULL.
const struct yk_quirk *yk_quirks_of(struct yk_device *d);
// All that were met so far, in order of discovery.
const struct yk_quirk_use *yk_quirk_uses(void);
// Why the file of YOKE_QUIRKS is not read, or NULL.
const char *yk_quirks_trouble(void);
// Takes the implementations to avoid from a mask of those that can run an op.
uint64_t yk_quirks_mask(const struct yk_device *, const struct yoke_op *, uint64_t impls);

// ---- for tests ----

// Reads a text as a file of that name; appends to *to, each quirk one block of the heap; returns the
// number of corrupt lines, which are warned of.
int yk_quirks_parse(const char *text, const char *file, struct yk_quirk **to);
// Is a version ("560.35.03", "5.0+debian") in a range ("*", "<3.1", ">=2,<2.4")?
bool yk_version_in(const char *version, const char *range);

#endif
