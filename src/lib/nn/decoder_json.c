// SPDX-License-Identifier: Apache-2.0
// Writes the decoder's switches as JSON and reads them back, for manifests of checkpoints.
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "nn/decoder.h"

// A member of struct yk_decoder or of struct yk_rope.
struct member {
	const char *name;
	enum { INT, REAL, BOOL } type;
	size_t at;
};
#define I(name) { #name, INT, offsetof(struct yk_decoder, name) }
#define R(name) { #name, REAL, offsetof(struct yk_decoder, name) }
#define B(name) { #name, BOOL, offsetof(struct yk_decoder, name) }
static const struct member of_decoder[] = {
	I(positions),     I(kv_heads),          I(head_dim),    I(hidden),
	R(norm_eps),      B(layer_norm),        B(post_norm),   B(qk_norm),
	B(qkv_bias),      B(out_bias),          B(mlp_bias),    B(gated),
	B(tied),          B(learned_positions), R(embed_scale), R(attention_scale),
	R(attention_cap), R(logit_cap),         I(window),      I(window_period),
};
#undef I
#undef R
#undef B
#define R(name) { #name, REAL, offsetof(struct yk_rope, name) }
static const struct member of_rope[] = { R(base), R(factor),   R(low),
					 R(high), R(original), R(magnitude) };
#undef R
enum { DECODER = sizeof of_decoder / sizeof *of_decoder, ROPE = sizeof of_rope / sizeof *of_rope };

static const char *const activations[] = {
	[YK_DECODER_SILU] = "silu",
	[YK_DECODER_GELU_TANH] = "gelu_tanh",
	[YK_DECODER_GELU] = "gelu",
};
static const char *const scalings[] = {
	[YK_ROPE_PLAIN] = "none", [YK_ROPE_LINEAR] = "linear",   [YK_ROPE_LLAMA3] = "llama3",
	[YK_ROPE_YARN] = "yarn",  [YK_ROPE_DIVIDED] = "divided",
};
enum {
	ACTIVATIONS = sizeof activations / sizeof *activations,
	SCALINGS = sizeof scalings / sizeof *scalings
};

// ---- writing ----

static int write_members(const struct member *m, int n, const void *from, json_t *to)
{
	int bad = 0;
	for (int i = 0; i < n; i++) {
		const char *at = (const char *)from + m[i].at;
		json_t *v = m[i].type == BOOL ? json_boolean(*(const bool *)at) :
			    m[i].type == REAL ? json_real(*(const double *)at) :
						json_integer(*(const int64_t *)at);
		bad |= json_object_set_new(to, m[i].name, v);
	}
	return bad;
}

static json_t *rope_json(const struct yk_rope *r, int64_t head_dim)
{
	json_t *o = json_pack("{s:s}", "scaling", scalings[r->scaling]);
	int bad = !o || write_members(of_rope, ROPE, r, o);
	json_t *divisors = r->scaling == YK_ROPE_DIVIDED ? json_array() : NULL;
	for (int64_t i = 0; divisors && i < head_dim / 2; i++)
		bad |= json_array_append_new(divisors, json_real((double)r->divisor[i]));
	if (r->scaling == YK_ROPE_DIVIDED)
		bad |= json_object_set_new(o, "divisor", divisors);
	if (!bad)
		return o;
	json_decref(o);
	return NULL;
}

// The layers without the window, if they are listed.
static int write_full(const struct yk_decoder *d, json_t *to)
{
	json_t *list = json_array();
	int bad = !list;
	for (int i = 0; i < YK_DECODER_LAYERS && !bad; i++)
		if (d->full[i / 64] >> i % 64 & 1)
			bad = json_array_append_new(list, json_integer(i));
	if (json_array_size(list))
		bad |= json_object_set(to, "full_layers", list);
	json_decref(list);
	return bad;
}

int yk_decoder_describe(const struct yk_decoder *d, json_t *to)
{
	json_t *o = json_pack("{s:s, s:s}", "family", d->family, "activation",
			      activations[d->activation]);
	int bad = !o || write_members(of_decoder, DECODER, d, o);
	bad = bad || write_full(d, o);
	bad |= json_object_set_new(o, "rope", rope_json(&d->rope, d->head_dim));
	bad |= json_object_set_new(o, "rope_local", rope_json(&d->rope_local, d->head_dim));
	bad |= json_object_set(to, "decoder", o);
	json_decref(o);
	return bad ? yk_fail(YOKE_ENOMEM, "decoder: no memory for its configuration") : 0;
}

