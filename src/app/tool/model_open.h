// SPDX-License-Identifier: Apache-2.0
// What `generate` and `eval` have in common: their keys and the model of a folder.
#ifndef YK_MODEL_OPEN_H
#define YK_MODEL_OPEN_H

#include "train/conf.h"
#include "train/trained.h"

struct yk_opened {
	const char *folder;
	struct yk_config config;
	struct yk_trained model;
};

// The sub-command with arguments "COMMAND MODEL [key=value ..]": calls fn once the model is loaded, reports
// what is wrong, and returns the exit status.
int yk_with_model(unsigned command, int argc, char **argv, int (*fn)(const struct yk_opened *));

#endif
