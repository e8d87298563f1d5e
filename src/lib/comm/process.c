// SPDX-License-Identifier: Apache-2.0
// Starts ranks as processes. The parent creates the shared memory, starts the children, hands them
// the memory, and reports to the others when one ends. Children receive SIGKILL when their parent
// ends.
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/param.h"
#include "base/system.h"
#include "comm/process.h"
#include "comm/segment.h"

struct child {
	pid_t pid;
	int fd;       // readable when the process has ended; -1: not known
	bool served;
	int status;   // as from waitpid
};

struct parent {
	uint32_t ranks;
	struct yk_segment *segment;
	struct child *child;
	int memory, listener;
	struct yk_answer answer;
	char name[64];
	char **settings;   // the environment, with changed yoke settings
	uint32_t left;     // running children
	uint64_t failed;   // time when the first child failed, nanoseconds; 0: none
	bool late;         // the remaining children were killed
	int lost, hung;    // children ended by signals, before and after `late`
	struct yk_launch *launch;
	int signals;       // readable when a forwarded signal is pending; -1: none
};

static int listen_at(struct parent *p)
{
	uint64_t word[2];
	const int e = yk_random(word, sizeof word);
	if (e < 0)
		return e;
	snprintf(p->name, sizeof p->name, "yoke-%d-%016llx%016llx", (int)getpid(),
		 (unsigned long long)word[0], (unsigned long long)word[1]);
	if ((p->listener = yk_socket_listen(p->name, (int)p->ranks)) < 0)
		return yk_fail(YOKE_EIO, "no socket for the ranks: %s", strerror(errno));
	return 0;
}

// An environment with this rank's variables, in one allocation.
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
		if (strncmp(p->settings[i], yk_world_variable, strlen(yk_world_variable)))
			to[kept++] = p->settings[i];
	snprintf(text, 128, "%s=%u %u %s", yk_world_variable, rank, p->ranks, p->name);
	to[kept++] = text;
	to[kept] = NULL;
	return to;
}

static int start(struct parent *p, uint32_t rank, char *const *argv)
{
	const pid_t self = getpid();
	char **env = environment(p, rank);
	const pid_t pid = env ? fork() : -1;
	if (!pid) { // only async-signal-safe calls between fork and exec
		sigset_t none;
		sigemptyset(&none);
		yk_end_with_parent(SIGKILL);
		if (getppid() != self)
			_exit(126);
		if (p->launch->forward)
			setpgid(0, 0);
		sigprocmask(SIG_SETMASK, &none, NULL);
		if (p->launch->path)
			execve(p->launch->path, argv, env);
		else
			environ = env, execvp(argv[0], argv);
		_exit(127);
	}
	free(env);
	if (pid < 0)
		return yk_fail(YOKE_ENOMEM, "rank %u cannot be started: %s", rank, strerror(errno));
	p->child[rank] = (struct child){ .pid = pid, .fd = yk_process_open(pid) };
	p->left++;
	return 0;
}

// Accepts a connection, and hands out the memory if it comes from a child.
static void serve(struct parent *p)
{
	int s = yk_accept(p->listener);
	const pid_t pid = s < 0 ? -1 : yk_local_peer(s);
	for (uint32_t i = 0; i < p->ranks && pid > 0; i++)
		if (p->child[i].pid == pid && !p->child[i].served)
			p->child[i].served = yk_socket_serve(s, p->memory, &p->answer);
	if (s >= 0)
		close(s);
	if (yk_answer_error(&p->answer))
		yk_segment_break(p->segment, YOKE_EINVAL, "%s", yoke_error());
}

static void collect_status(struct parent *p, uint32_t i)
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
		yk_segment_break(p->segment, YOKE_ERANK,
				 "rank %u (pid %d) was ended by signal %d, %s", i, (int)c->pid,
				 WTERMSIG(c->status), strsignal(WTERMSIG(c->status)));
	else if (failed)
		yk_segment_break(p->segment, YOKE_ERANK,
				 "rank %u (pid %d) ended with exit status %d", i, (int)c->pid,
				 WEXITSTATUS(c->status));
	struct yk_area *world = yk_segment_world(p->segment);
	atomic_store(&world->slot[i].gone, 1);
	for (uint32_t k = 0; k < p->ranks; k++)
		yk_wakeup_ring(&world->slot[k].wakeup);
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

