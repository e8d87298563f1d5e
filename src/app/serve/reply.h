// SPDX-License-Identifier: Apache-2.0
// JSON of replies to requests for completions, whole or in chunks.
#ifndef YK_SERVE_REPLY_H
#define YK_SERVE_REPLY_H

#include "serve/request.h"
#include "serve/choice.h"

struct yk_usage {
	int64_t prompt, cached, generated; // tokens
};

struct yk_reply {
	const struct yk_completion_request *request;
	char id[48];
	int64_t created; // seconds since 1970
	int choices;
	struct yk_choice *choice;
	struct yk_usage usage;
};

// The entry of a token with log-probabilities: as in a chat's logprobs.content.
// of a prompt's first token, which has no probability
json_t *yk_reply_first_entry(struct yk_serve *, int32_t id);
json_t *yk_reply_entry(struct yk_serve *, const struct yoke_engine_event *);
// The whole reply; NULL: no memory.  Takes the texts of the choices.
json_t *yk_reply_whole(const struct yk_reply *);
enum yk_reply_delta { YK_CHUNK_FIRST, YK_CHUNK_TEXT, YK_CHUNK_LAST, YK_CHUNK_USAGE };
// A chunk of a stream; NULL: no memory.  TEXT takes what is ready.
json_t *yk_reply_chunk(const struct yk_reply *, int choice, enum yk_reply_delta);

#endif
