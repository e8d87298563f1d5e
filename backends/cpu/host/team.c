// SPDX-License-Identifier: Apache-2.0
// Teams: each device's worker threads, shared by all contexts and started on first use. A thread's
// jobs run on the team of the device that it last used.
// A job is divided into work items by its shape, and items are drawn from counters; no result
// depends on which thread runs an item. A second concurrent caller, or a call from inside an item,
// runs its items in place.
// On machines with several NUMA nodes each thread runs on the processors of one node. Node k's
// threads first draw the k-th interval of a job's items, then help the others. So the same node
// writes and reads the same part of an array in all jobs that walk it in the order of their items,
// and the system places its pages there.
#include "config.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "frame.h"

// The state of the job in one word: generation | OPEN | number of workers inside. A worker joins by
// adding one while the job is open. The caller closes the job when no item is left and waits for
// the workers inside. So a worker that wakes late delays nobody and never sees a finished job.
enum { INSIDE = (1 << 10) - 1, OPEN = 1 << 10, GENERATION = 1 << 11 };

enum { SPIN_NS = 50000 }; // how long a worker spins for the next job before it sleeps

// The threads on one NUMA node, and their interval of the job's items.
struct node {
	_Alignas(64) atomic_int_fast64_t next; // next work item
	int64_t end;
	int64_t before; // threads on nodes before this one
	struct team *team;
};

struct team {
	pthread_mutex_t lock; // held by the caller while its job runs
	int size, nodes;
	struct node *node;
	struct yk_domain *domain; // of each node

	// guarded by lock
	bool started;
	int workers;
	struct worker {
		pthread_t thread;
		int node;
	} * worker;
	size_t avoided;   // the processor that workers leave to the caller
	uint64_t settled; // ns: when they may be moved again

	_Alignas(64) atomic_uint word;
	atomic_int sleepers;

	_Alignas(64) int64_t n;
	void (*fn)(void *arg, int64_t item);
	void *arg;
};

static struct team *teams;
static int nteams = 1, limit;
static struct yk_cores cores;
static pthread_once_t counted = PTHREAD_ONCE_INIT;
static _Thread_local bool inside, alone;
static _Thread_local uint32_t mine; // the team of the calling thread

// The processors numbered from .. to - 1 of all domains, one after another; *seen counts those
// before this domain.
static struct yk_processors part_of(const struct yk_processors *domain, int from, int to, int *seen)
{
	struct yk_processors set = yk_processors_like(domain);

	for (size_t cpu = 0; cpu < 64 * set.words; cpu++) {
		if (!yk_processors_has(domain, cpu))
			continue;
		if (*seen >= from && *seen < to)
			yk_processors_add(&set, cpu);
		++*seen;
	}
	return set;
}

// Fills a team with its part of the processors, and its nodes.
static void assemble(struct team *t, int from, int to)
{
	const struct yk_domain whole = { .set = cores.set },
			       *all = cores.domains ? cores.domain : &whole;
	int64_t before = 0;
	int seen = 0;

	for (int d = 0; d < cores.domains || d < 1; d++) {
		const struct yk_processors set = part_of(&all[d].set, from, to, &seen);
		if (yk_processors_count(&set) || cores.domains < 2)
			t->domain[t->nodes++] =
				(struct yk_domain){ .set = set, .near = all[d].near };
		else
			free(set.bits);
	}
	if (t->nodes > 1)
		yk_domains_assign(t->domain, t->nodes, t->size);
	else
		t->domain->threads = t->size;
	for (int k = 0; k < t->nodes; k++) {
		t->node[k] = (struct node){ .before = before, .team = t };
		before += t->domain[k].threads;
	}
}

static void count(void)
{
	static struct team only;
	static struct node whole;
	static struct yk_domain everywhere;

	yk_cores_find(&cores);
	if (cores.n > INSIDE)
		cores.n = INSIDE;
	int n = nteams, all = cores.set.bits ? yk_processors_count(&cores.set) : cores.n;
	const int nodes = cores.domains > 1 ? cores.domains : 1;
	struct team *t = n > 1 ? aligned_alloc(64, (size_t)n * sizeof *t) : &only;
	struct node *node =
		n * nodes > 1 ? aligned_alloc(64, (size_t)(n * nodes) * sizeof *node) : &whole;
	struct yk_domain *domain =
		n * nodes > 1 ? calloc((size_t)(n * nodes), sizeof *domain) : &everywhere;
	if (!t || !node || !domain) {
		n = 1;
		t = &only;
		node = &whole;
		domain = &everywhere;
		cores.domains = 0;
	}
	for (int i = 0; i < n; i++) {
		int from = all * i / n, to = all * (i + 1) / n;
		t[i] = (struct team){ .size = cores.n * (i + 1) / n - cores.n * i / n,
				      .node = &node[i * nodes],
				      .domain = &domain[i * nodes],
				      .avoided = SIZE_MAX };
		pthread_mutex_init(&t[i].lock, NULL);
		if (t[i].size < 1)
			t[i].size = 1;
		assemble(&t[i], from < all ? from : all - 1, to > from ? to : from + 1);
	}
	nteams = n;
	teams = t;
}

