// SPDX-License-Identifier: Apache-2.0
// Ranks as processes: a parent makes the memory that they share, starts them, hands the memory over a socket to
// those who are its children, and tells the others when one ends.
//
// The socket's name is abstract: no file.  Both ends look who the other is (SO_PEERCRED).  Children get SIGKILL when
// their parent ends.
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/param.h"
#include "dist/process.h"

static const char world_name[] = "YOKE_RANKS_WORLD"; // "rank ranks socket", of children

enum {
	RING = 131072, FEW_RING = 16384, MANY = 16, // bytes of links, of more than MANY ranks FEW_RING
	GROUPS = 24,           // as many groups of all ranks have room; pages nobody touches take none
	START_MS = 30000,      // until a child has come for its memory
	MAGIC = 0x796b7267
};

struct head { // of the segment
	uint32_t magic, ranks;
	uint64_t bytes;
	_Atomic uint64_t next; // free from there on
};

struct yk_segment {
	atomic_int refs;
	struct head *at;
	uint64_t bytes;
};

// ---- the segment ----

static uint32_t ring_of(uint32_t ranks)
{
	return ranks > MANY ? FEW_RING : RING;
}

static uint64_t room_of(uint32_t ranks)
{
	return (yk_area_bytes(ranks, ring_of(ranks)) + 4095) / 4096 * 4096;
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

uint64_t yk_segment_take(struct yk_segment *s, uint32_t ranks)
{
	const uint64_t room = room_of(ranks), at = atomic_fetch_add(&s->at->next, room);
	if (at > s->bytes || room > s->bytes - at)
		return 0;
	yk_area_init((struct yk_area *)((char *)s->at + at), ranks, ring_of(ranks));
	return at;
}

struct yk_area *yk_segment_area(struct yk_segment *s, uint64_t at, uint32_t ranks)
{
	struct yk_area *a = (struct yk_area *)((char *)s->at + at);
	if (at < 4096 || at % 4096 || at > s->bytes || room_of(ranks) > s->bytes - at || a->ranks != ranks ||
	    a->ring != ring_of(ranks))
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
static struct yk_segment *segment_new(uint32_t ranks, int *fd)
{
	const uint64_t bytes = 4096 + GROUPS * room_of(ranks);
	struct yk_segment *s = NULL;
	*fd = memfd_create("yoke-ranks", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd >= 0 && ftruncate(*fd, (off_t)bytes) == 0 &&
	    fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
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
	yk_segment_take(s, ranks);
	return s;
}

static struct yk_area *world_of(const struct yk_segment *s)
{
	return (struct yk_area *)((char *)s->at + 4096);
}

__attribute__((format(printf, 3, 4))) static void break_segment(struct yk_segment *s, int code, const char *fmt, ...)
{
	struct yk_area *a = world_of(s);
	va_list ap;
	va_start(ap, fmt);
	yk_area_break(a, code, fmt, ap);
	va_end(ap);
	for (uint32_t i = 0; i < a->ranks; i++)
		yk_bell_ring(&a->seat[i].bell);
}

// ---- the socket ----

static socklen_t address(struct sockaddr_un *a, const char *name)
{
	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	const size_t n = strlen(name); // names are shorter than 96
	memcpy(a->sun_path + 1, name, n);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
}

// Who is at the other end, if it is of the same user; else -1.
static pid_t peer_of(int fd)
{
	struct ucred c;
	socklen_t n = sizeof c;
	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &n) == 0 && c.uid == geteuid() ? c.pid : -1;
}

static bool send_fd(int to, int fd)
{
	char word = 'y', room[CMSG_SPACE(sizeof fd)] = { 0 };
	struct iovec v = { &word, 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(c), &fd, sizeof fd);
	return sendmsg(to, &m, MSG_NOSIGNAL) == 1;
}

static int recv_fd(int from)
{
	char word, room[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec v = { &word, 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room };
	int fd = -1;
	if (recvmsg(from, &m, MSG_CMSG_CLOEXEC) != 1)
		return -1;
	const struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof fd))
		memcpy(&fd, CMSG_DATA(c), sizeof fd);
	return fd;
}

// ---- a rank ----

struct place {
	uint32_t rank, ranks;
	char name[96]; // of the socket
};

static int place_of(const char *text, struct place *to)
{
	char end;
	if (sscanf(text, "%u %u %95s%c", &to->rank, &to->ranks, to->name, &end) != 3 || to->rank >= to->ranks ||
	    to->ranks > YK_MOST_RANKS)
		return yk_fail(YOKE_EINVAL, "%s is '%.100s', not what yoke_group_spawn sets", world_name, text);
	return 0;
}

static int fetch(const char *name, uint32_t ranks, struct yk_segment **to)
{
	struct sockaddr_un a;
	struct stat st;
	const socklen_t n = address(&a, name);
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), fd = -1;
	if (s >= 0 && connect(s, (struct sockaddr *)&a, n) == 0 && peer_of(s) == getppid())
		fd = recv_fd(s);
	if (s >= 0)
		close(s);
	const bool good = fd >= 0 && fstat(fd, &st) == 0 && (uint64_t)st.st_size == 4096 + GROUPS * room_of(ranks) &&
			  fcntl(fd, F_GET_SEALS) == (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	if (good)
		*to = segment_map(fd, (uint64_t)st.st_size);
	if (fd >= 0)
		close(fd);
	if (!good || !*to || (*to)->at->magic != MAGIC || (*to)->at->ranks != ranks)
		return yk_fail(YOKE_ERANK, "%s is set, but the process that started this one does not give it the "
			       "ranks' memory", world_name);
	return 0;
}

// The memory that the ranks share, for the life of the process.
static int segment_get(const struct place *p, struct yk_segment **to)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct yk_segment *segment;
	pthread_mutex_lock(&lock);
	int err = segment ? 0 : fetch(p->name, p->ranks, &segment);
	*to = segment;
	pthread_mutex_unlock(&lock);
	return err;
}

