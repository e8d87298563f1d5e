// SPDX-License-Identifier: Apache-2.0
// Checks a configuration as a whole before a run.
#ifndef YK_TRAIN_CHECK_H
#define YK_TRAIN_CHECK_H

#include "config/conf.h"

// Checks rules between keys: the model's sizes are consistent; train has data.
int yk_config_check(const struct yk_config *);
// As yk_config_check, but without requiring data.
int yk_config_check_model(const struct yk_config *);

#endif
