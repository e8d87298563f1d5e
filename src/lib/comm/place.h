// SPDX-License-Identifier: Apache-2.0
// A process's place among those that were started together: what its launcher says in the environment.
#ifndef YK_PLACE_H
#define YK_PLACE_H

#include <stdint.h>
#include <sys/types.h>

extern const char yk_world_variable[]; // "rank ranks socket", of processes that yoke starts

struct yk_started {
	uint32_t rank, ranks;
	uint32_t local, locals; // among those of this machine, or of what dist.pretend calls one
	uint32_t pretend;       // ranks of such a one; 0: machines are as they are
	const char *launcher;   // "mpirun of Open MPI"; NULL: yoke itself
	const char *mpi;        // the MPI it belongs to, "openmpi"; "": any
	const char *variable;   // in which it says the rank
	char name[96];          // of the socket at which ranks of a machine meet
};

// 1: it is one of several; 0: it is alone; EINVAL: what says so is malformed, or no ranks can be as it says.
int yk_place_find(struct yk_started *);
// The process that started pid as a rank: the first one above it that has no such variable.  0: it cannot be found.
pid_t yk_place_starter(const struct yk_started *, pid_t pid);

#endif
