// SPDX-License-Identifier: Apache-2.0
// Pipelines: their JSON, the order of their nodes, states as variables and in files.

#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/param.h"
#include "fit/node.h"
#include "fit/parse.h"
#include "formats/safetensors.h"

static const char what[] = "pipeline";

// ---- JSON ----

static int take_key(struct yk_fit_node *n, int k, const json_t *value)
{
	const struct yoke_node_key *key = &n->type->key[k];
	n->key[k] = key->def;
	if (value && key->words) {
		const int place = yk_parse_word(value, key->words);
		if (place < 0)
			return yk_fail(YOKE_EINVAL, "%s: %s: %s must be one of: %s", what, n->name, key->name, key->words);
		n->key[k] = place;
	} else if (value) {
		n->key[k] = json_is_number(value) ? json_number_value(value) : NAN;
		if (!(n->key[k] >= key->least && n->key[k] <= key->most))
			return yk_fail(YOKE_EINVAL, "%s: %s: %s must be a number from %g to %g", what, n->name, key->name,
				       key->least, key->most);
	}
	if (isnan(n->key[k]))
		return yk_fail(YOKE_EINVAL, "%s: %s: give %s", what, n->name, key->name);
	return 0;
}

static int take_node(struct yk_fit_node *n, json_t *object, int index)
{
	const char *names[4 + YOKE_NODE_KEYS] = { "name", "type", "in", "train" }, *name, *type;
	char where[200];
	snprintf(where, sizeof where, "%s: node %d", what, index);
	if (yk_json_str(object, where, "name", &name) < 0 || yk_json_str(object, where, "type", &type) < 0)
		return yk_error_last();
	snprintf(where, sizeof where, "%s: %.100s", what, name);
	if (!*name || strpbrk(name, "./ ") || !strcmp(name, "input"))
		return yk_fail(YOKE_EINVAL, "%s: a node's name has no dot, slash or space, and is not 'input'", where);
	n->type = yk_node_type(type, where);
	n->name = strdup(name);
	if (!n->type || !n->name)
		return n->type ? yk_fail(YOKE_ENOMEM, "%s: no memory", what) : yk_error_last();
	for (int k = 0; k < n->type->keys; k++)
		names[4 + k] = n->type->key[k].name;
	int err = yk_parse_known(object, where, names, 4 + n->type->keys);
	for (int k = 0; k < n->type->keys && !err; k++)
		err = take_key(n, k, json_object_get(object, n->type->key[k].name));
	const json_t *train = json_object_get(object, "train");
	if (!err && train && !json_is_boolean(train))
		err = yk_fail(YOKE_EINVAL, "%s: train must be true or false", where);
	n->train = json_is_true(train);
	if (!err && n->train && !n->type->trained)
		err = yk_fail(YOKE_EINVAL, "%s: there is nothing to train in %s", where, type);
	return err;
}

static int index_of(const yoke_pipeline *p, const char *name)
{
	for (int i = 0; i < p->nodes; i++)
		if (!strcmp(p->node[i].name, name))
			return i;
	return -1;
}

static int take_input(const yoke_pipeline *p, struct yk_fit_node *n, const json_t *name)
{
	const char *names[YK_NODES + 1] = { "input" };
	char hint[400];
	if (!json_is_string(name))
		return yk_fail(YOKE_EINVAL, "%s: %s: `in` is a node's name, or several in a list", what, n->name);
	if (n->in.count == YK_NODE_INPUTS)
		return yk_fail(YOKE_EINVAL, "%s: %s: reads more than %d nodes", what, n->name, YK_NODE_INPUTS);
	const char *text = json_string_value(name);
	const int from = !strcmp(text, "input") ? -1 : index_of(p, text);
	for (int i = 0; i < p->nodes; i++)
		names[i + 1] = p->node[i].name;
	if (from < 0 && strcmp(text, "input"))
		return yk_fail(YOKE_EINVAL, "%s: %s: there is no node '%s'; %s", what, n->name, text,
			       yk_hint(text, names, p->nodes + 1, hint, sizeof hint));
	n->in.from[n->in.count++] = from;
	return 0;
}

