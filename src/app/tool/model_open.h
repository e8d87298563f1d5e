// SPDX-License-Identifier: Apache-2.0
// Shared by `yoke generate`, `yoke chat` and `yoke eval`: parses their keys and opens the model
// directory.
#ifndef YK_MODEL_OPEN_H
#define YK_MODEL_OPEN_H

#include "config/conf.h"
#include "models/sampling.h"
#include "train/trained.h"

struct yk_opened {
	const char *folder;
	struct yk_config config;
	struct yk_trained model;
};

// Runs the sub-command with arguments "COMMAND MODEL [key=value ...]": loads the model, calls fn,
// reports errors, and returns the exit status.
int yk_with_model(unsigned command, int argc, char **argv,
		  int (*fn)(const struct yk_opened *, void *arg), void *arg);
// How the keys say that a model is opened.
struct yoke_model_options yk_opened_options(const struct yk_config *);
// The sampling options that the keys select.
struct yk_sampling yk_opened_sampling(const struct yk_opened *);

#endif
