// SPDX-License-Identifier: Apache-2.0
// Reads the keys of adapters; describes a network with adapters in manifests and reads that back.
#include "config.h"

#include "train/adapted.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json.h"
#include "formats/checkpoint.h"
#include "models/pretrained.h"

// ---- keys ----

static const struct {
	const char *word, *layer;
} targets[] = {
	{ "q", "attn.q" },      { "k", "attn.k" },  { "v", "attn.v" },      { "o", "attn.out" },
	{ "gate", "mlp.gate" }, { "up", "mlp.up" }, { "down", "mlp.down" },
};
enum { TARGETS = sizeof targets / sizeof *targets, MAX_LAYERS = 1 << 20 };

bool yk_adapted_given(const struct yk_config *c)
{
	return yk_config_int(c, YK_KEY_lora) > 0;
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

int yk_adapted_check(const struct yk_config *c)
{
	static const enum yk_config_key keys[] = { YK_KEY_lora_alpha, YK_KEY_lora_targets,
						   YK_KEY_dtype, YK_KEY_quant };
	bool which[TARGETS], all;
	for (size_t i = 0; i < sizeof keys / sizeof *keys && !yk_adapted_given(c); i++)
		if (yk_config_asked(c, keys[i]) && yk_config_given(c, keys[i]))
			return yk_fail(YOKE_EINVAL,
				       "%s=%s: needs adapters; give lora=RANK, or remove it",
				       yk_config_rows[keys[i]].name, yk_config_str(c, keys[i]));
	if (!yk_adapted_given(c))
		return 0;
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

// ---- the frozen model ----

// The hash of a model's weights.
static int hash_of(const char *path, uint64_t *to)
{
	struct yk_checkpoint ck;
	if (yk_pretrained_is(path))
		return yk_pretrained_hash(path, to);
	const int e = yk_checkpoint_open(path, &ck);
	if (e < 0)
		return e;
	*to = ck.file[YK_CHECKPOINT_MODEL].hash;
	yk_checkpoint_fini(&ck);
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

// ---- manifests ----

json_t *yk_adapted_describe(const struct yk_config *c, const struct yk_network *net)
{
	const char *base = yk_config_str(c, YK_KEY_init);
	json_t *layers = json_array();
	uint64_t hash;
	char hex[17];
	int bad = !layers;
	if (hash_of(base, &hash) < 0) {
		json_decref(layers);
		return NULL;
	}
	snprintf(hex, sizeof hex, "%016" PRIx64, hash);
	for (size_t i = 0; i < net->adapters && !bad; i++) {
		const struct yk_network_adapter *a = &net->adapter[i];
		const char *name = net->params.row[a->a].name;
		const int64_t rank = yoke_dim(net->params.var[a->a], 0);
		bad |= json_array_append_new(
			layers, json_pack("{s:s#, s:I, s:f}", "name", name,
					  (int)(strstr(name, ".lora_A") - name), "rank",
					  (json_int_t)rank, "alpha", a->is.scale * (double)rank));
	}
	json_t *o = bad ? NULL :
			  json_pack("{s:s, s:s, s:s, s:s, s:O}", "base", base, "xxh64", hex,
				    "dtype", yk_config_str(c, YK_KEY_dtype), "quant",
				    yk_config_str(c, YK_KEY_quant), "layers", layers);
	json_decref(layers);
	if (!o)
		yk_fail(YOKE_ENOMEM, "lora: no memory for the manifest");
	return o;
}

static int parse_layers(const char *folder, const json_t *list, struct yk_lora_layer *to)
{
	int e = 0;
	for (size_t i = 0; i < json_array_size(list) && e == 0; i++) {
		const json_t *o = json_array_get(list, i);
		const char *name;
		e = yk_json_str(o, folder, "name", &name);
		if (e == 0)
			e = yk_json_int(o, folder, "rank", 1, INT32_MAX, &to[i].rank);
		if (e == 0)
			e = yk_json_real(o, folder, "alpha", &to[i].alpha);
		if (e == 0 && strlen(name) >= sizeof to->name)
			e = yk_fail(YOKE_EFORMAT, "%s: adapts a layer '%.60s', which no model has",
				    folder, name);
		if (e == 0)
			strcpy(to[i].name, name);
	}
	return e;
}

static int same_base(const char *folder, const char *base, const char *want)
{
	uint64_t hash;
	char hex[17];
	if (access(base, R_OK) < 0)
		return yk_fail(YOKE_ENOENT, "%s: adapts the model %s, which cannot be read: %s",
			       folder, base, strerror(errno));
	const int e = hash_of(base, &hash);
	if (e < 0)
		return e;
	snprintf(hex, sizeof hex, "%016" PRIx64, hash);
	return strcmp(hex, want) ? yk_fail(YOKE_EINVAL,
					   "%s: adapts a model whose weights have the checksum "
					   "%.16s, but those of %s have %s",
					   folder, want, base, hex) :
				   0;
}

int yk_adapted_parse(const char *folder, const json_t *adapter, struct yk_adapted *to)
{
	const json_t *list = json_object_get(adapter, "layers");
	const char *hex, *dtype, *quant;
	struct yk_adapted x = { .n = json_array_size(list) };
	int e = yk_json_str(adapter, folder, "base", &x.base);
	if (e == 0)
		e = yk_json_str(adapter, folder, "xxh64", &hex);
	if (e == 0)
		e = yk_json_str(adapter, folder, "dtype", &dtype);
	if (e == 0)
		e = yk_json_str(adapter, folder, "quant", &quant);
	if (e == 0 && !x.n)
		e = yk_fail(YOKE_EFORMAT, "%s: lists no layers of its adapter", folder);
	if (e == 0)
		e = same_base(folder, x.base, hex);
	if (e == 0 && !(x.layer = calloc(x.n, sizeof *x.layer)))
		e = yk_fail(YOKE_ENOMEM, "%s: no memory for its layers", folder);
	if (e == 0)
		e = parse_layers(folder, list, x.layer);
	if (e < 0) {
		free(x.layer);
		return e;
	}
	x.dtype = unless(dtype, "file");
	x.quant = unless(quant, "none");
	*to = x;
	return 0;
}
