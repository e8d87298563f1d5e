// SPDX-License-Identifier: Apache-2.0
// Finds the classes of ops that a model uses, so that `yoke tune` measures only these.
#ifndef YK_TUNE_MODEL_H
#define YK_TUNE_MODEL_H

#include "device/tuning.h"

// Trains one step and generates with the model of the directory on the device. *to: the classes of
// ops with several implementations. Returns 1 if the time `until` (by yk_seconds()) came before the
// last of these runs; *to then holds the classes that the earlier runs used.
int yk_tune_model(struct yk_device *, const char *folder, double until, struct yk_tuning_watch *to);

#endif
