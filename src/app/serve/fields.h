// SPDX-License-Identifier: Apache-2.0
// The bodies of requests: the members of a request with their types and ranges.
#ifndef YK_SERVE_FIELDS_H
#define YK_SERVE_FIELDS_H

#include "schema/schema.h"
#include "serve/state.h"
#include "text/stops.h"

enum { YK_ASK_STOPS = 16, YK_ASK_PROMPTS = 64, YK_ASK_BIASES = 1024 };

struct yk_token_list {
	int32_t *id;
	size_t n;
};

struct yk_completion_request {
	bool chat, stream, usage;
	const struct yk_serve_model *model;
	int choices;
	int64_t tokens; // max new ones; 0: until the context is full
	bool echo;      // the text begins with the prompt
	bool none;      // no token is made
	double temperature, top_p, min_p, repetition, frequency, presence;
	int64_t top_k;
	uint64_t seed;
	bool past_end;
	int logprobs; // as in struct yoke_engine_request
	int64_t biases;
	int32_t *bias_id;
	float *bias;
	struct yk_stops stops;
	struct yk_schema *schema; // NULL: any text
	int prompts;
	struct yk_token_list *prompt;
};

// ---- members ----

// The object in the body; NULL: the reply is an error.
json_t *yk_fields_of(struct yk_exchange *);
// A member that is not null; NULL: it is missing.
json_t *yk_field(const json_t *, const char *name);
// Members with a type and a range.  If one is missing, *to stays.  false: the reply is an error.
bool yk_field_int(struct yk_exchange *, const json_t *, const char *name, int64_t min, int64_t max,
		  int64_t *to);
bool yk_field_real(struct yk_exchange *, const json_t *, const char *name, double min, double max,
		   double *to);
bool yk_field_bool(struct yk_exchange *, const json_t *, const char *name, bool *to);
bool yk_field_text(struct yk_exchange *, const json_t *, const char *name, const char **to);
// The model that "model" names, by default the first one that embeds or does not.  NULL: the reply
// is an error.
const struct yk_serve_model *yk_field_model(struct yk_serve *, struct yk_exchange *, const json_t *,
					    bool embeds);
// An array of token ids of a vocabulary; `param` is its name.  false: the reply is an error.
bool yk_field_ids(struct yk_exchange *, const json_t *, const char *param, int64_t vocabulary,
		  struct yk_token_list *);
// Is the prompt's length allowed?  It must leave space for a token.  false: the reply is an error.
bool yk_check_length(struct yk_exchange *, const char *param, size_t n, int64_t context,
		     bool generates);

#endif
