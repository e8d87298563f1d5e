// SPDX-License-Identifier: Apache-2.0
// Tests the framework of the CPU backend: the thread team, segments, events, and calls after a
// fork.
#include "config.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../backends/cpu/host/frame.h"
#include "tap.h"

yoke_plugin_init_fn yoke_cpu_init;

// ---- a host that knows two settings ----

static const char *threads_value = "0", *isa_value = "";
static char last_error[512];

static void host_error(int code, const char *text)
{
	snprintf(last_error, sizeof last_error, "%d: %s", code, text);
}

static const char *host_setting(const struct yoke_setting *s)
{
	return !strcmp(s->name, "threads") ? threads_value :
	       !strcmp(s->name, "cpu.isa") ? isa_value :
					     s->def;
}

static const struct yoke_host host = {
	.size = sizeof host,
	.abi = YOKE_ABI,
	.error = host_error,
	.setting = host_setting,
};

// Runs fn in a child made before anything was started here; returns its exit status.
static int child(int (*fn)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(fn());
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

static int one_thread(void)
{
	const struct yoke_backend *backend;

	threads_value = "1";
	return yoke_cpu_init(YOKE_ABI, &host, &backend) == 0 && yk_team_size() == 1 ? 0 :
										      1;
}

static int one_processor(void)
{
	cpu_set_t set, one;
	int cpu = 0;

#ifdef YK_POSIX_ONLY
	return 2;
#endif
	if (sched_getaffinity(0, sizeof set, &set) < 0)
		return 2;
	while (!CPU_ISSET(cpu, &set))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof one, &one) < 0)
		return 2;
	return yk_team_size() == 1 ? 0 : 1;
}

static int unknown_isa(void)
{
	const struct yoke_backend *backend;
	uint32_t n;

	isa_value = "sse9";
	if (yoke_cpu_init(YOKE_ABI, &host, &backend) < 0)
		return 1;
	return backend->probe(&n) == YOKE_EUNSUPPORTED && strstr(last_error, "sse9") &&
			       !strchr(last_error, '\n') ?
		       0 :
		       1;
}

static int base_isa(void)
{
	const struct yoke_backend *backend;
	struct yoke_device_info info = { .size = sizeof info };
	uint32_t n;

	isa_value = "base";
	if (yoke_cpu_init(YOKE_ABI, &host, &backend) < 0 || backend->probe(&n) < 0 ||
	    backend->device_info(0, &info) < 0)
		return 1;
	return strncmp(info.driver, "base,", 5) && strncmp(info.driver, "neon,", 5);
}

// ---- the team ----

enum { PIECES = 1000 };

struct job {
	atomic_int seen[PIECES];
	atomic_int nested, wrong;
	pthread_t caller;
};

static void count(void *arg, int64_t piece)
{
	struct job *job = arg;

	atomic_fetch_add(&job->seen[piece], 1);
}

static bool each_once(struct job *job, int n)
{
	for (int i = 0; i < PIECES; i++)
		if (atomic_load(&job->seen[i]) != (i < n))
			return false;
	return true;
}

static void pieces_once(void)
{
	static const int sizes[] = { 0, 1, 2, 3, 7, 64, PIECES };
	bool good = true;

	for (int repeat = 0; repeat < 500; repeat++)
		for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
			struct job job = { 0 };
			yk_team_run(sizes[i], count, &job);
			good &= each_once(&job, sizes[i]);
		}
	ok(good, "every item runs once");
}

static void after_sleep(void)
{
	bool good = true;

	for (int i = 0; i < 20; i++) { // workers sleep in between
		struct job job = { 0 };
		usleep(2000);
		yk_team_run(PIECES, count, &job);
		good &= each_once(&job, PIECES);
	}
	ok(good, "every item runs once after the team was asleep");
}

static void inner(void *arg, int64_t piece)
{
	struct job *job = arg;

	(void)piece;
	atomic_fetch_add(&job->nested, 1);
}

static void outer(void *arg, int64_t piece)
{
	(void)piece;
	yk_team_run(5, inner, arg);
}

static void on_caller(void *arg, int64_t piece)
{
	struct job *job = arg;

	(void)piece;
	if (!pthread_equal(job->caller, pthread_self()))
		atomic_fetch_add(&job->wrong, 1);
}

static void in_place(void)
{
	struct job job = { .caller = pthread_self() };

	yk_team_run(40, outer, &job);
	ok(atomic_load(&job.nested) == 200, "a job inside an item: %d of 200 items",
	   atomic_load(&job.nested));
	for (int i = 0; i < 1000; i++)
		yk_team_run(1, on_caller, &job);
	ok(atomic_load(&job.wrong) == 0, "a job of one item runs on its caller");
	yk_team_limit(1);
	yk_team_run(PIECES, on_caller, &job);
	yk_team_limit(0);
	ok(atomic_load(&job.wrong) == 0, "a limit of one thread applies");
	const bool was = yk_team_alone(true);
	yk_team_run(PIECES, on_caller, &job);
	ok(!was && yk_team_alone(was) && atomic_load(&job.wrong) == 0,
	   "a caller may keep its jobs to itself");
}

