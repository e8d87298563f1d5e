// SPDX-License-Identifier: Apache-2.0
// Settings that are read once: from then on another value would have no effect, so setting it is an
// error.
#ifndef YK_FIXED_H
#define YK_FIXED_H

#include <stdbool.h>

#define YK_WHEN_LISTED "the devices were listed"

// Makes the current value final; when: "the plugins were loaded", static storage.
void yk_param_fix(const char *name, const char *when);
bool yk_param_is_fixed(const char *name);
// EINVAL with the reason if the setting is fixed and the value is another one; 0 otherwise, also
// for unknown settings and invalid values.
int yk_param_is_open(const char *name, const char *value);

#endif
