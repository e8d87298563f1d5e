// SPDX-License-Identifier: Apache-2.0
// Reads the rotary embedding of a config.json: `rope_theta` and `rope_scaling`, or
// `rope_parameters`, which newer versions of transformers write.  What is absent is what
// transformers assumes.
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "models/hf_reader.h"

// Reads the members of rope_scaling or rope_parameters.
struct rope_reader {
	struct yk_hf_reader in; // its members
	const struct yk_hf_reader *config;
	bool phi3;
	double context;
};

// Tokens of the first training's context.  The key outside of the object has precedence; Phi-3 has
// always one.
static double original_of(struct rope_reader *s)
{
	static const char key[] = "original_max_position_embeddings";
	struct yk_hf_reader config = *s->config;
	double v = s->phi3 ? 4096 : yk_hf_real(&s->in, key, s->context);
	v = yk_hf_real(&config, key, v);
	if (!s->in.error)
		s->in.error = config.error;
	return v;
}

static double yarn_magnitude(double factor, double scale)
{
	return factor > 1 ? 0.1 * scale * log(factor) + 1 : 1;
}

static void read_yarn(struct rope_reader *s, struct yk_rope *to)
{
	const double scale = yk_hf_real(&s->in, "mscale", 0),
		     all = yk_hf_real(&s->in, "mscale_all_dim", 0);
	const double fast = yk_hf_real(&s->in, "beta_fast", 0),
		     slow = yk_hf_real(&s->in, "beta_slow", 0);
	to->scaling = YK_ROPE_YARN;
	to->original = original_of(s);
	if (!yk_hf_has(&s->in, "factor"))
		to->factor = s->context / to->original;
	to->high = fast != 0 ? fast : 32;
	to->low = slow != 0 ? slow : 1;
	to->magnitude = scale != 0 && all != 0 ? yarn_magnitude(to->factor, scale) /
							 yarn_magnitude(to->factor, all) :
						 yarn_magnitude(to->factor, 1);
	to->magnitude = yk_hf_real(&s->in, "attention_factor", to->magnitude);
	if (!yk_hf_flag(&s->in, "truncate", true))
		s->in.error =
			yk_fail(YOKE_EFORMAT, "%s: yarn with 'truncate' false is not supported",
				s->in.path);
}

// Long and short factors; which apply depends on the context.
static void read_divisors(struct rope_reader *s, struct yk_rope *to, int64_t head_dim)
{
	const double original = original_of(s),
		     factor = yk_hf_real(&s->in, "factor", s->context / original);
	const bool extended =
		(s->config->context ? (double)s->config->context : s->context) > original;
	const char *key = extended ? "long_factor" : "short_factor";
	const json_t *list = json_object_get(s->in.o, key);
	const int64_t n = head_dim / 2;
	if (s->in.error)
		return;
	if (!json_is_array(list) || (int64_t)json_array_size(list) != n || n > YK_ROPE_COLUMNS) {
		s->in.error =
			yk_fail(YOKE_EFORMAT, "%s: '%s' must be a list of %" PRId64 " numbers",
				s->in.path, key, n);
		return;
	}
	to->scaling = YK_ROPE_DIVIDED;
	to->original = original;
	for (int64_t i = 0; i < n; i++)
		to->divisor[i] = (float)json_number_value(json_array_get(list, (size_t)i));
	to->magnitude = yk_hf_real(&s->in, "attention_factor",
				   factor > 1 ? sqrt(1 + log(factor) / log(original)) : 1);
}

static void read_scaling(struct rope_reader *s, const char *type, int64_t head_dim,
			 struct yk_rope *to)
{
	to->factor = yk_hf_real(&s->in, "factor", 0);
	if (!strcmp(type, "linear")) {
		to->scaling = YK_ROPE_LINEAR;
	} else if (!strcmp(type, "llama3")) {
		to->scaling = YK_ROPE_LLAMA3;
		to->low = yk_hf_real(&s->in, "low_freq_factor", 1);
		to->high = yk_hf_real(&s->in, "high_freq_factor", 4);
		to->original = original_of(s);
	} else if (!strcmp(type, "longrope") || !strcmp(type, "su") ||
		   (s->phi3 && !strcmp(type, "yarn"))) {
		read_divisors(s, to, head_dim);
		return;
	} else if (!strcmp(type, "yarn")) {
		read_yarn(s, to);
	} else if (strcmp(type, "default")) {
		s->in.error = yk_fail(YOKE_EFORMAT,
				      "%s: unknown RoPE type '%.40s'; known are default, linear, "
				      "llama3, yarn, longrope",
				      s->in.path, type);
		return;
	}
	if (!s->in.error && to->scaling != YK_ROPE_PLAIN && !(to->factor > 0))
		s->in.error = yk_fail(YOKE_EFORMAT, "%s: RoPE of type %s lacks a positive 'factor'",
				      s->in.path, type);
}

