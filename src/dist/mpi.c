// SPDX-License-Identifier: Apache-2.0
// Which module of plugins/mpi is opened.
#include "config.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/param.h"
#include "device/plugin.h"
#include "dist/carrier.h"

YK_PARAM(mpi_setting, "dist.mpi", YK_STRING, "",
	 "MPI by whose module ranks on several machines talk, openmpi or mpich; empty: that of the launcher");

const char *const yk_mpi_names[YK_MPIS] = { "openmpi", "mpich" };

static const struct yk_mpi *open_file(const char *path)
{
	char why[400] = "not found", real[PATH_MAX];
	if (!realpath(path, real) || !yk_trusted_file(real, why, sizeof why)) {
		yk_fail(YOKE_EPERM, "%s: %s", path, why);
		return NULL;
	}
	// parts of Open MPI that it opens itself look for the symbols of its library
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
	const char *wish = yk_param_str(&mpi_setting);
	char path[PATH_MAX], hint[200];
	bool known = !*wish;
	for (int i = 0; i < YK_MPIS; i++)
		known |= !strcmp(wish, yk_mpi_names[i]);
	if (!known) {
		yk_fail(YOKE_EINVAL, "dist.mpi '%s': %s", wish, yk_hint(wish, yk_mpi_names, YK_MPIS, hint, sizeof hint));
		return NULL;
	}
	wish = *wish ? wish : p->mpi;
	for (int i = 0; i < YK_MPIS; i++)
		if ((!*wish || !strcmp(wish, yk_mpi_names[i])) && yk_module_find(yk_mpi_names[i], path, sizeof path)) {
			*name = yk_mpi_names[i];
			return open_file(path);
		}
	yk_fail(YOKE_EPLUGIN, "%s started %u ranks, %u of them on this machine: to others MPI is needed, but there is no "
		"module yoke_mpi_%s.so; build yoke with --with-mpi, or name its folder in YOKE_PLUGIN_PATH", p->launcher,
		p->ranks, p->locals, *wish ? wish : "NAME");
	return NULL;
}
