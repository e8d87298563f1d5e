// SPDX-License-Identifier: Apache-2.0
// Linux and the fallbacks.
#include "config.h"

#include "base/system.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/socket.h"

int yk_random(void *to, size_t bytes)
{
	enum { MOST = 256 }; // for a call of getentropy
	for (size_t got = 0; got < bytes; got += MOST)
		if (getentropy((char *)to + got, bytes - got < MOST ? bytes - got : MOST))
			return yk_fail(YOKE_EIO, "cannot get random bytes: %s", strerror(errno));
	return 0;
}

void yk_file_prefetch(int fd, uint64_t offset, uint64_t bytes)
{
#ifdef POSIX_FADV_WILLNEED
	posix_fadvise(fd, (off_t)offset, (off_t)bytes, POSIX_FADV_WILLNEED);
#else
	(void)fd, (void)offset, (void)bytes;
#endif
}

#if defined __linux__ && !defined YK_POSIX_ONLY
#include <linux/futex.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>

// ---- threads ----

int yk_thread_number(void)
{
	return (int)gettid();
}

void yk_thread_name(pthread_t thread, const char *name)
{
	pthread_setname_np(thread, name);
}

int yk_processors(void)
{
	cpu_set_t set;
	return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

uint64_t yk_processors_hash(void)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	sched_getaffinity(0, sizeof set, &set);
	return yk_hash(&set, sizeof set, 0);
}

void yk_thread_slice(uint64_t nanoseconds)
{
#ifdef SYS_sched_setattr
	struct { // layout of sched_setattr(2)
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} a = { .size = sizeof a,
		.policy = SCHED_OTHER,
		.nice = getpriority(PRIO_PROCESS, 0),
		.runtime = nanoseconds };
	if (sched_getscheduler(0) == SCHED_OTHER)
		syscall(SYS_sched_setattr, 0, &a, 0);
#else
	(void)nanoseconds;
#endif
}

void yk_word_wait(atomic_uint *word, unsigned value, uint64_t nanoseconds)
{
	const struct timespec max = { .tv_sec = (time_t)(nanoseconds / 1000000000u),
				      .tv_nsec = (long)(nanoseconds % 1000000000u) };
	syscall(SYS_futex, word, FUTEX_WAIT, value, &max, NULL, 0);
}

void yk_word_wake(atomic_uint *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

// ---- processes ----

const char *yk_program(void)
{
	return "/proc/self/exe";
}

uintptr_t yk_program_address(void)
{
	return getauxval(AT_PHDR);
}

void yk_watch_parent(int signal)
{
	(void)signal;
}

void yk_end_with_parent(int signal)
{
	prctl(PR_SET_PDEATHSIG, signal);
}

int yk_process_open(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

int yk_signals_open(const sigset_t *set)
{
	return signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int yk_signals_take(int fd, const sigset_t *set)
{
	struct signalfd_siginfo s;
	(void)set;
	return fd >= 0 && read(fd, &s, sizeof s) == sizeof s ? (int)s.ssi_signo : 0;
}

// Reads the beginning of a file of /proc as a string; "": unreadable.
static void read_proc(const char *path, char *to, size_t cap)
{
	FILE *f = fopen(path, "re");
	const size_t n = f ? fread(to, 1, cap - 1, f) : 0;
	if (f)
		fclose(f);
	to[n] = '\0';
}

void yk_boot_id(char to[64])
{
	read_proc("/proc/sys/kernel/random/boot_id", to, 64);
	to[strcspn(to, "\n")] = '\0';
}

pid_t yk_process_parent(pid_t pid)
{
	char path[64], text[512];
	int parent = 0;
	if (pid == getpid())
		return getppid();
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	read_proc(path, text, sizeof text);
	const char *after = strrchr(text, ')'); // the name may contain ')'
	return after && sscanf(after, ") %*c %d", &parent) == 1 ? parent : 0;
}

bool yk_process_has_variable(pid_t pid, const char *name)
{
	char path[64], *word = NULL;
	size_t cap = 0;
	const size_t n = strlen(name);
	bool found = false;
	snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
	FILE *f = fopen(path, "re");
	while (f && !found && getdelim(&word, &cap, '\0', f) > 0)
		found = !strncmp(word, name, n) && word[n] == '=';
	free(word);
	if (f)
		fclose(f);
	return found;
}

double yk_process_memory(pid_t pid)
{
	char path[64], text[256];
	unsigned long long pages;
	snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
	read_proc(path, text, sizeof text);
	return sscanf(text, "%*u %llu", &pages) == 1 ?
		       (double)pages * (double)sysconf(_SC_PAGESIZE) :
		       NAN;
}

const char *yk_getenv_secure(const char *name)
{
	return secure_getenv(name);
}

// ---- descriptors ----

int yk_pipe(int ends[2])
{
	return pipe2(ends, O_CLOEXEC);
}

int yk_accept(int listener)
{
	return accept4(listener, NULL, NULL, SOCK_CLOEXEC);
}

int yk_socket(int family, int type, int protocol)
{
	return socket(family, type | SOCK_CLOEXEC, protocol);
}

uint64_t yk_socket_received(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t n = sizeof info;
	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n) == 0 ? info.tcpi_bytes_received : 0;
}

bool yk_socket_closed(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLRDHUP };
	return poll(&p, 1, 0) > 0 && p.revents & (POLLRDHUP | POLLHUP | POLLERR);
}

int yk_local_socket(bool blocks)
{
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | (blocks ? 0 : SOCK_NONBLOCK), 0);
}

