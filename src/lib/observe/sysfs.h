// SPDX-License-Identifier: Apache-2.0
// Reads small files of /proc and /sys, or of a recorded tree (setting telemetry.root).
#ifndef YK_SYSFS_H
#define YK_SYSFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { YK_SYS_TEXT = 4096, YK_SYS_PATH = 512 };

// Reads the beginning of the file as a string, without a trailing newline; returns 0 or the errno.
int yk_sys_read(const char *path, char *to, size_t cap);
// The number in the file, times a unit; NaN: no number, or no such file.
double yk_sys_number(const char *path, double unit);
// As above, for a file in a directory.
double yk_sys_number_in(const char *folder, const char *name, double unit);
// "FOLDER/NAME" of the index-th entry, sorted by name, whose name starts with `prefix`.
bool yk_sys_entry(const char *folder, const char *prefix, int index, char to[YK_SYS_PATH]);
// With a recorded tree (telemetry.root): the path of a file beside it.  False: the files are this
// machine's.
bool yk_sys_recorded(const char *name, char *to, size_t cap);
// The number after `word` at the start of a line of a text, times a unit; NaN: not found.
double yk_sys_field(const char *text, const char *word, double unit);

#endif
