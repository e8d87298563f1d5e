// SPDX-License-Identifier: Apache-2.0
// A plugin whose table ends one function before the end of the mandatory section.
#define SIZE (YOKE_BACKEND_MANDATORY - sizeof(void *))
#define NAME "short"
#include "bad.h"