static int take_inputs(const yoke_pipeline *p, struct yk_fit_node *n, int index, const json_t *in)
{
	size_t i;
	json_t *one;
	int err = 0;
	if (!in) {
		n->in = (struct yk_node_input){ .count = 1, .from = { index - 1 } };
		return 0;
	}
	if (!json_is_array(in))
		return take_input(p, n, in);
	json_array_foreach(in, i, one)
		if (!err)
			err = take_input(p, n, one);
	return err || n->in.count ? err : yk_fail(YOKE_EINVAL, "%s: %s: reads nothing", what, n->name);
}

// Puts each node behind what it reads.
static int sort(yoke_pipeline *p)
{
	struct yk_fit_node sorted[YK_NODES];
	int place[YK_NODES], done = 0;
	bool read[YK_NODES] = { false };
	for (int i = 0; i < p->nodes; i++)
		place[i] = -1;
	for (int before = -1; before < done;) {
		before = done;
		for (int i = 0; i < p->nodes; i++) {
			bool ready = place[i] < 0;
			for (int k = 0; k < p->node[i].in.count; k++) {
				const int from = p->node[i].in.from[k];
				ready &= from < 0 || place[from] >= 0;
			}
			if (ready)
				place[i] = done++;
		}
	}
	for (int i = 0; i < p->nodes; i++) {
		if (place[i] < 0)
			return yk_fail(YOKE_EINVAL, "%s: %s: is in a cycle", what, p->node[i].name);
		for (int k = 0; k < p->node[i].in.count; k++)
			if (p->node[i].in.from[k] >= 0)
				read[p->node[i].in.from[k]] = true;
	}
	for (int i = 0; i + 1 < p->nodes; i++) // the last one is the result
		if (!read[i])
			return yk_fail(YOKE_EINVAL, "%s: %s: nothing reads it; name it in a node's `in`, or take it away", what,
				       p->node[i].name);
	for (int i = 0; i < p->nodes; i++) {
		struct yk_fit_node *n = &sorted[place[i]];
		*n = p->node[i];
		for (int k = 0; k < n->in.count; k++)
			n->in.from[k] = n->in.from[k] < 0 ? -1 : place[n->in.from[k]];
	}
	p->last = place[p->nodes - 1];
	memcpy(p->node, sorted, (size_t)p->nodes * sizeof *sorted);
	return 0;
}

static int take(yoke_pipeline *p, json_t *root)
{
	static const char *const names[] = { "nodes", "losses", "metrics", "trainer", "optimizer", "seed" };
	const json_t *nodes = json_object_get(root, "nodes");
	int64_t seed = 42;
	json_t *one;
	size_t i;
	int err = yk_parse_known(root, what, names, 6);
	if (!err && (!json_is_array(nodes) || !json_array_size(nodes) || json_array_size(nodes) > YK_NODES))
		err = yk_fail(YOKE_EINVAL, "%s: nodes: must be a list of 1 .. %d nodes", what, YK_NODES);
	if (!err && json_object_get(root, "seed"))
		err = yk_json_int(root, what, "seed", 0, INT64_MAX, &seed);
	p->seed = (uint64_t)seed;
	if (err)
		return err;
	json_array_foreach(nodes, i, one) {
		struct yk_fit_node *n = &p->node[p->nodes++];
		if ((err = take_node(n, one, (int)i)) < 0)
			return err;
		if (index_of(p, n->name) < (int)i)
			return yk_fail(YOKE_EINVAL, "%s: two nodes have the name %s", what, n->name);
	}
	json_array_foreach(nodes, i, one)
		if ((err = take_inputs(p, &p->node[i], (int)i, json_object_get(one, "in"))) < 0)
			return err;
	err = sort(p);
	return err ? err : yk_parse_training(p, root);
}

