// SPDX-License-Identifier: Apache-2.0
// What `generate` and `eval` begin with: their keys and the model of a folder.
#ifndef YK_MODEL_OPEN_H
#define YK_MODEL_OPEN_H

#include "train/conf.h"
#include "train/trained.h"

struct yk_opened {
	const char *folder;
	struct yk_config config;
	struct yk_trained model;
};

// Takes the arguments "COMMAND MODEL [key=value ..]"; reports what is wrong and returns
// the exit status, YK_DONE when the model is loaded.
int yk_open_model(struct yk_opened *, unsigned command, int argc, char **argv);
void yk_close_model(struct yk_opened *);

#endif
