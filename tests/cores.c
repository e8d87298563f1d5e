// SPDX-License-Identifier: Apache-2.0
// Tests the CPU backend's choice of processors and its drawing, on machines that hwloc describes
// and with fake cgroup directories.
#include "config.h"

#include <dirent.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef HAVE_HWLOC
#include <hwloc.h>
#endif

#include "../backends/cpu/host/frame.h"
#include "base/file.h"
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
	ok(got == 3, "cgroup 2: a quota of 2.5 processors in a parent group gives 3 threads: %d",
	   got);
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
	ok(bytes == 0, "cgroup 1: no limit is read as none: %llu", (unsigned long long)bytes);

	put("odd/proc", "no colon\n0:\n0::/../..//\n4:cpu:/c\n:::\n");
	put("odd/fs/cpu/c/cpu.cfs_quota_us", "-5 x\n");
	put("odd/fs/cpu/c/cpu.cfs_period_us", "0\n");
	got = yk_cgroup_cpus("odd/proc", "odd/fs");
	ok(got == 0, "invalid contents are read as no limit: %d", got);
	ok(yk_cgroup_cpus("nowhere", "nowhere") == 0, "without control groups there is no limit");
}

// ---- topologies ----

#ifdef HAVE_HWLOC
// A machine as hwloc describes it, and what the process may use of it.
struct machine {
	const char *variable, *value; // HWLOC_SYNTHETIC or HWLOC_XMLFILE
	int processors, first, step;  // allowed: first, first + step ..
	int quota, setting;
	int threads, nodes; // wanted
	const char *bound, *drawing;
};

static void choose(const struct machine *m)
{
	struct yk_cores c;
	struct yk_processors allowed = { .words = ((size_t)m->processors + 63) / 64 };

	allowed.bits = calloc(allowed.words, sizeof *allowed.bits);
	for (int i = m->first; allowed.bits && i < m->processors; i += m->step)
		allowed.bits[i / 64] |= UINT64_C(1) << i % 64;
	setenv(m->variable, m->value, 1);
	yk_cores_choose(&c, allowed,
			(struct yk_cores_limits){ m->processors, m->quota, m->setting });
	char *drawn = yk_cores_draw(&c);
	unsetenv(m->variable);
	ok(c.n == m->threads && c.nodes == m->nodes && !strcmp(c.bound, m->bound),
	   "%s: %d threads by %s, %d nodes; want %d by %s, %d", m->value, c.n, c.bound, c.nodes,
	   m->threads, m->bound, m->nodes);
	ok(drawn && !strcmp(drawn, m->drawing), "%s, drawn", m->value);
	if (!drawn || strcmp(drawn, m->drawing))
		diag("got\n%swant\n%s", drawn ? drawn : "nothing\n", m->drawing);
	free(drawn);
	yk_cores_fini(&c);
}

// A machine of `slow` processors followed by `fast` ones, one per core.
static bool write_kinds(const char *path, int slow, int fast)
{
#if HWLOC_API_VERSION >= 0x00020400
	hwloc_topology_t t;
	hwloc_bitmap_t set = hwloc_bitmap_alloc();
	char cores[40];
	snprintf(cores, sizeof cores, "core:%d pu:1", slow + fast);
	bool good = hwloc_topology_init(&t) == 0 && hwloc_topology_set_synthetic(t, cores) == 0 &&
		    hwloc_topology_load(t) == 0;

	for (unsigned k = 0; good && k < 2; k++) {
		hwloc_bitmap_zero(set);
		hwloc_bitmap_set_range(set, k ? (unsigned)slow : 0, (k ? slow + fast : slow) - 1);
		good = hwloc_cpukinds_register(t, set, (int)k, 0, NULL, 0) == 0;
	}
	good = good && hwloc_topology_export_xml(t, path, 0) == 0;
	hwloc_topology_destroy(t);
	hwloc_bitmap_free(set);
	return good;
#else
	(void)path, (void)slow, (void)fast;
	return false;
#endif
}