// ---- reading ----

static int read_members(const struct member *m, int n, const json_t *o, const char *what, void *to)
{
	int e = 0;
	for (int i = 0; i < n && e == 0; i++) {
		char *at = (char *)to + m[i].at;
		const json_t *v = json_object_get(o, m[i].name);
		if (m[i].type == INT)
			e = yk_json_int(o, what, m[i].name, 0, INT64_C(1) << 31,
					(int64_t *)(void *)at);
		else if (m[i].type == REAL)
			e = yk_json_real(o, what, m[i].name, (double *)(void *)at);
		else if (json_is_boolean(v))
			*(bool *)at = json_is_true(v);
		else
			e = yk_fail(YOKE_EFORMAT, "%s: '%s' is neither true nor false", what,
				    m[i].name);
	}
	return e;
}

// The number of a word in a list; EFORMAT.
static int read_word(const json_t *o, const char *what, const char *key, const char *const *words,
		     int n)
{
	const char *word;
	const int e = yk_json_str(o, what, key, &word);
	for (int i = 0; e == 0 && i < n; i++)
		if (!strcmp(words[i], word))
			return i;
	return e < 0 ? e : yk_fail(YOKE_EFORMAT, "%s: %s '%.40s' is unknown", what, key, word);
}

static int read_rope(const json_t *o, const char *what, int64_t head_dim, struct yk_rope *to)
{
	const int scaling = read_word(o, what, "scaling", scalings, SCALINGS);
	const json_t *divisors = json_object_get(o, "divisor");
	if (scaling < 0)
		return scaling;
	to->scaling = (enum yk_rope_scaling)scaling;
	const int e = read_members(of_rope, ROPE, o, what, to);
	if (e < 0 || scaling != YK_ROPE_DIVIDED)
		return e;
	if (head_dim / 2 > YK_ROPE_COLUMNS || (int64_t)json_array_size(divisors) != head_dim / 2)
		return yk_fail(YOKE_EFORMAT,
			       "%s: 'divisor' has %zu numbers for heads of %lld columns", what,
			       json_array_size(divisors), (long long)head_dim);
	for (int64_t i = 0; i < head_dim / 2; i++)
		to->divisor[i] = (float)json_number_value(json_array_get(divisors, (size_t)i));
	return 0;
}

static int read_full(const json_t *o, const char *what, struct yk_decoder *to)
{
	const json_t *list = json_object_get(o, "full_layers"), *v;
	size_t k;
	memset(to->full, 0, sizeof to->full);
	if (list && !json_is_array(list))
		return yk_fail(YOKE_EFORMAT, "%s: 'full_layers' is not a list", what);
	json_array_foreach(list, k, v) {
		const json_int_t i = json_is_integer(v) ? json_integer_value(v) : -1;
		if (i < 0 || i >= YK_DECODER_LAYERS)
			return yk_fail(YOKE_EFORMAT,
				       "%s: 'full_layers' has something else than layers at %zu",
				       what, k);
		to->full[i / 64] |= UINT64_C(1) << i % 64;
	}
	return 0;
}

int yk_decoder_parse(const json_t *model, const char *what, struct yk_decoder *to)
{
	const json_t *o = json_object_get(model, "decoder");
	const char *family;
	int e = yk_json_str(o, what, "family", &family);
	if (e < 0)
		return e;
	if (strlen(family) >= sizeof to->family)
		return yk_fail(YOKE_EFORMAT, "%s: family '%.40s' is unknown", what, family);
	snprintf(to->family, sizeof to->family, "%s", family);
	const int activation = read_word(o, what, "activation", activations, ACTIVATIONS);
	if (activation < 0)
		return activation;
	to->activation = (enum yk_decoder_activation)activation;
	e = read_members(of_decoder, DECODER, o, what, to);
	if (e == 0)
		e = read_full(o, what, to);
	if (e == 0)
		e = read_rope(json_object_get(o, "rope"), what, to->head_dim, &to->rope);
	return e < 0 ? e :
		       read_rope(json_object_get(o, "rope_local"), what, to->head_dim,
				 &to->rope_local);
}