yoke_pipeline *yoke_pipeline_new(const char *json)
{
	yoke_pipeline *p = calloc(1, sizeof *p);
	if (!p) {
		yk_fail(YOKE_ENOMEM, "%s: no memory", what);
		return NULL;
	}
	json_t *root = yk_json_parse(json, strlen(json), what);
	int err = root ? take(p, root) : yk_error_last();
	if (root)
		json_decref(root);
	if (!err)
		return p;
	yoke_pipeline_free(p);
	return NULL;
}

void yoke_pipeline_free(yoke_pipeline *p)
{
	for (int i = 0; p && i < p->nodes; i++) {
		free(p->node[i].name);
		for (int s = 0; s < YOKE_NODE_STATES; s++) {
			free(p->node[i].state[s]);
			yoke_free(p->node[i].variable[s]);
		}
	}
	free(p);
}

// ---- shapes, states ----

int64_t yk_state_count(const struct yk_fit_node *n, int state, int *rank, int64_t *dims)
{
	int64_t count = 1;
	*rank = n->type->dims(n->key, n->channels_in, state, dims);
	for (int d = 0; d < *rank; d++)
		count *= dims[d];
	return count;
}

int yk_pipeline_shape(yoke_pipeline *p, int64_t channels)
{
	enum { MOST = 1 << 15 };
	if (p->channels == channels)
		return 0;
	if (p->channels)
		return yk_fail(YOKE_ESHAPE, "%s: is of %lld channels, not %lld", what, (long long)p->channels, (long long)channels);
	for (int i = 0; i < p->nodes; i++) {
		struct yk_fit_node *n = &p->node[i];
		char why[200] = "no channels";
		n->channels_in = 0;
		for (int k = 0; k < n->in.count; k++)
			n->channels_in += n->in.from[k] < 0 ? channels : p->node[n->in.from[k]].channels;
		if (n->channels_in > MOST)
			return yk_fail(YOKE_ERANGE, "%s: %s: more than %d channels", what, n->name, MOST);
		n->channels = n->type->channels(n->key, n->channels_in, why, sizeof why);
		if (n->channels < 1)
			return yk_fail(YOKE_EINVAL, "%s: %s: %s", what, n->name, why);
	}
	for (int i = 0; i < p->nodes; i++)
		for (int s = 0; s < p->node[i].type->states; s++) {
			struct yk_fit_node *n = &p->node[i];
			int64_t dims[YOKE_MAX_RANK];
			int rank;
			const int64_t count = yk_state_count(n, s, &rank, dims);
			free(n->state[s]);
			n->state[s] = calloc((size_t)count + 1, sizeof *n->state[s]);
			if (!n->variable[s])
				n->variable[s] = yoke_variable(n->type->state[s], yoke_f32, rank, dims);
			if (!n->state[s] || !n->variable[s])
				return n->state[s] ? yk_error_last() : yk_fail(YOKE_ENOMEM, "%s: no memory", what);
		}
	p->channels = channels;
	return 0;
}

int yk_node_settle(struct yk_fit_node *n)
{
	int err = 0;
	for (int s = 0; s < n->type->states && !err; s++) {
		int64_t dims[YOKE_MAX_RANK];
		int rank;
		const int64_t count = yk_state_count(n, s, &rank, dims);
		float *f = malloc(((size_t)count + 1) * sizeof *f);
		if (!f)
			return yk_fail(YOKE_ENOMEM, "%s: no memory", what);
		for (int64_t i = 0; i < count; i++)
			n->state[s][i] = f[i] = (float)n->state[s][i];
		for (int64_t i = 0; i < count && !err; i++)
			if (!isfinite(f[i]))
				err = yk_fail(YOKE_ERANGE, "%s: %s: its %s is not finite in f32", what, n->name, n->type->state[s]);
		if (!err)
			err = yoke_put(n->variable[s], f, (size_t)count * sizeof *f);
		free(f);
	}
	n->fitted = !err;
	return err;
}

