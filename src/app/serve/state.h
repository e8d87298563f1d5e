// SPDX-License-Identifier: Apache-2.0
// The state of a server.  The threads of HTTP check requests and make prompts of them; one thread,
// which owns the models, computes.
#ifndef YK_SERVE_STATE_H
#define YK_SERVE_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "http/http.h"
#include "models/pretrained.h"
#include "schema/schema.h"
#include "serve/metrics.h"
#include "serve/serve.h"
#include "text/tokenizer.h"
#include "yoke-engine.h"

enum yk_serve_phase { YK_LOADING, YK_READY, YK_DRAINING };

struct yk_serve_model { // a name of the API
	char *name;
	bool adapter, embeds;
};

struct yk_serve_call;

// The language model and what requests to it need.
struct yk_serve_lm {
	yoke_model *model; // NULL: the server has embeddings only
	const yoke_tokenizer *tokenizer;
	// texts of single tokens; used by the computing thread only
	struct yk_tokenizer *pieces;
	int64_t vocabulary, context;
	yoke_chat_template *template;    // NULL: none
	struct yk_schema_vocab *schemas; // of the tokens, for response_format
	yoke_engine *engine;
};

struct yk_serve_embedder {
	yoke_model *model; // NULL: none
	const yoke_tokenizer *tokenizer;
	struct yk_embedding settings;
	int64_t vocabulary, context, width;
};

// Calls on their way to the computing thread; the mutex protects all members.
struct yk_serve_inbox {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	struct yk_serve_call *first, **last;
	int64_t choices; // that they will submit to the engine
	int64_t waiting; // prompts of these for which no slot was free
	int64_t embeds;  // calls for embeddings, arrived or running
	bool woken;
};

struct yk_serve {
	struct yk_serve_options is;
	_Atomic enum yk_serve_phase phase;
	// Constant once the phase is READY.
	struct yk_serve_model model[YK_SERVE_ADAPTERS + 2]; // the first one is the default
	int models;
	double created; // seconds since 1970
	struct yk_serve_lm lm;
	struct yk_serve_embedder embedder;
	struct yk_http *http; // NULL: in a batch

	struct yk_metrics metrics;
	struct yk_serve_inbox inbox;

	// Used by the computing thread only.
	struct yk_serve_call *running;
	int64_t steps; // of the engine so far
};

// Passes a call to the computing thread, and wakes it.  false: the queue is full, and the client
// got status 429; the call remains the caller's.
bool yk_serve_arrive(struct yk_serve *, struct yk_serve_call *);
// Replies that the queue is full.
void yk_serve_refuse(struct yk_exchange *);

#endif