size_t yk_local_address(struct sockaddr_un *a, const char *name) // an abstract one
{
	const size_t n = strlen(name);
	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(a->sun_path + 1, name, n);
	return offsetof(struct sockaddr_un, sun_path) + 1 + n;
}

pid_t yk_local_peer(int fd)
{
	struct ucred c;
	socklen_t n = sizeof c;
	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &n) == 0 && c.uid == geteuid() ? c.pid :
											    -1;
}

int yk_local_bind(int fd, const char *name)
{
	struct sockaddr_un a;
	const size_t n = yk_local_address(&a, name);
	return bind(fd, (struct sockaddr *)&a, (socklen_t)n);
}

void yk_local_remove(const char *name)
{
	(void)name;
}

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

int yk_memory_open(const char *name)
{
	return memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

int yk_memory_seal(int fd)
{
	return fcntl(fd, F_ADD_SEALS, SEALS);
}

bool yk_memory_is_sealed(int fd)
{
	return fcntl(fd, F_GET_SEALS) == SEALS;
}

#else

// ---- threads ----

int yk_thread_number(void)
{
	static atomic_int last;
	static _Thread_local int own;
	if (!own)
		own = atomic_fetch_add(&last, 1) + 1;
	return own;
}

void yk_thread_name(pthread_t thread, const char *name)
{
	(void)thread;
	(void)name;
}

int yk_processors(void)
{
	const long n = sysconf(_SC_NPROCESSORS_ONLN);
	return n > 0 && n < INT_MAX ? (int)n : 1;
}

uint64_t yk_processors_hash(void)
{
	return 1;
}

void yk_thread_slice(uint64_t nanoseconds)
{
	(void)nanoseconds;
}

void yk_word_wait(atomic_uint *word, unsigned value, uint64_t nanoseconds)
{
	enum { PAUSE = 200000 };
	const struct timespec pause = { 0, nanoseconds < PAUSE ? (long)nanoseconds : PAUSE };
	if (atomic_load(word) == value)
		nanosleep(&pause, NULL);
}

void yk_word_wake(atomic_uint *word)
{
	(void)word;
}

// ---- processes ----

extern int main(int argc, char **argv)
	__attribute__((weak)); // null in a library whose program does not export it

uintptr_t yk_program_address(void)
{
	return (uintptr_t)&main;
}

static char program[PATH_MAX];

static void find_program(void)
{
	Dl_info info;
	if (!yk_program_address() || !dladdr((void *)yk_program_address(), &info) ||
	    !info.dli_fname || !realpath(info.dli_fname, program))
		*program = '\0';
}

const char *yk_program(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, find_program);
	return program;
}

static void *watch_parent(void *arg)
{
	const struct timespec pause = { 0, 100000000 };
	const int *signal = arg;
	const pid_t parent = getppid();
	while (parent != 1 && getppid() == parent)
		nanosleep(&pause, NULL);
	kill(getpid(), *signal);
	return NULL;
}

