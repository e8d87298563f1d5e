// SPDX-License-Identifier: Apache-2.0
// Tests that memory is first touched by the NUMA node that computes with it: how a job's items are
// divided among nodes, on a machine of two nodes that hwloc pretends; and on which nodes pages are,
// on a machine that has several.
#include "config.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef HAVE_HWLOC
#include <hwloc.h>
#endif

#include "../backends/cpu/host/frame.h"
#include "tap.h"

// ---- division ----

static void shares(void)
{
	static const int64_t numbers[] = { 1, 2, 3, 7, 40, 64, 1000003, INT64_MAX };
	bool good = true;

	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		for (int64_t all = 1; all < 300; all = all * 2 + 1) {
			const int64_t n = numbers[i];
			good &= yk_team_share(n, 0, all) == 0 && yk_team_share(n, all, all) == n;
			for (int64_t t = 0; t < all;
			     t++) { // each thread's share differs from n / all by less than 1
				const int64_t share =
					yk_team_share(n, t + 1, all) - yk_team_share(n, t, all);
				good &= share >= n / all && share - n / all <= 1;
			}
		}
	ok(good, "an interval of items for each node, in proportion to its threads");
	struct yk_domain d[3] = { { .set = { .bits = (uint64_t[]){ 0xff }, .words = 1 } },
				  { .set = { .bits = (uint64_t[]){ 0xf00 }, .words = 1 } },
				  { .set = { .bits = (uint64_t[]){ 0xf000 }, .words = 1 } } };
	yk_domains_assign(d, 3, 8);
	ok(d[0].threads == 4 && d[1].threads == 2 && d[2].threads == 2,
	   "8 threads on nodes of 8, 4 and 4 processors: %d, %d, %d", d[0].threads, d[1].threads,
	   d[2].threads);
	yk_domains_assign(d, 3, 1);
	ok(d[0].threads + d[1].threads + d[2].threads == 1, "1 thread on one of them");
}

#if defined HAVE_HWLOC && !defined YK_POSIX_ONLY
// ---- a job whose nodes advance together ----

enum { PAGE = 1 << 21 }; // bytes that an item writes: a huge page

struct job {
	char *base;
	int64_t n; // items
	int nodes;
	atomic_int *begun; // of each item
	size_t *processor; // that ran it
};

// Item j of a node's interval waits for the items j of the others, so no node takes items from
// another.
static void write_page(void *arg, int64_t item)
{
	struct job *job = arg;
	const int64_t each = job->n / job->nodes;

	atomic_store(&job->begun[item], 1);
	for (int k = 0; k < job->nodes; k++)
		while (!atomic_load(&job->begun[k * each + item % each]))
			sched_yield();
	job->processor[item] = yk_processor();
	memset(job->base + item * PAGE, 1, PAGE);
}

// The job on a fresh segment, in which no page has been touched; false: not possible.
static bool run(struct job *job, int nodes, int64_t each, void **segment)
{
	*job = (struct job){ .n = nodes * each, .nodes = nodes };
	job->begun = calloc((size_t)job->n, sizeof *job->begun);
	job->processor = calloc((size_t)job->n, sizeof *job->processor);
	if (!job->begun || !job->processor ||
	    yk_cpu_segment_new(0, 0, (uint64_t)job->n * PAGE, segment) < 0)
		return false;
	job->base = yk_cpu_segment_host(*segment);
	yk_team_run(job->n, write_page, job);
	return true;
}

static void end(struct job *job, void *segment)
{
	free(job->begun);
	free(job->processor);
	yk_cpu_segment_free(0, segment);
}

// ---- two nodes of one processor each ----

static bool bind(size_t processor)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	return sched_setaffinity(0, sizeof set, &set) == 0;
}

static int untouched(const char *base, size_t bytes)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char *in = malloc(bytes / page);
	int touched = 0;

	if (!in || mincore((void *)(uintptr_t)base, bytes, in))
		touched = -1;
	for (size_t i = 0; touched >= 0 && i < bytes / page; i++)
		touched += in[i] & 1;
	free(in);
	return touched;
}

