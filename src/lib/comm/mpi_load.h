// SPDX-License-Identifier: Apache-2.0
// Opens the module of an MPI implementation. MPI is initialized at most once per process.
#ifndef YK_MPI_LOAD_H
#define YK_MPI_LOAD_H

#include "comm/mpi_module.h"
#include "comm/started.h"

// Opens an MPI module and returns its function table: the one that dist.mpi names, the launcher's,
// or any available one. Returns NULL with the error set on failure.
const struct yk_mpi *yk_mpi_open(const struct yk_started *, const char **name);
// Initializes MPI to query the number of ranks, in total and on this machine, for launchers that
// report only the rank. MPI then stays initialized until the process ends.
int yk_mpi_query(struct yk_started *);
// after a failure: skip MPI_Finalize, which could wait for ranks that never call it
void yk_mpi_leave(void);
// Names and paths of the known modules.
enum { YK_MPIS = 2 };
extern const char *const yk_mpi_names[YK_MPIS];

#endif
