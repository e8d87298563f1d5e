// SPDX-License-Identifier: Apache-2.0
// Reads members of a config.json, with defaults.
#include "config.h"

#include "models/hf_reader.h"

#include "base/error.h"
#include "base/json.h"

bool yk_hf_has(const struct yk_hf_reader *r, const char *key)
{
	const json_t *v = json_object_get(r->o, key);
	return !r->error && v && !json_is_null(v);
}

int64_t yk_hf_integer(struct yk_hf_reader *r, const char *key, int64_t min, int64_t max,
		      int64_t otherwise)
{
	int64_t v = otherwise;
	if (yk_hf_has(r, key))
		r->error = yk_json_int(r->o, r->path, key, min, max, &v);
	return v;
}

double yk_hf_real(struct yk_hf_reader *r, const char *key, double otherwise)
{
	double v = otherwise;
	if (yk_hf_has(r, key))
		r->error = yk_json_real(r->o, r->path, key, &v);
	return v;
}

bool yk_hf_flag(struct yk_hf_reader *r, const char *key, bool otherwise)
{
	const json_t *v = yk_hf_has(r, key) ? json_object_get(r->o, key) : NULL;
	if (v && !json_is_boolean(v))
		r->error =
			yk_fail(YOKE_EFORMAT, "%s: '%s' is neither true nor false", r->path, key);
	return v ? json_is_true(v) : otherwise;
}

const char *yk_hf_word(struct yk_hf_reader *r, const char *key, const char *otherwise)
{
	const char *v = otherwise;
	if (yk_hf_has(r, key))
		r->error = yk_json_str(r->o, r->path, key, &v);
	return v;
}

double yk_hf_limit(struct yk_hf_reader *r, const char *key, double otherwise)
{
	return json_is_null(json_object_get(r->o, key)) ? 0 : yk_hf_real(r, key, otherwise);
}