void yk_watch_parent(int signal)
{
	static int number;
	pthread_t thread;
	number = signal;
	if (pthread_create(&thread, NULL, watch_parent, &number) == 0)
		pthread_detach(thread);
}

void yk_end_with_parent(int signal)
{
	(void)signal;
}

int yk_process_open(pid_t pid)
{
	if (kill(pid, 0) == 0 || errno != ESRCH)
		errno = ENOSYS;
	return -1;
}

int yk_signals_open(const sigset_t *set)
{
	(void)set;
	errno = ENOSYS;
	return -1;
}

int yk_signals_take(int fd, const sigset_t *set)
{
	sigset_t pending;
	(void)fd;
	if (sigpending(&pending))
		return 0;
	for (int s = 1; s <= SIGTERM; s++)
		if (sigismember(set, s) == 1 && sigismember(&pending, s) == 1) {
			sigset_t one;
			int number;
			sigemptyset(&one);
			sigaddset(&one, s);
			return sigwait(&one, &number) == 0 ? number : 0;
		}
	return 0;
}

void yk_boot_id(char to[64])
{
	*to = '\0';
}

pid_t yk_process_parent(pid_t pid)
{
	return pid == getpid() ? getppid() : 0;
}

bool yk_process_has_variable(pid_t pid, const char *name)
{
	(void)pid;
	(void)name;
	return false;
}

double yk_process_memory(pid_t pid)
{
	(void)pid;
	return NAN;
}

const char *yk_getenv_secure(const char *name)
{
	return getuid() == geteuid() && getgid() == getegid() ? getenv(name) : NULL;
}

// ---- descriptors ----

static int close_by_exec(int fd)
{
	if (fd >= 0)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	return fd;
}

static int prepare_socket(int fd)
{
#ifdef SO_NOSIGPIPE
	const int on = 1;
	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
	return close_by_exec(fd);
}

int yk_pipe(int ends[2])
{
	if (pipe(ends))
		return -1;
	close_by_exec(ends[0]);
	close_by_exec(ends[1]);
	return 0;
}

int yk_accept(int listener)
{
	return prepare_socket(accept(listener, NULL, NULL));
}

int yk_socket(int family, int type, int protocol)
{
	return prepare_socket(socket(family, type, protocol));
}

uint64_t yk_socket_received(int fd)
{
	(void)fd;
	return 0;
}

bool yk_socket_closed(int fd)
{
	char byte;
	const ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

int yk_local_socket(bool blocks)
{
	const int s = prepare_socket(socket(AF_UNIX, SOCK_STREAM, 0));
	if (s >= 0 && !blocks)
		fcntl(s, F_SETFL, O_NONBLOCK);
	return s;
}

size_t yk_local_address(struct sockaddr_un *a, const char *name)
{
	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(a->sun_path, sizeof a->sun_path, "/tmp/%s", name);
	return sizeof *a;
}

// The file of the socket admits only this user; each end sends its number.
pid_t yk_local_peer(int fd)
{
	const pid_t own = getpid();
	pid_t other;
	return send(fd, &own, sizeof own, MSG_NOSIGNAL) == sizeof own &&
			       recv(fd, &other, sizeof other, MSG_WAITALL) == sizeof other ?
		       other :
		       -1;
}

int yk_local_bind(int fd, const char *name)
{
	struct sockaddr_un a;
	const size_t n = yk_local_address(&a, name);
	return bind(fd, (struct sockaddr *)&a, (socklen_t)n) == 0 ? chmod(a.sun_path, 0600) : -1;
}

void yk_local_remove(const char *name)
{
	struct sockaddr_un a;
	yk_local_address(&a, name);
	unlink(a.sun_path);
}

int yk_memory_open(const char *name)
{
	static atomic_uint last;
	char unique[64];
	snprintf(unique, sizeof unique, "/%.30s-%d-%u", name, (int)getpid(),
		 atomic_fetch_add(&last, 1));
	const int fd = shm_open(unique, O_RDWR | O_CREAT | O_EXCL, 0600);
	if (fd >= 0)
		shm_unlink(unique);
	return close_by_exec(fd);
}

int yk_memory_seal(int fd)
{
	(void)fd;
	return 0;
}

bool yk_memory_is_sealed(int fd)
{
	return fd >= 0;
}

#endif
