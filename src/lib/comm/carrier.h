// SPDX-License-Identifier: Apache-2.0
// The carrier: takes what ranks of this process send to ranks on other machines out of their links, and puts what comes
// from there into links, by MPI.  So a collective knows links alone.  Whoever moves the queue's jobs on calls MPI,
// and where it takes no turns of threads that is the queue's thread alone.
#ifndef YK_CARRIER_H
#define YK_CARRIER_H

#include "comm/mpi_module.h"
#include "comm/place.h"
#include "comm/ranks.h"

// A group with ranks on other machines, as one of its ranks has it.
struct yk_route;
struct yk_carrier;

// Opens MPI, on the queue's thread, which is waited for; `first`: the first rank of this machine.  ERANK, EPLUGIN.
int yk_carrier_new(struct yk_ranks *, const struct yk_started *, uint32_t first);
// For a rendezvous of so many members, ranks of the world `world`: sets rendezvous->route and rendezvous->node.
int yk_carrier_add(struct yk_carrier *, struct yk_rendezvous *, uint32_t rank, const uint32_t *world, uint32_t tag);
// With the queue's `drive`.  True: something went or came.
bool yk_carrier_step(struct yk_carrier *);
// Sends and receives what is left, and frees the carrier.
void yk_carrier_end(struct yk_carrier *);

bool yk_carrier_by_turns(const struct yk_carrier *); // any thread may step
bool yk_carrier_asked(struct yk_carrier *); // .. to open MPI: then
void yk_carrier_open(struct yk_carrier *);  // .. that thread does

// Is a member on another machine?
bool yk_route_away(const struct yk_route *, uint32_t member);
// .. and will send nothing more, of collectives or sends?
bool yk_route_ended(const struct yk_route *, bool sends, uint32_t member);
uint32_t yk_route_world(const struct yk_route *, uint32_t member); // its rank in the world
uint32_t yk_route_tag(const struct yk_route *);                     // tags from there on are free
void yk_route_leave(struct yk_route *); // the group is used no more by this process

// ---- mpi.c ----

// The table of a module: that of dist.mpi, of the launcher, or any.  NULL: yoke_error says why.
const struct yk_mpi *yk_mpi_open(const struct yk_started *, const char **name);
// Asks MPI, which begins then and ends with the process, what a launcher that says the rank alone does not: how many ranks
// there are, here and in all.
int yk_mpi_ask(struct yk_started *);
void yk_mpi_leave(void); // a rank failed: others may not come to MPI's end
// Modules that there are, their names and paths.
enum { YK_MPIS = 2 };
extern const char *const yk_mpi_names[YK_MPIS];

#endif
