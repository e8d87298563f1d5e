// SPDX-License-Identifier: Apache-2.0
// A plugin that loads; used by tests of names, directories and file owners.
#define NAME "good"
#include "bad.h"
