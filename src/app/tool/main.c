// SPDX-License-Identifier: Apache-2.0
// The command `yoke`: dispatches to the sub-command; messages that all sub-commands share.
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/param.h"
#include "device/guard.h"
#include "device/warmup.h"
#include "tool/tool.h"

// Writes one line with one call, because ranks may write at the same time; control characters in
// the text are replaced.
static void report(const char *command, const char *text)
{
	char line[2200]; // longer than any error message
	snprintf(line, sizeof line - 1, "yoke%s%s: %s", *command ? " " : "", command, text);
	for (char *c = line; *c; c++)
		if (iscntrl((unsigned char)*c))
			*c = '?';
	strcat(line, "\n");
	fputs(line, stderr);
}

int yk_usage(const char *command, const char *fmt, ...)
{
	char text[2048];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof text)
		snprintf(text + n, sizeof text - (size_t)n, "; see `yoke help%s%s`",
			 *command ? " " : "", command);
	report(command, text);
	return YK_USAGE;
}

int yk_failed(const char *command)
{
	report(command, *yoke_error() ? yoke_error() : "failed without an error message");
	return YK_FAILED;
}

bool yk_reader_exited(void)
{
	struct pollfd p = { .fd = STDOUT_FILENO, .events = POLLOUT };

	return ferror(stdout) && poll(&p, 1, 0) > 0 && p.revents & POLLERR;
}

// Flushes stdout and reports a write error, unless the reader exited; returns `status`, or
// YK_FAILED.
static int finish(const char *command, int status)
{
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	if (yk_reader_exited())
		return status;
	if (status == YK_DONE) {
		yoke_error_clear();
		yk_fail(YOKE_EIO, "standard output: %s",
			errno ? strerror(errno) : "write error");
		yk_failed(command);
	}
	return YK_FAILED;
}

const struct yk_command *yk_command_find(const struct yk_command *list, const char *word)
{
	for (; list && list->name; list++) {
		const char *last = strrchr(list->name, ' ');
		if (!strcmp(word, last ? last + 1 : list->name))
			return list;
	}
	return NULL;
}

static const char *nearest_subject(const struct yk_command *list, const char *word)
{
	const char *names[8];
	int n = 0;

	for (; list->name; list++)
		names[n++] = strrchr(list->name, ' ') + 1;
	return yk_nearest(word, names, n);
}

static int version(void)
{
	printf("yoke %s\n", yoke_version());
	return finish("", YK_DONE);
}

// Runs a command or its subject, unless the arguments request help or the version.
static int run(const struct yk_command *c, int argc, char **argv)
{
	struct yk_screen screen = { 0 };
	const struct yk_command *subject = argc > 1 ? yk_command_find(c->subjects, argv[1]) : NULL;

	if (subject)
		return run(subject, argc - 1, argv + 1);
	if (c->subjects && argc > 1 && !strpbrk(argv[1], "-=") && access(argv[1], F_OK) < 0) {
		const char *nearest = nearest_subject(c->subjects, argv[1]);
		if (nearest)
			return yk_usage(c->name, "no subject or file '%s'; did you mean '%s'",
					argv[1], nearest);
	}
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			yk_help(stdout, c, false);
			return finish(c->name, YK_DONE);
		}
		if (!strcmp(argv[i], "--version"))
			return version();
	}
	yk_warmup_show(&screen, !strcmp(c->name, "generate") || !strcmp(c->name, "chat"));
	int status = c->run(argc, argv);
	yk_warmup_to(NULL, NULL);
	return finish(c->name, status);
}

int main(int argc, char **argv)
{
	const char *names[32], *word = argc > 1 ? argv[1] : NULL, *nearest;
	int n = 0;

	// A reader that exits does not end a training; other commands then end quietly
	// (yk_reader_exited). A file that may not grow causes a write error with a message.
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	yk_guard_program(argv);
	if (!word) {
		yk_help(stderr, NULL, false);
		return YK_USAGE;
	}
	if (!strcmp(word, "--version"))
		return version();
	if (!strcmp(word, "--help") || !strcmp(word, "-h"))
		word = "help";
	const struct yk_command *found = yk_command_find(yk_commands, word);
	if (!found && !strcmp(word, "get")) // short for `yoke data get`
		found = yk_command_find(yk_command_find(yk_commands, "data")->subjects, word);
	if (found)
		return run(found, argc - 1, argv + 1);
	for (const struct yk_command *c = yk_commands; c->name; c++)
		names[n++] = c->name;
	nearest = yk_nearest(word, names, n);
	if (nearest)
		return yk_usage("", "unknown command '%s'; did you mean '%s'", word,
				nearest);
	return yk_usage("", "unknown command '%s'", word);
}
