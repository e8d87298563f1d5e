// SPDX-License-Identifier: Apache-2.0
// The choice of processors as text for `yoke info`: a line per memory node and kind of core, and
// one with the limits.
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "frame.h"
#include "topology.h"

static const char *ending(int n)
{
	return n == 1 ? "" : "s";
}

#ifdef HAVE_HWLOC
static void print_set(FILE *to, const char *before, hwloc_const_bitmap_t set)
{
	char *text = NULL;

	if (hwloc_bitmap_list_asprintf(&text, set) >= 0)
		fprintf(to, "%s%s", before, text);
	free(text);
}

static hwloc_bitmap_t bitmap_of(const struct yk_processors *s)
{
	hwloc_bitmap_t set = hwloc_bitmap_alloc();

	for (unsigned i = 0; set && i < 64 * s->words; i++)
		if (yk_processors_has(s, i))
			hwloc_bitmap_set(set, i);
	return set;
}

// "node 0, package 0, 2 L3 caches of 32 MiB: "; first: the first of the nodes that these processors
// use as their own, NULL: there is none.
static void draw_place(FILE *to, hwloc_topology_t t, hwloc_obj_t first,
		       hwloc_const_bitmap_t processors)
{
	const int caches = hwloc_get_nbobjs_inside_cpuset_by_type(t, processors, HWLOC_OBJ_L3CACHE);
	hwloc_obj_t package = NULL;
	const char *comma = "";

	for (hwloc_obj_t node = first; node;
	     node = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_NUMANODE, node)) {
		if (!hwloc_bitmap_isequal(node->cpuset, first->cpuset))
			continue;
		fprintf(to, "%snode %u", comma,
			node->os_index == HWLOC_UNKNOWN_INDEX ? node->logical_index :
								node->os_index);
		comma = ", ";
	}
	if (!first)
		fprintf(to, "no node");
	while ((package = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_PACKAGE, package)))
		if (hwloc_bitmap_intersects(package->cpuset, processors))
			fprintf(to, ", package %u", package->logical_index);
	if (caches > 0) {
		hwloc_obj_t cache =
			hwloc_get_obj_inside_cpuset_by_type(t, processors, HWLOC_OBJ_L3CACHE, 0);
		fprintf(to, ", %d L3 cache%s of %.3g MiB", caches, ending(caches),
			(double)cache->attr->cache.size / (1 << 20));
	}
	fprintf(to, ": ");
}

// The processors that threads may use, and the choice that they follow from.
struct threads {
	hwloc_const_bitmap_t set;
	const struct yk_cores *cores;
};

// The number of threads on these processors of one node.
static int threads_on(const struct yk_cores *c, hwloc_const_bitmap_t processors)
{
	int n = 0;

	if (c->domains < 2)
		return c->n;
	for (int k = 0; k < c->domains; k++) {
		hwloc_bitmap_t set = bitmap_of(&c->domain[k].set);
		n += set && hwloc_bitmap_intersects(set, processors) ? c->domain[k].threads : 0;
		hwloc_bitmap_free(set);
	}
	return n;
}

// "8 cores, 16 processors, threads on 0-7", or "2 threads on 0-7" if there are fewer threads than
// processors for them; kind: " of the fastest kind", ..
static void draw_cores(FILE *to, hwloc_topology_t t, hwloc_const_bitmap_t all, const char *kind,
		       const struct threads *threads)
{
	hwloc_bitmap_t here = hwloc_bitmap_alloc();
	const int processors = hwloc_bitmap_weight(all);
	int cores = 0;

	for (hwloc_obj_t core = NULL; (core = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_CORE, core));)
		cores += hwloc_bitmap_intersects(core->cpuset, all);
	if (cores)
		fprintf(to, "%d core%s%s, ", cores, ending(cores), kind);
	fprintf(to, "%d processor%s%s, ", processors, ending(processors), cores ? "" : kind);
	const int usable = here && hwloc_bitmap_and(here, all, threads->set) >= 0 ?
				   hwloc_bitmap_weight(here) :
				   0;
	const int n = usable ? threads_on(threads->cores, here) : 0;
	if (n && n < usable)
		fprintf(to, "%d ", n);
	if (n)
		print_set(to, n == 1 && usable > 1 ? "thread on " : "threads on ", here);
	else
		fprintf(to, "no threads");
	fprintf(to, "\n");
	hwloc_bitmap_free(here);
}

