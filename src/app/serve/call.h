// SPDX-License-Identifier: Apache-2.0
// Requests that the computing thread works on.
#ifndef YK_SERVE_CALL_H
#define YK_SERVE_CALL_H

#include "serve/state.h"

struct yk_serve_call {
	struct yk_serve *serve;
	struct yk_exchange *x;
	struct yk_serve_call *next;
	const struct yk_call_kind *kind;
	int prompts, choices; // that it will submit to the engine: choices of each prompt
	bool done;      // to be removed
	bool cancelled; // it has its reply, or needs none
};

// All run on the computing thread.
struct yk_call_kind {
	void (*start)(struct yk_serve_call *);
	void (*work)(struct yk_serve_call *);   // computes a little; NULL: the engine does
	void (*cancel)(struct yk_serve_call *); // ends it soon; called once
	void (*free)(struct yk_serve_call *);
};

// A call for completions, or a reply with an error.
void yk_call_completions(struct yk_serve *, struct yk_exchange *, bool chat);
void yk_call_embeddings(struct yk_serve *, struct yk_exchange *);

#endif
