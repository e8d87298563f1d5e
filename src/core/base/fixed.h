// SPDX-License-Identifier: Apache-2.0
// Settings that are read once: from then on another value would have no effect, so setting it is an
// error.
#ifndef YK_FIXED_H
#define YK_FIXED_H

// The setting's value was read for good; when: "the plugins were loaded".  Later calls for the same
// setting have no effect.
void yk_param_fix(const char *name, const char *when);
// EINVAL with the reason if the setting is fixed and the value is another one; 0 otherwise, also for
// unknown settings and invalid values.
int yk_param_is_open(const char *name, const char *value);

#endif
