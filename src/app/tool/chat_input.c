// SPDX-License-Identifier: Apache-2.0
// Reads messages from standard input with poll, so that Ctrl-C at a prompt is noticed.
#include "config.h"

#include "tool/chat_input.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"

enum { MESSAGE_MAX = 1 << 20, CHUNK = 4096 };

// ---- signals ----

static void *wait_for_signals(void *arg)
{
	struct yk_interrupts *s = arg;
	int number;
	for (;;) {
		if (sigwait(&s->set, &number) != 0) // yk_interrupts_end cancels the thread here
			continue;
		if (!atomic_load(&s->ready))
			_exit(128 + number);
		atomic_fetch_add(&s->count, 1);
		eventfd_write(s->wake, 1);
	}
	return NULL;
}

int yk_interrupts_begin(struct yk_interrupts *s)
{
	atomic_init(&s->ready, false);
	atomic_init(&s->count, 0);
	s->taken = 0;
	s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->wake < 0)
		return yk_fail(YOKE_EIO, "no descriptor to wait for signals: %s", strerror(errno));
	sigemptyset(&s->set);
	sigaddset(&s->set, SIGINT);
	pthread_sigmask(SIG_BLOCK, &s->set, &s->old);
	const int e = pthread_create(&s->thread, NULL, wait_for_signals, s);
	if (e == 0)
		return 0;
	pthread_sigmask(SIG_SETMASK, &s->old, NULL);
	close(s->wake);
	return yk_fail(YOKE_ENOMEM, "no thread to wait for signals: %s", strerror(e));
}

void yk_interrupts_end(struct yk_interrupts *s)
{
	pthread_cancel(s->thread);
	pthread_join(s->thread, NULL);
	pthread_sigmask(SIG_SETMASK, &s->old, NULL);
	close(s->wake);
}

bool yk_interrupts_pending(const struct yk_interrupts *s)
{
	return atomic_load(&s->count) != s->taken;
}

void yk_interrupts_take(struct yk_interrupts *s)
{
	eventfd_t signals;
	eventfd_read(s->wake, &signals); // first: a signal after this wakes the next poll
	s->taken = atomic_load(&s->count);
}

// ---- lines ----

// Reads more.  *what: READ_MESSAGE if there is more, or the end.
static int read_more(struct yk_chat_input *in, enum yk_chat_read *what)
{
	struct pollfd wait[] = { { .fd = STDIN_FILENO, .events = POLLIN },
				 { .fd = in->interrupts->wake, .events = POLLIN } };
	if (!yk_string_reserve(&in->read, CHUNK))
		return yk_fail(YOKE_ENOMEM, "no memory for the input");
	if (poll(wait, 2, -1) < 0 && errno != EINTR)
		return yk_fail(YOKE_EIO, "standard input: %s", strerror(errno));
	*what = YK_READ_MESSAGE;
	if (wait[1].revents) {
		*what = YK_READ_INTERRUPT;
	} else if (wait[0].revents) {
		const ssize_t n = read(STDIN_FILENO, in->read.s + in->read.n, CHUNK);
		if (n < 0 && errno != EINTR && errno != EAGAIN &&
		    errno != EIO) // EIO: the terminal is gone
			return yk_fail(YOKE_EIO, "standard input: %s", strerror(errno));
		in->read.n += n > 0 ? (size_t)n : 0;
		in->ended = n == 0 || (n < 0 && errno == EIO);
	}
	return 0;
}

static void use(struct yk_string *s, size_t n)
{
	memmove(s->s, s->s + n, s->n - n);
	s->n -= n;
}

// Appends a line without its end.  A line that makes the message longer than a limit is read to its end and
// left out; *over is set.
static int read_line(struct yk_chat_input *in, struct yk_string *to, bool *over,
		     enum yk_chat_read *what)
{
	size_t seen = 0;
	for (;;) {
		const char *end = in->read.n > seen ?
					  memchr(in->read.s + seen, '\n', in->read.n - seen) :
					  NULL;
		const size_t n = end ? (size_t)(end - in->read.s) : in->read.n;
		*over = *over || to->n + n > MESSAGE_MAX;
		if (!*over && (end || (in->ended && n)))
			yk_string_add(to, in->read.s, n - (n && in->read.s[n - 1] == '\r'));
		if (end || *over || in->ended)
			use(&in->read, end ? n + 1 : n);
		if (end || in->ended) {
			in->line++;
			*what = end || n ? YK_READ_MESSAGE : YK_READ_END;
			return to->failed ? yk_fail(YOKE_ENOMEM, "no memory for a message") : 0;
		}
		seen = in->read.n;
		const int e = read_more(in, what);
		if (e < 0 || *what == YK_READ_INTERRUPT)
			return e;
	}
}

static void prompt(const struct yk_chat_input *in, const char *text)
{
	if (in->terminal) {
		fputs(text, stderr);
		fflush(stderr);
	}
}

static bool ends_with(const struct yk_string *s, size_t from, const char *what)
{
	const size_t n = strlen(what);
	return s->n - from >= n && !memcmp(s->s + s->n - n, what, n);
}

// The lines up to one that ends with """, after the first one, which began with them.
static int read_quoted(struct yk_chat_input *in, struct yk_string *to, bool *over,
		       enum yk_chat_read *what)
{
	use(to, 3);
	size_t from = 0; // of the last line
	while (!ends_with(to, from, "\"\"\"")) {
		prompt(in, "... ");
		yk_string_add(to, "\n", 1);
		from = to->n;
		const int e = read_line(in, to, over, what);
		if (e < 0 || *what != YK_READ_MESSAGE)
			return e;
	}
	to->n -= 3;
	if (to->n && to->s[to->n - 1] == '\n')
		to->n--;
	if (to->n && to->s[0] == '\n')
		use(to, 1);
	return 0;
}

int yk_chat_read(struct yk_chat_input *in, struct yk_string *to, enum yk_chat_read *what)
{
	bool over = false;
	to->n = 0;
	prompt(in, ">>> ");
	int e = read_line(in, to, &over, what);
	if (e == 0 && *what == YK_READ_MESSAGE && to->n >= 3 && !memcmp(to->s, "\"\"\"", 3)) {
		e = read_quoted(in, to, &over, what);
	} else {
		while (e == 0 && *what == YK_READ_MESSAGE && ends_with(to, 0, "\\")) {
			to->s[to->n - 1] = '\n';
			prompt(in, "... ");
			e = read_line(in, to, &over, what);
		}
	}
	if (e == 0 && *what == YK_READ_END && to->n) // the input ends within the message
		*what = YK_READ_MESSAGE;
	return e == 0 && over ?
		       yk_fail(YOKE_ERANGE, "the message has more than %d bytes; it was not sent",
			       MESSAGE_MAX) :
		       e;
}
