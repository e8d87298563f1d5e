// SPDX-License-Identifier: Apache-2.0
// Interface of an MPI module (plugins/mpi), which is built once for each installed MPI; the library
// itself links none. Only one thread calls at a time. If `serialized` returns 0, all calls come
// from one thread, except `begin` and `near`, which another thread may have called earlier, and
// `end`. Functions return 0, or -1 with a message in error().
#ifndef YK_MPI_MODULE_H
#define YK_MPI_MODULE_H

#include <stddef.h>
#include <stdint.h>

enum { YK_MPI_ABI = 3 };

struct yk_mpi {
	uint32_t abi;
	int (*begin)(uint32_t *rank, uint32_t *ranks); // may be called again; returns the same
	int (*serialized)(void); // 1: different threads may call, one at a time
	int (*near)(uint32_t *local, uint32_t *locals); // rank and number of ranks on this machine
	// all-gather in rank order; blocks
	int (*gather)(const void *mine, size_t bytes, void *all);
	// Non-blocking; the buffer may be reused once `done` returns 1. A message is received with
	// the length it was sent with.
	int (*send)(const void *from, size_t bytes, uint32_t to, int tag, uint64_t *request);
	int (*take)(uint64_t message, void *to, size_t bytes, uint64_t *request);
	// 1: a message is available; receive it with `take`
	int (*probe)(uint32_t from, int tag, size_t *bytes, uint64_t *message);
	int (*done)(uint64_t *request); // 1: complete
	int (*sum)(const float *mine, float *all, size_t n); // MPI's own all_reduce, for comparison
	// all ranks call it; no effect if MPI was already initialized before begin
	void (*end)(void);
	const char *(*error)(void);
};

typedef const struct yk_mpi *yk_mpi_fn(void); // the module exports it as yoke_mpi

#endif
