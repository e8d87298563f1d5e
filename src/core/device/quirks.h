// SPDX-License-Identifier: Apache-2.0
// Quirks: known faults of devices and drivers, read from files that users may edit.
#ifndef YK_QUIRKS_H
#define YK_QUIRKS_H

#include <stdbool.h>
#include <stdint.h>

#include "yoke-plugin.h"

struct yk_device;

// A line of quirks.conf: PLATFORM | DEVICE | DRIVER | AVOID | REASON | SOURCE
struct yk_quirk {
	const char *platform, *device, *driver; // patterns, and a version range
	const char *avoid;                      // as written in the file
	const char *reason, *source;
	const char *file;
	int line;
	uint16_t op;      // code; 0: all
	uint8_t dtype;    // 0: all
	const char *impl; // NULL: all
	bool whole;       // applies to the whole device
	struct yk_quirk *next;
	char text[];      // the split line, into which most pointers above point
};

// A quirk that applies to a device that was found.
struct yk_quirk_use {
	char device[48]; // "opencl:0"
	const struct yk_quirk *quirk;
	struct yk_quirk_use *next;
};

// Finds the quirks of a newly found device and stores them in d->quirks and yk_quirk_uses.  Returns
// the one that forbids the device as a whole, or NULL.
const struct yk_quirk *yk_quirks_of(struct yk_device *d);
// All quirks that applied so far, in order of discovery.
const struct yk_quirk_use *yk_quirk_uses(void);
// Why the file named by YOKE_QUIRKS was not read, or NULL.
const char *yk_quirks_trouble(void);
// Removes the implementations to avoid from a mask of those that can run an op.
uint64_t yk_quirks_mask(const struct yk_device *, const struct yoke_op *, uint64_t impls);

// ---- for tests ----

// Parses a text as a file of that name and appends to *to, each quirk one heap block; logs a
// warning for each corrupt line and returns their number.
int yk_quirks_parse(const char *text, const char *file, struct yk_quirk **to);
// Is a version ("560.35.03", "5.0+debian") in a range ("*", "<3.1", ">=2,<2.4")?
bool yk_version_in(const char *version, const char *range);

#endif
