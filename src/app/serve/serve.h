// SPDX-License-Identifier: Apache-2.0
// Serves language models by HTTP, with the API of OpenAI: what `yoke serve` and `yoke batch` run.
#ifndef YK_SERVE_H
#define YK_SERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "yoke-model.h"

enum { YK_SERVE_ADAPTERS = 64 };

struct yk_serve_options {
	const char *model;                 // path
	const char *name;                  // of the model in the API; "": the last part of the path
	const char *embed;                 // path of a model for embeddings; "": none
	const char *adapters;              // NAME=FOLDER, comma-separated; "": none
	const char *template;              // file with a chat template; "": the model's own
	struct yoke_model_options open;    // of the model
	int64_t slots, queue, step, pages; // as in yoke_engine_options
	bool alike;
	// HTTP
	const char *host, *key_file;
	int port, connections;
	bool public;           // open=1
	int64_t body;          // bytes
	double timeout, drain; // seconds
};

// Serves until a signal; returns 0 after SIGTERM, SIGINT or SIGHUP when all requests were answered
// or `drain` seconds have passed.
int yk_serve_run(const struct yk_serve_options *);
// Answers the requests of a file in OpenAI's batch format, one per line, in their order.  Lines
// that `out` has already are not answered again.  in, out: paths.
int yk_serve_batch(const struct yk_serve_options *, const char *in, const char *out);

#endif
