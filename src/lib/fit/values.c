// SPDX-License-Identifier: Apache-2.0
// Records the operations that compute the values of nodes, in both phases and at inference.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sized.h"
#include "fit/node.h"

// ---- fields of data sets ----

yoke_loader *yk_fit_loader(yoke_dataset *set, const char *defaults, const char *caller,
			   const char *overrides)
{
	char *settings;
	if (asprintf(&settings, "last=keep prefetch=1 held=1 %s %s %s", defaults,
		     caller ? caller : "", overrides) < 0) {
		yk_fail(YOKE_ENOMEM, "pipeline: no memory for a loader");
		return NULL;
	}
	yoke_loader *l = yoke_loader_new(set, settings);
	free(settings);
	return l;
}

// Whether the field `size` holds the lines and samples of each scene x.
static bool holds_extents(const struct yoke_field *size, const struct yoke_field *x)
{
	return size->rank == 1 && size->dims[0] == 2 && x->rank == 3 &&
	       (x->multiple[0] || x->multiple[1]);
}

int yk_set_fields(const yoke_dataset *set, const char *call, struct yk_set_fields *to,
		  int64_t *channels)
{
	struct yoke_field field[64] = { { .size = sizeof *field } };
	to->count = yoke_dataset_fields(set, 64, field);
	to->x = to->weight = to->label = to->extent = -1;
	for (int i = 0; i < to->count && i < 64; i++) {
		int *which =
			!strcmp(field[i].name, "x") ? &to->x :
			!strcmp(field[i].name, "weight") ? &to->weight :
			!strcmp(field[i].name, "label") && field[i].dtype == yoke_u8 ? &to->label :
			!strcmp(field[i].name, "size") && field[i].dtype == yoke_i32 ? &to->extent :
			NULL;
		if (which)
			*which = i;
	}
	if (to->count > 64 || to->x < 0 || field[to->x].rank < 1 ||
	    (field[to->x].dtype != yoke_f32 && field[to->x].dtype != yoke_f64))
		return yk_fail(
			YOKE_EINVAL,
			"%s: the data set '%s' has no field x of dtype f32 or f64 and shape [..,channels]",
			call, yoke_dataset_name(set));
	if (to->extent >= 0 && !holds_extents(&field[to->extent], &field[to->x]))
		to->extent = -1;
	to->rank = field[to->x].rank;
	*channels = field[to->x].dims[to->rank - 1];
	return 0;
}

// ---- values ----

void yk_node_mark_inputs(const struct yk_node_input *in, bool *wanted)
{
	for (int k = 0; k < in->count; k++)
		if (in->from[k] >= 0)
			wanted[in->from[k]] = true;
}

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
		if (wanted[i] && !v->of[i])
			yk_node_mark_inputs(&p->node[i].in, wanted);
	for (int i = 0; i <= node; i++) {
		const struct yk_fit_node *n = &p->node[i];
		const struct yoke_node_call c = { .size = sizeof c,
						  .key = n->key,
						  .state = n->variable,
						  .epoch = v->epoch,
						  .training = v->training,
						  .weight = v->weight,
						  .extent = v->extent };
		if (!wanted[i] || v->of[i])
			continue;
		v->of[i] = n->type->forward(&c, yk_node_input(p, v, i));
		if (!v->of[i])
			return NULL;
	}
	return v->of[node];
}

yoke_tensor *yoke_pipeline_apply(yoke_pipeline *p, const char *node, yoke_tensor *x)
{
	if (yk_require(p, "pipeline") || yk_require(x, "tensor"))
		return NULL;
	int at = p->last;
	if (node && yk_node_find(p, node, false, "pipeline_apply", &at) < 0)
		return NULL;
	return yk_pipeline_value(p, at, x, NULL);
}

yoke_tensor *yk_pipeline_value(yoke_pipeline *p, int node, yoke_tensor *x, yoke_tensor *weight)
{
	struct yk_values v = { .stream = x, .weight = weight };
	for (int i = 0; i < p->nodes; i++)
		if (!p->node[i].fitted) {
			yk_fail(YOKE_EINVAL,
				"pipeline_apply: node %s has not been fitted; call yoke_pipeline_fit first",
				p->node[i].name);
			return NULL;
		}
	if (yk_pipeline_shape(p, yoke_rank(x) ? yoke_dim(x, -1) : 0) < 0 ||
	    yk_scenes_check(p, "pipeline_apply", yoke_rank(x)) < 0)
		return NULL;
	if (yoke_dtype(x) != yoke_f32)
		v.stream = yoke_cast(x, yoke_f32);
	return yk_node_value(p, &v, node);
}

yoke_tensor *yoke_pipeline_state(const yoke_pipeline *p, const char *node, const char *state)
{
	if (yk_require(p, "pipeline") || yk_require(node, "name of a node") ||
	    yk_require(state, "name of a state"))
		return NULL;
	const int at = yk_node_named(p, node);
	for (int s = 0; at >= 0 && s < p->node[at].type->states; s++)
		if (!strcmp(p->node[at].type->state[s], state) && p->node[at].variable[s])
			return p->node[at].variable[s];
	yk_fail(YOKE_ENOENT, "pipeline_state: node or state %s.%s does not exist", node, state);
	return NULL;
}

int yoke_pipeline_stats(const yoke_pipeline *p, struct yoke_pipeline_stats *to)
{
	const int err = yk_require(p, "pipeline");
	return err ? err :
		     yk_sized_write(to, sizeof p->stats, &p->stats, "pipeline_stats",
				    "yoke_pipeline_stats");
}
