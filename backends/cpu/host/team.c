// SPDX-License-Identifier: Apache-2.0
// The team: worker threads shared by all contexts, started at first use.
// The pieces of a job are cut by its shape and drawn from a counter; no result depends on
// who takes which.  A second caller, or a call from inside a piece, runs its pieces in
// place.
#include "config.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "frame.h"

// The state of the job in one word: generation | OPEN | workers inside.  A worker joins
// by adding one while the job is open; the caller closes it when no piece is left and
// waits for those inside.  So a worker that sleeps late delays nobody and never sees a job
// that is over.
enum { INSIDE = (1 << 10) - 1, OPEN = 1 << 10, GENERATION = 1 << 11 };

enum { SPIN_NS = 50000 }; // a worker looks for the next job that long before it sleeps

static struct {
	pthread_mutex_t lock; // held by the caller whose job it is
	pthread_once_t counted, started;
	struct yk_cores cores;
	int limit;

	_Alignas(64) atomic_uint word;
	atomic_int sleepers;

	_Alignas(64) atomic_int_fast64_t next; // piece
	int64_t n;
	void (*fn)(void *arg, int64_t piece);
	void *arg;
} team = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.counted = PTHREAD_ONCE_INIT,
	.started = PTHREAD_ONCE_INIT,
};

static _Thread_local bool inside;

static void count(void)
{
	yk_cores_find(&team.cores);
	if (team.cores.n > INSIDE)
		team.cores.n = INSIDE;
}

static const struct yk_cores *cores(void)
{
	pthread_once(&team.counted, count);
	return &team.cores;
}

int yk_team_size(void)
{
	return cores()->n;
}

const char *yk_team_bound(void)
{
	return cores()->bound;
}

int yk_team_nodes(void)
{
	return cores()->nodes;
}

void yk_team_limit(int threads)
{
	team.limit = threads;
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

static void draw(void)
{
	int64_t i;

	for (;;) {
		i = atomic_fetch_add_explicit(&team.next, 1, memory_order_relaxed);
		if (i >= team.n)
			return;
		team.fn(team.arg, i);
	}
}

// Waits until the word differs from `seen`: spinning, then asleep.
static void await_change(unsigned seen)
{
	uint64_t end = now() + SPIN_NS;

	do {
		for (int i = 0; i < 64; i++) {
			if (atomic_load(&team.word) != seen)
				return;
			pause_briefly();
		}
	} while (now() < end);
	// Either the caller sees this sleeper, or the futex sees the caller's word.
	atomic_fetch_add(&team.sleepers, 1);
	syscall(SYS_futex, &team.word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
	atomic_fetch_sub(&team.sleepers, 1);
}

static bool has_room(unsigned word)
{
	return !team.limit || (int)(word & INSIDE) < team.limit - 1;
}

static void *work(void *unused)
{
	unsigned done = 0; // generation, 0 is never open

	inside = true;
	for (;;) {
		unsigned word = atomic_load(&team.word);
		if (!(word & OPEN) || word / GENERATION == done || !has_room(word)) {
			await_change(word);
		} else if (atomic_compare_exchange_weak(&team.word, &word, word + 1)) {
			done = word / GENERATION;
			draw();
			atomic_fetch_sub(&team.word, 1);
		}
	}
	return unused;
}

// Starts the workers.  Each may run on any of the team's cores but on one processor a
// core: a worker tied to a core of its own would wait there whenever the caller, who is
// not ours to bind, is on it.
static void start(void)
{
	sigset_t all, old;
	pthread_attr_t attr;
	int size = yk_team_size();

	if (pthread_attr_init(&attr))
		return;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (team.cores.set)
		pthread_attr_setaffinity_np(&attr, team.cores.bytes, team.cores.set);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old); // signals are the application's
	for (int i = 1; i < size; i++) {
		char name[16];
		pthread_t thread;
		if (pthread_create(&thread, &attr, work, NULL))
			break; // fewer are slower, not wrong
		snprintf(name, sizeof name, "yoke/%d", i);
		pthread_setname_np(thread, name);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
}

// ---- entry points ----

static void run_in_place(int64_t n, void (*fn)(void *arg, int64_t piece), void *arg)
{
	for (int64_t i = 0; i < n; i++)
		fn(arg, i);
}

static void run_together(int64_t n, void (*fn)(void *arg, int64_t piece), void *arg)
{
	unsigned generation = atomic_load(&team.word) / GENERATION + 1;

	if (generation > UINT_MAX / GENERATION)
		generation = 1;
	team.n = n;
	team.fn = fn;
	team.arg = arg;
	atomic_store_explicit(&team.next, 0, memory_order_relaxed);
	atomic_store(&team.word, generation * GENERATION + OPEN);
	if (atomic_load(&team.sleepers) > 0)
		syscall(SYS_futex, &team.word, FUTEX_WAKE_PRIVATE,
			n - 1 < INT_MAX ? (int)(n - 1) : INT_MAX, NULL, NULL, 0);
	inside = true;
	draw();
	inside = false;
	atomic_fetch_and(&team.word, ~(unsigned)OPEN);
	for (int spins = 0; atomic_load(&team.word) & INSIDE; spins++) {
		if (spins < 4096)
			pause_briefly();
		else
			sched_yield();
	}
}

void yk_team_run(int64_t n, void (*fn)(void *arg, int64_t piece), void *arg)
{
	if (n <= 1 || inside || team.limit == 1 || yk_team_size() == 1 ||
	    pthread_mutex_trylock(&team.lock)) {
		run_in_place(n, fn, arg);
		return;
	}
	pthread_once(&team.started, start);
	run_together(n, fn, arg);
	pthread_mutex_unlock(&team.lock);
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
	// The key frees it at the thread's end; content need not outlive the growth.
	p = aligned_alloc(4096, rounded);
	if (!p)
		return NULL;
	free(scratch.base);
	scratch.base = p;
	scratch.bytes = rounded;
	pthread_setspecific(scratch_key, p);
	return p;
}
