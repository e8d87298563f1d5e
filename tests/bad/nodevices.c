// SPDX-License-Identifier: Apache-2.0
// A plugin that finds no devices, which is not an error.
#define DEVICES 0
#define NAME "nodevices"
#include "bad.h"
