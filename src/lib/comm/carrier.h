// SPDX-License-Identifier: Apache-2.0
// Carries link traffic between machines over MPI: bytes that ranks of this process send are taken
// out of their links, and received bytes are put into links, so collectives only ever see links.
// The thread that advances the queue's jobs calls MPI; if the MPI library does not provide
// MPI_THREAD_SERIALIZED, only the queue's own thread does.
#ifndef YK_CARRIER_H
#define YK_CARRIER_H

#include "comm/mpi_module.h"
#include "comm/ranks.h"
#include "comm/started.h"

// A group with ranks on other machines, as seen by one of its ranks.
struct yk_carrier_route;
struct yk_carrier;

// Opens MPI on the queue's thread and waits for it. `first` is the first rank of this machine.
// Errors: ERANK, EPLUGIN.
int yk_carrier_new(struct yk_ranks *, const struct yk_started *, uint32_t first);
// Adds a group whose member i is rank world[i] of the world. Sets rendezvous->route and
// rendezvous->node.
int yk_carrier_add(struct yk_carrier *, struct yk_rendezvous *, uint32_t rank,
		   const uint32_t *world, uint32_t tag);
// Call with the queue's `drive` locked. Returns true if anything was sent or received.
bool yk_carrier_step(struct yk_carrier *);
// Sends and receives all pending messages, then frees the carrier.
void yk_carrier_end(struct yk_carrier *);

bool yk_carrier_by_turns(const struct yk_carrier *); // any thread may call yk_carrier_step
bool yk_carrier_requested(struct yk_carrier *); // not open: the queue's thread has to call
void yk_carrier_open(struct yk_carrier *);  // this, which opens MPI

// Whether the member is on another machine.
bool yk_route_away(const struct yk_carrier_route *, uint32_t member);
// Whether the member on another machine will send nothing more (collectives, or point-to-point if
// `sends`).
bool yk_route_ended(const struct yk_carrier_route *, bool sends, uint32_t member);
// the member's rank in the world
uint32_t yk_route_world(const struct yk_carrier_route *, uint32_t member);
uint32_t yk_route_tag(const struct yk_carrier_route *); // this and all higher tags are unused
void yk_route_leave(struct yk_carrier_route *); // this process no longer uses the group

#endif