static struct team *team(uint32_t device)
{
	pthread_once(&counted, count);
	return &teams[device < (uint32_t)nteams ? device : 0];
}

void yk_team_divide(int devices)
{
	nteams = devices;
}

void yk_team_use(uint32_t device)
{
	mine = device;
}

bool yk_team_alone(bool on)
{
	const bool was = alone;
	alone = on;
	return was;
}

int yk_team_size_of(uint32_t device)
{
	return team(device)->size;
}

int yk_team_size(void)
{
	return yk_team_size_of(mine);
}

const char *yk_team_bound(void)
{
	team(0);
	return cores.bound;
}

int yk_team_nodes(void)
{
	return team(mine)->nodes;
}

const struct yk_cores *yk_team_cores(void)
{
	team(0);
	return &cores;
}

void yk_team_limit(int threads)
{
	limit = threads;
}

// ---- workers ----

static void pause_briefly(void)
{
#if defined __x86_64__ || defined __i386__
	__builtin_ia32_pause();
#elif defined __aarch64__
	__asm__ volatile("yield");
#endif
}

static uint64_t now(void) // ns
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// Runs items of the thread's node, then those that other nodes have not begun.
static void draw(struct team *t, int home)
{
	for (int k = 0; k < t->nodes; k++) {
		struct node *from = &t->node[(home + k) % t->nodes];
		while (atomic_load_explicit(&from->next, memory_order_relaxed) < from->end) {
			const int64_t i =
				atomic_fetch_add_explicit(&from->next, 1, memory_order_relaxed);
			if (i < from->end)
				t->fn(t->arg, i);
		}
	}
}

// The node that the calling thread runs on.
static int home_of_caller(const struct team *t)
{
	if (t->nodes > 1) {
		const size_t cpu = yk_processor();
		for (int k = 0; k < t->nodes; k++)
			if (yk_processors_has(&t->domain[k].near, cpu))
				return k;
	}
	return 0;
}

// Waits until the word differs from `seen`: spins, then sleeps.
static void await_change(struct team *t, unsigned seen)
{
	uint64_t end = now() + SPIN_NS;

	do {
		for (int i = 0; i < 64; i++) {
			if (atomic_load(&t->word) != seen)
				return;
			pause_briefly();
		}
	} while (now() < end);
	// Either the caller sees this sleeper, or the system call sees the new word.
	atomic_fetch_add(&t->sleepers, 1);
	yk_team_sleep(&t->word, seen);
	atomic_fetch_sub(&t->sleepers, 1);
}

static bool has_room(unsigned word)
{
	return !limit || (int)(word & INSIDE) < limit - 1;
}

static void *work(void *arg)
{
	struct node *own = arg;
	struct team *t = own->team;
	unsigned done = 0; // generation; 0 is never open

	inside = true;
	for (;;) {
		unsigned word = atomic_load(&t->word);
		if (!(word & OPEN) || word / GENERATION == done || !has_room(word)) {
			await_change(t, word);
		} else if (atomic_compare_exchange_weak(&t->word, &word, word + 1)) {
			done = word / GENERATION;
			draw(t, (int)(own - t->node));
			atomic_fetch_sub(&t->word, 1);
		}
	}
	return NULL;
}

// Starts the workers, except one on the caller's node. Each may run on any of its node's cores (one
// processor per core) but the caller's.
static void start(struct team *t)
{
	sigset_t all, old;
	pthread_attr_t attr;

	t->started = true;
	t->worker = calloc((size_t)t->size, sizeof *t->worker);
	if (!t->worker || pthread_attr_init(&attr))
		return;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old); // signals belong to the application
	int home = home_of_caller(t);
	while (!t->domain[home].threads)
		home = (home + 1) % t->nodes;
	for (int i = 1, k = 0, left = t->domain->threads - (home == 0); i < t->size; i++, left--) {
		char name[16];
		pthread_t thread;
		while (left == 0) {
			k++;
			left = t->domain[k].threads - (home == k);
		}
		if (pthread_create(&thread, &attr, work, &t->node[k]))
			break; // having fewer workers costs only speed
		yk_processors_bind(thread, &t->domain[k].set);
		snprintf(name, sizeof name, "yoke/%d", i);
		yk_thread_named(thread, name);
		t->worker[t->workers++] = (struct worker){ thread, k };
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
}

