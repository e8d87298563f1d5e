// SPDX-License-Identifier: Apache-2.0
// Counts packages, cores and memory nodes with hwloc.
#include "config.h"

#include "observe/topology.h"

#include <math.h>
#include <pthread.h>
#include <unistd.h>

#include "observe/sysfs.h"

#if HAVE_HWLOC
#include <hwloc.h>

// hwloc's plugins load GPU libraries, so they are disabled for a count, as in
// backends/cpu/host/cores.c, which cannot share code with the core. Changing the environment
// briefly does not disturb readers in other threads.
static int init(hwloc_topology_t *to)
{
	static char none[] = "HWLOC_PLUGINS_PATH=/dev/null", **last;
	char **former = environ;
	size_t n = 0, kept = 0;
	while (former && former[n])
		n++;
	char **other = malloc((n + 2) * sizeof *other);
	if (!other)
		return -1;
	for (size_t i = 0; i < n; i++)
		if (strncmp(former[i], none, strcspn(none, "=") + 1))
			other[kept++] = former[i];
	other[kept++] = none;
	other[kept] = NULL;
	environ = other;
	const int e = hwloc_topology_init(to);
	environ = former;
	free(last);
	last = other;
#if HWLOC_API_VERSION >= 0x00020100
	if (!e && access("/sys/devices/system/cpu", R_OK) &&
	    !getenv("HWLOC_FSROOT")) // it would only complain
		hwloc_topology_set_components(*to, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST,
					      "linux");
#endif
	return e;
}

static double objects(hwloc_topology_t t, hwloc_obj_type_t type)
{
	const int n = hwloc_get_nbobjs_by_type(t, type);
	return n > 0 ? n : NAN;
}

static int load(hwloc_topology_t t)
{
	unsigned long flags = HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED;
	char path[2 * YK_SYS_PATH];
#if HWLOC_API_VERSION >= 0x00020500
	flags |= HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING; // the calling thread is the application's
#endif
	if (yk_sys_recorded("topology.xml", path, sizeof path) && hwloc_topology_set_xml(t, path))
		return -1;
	return hwloc_topology_set_flags(t, flags) ? -1 : hwloc_topology_load(t);
}
#endif

void yk_topology_count(struct yk_topology *to)
{
	*to = (struct yk_topology){ NAN, NAN, NAN, NAN, NAN };
#if HAVE_HWLOC
	static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER; // of the environment
	hwloc_topology_t t;
	pthread_mutex_lock(&one);
	if (init(&t)) {
		pthread_mutex_unlock(&one);
		return;
	}
	if (load(t) == 0) {
		to->packages = objects(t, HWLOC_OBJ_PACKAGE);
		to->cores = objects(t, HWLOC_OBJ_CORE);
		to->processors = objects(t, HWLOC_OBJ_PU);
		to->nodes = objects(t, HWLOC_OBJ_NUMANODE);
		to->allowed = hwloc_bitmap_weight(hwloc_topology_get_allowed_cpuset(t));
	}
	hwloc_topology_destroy(t);
	pthread_mutex_unlock(&one);
#endif
}