#define SYNTHETIC "HWLOC_SYNTHETIC"
static const struct machine machines[] = {
	{ SYNTHETIC, "core:1 pu:1", 1, 0, 1, 0, 0, 1, 1, "processors",
	  "node 0: 1 core, 1 processor, threads on 0\n1 thread: affinity allows 1 of 1 "
	  "processors\n" },
	{ SYNTHETIC, "core:2 pu:1", 2, 0, 1, 0, 0, 2, 1, "processors",
	  "node 0: 2 cores, 2 processors, threads on 0-1\n2 threads: affinity allows 2 of 2 "
	  "processors\n" },
	{ SYNTHETIC, "core:1 pu:2", 2, 0, 1, 0, 0, 1, 1, "physical cores",
	  "node 0: 1 core, 2 processors, threads on 0\n"
	  "1 thread: affinity allows 2 of 2 processors, 1 of them are used, one per core\n" },
	{ SYNTHETIC, "node:2 core:1 pu:1", 2, 0, 1, 0, 0, 2, 2, "processors",
	  "node 0: 1 core, 1 processor, threads on 0\nnode 1: 1 core, 1 processor, threads on 1\n"
	  "2 threads: affinity allows 2 of 2 processors\neach node's threads compute one part of "
	  "an operation; "
	  "memory is on the node whose threads first write it\n" },
	// a laptop, in a container with a quota
	{ SYNTHETIC, "pack:1 l3:1(size=16777216) core:8 pu:2", 16, 0, 1, 3, 0, 3, 1, "cgroup quota",
	  "node 0, package 0, 1 L3 cache of 16 MiB: 8 cores, 16 processors, 3 threads on "
	  "0,2,4,6,8,10,12,14\n"
	  "3 threads: affinity allows 16 of 16 processors, 8 of them are used, one per core, the "
	  "control group allows 3\n" },
	// a server with four L3 caches per package, limited by the setting
	{ SYNTHETIC, "pack:2 [numa] l3:4(size=33554432) core:8 pu:2", 128, 0, 1, 0, 40, 40, 2,
	  "setting",
	  "node 0, package 0, 4 L3 caches of 32 MiB: 32 cores, 64 processors, 20 threads on "
	  "0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30,32,34,36,38,40,42,44,46,48,50,52,54,56,58,60,"
	  "62\n"
	  "node 1, package 1, 4 L3 caches of 32 MiB: 32 cores, 64 processors, 20 threads on "
	  "64,66,68,70,72,74,76,78,80,82,84,86,88,90,92,94,96,98,100,102,104,106,108,110,112,114,"
	  "116,118,120,122,124,126\n"
	  "40 threads: affinity allows 128 of 128 processors, 64 of them are used, one per core, "
	  "the setting 40\n"
	  "each node's threads compute one part of an operation; "
	  "memory is on the node whose threads first write it\n" },
	// 256 cores, four nodes in each package
	{ SYNTHETIC, "pack:2 numa:4 l3:2(size=33554432) core:16 pu:1", 256, 0, 1, 0, 0, 256, 8,
	  "processors",
	  "node 0, package 0, 2 L3 caches of 32 MiB: 32 cores, 32 processors, threads on 0-31\n"
	  "node 1, package 0, 2 L3 caches of 32 MiB: 32 cores, 32 processors, threads on 32-63\n"
	  "node 2, package 0, 2 L3 caches of 32 MiB: 32 cores, 32 processors, threads on 64-95\n"
	  "node 3, package 0, 2 L3 caches of 32 MiB: 32 cores, 32 processors, threads on 96-127\n"
	  "node 4, package 1, 2 L3 caches of 32 MiB: 32 cores, 32 processors, threads on 128-159\n"
	  "node 5, package 1, 2 L3 caches of 32 MiB: 32 cores, 32 processors, threads on 160-191\n"
	  "node 6, package 1, 2 L3 caches of 32 MiB: 32 cores, 32 processors, threads on 192-223\n"
	  "node 7, package 1, 2 L3 caches of 32 MiB: 32 cores, 32 processors, threads on 224-255\n"
	  "256 threads: affinity allows 256 of 256 processors\neach node's threads compute one "
	  "part of an operation; "
	  "memory is on the node whose threads first write it\n" },
	// half of them
	{ SYNTHETIC, "pack:2 [numa] core:128 pu:1", 256, 128, 1, 0, 0, 128, 2, "affinity",
	  "node 0, package 0: 128 cores, 128 processors, no threads\n"
	  "node 1, package 1: 128 cores, 128 processors, threads on 128-255\n"
	  "128 threads: affinity allows 128 of 256 processors\nmemory is on the node of the thread "
	  "that first writes it\n" },
	// the second thread of each core is not allowed
	{ SYNTHETIC, "core:4 pu:2", 8, 1, 2, 0, 0, 4, 1, "affinity",
	  "node 0: 4 cores, 8 processors, threads on 1,3,5,7\n4 threads: affinity allows 4 of 8 "
	  "processors\n" },
};
static const struct machine hybrids[] = {
	{ "HWLOC_XMLFILE", "kinds.xml", 12, 0, 1, 0, 0, 4, 1, "fastest cores",
	  "node 0: 4 cores of the fastest kind, 4 processors, threads on 8-11\n"
	  "node 0: 8 cores of a slower kind, 8 processors, no threads\n"
	  "4 threads: affinity allows 12 of 12 processors, 4 of them are used, one per core of the "
	  "fastest kind\n" },
	// in a container with a quota
	{ "HWLOC_XMLFILE", "quota.xml", 12, 0, 1, 2, 0, 2, 1, "cgroup quota",
	  "node 0: 4 cores of the fastest kind, 4 processors, 2 threads on 8-11\n"
	  "node 0: 8 cores of a slower kind, 8 processors, no threads\n"
	  "2 threads: affinity allows 12 of 12 processors, 4 of them are used, one per core of the "
	  "fastest kind, "
	  "the control group allows 2\n" },
	// taskset on the slower ones
	{ "HWLOC_XMLFILE", "slower.xml", 8, 0, 1, 0, 0, 8, 1, "processors",
	  "node 0: 4 cores of the fastest kind, 4 processors, no threads\n"
	  "node 0: 8 cores of a slower kind, 8 processors, threads on 0-7\n"
	  "8 threads: affinity allows 8 of 8 processors\n" },
};

