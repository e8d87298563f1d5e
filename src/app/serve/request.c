// SPDX-License-Identifier: Apache-2.0
// Checks the parameters of a request for completions.  Unknown members are ignored; those that
// OpenAI's API has and this server has not are errors, unless they have no effect.
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/system.h"
#include "serve/request.h"
#include "serve/prompt.h"

// Members that are known but not offered, unless they have a value without effect.
static bool is_without_effect(const json_t *m)
{
	return json_is_false(m) ||
	       (json_is_string(m) &&
		(!*json_string_value(m) || !strcmp(json_string_value(m), "none") ||
		 !strcmp(json_string_value(m), "auto"))) ||
	       (json_is_array(m) && !json_array_size(m));
}

static bool check_absent(struct yk_exchange *x, const json_t *o, bool chat)
{
	static const char *const chats[] = { "tools",         "functions", "tool_choice",
					     "function_call", "audio",     "web_search_options" };
	static const char *const plain[] = { "suffix" };
	const char *const *names = chat ? chats : plain;
	const size_t n = chat ? sizeof chats / sizeof *chats : sizeof plain / sizeof *plain;
	for (size_t i = 0; i < n; i++) {
		const json_t *m = yk_field(o, names[i]);
		if (!m || is_without_effect(m))
			continue;
		yk_exchange_error(x, 400, names[i], "unsupported_parameter",
				  "this server does not offer '%s'", names[i]);
		return false;
	}
	return true;
}

static bool read_sampling(struct yk_exchange *x, const json_t *o, struct yk_completion_request *a)
{
	int64_t top_k = 0, seed = 0, choices = 1;
	if (!yk_field_real(x, o, "temperature", 0, 2, &a->temperature) ||
	    !yk_field_real(x, o, "top_p", 0, 1, &a->top_p) ||
	    !yk_field_real(x, o, "min_p", 0, 1, &a->min_p) ||
	    !yk_field_real(x, o, "repetition_penalty", 0.01, 100, &a->repetition) ||
	    !yk_field_real(x, o, "frequency_penalty", -2, 2, &a->frequency) ||
	    !yk_field_real(x, o, "presence_penalty", -2, 2, &a->presence) ||
	    !yk_field_int(x, o, "top_k", -1, INT32_MAX, &top_k) ||
	    !yk_field_int(x, o, "seed", INT64_MIN, INT64_MAX, &seed) ||
	    !yk_field_int(x, o, "n", 1, YOKE_ENGINE_CHOICES, &choices) ||
	    !yk_field_bool(x, o, "ignore_eos", &a->past_end))
		return false;
	a->choices = (int)choices;
	a->top_k = top_k > 0 ? top_k : 0;
	if (yk_field(o, "seed"))
		a->seed = (uint64_t)seed;
	else if (yk_random(&a->seed, sizeof a->seed) < 0) {
		yk_exchange_failed(x, NULL);
		return false;
	}
	// the smallest set of tokens with probability 0 or more has one
	if (yk_field(o, "top_p") && a->top_p == 0)
		a->top_k = 1;
	return true;
}

static bool read_tokens(struct yk_exchange *x, const json_t *o, struct yk_completion_request *a)
{
	if (!a->chat) {
		a->tokens = 16; // OpenAI's default
		if (!yk_field_bool(x, o, "echo", &a->echo) ||
		    !yk_field_int(x, o, "max_tokens", a->echo ? 0 : 1, INT64_MAX, &a->tokens))
			return false;
		a->none = a->tokens == 0;
		a->tokens += a->none;
		return true;
	}
	return yk_field_int(x, o, "max_tokens", 1, INT64_MAX, &a->tokens) &&
	       yk_field_int(x, o, "max_completion_tokens", 1, INT64_MAX, &a->tokens);
}

static bool read_logprobs(struct yk_exchange *x, const json_t *o, struct yk_completion_request *a)
{
	int64_t n = -1;
	bool wanted = false;
	if (a->chat) {
		if (!yk_field_bool(x, o, "logprobs", &wanted) ||
		    !yk_field_int(x, o, "top_logprobs", 0, YOKE_ENGINE_LOGPROBS, &n))
			return false;
		if (n >= 0 && !wanted) {
			yk_exchange_error(x, 400, "top_logprobs", NULL,
					  "'top_logprobs' needs 'logprobs': true");
			return false;
		}
	} else {
		if (!yk_field_int(x, o, "logprobs", 0, YOKE_ENGINE_LOGPROBS, &n))
			return false;
		wanted = n >= 0;
	}
	if (wanted)
		a->logprobs = n > 0 ? (int)n : -1;
	return true;
}

static bool add_stop(struct yk_exchange *x, const json_t *m, struct yk_completion_request *a)
{
	if (!json_is_string(m) || !json_string_length(m)) {
		yk_exchange_error(x, 400, "stop", NULL,
				  "'stop' must be a string or an array of up to %d strings, none "
				  "of them empty",
				  YK_ASK_STOPS);
		return false;
	}
	if (yk_stops_add(&a->stops, json_string_value(m), json_string_length(m)) == 0)
		return true;
	yk_exchange_failed(x, "stop");
	return false;
}

