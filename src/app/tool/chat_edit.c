// SPDX-License-Identifier: Apache-2.0
// Edits lines of a terminal with libedit.  Characters are read here, with poll, so that Ctrl-C ends
// the line.
#include "config.h"

#include "tool/chat_edit.h"

#ifdef HAVE_LIBEDIT

#include <errno.h>
#include <histedit.h>
#include <locale.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "base/error.h"

enum { ENTRIES = 1000 };

struct yk_chat_edit {
	struct yk_interrupts *interrupts;
	EditLine *line;
	History *history;
	locale_t utf8; // libedit converts text by the locale, and messages are UTF-8
	const char *prompt;
	enum yk_chat_read end; // why no line was read
	int failed;            // errno of read; 0: none
};

static char *prompt_of(EditLine *l)
{
	struct yk_chat_edit *e;
	el_get(l, EL_CLIENTDATA, &e);
	return (char *)(uintptr_t)e->prompt;
}

// 1: a byte; 0: the input ends; -1: Ctrl-C, or an error.
static int read_byte(struct yk_chat_edit *e, char *to)
{
	struct pollfd wait[] = { { .fd = STDIN_FILENO, .events = POLLIN },
				 { .fd = e->interrupts->wake[0], .events = POLLIN } };
	for (;;) {
		const int n = poll(wait, 2, -1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n >= 0 && wait[1].revents) {
			e->end = YK_READ_INTERRUPT;
			return -1;
		}
		const ssize_t got = n < 0 ? -1 : read(STDIN_FILENO, to, 1);
		if (got >= 0)
			return (int)got;
		if (errno == EIO) // the terminal is gone
			return 0;
		if (errno != EINTR && errno != EAGAIN) {
			e->failed = errno;
			return -1;
		}
	}
}

// Reads a character; bytes that are none are left out.
static int read_character(EditLine *l, wchar_t *to)
{
	struct yk_chat_edit *e;
	mbstate_t state = { 0 };
	char byte;
	int n;
	el_get(l, EL_CLIENTDATA, &e);
	while ((n = read_byte(e, &byte)) == 1) {
		const size_t used = mbrtowc(to, &byte, 1, &state);
		if (used == (size_t)-1)
			state = (mbstate_t){ 0 };
		else if (used != (size_t)-2)
			return 1;
	}
	return n;
}

static bool set_up(struct yk_chat_edit *e)
{
	HistEvent event;
	e->history = history_init();
	e->line = e->history ? el_init("yoke", stdin, stderr, stderr) : NULL;
	return e->line && history(e->history, &event, H_SETSIZE, ENTRIES) >= 0 &&
	       history(e->history, &event, H_SETUNIQUE, 1) >= 0 &&
	       el_set(e->line, EL_CLIENTDATA, e) == 0 && el_set(e->line, EL_SIGNAL, 1) == 0 &&
	       el_set(e->line, EL_EDITOR, "emacs") == 0 &&
	       el_set(e->line, EL_HIST, history, e->history) == 0 &&
	       el_set(e->line, EL_PROMPT, prompt_of) == 0 &&
	       el_set(e->line, EL_GETCFN, read_character) == 0;
}

struct yk_chat_edit *yk_chat_edit_new(struct yk_interrupts *interrupts)
{
	struct yk_chat_edit *e =
		isatty(STDIN_FILENO) && isatty(STDERR_FILENO) ? calloc(1, sizeof *e) : NULL;
	if (!e)
		return NULL;
	const locale_t before = uselocale((locale_t)0);
	e->interrupts = interrupts;
	e->prompt = "";
	e->utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	if (e->utf8)
		uselocale(e->utf8); // it also decides which keys are letters
	const bool good = e->utf8 && set_up(e);
	if (good)
		el_source(e->line, NULL); // the user's key bindings; most have none
	uselocale(before);
	if (good)
		return e;
	yk_chat_edit_free(e);
	return NULL;
}

void yk_chat_edit_free(struct yk_chat_edit *e)
{
	if (!e)
		return;
	if (e->line)
		el_end(e->line);
	if (e->history)
		history_end(e->history);
	if (e->utf8)
		freelocale(e->utf8);
	free(e);
}

int yk_chat_edit_line(struct yk_chat_edit *e, const char *prompt, struct yk_string *to,
		      enum yk_chat_read *what)
{
	const locale_t before = uselocale(e->utf8);
	HistEvent event;
	int n = 0;
	to->n = 0;
	e->prompt = prompt;
	e->end = YK_READ_END;
	e->failed = 0;
	el_resize(e->line); // the terminal may have another size now
	// before the prompt: libedit does it after, and a Ctrl-D typed between the two would be
	// lost
	el_set(e->line, EL_PREP_TERM, 1);
	const char *s = el_gets(e->line, &n);
	*what = s && n > 0 ? YK_READ_MESSAGE : e->end;
	if (*what == YK_READ_MESSAGE) {
		const size_t bytes = strcspn(s, "\n");
		yk_string_add(to, s, bytes);
		if (bytes > 0)
			history(e->history, &event, H_ENTER, s);
	} else if (*what == YK_READ_INTERRUPT) {
		const LineInfo *typed = el_line(e->line);
		yk_string_add(to, typed->buffer, (size_t)(typed->lastchar - typed->buffer));
	}
	uselocale(before);
	if (e->failed)
		return yk_fail(YOKE_EIO, "standard input: %s", strerror(e->failed));
	return to->failed ? yk_fail(YOKE_ENOMEM, "no memory for the input") : 0;
}

#else

struct yk_chat_edit *yk_chat_edit_new(struct yk_interrupts *interrupts)
{
	(void)interrupts;
	return NULL;
}

void yk_chat_edit_free(struct yk_chat_edit *e)
{
	(void)e;
}

int yk_chat_edit_line(struct yk_chat_edit *e, const char *prompt, struct yk_string *to,
		      enum yk_chat_read *what)
{
	(void)e;
	(void)prompt;
	to->n = 0;
	*what = YK_READ_END;
	return 0;
}

#endif