static void topologies(void)
{
	setenv("HWLOC_THISSYSTEM", "0", 1);
	for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
		choose(&machines[i]);
	for (size_t i = 0; i < sizeof hybrids / sizeof *hybrids; i++)
		if (write_kinds(hybrids[i].value, 8, 4))
			choose(&hybrids[i]);
		else
			skip("kinds of cores", "this hwloc knows none");
}

// ---- recorded machines ----

static int occurrences(const char *text, const char *word)
{
	int n = 0;

	for (const char *p = text; (p = strstr(p, word)); p++)
		n++;
	return n;
}

// The processors of a machine in XML, by their numbers in the system.
static struct yk_processors recorded_processors(const char *xml)
{
	static const char pu[] = "<object type=\"PU\" os_index=\"";
	const size_t words = 64;
	struct yk_processors to = { .bits = calloc(words, sizeof *to.bits), .words = words };

	for (const char *p = xml; to.bits && (p = strstr(p, pu)); p++) {
		const unsigned long i = strtoul(p + sizeof pu - 1, NULL, 10);
		if (i < 64 * words)
			to.bits[i / 64] |= UINT64_C(1) << i % 64;
	}
	return to;
}

// Does the control group of the machine allow all its processors?  hwloc lists only these.
static bool allows_all(const char *xml)
{
	const char *all = strstr(xml, " cpuset=\""), *allowed = strstr(xml, " allowed_cpuset=\"");

	return !all || !allowed || !strncmp(all + 9, allowed + 17, strcspn(all + 9, "\"") + 1);
}

