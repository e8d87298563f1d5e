// SPDX-License-Identifier: Apache-2.0
// Files of an installation that was moved as a whole, found from where the library or the command lies.
#ifndef YK_INSTALLED_H
#define YK_INSTALLED_H

#include <stdbool.h>
#include <stddef.h>

// A file of the folder `yoke` beside libyoke, or with "" the folder itself. False: there is none.
bool yk_beside(const char *name, char *to, size_t cap);
// Where the file that configure placed at `path` lies now: below the directory that stands in place of the prefix,
// one of the three above the library or the command. False: it is not there.
bool yk_installed(const char *path, char *to, size_t cap);

#endif