static bool read_stops(struct yk_exchange *x, const json_t *o, struct yk_completion_request *a)
{
	const json_t *m = yk_field(o, "stop");
	if (!m)
		return true;
	if (!json_is_array(m))
		return add_stop(x, m, a);
	if (json_array_size(m) > YK_ASK_STOPS) {
		yk_exchange_error(x, 400, "stop", NULL, "'stop' has %zu strings; the maximum is %d",
				  json_array_size(m), YK_ASK_STOPS);
		return false;
	}
	for (size_t i = 0; i < json_array_size(m); i++)
		if (!add_stop(x, json_array_get(m, i), a))
			return false;
	return true;
}

static bool read_bias(struct yk_serve *s, struct yk_exchange *x, json_t *o,
		      struct yk_completion_request *a)
{
	json_t *m = yk_field(o, "logit_bias"), *value;
	const char *key;
	const size_t n = json_object_size(m);
	if (!m)
		return true;
	if (!json_is_object(m) || n > YK_ASK_BIASES) {
		yk_exchange_error(x, 400, "logit_bias", NULL,
				  "'logit_bias' must be an object of at most %d tokens",
				  YK_ASK_BIASES);
		return false;
	}
	a->bias_id = calloc(n + 1, sizeof *a->bias_id);
	a->bias = calloc(n + 1, sizeof *a->bias);
	if (!a->bias_id || !a->bias) {
		yk_exchange_error(x, 500, NULL, NULL, "no memory for 'logit_bias'");
		return false;
	}
	json_object_foreach (m, key, value) {
		char *end;
		errno = 0;
		const long long id = strtoll(key, &end, 10);
		const double v = json_number_value(value);
		if (errno || end == key || *end || id < 0 || id >= s->lm.vocabulary ||
		    !json_is_number(value) || !(fabs(v) <= 100)) {
			yk_exchange_error(x, 400, "logit_bias", NULL,
					  "'logit_bias': '%.40s' must be a token of the model with "
					  "a number from -100 to 100",
					  key);
			return false;
		}
		a->bias_id[a->biases] = (int32_t)id;
		a->bias[a->biases++] = (float)v;
	}
	return true;
}

static bool read_stream(struct yk_exchange *x, const json_t *o, struct yk_completion_request *a)
{
	const json_t *m = yk_field(o, "stream_options");
	if (!yk_field_bool(x, o, "stream", &a->stream))
		return false;
	if (!m)
		return true;
	if (!json_is_object(m) || !a->stream) {
		yk_exchange_error(x, 400, "stream_options", NULL,
				  "'stream_options' must be an object, and needs 'stream': true");
		return false;
	}
	return yk_field_bool(x, m, "include_usage", &a->usage);
}

// best_of is the number of texts from which the best n are chosen.
static bool check_best(struct yk_exchange *x, const json_t *o,
		       const struct yk_completion_request *a)
{
	int64_t best = a->choices;
	if (!yk_field_int(x, o, "best_of", 1, 128, &best))
		return false;
	if (best == a->choices)
		return true;
	yk_exchange_error(x, 400, "best_of", "unsupported_parameter",
			  "this server does not offer 'best_of' other than 'n'");
	return false;
}

static bool read_request(struct yk_serve *s, struct yk_exchange *x, json_t *o,
			 struct yk_completion_request *a)
{
	a->model = yk_field_model(s, x, o, false);
	return a->model && check_absent(x, o, a->chat) && read_sampling(x, o, a) &&
	       read_tokens(x, o, a) && read_logprobs(x, o, a) && read_stops(x, o, a) &&
	       read_bias(s, x, o, a) && read_stream(x, o, a) && (a->chat || check_best(x, o, a)) &&
	       yk_prompt_format(s, x, o, a) &&
	       (a->chat ? yk_prompt_messages(s, x, o, a) : yk_prompt_texts(s, x, o, a));
}

bool yk_completion_request_read(struct yk_serve *s, struct yk_exchange *x, bool chat,
				struct yk_completion_request *a)
{
	*a = (struct yk_completion_request){
		.chat = chat, .choices = 1, .temperature = 1, .top_p = 1, .repetition = 1
	};
	json_t *o = yk_fields_of(x);
	const bool good = o && read_request(s, x, o, a);
	json_decref(o);
	if (!good)
		yk_completion_request_fini(a);
	return good;
}

void yk_completion_request_fini(struct yk_completion_request *a)
{
	for (int i = 0; i < a->prompts; i++)
		free(a->prompt[i].id);
	free(a->prompt);
	free(a->bias_id);
	free(a->bias);
	yk_stops_fini(&a->stops);
	yk_schema_free(a->schema);
	*a = (struct yk_completion_request){ 0 };
}
