// SPDX-License-Identifier: Apache-2.0
// What `yoke tune` found: which implementation serves a class of ops best, by device and driver.
#ifndef YK_TUNING_H
#define YK_TUNING_H

#include <limits.h>

#include "device/device.h"

// ---- tuning_class.c: classes of contractions ----

// Extents are those at which the class is measured; ta, tb: rows of a, of b are not contiguous.
struct yk_tuning_class {
	int dtype;
	bool ta, tb;
	int64_t m, n, k, batch;
};
enum { YK_TUNING_NAME = 96, YK_TUNING_CLASSES = 2250 };

// False: an op that is not told apart, or one without elements.
bool yk_tuning_class_of(const struct yoke_op *, struct yk_tuning_class *);
// "contract.f32.nt.384x384x64x1".
void yk_tuning_class_name(const struct yk_tuning_class *, char to[YK_TUNING_NAME]);
// Of a class, or of the same with any other extents; false: it names nothing.
bool yk_tuning_class_parse(const char *name, struct yk_tuning_class *);
// All of them, in the order of measuring, where a wrong choice costs most first; returns how many.
size_t yk_tuning_classes(struct yk_tuning_class to[YK_TUNING_CLASSES]);

// ---- tuning.c: the file ----

// Lines "CLASS NAME=NANOSECONDS .. NAME=wrong ..": implementations, best first, then those to avoid.
struct yk_tuning {
	char path[PATH_MAX]; // "": there is no place for files
	char **line;
	size_t n;
};

// Reads the device's file; one that is not as it should be is warned of and taken for empty.
void yk_tuning_read(const struct yk_device *, struct yk_tuning *);
// The same without a warning: why a file is taken for empty, "/x/tuning-1.txt:3: it is cut off", else "".
void yk_tuning_look(const struct yk_device *, struct yk_tuning *, char *why, size_t cap);
// Both of a file with another first line, "yoke-tuning 1 VERSION; what it is of".
void yk_tuning_open(const char *head, struct yk_tuning *, char *why, size_t cap);
int yk_tuning_keep(const char *head, const struct yk_tuning *);
// Are files applied at all (YOKE_TUNE)?
bool yk_tuning_applied(void);
// The line of a class, or NULL.
const char *yk_tuning_find(const struct yk_tuning *, const char *class_name);
// Adds a line, in place of another of its class.
int yk_tuning_add(struct yk_tuning *, const char *line);
int yk_tuning_write(const struct yk_device *, const struct yk_tuning *);
void yk_tuning_fini(struct yk_tuning *);

// Classes that were chosen an implementation for on a device while they were watched, each once.
struct yk_tuning_watch {
	const struct yk_device *device;
	size_t n;
	struct yk_tuning_class seen[256]; // further ones are left out
};
// Fills it from now on; NULL: nobody watches.
void yk_tuning_watch(struct yk_tuning_watch *);
bool yk_tuning_watched(const struct yk_tuning_watch *, const struct yk_tuning_class *);

// A line that this process found of a device, which it applies from now on and does not write.
int yk_tuning_learn(struct yk_device *, const char *line);
// Is something known of the class?
bool yk_tuning_learnt(struct yk_device *, const struct yk_tuning_class *);

// Of a mask of implementations that can run an op: the one that was found best, else the lowest.
uint32_t yk_tuning_pick(struct yk_device *, const struct yoke_op *, uint64_t impls);

#endif
