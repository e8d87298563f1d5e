// SPDX-License-Identifier: Apache-2.0
// A process's rank among processes that were started together, as given by its launcher's
// environment variables.
#ifndef YK_PLACE_H
#define YK_PLACE_H

#include <stdint.h>
#include <sys/types.h>

// holds "rank ranks socket"; set for processes that yoke itself starts
extern const char yk_world_variable[];

struct yk_started {
	uint32_t rank, ranks;
	// on this machine, or on the group of ranks that dist.pretend treats as a machine
	uint32_t local, locals;
	uint32_t pretend; // dist.pretend: number of ranks treated as one machine; 0: real machines
	const char *launcher;   // "mpirun of Open MPI"; NULL: yoke itself
	const char *mpi;        // the launcher's MPI, e.g. "openmpi"; "": any
	const char *variable;   // the environment variable that holds the rank
	char name[96];          // of the socket at which the ranks of a machine meet
};

// Returns 1 for a rank among several, 0 for a single process, EINVAL if the variables are malformed
// or contradictory.
int yk_place_find(struct yk_started *);
// Returns the process that started rank `pid`: its nearest ancestor without the launcher's
// variable. 0 if not found.
pid_t yk_place_starter(const struct yk_started *, pid_t pid);

#endif
