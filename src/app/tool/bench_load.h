// SPDX-License-Identifier: Apache-2.0
// Loads a server that has OpenAI's API with requests of several clients, and measures the replies.
#ifndef YK_BENCH_LOAD_H
#define YK_BENCH_LOAD_H

#include <stdbool.h>
#include <stdint.h>

enum yk_load_endpoint { YK_LOAD_COMPLETIONS, YK_LOAD_CHAT, YK_LOAD_EMBEDDINGS, YK_LOAD_ENDPOINTS };
extern const char *const yk_load_endpoints[YK_LOAD_ENDPOINTS];

enum { YK_LOAD_CLIENTS = 256 };

struct yk_load_range {
	int64_t min, max; // a number is drawn for each request
};

struct yk_load {
	const char *url, *key; // key: NULL: none
	const char *model;     // NULL: the server's first one, or for embeddings its last one
	enum yk_load_endpoint endpoint;
	int clients;
	int64_t requests, warm;              // warm: requests before those that are measured
	struct yk_load_range prompt, tokens; // tokens of a prompt, and generated ones
	int64_t shared; // first tokens of a prompt that all requests have in common
	int64_t inputs; // texts of a request for embeddings
	bool stream;
	uint64_t seed;
	double timeout; // seconds without a byte
};

// A request.  Times are in seconds from when it was sent.
struct yk_load_sample {
	double first, all;                 // first: the first text of a stream; 0: none
	int64_t prompt, cached, generated; // tokens, as the server counts them
	char error[160];                   // "": it succeeded
};

struct yk_load_result {
	char model[256];
	bool exact; // prompts have exactly the tokens asked for; else as many words
	double seconds;
	struct yk_load_sample *sample; // of each request
	double *gap;                   // times between texts of a stream
	int64_t gaps;
};

// Runs the load.  A request that fails is counted; an error is one that ends the measurement.  The
// caller frees the arrays.
int yk_load_run(const struct yk_load *, struct yk_load_result *);

#endif
