// SPDX-License-Identifier: Apache-2.0
// A pretrained model that was opened: its family and its network.
#ifndef YK_PRETRAINED_H
#define YK_PRETRAINED_H

#include "models/family.h"
#include "yoke-model.h"
#include "yoke-tokenizer.h"

struct yk_pretrained {
	const struct yk_family *family;
	struct yk_network *net;
};

struct yoke_model {
	struct yk_pretrained is;
	char *path;
	yoke_tokenizer *tokenizer; // NULL: not opened yet
};

// Is this a GGUF file, or a folder with a config.json?
bool yk_pretrained_is(const char *path);
int yk_pretrained_open(const char *path, const struct yoke_model_options *, struct yk_pretrained *);
// The tokenizer that comes with the model.  NULL: ENOENT if there is none; otherwise as
// yoke_tokenizer_open.
yoke_tokenizer *yk_pretrained_tokenizer(const char *path);
void yk_pretrained_close(struct yk_pretrained *);

#endif
