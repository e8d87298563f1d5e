// SPDX-License-Identifier: Apache-2.0
// yoke validate resolvent.
#ifndef YK_VALIDATE_RESOLVENT_H
#define YK_VALIDATE_RESOLVENT_H

#include <stdbool.h>

// Arguments key=value; returns the exit status: 1 where errors are beyond the bound.
int yk_validate_resolvent(int argc, char **argv, bool json);

#endif
