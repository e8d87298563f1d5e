// SPDX-License-Identifier: Apache-2.0
// Members of requests: types, ranges and the errors that clients get for others.
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "serve/fields.h"

json_t *yk_fields_of(struct yk_exchange *x)
{
	size_t bytes;
	const char *text = yk_exchange_body(x, &bytes);
	json_t *o = yk_json_parse(text, bytes, "the request");
	if (!o) {
		yk_exchange_failed(x, NULL);
		return NULL;
	}
	if (json_is_object(o))
		return o;
	yk_exchange_error(x, 400, NULL, NULL, "the request must be a JSON object");
	json_decref(o);
	return NULL;
}

json_t *yk_field(const json_t *o, const char *name)
{
	json_t *m = json_object_get(o, name);
	return json_is_null(m) ? NULL : m;
}

bool yk_field_int(struct yk_exchange *x, const json_t *o, const char *name, int64_t min,
		  int64_t max, int64_t *to)
{
	const json_t *m = yk_field(o, name);
	if (!m)
		return true;
	if (!json_is_integer(m) || json_integer_value(m) < min || json_integer_value(m) > max) {
		yk_exchange_error(x, 400, name, NULL,
				  "'%s' must be an integer from %" PRId64 " to %" PRId64, name, min,
				  max);
		return false;
	}
	*to = json_integer_value(m);
	return true;
}

bool yk_field_real(struct yk_exchange *x, const json_t *o, const char *name, double min, double max,
		   double *to)
{
	const json_t *m = yk_field(o, name);
	if (!m)
		return true;
	const double v = json_number_value(m);
	if (!json_is_number(m) || !(v >= min && v <= max)) {
		yk_exchange_error(x, 400, name, NULL, "'%s' must be a number from %g to %g", name,
				  min, max);
		return false;
	}
	*to = v;
	return true;
}

bool yk_field_bool(struct yk_exchange *x, const json_t *o, const char *name, bool *to)
{
	const json_t *m = yk_field(o, name);
	if (!m)
		return true;
	if (!json_is_boolean(m)) {
		yk_exchange_error(x, 400, name, NULL, "'%s' must be true or false", name);
		return false;
	}
	*to = json_is_true(m);
	return true;
}

bool yk_field_text(struct yk_exchange *x, const json_t *o, const char *name, const char **to)
{
	const json_t *m = yk_field(o, name);
	if (!m)
		return true;
	if (!json_is_string(m)) {
		yk_exchange_error(x, 400, name, NULL, "'%s' must be a string", name);
		return false;
	}
	*to = json_string_value(m);
	return true;
}

const struct yk_serve_model *yk_field_model(struct yk_serve *s, struct yk_exchange *x,
					    const json_t *o, bool embeds)
{
	const char *name = NULL;
	if (!yk_field_text(x, o, "model", &name))
		return NULL;
	for (int i = 0; i < s->models; i++)
		if (s->model[i].embeds == embeds && (!name || !strcmp(name, s->model[i].name)))
			return &s->model[i];
	if (name)
		yk_exchange_error(x, 404, "model", "model_not_found",
				  "the model '%.200s' does not exist%s", name,
				  embeds ? ", or has no embeddings" : ", or generates no text");
	else
		yk_exchange_error(x, 404, "model", "model_not_found",
				  "this server has no model for %s",
				  embeds ? "embeddings; start it with embed=MODEL" : "texts");
	return NULL;
}

bool yk_field_ids(struct yk_exchange *x, const json_t *array, const char *param, int64_t vocabulary,
		  struct yk_token_list *to)
{
	const size_t n = json_array_size(array);
	int32_t *ids = malloc((n + 1) * sizeof *ids);
	for (size_t i = 0; ids && i < n; i++) {
		const json_t *m = json_array_get(array, i);
		const json_int_t id = json_integer_value(m);
		if (!json_is_integer(m) || id < 0 || id >= vocabulary) {
			yk_exchange_error(x, 400, param, NULL,
					  "'%s': element %zu must be a token from 0 to %" PRId64,
					  param, i, vocabulary - 1);
			free(ids);
			return false;
		}
		ids[i] = (int32_t)id;
	}
	if (!ids) {
		yk_exchange_error(x, 500, NULL, NULL, "no memory for %zu tokens", n);
		return false;
	}
	*to = (struct yk_token_list){ ids, n };
	return true;
}

bool yk_check_length(struct yk_exchange *x, const char *param, size_t n, int64_t context,
		     bool generates)
{
	if (n == 0)
		yk_exchange_error(x, 400, param, NULL, "'%s' has no tokens", param);
	else if ((int64_t)n > context - generates)
		yk_exchange_error(x, 400, param, "context_length_exceeded",
				  "'%s' has %zu tokens, and the maximum context length of the "
				  "model is %" PRId64 " tokens%s",
				  param, n, context, generates ? ", answer included" : "");
	else
		return true;
	return false;
}