// A machine of one kind of core: one thread per core.
static void recorded_machine(const char *path, const char *xml)
{
	const int cores = occurrences(xml, "<object type=\"Core\""),
		  processors = occurrences(xml, "<object type=\"PU\"");
	const int nodes = occurrences(xml, "<object type=\"NUMANode\"");
	const char *name = strrchr(path, '/') + 1;
	struct yk_processors allowed = recorded_processors(xml);
	struct yk_cores c;

	setenv("HWLOC_XMLFILE", path, 1);
	yk_cores_choose(&c, allowed, (struct yk_cores_limits){ .online = processors });
	char *drawn = yk_cores_draw(&c);
	unsetenv("HWLOC_XMLFILE");
	ok(c.allowed == processors && c.n == (cores ? cores : processors) &&
		   c.n == yk_processors_count(&c.set) && c.nodes == (nodes ? nodes : 1),
	   "%s: %d threads on %d of %d processors, %d nodes; want %d, %d", name, c.n, c.allowed,
	   processors, c.nodes, cores ? cores : processors, nodes ? nodes : 1);
	int shown = 0;
	for (const char *line = drawn;
	     line && (!strncmp(line, "node ", 5) || !strncmp(line, "no node", 7));
	     line = strchr(line, '\n') + 1) {
		const char *p = strstr(line, " processor");
		while (p > line && p[-1] != ' ')
			p--;
		shown += p ? atoi(p) : 0;
	}
	ok(drawn && shown == processors, "%s: each of %d processors is drawn once: %d", name,
	   processors, shown);
	if (shown != processors)
		diag("\n%s", drawn ? drawn : "nothing");
	free(drawn);
	yk_cores_fini(&c);
}

// The machines that hwloc's developers recorded, in the directory tests/hwloc/xml of its source
// package.
static void recorded(void)
{
	const char *folder = getenv("YOKE_TEST_HWLOC");
	struct dirent **entries;
	const int n = folder ? scandir(folder, &entries, NULL, alphasort) : -1;

	if (n < 0)
		return skip("recorded machines",
			    "YOKE_TEST_HWLOC does not name tests/hwloc/xml of hwloc's source");
	for (int i = 0; i < n; i++) {
		const char *ending = strrchr(entries[i]->d_name, '.');
		char path[512], *xml = NULL;
		size_t bytes;
		snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
		if (ending && !strcmp(ending, ".xml") &&
		    yk_file_read(path, 1 << 24, &xml, &bytes) == 0 && allows_all(xml))
			recorded_machine(path, xml);
		free(xml);
		free(entries[i]);
	}
	free(entries);
}

// This process, where one processor is left to it.
static void affinity(void)
{
#ifndef YK_POSIX_ONLY
	struct yk_cores c;
	cpu_set_t set, one;
	int first = 0;

	CPU_ZERO(&one);
	if (sched_getaffinity(0, sizeof set, &set) < 0)
		return skip("affinity", "it cannot be read");
	while (first < CPU_SETSIZE - 1 && !CPU_ISSET(first, &set))
		first++;
	CPU_SET(first, &one);
	if (sched_setaffinity(0, sizeof one, &one) < 0)
		return skip("affinity", "it cannot be set");
	yk_cores_find(&c);
	ok(c.n == 1 && c.allowed == 1 && yk_processors_has(&c.set, (size_t)first),
	   "affinity leaves processor %d: %d threads by %s", first, c.n, c.bound);
	yk_cores_fini(&c);
	sched_setaffinity(0, sizeof set, &set);
#else
	skip("affinity", "POSIX has no such call");
#endif
}
#endif

int main(void)
{
	tap_folder();
	groups();
#ifdef HAVE_HWLOC
	topologies();
	recorded();
	affinity();
#else
	skip("topologies", "built without hwloc");
#endif
	return done();
}
