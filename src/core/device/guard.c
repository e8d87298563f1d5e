// SPDX-License-Identifier: Apache-2.0
// Restarts the command without a plugin that kills the process.  Everything the signal handler
// needs is prepared before the plugin's code runs, because the handler may call neither malloc nor
// stdio.
#include "config.h"

#include "device/guard.h"

#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system.h"
#include "device/child.h"

// Names the plugins that ended the process's predecessors: lines "NN FILE", NN a signal number, 00
// for exit().
#define VARIABLE "YOKE_PLUGIN_CRASHED"
enum { ENTRY_MAX = 4 * PATH_MAX };

static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS, SIGTRAP, SIGALRM };
enum { SIGNALS = sizeof signals / sizeof *signals };

// The state of the signal handler must be at file scope.
static char program[PATH_MAX];
static char **arguments;         // NULL: this program is not to be restarted
static char crashed[ENTRY_MAX];  // the value of VARIABLE that this process was started with
static char variable[2 * ENTRY_MAX], *digits, **environment;
static struct sigaction before[SIGNALS];
static unsigned alarm_before;
static pid_t owner;              // children that a driver forks are not restarted
static atomic_bool active;

// Returns only if the process must not be restarted.
static void restart(int how)
{
	sigset_t none;

	if (getpid() != owner || !atomic_exchange(&active, false))
		return;
	digits[0] = (char)('0' + how / 10 % 10);
	digits[1] = (char)('0' + how % 10);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL); // execve preserves the signal mask and the alarm
	alarm(0);
	execve(program, arguments, environment);
}

static void on_signal(int number)
{
	restart(number);
	signal(number, SIG_DFL);
	raise(number);
}

static void on_exit_call(void)
{
	restart(0);
}

void yk_guard_program(char **argv)
{
	const char *list = getenv(VARIABLE);

	if (list)
		snprintf(crashed, sizeof crashed, "%s", list);
	unsetenv(VARIABLE); // children must not inherit it
	if (!realpath(yk_program(), program) || atexit(on_exit_call))
		return;
	arguments = argv;
}

void yk_guard_begin(const char *file)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_NODEFER };
	char real[PATH_MAX];
	size_t entries = 0;

	if (!arguments || !*file || !realpath(file, real) ||
	    strlen(crashed) + strlen(real) + sizeof "\n00 " > sizeof crashed)
		return;
	while (environ[entries])
		entries++;
	environment = malloc((entries + 2) * sizeof *environment);
	if (!environment)
		return;
	memcpy(environment, environ, entries * sizeof *environment);
	environment[entries] = variable;
	environment[entries + 1] = NULL;
	const int at = snprintf(variable, sizeof variable, VARIABLE "=%s%s", crashed,
				*crashed ? "\n" : "");
	snprintf(variable + at, sizeof variable - (size_t)at, "00 %s", real);
	digits = variable + at;
	owner = getpid();
	for (int i = 0; i < SIGNALS; i++)
		sigaction(signals[i], &action, &before[i]);
	alarm_before = alarm((unsigned)(2 * yk_child_limit())); // the child's trial took less
	atomic_store(&active, true);
}

void yk_guard_end(void)
{
	if (!atomic_exchange(&active, false))
		return;
	alarm(alarm_before);
	for (int i = 0; i < SIGNALS; i++)
		sigaction(signals[i], &before[i], NULL);
	free(environment);
	environment = NULL;
}

bool yk_guard_crashed(const char *file, char *outcome, size_t cap)
{
	char list[ENTRY_MAX], *rest = list, *line, name[32];

	snprintf(list, sizeof list, "%s", crashed);
	while ((line = strsep(&rest, "\n"))) {
		const int how = atoi(line);
		if (strlen(line) < 3 || strcmp(line + 3, file))
			continue;
		if (how == SIGALRM)
			snprintf(outcome, cap, "gave no answer within %lld s",
				 2 * (long long)yk_child_limit());
		else if (how)
			snprintf(outcome, cap, "died of %s", yk_signal_name(how, name));
		else
			snprintf(outcome, cap, "ended the process");
		return true;
	}
	return false;
}
