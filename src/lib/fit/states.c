// SPDX-License-Identifier: Apache-2.0
// States of nodes: shapes, conversion to variables, and storage in files.

#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "fit/losses.h"
#include "formats/safetensors.h"

static const char what[] = "pipeline";

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
	enum { LIMIT = 1 << 15 };
	if (p->channels == channels)
		return 0;
	if (p->channels)
		return yk_fail(YOKE_ESHAPE, "%s: is of %lld channels, not %lld", what,
			       (long long)p->channels, (long long)channels);
	if (channels > LIMIT)
		return yk_fail(YOKE_ERANGE, "%s: the stream has %lld channels, and %d at most",
			       what, (long long)channels, LIMIT);
	for (int i = 0; i < p->nodes; i++) {
		struct yk_fit_node *n = &p->node[i];
		char why[200] = "no channels";
		n->channels_in = 0;
		for (int k = 0; k < n->in.count; k++)
			n->channels_in +=
				n->in.from[k] < 0 ? channels : p->node[n->in.from[k]].channels;
		if (n->channels_in > LIMIT)
			return yk_fail(YOKE_ERANGE, "%s: %s: more than %d channels", what, n->name,
				       LIMIT);
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
				n->variable[s] =
					yoke_variable(n->type->state[s], yoke_f32, rank, dims);
			if (!n->state[s] || !n->variable[s])
				return n->state[s] ? yk_error_last() :
						     yk_fail(YOKE_ENOMEM, "%s: no memory", what);
		}
	p->channels = channels;
	return yk_losses_shape(p);
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
				err = yk_fail(YOKE_ERANGE, "%s: %s: its %s is not finite in f32",
					      what, n->name, n->type->state[s]);
		if (!err)
			err = yoke_put(n->variable[s], f, (size_t)count * sizeof *f);
		free(f);
	}
	n->fitted = !err;
	return err;
}

// ---- files ----

enum { MAX_STATES = YK_NODES * YOKE_NODE_STATES + 1, NAME = 300 };
static const char channels_name[] = "input.channels"; // no node is named "input"

// Whether the node's states determine the stream's channel count: it reads the stream alone.
static bool determines_channels(const struct yk_fit_node *n)
{
	return n->type->states && n->in.count == 1 && n->in.from[0] == -1;
}

// Adds an array with the stream's channel count, if no state determines it.
static int add_channels(const yoke_pipeline *p, struct yk_host_tensor *t, int *n)
{
	for (int i = 0; i < p->nodes; i++)
		if (determines_channels(&p->node[i]))
			return 0;
	t[*n] = (struct yk_host_tensor){ .name = channels_name,
					 .dtype = yoke_i64,
					 .data = malloc(sizeof p->channels) };
	if (!t[*n].data)
		return yk_fail(YOKE_ENOMEM, "%s: no memory", what);
	memcpy(t[(*n)++].data, &p->channels, sizeof p->channels);
	return 0;
}

int yoke_pipeline_save(const yoke_pipeline *p, const char *path)
{
	struct yk_host_tensor *t = calloc(MAX_STATES, sizeof *t);
	char (*name)[NAME] = calloc(MAX_STATES, sizeof *name);
	uint64_t bytes, hash;
	int n = 0, err = t && name ? yk_require(p, "pipeline") :
				     yk_fail(YOKE_ENOMEM, "%s: no memory", what);
	if (!err)
		err = yk_require(path, "path");
	for (int i = 0; !err && i < p->nodes; i++) {
		const struct yk_fit_node *node = &p->node[i];
		if (!node->fitted)
			err = yk_fail(YOKE_EINVAL, "pipeline_save: %s is not fitted", node->name);
		for (int s = 0; s < node->type->states && !err; s++, n++) {
			const int64_t count = yk_state_count(node, s, &t[n].rank, t[n].dims);
			snprintf(name[n], NAME, "%.200s.%.80s", node->name, node->type->state[s]);
			t[n].name = name[n];
			t[n].dtype = yoke_f32;
			t[n].data = malloc(((size_t)count + 1) * sizeof(float));
			err = t[n].data ? yoke_read(node->variable[s], t[n].data,
						    (size_t)count * sizeof(float)) :
					  yk_fail(YOKE_ENOMEM, "%s: no memory", what);
		}
	}
	if (!err)
		err = add_channels(p, t, &n);
	if (!err)
		err = yk_safetensors_write(path, n, t, &bytes, &hash);
	for (int i = 0; t && i < MAX_STATES; i++)
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
		return yk_fail(YOKE_EFORMAT,
			       "%s: its array %s is not there, or not as the pipeline's", f->path,
			       name);
	float *x = malloc(((size_t)count + 1) * sizeof *x);
	int err = x ? yk_safetensors_read(f, e, x) : yk_fail(YOKE_ENOMEM, "%s: no memory", what);
	for (int64_t i = 0; i < count && !err; i++)
		n->state[state][i] = x[i];
	free(x);
	return err;
}

// The stream's channels, from the first node that reads it alone and has a state whose last axis is
// its input's; 0: unknown.
static int64_t channels_of(const yoke_pipeline *p, const struct yk_safetensors *f)
{
	char name[NAME];
	for (int i = 0; i < p->nodes; i++) {
		const struct yk_fit_node *n = &p->node[i];
		if (!determines_channels(n))
			continue;
		snprintf(name, sizeof name, "%.200s.%.80s", n->name, n->type->state[0]);
		const struct yk_safetensors_entry *e = yk_safetensors_find(f, name);
		return e && e->rank ? e->dims[e->rank - 1] : 0;
	}
	const struct yk_safetensors_entry *e = yk_safetensors_find(f, channels_name);
	int64_t channels = 0;
	if (e && e->dtype == yoke_i64 && e->rank == 0 && yk_safetensors_read(f, e, &channels) < 0)
		yoke_error_clear();
	return channels;
}

int yoke_pipeline_load(yoke_pipeline *p, const char *path)
{
	struct yk_safetensors f;
	int err = yk_require(p, "pipeline");
	if (!err && !(err = yk_require(path, "path")))
		err = yk_safetensors_open(&f, path);
	if (err)
		return err;
	const int64_t its = channels_of(p, &f), channels = p->channels ? p->channels : its;
	if (channels < 1)
		err = yk_fail(YOKE_EFORMAT, "%s: does not contain the number of the stream's "
			"channels", path);
	else if (its > 0 && its != channels)
		err = yk_fail(YOKE_ESHAPE, "%s: is of %lld channels, not %lld", path,
			      (long long)its, (long long)channels);
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
