// SPDX-License-Identifier: Apache-2.0
// Reads messages from standard input, with a line editor on a terminal, else with poll, so that
// Ctrl-C at a prompt is noticed.
#include "config.h"

#include "tool/chat_input.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

enum { MESSAGE_MAX = 1 << 20, CHUNK = 4096 };
#define QUOTES "\"\"\""

void yk_chat_input_begin(struct yk_chat_input *in, struct yk_interrupts *interrupts)
{
	*in = (struct yk_chat_input){ .interrupts = interrupts, .terminal = isatty(STDIN_FILENO) };
	in->edit = yk_chat_edit_new(interrupts);
}

void yk_chat_input_end(struct yk_chat_input *in)
{
	yk_chat_edit_free(in->edit);
	yk_string_fini(&in->read);
	yk_string_fini(&in->message);
}

// ---- lines ----

// Reads more.  *what: READ_MESSAGE if there is more, or the end.
static int read_more(struct yk_chat_input *in, enum yk_chat_read *what)
{
	struct pollfd wait[] = { { .fd = STDIN_FILENO, .events = POLLIN },
				 { .fd = in->interrupts->wake[0], .events = POLLIN } };
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

// Adds bytes of the current line to the message, unless it becomes too long.
static void take(struct yk_chat_input *in, const char *s, size_t n)
{
	struct yk_chat_part *p = &in->part;
	for (size_t i = 0; i < n && p->n + i < sizeof p->head; i++)
		p->head[p->n + i] = s[i];
	for (size_t i = n < sizeof p->tail ? 0 : n - sizeof p->tail; i < n; i++) {
		memmove(p->tail, p->tail + 1, sizeof p->tail - 1);
		p->tail[sizeof p->tail - 1] = s[i];
	}
	p->n += n;
	in->over = in->over || in->message.n + n > MESSAGE_MAX;
	if (!in->over)
		yk_string_add(&in->message, s, n);
}

// Ends the current line, which may end in CR LF.
static int end_line(struct yk_chat_input *in)
{
	struct yk_chat_part *p = &in->part;
	in->line++;
	p->ended = true;
	if (p->n > 0 && p->tail[sizeof p->tail - 1] == '\r') {
		memmove(p->tail + 1, p->tail, sizeof p->tail - 1);
		p->n--;
		in->message.n -= !in->over;
	}
	return in->message.failed ? yk_fail(YOKE_ENOMEM, "no memory for a message") : 0;
}

static int edit_line(struct yk_chat_input *in, const char *prompt, enum yk_chat_read *what)
{
	const int e = yk_chat_edit_line(in->edit, prompt, &in->read, what);
	if (e == 0 && in->read.n)
		take(in, in->read.s, in->read.n);
	in->read.n = 0;
	return e < 0 || *what != YK_READ_MESSAGE ? e : end_line(in);
}

// Appends a line without its end to the message.
static int read_line(struct yk_chat_input *in, const char *prompt, enum yk_chat_read *what)
{
	if (in->part.ended)
		in->part = (struct yk_chat_part){ 0 };
	if (in->edit)
		return edit_line(in, prompt, what);
	if (in->terminal) {
		fputs(prompt, stderr);
		fflush(stderr);
	}
	for (;;) {
		const char *end = in->read.n ? memchr(in->read.s, '\n', in->read.n) : NULL;
		const size_t n = end ? (size_t)(end - in->read.s) : in->read.n;
		if (n)
			take(in, in->read.s, n);
		if (in->read.n)
			use(&in->read, end ? n + 1 : n);
		*what = YK_READ_MESSAGE;
		if (end || (in->ended && in->part.n))
			return end_line(in);
		*what = YK_READ_END;
		if (in->ended)
			return 0;
		const int e = read_more(in, what);
		if (e < 0 || *what == YK_READ_INTERRUPT)
			return e;
	}
}

// ---- messages ----

static bool ends_with(const struct yk_chat_part *p, const char *what)
{
	const size_t n = strlen(what);
	return p->n >= n && !memcmp(p->tail + sizeof p->tail - n, what, n);
}

// Does the message continue on the next line?
static bool is_continued(struct yk_chat_input *in)
{
	const struct yk_chat_part *p = &in->part;
	const bool first = !in->quoted && !in->continued;
	if (first && p->n >= 3 && !memcmp(p->head, QUOTES, 3))
		in->quoted = true;
	if (in->quoted) {
		if (ends_with(p, QUOTES) && (!first || p->n >= 6))
			return false;
		if (!in->over)
			yk_string_add(&in->message, "\n", 1);
		return true;
	}
	in->continued = ends_with(p, "\\");
	if (in->continued && !in->over)
		in->message.s[in->message.n - 1] = '\n';
	return in->continued;
}

// Moves the message to *to, without the quotes and the line ends next to them.
static void finish(struct yk_chat_input *in, struct yk_string *to)
{
	const bool closed = ends_with(&in->part, QUOTES);
	const struct yk_string message = in->message;
	in->message = *to;
	*to = message;
	if (!in->quoted || in->over)
		return;
	use(to, 3);
	to->n -= closed ? 3 : 0;
	if (to->n && to->s[to->n - 1] == '\n')
		to->n--;
	if (to->n && to->s[0] == '\n')
		use(to, 1);
}

static void forget(struct yk_chat_input *in)
{
	if (in->message.failed)
		yk_string_fini(&in->message);
	in->message.n = 0;
	in->message.failed = in->quoted = in->continued = in->over = false;
	in->part = (struct yk_chat_part){ 0 };
}

int yk_chat_read(struct yk_chat_input *in, struct yk_string *to, enum yk_chat_read *what)
{
	int e;
	to->n = 0;
	in->begun = false;
	do
		e = read_line(in, in->quoted || in->continued ? "... " : ">>> ", what);
	while (e == 0 && *what == YK_READ_MESSAGE && is_continued(in));
	if (e == 0 && *what == YK_READ_INTERRUPT && !in->terminal)
		return 0; // from a pipe, reading continues as before
	in->begun = in->quoted || in->continued || (in->part.n && !in->part.ended);
	if (e == 0 && *what == YK_READ_END &&
	    (in->quoted || in->continued)) // the input ends within the message
		*what = YK_READ_MESSAGE;
	if (e == 0 && *what == YK_READ_MESSAGE)
		finish(in, to);
	if (e == 0 && in->over && *what == YK_READ_MESSAGE)
		e = yk_fail(YOKE_ERANGE, "the message has more than %d bytes; it was not sent",
			    MESSAGE_MAX);
	forget(in);
	return e;
}
