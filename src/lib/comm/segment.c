// SPDX-License-Identifier: Apache-2.0
// Creates the memory that the ranks of one machine share, in their parent process or in the first
// of them, and hands it out.
#include "config.h"

#include "comm/segment.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/socket.h"
#include "base/system.h"
#include "comm/tuned.h"

enum {
	GROUPS = 24, // space for this many groups of all ranks; untouched pages use no memory
	START_MS = 30000,      // time limit for a rank to fetch the memory
	MAGIC = 0x796b7267
};

struct head { // at the start of the segment
	uint32_t magic, ranks;
	uint64_t bytes;
	_Atomic uint64_t next; // offset of the free space
	uint32_t first;        // the rank that created it
	_Atomic uint32_t spoken; // id of the process that reports a failure to the user
};

struct yk_segment {
	atomic_int refs;
	struct head *at;
	uint64_t bytes;
	int peer[YK_MAX_RANKS];
};

// ---- the segment ----

// Bytes of a link's ring buffer. Data that was written a while ago has left the L1 and L2 caches of
// both sides, and rewriting it costs half as much as fetching the cache lines back from the other
// core, so large rings are faster. With many ranks they would need too much memory.
static uint32_t ring_of(uint32_t ranks)
{
	return ranks <= 2  ? 1 << 20 :
	       ranks <= 4  ? 1 << 19 :
	       ranks <= 8  ? 1 << 18 :
	       ranks <= 16 ? 1 << 17 :
			     1 << 14;
}

static uint64_t room_of(uint32_t ranks)
{
	return (yk_area_bytes(ranks, ring_of(ranks)) + 4095) / 4096 * 4096;
}

uint64_t yk_segment_min(uint32_t ranks)
{
	return 4096 + room_of(ranks);
}

struct yk_segment *yk_segment_ref(struct yk_segment *s)
{
	atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
	return s;
}

void yk_segment_unref(struct yk_segment *s)
{
	if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) > 1)
		return;
	munmap(s->at, s->bytes);
	free(s);
}

uint64_t yk_segment_reserve(struct yk_segment *s, uint32_t ranks)
{
	const uint64_t room = room_of(ranks), at = atomic_fetch_add(&s->at->next, room);
	if (at > s->bytes || room > s->bytes - at)
		return 0;
	struct yk_area *a = (struct yk_area *)((char *)s->at + at);
	yk_area_init(a, ranks, ring_of(ranks));
	// set by the segment's creator, so that all ranks use the same
	yk_tuned_best(ranks, a->best);
	return at;
}

struct yk_area *yk_segment_area(struct yk_segment *s, uint64_t at, uint32_t ranks)
{
	struct yk_area *a = (struct yk_area *)((char *)s->at + at);
	if (at < 4096 || at % 4096 || at > s->bytes || room_of(ranks) > s->bytes - at ||
	    a->ranks != ranks || a->ring != ring_of(ranks))
		return NULL;
	return a;
}

static struct yk_segment *segment_map(int fd, uint64_t bytes)
{
	struct yk_segment *s = malloc(sizeof *s);
	void *at = s ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
	if (at == MAP_FAILED) {
		free(s);
		return NULL;
	}
	*s = (struct yk_segment){ .at = at, .bytes = bytes };
	atomic_init(&s->refs, 1);
	return s;
}

// The first area is the world's.
struct yk_segment *yk_segment_new(uint32_t ranks, int *fd)
{
	const uint64_t bytes = 4096 + GROUPS * room_of(ranks);
	struct yk_segment *s = NULL;
	*fd = yk_memory_open("yoke-ranks");
	if (*fd >= 0 && ftruncate(*fd, (off_t)bytes) == 0 && yk_memory_seal(*fd) == 0)
		s = segment_map(*fd, bytes);
	if (!s) {
		yk_fail(YOKE_ENOMEM, "no shared memory for %u ranks: %s", ranks, strerror(errno));
		if (*fd >= 0)
			close(*fd);
		return NULL;
	}
	s->at->magic = MAGIC;
	s->at->ranks = ranks;
	s->at->bytes = bytes;
	atomic_init(&s->at->next, 4096);
	yk_segment_reserve(s, ranks);
	return s;
}

struct yk_area *yk_segment_world(const struct yk_segment *s)
{
	return (struct yk_area *)((char *)s->at + 4096);
}

void yk_segment_break(struct yk_segment *s, int code, const char *fmt, ...)
{
	struct yk_area *a = yk_segment_world(s);
	va_list ap;
	va_start(ap, fmt);
	yk_area_break(a, code, fmt, ap);
	va_end(ap);
	for (uint32_t i = 0; i < a->ranks; i++)
		yk_wakeup_ring(&a->slot[i].wakeup);
}

