// SPDX-License-Identifier: Apache-2.0
// Tokenizer and data of a run. They are opened once per process and shared by all its ranks.
#ifndef YK_CORPUS_H
#define YK_CORPUS_H

#include <pthread.h>

#include "formats/checkpoint.h"
#include "config/conf.h"

struct yk_corpus {
	pthread_mutex_t lock;
	int users;
	bool opened;
	int code; // result of opening
	char why[1600];
	struct yk_tokenizer *tokenizer;
	struct yk_data *data; // NULL: no data was given
};

// Empty, with one reference. NULL: ENOMEM.
struct yk_corpus *yk_corpus_new(void);
struct yk_corpus *yk_corpus_ref(struct yk_corpus *);
// The last reference closes it. NULL is allowed.
void yk_corpus_free(struct yk_corpus *);
// Opens it as the keys specify, with the tokenizer of checkpoint `from` in `folder` (NULL: none).
// The first call opens; other calls, which must have the same keys, wait for it and return the same
// result.
int yk_corpus_open(struct yk_corpus *, const struct yk_config *, const struct yk_checkpoint *from,
		   const char *folder);

#endif