static void *other_caller(void *arg)
{
	bool *good = arg;

	for (int i = 0; i < 300; i++) {
		struct job job = { 0 };
		yk_team_run(100, count, &job);
		*good &= each_once(&job, 100);
	}
	return NULL;
}

static void many_callers(void)
{
	enum { CALLERS = 4 };
	pthread_t thread[CALLERS];
	bool good[CALLERS], all = true;

	for (int i = 0; i < CALLERS; i++) {
		good[i] = true;
		pthread_create(&thread[i], NULL, other_caller, &good[i]);
	}
	for (int i = 0; i < CALLERS; i++) {
		pthread_join(thread[i], NULL);
		all &= good[i];
	}
	ok(all, "%d callers at a time, every item once", CALLERS);
}

#ifdef YK_POSIX_ONLY
static void apart(void)
{
	skip("workers leave the caller's processor", "the affinity cannot be set");
}
#else
struct meeting {
	atomic_int arrived;
	pthread_t caller;
	int cpu;        // the caller's
	bool elsewhere; // the worker may not run there
};

// Each item waits for the other, so that one of them runs on a worker.
static void meet(void *arg, int64_t item)
{
	struct meeting *m = arg;
	cpu_set_t set;

	(void)item;
	if (!pthread_equal(m->caller, pthread_self()))
		m->elsewhere =
			sched_getaffinity(0, sizeof set, &set) == 0 && !CPU_ISSET(m->cpu, &set);
	atomic_fetch_add(&m->arrived, 1);
	while (atomic_load(&m->arrived) < 2)
		sched_yield();
}

static void apart(void)
{
	enum { TRIES = 100000 }; // workers do not follow each move of the caller at once
	cpu_set_t set, one;
	bool all = true;

	if (yk_team_size() == 1 || sched_getaffinity(0, sizeof set, &set) < 0) {
		skip("workers leave the caller's processor",
		     "one thread, or the affinity is not known");
		return;
	}
	for (int cpu = 0, n = 0; cpu < CPU_SETSIZE && n < 4; cpu++) {
		struct meeting m = { .caller = pthread_self(), .cpu = cpu };
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		if (!CPU_ISSET(cpu, &set) || sched_setaffinity(0, sizeof one, &one) < 0)
			continue;
		n++;
		for (int i = 0; i < TRIES && !m.elsewhere; i++) {
			atomic_store(&m.arrived, 0);
			yk_team_run(2, meet, &m);
		}
		all &= m.elsewhere;
	}
	sched_setaffinity(0, sizeof set, &set);
	ok(all, "workers leave the caller's processor");
}
#endif

static void use_scratch(void *arg, int64_t piece)
{
	struct job *job = arg;
	size_t n = (size_t)(piece + 1) * 1000;
	unsigned char *p = yk_team_scratch(n);

	if (!p || (uintptr_t)p % 64) {
		atomic_fetch_add(&job->wrong, 1);
		return;
	}
	memset(p, (int)piece, n);
	sched_yield();
	for (size_t i = 0; i < n; i += 97)
		if (p[i] != (unsigned char)piece)
			atomic_fetch_add(&job->wrong, 1);
}

static void scratch(void)
{
	struct job job = { 0 };

	yk_team_run(100, use_scratch, &job);
	ok(atomic_load(&job.wrong) == 0, "scratch memory is per thread");
	ok(!yk_team_scratch(SIZE_MAX), "scratch of SIZE_MAX bytes is refused");
}

// ---- the table ----

static void segments(const struct yoke_backend *b, void *queue)
{
	static const uint64_t sizes[] = {
		0, 1, 63, 64, 4097, (2 << 20) - 1, 2 << 20, (2 << 20) + 1, (9 << 20) + 5
	};
	bool good = true;
	void *s = NULL, *t = NULL;
	uint64_t word;
	char *p;

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		if (b->segment_new(0, YOKE_SEGMENT_DEVICE, sizes[i], &s) < 0) {
			good = false;
			continue;
		}
		p = b->segment_host(s);
		good &= (uintptr_t)p % (sizes[i] < 2 << 20 ? 64 : 2 << 20) == 0;
		memset(p, 1, sizes[i]);
		b->segment_free(0, s);
	}
	ok(good, "segments are aligned and writable");
	s = &good;
	ok(b->segment_new(0, 0, UINT64_MAX - 5, &t) == YOKE_ENOMEM && !t,
	   "a segment of almost 2^64 bytes: ENOMEM, nothing written");

	if (b->segment_new(0, 0, 5 << 20, &s) < 0 ||
	    b->segment_new(0, 0, 5 << 20, &t) < 0)
		return;
	p = b->segment_host(t);
	ok(b->fill(queue, s, 24, 3 << 20, &(uint64_t){ 0x0102030405060708 }, 8) == 0 &&
		   b->copy(queue, t, 8, s, 24, 3 << 20) == 0 &&
		   b->get(queue, t, (3 << 20), &word, 8) == 0 &&
		   word == 0x0102030405060708,
	   "fill, copy and get of 3 MiB");
	ok(b->fill(queue, t, 3, 6, "\x12\x34", 2) == 0 &&
		   !memcmp(p + 3, "\x12\x34\x12\x34\x12\x34", 6),
	   "fill by two bytes at an odd offset");
	ok(b->fill(queue, t, 0, 9, "\x12\x34", 2) == YOKE_EINVAL,
	   "fill of half a pattern: EINVAL");
	ok(b->put(queue, t, (5 << 20) + (2 << 20), "x", 1) == YOKE_ERANGE &&
		   b->copy(queue, t, UINT64_MAX, s, 0, 2) == YOKE_ERANGE,
	   "outside a segment: ERANGE");
	for (int i = 0; i < 100; i++)
		p[i] = (char)i;
	ok(b->copy(queue, t, 5, t, 0, 90) == 0 && p[5] == 0 && p[94] == 89,
	   "copy onto an overlapping range");
	b->segment_free(0, s);
	b->segment_free(0, t);
}

