// SPDX-License-Identifier: Apache-2.0
// Detects launchers by the environment variables they set for each process: Open MPI, PMI (MPICH),
// Slurm, torchrun, and PMIx, which gives only the rank, so that MPI is queried for the rest.
#include "config.h"

#include "comm/launch_env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/param.h"
#include "base/system.h"
#include "comm/mpi_load.h"
#include "comm/ranks.h"

YK_PARAM(pretend_setting, "dist.pretend", YK_INT, "0",
	 "under a launcher: each group of this many ranks is treated as a machine, between which "
		"data is sent over MPI; 0: the actual machines",
	 .min = 0, .max = YK_MAX_RANKS, .debug = true);

const char yk_world_variable[] = "YOKE_RANKS_WORLD";

struct launcher {
	const char *name, *mpi;
	const char *ranks, *rank;           // names of environment variables
	const char *locals, *local;         // for ranks on this machine
	const char *also_locals, *also_local; // Slurm's, used if those are not set
};

static const struct launcher launchers[] = {
	{ "mpirun of Open MPI", "openmpi", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK",
	  "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", NULL, NULL },
	{ "mpirun of MPICH", "mpich", "PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS", "MPI_LOCALRANKID",
	  "SLURM_STEP_TASKS_PER_NODE", "SLURM_LOCALID" },
	{ "srun", "", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_STEP_TASKS_PER_NODE",
	  "SLURM_LOCALID", NULL, NULL },
	{ "torchrun", NULL, "WORLD_SIZE", "RANK", "LOCAL_WORLD_SIZE", "LOCAL_RANK", NULL, NULL },
};

static bool number(const char *text, uint32_t *to)
{
	char *end;
	if (!text || *text < '0' || *text > '9')
		return false;
	const unsigned long n = strtoul(text, &end, 10);
	*to = (uint32_t)n;
	return !*end && n < 1u << 20;
}

// Number of tasks on node `node` in Slurm's notation "2(x3),1" (three nodes with 2 tasks and one
// with 1).
static bool tasks_of(const char *text, uint32_t node, uint32_t *to)
{
	while (text && *text) {
		unsigned n, times = 1;
		int used = 0;
		if (sscanf(text, "%7u%n", &n, &used) != 1)
			return false;
		text += used;
		used = 0;
		if (sscanf(text, "(x%7u)%n", &times, &used) == 1 && used)
			text += used;
		if (node < times) {
			*to = n;
			return true;
		}
		node -= times;
		if (*text && *text++ != ',')
			return false;
	}
	return false;
}

static bool locals_of(const char *name, uint32_t *to)
{
	uint32_t node = 0;
	if (strcmp(name, "SLURM_STEP_TASKS_PER_NODE"))
		return number(getenv(name), to);
	return number(getenv("SLURM_NODEID"), &node) && tasks_of(getenv(name), node, to);
}

// Reads the variables of one launcher. 0: they are not set, or the process is alone.
static int query(const struct launcher *l, struct yk_started *to)
{
	if (!number(getenv(l->ranks), &to->ranks) || to->ranks < 2 || !getenv(l->rank))
		return 0;
	if (l->mpi == NULL && (!getenv(l->locals) || !getenv(l->local)))
		return 0; // other software sets variables of these names too
	const bool also = !getenv(l->local) && l->also_local;
	to->launcher = l->name;
	to->mpi = l->mpi && !*l->mpi && getenv("PMIX_RANK") ? "openmpi" : l->mpi;
	to->variable = l->rank;
	if (to->ranks > YK_MAX_RANKS)
		return yk_fail(YOKE_EINVAL, "%s started %u ranks; 1 to %d are possible", l->name,
			       to->ranks, YK_MAX_RANKS);
	if (!number(getenv(l->rank), &to->rank) || to->rank >= to->ranks)
		return yk_fail(YOKE_EINVAL, "%s is '%.40s', of %s %u: no rank", l->rank,
			       getenv(l->rank), l->ranks, to->ranks);
	if (!locals_of(also ? l->also_locals : l->locals, &to->locals) ||
	    !number(getenv(also ? l->also_local : l->local), &to->local) ||
	    to->local >= to->locals || to->locals > to->ranks)
		return yk_fail(
			YOKE_EINVAL,
			"%s set %s and %s to values that are impossible with %u ranks on this machine",
			l->name, also ? l->also_locals : l->locals, also ? l->also_local : l->local,
			to->ranks);
	return 1;
}

// Launchers that set only PMIX_RANK: MPI reports the number of ranks.
static int query_mpi(struct yk_started *to)
{
	const char *rank = getenv("PMIX_RANK");
	if (!rank || !getenv("PMIX_NAMESPACE"))
		return 0;
	for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
		if (launchers[i].mpi && getenv(launchers[i].ranks))
			return 0;
	*to = (struct yk_started){ .launcher = "a launcher of PMIx",
				   .mpi = "",
				   .variable = "PMIX_RANK" };
	if (!number(rank, &to->rank))
		return yk_fail(YOKE_EINVAL, "PMIX_RANK is '%.40s': no rank", rank);
	const int e = yk_mpi_query(to);
	if (e == 0 && to->ranks > YK_MAX_RANKS)
		return yk_fail(YOKE_EINVAL, "%s started %u ranks; 1 to %d are possible",
			       to->launcher, to->ranks, YK_MAX_RANKS);
	return e ? e : to->ranks > 1;
}

// Sets a socket name that only ranks of the same machine and the same start have in common.
static int set_socket_name(struct yk_started *p)
{
	const char *again = getenv("TORCHELASTIC_RESTART_COUNT");
	uint32_t restart = 0;
	const pid_t starter = yk_started_parent(p, getpid());
	if (again)
		number(again, &restart);
	if (!starter)
		return yk_fail(
			YOKE_ERANK,
			"%s is set, but the process that started this one cannot be found in /proc",
			p->variable);
	p->pretend = (uint32_t)yk_param_int(&pretend_setting);
	if (p->pretend) {
		const uint32_t first = p->rank - p->rank % p->pretend, left = p->ranks - first;
		p->local = p->rank % p->pretend;
		p->locals = left < p->pretend ? left : p->pretend;
	}
	snprintf(p->name, sizeof p->name, "yoke-%u-%d-%u-%u", (unsigned)geteuid(), (int)starter,
		 restart, p->pretend ? p->rank / p->pretend : 0);
	return 1;
}

int yk_started_find(struct yk_started *to)
{
	const char *text = getenv(yk_world_variable);
	char end;
	*to = (struct yk_started){ .mpi = NULL };
	if (text && (sscanf(text, "%u %u %95s%c", &to->rank, &to->ranks, to->name, &end) != 3 ||
		     to->rank >= to->ranks || to->ranks > YK_MAX_RANKS))
		return yk_fail(YOKE_EINVAL, "%s is '%.100s', not what yoke_group_spawn sets",
			       yk_world_variable, text);
	if (text) {
		to->local = to->rank;
		to->locals = to->ranks;
		return 1;
	}
	for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
		const int found = query(&launchers[i], to);
		if (found)
			return found < 0 ? found : set_socket_name(to);
	}
	const int found = query_mpi(to);
	return found > 0 ? set_socket_name(to) : found;
}

// ---- process that started the ranks ----

pid_t yk_started_parent(const struct yk_started *p, pid_t pid)
{
	for (int up = 0; up < 64 && pid; up++)
		if ((pid = yk_process_parent(pid)) && !yk_process_has_variable(pid, p->variable))
			return pid;
	return 0;
}