static void forward_signals(const struct parent *p)
{
	int signal;
	while (p->launch->forward && (signal = yk_signals_take(p->signals, p->launch->forward))) {
		if (!yk_stop_counts(&p->launch->window))
			continue;
		p->launch->signals++;
		p->launch->signal = signal;
		send_all(p, signal);
	}
	yk_stop_drained(&p->launch->window);
	// Repeated until the children have ended: a child ignores the signal while its window for
	// the first signal is open.
	if (p->launch->signals > 1)
		send_all(p, p->launch->signal);
}

// Is there a child without a descriptor?
static bool polls_children(const struct parent *p)
{
	bool polls = false;
	for (uint32_t i = 0; i < p->ranks; i++)
		polls |= p->child[i].pid > 0 && p->child[i].fd < 0;
	return polls;
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
			// poll more often after a failure, so that the grace period is not
			// exceeded, and where descriptors do not tell of ends and signals
			const bool polls = p->failed || (p->launch->forward && p->signals < 0) ||
					   polls_children(p);
			poll(fd, p->ranks + (nfds_t)2, polls ? 20 : 200);
		}
		serve(p);
		forward_signals(p);
		for (uint32_t i = 0; i < p->ranks; i++)
			collect_status(p, i);
		if (p->failed && yk_nanoseconds() - p->failed > p->launch->grace) {
			p->late = true;
			// the child is stopped, or waits for something that never happens
			send_all(p, SIGKILL);
		}
	}
	free(fd);
}

int yk_spawn(int n, char *const argv[], struct yk_launch *launch)
{
	struct parent p = { .ranks = (uint32_t)n,
			    .memory = -1,
			    .listener = -1,
			    .answer = yk_answer_of(YK_STARTER),
			    .launch = launch,
			    .signals = -1 };
	if (n < 1 || n > YK_MAX_RANKS || !argv || !argv[0])
		return yk_fail(YOKE_EINVAL, "group_spawn: %d ranks; 1 to %d are possible", n,
			       YK_MAX_RANKS);
	p.child = calloc(p.ranks, sizeof *p.child);
	int err = p.child ? 0 : yk_fail(YOKE_ENOMEM, "no memory for %d ranks", n);
	for (uint32_t i = 0; i < p.ranks && !err; i++)
		p.child[i] = (struct child){ .pid = -1, .fd = -1 };
	if (!err && !(p.settings = yk_param_environment()))
		err = yk_fail(YOKE_ENOMEM, "no memory for %d ranks", n);
	if (!err && launch->forward && (p.signals = yk_signals_open(launch->forward)) < 0 &&
	    errno != ENOSYS)
		err = yk_fail(YOKE_EIO, "no descriptor for signals: %s", strerror(errno));
	if (!err && !(p.segment = yk_segment_new(p.ranks, &p.memory)))
		err = yk_error_last();
	if (!err)
		err = listen_at(&p);
	for (uint32_t i = 0; i < p.ranks && !err; i++)
		err = start(&p, i, argv);
	if (err && p.segment)
		yk_segment_break(p.segment, YOKE_ERANK, "not all ranks could be started");
	if (p.child)
		wait_children(&p);
	if (!err && p.failed)
		err = yk_fail(YOKE_ERANK, "%s", yk_segment_world(p.segment)->why);
	launch->lost = p.lost ? p.lost : p.hung;
	for (uint32_t i = 0; i < p.ranks && p.segment; i++)
		if (atomic_load(&yk_segment_world(p.segment)->slot[i].erred))
			launch->lost = 0;
	if (p.signals >= 0)
		close(p.signals);
	if (p.listener >= 0) {
		close(p.listener);
		yk_local_remove(p.name);
	}
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
