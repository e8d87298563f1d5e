// SPDX-License-Identifier: Apache-2.0
// A plugin that claims more devices than there can be.
#define DEVICES 4000000000u
#define NAME "crowd"
#include "bad.h"
