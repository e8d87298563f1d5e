// SPDX-License-Identifier: Apache-2.0
// The description of adapters in the manifest of a checkpoint: the frozen model, the layers and
// their values.
#include "config.h"

#include "models/adapter.h"

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

// Hashes that identify a frozen model's weights, as hexadecimal digits.
struct identity {
	// state: of the files; of a checkpoint 0, since its manifest has the hash
	char weights[17], state[17];
};

static void digits(uint64_t hash, char to[17])
{
	snprintf(to, 17, "%016" PRIx64, hash);
}

static int identify(const char *path, struct identity *to)
{
	struct yk_checkpoint ck;
	uint64_t hash = 0, state = 0;
	int e = 0;
	if (yk_pretrained_is(path)) {
		e = yk_pretrained_hash(path, &hash, &state);
	} else if ((e = yk_checkpoint_open(path, &ck)) == 0) {
		hash = ck.file[YK_CHECKPOINT_MODEL].hash;
		yk_checkpoint_fini(&ck);
	}
	digits(hash, to->weights);
	digits(state, to->state);
	return e;
}

// 1: the files of a pretrained model are in the state that the manifest describes.
static int is_untouched(const json_t *adapter, const char *path)
{
	const char *was = json_string_value(json_object_get(adapter, "state"));
	uint64_t state;
	char now[17];
	const int e = was && yk_pretrained_is(path) ? yk_pretrained_hash(path, NULL, &state) : 1;
	if (e)
		return e < 0 ? e : 0;
	digits(state, now);
	return !strcmp(was, now);
}

json_t *yk_adapter_describe(const char *base, const char *dtype, const char *quant,
			    const struct yk_network *net)
{
	struct identity id;
	if (identify(base, &id) < 0)
		return NULL;
	json_t *layers = json_array();
	int bad = !layers;
	for (size_t i = 0; i < net->adapters && !bad; i++) {
		const struct yk_lora_layer *l = &net->adapter[i].as;
		bad |= json_array_append_new(layers,
					     json_pack("{s:s, s:I, s:f}", "name", l->name, "rank",
						       (json_int_t)l->rank, "alpha", l->alpha));
	}
	json_t *o = bad ? NULL :
			  json_pack("{s:s, s:s, s:s, s:s, s:s, s:O}", "base", base, "xxh64",
				    id.weights, "state", id.state, "dtype", dtype, "quant", quant,
				    "layers", layers);
	if (o && net->adapter_dropout > 0 &&
	    json_object_set_new(o, "dropout", json_real(net->adapter_dropout)) < 0) {
		json_decref(o);
		o = NULL;
	}
	json_decref(layers);
	if (!o)
		yk_fail(YOKE_ENOMEM, "lora: no memory for the manifest");
	return o;
}

// ---- comparing the base ----

// Finds the first member in which two descriptions differ, as "decoder.rope.base is 10000.0, not
// 500000.0".
static bool differ(const json_t *was, const json_t *now, const char *name, char *to, size_t bytes)
{
	const char *key;
	json_t *value;
	char full[160];
	if (json_equal(was, now))
		return false;
	if (json_is_object(was) && json_is_object(now)) {
		json_object_foreach ((json_t *)(uintptr_t)was, key, value) {
			snprintf(full, sizeof full, "%.100s%s%.40s", name, *name ? "." : "", key);
			if (differ(value, json_object_get(now, key), full, to, bytes))
				return true;
		}
	}
	char *texts[] = { was ? yk_json_text(was, JSON_COMPACT | JSON_ENCODE_ANY) : NULL,
			  now ? yk_json_text(now, JSON_COMPACT | JSON_ENCODE_ANY) : NULL };
	snprintf(to, bytes, "%s is %.60s, not %.60s", *name ? name : "the network",
		 texts[1] ? texts[1] : "missing", texts[0] ? texts[0] : "missing");
	free(texts[0]);
	free(texts[1]);
	return true;
}

// The shape that a model's configuration describes, for sequences of that many tokens.
static int shape_of(const char *path, int64_t context, const struct yk_model **m,
		    struct yk_model_shape *to)
{
	struct yk_checkpoint ck;
	*m = &yk_model_decoder;
	if (yk_pretrained_is(path))
		return yk_pretrained_shape(path, context, to);
	int e = yk_checkpoint_open(path, &ck);
	if (e < 0)
		return e;
	e = yk_model_parse(ck.model, path, m, to);
	yk_checkpoint_fini(&ck);
	to->context = context;
	return e;
}

// Does the model's configuration describe the network that the run adapts?
static int same_network(const char *folder, const struct yk_checkpoint *ck, const char *model)
{
	const struct yk_model *m[2];
	struct yk_model_shape s[2];
	char what[320];
	int e = yk_model_parse(ck->model, folder, &m[0], &s[0]);
	if (e == 0)
		e = shape_of(model, s[0].context, &m[1], &s[1]);
	if (e < 0)
		return e;
	json_t *was = yk_model_describe(m[0], &s[0]), *now = yk_model_describe(m[1], &s[1]);
	if (!was || !now)
		e = yoke_error_code();
	else if (differ(was, now, "", what, sizeof what))
		e = yk_fail(YOKE_EINVAL,
			    "%s: adapts a model with another configuration than %s: %s; restore "
			    "its configuration",
			    folder, model, what);
	json_decref(was);
	json_decref(now);
	return e;
}