// ---- values ----

yoke_tensor *yk_node_input(yoke_pipeline *p, struct yk_values *v, int node)
{
	const struct yk_node_input *in = &p->node[node].in;
	yoke_tensor *x[YK_NODE_INPUTS];
	for (int k = 0; k < in->count; k++)
		x[k] = in->from[k] < 0 ? v->stream : yk_node_value(p, v, in->from[k]);
	return in->count == 1 ? x[0] : yoke_concat(in->count, x, -1);
}

yoke_tensor *yk_node_value(yoke_pipeline *p, struct yk_values *v, int node)
{
	bool wanted[YK_NODES] = { false };
	wanted[node] = true;
	for (int i = node; i >= 0; i--)
		for (int k = 0; wanted[i] && k < p->node[i].in.count; k++)
			if (p->node[i].in.from[k] >= 0)
				wanted[p->node[i].in.from[k]] = true;
	for (int i = 0; i <= node; i++) {
		const struct yk_fit_node *n = &p->node[i];
		const struct yoke_node_call c = { .size = sizeof c, .key = n->key, .state = n->variable,
						  .epoch = v->epoch, .training = v->training };
		yoke_tensor *x[YK_NODE_INPUTS];
		if (!wanted[i] || v->of[i])
			continue;
		for (int k = 0; k < n->in.count; k++)
			x[k] = n->in.from[k] < 0 ? v->stream : v->of[n->in.from[k]];
		v->of[i] = n->type->forward(&c, n->in.count == 1 ? x[0] : yoke_concat(n->in.count, x, -1));
		if (!v->of[i])
			return NULL;
	}
	return v->of[node];
}

yoke_tensor *yoke_pipeline_apply(yoke_pipeline *p, const char *node, yoke_tensor *x)
{
	struct yk_values v = { .stream = x };
	const int at = node ? index_of(p, node) : p->last;
	if (at < 0) {
		yk_fail(YOKE_EINVAL, "pipeline_apply: there is no node '%s'", node);
		return NULL;
	}
	for (int i = 0; i < p->nodes; i++)
		if (!p->node[i].fitted) {
			yk_fail(YOKE_EINVAL, "pipeline_apply: %s is not fitted", p->node[i].name);
			return NULL;
		}
	if (!x || yk_pipeline_shape(p, yoke_rank(x) ? yoke_dim(x, -1) : 0) < 0)
		return NULL;
	if (yoke_dtype(x) != yoke_f32)
		v.stream = yoke_cast(x, yoke_f32);
	return yk_node_value(p, &v, at);
}

yoke_tensor *yoke_pipeline_state(const yoke_pipeline *p, const char *node, const char *state)
{
	const int at = index_of(p, node);
	for (int s = 0; at >= 0 && s < p->node[at].type->states; s++)
		if (!strcmp(p->node[at].type->state[s], state) && p->node[at].variable[s])
			return p->node[at].variable[s];
	yk_fail(YOKE_ENOENT, "pipeline_state: there is no %s.%s", node, state);
	return NULL;
}

int yoke_pipeline_stats(const yoke_pipeline *p, struct yoke_pipeline_stats *to)
{
	if (!to || !to->size)
		return yk_fail(YOKE_EINVAL, "pipeline_stats: set size to sizeof(struct yoke_pipeline_stats)");
	struct yoke_pipeline_stats s = p->stats;
	s.size = to->size < sizeof s ? to->size : sizeof s;
	memcpy(to, &s, s.size);
	return 0;
}

// ---- files ----

enum { MOST_STATES = YK_NODES * YOKE_NODE_STATES, NAME = 300 };