int yk_process_place(uint32_t *rank, uint32_t *ranks)
{
	const char *text = getenv(world_name);
	struct place p;
	int err = text ? place_of(text, &p) : 0;
	if (!text || err)
		return err;
	*rank = p.rank;
	*ranks = p.ranks;
	return 1;
}

int yk_process_world(struct yk_ranks *q, struct yk_hub **to, uint32_t *rank)
{
	static atomic_flag taken = ATOMIC_FLAG_INIT;
	struct yk_bell *bell[YK_MOST_RANKS];
	struct yk_segment *s = NULL;
	struct place p;
	const char *text = getenv(world_name);
	if (!text || atomic_flag_test_and_set(&taken))
		return 0;
	int err = place_of(text, &p);
	if (!err)
		err = segment_get(&p, &s);
	if (!err) {
		struct yk_area *a = world_of(s);
		for (uint32_t i = 0; i < p.ranks; i++)
			bell[i] = &a->seat[i].bell;
		*to = yk_hub_apart(s, a, bell);
		err = *to ? 0 : yk_fail(YOKE_ENOMEM, "no memory for a group of ranks");
	}
	if (!err) {
		atomic_store(&q->bell, bell[p.rank]);
		*rank = p.rank;
	}
	return err;
}

bool yk_process_failed(void)
{
	struct yk_segment *s = NULL;
	struct place p;
	char why[YK_WHY];
	const char *text = getenv(world_name);
	snprintf(why, sizeof why, "%s", yoke_error());
	const int code = yoke_error_code();
	if (!text || place_of(text, &p) < 0 || segment_get(&p, &s) < 0)
		return false;
	if (code != YOKE_ERANK && code != YOKE_EFAILED)
		atomic_store(&world_of(s)->seat[p.rank].erred, 1);
	break_segment(s, YOKE_ERANK, "rank %u: %s", p.rank, why);
	return true;
}

// ---- the parent ----

struct child {
	pid_t pid;
	int fd;       // of the process: readable when it has ended
	bool served;
	int status;   // as waitpid gives it
};

