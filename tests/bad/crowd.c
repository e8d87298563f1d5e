// SPDX-License-Identifier: Apache-2.0
// A plugin that reports more devices than the maximum.
#define DEVICES 4000000000u
#define NAME "crowd"
#include "bad.h"