int yk_adapter_same_base(const char *folder, const struct yk_checkpoint *ck, const char *model)
{
	const char *want;
	struct identity id;
	int e = yk_json_str(ck->adapter, folder, "xxh64", &want);
	if (e < 0)
		return e;
	if (access(model, R_OK) < 0)
		return yk_fail(YOKE_ENOENT, "%s: adapts the model %s, which cannot be read: %s",
			       folder, model, strerror(errno));
	e = same_network(folder, ck, model);
	const int untouched = e == 0 ? is_untouched(ck->adapter, model) : e;
	if (untouched)
		return untouched < 0 ? untouched : 0;
	e = identify(model, &id);
	if (e < 0)
		return e;
	if (strcmp(id.weights, want))
		return yk_fail(YOKE_EINVAL,
			       "%s: adapts a model whose weights have the checksum "
			       "%.16s, but those of %s have %s",
			       folder, want, model, id.weights);
	return json_object_set_new(ck->adapter, "state", json_string(id.state)) < 0 ?
		       yk_fail(YOKE_ENOMEM, "%s: no memory for the manifest", folder) :
		       0;
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

int yk_adapter_parse(const char *folder, const json_t *adapter, struct yk_adapter_manifest *to)
{
	const json_t *list = json_object_get(adapter, "layers");
	const char *dtype, *quant;
	struct yk_adapter_manifest x = { .n = json_array_size(list) };
	int e = yk_json_str(adapter, folder, "base", &x.base);
	if (e == 0)
		e = yk_json_str(adapter, folder, "dtype", &dtype);
	if (e == 0)
		e = yk_json_str(adapter, folder, "quant", &quant);
	if (e == 0 && json_object_get(adapter, "dropout"))
		e = yk_json_real(adapter, folder, "dropout", &x.dropout);
	if (e == 0 && !(x.dropout >= 0 && x.dropout < 1))
		e = yk_fail(YOKE_EFORMAT, "%s: the dropout %g of its adapter is not in [0, 1)",
			    folder, x.dropout);
	if (e == 0 && !x.n)
		e = yk_fail(YOKE_EFORMAT, "%s: lists no layers of its adapter", folder);
	if (e == 0 && !(x.layer = calloc(x.n, sizeof *x.layer)))
		e = yk_fail(YOKE_ENOMEM, "%s: no memory for its layers", folder);
	if (e == 0)
		e = parse_layers(folder, list, x.layer);
	if (e < 0) {
		free(x.layer);
		return e;
	}
	x.dtype = strcmp(dtype, "file") ? dtype : NULL;
	x.quant = strcmp(quant, "none") ? quant : NULL;
	*to = x;
	return 0;
}

// ---- values ----

// Sets the size of the layers by the model's weights.
struct sizes {
	struct yk_adapter *to;
	const struct yk_lora_layer *layer;
	size_t n;
};

static int add_sized(void *arg, const char *name, int rank, const int64_t *dims)
{
	const struct sizes *s = arg;
	const size_t bytes = (size_t)(strrchr(name, '.') - name);
	for (size_t i = 0; i < s->n && rank == 2; i++)
		if (strlen(s->layer[i].name) == bytes && !strncmp(s->layer[i].name, name, bytes))
			return yk_adapter_add(s->to, &s->layer[i], dims[1], dims[0]) ?
				       0 :
				       yoke_error_code();
	return 0;
}

static int take(void *arg, int i, const void *data, uint64_t bytes)
{
	struct yk_adapter *x = arg;
	memcpy(i % 2 ? x->layer[i / 2].b : x->layer[i / 2].a, data, bytes);
	return 0;
}

static int load(const char *folder, const struct yk_checkpoint *ck, struct yk_adapter *x)
{
	struct yk_host_tensor *t = calloc(2 * x->n + 1, sizeof *t);
	char(*name)[80] = calloc(2 * x->n + 1, sizeof *name);
	int e = t && name ? 0 : yk_fail(YOKE_ENOMEM, "%s: no memory for adapters", folder);
	for (size_t i = 0; i < x->n && e == 0; i++) {
		const struct yk_adapter_layer *l = &x->layer[i];
		for (int k = 0; k < 2; k++)
			snprintf(name[2 * i + (size_t)k], sizeof *name, "%s.lora_%c.weight",
				 l->is.name, k ? 'B' : 'A');
		t[2 * i] = (struct yk_host_tensor){ .name = name[2 * i],
						    .dtype = yoke_f32,
						    .rank = 2,
						    .dims = { l->is.rank, l->in } };
		t[2 * i + 1] = (struct yk_host_tensor){ .name = name[2 * i + 1],
							.dtype = yoke_f32,
							.rank = 2,
							.dims = { l->out, l->is.rank } };
	}
	if (e == 0)
		e = yk_checkpoint_load(folder, ck, YK_CHECKPOINT_MODEL, (int)(2 * x->n), t, take,
				       x);
	free(t);
	free(name);
	return e;
}

int yk_adapter_of_run(const char *folder, const struct yk_checkpoint *ck,
		      const struct yk_model_shape *s, struct yk_adapter *to)
{
	struct yk_adapter_manifest m;
	struct yk_adapter x = { 0 };
	int e = yk_adapter_parse(folder, ck->adapter, &m);
	if (e < 0)
		return e;
	uint64_t elements = (uint64_t)yk_lora_elements(&yk_model_decoder, s, m.n, m.layer);
	e = yk_checkpoint_holds(folder, ck, YK_CHECKPOINT_MODEL, sizeof(float) * elements);
	if (e == 0)
		e = yk_model_each(&yk_model_decoder, s, add_sized,
				  &(struct sizes){ &x, m.layer, m.n });
	if (e == 0 && x.n != m.n)
		e = yk_fail(YOKE_EINVAL, "%s: adapts %zu layers, but the model has %zu of them",
			    folder, m.n, x.n);
	if (e == 0)
		e = load(folder, ck, &x);
	free(m.layer);
	x.dropout = m.dropout;
	if (e < 0)
		yk_adapter_close(&x);
	else
		*to = x;
	return e;
}