static int two_nodes(void)
{
	cpu_set_t both;
	struct job job;
	void *segment;
	int wrong = 0;

	CPU_ZERO(&both);
	CPU_SET(0, &both);
	CPU_SET(1, &both);
	setenv("HWLOC_SYNTHETIC", "node:2 core:1 pu:1", 1);
	setenv("HWLOC_THISSYSTEM", "1", 1);
	if (sched_setaffinity(0, sizeof both, &both))
		return 77;
	if (yk_team_size() != 2)
		return 77;
	if (yk_team_nodes() != 2)
		return 2;
	if (!bind(0)) // the caller stays on node 0
		return 77;
	if (yk_cpu_segment_new(0, 0, 4 * PAGE, &segment) < 0)
		return 3;
	const int touched = untouched(yk_cpu_segment_host(segment), 4 * PAGE);
	yk_cpu_segment_free(0, segment);
	if (touched)
		return 4;
	for (int64_t each = 1; each < 9; each++) {
		if (!run(&job, 2, each, &segment))
			return 3;
		for (int64_t i = 0; i < 2 * each; i++)
			wrong += job.processor[i] != (size_t)(i >= each);
		end(&job, segment);
	}
	return wrong ? 5 : 0;
}

static int child(int (*fn)(void))
{
	int status;
	const pid_t pid = fork();

	if (pid == 0)
		_exit(fn());
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ?
		       WEXITSTATUS(status) :
		       -1;
}

// ---- this machine, if it has several nodes ----

// The number of huge pages of a segment whose node is that of the interval they are in.
static int64_t at_home(hwloc_topology_t t, const char *base, int64_t n)
{
	const struct yk_cores *c = yk_team_cores();
	hwloc_bitmap_t found = hwloc_bitmap_alloc(), near = hwloc_bitmap_alloc();
	int64_t good = 0, before = 0, all = 0;

	for (int k = 0; k < c->domains; k++)
		all += c->domain[k].threads;
	for (int k = 0; k < c->domains && found && near; k++) {
		const int64_t from = yk_team_share(n, before, all),
			      to = yk_team_share(n, before += c->domain[k].threads, all);
		for (int64_t i = from; i < to; i++) {
			if (hwloc_get_area_memlocation(t, base + i * PAGE, PAGE, found,
						       HWLOC_MEMBIND_BYNODESET) < 0)
				continue;
			hwloc_cpuset_from_nodeset(t, near, found);
			for (unsigned cpu = 0; cpu < 64 * c->domain[k].set.words; cpu++)
				if (yk_processors_has(&c->domain[k].set, cpu)) {
					good += hwloc_bitmap_isset(near, cpu) &&
						hwloc_bitmap_weight(found) == 1;
					break;
				}
		}
	}
	hwloc_bitmap_free(found);
	hwloc_bitmap_free(near);
	return good;
}

static void this_machine(void)
{
	enum { EACH = 8 };
	const int nodes = yk_team_nodes();
	hwloc_topology_t t;
	struct job job;
	void *segment;

	if (nodes < 2)
		return skip("pages on their nodes", "this machine has one node");
	for (int k = 1; k < nodes; k++)
		if (yk_team_cores()->domain[k].threads != yk_team_cores()->domain->threads)
			return skip("pages on their nodes", "its nodes differ");
	if (hwloc_topology_init(&t) || hwloc_topology_load(t))
		return skip("pages on their nodes", "hwloc fails");
	if (ok(run(&job, nodes, EACH, &segment), "a job on %d nodes", nodes)) {
		const int64_t good = at_home(t, job.base, job.n);
		ok(good == job.n, "%lld of %lld huge pages are on the node that computes them",
		   (long long)good, (long long)job.n);
		end(&job, segment);
	}
	// threads that are early take items of other nodes, so these shares are not checked
	const int64_t n = (int64_t)nodes * 32;
	char *host = malloc((size_t)n * PAGE);
	for (int by = 0; host && by < 2; by++) {
		memset(host, 1, (size_t)n * PAGE);
		if (yk_cpu_segment_new(0, 0, (uint64_t)n * PAGE, &segment) < 0)
			break;
		const int err = by ? yk_cpu_put(NULL, segment, 0, host, (uint64_t)n * PAGE) :
				     yk_cpu_fill(NULL, segment, 0, (uint64_t)n * PAGE, "", 1);
		diag("%s: %lld of %lld huge pages are at home, error %d", by ? "put" : "fill",
		     (long long)at_home(t, yk_cpu_segment_host(segment), n), (long long)n, err);
		yk_cpu_segment_free(0, segment);
	}
	free(host);
	hwloc_topology_destroy(t);
}
#endif

int main(void)
{
	shares();
#if defined HAVE_HWLOC && !defined YK_POSIX_ONLY
	const int rc = child(two_nodes);
	if (rc == 77)
		skip("two nodes",
		     "processors 0 and 1 are not allowed, or a control group allows less");
	else
		ok(rc == 0,
		   "two nodes: fresh pages are untouched; each node writes its half, whatever the "
		   "number of items: %d",
		   rc);
	this_machine();
#else
	skip("two nodes", "built without hwloc, or without affinity");
#endif
	return done();
}
