// SPDX-License-Identifier: Apache-2.0
// Tests signals that request an end: any signal within the window of a counted one belongs to it,
// also when the process was stopped meanwhile; one after the window ends the process. Each case
// runs in a child.
#include "config.h"

#include <semaphore.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/stop.h"
#include "tap.h"

struct child {
	sem_t first;
	int said;           // a descriptor: one byte for each signal that counts
	int more[5], n;     // signals that the process gets while the first one is handled
	int only;           // the signal that has to count; 0: any
};

static void told(void *arg, int signal, bool again)
{
	struct child *c = arg;
	(void)signal;
	if (write(c->said, again ? "2" : "1", 1) != 1)
		_exit(99);
	for (int i = 0; i < c->n && !again; i++)
		kill(getpid(), c->more[i]);
	sem_post(&c->first);
}

// Ends with status 0 after the first signal, as a training does after its step.
static int child_main(struct child *c)
{
	struct yk_stop stop;
	sem_init(&c->first, 0, 0);
	if (yk_stop_begin(&stop, told, c) < 0 || write(c->said, "0", 1) != 1)
		return 98;
	while (sem_wait(&c->first) != 0)
		continue;
	yk_stop_end(&stop);
	return atomic_load(&stop.signal) == c->only || (!c->only && atomic_load(&stop.signal)) ? 0 :
	       97;
}

static pid_t start(struct child *c, int *heard)
{
	int ends[2];
	char ready;
	fflush(stdout);
	if (pipe(ends) != 0)
		return -1;
	const pid_t pid = fork();
	if (pid == 0) {
		close(ends[0]);
		c->said = ends[1];
		_exit(child_main(c));
	}
	close(ends[1]);
	*heard = ends[0];
	return pid > 0 && read(*heard, &ready, 1) == 1 ? pid : -1;
}

// Number of signals that the child counted, and how it ended.
static int finish(pid_t pid, int heard, int *status)
{
	char byte;
	int counted = 0;
	while (read(heard, &byte, 1) == 1)
		counted++;
	close(heard);
	return waitpid(pid, status, 0) == pid ? counted : -1;
}

static void test_together(int first, int n, const int *more, const char *name)
{
	struct child c = { .n = n };
	int heard = -1, status = -1;
	for (int i = 0; i < n; i++)
		c.more[i] = more[i];
	const pid_t pid = start(&c, &heard);
	if (pid < 0) { // a signal to process -1 goes to all processes
		ok(false, "%s: the child did not begin", name);
		return;
	}
	kill(pid, first);
	const int counted = finish(pid, heard, &status);
	ok(counted == 1 && WIFEXITED(status) && WEXITSTATUS(status) == 0,
	   "%s: %d counts, wait status %#x", name, counted, (unsigned)status);
}

static void test_stopped(void)
{
	struct child c = { .n = 0 };
	int heard = -1, status = -1;
	const pid_t pid = start(&c, &heard);
	if (pid < 0) {
		ok(false, "both arrive while the process is stopped: the child did not begin");
		return;
	}
	kill(pid, SIGSTOP);
	waitpid(pid, &status, WUNTRACED);
	kill(pid, SIGTERM);
	kill(pid, SIGINT);
	kill(pid, SIGCONT);
	const int counted = finish(pid, heard, &status);
	ok(counted == 1 && WIFEXITED(status) && WEXITSTATUS(status) == 0,
	   "both arrive while the process is stopped: %d counts, wait status %#x", counted,
	   (unsigned)status);
}

// The second signal counts after some time; until then it is repeated.
static int endless(int said)
{
	struct child c = { .said = said };
	struct yk_stop stop;
	if (yk_stop_begin(&stop, told, &c) < 0 || write(said, "0", 1) != 1)
		return 98;
	for (;;)
		pause();
}

static void test_again(int signal)
{
	int ends[2], status = -1;
	char byte;
	fflush(stdout);
	if (pipe(ends) != 0)
		return;
	const pid_t pid = fork();
	if (pid == 0)
		_exit(endless(ends[1]));
	if (pid < 0) {
		ok(false, "%s again: no child", strsignal(signal));
		return;
	}
	close(ends[1]);
	if (read(ends[0], &byte, 1) != 1)
		diag("the child did not begin");
	while (waitpid(pid, &status, WNOHANG) == 0) {
		kill(pid, signal);
		nanosleep(&(struct timespec){ 0, 5000000 }, NULL);
	}
	ok(WIFEXITED(status) && WEXITSTATUS(status) == 128 + signal,
	   "%s after the window ends the process: wait status %#x",
	   strsignal(signal), (unsigned)status);
	close(ends[0]);
}

// A late reader of signals: the window closes only after pending signals were read.
static void test_window(void)
{
	struct yk_stop_window w = { 0 };
	bool good = yk_stop_counts(&w) && !yk_stop_counts(&w);
	w.end = 1; // in the past
	good = good && !yk_stop_counts(&w);
	yk_stop_drained(&w);
	ok(good && yk_stop_counts(&w), "a window stays open until pending signals are read");
}

// SIGHUP is one of the signals unless the process ignores it, as under nohup.
static void test_hangup(void)
{
	int heard = -1, status = -1;
	struct child c = { .only = SIGTERM };
	sigset_t set;
	signal(SIGHUP, SIG_IGN);
	yk_stop_signals(&set);
	bool good = !sigismember(&set, SIGHUP) && sigismember(&set, SIGINT) &&
		    sigismember(&set, SIGTERM);
	const pid_t pid = start(&c, &heard);
	if (pid < 0) {
		ok(false, "an ignored SIGHUP: the child did not begin");
		return;
	}
	kill(pid, SIGHUP); // would count as the first one
	kill(pid, SIGTERM);
	const int counted = finish(pid, heard, &status);
	good = good && counted == 1 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
	signal(SIGHUP, SIG_DFL);
	ok(good, "an ignored SIGHUP: wait status %#x", (unsigned)status);
}

int main(void)
{
	signal(SIGHUP, SIG_DFL); // it may be ignored where tests are started
	const int many[] = { SIGTERM, SIGINT, SIGTERM, SIGINT, SIGTERM };
	test_together(SIGTERM, 0, NULL, "SIGTERM");
	test_together(SIGINT, 0, NULL, "SIGINT");
	test_together(SIGTERM, 1, many, "SIGTERM twice");
	test_together(SIGINT, 1, many + 1, "SIGINT twice");
	test_together(SIGINT, 1, many, "SIGINT, SIGTERM");
	test_together(SIGTERM, 1, many + 1, "SIGTERM, SIGINT");
	test_together(SIGINT, 5, many, "six signals");
	test_together(SIGHUP, 0, NULL, "SIGHUP");
	test_together(SIGHUP, 5, many, "SIGHUP, then five others");
	test_together(SIGTERM, 1, (const int[]){ SIGHUP }, "SIGTERM, SIGHUP");
	test_stopped();
	test_again(SIGTERM);
	test_again(SIGINT);
	test_again(SIGHUP);
	test_hangup();
	test_window();
	return done();
}