struct parent {
	uint32_t ranks;
	struct yk_segment *segment;
	struct child *child;
	int memory, listener;
	char name[64];
	char **settings;   // the environment, with what was set here in place of what it says
	uint32_t left;     // children that run
	uint64_t failed;   // when the first one ended that did not end well, nanoseconds; 0: none
	bool late;         // those that are left were killed
	int lost, hung;    // ended by signals before that, and then
	struct yk_launch *launch;
	int signals;       // a descriptor of those that are handed on, -1: none are
};

static int listen_at(struct parent *p)
{
	uint64_t word[2];
	struct sockaddr_un a;
	if (getrandom(word, sizeof word, 0) != sizeof word)
		return yk_fail(YOKE_EIO, "no random name: %s", strerror(errno));
	snprintf(p->name, sizeof p->name, "yoke-%d-%016llx%016llx", (int)getpid(), (unsigned long long)word[0],
		 (unsigned long long)word[1]);
	const socklen_t n = address(&a, p->name);
	p->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (p->listener < 0 || bind(p->listener, (struct sockaddr *)&a, n) < 0 ||
	    listen(p->listener, (int)p->ranks) < 0)
		return yk_fail(YOKE_EIO, "no socket for the ranks: %s", strerror(errno));
	return 0;
}

// An environment with this rank's place; one block.
static char **environment(const struct parent *p, uint32_t rank)
{
	size_t n = 0;
	while (p->settings[n])
		n++;
	char **to = malloc((n + 2) * sizeof *to + 128);
	if (!to)
		return NULL;
	char *text = (char *)(to + n + 2);
	size_t kept = 0;
	for (size_t i = 0; i < n; i++)
		if (strncmp(p->settings[i], world_name, sizeof world_name - 1))
			to[kept++] = p->settings[i];
	snprintf(text, 128, "%s=%u %u %s", world_name, rank, p->ranks, p->name);
	to[kept++] = text;
	to[kept] = NULL;
	return to;
}

static int start(struct parent *p, uint32_t rank, char *const *argv)
{
	const pid_t self = getpid();
	char **env = environment(p, rank);
	const pid_t pid = env ? fork() : -1;
	if (!pid) { // nothing but what is safe between fork and exec
		sigset_t none;
		sigemptyset(&none);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != self)
			_exit(126);
		if (p->launch->forward)
			setpgid(0, 0);
		sigprocmask(SIG_SETMASK, &none, NULL);
		if (p->launch->path)
			execve(p->launch->path, argv, env);
		else
			execvpe(argv[0], argv, env);
		_exit(127);
	}
	free(env);
	if (pid < 0)
		return yk_fail(YOKE_ENOMEM, "rank %u cannot be started: %s", rank, strerror(errno));
	p->child[rank] = (struct child){ .pid = pid, .fd = (int)syscall(SYS_pidfd_open, pid, 0) };
	p->left++;
	return 0;
}

// Whoever comes and is a child gets the memory.
static void serve(struct parent *p)
{
	int s = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC);
	const pid_t pid = s < 0 ? -1 : peer_of(s);
	for (uint32_t i = 0; i < p->ranks && pid > 0; i++)
		if (p->child[i].pid == pid && !p->child[i].served)
			p->child[i].served = send_fd(s, p->memory);
	if (s >= 0)
		close(s);
}