// ---- the socket ----

int yk_socket_listen(const char *name, int max)
{
	const int s = yk_local_socket(false);
	if (s >= 0 && yk_local_bind(s, name) == 0 && listen(s, max) == 0)
		return s;
	const int was = errno;
	if (s >= 0)
		close(s);
	errno = was;
	return -1;
}

static struct yk_hello hello_of(uint32_t rank)
{
	struct yk_hello h = { .magic = MAGIC, .rank = rank };
	snprintf(h.version, sizeof h.version, "%s", yoke_version());
	return h;
}

struct yk_answer yk_answer_of(uint32_t host)
{
	return (struct yk_answer){ .host = hello_of(host) };
}

int yk_answer_error(const struct yk_answer *a)
{
	char who[40] = "who started them";
	if (!a->unlike.magic)
		return 0;
	if (a->host.rank != YK_STARTER)
		snprintf(who, sizeof who, "rank %u", a->host.rank);
	return yk_fail(YOKE_EINVAL,
		       "ranks run different versions of yoke: %s has %.*s, rank %u "
		       "%.*s",
		       who, (int)sizeof a->host.version, a->host.version, a->unlike.rank,
		       (int)sizeof a->unlike.version, a->unlike.version);
}

bool yk_socket_serve(int to, int fd, struct yk_answer *a)
{
	const struct timeval max = { .tv_sec = 1 };
	struct yk_hello other;
	char room[CMSG_SPACE(sizeof fd)] = { 0 };
	struct iovec v = { a, sizeof *a };
	struct msghdr m = {
		.msg_iov = &v, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(c), &fd, sizeof fd);
	setsockopt(to, SOL_SOCKET, SO_RCVTIMEO, &max, sizeof max);
	if (recv(to, &other, sizeof other, MSG_WAITALL) != sizeof other || other.magic != MAGIC)
		return false;
	if (!a->unlike.magic && strncmp(a->host.version, other.version, sizeof other.version))
		a->unlike = other;
	if (a->unlike.magic) {
		m.msg_control = NULL;
		m.msg_controllen = 0;
	}
	return sendmsg(to, &m, MSG_NOSIGNAL) == sizeof *a;
}

// Receives the memory from a socket; *fd < 0: not available now.
static int receive(int from, uint32_t rank, int *fd)
{
	const struct yk_hello mine = hello_of(rank);
	struct yk_answer answer;
	char room[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec v = { &answer, sizeof answer };
	struct msghdr m = {
		.msg_iov = &v, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room
	};
	if (send(from, &mine, sizeof mine, MSG_NOSIGNAL) != sizeof mine ||
	    recvmsg(from, &m, MSG_CMSG_CLOEXEC | MSG_WAITALL) != sizeof answer ||
	    answer.host.magic != MAGIC)
		return 0;
	const struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof *fd))
		memcpy(fd, CMSG_DATA(c), sizeof *fd);
	return yk_answer_error(&answer);
}

// ---- handing out the memory ----

// Fetches the memory from the process that listens at p->name, if `is_right` accepts that process.
// *to NULL: there is none.
static int fetch(const struct yk_started *p, bool (*is_right)(const struct yk_started *, pid_t),
		 struct yk_segment **to)
{
	struct yk_segment *got = NULL;
	int err = 0;
	struct sockaddr_un a;
	struct stat st;
	const socklen_t n = (socklen_t)yk_local_address(&a, p->name);
	const uint64_t bytes = 4096 + GROUPS * room_of(p->ranks);
	int s = yk_local_socket(true), fd = -1;
	if (s >= 0 && connect(s, (struct sockaddr *)&a, n) == 0 && is_right(p, yk_local_peer(s)))
		err = receive(s, p->rank, &fd);
	if (s >= 0)
		close(s);
	if (fd >= 0 && fstat(fd, &st) == 0 && (uint64_t)st.st_size == bytes &&
	    yk_memory_is_sealed(fd))
		got = segment_map(fd, bytes);
	if (fd >= 0)
		close(fd);
	const bool good = got && got->at->magic == MAGIC && got->at->ranks == p->ranks;
	if (!good)
		yk_segment_unref(got);
	*to = good ? got : NULL;
	return err;
}

static bool is_parent(const struct yk_started *p, pid_t pid)
{
	(void)p;
	return pid == getppid();
}

static bool is_sibling(const struct yk_started *p, pid_t pid)
{
	// of the same user, and it knows the name, which has the parent's number
	const bool unknown = !yk_process_parent(pid);
	return pid > 0 && (unknown || yk_started_parent(p, pid) == yk_started_parent(p, getpid()));
}

