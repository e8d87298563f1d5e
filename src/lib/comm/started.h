// SPDX-License-Identifier: Apache-2.0
// A process's rank among processes that one launcher started together.
#ifndef YK_STARTED_H
#define YK_STARTED_H

#include <stdint.h>

struct yk_started {
	uint32_t rank, ranks;
	// on this machine, or in the group of ranks that dist.pretend treats as a machine
	uint32_t local, locals;
	uint32_t pretend; // dist.pretend: number of ranks treated as one machine; 0: real machines
	const char *launcher;   // "mpirun of Open MPI"; NULL: yoke itself
	const char *mpi;        // the launcher's MPI, e.g. "openmpi"; "": any
	const char *variable;   // the environment variable that holds the rank
	char name[96];          // of the socket at which the ranks of a machine meet
};

#endif
