// SPDX-License-Identifier: Apache-2.0
// Finds the files of a relocated installation, relative to the library or the command.
#ifndef YK_INSTALLED_H
#define YK_INSTALLED_H

#include <stdbool.h>
#include <stddef.h>

// A file in the directory `yoke` beside libyoke; name "": the directory itself.  False: there is
// none.
bool yk_beside(const char *name, char *to, size_t cap);
// The current location of a file that configure placed at `path`: the prefix is replaced by one of
// the three directories above the library or the command.  False: the file does not exist there.
bool yk_installed(const char *path, char *to, size_t cap);

#endif
