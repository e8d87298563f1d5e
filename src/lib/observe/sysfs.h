// SPDX-License-Identifier: Apache-2.0
// Small files of /proc and /sys, behind the setting telemetry.root.
#ifndef YK_SYSFS_H
#define YK_SYSFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { YK_SYS_TEXT = 4096, YK_SYS_PATH = 512 };

// The file's beginning as a string, without a newline at its end; 0, or the errno.
int yk_sys_read(const char *path, char *to, size_t cap);
// Its number, times a unit; NaN: it has none, or is not there.
double yk_sys_number(const char *path, double unit);
// The same of a file in a folder.
double yk_sys_number_in(const char *folder, const char *name, double unit);
// The entry of a folder whose name begins so, from the `index`-th on in the order of names: "FOLDER/NAME".
bool yk_sys_entry(const char *folder, const char *prefix, int index, char to[YK_SYS_PATH]);
// Where trees are recorded (telemetry.root), the path of a file beside them; false: they are this machine's.
bool yk_sys_recorded(const char *name, char *to, size_t cap);
// What follows a word at the start of a line of a text, as a number, times a unit; NaN: it is not there.
double yk_sys_field(const char *text, const char *word, double unit);

#endif
