// SPDX-License-Identifier: Apache-2.0
// Creates pipelines from JSON and orders their nodes.

#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/param.h"
#include "fit/node.h"
#include "fit/parse.h"

static const char what[] = "pipeline";

// ---- JSON ----

static int take_list(struct yk_fit_node *n, int k, const json_t *value)
{
	const size_t count = json_array_size(value);
	n->list = count && !n->list ? malloc(count * sizeof *n->list) : NULL;
	if (count && !n->list)
		return yk_fail(YOKE_ENOMEM, "%s: no memory", what);
	for (size_t i = 0; i < count; i++) {
		const json_t *one = json_array_get(value, i);
		n->list[i] = json_is_number(one) ? json_number_value(one) : NAN;
		if (!isfinite(n->list[i]))
			return yk_fail(YOKE_EINVAL,
				       "%s: %s: %s: number %zu of the list is not a number", what,
				       n->name, n->type->key[k].name, i);
	}
	n->key[k] = (double)count;
	return count ? 0 :
		       yk_fail(YOKE_EINVAL, "%s: %s: %s must be a list of numbers", what, n->name,
			       n->type->key[k].name);
}

// Reads key k; adds it with its default if the object lacks it.
static int take_key(struct yk_fit_node *n, int k, json_t *object)
{
	const struct yoke_node_key *key = &n->type->key[k];
	const json_t *value = json_object_get(object, key->name);
	n->key[k] = key->def;
	if (value && yk_key_is_list(key))
		return take_list(n, k, value);
	const bool whole = key->words && !*key->words, word = key->words && *key->words;
	json_t *def = value || isnan(key->def) ? NULL :
		      word                     ? yk_parse_word_at(key->words, (int)key->def) :
		      whole                    ? json_integer((json_int_t)key->def) :
						 json_real(key->def);
	if (!value && !isnan(key->def) && json_object_set_new(object, key->name, def))
		return yk_fail(YOKE_ENOMEM, "%s: no memory", what);
	if (value && word) {
		const int place = yk_parse_word(value, key->words);
		if (place < 0)
			return yk_fail(YOKE_EINVAL, "%s: %s: %s must be one of: %s", what, n->name,
				       key->name, key->words);
		n->key[k] = place;
	} else if (value) {
		n->key[k] = json_is_number(value) ? json_number_value(value) : NAN;
		if (!(n->key[k] >= key->min && n->key[k] <= key->max) ||
		    (whole && n->key[k] != floor(n->key[k])))
			return yk_fail(YOKE_EINVAL, "%s: %s: %s must be a %snumber from %g to %g",
				       what, n->name, key->name, whole ? "whole " : "", key->min,
				       key->max);
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
	if (yk_json_str(object, where, "name", &name) < 0 ||
	    yk_json_str(object, where, "type", &type) < 0)
		return yk_error_last();
	snprintf(where, sizeof where, "%s: %.100s", what, name);
	if (!*name || strpbrk(name, "./ ") || !strcmp(name, "input"))
		return yk_fail(YOKE_EINVAL,
			       "%s: a node's name has no dot, slash or space, and is not 'input'",
			       where);
	n->type = yk_node_type(type, where);
	n->name = strdup(name);
	if (!n->type || !n->name)
		return n->type ? yk_fail(YOKE_ENOMEM, "%s: no memory", what) : yk_error_last();
	for (int k = 0; k < n->type->keys; k++)
		names[4 + k] = n->type->key[k].name;
	int err = yk_parse_known(object, where, names, 4 + n->type->keys);
	for (int k = 0; k < n->type->keys && !err; k++)
		err = take_key(n, k, object);
	const json_t *train = err ? NULL : yk_parse_member(object, "train", "false");
	if (!err && !json_is_boolean(train))
		err = yk_fail(YOKE_EINVAL, "%s: train must be true or false", where);
	n->train = json_is_true(train) ? n->type->trained : 0;
	if (!err && json_is_true(train) && !n->train)
		err = yk_fail(YOKE_EINVAL, "%s: there is nothing to train in %s", where, type);
	return err;
}

int yk_node_named(const yoke_pipeline *p, const char *name)
{
	for (int i = 0; i < p->nodes; i++)
		if (!strcmp(p->node[i].name, name))
			return i;
	return -1;
}

int yk_node_find(const yoke_pipeline *p, const char *name, bool stream, const char *of, int *to)
{
	const char *names[YK_NODES + 1] = { "input" };
	char hint[400];
	*to = yk_node_named(p, name);
	for (int i = 0; i < p->nodes; i++)
		names[i + 1] = p->node[i].name;
	return *to >= 0 || (stream && !strcmp(name, "input")) ? 0 :
		yk_fail(YOKE_EINVAL, "%s: there is no node '%s'; %s", of, name,
			yk_hint(name, names + !stream, p->nodes + stream, hint, sizeof hint));
}

static int take_input(const yoke_pipeline *p, struct yk_fit_node *n, const json_t *name)
{
	char where[200];
	if (!json_is_string(name))
		return yk_fail(YOKE_EINVAL, "%s: %s: `in` is a node's name, or several in a list",
			       what, n->name);
	if (n->in.count == YK_NODE_INPUTS)
		return yk_fail(YOKE_EINVAL, "%s: %s: reads more than %d nodes", what, n->name,
			       YK_NODE_INPUTS);
	snprintf(where, sizeof where, "%s: %.100s", what, n->name);
	return yk_node_find(p, json_string_value(name), true, where, &n->in.from[n->in.count++]);
}

static int take_inputs(const yoke_pipeline *p, struct yk_fit_node *n, int index, json_t *object)
{
	const json_t *in = json_object_get(object, "in");
	size_t i;
	json_t *one;
	int err = 0;
	if (!in) {
		n->in = (struct yk_node_input){ .count = 1, .from = { index - 1 } };
		const int failed = json_object_set_new(
			object, "in", json_string(index ? p->node[index - 1].name : "input"));
		return failed ? yk_fail(YOKE_ENOMEM, "%s: no memory", what) : 0;
	}
	if (!json_is_array(in))
		return take_input(p, n, in);
	json_array_foreach(in, i, one)
		if (!err)
			err = take_input(p, n, one);
	return err || n->in.count ? err :
				    yk_fail(YOKE_EINVAL, "%s: %s: reads nothing", what, n->name);
}

// Topological sort: each node follows its inputs.
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
			return yk_fail(
				YOKE_EINVAL,
				"%s: %s: nothing reads it; name it in a node's `in`, or take it away",
				what, p->node[i].name);
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
	static const char *const names[] = { "nodes", "losses", "metrics",  "trainer", "optimizer",
					     "seed",  "freeze", "unfreeze", "monitors" };
	const json_t *nodes = json_object_get(root, "nodes");
	int64_t seed = 0;
	json_t *one;
	size_t i;
	int err = yk_parse_known(root, what, names, sizeof names / sizeof *names);
	if (!err &&
	    (!json_is_array(nodes) || !json_array_size(nodes) || json_array_size(nodes) > YK_NODES))
		err = yk_fail(YOKE_EINVAL, "%s: nodes: must be a list of 1 .. %d nodes", what,
			      YK_NODES);
	if (!err && yk_parse_member(root, "seed", "42"))
		err = yk_json_int(root, what, "seed", 0, INT64_MAX, &seed);
	p->seed = (uint64_t)seed;
	if (err)
		return err;
	json_array_foreach(nodes, i, one) {
		struct yk_fit_node *n = &p->node[p->nodes++];
		if ((err = take_node(n, one, (int)i)) < 0)
			return err;
		if (yk_node_named(p, n->name) < (int)i)
			return yk_fail(YOKE_EINVAL, "%s: two nodes have the name %s", what,
				       n->name);
	}
	json_array_foreach(nodes, i, one)
		if ((err = take_inputs(p, &p->node[i], (int)i, one)) < 0)
			return err;
	err = sort(p);
	return err ? err : yk_parse_training(p, root);
}

yoke_pipeline *yoke_pipeline_new(const char *json)
{
	yoke_pipeline *p = yk_require(json, "configuration") ? NULL : calloc(1, sizeof *p);
	if (!p && !json)
		return NULL;
	if (!p) {
		yk_fail(YOKE_ENOMEM, "%s: no memory", what);
		return NULL;
	}
	json_t *root = yk_json_parse(json, strlen(json), what);
	int err = root ? take(p, root) : yk_error_last();
	if (!err && !(p->config = yk_json_text(root, JSON_COMPACT)))
		err = yk_fail(YOKE_ENOMEM, "%s: no memory", what);
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
		free(p->node[i].list);
		for (int s = 0; s < YOKE_NODE_STATES; s++) {
			free(p->node[i].state[s]);
			yoke_free(p->node[i].variable[s]);
		}
	}
	if (p)
		free(p->config);
	free(p);
}

const char *yoke_pipeline_config(const yoke_pipeline *p)
{
	return yk_require(p, "pipeline") ? NULL : p->config;
}
