// SPDX-License-Identifier: Apache-2.0
// Results of `yoke tune`: the fastest implementation for each class of ops, per device and driver.
#ifndef YK_TUNING_H
#define YK_TUNING_H

#include <limits.h>

#include "device/device.h"

// ---- tuning_class.c: classes of contractions ----

// Extents are the ones measured for the class; ta, tb: the rows of a, b are not contiguous.
struct yk_tuning_class {
	int dtype;
	bool ta, tb;
	int64_t m, n, k, batch;
};
enum { YK_TUNING_NAME = 96, YK_TUNING_CLASSES = 2250 };

// False: an op that tuning does not cover, or one without elements.
bool yk_tuning_class_of(const struct yoke_op *, struct yk_tuning_class *);
// "contract.f32.nt.384x384x64x1".
void yk_tuning_class_name(const struct yk_tuning_class *, char to[YK_TUNING_NAME]);
// Parses the name of a class, with its own or any other extents; false: not a class.
bool yk_tuning_class_parse(const char *name, struct yk_tuning_class *);
// All classes in the order of measurement, which starts with those where a wrong choice costs most;
// returns their number.
size_t yk_tuning_classes(struct yk_tuning_class to[YK_TUNING_CLASSES]);

// ---- tuning.c: the file ----

// Lines "CLASS NAME=NANOSECONDS .. NAME=wrong ..": implementations, fastest first, then those to
// avoid.
struct yk_tuning {
	char path[PATH_MAX]; // "": there is no directory for files
	char **line;
	size_t n;
};

// Reads the device's file; an invalid file causes a warning and counts as empty.
void yk_tuning_read(const struct yk_device *, struct yk_tuning *);
// The same without a warning.  why: the reason a file counts as empty, "/x/tuning-1.txt:3: it is
// cut off", else "".
void yk_tuning_try_read(const struct yk_device *, struct yk_tuning *, char *why, size_t cap);
// Read and write a file with another first line, "yoke-tuning 1 VERSION; SUBJECT".
void yk_tuning_open(const char *head, struct yk_tuning *, char *why, size_t cap);
int yk_tuning_save(const char *head, const struct yk_tuning *);
// Are tuning files used at all (YOKE_TUNE)?
bool yk_tuning_applied(void);
// The line of a class, or NULL.
const char *yk_tuning_find(const struct yk_tuning *, const char *class_name);
// Adds a line, or replaces the one of the same class.
int yk_tuning_add(struct yk_tuning *, const char *line);
int yk_tuning_write(const struct yk_device *, const struct yk_tuning *);
void yk_tuning_fini(struct yk_tuning *);

// The classes for which an implementation was chosen on a device while it was watched, each once.
struct yk_tuning_watch {
	const struct yk_device *device;
	size_t n;
	struct yk_tuning_class seen[256]; // further classes are dropped
};
// Fills it from now on; NULL: stop.
void yk_tuning_watch(struct yk_tuning_watch *);
bool yk_tuning_watched(const struct yk_tuning_watch *, const struct yk_tuning_class *);

// Adds a line measured by this process: applied from now on, not written to the file.
int yk_tuning_learn(struct yk_device *, const char *line);
// Is there a result for the class?
bool yk_tuning_learnt(struct yk_device *, const struct yk_tuning_class *);

// From a mask of implementations that can run an op: the fastest measured one, else the lowest bit.
uint32_t yk_tuning_pick(struct yk_device *, const struct yoke_op *, uint64_t impls);

#endif
