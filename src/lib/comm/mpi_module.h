// SPDX-License-Identifier: Apache-2.0
// MPI, as a module gives it: plugins/mpi, built once with each MPI that is there.  The library links none.
// One thread at a time calls functions, and a single one where `serialized` says 0, but for `begin` and `near`, which another
// one may have called before, and `end`.  They return 0, or -1 with a line of error().
#ifndef YK_MPI_MODULE_H
#define YK_MPI_MODULE_H

#include <stddef.h>
#include <stdint.h>

enum { YK_MPI_ABI = 3 };

struct yk_mpi {
	uint32_t abi;
	int (*begin)(uint32_t *rank, uint32_t *ranks); // again: the same
	int (*serialized)(void); // 1: threads may call by turns
	int (*near)(uint32_t *local, uint32_t *locals); // the place among those of this machine
	int (*gather)(const void *mine, size_t bytes, void *all); // of all, by rank; waits
	// Neither waits; `done` says when memory may be used again.  A message is received as long as it was sent.
	int (*send)(const void *from, size_t bytes, uint32_t to, int tag, uint64_t *request);
	int (*take)(uint64_t message, void *to, size_t bytes, uint64_t *request);
	int (*probe)(uint32_t from, int tag, size_t *bytes, uint64_t *message); // 1: one is there, which `take` takes
	int (*done)(uint64_t *request); // 1: yes
	int (*sum)(const float *mine, float *all, size_t n); // MPI's own all_reduce, to measure beside
	void (*end)(void); // by all; not after begin found MPI at work already
	const char *(*error)(void);
};

typedef const struct yk_mpi *yk_mpi_fn(void); // the module's yoke_mpi

#endif
