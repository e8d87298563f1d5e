// SPDX-License-Identifier: Apache-2.0
// Reads members of a config.json.  Members that are absent or null have a default.
#ifndef YK_HF_READER_H
#define YK_HF_READER_H

#include <jansson.h>

#include "models/family.h"

// The object being read; after an error all reads return the default.
struct yk_hf_reader {
	const json_t *o;
	const char *path;
	int error;
	int64_t context; // max tokens that will be used; 0: as in the file
};

bool yk_hf_has(const struct yk_hf_reader *, const char *key); // and not null
int64_t yk_hf_integer(struct yk_hf_reader *, const char *key, int64_t min, int64_t max,
		      int64_t otherwise);
double yk_hf_real(struct yk_hf_reader *, const char *key, double otherwise);
bool yk_hf_flag(struct yk_hf_reader *, const char *key, bool otherwise);
const char *yk_hf_word(struct yk_hf_reader *, const char *key, const char *otherwise);
// A limit that null switches off.
double yk_hf_limit(struct yk_hf_reader *, const char *key, double otherwise);

// The rotary embedding of a model whose sizes and window are known; `base` is the family's default.
void yk_hf_read_rope(struct yk_hf_reader *, const struct yk_family *, double base,
		     struct yk_model_shape *);

#endif
