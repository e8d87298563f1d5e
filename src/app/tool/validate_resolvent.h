// SPDX-License-Identifier: Apache-2.0
// The command `yoke validate resolvent`: compares precisions of the resolvent with float64.
#ifndef YK_VALIDATE_RESOLVENT_H
#define YK_VALIDATE_RESOLVENT_H

#include <stdbool.h>

// Arguments are key=value. Returns the exit status: 1 if an error exceeds the bound.
int yk_validate_resolvent(int argc, char **argv, bool json);

#endif
