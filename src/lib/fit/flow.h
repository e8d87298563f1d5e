// SPDX-License-Identifier: Apache-2.0
// Expresses each node's input as an affine function of a base for which statistics are collected.
//
// As long as all nodes before it are affine, the input is A b + t of a base b: the stream, or the
// result of a node that is not affine.  So a pass collects statistics of bases only, and nodes
// derive theirs as A mu + t and A S A'.  Extremes can be derived only through a diagonal A;
// otherwise the node's input becomes its own base.
#ifndef YK_FIT_FLOW_H
#define YK_FIT_FLOW_H

#include "fit/node.h"

// Bases: 0 is the stream, 1 + i the result of node i, YK_BASE_INPUT + i the input of node i.
enum { YK_BASE_INPUT = 1 + YK_NODES, YK_BASES = 1 + 2 * YK_NODES };

// Properties of a value that do not depend on its numbers.
struct yk_flow {
	int base;
	bool diagonal; // no row of A has more than one nonzero entry
};

struct yk_flows {
	struct yk_flow in[YK_NODES], out[YK_NODES]; // of each node's input and result
	int base[YK_NODES];      // the base from which its statistics are derived
	int wants[YK_BASES];     // statistics requested of a base, or'ed
};

void yk_flow_plan(struct yk_flows *, const yoke_pipeline *);
int64_t yk_flow_channels(const yoke_pipeline *, int base);
// Whether all nodes that compute the base are fitted.
bool yk_flow_computable(const yoke_pipeline *, int base);

// A [channels of a node's input, channels of its base] and t.
struct yk_affine {
	int64_t rows, cols;
	double *a, *t; // one allocation; free(a) frees both
};
// The input of a node in terms of its base; all nodes before it are fitted.
int yk_flow_affine(const struct yk_flows *, const yoke_pipeline *, int node, struct yk_affine *to);
// The result of an affine node in terms of its base.
int yk_flow_value(const struct yk_flows *, const yoke_pipeline *, int node, struct yk_affine *to);
yoke_tensor *yk_base_value(yoke_pipeline *, struct yk_values *, int base);
// Computes the statistics of A b + t; the covariance buffer needs space for one extra row of A at
// its end.
void yk_flow_derive(const yoke_statistic *, const struct yk_affine *, double *mean,
		    double *variance, double *covariance, double *min, double *max);

#endif