static void bury(struct parent *p, uint32_t i)
{
	struct child *c = &p->child[i];
	if (c->pid <= 0 || waitpid(c->pid, &c->status, WNOHANG) != c->pid)
		return;
	const bool failed = !WIFEXITED(c->status) || WEXITSTATUS(c->status);
	p->left--;
	if (failed && !p->failed)
		p->failed = yk_nanoseconds();
	if (WIFSIGNALED(c->status))
		*(p->late ? &p->hung : &p->lost) += 1;
	if (WIFSIGNALED(c->status))
		break_segment(p->segment, YOKE_ERANK, "rank %u (pid %d) was ended by signal %d, %s", i, (int)c->pid,
			    WTERMSIG(c->status), strsignal(WTERMSIG(c->status)));
	else if (failed)
		break_segment(p->segment, YOKE_ERANK, "rank %u (pid %d) ended with exit status %d", i, (int)c->pid,
			    WEXITSTATUS(c->status));
	struct yk_area *world = world_of(p->segment);
	atomic_store(&world->seat[i].gone, 1);
	for (uint32_t k = 0; k < p->ranks; k++)
		yk_bell_ring(&world->seat[k].bell);
	c->pid = -1;
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

static void send_all(const struct parent *p, int signal)
{
	for (uint32_t i = 0; i < p->ranks; i++)
		if (p->child[i].pid > 0)
			kill(p->child[i].pid, signal);
}

static void hand_on(const struct parent *p)
{
	struct signalfd_siginfo s;
	while (p->signals >= 0 && read(p->signals, &s, sizeof s) == sizeof s) {
		p->launch->signals++;
		p->launch->signal = (int)s.ssi_signo;
		send_all(p, (int)s.ssi_signo);
	}
}

static void wait_children(struct parent *p)
{
	struct pollfd *fd = calloc(p->ranks + (size_t)2, sizeof *fd);
	while (p->left) {
		for (uint32_t i = 0; fd && i < p->ranks; i++)
			fd[i] = (struct pollfd){ .fd = p->child[i].fd, .events = POLLIN };
		if (fd) {
			fd[p->ranks] = (struct pollfd){ .fd = p->listener, .events = POLLIN };
			fd[p->ranks + 1] = (struct pollfd){ .fd = p->signals, .events = POLLIN };
			poll(fd, p->ranks + (nfds_t)2, 200);
		}
		serve(p);
		hand_on(p);
		for (uint32_t i = 0; i < p->ranks; i++)
			bury(p, i);
		if (p->failed && yk_nanoseconds() - p->failed > p->launch->grace) {
			p->late = true;
			send_all(p, SIGKILL); // it is stopped, or waits for what will not come
		}
	}
	free(fd);
}

int yk_spawn(int n, char *const argv[], struct yk_launch *launch)
{
	struct parent p = { .ranks = (uint32_t)n, .memory = -1, .listener = -1, .launch = launch, .signals = -1 };
	if (n < 1 || n > YK_MOST_RANKS || !argv || !argv[0])
		return yk_fail(YOKE_EINVAL, "group_spawn: %d ranks; 1 to %d are possible", n, YK_MOST_RANKS);
	p.child = calloc(p.ranks, sizeof *p.child);
	int err = p.child ? 0 : yk_fail(YOKE_ENOMEM, "no memory for %d ranks", n);
	for (uint32_t i = 0; i < p.ranks && !err; i++)
		p.child[i] = (struct child){ .pid = -1, .fd = -1 };
	if (!err && !(p.settings = yk_param_environment()))
		err = yk_fail(YOKE_ENOMEM, "no memory for %d ranks", n);
	if (!err && launch->forward && (p.signals = signalfd(-1, launch->forward, SFD_CLOEXEC | SFD_NONBLOCK)) < 0)
		err = yk_fail(YOKE_EIO, "no descriptor for signals: %s", strerror(errno));
	if (!err && !(p.segment = segment_new(p.ranks, &p.memory)))
		err = yk_error_last();
	if (!err)
		err = listen_at(&p);
	for (uint32_t i = 0; i < p.ranks && !err; i++)
		err = start(&p, i, argv);
	if (err && p.segment)
		break_segment(p.segment, YOKE_ERANK, "not all ranks could be started");
	if (p.child)
		wait_children(&p);
	if (!err && p.failed)
		err = yk_fail(YOKE_ERANK, "%s", world_of(p.segment)->why);
	launch->lost = p.lost ? p.lost : p.hung;
	for (uint32_t i = 0; i < p.ranks && p.segment; i++)
		if (atomic_load(&world_of(p.segment)->seat[i].erred))
			launch->lost = 0;
	if (p.signals >= 0)
		close(p.signals);
	if (p.listener >= 0)
		close(p.listener);
	if (p.memory >= 0)
		close(p.memory);
	yk_segment_unref(p.segment);
	free(p.child);
	free(p.settings);
	return err;
}

int yoke_group_spawn(int n, char *const argv[])
{
	return yk_spawn(n, argv, &(struct yk_launch){ .grace = yk_ranks_timeout() });
}