static void events(const struct yoke_backend *b, void *queue)
{
	void *from = NULL, *to = NULL;
	uint64_t ns = 0;
	int rc;

	ok(b->event_mark(queue, &from) == 0, "mark");
	usleep(3000);
	ok(b->event_mark(queue, &to) == 0 && b->event_done(to) == 1 &&
		   b->event_wait(to) == 0,
	   "an event is complete at once");
	rc = b->event_elapsed(from, to, &ns);
	ok(rc == 0 && ns >= 3000000, "3 ms elapsed: %.3f ms", (double)ns * 1e-6);
	b->event_free(from);
	b->event_free(to);
	ok(b->event_done(NULL) == 1 && b->event_after(queue, NULL) == 0, "NULL counts as complete");
}

static const struct yoke_backend *table;
static void *table_queue;

static int refused_in_child(void)
{
	void *p = NULL;
	uint32_t n;
	uint64_t bytes;
	struct yoke_op op = { .size = sizeof op, .code = YOKE_OP_CONTRACT };

	return table->probe(&n) == YOKE_EFORK &&
			       table->segment_new(0, 0, 64, &p) == YOKE_EFORK &&
			       table->queue_new(0, 0, &p) == YOKE_EFORK &&
			       table->can(0, &op) == 0 &&
			       table->event_mark(table_queue, &p) == YOKE_EFORK &&
			       table->prepare(0, &op, 0, 1, &p, &bytes) == YOKE_EFORK &&
			       table->run(table_queue, NULL, &op) == YOKE_EFORK &&
			       strstr(last_error, "fork") ?
		       0 :
		       1;
}

int main(void)
{
	struct yoke_device_info info = { .size = sizeof info };
	struct yoke_device_info part = { .size = offsetof(struct yoke_device_info,
							  memory) };
	struct yoke_op unknown = { .size = sizeof unknown, .code = YOKE_OP_LIMIT + 3 };
	const struct yk_isa *isas[3];
	uint32_t n = 0;
	int usable = yk_isa_usable(isas), rc;

	ok(child(one_thread) == 0, "threads=1 is one thread");
	rc = child(one_processor);
	if (rc == 2)
		skip("one processor is one thread", "the affinity cannot be set");
	else
		ok(rc == 0, "one processor is one thread");
	ok(child(unknown_isa) == 0, "cpu.isa=sse9 is an error in one line");
	ok(child(base_isa) == 0, "cpu.isa=base is accepted");
	ok(usable >= 1 && (!strcmp(isas[0]->name, "base") || !strcmp(isas[0]->name, "neon")),
	   "%d instruction sets are available",
	   usable);

	ok(yoke_cpu_init((YOKE_ABI_MAJOR + 1) << 16, &host, &table) == YOKE_EABI,
	   "another ABI is refused");
	ok(yoke_cpu_init(YOKE_ABI, &host, &table) == 0 && table->probe(&n) == 0 && n == 1,
	   "one device");
	rc = table->device_info(0, &info);
	ok(rc == 0 && info.kind == YOKE_DEVICE_CPU && info.memory > 0 &&
		   info.units == (uint32_t)yk_team_size() && info.name[0],
	   "%s, %s, %u threads, %.1f GiB", info.name, info.driver, info.units,
	   (double)info.memory * 0x1p-30);
	ok(table->device_info(0, &part) == 0 &&
		   part.size == offsetof(struct yoke_device_info, memory) &&
		   part.memory == 0,
	   "a shorter info struct is filled up to its size");
	ok(table->device_info(1, &info) == YOKE_ENODEV, "there is no second device");
	ok(table->can(0, &unknown) == 0, "an unknown op is unsupported");
	ok(table->queue_new(0, YOKE_QUEUE_COMPUTE, &table_queue) == 0, "a queue");

	diag("%d threads, bound by %s", yk_team_size(), yk_team_bound());
	pieces_once();
	after_sleep();
	apart();
	in_place();
	many_callers();
	scratch();
	segments(table, table_queue);
	events(table, table_queue);
	ok(child(refused_in_child) == 0, "after a fork: EFORK");
	table->queue_free(table_queue);
	return done();
}
