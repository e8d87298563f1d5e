// SPDX-License-Identifier: Apache-2.0
// The MPI transport: messages between ranks on different machines.
#include "config.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/mpi_module.h"

_Static_assert(sizeof(MPI_Request) <= sizeof(uint64_t) && sizeof(MPI_Message) <= sizeof(uint64_t),
	       "they are passed as such");

// a private communicator, so that tags do not collide with the application's
static MPI_Comm comm = MPI_COMM_NULL;
static int began;                     // MPI was initialized by this plugin
static char why[MPI_MAX_ERROR_STRING + 64];

static int check(int code, const char *call)
{
	char text[MPI_MAX_ERROR_STRING];
	int n = 0;
	if (code == MPI_SUCCESS)
		return 0;
	if (MPI_Error_string(code, text, &n) != MPI_SUCCESS)
		n = 0;
	snprintf(why, sizeof why, "%s: %.*s", call, n, text);
	for (char *c = why; *c; c++)
		*c = *c == '\n' ? ' ' : *c;
	return -1;
}

static int begin(uint32_t *rank, uint32_t *ranks)
{
	int on = 0, level, r = 0, n = 0;
	if (comm == MPI_COMM_NULL) {
		if (check(MPI_Initialized(&on), "MPI_Initialized") < 0)
			return -1;
		if (!on && check(MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level),
				 "MPI_Init_thread") < 0)
			return -1;
		began = !on;
		if (check(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "MPI_Comm_dup") < 0 ||
		    check(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN),
			  "MPI_Comm_set_errhandler") < 0)
			return -1;
	}
	if (check(MPI_Comm_rank(comm, &r), "MPI_Comm_rank") < 0 ||
	    check(MPI_Comm_size(comm, &n), "MPI_Comm_size") < 0)
		return -1;
	*rank = (uint32_t)r;
	*ranks = (uint32_t)n;
	return 0;
}

static int serialized(void)
{
	int level = MPI_THREAD_SINGLE;
	return MPI_Query_thread(&level) == MPI_SUCCESS && level >= MPI_THREAD_SERIALIZED;
}

static int ranks_on_machine(uint32_t *local, uint32_t *locals)
{
	MPI_Comm here = MPI_COMM_NULL;
	int r = 0, n = 0;
	if (check(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here),
		  "MPI_Comm_split_type") < 0 ||
	    check(MPI_Comm_rank(here, &r), "MPI_Comm_rank") < 0 ||
	    check(MPI_Comm_size(here, &n), "MPI_Comm_size") < 0)
		return -1;
	*local = (uint32_t)r;
	*locals = (uint32_t)n;
	return check(MPI_Comm_free(&here), "MPI_Comm_free");
}

static int gather(const void *mine, size_t bytes, void *all)
{
	return check(MPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, comm),
		     "MPI_Allgather");
}

static int keep(int code, const char *call, MPI_Request request, uint64_t *to)
{
	*to = 0;
	memcpy(to, &request, sizeof request);
	return check(code, call);
}

static int send_bytes(const void *from, size_t bytes, uint32_t to, int tag, uint64_t *request)
{
	MPI_Request q = MPI_REQUEST_NULL;
	const int code = MPI_Isend(from, (int)bytes, MPI_BYTE, (int)to, tag, comm, &q);
	return keep(code, "MPI_Isend", q, request);
}

static int take(uint64_t message, void *to, size_t bytes, uint64_t *request)
{
	MPI_Request q = MPI_REQUEST_NULL;
	MPI_Message m;
	memcpy(&m, &message, sizeof m);
	const int code = MPI_Imrecv(to, (int)bytes, MPI_BYTE, &m, &q);
	return keep(code, "MPI_Imrecv", q, request);
}

static int probe(uint32_t from, int tag, size_t *bytes, uint64_t *message)
{
	int there = 0, n = 0;
	MPI_Message m = MPI_MESSAGE_NULL;
	MPI_Status s;
	if (check(MPI_Improbe((int)from, tag, comm, &there, &m, &s), "MPI_Improbe") < 0)
		return -1;
	if (!there)
		return 0;
	*message = 0;
	memcpy(message, &m, sizeof m);
	if (check(MPI_Get_count(&s, MPI_BYTE, &n), "MPI_Get_count") < 0)
		return -1;
	*bytes = (size_t)n;
	return 1;
}

static int done(uint64_t *request)
{
	int is = 0;
	MPI_Request q;
	memcpy(&q, request, sizeof q);
	if (check(MPI_Test(&q, &is, MPI_STATUS_IGNORE), "MPI_Test") < 0)
		return -1;
	memcpy(request, &q, sizeof q);
	return is != 0;
}

static int sum(const float *mine, float *all, size_t n)
{
	return check(MPI_Allreduce(mine, all, (int)n, MPI_FLOAT, MPI_SUM, comm), "MPI_Allreduce");
}

static void end(void)
{
	if (comm == MPI_COMM_NULL)
		return;
	MPI_Comm_free(&comm);
	if (began)
		MPI_Finalize();
}

static const char *error(void)
{
	return why;
}

__attribute__((visibility("default"))) yk_mpi_fn yoke_mpi;
const struct yk_mpi *yoke_mpi(void)
{
	static const struct yk_mpi table = {
		.abi = YK_MPI_ABI,
		.begin = begin,
		.serialized = serialized,
		.near = ranks_on_machine,
		.gather = gather,
		.send = send_bytes,
		.take = take,
		.probe = probe,
		.done = done,
		.sum = sum,
		.end = end,
		.error = error,
	};
	// The polling loop sleeps between two probes. With more ranks than processors, Open MPI
	// also yields at each probe, to every other runnable thread, which delays the ranks.
	setenv("OMPI_MCA_mpi_yield_when_idle", "0", 0);
	return &table;
}
