// SPDX-License-Identifier: Apache-2.0
// Finds and opens an MPI module of plugins/mpi.
#include "config.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/param.h"
#include "comm/mpi_load.h"
#include "device/plugin.h"
#include "device/trusted.h"

YK_PARAM(mpi_setting, "dist.mpi", YK_STRING, "",
	 "MPI that ranks on several machines use, openmpi or mpich; empty: that of the launcher");

const char *const yk_mpi_names[YK_MPIS] = { "openmpi", "mpich" };

static const struct yk_mpi *open_file(const char *path)
{
	char why[400] = "not found", real[PATH_MAX];
	if (!realpath(path, real) || !yk_trusted_file(real, why, sizeof why)) {
		yk_fail(YOKE_EPERM, "%s: %s", path, why);
		return NULL;
	}
	// RTLD_GLOBAL: components that Open MPI loads itself need its library's symbols
	void *so = dlopen(real, RTLD_NOW | RTLD_GLOBAL);
	yk_mpi_fn *fn = so ? (yk_mpi_fn *)(uintptr_t)dlsym(so, "yoke_mpi") : NULL;
	const struct yk_mpi *t = fn ? fn() : NULL;
	if (!t)
		yk_fail(YOKE_EPLUGIN, "%s: %s", real, dlerror());
	else if (t->abi != YK_MPI_ABI)
		yk_fail(YOKE_EABI, "%s is of another version of yoke", real);
	return t && t->abi == YK_MPI_ABI ? t : NULL;
}

const struct yk_mpi *yk_mpi_open(const struct yk_started *p, const char **name)
{
	const char *requested = yk_param_str(&mpi_setting);
	char path[PATH_MAX], hint[200];
	bool known = !*requested;
	for (int i = 0; i < YK_MPIS; i++)
		known |= !strcmp(requested, yk_mpi_names[i]);
	if (!known) {
		yk_fail(YOKE_EINVAL, "dist.mpi '%s': %s", requested,
			yk_hint(requested, yk_mpi_names, YK_MPIS, hint, sizeof hint));
		return NULL;
	}
	requested = *requested ? requested : p->mpi;
	for (int i = 0; i < YK_MPIS; i++)
		if ((!*requested || !strcmp(requested, yk_mpi_names[i])) &&
		    yk_module_find(yk_mpi_names[i], path, sizeof path)) {
			*name = yk_mpi_names[i];
			return open_file(path);
		}
	if (!p->ranks) {
		yk_fail(YOKE_EPLUGIN, "%s reports that this is rank %u, but not the number of "
			"ranks, which only MPI knows; there is no module yoke_mpi_%s.so: build "
			"yoke with --with-mpi, or name its folder in "
			"YOKE_PLUGIN_PATH", p->launcher, p->rank,
			*requested ? requested : "NAME");
		return NULL;
	}
	yk_fail(YOKE_EPLUGIN,
		"%s started %u ranks, %u of them on this machine: to others MPI is needed, but there is no "
		"module yoke_mpi_%s.so; build yoke with --with-mpi, or name its folder in YOKE_PLUGIN_PATH",
		p->launcher, p->ranks, p->locals, *requested ? requested : "NAME");
	return NULL;
}

// ---- launchers that report only the rank ----

static const struct yk_mpi *_Atomic initialized; // MPI initialized here is finalized at exit

static void at_exit(void)
{
	const struct yk_mpi *m = atomic_exchange(&initialized, NULL);
	if (m)
		m->end();
}

void yk_mpi_leave(void)
{
	atomic_store(&initialized, NULL);
}

static int query(struct yk_started *p)
{
	const char *name;
	uint32_t rank = 0;
	const struct yk_mpi *m = yk_mpi_open(p, &name);
	if (!m)
		return yoke_error_code();
	if (m->begin(&rank, &p->ranks) < 0 || m->near(&p->local, &p->locals) < 0)
		return yk_fail(YOKE_ERANK, "%s reports that this is rank %u; MPI, which knows the "
			"number of ranks, cannot be initialized: %s",
			       p->launcher, p->rank, m->error());
	if (p->ranks > 1)
		p->mpi = name;
	atomic_store(&initialized, m);
	if (rank != p->rank)
		return yk_fail(
			YOKE_ERANK,
			"%s reports that this is rank %u, MPI reports rank %u: it is the launcher of another MPI; dist.mpi "
			"names the one to use",
			p->launcher, p->rank, rank);
	if (atexit(at_exit))
		return yk_fail(YOKE_ENOMEM, "no memory");
	return 0;
}

int yk_mpi_query(struct yk_started *p)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct yk_started found; // .variable is set after MPI was queried
	static int code;
	static char why[400];
	pthread_mutex_lock(&lock);
	if (!found.variable) {
		found = *p;
		code = query(&found);
		snprintf(why, sizeof why, "%s", code ? yoke_error() : "");
	}
	*p = found;
	const int e = code ? yk_fail(code, "%s", why) : 0;
	pthread_mutex_unlock(&lock);
	return e;
}