static int late(const struct yk_started *p, const char *who)
{
	return yk_fail(
		YOKE_ERANK,
		"rank %u of %u, started by %s: %s not come to this machine's memory within %d s",
		p->rank, p->ranks, p->launcher, who, START_MS / 1000);
}

// The machine's first rank creates the memory and hands it to the others.
static int host(const struct yk_started *p, struct yk_segment **to)
{
	const uint64_t began = yk_nanoseconds();
	pid_t *served = calloc(p->locals, sizeof *served);
	struct yk_answer answer = yk_answer_of(p->rank);
	uint32_t n = 0;
	int memory = -1, listener = -1, err = 0;
	struct yk_segment *s = served ? yk_segment_new(p->ranks, &memory) : NULL;
	if (!s)
		err = served ? yk_error_last() :
			       yk_fail(YOKE_ENOMEM, "no memory for %u ranks", p->ranks);
	else
		s->at->first = p->rank;
	if (!err && (listener = yk_socket_listen(p->name, (int)p->locals)) < 0)
		err = yk_fail(YOKE_EIO, "no socket for the ranks of this machine: %s",
			      strerror(errno));
	while (!err && n + 1 < p->locals) {
		struct pollfd fd = { .fd = listener, .events = POLLIN };
		const int c = poll(&fd, 1, 100) > 0 ? yk_accept(listener) : -1;
		const pid_t pid = c < 0 ? -1 : yk_local_peer(c);
		bool anew = pid > 0 && is_sibling(p, pid);
		for (uint32_t i = 0; i < n; i++)
			anew &= served[i] != pid;
		if (anew && yk_socket_serve(c, memory, &answer))
			served[n++] = pid;
		if (c >= 0)
			close(c);
		if (n + 1 < p->locals && yk_nanoseconds() - began > START_MS * (uint64_t)1000000)
			err = late(p, "others have");
	}
	if (answer.unlike.magic) { // notify ranks that connected before the mismatch was found
		err = yk_answer_error(&answer);
		yk_segment_break(s, err, "%s", yoke_error());
	}
	if (listener >= 0) {
		close(listener);
		yk_local_remove(p->name);
	}
	if (memory >= 0)
		close(memory);
	free(served);
	if (err) {
		yk_segment_unref(s);
		return err;
	}
	*to = s;
	return 0;
}

static int visit(const struct yk_started *p, struct yk_segment **to)
{
	const uint64_t began = yk_nanoseconds();
	const struct timespec pause = { 0, 2000000 };
	int err;
	while (!(err = fetch(p, is_sibling, to)) && !*to) {
		if (yk_nanoseconds() - began > START_MS * (uint64_t)1000000)
			return late(p, "the first has");
		nanosleep(&pause, NULL);
	}
	return err;
}

// Fills in this process's slot. Call once, before the process binds threads to CPUs.
static void register_rank(struct yk_rank_slot *s)
{
	s->process = (int)getpid();
	atomic_store(&s->cpus, yk_processors_hash() | 1);
}

int yk_segment_get(const struct yk_started *p, struct yk_segment **to)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct yk_segment *segment;
	static char why[YK_WHY]; // after a timeout, do not wait again
	static int code;
	int err = 0;
	pthread_mutex_lock(&lock);
	if (code) {
		err = yk_fail(code, "%s", why);
	} else if (!segment && p->launcher) {
		// there is no other notice when the launcher is killed
		yk_end_with_parent(SIGTERM);
		yk_watch_parent(SIGTERM);
		err = p->local ? visit(p, &segment) : host(p, &segment);
	} else if (!segment) {
		yk_watch_parent(SIGKILL);
		err = fetch(p, is_parent, &segment);
		if (!err && !segment)
			err = yk_fail(
				YOKE_ERANK,
				"%s is set, but the process that started this one does not give it the "
				"ranks' memory",
				yk_world_variable);
	}
	if (err && !code) {
		code = err;
		snprintf(why, sizeof why, "%s", yoke_error());
	}
	if (!err && !yk_segment_world(segment)->slot[p->rank].process)
		register_rank(&yk_segment_world(segment)->slot[p->rank]);
	*to = segment;
	pthread_mutex_unlock(&lock);
	return err;
}

uint32_t yk_segment_first(const struct yk_segment *s)
{
	return s->at->first;
}

int *yk_segment_peer(struct yk_segment *s, uint32_t rank)
{
	return &s->peer[rank];
}

pid_t yk_segment_speaker(struct yk_segment *s)
{
	uint32_t first = 0;
	const uint32_t self = (uint32_t)getpid();
	return (pid_t)(atomic_compare_exchange_strong(&s->at->spoken, &first, self) ? self : first);
}
