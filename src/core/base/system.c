// SPDX-License-Identifier: Apache-2.0
// Linux and the fallbacks.
#include "config.h"

#include "base/system.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"

int yk_random(void *to, size_t bytes)
{
	enum { MOST = 256 }; // for a call of getentropy
	for (size_t got = 0; got < bytes; got += MOST)
		if (getentropy((char *)to + got, bytes - got < MOST ? bytes - got : MOST))
			return yk_fail(YOKE_EIO, "cannot get random bytes: %s", strerror(errno));
	return 0;
}

#if defined __linux__ && !defined YK_POSIX_ONLY
#include <linux/futex.h>
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
	return close_by_exec(accept(listener, NULL, NULL));
}

int yk_local_socket(bool blocks)
{
	const int s = close_by_exec(socket(AF_UNIX, SOCK_STREAM, 0));
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

// The file of the socket admits only this user; each end tells its number.
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