int yoke_pipeline_save(const yoke_pipeline *p, const char *path)
{
	struct yk_host_tensor *t = calloc(MOST_STATES, sizeof *t);
	char (*name)[NAME] = calloc(MOST_STATES, sizeof *name);
	uint64_t bytes, hash;
	int n = 0, err = t && name ? 0 : yk_fail(YOKE_ENOMEM, "%s: no memory", what);
	for (int i = 0; i < p->nodes && !err; i++) {
		const struct yk_fit_node *node = &p->node[i];
		if (!node->fitted)
			err = yk_fail(YOKE_EINVAL, "pipeline_save: %s is not fitted", node->name);
		for (int s = 0; s < node->type->states && !err; s++, n++) {
			const int64_t count = yk_state_count(node, s, &t[n].rank, t[n].dims);
			snprintf(name[n], NAME, "%.200s.%.80s", node->name, node->type->state[s]);
			t[n].name = name[n];
			t[n].dtype = yoke_f32;
			t[n].data = malloc(((size_t)count + 1) * sizeof(float));
			err = t[n].data ? yoke_read(node->variable[s], t[n].data, (size_t)count * sizeof(float)) :
					  yk_fail(YOKE_ENOMEM, "%s: no memory", what);
		}
	}
	if (!err)
		err = yk_safetensors_write(path, n, t, &bytes, &hash);
	for (int i = 0; t && i < MOST_STATES; i++)
		free(t[i].data);
	free(t);
	free(name);
	return err;
}

static int load_state(struct yk_fit_node *n, int state, const struct yk_safetensors *f)
{
	char name[NAME];
	int64_t dims[YOKE_MAX_RANK];
	int rank;
	snprintf(name, sizeof name, "%.200s.%.80s", n->name, n->type->state[state]);
	const int64_t count = yk_state_count(n, state, &rank, dims);
	const struct yk_safetensors_entry *e = yk_safetensors_find(f, name);
	bool fits = e && e->dtype == yoke_f32 && e->rank == rank;
	for (int d = 0; fits && d < rank; d++)
		fits = e->dims[d] == dims[d];
	if (!fits)
		return yk_fail(YOKE_EFORMAT, "%s: its array %s is not there, or not as the pipeline's", f->path, name);
	float *x = malloc(((size_t)count + 1) * sizeof *x);
	int err = x ? yk_safetensors_read(f, e, x) : yk_fail(YOKE_ENOMEM, "%s: no memory", what);
	for (int64_t i = 0; i < count && !err; i++)
		n->state[state][i] = x[i];
	free(x);
	return err;
}

// The stream's channels, by the first node that reads it alone and has a state whose last axis is its input's.
static int64_t channels_of(const yoke_pipeline *p, const struct yk_safetensors *f)
{
	char name[NAME];
	for (int i = 0; i < p->nodes; i++) {
		const struct yk_fit_node *n = &p->node[i];
		if (!n->type->states || n->in.count != 1 || n->in.from[0] != -1)
			continue;
		snprintf(name, sizeof name, "%.200s.%.80s", n->name, n->type->state[0]);
		const struct yk_safetensors_entry *e = yk_safetensors_find(f, name);
		return e && e->rank ? e->dims[e->rank - 1] : 0;
	}
	return 0;
}

int yoke_pipeline_load(yoke_pipeline *p, const char *path)
{
	struct yk_safetensors f;
	int err = yk_safetensors_open(&f, path);
	if (err < 0)
		return err;
	const int64_t channels = p->channels ? p->channels : channels_of(p, &f);
	if (channels < 1)
		err = yk_fail(YOKE_EFORMAT, "%s: does not say how many channels the stream has", path);
	if (!err)
		err = yk_pipeline_shape(p, channels);
	for (int i = 0; i < p->nodes && !err; i++) {
		for (int s = 0; s < p->node[i].type->states && !err; s++)
			err = load_state(&p->node[i], s, &f);
		if (!err)
			err = yk_node_settle(&p->node[i]);
	}
	yk_safetensors_close(&f);
	return err;
}
