// SPDX-License-Identifier: Apache-2.0
// Serving a language model: many requests share each pass through the network (continuous
// batching), over a paged cache of keys and values.
//
//	yoke_engine *e = yoke_engine_new(model, NULL);
//	struct yoke_engine_request r = { .size = sizeof r, .prompt = ids, .count = n,
//					 .tokens = 100 };
//	yoke_engine_submit(e, &r);
//	while (yoke_engine_step(e) > 0)
//		for (struct yoke_engine_event v = { .size = sizeof v };
//		     yoke_engine_next(e, &v) > 0;)
//			if (v.kind == YOKE_ENGINE_TOKEN)
//				printf("%d ", v.token);
//	yoke_engine_free(e);
//
// A step computes the next token of each running sequence, and chunks of the prompts of new ones.
// Requests wait in order of arrival until a slot is free.  Prompts that begin with the same tokens
// share pages of 16 tokens, also with sequences that have ended.  When no page is free, the
// youngest sequence is put back and computed again later; its tokens do not change.
//
// With `alike` (the default) the tokens and logits of a sequence have the same bits whatever else
// is in the step, however its prompt was split into chunks, and with or without shared pages.
//
// Threads: submit, cancel, wake and stats may be called from any thread at any time.  new, adapter,
// step, next, wait and free are called by one thread at a time, which uses the model's context;
// callbacks run on it, inside step.  yoke_error() belongs to the calling thread.
#ifndef YOKE_ENGINE_H
#define YOKE_ENGINE_H

#include <yoke-model.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct yoke_engine yoke_engine;

enum {
	YOKE_ENGINE_PAGE = 16,      // tokens of a page
	YOKE_ENGINE_CHOICES = 8,    // max choices of a request
	YOKE_ENGINE_LOGPROBS = 20,  // max alternatives reported with a token
};

struct yoke_engine_options {
	size_t size;   // sizeof, set by the caller
	int slots;     // max running sequences, 1 .. 256; 0: 8
	int queue;     // max requests that wait because no slot is free for them; 0: 64
	int64_t step;  // max tokens of a step, at least slots; 0: 512
	int64_t pages; // of 16 tokens, at least one sequence's context if less than slots contexts;
		       // 0: as many as `slots` sequences of the model's context need, at most 2 GB
	int alike;     // 1 yes, -1 no (faster for few rows); 0: yes
	int reuse;     // -1: no pages are shared between prompts; 0 and 1: they are
};
// Creates an engine for a model, which must remain until yoke_engine_free and is not used otherwise
// between.  options may be NULL.  EINVAL: options out of range; EUNSUPPORTED: an encoder, or with
// alike a device without products whose rows do not depend on the number of rows; ENOMEM: not
// enough memory for the pages.
YOKE_API yoke_engine *yoke_engine_new(yoke_model *, const struct yoke_engine_options *options);
// Cancels all requests, without events, and frees the engine.  NULL is fine.
YOKE_API void yoke_engine_free(yoke_engine *);
// Adds LoRA adapters that requests choose by name, from a folder as for yoke_model_load_adapter.
// EINVAL: the name is empty or used, sequences are running, or the model itself has adapters; other
// errors as yoke_model_load_adapter.  Each adapter makes all steps with adapters slower, in
// proportion to its rank.
YOKE_API int yoke_engine_adapter(yoke_engine *, const char *name, const char *folder);

struct yoke_engine_event;

struct yoke_engine_request {
	size_t size;           // sizeof, set by the caller
	const int32_t *prompt; // all arrays and strings are copied by yoke_engine_submit
	int64_t count;
	int64_t tokens;        // max new tokens of each choice; 0: until the context is full
	int choices;           // 1 .. 8; 0: 1.  Choice i is sampled with seed + i

	// Sampling, in this order.  Members with 0 have no effect.
	int64_t biases;        // number of tokens in bias_id, whose logits get bias[] added
	const int32_t *bias_id;
	const float *bias;
	// For tokens that occur in the text so far, prompt included: a positive logit is divided by
	// `repetition`, a negative one multiplied; `frequency` for each occurrence and `presence`
	// once are subtracted.
	double repetition, frequency, presence;
	double temperature;    // 0: the most likely token, the first among equals
	int64_t top_k;         // the most likely tokens, that many
	double top_p;          // the fewest of these with this total probability
	double min_p;          // those with at least this share of the largest probability
	uint64_t seed;         // a token depends on the seed and its index, not on other requests

	int64_t stops;         // tokens that end the text: `stop`, in addition to those of the
			       // model's tokenizer
	const int32_t *stop;
	int past_end;          // 1: tokens that end a text by the model's tokenizer are like others
	const char *adapter;   // name of an adapter; NULL: none
	int logprobs;          // report the logarithm of each token's probability: -1 without
			       // alternatives, 1 .. 20 with that many of the most likely tokens.
			       // Probabilities are the model's, before everything under "Sampling"

