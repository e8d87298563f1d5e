// SPDX-License-Identifier: Apache-2.0
// Reads the keys of runs with adapters.
#include "config.h"

#include "train/adapted.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static const struct {
	const char *word, *layer;
} targets[] = {
	{ "q", "attn.q" },      { "k", "attn.k" },  { "v", "attn.v" },      { "o", "attn.out" },
	{ "gate", "mlp.gate" }, { "up", "mlp.up" }, { "down", "mlp.down" },
};
enum { TARGETS = sizeof targets / sizeof *targets, MAX_LAYERS = 1 << 20 };

bool yk_adapted_given(const struct yk_config *c)
{
	return yk_config_int(c, YK_KEY_lora) > 0 || *yk_config_str(c, YK_KEY_adapter);
}

// Parses a comma-separated list; *all: the word all is in it.
static int targets_of(const char *list, bool to[TARGETS], bool *all)
{
	const char *at = list;
	memset(to, 0, TARGETS * sizeof *to);
	*all = false;
	do {
		const size_t n = strcspn(at, ",");
		bool known = n == 3 && !strncmp(at, "all", n);
		*all |= known;
		for (int i = 0; i < TARGETS; i++) {
			const bool here =
				strlen(targets[i].word) == n && !strncmp(at, targets[i].word, n);
			to[i] |= here || *all;
			known |= here;
		}
		if (!known)
			return yk_fail(YOKE_EINVAL,
				       "lora_targets=%s: '%.*s' is none of q, k, v, o, gate, up, "
				       "down, all",
				       list, n < 40 ? (int)n : 40, at);
		at += n;
	} while (*at++ == ',');
	return 0;
}

// Does the command set another value than the default?  A file of `yoke setup` has all keys.
static bool is_changed(const struct yk_config *c, enum yk_config_key key)
{
	return yk_config_asked(c, key) && !yk_config_is(c, key, yk_config_rows[key].def);
}

int yk_adapted_check(const struct yk_config *c)
{
	static const enum yk_config_key keys[] = { YK_KEY_lora_alpha, YK_KEY_lora_targets,
						   YK_KEY_dtype, YK_KEY_quant };
	static const enum yk_config_key own[] = { YK_KEY_lora, YK_KEY_lora_alpha,
						  YK_KEY_lora_targets };
	bool which[TARGETS], all;
	for (size_t i = 0; i < sizeof keys / sizeof *keys && !yk_adapted_given(c); i++)
		if (is_changed(c, keys[i]))
			return yk_fail(YOKE_EINVAL,
				       "%s=%s: needs adapters; give lora=RANK or adapter=FOLDER, "
				       "or remove it",
				       yk_config_rows[keys[i]].name, yk_config_str(c, keys[i]));
	if (!yk_adapted_given(c))
		return 0;
	if (!*yk_config_str(c, YK_KEY_init) && *yk_config_str(c, YK_KEY_adapter))
		return yk_fail(YOKE_EINVAL,
			       "adapter=%s: adapts a pretrained model; name it with init=MODEL",
			       yk_config_str(c, YK_KEY_adapter));
	for (size_t i = 0; i < 3 && *yk_config_str(c, YK_KEY_adapter); i++)
		if (is_changed(c, own[i]))
			return yk_fail(YOKE_EINVAL, "%s=%s: adapter=%s has its own; remove it",
				       yk_config_rows[own[i]].name, yk_config_str(c, own[i]),
				       yk_config_str(c, YK_KEY_adapter));
	if (!*yk_config_str(c, YK_KEY_init))
		return yk_fail(YOKE_EINVAL,
			       "lora=%s: adapts a pretrained model; name it with init=MODEL",
			       yk_config_str(c, YK_KEY_lora));
	return targets_of(yk_config_str(c, YK_KEY_lora_targets), which, &all);
}

int yk_adapted_layers(const struct yk_config *c, const struct yk_model_shape *s,
		      struct yk_lora_layer **to, size_t *n)
{
	bool which[TARGETS], all;
	int e = targets_of(yk_config_str(c, YK_KEY_lora_targets), which, &all);
	if (e < 0)
		return e;
	struct yk_lora_layer *l =
		s->layers < MAX_LAYERS ? calloc((size_t)s->layers * TARGETS + 1, sizeof *l) : NULL;
	size_t count = 0;
	if (!l)
		return yk_fail(YOKE_ENOMEM, "lora: no memory for %" PRId64 " layers", s->layers);
	for (int64_t i = 0; i < s->layers; i++)
		for (int t = 0; t < TARGETS; t++) {
			const bool lacks = !s->decoder.gated && !strcmp(targets[t].word, "gate");
			if (!which[t] || (lacks && all))
				continue;
			l[count].rank = yk_config_int(c, YK_KEY_lora);
			l[count].alpha = yk_config_real(c, YK_KEY_lora_alpha);
			snprintf(l[count].name, sizeof l->name, "layer%" PRId64 ".%s", i,
				 targets[t].layer);
			count++;
			if (!lacks)
				continue;
			free(l);
			return yk_fail(YOKE_EINVAL,
				       "lora_targets=%s: the model's mlp has no gate; drop it",
				       yk_config_str(c, YK_KEY_lora_targets));
		}
	*to = l;
	*n = count;
	return 0;
}

static const char *unless(const char *text, const char *neutral)
{
	return strcmp(text, neutral) ? text : NULL;
}

void yk_adapted_base(const struct yk_config *c, struct yoke_model_options *to)
{
	to->dtype = unless(yk_config_str(c, YK_KEY_dtype), "file");
	to->quant = unless(yk_config_str(c, YK_KEY_quant), "none");
}
