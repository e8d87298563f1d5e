// SPDX-License-Identifier: Apache-2.0
// A pretrained model that was opened: its family and its network.
#ifndef YK_PRETRAINED_H
#define YK_PRETRAINED_H

#include "models/family.h"
#include "yoke-model.h"

struct yk_pretrained {
	const struct yk_family *family;
	struct yk_network *net;
};

// Is this a GGUF file, or a folder with a config.json?
bool yk_pretrained_is(const char *path);
int yk_pretrained_open(const char *path, const struct yoke_model_options *, struct yk_pretrained *);
void yk_pretrained_close(struct yk_pretrained *);

#endif
