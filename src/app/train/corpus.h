// SPDX-License-Identifier: Apache-2.0
// What a run trains on: tokenizer and data, which are read once in a process, however many ranks train on them.
#ifndef YK_CORPUS_H
#define YK_CORPUS_H

#include <pthread.h>

#include "formats/checkpoint.h"
#include "train/conf.h"

struct yk_corpus {
	pthread_mutex_t lock;
	int users;
	bool opened;
	int code; // of opening it, and why it failed
	char why[1600];
	struct yk_tokenizer *tokenizer;
	struct yk_data *data; // NULL: none are given
};

// Empty, with one user.  NULL: ENOMEM.
struct yk_corpus *yk_corpus_new(void);
struct yk_corpus *yk_corpus_ref(struct yk_corpus *);
// The last one closes it.  NULL is fine.
void yk_corpus_free(struct yk_corpus *);
// Opens it as the keys say, with the tokenizer of that checkpoint, NULL: none, in `folder`; the first call does, and the
// others, whose keys are the same, wait for it and share what became of it.
int yk_corpus_open(struct yk_corpus *, const struct yk_config *, const struct yk_checkpoint *from, const char *folder);

#endif
