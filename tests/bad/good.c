// SPDX-License-Identifier: Apache-2.0
// A plugin that loads: for tests of names, folders and owners.
#define NAME "good"
#include "bad.h"
