// SPDX-License-Identifier: Apache-2.0
// Selects the processors for the team: those allowed by affinity, one per physical core, of the
// fastest kind if cores differ; then limited in number by the control group and the setting.
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frame.h"
#include "topology.h"

static const struct yoke_setting threads_setting = {
	sizeof threads_setting,
	"threads",
	"int 0..65536",
	"0",
	"max threads of the CPU backend; 0: one per core allowed by affinity and cgroup",
};

static void free_domain(struct yk_domain *d)
{
	free(d->set.bits);
	free(d->near.bits);
}

#ifdef HAVE_HWLOC
// Keeps one processor per core: two threads on one core would share its vector units.
static void keep_cores(struct yk_cores *c, hwloc_topology_t topology)
{
	hwloc_obj_t core = NULL;
	int all = c->n;

	while ((core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, core))) {
		bool kept = false;
		unsigned cpu;
		hwloc_bitmap_foreach_begin(cpu, core->cpuset)
			if (yk_processors_has(&c->set, cpu)) {
				if (kept)
					yk_processors_drop(&c->set, cpu);
				kept = true;
			}
		hwloc_bitmap_foreach_end();
	}
	c->n = yk_processors_count(&c->set);
	if (c->n < all)
		c->bound = "physical cores";
}

// Keeps the fastest kind of core that affinity allows: work items have equal size, and a team with
// mixed speeds would wait for the slowest.
static void keep_fastest(struct yk_cores *c, hwloc_topology_t topology)
{
#if HWLOC_API_VERSION >= 0x00020400
	int kinds = hwloc_cpukinds_get_nr(topology, 0), all = c->n;
	hwloc_bitmap_t kind = hwloc_bitmap_alloc();

	for (int k = kinds - 1; kind && k > 0; k--) { // ranked, fastest last
		int rank, here = 0;
		if (hwloc_cpukinds_get_info(topology, (unsigned)k, kind, &rank, NULL, NULL, 0) <
			    0 ||
		    rank < 0)
			break;
		for (unsigned cpu = 0; cpu < 64 * c->set.words; cpu++)
			here += yk_processors_has(&c->set, cpu) && hwloc_bitmap_isset(kind, cpu);
		if (!here)
			continue;
		for (unsigned cpu = 0; cpu < 64 * c->set.words; cpu++)
			if (!hwloc_bitmap_isset(kind, cpu))
				yk_processors_drop(&c->set, cpu);
		c->n = here;
		break;
	}
	hwloc_bitmap_free(kind);
	if (c->n < all) {
		c->bound = "fastest cores";
		c->fastest = true;
	}
#else
	(void)c;
	(void)topology;
#endif
}

// hwloc's plugins are linked with GPU libraries (OpenCL, NVML, X), which a CPU-only process must
// not load; processors are found without them. hwloc can only be configured by an environment
// variable. setenv would disturb readers in other threads, so the whole environment is replaced for
// a moment by another one, which is never freed.
bool yk_topology_new(hwloc_topology_t *to)
{
	static char none[] = "HWLOC_PLUGINS_PATH=/dev/null", **last;
	char **former = environ;
	size_t n = 0, kept = 0;

	while (former && former[n])
		n++;
	char **other = malloc((n + 2) * sizeof *other);
	if (!other)
		return false;
	for (size_t i = 0; i < n; i++)
		if (strncmp(former[i], none, strcspn(none, "=") + 1))
			other[kept++] = former[i];
	other[kept++] = none;
	other[kept] = NULL;
	environ = other;
	int err = hwloc_topology_init(to);
	environ = former;
	free(last);
	last = other;
#if HWLOC_API_VERSION >= 0x00020100
	if (err >= 0 && !yk_lists_processors() && !getenv("HWLOC_FSROOT")) // it would only complain
		hwloc_topology_set_components(*to, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST,
					      "linux");
#endif
	return err >= 0;
}

