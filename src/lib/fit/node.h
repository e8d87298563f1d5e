// SPDX-License-Identifier: Apache-2.0
// Node types by name, and the pipeline structures shared inside this directory.
#ifndef YK_FIT_NODE_H
#define YK_FIT_NODE_H

#include <stdbool.h>

#include "fit/statistic.h"
#include "fit/training.h"

enum { YK_NODES = 64, YK_NODE_INPUTS = 16 };

struct yk_node_input {
	int from[YK_NODE_INPUTS]; // source nodes, -1: the stream; several are concatenated
	int count;
};

struct yk_fit_node {
	char *name;
	const struct yoke_node_type *type;
	double key[YOKE_NODE_KEYS];
	double *list;   // values of the list-valued key, whose length another key gives; NULL: none
	struct yk_node_input in;
	bool fitted;
	unsigned train; // bit s: state s is trainable
	int64_t channels_in, channels; // known once the stream's channel count is known
	double added, variance; // eps added to each variance of the input, NAN: none; mean variance
	double *state[YOKE_NODE_STATES];      // rounded to f32, like the variables
	yoke_tensor *variable[YOKE_NODE_STATES];
};

struct yoke_pipeline {
	int nodes;               // topologically sorted: each node follows its inputs
	struct yk_fit_node node[YK_NODES];
	int last;                // the node whose result is the pipeline's
	bool each;               // passes=each
	struct yk_training plan; // of phase 2
	char *config;            // all settings in force, as JSON
	uint64_t seed;
	int64_t channels;        // of the stream; 0: not known yet
	struct yoke_pipeline_stats stats;
};

// The amount that the keys eps and relative add to each variance, for the log; NAN for types that
// add nothing.
double yk_node_added(const struct yoke_node_type *, const struct yoke_node_fit *, double *mean);

static inline bool yk_key_is_list(const struct yoke_node_key *k)
{
	return k->words && *k->words == '[';
}

// NULL: unknown; the error suggests the nearest name.
const struct yoke_node_type *yk_node_type(const char *name, const char *what);
extern const struct yoke_node_type yk_node_types[];
extern const int yk_node_type_count;

// Marks the nodes that an input reads.
void yk_node_mark_inputs(const struct yk_node_input *, bool *wanted);
// Index of the node of that name; -1: none.
int yk_node_named(const yoke_pipeline *, const char *name);
// As above, and if `stream` -1 for "input"; EINVAL names `what` and the nearest name.
int yk_node_find(const yoke_pipeline *, const char *name, bool stream, const char *what, int *to);
int64_t yk_state_count(const struct yk_fit_node *, int state, int *rank, int64_t *dims);
// Computes the channels of all nodes from the stream's, and allocates their states.
int yk_pipeline_shape(yoke_pipeline *, int64_t channels);
// Copies the states, rounded to f32, to the variables.
int yk_node_settle(struct yk_fit_node *);

// Indices of a data set's fields x, weight, label and extent (i32 [2], the size of scenes x of
// varying size); -1: absent.  EINVAL, naming the call: there is no x.
struct yk_set_fields {
	int count, x, weight, label, extent;
	int rank; // rank of x in a sample
};
int yk_set_fields(const yoke_dataset *, const char *call, struct yk_set_fields *,
		  int64_t *channels);
// Validates training options for a pipeline, whether it is fitted or not.
int yk_training_check(yoke_pipeline *, const struct yoke_training *);
// Whether the value of a node depends on whole scenes.
bool yk_node_spatial(const yoke_pipeline *, int node);
// EINVAL, naming the call: a node is spatial, but the x of a sample, of that rank, is not a scene.
int yk_scenes_check(const yoke_pipeline *, const char *call, int rank);
// Whether channel k of the node's result depends only on band k of the stream.
bool yk_node_keeps_bands(const yoke_pipeline *, int node);
double yk_select_temperature(int64_t epoch);
// A loader that prefetches only one batch, since batches of cubes are large.  Its settings are
// `defaults`, overridden by `caller` (NULL: none), overridden by `overrides`.
yoke_loader *yk_fit_loader(yoke_dataset *, const char *defaults, const char *caller,
			   const char *overrides);

// The values of a batch: the stream, and each node's value, computed on first use.
struct yk_values {
	yoke_tensor *stream, *of[YK_NODES];
	yoke_tensor *weight, *extent; // of yoke_node_call, or NULL
	int64_t epoch;
	bool training;
};
yoke_tensor *yk_node_input(yoke_pipeline *, struct yk_values *, int node);
yoke_tensor *yk_node_value(yoke_pipeline *, struct yk_values *, int node);
// The value of a node at inference, for x [..,C] and weights [..] or NULL.
yoke_tensor *yk_pipeline_value(yoke_pipeline *, int node, yoke_tensor *x, yoke_tensor *weight);

// The node type local_rx (local_rx_node.c).
int64_t yk_local_rx_channels(const double *key, int64_t in, char *why, size_t why_size);
yoke_tensor *yk_local_rx_forward(const struct yoke_node_call *, yoke_tensor *x);

#endif