// The number of kinds of cores, if hwloc ranks them by speed; else 0.
static int ranked_kinds(hwloc_topology_t t)
{
	int kinds = 0;
#if HWLOC_API_VERSION >= 0x00020400
	int rank = -1;
	hwloc_bitmap_t set = hwloc_bitmap_alloc();

	kinds = hwloc_cpukinds_get_nr(t, 0);
	if (!set || kinds < 2 ||
	    hwloc_cpukinds_get_info(t, (unsigned)kinds - 1, set, &rank, NULL, NULL, 0) < 0 ||
	    rank < 0)
		kinds = 0;
	hwloc_bitmap_free(set);
#else
	(void)t;
#endif
	return kinds;
}

// The processors of a node: a line for each kind of core, fastest first.
static void draw_node(FILE *to, hwloc_topology_t t, hwloc_obj_t node,
		      hwloc_const_bitmap_t processors, const struct threads *threads)
{
	const int kinds = ranked_kinds(t);

	if (kinds == 0) {
		draw_place(to, t, node, processors);
		draw_cores(to, t, processors, "", threads);
	}
#if HWLOC_API_VERSION >= 0x00020400
	hwloc_bitmap_t part = hwloc_bitmap_alloc();
	for (int k = kinds - 1; part && k >= 0; k--) {
		if (hwloc_cpukinds_get_info(t, (unsigned)k, part, NULL, NULL, NULL, 0) < 0 ||
		    hwloc_bitmap_and(part, part, processors) < 0 || hwloc_bitmap_iszero(part))
			continue;
		draw_place(to, t, node, processors);
		draw_cores(to, t, part,
			   k == kinds - 1 ? " of the fastest kind" : " of a slower kind", threads);
	}
	hwloc_bitmap_free(part);
#endif
}

// Each processor is drawn once, with the first node that lists it: nodes of fast and of large
// memory may have the same processors, and a control group may exclude the node of others.
static void draw_nodes(FILE *to, hwloc_topology_t t, const struct threads *threads)
{
	hwloc_bitmap_t left = hwloc_bitmap_dup(hwloc_topology_get_topology_cpuset(t)),
		       here = hwloc_bitmap_alloc();

	for (hwloc_obj_t node = NULL;
	     left && here && (node = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_NUMANODE, node));) {
		if (hwloc_bitmap_and(here, node->cpuset, left) < 0 || hwloc_bitmap_iszero(here))
			continue;
		draw_node(to, t, node, here, threads);
		hwloc_bitmap_andnot(left, left, here);
	}
	if (left && !hwloc_bitmap_iszero(left))
		draw_node(to, t, NULL, left, threads);
	hwloc_bitmap_free(here);
	hwloc_bitmap_free(left);
}

static void draw_topology(FILE *to, const struct yk_cores *c)
{
	hwloc_topology_t t;
	hwloc_bitmap_t used = bitmap_of(&c->set);

	if (used && yk_topology_new(&t)) {
		hwloc_topology_set_all_types_filter(t, HWLOC_TYPE_FILTER_KEEP_NONE);
		// groups: nodes within packages
		hwloc_topology_set_type_filter(t, HWLOC_OBJ_GROUP,
					       HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
		hwloc_topology_set_type_filter(t, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL);
		hwloc_topology_set_type_filter(t, HWLOC_OBJ_L3CACHE, HWLOC_TYPE_FILTER_KEEP_ALL);
		hwloc_topology_set_type_filter(t, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
		if (hwloc_topology_load(t) == 0)
			draw_nodes(to, t, &(struct threads){ used, c });
		hwloc_topology_destroy(t);
	}
	hwloc_bitmap_free(used);
}
#endif

char *yk_cores_draw(const struct yk_cores *c)
{
	char *text = NULL;
	size_t bytes;
	FILE *to = open_memstream(&text, &bytes);

	if (!to)
		return NULL;
#ifdef HAVE_HWLOC
	if (c->set.bits)
		draw_topology(to, c);
#else
	fprintf(to, "cores, caches and memory nodes are not known: built without hwloc\n");
#endif
	fprintf(to, "%d thread%s", c->n, ending(c->n));
	if (c->set.bits)
		fprintf(to, ": affinity allows %d of %d processors", c->allowed, c->limits.online);
	else
		fprintf(to, ", not bound: %d processors are online", c->limits.online);
	if (c->apart < c->allowed)
		fprintf(to, ", %d of them are used, one per core%s", c->apart,
			c->fastest ? " of the fastest kind" : "");
	if (c->limits.quota)
		fprintf(to, ", the control group allows %d", c->limits.quota);
	if (c->limits.setting)
		fprintf(to, ", the setting %d", c->limits.setting);
	fprintf(to, "\n");
	if (c->domains > 1)
		fprintf(to, "each node's threads compute one part of an operation; memory is on "
			    "the node whose threads first write it\n");
	else if (c->nodes > 1)
		fprintf(to, "memory is on the node of the thread that first writes it\n");
	if (fclose(to)) {
		free(text);
		return NULL;
	}
	return text;
}