// Divides the processors by node. Each belongs to the first node that lists it: nodes of fast and
// of large memory may have the same processors. Those of no node are added to the first domain.
static void divide(struct yk_cores *c, hwloc_topology_t topology)
{
	struct yk_processors left = yk_processors_like(&c->set);

	if (!left.bits || !(c->domain = calloc((size_t)c->nodes, sizeof *c->domain))) {
		free(left.bits);
		return;
	}
	memcpy(left.bits, c->set.bits, left.words * sizeof *left.bits);
	for (hwloc_obj_t node = NULL;
	     (node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node));) {
		struct yk_domain *d = &c->domain[c->domains];
		d->set = yk_processors_like(&c->set);
		d->near = yk_processors_like(&c->set);
		unsigned cpu;
		hwloc_bitmap_foreach_begin(cpu, node->cpuset)
			if (cpu < 64 * d->near.words)
				yk_processors_add(&d->near, cpu);
			if (d->set.bits && yk_processors_has(&left, cpu)) {
				yk_processors_add(&d->set, cpu);
				yk_processors_drop(&left, cpu);
			}
		hwloc_bitmap_foreach_end();
		if (yk_processors_count(&d->set))
			c->domains++;
		else
			free_domain(d);
	}
	for (size_t cpu = 0; c->domains && cpu < 64 * left.words; cpu++)
		if (yk_processors_has(&left, cpu))
			yk_processors_add(&c->domain->set, cpu);
	free(left.bits);
}

static void look(struct yk_cores *c)
{
	hwloc_topology_t topology;

	if (!yk_topology_new(&topology))
		return;
	hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
	// without groups the node of a package would be that of the whole machine
	hwloc_topology_set_type_filter(topology, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
	hwloc_topology_set_type_filter(topology, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
	if (hwloc_topology_load(topology) == 0) {
		int nodes = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);
		c->nodes = nodes > 1 ? nodes : 1;
		keep_cores(c, topology);
		keep_fastest(c, topology);
		divide(c, topology);
	}
	hwloc_topology_destroy(topology);
}
#endif

void yk_cores_choose(struct yk_cores *c, struct yk_processors allowed,
		     struct yk_cores_limits limits)
{
	*c = (struct yk_cores){ .n = limits.online,
				.nodes = 1,
				.bound = "processors",
				.set = allowed,
				.limits = limits };
	if (c->set.bits) {
		c->n = c->allowed = yk_processors_count(&c->set);
		if (c->n < limits.online)
			c->bound = "affinity";
#ifdef HAVE_HWLOC
		look(c);
#endif
		c->apart = c->n;
	}
	if (limits.quota && limits.quota < c->n) {
		c->n = limits.quota;
		c->bound = "cgroup quota";
	}
	if (limits.setting > 0 && limits.setting < c->n) {
		c->n = limits.setting;
		c->bound = "setting";
	}
	yk_domains_assign(c->domain, c->domains, c->n);
}

void yk_domains_assign(struct yk_domain *d, int domains, int n)
{
	int64_t all = 0, before = 0;

	for (int k = 0; k < domains; k++)
		all += yk_processors_count(&d[k].set);
	for (int k = 0; k < domains; k++) {
		const int64_t to = before + yk_processors_count(&d[k].set);
		d[k].threads = (int)(to * n / all - before * n / all);
		before = to;
	}
}

void yk_cores_fini(struct yk_cores *c)
{
	for (int k = 0; k < c->domains; k++)
		free_domain(&c->domain[k]);
	free(c->domain);
	free(c->set.bits);
}

void yk_cores_find(struct yk_cores *c)
{
	const long online = sysconf(_SC_NPROCESSORS_ONLN);

	yk_cores_choose(c, yk_processors_allowed(),
			(struct yk_cores_limits){
				.online = online > 0 ? (int)online : 1,
				.quota = yk_cgroup_cpus(YK_CGROUPS, YK_CGROUP_MOUNT),
				.setting = atoi(yk_cpu_setting(&threads_setting)) });
}

void yk_cores_declare(void)
{
	yk_cpu_setting(&threads_setting);
}