	// Restricts the next token of a choice, before each sampling.  tokens[n] are those
	// generated so far. bits: ceil(vocabulary/32) words, all ones; token t is bit t % 32 of
	// word t / 32.  The function clears the bits of forbidden tokens.  0: go on; > 0: end the
	// choice here (YOKE_ENGINE_STOP); < 0: end the request with that error.  If no token is
	// left, the choice fails with YOKE_EFORMAT.
	int (*mask)(void *user, int choice, int64_t n, const int32_t *tokens, uint32_t *bits);
	// Receives the request's events, in yoke_engine_step.  NULL: they are kept for
	// yoke_engine_next. It may call yoke_engine_submit, cancel, wake and stats.
	void (*event)(void *user, const struct yoke_engine_event *);
	void *user;            // for the callbacks, and in each event
	int score_prompt;      // 1: also report the log-probability of each token of the prompt but
			       // the first, once per request, by choice 0.  Pages of earlier
			       // prompts are not used then
};
// Adds a request, which waits for a slot.  Returns its number, > 0.  EINVAL: an empty prompt, or a
// member out of range; ERANGE: a token that is not in the vocabulary; ENOENT: no such adapter;
// ESHAPE: the prompt fills the context (see yoke_engine_context) or exceeds it; EBUSY: the queue is
// full; ENOMEM.
YOKE_API int64_t yoke_engine_submit(yoke_engine *, const struct yoke_engine_request *);
// Ends a request: its pages are free after the next step has begun, and each of its choices that
// has not ended gets an event with YOKE_ENGINE_CANCELLED.  ENOENT: it has ended, or never was.
YOKE_API int yoke_engine_cancel(yoke_engine *, int64_t request);
// Max tokens of a sequence, prompt included: the model's context, or fewer if the pages have less
// space.
YOKE_API int64_t yoke_engine_context(const yoke_engine *);

enum yoke_engine_kind {
	YOKE_ENGINE_TOKEN = 1,  // a token of a choice
	YOKE_ENGINE_END = 2,    // a choice has ended; its last event
	YOKE_ENGINE_PROMPT = 3, // with score_prompt: the next token of the prompt, before the first
				// TOKEN
};
enum yoke_engine_reason {
	YOKE_ENGINE_STOP = 1,      // at a token that ends the text, or by the mask
	YOKE_ENGINE_LENGTH = 2,    // max tokens, or the context is full
	YOKE_ENGINE_CANCELLED = 3,
	YOKE_ENGINE_ERROR = 4,
};
struct yoke_engine_event {
	size_t size;            // sizeof; for yoke_engine_next set by the caller
	int64_t request;        // its number
	void *user;             // as in the request
	int choice;             // from 0
	int kind;               // enum yoke_engine_kind
	int32_t token;          // END: the token that ended the text, which is not part of it; -1:
				// none
	int reason;             // END: enum yoke_engine_reason
	int error;              // END with YOKE_ENGINE_ERROR: a YOKE_E*
	const char *message;    // END with YOKE_ENGINE_ERROR; valid like alternative
	float logprob;          // TOKEN, if the request has logprobs, and PROMPT: ln of its
				// probability
	int alternatives;       // TOKEN, PROMPT: number of the following, most likely first
	const int32_t *alternative;       // valid in the callback, or until the next
	const float *alternative_logprob; // yoke_engine_next, step or free
	int64_t prompt, cached; // END: tokens of the prompt, and those of them found in pages
	int64_t generated;      // tokens of this choice so far, including this one
};
// Computes one step and passes events to callbacks.  Returns the number of choices that are running
// or waiting, 0: none.  After a failed computation the choices in the step are computed again, if
// memory was lacking in smaller steps, otherwise together and then each alone; one that fails alone
// ends with the error.  The step returns as usual, and the tokens of the others do not change.
// EBUSY: another thread uses the context.
YOKE_API int yoke_engine_step(yoke_engine *);
// Takes the oldest event of requests without a callback.  Returns 1, or 0 if there is none.
YOKE_API int yoke_engine_next(yoke_engine *, struct yoke_engine_event *);
// Waits until a choice is running or waiting, or yoke_engine_wake is called, for at most so many
// milliseconds (-1: without limit).  Returns 1 if a step has work, otherwise 0.
YOKE_API int yoke_engine_wait(yoke_engine *, int64_t milliseconds);
// Ends a yoke_engine_wait, or the next one if none is waiting.
YOKE_API void yoke_engine_wake(yoke_engine *);

struct yoke_engine_stats {
	size_t size;        // sizeof, set by the caller
	int64_t running;    // choices with a slot
	int64_t queued;     // choices without
	int64_t pages;      // all
	int64_t pages_used; // by running choices
	int64_t pages_kept; // used by none, kept for prompts that begin alike; the others are free
	// Since the engine was created:
	int64_t submitted, ended, cancelled, failed; // requests
	int64_t prompt_tokens;    // of requests that got a slot
	int64_t cached_tokens;    // of these, found in pages
	int64_t generated_tokens;
	int64_t computed_tokens;  // by the network
	int64_t steps;
	int64_t preempted;        // choices that were put back because pages ran out
	int64_t last_step_tokens; // of the last step
	int64_t failed_steps;     // computations that failed; their choices are computed again
	int64_t waiting;          // now: requests in the queue: no slot is free for them
};
// Reads the counters.
YOKE_API int yoke_engine_stats(yoke_engine *, struct yoke_engine_stats *);

#ifdef __cplusplus
}
#endif
#endif
