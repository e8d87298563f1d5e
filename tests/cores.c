// SPDX-License-Identifier: Apache-2.0
// Tests the CPU backend's choice of processors, with synthetic hwloc topologies and fake cgroup
// directories.
#include "config.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef HAVE_HWLOC
#include <hwloc.h>
#endif

#include "../backends/cpu/host/frame.h"
#include "tap.h"

// ---- control groups ----

static void put(const char *path, const char *text)
{
	char part[512];
	FILE *f;

	for (const char *p = strchr(path, '/'); p; p = strchr(p + 1, '/')) {
		snprintf(part, sizeof part, "%.*s", (int)(p - path), path);
		mkdir(part, 0755);
	}
	f = fopen(path, "w");
	if (!f || fputs(text, f) < 0 || fclose(f)) {
		printf("Bail out! %s cannot be written\n", path);
		exit(1);
	}
}

static void groups(void)
{
	int got;
	uint64_t bytes;

	put("v2/proc", "0::/a/b\n");
	put("v2/fs/a/b/cpu.max", "max 100000\n");
	put("v2/fs/a/cpu.max", "250000 100000\n");
	put("v2/fs/a/b/memory.max", "max\n");
	put("v2/fs/a/memory.max", "1073741824\n");
	got = yk_cgroup_cpus("v2/proc", "v2/fs");
	ok(got == 3, "cgroup 2: a quota of 2.5 processors in a parent group gives 3 threads: %d", got);
	bytes = yk_cgroup_memory("v2/proc", "v2/fs");
	ok(bytes == 1 << 30, "cgroup 2: a memory limit of 1 GiB: %llu", (unsigned long long)bytes);
	put("v2/fs/a/b/cpu.max", "50000 100000\n");
	got = yk_cgroup_cpus("v2/proc", "v2/fs");
	ok(got == 1, "cgroup 2: half a processor gives 1 thread: %d", got);

	put("v1/proc", "11:memory:/m\n4:cpu,cpuacct:/c/d\n1:name=systemd:/x\n");
	put("v1/fs/cpu/c/d/cpu.cfs_quota_us", "-1\n");
	put("v1/fs/cpu/c/d/cpu.cfs_period_us", "100000\n");
	put("v1/fs/cpu/c/cpu.cfs_quota_us", "200000\n");
	put("v1/fs/cpu/c/cpu.cfs_period_us", "100000\n");
	put("v1/fs/memory/m/memory.limit_in_bytes", "9223372036854771712\n");
	got = yk_cgroup_cpus("v1/proc", "v1/fs");
	ok(got == 2, "cgroup 1: the quota of a parent group applies: %d", got);
	bytes = yk_cgroup_memory("v1/proc", "v1/fs");
	ok(bytes == 0, "cgroup 1: no limit is read as none: %llu",
	   (unsigned long long)bytes);

	put("odd/proc", "no colon\n0:\n0::/../..//\n4:cpu:/c\n:::\n");
	put("odd/fs/cpu/c/cpu.cfs_quota_us", "-5 x\n");
	put("odd/fs/cpu/c/cpu.cfs_period_us", "0\n");
	got = yk_cgroup_cpus("odd/proc", "odd/fs");
	ok(got == 0, "invalid contents are read as no limit: %d", got);
	ok(yk_cgroup_cpus("nowhere", "nowhere") == 0, "without control groups there is no limit");
}

// ---- topologies ----

#ifdef HAVE_HWLOC
static void topology(const char *name, const char *value, int n, int nodes,
		     const char *bound)
{
	struct yk_cores c;

	setenv(name, value, 1);
	setenv("HWLOC_THISSYSTEM", "1", 1);
	yk_cores_find(&c);
	unsetenv(name);
	ok(c.n == n && c.nodes == nodes && !strcmp(c.bound, bound),
	   "%s: %d threads by %s, %d nodes; want %d by %s, %d", value, c.n, c.bound,
	   c.nodes, n, bound, nodes);
	free(c.set.bits);
}

// Processor 1 is the faster one of two kinds.
static bool write_kinds(const char *path)
{
#if HWLOC_API_VERSION >= 0x00020400
	hwloc_topology_t t;
	hwloc_bitmap_t set = hwloc_bitmap_alloc();
	bool good = hwloc_topology_init(&t) == 0 &&
		    hwloc_topology_set_synthetic(t, "core:2 pu:1") == 0 &&
		    hwloc_topology_load(t) == 0;

	for (unsigned k = 0; good && k < 2; k++) {
		hwloc_bitmap_only(set, k);
		good = hwloc_cpukinds_register(t, set, (int)k, 0, NULL, 0) == 0;
	}
	good = good && hwloc_topology_export_xml(t, path, 0) == 0;
	hwloc_topology_destroy(t);
	hwloc_bitmap_free(set);
	return good;
#else
	(void)path;
	return false;
#endif
}

static void topologies(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	CPU_SET(1, &set);
	if (sysconf(_SC_NPROCESSORS_ONLN) != 2 ||
	    sched_setaffinity(0, sizeof set, &set) < 0) {
		skip("topologies", "made for a machine of two processors");
		return;
	}
	topology("HWLOC_SYNTHETIC", "core:2 pu:1", 2, 1, "processors");
	topology("HWLOC_SYNTHETIC", "core:1 pu:2", 1, 1, "physical cores");
	topology("HWLOC_SYNTHETIC", "node:2 core:1 pu:1", 2, 2, "processors");
	if (write_kinds("kinds.xml"))
		topology("HWLOC_XMLFILE", "kinds.xml", 1, 1, "fastest cores");
	else
		skip("kinds of cores", "this hwloc knows none");
#ifndef YK_POSIX_ONLY
	CPU_CLR(1, &set);
	if (sched_setaffinity(0, sizeof set, &set) == 0)
		topology("HWLOC_SYNTHETIC", "core:2 pu:1", 1, 1, "affinity");
#endif
}
#endif

int main(void)
{
	tap_folder();
	groups();
#ifdef HAVE_HWLOC
	topologies();
#else
	skip("topologies", "built without hwloc");
#endif
	return done();
}
