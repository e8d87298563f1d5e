// SPDX-License-Identifier: Apache-2.0
// Layout of ranks: N = D S P ranks are D data ranks, each of S pipeline stages, each of P tensor
// ranks; rank = (d S + s) P + p. Data ranks process different windows of a step, stages have
// different layers, tensor ranks different shards of each layer's parameters.
#ifndef YK_GRID_H
#define YK_GRID_H

#include "config/conf.h"
#include "yoke-dist.h"

struct yk_grid {
	int64_t data, stages, tensor; // D, S, P
	int64_t d, s, p;              // this rank's coordinates
	yoke_group *all;              // NULL: there is one rank
	// ranks that differ from this one only in d, s or p, ordered by it; NULL: there are none
	yoke_group *over_data, *over_stages, *over_tensor;
	yoke_group *near; // all ranks on this machine; NULL: only this one
	// on the first and last stage: both of them; NULL: another stage, or only one
	yoke_group *ends;
};

// S P; N is a multiple of it.
int64_t yk_grid_unit(const struct yk_config *);
// D; 1 while ranks is auto.
int64_t yk_grid_data(const struct yk_config *);
// Called by all ranks: computes the current context's coordinates and joins its groups. In a dry
// context no other ranks exist, and the stage is the one already set in the grid.
int yk_grid_join(const struct yk_config *, struct yk_grid *);
uint64_t yk_grid_sent(const struct yk_grid *); // bytes of tensors sent in any of the groups
void yk_grid_leave(struct yk_grid *); // a zero-initialized grid is allowed

#endif
