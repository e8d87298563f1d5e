// SPDX-License-Identifier: Apache-2.0
// Where ranks stand: N = D S P of them are D data ranks, each of S stages of P tensor ranks; rank = (d S + s) P + p.
// Data ranks have other parts of a step's windows, stages other layers, tensor ranks other cuts of each layer's
// parameters.
#ifndef YK_GRID_H
#define YK_GRID_H

#include "train/conf.h"
#include "yoke-dist.h"

struct yk_grid {
	int64_t data, stages, tensor; // D, S, P
	int64_t d, s, p;              // this rank's place
	yoke_group *all;              // NULL: there is one rank
	// Those that differ from this one in d, s or p alone, in its order; NULL: there are none.
	yoke_group *over_data, *over_stages, *over_tensor;
	yoke_group *near; // those of all on this machine; NULL: it is alone there
	yoke_group *ends; // of a first or last stage both of them; NULL: it is another, or there is one
};

// EINVAL: keys that give no such layout, or do not go with it.
int yk_grid_check(const struct yk_config *);
// S P: N is a multiple of it.
int64_t yk_grid_unit(const struct yk_config *);
// D; 1 while ranks is auto.
int64_t yk_grid_data(const struct yk_config *);
// By all ranks: the current context's place among them, and its groups.  In a dry context the others are not there, and
// the stage is that of the grid which it fills.
int yk_grid_join(const struct yk_config *, struct yk_grid *);
uint64_t yk_grid_sent(const struct yk_grid *); // bytes of tensors, to others of any of the groups
void yk_grid_leave(struct yk_grid *); // all zeros is fine

#endif
