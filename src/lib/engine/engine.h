// SPDX-License-Identifier: Apache-2.0
// The engine's state, divided by who may touch it: `shared` by any thread that holds its lock, the
// rest by the thread that steps.
#ifndef YK_ENGINE_H
#define YK_ENGINE_H

#include <pthread.h>
#include <stdbool.h>

#include "engine/pages.h"
#include "models/pretrained.h"
#include "models/sampling.h"
#include "nn/model.h"
#include "yoke-engine.h"

struct yk_request;

// A choice of a request: prompt, then generated tokens.
struct yk_sequence {
	struct yk_request *request;
	int choice;
	bool ended;
	int32_t *ids;           // room for prompt and max tokens
	int64_t n, generated;   // tokens, and those after the prompt
	int64_t end;            // n at which it has its max tokens
	int64_t computed;       // first tokens whose keys and values are in pages
	// tokens found in pages when it first got a slot; -1: it had none yet
	int64_t cached;
	int32_t *page;          // its pages; room for `end` tokens
	int64_t pages;
	int64_t full;           // first pages that are in `chain`
	struct yk_page_chain chain;
	int slot;               // row of the table; -1: waits
	int failures;           // of evaluations with it, since its last token
	int64_t scored;         // first tokens of the prompt whose probability was reported
	int64_t scores;         // of them that will be; 0: the request does not want any
	struct yk_sequence *next; // among those that wait, by arrival
	// of the step
	int64_t news;           // tokens computed in it, from `computed` on
	int logits;             // its first row of the logits; -1: none
	int rows;               // of its last tokens
};

struct yk_request {
	int64_t id;
	struct yoke_engine_request is; // arrays are owned
	int adapter;                   // index, -1: none
	int live;                      // choices that have not ended
	bool cancelled, started;       // under the lock; started: a choice has had a slot
	// submitted ones that the stepping thread has not taken; under the lock
	struct yk_request *next;
	struct yk_request *newer, *older; // all that have not ended; under the lock
	struct yk_sequence choice[];
};

struct yk_queued_event {
	struct yoke_engine_event is;
	int32_t alternative[YOKE_ENGINE_LOGPROBS];
	float logprob[YOKE_ENGINE_LOGPROBS];
	char message[160];
	struct yk_queued_event *next;
};

struct yk_engine_adapters;

struct yoke_engine {
	struct yk_network *net;
	yoke_model *model;
	yoke_context *context;
	struct yoke_engine_options options; // with defaults replaced by values
	int64_t max_tokens;                 // of a sequence
	const int32_t *eos;                 // ids that end a text; the model's tokenizer owns them
	int eos_count;
	bool was_by_row;

	struct yk_parameters cache;         // keys and values of each layer
	struct yk_pages *pages;
	struct yk_sequence **slot;          // running sequences by row of the table
	struct yk_sequence **running;       // the same by arrival
	int count;                          // of running
	struct yk_sequence *waiting;        // by arrival
	struct yk_engine_adapters *adapters;
	struct yk_sampler *sampler;
	// After failures:
	int64_t limit;                      // max tokens of a step, options.step or fewer
	int64_t calm;                       // good steps since the last failure
	bool lost;                          // the cache has to be created again
	int lost_steps;                     // attempts in a row
	// Host copy of a step's operands: ids, rows, positions, slots, adapters of `step` tokens;
	// then the table.
	int32_t *operand;
	float *logits;                      // [rows, vocabulary]
	int64_t rows;                       // slots rounded up, or more once a prompt is scored
	struct yk_queued_event *event, **last_event; // of requests without a callback
	struct yk_queued_event *current;             // the one that yoke_engine_next returned last

	struct yk_engine_shared {
		pthread_mutex_t lock;
		pthread_cond_t changed;
		int64_t ids;                 // last number given
		int64_t live;                // choices that were submitted and have not ended
		struct yk_request *submitted, **last;
		struct yk_request *newest;
		// cancels: a request has been cancelled since the last step
		bool woken, cancels;
		// pages and running as of the last step; queued: see yoke_engine_stats
		struct yoke_engine_stats stats;
	} shared;
};

// ---- step.c ----

// The next step; results as yoke_engine_step.  The model's context is current.
int yk_engine_step(struct yoke_engine *);

// ---- compute.c ----

enum { YK_ENGINE_OPERANDS = 6 }; // integers of a token

// Computes the packed tokens of all running sequences, and their rows of e->logits.
int yk_engine_compute(struct yoke_engine *, int64_t tokens, int rows);
// Tokens of a step, or rows of logits: rounded up.
int64_t yk_engine_rounded(int64_t n);

// ---- events.c ----

// Passes an event of a sequence on; the other members of `is` are set.
void yk_engine_emit(struct yoke_engine *, struct yk_sequence *, struct yk_queued_event *);
// Ends a sequence, which has no pages or slot any more; message: NULL, or of an error.
void yk_engine_end(struct yoke_engine *, struct yk_sequence *, int reason, int32_t token, int error,
		   const char *message);
void yk_request_free(struct yk_request *); // NULL is fine

// ---- sample.c ----

struct yk_sampler *yk_sampler_new(int64_t vocabulary); // NULL: ENOMEM
void yk_sampler_free(struct yk_sampler *);
// Chooses the next token of a sequence from its logits, which it changes: fills token, logprob and
// alternatives of `to`. 1: the mask ends the text; negative: an error.
int yk_sampler_choose(struct yk_sampler *, const struct yk_sequence *, float *logits,
		      struct yk_queued_event *to);
// Fills token, logprob and alternatives of `to` for a token that is given.
void yk_sampler_score(struct yk_sampler *, const struct yk_sequence *, const float *logits,
		      int32_t token, struct yk_queued_event *to);

// ---- adapters.c ----

// Opens one more adapter; see yoke_engine_adapter.
int yk_engine_adapters_add(struct yoke_engine *, const char *name, const char *folder);
// The index of an adapter, -1: none.  Under the lock.
int yk_engine_adapters_find(const struct yoke_engine *, const char *name);
// Lets the network's layers apply to each of t tokens the adapter with that index; -1: none.
int yk_engine_adapters_use(struct yoke_engine *, int64_t t, const int32_t *which);
// Removes them from the layers.
void yk_engine_adapters_drop(struct yoke_engine *);
void yk_engine_adapters_free(struct yoke_engine *);

#endif