// The processors of a node without the one to avoid, if these are enough for its workers.
static struct yk_processors room_on(const struct team *t, int node)
{
	const struct yk_processors *all = &t->domain[node].set;
	struct yk_processors set = yk_processors_like(all);
	int workers = 0;

	for (int i = 0; i < t->workers; i++)
		workers += t->worker[i].node == node;
	for (size_t i = 0; i < set.words; i++)
		set.bits[i] = all->bits[i];
	if (yk_processors_has(&set, t->avoided) && yk_processors_count(&set) > workers)
		yk_processors_drop(&set, t->avoided);
	return set;
}

// Keeps the workers off the caller's processor. A system that packs threads onto few processors may
// wake a worker there although others are idle, and the worker then waits for the caller, for many
// milliseconds. The caller's own affinity belongs to the application. Callers that alternate
// between processors spend about 2 % of the time here.
static void keep_apart(struct team *t)
{
	enum { SHARE = 50, MAX_NS = 10000000 };
	const size_t cpu = yk_processor(), was = t->avoided;

	if (cpu == was)
		return;
	const uint64_t begin = now();
	if (begin < t->settled)
		return;
	t->avoided = cpu;
	for (int k = 0; k < t->nodes; k++) {
		const struct yk_processors *all = &t->domain[k].set;
		if (!yk_processors_has(all, cpu) && !yk_processors_has(all, was))
			continue;
		const struct yk_processors set = room_on(t, k);
		for (int i = 0; i < t->workers; i++)
			if (t->worker[i].node == k)
				yk_processors_bind(t->worker[i].thread, &set);
		free(set.bits);
	}
	const uint64_t end = now(), rest = SHARE * (end - begin);
	t->settled = end + (rest < MAX_NS ? rest : MAX_NS);
}

// ---- entry points ----

static void run_in_place(int64_t n, void (*fn)(void *arg, int64_t item), void *arg)
{
	for (int64_t i = 0; i < n; i++)
		fn(arg, i);
}

int64_t yk_team_share(int64_t n, int64_t t, int64_t all)
{
	return n / all * t + n % all * t / all;
}

static void run_together(struct team *t, int64_t n, void (*fn)(void *arg, int64_t item), void *arg)
{
	unsigned generation = atomic_load(&t->word) / GENERATION + 1;

	if (generation > UINT_MAX / GENERATION)
		generation = 1;
	t->n = n;
	t->fn = fn;
	t->arg = arg;
	for (int k = 0; k < t->nodes; k++) {
		struct node *node = &t->node[k];
		atomic_store_explicit(&node->next, yk_team_share(n, node->before, t->size),
				      memory_order_relaxed);
		node->end = yk_team_share(n, node->before + t->domain[k].threads, t->size);
	}
	atomic_store(&t->word, generation * GENERATION + OPEN);
	if (atomic_load(&t->sleepers) > 0)
		yk_team_wake(&t->word, n - 1 < INT_MAX ? (int)(n - 1) : INT_MAX);
	inside = true;
	draw(t, home_of_caller(t));
	inside = false;
	atomic_fetch_and(&t->word, ~(unsigned)OPEN);
	for (int spins = 0; atomic_load(&t->word) & INSIDE; spins++) {
		if (spins < 4096)
			pause_briefly();
		else
			sched_yield();
	}
}

void yk_team_run(int64_t n, void (*fn)(void *arg, int64_t item), void *arg)
{
	struct team *t = team(mine);

	if (n <= 1 || inside || alone || limit == 1 || t->size == 1 ||
	    pthread_mutex_trylock(&t->lock)) {
		run_in_place(n, fn, arg);
		return;
	}
	if (!t->started)
		start(t);
	keep_apart(t);
	run_together(t, n, fn, arg);
	pthread_mutex_unlock(&t->lock);
}

// ---- scratch ----

static _Thread_local struct {
	void *base;
	size_t bytes;
} scratch;

static pthread_key_t scratch_key;
static pthread_once_t scratch_once = PTHREAD_ONCE_INIT;

static void scratch_init(void)
{
	pthread_key_create(&scratch_key, free);
}

void *yk_team_scratch(size_t bytes)
{
	size_t rounded;
	void *p;

	if (bytes <= scratch.bytes)
		return scratch.base;
	if (__builtin_add_overflow(bytes, (size_t)4095, &rounded))
		return NULL;
	rounded &= ~(size_t)4095;
	pthread_once(&scratch_once, scratch_init);
	// A thread-specific key frees it at thread exit; old content need not be kept.
	p = aligned_alloc(4096, rounded);
	if (!p)
		return NULL;
	free(scratch.base);
	scratch.base = p;
	scratch.bytes = rounded;
	pthread_setspecific(scratch_key, p);
	return p;
}