// o: the members of rope_scaling or rope_parameters; NULL: there are none.
static void read_rope(struct yk_hf_reader *r, const struct yk_family *f, const json_t *o,
		      const struct yk_model_shape *shape, struct yk_rope *to)
{
	struct rope_reader s = { .in = { .o = o, .path = r->path, .error = r->error },
				 .config = r,
				 .phi3 = f->names == YK_NAMES_PHI3,
				 .context = (double)shape->context };
	if (!o || s.in.error)
		return;
	const char *type = yk_hf_word(&s.in, "rope_type", NULL);
	type = type ? type : yk_hf_word(&s.in, "type", "default");
	to->base = yk_hf_real(&s.in, "rope_theta", to->base);
	if (yk_hf_real(&s.in, "partial_rotary_factor", 1) != 1)
		s.in.error = yk_fail(YOKE_EFORMAT,
				     "%s: 'partial_rotary_factor' is not 1, which is not supported",
				     r->path);
	if (!s.in.error)
		read_scaling(&s, type, shape->decoder.head_dim, to);
	r->error = s.in.error;
}

// A member that is an object with members; NULL: absent, null or empty.
static const json_t *object(struct yk_hf_reader *r, const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);
	if (!v || json_is_null(v) || r->error)
		return NULL;
	if (!json_is_object(v))
		r->error = yk_fail(YOKE_EFORMAT, "%s: '%s' is not an object", r->path, key);
	return json_object_size(v) ? v : NULL;
}

// Gemma 3: rope_scaling is that of layers without a window, whose frequencies differ.
static void read_two(struct yk_hf_reader *r, const struct yk_family *f, struct yk_model_shape *s)
{
	const json_t *parameters = object(r, r->o, "rope_parameters"),
		     *scaling = object(r, r->o, "rope_scaling");
	const json_t *full = object(r, parameters, "full_attention"),
		     *local = object(r, parameters, "sliding_attention");
	json_t *merged = json_object();
	if (parameters && !r->error && !json_object_get(parameters, "full_attention") &&
	    !json_object_get(parameters, "sliding_attention"))
		r->error = yk_fail(YOKE_EFORMAT,
				   "%s: 'rope_parameters' has neither 'full_attention' nor "
				   "'sliding_attention'",
				   r->path);
	if (!merged || (full && json_object_update(merged, (json_t *)full)) ||
	    (scaling && json_object_update(merged, (json_t *)scaling)))
		r->error = yk_fail(YOKE_ENOMEM, "%s: no memory", r->path);
	s->decoder.rope_local.base = yk_hf_real(r, "rope_local_base_freq", 1e4);
	read_rope(r, f, merged, s, &s->decoder.rope);
	read_rope(r, f, local, s, &s->decoder.rope_local);
	json_decref(merged);
	if (!s->decoder.window)
		s->decoder.rope_local = (struct yk_rope){ .base = s->decoder.rope_local.base };
}

void yk_hf_read_rope(struct yk_hf_reader *r, const struct yk_family *f, double base,
		     struct yk_model_shape *s)
{
	struct yk_decoder *d = &s->decoder;
	if (yk_hf_real(r, "partial_rotary_factor", 1) != 1)
		r->error = yk_fail(YOKE_EFORMAT,
				   "%s: 'partial_rotary_factor' is not 1, which is not supported",
				   r->path);
	d->rope.base = d->rope_local.base = yk_hf_real(r, "rope_theta", base);
	if (f->names == YK_NAMES_GEMMA && f->is.qk_norm) {
		read_two(r, f, s);
		return;
	}
	const json_t *scaling = object(r, r->o, "rope_scaling"),
		     *parameters = object(r, r->o, "rope_parameters");
	read_rope(r, f, scaling ? scaling : parameters, s, &d->rope);
	if (d->window)
		d->rope_local = d->rope;
}
