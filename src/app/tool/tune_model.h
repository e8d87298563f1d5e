// SPDX-License-Identifier: Apache-2.0
// The classes of ops that a model uses.
#ifndef YK_TUNE_MODEL_H
#define YK_TUNE_MODEL_H

#include "device/tuning.h"

// Trains a step and generates, with the model of the folder, on the device; *to: the classes of ops
// for which it has several implementations.  1: `until` of yk_seconds() came before the last of these runs,
// and *to is what the others used.
int yk_tune_model(struct yk_device *, const char *folder, double until, struct yk_tuning_watch *to);

#endif
