// SPDX-License-Identifier: Apache-2.0
// Node types by name, and the pipeline structures shared inside this directory.
#ifndef YK_FIT_NODE_H
#define YK_FIT_NODE_H

#include <stdbool.h>

#include "fit/statistic.h"
#include "fit/train.h"

enum { YK_NODES = 64, YK_NODE_INPUTS = 16 };

struct yk_node_input {
	int from[YK_NODE_INPUTS]; // nodes, -1: the stream; several are concatenated
	int count;
};

struct yk_fit_node {
	char *name;
	const struct yoke_node_type *type;
	double key[YOKE_NODE_KEYS];
	double *list;   // the numbers of the key that is a list, as many as the key says; NULL: there is none
	struct yk_node_input in;
	bool fitted;
	unsigned train; // bit s: training changes state s
	int64_t channels_in, channels; // known once the stream's are
	double added, variance; // what its eps added to each variance of its input, NAN: nothing; their mean
	double *state[YOKE_NODE_STATES];      // rounded to f32, as the variables are
	yoke_tensor *variable[YOKE_NODE_STATES];
};

struct yoke_pipeline {
	int nodes;               // in an order in which each stands behind what it reads
	struct yk_fit_node node[YK_NODES];
	int last;                // its result is the pipeline's
	bool each;               // passes=each
	struct yk_training plan; // of phase 2
	char *config;            // all keys that are in force, as JSON
	uint64_t seed;
	int64_t channels;        // of the stream; 0: not known yet
	struct yoke_pipeline_stats stats;
};

// What the keys eps and relative add to each variance, which is logged; NAN of types that add nothing.
double yk_node_added(const struct yoke_node_type *, const struct yoke_node_fit *, double *mean);

static inline bool yk_key_is_list(const struct yoke_node_key *k)
{
	return k->words && *k->words == '[';
}

// NULL with the nearest name.
const struct yoke_node_type *yk_node_type(const char *name, const char *what);
extern const struct yoke_node_type yk_node_types[];
extern const int yk_node_type_count;

// The place of the node of that name; -1.
int yk_node_named(const yoke_pipeline *, const char *name);
// The same, or with stream -1 for "input"; EINVAL, of what, names the nearest.
int yk_node_find(const yoke_pipeline *, const char *name, bool stream, const char *what, int *to);
int64_t yk_state_count(const struct yk_fit_node *, int state, int *rank, int64_t *dims);
// The channels of all nodes for a stream of so many; room for their states.
int yk_pipeline_shape(yoke_pipeline *, int64_t channels);
// Gives the states, rounded, to the variables.
int yk_node_settle(struct yk_fit_node *);

// Which of a set's fields are x, weight, label and, as extent, size i32 [2] of scenes x whose size varies; -1: it has none.  EINVAL, of
// that call: there is no x.
struct yk_set_fields {
	int count, x, weight, label, extent;
	int rank; // of x in a sample
};
int yk_set_fields(const yoke_dataset *, const char *call, struct yk_set_fields *, int64_t *channels);
// What is wrong with training a pipeline so, whether it is fitted or not.
int yk_training_check(yoke_pipeline *, const struct yoke_training *);
// Does the value of a node depend on whole scenes?
bool yk_node_spatial(const yoke_pipeline *, int node);
// EINVAL, of that call: a node is spatial, and x, of that rank in a sample, is no scene.
int yk_scenes_check(const yoke_pipeline *, const char *call, int rank);
// Is channel k of the node's result made of band k of the stream alone?
bool yk_node_keeps_bands(const yoke_pipeline *, int node);
double yk_select_temperature(int64_t epoch);
// A loader, one batch ahead of the one in use, since those of cubes are large.  Settings `before` the caller's, theirs (NULL: none), hold
// where these say nothing; those behind always.
yoke_loader *yk_fit_loader(yoke_dataset *, const char *before, const char *theirs, const char *behind);

// The values of a batch: the stream's, and of each node once it is asked for.
struct yk_values {
	yoke_tensor *stream, *of[YK_NODES];
	yoke_tensor *weight, *extent; // of yoke_node_call, or NULL
	int64_t epoch;
	bool training;
};
yoke_tensor *yk_node_input(yoke_pipeline *, struct yk_values *, int node);
yoke_tensor *yk_node_value(yoke_pipeline *, struct yk_values *, int node);
// The value of a node, in use, for x [..,C] and weights [..], or NULL.
yoke_tensor *yk_pipeline_value(yoke_pipeline *, int node, yoke_tensor *x, yoke_tensor *weight);

// The type local_rx (local_rx_node.c).
int64_t yk_local_rx_channels(const double *key, int64_t in, char *why, size_t why_size);
yoke_tensor *yk_local_rx_forward(const struct yoke_node_call *, yoke_tensor *x);

#endif
